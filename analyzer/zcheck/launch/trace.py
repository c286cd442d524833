"""Reads what ``zluda.exe --zluda-trace`` leaves: ``log.txt`` and the logs of modules beside it.

Format, from vosen/ZLUDA@8a7931b: zluda_trace/src/log.rs writes one line a call, ``NAME(ARGS) -> STATUS``, ``(...)`` for
arguments and ``UNKNOWN`` for a status that it did not get; calls made inside a call, and messages, follow it indented
by four spaces a level; the same lines on stderr begin with ``[ZLUDA_TRACE] ``. Private functions are
``{TABLE}::function`` or ``{GUID}::index``, nvapi's ``{nvapi:0x…}``. zluda_trace/src/trace.rs names files
``module_0001_02.ptx`` and writes one line an error to ``module_0001_02.log``; their texts are those of
ptx_parser/src/lib.rs (``Unrecognized statement "…"``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from zcheck.errors import InputError
from zcheck.model.base import DEFAULT_LIMITS, Limits, Problem
from zcheck.model.report import Report
from zcheck.model.trace import TRACE_SCHEMA, CalledFunction, Comparison, ModuleLog, TracedCall, TraceReport

_PREFIX = "[ZLUDA_TRACE] "
_CALL = re.compile(r"^(?P<name>(?:\{[^}]*\}(?:::[\w.]+)?|[A-Za-z_]\w*))\((?P<arguments>.*)\) -> (?P<status>\S.*)$")
# A call of which the end of the line is missing: the log was cut off
_BEGUN = re.compile(r"^(?P<name>\{[^}]*\}(?:::[\w.]+)?|[A-Za-z_]\w*)\(")
_GOOD = re.compile(r"^(\w*_)?(SUCCESS|OK)$|^\(\)$")
# Answers that are an ordinary outcome of asking, not something that went wrong
_ASKING = {
    ("cuEventQuery", "CUDA_ERROR_NOT_READY"),
    ("cuStreamQuery", "CUDA_ERROR_NOT_READY"),
    ("cuStreamQuery_ptsz", "CUDA_ERROR_NOT_READY"),
}
_AT_EXIT = ("CUDA_ERROR_DEINITIALIZED",)
_GET_FUNCTION = re.compile(
    r"^(?:hfunc|pKernel|pFunc|kernel): (0x[0-9a-fA-F]+), \w+: 0x[0-9a-fA-F]+, name: \"((?:[^\"\\]|\\.)*)\""
)
_LAUNCHED = re.compile(r"(?:^|, )(?:f|kernel|function|func): (0x[0-9a-fA-F]+)")
_FUNCTION_OF_KERNEL = re.compile(r"^pFunc: (0x[0-9a-fA-F]+), kernel: (0x[0-9a-fA-F]+)")
_SAVED = re.compile(r"^Saved module to (.+)$")
_MODULE_LOG = re.compile(r"module_\d+(?:_\d+){0,2}\.log$", re.IGNORECASE)
_LONGEST = 1 << 20
_SHOWN = 100
_ARGUMENTS = 400


@dataclass
class _Counted:
    calls: int = 0
    nested: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    errors: dict[str, None] = field(default_factory=dict)


def is_good(name: str, status: str) -> bool:
    """Whether a status says that a call went well, or merely answered a question."""
    return bool(_GOOD.match(status)) or (name, status) in _ASKING


class _Reader:
    """Takes lines; keeps counts, not calls."""

    def __init__(self) -> None:
        self.functions: dict[str, _Counted] = {}
        self.calls = 0
        self.first: TracedCall | None = None
        self.launches: list[TracedCall] = []
        self.unknown: list[TracedCall] = []
        self.saved: dict[str, None] = {}
        self.problems: list[Problem] = []
        self._kernels: dict[str, str] = {}
        self._last = ""

    def line(self, number: int, text: str, where: str) -> None:
        """One line of a log."""
        body = text.lstrip(" ")
        depth = (len(text) - len(body)) // 4
        match = _CALL.match(body)
        if match is None:
            self._note(number, body, depth, where)
            return
        name, arguments, status = match["name"], match["arguments"], match["status"].strip()
        self.calls += 1
        self._last = name
        counted = self.functions.setdefault(name, _Counted())
        counted.calls += 1
        counted.nested += depth > 0
        counted.statuses[status] += 1
        kernel = self._kernel(name, arguments)
        if status == "UNKNOWN":
            if len(self.unknown) < _SHOWN:
                self.unknown.append(TracedCall(number, name, arguments[:_ARGUMENTS], status, kernel))
            return
        if is_good(name, status):
            return
        call = TracedCall(number, name, arguments[:_ARGUMENTS], status, kernel)
        if self.first is None and status not in _AT_EXIT and depth == 0:
            self.first = call
        if "Launch" in name and len(self.launches) < _SHOWN:
            self.launches.append(call)

    def _kernel(self, name: str, arguments: str) -> str:
        if found := _GET_FUNCTION.match(arguments):
            if len(self._kernels) < 1_000_000:
                self._kernels[found[1].lower()] = found[2]
        elif (found := _FUNCTION_OF_KERNEL.match(arguments)) and found[2].lower() in self._kernels:
            self._kernels[found[1].lower()] = self._kernels[found[2].lower()]
        elif "Launch" in name and (found := _LAUNCHED.search(arguments)):
            return self._kernels.get(found[1].lower(), "")
        return ""

    def _note(self, number: int, body: str, depth: int, where: str) -> None:
        if saved := _SAVED.match(body):
            self.saved[saved[1]] = None
        elif depth and body and self._last in self.functions:
            errors = self.functions[self._last].errors
            if len(errors) < _SHOWN:
                errors[body[:_ARGUMENTS]] = None
        elif _BEGUN.match(body):
            self.problems.append(Problem(where, f"line {number} breaks off: {body[:80]}", partial=True))


def _lines(path: Path, limits: Limits, problems: list[Problem]) -> Iterator[tuple[int, str]]:
    total = 0
    with open(path, "rb") as handle:
        number = 0
        while raw := handle.readline(_LONGEST):
            number += 1
            total += len(raw)
            if total > limits.total_payload:
                problems.append(Problem(path.name, f"only the first {total} bytes were read", partial=True))
                return
            yield number, raw.decode("utf-8", "replace").rstrip("\r\n\0")


def _chosen(lines: Iterable[tuple[int, str]], prefixed: bool) -> Iterator[tuple[int, str]]:
    for number, text in lines:
        if not prefixed:
            yield number, text
        elif _PREFIX in text:  # the program's own output may stand before it on the line
            yield number, text.split(_PREFIX, 1)[1]


def _module_logs(folder: Path, limits: Limits) -> tuple[ModuleLog, ...]:
    found: list[ModuleLog] = []
    for path in sorted(folder.iterdir()):
        if _MODULE_LOG.fullmatch(path.name) and len(found) < limits.entries:
            with open(path, "rb") as handle:
                text = handle.read(_LONGEST).decode("utf-8", "replace")
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            found.append(ModuleLog(path.name, tuple(line[:_ARGUMENTS] for line in lines[:_SHOWN])))
    return tuple(found)


def trace_logs(path: Path) -> tuple[Path, ...]:
    """The logs that ``path`` stands for: itself, its ``log.txt``, or those of the folders in it (one a process).

    Raises InputError when there is none.
    """
    if path.is_file():
        return (path,)
    if not path.is_dir():
        raise InputError(f"{path}: no such file or folder")
    found = [path / "log.txt"] if (path / "log.txt").is_file() else sorted(path.glob("*/log.txt"))
    if not found:
        raise InputError(f"{path}: no log.txt of a ZLUDA trace in it, nor in its folders")
    return tuple(found)


def read_trace(log: Path, limits: Limits = DEFAULT_LIMITS) -> TraceReport:
    """One log, and the module logs beside it; raises InputError when it cannot be read or is no trace."""
    reader = _Reader()
    try:
        with open(log, "rb") as handle:
            prefixed = _PREFIX.encode() in handle.read(_LONGEST)
        for number, text in _chosen(_lines(log, limits, reader.problems), prefixed):
            reader.line(number, text, log.name)
        beside = log.name.lower() == "log.txt" or any(log.parent.glob("module_*.log"))
        modules = _module_logs(log.parent, limits) if beside else ()
    except OSError as error:
        raise InputError(f"{log}: cannot be read ({error.strerror or error})") from None
    if not reader.calls:
        raise InputError(f"{log}: holds no call of a ZLUDA trace")
    functions = tuple(
        CalledFunction(name, item.calls, item.nested, dict(item.statuses.most_common()), tuple(item.errors))
        for name, item in sorted(reader.functions.items(), key=lambda pair: (-pair[1].calls, pair[0]))
    )
    return TraceReport(
        schema=TRACE_SCHEMA,
        log=str(log),
        calls=reader.calls,
        functions=functions,
        first_error=reader.first,
        failed_launches=tuple(reader.launches),
        unknown_output=tuple(reader.unknown),
        modules=modules,
        saved_modules=tuple(reader.saved),
        problems=tuple(reader.problems),
    )


def compare(trace: TraceReport, report: Report) -> Comparison:
    """The trace against a saved report: exact names, runtime functions left out (they are not traced as such).

    Functions called only from inside others, and private ones, were not to be foreseen and are left out.
    """
    predicted = {f.name for f in report.functions if f.kind != "mention"}
    traced = {item.name: item for item in trace.functions}
    direct = {name for name, item in traced.items() if item.nested < item.calls and not name.startswith("{")}
    mentioned = {f.name for f in report.functions}
    visible = {name for name in predicted if not name.startswith("cuda")}
    return Comparison(
        report.target,
        tuple(sorted(predicted & set(traced))),
        tuple(sorted(visible - set(traced))),
        tuple(sorted(direct - mentioned - predicted)),
    )
