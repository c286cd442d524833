"""Replays as report sections, evidence lines and notes."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from fatbin_writer import Entry, Pe, container, cubin, kernel, ptx, wrapper

from zcheck.coverage.locate import open_database
from zcheck.coverage.replay import replay
from zcheck.coverage.replay_facts import PtxTables, release_ptx, tables_from
from zcheck.coverage.replay_report import compile_estimate, device_code_reports, evidence_items, hardware_notes, reasons
from zcheck.model.device_code import DeviceCodeFacts
from zcheck.model.evidence import line, parse_line
from zcheck.model.report import DeviceCodeReport
from zcheck.parse.fatbin import read_device_code

STORE = "st.global.u32 [%rd1], %r1"


@pytest.fixture(scope="module")
def tables() -> PtxTables:
    return tables_from(open_database())


def read(tmp_path: Path, data: bytes, name: str = "a.dll") -> DeviceCodeFacts:
    (tmp_path / name).write_bytes(data)
    return read_device_code(tmp_path / name)


@pytest.fixture
def code(tmp_path: Path) -> DeviceCodeFacts:
    pe = Pe()
    pe.add(".rdata", container([Entry(cubin({"only": 900}), kind=2)]))
    unknown = kernel("b", STORE, "red.global.add.f32 [%rd1], %f1")
    pe.add(
        ".nv_fatb", container([Entry(ptx(kernel("a", STORE), unknown))]) + container([Entry(ptx(kernel("c", STORE)))])
    )
    return read(tmp_path, pe.encode())


def test_report_is_section_by_section(code: DeviceCodeFacts, tables: PtxTables) -> None:
    replays = [replay(code, release_ptx(tables, tag)) for tag in ("v5", "v6")]
    reports = device_code_reports("bin/a.dll", code, replays)
    assert [(r.section, r.containers, len(r.entries)) for r in reports] == [(".rdata", 1, 1), (".nv_fatb", 2, 2)]
    first, second = (report.replay["v6"] for report in reports)
    assert (first.kernels, first.empty, first.chosen) == (1, 1, None)
    assert (second.kernels, second.loadable, second.dropped) == (3, 2, 1)
    assert second.reasons == ("dropped: unknown instruction red.global.add.f32 (1: b)",)
    assert [entry.container for entry in reports[1].entries] == [1, 2]
    assert msgspec.json.decode(msgspec.json.encode(reports), type=tuple[DeviceCodeReport, ...]) == reports
    whole = replays[1]
    assert whole.kernels == first.kernels + second.kernels


def test_relocatable_sections_say_so(tmp_path: Path, tables: PtxTables) -> None:
    pe = Pe()
    first = pe.add("__nv_rel", container([Entry(ptx(kernel("k", STORE)))]))
    linked = pe.add(".nv_fatb", container([Entry(cubin({"k": 900}), kind=2)]))
    pe.add(".nvFatBi", wrapper(first) + wrapper(linked, 2))
    code = read(tmp_path, pe.encode())
    reports = device_code_reports("a.dll", code, [replay(code, release_ptx(tables, "v6"))])
    assert "not loaded by itself" in reports[0].notes[0]
    assert reports[0].replay["v6"].kernels == 0
    assert reports[1].replay["v6"].loadable == 1


def test_opaque_section_is_a_report_of_its_own(tmp_path: Path) -> None:
    pe = Pe()
    pe.add(".nv_fatb", bytes(range(1, 256)) * 9)
    code = read(tmp_path, pe.encode())
    (report,) = device_code_reports("a.dll", code, [])
    assert report.notes == ("compressed as a whole: not read",)
    (item,) = evidence_items("a.dll", code, [])
    assert item.opaque
    assert item.containers == 0


def test_evidence_lines_come_back(code: DeviceCodeFacts, tables: PtxTables) -> None:
    items = evidence_items("a.dll", code, [replay(code, release_ptx(tables, tag)) for tag in ("v3", "v4", "v6")])
    assert [item.release for item in items] == ["", "v3", "v4", "v6"]
    assert (items[0].containers, items[0].ptx, items[0].sass, items[0].kernels) == (3, 2, 1, 4)
    assert (items[3].loadable, items[3].dropped, items[3].empty) == (2, 1, 1)
    assert items[2].note == "v4 takes PTX texts only, no fatbins"
    for item in items:
        assert parse_line(line(item)) == item


def test_no_device_code_is_no_evidence(tmp_path: Path) -> None:
    assert evidence_items("a.dll", read(tmp_path, b"MZ" + b"\0" * 99), []) == ()


def test_reasons_name_the_kernels_most_frequent_first(tmp_path: Path, tables: PtxTables) -> None:
    many = [kernel(f"m{n:02}", STORE, "lop3.b32 %r1,%r1,%r1,%r1,1") for n in range(20)]
    code = read(tmp_path, container([Entry(ptx(*many, kernel("one", "red.global.add.u32 [%rd1], 1")))]))
    lines = reasons(replay(code, release_ptx(tables, "v6")).containers, 3)
    assert lines == (
        "dropped: unknown instruction lop3.b32 (20: m00, m01, m02 and 17 more)",
        "dropped: unknown instruction red.global.add.u32 (1: one)",
    )


def notes(tmp_path: Path, tables: PtxTables, gfx: str, tag: str, *statements: str, before: str = "") -> str:
    code = read(tmp_path, ptx(before, kernel("k", STORE, *statements)), "k.ptx")
    return "; ".join(hardware_notes(code, release_ptx(tables, tag), gfx, tables.gfx))


MMA = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1}, {%r1}, {%r2}, {%f1}"


@pytest.mark.parametrize(
    ("gfx", "tag", "statements", "said"),
    [
        ("gfx1100", "v6", (MMA,), "mma of bf16 goes through WMMA on gfx1100"),
        ("gfx1030", "v6", (MMA,), "mma is done in software on gfx1030"),
        ("gfx1200", "v6", (MMA,), "mma is done in software on gfx1200"),
        ("gfx1030", "v5", (MMA,), "turns mma into the WMMA instruction of gfx11, which gfx1030 does not have"),
        ("gfx1030", "v6", (MMA,), "gfx1030 has no bf16 instructions"),
        ("gfx906", "v6", (), "runs waves of 64, v6 compiles for waves of 32 only"),
        ("gfx1010", "v6", ("dp4a.s32.s32 %r1,%r2,%r3,%r4",), "no int8 dot product"),
        ("gfx1030", "v6", (".shared .align 4 .b8 t[70000]",), "shared memory beyond the 64 KiB"),
    ],
)
def test_hardware(
    tmp_path: Path, tables: PtxTables, gfx: str, tag: str, statements: tuple[str, ...], said: str
) -> None:
    assert said in notes(tmp_path, tables, gfx, tag, *statements)


def test_hardware_says_nothing_where_nothing_is_known(tmp_path: Path, tables: PtxTables) -> None:
    assert notes(tmp_path, tables, "gfx1100", "v6") == ""
    assert notes(tmp_path, tables, "gfx4711", "v6", MMA) == ""
    assert "dynamic" in notes(tmp_path, tables, "gfx1100", "v6", before=".extern .shared .b8 d[];")


def test_first_run(code: DeviceCodeFacts, tables: PtxTables) -> None:
    v6 = release_ptx(tables, "v6")
    small = compile_estimate(replay(code, v6), v6)
    assert small is not None
    assert small.startswith("the first run compiles up to 1 kB of PTX (2 kernels)") or "kB" in small
    large = msgspec.structs.replace(replay(code, v6), ptx_bytes=50_000_000)
    assert "zluda_precompile" in (compile_estimate(large, v6) or "")
    assert "zluda_precompile" not in (compile_estimate(large, release_ptx(tables, "v5")) or "")
    v4 = release_ptx(tables, "v4")
    assert compile_estimate(replay(code, v4), v4) is None
