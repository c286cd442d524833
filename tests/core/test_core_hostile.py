"""What people and programs hand to zcheck by mistake or ill will: it refuses in one sentence, or reads past it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import zcheck
from zcheck.cli.output import outputs_of, save, spare_inputs
from zcheck.cli.saved import read_saved
from zcheck.errors import DataError, InputError, UsageError, ZcheckError
from zcheck.match.loader import load_rules
from zcheck.model.evidence import DeviceCode, Use, line, parse_line
from zcheck.model.report import Report
from zcheck.render import RenderOptions

posix = pytest.mark.skipif(os.name != "posix", reason="pipes and devices of POSIX")

RULE = """id: A-B-C
title: t
area: a
severity: note
when: {when}
explain: "{explain}"
fix: ["x"]
examples:
  - {{name: n, given: "entry a.exe imports nvcuda.dll!cuInit", expect: match}}
  - {{name: m, given: "entry a.exe imports cublas64_12.dll!cublasSgemm_v2", expect: no-match}}
"""
WHEN = "{function: {name: cuInit}}"


def _rules(folder: Path, when: str = WHEN, explain: str = "x", extra: str = "") -> Path:
    (folder / "r.yaml").write_text(RULE.format(when=when, explain=explain) + extra, encoding="utf-8")
    return folder


def test_the_plain_rule_of_these_tests_is_read(tmp_path: Path) -> None:
    assert [rule.id for rule in load_rules(_rules(tmp_path))] == ["A-B-C"]


@pytest.mark.parametrize(
    ("when", "explain", "extra"),
    [
        ("&a {all: [*a]}", "x", ""),
        (WHEN, "x", "refs: [&a [b, b], &c [*a, *a], &d [*c, *c]]\n"),
        (WHEN, "x", "? [a, b]\n: c\n"),
        (WHEN, "x", "refs: [2024-99-99]\n"),
        (WHEN, "x", 'refs: [!!int "x"]\n'),
        ("{workload: {gemm: 5}}", "x", ""),
        ("{workload: {}}", "x", ""),
        ("{function: {state: retuns-error}}", "x", ""),
        ("{library: {provision: repleced}}", "x", ""),
        ("{device_code: {has: [kernals]}}", "x", ""),
        ("{module: {machine: x32}}", "x", ""),
        (WHEN, "{module:>9999999999}", ""),
        (WHEN, "{module!x}", ""),
        (WHEN, "{module:d}", ""),
        ("{not: " * 3000 + WHEN + "}" * 3000, "x", ""),
    ],
)
def test_a_bad_rule_is_a_data_error_naming_the_file(tmp_path: Path, when: str, explain: str, extra: str) -> None:
    with pytest.raises(DataError, match=r"^r\.yaml"):
        load_rules(_rules(tmp_path, when, explain, extra))


@posix
def test_no_input_waits_for_a_pipe_or_reads_a_device(tmp_path: Path) -> None:
    pipe = tmp_path / "r.yaml"
    os.mkfifo(pipe)
    with pytest.raises(DataError, match="regular"):
        load_rules(tmp_path)
    for path in (pipe, Path("/dev/zero")):
        with pytest.raises(InputError, match="regular"):
            read_saved(path)


def test_a_report_of_another_schema_says_so(tmp_path: Path) -> None:
    saved = tmp_path / "r.json"
    saved.write_text(json.dumps({"schema": 7, "zcheck": "9.9", "news": []}), encoding="utf-8")
    with pytest.raises(DataError, match=r"schema 7, written by zcheck 9\.9"):
        read_saved(saved)


def test_a_byte_order_mark_before_saved_evidence_is_read_past(tmp_path: Path) -> None:
    saved = tmp_path / "e.txt"
    saved.write_bytes(b"\xef\xbb\xbfentry a.exe imports nvcuda.dll!cuInit\r\n")
    assert read_saved(saved)[0][0].evidence.target == "a.exe"


@pytest.mark.parametrize("number", ["\u00b2", "\u0663", "9" * 5000, "--1", "-", "1e3"])
def test_what_is_no_number_is_a_data_error(number: str) -> None:
    with pytest.raises(DataError):
        parse_line(f"device-code a.exe; kernels {number}")


@given(st.text(st.characters(codec=None, exclude_categories=[]), min_size=1), st.text())
def test_a_record_is_one_line_of_utf8_whatever_its_names_hold(name: str, function: str) -> None:
    use = Use(role="entry", module=name, kind="import", dll=name, function=function)
    text = line(use)
    assert len(text.splitlines()) == 1
    text.encode("utf-8")
    assert parse_line(text) == use
    code = DeviceCode(module=name, kernels=3)
    assert parse_line(line(code)) == code


# --- output ---------------------------------------------------------------------------------------------------------


def _report(name: str = "a.exe") -> Report:
    return Report(
        schema=1, zcheck="0", database="d", target=name, entries=(name,), stacks=(), modules=(), edges=(), functions=(),
        device_code=(), host=None, skipped=(),
    )  # fmt: skip


PLAIN = RenderOptions()


@pytest.mark.parametrize("name", [".", "..", "/"])
def test_an_output_that_is_a_folder_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="folder"):
        outputs_of([f"json={name}"])


def test_outputs_overwrite_neither_one_another_nor_the_program(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    with pytest.raises(UsageError, match="twice"):
        outputs_of([f"json={tmp_path / 'a'}", f"html={tmp_path / 'sub' / '..' / 'a'}"])
    program = tmp_path / "a.exe"
    program.write_bytes(b"MZ")
    with pytest.raises(UsageError, match="overwrite"):
        spare_inputs(outputs_of([f"json={program}"]), program)


@posix
def test_an_output_that_is_a_link_or_a_device_stays_one(tmp_path: Path) -> None:
    real, link, pipe = tmp_path / "real.json", tmp_path / "link.json", tmp_path / "null"
    real.write_text("old", encoding="utf-8")
    link.symlink_to(real)
    pipe.symlink_to("/dev/null")
    save(_report(), [("json", link), ("json", pipe)], PLAIN)
    assert link.is_symlink() and json.loads(real.read_text(encoding="utf-8"))["target"] == "a.exe"
    assert pipe.is_symlink() and Path("/dev/null").is_char_device()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.json", "null", "real.json"]


def test_half_a_character_in_a_name_does_not_stop_a_report_halfway(tmp_path: Path) -> None:
    target = tmp_path / "r.md"
    save(_report("a\ud800.exe"), [("markdown", target)], PLAIN)
    target.read_text(encoding="utf-8")


@posix
def test_an_output_without_room_leaves_no_part_and_says_so() -> None:
    with pytest.raises(ZcheckError, match="cannot be written"):
        save(_report(), [("json", Path("/dev/full"))], PLAIN)
    assert Path("/dev/full").is_char_device()


@posix
@pytest.mark.parametrize("arguments", [["--version"], ["rules", "list"], ["schema"]])
def test_a_full_or_closed_stdout_is_told_in_one_sentence(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "zcheck", *arguments]
    env = {**os.environ, "PYTHONPATH": str(Path(zcheck.__file__).parents[1])}
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=env)
    assert done.returncode == 2
    assert done.stderr.startswith("zcheck: the output cannot be written") and len(done.stderr.splitlines()) == 1
    closed = subprocess.run(
        ["sh", "-c", '"$@" >&-', "sh", *command], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        check=False, env=env,
    )  # fmt: skip
    assert (closed.returncode, closed.stderr) == (0, "")


def test_an_empty_name_is_not_the_folder_one_is_in() -> None:
    from zcheck.cli.app import run

    assert run([""]) == 2


@pytest.mark.parametrize("text", ["env: &a {x: *a}", "os_build: 2024-99-99", "adapters: 5", "[" * 5000])
def test_a_bad_host_file_is_a_data_error_naming_it(tmp_path: Path, text: str) -> None:
    from zcheck.cli.host import find_host

    (tmp_path / "host.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"host\.yaml"):
        find_host(root=tmp_path)
