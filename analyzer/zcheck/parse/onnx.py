"""ONNX models: operators, opsets and external data by a bounded walk over the protobuf wire format.

Field numbers are those of onnx/onnx:onnx/onnx.proto; the wire format is that of protobuf.dev's "Encoding". Weights are
stepped over by their length, so the size of a model hardly matters. Nothing raises on odd bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from zcheck.model.base import DEFAULT_LIMITS, Limits, Problem
from zcheck.model.workload import ModelFacts, OperatorCount

DEFAULT_DOMAIN = "ai.onnx"
"""the standard's own operators, whose domain is written as nothing"""
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_NESTING = 64
"""graphs inside of nodes of graphs"""
_MAX_FIELDS = 20_000_000
_NAME = 512
_EXTERNAL = 4_096

Buffer = bytes | memoryview


class _Bad(Exception):
    """Bytes that are no protobuf message."""


class _Full(Exception):
    """A bound was reached."""


class _Reader:
    def __init__(self, data: Buffer, limits: Limits) -> None:
        self.data = memoryview(data)
        self.left = min(_MAX_FIELDS, limits.entries * 20)
        self.operators: Counter[str] = Counter()
        self.functions: Counter[str] = Counter()
        self.external: dict[str, None] = {}
        self.opsets: dict[str, int] = {}
        self.producer = ["", ""]
        self.tensors = 0
        self.nodes = 0
        self.full = False

    def varint(self, at: int, end: int) -> tuple[int, int]:
        value = shift = 0
        while at < end and shift < 70:
            byte = self.data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, at
            shift += 7
        raise _Bad(f"a number at {at} does not end")

    def fields(self, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
        """(number, wire type, start, end) of each field; for a number ``start`` is its value."""
        at = start
        while at < end:
            self.left -= 1
            if self.left < 0:
                raise _Full(f"more than {_MAX_FIELDS:,} fields")
            key, at = self.varint(at, end)
            wire, number = key & 7, key >> 3
            if number == 0:
                raise _Bad(f"a field at {at} has the number 0")
            if wire == _VARINT:
                value, at = self.varint(at, end)
                yield number, wire, value, at
                continue
            if wire == _BYTES:
                size, at = self.varint(at, end)
            elif wire in (_FIXED64, _FIXED32):
                size = 8 if wire == _FIXED64 else 4
            else:
                raise _Bad(f"a field at {at} has the unknown wire type {wire}")
            if size > end - at:
                raise _Bad(f"a field at {at} of {size} bytes reaches beyond its message")
            yield number, wire, at, at + size
            at += size

    def text(self, start: int, end: int) -> str:
        return bytes(self.data[start : min(end, start + _NAME)]).decode("utf-8", "replace")

    # --- messages --------------------------------------------------------------------------------------------------

    def model(self) -> None:
        for number, wire, start, end in self.fields(0, len(self.data)):
            if wire != _BYTES:
                continue
            if number in (2, 3):
                self.producer[number - 2] = self.text(start, end)
            elif number == 7:
                self.graph(start, end, 0)
            elif number == 8:
                self.opset(start, end)
            elif number == 20:
                for inner, kind, first, last in self.fields(start, end):
                    if inner in (1, 2) and kind == _BYTES:
                        self.graph(first, last, 0)
            elif number == 25:
                self.function(start, end)

    def opset(self, start: int, end: int) -> None:
        domain, version = DEFAULT_DOMAIN, 0
        for number, wire, first, last in self.fields(start, end):
            if number == 1 and wire == _BYTES:
                domain = self.text(first, last) or DEFAULT_DOMAIN
            elif number == 2 and wire == _VARINT:
                version = first
        self.opsets[domain] = max(version, self.opsets.get(domain, 0))

    def function(self, start: int, end: int) -> None:
        name, domain = "", DEFAULT_DOMAIN
        for number, wire, first, last in self.fields(start, end):
            if wire != _BYTES:
                continue
            if number == 1:
                name = self.text(first, last)
            elif number == 10:
                domain = self.text(first, last) or DEFAULT_DOMAIN
            elif number == 7:
                self.node(first, last, 0)
        self.functions[f"{domain}::{name}"] += 1

    def graph(self, start: int, end: int, depth: int) -> None:
        if depth > _MAX_NESTING:
            raise _Full(f"graphs nested more than {_MAX_NESTING} deep")
        for number, wire, first, last in self.fields(start, end):
            if wire != _BYTES:
                continue
            if number == 1:
                self.node(first, last, depth)
            elif number == 5:
                self.tensor(first, last)
            elif number == 15:
                self.sparse(first, last)

    def node(self, start: int, end: int, depth: int) -> None:
        name, domain = "", DEFAULT_DOMAIN
        for number, wire, first, last in self.fields(start, end):
            if wire != _BYTES:
                continue
            if number == 4:
                name = self.text(first, last)
            elif number == 7:
                domain = self.text(first, last) or DEFAULT_DOMAIN
            elif number == 5:
                self.attribute(first, last, depth)
        self.nodes += 1
        self.operators[f"{domain}::{name}"] += 1

    def attribute(self, start: int, end: int, depth: int) -> None:
        for number, wire, first, last in self.fields(start, end):
            if wire != _BYTES:
                continue
            if number in (6, 11):
                self.graph(first, last, depth + 1)
            elif number in (5, 10):
                self.tensor(first, last)
            elif number in (22, 23):
                self.sparse(first, last)

    def sparse(self, start: int, end: int) -> None:
        for number, wire, first, last in self.fields(start, end):
            if number in (1, 2) and wire == _BYTES:
                self.tensor(first, last)

    def tensor(self, start: int, end: int) -> None:
        self.tensors += 1
        for number, wire, first, last in self.fields(start, end):
            if number != 13 or wire != _BYTES:
                continue
            entry = {}
            for inner, kind, one, two in self.fields(first, last):
                if inner in (1, 2) and kind == _BYTES:
                    entry[inner] = self.text(one, two)
            if entry.get(1) == "location" and entry.get(2) and len(self.external) < _EXTERNAL:
                self.external[entry[2]] = None


def read_onnx(data: Buffer, path: str, limits: Limits = DEFAULT_LIMITS) -> ModelFacts | None:
    """The facts of an ONNX model, or None when the bytes are none (no graph with a node, nor functions).

    Operators are counted over the graph, all graphs inside of its nodes, training graphs and function bodies, each
    body once; a node that calls a function of the model counts under that function's name.
    """
    reader = _Reader(data, limits)
    try:
        return _read(reader, path)
    finally:
        reader.data.release()  # so that a mapped file can be closed


def _read(reader: _Reader, path: str) -> ModelFacts | None:
    problems: list[Problem] = []
    try:
        reader.model()
    except _Bad as error:
        problems.append(Problem(path=path, reason=f"the ONNX model is damaged or cut off: {error}", partial=True))
    except _Full as error:
        reader.full = True
        problems.append(Problem(path=path, reason=f"the ONNX model was read in part: {error}", partial=True))
    if not reader.nodes and not reader.opsets and not reader.full:
        return None
    for name in reader.external:
        parts = name.replace("\\", "/").split("/")
        if ".." in parts or name.startswith(("/", "\\")) or name[1:2] == ":":
            problems.append(Problem(path=path, reason=f"external data {name[:120]!r} lies outside the model's folder"))
    return ModelFacts(
        path=path,
        format="onnx",
        operators=tuple(OperatorCount(name, reader.operators[name]) for name in sorted(reader.operators)),
        tensors=reader.tensors,
        producer=" ".join(part for part in reader.producer if part),
        opsets=tuple(sorted(reader.opsets.items())),
        external=tuple(reader.external),
        problems=tuple(problems),
    )
