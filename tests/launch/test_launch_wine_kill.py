"""Launchers that are really killed: at every step, in recovery, in the middle of a run; and two at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from staging import Place, tree
from winhost import Host

from winpython import CHECKOUT, WinPython

pytestmark = pytest.mark.wine
SCRIPT = Path(__file__).with_name("dying_launcher.py")


@pytest.fixture(params=["windows", "linux"])
def host(request: pytest.FixtureRequest, winpython: WinPython, tmp_path: Path) -> Host:
    return Host(tmp_path, winpython, request.param == "windows")


def _dying(windows: WinPython | None, place: Place, what: str, steps: int) -> int:
    arguments = [what, place.app, place.zluda, place.data]
    if windows:
        return windows.program(windows.root / "python.exe", SCRIPT, *arguments, str(steps)).returncode
    environment = os.environ | {"PYTHONPATH": str(CHECKOUT / "analyzer")}
    command = [sys.executable, str(SCRIPT), *map(str, arguments), str(steps)]
    return subprocess.run(command, env=environment, capture_output=True).returncode


@pytest.mark.parametrize("where", ["windows", "linux"])
def test_killed_at_every_step_then_in_recovery_then_undone(where: str, winpython: WinPython, tmp_path: Path) -> None:
    windows = winpython if where == "windows" else None
    for steps in range(40):
        place = Place(tmp_path / str(steps))
        code = _dying(windows, place, "stage", steps)
        if code == 0:
            break
        assert code == (9 if windows else -signal.SIGKILL)
        _dying(windows, place, "recover", steps % 4)
        assert _dying(windows, place, "recover", 100) == 0
        assert tree(place.app) == place.before, steps
        assert not list((place.data / "journals").glob("*.json"))
    assert steps >= 9, "it was killed at every step there is"


def _wait_for(path: Path, text: str, process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 90
    while time.monotonic() < end:
        assert process.poll() is None, "the launcher ended too soon"
        for log in path.glob("runs/*/stdout.txt"):
            if text in log.read_text(errors="replace"):
                return
        time.sleep(0.1)
    raise AssertionError(f"{text!r} did not come")


def _start(host: Host, program: Path) -> subprocess.Popen[str]:
    options = host.options(strategy="stage", anyway=True, zluda="v6")
    return subprocess.Popen(
        host.command("run", *options, program), env=host.environment(), stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL if not host.on_windows else subprocess.PIPE,
        stderr=subprocess.DEVNULL if not host.on_windows else subprocess.PIPE, text=True,
    )  # fmt: skip


def _undo(host: Host) -> None:
    """Undoes as soon as nothing holds the files any more."""
    for _ in range(60):
        result = host.zcheck("undo", "--data-dir", host.data)
        if result.code == 0:
            return
        assert "not done" in result.out, result.err
        time.sleep(0.5)
    raise AssertionError(result.out)


def test_killed_in_the_middle_of_a_run_and_second_run_refused(host: Host) -> None:
    program = host.put("holder.exe")
    host.put("app/nvcuda.dll")
    before = tree(host.app)
    launcher = _start(host, program)
    try:
        _wait_for(host.data, "loaded", launcher)
        assert tree(host.app) != before, "ZLUDA's file is in place during the run"
        second = host.run(program, strategy="stage", check=True, anyway=True)
        assert second.code == 125, second.out + second.err
        assert "another zcheck run" in second.err or "not the file that was analysed" in second.err
    finally:
        launcher.send_signal(signal.SIGKILL)
        launcher.wait()
        for stream in (launcher.stdout, launcher.stderr):
            if stream:
                stream.close()
    assert tree(host.app) != before
    _undo(host)
    assert tree(host.app) == before


def test_a_dll_that_another_program_holds_is_pending_until_that_ends(winpython: WinPython, tmp_path: Path) -> None:
    """Windows only: a loaded DLL can be neither removed nor replaced there."""
    host = Host(tmp_path, winpython, True)
    program = host.put("holder.exe")
    host.put("app/nvcuda.dll")
    before = tree(host.app)
    source = tmp_path / "one"
    source.mkdir()
    (source / "nvcuda.dll").write_bytes((host.zluda / "nvcuda.dll").read_bytes())
    place = Place.__new__(Place)
    place.app, place.zluda, place.data = host.app, source, host.data
    assert _dying(winpython, place, "stage", 100) == 0
    holder = winpython.start(program, cwd=host.app)
    try:
        assert holder.stdout is not None
        assert "loaded" in holder.stdout.readline()
        held = host.zcheck("undo", "--data-dir", host.data)
        assert held.code == 1
        assert "pending" in held.out
        assert (host.app / "nvcuda.dll").read_bytes() == (source / "nvcuda.dll").read_bytes()
    finally:
        holder.kill()
        holder.communicate()
    _undo(host)
    assert tree(host.app) == before
    assert "Nothing was left behind" in host.zcheck("undo", "--data-dir", host.data).out
