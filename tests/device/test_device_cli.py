"""``zcheck kernels``: what it prints, what it writes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
import zstandard
from fatbin_writer import Entry, Pe, container, cubin, kernel, ptx, wrapper
from typer.testing import CliRunner, Result

from zcheck.cli import kernels_cache
from zcheck.cli.kernels import kernels
from zcheck.cli.kernels_cache import FileCache
from zcheck.errors import ZcheckError

STORE = "st.global.u32 [%rd1], %r1"
app = typer.Typer()
app.command()(kernels)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels_cache, "default_path", lambda: tmp_path / "cache" / "facts.sqlite")


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200", "NO_COLOR": "1"})


def refusal(*arguments: str | Path) -> str:
    result = run(*arguments)
    assert isinstance(result.exception, ZcheckError), result.output
    assert result.exception.exit_code == 2
    return result.exception.message


@pytest.fixture
def program(tmp_path: Path) -> Path:
    pe = Pe()
    texts = ptx(kernel("good", STORE), kernel("bad", STORE, "lop3.b32 %r1,%r1,%r1,%r1,0x3f"), kernel("traps", "trap"))
    entries = [Entry(texts, pack="lz4"), Entry(cubin({"good": 900, "bad": 900, "traps": 900, "lost": 900}), kind=2)]
    address = pe.add(".nv_fatb", container([*entries, Entry(b"BC" * 9, kind=8), Entry(b"?" * 9, kind=77)]))
    pe.add(".nvFatBi", wrapper(address))
    file = tmp_path / "app.exe"
    file.write_bytes(pe.encode())
    return file


def test_text(program: Path) -> None:
    result = run(program, "--zluda", "v4", "--zluda", "v6")
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0] == (
        "app.exe: ZLUDA v4: 0 of 4 kernels predicted loadable, 4 lost with their module; "
        "ZLUDA v6: 1 of 4 kernels predicted loadable, 1 dropped, 1 stub, 1 not to be found"
    )
    assert "  dropped: unknown instruction lop3.b32 (1: bad)" in lines
    assert "  stub: its PTX only traps, beside real machine code (1: traps)" in lines
    assert "  the load fails: v4 takes PTX texts only, no fatbins" in lines
    assert any(line.split()[:4] == ["0.0", "ptx", "sm_80", "8.0"] and line.split()[-1] == "v6" for line in lines)
    assert any("other (77)" in line for line in lines)
    assert any("first run compiles" in line for line in lines)


def test_json_is_the_same_twice_and_counts_add_up(program: Path) -> None:
    first, again = run(program, "--format", "json"), run(program, "--format", "json", "--no-cache")
    assert first.exit_code == 0
    assert first.output == again.output
    document = json.loads(first.output)
    assert document["schema"] == 1
    (report,) = document["device_code"]
    assert (report["module"], report["section"], report["containers"]) == ("app.exe", ".nv_fatb", 1)
    assert [entry["kind"] for entry in report["entries"]] == ["ptx", "sass", "ltoir", "other (77)"]
    replay = report["replay"]["v6"]
    assert (replay["chosen"], replay["kernels"], replay["loadable"]) == (0, 4, 1)
    assert replay["dropped"] == replay["stub"] == replay["empty"] == 1
    assert document["replay"]["v6"]["containers"][0]["fates"][0]["statement"] == "lop3.b32"
    assert document["containers"][0]["entries"][0]["kernels"] == ["good", "bad", "traps"]


@pytest.mark.parametrize("name", ["k.ptx", "k.cubin", "k.fatbin", "k.ptx.zst", "k.fatbin.zst"])
def test_other_files(tmp_path: Path, name: str) -> None:
    contents = {
        "ptx": ptx(kernel("k", STORE)),
        "cubin": cubin({"k": 900}),
        "fatbin": container([Entry(ptx(kernel("k", STORE)))]),
    }
    data = contents[name.split(".")[1]]
    (tmp_path / name).write_bytes(zstandard.ZstdCompressor().compress(data) if name.endswith("zst") else data)
    result = run(tmp_path / name)
    assert result.exit_code == 0, result.output
    loadable = 0 if "cubin" in name else 1
    assert result.output.startswith(f"{name}: ZLUDA v6: {loadable} of 1 kernels predicted loadable")


def test_nothing_there_and_nothing_to_be_seen(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    assert run(tmp_path / "a.txt").output == "a.txt: no device code\n"
    pe = Pe()
    pe.add(".nv_fatb", bytes(range(1, 256)) * 9)
    (tmp_path / "b.dll").write_bytes(pe.encode())
    assert run(tmp_path / "b.dll").output.splitlines()[0] == (
        "b.dll: device code that cannot be read (.nv_fatb compressed as a whole)"
    )


def test_hardware_notes(program: Path, tmp_path: Path) -> None:
    fetch = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1}, {%r1}, {%r2}, {%f1}"
    (tmp_path / "k.ptx").write_bytes(ptx(".extern .shared .b8 d[];", kernel("k", STORE, fetch)))
    output = run(tmp_path / "k.ptx", "--gpu", "gfx1100").output
    assert "WMMA" in output
    assert "64 KiB" in output
    assert "software" in run(tmp_path / "k.ptx", "--gpu", "gfx1030").output
    assert "is no GPU that is known" in refusal(program, "--gpu", "gfx9999")


def test_names_cannot_speak_to_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "k.cubin").write_bytes(cubin({"\x1b[2Jwiped[red]": 900}))
    output = run(tmp_path / "k.cubin").output
    assert "\x1b" not in output
    assert r"\x1b[2Jwiped[red]" in output


def test_refusals(program: Path, tmp_path: Path) -> None:
    assert "is no file" in refusal(tmp_path / "absent.dll")
    assert "is no file" in refusal(tmp_path)
    assert "did you mean v6" in refusal(program, "--zluda", "v66")


def test_extract(program: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out" / "deep"
    result = run(program, "--extract", folder)
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in folder.iterdir()) == ["00000-000-sm_80.ptx", "00000-001-sm_80.cubin"]
    assert (folder / "00000-000-sm_80.ptx").read_bytes().startswith(b".version 8.0")
    assert (
        run(folder / "00000-000-sm_80.ptx").output.splitlines()[0].startswith("00000-000-sm_80.ptx: ZLUDA v6: 1 of 3")
    )
    assert "2 files written" in result.output


def test_extract_overwrites_nothing(program: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "00000-001-sm_80.cubin").write_bytes(b"mine")
    assert "is there already; nothing was written" in refusal(program, "--extract", folder)
    assert [path.name for path in folder.iterdir()] == ["00000-001-sm_80.cubin"]
    assert (folder / "00000-001-sm_80.cubin").read_bytes() == b"mine"
    # A link to somewhere else is something that is there, even when it leads nowhere.
    (folder / "00000-001-sm_80.cubin").unlink()
    (folder / "00000-000-sm_80.ptx").symlink_to(tmp_path / "elsewhere")
    assert "is there already" in refusal(program, "--extract", folder)
    assert not (tmp_path / "elsewhere").exists()
    assert "cannot be written to" in refusal(program, "--extract", program / "below")


def test_extract_stays_inside(tmp_path: Path) -> None:
    """Neither identifier nor target reaches a file name."""
    evil = Entry(ptx(kernel("k", STORE)).replace(b"sm_80", b"../../x"), identifier=b"../../../evil")
    (tmp_path / "a.fatbin").write_bytes(container([evil]))
    (tmp_path / "b.ptx").write_bytes(ptx(kernel("k", STORE)).replace(b"sm_80", b"sm_80/../../x"))
    for name in ("a.fatbin", "b.ptx"):
        folder = tmp_path / f"out-{name}"
        assert run(tmp_path / name, "--extract", folder).exit_code == 0
        assert [path.parent for path in folder.rglob("*")] == [folder]
    assert not list(tmp_path.glob("*evil*"))


def test_cache_that_cannot_be_used_is_no_error(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.sqlite").write_bytes(b"this is no database" * 99)
    for path in (tmp_path / "broken.sqlite", program / "below.sqlite"):
        monkeypatch.setattr(kernels_cache, "default_path", lambda path=path: path)
        assert run(program).exit_code == 0


def test_cache_keeps(tmp_path: Path) -> None:
    with FileCache(tmp_path / "a" / "facts.sqlite") as cache:
        assert cache.get("k") is None
        cache.put("k", b"v")
    with FileCache(tmp_path / "a" / "facts.sqlite") as cache:
        assert cache.get("k") == b"v"
