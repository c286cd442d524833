"""The corpus helper: one download however many ask, and no file that is not the one in the table."""

from __future__ import annotations

import hashlib
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import corpus


class Local(corpus.Package):
    """A package that is "downloaded" by copying; each download leaves a mark."""

    def command(self, into: Path) -> list[str]:
        source = Path(self.version)
        code = f"import shutil, uuid; shutil.copy({str(source)!r}, {str(into)!r}); open({str(source.parent)!r} + "
        return [sys.executable, "-c", code + "'/mark' + uuid.uuid4().hex, 'x')"]


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    source = tmp_path / "source"
    source.mkdir()
    with zipfile.ZipFile(source / "p.whl", "w") as wheel:
        wheel.writestr("p/a.dll", b"MZ")
    monkeypatch.setenv("ZCHECK_CORPUS", str(tmp_path / "cache"))
    return source


def row(file: Path, sha256: str | None = None) -> Local:
    seen = hashlib.sha256(file.read_bytes()).hexdigest()
    return Local("p", str(file), sha256 or seen, file.stat().st_size)


def test_one_download_for_all(local: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = row(local / "p.whl")
    monkeypatch.setattr(corpus, "PACKAGES", (package,))
    monkeypatch.setattr(corpus.Package, "folder", property(lambda self: "p-1"))
    with ThreadPoolExecutor(4) as pool:
        folders = set(pool.map(corpus.path, ["p"] * 4))
    (folder,) = folders
    assert (folder / "p" / "a.dll").read_bytes() == b"MZ"
    assert len(list(local.glob("mark*"))) == 1
    assert corpus.archive("p").name == "p.whl" and len(list(local.glob("mark*"))) == 1


def test_another_file_is_refused(local: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "PACKAGES", (row(local / "p.whl", "0" * 64),))
    monkeypatch.setattr(corpus.Package, "folder", property(lambda self: "p-1"))
    with pytest.raises(RuntimeError, match="was expected"):
        corpus.path("p")


def test_a_failed_download_is_told(local: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = Local("p", str(local / "no.whl"), "0" * 64, 1)
    monkeypatch.setattr(corpus, "PACKAGES", (package,))
    monkeypatch.setattr(corpus.Package, "folder", property(lambda self: "p-1"))
    with pytest.raises(RuntimeError, match="cannot download p"):
        corpus.path("p")


def test_the_table() -> None:
    assert sum(package.size for package in corpus.PACKAGES if package.ci) < 400_000_000
    assert len({package.folder for package in corpus.PACKAGES}) == len(corpus.PACKAGES)
    with pytest.raises(KeyError, match="not in the corpus"):
        corpus.package("no such package")
