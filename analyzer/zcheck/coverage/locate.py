"""Where the coverage database and the rules are: in the installed package, or beside it in a checkout.

A wheel carries ``zcheck/data/coverage.sqlite`` and ``zcheck/data/rules``; a checkout or editable install has
``coverage_db/`` and ``rules/`` two folders above the package, whose tables are compiled into the user's cache under a
name made of their hash.
"""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
from pathlib import Path
from typing import NamedTuple

from zcheck.coverage.compile import compile_file, compile_tables, tables_hash
from zcheck.errors import DataError

_PACKAGE = Path(__file__).resolve().parents[1]


class Location(NamedTuple):
    """``packaged``: the path is what the wheel carries; else it is the folder of a checkout."""

    path: Path
    packaged: bool


def locate(what: str = "coverage", package: Path = _PACKAGE) -> Location:
    """``coverage``: the compiled file of the wheel or the tables' folder; ``rules``: the folder of rules.

    This is the one function that knows which. Raises DataError when neither is there.
    """
    packaged, beside = {
        "coverage": (package / "data" / "coverage.sqlite", package.parents[1] / "coverage_db"),
        "rules": (package / "data" / "rules", package.parents[1] / "rules"),
    }[what]
    if packaged.exists():
        return Location(packaged, True)
    if beside.is_dir():
        return Location(beside, False)
    raise DataError(f"{packaged} is missing, and so is {beside}: this installation is incomplete")


def cache_folder() -> Path:
    """The user's cache folder for compiled databases (not created here)."""
    import platformdirs

    return platformdirs.user_cache_path("zcheck", appauthor=False) / "coverage"


_KEPT = 4
"""compiled files that stay in the cache: of this state of the tables and of the latest others"""


def _prune(cache: Path, target: Path) -> None:
    """Remove compiled files of older states of the tables; what cannot be removed (in use, not ours) stays."""
    with contextlib.suppress(OSError):
        others = [path for path in cache.glob("*.sqlite") if path != target]
        others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for path in others[_KEPT - 1 :]:
            with contextlib.suppress(OSError):
                path.unlink()


def compiled_file(tables: Path, cache: Path | None = None) -> Path:
    """The compiled form of ``tables`` in the cache, made when it is not there; safe with several processes at once.

    Each process compiles into a file of its own and moves it into place; who comes second finds the first one's.
    Raises OSError when the cache cannot be written.
    """
    cache = cache or cache_folder()
    target = cache / f"{tables_hash(tables)[:32]}.sqlite"
    if target.exists():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".compile-", dir=cache) as folder:
        made = Path(folder) / "coverage.sqlite"
        compile_file(tables, made)
        try:
            made.replace(target)
        except OSError:
            if not target.exists():  # Windows refuses to replace a file that another process has open
                raise
    _prune(cache, target)
    return target


def _read_only(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False)


def _open_cached(tables: Path, cache: Path | None) -> sqlite3.Connection:
    """The compiled file of the cache; one that is damaged, or went while it was opened, is made again once."""
    for _ in range(2):
        path = compiled_file(tables, cache)
        try:
            connection = _read_only(path)
            connection.execute("SELECT value FROM meta LIMIT 1").fetchone()
            return connection
        except sqlite3.DatabaseError:
            path.unlink(missing_ok=True)
    raise OSError(f"{path} cannot be kept")


def open_database(tables: Path | None = None, cache: Path | None = None) -> sqlite3.Connection:
    """A read-only connection to the compiled database of this installation, or of the folder ``tables``.

    Without a writable cache the tables are compiled in memory. Raises DataError when there are none or one is
    malformed.
    """
    location = Location(tables, False) if tables else locate("coverage")
    try:
        if location.packaged:
            return _read_only(location.path)
        # OSError: no writable cache; RuntimeError: no home folder; sqlite3: a full disk
        with contextlib.suppress(OSError, RuntimeError, sqlite3.Error):
            return _open_cached(location.path, cache)
        connection = sqlite3.connect(":memory:", check_same_thread=False)
        compile_tables(location.path, connection)
        return connection
    except sqlite3.Error as error:
        raise DataError(f"{location.path} cannot be opened as the coverage database: {error}") from error
