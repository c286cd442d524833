"""What is built can be installed and used by somebody who has nothing but the built file."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.xdist_group("package")]


def build(source: Path, out: Path, *kinds: str) -> None:
    """Build the named kinds; PYTHONPATH must not help the build to find zcheck."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-m", "build", *kinds, "--outdir", str(out), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr


def one(folder: Path, pattern: str) -> Path:
    found = list(folder.glob(pattern))
    assert len(found) == 1, found
    return found[0]


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist of this checkout and the wheel made straight from it."""
    folder = tmp_path_factory.mktemp("dist")
    build(ROOT, folder, "--sdist", "--wheel")
    return folder


def test_the_wheel_carries_rules_and_database(built: Path, tmp_path: Path) -> None:
    files = contents(one(built, "*.whl"))
    rules = {path.relative_to(ROOT / "rules").as_posix() for path in (ROOT / "rules").rglob("*.yaml")}
    assert {name.removeprefix("zcheck/data/rules/") for name in files if name.startswith("zcheck/data/rules/")} == rules
    assert not [name for name in files if not name.startswith(("zcheck/", "zcheck-"))]
    database = tmp_path / "coverage.sqlite"
    database.write_bytes(files["zcheck/data/coverage.sqlite"])
    connection = sqlite3.connect(database)
    try:
        (tables,) = connection.execute("select count(*) from sqlite_master where type = 'table'").fetchone()
        assert tables > 10
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
    finally:
        connection.close()


def test_a_wheel_made_from_the_sdist_is_the_same(built: Path, tmp_path: Path) -> None:
    with tarfile.open(one(built, "*.tar.gz")) as archive:
        archive.extractall(tmp_path / "source")
    build(one(tmp_path / "source", "*"), tmp_path / "dist", "--wheel")
    assert contents(one(tmp_path / "dist", "*.whl")) == contents(one(built, "*.whl"))


def test_the_sdist_has_what_tests_and_readme_need(built: Path) -> None:
    with tarfile.open(one(built, "*.tar.gz")) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for needed in (
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        ".ci/run",
        "samples/gemm.exe",
        "tests/conftest.py",
        "hatch_build.py",
    ):
        assert needed in names


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new virtual environment with the wheel in it; the path is that of its Python."""
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=True)
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    call(home, str(python), "-m", "pip", "install", "--quiet", str(one(built, "*.whl")))
    return python


def call(folder: Path, *command: str) -> str:
    """Standard output of a command that has to succeed, run in ``folder`` with nothing of this process's Python."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV", "ZCHECK_"))
    }
    environment["XDG_CACHE_HOME"] = str(folder / "cache")
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def smoke(folder: Path, *zcheck: str) -> None:
    """What every kind of installation has to be able to do, away from the checkout."""
    shutil.copytree(ROOT / "samples", folder / "samples")
    assert call(folder, *zcheck, "--version").startswith("zcheck ")
    assert "LIKELY" in call(folder, *zcheck, "samples/gemm.exe")
    assert "cublasSgemm_v2" in call(folder, *zcheck, "explain", "cublasSgemm_v2")
    call(folder, *zcheck, "rules", "test")
    assert not (folder / "cache" / "zcheck" / "coverage").exists(), "the installation's own database was not used"


def test_the_installed_wheel_works_outside_the_checkout(installed: Path, tmp_path: Path) -> None:
    smoke(tmp_path, str(installed.with_name("zcheck")))


@pytest.mark.skipif(os.name == "nt", reason="built on Linux in CI; packaging/README.md says what that leaves open")
def test_the_one_file_program_works(installed: Path, tmp_path: Path) -> None:
    call(tmp_path, str(installed), "-m", "pip", "install", "--quiet", "pyinstaller", "hatchling")
    spec = str(ROOT / "packaging" / "zcheck.spec")
    folders = ("--distpath", str(tmp_path / "dist"), "--workpath", str(tmp_path / "work"))
    call(tmp_path, str(installed), "-m", "PyInstaller", "--log-level", "ERROR", *folders, spec)
    smoke(tmp_path, str(tmp_path / "dist" / "zcheck"))
