"""What the table mixins share: the connection and its questions."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any


class Asker:
    """A read-only connection to the compiled database."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """``connection``: from ``locate.open_database``."""
        self._connection = connection

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Rows of one SQL question."""
        return self._connection.execute(sql, parameters).fetchall()


def split(text: str, separator: str = ";") -> tuple[str, ...]:
    """``a;b`` → (a, b); nothing for an empty text."""
    return tuple(part.strip() for part in text.split(separator) if part.strip())
