"""Every test of audits has its own cache and no settings of the user."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("ZCHECK_")]:
        monkeypatch.delenv(name)
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("ZCHECK_CACHE", str(folder))
    monkeypatch.setenv("ZCHECK_CONFIG", "off")
    return folder
