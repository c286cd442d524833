"""The coverage database: what a stack answers to each DLL name and function.

``Database.open()`` opens the tables; ``answer(database, stack, evidence)`` gives everything that one stack says to a
program's evidence; ``rules_folder()`` is where the rules of this installation are.
"""

from pathlib import Path

from zcheck.coverage.answers import answer
from zcheck.coverage.database import Database
from zcheck.coverage.frameworks import framework_names
from zcheck.coverage.locate import locate as _locate
from zcheck.coverage.measured import runtime_start

__all__ = ["Database", "answer", "framework_names", "rules_folder", "runtime_start"]


def rules_folder() -> Path:
    """The folder of rule files that belongs to this installation or checkout."""
    return _locate("rules").path
