"""One piece of an audit: a bundle in, its rows out. Plain bytes both ways, so that any process can do it."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from zcheck.cli.audit_row import broken_row, place_of, row_of
from zcheck.cli.audit_rows import merge
from zcheck.cli.cache_store import FactCache, default_path
from zcheck.cli.ignores import Ignore
from zcheck.errors import ZcheckError
from zcheck.model.audit import ApplicationKind, AuditRow
from zcheck.model.base import Record, Skipped
from zcheck.model.bundle import Bundle
from zcheck.model.host import Host
from zcheck.model.report import Report
from zcheck.model.stack import Stack

if TYPE_CHECKING:
    from zcheck.cli.known_pc import KnownPc
    from zcheck.cli.pipeline import Reader

ENVIRONMENT_MODULES = 4_000
"""modules of one Python environment that are read to see which use CUDA"""
ENVIRONMENT_ENTRIES = 64
"""modules of one Python environment that are judged"""


class Task(Record, frozen=True):
    """``number`` is the order of the pieces; ``place`` the application's folder relative to the audited one; ``host``
    the PC to judge for, if one is known."""

    number: int
    place: str
    kind: ApplicationKind
    bundle: Bundle
    stacks: tuple[Stack, ...]
    ignores: tuple[Ignore, ...] = ()
    pages: bool = False
    size: int = 0
    files: int = 0
    host: Host | None = None


class TaskResult(Record, frozen=True):
    """``exits``: for each row its exit codes by level of ``judge.FAIL_ON``. ``pages``: one a row, or none."""

    number: int
    rows: tuple[AuditRow, ...]
    exits: tuple[tuple[int, ...], ...]
    skipped: tuple[Skipped, ...] = ()
    pages: tuple[str, ...] = ()
    warm: bool = False


def run_task(task: Task, cache: FactCache) -> TaskResult:
    """The rows of one bundle, from the cache when nothing of it changed. Never raises on what a file holds."""
    key = _key(task)
    if key is not None and not task.pages:
        kept = cache.value(key, TaskResult)
        if kept is not None:
            return msgspec.structs.replace(kept, number=task.number, warm=True)
    result = _judge(task, cache)
    if key is not None and key == _key(task) and not any(row.problem for row in result.rows):
        cache.put_value(key, msgspec.structs.replace(result, pages=()))
    return result


def _key(task: Task) -> str | None:
    """The key of a bundle's rows: all its files by their quick keys; None where these are not sure."""
    from zcheck.cli.cache_version import data_version

    about = (task.place, task.kind, task.bundle, task.stacks, task.ignores, task.host)
    # Not as msgpack: what it leaves out as a default depends on which object a string is, and so on the process.
    digest = hashlib.sha256(repr(about).encode("utf-8", "surrogatepass"))
    if any(ignore.until for ignore in task.ignores):
        digest.update(datetime.date.today().isoformat().encode())
    digest.update(_records())
    youngest = time.time_ns() - 2_000_000_000
    for file in task.bundle.files:
        try:
            state = os.stat(os.path.join(task.bundle.root, file.path))  # noqa: PTH116, PTH118 - called very often
        except OSError:
            return None
        if not state.st_ino or state.st_mtime_ns > youngest:
            return None
        digest.update(b"%d %d %d %d\n" % (state.st_size, state.st_mtime_ns, state.st_ino, state.st_ctime_ns))
    return FactCache.key("rows", digest.hexdigest(), data_version())


def _records() -> bytes:
    """The recorded runs of this user, which are evidence too."""
    from zcheck.launch.records import default_data_dir

    try:
        found = sorted(os.scandir(default_data_dir() / "records"), key=lambda entry: entry.name)
        return repr([(entry.name, entry.stat().st_mtime_ns) for entry in found]).encode()
    except OSError:
        return b""


def _judge(task: Task, cache: FactCache) -> TaskResult:
    from zcheck.cli.pipeline import Reader, judge_analysis, reading_of
    from zcheck.cli.progress import Progress
    from zcheck.judge import FAIL_ON, exit_code

    pc = _pc(task.host)
    reader = Reader(task.bundle, Progress(), cache)
    skipped = list(task.bundle.skipped)
    made: list[tuple[AuditRow, tuple[int, ...], str]] = []
    entries, left_out = _entries(task, reader)
    skipped += left_out
    reading = reading_of(task.bundle, reader, task.stacks, cache)
    for entry in entries:
        report: Report | None = None
        try:
            reader.read(entry, must=True)
            analysis = reading.analyse(entry)
            report = judge_analysis(analysis, task.stacks, entry, pc, ignores=task.ignores)
        except (ZcheckError, OSError, MemoryError, RecursionError, ValueError, ArithmeticError, LookupError) as error:
            # One file that no reader was ready for costs its row, not the audit.
            reason = error.message if isinstance(error, ZcheckError) else f"{type(error).__name__}: {error}"
            made.append((broken_row(task, entry, reason), tuple(3 for _ in FAIL_ON), ""))
            continue
        codes = tuple(exit_code(report.stacks, level) for level in FAIL_ON)
        page = _page(report) if task.pages else ""
        made.append((row_of(task, entry, analysis, report), codes, page))
    rows = merge(made)
    known = {row.path for row, _, _ in made}
    skipped += [
        Skipped(path=place_of(task, item.path), reason=item.reason)
        for item in (*reader.skipped,)
        if place_of(task, item.path) not in known
    ]
    return TaskResult(
        number=task.number,
        rows=tuple(row for row, _, _ in rows),
        exits=tuple(codes for _, codes, _ in rows),
        skipped=tuple(dict.fromkeys(skipped)),
        pages=tuple(page for _, _, page in rows) if task.pages else (),
    )


def _pc(host: Host | None) -> KnownPc | None:
    if host is None:
        return None
    from zcheck.cli.known_pc import KnownPc

    return KnownPc.of(host)


def _entries(task: Task, reader: Reader) -> tuple[Sequence[str], list[Skipped]]:
    """The entries of a bundle to judge, and what was left out."""
    from zcheck.cli.pipeline import entries_of

    if task.kind != "python-environment":
        return entries_of(task.bundle, reader), []
    from zcheck.cli.audit_python import cuda_entries

    entries, cut = cuda_entries(task.bundle, reader, ENVIRONMENT_MODULES, ENVIRONMENT_ENTRIES)
    return entries, [Skipped(path=task.place or ".", reason=cut)] if cut else []


def _page(report: Report) -> str:
    from zcheck.cli.names import local_names
    from zcheck.render import RenderOptions, render

    return render(report, "html", RenderOptions(redact=None, names=local_names()))


# --- in another process -------------------------------------------------------------------------------------------

_cache: FactCache | None = None


def start_process(cache: str | None) -> None:
    """Open this process's connection to the cache file; an interrupt is the parent's to handle."""
    import atexit
    import signal
    import threading

    global _cache
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _cache = FactCache(Path(cache) if cache else None)
    atexit.register(_cache.flush)


def _end_with_parent() -> None:
    """A pool's process waits for ever for a parent that was killed; this ends it with that parent."""
    from multiprocessing import connection, parent_process

    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def run_bytes(task: bytes) -> bytes:
    """``run_task`` for messages between processes; on a machine of a cluster with that machine's own cache."""
    cache = _process_cache()
    result = run_task(msgspec.msgpack.decode(task, type=Task), cache)
    cache.flush()
    return msgspec.msgpack.encode(result)


def run_file_bytes(asked: bytes) -> bytes:
    """Read one file's facts into the cache, before the application that it belongs to is judged; returns nothing."""
    _file_facts(asked)
    return b""


def run_file_shared(asked: bytes, version: str) -> bytes:
    """The same on a cluster, where another machine may need the facts: they are returned."""
    _same_version(version)
    return msgspec.msgpack.encode(_file_facts(asked))


def run_shared(task: bytes, version: str, *facts: bytes) -> bytes:
    """``run_bytes`` on a cluster, with the facts of large files that other workers read."""
    _same_version(version)
    cache = _process_cache()
    for each in facts:
        for key, value in msgspec.msgpack.decode(each, type=dict[str, bytes]).items():
            cache.put(key, value)
    return run_bytes(task)


def _file_facts(asked: bytes) -> dict[str, bytes]:
    cache = _process_cache()
    path, name, stacks = msgspec.msgpack.decode(asked, type=tuple[str, str, tuple[Stack, ...]])
    with cache.recording() as found:
        _read_file(Path(path), name, stacks, cache)
    cache.flush()
    return found


def _same_version(version: str) -> None:
    from zcheck.cli.cache_version import code_version, data_version
    from zcheck.errors import UsageError

    if version != code_version() + data_version():
        raise UsageError("a worker of the cluster runs another version of zcheck; install the same one everywhere")


def _process_cache() -> FactCache:
    global _cache
    if _cache is None:
        _cache = FactCache(default_path())
    return _cache


def _read_file(path: Path, name: str, stacks: Sequence[Stack], cache: FactCache) -> None:
    from zcheck.cli.data import name_lookups
    from zcheck.cli.pipeline import Reader, reading_of
    from zcheck.cli.progress import Progress

    folder = Path(str(path)[: -len(name)]) if str(path).replace("\\", "/").endswith(name) else path.parent
    bundle = Bundle(root=str(folder), entries=(name,))
    reader = Reader(bundle, Progress(), cache)
    with contextlib.suppress(ZcheckError, OSError, ValueError, LookupError, RecursionError):
        facts = reader.read(name)
        if facts is not None:
            reading_of(bundle, reader, stacks, cache).prefetch(name, facts, name_lookups())


def lost_result(task: Task, reason: str) -> TaskResult:
    """What stands for a piece whose process ended."""
    from zcheck.judge import FAIL_ON

    rows = tuple(broken_row(task, entry, reason) for entry in task.bundle.entries[:1])
    return TaskResult(task.number, rows, tuple(tuple(3 for _ in FAIL_ON) for _ in rows))
