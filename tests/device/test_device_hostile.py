"""Hostile fatbins, cubins and PTX: bounded, a stated problem, and the rest still read."""

from __future__ import annotations

import io
import random
import struct
import tracemalloc
from pathlib import Path

import pytest
import zstandard
from fatbin_writer import Entry, Pe, container, cubin, kernel, ptx, wrapper
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from zcheck.errors import InputError
from zcheck.model.base import Limits
from zcheck.model.device_code import DeviceCodeFacts
from zcheck.parse import fatbin, fatbin_entries
from zcheck.parse.cubin import read_cubin
from zcheck.parse.fatbin import read_device_code, read_payload
from zcheck.parse.fatbin_sections import read_layout
from zcheck.parse.ptx import read_ptx

TEXT = ptx(kernel("k", "add.s32 %r1, %r1, 1"))
GOOD = container([Entry(TEXT, sm=86)])


def read(tmp_path: Path, data: bytes, limits: Limits | None = None, name: str = "a.fatbin") -> DeviceCodeFacts:
    file = tmp_path / name
    file.write_bytes(data)
    return read_device_code(file, limits or Limits())


def reasons(code: DeviceCodeFacts) -> str:
    entries = [entry.problem or "" for c in code.containers for entry in c.entries]
    return "; ".join([problem.reason for problem in code.problems] + entries)


def kernels(code: DeviceCodeFacts) -> list[tuple[str, ...]]:
    return [entry.kernels for c in code.containers for entry in c.entries]


def test_container_past_the_end(tmp_path: Path) -> None:
    code = read(tmp_path, container([Entry(TEXT)], size=1 << 40))
    assert "the file ends" in reasons(code)
    assert kernels(code) == [("k",)]
    assert code.problems[0].partial


def test_entry_past_its_container_hides_nothing(tmp_path: Path) -> None:
    bad = container([Entry(TEXT), Entry(TEXT, padded=1 << 33)])
    code = read(tmp_path, bad + GOOD)
    assert "claims 8589934592 bytes" in reasons(code)
    # The first entry of the bad container, its broken one, and the container behind.
    assert kernels(code) == [("k",), (), ("k",)]


def test_container_swallowing_others(tmp_path: Path) -> None:
    """One that claims to hold the next ones: those are found inside of it."""
    code = read(tmp_path, container([Entry(TEXT), Entry(b"", entry_version=7)], size=5000) + GOOD + GOOD)
    assert len(code.containers) == 3
    assert sorted(c.entries[0].arch for c in code.containers) == ["sm_80", "sm_86", "sm_86"]


def test_overlapping_wrappers_and_cycles(tmp_path: Path) -> None:
    pe = Pe()
    address = pe.add(".nv_fatb", GOOD)
    # Wrappers that point at themselves, at each other, into the middle of the container, and nowhere.
    here = address + 0x1000
    odd = [
        (here, 1, 0),
        (here, 2, here),
        (address + 8, 2, here + 24),
        (0, 1, 0),
        (1 << 63, 2, 1 << 62),
        (address, 2, address),
    ]
    pe.add(".nvFatBi", b"".join(wrapper(*one) for one in odd))
    code = read(tmp_path, pe.encode(), name="a.dll")
    assert len(code.wrappers) == 6
    assert len(code.images()) == 1


@pytest.mark.parametrize("pack", ["lz4", "zstd"])
def test_decompression_bomb(tmp_path: Path, pack: str) -> None:
    bomb = Entry(b"\0" * (64 << 20), pack=pack, kind=1)
    code = read(tmp_path, container([bomb, Entry(TEXT)]), Limits(payload=1 << 20))
    assert "more than the limit" in reasons(code)
    assert kernels(code)[1] == ("k",)
    assert "times" in reasons(read(tmp_path, container([bomb]), Limits(ratio=100)))
    with pytest.raises(InputError, match="limit"):
        read_payload(tmp_path / "a.fatbin", code.containers[0].entries[0], Limits(payload=1 << 20))


@pytest.mark.parametrize("pack", ["lz4", "zstd"])
def test_size_that_lies(tmp_path: Path, pack: str) -> None:
    """A frame that unpacks to more than the entry claims, and a frame whose own header claims a terabyte."""
    data = container([Entry(b"\0" * (32 << 20), pack=pack, uncompressed=100), Entry(TEXT)])
    tracemalloc.start()
    code = read(tmp_path, data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert kernels(code)[1] == ("k",)
    assert reasons(code).strip("; ")
    assert peak < 16 << 20


def test_zstd_frame_claiming_a_terabyte(tmp_path: Path) -> None:
    frame = bytearray(zstandard.ZstdCompressor().compress(TEXT))
    # Frame header: a single segment with an 8-byte content size.
    frame = bytearray(b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", 1 << 40) + bytes(frame[6:]))
    entry = Entry(bytes(frame), flags=0x8041, compressed=len(frame), uncompressed=len(TEXT))
    code = read(tmp_path, container([entry, Entry(TEXT)]))
    assert "does not unpack as zstd" in reasons(code)
    assert kernels(code)[1] == ("k",)


def test_loose_zst_bomb(tmp_path: Path) -> None:
    data = zstandard.ZstdCompressor().compress(TEXT + b" " * (8 << 20))
    code = read(tmp_path, data, Limits(payload=1 << 20), name="a.ptx.zst")
    assert "unpacks to more than" in reasons(code)
    assert code.loose[0].kernels == ("k",)
    broken = read(tmp_path, data[:40], name="b.ptx.zst")
    assert "bytes of the" in reasons(broken)


def test_many_tiny_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A million of them would be a million records; they are cut off, and what comes behind is still scanned."""
    monkeypatch.setattr(fatbin_entries, "MAX_ENTRIES", 2_000)
    code = read(tmp_path, container([Entry(b"", kind=3)] * 5_000))
    assert len(code.containers[0].entries) == 2_000
    assert "more device code entries than the limit" in reasons(code)
    assert read(tmp_path, container([Entry(b"")] * 50), Limits(entries=7)).containers[0].entries[6:] != ()


@pytest.mark.slow
def test_a_million_entries_stay_small(tmp_path: Path) -> None:
    tracemalloc.start()
    data = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 64_000_000) + Entry(b"", kind=3).encode() * 1_000_000
    code = read(tmp_path, data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(code.containers[0].entries) == fatbin_entries.MAX_ENTRIES
    # The 64 MB above are this test's own.
    assert peak < (64 + 64 + 150) << 20


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    file = tmp_path / "large.dll"
    with file.open("wb") as out:
        for _ in range(8):
            out.write(GOOD)
            out.seek(32 << 20, io.SEEK_CUR)
        out.write(GOOD)
    tracemalloc.start()
    code = read_device_code(file, contents=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(code.containers) == 9
    assert file.stat().st_size > 256 << 20
    assert peak < 3 * fatbin.WINDOW


def test_ptx_that_is_not_ascii() -> None:
    module = read_ptx(TEXT + "// naïve\n.func ünder() { ret; }\n".encode())
    assert module.kernels() == ("k",)
    assert module.stray == "the byte 0xc3"
    assert read_ptx(TEXT + "// naïve, in a comment\n".encode()).stray is None


@pytest.mark.parametrize(
    "text",
    [
        b".func f() {" * 20_000,
        b"}" * 50_000,
        b"{ret;}\n" * 20_000,
        b".visible .entry k()\n{ { } ;\n}\n" * 5_000,
        b'"' * 10_001,
        b"/*" * 10_000 + b"//" * 10_000,
        b".func f(){ {ret;} }\n" * 5_000 + b"{\n}",
        b"@" * 30_000 + b";" * 30_000,
        b"%" * 100_000,
        b".global .b8 x = {" + b"{" * 10_000,
        b";" * 2_000_000,
        b".func f(){" + b";}" * 300_000,
        b".func f(){ {ret;} }\n" * 100_000 + b"{\n}",
        b".entry f(){ {ret;} }\n" * 100_000 + b"{\n}",
        b".entry k(){" + b" call (" * 100_000 + b"}",
        b".entry k(){" + b"setp" * 200_000 + b"|}",
        b".entry k(){ bar.red " + b"bar.red.popc " * 50_000 + b"}",
        b".version 1 " * 100_000,
        b".func " + b".a" * 300_000,
        b".func " + b".a(" * 200_000,
        b".entry k(){ foo:" + b"} : " * 100_000,
        b"".join(b".global .texref t%d;\n.entry k%d(){ ret; }\n" % (n, n) for n in range(20_000)),
        b".entry k(){ .shared .b"
        + b"9" * 6_000
        + b" x"
        + b"[9]" * 100_000
        + b"; .shared .b8 y"
        + b"[99]" * 99_999
        + b"; }",
    ],
    ids=range(23),
)
def test_ptx_of_repetition_takes_linear_time(text: bytes) -> None:
    """The test's own timeout is the bound: each of these was made for a quadratic reader."""
    read_ptx(ptx() + text)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=600))
def test_any_bytes_as_ptx(data: bytes) -> None:
    read_ptx(data)
    read_ptx(TEXT + data)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet='{};:@%._|!+-=()[]<>ab0/*"\n ', max_size=300))
def test_any_tokens_as_ptx(text: str) -> None:
    read_ptx(TEXT + text.encode())


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400), st.integers(0, 400), st.integers(0, 255))
def test_any_bytes_as_cubin(data: bytes, at: int, value: int) -> None:
    read_cubin(data)
    good = bytearray(cubin({"k": 9, "l": 8}))
    good[at % len(good)] = value
    read_cubin(bytes(good))
    read_cubin(bytes(good[: at % len(good)]))


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=5000))
def test_any_bytes_as_layout(data: bytes) -> None:
    read_layout(lambda offset, size: data[offset : offset + size], len(data))
    data = b"MZ" + data
    layout = read_layout(lambda offset, size: data[offset : offset + size], len(data))
    assert all(span.offset + span.size <= len(data) for span in layout.spans)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 1 << 32), flips=st.integers(1, 12))
def test_damaged_fatbins(tmp_path: Path, seed: int, flips: int) -> None:
    """Bytes changed at random anywhere: never an exception, regions inside of the file and apart."""
    pe = Pe()
    address = pe.add(".nv_fatb", container([Entry(TEXT, pack="lz4"), Entry(cubin({"k": 9}), kind=2)]) + GOOD)
    pe.add(".nvFatBi", wrapper(address) + wrapper(address, 2, address))
    data = bytearray(pe.encode())
    chance = random.Random(seed)
    for _ in range(flips):
        data[chance.randrange(len(data))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
    code = read(tmp_path, bytes(data[: chance.choice((len(data), chance.randrange(1, len(data))))]), name="d.dll")
    end = 0
    for offset, size in code.regions:
        assert offset >= end
        end = offset + size
        assert end <= code.size
    code.images()
