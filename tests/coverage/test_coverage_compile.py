"""Compiling the tables: the same bytes each time, safe with several processes, clear about malformed tables."""

from __future__ import annotations

import multiprocessing
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zcheck.coverage.compile import compile_file, format_ranges, parse_ranges, table_files, tables_hash
from zcheck.coverage.database import Database
from zcheck.coverage.locate import compiled_file, locate, open_database
from zcheck.coverage.tables import FUNCTIONS, PLAIN, READINGS, SPREAD
from zcheck.errors import DataError


@pytest.fixture
def copy(tables: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tables, tmp_path / "tables"))


def test_same_tables_same_bytes(tables: Path, copy: Path, tmp_path: Path) -> None:
    """Neither the folder's place nor the order of its directory entries nor the hour shows in the file."""
    compile_file(tables, tmp_path / "a.sqlite")
    compile_file(copy, tmp_path / "b.sqlite")
    assert (tmp_path / "a.sqlite").read_bytes() == (tmp_path / "b.sqlite").read_bytes()


def test_hash_sees_every_change(copy: Path) -> None:
    before = tables_hash(copy)
    with open(copy / "zluda/aliases.csv", "a") as file:
        file.write("newest,v6,a test\n")
    changed = tables_hash(copy)
    (copy / "zluda/aliases.csv").rename(copy / "zluda/alias.csv")
    assert len({before, changed, tables_hash(copy)}) == 3


def test_every_table_file_is_compiled(tables: Path) -> None:
    """A table that is written but not listed would be a fact that no verdict sees."""
    listed = {table.path for table in PLAIN} | {path for path, _, _ in SPREAD} | {FUNCTIONS, READINGS}
    assert {path.relative_to(tables).as_posix() for path in table_files(tables) if path.suffix == ".csv"} == listed


def test_an_alias_is_a_row(copy: Path, tmp_path: Path) -> None:
    with open(copy / "zluda/aliases.csv", "a") as file:
        file.write("mine,v6-preview.55,a test\n")
    assert Database.open(copy, tmp_path / "cache").resolve_release("mine").tag == "v6-preview.55"


def _compile(arguments: tuple[Path, Path]) -> tuple[str, int]:
    path = compiled_file(*arguments)
    connection = sqlite3.connect(path)
    (number,) = connection.execute("SELECT count(*) FROM function_state").fetchone()
    connection.close()
    return path.name, number


def test_several_processes_compile_at_once(tables: Path, tmp_path: Path) -> None:
    """Each gets a whole database, and only the finished file stays in the cache."""
    cache = tmp_path / "cache"
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        found = set(pool.map(_compile, [(tables, cache)] * 4))
    assert len(found) == 1
    assert [path.name for path in cache.iterdir()] == [next(iter(found))[0]]


def test_cache_does_not_grow_for_ever(copy: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    for number in range(6):
        (cache / f"old{number}.sqlite").write_text("an older state")
    (cache / "other.txt").write_text("not ours")
    made = compiled_file(copy, cache)
    assert len(list(cache.glob("*.sqlite"))) == 4
    assert made.exists() and (cache / "other.txt").exists()


@pytest.mark.parametrize("damage", [b"", b"no database", b"SQLite format 3\x00" + bytes(100)])
def test_a_damaged_cache_is_made_again(copy: Path, tmp_path: Path, damage: bytes) -> None:
    target = compiled_file(copy, tmp_path / "cache")
    target.write_bytes(damage)
    assert Database.open(copy, tmp_path / "cache").resolve_release("v6").order == 157
    assert target.stat().st_size > 1_000_000


def test_without_a_writable_cache_it_works_in_memory(tables: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    database = Database(open_database(tables, blocked))
    assert database.resolve_release("v6").order == 157


def test_connection_is_read_only(database: Database) -> None:
    with pytest.raises(sqlite3.OperationalError):
        database.query("DELETE FROM release")


def test_locate_prefers_the_package(tmp_path: Path) -> None:
    package = tmp_path / "root" / "analyzer" / "zcheck"
    package.mkdir(parents=True)
    for what in ("coverage", "rules"):
        with pytest.raises(DataError, match="incomplete"):
            locate(what, package)
    (tmp_path / "root" / "coverage_db").mkdir()
    (tmp_path / "root" / "rules").mkdir()
    assert locate("coverage", package) == (tmp_path / "root" / "coverage_db", False)
    assert locate("rules", package) == (tmp_path / "root" / "rules", False)
    (package / "data" / "rules").mkdir(parents=True)
    (package / "data" / "coverage.sqlite").touch()
    assert locate("coverage", package) == (package / "data" / "coverage.sqlite", True)
    assert locate("rules", package) == (package / "data" / "rules", True)


def test_compiler_needs_the_standard_library_only(tables: Path, tmp_path: Path) -> None:
    """The build of the wheel runs it where nothing is installed: -I -S hides every installed package.

    As in the build hook, the package's own imports are not run.
    """
    package = Path(__file__).resolve().parents[2] / "analyzer" / "zcheck"
    script = (
        "import sys, types\nfrom pathlib import Path\n"
        f"for name, folder in (('zcheck', {str(package)!r}), ('zcheck.coverage', {str(package / 'coverage')!r})):\n"
        "    sys.modules[name] = types.ModuleType(name); sys.modules[name].__path__ = [folder]\n"
        "from zcheck.coverage.compile import compile_file\n"
        f"compile_file(Path({str(tables)!r}), Path({str(tmp_path / 'out.sqlite')!r}))\n"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    compile_file(tables, tmp_path / "again.sqlite")
    assert (tmp_path / "out.sqlite").read_bytes() == (tmp_path / "again.sqlite").read_bytes()


BROKEN = [
    ("zluda/functions.csv", "library,name,state,since,until\ncublas,f,works,v6,\n", "unknown state"),
    ("zluda/functions.csv", "library,name,state,since,until\ncublas,f,implemented,v66,\n", "unknown state or release"),
    ("zluda/functions.csv", "library,name,state\ncublas,f,implemented\n", "line 1"),
    ("zluda/functions.csv", "library,name,state,since,until\ncublas,f,implemented,v6\n", "line 2: 4 fields where 5"),
    ("zluda/readings.csv", "library,name,releases,state,limit,source\ncublas,f,v6,fine,,\n", "unknown state 'fine'"),
    ("zluda/readings.csv", "library,name,releases,state,limit,source\ncublas,f,v66,partial,,\n", "'v66'"),
    ("cuda/exports.csv", "library,function,files\ncublas,f,one\n", "no list of numbers"),
    ("hip/gpus.csv", "", "line 1"),
    ("hip/gpus.csv", "a,a\n", "line 1"),
    ("hip/gpus.csv", "a;drop table\n", "line 1"),
    ("hip/gpus.csv", b"gfx\n\xff\n", "gpus.csv"),
]


@pytest.mark.parametrize(("path", "text", "says"), BROKEN)
def test_malformed_tables_are_named(copy: Path, path: str, text: str | bytes, says: str) -> None:
    (copy / path).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DataError) as caught:
        open_database(copy, copy.parent / "cache")
    assert path in caught.value.message.replace("\\", "/") and says in caught.value.message
    assert not list((copy.parent / "cache").glob("*.sqlite"))


def test_a_missing_table_is_named(copy: Path) -> None:
    (copy / "hip/gpus.csv").unlink()
    with pytest.raises(DataError, match=r"gpus\.csv"):
        open_database(copy, copy.parent / "cache")


@given(st.sets(st.integers(0, 300)))
def test_ranges_come_back(numbers: set[int]) -> None:
    assert parse_ranges(format_ranges(numbers)) == sorted(numbers)
