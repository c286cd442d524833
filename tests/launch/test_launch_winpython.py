"""The Windows that the Wine tests run on is what they take it for."""

from __future__ import annotations

from pathlib import Path

import pytest

from winpython import WinPython

pytestmark = pytest.mark.wine


def test_real_windows_python_with_zcheck(winpython: WinPython) -> None:
    code = (
        "import os,sys,ctypes,winreg,msvcrt,msgspec,pefile,lief,yaml,networkx,zstandard,lz4.block,typer,zcheck;"
        "print(os.name, sys.version.split()[0], zcheck.__version__,"
        "ctypes.windll.kernel32.GetCurrentProcessId() == os.getpid())"
    )
    result = winpython.python("-c", code)
    assert result.stdout.split()[:2] == ["nt", "3.11.9"], result.stderr
    assert result.stdout.split()[3] == "True"


def test_exit_codes_keep_their_32_bits(winpython: WinPython) -> None:
    crash = "import ctypes; ctypes.windll.kernel32.ExitProcess(0xC0000135)"
    assert winpython.program(winpython.root / "python.exe", "-c", crash).returncode == 0xC0000135


def test_paths_are_named_as_windows_does(winpython: WinPython, tmp_path: Path) -> None:
    (tmp_path / "ä b.txt").write_text("x")
    code = "import sys,os; print(os.path.exists(sys.argv[1]), os.path.exists(sys.argv[2]))"
    result = winpython.python("-c", code, tmp_path / "ä b.txt", winpython.system32 / "kernel32.dll")
    assert result.stdout.split() == ["True", "True"], result.stderr
    assert winpython.windows_path(winpython.system32) == r"C:\windows\system32"
