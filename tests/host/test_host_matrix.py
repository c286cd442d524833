"""The matrix of faked PCs: for each, what is wrong is said, at the level and with the value that matrix.yaml names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pcs
import pytest
import yaml

from zcheck.host import host_evidence, read_host, stack_overrides
from zcheck.host.evidence import unknown_keys
from zcheck.host.keys import KEYS
from zcheck.model.evidence import line, parse_line
from zcheck.model.host import Host
from zcheck.model.stack import Stack
from zcheck.parse.pe import read_pe

CASES: list[dict[str, Any]] = yaml.safe_load((pcs.HERE / "matrix.yaml").read_text(encoding="utf-8"))
# Every HIP, STAGE, GFX, AV, GPU and OS row of the demand study, and vosen#328, whose lead is on the PC.
DEMAND = [
    "CS1o/Stable-Diffusion-Info/issues/41",
    "CS1o/Stable-Diffusion-Info/issues/5",
    "Nerogar/OneTrainer/issues/421",
    "koharu-rs/koharu/issues/442",
    "koharu-rs/koharu/issues/754",
    "lshqqytiger/ZLUDA/issues/134",
    "lshqqytiger/ZLUDA/issues/3",
    "patientx/ComfyUI-Zluda/issues/141",
    "patientx/ComfyUI-Zluda/issues/25",
    "patientx/ComfyUI-Zluda/issues/34",
    "patientx/ComfyUI-Zluda/issues/400",
    "patientx/ComfyUI-Zluda/issues/463",
    "vladmandic/sdnext/issues/2880",
    "vladmandic/sdnext/issues/4032",
    "vosen/ZLUDA/issues/545",
    "vosen/ZLUDA/issues/604",
    "vosen/ZLUDA/issues/646",
    "vosen/ZLUDA/issues/659",
    "vosen/ZLUDA/issues/99",
    "AUTOMATIC1111/stable-diffusion-webui/issues/14946",
    "githubcto/FramePack-ZLUDA/issues/1",
    "lshqqytiger/ZLUDA/issues/33",
    "patientx/ComfyUI-Zluda/issues/326",
    "vosen/ZLUDA/issues/101",
    "vosen/ZLUDA/issues/328",
    "githubcto/FramePack-ZLUDA/issues/4",
    "lshqqytiger/ZLUDA/issues/13",
    "patientx/ComfyUI-Zluda/issues/162",
    "vladmandic/sdnext/issues/3485",
    "vladmandic/sdnext/issues/4405",
    "vosen/ZLUDA/issues/371",
    "patientx/ComfyUI-Zluda/issues/231",
    "patientx/ComfyUI-Zluda/issues/344",
    "patientx/ComfyUI-Zluda/issues/364",
    "vosen/ZLUDA/issues/638",
    "vosen/ZLUDA/issues/92",
    "vosen/ZLUDA/issues/98",
    "patientx/ComfyUI-Zluda/issues/375",
    "vosen/ZLUDA/issues/343",
    "vosen/ZLUDA/issues/365",
    "vosen/ZLUDA/issues/437",
    "vosen/ZLUDA/issues/677",
    "lshqqytiger/ZLUDA/issues/141",
    "patientx/ComfyUI-Zluda/issues/476",
    "patientx/ComfyUI-Zluda/issues/82",
]


def read(root: Path, zluda_dir: str | None = None, hip_dir: str | None = None) -> Host:
    return read_host(
        root, read_pe=read_pe, tables=pcs.tables(), exports=pcs.exports, zluda_dir=zluda_dir, hip_dir=hip_dir
    )


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_pc(case: dict[str, Any], tmp_path: Path) -> None:
    host = read(pcs.build(tmp_path / "pc", case["pc"]), case.get("zluda_dir"))
    said = "\n".join(f"{check.level} {check.key} {check.value}: {check.text}" for check in host.checks)
    for wanted in case["say"]:
        level, key, _, value = re.match(r"(\S+) (\S+)( (.*))?$", wanted).groups()  # type: ignore[union-attr]
        found = [check for check in host.checks if check.level == level and check.key == key]
        assert any(value in (None, "*", check.value) for check in found), f"{wanted!r} is not among\n{said}"
    for key in case.get("never", ()):
        assert key in KEYS
        assert not [check for check in host.checks if check.key == key and check.level != "PASS"], said
    for check in host.checks:
        assert check.key in KEYS
        assert bool(check.fix) == (check.level != "PASS"), check
        assert check.level == "PASS" or check.cure or check.level == "WARN" or check.key == "gpu-none", check
    facts = host_evidence(host, stack_overrides(host).apply(Stack()))
    assert not unknown_keys(facts)
    assert all(parse_line(line(fact)) == fact for fact in facts)


def test_each_row_of_the_demand_study_is_a_pc() -> None:
    links = {case.get("link", "").removeprefix("https://github.com/") for case in CASES}
    assert not [row for row in DEMAND if row not in links]
    assert len(CASES) >= 40
    assert len({case["name"] for case in CASES}) == len(CASES)


@pytest.mark.parametrize("function", pcs.HIP_FUNCTIONS)
def test_a_driver_lacking_any_one_function_is_named(tmp_path: Path, function: str) -> None:
    """Whichever function nvcuda.dll imports and the driver's runtime has not, it and both DLLs are named."""
    pc = {"driver": ["5.7"], "driver_lacks": [function], "sdks": [], "zluda": [{"release": "v3"}]}
    checks = read(pcs.build(tmp_path / "pc", pc)).checks
    (line_,) = [check for check in checks if check.key == "hip-import-unresolved"]
    assert line_.value == f"amdhip64.dll!{function}"
    for word in ("nvcuda.dll", function, r"C:\Windows\System32\amdhip64.dll", "5.7"):
        assert word in line_.text


def test_same_pc_same_bytes(tmp_path: Path) -> None:
    import msgspec

    root = pcs.build(tmp_path / "pc", {"gpus": ["raphael", "rx9060xt"], "path": [r"C:\zluda"]})
    first, second = (msgspec.json.encode(read(root)) for _ in range(2))
    assert first == second
    assert str(tmp_path).encode() not in first
