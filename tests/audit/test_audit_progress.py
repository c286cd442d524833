"""Progress: rate and remaining time, on a terminal one line, in a log now and then."""

from __future__ import annotations

import io

from zcheck.cli.audit_progress import AuditProgress


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_rate_and_remaining_time_follow_the_work() -> None:
    clock = Clock()
    progress = AuditProgress(100, 1000, Terminal(), clock)
    clock.now = 10.0
    progress.step(250)
    assert progress.line(clock.now) == "audit: 1 of 100 (25%), 0.1 per second, about 30 s left"


def test_nothing_is_written_in_the_first_second_and_the_line_is_wiped() -> None:
    clock, stream = Clock(), Terminal()
    progress = AuditProgress(10, 10, stream, clock)
    progress.step(1)
    assert stream.getvalue() == ""
    clock.now = 2.0
    progress.step(1, warm=True)
    assert "1 unchanged" in stream.getvalue()
    progress.close()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_a_log_gets_plain_lines_now_and_then() -> None:
    clock, stream = Clock(), io.StringIO()
    progress = AuditProgress(1000, 1000, stream, clock)
    for second in range(100):
        clock.now = float(second)
        progress.step(1)
    progress.close()
    assert "\r" not in stream.getvalue() and "\x1b" not in stream.getvalue()
    assert 2 <= len(stream.getvalue().splitlines()) <= 4
