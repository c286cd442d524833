"""Started by Windows' Explorer: a program dropped on zcheck, or a double click. The window is ours and has to stay."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

_LAUNCHER = re.compile(r"(py|pyw|python[\d.]*t?|pythonw[\d.]*t?|zcheck[\w.-]*)\.exe", re.I)
_MOST = 64


def own_window(console: Sequence[str], program: str = "") -> bool:
    """True when the processes of the console window are zcheck's own: no shell waits there for its next command.

    ``console``: their image names; launchers (``py.exe``, pip's ``zcheck.exe``, a virtual environment's ``python.exe``)
    may be among them. ``program``: this process's own image, whatever it is called.
    """
    names = [re.split(r"[\\/]", name)[-1] for name in console]
    own = re.split(r"[\\/]", program)[-1].lower()
    return bool(names) and all(_LAUNCHER.fullmatch(name) or (own and name.lower() == own) for name in names)


def wants_window(arguments: Sequence[str]) -> bool:
    """True for what Explorer passes: nothing, or paths that are there; a command line has verbs or options."""
    return all(not each.startswith("-") and _there(each) for each in arguments)


def _there(text: str) -> bool:
    # A verb such as "host" may be the name of a file here too; Explorer always passes whole paths.
    try:
        return Path(text).is_absolute() and Path(text).exists()
    except (OSError, ValueError):
        return False


def console_images() -> list[str]:
    """Image names of the processes that share this console; empty off Windows and without a console."""
    if sys.platform != "win32":
        return []
    import ctypes
    from ctypes import wintypes

    kernel = ctypes.WinDLL("kernel32", use_last_error=True)
    ids = (wintypes.DWORD * _MOST)()
    count = kernel.GetConsoleProcessList(ids, _MOST)
    if not 0 < count <= _MOST:
        return []
    found = []
    for number in ids[:count]:
        # PROCESS_QUERY_LIMITED_INFORMATION; a process that cannot be asked may be a shell.
        handle = kernel.OpenProcess(0x1000, False, number)
        name = ctypes.create_unicode_buffer(32_768)
        size = wintypes.DWORD(len(name))
        known = handle and kernel.QueryFullProcessImageNameW(handle, 0, name, ctypes.byref(size))
        found.append(name.value if known else "unknown")
        if handle:
            kernel.CloseHandle(handle)
    return found


def report_file(path: Path, folder: Path | None = None) -> Path:
    """Where the report on ``path`` is written: a file of its name in the user's folder of reports."""
    if folder is None:
        import platformdirs

        folder = platformdirs.user_data_path("zcheck", appauthor=False) / "reports"
    plain = re.sub(r"[^\w.-]+", "-", path.name).strip("-.")[:80] or "report"
    return folder / f"{plain}.html"


def run_dropped(
    arguments: Sequence[str],
    run: Callable[[Sequence[str]], int],
    show: Callable[[Path], None],
    pause: Callable[[str], object],
    folder: Path | None = None,
) -> int:
    """Check what was dropped, write and show the HTML report, wait for a key; returns the last exit code that counts.

    ``run`` is the command line, ``show`` opens a file, ``pause`` waits with a text.
    """
    code = 0
    try:
        if not arguments:
            run(["--help"])
            print("\nDrop a program or a folder on zcheck to see whether it will run.")
        for each in arguments:
            file = report_file(Path(each), folder)
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.unlink(missing_ok=True)
                output = ["--output", f"html={file}"]
            except OSError as error:
                print(f"zcheck: no report can be written to {file.parent}: {error.strerror or error}")
                output = []
            code = max(code, run(["check", each, *output]))
            if file.is_file() and output:
                print(f"\nThe report: {file}")
                show(file)
    finally:
        pause("\nPress Enter to close this window.")
    return code


def main(arguments: Sequence[str]) -> int | None:
    """Run as started by Explorer; None when it was not."""
    if sys.platform != "win32" or not wants_window(arguments):
        return None
    if not own_window(console_images(), sys.executable):
        return None
    from zcheck.cli.app import run

    return run_dropped(arguments, run, _open, _pause)


def _open(file: Path) -> None:
    import contextlib
    import os

    with contextlib.suppress(OSError, AttributeError):  # no program for HTML files
        os.startfile(file)  # type: ignore[attr-defined,unused-ignore]


def _pause(text: str) -> None:
    import contextlib

    with contextlib.suppress(EOFError, KeyboardInterrupt, OSError):
        input(text)
