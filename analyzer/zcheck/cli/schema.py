"""``zcheck schema``: the JSON Schema of a report."""

from __future__ import annotations

import json

import typer


def schema() -> None:
    """Print the JSON Schema (2020-12) that every JSON report keeps to."""
    from zcheck.render import schema as report_schema

    typer.echo(json.dumps(report_schema(), indent=2))
