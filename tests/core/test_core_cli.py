"""The command line: what is printed, how it ends, and what bad input is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from zcheck.cli.app import run
from zcheck.cli.data import rule_set
from zcheck.model.evidence import Evidence, parse_line

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "samples"
GEMM, CONV, PLAIN = (str(SAMPLES / name) for name in ("gemm.exe", "conv.exe", "plain.exe"))


def zcheck(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The program as a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "analyzer")}
    return subprocess.run(
        [sys.executable, "-m", "zcheck", *arguments], capture_output=True, text=True, env=environment, check=False
    )


def test_the_version_costs_nothing() -> None:
    code = (
        "import sys; sys.argv=['zcheck','--version']\n"
        "from zcheck.__main__ import main; main()\n"
        "bad = {'networkx','pefile','lief','rich','typer','yaml'} & set(sys.modules); assert not bad, bad"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "analyzer")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("zcheck 0.")


def test_a_check_of_a_small_program_loads_no_heavy_library() -> None:
    code = (
        f"import sys; from zcheck.cli.app import run; run([{PLAIN!r}, '-f', 'json'])\n"
        "bad = {'networkx','lief','cyclonedx','jinja2','distributed'} & set(sys.modules)\nassert not bad, bad"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "analyzer")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("program", "verdict", "code"),
    [("gemm.exe", "likely", 0), ("conv.exe", "blocked", 1), ("plain.exe", "no-cuda", 0),
     ("not-exported.exe", "blocked", 1),
     ("fft.exe", "blocked", 1), ("delay-load.exe", "at-risk", 0), ("x86-driver.exe", "blocked", 1)],
)  # fmt: skip
def test_samples(program: str, verdict: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([str(SAMPLES / program), "--format", "json"]) == code
    report = json.loads(capsys.readouterr().out)
    assert report["stacks"][0]["verdict"] == verdict
    assert report["stacks"][0]["id"] == "v6/zluda-exe/6.4"


def test_libtorch_samples(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([str(SAMPLES / "ppo-gemm"), "-f", "json"]) == 0
    trainer = json.loads(capsys.readouterr().out)["stacks"][0]
    assert trainer["verdict"] in ("likely", "needs-setup")
    assert (trainer["workload"]["gemm"], trainer["workload"]["convolution"]) == ("required", "not seen")
    assert run([str(SAMPLES / "image-conv"), "-f", "json"]) == 1
    image = json.loads(capsys.readouterr().out)["stacks"][0]
    assert image["verdict"] == "blocked"
    assert {f["id"] for f in image["findings"] if f["reach"] == "called"} == {"DNN-CONV-NO-MIOPEN"}
    assert run([str(SAMPLES / "image-conv"), "-f", "json", "--stack", "therock"]) == 0


def test_the_same_input_gives_the_same_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    outputs = []
    for _ in range(2):
        run([CONV, "--zluda", "v5", "--zluda", "v6", "-f", "json"])
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]


def test_reports_keep_to_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    run(["schema"])
    schema = json.loads(capsys.readouterr().out)
    for arguments in ([CONV], [str(SAMPLES)], [GEMM, "--zluda", "v4", "--zluda", "v7-preview"]):
        run([*arguments, "-f", "json"])
        jsonschema.validate(json.loads(capsys.readouterr().out), schema)


def test_a_folder_gives_every_program_its_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([str(SAMPLES), "-f", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    programs = {str(path.relative_to(SAMPLES).as_posix()) for path in SAMPLES.rglob("*.exe")}
    assert {each["target"] for each in report["applications"]} == programs


def test_aliases_name_releases(capsys: pytest.CaptureFixture[str]) -> None:
    run([GEMM, "--zluda", "latest", "--zluda", "v6", "--zluda", "lshqqytiger", "-f", "json"])
    assert [s["zluda"] for s in json.loads(capsys.readouterr().out)["stacks"]] == ["v6", "lshqqytiger-3.9.5"]
    run([GEMM, "--stack", "reference", "-f", "json"])
    assert json.loads(capsys.readouterr().out)["stacks"][0]["id"] == "v6-preview.69/zluda-exe/6.4/gfx1200"


def test_evidence_lines_judge_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run([CONV, "--evidence"])
    lines = capsys.readouterr().out
    items = tuple(parse_line(text) for text in lines.splitlines())
    saved = tmp_path / "evidence.txt"
    saved.write_text(lines)
    as_json = tmp_path / "evidence.json"
    as_json.write_bytes(msgspec.json.encode(Evidence("conv.exe", items)))
    run([CONV, "-f", "json"])
    direct = json.loads(capsys.readouterr().out)
    report = tmp_path / "report.json"
    report.write_text(json.dumps(direct))
    for path in (saved, as_json, report):
        assert run(["check", "--from", str(path), "-f", "json"]) == 1
        again = json.loads(capsys.readouterr().out)
        assert again["stacks"] == direct["stacks"]
        assert again["functions"] == direct["functions"]
    assert run(["--from", str(report), "--hip-sdk", "therock", "-f", "json"]) == 0  # the same evidence, another stack
    assert json.loads(capsys.readouterr().out)["stacks"][0]["verdict"] == "likely"


def test_output_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = {"html": "r.html", "sarif": "r.sarif", "markdown": "r.md", "json": "r.json", "csv": "r.csv"}
    assert run([CONV, *(f"--output={fmt}={tmp_path / name}" for fmt, name in names.items())]) == 1
    capsys.readouterr()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names.values())
    assert run([CONV, f"--output=json={tmp_path / 'no' / 'such' / 'folder.json'}"]) == 2
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([GEMM, "--zluda", "v66"], "v66"),
        ([GEMM, "--hip-sdk", "9.9"], "9.9"),
        ([GEMM, "--gpu", "rx7900"], "gfx1100"),
        ([GEMM, "--stack", "referense"], "did you mean reference"),
        ([GEMM, "--launch-mode", "magic"], "zluda-exe or staged"),
        ([GEMM, "--format", "pdf"], "text, json"),
        ([GEMM, "--output", "json"], "FORMAT=FILE"),
        ([GEMM, "--fail-on", "everything"], "blocker, risk"),
        (["check"], "name a program"),
        (["no-such-file.exe"], "no such file"),
        ([str(ROOT / "README.md")], "README.md"),
        (["explain", "NO-SUCH-RULE"], "zcheck rules list"),
        (["explain", "DNN-CONV-NO-MIOPE"], "did you mean DNN-CONV-NO-MIOPEN"),
        ([GEMM, "--no-such-option"], "no-such-option"),
    ],
)
def test_wrong_use_is_one_sentence_and_exit_2(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert says in captured.err
    assert "Traceback" not in captured.err
    assert not captured.out


def test_explain_knows_every_id(capsys: pytest.CaptureFixture[str]) -> None:
    for rule in rule_set():
        assert run(["explain", rule.id]) == 0
        assert rule.title in " ".join(capsys.readouterr().out.split())  # wrapped as the terminal is wide
    assert run(["explain", "cublasDgemm_v2"]) == 0
    assert "cublasDgemm_v2" in capsys.readouterr().out


def test_fail_on(capsys: pytest.CaptureFixture[str]) -> None:
    risky = str(SAMPLES / "delay-load.exe")
    assert run([risky]) == 0
    assert run([risky, "--fail-on", "risk"]) == 1
    assert run([CONV, "--fail-on", "never"]) == 0
    capsys.readouterr()


def test_a_reader_that_stops_reading_is_no_error() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "analyzer")}
    done = subprocess.run(
        f"{sys.executable} -m zcheck {SAMPLES} --verbose | head -n 1",
        shell=True, capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def test_code_page_437_and_no_color() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "analyzer"), "PYTHONIOENCODING": "cp437", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "zcheck", CONV, "--tree"], capture_output=True, env=environment, check=False
    )
    text = done.stdout.decode("cp437")
    assert "\x1b" not in text
    assert "BLOCKED" in text.splitlines()[0]


def test_file_names_that_would_command_the_terminal(tmp_path: Path) -> None:
    name = "evil\x1b[2J\u202eexe.\n.exe"
    try:
        (tmp_path / name).write_bytes(Path(CONV).read_bytes())
    except OSError:
        pytest.skip("this file system takes no such name")
    for fmt in ("text", "markdown", "issue", "csv"):
        done = zcheck(str(tmp_path / name), "--format", fmt)
        assert "\x1b" not in done.stdout
        assert "\u202e" not in done.stdout
        assert done.returncode == 1


@pytest.mark.parametrize("target", [CONV, str(SAMPLES)], ids=["one", "several"])
@pytest.mark.parametrize("fmt", ["text", "json"])
def test_evidence_in_either_form_is_judged_again(
    target: str, fmt: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run([target, "--evidence", "-f", fmt])
    saved = tmp_path / "evidence"
    saved.write_text(capsys.readouterr().out, "utf-8")
    assert fmt == "text" or json.loads(saved.read_text("utf-8"))
    run(["--from", str(saved), "-f", "json"])
    again = json.loads(capsys.readouterr().out)
    run([target, "-f", "json"])
    wanted = json.loads(capsys.readouterr().out)

    def verdicts(product: dict[str, Any]) -> dict[str, str]:
        reports = product.get("applications", [product])
        return {report["target"].rpartition("/")[2]: report["stacks"][0]["verdict"] for report in reports}

    assert verdicts(again) == verdicts(wanted)


def test_evidence_is_refused_in_forms_that_it_does_not_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([GEMM, "--evidence", "-f", "html"]) == 2
    assert "as JSON (--format json), not as html" in capsys.readouterr().err
    assert run([GEMM, "--evidence", "-o", f"json={tmp_path / 'x.json'}"]) == 2
    assert "--output writes reports" in capsys.readouterr().err
    (tmp_path / "none.json").write_text("[]")
    assert run(["--from", str(tmp_path / "none.json")]) == 2


def test_a_check_can_go_without_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZCHECK_CACHE", str(tmp_path / "cache"))
    assert run([GEMM, "--no-cache"]) == 0
    assert not list((tmp_path / "cache").rglob("*.sqlite"))
    assert run([GEMM]) == 0
    assert list((tmp_path / "cache").rglob("*.sqlite"))
