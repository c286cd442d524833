"""Which of ZLUDA's files go where: beside the program's own copy, or where the module that loads them is."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from zcheck.launch.demand import Demand, InBundle
from zcheck.model.launch import Folder, FolderFile, Refusal, ReleaseFiles, StageFile


def target_folders(release: ReleaseFiles, demand: Demand) -> dict[str, tuple[str, ...]]:
    """DLL name → the folders to place it in, absolute.

    Where the program ships a copy: there. Else the program's own folder (the ordinary search) and the folder of each
    module that loads it (the search of a module loaded with LOAD_WITH_ALTERED_SEARCH_PATH, which leaves out the
    program's folder).
    """
    root = Path(demand.root)
    home = (root / demand.entry).parent
    own: dict[str, list[str]] = {}
    for file in demand.bundle:
        own.setdefault(file.name.lower(), []).append(str((root / file.path).parent))
    users = {item.dll: item.users for item in demand.wanted}
    result: dict[str, tuple[str, ...]] = {}
    for name in dict.fromkeys(injected.lower() for injected in release.injected):
        if name in own:
            result[name] = tuple(dict.fromkeys(own[name]))
        elif name in users:
            folders = [str(home), *(str((root / user).parent) for user in users[name])]
            result[name] = tuple(dict.fromkeys(folders))
    return result


def _same(known: InBundle, there: FolderFile) -> bool:
    """Whether the file in place is the analysed one, as far as the analysis took its hash or size."""
    if known.sha256:
        return known.sha256 == there.sha256
    return known.size in (0, there.size)


def stage_files(
    release: ReleaseFiles, zluda: Folder, demand: Demand, places: Iterable[Folder]
) -> tuple[tuple[StageFile, ...], list[Refusal]]:
    """The files to place, and why not: a folder that is none or a link, a file in place that nobody knows, no file."""
    folders = {os.path.normcase(folder.path): folder for folder in places}
    analysed = {
        (os.path.normcase(str((Path(demand.root) / file.path).parent)), file.name.lower()): file
        for file in demand.bundle
    }
    files: list[StageFile] = []
    refusals: list[Refusal] = []
    targets = target_folders(release, demand)
    if not targets:
        refusals.append(Refusal("nothing-to-stage", "the program loads none of ZLUDA's DLLs, as far as can be seen"))
    for name, wanted in targets.items():
        source = zluda.get(name)
        if source is None or not source.sha256:
            refusals.append(Refusal("zluda-incomplete", f"{zluda.path}: {name} is missing or cannot be read"))
            continue
        for path in wanted:
            folder = folders.get(os.path.normcase(path))
            if folder is None or folder.link:
                why = "is a link, and zcheck does not write through links" if folder else "was not looked at"
                refusals.append(Refusal("folder", f"{path} {why}"))
                continue
            there = folder.get(name)
            if there and there.sha256 == source.sha256:
                continue  # somebody placed ZLUDA's file there already
            known = analysed.get((os.path.normcase(path), name.lower()))
            if there and (there.link or known is None or not _same(known, there)):
                refusals.append(
                    Refusal(
                        "unknown-file", f"{there.name} in {path} is not the file that was analysed; run the check again"
                    )
                )
                continue
            target = str(Path(path) / (there.name if there else source.name))
            files.append(
                StageFile(
                    str(Path(zluda.path) / source.name),
                    target,
                    source.sha256,
                    source.size,
                    there.sha256 if there else None,
                )
            )
    return tuple(files), refusals
