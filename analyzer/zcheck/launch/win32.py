"""Windows: a suspended start in a job that ends with this process, and the modules of all processes in it.

Through ctypes; the calls are those of Microsoft's documentation of kernel32, and ``NtResumeProcess`` of ntdll, because
``subprocess`` closes the thread handle that ``ResumeThread`` would need.
"""

from __future__ import annotations

import sys

if sys.platform != "win32":  # also tells the type checker that the rest is for Windows
    raise ImportError("zcheck.launch.win32 is for Windows")

import ctypes
import subprocess
import time
from collections.abc import Mapping, Sequence
from ctypes import wintypes
from typing import IO

from zcheck.launch import quoting
from zcheck.launch.process import StartError

_CREATE_SUSPENDED = 0x4
_KILL_ON_JOB_CLOSE = 0x2000
_BASIC_ACCOUNTING, _PROCESS_LIST, _EXTENDED_LIMIT = 1, 3, 9
_ELEVATION_REQUIRED = 740
_LIST_MODULES_ALL = 3
_QUERY_READ = 0x0400 | 0x0010  # PROCESS_QUERY_INFORMATION | PROCESS_VM_READ
_KILLED = 1  # exit code for TerminateJobObject

_kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
_ntdll = ctypes.WinDLL("ntdll")


class _BasicLimit(ctypes.Structure):
    _fields_ = [
        ("PerProcessUserTimeLimit", ctypes.c_int64),
        ("PerJobUserTimeLimit", ctypes.c_int64),
        ("LimitFlags", wintypes.DWORD),
        ("MinimumWorkingSetSize", ctypes.c_size_t),
        ("MaximumWorkingSetSize", ctypes.c_size_t),
        ("ActiveProcessLimit", wintypes.DWORD),
        ("Affinity", ctypes.c_size_t),
        ("PriorityClass", wintypes.DWORD),
        ("SchedulingClass", wintypes.DWORD),
    ]


class _ExtendedLimit(ctypes.Structure):
    _fields_ = [
        ("Basic", _BasicLimit),
        ("Io", ctypes.c_uint64 * 6),
        ("ProcessMemoryLimit", ctypes.c_size_t),
        ("JobMemoryLimit", ctypes.c_size_t),
        ("PeakProcessMemoryUsed", ctypes.c_size_t),
        ("PeakJobMemoryUsed", ctypes.c_size_t),
    ]


class _Accounting(ctypes.Structure):
    _fields_ = [
        ("Times", ctypes.c_int64 * 4),
        ("TotalPageFaultCount", wintypes.DWORD),
        ("TotalProcesses", wintypes.DWORD),
        ("ActiveProcesses", wintypes.DWORD),
        ("TotalTerminatedProcesses", wintypes.DWORD),
    ]


_MAX_PROCESSES = 1024


class _ProcessList(ctypes.Structure):
    _fields_ = [
        ("NumberOfAssignedProcesses", wintypes.DWORD),
        ("NumberOfProcessIdsInList", wintypes.DWORD),
        ("ProcessIdList", ctypes.c_size_t * _MAX_PROCESSES),
    ]


def _declare(name: str, result: type | None, *arguments: type) -> None:
    function = getattr(_kernel32, name)
    function.restype, function.argtypes = result, arguments


_declare("CreateJobObjectW", wintypes.HANDLE, wintypes.LPVOID, wintypes.LPCWSTR)
_declare("SetInformationJobObject", wintypes.BOOL, wintypes.HANDLE, ctypes.c_int, wintypes.LPVOID, wintypes.DWORD)
_declare(
    "QueryInformationJobObject",
    wintypes.BOOL, wintypes.HANDLE, ctypes.c_int, wintypes.LPVOID, wintypes.DWORD, wintypes.LPVOID,
)  # fmt: skip
_declare("AssignProcessToJobObject", wintypes.BOOL, wintypes.HANDLE, wintypes.HANDLE)
_declare("TerminateJobObject", wintypes.BOOL, wintypes.HANDLE, wintypes.UINT)
_declare("CloseHandle", wintypes.BOOL, wintypes.HANDLE)
_declare("OpenProcess", wintypes.HANDLE, wintypes.DWORD, wintypes.BOOL, wintypes.DWORD)
_declare(
    "K32EnumProcessModulesEx",
    wintypes.BOOL, wintypes.HANDLE, wintypes.LPVOID, wintypes.DWORD, wintypes.LPVOID, wintypes.DWORD,
)  # fmt: skip
_declare("K32GetModuleFileNameExW", wintypes.DWORD, wintypes.HANDLE, wintypes.HMODULE, wintypes.LPWSTR, wintypes.DWORD)
_declare(
    "VirtualAllocEx",
    wintypes.LPVOID, wintypes.HANDLE, wintypes.LPVOID, ctypes.c_size_t, wintypes.DWORD, wintypes.DWORD,
)  # fmt: skip
_declare(
    "WriteProcessMemory",
    wintypes.BOOL, wintypes.HANDLE, wintypes.LPVOID, wintypes.LPCVOID, ctypes.c_size_t, wintypes.LPVOID,
)  # fmt: skip
_declare(
    "CreateRemoteThread",
    wintypes.HANDLE, wintypes.HANDLE, wintypes.LPVOID, ctypes.c_size_t, wintypes.LPVOID, wintypes.LPVOID,
    wintypes.DWORD, wintypes.LPVOID,
)  # fmt: skip
_declare("WaitForSingleObject", wintypes.DWORD, wintypes.HANDLE, wintypes.DWORD)
_declare("GetExitCodeThread", wintypes.BOOL, wintypes.HANDLE, wintypes.LPVOID)
_declare("GetModuleHandleW", wintypes.HMODULE, wintypes.LPCWSTR)
_declare("GetProcAddress", wintypes.LPVOID, wintypes.HMODULE, wintypes.LPCSTR)
_declare("GetShortPathNameW", wintypes.DWORD, wintypes.LPCWSTR, wintypes.LPWSTR, wintypes.DWORD)
_ntdll.NtResumeProcess.argtypes = (wintypes.HANDLE,)


def _fail(what: str) -> StartError:
    return StartError(f"{what}: {ctypes.FormatError(ctypes.get_last_error()).strip()}")


def short_path(path: str) -> str:
    """The 8.3 name of an existing path; the path itself where the volume keeps none."""
    buffer = ctypes.create_unicode_buffer(32768)
    return buffer.value if _kernel32.GetShortPathNameW(path, buffer, len(buffer)) else path


class Job:
    """A program and its children in a job object, ended when its last handle is closed, even by a crash of ours."""

    def __init__(self, process: subprocess.Popen[bytes], job: int) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self._process, self._job = process, job
        self.stdout: IO[bytes] = process.stdout
        self.stderr: IO[bytes] = process.stderr

    def poll(self) -> int | None:
        """Exit code, unsigned 32-bit."""
        code = self._process.poll()
        return None if code is None else code & 0xFFFFFFFF

    def alive(self) -> bool:
        """Whether any process of the job runs."""
        facts = _Accounting()
        if not _kernel32.QueryInformationJobObject(
            self._job, _BASIC_ACCOUNTING, ctypes.byref(facts), ctypes.sizeof(facts), None
        ):
            return self._process.poll() is None
        return bool(facts.ActiveProcesses)

    def interrupt(self) -> None:
        """Nothing to do: the console hands Ctrl+C to every program attached to it, the child too."""

    def kill(self) -> None:
        """Ends every process of the job."""
        _kernel32.TerminateJobObject(self._job, _KILLED)
        end = time.monotonic() + 10
        while (self._process.poll() is None or self.alive()) and time.monotonic() < end:
            time.sleep(0.02)

    def modules(self) -> set[str]:
        """Full paths of the modules of every process of the job."""
        ids = _ProcessList()
        found: set[str] = set()
        _kernel32.QueryInformationJobObject(self._job, _PROCESS_LIST, ctypes.byref(ids), ctypes.sizeof(ids), None)
        for pid in ids.ProcessIdList[: ids.NumberOfProcessIdsInList]:
            handle = _kernel32.OpenProcess(_QUERY_READ, False, pid)
            if handle:
                try:
                    found |= _modules(handle)
                finally:
                    _kernel32.CloseHandle(handle)
        return found

    def close(self) -> None:
        """Closes pipes and the job, which ends what still runs in it."""
        self.stdout.close()
        self.stderr.close()
        if self._job:
            _kernel32.CloseHandle(self._job)
            self._job = 0


def _modules(handle: int) -> set[str]:
    array = (wintypes.HMODULE * 4096)()
    needed = wintypes.DWORD()
    if not _kernel32.K32EnumProcessModulesEx(
        handle, array, ctypes.sizeof(array), ctypes.byref(needed), _LIST_MODULES_ALL
    ):
        return set()  # it has just ended, or has not begun
    count = min(needed.value // ctypes.sizeof(wintypes.HMODULE), len(array))
    name = ctypes.create_unicode_buffer(32768)
    found = set()
    for module in array[:count]:
        if _kernel32.K32GetModuleFileNameExW(handle, module, name, len(name)):
            found.add(name.value.removeprefix("\\\\?\\"))
    return found


def _preload(handle: int, path: str) -> None:
    """Loads a DLL in a suspended process by a thread that begins in LoadLibraryW; raises StartError."""
    data = ctypes.create_unicode_buffer(path)
    size = ctypes.sizeof(data)
    memory = _kernel32.VirtualAllocEx(handle, None, size, 0x3000, 0x04)  # MEM_COMMIT|MEM_RESERVE, PAGE_READWRITE
    if not memory or not _kernel32.WriteProcessMemory(handle, memory, data, size, None):
        raise _fail(f"{path}: could not be handed to the process")
    # kernel32 lies at the same address in every process of one machine type
    load = _kernel32.GetProcAddress(_kernel32.GetModuleHandleW("kernel32.dll"), b"LoadLibraryW")
    thread = _kernel32.CreateRemoteThread(handle, None, 0, load, memory, 0, None)
    if not thread:
        raise _fail(f"{path}: no thread could be started in the process")
    try:
        result = wintypes.DWORD()
        if _kernel32.WaitForSingleObject(thread, 30_000):
            raise StartError(f"{path}: loading it into the process took longer than 30 s")
        _kernel32.GetExitCodeThread(thread, ctypes.byref(result))
    finally:
        _kernel32.CloseHandle(thread)
    if not result.value:
        raise StartError(f"{path}: could not be loaded into the process; one of the DLLs that it needs is missing")


def start_in_job(
    command: Sequence[str], environment: Mapping[str, str], cwd: str, *, preload: Sequence[str] = ()
) -> Job:
    """Starts a program suspended, puts it into a job, loads ``preload``, lets it go; raises StartError."""
    job = _kernel32.CreateJobObjectW(None, None)
    limits = _ExtendedLimit()
    limits.Basic.LimitFlags = _KILL_ON_JOB_CLOSE
    if not job or not _kernel32.SetInformationJobObject(
        job, _EXTENDED_LIMIT, ctypes.byref(limits), ctypes.sizeof(limits)
    ):
        raise _fail("no job object could be made")
    try:
        process = subprocess.Popen(
            quoting.command_line(command),
            env=dict(environment),
            cwd=cwd or None,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            creationflags=_CREATE_SUSPENDED,
        )
    except OSError as error:
        _kernel32.CloseHandle(job)
        if error.winerror == _ELEVATION_REQUIRED:
            raise StartError(f"{command[0]}: it asks for administrator rights; zcheck does not raise its own") from None
        raise StartError(f"{command[0]}: cannot be started ({error.strerror or error})") from None
    handle = int(vars(process)["_handle"])
    tree = Job(process, job)
    try:
        if not _kernel32.AssignProcessToJobObject(job, handle):
            raise _fail(f"{command[0]}: could not be put into a job")
        for path in preload:
            _preload(handle, path)
        if _ntdll.NtResumeProcess(handle) < 0:
            raise StartError(f"{command[0]}: could not be let go after its start")
    except BaseException:
        process.kill()
        process.wait()
        tree.close()
        raise
    return tree
