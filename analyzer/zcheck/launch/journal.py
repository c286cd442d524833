"""Staging that can be taken back whatever happens: write-ahead journal, backups by rename, recovery from any state.

Order of ``stage``: journal on disk, then copies under scratch names (their hashes checked), then for each file the
original renamed to its backup name (its hash checked) and the copy renamed into place. ``recover`` looks at what is
there, file by file, and needs nothing from memory, so it can itself be cut short and begun again; the journal goes
last.
A file is only ever removed or replaced when its SHA-256 is that of our own copy.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from zcheck.errors import EXIT_RUN_REFUSED, ZcheckError
from zcheck.launch.disk import Disk, long_path, sha256_of
from zcheck.launch.lock import folder_key
from zcheck.model.launch import JOURNAL_SCHEMA, Journal, JournalFile, Recovery, Restored, StageFile

MARGIN = 64 * 1024 * 1024
"""bytes that must stay free on the volume after staging"""
# Windows: access denied (a loaded DLL), sharing and lock violations (an open file)
_IN_USE = (5, 32, 33)


class StageError(ZcheckError):
    """Staging was refused or taken back; the program's folder is as it was, unless the message says otherwise."""

    exit_code = EXIT_RUN_REFUSED


def _path(text: str) -> Path:
    return Path(long_path(text))


def _hash(path: Path) -> str | None:
    """SHA-256, or None when there is no such file; raises OSError when it cannot be read."""
    try:
        return sha256_of(path)
    except FileNotFoundError:
        return None


def journal_folder(data: Path) -> Path:
    """Where journals lie: under the user's data folder, so that undo finds them whatever became of the program."""
    return data / "journals"


def make_journal(program: str, files: Iterable[StageFile], *, run_id: str | None = None) -> Journal:
    """The journal for a plan's files; names nothing that exists yet."""
    run_id = run_id or secrets.token_hex(6)
    entries = []
    for file in files:
        beside = f"{file.target}.zcheck-{run_id}"
        entries.append(
            JournalFile(file.source, file.target, file.sha256, f"{beside}.new", f"{beside}.bak", file.original)
        )
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Journal(JOURNAL_SCHEMA, run_id, program, now, tuple(entries))


def journal_path(journal: Journal, data: Path) -> Path:
    """The file of a journal: the folder's key first, so that journals of one folder are found by name."""
    return journal_folder(data) / f"{folder_key(Path(journal.program).parent)}-{journal.id}.json"


def write_journal(journal: Journal, data: Path, disk: Disk) -> None:
    """Puts the journal on the disk, whole or not at all; raises OSError."""
    path = journal_path(journal, data)
    path.parent.mkdir(parents=True, exist_ok=True)
    disk.write(path, msgspec.json.encode(journal))


def read_journals(data: Path) -> tuple[list[Journal], list[tuple[Path, str]]]:
    """All open journals, oldest first, and the files that are none with the reason."""
    found, bad = [], []
    folder = journal_folder(data)
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        try:
            journal = msgspec.json.decode(path.read_bytes(), type=Journal)
            if journal.schema != JOURNAL_SCHEMA:
                raise msgspec.ValidationError(f"schema {journal.schema} is of another zcheck")
            found.append(journal)
        except (OSError, msgspec.MsgspecError) as error:
            bad.append((path, str(error)))
    return sorted(found, key=lambda journal: (journal.created, journal.id)), bad


def check(files: Iterable[StageFile], *, free: Callable[[Path], int] | None = None) -> None:
    """Refuses before anything is touched: sources and targets not as planned, links, no room; raises StageError."""
    need: dict[Path, int] = {}
    for file in files:
        source, target = _path(file.source), _path(file.target)
        try:
            if _hash(source) != file.sha256:
                raise StageError(f"{file.source}: its contents are not those of the plan; check the ZLUDA folder")
            if target.is_symlink() or target.parent.is_symlink():
                raise StageError(f"{file.target}: a link is in the way; zcheck does not write through links")
            if _hash(target) != file.original:
                raise StageError(f"{file.target}: the file in place is not the one that was analysed; run zcheck again")
        except OSError as error:
            raise StageError(f"{error.filename or file.target}: {error.strerror or error}") from None
        need[target.parent] = need.get(target.parent, 0) + file.size
    for folder, size in need.items():
        room = (free or _free)(folder)
        if room < size + MARGIN:
            raise StageError(
                f"{folder}: {size // 1_000_000 + 1} MB are to be placed there, but only {room // 1_000_000} MB are free"
            )
        _probe(folder)


def _free(folder: Path) -> int:
    import shutil

    return shutil.disk_usage(folder).free


def _probe(folder: Path) -> None:
    """Creates and removes an empty file: Windows' access rights cannot be told in another way."""
    probe = folder / f".zcheck-{secrets.token_hex(6)}.probe"
    try:
        with open(probe, "xb"):
            pass
        probe.unlink()
    except OSError as error:
        raise StageError(f"{folder}: cannot be written to ({error.strerror or error})") from None


def stage(journal: Journal, data: Path, disk: Disk | None = None) -> None:
    """Puts the journal's files in place. On any error everything is taken back and StageError says why."""
    disk = disk or Disk()
    try:
        write_journal(journal, data, disk)
    except OSError as error:
        raise StageError(f"{journal_folder(data)}: {error.strerror or error}; nothing was changed") from None
    try:
        for file in journal.files:
            disk.copy(_path(file.source), _path(file.scratch))
            if _hash(_path(file.scratch)) != file.sha256:
                raise StageError(f"{file.scratch}: the copy came out different; an antivirus program, or a bad disk?")
        for file in journal.files:
            _swap(file, disk)
    except (OSError, StageError) as error:
        recovery = recover(journal, data, disk)
        cause = error.message if isinstance(error, StageError) else f"{error.filename}: {error.strerror or error}"
        after = "everything is as before" if recovery.done else "run `zcheck undo` once the program has ended"
        raise StageError(f"{cause}; {after}") from None


def _swap(file: JournalFile, disk: Disk) -> None:
    target, backup, scratch = _path(file.target), _path(file.backup), _path(file.scratch)
    if file.original is not None:
        disk.rename(target, backup)
        if _hash(backup) != file.original:
            # Changed since the check: recovery sees a backup with another hash and puts it back.
            raise StageError(f"{file.target}: it changed while zcheck was at work")
    disk.rename(scratch, target)


def verify(journal: Journal) -> tuple[str, ...]:
    """Targets that no longer hold what was placed there (an antivirus program's quarantine, an updater)."""
    return tuple(file.target for file in journal.files if _quiet_hash(file.target) != file.sha256)


def _quiet_hash(path: str) -> str | None:
    try:
        return _hash(_path(path))
    except OSError:
        return None


def recover(journal: Journal, data: Path, disk: Disk | None = None) -> Recovery:
    """Takes a journal's files back, as far as nobody uses them; never raises for the state it finds."""
    disk = disk or Disk()
    results = []
    for file in journal.files:
        try:
            results.append(_restore(file, disk))
        except OSError as error:
            held = getattr(error, "winerror", None) in _IN_USE
            note = "in use by a running program, or closed to us" if held else f"{error.strerror or error}"
            results.append(Restored(file.target, "pending", note))
    done = all(result.state != "pending" for result in results)
    note = ""
    if done:
        try:
            path = journal_path(journal, data)
            if path.exists():
                disk.remove(path)
        except OSError as error:
            done, note = False, f"the journal could not be closed: {error.strerror or error}"
    return Recovery(journal.id, journal.program, tuple(results), done, note)


def _restore(file: JournalFile, disk: Disk) -> Restored:
    target, backup, scratch = _path(file.target), _path(file.backup), _path(file.scratch)
    if os.path.lexists(scratch):
        disk.remove(scratch)  # its name bears the run's id: nobody else's
    if not os.path.lexists(backup):
        return _without_backup(file, target, disk)
    there = _hash(target)
    saved = _hash(backup)
    if there is None:
        disk.rename(backup, target)
    elif there == file.sha256:
        disk.replace(backup, target)
    elif there == saved:
        disk.remove(backup)
    else:
        return Restored(file.target, "kept", f"changed meanwhile; the original is kept as {Path(file.backup).name}")
    if saved != file.original:
        return Restored(file.target, "restored", "the original had changed meanwhile; put back as it was found")
    return Restored(file.target, "restored")


def _without_backup(file: JournalFile, target: Path, disk: Disk) -> Restored:
    there = _hash(target)
    if file.original is None:
        if there is None:
            return Restored(file.target, "removed")
        if there == file.sha256:
            disk.remove(target)
            return Restored(file.target, "removed")
        return Restored(file.target, "kept", "changed meanwhile; it is not zcheck's copy any more")
    if there == file.original:
        return Restored(file.target, "untouched")
    if there is None:
        return Restored(file.target, "missing", "neither the original nor its backup is there")
    if there == file.sha256:
        return Restored(file.target, "missing", "the backup is gone; ZLUDA's file stays in place")
    return Restored(file.target, "kept", "changed meanwhile")


def backups_without_journal(folder: Path, data: Path) -> tuple[Path, ...]:
    """Backup files in a folder that no open journal knows (another user's run, a lost data folder)."""
    known = {file.backup for journal in read_journals(data)[0] for file in journal.files}
    if not folder.is_dir():
        return ()
    return tuple(sorted(path for path in folder.glob("*.zcheck-*.bak") if str(path) not in known))
