"""``zcheck run`` on programs of this system: every day's test of all that is not Windows' own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from zcheck.launch import json_schema, recorded_runs, redacted, to_issue, to_markdown
from zcheck.launch.records import record
from zcheck.launch.report import mask_secrets
from zcheck.model.launch import ExitReport, FirstError, LoadedModule, RunReport, StackRecord, StreamReport

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="programs of POSIX")
CLI = Path(__file__).with_name("cli_app.py")
ANALYZER = str(Path(__file__).resolve().parents[2] / "analyzer")


class Here:
    """A folder with a program (a script of this Python), a ZLUDA build for Linux, and a data folder."""

    def __init__(self, root: Path, text: str) -> None:
        self.root, self.data, self.zluda = root, root / "data", root / "zluda"
        self.zluda.mkdir()
        (self.zluda / "libcuda.so").write_bytes(b"\x7fELF")
        self.program = root / "program"
        self.program.write_text(f"#!{sys.executable}\nimport os, sys, time\n{text}\n")
        self.program.chmod(0o755)

    def command(self, *options: str, arguments: tuple[str, ...] = ()) -> list[str]:
        given = ["run", "--zluda-dir", str(self.zluda), "--zluda", "v6", "--data-dir", str(self.data), "--full"]
        given += ["--output", f"json={self.root / 'report.json'}", *options, str(self.program)]
        return [sys.executable, str(CLI), *given, *(["--", *arguments] if arguments else [])]

    def environment(self) -> dict[str, str]:
        return os.environ | {"PYTHONPATH": ANALYZER}

    def run(self, *options: str, arguments: tuple[str, ...] = ()) -> tuple[subprocess.CompletedProcess[str], Any]:
        done = subprocess.run(
            self.command(*options, arguments=arguments), env=self.environment(), capture_output=True, text=True,
            timeout=120, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        report = self.root / "report.json"
        return done, json.loads(report.read_text()) if report.exists() else None


def test_own_exit_code_output_and_environment(tmp_path: Path) -> None:
    here = Here(tmp_path, "print(os.environ['LD_LIBRARY_PATH'].split(':')[0], sys.argv[1:]); sys.exit(42)")
    done, report = here.run(arguments=("a b", ""))
    assert done.returncode == 42
    assert done.stdout == f"{here.zluda} ['a b', '']\n"
    assert report["strategy"] == "path"
    assert report["arguments"] is None
    assert set(report["environment"]) == {"LD_LIBRARY_PATH"}
    jsonschema.validate(report, json_schema())


def test_refusals_end_with_125_before_anything_happens(tmp_path: Path) -> None:
    here = Here(tmp_path, "print('ran')")
    for options in (("--strategy", "stage"), ("--strategy", "no"), ("--zluda", "v99"), ("--output", "x=y")):
        done, _ = here.run(*options)
        assert (done.returncode, done.stdout) == (125, ""), done.stderr
    (here.zluda / "libcuda.so").unlink()
    done, _ = here.run()
    assert (done.returncode, done.stdout) == (125, "")
    assert "zluda" in done.stderr


def test_dry_run_prints_and_starts_nothing(tmp_path: Path) -> None:
    here = Here(tmp_path, "open('ran', 'w')")
    before = sorted(path.name for path in tmp_path.iterdir())
    done, _ = here.run("--dry-run")
    assert done.returncode == 0
    assert "Nothing is written" in done.stdout
    done, _ = here.run("--dry-run", "--format", "json")
    assert json.loads(done.stdout)["strategy"] == "path"
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_timeout_ends_the_whole_tree_even_what_ignores_sigterm(tmp_path: Path) -> None:
    child = (
        "import signal, time, os; signal.signal(15, signal.SIG_IGN); os.setsid(); "
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    )
    here = Here(tmp_path, f"import subprocess\nsubprocess.Popen([sys.executable, '-c', {child!r}])\ntime.sleep(600)")
    done, report = here.run("--timeout", "4")
    assert done.returncode == 124
    assert report["exit"]["timed_out"] is True
    assert report["first_error"]["rule"] == "timeout"
    assert report["outcome"] == "failed"
    pid = int((tmp_path / "pid").read_text())
    assert not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2][:3]


def test_program_that_leaves_its_child_working_is_waited_for(tmp_path: Path) -> None:
    child = f"import time; time.sleep(2); open({str(tmp_path / 'done')!r}, 'w').write('x')"
    here = Here(tmp_path, f"import subprocess\nsubprocess.Popen([sys.executable, '-c', {child!r}])")
    done, _ = here.run()
    assert done.returncode == 0
    assert (tmp_path / "done").exists()
    assert "waiting for processes" in done.stderr


def test_ctrl_c_goes_through_and_the_program_may_end_well(tmp_path: Path) -> None:
    here = Here(
        tmp_path, "print('up', flush=True)\ntry: time.sleep(600)\nexcept KeyboardInterrupt: print('bye'); sys.exit(7)"
    )
    with subprocess.Popen(
        here.command(), env=here.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as launcher:
        assert launcher.stdout is not None
        assert launcher.stdout.readline() == "up\n"
        launcher.send_signal(signal.SIGINT)
        out, _ = launcher.communicate(timeout=60)
    assert (out, launcher.returncode) == ("bye\n", 7)
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["exit"]["interrupted"] is True
    assert report["outcome"] == "inconclusive"


def test_killed_launcher_takes_the_program_along(tmp_path: Path) -> None:
    here = Here(
        tmp_path,
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\nprint('up', flush=True)\ntime.sleep(600)",
    )
    with subprocess.Popen(
        here.command(), env=here.environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as it:
        assert it.stdout is not None
        assert it.stdout.readline() == b"up\n"
        it.kill()
    pid = int((tmp_path / "pid").read_text())
    end = time.monotonic() + 20
    while time.monotonic() < end and Path(f"/proc/{pid}").exists():
        time.sleep(0.1)
    assert not Path(f"/proc/{pid}").exists()


def test_second_run_at_once_is_refused(tmp_path: Path) -> None:
    here = Here(tmp_path, "print('up', flush=True)\ntime.sleep(600)")
    with subprocess.Popen(
        here.command(), env=here.environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as it:
        assert it.stdout is not None
        assert it.stdout.readline() == b"up\n"
        done, _ = here.run()
        assert done.returncode == 125
        assert "another zcheck run" in done.stderr
        it.send_signal(signal.SIGTERM)
        it.wait(60)


def test_flood_does_not_block_and_memory_stays_bounded(tmp_path: Path) -> None:
    here = Here(
        tmp_path,
        "block = b'x' * 65535 + b'\\n'\nfor _ in range(1600):\n    os.write(1, block)\n    os.write(2, block)",
    )
    peak = tmp_path / "peak"
    wrapper = (
        # ru_maxrss would count what the test's own process held before it became this one; VmHWM begins anew.
        "import re, runpy, sys, atexit\n"
        "def note():\n"
        "    found = re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]\n"
        f"    open({str(peak)!r}, 'w').write(found)\n"
        "atexit.register(note)\n"
        "sys.argv = sys.argv[1:]\nrunpy.run_path(sys.argv[0], run_name='__main__')"
    )
    command = here.command("--quiet")
    done = subprocess.run(
        [command[0], "-c", wrapper, *command[1:]], env=here.environment(), capture_output=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["stdout"]["bytes"] == report["stderr"]["bytes"] == 1600 * 65536
    assert report["stdout"]["kept"] == 32 * 1024 * 1024
    assert int(peak.read_text()) < 300 * 1024, "kilobytes: the 200 MB that came are not in memory"


def test_ab_runs_both_in_turn_and_shows_the_difference(tmp_path: Path) -> None:
    """A stand-in that is faster with one folder than with the other, and fails once with B."""
    here = Here(
        tmp_path,
        f"""
side = os.environ['LD_LIBRARY_PATH'].split(':')[0][-1]
log = open({str(tmp_path / "order")!r}, 'a'); log.write(side); log.close()
turn = open({str(tmp_path / "order")!r}).read().count(side)
if side == 'b' and turn == 3: sys.exit('CUDA error: out of memory')
for n in range(4): print(f"{{(100 if side == 'a' else 90) + turn + n * 0.1:.1f}} steps/s")
""",
    )
    for side in "ab":
        (tmp_path / side).mkdir()
        (tmp_path / side / "libcuda.so").write_bytes(b"ELF")
    command = [sys.executable, str(CLI), "ab", "--metric", "([0-9.]+) steps/s", "--a-dir", str(tmp_path / "a")]
    command += ["--b-dir", str(tmp_path / "b"), "--a-zluda", "v6", "--b-zluda", "v6", "--runs", "4", "--format", "json"]
    command += ["--data-dir", str(here.data), str(here.program)]
    done = subprocess.run(command, env=here.environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "order").read_text() == "abbaabba"
    report = json.loads(done.stdout)
    assert (len(report["a"]["values"]), len(report["a"]["dropped"])) == (12, 4)
    assert (len(report["b"]["values"]), report["b"]["failed"]) == (9, 1)
    assert report["change"] == pytest.approx(-9.8, abs=0.5)
    assert report["p"] < 0.001
    assert "out of memory" in done.stderr


def _report(**changes: Any) -> RunReport:
    stream = StreamReport(3, 3, "/home/ann/runs/stdout.txt", ("token=abc123 of ann",))
    base = RunReport(
        schema=1, zcheck="0", id="x", started="2026-09-13T10:00:00Z", ended="2026-09-13T10:00:01Z", program="ppo.exe",
        program_path="/home/ann/ppo.exe", program_sha256="a" * 64, machine="x64", arguments=None,
        stack=StackRecord("v6-preview.69", "unknown", {}, "6.4", "gfx1200", "RX 9060 XT", "", 0, "hipinfo"),
        strategy="zluda-exe", why=("because",), environment={"HIP_PATH": "/home/ann/hip"},
        exit=ExitReport(0, "0x00000000", "success", False, 1.0), first_error=None,
        modules=(LoadedModule("nvcuda.dll", "/home/ann/z/nvcuda.dll", "zluda"),), staging=(), staging_done=True,
        grade="functional", outcome="passed", stdout=stream, stderr=stream,
    )  # fmt: skip
    return msgspec.structs.replace(base, **changes)


def test_recorded_runs_come_back_as_evidence(tmp_path: Path) -> None:
    record(_report(), tmp_path)
    failed = FirstError("cublas-status", "CUBLAS_STATUS_NOT_SUPPORTED", "stderr", 4, "m")
    record(_report(id="y", started="2026-09-14T10:00:00Z", outcome="failed", first_error=failed), tmp_path)
    record(_report(id="z", started="2026-09-15T10:00:00Z", outcome="inconclusive"), tmp_path)
    found = recorded_runs("a" * 64, tmp_path)
    assert [(r.outcome, r.zluda, r.hip_sdk, r.gpu, r.date) for r in found] == [
        ("passed", "v6-preview.69", "6.4", "gfx1200", "2026-09-13"),
        ("failed", "v6-preview.69", "6.4", "gfx1200", "2026-09-14"),
    ]
    assert "CUBLAS_STATUS_NOT_SUPPORTED" in found[1].note
    assert recorded_runs("b" * 64, tmp_path) == ()
    assert recorded_runs("../" + "a" * 61, tmp_path) == ()


def test_record_option_stores_failed_runs_too(tmp_path: Path) -> None:
    here = Here(tmp_path, "sys.exit('CUDA error: out of memory')")
    done, report = here.run("--record")
    assert done.returncode == 1
    found = recorded_runs(report["program_sha256"], here.data)
    assert [run.outcome for run in found] == ["failed"]
    assert found[0].note == "CUDA error: out of memory"


def test_shared_reports_name_nobody(tmp_path: Path) -> None:
    clean = redacted(_report(), lambda text: text.replace("ann", "<user>"))
    for text in (msgspec.json.encode(clean).decode(), to_markdown(clean), to_issue(clean)):
        assert "ann" not in text
        assert "abc123" not in text
    assert clean.redacted
    assert clean.stdout.tail == ()


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("HF_TOKEN=hf_abcdefghijklmnopqrst", "abcdefghijkl"),
        ("--api-key: 'my secret'", "my secret"),
        ("Authorization: Bearer eyJabcdefghijk.eyJabcdefghijk.sig1234567890", "eyJabc"),
        ("password = hunter2", "hunter2"),
        ("ghp_0123456789012345678901234567890", "0123456789"),
    ],
)
def test_secrets_are_masked(text: str, hidden: str) -> None:
    assert hidden not in mask_secrets(text)


def test_ordinary_text_is_left_alone() -> None:
    for text in ("tokens per second: 41", "keyboard=us", "CUBLAS_STATUS_NOT_SUPPORTED", "tokenizer loaded"):
        assert mask_secrets(text) == text
