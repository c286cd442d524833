"""Frameworks of a bundle from coverage_db/frameworks.yaml: which are there, in which version, what they call, what is
known of them and of applications (apps.yaml) on a ZLUDA release."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgspec
import yaml

from zcheck.errors import DataError
from zcheck.model.base import Record
from zcheck.model.evidence import Framework, Item, Known, Use, Workload

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class TextSource(Record, frozen=True):
    """A text file that tells a version: ``file`` relative to the package (with ``beside: dll``, to the folder of the
    framework's DLL); ``pattern`` has one group."""

    file: str
    pattern: str
    beside: Literal["package", "dll"] = "package"


class Calls(Record, frozen=True):
    """CUDA functions that a framework calls for some work: for workload ``families``, or for ``names`` (operators of
    models, qualified names in scripts)."""

    functions: dict[str, tuple[str, ...]]
    """DLL-name pattern (whole, any case) of a CUDA library → functions"""
    source: str
    families: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    """functions of the framework that the program's own modules import (qualified C++ names)"""
    version_from: str = ""
    version_before: str = ""


class Start(Record, frozen=True):
    """What a framework calls whenever it starts using CUDA."""

    functions: dict[str, tuple[str, ...]]
    source: str


class KnownRow(Record, frozen=True):
    """One publicly stated fact; see model.evidence.Known. ``since`` and ``until`` are ZLUDA releases, both included and
    empty for no bound; ``releases`` names them one by one (forks)."""

    key: str
    effect: Literal["fails", "setting", "works", "note", "own-path"]
    text: str
    do: str
    source: str
    version_from: str = ""
    version_before: str = ""
    cuda: str = ""
    """regular expression that the framework's CUDA version fits as a whole"""
    family: str = ""
    since: str = ""
    until: str = ""
    releases: tuple[str, ...] = ()
    variable: str = ""
    """environment variable that the remedy sets: where the program sets it itself, there is nothing to say"""


class FrameworkRow(Record, frozen=True):
    """How to tell a framework and what is known about it."""

    id: str
    name: str
    source: str
    packages: tuple[str, ...] = ()
    """top-level names that Python imports"""
    distributions: tuple[str, ...] = ()
    dlls: tuple[str, ...] = ()
    """patterns of DLL names, whole and without regard to case; the first one is of those that use CUDA"""
    loads: tuple[str, ...] = ()
    """patterns of the DLLs that importing its package loads"""
    gpu: bool = True
    version: tuple[TextSource, ...] = ()
    cuda: tuple[TextSource, ...] = ()
    start: Start | None = None
    calls: tuple[Calls, ...] = ()
    known: tuple[KnownRow, ...] = ()
    own_path: str = ""
    """the framework's own way to AMD GPUs, in a sentence"""


class AppRow(Record, frozen=True):
    """An application told by its entry's file name (pattern) and, where given, its version resource."""

    id: str
    name: str
    files: tuple[str, ...]
    known: tuple[KnownRow, ...]
    company: str = ""
    source: str = ""


class FrameworkFile(Record, frozen=True):
    """All of frameworks.yaml. ``neutral_packages`` compute nothing on a GPU; ``loads_model`` names functions that
    load a model from a file; ``architectures`` map a model's architecture to families."""

    frameworks: tuple[FrameworkRow, ...]
    neutral_packages: tuple[str, ...] = ()
    loads_model: tuple[str, ...] = ()
    architectures: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    arguments: tuple[tuple[str, str, str], ...] = ()
    """(qualified name, text argument, family)"""


class _Apps(Record, frozen=True):
    apps: tuple[AppRow, ...]


def read_frameworks(text: str) -> FrameworkFile:
    """frameworks.yaml; raises DataError naming the key that is wrong."""
    return _convert(text, FrameworkFile, "frameworks.yaml")


def read_apps(text: str) -> tuple[AppRow, ...]:
    """apps.yaml; raises DataError."""
    return _convert(text, _Apps, "apps.yaml").apps


_Kind = TypeVar("_Kind", FrameworkFile, _Apps)


def _convert(text: str, kind: type[_Kind], name: str) -> _Kind:
    try:
        return msgspec.convert(yaml.load(text, Loader=_Loader), kind)
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise DataError(f"{name}: {' '.join(str(error).split())}") from None


class Sighting(Record, frozen=True):
    """A framework seen in a bundle: the row, the folder of its package or DLL, its DLLs, and what told it."""

    row: FrameworkRow
    version: str = ""
    cuda: str = ""
    dlls: tuple[str, ...] = ()
    module: str = ""
    loads: tuple[str, ...] = ()
    """names of the bundle's DLLs that importing the package loads"""
    packages: tuple[str, ...] = ()
    """packages of it that are there"""
    main: tuple[str, ...] = ()
    """those of ``dlls`` that use CUDA: they fit the row's first pattern"""


_REQUIREMENT = re.compile(r"^[ \t]*([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]\n]*\])?[ \t]*(?:===?[ \t]*([^\s;#,]+))?", re.M)
"""a line of requirements.txt (PEP 508): name, extras, version where it is pinned"""
_DIST = re.compile(r"(?:^|/)([A-Za-z0-9_.]+)-([0-9][^/-]*)\.dist-info/[^/]+$")


def find_frameworks(
    paths: Iterable[str],
    rows: Sequence[FrameworkRow],
    read_text: Callable[[str], str],
    dll_version: Callable[[str], str],
) -> list[Sighting]:
    """Frameworks among bundle files. ``paths``: files relative to the bundle's root with ``/``; ``read_text``: a file's
    beginning, empty when it is not there; ``dll_version``: version resource of a DLL, empty when it was not read."""
    all_paths = list(paths)
    distributions: dict[str, tuple[str, str]] = {}
    by_name: dict[str, list[str]] = {}
    packages: dict[str, str] = {}
    for path in all_paths:
        folder, _, name = path.rpartition("/")
        by_name.setdefault(name.lower(), []).append(path)
        if name == "__init__.py" and folder:
            packages.setdefault(folder.rpartition("/")[2], folder)
        if found := _DIST.search(path):
            distributions.setdefault(found[1].lower().replace("_", "-"), (found[2], path))
    listed = _listed(by_name.get("requirements.txt", ()), read_text)
    # One alternation, so that the many names that belong to no framework cost one match.
    patterns = [pattern for row in rows for pattern in (*row.dlls, *row.loads)]
    anything = re.compile("|".join(f"(?:{pattern})" for pattern in patterns) or "(?!)", re.I)
    by_name = {name: found for name, found in by_name.items() if anything.fullmatch(name)}
    sightings = []
    for row in rows:
        dlls = _named(row.dlls, by_name)
        dist = next((distributions[name] for name in row.distributions if name in distributions), None)
        package = next((packages[name] for name in row.packages if name in packages), None)
        if not dlls and dist is None:
            dist = next((listed[name] for name in row.distributions if name in listed), None)
        if not dlls and dist is None:
            continue
        places = {"package": [package] if package is not None else [], "dll": _folders(dlls)}
        version = _told(row.version, places, read_text) or (dist[0] if dist else "")
        version = version or next((text for dll in dlls if (text := dll_version(dll))), "")
        cuda = _told(row.cuda, places, read_text) or _cuda_of(version)
        module = dlls[0] if dlls else dist[1] if dist else ""
        loads = tuple(dict.fromkeys(path.rpartition("/")[2] for path in _named(row.loads, by_name)))
        there = tuple(name for name in row.packages if name in packages)
        main = tuple(_named(row.dlls[:1], by_name))
        sightings.append(Sighting(row, version, cuda, tuple(dlls), module, loads, there, main))
    return sightings


def _listed(paths: Iterable[str], read_text: Callable[[str], str]) -> dict[str, tuple[str, str]]:
    """Distributions that package lists ask for: name → (version where it is pinned, list)."""
    found: dict[str, tuple[str, str]] = {}
    for path in list(paths)[:20]:
        for match in _REQUIREMENT.finditer(read_text(path)):
            name = re.sub(r"[-_.]+", "-", match[1]).lower()
            found.setdefault(name, (match[2] or "", path))
    return found


def _named(patterns: Iterable[str], by_name: Mapping[str, list[str]]) -> list[str]:
    wanted = [re.compile(pattern, re.I) for pattern in patterns]
    return [path for pattern in wanted for name, found in by_name.items() if pattern.fullmatch(name) for path in found]


def _folders(dlls: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(dll.rpartition("/")[0] for dll in dlls))[:4]


def _told(sources: Iterable[TextSource], places: Mapping[str, Sequence[str]], read_text: Callable[[str], str]) -> str:
    for source in sources:
        for place in places[source.beside]:
            path = _join(place, source.file)
            found = re.search(source.pattern, read_text(path)) if path else None
            if found:
                return found[1].strip()
    return ""


def _join(folder: str, file: str) -> str:
    parts = folder.split("/") if folder else []
    for part in file.split("/"):
        if part == "..":
            if not parts:
                return ""
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def _cuda_of(version: str) -> str:
    """The CUDA version that a local version label names: ``2.3.0+cu118`` → 11.8."""
    found = re.search(r"\+cu(\d\d)(\d+)", version)
    return f"{found[1]}.{found[2]}" if found else ""


def framework_items(sightings: Iterable[Sighting]) -> list[Item]:
    """Framework items of what was seen."""
    return [Framework(item.row.id, item.version, item.module, item.cuda) for item in sightings]


def called_items(
    sightings: Iterable[Sighting],
    workloads: Sequence[Workload],
    names: Mapping[str, str],
    imports: Mapping[str, str],
    cuda_dlls: Sequence[str],
) -> list[Use]:
    """What the frameworks call: at their start, and for the work that models, scripts and imports show, as measured.

    ``workloads``: the items of the program; ``names``: operator or qualified Python name → where it is used;
    ``imports``: qualified C++ name that the program's own modules import → module; ``cuda_dlls``: names of CUDA DLLs
    that the bundle has or its modules import. The driver needs not be among them.
    """
    required = {item.family: item.by for item in reversed(workloads) if item.need == "required"}
    dlls = [*cuda_dlls, *([] if "nvcuda.dll" in cuda_dlls else ["nvcuda.dll"])]
    uses: list[Use] = []
    for item in sightings:
        module = item.module.rpartition("/")[2] or item.row.name
        if item.row.start is not None and item.dlls:
            because = f"{item.row.name} calls it whenever it starts using CUDA"
            uses += _uses(item.row.start.functions, dlls, module, because, init=True)
        for call in item.row.calls:
            if not fits(item.version, call.version_from, call.version_before):
                continue
            reasons = [required[family] for family in call.families if family in required]
            reasons += [f"{names[name]}: {name}" for name in call.names if name in names]
            reasons += [f"{imports[name]} imports {name}" for name in call.imports if name in imports]
            if reasons:
                uses += _uses(call.functions, dlls, module, reasons[0], init=False)
    return list(dict.fromkeys(uses))


def _uses(
    functions: Mapping[str, Sequence[str]], dlls: Sequence[str], module: str, because: str, init: bool
) -> Iterable[Use]:
    for pattern, names in functions.items():
        dll = next((dll for dll in dlls if re.fullmatch(pattern, dll, re.I)), None)
        for name in names if dll is not None else ():
            yield Use("framework", module, "call", dll or "", name, load="later", init=init, because=because)


def known_items(
    subject: str,
    version: str,
    cuda: str,
    module: str,
    rows: Iterable[KnownRow],
    releases: Mapping[str, int],
    order: Mapping[str, int],
    variables: Mapping[str, str],
) -> list[Known]:
    """What is known of one framework or application on each release asked for.

    ``releases``: tag → number of the releases asked for; ``order``: tag → number of all; forks have 1000 and up,
    and rows with bounds speak of upstream releases only. ``variables``: environment that the program sets itself.
    """
    found = []
    name = f"{subject} {version}".strip()
    for row in rows:
        if not fits(version, row.version_from, row.version_before):
            continue
        if row.cuda and not re.fullmatch(row.cuda, cuda):
            continue
        if row.variable and row.variable in variables:
            continue
        for tag, number in releases.items():
            if _holds(row, tag, number, order):
                found.append(Known(name, row.effect, tag, row.key, row.family, row.text, row.do, module, row.source))
    return found


def _holds(row: KnownRow, tag: str, number: int, order: Mapping[str, int]) -> bool:
    if row.releases:
        return tag in row.releases
    if not row.since and not row.until:
        return True
    if number >= 1000 or number < 0:
        return False
    first = order.get(row.since, 0) if row.since else 0
    last = order.get(row.until, 0) if row.until else 999
    return first <= number <= last


def fits(version: str, since: str, before: str) -> bool:
    """True when a version lies in [since, before); an unknown version fits only where there are no bounds."""
    if not since and not before:
        return True
    numbers = version_numbers(version)
    if not numbers:
        return False
    return (not since or numbers >= version_numbers(since)) and (not before or numbers < version_numbers(before))


def version_numbers(text: str) -> tuple[int, ...]:
    """``2.3.0+cu118`` → (2, 3, 0)."""
    found = re.match(r"v?(\d+(?:[.,]\d+)*)", text.strip())
    return tuple(int(part) for part in re.split(r"[.,]", found[1])) if found else ()
