"""Where the data that the stages are handed comes from: opened once a process."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from zcheck.coverage import Database, rules_folder
from zcheck.match import Rule, load_rules


@lru_cache(maxsize=1)
def coverage() -> Database:
    """The coverage database of this installation or checkout."""
    return Database.open()


@lru_cache(maxsize=4)
def rule_set(folder: Path | None = None) -> tuple[Rule, ...]:
    """The rules of ``folder``, or zcheck's own."""
    return load_rules(folder or rules_folder())
