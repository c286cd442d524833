"""Files that the user names as input: read whole, within bounds, regular ones only."""

from __future__ import annotations

import stat
from pathlib import Path

from zcheck.errors import InputError

LARGEST = 256 * 1024 * 1024
"""bytes of a saved report or evidence"""


def read_file(path: Path, largest: int = LARGEST) -> bytes:
    """The bytes of a regular file; raises InputError for a folder, a pipe or a device (which would wait or never end),
    for what is larger than ``largest`` bytes, and for what cannot be read."""
    try:
        state = path.stat()
        if stat.S_ISDIR(state.st_mode):
            raise InputError(f"{path}: cannot be read, it is a folder")
        if not stat.S_ISREG(state.st_mode):
            raise InputError(f"{path}: cannot be read, it is not a regular file")
        if state.st_size > largest:
            raise InputError(f"{path}: is larger than {largest >> 20} MiB, too large for what it should be")
        with path.open("rb") as file:
            return file.read(largest)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
