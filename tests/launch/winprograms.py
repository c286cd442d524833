"""Small Windows programs and tagged DLLs, made with MinGW, that show which DLL was loaded and what arguments came."""

from __future__ import annotations

import functools
import hashlib
import shutil
import subprocess
from pathlib import Path

from winpython import Missing, cache_dir, mingw

TAGGED = r"""
#include <windows.h>
#include <stdio.h>
#define STR2(x) #x
#define STR(x) STR2(x)
static HINSTANCE self;
BOOL WINAPI DllMain(HINSTANCE instance, DWORD reason, void *reserved) { self = instance; return TRUE; }
static void tell(const char *function) {
    wchar_t path[1024]; char text[4096];
    GetModuleFileNameW(self, path, 1024);
    WideCharToMultiByte(CP_UTF8, 0, path, -1, text, sizeof text, NULL, NULL);
    printf("%s of %s [%s]\n", function, text, STR(TAG)); fflush(stdout);
    Sleep(700);  /* long enough to be looked at */
}
__declspec(dllexport) int FUNCTION(void) { tell(STR(FUNCTION)); return 0; }
"""

# Answers what cudart 12.4 asks of a driver at its start, and logs each request
NVCUDA = r"""
#include <windows.h>
#include <stdio.h>
#include <string.h>
static HINSTANCE self;
BOOL WINAPI DllMain(HINSTANCE instance, DWORD reason, void *reserved) { self = instance; return TRUE; }
static void tell(const char *what) {
    wchar_t path[1024]; char text[4096];
    GetModuleFileNameW(self, path, 1024);
    WideCharToMultiByte(CP_UTF8, 0, path, -1, text, sizeof text, NULL, NULL);
    fprintf(stderr, "fake %s in %s\n", what, text); fflush(stderr);
}
#define API __declspec(dllexport) int __stdcall
API cuInit(unsigned flags) { tell("cuInit"); return 100; /* no device */ }
API cuDriverGetVersion(int *version) { tell("cuDriverGetVersion"); *version = 12040; return 0; }
API cuDeviceGetCount(int *count) { tell("cuDeviceGetCount"); *count = 0; return 0; }
API cuGetExportTable(const void **table, const void *id) { *table = 0; return 1; }
API cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long flags, int *found) {
    tell(name);
    *function = (void *)GetProcAddress(self, name);
    if (found) *found = *function ? 0 : 1;
    return *function ? 0 : 500;
}
API cuGetProcAddress(const char *name, void **function, int version, unsigned long long flags) {
    return cuGetProcAddress_v2(name, function, version, flags, 0);
}
"""

PROGRAMS = {
    "static": r"""
int cuInit(void);
int wmain(void) { return cuInit(); }
""",
    "dynamic": r"""
#include <windows.h>
#include <stdio.h>
int wmain(int argc, wchar_t **argv) {
    DWORD flags = argc > 1 ? (DWORD)wcstoul(argv[1], 0, 16) : 0;
    HMODULE library = LoadLibraryExW(L"nvcuda.dll", 0, flags);
    int (*function)(void) = library ? (void *)GetProcAddress(library, "cuInit") : 0;
    if (!function) { fprintf(stderr, "CUDA driver version is insufficient for CUDA runtime version\n"); return 35; }
    return function();
}
""",
    "cudart": r"""
#include <windows.h>
#include <stdio.h>
int wmain(void) {
    HMODULE library = LoadLibraryW(L"cudart64_12.dll");
    int (*count)(int *) = library ? (void *)GetProcAddress(library, "cudaGetDeviceCount") : 0;
    int devices = -1, status = count ? count(&devices) : -1;
    printf("cudaGetDeviceCount -> %d\n", status); fflush(stdout);
    Sleep(700);
    return status == 100 ? 0 : status;
}
""",
    "plugin_host": r"""
#include <windows.h>
int wmain(int argc, wchar_t **argv) {
    wchar_t path[1024];
    GetModuleFileNameW(0, path, 1024);
    wcscpy(wcsrchr(path, L'\\'), L"\\lib\\plugin.dll");
    HMODULE library = LoadLibraryExW(path, 0, LOAD_WITH_ALTERED_SEARCH_PATH);
    int (*function)(void) = library ? (void *)GetProcAddress(library, "plugin") : 0;
    return function ? function() : 7;
}
""",
    "parent": r"""
#include <windows.h>
int wmain(void) {
    wchar_t path[1024];
    GetModuleFileNameW(0, path, 1024);
    wcscpy(wcsrchr(path, L'\\'), L"\\child\\dynamic.exe");
    STARTUPINFOW start = {sizeof start};
    PROCESS_INFORMATION process;
    if (!CreateProcessW(path, 0, 0, 0, TRUE, 0, 0, 0, &start, &process)) return 9;
    WaitForSingleObject(process.hProcess, INFINITE);
    DWORD code;
    GetExitCodeProcess(process.hProcess, &code);
    return code;
}
""",
    "arguments": r"""
#include <windows.h>
#include <stdio.h>
int wmain(int argc, wchar_t **argv) {
    for (int i = 1; i < argc; i++) {
        char text[8192];
        WideCharToMultiByte(CP_UTF8, 0, argv[i], -1, text, sizeof text, 0, 0);
        for (char *c = text; *c; c++) printf("%02x", (unsigned char)*c);
        printf("\n");
    }
    return 0;
}
""",
    "crash": r"""
#include <stdio.h>
int wmain(void) { printf("begins\n"); fflush(stdout); *(volatile int *)0 = 1; return 0; }
""",
    "hang": r"""
#include <windows.h>
#include <stdio.h>
int wmain(int argc, wchar_t **argv) {
    if (argc == 1) {  /* a child that outlives its parent, unless somebody ends the tree */
        wchar_t line[1100], path[1024];
        GetModuleFileNameW(0, path, 1024);
        swprintf(line, 1100, L"\"%ls\" child", path);
        STARTUPINFOW start = {sizeof start};
        PROCESS_INFORMATION process;
        CreateProcessW(path, line, 0, 0, TRUE, 0, 0, 0, &start, &process);
    }
    printf("hangs\n"); fflush(stdout);
    Sleep(600000);
    return 0;
}
""",
    "flood": r"""
#include <stdio.h>
#include <string.h>
#include <fcntl.h>
#include <io.h>
static char block[4096];  /* Wine loses larger writes when somebody reads the writer's memory */
int wmain(int argc, wchar_t **argv) {
    int blocks = _wtoi(argv[1]);
    memset(block, 'x', sizeof block);
    block[sizeof block - 1] = '\n';
    _setmode(1, _O_BINARY); _setmode(2, _O_BINARY);
    for (int i = 0; i < blocks; i++) { _write(1, block, sizeof block); _write(2, block, sizeof block); }
    return 0;
}
""",
    "holder": r"""
#include <windows.h>
#include <stdio.h>
int wmain(void) {
    HMODULE library = LoadLibraryW(L"nvcuda.dll");
    printf("%s\n", library ? "loaded" : "none"); fflush(stdout);
    Sleep(30000);
    return 0;
}
""",
}

# A stand-in for zluda.exe: loads the nvcuda.dll beside it into the suspended program, joins arguments as told by QUOTED
LAUNCHER = r"""
#include <windows.h>
#include <stdio.h>
#include <wchar.h>
static wchar_t line[32768];
static void quoted(const wchar_t *s) {
    if (*s && !wcspbrk(s, L" \t\n\v\"")) { wcscat(line, s); return; }
    wchar_t *out = line + wcslen(line);
    *out++ = L'"';
    for (;; s++) {
        int slashes = 0;
        while (*s == L'\\') { s++; slashes++; }
        if (!*s) { for (int i = 0; i < slashes * 2; i++) *out++ = L'\\'; break; }
        if (*s == L'"') { for (int i = 0; i < slashes * 2 + 1; i++) *out++ = L'\\'; } else
            for (int i = 0; i < slashes; i++) *out++ = L'\\';
        *out++ = *s;
    }
    *out++ = L'"'; *out = 0;
}
int wmain(int argc, wchar_t **argv) {
    int i = 1;
    while (i < argc && wcscmp(argv[i], L"--")) i++;
    for (i++; i < argc; i++) {
        if (*line) wcscat(line, L" ");
        if (QUOTED) quoted(argv[i]); else wcscat(line, argv[i]);
    }
    STARTUPINFOW start = {sizeof start};
    PROCESS_INFORMATION process;
    if (!CreateProcessW(0, line, 0, 0, TRUE, CREATE_SUSPENDED, 0, 0, &start, &process)) {
        fprintf(stderr, "launcher: %lu\n", GetLastError());
        return 99;
    }
    HANDLE job = CreateJobObjectW(0, 0);
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limit = {0};
    limit.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
    SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limit, sizeof limit);
    AssignProcessToJobObject(job, process.hProcess);
    wchar_t path[1024];
    GetModuleFileNameW(0, path, 1024);
    wcscpy(wcsrchr(path, L'\\'), L"\\nvcuda.dll");
    void *memory = VirtualAllocEx(process.hProcess, 0, sizeof path, MEM_COMMIT, PAGE_READWRITE);
    WriteProcessMemory(process.hProcess, memory, path, sizeof path, 0);
    HANDLE thread = CreateRemoteThread(process.hProcess, 0, 0, (void *)LoadLibraryW, memory, 0, 0);
    WaitForSingleObject(thread, INFINITE);
    ResumeThread(process.hThread);
    WaitForSingleObject(process.hProcess, INFINITE);
    DWORD code;
    GetExitCodeProcess(process.hProcess, &code);
    return code;
}
"""


def _run(*command: object) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        raise Missing(f"{command[0]} failed: {done.stderr[-500:]}")


def _tagged(folder: Path, name: str, function: str, tag: str) -> Path:
    source = folder / f"{tag}.c"
    source.write_text(TAGGED)
    target = folder / tag / f"{name}.dll"
    target.parent.mkdir(exist_ok=True)
    _run(
        mingw(), "-O1", "-s", "-shared", f"-DFUNCTION={function}", f"-DTAG={tag}", "-o", target, source,
        f"-Wl,--out-implib,{folder / f'lib{name}.a'}",
    )  # fmt: skip
    return target


@functools.cache
def programs() -> Path:
    """A folder with ``<program>.exe``, ``app/``, ``zluda/``, ``system/`` with tagged DLLs, and two launchers.

    Built once per source text into the cache; raises Missing without MinGW or lld.
    """
    import winpython

    key = hashlib.sha256(repr((TAGGED, NVCUDA, PROGRAMS, LAUNCHER, Path(__file__).read_text())).encode()).hexdigest()[
        :16
    ]
    target = cache_dir() / "winprograms" / key
    with winpython._only_one(target):
        if not target.exists():
            scratch = target.with_name(f"{key}.part")
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir(parents=True)
            _build(scratch)
            scratch.rename(target)
    return target


def _build(folder: Path) -> None:
    for tag in ("app", "zluda", "system"):
        _tagged(folder, "nvcuda", "cuInit", tag)
        _tagged(folder, "cublas64_12", "cublasCreate_v2", tag)
    source = folder / "fake.c"
    source.write_text(NVCUDA)
    (folder / "fake").mkdir()
    _run(mingw(), "-O1", "-s", "-shared", "-o", folder / "fake" / "nvcuda.dll", source)
    plugin = folder / "plugin.c"
    plugin.write_text(
        "int cublasCreate_v2(void);\n__declspec(dllexport) int plugin(void) { return cublasCreate_v2(); }\n"
    )
    _run(mingw(), "-O1", "-s", "-shared", "-o", folder / "plugin.dll", plugin, f"-L{folder}", "-lcublas64_12")
    for name, text in PROGRAMS.items():
        source = folder / f"{name}.c"
        source.write_text(text)
        libraries = [f"-L{folder}", "-lnvcuda"] if name == "static" else []
        _run(mingw(), "-O1", "-s", "-municode", "-o", folder / f"{name}.exe", source, *libraries)
    _delay(folder)
    source = folder / "launcher.c"
    source.write_text(LAUNCHER)
    for name, quoted in (("raw", 0), ("quoted", 1)):
        _run(mingw(), "-O1", "-s", "-municode", f"-DQUOTED={quoted}", "-o", folder / f"launcher_{name}.exe", source)


def _delay(folder: Path) -> None:
    """``delay.exe`` with a real delay-import directory, which MinGW's own tools leave empty."""
    definition = folder / "nvcuda.def"
    definition.write_text("LIBRARY nvcuda.dll\nEXPORTS\n  cuInit\n")
    tool = shutil.which("llvm-dlltool") or shutil.which("llvm-dlltool-14")
    linker = shutil.which("ld.lld")
    if not tool or not linker:
        raise Missing("LLVM's dlltool and lld are needed for a delay-import directory")
    library = folder / "delay.a"
    _run(tool, "-m", "i386:x86-64", "-d", definition, "-l", library)
    # __delayLoadHelper2 is MSVC's; a small one of our own is enough for one function
    source = folder / "delay.c"
    source.write_text(
        r"""
#include <windows.h>
#include <delayimp.h>
#include <stdio.h>
int cuInit(void);
FARPROC WINAPI __delayLoadHelper2(PCImgDelayDescr descriptor, FARPROC *address) {
    char *base = (char *)GetModuleHandleW(0);
    HMODULE library = LoadLibraryA(base + descriptor->rvaDLLName);
    if (!library) RaiseException(0xC06D007E, 0, 0, 0);
    IMAGE_THUNK_DATA *names = (void *)(base + descriptor->rvaINT);
    IMAGE_THUNK_DATA *table = (void *)(base + descriptor->rvaIAT);
    IMAGE_IMPORT_BY_NAME *name = (void *)(base + names[(IMAGE_THUNK_DATA *)address - table].u1.AddressOfData);
    return *address = GetProcAddress(library, name->Name);
}
int main(void) { return cuInit(); }
"""
    )
    _run(mingw(), "-O1", "-c", "-o", folder / "delay.o", source)

    def of(name: str) -> str:
        return subprocess.run([mingw(), f"-print-file-name={name}"], capture_output=True, text=True).stdout.strip()

    libraries = ["-lmingw32", "-lgcc", "-lmoldname", "-lmingwex", "-lmsvcrt", "-lkernel32"]
    folders = {str(Path(of(name)).parent) for name in ("libmingw32.a", "libgcc.a")}
    _run(
        linker, "-m", "i386pep", "-o", folder / "delay.exe", of("crt2.o"), of("crtbegin.o"), folder / "delay.o",
        library,
        *(f"-L{path}" for path in sorted(folders)), *libraries, *libraries, of("crtend.o"),
        "-Xlink=-delayload:nvcuda.dll",
    )  # fmt: skip
