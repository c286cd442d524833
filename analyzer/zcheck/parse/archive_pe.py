"""PE facts of a program that is a member of an archive, held in memory and not on disk."""

from __future__ import annotations

import io
import mmap
import struct
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import BinaryIO

from zcheck.errors import InputError
from zcheck.model.base import DEFAULT_LIMITS, Limits, Problem
from zcheck.model.facts import PeFacts
from zcheck.parse import archive
from zcheck.parse import pe as reader
from zcheck.parse.archive_base import BadMember
from zcheck.parse.pe_image import Image


def pe_members(
    file: BinaryIO,
    name: str,
    facts: PeFacts | None = None,
    limits: Limits = DEFAULT_LIMITS,
    problems: list[Problem] | None = None,
) -> Iterator[tuple[str, PeFacts, BinaryIO]]:
    """(path, facts, bytes as a file) of every PE file inside, for the readers that take an open file.

    A member is told by its first two bytes, whatever its name; one that is too large to hold in memory, or damaged, is
    a Problem and passed over. The bytes may be used until the next member is asked for.
    """
    odd: list[Problem] = [] if problems is None else problems
    for member in archive.walk(file, name, facts, limits, odd):
        if member.kind in ("python-module", "script"):
            continue
        try:
            stream = member.open()
            if stream.read(2) != b"MZ":
                continue
            if member.size > limits.payload:
                raise BadMember(f"{member.size} bytes, the limit is {limits.payload}")
            stream.seek(0)
            data = stream.read()
            yield member.path, read_pe_member(data, member.path, limits), io.BytesIO(data)
        except (BadMember, InputError) as error:
            odd.append(Problem(path=member.path, reason=f"not read: {error}", partial=True))


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
        try:
            parsed = pefile.PE(data=data, fast_load=True)
        except (pefile.PEFormatError, struct.error, ValueError, TypeError, AttributeError, IndexError):
            raise InputError(f"{short} is not a Windows program: its header is damaged") from None
        if parsed.OPTIONAL_HEADER.Magic not in (0x10B, 0x20B):
            raise InputError(f"{short} is not a Windows program: its optional header is of no known kind")
        return reader._facts(Image(short, memory, parsed, limits))
