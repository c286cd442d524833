"""Values of the cache as they are stored, and the hash that files are known by."""

from __future__ import annotations

import hashlib
import zlib

MAX_VALUE = 16 * 1024 * 1024
"""a single value beyond this is not kept"""
_PACK_FROM = 512


def hash_file(name: str) -> str | None:
    """SHA-256 of a file, None when it cannot be read."""
    digest = hashlib.sha256()
    try:
        with open(name, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except (OSError, ValueError):
        return None
    return digest.hexdigest()


def pack(value: bytes) -> bytes:
    """A checksum and the value, packed where that helps: a damaged value is told from a whole one."""
    import zstandard

    packed = zstandard.ZstdCompressor(level=1).compress(value) if len(value) >= _PACK_FROM else value
    form = b"z" if len(value) >= _PACK_FROM else b"p"
    return form + zlib.crc32(packed).to_bytes(4, "little") + packed


def unpack(raw: bytes) -> bytes | None:
    """The value of what ``pack`` made; None when it is damaged."""
    import zstandard

    body = raw[5:]
    if len(raw) < 5 or zlib.crc32(body).to_bytes(4, "little") != raw[1:5]:
        return None
    if raw[:1] == b"p":
        return body
    try:
        return zstandard.ZstdDecompressor().decompress(body, max_output_size=MAX_VALUE)
    except zstandard.ZstdError:
        return None
