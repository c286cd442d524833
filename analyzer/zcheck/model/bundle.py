"""What discover/ says belongs to one application."""

from __future__ import annotations

from typing import Literal

from zcheck.model.base import Record, Skipped

FileKind = Literal["pe", "script", "model", "device-code", "archive", "metadata"]


class BundleFile(Record, frozen=True):
    """A file of the bundle. ``path`` is relative to the bundle's root, with ``/``; ``size`` in bytes."""

    path: str
    kind: FileKind
    size: int = 0


class Bundle(Record, frozen=True):
    """The files that one application's loader and package layout can reach.

    ``root`` is the folder that paths are relative to (as given by the user, not resolved further than needed);
    ``entries`` are the programs (or the DLL, .pyd, .node that was named) that a person starts or a host loads;
    ``dll_directories`` are the folders, relative to ``root``, that the package layout adds to the DLL search, in order.
    """

    root: str
    entries: tuple[str, ...]
    files: tuple[BundleFile, ...] = ()
    dll_directories: tuple[str, ...] = ()
    kind: str = "folder"
    """folder, python-environment, one-file archive …"""
    skipped: tuple[Skipped, ...] = ()
