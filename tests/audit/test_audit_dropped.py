"""Drag and drop: told from a command line, and the window stays whatever happens."""

from __future__ import annotations

from pathlib import Path

import pytest
from audit_programs import GEMM, program

from zcheck.cli.app import run
from zcheck.cli.dropped import main, own_window, report_file, run_dropped, wants_window
from zcheck.cli.paths import long_path, plain_path


@pytest.mark.parametrize(
    ("console", "own"),
    [
        ([r"C:\Tools\zcheck.exe"], True),
        ([r"C:\Tools\zcheck-0.1.0-win64.exe", r"C:\Tools\zcheck-0.1.0-win64.exe"], True),
        ([r"C:\venv\Scripts\zcheck.exe", r"C:\venv\Scripts\python.exe", r"C:\Python311\python.exe"], True),
        ([r"C:\Windows\py.exe", r"C:\Python311\python3.11.exe"], True),
        ([r"C:\Windows\System32\cmd.exe", r"C:\Python311\python.exe"], False),
        ([r"C:\Program Files\PowerShell\7\pwsh.exe", r"C:\Tools\zcheck.exe"], False),
        (["unknown", r"C:\Tools\zcheck.exe"], False),
        ([], False),
    ],
)
def test_whose_window_it_is(console: list[str], own: bool) -> None:
    assert own_window(console) is own


def test_a_renamed_program_knows_itself() -> None:
    assert own_window([r"C:\Tools\check my card.exe"], r"C:\Tools\check my card.exe")


def test_what_explorer_passes(tmp_path: Path) -> None:
    file = program(tmp_path / "a b.exe")
    assert wants_window([]) and wants_window([str(file)]) and wants_window([str(file), str(tmp_path)])
    assert not wants_window(["check", str(file)])
    assert not wants_window(["--help"])
    assert not wants_window(["host"])
    assert not wants_window([str(tmp_path / "gone.exe")])
    assert not wants_window(["\0"])


def test_the_report_is_written_shown_and_waited_for(tmp_path: Path) -> None:
    file = program(tmp_path / "my app.exe", GEMM)
    shown: list[Path] = []
    waited: list[str] = []
    assert run_dropped([str(file)], run, shown.append, waited.append, tmp_path / "reports") == 0
    assert shown == [tmp_path / "reports" / "my-app.exe.html"]
    assert shown[0].read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert len(waited) == 1


def test_the_window_stays_when_nothing_can_be_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.exe"
    bad.write_bytes(b"nothing")
    shown: list[Path] = []
    waited: list[str] = []
    assert run_dropped([str(bad)], run, shown.append, waited.append, tmp_path / "reports") == 2
    assert shown == [] and len(waited) == 1
    assert "bad.exe" in capsys.readouterr().err
    (tmp_path / "file").write_bytes(b"")
    good = program(tmp_path / "good.exe", GEMM)
    assert run_dropped([str(good)], run, shown.append, waited.append, tmp_path / "file") == 0
    assert shown == [] and len(waited) == 2


def test_even_a_fault_waits(tmp_path: Path) -> None:
    def fail(arguments: object) -> int:
        raise RuntimeError("fault")

    waited: list[str] = []
    with pytest.raises(RuntimeError):
        run_dropped([str(tmp_path)], fail, lambda file: None, waited.append, tmp_path)
    assert len(waited) == 1


def test_not_on_other_systems(tmp_path: Path) -> None:
    assert main([str(tmp_path)]) is None


def test_report_names_are_safe(tmp_path: Path) -> None:
    assert report_file(Path("C:/x/con: *?.exe"), tmp_path).name == "con-.exe.html"
    assert report_file(Path("/"), tmp_path).name == "report.html"


def test_long_paths() -> None:
    deep = "C:\\" + "\\".join(["folder"] * 50)
    assert long_path(deep, windows=True) == "\\\\?\\" + deep
    assert long_path("\\\\server\\share\\" + "x" * 300, windows=True) == "\\\\?\\UNC\\server\\share\\" + "x" * 300
    assert long_path("C:\\short", windows=True) == "C:\\short"
    assert long_path("\\\\?\\" + deep, windows=True) == "\\\\?\\" + deep
    assert long_path("/" + "x" * 300, windows=False) == "/" + "x" * 300
    for path in (deep, "\\\\server\\share\\" + "x" * 300):
        assert plain_path(long_path(path, windows=True)) == path
