"""Payload of a fatbin entry: LZ4 block, zstd frame or plain, each under Limits. Never raises on odd bytes.

Flags: 0x2000 LZ4 block, 0x8000 zstd (measured, checked against cuobjdump).
"""

from __future__ import annotations

from typing import Any

from zcheck.model.base import Limits
from zcheck.model.device_code import Compression

LZ4, ZSTD = 0x2000, 0x8000
# A tiny payload may say little about its ratio: zstd packs a megabyte of zeros into some tens of bytes.
SLACK = 1 << 16


def compression(flags: int) -> Compression:
    """The compression that an entry's flags name."""
    if flags & LZ4 and flags & ZSTD:
        return "unknown"
    return "lz4" if flags & LZ4 else "zstd" if flags & ZSTD else "none"


def bound(stored: int, size: int, limits: Limits) -> str | None:
    """Why a payload of ``stored`` bytes that claims ``size`` bytes uncompressed is left; None when it is unpacked."""
    if size > limits.payload:
        return f"claims {size} bytes uncompressed, more than the limit of {limits.payload}"
    if size > SLACK and size > stored * limits.ratio:
        return f"claims {size} bytes from {stored}, more than {limits.ratio} times"
    return None


def unpack(data: bytes, kind: Compression, size: int) -> tuple[bytes, str | None]:
    """The uncompressed bytes, at most ``size``, and what is wrong with them if anything is."""
    if kind == "none":
        return data, None
    try:
        out = _lz4(data, size) if kind == "lz4" else _zstd(data, size) if kind == "zstd" else None
    except Exception as error:
        # lz4 raises LZ4BlockError, zstandard ZstdError, both bare Exceptions' children; hostile bytes are no accident.
        return b"", f"does not unpack as {kind}: {str(error) or type(error).__name__}"
    if out is None:
        return b"", "carries both compression flags"
    if len(out) > size:
        return out[:size], f"holds more than the {size} bytes it claims"
    if len(out) < size:
        return out, f"holds {len(out)} bytes of the {size} it claims"
    return out, None


def _lz4(data: bytes, size: int) -> bytes:
    import lz4.block  # type: ignore[import-untyped]

    out: bytes = lz4.block.decompress(data, uncompressed_size=size)
    return out


def _zstd(data: bytes, size: int) -> bytes:
    import zstandard

    # Through the reader, so that the frame's own claim of a size allocates nothing.
    decompressor: Any = zstandard.ZstdDecompressor(max_window_size=1 << 27)
    with decompressor.stream_reader(data) as reader:
        parts, left = [], size + 1
        while left > 0 and (part := reader.read(min(left, 1 << 22))):
            parts.append(part)
            left -= len(part)
    return b"".join(parts)
