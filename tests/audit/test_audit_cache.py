"""The cache: facts belong to content and code; damage, kills and several processes cost work, never truth."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from audit_programs import GEMM, environment, old, program

from zcheck.cli import cache_store, cache_version
from zcheck.cli.app import run
from zcheck.cli.cache_store import FactCache, default_path
from zcheck.errors import InputError
from zcheck.model.facts import PeFacts
from zcheck.parse.pe import read_pe


class Reads:
    """Counts how often a file was really read."""

    def __init__(self, cache: FactCache) -> None:
        self.cache, self.count = cache, 0

    def of(self, path: Path) -> PeFacts:
        def make() -> PeFacts:
            self.count += 1
            return read_pe(path)

        return self.cache.file_fact("pe", path, PeFacts, make, path.name)


def test_facts_come_back_equal_and_are_read_once(tmp_path: Path) -> None:
    file = program(tmp_path / "app.exe", GEMM)
    with FactCache(tmp_path / "c" / "facts.sqlite") as cache:
        reads = Reads(cache)
        first = reads.of(file)
        assert reads.of(file) == first
        assert reads.count == 1
    with FactCache(tmp_path / "c" / "facts.sqlite") as cache:
        reads = Reads(cache)
        assert reads.of(file) == first
        assert reads.count == 0


def test_a_copy_elsewhere_is_known_by_its_content(tmp_path: Path) -> None:
    file = program(tmp_path / "a" / "app.exe", GEMM)
    with FactCache(tmp_path / "facts.sqlite") as cache:
        reads = Reads(cache)
        first = reads.of(file)
        assert reads.of(program(tmp_path / "b" / "app.exe", GEMM)) == first
        assert reads.count == 1
        # The name is part of the facts, so a file of another name is another one.
        assert reads.of(program(tmp_path / "b" / "other.exe", GEMM)).name == "other.exe"


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    file = program(tmp_path / "app.exe", GEMM)
    with FactCache(tmp_path / "facts.sqlite") as cache:
        reads = Reads(cache)
        before = reads.of(file)
        file.write_bytes(program(tmp_path / "x.exe").read_bytes())
        os.utime(file, (1_700_000_100, 1_700_000_100))
        assert reads.of(file).imports != before.imports


def test_a_file_changed_in_place_with_its_time_set_back_is_noticed(tmp_path: Path) -> None:
    file = program(tmp_path / "app.exe", GEMM, tail=b"1")
    with FactCache(tmp_path / "facts.sqlite") as cache:
        before = cache.digest(file)
        time.sleep(0.02)
        program(file, GEMM, tail=b"2")
        assert cache.digest(file) != before


def test_a_young_file_is_never_taken_by_its_time(tmp_path: Path) -> None:
    """Same size, same time, other content: possible within one step of the clock, so the content is looked at."""
    file = program(tmp_path / "app.exe", GEMM, tail=b"1")
    now = time.time_ns()
    os.utime(file, ns=(now, now))
    with FactCache(tmp_path / "facts.sqlite") as cache:
        before = cache.digest(file)
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        with file.open("r+b") as handle:
            handle.write(data)
        os.utime(file, ns=(now, now))
        assert cache.digest(file) != before


def test_other_code_makes_other_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    before = FactCache.key("pe", "digest")
    monkeypatch.setattr(cache_store, "code_version", lambda: "another")
    assert FactCache.key("pe", "digest") != before


def test_the_code_version_covers_the_readers() -> None:
    assert {"model", "parse", "resolve", "collect", "coverage"} <= set(cache_version._STAGES)
    assert len(cache_version.code_version()) == 64


def test_what_fails_is_not_kept(tmp_path: Path) -> None:
    file = tmp_path / "app.exe"
    file.write_bytes(b"no program")
    old(file)
    with FactCache(tmp_path / "facts.sqlite") as cache:
        for _ in range(2):
            with pytest.raises(InputError):
                Reads(cache).of(file)


def test_a_damaged_value_is_read_anew(tmp_path: Path) -> None:
    file, path = program(tmp_path / "app.exe", GEMM), tmp_path / "facts.sqlite"
    with FactCache(path) as cache:
        first = Reads(cache).of(file)
    db = sqlite3.connect(path)
    db.execute("UPDATE fact SET value = substr(value, 1, length(value) / 2) || x'00'")
    db.commit()
    db.close()
    with FactCache(path) as cache:
        reads = Reads(cache)
        assert reads.of(file) == first
        assert reads.count == 1


@pytest.mark.parametrize("damage", ["text", "cut", "middle", "layout"])
def test_a_damaged_file_is_begun_anew(tmp_path: Path, damage: str) -> None:
    file, path = program(tmp_path / "app.exe", GEMM), tmp_path / "facts.sqlite"
    with FactCache(path) as cache:
        first = Reads(cache).of(file)
        for number in range(200):
            cache.put(f"x:{number}", os.urandom(3000))
    raw = bytearray(path.read_bytes())
    if damage == "text":
        path.write_bytes(b"this is no database" * 100)
    elif damage == "cut":
        path.write_bytes(raw[: len(raw) // 2])
    elif damage == "middle":
        raw[4096:-4096] = b"\xff" * (len(raw) - 8192)
        path.write_bytes(raw)
    else:
        db = sqlite3.connect(path)
        db.execute("PRAGMA user_version = 99")
        db.close()
    for _ in range(3):  # at the latest the third run has a whole one
        with FactCache(path) as cache:
            assert Reads(cache).of(file) == first
            cache.put("y:1", b"z")
    with FactCache(path) as cache:
        assert cache.usable
        assert cache.get("y:1") == b"z"


def test_a_place_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with FactCache(tmp_path / "file" / "below" / "facts.sqlite") as cache:
        assert not cache.usable
        cache.put("a:b", b"c")
        assert cache.get("a:b") is None
        assert Reads(cache).of(program(tmp_path / "app.exe")).name == "app.exe"


def test_the_bound_holds_and_what_was_used_last_stays(tmp_path: Path) -> None:
    path = tmp_path / "facts.sqlite"
    with FactCache(path, limit=10**9) as cache:
        for number in range(100):
            cache.put(f"x:{number:03}", os.urandom(10_000))
    db = sqlite3.connect(path)
    db.execute("UPDATE fact SET used = CAST(substr(key, 3) AS INTEGER)")  # the higher the number, the later used
    db.commit()
    db.close()
    with FactCache(path, limit=300_000):
        pass
    with FactCache(path, limit=300_000) as cache:
        kept = [number for number in range(100) if cache.get(f"x:{number:03}") is not None]
        assert kept == list(range(100 - len(kept), 100))
        assert 200_000 <= cache.summary()["x"][1] <= 300_000
    assert path.stat().st_size < 600_000  # the file shrinks too


_WRITER = """
import os, sys
from pathlib import Path
from zcheck.cli.cache_store import FactCache
cache = FactCache(Path(sys.argv[1]))
print("ready", flush=True)
number = 0
while number < int(sys.argv[3]):
    cache.put(f"{sys.argv[2]}:{number}", str(number).encode() * 2000)
    number += 1
cache.close()
"""


def _writer(path: Path, kind: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _WRITER, str(path), kind, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment(path.parent))


def test_killed_while_it_writes_it_stays_usable(tmp_path: Path) -> None:
    path = tmp_path / "facts.sqlite"
    for wait in (0.0, 0.05, 0.2):
        process = _writer(path, "k", 10**9)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        with FactCache(path) as cache:
            assert cache.usable
            count = cache.summary().get("k", (0, 0))[0]
            for number in range(count):  # all or nothing of a batch: no hole, no half value
                assert cache.get(f"k:{number}") == str(number).encode() * 2000


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "facts.sqlite"
    processes = [_writer(path, kind, 600) for kind in "abc"]
    for process in processes:
        assert process.stdout is not None
        process.stdout.read()
        assert process.wait() == 0
        process.stdout.close()
    with FactCache(path) as cache:
        assert {kind: count for kind, (count, _) in cache.summary().items()} == {
            "a": 600,
            "b": 600,
            "c": 600,
            "files": 0,
        }


def test_info_and_clear(own_cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = program(tmp_path / "app.exe", GEMM)
    run([str(file)])
    capsys.readouterr()
    assert run(["cache", "info"]) == 0
    shown = capsys.readouterr().out
    assert str(own_cache) in shown and "PE headers" in shown
    assert run(["cache", "clear"]) == 0
    with FactCache(default_path()) as cache:
        assert cache.summary() == {"files": (0, 0)}


def test_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("ZCHECK_CACHE", "off")
    assert default_path() is None
    run([str(program(tmp_path / "app.exe", GEMM))])
    assert run(["cache", "info"]) == 0
    assert "off" in capsys.readouterr().out
