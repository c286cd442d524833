"""Recorded runs: kept in the user's data folder, failed ones too, and read back as evidence for the next check."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import msgspec

from zcheck.errors import UsageError
from zcheck.launch.disk import Disk
from zcheck.model.evidence import RecordedRun
from zcheck.model.launch import RunReport
from zcheck.model.stack import LaunchMode

_SHA256 = re.compile(r"[0-9a-f]{64}")
KEEP_RUNS = 50
"""logs of the newest runs that are kept"""


def default_data_dir() -> Path:
    """The user's data folder of zcheck; ``ZCHECK_DATA`` moves it. Raises UsageError where there is no home folder."""
    import platformdirs

    moved = os.environ.get("ZCHECK_DATA")
    if moved:
        return Path(moved)
    try:
        return platformdirs.user_data_path("zcheck", appauthor=False)
    except RuntimeError:
        raise UsageError("this user has no home folder to keep data in; name one with ZCHECK_DATA") from None


def record(report: RunReport, data_dir: Path) -> Path:
    """Stores a report under the program's hash; returns the file. Raises OSError."""
    folder = data_dir / "records" / report.program_sha256
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{report.started.replace(':', '')}-{report.id}.json"
    Disk().write(path, msgspec.json.format(msgspec.json.encode(report), indent=1))
    return path


def recorded_reports(app_sha256: str, data_dir: Path) -> tuple[RunReport, ...]:
    """All stored reports on a program, oldest first; files that cannot be read are passed over."""
    if not _SHA256.fullmatch(app_sha256):
        return ()
    folder = data_dir / "records" / app_sha256
    found = []
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        try:
            found.append(msgspec.json.decode(path.read_bytes(), type=RunReport))
        except (OSError, msgspec.MsgspecError):
            continue
    return tuple(report for report in found if report.program_sha256 == app_sha256)


def recorded_runs(app_sha256: str, data_dir: Path) -> tuple[RecordedRun, ...]:
    """Evidence of earlier runs of this very program, oldest first; runs that proved nothing are left out."""
    runs = []
    for report in recorded_reports(app_sha256, data_dir):
        if report.outcome == "inconclusive":
            continue
        note = report.first_error.text if report.first_error else f"{report.strategy}, {report.grade}"
        stack = report.stack
        day = report.started[:10]
        mode: LaunchMode = "zluda-exe" if report.strategy == "zluda-exe" else "staged"
        runs.append(
            RecordedRun(report.outcome, stack.zluda, stack.hip_sdk, stack.gpu, day, note[:300], launch_mode=mode)
        )
    return tuple(runs)


def prune(data_dir: Path, keep: int = KEEP_RUNS) -> None:
    """Removes logs of all but the newest runs; never raises."""
    try:
        runs = sorted((data_dir / "runs").iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    except OSError:
        return
    for old in runs[keep:]:
        shutil.rmtree(old, ignore_errors=True)
