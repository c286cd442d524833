"""The verbs that print no report wrap as it does: explain, db, host, kernels."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from zcheck.cli.app import run
from zcheck.model.host import Host, HostCheck

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("COLUMNS", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(importlib.import_module("zcheck.cli.kernels_cache"), "default_path", lambda: tmp_path / "facts")


def said(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    assert run([str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out


def lost(folder: Path, count: int) -> Path:
    """A PTX text of kernels that a release loses for one cause, with long names."""
    body = "{\n .reg .b32 %r<9>;\n lop3.b32 %r1,%r1,%r1,%r1,0x3f;\n st.global.u32 [%rd1], %r1;\n ret;\n}\n"
    kernels = [f".visible .entry {'lost_' * 30}{number:03}(){body}" for number in range(count)]
    file = folder / "lost.ptx"
    file.write_text(".version 9.9\n.target sm_52\n.address_size 32\n" + "".join(kernels), encoding="ascii")
    return file


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize(
    "arguments",
    [
        ("explain", "DNN-CONV-NO-MIOPEN"),
        ("explain", "cublasGemmEx"),
        ("explain", "cudaMemcpy2DAsync"),
        ("db", "show", "cublasGemmEx"),
        ("db", "releases"),
        ("db", "coverage"),
        ("kernels", "lost.ptx"),
        ("kernels", "lost.ptx", "--verbose"),
        ("host", "pc.json"),
    ],
)
def test_no_line_is_wider_than_asked(
    width: int,
    arguments: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    import msgspec

    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.chdir(tmp_path)
    lost(tmp_path, 30)
    check = HostCheck(
        level="MISS", key="hip", subject="hip", value="6.4", text="no HIP SDK " * 30, fix=("get it " * 30,)
    )
    Path("pc.json").write_bytes(msgspec.json.encode(Host(checks=(check,))))
    if arguments[0] == "db":
        monkeypatch.setenv("FORCE_COLOR", "1")  # as at a terminal; in a pipe it is for machines
    lines = said(capsys, *arguments).splitlines()
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]
    assert max(map(len, lines)) <= width and not any("\t" in line for line in lines)


@pytest.mark.parametrize("name", ["cublasGemmEx", "cudaMemcpy2DAsync"])
def test_a_function_is_explained_to_people_in_a_pipe_too(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "explain", name)
    assert "\t" not in text and max(map(len, text.splitlines())) <= 100
    assert text.splitlines()[0] == name


def test_machines_get_a_record_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert "cublas\tv6-preview.1 to now\tpartial\t" in said(capsys, "db", "show", "cublasGemmEx")
    assert "\nv6\t" in said(capsys, "db", "releases")


@pytest.mark.parametrize("name", ["cublasGemmEx", "cudaMemcpy2DAsync", "cuGraphicsD3D11RegisterResource"])
def test_wrapping_loses_no_word(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    whole = said(capsys, "db", "show", name)
    monkeypatch.setenv("COLUMNS", "60")
    narrow = "".join(said(capsys, "explain", name).split())
    for word in whole.split("\n", 2)[2].split():
        assert word.rstrip(";,") in narrow


def test_all_kernels_that_are_lost_can_be_read(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = lost(tmp_path, 30)
    short, full = said(capsys, "kernels", file), said(capsys, "kernels", file, "--verbose")
    names = [f"{'lost_' * 30}{number:03}" for number in range(30)]
    assert "and 26 more" in " ".join(short.split()) and "all of them by name with --verbose" in short
    assert all(name in "".join(full.split()) for name in names) and "more" not in full
    assert sum(name in "".join(short.split()) for name in names) < 30
