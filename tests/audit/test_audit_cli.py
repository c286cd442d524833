"""zcheck audit from the folder to the report."""

from __future__ import annotations

import csv
import io
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from audit_programs import CONV, GEMM, KERNEL, SAMPLES, audit, environment, old, program, share, zcheck

from zcheck.render.audit import AUDIT_FORMATS


def rows(out: str) -> dict[str, dict[str, Any]]:
    return {row["path"]: row for row in json.loads(out)["applications"]}


def verdicts(out: str) -> dict[str, str]:
    return {path: next(iter(row["verdict"].values())) for path, row in rows(out).items()}


def test_the_samples(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = audit(capsys, SAMPLES, "-f", "json", "-j", 1)
    assert code == 1
    seen = verdicts(out)
    assert seen["conv.exe"] == seen["image-conv/image-model.exe"] == seen["fft.exe"] == "blocked"
    assert seen["gemm.exe"] == seen["ppo-gemm/ppo-trainer.exe"] == "likely"
    assert rows(out)["gemm.exe"]["cuda"] == "12"
    assert rows(out)["ppo-gemm/ppo-trainer.exe"]["frameworks"] == ["pytorch"]
    group = next(group for group in json.loads(out)["causes"] if group["id"] == "DNN-CONV-NO-MIOPEN")
    assert group["applications"] == ["conv.exe", "image-conv/image-model.exe"]


def test_each_verdict_is_the_one_of_a_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from zcheck.cli.app import run

    share(tmp_path, 3)
    seen = verdicts(audit(capsys, tmp_path, "-f", "json", "-j", 1)[1])
    for path, verdict in seen.items():
        run([str(tmp_path / path), "-f", "json"])
        assert json.loads(capsys.readouterr().out)["stacks"][0]["verdict"] == verdict


def test_processes_and_caches_do_not_change_a_byte(tmp_path: Path, own_cache: Path) -> None:
    share(tmp_path / "share", 7)
    alone = zcheck(own_cache / "1", "audit", tmp_path / "share", "-f", "json", "-j", 1)
    assert json.loads(alone.stdout)["applications"], alone.stderr
    two = zcheck(own_cache / "2", "audit", tmp_path / "share", "-f", "json", "-j", 2)
    warm = zcheck(own_cache / "2", "audit", tmp_path / "share", "-f", "json", "-j", 1)
    without = zcheck(own_cache / "3", "audit", tmp_path / "share", "-f", "json", "-j", 2, "--no-cache")
    assert alone.stdout == two.stdout == warm.stdout == without.stdout
    assert not (own_cache / "3").exists()


def test_warm_rows_come_from_the_cache_until_a_file_changes(
    tmp_path: Path, own_cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from zcheck.cli import audit_task

    share(tmp_path, 3)
    assert zcheck(own_cache, "audit", tmp_path, "-j", 2).returncode == 1  # other processes' rows are as good
    judged: list[str] = []
    judge = audit_task._judge
    try:
        audit_task._judge = lambda task, cache: judged.append(task.place) or judge(task, cache)  # type: ignore[func-returns-value]
        audit(capsys, tmp_path, "-j", 1)
        assert judged == []
        program(tmp_path / "tool001" / "tool1.exe", CONV)
        out = audit(capsys, tmp_path, "-j", 1, "-f", "json")[1]
        assert judged == ["tool001"]
        assert verdicts(out)["tool001/tool1.exe"] == "blocked"
        audit(capsys, tmp_path, "-j", 1, "--zluda", "v5")
        assert len(judged) == 4
    finally:
        audit_task._judge = judge


def test_a_broken_file_is_a_row_with_its_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    share(tmp_path, 2)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "bad.exe").write_bytes(b"MZ but nothing more")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "empty.exe").write_bytes(b"")
    code, out, _ = audit(capsys, tmp_path, "-f", "json", "-j", 1)
    assert code == 3
    seen = rows(out)
    assert len(seen) == 4
    for name in ("bad/bad.exe", "empty/empty.exe"):
        assert seen[name]["problem"] and seen[name]["problem"] == seen[name]["top_cause"]
        assert set(seen[name]["verdict"].values()) == {"unknown"}


def test_an_unforeseen_error_costs_one_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from zcheck.cli.entry import EntryReading

    share(tmp_path, 3)
    analyse = EntryReading.analyse

    def failing(self: EntryReading, entry: str) -> object:
        if entry == "tool1.exe":
            raise ValueError("odd")
        return analyse(self, entry)

    monkeypatch.setattr(EntryReading, "analyse", failing)
    _, out, _ = audit(capsys, tmp_path, "-f", "json", "-j", 1)
    assert rows(out)["tool001/tool1.exe"]["problem"] == "ValueError: odd"
    assert rows(out)["tool000/tool0.exe"]["problem"] == rows(out)["tool002/tool2.exe"]["problem"] == ""


def test_programs_judged_alike_share_a_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.exe", "b.exe"):
        program(tmp_path / "App" / name, GEMM)
    program(tmp_path / "App" / "conv.exe", CONV)
    program(tmp_path / "App" / "crashpad.exe", KERNEL)
    seen = rows(audit(capsys, tmp_path, "-f", "json", "-j", 1)[1])
    assert {path: row["programs"] for path, row in seen.items()} == {
        "App/a.exe": ["a.exe", "b.exe"],
        "App/conv.exe": ["conv.exe"],
    }
    assert [other for row in seen.values() for other in row["others"]] == ["crashpad.exe"]


def test_more_programs_than_fit_in_a_piece_share_a_row_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(70):
        program(tmp_path / "bin" / f"p{number:03}.exe", GEMM)
    (row,) = rows(audit(capsys, tmp_path, "-f", "json", "-j", 1)[1]).values()
    assert len(row["programs"]) == 70


def test_an_environment_is_judged_by_its_modules_that_use_cuda(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    env = tmp_path / "env"
    program(env / "python.exe", KERNEL)
    program(env / "python311.dll", dll=True)
    program(env / "DLLs" / "_socket.pyd", dll=True)
    program(env / "Lib" / "site-packages" / "pkg" / "_outer.pyd", {"inner.dll": ["run"]}, dll=True)
    program(env / "Lib" / "site-packages" / "pkg" / "inner.dll", CONV, dll=True)
    seen = rows(audit(capsys, tmp_path, "-f", "json", "-j", 1)[1])
    assert list(seen) == ["env/Lib/site-packages/pkg/_outer.pyd"]


def test_columns_and_the_release_that_serves_most(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program(tmp_path / "a" / "a.exe", CONV)
    program(tmp_path / "b" / "b.exe", GEMM)
    _, out, _ = audit(capsys, tmp_path, "-f", "json", "-j", 1, "--zluda", "v6", "--zluda", "v3")
    product = json.loads(out)
    ids = [stack["id"] for stack in product["stacks"]]
    for row in product["applications"]:
        assert sorted(row["verdict"]) == sorted(ids)
    served = {release["stack"]: release["served"] for release in product["releases"]}
    order = [release["served"] for release in product["releases"]]
    assert set(served) == set(ids) and order == sorted(order, reverse=True)
    for stack, count in served.items():
        good = ("likely", "verified", "needs-setup")
        assert count == sum(row["verdict"][stack] in good for row in product["applications"])


def test_only_sort_and_wrong_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    share(tmp_path, 6)
    out = audit(capsys, tmp_path, "-f", "json", "-j", 1, "--only", "blocked")[1]
    assert set(verdicts(out).values()) == {"blocked"}
    assert sum(json.loads(out)["releases"][0]["counts"].values()) == 6  # counts are of all
    paths = list(rows(audit(capsys, tmp_path, "-f", "json", "-j", 1, "--sort", "path")[1]))
    assert paths == sorted(paths)
    for wrong in (["--only", "bad"], ["--sort", "bad"], ["-f", "sarif"], ["-o", "xml=x"], ["-j", "0"]):
        assert audit(capsys, tmp_path, *wrong)[0] == 2
    assert audit(capsys, tmp_path / "nowhere")[0] == 2


@pytest.mark.parametrize(
    ("imports", "level", "code"),
    [(GEMM, None, 0), (CONV, None, 1), (CONV, "never", 0), (KERNEL, "risk", 0)],
)  # fmt: skip
def test_exit_codes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], imports: dict[str, list[str]], level: str | None, code: int
) -> None:
    program(tmp_path / "a" / "a.exe", imports)
    assert audit(capsys, tmp_path, "-j", 1, *(["--fail-on", level] if level else []))[0] == code


def test_since_says_what_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = share(tmp_path / "share", 3)
    before = tmp_path / "before.json"
    audit(capsys, folder, "-j", 1, "-o", f"json={before}")
    program(folder / "tool001" / "tool1.exe", CONV)  # likely → blocked
    program(folder / "tool002" / "tool2.exe", GEMM)  # blocked → likely
    (folder / "tool000" / "tool0.exe").unlink()
    program(folder / "new" / "new.exe", GEMM)
    _, out, _ = audit(capsys, folder, "-j", 1, "-f", "json", "--since", before)
    changes = {(c["path"], c["kind"]) for c in json.loads(out)["changes"] if not c["path"].endswith(".dll")}
    assert changes == {
        ("tool001/tool1.exe", "worse"),
        ("tool002/tool2.exe", "better"),
        ("tool000/tool0.exe", "gone"),
        ("new/new.exe", "new"),
    }
    assert "worse" in audit(capsys, folder, "-j", 1, "--since", before)[1]
    assert audit(capsys, folder, "-j", 1, "--since", folder / "new" / "new.exe")[0] == 2


def test_every_finding_is_in_every_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = audit(capsys, SAMPLES, "-f", "json", "-j", 1)
    ids = {finding["id"] for row in rows(out).values() for finding in row["findings"]}
    assert ids >= {"API-NOT-EXPORTED-START", "API-PARTIAL", "DNN-CONV-NO-MIOPEN", "LAUNCH-32-BIT", "LIB-STUB-CUFFT"}
    for fmt in AUDIT_FORMATS:
        shown = audit(capsys, SAMPLES, "-f", fmt, "-j", 1, "-v")[1].replace("\\", "")
        for rule in ids:
            assert rule in shown, f"{rule} is missing in {fmt}"


def test_csv_has_a_row_an_application_and_stack(capsys: pytest.CaptureFixture[str]) -> None:
    out = audit(capsys, SAMPLES, "-f", "csv", "-j", 1, "--zluda", "v6", "--zluda", "v5")[1]
    read = list(csv.DictReader(io.StringIO(out)))
    assert len(read) == 2 * len({row["path"] for row in read})
    assert [row["verdict"] for row in read if row["path"] == "conv.exe" and row["stack"].startswith("v6")] == [
        "blocked"
    ]


def test_pages_link_and_stand_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    share(tmp_path / "share", 3)
    site = tmp_path / "site"
    audit(capsys, tmp_path / "share", "-j", 1, "-o", f"html={site}")
    index = (site / "index.html").read_text(encoding="utf-8")
    links = re.findall(r'<th scope="row"><a href="([^"]+)"', index)
    assert len(links) == 3
    for link in links:
        page = (site / link).read_text(encoding="utf-8")
        assert page.startswith("<!DOCTYPE html>")
    for text in [index, *((site / link).read_text(encoding="utf-8") for link in links)]:
        assert not re.findall(r'(?:src|href)="(?:https?:)?//', text.replace('href="https://', "", text.count("rel=")))
    assert "<svg" in index
    # A warm run writes the same pages.
    first = {path.name: path.read_bytes() for path in site.iterdir()}
    audit(capsys, tmp_path / "share", "-j", 1, "-o", f"html={site}")
    assert {path.name: path.read_bytes() for path in site.iterdir()} == first
    # On stdout there are no pages to link to.
    assert "<a href" not in re.sub(r'<a class="skip".*?</a>', "", audit(capsys, tmp_path / "share", "-f", "html")[1])


@pytest.mark.parametrize("fmt", list(AUDIT_FORMATS))
def test_hostile_names_do_no_harm(tmp_path: Path, capsys: pytest.CaptureFixture[str], fmt: str) -> None:
    for name in ("<script>alert(1)", "=cmd|' 'a", "\u202egnp", "a|b`c[x](y)", "\x1b[31mred"):
        program(tmp_path / name / "x\u200b.exe", CONV)
    out = audit(capsys, tmp_path, "-j", 1, "-f", fmt)[1]
    assert fmt != "html" or "<script>alert" not in out
    assert not re.search("[\x1b\u202e\u200b]", out)
    if fmt == "csv":
        for row in csv.reader(io.StringIO(out)):
            assert not any(cell.startswith(("=", "+", "@")) for cell in row)


def test_narrow_and_ascii(tmp_path: Path, own_cache: Path) -> None:
    share(tmp_path, 3)
    env = {**environment(own_cache), "COLUMNS": "60", "PYTHONIOENCODING": "cp437", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "zcheck", "audit", str(tmp_path)], capture_output=True, env=env, check=False
    )
    assert done.returncode == 1, done.stderr
    text = done.stdout.decode("cp437")
    assert max(len(line) for line in text.splitlines()) <= 60
    assert "BLOCKED" in text and "\x1b" not in text


def test_interrupted_it_keeps_what_is_done_and_goes_on(tmp_path: Path, own_cache: Path) -> None:
    share(tmp_path / "share", 400)
    command = [sys.executable, "-m", "zcheck", "audit", str(tmp_path / "share"), "-f", "json", "-j", "1"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(own_cache)
    )
    cache = own_cache / "facts.sqlite"
    deadline = time.monotonic() + 60
    while not cache.exists() and time.monotonic() < deadline:  # the first pieces are under way
        time.sleep(0.02)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    if process.returncode != 130:
        pytest.skip("the audit was over before it could be interrupted")
    product = json.loads(out)
    assert product["complete"] is False
    assert "interrupted" in err
    done, left = len(product["applications"]), [s for s in product["skipped"] if "interrupt" in s["reason"]]
    assert done + len(left) == 400
    whole = zcheck(own_cache, "audit", tmp_path / "share", "-f", "json", "-j", 1)
    product = json.loads(whole.stdout)
    assert product["complete"] is True
    assert len(product["applications"]) == 400


def test_a_process_that_dies_costs_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that is killed by what it reads: the piece that does it is told, all others are judged."""
    from audit_deadly import deadly_tasks

    from zcheck.cli import audit_run

    tasks = deadly_tasks(share(tmp_path, 6))
    monkeypatch.setattr(audit_run, "run_bytes", __import__("audit_deadly").run_or_die)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=":")
    results = {result.number: result for result in audit_run.run_processes(tasks, 2, None)}
    assert sorted(results) == list(range(6))
    problems = {number: result.rows[0].problem for number, result in results.items()}
    assert "ended the process" in problems[3]
    assert {problem for number, problem in problems.items() if number != 3} == {""}


def test_an_old_file_of_the_same_name_is_replaced_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    share(tmp_path / "share", 1)
    target = tmp_path / "out.json"
    target.write_text("old" * 10_000)
    old(target)
    audit(capsys, tmp_path / "share", "-j", 1, "-o", f"json={target}")
    assert json.loads(target.read_text(encoding="utf-8"))["schema"] == 1
    assert audit(capsys, tmp_path / "share", "-j", 1, "-o", f"json={tmp_path / 'no' / 'x.json'}")[0] == 2


def test_json_keeps_to_the_schema(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import jsonschema

    from zcheck.cli.app import run

    assert run(["schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    share(tmp_path / "share", 3)
    earlier = tmp_path / "earlier.json"
    audit(capsys, tmp_path / "share", "-j", 1, "-o", f"json={earlier}")
    out = audit(capsys, tmp_path / "share", "-j", 1, "-f", "json", "--since", earlier, "--zluda", "v5")[1]
    for text in (earlier.read_text(encoding="utf-8"), out):
        jsonschema.validate(json.loads(text), {**schema, "anyOf": [{"$ref": "#/$defs/Audit"}]})
    assert json.loads(out)["schema"] == schema["version"]


def test_outputs_that_would_overwrite_something_are_refused_before_the_audit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    share(tmp_path / "share", 1)
    (tmp_path / "old.json").write_text("{}")
    for options in (
        ("-o", f"json={tmp_path / 'x'}", "-o", f"csv={tmp_path / 'x'}"),
        ("-o", f"html={tmp_path / 'pages'}", "-o", f"json={tmp_path / 'pages' / 'index.html'}"),
        ("-o", f"json={tmp_path}"),
        ("-o", f"html={tmp_path / 'old.json'}"),
        ("--since", tmp_path / "old.json", "-o", f"csv={tmp_path / 'old.json'}"),
    ):
        code, out, err = audit(capsys, tmp_path / "share", *options, "-j", 1)
        assert code == 2 and not out and "output" in err, options
    assert (tmp_path / "old.json").read_text() == "{}"


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "cp1251"])
def test_json_stays_json_whatever_the_terminal_takes(tmp_path: Path, own_cache: Path, encoding: str) -> None:
    (tmp_path / "share").mkdir()
    program(tmp_path / "share" / "caf\xe9 \U0001f600.exe")
    for verb in ("audit", "check"):
        done = subprocess.run(
            [sys.executable, "-m", "zcheck", verb, str(tmp_path / "share"), "-f", "json"],
            env=environment(own_cache) | {"PYTHONIOENCODING": encoding},
            capture_output=True,
        )
        assert "caf\xe9 \U0001f600.exe" in json.dumps(json.loads(done.stdout.decode(encoding)), ensure_ascii=False)
