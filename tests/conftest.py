"""Shared by all tests. Being here, it also puts this folder on the import path, so that ``import corpus`` works.

Where the environment variable ``CI`` is set, nothing may drop out unseen: a test marked ``wine``, ``browser`` or
``corpus`` that skips is a failure there, and so is a whole module that skips. Tests marked ``nvcc`` may be left out, as
NVIDIA's compiler is no need of any user or contributor; the closing summary says how many were.
"""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

REQUIRED = ("wine", "browser", "corpus")
"""markers whose tools CI has to have"""


def in_ci() -> bool:
    """Whether ``CI`` is set to anything but nothing, 0 or false."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def skip_reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The reason of a skipped report."""
    return str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else str(report.longrepr)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, object, None]:
    outcome = yield
    report: pytest.TestReport = outcome.get_result()  # type: ignore[attr-defined]
    marks = [name for name in REQUIRED if item.get_closest_marker(name)]
    if in_ci() and marks and report.skipped and not hasattr(report, "wasxfail"):
        report.longrepr = f"skipped although CI is set and it is marked {', '.join(marks)}: {skip_reason(report)}"
        report.outcome = "failed"


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, object, None]:
    outcome = yield
    report: pytest.CollectReport = outcome.get_result()  # type: ignore[attr-defined]
    if in_ci() and report.skipped:
        report.longrepr = f"{collector.nodeid} skips as a whole although CI is set: {skip_reason(report)}"
        report.outcome = "failed"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    left_out = [report for report in terminalreporter.stats.get("skipped", []) if "nvcc" in report.keywords]
    if left_out:
        terminalreporter.section("nvcc")
        terminalreporter.line(f"{len(left_out)} test(s) marked nvcc were left out: {skip_reason(left_out[0])}")
