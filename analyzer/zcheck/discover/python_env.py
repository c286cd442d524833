"""Python installs: which package folders belong to a module, and which of them are added to the DLL search.

What is followed: ``*.libs`` beside the packages and ``.libs`` in them (auditwheel, delvewheel), NVIDIA's wheels
(``nvidia/<library>/bin``, ``nvidia/cu13/bin/x86_64``), ``torch/lib``, conda's ``Library/bin``, and the folders of DLLs
in the packages that a distribution requires (``Requires-Dist``, extras included when installed).
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

SITE_NAMES = ("site-packages", "dist-packages")
MAX_RECORD = 32 * 1024 * 1024
_DEPTH = 12
_REQUIRES = re.compile(rb"^Requires-Dist:\s*([A-Za-z0-9][A-Za-z0-9._-]*)", re.MULTILINE)
_DLL_FOLDERS = {"lib", "libs", ".libs", "bin", "dlls", "x86_64", "plugins"}


def site_root(path: Path) -> Path | None:
    """The folder of packages around a path: ``site-packages``, or one with a ``*.dist-info`` (an unpacked wheel)."""
    for folder in [path, *path.parents][:_DEPTH]:
        if folder.name.lower() in SITE_NAMES or has_distributions(folder):
            return folder
    return None


def has_distributions(folder: Path) -> bool:
    """True when a folder holds a ``*.dist-info`` folder."""
    try:
        with os.scandir(folder) as found:
            return any(entry.name.endswith(".dist-info") for entry in found)
    except OSError:
        return False


def site_folders(root: Path) -> list[str]:
    """The folders of packages of an environment, relative to its root with ``/``."""
    places = ["Lib/site-packages", "lib/site-packages", "site-packages"]
    return list(dict.fromkeys(place for place in places if (root / place).is_dir()))[:1]


class Site:
    """One folder of packages."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.names: list[str] = []
        with contextlib.suppress(OSError):
            self.names = sorted(entry.name for entry in os.scandir(root))
        self._infos = {_normal(n[: -len(".dist-info")].rpartition("-")[0]): n for n in self.names if _is_info(n)}
        self._records: dict[str, bytes] = {}

    def belonging(self, top: str) -> list[str]:
        """Top folders that a module in the top folder ``top`` can reach: its package, what that needs, DLL folders."""
        queue = [info for info in self._infos.values() if self._owns(info, top)]
        infos: dict[str, None] = {}
        while queue:
            info = queue.pop(0)
            if info in infos:
                continue
            infos[info] = None
            for name in _REQUIRES.findall(self._read(info, "METADATA")):
                required = self._infos.get(_normal(name.decode("ascii")))
                if required:
                    queue.append(required)
        tops: dict[str, None] = {top: None}
        for info in infos:
            tops.update(dict.fromkeys(name for name in self.names if not _is_info(name) and self._owns(info, name)))
            tops[info] = None
        tops.update(dict.fromkeys(name for name in self.names if name == "nvidia" or name.endswith(".libs")))
        return [name for name in tops if (self.root / name).is_dir()]

    def _owns(self, info: str, top: str) -> bool:
        """True when a distribution has files in a top folder, as its RECORD says."""
        record = self._read(info, "RECORD")
        needle = top.encode("utf-8", "surrogateescape") + b"/"
        return record.startswith(needle) or b"\n" + needle in record

    def _read(self, info: str, name: str) -> bytes:
        key = f"{info}/{name}"
        if key not in self._records:
            try:
                with (self.root / info / name).open("rb") as file:
                    self._records[key] = file.read(MAX_RECORD).replace(b"\r\n", b"\n")
            except OSError:
                self._records[key] = b""
        return self._records[key]


def dll_directories(paths: Iterable[str], site: str = "", first: str = "") -> list[str]:
    """Folders with DLLs that packages add to the DLL search, in order: those of the package ``first`` before others.

    ``paths`` are files relative to the bundle's root, ``site`` is the folder of packages in it.
    """
    prefix = f"{site}/" if site else ""
    found: dict[str, None] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        if name.lower().endswith(".dll") and path.startswith(prefix) and folder not in found:
            inside = folder[len(prefix) :].split("/")
            if inside[-1].lower() in _DLL_FOLDERS or inside[0].endswith(".libs"):
                found[folder] = None
    own = f"{prefix}{first}"
    return sorted(found, key=lambda folder: (not (folder == own or folder.startswith(own + "/")) or not first, folder))


def _is_info(name: str) -> bool:
    return name.endswith(".dist-info")


def _normal(name: str) -> str:
    """A distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()
