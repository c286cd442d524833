"""The issue text fills the two forms, says what is missing, and always fits."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
import sample_reports

from zcheck.model.report import Applications
from zcheck.render import RenderOptions, render

# Labels of vosen/ZLUDA .github/ISSUE_TEMPLATE/zluda_dump.yml and of Speedstu/CUDA-for-AMD-Windows
# .github/ISSUE_TEMPLATE/gpu-compatibility.yml.
ZLUDA_FORM = ("zluda_dump logs (tarball/zip file)", "Description", "Steps to reproduce", "Operating System", "GPU")
KIT_FORM = (
    "GPU",
    "gfx target",
    "HIP / ROCm version",
    "AMD driver version",
    "Result",
    "Workload / application",
    "Output or first useful error",
    "GPU scanner report",
    "Validation note",
)


def fields(text: str) -> dict[str, str]:
    """Field texts by heading, the folded report left out."""
    parts = re.split(r"^### (.+)$", text.split("<details>")[0], flags=re.M)
    return {title: body.strip() for title, body in zip(parts[1::2], parts[2::2], strict=True)}


def test_all_fields_are_there(sample: Any) -> None:
    filled = fields(render(sample, "issue"))
    assert set(ZLUDA_FORM) | set(KIT_FORM) <= set(filled)
    assert all(filled.values())


def test_what_is_known_is_filled_and_the_rest_asked_for() -> None:
    known = fields(render(sample_reports.likely_gemm(), "issue"))
    assert known["GPU"] == "`AMD Radeon RX 9060 XT`" and known["gfx target"] == "`gfx1200`"
    assert known["AMD driver version"] == "`32.0.21013.1000`" and known["Operating System"] == "`26100`"
    unknown = fields(render(sample_reports.blocked_conv(), "issue"))
    for title in ("GPU", "gfx target", "AMD driver version", "Operating System", "Result", "GPU scanner report"):
        assert unknown[title].startswith("**please add:**"), title
    assert "`v6` (assumed by this check)" in unknown["ZLUDA version"]


def test_a_prediction_is_never_given_as_a_result(sample: Any) -> None:
    result = fields(render(sample, "issue"))["Result"]
    assert "which is no result" in result and "[x]" not in result


def long_report(findings: int, text: int) -> Any:
    base = sample_reports.blocked_conv()
    stack = base.stacks[0]
    many = tuple(
        msgspec.structs.replace(
            sample_reports.CONV,
            id=f"RULE-{i}",
            module=f"m{i}.dll",
            message=f"<{'`|x' * text}>",
            functions=("f" * text,) * 9,
        )
        for i in range(findings)
    )
    long = "y" * text
    stack = msgspec.structs.replace(stack, findings=many, headline=long, actions=(long,) * findings)
    return msgspec.structs.replace(
        base,
        target=long,
        entries=(long,),
        stacks=(stack,),
        assumptions=(long,) * findings,
        frameworks=(long,) * findings,
    )


@pytest.mark.parametrize("findings", [0, 1, 7, 60, 700])
@pytest.mark.parametrize("text", [1, 90, 3_000, 70_000])
def test_it_always_fits_and_stays_well_formed(findings: int, text: int) -> None:
    if findings * text > 3_000_000:
        findings = 3_000_000 // text
    body = render(long_report(findings, text), "issue")
    assert len(body) < 60_000
    assert body.count("<details>") == body.count("</details>")
    assert len(re.findall("^```", body, re.M)) % 2 == 0
    if findings * text > 60_000:
        assert "Cut here" in body


def test_a_big_folder_fits_too() -> None:
    one = sample_reports.applications()
    folder = Applications(one.schema, one.zcheck, one.database, one.target, one.applications * 200)
    body = render(folder, "issue")
    assert len(body) < 60_000 and "Cut here" in body and body.count("<details>") == body.count("</details>")
    assert len(render(sample_reports.big(2_000), "issue", RenderOptions())) < 60_000


@pytest.mark.parametrize(
    ("entry", "command"),
    [
        ("upscale.exe", "Start it through ZLUDA v6: `zluda.exe -- upscale.exe`"),
        ("lib/core.dll", "Start the program that loads `lib/core.dll` through ZLUDA v6: `zluda.exe -- PROGRAM.exe`"),
        (
            "_C.pyd",
            "Start the program that loads `_C.pyd` through ZLUDA v6: `zluda.exe -- python.exe YOUR_SCRIPT.py`",
        ),
        (
            "addon.node",
            "Start the program that loads `addon.node` through ZLUDA v6: `zluda.exe -- node.exe YOUR_SCRIPT.js`",
        ),
    ],
)
def test_what_is_to_be_started_can_be_started(entry: str, command: str) -> None:
    report = msgspec.structs.replace(sample_reports.blocked_conv(), target=entry, entries=(entry,))
    assert f"2. {command}\n" in fields(render(report, "issue"))["Steps to reproduce"]


def test_what_is_staged_has_no_launcher() -> None:
    report = sample_reports.blocked_conv()
    staged = msgspec.structs.replace(report.stacks[0], launch_mode="staged")
    steps = fields(render(msgspec.structs.replace(report, stacks=(staged,)), "issue"))["Steps to reproduce"]
    assert "with the files of ZLUDA v6 beside the program: `upscale.exe`" in steps and "zluda.exe" not in steps


def test_a_check_for_an_issue_hashes_the_modules(capsys: pytest.CaptureFixture[str]) -> None:
    from hashlib import sha256
    from pathlib import Path

    from zcheck.cli.app import run

    program = Path(__file__).parents[2] / "samples" / "gemm.exe"
    assert run([str(program), "--format", "issue"]) == 0
    assert sha256(program.read_bytes()).hexdigest() in capsys.readouterr().out


def test_no_column_for_hashes_that_nobody_made() -> None:
    known, unknown = (render(make(), "issue") for make in (sample_reports.blocked_conv, sample_reports.likely_gemm))
    assert "modules with hashes" in known and "| SHA-256 |" in known
    assert "modules with versions" in unknown and "SHA-256" not in unknown
    page = render(sample_reports.likely_gemm(), "html")
    assert "SHA-256" not in page and "with versions and hashes" not in page
