"""What one stack answers to the DLL names and functions that the evidence names (design section 3).

Who answers to a DLL name, in this order: the release's launcher puts its own file in place (``replaced``, placed); the
release ships a file that somebody must place (``replaced``, not placed, judged as if it were placed, except a stub
library, which nobody would place); the bundle's own file stays (``passed-through``); else nobody (``absent``).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from fnmatch import fnmatchcase

import msgspec

from zcheck.coverage.database import Database
from zcheck.coverage.frameworks import framework_names, operator_answers
from zcheck.coverage.hip_needs import missing_components
from zcheck.coverage.measured import Measured, measured_of, runtime_version
from zcheck.model.coverage import Component, HipSdk, Release, ReleaseLibrary
from zcheck.model.evidence import STATIC_RUNTIME, Evidence, FileFact, Use
from zcheck.model.stack import Answers, FunctionAnswer, LibraryAnswer, Stack

_FORKS = 1000
"""``Release.order`` from here on is a fork's: neither earlier nor later than an upstream release"""
_FAILING = ("returns-error", "ends-process", "not-exported", "library-missing")


@dataclass(frozen=True)
class _Asked:
    """One DLL name in use: how it was spelt, its library, whether the bundle has such a file, the functions wanted."""

    dll: str
    library: str
    in_bundle: bool
    functions: tuple[str, ...]
    operators: bool = False
    """a framework's DLL: the functions are C++ operators, and the library id is the framework's operator table"""


_NOT_BESIDE = "it loads nvcuda.dll from System32 only"


def answer(
    database: Database,
    stack: Stack,
    evidence: Evidence,
    present: Collection[str] = (),
    missing: Collection[str] = (),
) -> Answers:
    """The answers of ``stack`` to all that ``evidence`` names; raises UsageError for an unknown release or SDK.

    ``present`` and ``missing`` are HIP components that a PC was seen to have or lack, whatever its SDK's table says.
    What fails here is asked of the newest release too, so that nobody has to try out whether an update would help.
    """
    here = _answer(database, stack, evidence, present, missing)
    newest = max((item for item in database.releases() if item.read and item.order < _FORKS), key=lambda r: r.order)
    release = database.resolve_release(stack.zluda)
    if release.tag == newest.tag or release.order >= _FORKS:
        return here
    failing = [item for item in here.functions if item.state in _FAILING]
    better: tuple[tuple[str, str], ...] = ()
    if failing:
        there = _answer(database, msgspec.structs.replace(stack, zluda=newest.tag), evidence, present, missing)
        works = {(item.library, item.name) for item in there.functions if item.state in ("implemented", "partial")}
        better = tuple(dict.fromkeys((f.library, f.name) for f in failing if (f.library, f.name) in works))
    return msgspec.structs.replace(here, newer=newest.tag, newer_functions=better)


def _answer(
    database: Database, stack: Stack, evidence: Evidence, present: Collection[str], missing: Collection[str]
) -> Answers:
    release = database.resolve_release(stack.zluda)
    sdk = _seen(database.hip_sdk(stack.hip_sdk), present, missing)
    machine = _entry_machine(evidence)
    shipped = {library.library: library for library in database.libraries(release)}
    measured = measured_of(database, release.tag)
    libraries: list[LibraryAnswer] = []
    functions: list[FunctionAnswer] = []
    for asked in _asked(database, evidence):
        if asked.operators:
            libraries.append(LibraryAnswer(asked.dll, asked.library, "bundle" if asked.in_bundle else "missing"))
            functions += operator_answers(database, asked.library, asked.functions)
            continue
        table = _table(database, release, asked.library, machine)
        library = _library(database, asked, shipped.get(table) if table else None, stack, sdk)
        if not release.read and library.provision == "absent" and library.driver_only:
            # Nothing is known of its files: the driver's DLL is neither its own nor missing.
            library = msgspec.structs.replace(library, provision="system")
        if asked.library == "cudart_hybrid":
            functions += _hybrid(measured, asked)
        elif library.provision == "replaced":
            functions += _replaced(database, release, table or asked.library, asked, library)
        elif asked.library == "cudart":
            versions = measured.versions(_runtime(evidence, asked.dll))
            # launcher.md, finding 2 (measured under Wine): the runtime looks for the driver in System32 only.
            why = _NOT_BESIDE if stack.launch_mode == "staged" else measured.start_fails(versions)
            library = msgspec.structs.replace(library, start_fails=why)
            functions += [measured.runtime(name, versions) for name in asked.functions]
        else:
            functions += _not_replaced(database, measured, evidence, asked, library)
        libraries.append(library)
    return Answers(
        stack=stack,
        libraries=tuple(libraries),
        functions=tuple(functions),
        capabilities={name: item.value for name, item in database.capabilities(release).items()},
        components_missing=sdk.with_state("no"),
        components_unknown=sdk.with_state("unknown"),
        release_read=release.read,
        sdk_release=sdk.release,
    )


def _seen(sdk: HipSdk, present: Collection[str], missing: Collection[str]) -> HipSdk:
    """The SDK with what a PC shows in place of what the table says."""
    if not present and not missing:
        return sdk
    known = {component.name: component for component in sdk.components}
    for name, included in (*((name, "yes") for name in present), *((name, "no") for name in missing)):
        before = known.get(name, Component(name, included))
        known[name] = msgspec.structs.replace(before, included=included, dlls=() if included == "no" else before.dlls)
    return msgspec.structs.replace(sdk, components=tuple(known.values()))


def _entry_machine(evidence: Evidence) -> str:
    for item in evidence.items:
        if isinstance(item, FileFact) and item.role == "entry":
            return item.machine
    return "x64"


def _asked(database: Database, evidence: Evidence) -> list[_Asked]:
    files = {item.name.rsplit("/", 1)[-1].lower() for item in evidence.items if isinstance(item, FileFact)}
    uses: dict[str, list[Use]] = {}
    for use in evidence.uses():
        uses.setdefault(use.dll.lower(), []).append(use)
    frameworks = framework_names(database)
    asked = []
    for dll, group in uses.items():
        operators = frameworks.operators_of(dll)
        # A linked-in runtime starts, and fails to, like the DLL.
        library = operators or ("cudart" if dll == STATIC_RUNTIME else database.library_of(dll))
        if library is not None:
            in_bundle = any(fnmatchcase(file, dll) for file in files) or any(use.found == "bundle" for use in group)
            names = tuple(dict.fromkeys(use.function for use in group if use.function))
            asked.append(_Asked(group[0].dll, library, in_bundle, names, operators is not None))
    return asked


def _table(database: Database, release: Release, library: str, machine: str) -> str | None:
    """The id under which the release's tables hold this library for this kind of process; None: it has none for it."""
    if machine == "x64":
        return database.table_library(release, library)
    if machine == "x86":
        return {"nvcuda": "nvcuda32"}.get(library)
    return None


def _library(
    database: Database, asked: _Asked, shipped: ReleaseLibrary | None, stack: Stack, sdk: HipSdk
) -> LibraryAnswer:
    known = database.library_names().match(asked.dll)
    own = LibraryAnswer(
        asked.dll,
        asked.library,
        "passed-through" if asked.in_bundle else "absent",
        driver_only=known is not None and known.kind == "driver",
    )
    if shipped is None:
        return own
    name = asked.dll.lower()
    # The 32-bit driver DLL has a folder and a launcher of its own (32\\zluda.exe).
    # NVIDIA's hybrid runtime, which a release ships, is loaded by its driver DLL.
    injected = any(fnmatchcase(dll.lower(), name) for dll in shipped.injected) or shipped.library in (
        "nvcuda32",
        "cudart_hybrid",
    )
    file = next((dll for dll in shipped.dll_names if fnmatchcase(dll.lower().rsplit("/", 1)[-1], name)), None)
    # Files without a CUDA version in their name (cublas.dll) are meant to be renamed to the one the program loads.
    rename = next((dll for dll in shipped.dll_names if name.startswith(dll.lower().removesuffix(".dll") + "64_")), None)
    placed = injected or stack.launch_mode == "staged"
    if (file or rename) is None or (shipped.stub and not placed):
        return own
    return LibraryAnswer(
        dll=asked.dll,
        library=asked.library,
        provision="replaced",
        name_answered=file is not None,
        placed=placed,
        stub=shipped.stub,
        file=file or rename,
        hip_missing=missing_components(shipped.hip_dlls, sdk),
        source=shipped.source,
    )


def _runtime(evidence: Evidence, dll: str) -> str:
    """The version of the program's own runtime file where it was read, else what the DLL's name tells."""
    for item in evidence.items:
        if isinstance(item, FileFact) and item.name.rsplit("/", 1)[-1].lower() == dll.lower():
            return runtime_version(dll, item.version, item.description)
    return runtime_version(dll)


def _hybrid(measured: Measured, asked: _Asked) -> list[FunctionAnswer]:
    """Functions of CUDA 13's hybrid runtime: NVIDIA's file, measured only as the runtime DLLs of CUDA 13."""
    versions = measured.versions("13")
    return [
        msgspec.structs.replace(measured.runtime(name, versions), library=asked.library, confidence="medium")
        for name in asked.functions
    ]


def _replaced(
    database: Database, release: Release, table: str, asked: _Asked, library: LibraryAnswer
) -> list[FunctionAnswer]:
    """States of a library that is ZLUDA's own here; a missing HIP component takes every exported function with it."""
    found = []
    for row in database.functions(release, [(table, name) for name in asked.functions]):
        row = msgspec.structs.replace(row, library=asked.library)
        if library.hip_missing and row.state != "not-exported":
            limit = f"needs {', '.join(library.hip_missing)}"
            row = msgspec.structs.replace(row, state="library-missing", limit=limit, since=None, until=None)
        found.append(row)
    return found


def _not_replaced(
    database: Database, measured: Measured, evidence: Evidence, asked: _Asked, library: LibraryAnswer
) -> list[FunctionAnswer]:
    """States of a library that nobody replaces: NVIDIA's own file runs, or there is none.

    A toolkit DLL that is absent can be put in place, and is judged as if it were.
    """
    families = database.families(asked.functions)
    imported = _imports_of(evidence, asked.dll)
    found = []
    for name in asked.functions:
        answer_ = None
        if library.driver_only and library.provision == "absent":
            answer_ = FunctionAnswer(asked.library, name, "library-missing")
        if answer_ is None:
            answer_ = measured.library(asked.library, name, imported)
        if answer_ is None:
            answer_ = FunctionAnswer(asked.library, name, "unknown", confidence="medium")
        belongs = tuple(dict.fromkeys(family.family for family in families.get(name, ())))
        found.append(msgspec.structs.replace(answer_, families=belongs))
    return found


def _imports_of(evidence: Evidence, dll: str) -> frozenset[str] | None:
    """CUDA functions that the program's own copy of an NVIDIA library imports; None where no copy was read."""
    # Of two copies in the bundle (named by their paths then) either may be the one that is loaded.
    named = dll.lower()
    uses = [
        use.function
        for use in evidence.uses()
        if use.kind == "import" and use.module.rsplit("/", 1)[-1].lower() == named
    ]
    read = any(isinstance(item, FileFact) and item.name.rsplit("/", 1)[-1].lower() == named for item in evidence.items)
    return frozenset(uses) if read else None
