"""What both process layers offer, and the loop that waits for a tree of processes to end."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Protocol

from zcheck.errors import EXIT_RUN_REFUSED, ZcheckError
from zcheck.launch.streams import Drain
from zcheck.model.base import Record
from zcheck.model.launch import Stream, StreamReport

# Modules are looked at soon after the start, then ever more seldom: seconds from the start
_SAMPLES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 2.0, 4.0)
_SAMPLE_EVERY = 5.0
_PIPES_AFTER_END = 5.0


class StartError(ZcheckError):
    """The system refused to start the program."""

    exit_code = EXIT_RUN_REFUSED


class Tree(Protocol):
    """A started program and everything it starts."""

    stdout: IO[bytes]
    stderr: IO[bytes]

    def poll(self) -> int | None:
        """Exit code of the program itself once it has ended."""

    def alive(self) -> bool:
        """Whether anything of the tree still runs."""

    def interrupt(self) -> None:
        """Passes Ctrl+C on."""

    def kill(self) -> None:
        """Ends everything at once; returns when nothing of it runs any more, or after some seconds."""

    def modules(self) -> set[str]:
        """Paths of modules loaded right now by anything of the tree."""

    def close(self) -> None:
        """Gives handles back (on Windows this ends what still runs)."""


class Ending(Record, frozen=True):
    """How a tree ended. ``modules``: all paths seen; ``left``: the program itself had ended before its children."""

    code: int | None
    seconds: float
    timed_out: bool
    interrupted: bool
    modules: tuple[str, ...]
    stdout: StreamReport
    stderr: StreamReport
    left: bool = False


def start(
    command: Sequence[str],
    environment: Mapping[str, str],
    cwd: str,
    run_id: str,
    *,
    preload: Sequence[str] = (),
) -> Tree:
    """Starts a program; on Windows suspended in a job that dies with this process, ``preload`` DLLs loaded first.

    Raises StartError in one sentence.
    """
    if sys.platform == "win32":
        from zcheck.launch.win32 import start_in_job

        return start_in_job(command, environment, cwd, preload=preload)
    from zcheck.launch.posix import start_in_session

    return start_in_session(command, environment, cwd, run_id)


class _Signals:
    """Counts Ctrl+C and requests to end while a child runs, instead of dying with the files in place."""

    def __init__(self) -> None:
        self.interrupts = 0
        self.terminated = False
        self._old: list[tuple[int, object]] = []

    def __enter__(self) -> _Signals:
        if threading.current_thread() is threading.main_thread():
            self._set(signal.SIGINT, self._interrupt)
            for name in ("SIGTERM", "SIGHUP", "SIGBREAK"):
                if hasattr(signal, name):
                    self._set(getattr(signal, name), self._terminate)
        return self

    def _set(self, number: int, handler: Callable[[int, object], None]) -> None:
        with suppress(OSError, ValueError):
            self._old.append((number, signal.signal(number, handler)))

    def _interrupt(self, number: int, frame: object) -> None:
        self.interrupts += 1

    def _terminate(self, number: int, frame: object) -> None:
        self.terminated = True

    def __exit__(self, *rest: object) -> None:
        for number, handler in self._old:
            with suppress(OSError, ValueError, TypeError):
                signal.signal(number, handler)  # type: ignore[arg-type]


def supervise(
    tree: Tree,
    *,
    timeout: float | None = None,
    logs: Path | None = None,
    sinks: Mapping[Stream, Callable[[bytes], None]] | None = None,
    line: Callable[[str, Stream], None] | None = None,
    wine: bool = False,
    waiting: Callable[[], None] | None = None,
) -> Ending:
    """Waits until the whole tree has ended, draining its output. ``timeout`` in seconds ends it.

    The first Ctrl+C is passed on, a second one, or a request to end this process, ends the tree. ``waiting`` is called
    once when the program itself has ended and children of it have not.
    """
    seen: set[str] = set()
    sinks = sinks or {}
    began = time.monotonic()

    def loaded(path: str, how: str) -> None:
        seen.add(path)

    pipes: tuple[tuple[IO[bytes], Stream], ...] = ((tree.stdout, "stdout"), (tree.stderr, "stderr"))
    drains = [
        Drain(
            pipe,
            stream,
            logs / f"{stream}.txt" if logs else None,
            sink=sinks.get(stream),
            line=line,
            loaded=loaded if wine and stream == "stderr" else None,
        )
        for pipe, stream in pipes
    ]
    samples = list(_SAMPLES)
    timed_out = left = False
    forwarded = 0
    pause = 0.01
    try:
        with _Signals() as signals:
            while True:
                passed = time.monotonic() - began
                if samples and passed >= samples[0]:
                    seen |= tree.modules()
                    samples.pop(0)
                    if not samples:
                        samples.append(passed + _SAMPLE_EVERY)
                code = tree.poll()
                if code is not None and not tree.alive():
                    break
                if code is not None and not left:
                    left = True
                    if waiting:
                        waiting()
                if timeout is not None and passed >= timeout:
                    timed_out = True
                elif signals.interrupts > forwarded and forwarded == 0:
                    forwarded = signals.interrupts
                    tree.interrupt()
                if timed_out or signals.terminated or signals.interrupts > max(forwarded, 1):
                    seen |= tree.modules()
                    tree.kill()
                    code = tree.poll()
                    break
                pause = min(pause * 1.5, 0.1)
                time.sleep(min(pause, samples[0] - passed) if samples and samples[0] > passed else pause)
            interrupted = signals.interrupts > 0 or signals.terminated
    except BaseException:
        tree.kill()
        raise
    finally:
        for drain in drains:
            drain.join(_PIPES_AFTER_END)
    seconds = time.monotonic() - began
    out, err = (drain.report() for drain in drains)
    return Ending(code, round(seconds, 3), timed_out, interrupted, tuple(sorted(seen)), out, err, left)
