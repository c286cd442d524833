"""What a ZLUDA trace says: which functions a program called, how they ended, what went wrong first."""

from __future__ import annotations

from zcheck.model.base import Problem, Record

TRACE_SCHEMA = 1


class CalledFunction(Record, frozen=True, omit_defaults=False):
    """One function: ``calls`` in all, and how many ended with each status. ``nested``: made from within others."""

    name: str
    calls: int
    nested: int
    statuses: dict[str, int]
    errors: tuple[str, ...] = ()
    """messages that the trace wrote below its calls, each once"""


class TracedCall(Record, frozen=True, omit_defaults=False):
    """One call of the log; ``line`` counts from 1. ``kernel``: for a launch, the kernel that was looked up."""

    line: int
    name: str
    arguments: str
    status: str
    kernel: str = ""


class ModuleLog(Record, frozen=True, omit_defaults=False):
    """A module whose PTX ZLUDA's parser did not know whole: the statements, as it wrote them."""

    file: str
    problems: tuple[str, ...]


class Comparison(Record, frozen=True, omit_defaults=False):
    """Prediction against trace, exact names. ``unforeseen`` is a fault of zcheck where its analysis saw the module."""

    report: str
    predicted_and_called: tuple[str, ...]
    predicted_only: tuple[str, ...]
    unforeseen: tuple[str, ...]


class TraceReport(Record, frozen=True, omit_defaults=False):
    """One trace."""

    schema: int
    log: str
    calls: int
    functions: tuple[CalledFunction, ...]
    first_error: TracedCall | None
    failed_launches: tuple[TracedCall, ...]
    unknown_output: tuple[TracedCall, ...]
    """calls without a status: the program ended inside them, or the trace lost it"""
    modules: tuple[ModuleLog, ...]
    saved_modules: tuple[str, ...]
    problems: tuple[Problem, ...] = ()
    comparison: Comparison | None = None
