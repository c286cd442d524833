"""ggml model files: GGUF (ggml-org/ggml: docs/gguf.md), and by first bytes whisper.cpp's older form and CTranslate2's.

Of a GGUF file the key-value pairs and the tensor list are read, never the weights.
"""

from __future__ import annotations

import struct
from typing import BinaryIO

from zcheck.model.base import DEFAULT_LIMITS, Limits, Problem
from zcheck.model.workload import ModelFacts
from zcheck.parse.tensors import group

_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""bytes of the value types; 8 is a string, 9 an array"""
_STRING, _ARRAY = 8, 9
_MAX_RANK = 8
_MAX_STRING = 1 << 24
"""bytes of one string: chat templates are long"""
_MAX_HEADER = 512 * 1024 * 1024
_MAX_ARRAY_STRINGS = 10_000_000
_CTRANSLATE2_VERSIONS = (5, 6)
_KEEP = {"general.architecture", "general.name", "general.type", "general.basename"}


class _Bad(Exception):
    """What is wrong with the file."""


class _Reader:
    def __init__(self, file: BinaryIO, size: int) -> None:
        self.file, self.size = file, min(size, _MAX_HEADER)
        self.at = 0
        file.seek(0)

    def take(self, count: int) -> bytes:
        if count < 0 or self.at + count > self.size:
            raise _Bad(f"it is cut off, or its header reaches beyond {self.size} bytes")
        data = self.file.read(count)
        if len(data) != count:
            raise _Bad("it is cut off")
        self.at += count
        return data

    def skip(self, count: int) -> None:
        if count < 0 or self.at + count > self.size:
            raise _Bad(f"it is cut off, or its header reaches beyond {self.size} bytes")
        self.at += count
        self.file.seek(self.at)

    def number(self, form: str) -> int:
        (value,) = struct.unpack("<" + form, self.take(struct.calcsize(form)))
        return int(value)


class _Gguf(_Reader):
    def __init__(self, file: BinaryIO, size: int) -> None:
        super().__init__(file, size)
        self.take(4)
        self.version = self.number("I")
        self.wide = self.version > 1
        """version 1 counts in 32 bits"""

    def count(self) -> int:
        return self.number("Q" if self.wide else "I")

    def string(self, most: int = _MAX_STRING) -> str:
        length = self.count()
        if length > most:
            raise _Bad(f"a string of {length} bytes")
        return self.take(length).decode("utf-8", "replace")

    def value(self, kind: int, keep: bool, depth: int = 0) -> str:
        if kind == _STRING:
            if keep:
                return self.string()
            self.skip(self.count())
        elif kind == _ARRAY:
            inner, length = self.number("I"), self.count()
            if inner in _SIZES:
                self.skip(_SIZES[inner] * length)
            elif inner in (_STRING, _ARRAY) and depth < 4 and length <= _MAX_ARRAY_STRINGS:
                for _ in range(length):
                    self.value(inner, False, depth + 1)
            else:
                raise _Bad(f"an array of {length} values of type {inner}")
        elif kind in _SIZES:
            self.skip(_SIZES[kind])
        else:
            raise _Bad(f"a value of the unknown type {kind}")
        return ""


def read_gguf(file: BinaryIO, size: int, path: str, limits: Limits = DEFAULT_LIMITS) -> ModelFacts | None:
    """The facts of a GGUF, older whisper.cpp or CTranslate2 model of ``size`` bytes, or None when the file is none."""
    file.seek(0)
    magic = file.read(4)
    if magic == b"GGUF":
        return _read_gguf(file, size, path, limits)
    if magic in (b"lmgg", b"tjgg", b"fmgg"):
        return ModelFacts(
            path=path, format="ggml", architecture="whisper" if magic == b"lmgg" and _whisper(file) else ""
        )
    return _read_ctranslate2(file, size, path)


def _whisper(file: BinaryIO) -> bool:
    """whisper.cpp's header: vocabulary, then the audio context of 1500 (ggml-org/whisper.cpp: src/whisper.cpp)."""
    file.seek(4)
    data = file.read(8)
    return len(data) == 8 and struct.unpack("<II", data)[1] == 1500


def _read_gguf(file: BinaryIO, size: int, path: str, limits: Limits) -> ModelFacts:
    values: dict[str, str] = {}
    tensors: list[tuple[str, tuple[int, ...]]] = []
    problems: list[Problem] = []
    try:
        reader = _Gguf(file, size)
        if not 1 <= reader.version <= 9:
            raise _Bad(f"its version is {reader.version}")
        tensor_count, pairs = reader.count(), reader.count()
        if tensor_count > limits.entries or pairs > limits.entries:
            raise _Bad(f"it claims {tensor_count} tensors and {pairs} values")
        for _ in range(pairs):
            key = reader.string(65_535)
            text = reader.value(reader.number("I"), key in _KEEP)
            if key in _KEEP:
                values[key] = text[:120]
        for _ in range(tensor_count):
            name = reader.string(65_535)
            rank = reader.number("I")
            if rank > _MAX_RANK:
                raise _Bad(f"a tensor of rank {rank}")
            shape = tuple(reader.count() for _ in range(rank))
            reader.skip(4 + 8)
            tensors.append((name, shape))
    except (_Bad, struct.error, OSError) as error:
        problems.append(Problem(path=path, reason=f"the GGUF file cannot be read whole: {error}", partial=True))
    return ModelFacts(
        path=path,
        format="gguf",
        groups=group(tensors),
        tensors=len(tensors),
        architecture=values.get("general.architecture", ""),
        producer=values.get("general.name", ""),
        problems=tuple(problems),
    )


def _read_ctranslate2(file: BinaryIO, size: int, path: str) -> ModelFacts | None:
    """CTranslate2's model.bin (OpenNMT/CTranslate2: python/ctranslate2/specs/model_spec.py, ``_serialize``): version,
    the specification's name, its revision, then the variables with name and shape."""
    reader = _Reader(file, size)
    tensors: list[tuple[str, tuple[int, ...]]] = []
    problems: list[Problem] = []
    try:
        version = reader.number("I")
        length = reader.number("H")
        if not 1 <= version <= 20 or not 5 <= length <= 64:
            return None
        name = reader.take(length)
        if not name.endswith(b"Spec\0") or not name[:-1].isalnum():
            return None
    except (_Bad, struct.error):
        return None
    try:
        reader.skip(4)
        # Older versions write their variables differently; their specification's name is enough.
        count = reader.number("I") if version in _CTRANSLATE2_VERSIONS else 0
        for _ in range(min(count, 1_000_000)):
            variable = reader.take(reader.number("H")).rstrip(b"\0").decode("utf-8", "replace")
            shape = tuple(reader.number("I") for _ in range(reader.number("B")))
            reader.skip(1)
            size_here = reader.number("I")
            if reader.at + size_here > size:
                raise _Bad("it is cut off")
            reader.at += size_here
            reader.size = size
            reader.file.seek(reader.at)
            tensors.append((variable, shape))
    except (_Bad, struct.error, OSError) as error:
        problems.append(Problem(path=path, reason=f"the CTranslate2 model cannot be read whole: {error}", partial=True))
    return ModelFacts(
        path=path,
        format="ctranslate2",
        groups=group(tensors),
        tensors=len(tensors),
        architecture=name[:-1].decode("ascii"),
        problems=tuple(problems),
    )
