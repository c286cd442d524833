"""ZLUDA folders of a PC: where they are, which release, what is missing or foreign, and whether HIP answers to them."""

from __future__ import annotations

from collections.abc import Callable

from zcheck.host.dlls import Dlls, by_nvidia, version_of
from zcheck.host.imports import Search, is_hip, lookup_gaps, table_gaps
from zcheck.host.release import HELPERS, LAUNCHERS, expected_files, find_commit, identify, library_of
from zcheck.host.sdk import generation_of_runtime
from zcheck.host.source import Source, is_dir, is_file, join, key, normal
from zcheck.model.base import Problem
from zcheck.model.facts import PeFacts
from zcheck.model.host import HipRoot, HostTables, ImportGap, Layout, ZludaExports, ZludaFile, ZludaFolder


def candidates(source: Source, zluda_dir: str | None) -> list[tuple[str, str]]:
    """Folders that may hold ZLUDA with what led there: ``--zluda-dir`` alone when given, else PATH and drive roots."""
    if zluda_dir:
        return [(normal(zluda_dir), "--zluda-dir")]
    found = [(path, "PATH") for path in source.path if any(is_file(source, join(path, name)) for name in LAUNCHERS)]
    for drive in source.drives():
        for parent in (drive, join(drive, "Program Files")):
            for entry in source.listing(parent):
                if entry.is_dir and "zluda" in entry.name.casefold():
                    folder = join(parent, entry.name)
                    if any(is_file(source, join(folder, name)) for name in (*LAUNCHERS, "nvcuda.dll")):
                        found.append((folder, "folder name"))
    seen: dict[str, tuple[str, str]] = {}
    for path, by in found:
        seen.setdefault(key(path), (path, by))
    return list(seen.values())


def _maker(name: str, facts: PeFacts) -> str:
    """NVIDIA by the version resource; zluda for any other DLL under a CUDA name or a helper's name."""
    if by_nvidia(facts):
        return "NVIDIA"
    return "zluda" if library_of(name) or name.casefold() in (*LAUNCHERS, *HELPERS) else "other"


def _file(name: str, size: int, folder: str, dlls: Dlls, hashes: bool) -> tuple[ZludaFile, PeFacts | None]:
    facts = dlls.facts(join(folder, name))
    sha = dlls.sha256(join(folder, name)) if hashes else ""
    if facts is None:
        return ZludaFile(name=name, size=size, sha256=sha), None
    wants = tuple(dict.fromkeys(entry.dll for entry in facts.imports if is_hip(entry.dll)))
    maker = _maker(name, facts)
    record = ZludaFile(name, maker, facts.machine, version_of(facts), size, sha, wants)
    return record, facts if maker == "zluda" else None


def read_folder(
    path: str,
    by: str,
    root: HipRoot | None,
    dlls: Dlls,
    tables: HostTables,
    exports: ZludaExports,
    hashes: bool = True,
) -> ZludaFolder:
    """The facts of one ZLUDA folder; ``root`` is the HIP SDK that HIP_PATH leads to."""
    source = dlls.source
    if not is_dir(source, path):
        return ZludaFolder(path=path, found_by=by, problems=(Problem(path, "no such folder"),))
    listing = {entry.name.casefold(): entry for entry in source.listing(path) if not entry.is_dir}
    records: list[ZludaFile] = []
    made: dict[str, PeFacts] = {}
    for folded, entry in listing.items():
        if library_of(folded) or folded in (*LAUNCHERS, *HELPERS):
            record, facts = _file(entry.name, entry.size, path, dlls, hashes)
            records.append(record)
            if facts is not None:
                made[folded] = facts
    if not made and not any(record.maker for record in records):
        return ZludaFolder(path=path, found_by=by, problems=(Problem(path, "holds none of ZLUDA's files"),))
    libraries = {name: facts for name, facts in made.items() if library_of(name)}
    known = frozenset(row.commit for row in tables.releases if row.commit)
    commit = find_commit(dlls.section(join(path, "nvcuda.dll"), ".rdata"), known) if "nvcuda.dll" in libraries else ""
    identity = identify(set(listing), libraries, tables, exports, commit)
    # A launcher or its helper says that this is a whole release; DLLs alone were placed there by somebody.
    whole = any(name in listing for name in (*LAUNCHERS, "zluda_redirect.dll"))
    expected = expected_files(identity, tables) if whole else ()
    missing = tuple(name for name in expected if name.casefold() not in listing)
    foreign = tuple(record.name for record in records if record.maker == "NVIDIA")
    wrong = tuple(record.name for record in records if record.machine and record.machine not in ("x64", "other"))
    order = next((row.order for row in tables.releases if row.tag == identity.release), -1)
    search = Search(path, root, dlls, identity.layout)
    runtime = search.runtime(_wanted(made))
    gaps: list[ImportGap] = []
    for name in sorted(made):
        gaps += table_gaps(listing[name].name, made[name], search, runtime)
        if order >= 0:
            gaps += lookup_gaps(listing[name].name, order, search, tables)
    return ZludaFolder(
        path=path,
        found_by=by,
        kind="release" if whole else "staged",
        release=identity.release,
        candidates=identity.candidates,
        confidence=identity.confidence,
        identified_by=identity.by,
        files=tuple(sorted(records, key=lambda record: record.name.casefold())),
        missing=missing,
        foreign=foreign,
        wrong_machine=wrong,
        beside=tuple(
            sorted(entry.name for folded, entry in listing.items() if is_hip(folded) and folded.endswith(".dll"))
        ),
        gaps=tuple(gaps),
        runtime=runtime.path,
        runtime_by=runtime.by,
    )


def _wanted(made: dict[str, PeFacts]) -> str:
    """The HIP runtime that nvcuda.dll, or failing it any DLL of the folder, asks for."""
    ordered = [made[name] for name in ("nvcuda.dll",) if name in made] + list(made.values())
    for facts in ordered:
        for entry in facts.imports:
            if generation_of_runtime(entry.dll):
                return entry.dll.casefold()
    return ""


def layout_for(release: str, tables: HostTables) -> Layout | None:
    """The layout of a release by tag."""
    order = next((row.order for row in tables.releases if row.tag == release), -1)
    return next((layout for layout in tables.layouts if order >= 0 and layout.since <= order <= layout.until), None)


def read_folders(
    source: Source,
    zluda_dir: str | None,
    root: HipRoot | None,
    dlls: Dlls,
    tables: HostTables,
    exports: Callable[[], ZludaExports],
) -> tuple[ZludaFolder, ...]:
    """All ZLUDA folders of the PC; ``exports`` is asked only when there is one."""
    return tuple(read_folder(path, by, root, dlls, tables, exports()) for path, by in candidates(source, zluda_dir))
