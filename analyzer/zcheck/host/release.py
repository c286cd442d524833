"""Which ZLUDA release a folder holds, told by the names its DLLs export, its file names and its version resources."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from zcheck.model.base import Confidence
from zcheck.model.facts import PeFacts
from zcheck.model.host import HostTables, Layout, ZludaExports

# File name without version digits -> library of the tables; both releases' and forks' names.
_LIBRARY = re.compile(
    r"^(nvcuda|nvml|nvapi|cublaslt|cublas|cufftw|cufft|cusparse|cudnn|nccl|nvrtc)(?:64)?(?:_(\d+))?\.dll$"
)
LAUNCHERS = ("zluda.exe", "zluda_with.exe")
HELPERS = (
    "zluda_redirect.dll",
    "zluda_precompile.exe",
    "cuda_check.exe",
    "nvcudart_hybrid64.dll",
    "zluda64_server.exe",
)


class Identity(NamedTuple):
    """``release`` is the one to speak of, ``candidates`` all that fit equally, oldest first."""

    release: str
    candidates: tuple[str, ...]
    confidence: Confidence
    by: str
    layout: Layout | None


def library_of(file_name: str) -> str:
    """``cublasLt`` of cublasLt64_12.dll, ``cudnn8`` of cudnn64_8.dll; empty for a file of another kind."""
    match = _LIBRARY.match(file_name.casefold())
    if not match:
        return ""
    name = {"cublaslt": "cublasLt"}.get(match.group(1), match.group(1))
    return f"cudnn{match.group(2)}" if name == "cudnn" and match.group(2) else name


def _exports_by_library(dlls: Mapping[str, PeFacts]) -> dict[str, frozenset[str]]:
    result: dict[str, frozenset[str]] = {}
    for name, facts in dlls.items():
        library = library_of(name)
        if library:  # cublas64_11, _12 and _13 of one release are one file under three names
            result.setdefault(library, frozenset(export.name for export in facts.exports if export.name))
    return result


def _mismatches(found: Mapping[str, frozenset[str]], exports: ZludaExports, last: int) -> list[int]:
    """For every release order, how many tabled names are there and should not be, or the other way round."""
    change = [0] * (last + 2)
    base = 0
    counted: set[tuple[str, str]] = set()
    for row in exports.ranges:
        names = found.get(row.library)
        if names is None:
            continue
        present = row.name in names
        if present and (row.library, row.name) not in counted:
            counted.add((row.library, row.name))
            base += 1
        step = -1 if present else 1
        change[row.since] += step
        change[min(row.until, last) + 1] -= step
    result, running = [], base
    for step in change[: last + 1]:
        running += step
        result.append(running)
    return result


def _layout_fit(layout: Layout, names: set[str], runtime: str) -> int | None:
    """How many files of the layout are not there; None when the folder has a library file that the layout has not."""
    own = {name.casefold() for name in layout.files} | {"nvcuda.dll", "nvml.dll"}
    own |= {name.casefold() for name in layout.injected}
    if any(library_of(name) and name not in own for name in names):
        return None
    launcher = next((name for name in LAUNCHERS if name in names), "")
    if launcher and launcher != layout.launcher.casefold():
        return None
    if runtime and runtime not in layout.hip_runtime.casefold():
        return None
    if runtime == "amdhip64_6.dll" and "amdhip64_7" in layout.hip_runtime.casefold():
        return None
    return len(own - names)


def _runtime_wanted(dlls: Mapping[str, PeFacts]) -> str:
    """The HIP runtime that nvcuda.dll imports, by either table."""
    facts = dlls.get("nvcuda.dll")
    if facts is None:
        return ""
    names = [entry.dll.casefold() for entry in facts.imports]
    return next((name for name in names if name.startswith("amdhip64")), "")


def _by_version(dlls: Mapping[str, PeFacts], tags: Sequence[str]) -> str:
    for facts in dlls.values():
        version = facts.version
        if version is None or "zluda" not in f"{version.product} {version.company} {version.description}".casefold():
            continue
        text = (version.product_version or version.file_version).strip().lstrip("v")
        for tag in (f"v{text}", f"lshqqytiger-{text}"):
            if tag in tags:
                return tag
    return ""


def _speak_of(candidates: Sequence[str]) -> str:
    """The candidate to name: the newest full release, else the newest preview."""
    full = [tag for tag in candidates if "preview" not in tag]
    return (full or list(candidates) or [""])[-1]


def identify(
    names: set[str],
    dlls: Mapping[str, PeFacts],
    tables: HostTables,
    exports: ZludaExports,
    commit: str = "",
) -> Identity:
    """The release of a folder.

    ``names``: lower-case file names in it; ``dlls``: facts of the ZLUDA-made ones by lower-case name; ``commit``: the
    known one found in nvcuda.dll, which settles it.
    High confidence: every name of every DLL agrees with the tables; low: the nearest release differs in some.
    """
    order = {release.tag: release.order for release in tables.releases if release.order >= 0}
    tags = sorted(order, key=lambda tag: order[tag])
    by_order = {place: tag for tag, place in order.items()}
    runtime = _runtime_wanted(dlls)
    fits = {layout: left for layout in tables.layouts if (left := _layout_fit(layout, names, runtime)) is not None}

    def layout_of(tag: str) -> Layout | None:
        place = order.get(tag, -1)
        return next((layout for layout in tables.layouts if layout.since <= place <= layout.until), None)

    if commit:
        tag = next((release.tag for release in tables.releases if release.commit == commit), "")
        if tag:
            return Identity(tag, (tag,), "high", f"commit {commit[:12]} in nvcuda.dll", layout_of(tag))
    named = _by_version(dlls, [release.tag for release in tables.releases])
    if named:
        return Identity(named, (named,), "high", "version resource", layout_of(named))
    found = _exports_by_library(dlls)
    found = {library: exported for library, exported in found.items() if exported}
    scores: list[tuple[int, str]] = []
    if found and exports.ranges:
        for place, wrong in enumerate(_mismatches(found, exports, max(order.values(), default=0))):
            if place in by_order:
                scores.append((wrong, by_order[place]))
    total = sum(len(exported) for exported in found.values())
    scores = [(wrong, tag) for wrong, tag in scores if wrong * 2 < max(total, 1)]
    if not scores:
        best = min(fits, key=lambda layout: fits[layout], default=None)
        if best is None:
            return Identity("", (), "low", "", None)
        fitting = tuple(tag for tag in tags if best.since <= order[tag] <= best.until)
        return Identity(_speak_of(fitting), fitting, "low", "file names", best)
    least = min(wrong for wrong, _ in scores)
    equal = [tag for wrong, tag in scores if wrong == least]
    fewest = min((fits[layout] for tag in equal if (layout := layout_of(tag)) in fits), default=0)
    narrowed = [tag for tag in equal if (layout := layout_of(tag)) in fits and fits[layout] == fewest] or equal
    narrowed.sort(key=lambda tag: (order.get(tag, -1), tag))
    release = _speak_of(narrowed)
    confidence: Confidence = "low" if least else "high" if len(narrowed) == 1 else "medium"
    what = "exported names" if not least else f"exported names, {least} of {total} differing"
    return Identity(release, tuple(narrowed), confidence, what, layout_of(release))


def find_commit(data: bytes, commits: frozenset[str]) -> str:
    """The one of ``commits`` that the bytes hold, or empty.

    nvcuda.dll carries the commit it was built from as text: it is a part of the key of its kernel cache
    (vosen/ZLUDA zluda/src/impl/module.rs, VERGEN_GIT_SHA, in v3 and from v5 on).
    """
    for match in re.finditer(rb"[0-9a-f]{40,}", data):
        run = match.group().decode("ascii")
        for start in range(len(run) - 39):  # string constants lie next to one another, so a run may be longer
            if run[start : start + 40] in commits:
                return run[start : start + 40]
    return ""


def expected_files(identity: Identity, tables: HostTables) -> tuple[str, ...]:
    """The files that the release's launcher needs or that its zip holds; empty when the release is not known."""
    layout = identity.layout
    files: dict[str, str] = {}
    if layout is not None:
        listed = ("nvcuda.dll", "nvml.dll", *layout.files, layout.launcher, "zluda_redirect.dll")
        files = {name.casefold(): name for name in listed}
        spelled = {name.casefold(): name for name in layout.files}
        for name in layout.injected:
            files.setdefault(name.casefold(), spelled.get(name.casefold(), name))
    for row in tables.libraries:
        if row.release == identity.release and "/" not in row.file:
            files.setdefault(row.file.casefold(), row.file)
    return tuple(files[name] for name in sorted(files))
