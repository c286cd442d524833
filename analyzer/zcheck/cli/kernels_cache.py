"""Facts of PTX and cubins kept between runs, in one SQLite file of the user's cache folder.

Keys are hashes of the stored bytes and the number of the parser, so an old value is never taken for a new one. A cache
that cannot be opened or written is no error: the work is done again.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from types import TracebackType

MAX_BYTES = 512 * 1024 * 1024
"""size from which the file is begun anew"""


class FileCache:
    """A ``parse.fatbin.ContentCache`` in a file; use it as a context manager."""

    def __init__(self, path: Path) -> None:
        self._db: sqlite3.Connection | None = None
        self._new: dict[str, bytes] = {}
        with contextlib.suppress(OSError, sqlite3.Error):
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and path.stat().st_size > MAX_BYTES:
                path.unlink()
            self._db = sqlite3.connect(path, timeout=5)
            self._db.execute("CREATE TABLE IF NOT EXISTS facts (key TEXT PRIMARY KEY, value BLOB NOT NULL)")

    def get(self, key: str) -> bytes | None:
        """The value kept under the key, or None."""
        if self._db is None:
            return None
        if key in self._new:
            return self._new[key]
        try:
            row = self._db.execute("SELECT value FROM facts WHERE key = ?", (key,)).fetchone()
        except sqlite3.Error:
            return None
        return bytes(row[0]) if row else None

    def put(self, key: str, value: bytes) -> None:
        """Keep the value, from the end of the context on for others."""
        if self._db is not None:
            self._new[key] = value

    def __enter__(self) -> FileCache:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._db is not None:
            # All at once: a process that wrote while it works would hold up the others for as long.
            with contextlib.suppress(sqlite3.Error), self._db:
                self._db.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", self._new.items())
            self._db.close()
            self._db = None


def default_path() -> Path:
    """The file in the user's cache folder."""
    import platformdirs

    return platformdirs.user_cache_path("zcheck", appauthor=False) / "device-code.sqlite"
