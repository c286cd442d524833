"""The one seam between a PC and the rest of host/: a source answers for files, variables and adapters by Windows path.

Everything above asks a source; whether it is a Windows machine, a folder laid out like one or a Linux machine with ROCm
cannot be told from its answers.
"""

from __future__ import annotations

import ntpath
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from zcheck.model.base import Problem
from zcheck.model.host import Adapter

# The variables that decide how ZLUDA and HIP run; no other leaves the machine.
VARIABLES = (
    "HIP_PATH",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "HSA_OVERRIDE_GFX_VERSION",
    "ROCBLAS_TENSILE_LIBPATH",
    "HIPBLASLT_TENSILE_LIBPATH",
    "ROCM_PATH",
    "CUDA_PATH",
    "ZLUDA_CC",
    "ZLUDA_SM",
    "ZLUDA64_PATH",
    "DISABLE_ADDMM_CUDA_LT",
)
MAX_ENTRIES = 200_000
"""entries of one folder that are looked at"""


class Entry(NamedTuple):
    """One entry of a folder; size in bytes, 0 for folders."""

    name: str
    is_dir: bool
    size: int


class Source(Protocol):
    """What host/ asks of a PC. Paths are Windows paths; nothing raises on a path that is not there."""

    kind: str
    os: str
    os_build: str
    env: dict[str, str]
    """variables by upper-case name, those of VARIABLES and HIP_PATH_* only"""
    path: tuple[str, ...]
    """the search path, in order, machine entries before the user's"""
    problems: list[Problem]
    adapters_listed: bool
    """false where the system's list of adapters was not there to be read, which is known after ``adapters()``: then
    nothing is known of them, and not that there are none"""

    def adapters(self) -> tuple[Adapter, ...]:
        """The display adapters as the system lists them, gfx not yet looked up unless the source knows it."""
        ...

    def local(self, path: str) -> Path | None:
        """The file or folder on this machine that stands for a Windows path, or None."""
        ...

    def listing(self, path: str) -> tuple[Entry, ...]:
        """The entries of a folder by name; empty when it is not there."""
        ...

    def drives(self) -> tuple[str, ...]:
        """Roots to look for SDK and ZLUDA folders in, the system drive first."""
        ...

    def hipinfo(self, path: str, timeout: float) -> tuple[str | None, str]:
        """Output of hipInfo.exe at that path and an empty string, or None and why there is none."""
        ...


def wanted(name: str) -> bool:
    """Whether a variable may be read: the closed list, or one of the SDK's own HIP_PATH_64 kind."""
    upper = name.upper()
    return upper in VARIABLES or upper.startswith("HIP_PATH_")


def normal(path: str) -> str:
    r"""A Windows path in one form: backslashes, no trailing one, quotes and blanks off; ``C:\`` stays."""
    cleaned = path.replace('"', "")  # no Windows name holds a quote
    for _ in range(8):  # "a\\.. \\b" leaves blanks to strip again
        before = cleaned
        cleaned = cleaned.strip().replace("/", "\\")
        if cleaned:
            cleaned = ntpath.normpath(cleaned).rstrip(" \\") or "\\"  # Windows drops blanks at the end
            cleaned += "\\" if cleaned.endswith(":") else ""
        if cleaned == before:
            break
    return cleaned


def key(path: str) -> str:
    """The path for comparing: Windows does not mind case."""
    return normal(path).casefold()


def join(folder: str, *names: str) -> str:
    r"""``C:\a`` and ``b`` as ``C:\a\b``."""
    return ntpath.join(normal(folder), *names)


def read_folder(folder: Path) -> Iterator[Entry]:
    """Entries of a real folder, unsorted; nothing when it cannot be read."""
    try:
        with os.scandir(folder) as found:
            for count, entry in enumerate(found):
                if count >= MAX_ENTRIES:
                    return
                try:
                    is_dir = entry.is_dir()
                    yield Entry(entry.name, is_dir, 0 if is_dir else entry.stat().st_size)
                except OSError:
                    continue
    except OSError:
        return


def read_names(folder: Path) -> list[str]:
    """Names of a real folder's entries, unsorted; none when it cannot be read."""
    try:
        return os.listdir(folder)[:MAX_ENTRIES]  # noqa: PTH208 (names alone, without a Path each)
    except OSError:
        return []


def is_file(source: Source, path: str) -> bool:
    """Whether a file is there."""
    found = source.local(path)
    return found is not None and found.is_file()


def is_dir(source: Source, path: str) -> bool:
    """Whether a folder is there."""
    found = source.local(path)
    return found is not None and found.is_dir()
