"""Whatever lies on a disk: one sentence or facts with problems, no other exception, never all of it in memory."""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pe_builder import build
from zcheck.errors import ZcheckError
from zcheck.model.facts import PeFacts
from zcheck.parse.pe import is_pe, read_pe
from zcheck.parse.signature import signer

SAMPLE = build(
    imports={"KERNEL32.dll": ["Sleep", 3], "cublas64_12.dll": ["cublasCreate_v2", "cublasGemmEx"]},
    delay={"cufft64_11.dll": ["cufftExecC2C"]},
    exports=["one", ("two", "KERNEL32.Sleep"), (None, None)],
    version={"040904b0": {"CompanyName": "Example Ltd", "FileVersion": "1.2"}},
    fixed=(1, 2, 3, 4),
    manifest=b"<assembly><dependency/></assembly>",
    clr_flags=1,
    sections=[(".text", bytes(range(256)) * 20, True)],
    overlay=b"tail of the file",
)


def read(path: Path) -> str:
    """The sentence of the error, or nothing when there are facts."""
    try:
        facts = read_pe(path)
    except ZcheckError as error:
        assert error.exit_code == 2 and "\n" not in error.message and len(error.message) < 300
        return error.message
    assert facts.size == path.stat().st_size
    return ""


def peak() -> int:
    """Highest memory use of this process so far, in KiB."""
    resource = pytest.importorskip("resource", reason="Windows does not count it this way")
    used: int = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used // 1024 if sys.platform == "darwin" else used


def test_empty(tmp_path: Path) -> None:
    path = tmp_path / "empty.exe"
    path.write_bytes(b"")
    assert read(path) == "empty.exe is not a Windows program: it is empty"


@pytest.mark.parametrize("raw", [b"M", b"MZ", b"PK\x03\x04", b"\x7fELF" + bytes(100), b"MZ" + bytes(62), b"MZ" * 400])
def test_not_a_pe(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "odd.exe"
    path.write_bytes(raw)
    assert read(path).startswith("odd.exe is not a Windows program: ")
    assert not is_pe(path)


def test_cut_at_every_64th_byte(tmp_path: Path) -> None:
    path = tmp_path / "cut.exe"
    told = 0
    for end in range(0, len(SAMPLE), 64):
        path.write_bytes(SAMPLE[:end])
        if not read(path):
            facts = read_pe(path)
            told += facts.partial
            assert facts.partial or facts.imports == read_whole(tmp_path).imports
    assert told > 20


def read_whole(tmp_path: Path) -> PeFacts:
    path = tmp_path / "whole.exe"
    path.write_bytes(SAMPLE)
    return read_pe(path)


def test_folder_missing_file_and_dead_link(tmp_path: Path) -> None:
    assert read(tmp_path) == f"{tmp_path.name} is a folder, not a file"
    assert read(tmp_path / "no.exe") == "no.exe cannot be read: No such file or directory"
    loop = tmp_path / "loop.exe"
    loop.symlink_to(loop)
    assert read(loop).startswith("loop.exe cannot be read: ")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names on this system")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.exe")
    assert read(tmp_path / "pipe.exe") == "pipe.exe is not a regular file"


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret.exe"
    path.write_bytes(SAMPLE)
    if getattr(os, "geteuid", lambda: 1)() == 0 or sys.platform == "win32":  # root may read everything

        def refuse(*_: object, **__: object) -> int:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(os, "open", refuse)
    else:
        path.chmod(0)
    assert read(path) == "secret.exe cannot be read: Permission denied"


@pytest.mark.parametrize(
    ("name", "seen"), [("gpj\u202eexe.exe", "gpj\\u202eexe.exe"), ("a\nb\x1b[31m.exe", "a\\u000ab\\u001b[31m.exe")]
)
def test_names_that_fool_a_reader(tmp_path: Path, name: str, seen: str) -> None:
    path = tmp_path / name
    try:
        path.write_bytes(b"no program")
    except OSError:
        pytest.skip("the file system does not allow the name")
    assert read(path).startswith(f"{seen} is not a Windows program")
    path.write_bytes(SAMPLE)
    assert read(path) == ""


@pytest.mark.skipif(sys.platform != "linux", reason="names that are not Unicode exist on Linux only")
def test_name_that_is_not_unicode(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.exe"))
    path.write_bytes(SAMPLE)
    assert read_pe(path).name == "caf\\xe9.exe"


def test_a_sparse_file_of_4_gib_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.exe"
    with path.open("wb") as file:
        file.truncate(4 << 30)
    assert read(path) == "huge.exe is not a Windows program: it does not begin with the letters MZ"
    assert signer(path) is None
    with path.open("r+b") as file:
        file.write(SAMPLE)
    before = peak()
    facts = read_pe(path)
    assert facts.imports and facts.overlay_size > 3 << 30
    assert peak() - before < 100_000


def test_a_header_that_claims_gigabytes(tmp_path: Path) -> None:
    """pefile copies what lies before the first section; here that would be 2 GiB."""
    raw = bytearray(SAMPLE)
    table = raw.index(b".rdata\0\0")
    for section in (0, 1):
        struct.pack_into("<I", raw, table + 40 * section + 20, 2 << 30)
    path = tmp_path / "far.exe"
    with path.open("wb") as file:
        file.write(raw)
        file.truncate((2 << 30) + 65_536)
    before = peak()
    assert read(path) == ""
    assert peak() - before < 100_000


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    changes=st.lists(st.tuples(st.integers(0, len(SAMPLE) - 1), st.integers(0, 255)), min_size=1, max_size=12),
    end=st.integers(64, len(SAMPLE)),
)
def test_changed_bytes_never_raise(tmp_path: Path, changes: list[tuple[int, int]], end: int) -> None:
    raw = bytearray(SAMPLE)
    for at, value in changes:
        raw[at] = value
    path = tmp_path / "changed.exe"
    path.write_bytes(raw[:end])
    read(path)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    changes=st.lists(
        st.tuples(st.integers(64, 1024), st.sampled_from([0, 1, 0x1000, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF])),
        min_size=1,
        max_size=6,
    )
)
def test_changed_header_words_never_raise(tmp_path: Path, changes: list[tuple[int, int]]) -> None:
    raw = bytearray(SAMPLE)
    for at, value in changes:
        struct.pack_into("<I", raw, at & ~3, value)
    path = tmp_path / "changed.exe"
    path.write_bytes(raw)
    read(path)
