"""What every product type is made of."""

from __future__ import annotations

from typing import Literal

import msgspec

Confidence = Literal["high", "medium", "low"]
CONFIDENCES: tuple[Confidence, ...] = ("low", "medium", "high")


class Record(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Base of stage products: frozen, ordered, compared by value, and the same after a trip through JSON."""


class Problem(Record, frozen=True):
    """Something odd that a reader met and read past: where, and what was not read because of it."""

    path: str
    reason: str
    offset: int | None = None
    partial: bool = False
    """True when facts are missing because of it, so that a verdict must not rest on their absence."""


class Skipped(Record, frozen=True):
    """A file that was not judged, and why."""

    path: str
    reason: str


class Limits(Record, frozen=True):
    """Bounds that every reader keeps: sizes in bytes, counts in items. Hostile files hit these, real ones do not."""

    symbols: int = 2_000_000
    """imported, delay-imported or exported symbols of one file (real files: up to about 60,000)"""
    dlls: int = 4_096
    """imported DLLs of one file"""
    name_length: int = 32_768
    """characters of one imported or exported name (mangled C++ names pass 8,000)"""
    resources: int = 65_536
    """resource directory entries of one file"""
    strings: int = 1_000_000
    payload: int = 512 * 1024 * 1024
    """uncompressed bytes of one device code entry or one archive member"""
    total_payload: int = 4 * 1024 * 1024 * 1024
    """uncompressed bytes of one file's entries or members together"""
    ratio: int = 2_000
    """uncompressed to compressed size"""
    entries: int = 1_000_000
    """device code entries, archive members, folder entries"""
    depth: int = 8
    """nested archives"""


DEFAULT_LIMITS = Limits()
