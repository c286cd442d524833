"""Drains a child's output: passed on, kept at the end in memory and at the start in a file, all of it bounded."""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from zcheck.model.launch import Stream, StreamReport

CHUNK = 64 * 1024
TAIL = 256 * 1024
"""bytes of the end that stay in memory"""
FILE = 32 * 1024 * 1024
"""bytes of the start that go into the log file"""
TAIL_LINES = 40
_LINE = 8192
# Wine's own report on a loaded DLL (channel loaddll), which zcheck asks for; it is no output of the program
_LOADED = re.compile(
    rb"^(?:[0-9.]+:)?[0-9a-f]{4,8}(?::[0-9a-f]{4,8})?:trace:loaddll:\S+ "
    rb'(Loaded|Unloaded) L"((?:[^"\\]|\\.)*)" at \S+: (\w+)'
)
_MAYBE_LOADED = re.compile(rb"^[0-9a-f.:]{0,18}(?::[a-z:]{0,20}.*)?$", re.DOTALL)


class Drain:
    """One pipe, read by a thread of its own until its end.

    ``sink`` gets the bytes as they come (the user's terminal), ``line`` each line as text (at most 8 KiB of it).
    With ``wine``, Wine's reports on loaded DLLs are taken out and given to ``loaded`` instead.
    """

    def __init__(
        self,
        pipe: IO[bytes],
        stream: Stream,
        file: Path | None,
        *,
        sink: Callable[[bytes], None] | None = None,
        line: Callable[[str, Stream], None] | None = None,
        loaded: Callable[[str, str], None] | None = None,
    ) -> None:
        self._pipe, self._stream, self._path = pipe, stream, file
        self._sink, self._line, self._loaded = sink, line, loaded
        self._tail: deque[bytes] = deque()
        self._held = 0
        self._partial = b""
        self._cut = False
        self._waiting = b""
        self.bytes = self.kept = 0
        self._file: IO[bytes] | None = None
        if file is not None:
            with suppress(OSError):  # a run must not fail for want of a log
                self._file = open(file, "wb")  # noqa: SIM115 - closed by the thread
        self._thread = threading.Thread(target=self._run, name=f"zcheck-{stream}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        read = getattr(self._pipe, "read1", self._pipe.read)
        try:
            while block := read(CHUNK):
                self._take(self._filter(block) if self._loaded else block)
            if self._waiting:
                self._take(self._filter(b"\n")[:-1])
        except (OSError, ValueError):
            pass  # the pipe was closed under us
        finally:
            if self._partial and self._line:
                self._line(self._partial.decode("utf-8", "replace"), self._stream)
            if self._file:
                self._file.close()

    def _filter(self, block: bytes) -> bytes:
        """Takes Wine's report lines out; holds back the start of a line only while it may become one."""
        data = self._waiting + block
        lines = data.split(b"\n")
        self._waiting = lines.pop()
        out = []
        for text in lines:
            match = _LOADED.match(text)
            if match is None:
                out.append(text + b"\n")
            elif self._loaded and match[1] == b"Loaded":
                name = match[2].decode("utf-8", "replace").replace("\\\\", "\\")
                self._loaded(re.sub(r"\\([0-9a-f]{4})", lambda m: chr(int(m[1], 16)), name), match[3].decode())
        if self._waiting and (len(self._waiting) > _LINE or not _MAYBE_LOADED.match(self._waiting)):
            out.append(self._waiting)
            self._waiting = b""
        return b"".join(out)

    def _take(self, block: bytes) -> None:
        if not block:
            return
        self.bytes += len(block)
        if self._file and self.kept < FILE:
            part = block[: FILE - self.kept]
            with suppress(OSError):
                self._file.write(part)
                self._file.flush()
                self.kept += len(part)
        self._tail.append(block)
        self._held += len(block)
        while self._held - len(self._tail[0]) >= TAIL:
            self._held -= len(self._tail.popleft())
        if self._sink:
            with suppress(OSError, ValueError):  # the reader of our own output has gone; the child must not notice
                self._sink(block)
        if self._line:
            self._lines(block)

    def _lines(self, block: bytes) -> None:
        assert self._line is not None
        *whole, rest = block.split(b"\n")
        for text in whole:
            if self._cut:
                self._cut = False
                self._partial = b""
                continue
            self._line((self._partial + text)[:_LINE].decode("utf-8", "replace").rstrip("\r"), self._stream)
            self._partial = b""
        if self._cut:
            return
        self._partial += rest
        if len(self._partial) > _LINE:
            self._line(self._partial[:_LINE].decode("utf-8", "replace"), self._stream)
            self._partial, self._cut = b"", True

    def join(self, timeout: float) -> bool:
        """Waits for the pipe's end; false when something still holds it open."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def report(self) -> StreamReport:
        """What came, and the last lines."""
        text = b"".join(self._tail).decode("utf-8", "replace")
        lines = [line[:_LINE].rstrip() for line in text.splitlines()]
        return StreamReport(self.bytes, self.kept, str(self._path or ""), tuple(lines[-TAIL_LINES:]))
