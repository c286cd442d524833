"""Do the pieces of an audit: in this process, in several, or on a cluster. Results come as they are ready."""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from zcheck.cli.audit_task import Task, TaskResult, lost_result, run_bytes, run_file_bytes, run_task, start_process
from zcheck.cli.cache_store import FactCache

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext

AHEAD = 2
"""pieces handed to each process before the first is done: memory does not grow with the folder"""
LARGE_FILE = 16 * 1024 * 1024
"""files from this size are read as pieces of their own, so that one large application keeps every process busy"""


def processors() -> int:
    """Processors that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def run_here(tasks: Iterable[Task], cache: FactCache) -> Iterator[TaskResult]:
    """One after another in this process."""
    for task in tasks:
        yield run_task(task, cache)
        cache.flush_if_due()


def run_processes(
    tasks: Sequence[Task], jobs: int, cache: Path | None, large: Sequence[tuple[Path, str]] = ()
) -> Iterator[TaskResult]:
    """In ``jobs`` processes that share the cache file. ``large``: files (and names) to be read before their turn.

    A process that ends (killed, out of memory) takes nothing along but the piece that ended it: what was under way is
    done again, one at a time in a process of its own, and the piece that ends that one too becomes a row that says so.
    """
    context = multiprocessing.get_context("spawn")
    reading = {path for path, _ in large} if cache is not None and jobs > 1 else set()
    # Applications whose large files are still being read come after the others, else both would read them.
    later = {
        task.number for task in tasks if any(Path(task.bundle.root) / f.path in reading for f in task.bundle.files)
    }
    waiting = deque(sorted(tasks, key=lambda task: task.number in later))
    under_way: dict[Future[bytes], Task | None] = {}
    suspects: list[Task] = []
    pool = _pool(context, jobs, cache)
    try:
        if reading:
            for path, name in large:
                ask = msgspec.msgpack.encode((str(path), name, tasks[0].stacks))
                under_way[pool.submit(run_file_bytes, ask)] = None
        broken = False
        while True:
            while not broken and waiting and len(under_way) < jobs * AHEAD:
                if waiting[0].number in later and None in under_way.values():
                    break
                task = waiting.popleft()
                under_way[pool.submit(run_bytes, msgspec.msgpack.encode(task))] = task
            if not under_way:
                if not broken:
                    return
                pool.shutdown(wait=False)
                for suspect in suspects:
                    yield _alone(context, suspect, cache)
                suspects.clear()
                pool, broken = _pool(context, jobs, cache), False
                continue
            done, _ = wait(under_way, return_when=FIRST_COMPLETED)
            for future in done:
                of = under_way.pop(future)
                try:
                    raw = future.result()
                except BrokenProcessPool:
                    broken = True
                    if of is not None:
                        suspects.append(of)
                    continue
                if of is not None:
                    yield msgspec.msgpack.decode(raw, type=TaskResult)
    finally:
        _stop(pool)


def _alone(context: BaseContext, task: Task, cache: Path | None) -> TaskResult:
    pool = _pool(context, 1, cache)
    try:
        raw = pool.submit(run_bytes, msgspec.msgpack.encode(task)).result()
    except BrokenProcessPool:
        return lost_result(task, "its analysis ended the process (out of memory, or killed from outside)")
    finally:
        pool.shutdown()
    return msgspec.msgpack.decode(raw, type=TaskResult)


def _pool(context: BaseContext, jobs: int, cache: Path | None) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(
        jobs, mp_context=context, initializer=start_process, initargs=(str(cache) if cache else None,)
    )


def _stop(pool: ProcessPoolExecutor) -> None:
    """End the processes; after an interrupt without waiting for what they are at."""
    processes = list((getattr(pool, "_processes", None) or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.join(0.2)
        if process.is_alive():
            process.terminate()


def large_files(tasks: Sequence[Task], jobs: int, is_vendor: Callable[[str], bool]) -> list[tuple[Path, str]]:
    """Files worth a piece of their own, the largest first: where one application alone would keep a process longer
    than its share. NVIDIA's libraries are not read in depth, so they are none."""
    total = sum(task.size for task in tasks)
    found: dict[Path, tuple[int, str]] = {}
    for task in tasks:
        if task.size * jobs < total or jobs < 2:
            continue
        for file in task.bundle.files:
            if file.kind == "pe" and file.size >= LARGE_FILE and not is_vendor(file.path.rpartition("/")[2]):
                found.setdefault(Path(task.bundle.root) / file.path, (file.size, file.path))
    return [(path, name) for path, (_, name) in sorted(found.items(), key=lambda item: -item[1][0])]
