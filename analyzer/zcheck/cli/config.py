"""``zcheck.toml``: what is ignored and until when, the stacks, when to fail; and an earlier report as a baseline."""

from __future__ import annotations

import datetime
import difflib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from zcheck.cli.ignores import Ignore
from zcheck.coverage import Database
from zcheck.errors import DataError, InputError
from zcheck.model.base import Record
from zcheck.model.stack import Stack

NAME = "zcheck.toml"
_KEYS = ("ignore", "stacks", "fail-on", "baseline", "audit-baseline")
_LARGEST = 1024 * 1024


class StackChoice(Record, frozen=True):
    """An entry of ``stacks``: what is empty comes from the named or default stack."""

    name: str = ""
    zluda: str = ""
    launch_mode: str = ""
    hip_sdk: str = ""
    gpu: str = ""


class Config(Record, frozen=True):
    """The settings of one file; ``path`` is empty when there is none."""

    path: str = ""
    ignores: tuple[Ignore, ...] = ()
    stacks: tuple[StackChoice, ...] = ()
    fail_on: str = ""
    baseline: str = ""
    """an earlier report, for check"""
    audit_baseline: str = ""
    """an earlier audit"""


def find() -> Path | None:
    """The file: named by ``ZCHECK_CONFIG`` (``off`` for none), else of the current folder, else the user's own."""
    asked = os.environ.get("ZCHECK_CONFIG", "").strip()
    if asked.lower() in ("off", "no", "0", "false"):
        return None
    if asked:
        return Path(asked)
    import platformdirs

    for folder in (Path(), platformdirs.user_config_path("zcheck", appauthor=False)):
        if (folder / NAME).is_file():
            return folder / NAME
    return None


def load(path: Path | None = None) -> Config:
    """The settings of ``path`` or of the file that ``find`` finds; raises InputError and DataError."""
    path = path or find()
    if path is None:
        return Config()
    try:
        if path.stat().st_size > _LARGEST:
            raise DataError(f"{path}: too large for a file of settings")
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    return parse(raw.decode("utf-8-sig", "surrogateescape"), str(path))


def parse(text: str, name: str) -> Config:
    """The settings of a text; raises DataError naming the file and the key."""
    import importlib

    toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        found: dict[str, Any] = toml.loads(text)
    except ValueError as error:  # TOMLDecodeError is one
        raise DataError(f"{name}: {error}") from None
    for key in found:
        if key not in _KEYS:
            near = difflib.get_close_matches(key, _KEYS, 1)
            hint = f"; did you mean {near[0]}?" if near else f"; known are {', '.join(_KEYS)}"
            raise DataError(f"{name}: there is no setting {key!r}{hint}")
    from zcheck.judge import FAIL_ON

    fail_on = _string(found, "fail-on", name)
    if fail_on and fail_on not in FAIL_ON:
        raise DataError(f"{name}: fail-on {fail_on!r} is unknown; choose one of {', '.join(FAIL_ON)}")
    baseline, audit_baseline = (
        str(Path(name).parent / file) if (file := _string(found, key, name)) else ""
        for key in ("baseline", "audit-baseline")
    )
    return Config(
        path=name,
        ignores=tuple(_ignore(item, name) for item in _list(found, "ignore", name)),
        stacks=tuple(_stack(item, name) for item in _list(found, "stacks", name)),
        fail_on=fail_on,
        baseline=baseline,
        audit_baseline=audit_baseline,
    )


def stacks(database: Database, config: Config) -> tuple[Stack, ...]:
    """The stacks of the file; raises UsageError for what no table knows."""
    from zcheck.cli.stacks import stacks_of

    found: dict[Stack, None] = {}
    known = {row[0] for row in database.query("SELECT name FROM named_stack")}
    for choice in config.stacks:
        # A bare word is a named stack, or else a release.
        name, zluda = (choice.name, choice.zluda) if choice.name in known else ("", choice.zluda or choice.name)
        some = stacks_of(
            database,
            [zluda] if zluda else [],
            choice.launch_mode or None,
            choice.hip_sdk or None,
            choice.gpu or None,
            name or None,
        )
        found.update(dict.fromkeys(some))
    return tuple(found)


def warnings(config: Config, rule_ids: Sequence[str]) -> list[str]:
    """Sentences on ignores of rules that do not exist, and on those whose day is over."""
    today = datetime.date.today()
    said = []
    for ignore in config.ignores:
        if ignore.id not in rule_ids:
            near = difflib.get_close_matches(ignore.id, rule_ids, 1)
            said.append(
                f"{config.path}: no rule is called {ignore.id}" + (f"; did you mean {near[0]}?" if near else "")
            )
        elif not ignore.holds(today):
            said.append(f"{config.path}: the ignore of {ignore.id} ended on {ignore.until}: {ignore.reason}")
    return said


def _list(found: dict[str, Any], key: str, name: str) -> list[Any]:
    value = found.get(key, [])
    if not isinstance(value, list):
        raise DataError(f"{name}: {key} has to be a list")
    return value


def _string(found: dict[str, Any], key: str, name: str, where: str = "") -> str:
    value = found.get(key, "")
    if isinstance(value, (datetime.date, datetime.datetime)):
        value = value.strftime("%Y-%m-%d")
    if not isinstance(value, str):
        raise DataError(f"{name}: {where}{key} has to be a string")
    return value.strip()


def _ignore(item: Any, name: str) -> Ignore:
    if not isinstance(item, dict) or not item.get("id"):
        raise DataError(
            f'{name}: an ignore looks like {{ id = "RULE", reason = "why", module = "*", until = 2027-01-31 }}'
        )
    where = f"ignore of {item['id']}: "
    for key in item:
        if key not in ("id", "reason", "module", "until"):
            raise DataError(f"{name}: {where}there is no key {key!r}; known are id, module, reason, until")
    reason = _string(item, "reason", name, where)
    if not reason:
        raise DataError(f"{name}: {where}it needs a reason")
    until = _string(item, "until", name, where)
    if until:
        try:
            until = datetime.date.fromisoformat(until).isoformat()
        except ValueError:
            raise DataError(f"{name}: {where}until {until!r} is no date such as 2027-01-31") from None
    return Ignore(
        id=_string(item, "id", name, where),
        reason=reason,
        module=_string(item, "module", name, where) or "*",
        until=until,
        source=Path(name).name,
    )


_STACK_KEYS = {"name": "name", "zluda": "zluda", "launch-mode": "launch_mode", "hip-sdk": "hip_sdk", "gpu": "gpu"}


def _stack(item: Any, name: str) -> StackChoice:
    """A table of options, or a text: a stack's name or its id as in reports."""
    if isinstance(item, str):
        if "/" not in item:
            return StackChoice(name=item)
        parts = [*item.split("/"), ""]
        if len(parts) not in (4, 5):
            raise DataError(f"{name}: the stack {item!r} is no id such as v6/zluda-exe/6.4 or v6/zluda-exe/6.4/gfx1100")
        return StackChoice(zluda=parts[0], launch_mode=parts[1], hip_sdk=parts[2], gpu=parts[3])
    if not isinstance(item, dict):
        raise DataError(f"{name}: a stack is a name, an id, or a table with {', '.join(_STACK_KEYS)}")
    for key in item:
        if key not in _STACK_KEYS:
            raise DataError(f"{name}: a stack has no key {key!r}; known are {', '.join(_STACK_KEYS)}")
    return StackChoice(**{_STACK_KEYS[key]: _string(item, key, name, "stack: ") for key in item})
