"""Hidden facts of one module → evidence items, and the edges that the import table does not show."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from zcheck.model.base import Confidence, Record
from zcheck.model.evidence import FileFact, Item, Limitation, Mention, Role, Use
from zcheck.model.facts import PeFacts, Symbol
from zcheck.model.graph import LoadTime
from zcheck.model.hidden import ArchiveFacts, DynamicDll, HiddenFacts, LinkedRuntime

HYBRID_RUNTIME = "cudart64_13.dll"
"""The runtime that a program linked to CUDA 13's ``cudart.lib`` uses, by the name that the tables know it by: its code
is NVIDIA's, fetched from the driver's (or ZLUDA's copy of) ``nvcudart_hybrid64.dll``."""


class HiddenEdge(Record, frozen=True):
    """A module loads a DLL by name: what resolve/ turns into an edge of kind *dynamic*.

    ``dll`` may hold ``*`` for digits that only the running program knows: any matching file of the bundle answers.
    """

    module: str
    dll: str
    library: str
    functions: tuple[str, ...]
    confidence: Confidence
    place: str


def edges(module: str, facts: HiddenFacts) -> tuple[HiddenEdge, ...]:
    """The DLLs that a module loads by name, CUDA libraries first, each with the functions looked up in it.

    Functions of a library stand with every DLL of that library that the module names, for which one is loaded is seen
    only at run time.
    """
    by_library: dict[str, list[str]] = {}
    for function in facts.functions:
        by_library.setdefault(function.library, []).append(function.symbol or function.name)
    found = []
    for dll in (*facts.dlls, *facts.other_dlls):
        functions = tuple(sorted(set(by_library.get(dll.library, ())))) if dll.library else ()
        found.append(HiddenEdge(module, dll.dll, dll.library, functions, dll.confidence, str(dll.place)))
    return tuple(found)


def items(module: str, role: Role, facts: HiddenFacts, load: LoadTime = "start") -> tuple[Item, ...]:
    """Evidence of one module: looked-up DLLs and functions, mentions, and what a linked-in runtime hides.

    ``module`` is its name in evidence lines; ``load`` when the module itself is loaded. Functions are given under the
    DLL of their library that the module names (the first in order), or the library's look-up through the driver.
    """
    found: list[Item] = []
    for dll in facts.dlls:
        found.append(Use(role, module, "dynamic", dll.dll, load=load, confidence=dll.confidence, place=_place(dll)))
    named = _first_dlls(facts)
    for function in facts.functions:
        because = ""
        if function.library == "cudart" and function.how == "loader":
            found.append(
                Use(
                    role,
                    module,
                    "dynamic",
                    HYBRID_RUNTIME,
                    function.name,
                    load=load,
                    found="bundle",
                    confidence=function.confidence,
                    place=str(function.place),
                    because="slot of the hybrid runtime's loader is read",
                )
            )
            continue
        if function.how == "loader":
            because = "slot of the linked-in loader is read"
        elif function.how == "p-invoke":
            because = "P/Invoke"
        found.append(
            Use(
                role,
                module,
                "dynamic",
                named.get(function.library, _DEFAULT.get(function.library, function.library)),
                function.symbol or function.name,
                load=load,
                confidence=function.confidence,
                place=str(function.place),
                because=because,
            )
        )
    for mention in facts.mentions:
        library = named.get(mention.library, _DEFAULT.get(mention.library, mention.library))
        found.append(
            Use(
                role,
                module,
                "mention",
                mention.name if mention.is_dll else library,
                "" if mention.is_dll else mention.name,
                load=load,
                confidence="low",
                place=str(mention.place),
                because=mention.why,
            )
        )
    for hook in facts.loader.delay_hooks:
        if "Hook" in hook:  # it may load a delay-loaded DLL from elsewhere, or under another name
            found.append(Mention(module, hook))
    found.extend(_runtime_limits(module, facts))
    for problem in facts.problems:
        if problem.partial:
            found.append(Limitation("partly-read", module, problem.reason))
    return tuple(found)


def child_programs(facts: HiddenFacts, programs: Iterable[str]) -> tuple[str, ...]:
    """Those of the bundle's programs (names or paths) that the module names as a whole string: it may start them."""
    named = {child.name.replace("\\", "/").rpartition("/")[2].lower() for child in facts.children}
    return tuple(path for path in programs if path.replace("\\", "/").rpartition("/")[2].lower() in named)


def archive_items(module: str, archive: ArchiveFacts, looked_into: bool = False) -> tuple[Item, ...]:
    """What a one-file program or launcher hides, as a limitation with the way on in its note.

    ``looked_into``: its members were read (:func:`member_items`), so that a readable archive hides nothing. Without
    that, a program that could be looked into is *unknown* as well: nothing of it was judged.
    """
    if archive.limitation is not None:
        note = f"{archive.limitation.note}; {archive.limitation.way_on}"
        return (Limitation(archive.limitation.kind, module, note),)
    programs = sum(1 for member in archive.members if member.kind == "pe")
    if looked_into or archive.form in ("zip", "asar") or not programs:
        return ()
    files = f"{len(archive.members)} files, {programs} of them programs or DLLs"
    note = f"{archive.tool} keeps {files} inside, which were not looked into; unpack it and run zcheck on the folder"
    return (Limitation("one-file-archive", module, note),)


def member_items(
    archive: str,
    path: str,
    facts: PeFacts,
    hidden: HiddenFacts,
    role: Role,
    library_of: Callable[[str], str | None],
    inside: Collection[str] = (),
) -> tuple[Item, ...]:
    """Evidence of a PE file inside a one-file program: its imports from CUDA libraries and what it hides.

    ``path`` is the member's in the archive; ``library_of`` gives the CUDA library of a DLL name; ``inside`` are the
    lower-case file names of all members. When a member is loaded is not known: *later*.
    """
    name = path.replace("!", "/").rpartition("/")[2]
    version = facts.version
    found: list[Item] = [
        FileFact(
            name,
            role=role,
            machine=facts.machine,
            load="later",
            company=version.company if version else "",
            version=version.file_version if version else "",
            path=f"{archive}!{path}",
            dotnet=facts.is_dotnet,
        )
    ]
    for dll in facts.imports:
        if not library_of(dll.dll):
            continue
        for symbol in dll.symbols or (Symbol(),):
            function = symbol.name or (f"#{symbol.ordinal}" if symbol.ordinal is not None else "")
            found.append(
                Use(
                    role,
                    name,
                    "delay" if dll.delay else "import",
                    dll.dll,
                    function,
                    load="later",
                    found="bundle" if dll.dll.lower() in inside else "",
                    place=f"{archive}!{path}",
                )
            )
    return (*found, *items(name, role, hidden, "later"))


# The DLL that answers for a library whose name is not in the file (functions reached through cuGetProcAddress).
_DEFAULT = {
    "nvcuda": "nvcuda.dll",
    "nvml": "nvml.dll",
    "nvcuvid": "nvcuvid.dll",
    "nvapi": "nvapi64.dll",
    "optix": "nvoptix.dll",
}


def _first_dlls(facts: HiddenFacts) -> dict[str, str]:
    first: dict[str, str] = {}
    for dll in facts.dlls:
        first.setdefault(dll.library, dll.dll)
    return first


def _place(dll: DynamicDll) -> str:
    """Where the name stands; for names joined at run time, of what."""
    return f"{dll.place}, joined from {' and '.join(dll.parts)}" if dll.parts else str(dll.place)


def _runtime_limits(module: str, facts: HiddenFacts) -> Iterator[Item]:
    """What linked-in NVIDIA code hides, one limitation a runtime; none for the runtime DLL itself."""
    for runtime in facts.runtimes:
        if runtime.whole_file:
            continue
        if runtime.kind == "cudart":
            yield Limitation(
                "static-runtime",
                module,
                f"{runtime_name(runtime)} is linked in: which runtime functions the program calls cannot be seen, and "
                f"{facts.subtracted} names of its own hide the program's look-ups",
            )
        elif runtime.kind == "cudart-hybrid" and not any(f.library == "cudart" for f in facts.functions):
            yield Limitation(
                "static-runtime",
                module,
                f"{runtime_name(runtime)} is linked in, and its table of functions was not found in the code",
            )
        elif runtime.kind == "cuda.lib" and not any(f.how == "loader" for f in facts.functions):
            yield Limitation(
                "static-runtime",
                module,
                f"{runtime_name(runtime)} is linked in, and its slots were not found in the code",
            )


def runtime_name(runtime: LinkedRuntime) -> str:
    """``the CUDA runtime 12.8.90 to 12.9.79``, ``the CUDA driver loader 13.0.96`` …"""
    what = {
        "cudart": "the CUDA runtime",
        "cudart-hybrid": "the loader of the CUDA hybrid runtime",
        "cuda.lib": "the CUDA driver loader",
    }[runtime.kind]
    versions = runtime.oldest if runtime.oldest == runtime.newest else f"{runtime.oldest} to {runtime.newest}"
    return f"{what} {versions}".rstrip()
