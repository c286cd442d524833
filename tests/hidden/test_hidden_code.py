"""The linked-in loaders of CUDA 13, from made code; .NET metadata that is damaged."""

from __future__ import annotations

import csv
import io
import struct

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from name_tables import FOLDER, tables

import corpus
from zcheck.model.base import DEFAULT_LIMITS
from zcheck.model.facts import ImportedDll, PeFacts, Section
from zcheck.parse import cuda_loader, delay_hooks, dotnet
from zcheck.parse.names import build
from zcheck.parse.pe import read_pe

TEXT, RDATA, DATA = 0x1000, 0x100000, 0x200000
PAIRS = [(name, version, flags) for (name, version, flags), symbol in sorted(tables().loader.items())][:60]


def rip(opcode: bytes, at: int, target: int, tail: int = 0) -> bytes:
    return opcode + struct.pack("<i", target - (at + len(opcode) + 4 + tail))


class Code:
    """A .text section that grows, and the names and slots that it points to."""

    def __init__(self) -> None:
        self.code = bytearray(b"\xcc" * 256)
        self.names = bytearray(16)

    def emit(self, raw: bytes) -> None:
        self.code += raw

    def point(self, opcode: bytes, target: int, tail: bytes = b"") -> None:
        self.code += rip(opcode, TEXT + len(self.code), target, len(tail)) + tail

    def name(self, text: str) -> int:
        self.names += b"\0" * (-len(self.names) % 8)
        at = len(self.names)
        self.names += text.encode() + b"\0"
        return RDATA + at

    def driver_loader(self, pairs: list[tuple[str, int, int]]) -> None:
        for index, (name, version, flags) in enumerate(pairs):
            self.emit(b"\x41\xb9" + struct.pack("<I", flags) if flags else b"\x45\x33\xc9")
            self.emit(b"\x48\x89\x5c\x24\x20\x41\xb8" + struct.pack("<I", version))
            self.point(b"\x48\x8d\x15", DATA + 8 * index)
            self.point(b"\x48\x8d\x0d", self.name(name))
            self.point(b"\xff\x15", DATA + 0x8000)
        self.emit(b"\xc3" + b"\xcc" * 700)

    def hybrid_loader(self, numbers: list[int]) -> None:
        self.emit(b"\x48\x83\xec\x28\xb9" + struct.pack("<I", numbers[0]))
        for index in range(len(numbers)):
            self.point(b"\xe8", TEXT + 16)
            if index + 1 < len(numbers):
                self.emit(b"\xb9" + struct.pack("<I", numbers[index + 1]))
            self.point(b"\x48\x89\x05", DATA + 8 * index)
        self.emit(b"\xc3" + b"\xcc" * 700)

    def file(self) -> tuple[io.BytesIO, PeFacts, dict[int, str]]:
        data = bytes(512) + bytes(self.code) + bytes(self.names)
        at = 512 + len(self.code)
        sections = (
            Section(".text", TEXT, len(self.code), 512, len(self.code), executable=True),
            Section(".rdata", RDATA, len(self.names), at, len(self.names)),
            Section(".data", DATA, 0x9000, 0, 0),
        )
        offsets, place = {}, 0
        for part in bytes(self.names).split(b"\0"):
            if part:
                offsets[at + place] = part.decode("latin-1")
            place += len(part) + 1
        return io.BytesIO(data), PeFacts("a.dll", len(data), "x64", sections=sections), offsets


READS = [b"\x48\x8b\x05", b"\x4c\x8b\x15", b"\xff\x25", b"\xff\x15", b"\x48\x39\x05", b"\x48\x3b\x05"]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(PAIRS) - 1), st.sampled_from(READS)), max_size=12), st.booleans())
def test_a_slot_that_is_read_is_a_used_function(reads: list[tuple[int, bytes]], before: bool) -> None:
    code = Code()
    if not before:
        code.driver_loader(PAIRS)
    for index, opcode in reads:
        code.point(opcode, DATA + 8 * index)
        code.emit(b"\x90\xc3")
    code.emit(b"\xcc" * 700)
    if before:
        code.driver_loader(PAIRS)
    file, facts, offsets = code.file()
    found = cuda_loader.used(file, facts, offsets, tables(), DEFAULT_LIMITS)
    expected = {tables().loader[PAIRS[index]] for index, _ in reads}
    assert {f.symbol or f.name for f in found} == expected
    assert all(f.place.section == ".text" and f.place.encoding == "code" for f in found)


def test_a_comparison_with_zero_reads_the_slot_too() -> None:
    code = Code()
    code.driver_loader(PAIRS)
    code.point(b"\x48\x83\x3d", DATA + 8 * 3, b"\x00")
    file, facts, offsets = code.file()
    (found,) = cuda_loader.used(file, facts, offsets, tables(), DEFAULT_LIMITS)
    assert (found.symbol or found.name) == tables().loader[PAIRS[3]]


def test_a_program_s_own_short_table_is_no_loader() -> None:
    code = Code()
    code.driver_loader(PAIRS[:12])
    code.point(READS[0], DATA)
    file, facts, offsets = code.file()
    assert cuda_loader.used(file, facts, offsets, tables(), DEFAULT_LIMITS) == ()


def test_of_two_names_the_longer_is_the_symbol() -> None:
    code = Code()
    code.driver_loader(PAIRS[:30])
    code.code = code.code[:-701]
    code.emit(b"\x41\xb8" + struct.pack("<I", 13010))
    code.point(b"\x48\x8d\x05", code.name("cuExample_v9"))
    code.point(b"\x48\x8d\x0d", code.name("cuExample"))
    code.point(b"\x48\x8d\x15", DATA + 0x7000)
    code.point(b"\xff\x15", DATA + 0x8000)
    code.emit(b"\xcc" * 700)
    code.point(READS[1], DATA + 0x7000)
    file, facts, offsets = code.file()
    (found,) = cuda_loader.used(file, facts, offsets, tables(), DEFAULT_LIMITS)
    assert (found.name, found.symbol, found.version) == ("cuExample", "cuExample_v9", 13010)


def test_the_hybrid_runtime_s_numbers() -> None:
    numbers = sorted(tables().hybrid)[:80]
    code = Code()
    code.emit(
        b"\xe8\x01\x02\x03\x04\xb9\x05\x00\x00\x00\x48\x89\x05\x01\x02\x03\x04\xe8" + b"\xcc" * 900
    )  # a stray link
    code.hybrid_loader(numbers)
    for index in (0, 5, 79):
        code.point(READS[0], DATA + 8 * index)
    file, facts, _ = code.file()
    found = cuda_loader.used_runtime(file, facts, tables(), DEFAULT_LIMITS)
    assert {f.name for f in found} == {tables().hybrid[numbers[i]] for i in (0, 5, 79)}
    assert {f.library for f in found} == {"cudart"}


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=400), st.integers(0, 400))
def test_any_code_is_read_past(noise: bytes, at: int) -> None:
    code = Code()
    code.driver_loader(PAIRS[:25])
    code.code[at : at + len(noise)] = noise
    file, facts, offsets = code.file()
    cuda_loader.used(file, facts, offsets, tables(), DEFAULT_LIMITS)
    cuda_loader.used_runtime(file, facts, tables(), DEFAULT_LIMITS)


def test_the_tables_say_one_thing_for_one_question() -> None:
    """(name, version, flags) → symbol, and number → function, must be functions; versions must have files."""
    with open(FOLDER / "fingerprints.hybrid.csv", newline="", encoding="utf-8") as file:
        numbers = [row["number"] for row in csv.DictReader(file)]
    assert len(numbers) == len(set(numbers)) > 400
    with open(FOLDER / "fingerprints.loader.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    asked: dict[tuple[str, str, str], set[str]] = {}
    for row in rows:
        asked.setdefault((row["name"], row["version"], row["flags"]), set()).add(row["symbol"])
    doubles = {key for key, symbols in asked.items() if len(symbols) > 1}
    assert doubles == {("cuStreamBatchMemOp", "11070", "2")}
    kinds = {fingerprint.kind for fingerprint in tables().fingerprints}
    assert kinds == {"cudart", "cudart-hybrid", "cuda.lib"}
    assert not build([("?mangled@@", "x"), ("Event", "x"), ("NvOptimusEnablementCuda", "cublas")], []).functions


@pytest.mark.corpus
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_damaged_metadata_never_raises(data: st.DataObject) -> None:
    path = corpus.path("hardwaremonitor") / "HardwareMonitor" / "lib" / "BlackSharp.Core.dll"
    facts = read_pe(path)
    raw = bytearray(path.read_bytes())
    start = raw.index(b"BSJB")
    for _ in range(data.draw(st.integers(1, 8))):
        raw[start + data.draw(st.integers(0, 3000))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.sampled_from([len(raw), len(raw) // 2, start + 100]))
    found = dotnet.read(io.BytesIO(bytes(raw[:cut])), facts, DEFAULT_LIMITS)
    assert found.p_invokes is not None


@pytest.mark.corpus
def test_metadata_of_every_assembly_of_a_package_is_read_whole() -> None:
    count = 0
    for path in (corpus.path("hardwaremonitor") / "HardwareMonitor" / "lib").glob("*.dll"):
        facts = read_pe(path)
        with open(path, "rb") as file:
            found = dotnet.read(file, facts, DEFAULT_LIMITS)
        assert facts.is_dotnet and not found.problems and found.metadata is not None
        assert all(p.dll and p.function and "." in p.method for p in found.p_invokes)
        count += len(found.p_invokes)
    assert count == 470


@pytest.mark.parametrize(
    ("notify", "failure", "expected"),
    [
        (0, 0, ("__delayLoadHelper2",)),
        (0x180001000, 0, ("__delayLoadHelper2", "__pfnDliNotifyHook2")),
        (0, 0x180001000, ("__delayLoadHelper2", "__pfnDliFailureHook2")),
    ],
)
def test_delay_load_hooks(notify: int, failure: int, expected: tuple[str, ...]) -> None:
    code = Code()
    code.emit(b"\xc7\x44\x24\x20\x57\x00\x6d\xc0" + b"\xb9\x7e\x00\x6d\xc0")
    code.point(b"\x48\x8b\x05", RDATA)
    code.point(b"\x48\x8b\x05", DATA)  # the program's own variable
    code.point(b"\x48\x8b\x05", RDATA)
    code.point(b"\x48\x8b\x05", RDATA + 8)
    code.names[:16] = struct.pack("<QQ", notify, failure)
    file, facts, _ = code.file()
    delayed = msgspec.structs.replace(facts, imports=(ImportedDll("cufft64_12.dll", delay=True),))
    assert delay_hooks.hooks(file, delayed) == expected
    assert delay_hooks.hooks(file, facts) == ()
