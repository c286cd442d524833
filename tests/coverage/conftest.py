"""The database compiled once per test process, and where the facts it was made from lie."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from zcheck.coverage.database import Database

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def tables() -> Path:
    return ROOT / "coverage_db"


@pytest.fixture(scope="session")
def database(tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Database:
    return Database.open(tables, tmp_path_factory.mktemp("coverage-cache"))


@pytest.fixture(scope="session")
def facts() -> Path:
    """The folder of facts beside the checkout (or beside the folder of worktrees)."""
    for parent in (ROOT.parent, ROOT.parent.parent):
        if (parent / "shared" / "facts").is_dir():
            return parent / "shared" / "facts"
    if os.environ.get("CI"):
        pytest.fail("../shared/facts must lie beside the checkout in CI")
    pytest.skip("../shared/facts is not here: the spot rows of test_coverage_database.py are what is checked")
