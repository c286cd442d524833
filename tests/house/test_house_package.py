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


def test_the_installed_wheel_works_outside_the_checkout(built: Path, tmp_path: Path) -> None:
    home = tmp_path / "environment"
    venv.create(home, with_pip=True)
    scripts = home / ("Scripts" if os.name == "nt" else "bin")
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV", "ZCHECK_"))
    }
    environment["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.copytree(ROOT / "samples", elsewhere / "samples")

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=elsewhere, env=environment, capture_output=True, text=True, encoding="utf-8")

    done = run(str(scripts / "python"), "-m", "pip", "install", "--quiet", str(one(built, "*.whl")))
    assert done.returncode == 0, done.stderr
    zcheck = str(scripts / "zcheck")
    version = run(zcheck, "--version")
    assert version.returncode == 0 and version.stdout.startswith("zcheck ")
    verdict = run(zcheck, "samples/gemm.exe")
    assert verdict.returncode == 0, verdict.stdout + verdict.stderr
    assert "cublasSgemm_v2" in run(zcheck, "explain", "cublasSgemm_v2").stdout
    rules = run(zcheck, "rules", "test")
    assert rules.returncode == 0, rules.stdout + rules.stderr
    assert not (tmp_path / "cache" / "zcheck" / "coverage").exists(), "the wheel's own database was not used"
