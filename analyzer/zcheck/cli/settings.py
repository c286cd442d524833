"""Options of the command line together with those of ``zcheck.toml``: what is given on the command line wins."""

from __future__ import annotations

from collections.abc import Sequence

from zcheck.cli.config import Config, stacks, warnings
from zcheck.coverage import Database
from zcheck.errors import UsageError
from zcheck.judge.exit_code import FAIL_ON, FailOn
from zcheck.model.stack import Stack


def fail_level(asked: str | None, config: Config) -> FailOn:
    """The level of ``--fail-on``, else of the file, else blocker; raises UsageError."""
    level = asked or config.fail_on or "blocker"
    for known in FAIL_ON:
        if known == level:
            return known
    raise UsageError(f"--fail-on {level!r} is unknown; choose one of {', '.join(FAIL_ON)}")


def chosen_stacks(
    database: Database,
    config: Config,
    zluda: Sequence[str] | None,
    launch_mode: str | None,
    hip_sdk: str | None,
    gpu: str | None,
    named: str | None,
) -> tuple[Stack, ...]:
    """The stacks of the command line; of the file when the command line names none."""
    from zcheck.cli.stacks import stacks_of

    if config.stacks and not (zluda or launch_mode or hip_sdk or gpu or named):
        return stacks(database, config)
    return stacks_of(database, zluda or (), launch_mode, hip_sdk, gpu, named)


def settings_said(config: Config) -> list[str]:
    """What a report has to say about its settings: ignores of unknown rules, and those whose day is over."""
    from zcheck.cli.data import rule_set

    return warnings(config, [rule.id for rule in rule_set(examples=False)]) if config.ignores else []
