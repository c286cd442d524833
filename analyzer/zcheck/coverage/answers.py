"""What one stack answers to the DLL names and functions that the evidence names (design section 3).

Who answers to a DLL name, in this order: the release's launcher puts its own file in place (``replaced``, placed); the
release ships a file that somebody must place (``replaced``, not placed, judged as if it were placed, except a stub
library, which nobody would place); the bundle's own file stays (``passed-through``); else nobody (``absent``).
"""

from __future__ import annotations

from dataclasses import dataclass

from zcheck.coverage.database import Database
from zcheck.coverage.hip_needs import missing_components
from zcheck.coverage.frameworks import framework_names, operator_answers
from zcheck.model.base import Confidence
from zcheck.model.coverage import HipSdk, Release, ReleaseLibrary
from zcheck.model.evidence import Evidence, FileFact, Use
from zcheck.model.stack import Answers, FunctionAnswer, LibraryAnswer, Provision, Stack


@dataclass(frozen=True)
class _Asked:
    """One DLL name in use: how it was spelt, its library, whether the bundle has such a file, the functions wanted."""

    dll: str
    library: str
    in_bundle: bool
    functions: tuple[str, ...]
    operators: bool = False
    """a framework's DLL: the functions are C++ operators, and the library id is the framework's operator table"""


def answer(database: Database, stack: Stack, evidence: Evidence) -> Answers:
    """The answers of ``stack`` to everything that ``evidence`` names; raises UsageError for an unknown release or SDK."""
    release = database.resolve_release(stack.zluda)
    sdk = database.hip_sdk(stack.hip_sdk)
    machine = _entry_machine(evidence)
    shipped = {library.library: library for library in database.libraries(release)}
    libraries: list[LibraryAnswer] = []
    functions: list[FunctionAnswer] = []
    for asked in _asked(database, evidence):
        if asked.operators:
            libraries.append(LibraryAnswer(asked.dll, asked.library, "bundle" if asked.in_bundle else "missing"))
            functions += operator_answers(database, asked.library, asked.functions)
            continue
        table = _table(database, release, asked.library, machine)
        library = _library(asked, shipped.get(table) if table else None, stack, sdk)
        libraries.append(library)
        functions += _functions(database, release, table or asked.library, asked, library)
    return Answers(
        stack=stack,
        libraries=tuple(libraries),
        functions=tuple(functions),
        capabilities={name: item.value for name, item in database.capabilities(release).items()},
        components_missing=sdk.with_state("no"),
        components_unknown=sdk.with_state("unknown"),
    )


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
        library = operators or database.library_of(dll)
        if library is not None:
            in_bundle = dll in files or any(use.found == "bundle" for use in group)
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


def _library(asked: _Asked, shipped: ReleaseLibrary | None, stack: Stack, sdk: HipSdk) -> LibraryAnswer:
    own: Provision = "passed-through" if asked.in_bundle else "absent"
    if shipped is None:
        return LibraryAnswer(asked.dll, asked.library, own)
    name = asked.dll.lower()
    injected = name in (dll.lower() for dll in shipped.injected)
    answers = name in (dll.lower().rsplit("/", 1)[-1] for dll in shipped.dll_names)
    # Files without a CUDA version in their name (cublas.dll) are meant to be renamed to the one the program loads.
    rename = next((dll for dll in shipped.dll_names if name.startswith(dll.lower().removesuffix(".dll") + "64_")), None)
    file = next((dll for dll in shipped.dll_names if dll.lower().rsplit("/", 1)[-1] == name), rename)
    placed = injected or stack.launch_mode == "staged"
    if file is None or (shipped.stub and not placed):
        return LibraryAnswer(asked.dll, asked.library, own)
    return LibraryAnswer(
        dll=asked.dll,
        library=asked.library,
        provision="replaced",
        name_answered=answers,
        placed=placed,
        stub=shipped.stub,
        file=file,
        hip_missing=missing_components(shipped.hip_dlls, sdk),
        source=shipped.source,
    )


def _functions(
    database: Database, release: Release, table: str, asked: _Asked, library: LibraryAnswer
) -> list[FunctionAnswer]:
    known = database.functions(release, [(table, name) for name in asked.functions])
    found = []
    for name, row in zip(asked.functions, known, strict=True):
        common = {"library": asked.library, "name": name, "families": row.families}
        if library.provision == "passed-through":
            found.append(FunctionAnswer(state="unknown", confidence=_lower(row.confidence), **common))  # type: ignore[arg-type]
        elif library.provision == "absent":
            found.append(FunctionAnswer(state="library-missing", **common))  # type: ignore[arg-type]
        elif library.hip_missing and row.state != "not-exported":
            limit = f"needs {', '.join(library.hip_missing)}"
            found.append(FunctionAnswer(state="library-missing", limit=limit, source=row.source, **common))  # type: ignore[arg-type]
        else:
            found.append(
                FunctionAnswer(
                    state=row.state,
                    since=row.since,
                    until=row.until,
                    limit=row.limit,
                    source=row.source,
                    confidence=row.confidence,
                    **common,  # type: ignore[arg-type]
                )
            )
    return found


def _lower(confidence: Confidence) -> Confidence:
    return "medium" if confidence == "high" else confidence
