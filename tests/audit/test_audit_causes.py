"""What an audit says of many applications together holds for each of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from audit_programs import GEMM, KERNEL, audit, old, program

from pe_builder import build
from zcheck.cli.audit_build import build_audit
from zcheck.cli.audit_row import _of_name, cuda_version
from zcheck.cli.entry import Analysis
from zcheck.model.audit import Audit, AuditRow
from zcheck.model.evidence import Evidence, parse_line
from zcheck.model.stack import Stack
from zcheck.render import RenderOptions
from zcheck.render.audit import render_audit

V6, V7 = Stack(zluda="v6"), Stack(zluda="v7-preview.9")
FORMATS = ("text", "markdown", "html", "json")


def row(name: str, action: str, stacks: tuple[Stack, ...] = (V6,), verdict: str = "at-risk", **more: Any) -> AuditRow:
    ids = [stack.id for stack in stacks]
    made = AuditRow(
        path=name, application=name, kind="program", programs=(name,), verdict=dict.fromkeys(ids, verdict),  # type: ignore[arg-type]
        workload={}, top_cause="A gap", cause_id="X", causes=dict.fromkeys(ids, "X"), first_action=action,
        blockers=dict.fromkeys(ids, 0), risks=dict.fromkeys(ids, 1), cuda="", frameworks=(), size=1, files=1,
    )  # fmt: skip
    return msgspec.structs.replace(made, **more)


def audit_of(*rows: AuditRow, stacks: tuple[Stack, ...] = (V6,), advice: dict[str, str] | None = None) -> Audit:
    return build_audit("share", "2026-11-30", stacks, rows, advice=advice)


def test_a_group_has_the_action_that_all_its_applications_have() -> None:
    (group,) = audit_of(row("a.exe", "Install it."), row("b.exe", "Install it.")).causes
    assert group.action == "Install it."


@pytest.mark.parametrize("fmt", FORMATS)
def test_the_action_of_one_application_is_not_the_groups(fmt: str) -> None:
    rows = (row("a.exe", "Look for a build of Aardvark."), row("b.exe", "Start b.exe."))
    alone = "".join(render_audit(audit_of(*rows), fmt))
    told = "".join(render_audit(audit_of(*rows, advice={"X": "Ask its makers."}), fmt))
    # Once in the row of the application that it is about, and not a second time for the group.
    assert alone.count("Aardvark") == told.count("Aardvark") == 1
    assert "Ask its makers." in told


def test_an_action_for_one_release_is_not_said_of_another() -> None:
    stacks = (V6, V7)
    groups = audit_of(row("a.exe", "Start it from the ZLUDA v6 folder.", stacks), stacks=stacks).causes
    assert {group.stack: group.action for group in groups} == {V6.id: "Start it from the ZLUDA v6 folder.", V7.id: ""}


def test_advice_names_no_program_and_groups_get_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "two"):
        program(tmp_path / name / f"{name}.exe", {**KERNEL, "nvml.dll": ["nvmlInit_v2"]})
    product = json.loads(audit(capsys, tmp_path, "-f", "json", "-j", 1)[1])
    for group in product["causes"]:
        assert len(group["applications"]) == 2
        assert "one.exe" not in group["action"] and "{" not in group["action"]


def test_what_one_program_without_cuda_lacks_is_not_said_of_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program(tmp_path / "app" / "one.exe", {**KERNEL, "lost.dll": ["run"]})
    program(tmp_path / "app" / "two.exe")
    (found,) = json.loads(audit(capsys, tmp_path, "-f", "json", "-j", 1)[1])["applications"]
    assert found["programs"] == ["one.exe", "two.exe"] and found["first_action"] == ""
    (tmp_path / "app" / "two.exe").unlink()
    (found,) = json.loads(audit(capsys, tmp_path, "-f", "json", "-j", 1)[1])["applications"]
    assert "lost.dll" in found["first_action"]


# --- which release serves most ------------------------------------------------------------------------------------


def test_nvidias_own_libraries_are_no_applications(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program(tmp_path / "app" / "app.exe", GEMM)
    program(tmp_path / "cuda" / "cudart64_12.dll", {**KERNEL, "nvcuda.dll": ["cuInit"]}, dll=True)
    stacks = ("--zluda", "v6", "--zluda", "v5")
    _, out, _ = audit(capsys, tmp_path, "-f", "json", "-j", 1, *stacks)
    product = json.loads(out)
    assert {found["path"]: found["vendor"] for found in product["applications"]} == {
        "app/app.exe": False,
        "cuda/cudart64_12.dll": True,
    }
    for release in product["releases"]:
        assert sum(release["counts"].values()) == 1 and release["served"] <= 1 and release["vendor"] == 1
    said = " ".join(audit(capsys, tmp_path, "-j", 1, *stacks)[1].split())
    assert " of 1 are likely" in said and "NVIDIA's own libraries are not counted (1 row)" in said


def test_no_release_is_said_to_serve_most_where_none_serves_any() -> None:
    said = "".join(render_audit(audit_of(row("a.exe", "", (V6, V7)), stacks=(V6, V7)), "markdown"))
    assert "serve" not in said and "On no release is any of 1 likely" in said


# --- the CUDA column ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("cudart64_110.dll", "11"), ("cudart64_102.dll", "10.2"), ("cudart64_92.dll", "9.2"), ("cudart64_12.dll", "12"),
        ("nvrtc64_112_0.dll", "11"), ("nvrtc64_120_0.dll", "12"), ("cublas64_11.dll", "11"), ("cudnn64_9.dll", ""),
    ],
)  # fmt: skip
def test_a_name_tells_no_more_than_is_sure(name: str, version: str) -> None:
    assert _of_name(name) == version


def version_of(*lines: str) -> str:
    return cuda_version(Analysis("app.exe", Evidence("app.exe", tuple(parse_line(line) for line in lines))))


def test_a_runtime_that_is_linked_in_has_the_range_that_is_known() -> None:
    fact = 'file cudart_static.lib; role vendor; description "CUDA 12.9.79 Runtime, linked into app.exe"'
    use = 'module app.exe calls cudart_static.lib; found bundle; init yes; because "CUDA runtime {} is linked in"'
    assert version_of(fact, use.format("12.8.90 to 12.9.79")) == "12.8 to 12.9"
    assert version_of(fact, use.format("12.4.99 to 12.4.127")) == "12.4"
    assert version_of(fact, use.format("12.9.79")) == "12.9"


def test_a_runtimes_own_version_wins_over_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    strings = {"040904e4": {"FileDescription": "NVIDIA CUDA Runtime, Version 11.8.89", "FileVersion": "6,14,11,11080"}}
    library = tmp_path / "cuda" / "cudart64_110.dll"
    library.parent.mkdir()
    library.write_bytes(build(dll=True, imports=KERNEL, exports=["cudaMalloc"], version=strings))
    old(library)
    (found,) = json.loads(audit(capsys, tmp_path, "-f", "json", "-j", 1)[1])["applications"]
    assert found["cuda"] == "11.8"


# --- what a count leaves out --------------------------------------------------------------------------------------


def test_libraries_that_no_program_loads_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from zcheck.cli.app import run

    program(tmp_path / "one.exe", {**KERNEL, "helper.dll": ["run"]})
    program(tmp_path / "two.exe")
    program(tmp_path / "helper.dll", dll=True)
    run([str(tmp_path), "-f", "json"])
    assert json.loads(capsys.readouterr().out)["skipped"] == []
    program(tmp_path / "plugin.dll", dll=True)
    run([str(tmp_path), "-f", "json"])
    (said,) = json.loads(capsys.readouterr().out)["skipped"]
    assert said["reason"].startswith("1 library that no program here was seen to load")


@pytest.mark.parametrize("fmt", ["text", "markdown", "html"])
def test_a_row_says_how_many_of_it_are_programs(fmt: str) -> None:
    mixed = row("a.dll", "", programs=("a.dll", "b.exe", "c.exe"))
    told = "".join(render_audit(audit_of(mixed), fmt, RenderOptions(width=300)))
    assert "and 2 more (2 programs, 1 library in all)" in told.replace("</code>", "")
    assert "in all" not in "".join(render_audit(audit_of(row("a.exe", "", programs=("a.exe", "b.exe"))), fmt))
