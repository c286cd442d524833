"""The same pieces on dask.distributed: the same bytes, also when a worker is killed midway."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from audit_programs import audit, share

from zcheck.cli import audit_run, cluster
from zcheck.cli.audit_task import TaskResult

pytest.importorskip("distributed")


def test_a_cluster_gives_the_same_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = share(tmp_path / "share", 5)
    here = audit(capsys, folder, "-f", "json", "-j", 1, "--no-cache")
    there = audit(capsys, folder, "-f", "json", "--cluster", "local[2]")
    assert here[:2] == there[:2]


def test_facts_of_large_files_travel(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = share(tmp_path / "share", 2)
    here = audit(capsys, folder, "-f", "json", "-j", 1, "--no-cache")
    monkeypatch.setattr(audit_run, "LARGE_FILE", 1)
    there = audit(capsys, folder, "-f", "json", "--cluster", "local[2]")
    two = audit(capsys, folder, "-f", "json", "-j", 2, "--no-cache")
    assert here[:2] == there[:2] == two[:2]


def test_a_worker_killed_midway_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = share(tmp_path / "share", 60)
    here = audit(capsys, folder, "-f", "json", "-j", 1, "--no-cache")
    killed: list[int] = []
    run_cluster = cluster.run_cluster

    def killing(tasks, client, large=()):  # type: ignore[no-untyped-def]
        for number, result in enumerate(run_cluster(tasks, client, large)):
            assert isinstance(result, TaskResult)
            if number == 3:
                pids = list(client.run(os.getpid).values())
                os.kill(pids[0], signal.SIGKILL)
                killed.append(pids[0])
            yield result

    monkeypatch.setattr(cluster, "run_cluster", killing)
    there = audit(capsys, folder, "-f", "json", "--cluster", "local[2]")
    assert killed
    assert here[:2] == there[:2]


def test_wrong_addresses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    share(tmp_path, 1)
    for address in ("nonsense", "local[0]", "http://x"):
        code, _, err = audit(capsys, tmp_path, "--cluster", address)
        assert code == 2 and "--cluster" in err
    assert audit(capsys, tmp_path, "--cluster", "local[1]", "-j", "2")[0] == 2


def test_a_worker_with_another_version_is_refused() -> None:
    from zcheck.cli.audit_task import run_shared
    from zcheck.errors import UsageError

    with pytest.raises(UsageError, match="another version"):
        run_shared(b"", "other")
