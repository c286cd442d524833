"""Libraries beside a program that use CUDA and that it was not seen to load: plugins, most often."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from zcheck.cli.data import coverage
from zcheck.model.bundle import BundleFile

if TYPE_CHECKING:
    from zcheck.cli.pipeline import Reader

_READ = 400
"""libraries that are read for their imports"""


class CudaUsers:
    """Tells libraries that use CUDA, each looked at once for however many programs."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._uses: dict[str, bool] = {}

    def beside(self, files: Iterable[BundleFile], reached: Collection[str]) -> list[str]:
        """Those of the files that are libraries, import a CUDA library and are not ``reached``; CUDA's own are none."""
        library_of = coverage().library_of
        asked = [
            file.path
            for file in files
            if file.kind == "pe"
            and file.path not in reached
            and not file.path.lower().endswith(".exe")
            and library_of(file.path.rpartition("/")[2]) is None
        ]
        return [path for path in asked[:_READ] if self._use(path)]

    def _use(self, path: str) -> bool:
        if path not in self._uses:
            facts = self._reader.read(path)
            library_of = coverage().library_of
            self._uses[path] = facts is not None and any(library_of(item.dll) is not None for item in facts.imports)
        return self._uses[path]
