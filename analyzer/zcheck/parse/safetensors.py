"""safetensors checkpoints: names and shapes from the JSON header (huggingface/safetensors, README "Format")."""

from __future__ import annotations

import struct
from typing import BinaryIO

import msgspec

from zcheck.model.base import DEFAULT_LIMITS, Limits, Problem
from zcheck.model.workload import ModelFacts
from zcheck.parse.tensors import group

_MAX_HEADER = 100_000_000
"""bytes; the format's own bound"""
_MAX_RANK = 32


def read_safetensors(file: BinaryIO, size: int, path: str, limits: Limits = DEFAULT_LIMITS) -> ModelFacts | None:
    """The facts of a checkpoint of ``size`` bytes, or None when the file is none. Only the header is read."""
    file.seek(0)
    head = file.read(9)
    if len(head) < 9 or head[8:] != b"{":
        return None
    (length,) = struct.unpack_from("<Q", head)
    if length > min(_MAX_HEADER, limits.payload):
        return _partial(path, f"its header claims {length} bytes, more than the format allows")
    if length + 8 > size:
        return _partial(path, f"its header claims {length} bytes, the file has {size}: cut off")
    file.seek(8)
    data = file.read(length)
    try:
        header = msgspec.json.decode(data, type=dict[str, object])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        return _partial(path, f"its header is no JSON object: {error}")
    metadata = header.pop("__metadata__", None)
    if len(header) > limits.entries:
        return _partial(path, f"more than {limits.entries} tensors")
    tensors, odd = [], 0
    for name, entry in header.items():
        shape = entry.get("shape") if isinstance(entry, dict) else None
        if isinstance(shape, list) and len(shape) <= _MAX_RANK and all(type(side) is int for side in shape):
            tensors.append((name, shape))
        else:
            odd += 1
    if not tensors and odd:
        return _partial(path, f"none of its {odd} entries is a tensor")
    problems = [Problem(path=path, reason=f"{odd} entries of the header are no tensors", partial=True)] if odd else []
    architecture = ""
    if isinstance(metadata, dict):
        found = metadata.get("modelspec.architecture") or metadata.get("architecture") or ""
        architecture = str(found)[:120]
    return ModelFacts(
        path=path,
        format="safetensors",
        groups=group(tensors),
        tensors=len(tensors),
        architecture=architecture,
        problems=tuple(problems),
    )


def _partial(path: str, why: str) -> ModelFacts:
    return ModelFacts(path=path, format="safetensors", problems=(Problem(path=path, reason=why, partial=True),))
