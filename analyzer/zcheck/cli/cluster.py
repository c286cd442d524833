"""The pieces of an audit on dask.distributed (``pip install zcheck[cluster]``).

Files are named by their path, which has to be the same on every machine (a share). Facts of large files are pieces of
their own. A worker that goes away costs what it was at: dask does that again on another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from zcheck.cli.audit_task import Task, TaskResult, lost_result, run_file_shared, run_shared
from zcheck.cli.cache_version import code_version, data_version
from zcheck.errors import InputError, UsageError

AHEAD = 4
"""pieces handed to the scheduler for each worker thread"""
_LOCAL = re.compile(r"local(?:\[(\d+|\*)\])?")


@contextmanager
def connect(address: str) -> Iterator[Any]:
    """A client of the scheduler at ``tcp://…`` (or tls://, ucx://), or of a cluster on this machine for ``local[N]``.

    Raises UsageError without the optional packages or for an address of another form, InputError when nobody answers.
    """
    local = _LOCAL.fullmatch(address)
    if local is None and not re.fullmatch(r"(tcp|tls|ucx|ws|wss)://\S+", address):
        raise UsageError(f"--cluster takes tcp://HOST:PORT or local[N], not {address!r}")
    try:
        import distributed
    except ImportError:
        raise UsageError("--cluster needs dask.distributed: pip install 'zcheck[cluster]'") from None
    import logging

    logging.getLogger("distributed").setLevel(logging.ERROR)
    cluster: Any = None
    try:
        if local is not None:
            from zcheck.cli.audit_run import processors

            count = int(local.group(1)) if local.group(1) not in (None, "*") else processors()
            if count < 1:
                raise UsageError("--cluster local[N] takes one worker or more")
            cluster = distributed.LocalCluster(  # type: ignore[no-untyped-call]
                n_workers=count,
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                silence_logs=logging.ERROR,
            )
        client: Any = distributed.Client(  # type: ignore[no-untyped-call]
            cluster if cluster is not None else address, timeout=15
        )
    except (OSError, TimeoutError) as error:
        raise InputError(f"no scheduler answers at {address}: {error}") from None
    try:
        yield client
    finally:
        client.close()
        if cluster is not None:
            cluster.close()


def run_cluster(tasks: Sequence[Task], client: Any, large: Sequence[tuple[Path, str]] = ()) -> Iterator[TaskResult]:
    """The results, as they are ready; at most a few pieces for each worker are under way at a time.

    ``large``: files (and names) that are read as pieces of their own; the applications they belong to get the facts.
    """
    from distributed import as_completed
    from distributed.scheduler import KilledWorker

    version = code_version() + data_version()
    files: dict[Path, Any] = {}
    for path, name in large:
        asked = msgspec.msgpack.encode((str(path), name, tasks[0].stacks))
        files[path] = client.submit(run_file_shared, asked, version, pure=False)
    waiting = iter(tasks)
    under_way: dict[Any, Task] = {}
    stream: Any = as_completed()  # type: ignore[no-untyped-call]

    def submit() -> bool:
        task = next(waiting, None)
        if task is None:
            return False
        paths = [Path(task.bundle.root) / file.path for file in task.bundle.files] if files else []
        facts = [files[path] for path in paths if path in files]
        future = client.submit(run_shared, msgspec.msgpack.encode(task), version, *facts, pure=False)
        under_way[future.key] = task
        stream.add(future)
        return True

    threads = max(1, sum(client.nthreads().values()))
    for _ in range(threads * AHEAD):
        if not submit():
            break
    while under_way:
        future = next(stream)
        task = under_way.pop(future.key)
        try:
            yield msgspec.msgpack.decode(future.result(), type=TaskResult)
        except KilledWorker:
            yield lost_result(task, "its analysis ended several workers of the cluster")
        future.release()
        submit()
