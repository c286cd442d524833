"""Shared by the render tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import sample_reports

HERE = Path(__file__).parent


@pytest.fixture(params=sorted(sample_reports.SAMPLES))
def sample(request: pytest.FixtureRequest) -> Any:
    """Each hand-made report in turn."""
    return sample_reports.SAMPLES[request.param]()


@pytest.fixture(scope="session")
def sarif_schema() -> Any:
    """The published SARIF 2.1.0 schema."""
    return json.loads((HERE / "schemas" / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
