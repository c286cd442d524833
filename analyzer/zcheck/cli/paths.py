"""Paths as Windows takes them: longer than 260 characters only with a prefix."""

from __future__ import annotations

import sys

_SHORT = 240
"""shorter paths need no prefix even with a file name behind them"""


def long_path(path: str, windows: bool | None = None) -> str:
    r"""An absolute path that Windows' file functions take at any length: ``\\?\C:\…``, ``\\?\UNC\host\share\…``.

    Elsewhere, and where it is short or has a prefix, the path itself.
    """
    on_windows = sys.platform == "win32" if windows is None else windows
    if not on_windows or len(path) < _SHORT or path.startswith(("\\\\?\\", "\\\\.\\")):
        return path
    path = path.replace("/", "\\")
    if path.startswith("\\\\"):
        return "\\\\?\\UNC\\" + path[2:]
    return "\\\\?\\" + path if path[1:3] == ":\\" else path


def plain_path(path: str) -> str:
    """A path without that prefix, for people."""
    if path.startswith("\\\\?\\UNC\\"):
        return "\\\\" + path[8:]
    return path[4:] if path.startswith("\\\\?\\") and path[5:7] == ":\\" else path
