"""A program folder, a ZLUDA folder, and a disk that dies: what the journal's tests share."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from zcheck.launch.disk import Disk
from zcheck.launch.journal import make_journal
from zcheck.model.launch import Journal, StageFile


class Killed(BaseException):
    """The launcher was killed here; nothing of it runs any more."""


class DyingDisk(Disk):
    """Dies at the n-th change, before it, in its middle (half a copy) or right after it."""

    def __init__(self, steps: int, half: bool = False) -> None:
        self.left, self.half, self.done = steps, half, 0

    def _step(self, change: Callable[[], None], partly: Callable[[], None] | None = None) -> None:
        if self.left <= 0:
            if partly is not None and self.half:
                partly()
            raise Killed
        self.left -= 1
        self.done += 1
        change()

    def copy(self, source: Path, target: Path) -> None:
        data = source.read_bytes()
        self._step(lambda: Disk.copy(self, source, target), lambda: target.write_bytes(data[: len(data) // 2]) and None)

    def rename(self, source: Path, target: Path) -> None:
        self._step(lambda: Disk.rename(self, source, target))

    def replace(self, source: Path, target: Path) -> None:
        self._step(lambda: Disk.replace(self, source, target))

    def remove(self, path: Path) -> None:
        self._step(lambda: Disk.remove(self, path))

    def write(self, path: Path, data: bytes) -> None:
        self._step(
            lambda: Disk.write(self, path, data),
            lambda: path.with_name(path.name + ".part").write_bytes(data[:9]) and None,
        )


def tree(folder: Path) -> dict[str, tuple[str, int, int]]:
    """Every file below a folder with SHA-256, mode and time: equal trees are the same folder."""
    return {
        str(path.relative_to(folder)): (
            hashlib.sha256(path.read_bytes()).hexdigest(),
            path.stat().st_mode,
            path.stat().st_mtime_ns,
        )
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def contents(folder: Path) -> set[bytes]:
    """The contents of all files below a folder."""
    return {path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@dataclass
class Place:
    """A program with two own CUDA libraries in two folders, and a ZLUDA folder with three to be staged."""

    root: Path

    def __post_init__(self) -> None:
        self.app, self.zluda, self.data = self.root / "app", self.root / "zluda", self.root / "data"
        (self.app / "lib").mkdir(parents=True)
        self.zluda.mkdir()
        (self.app / "app.exe").write_bytes(b"MZ the program")
        (self.app / "cublas64_12.dll").write_bytes(b"NVIDIA's cublas")
        (self.app / "lib" / "cufft64_11.dll").write_bytes(b"NVIDIA's cufft" * 1000)
        for name in ("cublas64_12.dll", "cufft64_11.dll", "nvcuda.dll"):
            (self.zluda / name).write_bytes(f"ZLUDA's {name}".encode() * 500)
        self.before = tree(self.app)

    def files(self) -> tuple[StageFile, ...]:
        places = {"cublas64_12.dll": self.app, "cufft64_11.dll": self.app / "lib", "nvcuda.dll": self.app}
        result = []
        for name, folder in places.items():
            source, target = self.zluda / name, folder / name
            original = hashlib.sha256(target.read_bytes()).hexdigest() if target.exists() else None
            digest = hashlib.sha256(source.read_bytes()).hexdigest()
            result.append(StageFile(str(source), str(target), digest, source.stat().st_size, original))
        return tuple(result)

    def journal(self) -> Journal:
        return make_journal(str(self.app / "app.exe"), self.files())
