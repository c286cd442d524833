"""What the PC does to a verdict: the stack it shows, and host causes that come first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pcs
import pytest
import yaml
from test_host_matrix import read

from zcheck.cli.app import run
from zcheck.cli.data import coverage, rule_set
from zcheck.cli.examples import failures
from zcheck.coverage import answer
from zcheck.host import host_evidence, stack_overrides
from zcheck.host.keys import KEYS
from zcheck.judge import judge
from zcheck.match import build_context, match
from zcheck.model.evidence import Evidence, parse_line
from zcheck.model.host import Host
from zcheck.model.report import StackReport
from zcheck.model.stack import Stack

PPO = """
entry ppo.exe imports cublas64_11.dll!cublasGemmEx
entry ppo.exe imports cublas64_11.dll!cublasCreate_v2
run passed; zluda v6-preview.69; hip_sdk 6.4; gpu gfx1200; date 2026-09-13
"""
CONVOLUTION = "entry app.exe imports cudnn64_9.dll!cudnnConvolutionForward"
RULES = Path(__file__).resolve().parents[2] / "rules" / "host"
GEMM = "entry app.exe imports cublas64_12.dll!cublasGemmEx"
DRIVER = "entry app.exe imports nvcuda.dll!cuInit"


def verdict(host: Host, lines: str) -> StackReport:
    """The verdict of a program, given as evidence lines, on the stack that the PC shows."""
    stack = stack_overrides(host).apply(Stack())
    items = tuple(parse_line(text) for text in lines.strip().splitlines())
    evidence = Evidence("app.exe", (*items, *host_evidence(host, stack)))
    answers = answer(coverage(), stack, evidence)
    context = build_context(evidence, answers)
    return judge(evidence, answers, match(rule_set(), context), context.workload)


def on(tmp_path: Path, pc: Mapping[str, Any]) -> Host:
    return read(pcs.build(tmp_path / "pc", pc))


def test_reference_pc_is_verified_for_its_workload(tmp_path: Path) -> None:
    report = verdict(on(tmp_path, {"zluda": [{"release": "v6-preview.69"}]}), PPO)
    assert report.id == "v6-preview.69/zluda-exe/6.4/gfx1200"
    assert report.verdict == "verified", [(one.id, one.message) for one in report.findings]


def test_same_pc_with_another_gpu_is_not_verified(tmp_path: Path) -> None:
    host = on(tmp_path, {"gpus": ["rx7900xtx"], "zluda": [{"release": "v6-preview.69"}]})
    report = verdict(host, PPO)
    assert report.gpu == "gfx1100"
    assert report.verdict not in ("verified", "blocked")
    assert next(check.value for check in host.checks if check.key == "gpu-evidence") == "unverified candidate"


@pytest.mark.parametrize("gpu", ["rx9060xt", "rx7900xtx"])
def test_convolution_is_blocked_without_miopen(tmp_path: Path, gpu: str) -> None:
    report = verdict(on(tmp_path, {"gpus": [gpu], "zluda": [{"release": "v6-preview.69"}]}), CONVOLUTION)
    assert report.verdict == "blocked"
    assert report.findings[0].id == "DNN-CONV-NO-MIOPEN"


def test_therock_shows_itself_as_the_sdk(tmp_path: Path) -> None:
    sdk = {"version": "7.14", "therock": True, "path": r"C:\hip_sdk", "rocblas": ["gfx1200"]}
    host = on(tmp_path, {"driver": ["7.1"], "sdks": [sdk]})
    overrides = stack_overrides(host)
    assert (overrides.hip_sdk, overrides.gpu, overrides.zluda) == ("therock", "gfx1200", "v6")
    assert "MIOpen" in overrides.components
    assert verdict(host, CONVOLUTION).verdict != "blocked"


def test_miopen_beside_zluda_is_shown(tmp_path: Path) -> None:
    root = pcs.build(tmp_path / "pc", {})
    pcs.place(root, r"C:\zluda\MIOpen.dll", pcs.library("MIOpen.dll", "amdhip64_6.dll"))
    assert "MIOpen" in stack_overrides(read(root)).components


@pytest.mark.parametrize(
    ("pc", "lines", "wanted", "rule"),
    [
        ({"gpus": ["rx580"]}, DRIVER, "blocked", "HOST-GPU-UNSUPPORTED"),
        ({"gpus": ["uhd770"], "driver": []}, DRIVER, "blocked", "HOST-GPU-NONE"),
        ({"driver": [], "sdks": []}, DRIVER, "blocked", "HOST-HIP-RUNTIME-MISSING"),
        ({"gpus": ["rx9070xt"], "sdks": [{"version": "6.2"}]}, GEMM, "blocked", "HOST-TENSILE-SDK"),
        ({"env": {"HIP_PATH": "unset"}}, GEMM, "needs-setup", "HOST-HIP-PATH"),
        ({"zluda": [{"remove": ["nvml.dll"]}]}, DRIVER, "needs-setup", "HOST-ZLUDA-INCOMPLETE"),
        ({"gpus": ["raphael", "rx9060xt"]}, DRIVER, "needs-setup", "HOST-IGPU-FIRST"),
        ({"os_build": "26200.9445"}, DRIVER, "at-risk", "HOST-KNOWN-BAD"),
    ],
)
def test_host_causes_decide(tmp_path: Path, pc: dict[str, Any], lines: str, wanted: str, rule: str) -> None:
    report = verdict(on(tmp_path, pc), lines)
    assert rule in [finding.id for finding in report.findings]
    assert report.verdict == wanted, [(one.id, one.severity, one.reach) for one in report.findings]


def test_a_host_blocker_stands_before_the_programs_own(tmp_path: Path) -> None:
    report = verdict(on(tmp_path, {"gpus": ["rx580"]}), CONVOLUTION)
    assert report.findings[0].id == "HOST-GPU-UNSUPPORTED"
    assert report.findings[0].first


def test_missing_kernels_do_not_bother_a_program_without_blas(tmp_path: Path) -> None:
    report = verdict(on(tmp_path, {"gpus": ["rx9070xt"], "sdks": [{"version": "6.2"}]}), DRIVER)
    assert not [finding for finding in report.findings if finding.id.startswith("HOST-TENSILE")]


def test_a_program_without_cuda_is_no_cuda_on_any_pc(tmp_path: Path) -> None:
    host = on(tmp_path, {"gpus": ["rx580"], "driver": [], "sdks": [], "zluda": [{"remove": ["nvcuda.dll"]}]})
    assert verdict(host, "entry app.exe imports kernel32.dll!ExitProcess").verdict == "no-cuda"


def test_old_zluda_on_old_gpu_is_a_risk_only(tmp_path: Path) -> None:
    host = on(tmp_path, {"gpus": ["rx580"], "driver": ["5.7"], "sdks": [], "zluda": [{"release": "v3"}]})
    ids = {finding.id: finding.severity for finding in verdict(host, DRIVER).findings}
    assert ids.get("HOST-GPU-OFF-LIST") == "risk"
    assert "HOST-GPU-UNSUPPORTED" not in ids


def _keys(node: object) -> set[str]:
    """Keys that a rule file's ``when`` asks of the host."""
    if isinstance(node, list):
        return set().union(*map(_keys, node))
    if not isinstance(node, dict):
        return set()
    key = node["host"]["key"] if "host" in node else []
    return {key} if isinstance(key, str) else set(key).union(*map(_keys, node.values()))


def test_every_cause_has_a_rule_and_every_rule_a_key() -> None:
    used = set().union(*(_keys(yaml.safe_load(path.read_text("utf-8"))["when"]) for path in RULES.glob("*.yaml")))
    assert used <= set(KEYS)
    # What is told for its own sake, or in a verdict by the stack that the PC shows.
    told = {
        "gpu",
        "gpu-evidence",
        "hipinfo",
        "hip-sdk",
        "hip-runtime",
        "component-absent",
        "zluda-release",
    }
    assert set(KEYS) - used == told


def test_examples_of_the_host_rules() -> None:
    assert not failures([rule for rule in rule_set() if rule.area == "host"], coverage())


# --- lists that tell nothing of a Windows PC ------------------------------------------------------------------------

GEMM_EXE = Path(__file__).resolve().parents[2] / "samples" / "gemm.exe"


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (Host(source="linux", os="Linux", os_build="6.1"), "lists a machine with Linux"),
        (Host(source="linux", os="Darwin"), "lists a machine with Darwin"),
        (Host(source="windows", os="Windows"), "holds nothing that was read of a PC"),
    ],
    ids=["linux", "mac", "nothing"],
)
def test_no_verdict_rests_on_a_list_without_a_pc(
    document: Host, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "pc.json"
    file.write_bytes(msgspec.json.encode(document))
    for verb in ("check", "audit"):
        assert run([verb, str(GEMM_EXE if verb == "check" else GEMM_EXE.parent), "--host", str(file)]) == 2
        assert said in capsys.readouterr().err


def test_a_gpu_that_nobody_listed_is_taken_for_granted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = pcs.build(tmp_path / "pc", {})
    content = yaml.safe_load((folder / "host.yaml").read_text("utf-8"))
    del content["adapters"]
    (folder / "host.yaml").write_text(yaml.safe_dump(content), "utf-8")
    run([str(GEMM_EXE), "--host", str(folder), "-f", "json"])
    report = json.loads(capsys.readouterr().out)
    assert report["stacks"][0]["verdict"] != "blocked"
    assert any("Nothing is known of this PC's GPU" in text for text in report["assumptions"])
    empty = tmp_path / "empty"
    empty.mkdir()
    assert run([str(GEMM_EXE), "--host", str(empty)]) == 2
    assert "holds no Windows" in capsys.readouterr().err
