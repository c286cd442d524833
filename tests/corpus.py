# ruff: noqa: E501 - the table below

"""Real Windows packages that tests marked ``corpus`` read: downloaded once, checked, kept outside the checkout.

``corpus.path("numpy")`` is the unpacked folder. The cache is ``$ZCHECK_CORPUS`` or the user's cache folder; a package's
licence forbids putting it into the repository. Tests use the packages of ``CI`` (under 400 MB together); others are for
work by hand: ``python tests/corpus.py NAME …`` fetches and prints their folders, without a name it lists the table.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import platformdirs

LOCK_SECONDS = 1800
"""how long one process waits for another one's download before it fails"""


@dataclass(frozen=True)
class Package:
    """One published package: where it comes from, its file's SHA-256 and size in bytes."""

    name: str
    version: str
    sha256: str
    size: int
    kind: Literal["pip", "npm"] = "pip"
    python: str = "3.11"
    abi: str | None = "cp311"
    platform: str = "win_amd64"
    ci: bool = False
    programs: bool = True
    """false for packages that are here for their models"""

    @property
    def folder(self) -> str:
        """Name of the unpacked folder in the cache: ``NAME-VERSION``, an npm scope without its ``@`` and ``/``."""
        return f"{self.name.lstrip('@').replace('/', '-')}-{self.version}"

    def command(self, into: Path) -> list[str]:
        """The command that downloads the file into a folder."""
        if self.kind == "npm":
            npm = shutil.which("npm") or "npm"
            return [npm, "pack", f"{self.name}@{self.version}", "--pack-destination", str(into), "--silent"]
        abi = ["--abi", self.abi] if self.abi else []
        return [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"),
            *("--python-version", self.python, "--implementation", "cp", *abi, "--platform", self.platform),
            *("--dest", str(into), f"{self.name}=={self.version}"),
        ]


# fmt: off
PACKAGES: tuple[Package, ...] = (
    Package("nvidia-cuda-runtime-cu12", "12.4.127",
            "09c2e35f48359752dfa822c09918211844a3d93c100a715d79b59591130c5e1e", 878_808, ci=True),
    Package("nvidia-cuda-runtime-cu11", "11.8.89",
            "f60c9fdaed8065b38de8097867240efc5556a8a710007146daeb9082334a6e63", 1_021_163, ci=True),
    Package("nvidia-cuda-runtime", "13.5.37",
            "f225d3fa5ea6bfbb58fc4979ef72375cbe661d9107f0d8a4ff22cc151525e4a9", 2_780_254, ci=True),
    Package("ctransformers", "0.2.27",
            "6a3ba47556471850d95fdbc59299a82ab91c9dc8b40201c5e7e82d71360772d9", 9_853_506, ci=True),
    Package("bitsandbytes", "0.50.2",
            "c697963c8fda3dcd0d7ebd9b5211ae4067feef7cd06e0350d4e816a434fe683d", 39_096_375, ci=True),
    Package("ctranslate2", "4.8.5",
            "cb918ee10fd228c2aa2a5fde3e62999a4617cb11dae51644d5286a1b6d6783dd", 20_405_543, ci=True),
    Package("openmm", "8.6.1",
            "176a4d1c65a43ce02087e72fdb056437636689aff9f9cab6027b9516934bc87d", 13_163_945, ci=True),
    Package("openmm-cuda-12", "8.6.1",
            "b00e9eee60da7ac390d407b12825a1d31e400a29213379d4b9c90567648be458", 2_007_117, ci=True),
    Package("openmm-cuda-13", "8.6.1",
            "c3453eae5b7a0461e30dab45eaefc60abe13493f543b423c3017cd3fe2c2f8b4", 2_017_172, ci=True),
    Package("vapoursynth-dfttest2-cuda", "11.1.0",
            "d6fa15187e3cbf9709f5a4df38b0e1f221fc1b40808eac56b51db15ac01bf412", 349_265, python="3.12", abi=None, ci=True),
    Package("vapoursynth-dfttest2-hip", "11.1.0",
            "5e62e794b31873f4756edd9e684f918e0872c209cfa62d98fdfcfda727724965", 54_994_653, python="3.12", abi=None, ci=True),
    Package("vapoursynth-vszipcu", "1.2.0",
            "7c71247a8caf82883187b2560c690807cf2ea4a2db465f935cbd923ef21251fd", 13_017_813, python="3.12", abi=None, ci=True),
    Package("drjit", "1.5.0",
            "459a78a485a3f374c4e5cd61fa639cbe5db3c3e8ac054cf9b723e8b85066b3aa", 4_260_048, ci=True),
    Package("xgboost", "3.2.0",
            "0d169736fd836fc13646c7ab787167b3a8110351c2c6bc770c755ee1618f0442", 101_681_668, ci=True),
    Package("hardwaremonitor", "1.2.1",
            "e8bdd9ce52564b34a29f57647fc1f51a0eba724d76ce6e65ced67d3b3771d461", 1_473_069, ci=True),
    Package("@node-llama-cpp/win-arm64", "3.21.1",
            "458c8c6de4463b5fde16b1fbc69e63a7e878b227ed9614a0a3648d9b40bf2ccb", 4_606_830, kind="npm", ci=True),
    Package("@ffmpeg-installer/win32-ia32", "4.1.0",
            "74f2c6f6de626cbdf694bf4204ef632dfd5b4c151e892131481f19ff2d763d41", 19_103_842, kind="npm", ci=True),
    Package("numpy", "2.4.6",
            "1e254a00cdf42b1e4d5b3d68d33af63268d41340d8885df2ab6470f2e1500147", 12_608_406, ci=True),
    Package("llvmlite", "0.50.0",
            "ffe46ef508df226e54b5fe1f7bf11122e5297bcdbb3902cc5b670a429d56ff47", 41_865_266, ci=True),
    Package("panda3d", "1.10.16",
            "37acfb92655c4226879f95c988e2ef1449a53c54486d6c1ebc00e2772429af82", 65_087_323),
    Package("silero-vad", "6.2.3",
            "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8", 11_317_527, ci=True, programs=False),
    Package("faster-whisper", "1.2.1",
            "79a66ad50688c0b794dd501dc340a736992a6342f7f95e5811be60b5224a26a7", 1_118_909, ci=True, programs=False),
    Package("rapidocr-onnxruntime", "1.4.4",
            "971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf", 14_915_192, ci=True, programs=False),
    Package("nvidia-cuda-cuobjdump", "13.5.37",
            "38780fee50863252a0b8926357faa91615ca1c8346490563f33a06100cd73f58", 290_354, abi=None, platform="manylinux_2_17_x86_64", ci=True),
)
# fmt: on
CI: tuple[str, ...] = tuple(package.name for package in PACKAGES if package.ci)


def package(name: str) -> Package:
    """The table's row of that name; raises KeyError."""
    for row in PACKAGES:
        if row.name == name:
            return row
    raise KeyError(f"{name} is not in the corpus: {', '.join(row.name for row in PACKAGES)}")


def cache() -> Path:
    """The cache folder; made when missing."""
    folder = Path(os.environ.get("ZCHECK_CORPUS") or platformdirs.user_cache_dir("zcheck-corpus", appauthor=False))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def path(name: str) -> Path:
    """The folder of one unpacked package, downloaded when it is not there yet.

    Raises RuntimeError when the download fails or its SHA-256 differs: a corpus test fails, it never skips silently.
    """
    row = package(name)
    unpacked = cache() / "unpacked" / row.folder
    done = unpacked.with_name(unpacked.name + ".sha256")  # written last, so a killed run is not taken for a whole one
    if not _is(done, row.sha256):
        with _lock(row.folder):
            if not _is(done, row.sha256):
                archive = _download(row)
                _unpack(archive, unpacked)
                done.write_text(row.sha256, encoding="ascii")
    return unpacked


def archive(name: str) -> Path:
    """The downloaded file itself (wheel or npm tarball), fetched and checked when it is not there yet."""
    row = package(name)
    with _lock(row.folder):
        return _download(row)


def _is(mark: Path, sha256: str) -> bool:
    try:
        return mark.read_text(encoding="ascii") == sha256
    except OSError:
        return False


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _download(row: Package) -> Path:
    folder = cache() / "files" / row.folder
    if folder.is_dir():
        for file in folder.iterdir():
            if file.stat().st_size == row.size and _sha256(file) == row.sha256:
                return file
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache()) as scratch:
        done = subprocess.run(row.command(Path(scratch)), capture_output=True, text=True, errors="replace")
        files = list(Path(scratch).iterdir())
        if done.returncode or len(files) != 1:
            raise RuntimeError(
                f"cannot download {row.name} {row.version}: {(done.stderr or done.stdout).strip()[-600:]}"
            )
        seen = _sha256(files[0])
        if seen != row.sha256 or files[0].stat().st_size != row.size:
            raise RuntimeError(f"{files[0].name} has SHA-256 {seen}, {row.sha256} was expected")
        target = folder / files[0].name
        files[0].replace(target)
    return target


def _unpack(archive: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if archive.name.endswith(".tgz"):
        with tarfile.open(archive) as tar:
            members = [member for member in tar.getmembers() if member.isfile() or member.isdir()]
            root = folder.resolve()
            for member in members:
                if not (root / member.name).resolve().is_relative_to(root):
                    raise RuntimeError(f"{archive.name} holds {member.name}, which points outside of it")
            if hasattr(tarfile, "data_filter"):
                tar.extractall(folder, members=members, filter="data")
            else:
                tar.extractall(folder, members=members)
    else:
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(folder)


@contextlib.contextmanager
def _lock(name: str) -> Iterator[None]:
    """One process at a time: pytest-xdist's workers ask for the same package at once."""
    folder = cache() / "locks"
    folder.mkdir(exist_ok=True)
    with (folder / name).open("a+b") as stream:
        deadline = time.monotonic() + LOCK_SECONDS
        while not _try_lock(stream.fileno()):
            if time.monotonic() > deadline:
                raise RuntimeError(f"another process has held the download of {name} for {LOCK_SECONDS} s")
            time.sleep(0.2)
        yield  # closing the file frees the lock, also when the process dies


def _try_lock(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    for row in PACKAGES:
        if not sys.argv[1:]:
            print(f"{row.size / 1e6:8.1f} MB  {'CI' if row.ci else '  '}  {row.name} {row.version}")
    for argument in sys.argv[1:]:
        print(path(argument))
