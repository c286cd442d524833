"""Which NVIDIA runtime is linked into a file, told by the names that it brings along.

The runtime looks up hundreds of driver functions by name and holds the names of its own functions for tools; a
program's own look-ups cannot be told from these, so they are taken off before a name counts as evidence. The tables are
read off NVIDIA's files (``coverage_db/fingerprints*``).
"""

from __future__ import annotations

from collections.abc import Collection

from zcheck.model.base import Confidence
from zcheck.model.hidden import LinkedRuntime, RuntimeKind
from zcheck.parse.names import Fingerprint, NameTables

# A linked-in cudart keeps all of its names but one or two (linkers drop whole objects, and it is few large ones). The
# driver loader's objects are dropped when unused (graphics, profiler), and 12 releases' names differ by a tenth.
_HYBRID_DLL = "nvcudart_hybrid64.dll"
_FEWEST = 100
"""names that make a fingerprint (the static runtime of 13.5 has two: it is the hybrid loader)"""
_SHARE = {"cudart": 0.9, "cuda.lib": 0.6}


def recognise(
    seen: Collection[str], tables: NameTables, own_exports: Collection[str] = (), files: Collection[str] = ()
) -> tuple[LinkedRuntime, ...]:
    """The runtimes whose fingerprint is among ``seen`` names, cudart before cuda.lib.

    CUDA 13's hybrid runtime has no names but its DLL's: ``files`` are the lower-case DLL names of whole strings. Its
    version is not told (the loaders of 13.0 and 13.5 look alike from outside).

    The version is the measured one with the fewest differences, or a span where several fit equally. ``own_exports``
    (exported names of the file) tell the runtime DLL itself from a program that has it linked in.
    """
    names = set(seen)
    found: list[LinkedRuntime] = []
    kinds: tuple[RuntimeKind, ...] = ("cudart", "cuda.lib")
    for kind in kinds:
        # names that an already recognised runtime explains say nothing about the next one
        explained = names_of(found, tables)
        here = (names & tables.fingerprint_names.get(kind, frozenset())) - explained
        if len(here) < _FEWEST:
            continue
        candidates = [
            Fingerprint(f.kind, f.version, f.file, f.names - explained) for f in tables.fingerprints if f.kind == kind
        ]
        runtime = _best(here, candidates)
        if runtime is not None:
            exported = sum(1 for name in own_exports if name.startswith("cuda"))
            whole = kind == "cudart" and exported >= 100
            found.append(
                LinkedRuntime(
                    kind=kind,
                    oldest=runtime[0].version,
                    newest=runtime[-1].version,
                    seen=len(names & runtime[-1].names),
                    known=len(runtime[-1].names),
                    confidence=_confidence(names, runtime[-1]),
                    whole_file=whole,
                )
            )
    if _HYBRID_DLL in files and not any(runtime.whole_file for runtime in found):
        known = tables.fingerprint_names.get("cudart-hybrid", frozenset())
        seen_of_it = len(known & names)
        confidence: Confidence = "high" if seen_of_it else "medium"
        found.append(LinkedRuntime("cudart-hybrid", "13", "13", seen_of_it, len(known), confidence))
    return tuple(found)


def names_of(runtimes: Collection[LinkedRuntime], tables: NameTables) -> frozenset[str]:
    """The names that these runtimes can bring along, whatever their exact version."""
    return frozenset().union(*(tables.fingerprint_names.get(r.kind, frozenset()) for r in runtimes))


def _best(here: set[str], candidates: list[Fingerprint]) -> list[Fingerprint] | None:
    """The versions that tie for the fewest differences, oldest first, or None when none is there."""
    scored = [
        (len(fingerprint.names ^ here), fingerprint)
        for fingerprint in candidates
        if len(fingerprint.names & here) >= max(_FEWEST, _SHARE[fingerprint.kind] * len(fingerprint.names))
    ]
    if not scored:
        return None
    least = min(difference for difference, _ in scored)
    # the DLL and the static library of one version differ in one name, so one name tells no versions apart
    return [fingerprint for difference, fingerprint in scored if difference <= least + 1]


def _confidence(seen: set[str], fingerprint: Fingerprint) -> Confidence:
    share = len(seen & fingerprint.names) / len(fingerprint.names)
    return "high" if share >= 0.9 else "medium"
