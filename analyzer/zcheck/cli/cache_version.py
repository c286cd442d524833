"""Which code and which tables a kept fact comes from."""

from __future__ import annotations

import hashlib
import sys
from functools import lru_cache
from pathlib import Path

from zcheck import __version__

_STAGES = ("model", "discover", "parse", "resolve", "collect", "coverage", "match", "judge", "cli")


@lru_cache(maxsize=1)
def code_version() -> str:
    """A digest of the stages' source text: any change of a reader makes new facts. Frozen programs: of the program."""
    digest = hashlib.sha256(__version__.encode())
    package = Path(__file__).resolve().parents[1]
    sources = sorted(path for stage in _STAGES for path in (package / stage).glob("*.py"))
    if not sources:  # one-file programs carry no sources
        program = Path(sys.executable).stat()
        digest.update(f"{program.st_size} {program.st_mtime_ns}".encode())
    for path in sources:
        digest.update(path.relative_to(package).as_posix().encode() + b"\0")
        digest.update(path.read_bytes())
    return digest.hexdigest()


@lru_cache(maxsize=1)
def data_version() -> str:
    """A digest of the coverage tables and the rules."""
    from zcheck.cli.data import coverage
    from zcheck.coverage import rules_folder

    digest = hashlib.sha256(coverage().meta["hash"].encode())
    for path in sorted(rules_folder().rglob("*.y*ml")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
