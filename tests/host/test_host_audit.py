"""``zcheck audit --host``: a folder of programs judged for one PC, as a check of each would."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pcs
import pytest

from zcheck.cli.app import run

SAMPLES = Path(__file__).resolve().parents[2] / "samples"


def audit(capsys: pytest.CaptureFixture[str], *options: object) -> dict[str, Any]:
    code = run(["audit", str(SAMPLES), "-f", "json", *map(str, options)])
    out, err = capsys.readouterr()
    assert code in (0, 1), err
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.mark.parametrize(
    "pc", [{"gpus": []}, {"gpus": ["rx7900xtx"], "zluda": [{"release": "v6-preview.69"}]}], ids=["no GPU", "7900 XTX"]
)
def test_rows_are_what_a_check_on_that_pc_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], pc: dict[str, Any]
) -> None:
    folder = pcs.build(tmp_path / "pc", pc)
    found = audit(capsys, "--host", folder, "-j", 2)
    for row in found["applications"]:
        run(["check", str(SAMPLES / row["path"]), "--host", str(folder), "-f", "json"])
        checked = json.loads(capsys.readouterr().out)
        (stack,) = checked["stacks"]
        assert row["verdict"] == {stack["id"]: stack["verdict"]}, row["path"]
        assert checked["assumptions"] == found["assumptions"]


def test_rows_kept_for_one_pc_are_not_those_of_another(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    none = pcs.build(tmp_path / "none", {"gpus": []})
    some = pcs.build(tmp_path / "some", {"gpus": ["rx7900xtx"]})
    first = audit(capsys, "-j", 1)
    assert {group["id"] for group in audit(capsys, "--host", none, "-j", 1)["causes"]} == {"HOST-GPU-NONE"}
    other = audit(capsys, "--host", some, "-j", 1)
    assert "HOST-GPU-NONE" not in {group["id"] for group in other["causes"]}
    assert audit(capsys, "-j", 1) == first, "without a PC nothing of one may stay"


def test_the_json_of_a_pc_does_as_well_as_its_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = pcs.build(tmp_path / "pc", {"gpus": ["rx7900xtx"]})
    run(["host", "--root", str(folder), "-f", "json", "--no-redact"])
    file = tmp_path / "pc.json"
    file.write_text(capsys.readouterr().out, "utf-8")
    assert audit(capsys, "--host", file, "-j", 1) == audit(capsys, "--host", folder, "-j", 1)


def test_a_pc_that_cannot_be_read_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pc.json").write_text("{}")
    assert run(["audit", str(SAMPLES), "--host", str(tmp_path / "pc.json")]) == 2
    assert "pc.json" in capsys.readouterr().err
