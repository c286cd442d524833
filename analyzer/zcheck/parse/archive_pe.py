"""PE facts of a program that is a member of an archive, held in memory and not on disk."""

from __future__ import annotations

import mmap
import struct
from pathlib import PurePosixPath

from zcheck.errors import InputError
from zcheck.model.base import DEFAULT_LIMITS, Limits
from zcheck.model.facts import PeFacts
from zcheck.parse import pe as reader
from zcheck.parse.pe_image import Image


def read_pe_member(data: bytes, name: str, limits: Limits = DEFAULT_LIMITS) -> PeFacts:
    """The facts of a PE file given as bytes; ``name`` may be a member's path, its last part stands in the facts.

    Raises InputError when it is not a PE file, as ``pe.read_pe`` does for one on disk.
    """
    import pefile

    short = PurePosixPath(name).name
    if data[:2] != b"MZ":
        raise InputError(f"{short} is not a Windows program: it does not begin with the letters MZ")
    with mmap.mmap(-1, len(data)) as memory:
        memory.write(data)
        parsed = None
        try:
            try:
                parsed = pefile.PE(data=data, fast_load=True)
            except (pefile.PEFormatError, struct.error, ValueError, TypeError, AttributeError, IndexError):
                raise InputError(f"{short} is not a Windows program: its header is damaged") from None
            if parsed.OPTIONAL_HEADER.Magic not in (0x10B, 0x20B):
                raise InputError(f"{short} is not a Windows program: its optional header is of no known kind")
            return reader._facts(Image(short, memory, parsed, limits))
        finally:
            if parsed is not None:
                parsed.close()
