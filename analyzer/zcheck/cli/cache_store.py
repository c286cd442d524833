"""Facts of files kept between runs, in one SQLite file of the user's cache folder.

What a file holds is told by its SHA-256. A quick key (path, size, times, inode) spares reading a file again
to hash it; where that key says too little (a file system without inodes, a file changed moments ago) the hash is taken
again. Every key carries the version of the code and tables that the facts come from, so an old fact is never taken for
a new one. Writes go in short transactions under WAL: several processes may share the file, and one that is killed
loses only what it had not written. A cache that cannot be opened, read or written is no error: the work is done again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import msgspec

from zcheck.cli.cache_values import MAX_VALUE, hash_file, pack, unpack
from zcheck.cli.cache_version import code_version

MAX_BYTES = 1024 * 1024 * 1024
"""bytes of values kept; the ones used longest ago go first"""
MAX_STAMPS = 2_000_000
"""quick keys kept"""
_SCHEMA = 1
_RECENT_NS = 2_000_000_000
"""file systems tell times in steps of up to two seconds (FAT), so a younger file may change without a new time"""
_BATCH, _BATCH_BYTES, _BATCH_SECONDS = 256, 8 * 1024 * 1024, 2.0
_DAY = 86_400
_Stamp = tuple[int, int, int, int, str]
"""size, modification time, inode, time of the last change of any kind (POSIX; elsewhere of creation), digest"""
T = TypeVar("T")


def default_path() -> Path | None:
    """The file in the user's cache folder or in the folder ``ZCHECK_CACHE``; None when that is ``off``."""
    asked = os.environ.get("ZCHECK_CACHE", "").strip()
    if asked.lower() in ("off", "no", "0", "false"):
        return None
    if asked:
        return Path(asked) / "facts.sqlite"
    import platformdirs

    return platformdirs.user_cache_path("zcheck", appauthor=False) / "facts.sqlite"


class FactCache:
    """A cache in a file, or none at all (``path`` None); use it as a context manager. Also a ``ContentCache``."""

    def __init__(self, path: Path | None, limit: int = MAX_BYTES) -> None:
        self.path = path
        self.limit = limit
        self.hits = self.misses = 0
        self._db: sqlite3.Connection | None = None
        self._new: dict[str, bytes] = {}
        self._new_bytes = 0
        self._stamps: dict[str, _Stamp] = {}
        self._known: dict[str, _Stamp] = {}
        self._touched: set[str] = set()
        self._recorded: dict[str, bytes] | None = None
        self._written = time.monotonic()
        if path is not None:
            self._open(path)

    # --- what readers ask ----------------------------------------------------------------------------------------

    def file_fact(self, kind: str, path: Path, form: type[T], make: Callable[[], T], *variant: str) -> T:
        """The fact of this ``kind`` about a file: the kept one, else what ``make`` returns, which is then kept.

        ``variant``: everything beside the file's bytes and the code that the fact depends on (its name, an option).
        Whatever ``make`` raises is passed on and not kept.
        """
        digest = self.digest(path)
        if digest is None:
            return make()
        key = self.key(kind, digest, *variant)
        found = self.value(key, form)
        if found is not None:
            return found
        made = make()
        if self.digest(path) == digest:  # not when it changed while it was read
            self.put_value(key, made)
        return made

    @staticmethod
    def key(kind: str, *parts: str) -> str:
        """The key of a value under this version of the code."""
        text = "\0".join((code_version(), *parts))
        return f"{kind}:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"

    def value(self, key: str, form: type[T]) -> T | None:
        """The value under a key, decoded; None when there is none or it is damaged."""
        raw = self.get(key)
        if raw is not None:
            with contextlib.suppress(msgspec.MsgspecError, RecursionError):
                return msgspec.msgpack.decode(raw, type=form)
        return None

    def put_value(self, key: str, value: object) -> None:
        """Keep a value that msgspec can encode."""
        if self._db is not None:
            with contextlib.suppress(msgspec.MsgspecError, TypeError, UnicodeError):
                self.put(key, msgspec.msgpack.encode(value))

    def digest(self, path: Path) -> str | None:
        """SHA-256 of a file, from the quick key where that is sure; None without a cache or when it cannot be read."""
        if self._db is None:
            return None
        name = os.path.abspath(path)  # noqa: PTH100 - links stay as they are
        try:
            state = os.stat(name)  # noqa: PTH116
        except (OSError, ValueError):
            return None
        stamp = (state.st_size, state.st_mtime_ns, state.st_ino, state.st_ctime_ns)
        kept = self._known.get(name)
        if kept is not None and kept[:4] == stamp and _sure(stamp):
            return kept[4]
        if kept is None and _sure(stamp):
            row = self._ask("SELECT size, mtime, inode, changed, digest FROM stamp WHERE path = ?", (_text(name),))
            if row is not None and tuple(row[:4]) == stamp and isinstance(row[4], str):
                self._known[name] = (*stamp, row[4])
                return str(row[4])
        digest = hash_file(name)
        if digest is not None:
            self._known[name] = (*stamp, digest)
            self._stamps[name] = (*stamp, digest)
            self.flush_if_due()
        return digest

    # --- ContentCache --------------------------------------------------------------------------------------------

    def get(self, key: str) -> bytes | None:
        """The bytes kept under the key, or None."""
        if self._db is None:
            return None
        raw = self._new.get(key)
        if raw is None:
            row = self._ask("SELECT value, used FROM fact WHERE key = ?", (key,))
            if row is not None and isinstance(row[0], bytes):
                raw = row[0]
                if isinstance(row[1], int) and row[1] < time.time() - _DAY:
                    self._touched.add(key)
        value = unpack(raw) if raw is not None else None
        if value is None:
            self.misses += 1
        else:
            self.hits += 1
            if self._recorded is not None:
                self._recorded[key] = value
        return value

    def put(self, key: str, value: bytes) -> None:
        """Keep the bytes; written with the next batch."""
        if self._db is None or len(value) > MAX_VALUE:
            return
        if self._recorded is not None:
            self._recorded[key] = value
        packed = pack(value)
        self._new[key] = packed
        self._new_bytes += len(packed)
        self.flush_if_due()

    @contextlib.contextmanager
    def recording(self) -> Iterator[dict[str, bytes]]:
        """Everything found and put meanwhile, to be put into another cache."""
        found: dict[str, bytes] = {}
        self._recorded = found
        try:
            yield found
        finally:
            self._recorded = None

    # --- the file ------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write what is new, in one transaction."""
        self._written = time.monotonic()
        if self._db is None or not (self._new or self._stamps or self._touched):
            return
        now = int(time.time())
        try:
            with self._db:
                self._db.execute("BEGIN IMMEDIATE")
                self._db.executemany(
                    "INSERT OR REPLACE INTO fact (key, kind, value, size, used) VALUES (?, ?, ?, ?, ?)",
                    [(key, key.partition(":")[0], value, len(value), now) for key, value in self._new.items()],
                )
                self._db.executemany(
                    "INSERT OR REPLACE INTO stamp VALUES (?, ?, ?, ?, ?, ?, ?)",
                    [(_text(path), *stamp, now) for path, stamp in self._stamps.items()],
                )
                self._db.executemany("UPDATE fact SET used = ? WHERE key = ?", [(now, key) for key in self._touched])
        except sqlite3.Error as error:
            self._failed(error)
        self._new.clear()
        self._stamps.clear()
        self._touched.clear()
        self._new_bytes = 0
        if len(self._known) > 100_000:
            self._known.clear()

    def trim(self) -> None:
        """Drop what was used longest ago until the bounds hold with a tenth to spare."""
        self.flush()
        if self._db is None:
            return
        try:
            total = self._total()
            stamps = int(self._db.execute("SELECT count(*) FROM stamp").fetchone()[0])
            if total <= self.limit and stamps <= MAX_STAMPS:
                return
            with self._db:
                self._db.execute("BEGIN IMMEDIATE")
                if total > self.limit:
                    self._db.execute(
                        "DELETE FROM fact WHERE key IN (SELECT key FROM (SELECT key, sum(size) OVER "
                        "(ORDER BY used DESC, key) AS upto FROM fact) WHERE upto > ?)",
                        (self.limit * 9 // 10,),
                    )
                if stamps > MAX_STAMPS:
                    self._db.execute(
                        "DELETE FROM stamp WHERE rowid IN (SELECT rowid FROM stamp ORDER BY used LIMIT ?)",
                        (stamps - MAX_STAMPS * 9 // 10,),
                    )
            self._shrink()
        except sqlite3.Error as error:
            self._failed(error)

    def clear(self) -> None:
        """Forget everything."""
        self._new.clear()
        self._stamps.clear()
        self._known.clear()
        if self._db is not None:
            try:
                with self._db:
                    self._db.execute("DELETE FROM fact")
                    self._db.execute("DELETE FROM stamp")
                self._shrink()
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            except sqlite3.Error as error:
                self._failed(error)

    def summary(self) -> dict[str, tuple[int, int]]:
        """Number and bytes of the values of each kind, and of ``files`` (quick keys)."""
        self.flush()
        if self._db is None:
            return {}
        try:
            rows = self._db.execute("SELECT kind, count(*), sum(size) FROM fact GROUP BY kind ORDER BY kind").fetchall()
            found = {str(kind): (int(count), int(size)) for kind, count, size in rows}
            found["files"] = (int(self._db.execute("SELECT count(*) FROM stamp").fetchone()[0]), 0)
        except sqlite3.Error as error:
            self._failed(error)
            return {}
        return found

    @property
    def usable(self) -> bool:
        """False when there is no cache, or it failed."""
        return self._db is not None

    def close(self) -> None:
        """Write what is new, keep the bounds, close."""
        self.trim()
        if self._db is not None:
            with contextlib.suppress(sqlite3.Error):
                self._db.close()
            self._db = None

    def __enter__(self) -> FactCache:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self, path: Path) -> None:
        for attempt in range(2):
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._db = _connect(path)
                return
            except OSError:
                return
            except sqlite3.OperationalError:
                return  # locked for long, no room, no permission: do without
            except sqlite3.DatabaseError:
                if attempt:
                    return
                _remove(path)  # no database, or another layout: begin anew

    def _failed(self, error: sqlite3.Error) -> None:
        """Give the cache up for this run; a damaged file goes, so that the next run begins anew."""
        damaged = isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)
        if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
            return  # another process writes for very long: only this batch is lost
        if self._db is not None:
            with contextlib.suppress(sqlite3.Error):
                self._db.close()
        self._db = None
        if damaged and self.path is not None:
            _remove(self.path)

    def _ask(self, query: str, values: tuple[Any, ...]) -> Any:
        assert self._db is not None
        try:
            return self._db.execute(query, values).fetchone()
        except sqlite3.Error as error:
            self._failed(error)
            return None

    def _shrink(self) -> None:
        """Give free pages back; as a script, for a single statement would give back one page only."""
        assert self._db is not None
        self._db.executescript("PRAGMA incremental_vacuum;")

    def _total(self) -> int:
        assert self._db is not None
        return int(self._db.execute("SELECT coalesce(sum(size), 0) FROM fact").fetchone()[0])

    def flush_if_due(self) -> None:
        """Write when enough is new, or some time has passed."""
        if (
            len(self._new) + len(self._stamps) >= _BATCH
            or self._new_bytes >= _BATCH_BYTES
            or time.monotonic() - self._written > _BATCH_SECONDS
        ):
            self.flush()


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=15, isolation_level=None)
    try:
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        db.execute("PRAGMA journal_mode = WAL").fetchall()
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA journal_size_limit = 67108864").fetchall()
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        if version not in (0, _SCHEMA):
            raise sqlite3.DatabaseError("another layout")
        if version == 0:
            db.execute("BEGIN IMMEDIATE")
            db.execute(
                "CREATE TABLE IF NOT EXISTS fact (key TEXT PRIMARY KEY, kind TEXT NOT NULL, value BLOB NOT NULL,"
                " size INTEGER NOT NULL, used INTEGER NOT NULL)"
            )
            db.execute(
                "CREATE TABLE IF NOT EXISTS stamp (path TEXT PRIMARY KEY, size INTEGER NOT NULL,"
                " mtime INTEGER NOT NULL, inode INTEGER NOT NULL, changed INTEGER NOT NULL,"
                " digest TEXT NOT NULL, used INTEGER NOT NULL)"
            )
            # Sums and evictions read this index, not the values.
            db.execute("CREATE INDEX IF NOT EXISTS fact_used ON fact (used, key, kind, size)")
            db.execute(f"PRAGMA user_version = {_SCHEMA}")
            db.execute("COMMIT")
        db.execute("SELECT key, kind, size, used FROM fact LIMIT 1").fetchone()
        db.execute("SELECT path, size, mtime, inode, changed, digest, used FROM stamp LIMIT 1").fetchone()
    except BaseException:
        db.close()
        raise
    return db


def _remove(path: Path) -> None:
    for name in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")):
        with contextlib.suppress(OSError):
            name.unlink(missing_ok=True)


def _sure(stamp: tuple[int, int, int, int]) -> bool:
    """Whether the quick key tells the file: it has an inode, and is not so young that it may change unseen."""
    return stamp[2] != 0 and time.time_ns() - stamp[1] > _RECENT_NS


def _text(path: str) -> str:
    """A path that SQLite can hold (names that are no valid Unicode included)."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
