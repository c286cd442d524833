"""Finds the first thing that went wrong: lines against a rule table, as they come, in bounded memory."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence

import msgspec

from zcheck.errors import DataError
from zcheck.launch import exitcodes
from zcheck.model.launch import ErrorRule, ExitReport, FirstError, Stream

MAX_LINE = 8192
"""characters of a line that rules look at"""
# Every line that a rule matches holds one of these (a test sees to it); looking for them first makes a program that
# writes much forty times cheaper to watch
_SIGNS = (
    "err", "fail", "exception", "could not", "cannot", "unable", "not found", "panicked", "insufficient", "no cuda",
    "no rocm", "no nvidia", "not compiled", "terminat", "assert", "fault", "violation", "status", "cuda", "cufft_",
    "memory", "ptx", "symbol", "paging file", "bad_alloc", "interrupt", "exit", "invalid", "illegal", "miopen",
    "kernel image", "not supported", "critical", "fatal", "stub library",
)  # fmt: skip
_TRACEBACK = "Traceback (most recent call last):"


def parse_rules(text: str, name: str = "first_errors.yaml") -> tuple[ErrorRule, ...]:
    """The rule table from its YAML text, in order; raises DataError naming the rule and what is wrong with it."""
    import yaml

    try:
        rows = msgspec.convert(yaml.safe_load(text), list[ErrorRule])
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise DataError(f"{name}: {error}") from None
    seen: set[str] = set()
    for rule in rows:
        try:
            re.compile(rule.pattern)
        except re.error as error:
            raise DataError(f"{name}: rule {rule.id}: {error}") from None
        if rule.id in seen:
            raise DataError(f"{name}: rule {rule.id} stands twice")
        seen.add(rule.id)
    return tuple(rows)


def looks_bad(text: str) -> bool:
    """Whether a line is worth trying the rules on."""
    folded = text.lower()
    return any(sign in folded for sign in _SIGNS)


class Finder:
    """Takes lines of both streams in the order they come and keeps the earliest error and the earliest hint.

    Inside a Python traceback only the line that names the exception counts, not the quoted source lines.
    Thread-safe: each stream is read by a thread of its own.
    """

    def __init__(self, rules: Sequence[ErrorRule]) -> None:
        self._rules = [(rule, re.compile(rule.pattern)) for rule in rules]
        self._lock = threading.Lock()
        self._numbers: dict[Stream, int] = {}
        self._traceback: dict[Stream, bool] = {}
        self._last: dict[Stream, tuple[int, str]] = {}
        self.error: FirstError | None = None
        self.hint: FirstError | None = None

    def line(self, text: str, stream: Stream) -> None:
        """Looks at one line."""
        text = text[:MAX_LINE].rstrip()
        with self._lock:
            number = self._numbers[stream] = self._numbers.get(stream, 0) + 1
            if text:
                self._last[stream] = (number, text)
            if text.startswith(_TRACEBACK):
                self._traceback[stream] = True
                return
            if self._traceback.get(stream):
                if not text or text[0].isspace():
                    return
                self._traceback[stream] = False
            if self.error is None and looks_bad(text):
                self._match(text, stream, number)

    def _match(self, text: str, stream: Stream, number: int) -> None:
        for rule, pattern in self._rules:
            if pattern.search(text):
                found = FirstError(rule.id, text.strip(), stream, number, rule.meaning)
                if rule.level == "error":
                    self.error = found
                elif self.hint is None:
                    self.hint = found
                return

    def result(self, end: ExitReport, *, seconds: float | None, wine: bool = False) -> FirstError | None:
        """The first error of a run that ended like this; None when it ended well and nothing was seen.

        Order: earliest error line; the status that Windows ended it with; time out; earliest hint; last line on
        stderr; the exit code. ``seconds``: the time it was given.
        """
        if self.error is not None:
            return self.error
        code = end.code
        if code is not None and code > 0 and exitcodes.is_failure_status(code):
            return FirstError(_status_rule(code), end.hex, "launcher", 0, end.meaning)
        if code is not None and code < 0 and not end.timed_out:
            return FirstError("exit-signal", end.meaning, "launcher", 0, end.meaning)
        if end.timed_out:
            text = f"it did not end within {seconds:g} s" if seconds else "it did not end in time"
            return FirstError("timeout", text, "launcher", 0, "it hung, or needed longer than it was given")
        if end.interrupted or code == 0:
            return None
        if self.hint is not None:
            return self.hint
        if "stderr" in self._last:
            number, text = self._last["stderr"]
            return FirstError("last-stderr-line", text, "stderr", number, "the last thing it said before it ended")
        possible = exitcodes.wine_candidate(code) if wine else None
        rule = _status_rule(possible) if possible else "exit-code"
        return FirstError(rule, end.hex, "launcher", 0, end.meaning)


def _status_rule(code: int) -> str:
    if code in exitcodes.LOADER_FAILURES:
        return "exit-loader"
    return "exit-delay-load" if code in exitcodes.DELAY_LOAD_FAILURES else "exit-crash"


def find(lines: Iterable[tuple[Stream, str]], rules: Sequence[ErrorRule]) -> FirstError | None:
    """The earliest error, else the earliest hint, of finished output."""
    finder = Finder(rules)
    for stream, text in lines:
        finder.line(text, stream)
    return finder.error or finder.hint
