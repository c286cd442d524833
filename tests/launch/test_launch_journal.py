"""Staging is taken back whatever happens: killed at any step, recovery killed, files changed meanwhile, no room."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from staging import DyingDisk, Killed, Place, contents, tree

from zcheck.launch.disk import Disk
from zcheck.launch.journal import (
    StageError,
    backups_without_journal,
    check,
    journal_folder,
    make_journal,
    read_journals,
    recover,
    stage,
    verify,
)
from zcheck.launch.lock import Busy, FolderLock
from zcheck.model.launch import StageFile


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def _steps(place: Place) -> int:
    disk = DyingDisk(10_000)
    journal = place.journal()
    stage(journal, place.data, disk)
    assert recover(journal, place.data).done
    assert tree(place.app) == place.before
    return disk.done


def test_stage_puts_in_place_and_recover_takes_back(place: Place) -> None:
    journal = place.journal()
    check(place.files())
    assert tree(place.app) == place.before, "checking changes nothing"
    stage(journal, place.data)
    assert (place.app / "cublas64_12.dll").read_bytes() == (place.zluda / "cublas64_12.dll").read_bytes()
    assert (place.app / "nvcuda.dll").exists()
    assert verify(journal) == ()
    result = recover(journal, place.data)
    assert [file.state for file in result.files] == ["restored", "restored", "removed"]
    assert result.done
    assert tree(place.app) == place.before
    assert read_journals(place.data) == ([], [])


def test_killed_at_every_step_and_recovery_killed_at_every_step(tmp_path: Path) -> None:
    steps = _steps(Place(tmp_path / "count"))
    assert steps >= 9
    for first in range(steps + 1):
        for half in (False, True):
            for second in range(9):
                place = Place(tmp_path / f"{first}-{half}-{second}")
                journal = place.journal()
                with suppress(Killed):
                    stage(journal, place.data, DyingDisk(first, half))
                open_journals, bad = read_journals(place.data)
                assert not bad
                for left in open_journals:
                    with suppress(Killed):
                        recover(left, place.data, DyingDisk(second))
                for left in read_journals(place.data)[0]:
                    assert recover(left, place.data).done
                assert tree(place.app) == place.before, (first, half, second)


MEDDLING = st.sampled_from(
    ["nothing", "change staged", "delete staged", "put original back", "new file", "change backup"]
)


@settings(max_examples=150, deadline=None)
@given(
    steps=st.lists(st.tuples(st.integers(0, 14), st.booleans(), MEDDLING, st.integers(0, 2)), min_size=1, max_size=5),
)
def test_no_interleaving_loses_a_file(steps: list[tuple[int, bool, str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder))
        precious = contents(place.app)
        files = place.files()
        journal = place.journal()
        meddled = False
        for number, (kill, half, meddling, index) in enumerate(steps):
            disk = DyingDisk(kill, half)
            try:
                if number == 0:
                    stage(journal, place.data, disk)
                else:
                    for left in read_journals(place.data)[0]:
                        recover(left, place.data, disk)
            except Killed:
                pass
            target = Path(files[index].target)
            backup = Path(journal.files[index].backup)
            if meddling == "change staged" and target.exists() and files[index].original is None:
                target.write_bytes(b"changed by the program")
                precious.add(b"changed by the program")
                meddled = True
            elif meddling == "change staged" and backup.exists() and target.exists():
                target.write_bytes(b"an update")
                precious.add(b"an update")
                meddled = True
            elif meddling == "delete staged" and target.exists() and target.read_bytes().startswith(b"ZLUDA's"):
                target.unlink()
            elif meddling == "put original back" and backup.exists():
                if target.exists() and target.read_bytes() in (b"an update", b"changed by the program"):
                    precious.discard(target.read_bytes())  # whoever puts the original back gives up what lay there
                target.write_bytes(backup.read_bytes())
                os.utime(target, ns=(backup.stat().st_atime_ns, backup.stat().st_mtime_ns))
            elif meddling == "new file":
                (place.app / "cache.bin").write_bytes(b"made by the program")
                precious.add(b"made by the program")
                meddled = True
            elif meddling == "change backup" and backup.exists():
                backup.write_bytes(b"changed backup")
                precious = (precious - {b"NVIDIA's cublas", b"NVIDIA's cufft" * 1000}) | {b"changed backup"}
                meddled = True
        for left in read_journals(place.data)[0]:
            assert recover(left, place.data).done
        assert read_journals(place.data) == ([], [])
        if meddled:
            assert precious <= contents(place.app) | {b"changed backup"}
        else:
            assert tree(place.app) == place.before


def test_changed_staged_file_is_kept_beside_the_original(place: Place) -> None:
    journal = place.journal()
    stage(journal, place.data)
    (place.app / "cublas64_12.dll").write_bytes(b"an update while running")
    result = recover(journal, place.data)
    assert result.done
    assert result.files[0].state == "kept"
    assert (place.app / "cublas64_12.dll").read_bytes() == b"an update while running"
    assert Path(journal.files[0].backup).read_bytes() == b"NVIDIA's cublas"
    assert backups_without_journal(place.app, place.data) == (Path(journal.files[0].backup),)


def test_changed_between_check_and_stage_is_refused_and_kept(place: Place) -> None:
    journal = place.journal()
    (place.app / "cublas64_12.dll").write_bytes(b"newer")
    now = tree(place.app)
    with pytest.raises(StageError, match="not the one that was analysed"):
        check([StageFile(f.source, f.target, f.sha256, 1, f.original) for f in journal.files])
    with pytest.raises(StageError, match="changed while zcheck was at work"):
        stage(journal, place.data)
    assert tree(place.app) == now


def test_source_that_changed_is_refused(place: Place) -> None:
    files = place.files()
    (place.zluda / "nvcuda.dll").write_bytes(b"tampered")
    with pytest.raises(StageError, match="not those of the plan"):
        check(files)
    with pytest.raises(StageError, match="came out different"):
        stage(make_journal(str(place.app / "app.exe"), files), place.data)
    assert tree(place.app) == place.before


def test_links_are_refused(place: Place) -> None:
    (place.app / "cublas64_12.dll").rename(place.root / "elsewhere.dll")
    (place.app / "cublas64_12.dll").symlink_to(place.root / "elsewhere.dll")
    with pytest.raises(StageError, match="a link is in the way"):
        check(place.files())


def test_no_room_is_refused_before_anything_changes(place: Place) -> None:
    with pytest.raises(StageError, match="are free"):
        check(place.files(), free=lambda folder: 1000)
    assert tree(place.app) == place.before
    assert not journal_folder(place.data).exists()


def test_disk_full_in_the_middle_of_a_copy_is_taken_back(place: Place) -> None:
    class Full(Disk):
        def copy(self, source: Path, target: Path) -> None:
            if source.name == "cufft64_11.dll":
                target.write_bytes(source.read_bytes()[:100])
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))
            super().copy(source, target)

    with pytest.raises(StageError, match="No space left on device; everything is as before"):
        stage(place.journal(), place.data, Full())
    assert tree(place.app) == place.before
    assert read_journals(place.data) == ([], [])


def test_a_journal_that_cannot_be_written_changes_nothing(place: Place) -> None:
    class Full(Disk):
        def write(self, path: Path, data: bytes) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    with pytest.raises(StageError, match="nothing was changed"):
        stage(place.journal(), place.data, Full())
    assert tree(place.app) == place.before


def test_read_only_folder_is_refused(place: Place) -> None:
    """Root writes anywhere, so the check runs as nobody when the tests run as root."""
    place.app.chmod(0o555)
    try:
        if os.getuid():
            with pytest.raises(StageError, match="cannot be written to"):
                check(place.files())
        else:
            for parent in (place.root, *place.root.parents):
                if (
                    parent != Path("/tmp")
                    and parent.stat().st_uid == 0
                    and str(parent).startswith(tempfile.gettempdir())
                ):
                    parent.chmod(0o755)
            pid = os.fork()
            if pid == 0:
                try:
                    os.setgroups([])
                    os.setgid(65534)
                    os.setuid(65534)
                    check(place.files())
                except StageError as error:
                    os._exit(0 if "cannot be written to" in error.message else 3)
                finally:
                    os._exit(4)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert tree(place.app) == place.before
    finally:
        place.app.chmod(0o755)


def test_held_files_are_pending_and_taken_back_later(place: Place) -> None:
    class Held(Disk):
        """A loaded DLL on Windows: it cannot be removed or replaced (access denied)."""

        def remove(self, path: Path) -> None:
            if path.name == "nvcuda.dll":
                raise PermissionError(errno.EACCES, "Access is denied", str(path))
            super().remove(path)

        def replace(self, source: Path, target: Path) -> None:
            if target.name == "cublas64_12.dll":
                raise PermissionError(errno.EACCES, "Access is denied", str(target))
            super().replace(source, target)

    journal = place.journal()
    stage(journal, place.data)
    result = recover(journal, place.data, Held())
    assert not result.done
    assert [file.state for file in result.files] == ["pending", "restored", "pending"]
    assert read_journals(place.data)[0] == [journal]
    assert recover(journal, place.data).done
    assert tree(place.app) == place.before


def test_a_damaged_journal_is_named_not_obeyed(place: Place) -> None:
    journal_folder(place.data).mkdir(parents=True)
    (journal_folder(place.data) / "x.json").write_text("{")
    journals, bad = read_journals(place.data)
    assert journals == []
    assert bad[0][0].name == "x.json"


def test_second_run_in_a_folder_is_refused(place: Place, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(place.app)
    with FolderLock([place.app], place.data):
        with pytest.raises(Busy, match="another zcheck run"), FolderLock([tmp_path / "alias"], place.data):
            pass
        with FolderLock([place.zluda], place.data):
            pass
    with FolderLock([place.app], place.data):
        pass
    assert tree(place.app) == place.before


def test_lock_dies_with_its_process(place: Place) -> None:
    code = (
        "import sys,os,pathlib; from zcheck.launch.lock import FolderLock\n"
        "lock = FolderLock([sys.argv[1]], pathlib.Path(sys.argv[2])); lock.__enter__()\n"
        "print('held', flush=True); sys.stdin.read()"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code, str(place.app), str(place.data)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(Busy), FolderLock([place.app], place.data):
            pass
        holder.kill()
        holder.wait()
        with FolderLock([place.app], place.data):
            pass
