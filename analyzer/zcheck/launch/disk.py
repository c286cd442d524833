"""Every change that launch/ makes to files goes through one small object, so that tests can fail it at any step."""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from pathlib import Path

CHUNK = 1 << 20


def sha256_of(path: Path) -> str:
    """SHA-256 of a file in hex; raises OSError."""
    digest = hashlib.sha256()
    with open(path, "rb") as handle:
        while block := handle.read(CHUNK):
            digest.update(block)
    return digest.hexdigest()


class Disk:
    """The changes: copy, rename, remove, write whole, make folders. Each is one step that may be the last."""

    def copy(self, source: Path, target: Path) -> None:
        """Copies contents and times to a *new* file and flushes it to the disk; raises OSError."""
        with open(source, "rb") as reader, open(target, "xb") as writer:
            shutil.copyfileobj(reader, writer, CHUNK)
            writer.flush()
            os.fsync(writer.fileno())
        with suppress(OSError):
            shutil.copystat(source, target)
            target.chmod(0o644 | (source.stat().st_mode & 0o111))  # a read-only copy could not be removed again

    def rename(self, source: Path, target: Path) -> None:
        """Renames to a name that must be free; raises OSError (FileExistsError)."""
        if os.path.lexists(target):
            raise FileExistsError(17, "file exists", str(target))
        source.rename(target)
        self.sync(target.parent)

    def replace(self, source: Path, target: Path) -> None:
        """Renames over an existing file, atomically; raises OSError."""
        source.replace(target)
        self.sync(target.parent)

    def remove(self, path: Path) -> None:
        """Removes a file; raises OSError."""
        path.unlink()
        self.sync(path.parent)

    def write(self, path: Path, data: bytes) -> None:
        """Writes a file whole or not at all; raises OSError."""
        scratch = path.with_name(path.name + ".part")
        with open(scratch, "wb") as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        self.replace(scratch, path)

    def sync(self, folder: Path) -> None:
        """Flushes a folder's entries where the system can (not on Windows, which keeps them in order itself)."""
        if os.name != "nt":
            with suppress(OSError):
                handle = os.open(folder, os.O_RDONLY)
                try:
                    os.fsync(handle)
                finally:
                    os.close(handle)


def long_path(path: str) -> str:
    r"""On Windows the ``\\?\`` spelling of a path near or over 260 characters, so that it can be opened."""
    if os.name != "nt" or len(path) < 240 or path.startswith("\\\\?\\"):
        return path
    absolute = str(Path(path).absolute())
    return "\\\\?\\UNC" + absolute[1:] if absolute.startswith("\\\\") else "\\\\?\\" + absolute
