"""Where the data that the stages are handed comes from: opened once a process."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from zcheck.coverage import Database, framework_names, rules_folder
from zcheck.match import Rule, load_rules
from zcheck.model.names import NameLookups

if TYPE_CHECKING:
    from zcheck.resolve import WindowsDlls

# DLLs of the program that hosts a plugin: CPython's (python311.dll, python3.dll) and Node.js's executable.
_HOST_DLLS = re.compile(r"python3\d*(_d|t)?\.dll|node\.exe|libnode\.dll", re.I)


@lru_cache(maxsize=1)
def coverage() -> Database:
    """The coverage database of this installation or checkout."""
    return Database.open()


@lru_cache(maxsize=4)
def rule_set(folder: Path | None = None, examples: bool = True) -> tuple[Rule, ...]:
    """The rules of ``folder``, or zcheck's own."""
    return load_rules(folder or rules_folder(), examples)


@lru_cache(maxsize=1)
def name_lookups() -> NameLookups:
    """The name look-ups that collect/ is handed."""
    database = coverage()
    frameworks = framework_names(database)
    return NameLookups(
        library_of=database.library_of,
        framework_of=frameworks.framework_of,
        operators_of=frameworks.operators_of,
        own_path_of=frameworks.own_path_of,
        host_provided=lambda dll: _HOST_DLLS.fullmatch(dll) is not None,
    )


@lru_cache(maxsize=1)
def windows_dlls() -> WindowsDlls:
    """What Windows itself provides."""
    from zcheck.resolve import WindowsDlls

    columns = ("dll", "kind", "known", "x64", "x86", "arm64", "note")
    rows = coverage().query(f"SELECT {', '.join(columns)} FROM windows_dll")
    return WindowsDlls(dict(zip(columns, row, strict=True)) for row in rows)
