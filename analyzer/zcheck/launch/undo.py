"""Takes back what earlier runs left, if they were killed: at the start of a run, and by ``zcheck undo``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from zcheck.launch.disk import Disk
from zcheck.launch.journal import read_journals, recover
from zcheck.launch.lock import Busy, FolderLock
from zcheck.model.launch import Journal, Recovery, Restored


def folders_of(journal: Journal) -> list[str]:
    """The folders that a journal's run has locked: the program's own and those it staged into."""
    targets = {os.path.dirname(file.target) for file in journal.files}  # noqa: PTH120 - \\?\ paths stay as they are
    return sorted({os.path.dirname(journal.program), *targets})  # noqa: PTH120


def still_running(journal: Journal) -> bool:
    """Whether something that the run started lives on (Linux; Windows ends it with the launcher)."""
    if sys.platform == "win32":
        return False
    from zcheck.launch.posix import processes_of

    return bool(processes_of(journal.id))


def concerns(journal: Journal, place: Path) -> bool:
    """Whether a journal is of the program ``place``, or of a program below that folder."""
    program = Path(os.path.realpath(journal.program))
    wanted = Path(os.path.realpath(place))
    return wanted == program or wanted in program.parents or program.parent == wanted.parent


def undo(
    data: Path, place: Path | None = None, *, disk: Disk | None = None, locked: bool = False
) -> Iterator[Recovery]:
    """Recovers every open journal (of ``place``: of that program's folder or below) and says what came of each.

    ``locked``: the caller holds the locks of the program's folder already. Never raises for what it finds: a journal of
    a live run or with files in use stays, and its Recovery is not done.
    """
    journals, _ = read_journals(data)
    for journal in journals:
        if place is not None and not concerns(journal, place):
            continue
        if still_running(journal):
            files = tuple(Restored(file.target, "pending", "the program still runs") for file in journal.files)
            yield Recovery(journal.id, journal.program, files, False, "the program still runs; end it and undo again")
            continue
        lock = FolderLock([] if locked else folders_of(journal), data)
        try:
            with lock:
                yield recover(journal, data, disk)
        except Busy as busy:
            files = tuple(Restored(file.target, "pending", "another run holds the folder") for file in journal.files)
            yield Recovery(journal.id, journal.program, files, False, busy.message)


def unreadable(data: Path) -> list[tuple[Path, str]]:
    """Journals that cannot be read, with the reason: nothing is done for them."""
    with suppress(OSError):
        return read_journals(data)[1]
    return []
