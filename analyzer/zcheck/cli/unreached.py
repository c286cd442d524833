"""Libraries of a bundle that use CUDA and that no program of it was seen to load: plugins, most often."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from zcheck.cli.data import coverage
from zcheck.model.bundle import Bundle

if TYPE_CHECKING:
    from zcheck.cli.pipeline import Reader

_READ = 400
"""libraries that are read for their imports"""


def below(bundle: Bundle, entry: str) -> list[str]:
    """Libraries in the folder of a program and below it, without those below the folders of other programs."""
    folder = entry.rpartition("/")[0]
    prefix = f"{folder}/" if folder else ""
    programs = {file.path.rpartition("/")[0] for file in bundle.files if file.path.lower().endswith(".exe")}
    others = tuple(f"{place}/" for place in programs if place != folder and place.startswith(prefix))
    return [
        file.path
        for file in bundle.files
        if file.kind == "pe"
        and not file.path.lower().endswith(".exe")
        and file.path.startswith(prefix)
        and not file.path.startswith(others)
    ]


def cuda_users(paths: Iterable[str], reached: Collection[str], reader: Reader) -> list[str]:
    """Those of the libraries that import a CUDA library and are not ``reached``; CUDA's own libraries are none."""
    library_of = coverage().library_of
    asked = [path for path in paths if path not in reached and library_of(path.rpartition("/")[2]) is None]
    return [
        path
        for path in asked[:_READ]
        if (facts := reader.read(path)) is not None and any(library_of(item.dll) is not None for item in facts.imports)
    ]
