"""What a CUDA runtime or library function needs from the driver, as measured, turned into a state for one release.

Source: ``truth/*.csv`` (calls seen on a GPU; its limits stand in the facts' README). A gap that is called is a failure:
in the measurement, having one and failing agreed for all 72 workloads.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from zcheck.coverage.base import split
from zcheck.coverage.database import Database
from zcheck.model.base import Confidence
from zcheck.model.coverage import Release
from zcheck.model.evidence import Use
from zcheck.model.stack import FunctionAnswer

START = "(first runtime call in a process)"
_FAILING = ("returns-error", "ends-process", "not-exported")
# Private driver tables whose refusal made the first runtime call fail (truth/private_table_refusal.csv), by version.
_TABLE_REFUSED = "private driver table {guid}"


@dataclass(frozen=True)
class RuntimeVersions:
    """The measured runtime versions that stand for the program's: ``exact`` when its own was measured."""

    versions: tuple[str, ...]
    exact: bool
    wanted: str


class Measured:
    """Measured needs of one database, asked for one release."""

    def __init__(self, database: Database, release: Release) -> None:
        """Tables are read at the first question."""
        self._database = database
        self._release = release
        self._answers: dict[tuple[str, RuntimeVersions], FunctionAnswer] = {}  # asked for each application anew

    # --- versions -------------------------------------------------------------------------------------------------

    @cached_property
    def _known(self) -> tuple[str, ...]:
        rows = self._database.query("SELECT DISTINCT cuda_versions FROM runtime_to_driver")
        return tuple(sorted({version for row in rows for version in split(row[0])}, key=_key))

    def versions(self, wanted: str) -> RuntimeVersions:
        """Measured versions for ``wanted`` (``12.4.127``, ``12.4``, ``12``): itself, else those of its minor or major
        version, else the nearest on either side."""
        known = self._known
        if wanted in known:
            return RuntimeVersions((wanted,), True, wanted)
        parts = wanted.split(".")
        for size in (2, 1):
            prefix = ".".join(parts[:size])
            same = tuple(version for version in known if version == prefix or version.startswith(prefix + "."))
            if same and len(parts) >= size:
                return RuntimeVersions(same, size == 2, wanted)
        below = [version for version in known if _key(version) < _key(wanted)]
        above = [version for version in known if _key(version) > _key(wanted)]
        return RuntimeVersions((*below[-1:], *above[:1]), False, wanted)

    # --- states of the driver's functions -------------------------------------------------------------------------

    @cached_property
    def _driver(self) -> dict[str, FunctionAnswer]:
        names = {row[0] for table in ("runtime_to_driver", "library_to_driver", "runtime_variant", "seen_in_workload")
                 for row in self._database.query(f"SELECT DISTINCT driver_function FROM {table}")} - {""}  # fmt: skip
        order = sorted(names)
        answers = self._database.functions(self._release, [("nvcuda", name) for name in order])
        return dict(zip(order, answers, strict=True))

    def _failing(self, names: Iterable[str]) -> list[str]:
        return [name for name in dict.fromkeys(names) if name in self._driver and self._driver[name].state in _FAILING]

    # --- the runtime ----------------------------------------------------------------------------------------------

    @cached_property
    def _calls(self) -> dict[str, list[tuple[str, str, tuple[str, ...]]]]:
        found: dict[str, list[tuple[str, str, tuple[str, ...]]]] = defaultdict(list)
        for function, driver, phase, versions in self._database.query(
            "SELECT runtime_function, driver_function, phase, cuda_versions FROM runtime_to_driver ORDER BY rowid"
        ):
            found[function].append((driver, phase, split(versions)))
        for function, driver in self._seen("cudart"):
            found[function].append((driver, "call", self._known))
        return found

    def _seen(self, library: str) -> list[tuple[str, str]]:
        """(function, driver function) that no suite called on its own and whole programs showed."""
        rows = self._database.query(
            "SELECT function, driver_function FROM seen_in_workload WHERE library = ? ORDER BY rowid", (library,)
        )
        return [(row[0], row[1]) for row in rows]

    @cached_property
    def _variants(self) -> dict[str, list[tuple[str, str, tuple[str, ...]]]]:
        found: dict[str, list[tuple[str, str, tuple[str, ...]]]] = defaultdict(list)
        for function, arguments, driver, versions in self._database.query(
            "SELECT runtime_function, arguments, driver_function, cuda_versions FROM runtime_variant ORDER BY rowid"
        ):
            found[function].append((arguments, driver, split(versions)))
        return found

    @cached_property
    def _measured(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = defaultdict(set)
        for function, called_as, versions in self._database.query(
            "SELECT runtime_function, called_as, cuda_versions FROM runtime_measured"
        ):
            found[function].update(split(versions))
            found[called_as].update(split(versions))
        for function, _ in self._seen("cudart"):
            found[function].update(self._known)
        return found

    @cached_property
    def _called_as(self) -> dict[str, str]:
        return {row[0]: row[1] for row in
                self._database.query("SELECT DISTINCT called_as, runtime_function FROM runtime_measured")}  # fmt: skip

    def runtime(self, name: str, wanted: RuntimeVersions) -> FunctionAnswer:
        """What the runtime function does here: implemented, partial (with the arguments that fail), returns-error,
        ends-process, or unknown where it was not measured."""
        if (name, wanted) not in self._answers:
            self._answers[name, wanted] = self._runtime(name, wanted)
        return self._answers[name, wanted]

    def _runtime(self, name: str, wanted: RuntimeVersions) -> FunctionAnswer:
        function = name if name in self._calls or name in self._variants else self._called_as.get(name, name)
        function = function if function in self._calls else re.sub(r"_(ptsz|ptds)$", "", function)
        seen = self._measured.get(name, set()) | self._measured.get(function, set())
        versions = [version for version in wanted.versions if version in seen]
        confidence: Confidence = "high" if wanted.exact else "medium"
        if not versions:
            if not seen:
                return FunctionAnswer("cudart", name, "unknown", confidence="low")
            versions, confidence = sorted(seen, key=_key), "medium"
        outcomes = [self._runtime_state(function, version) for version in versions]
        worst = max(outcomes, key=lambda outcome: outcome[0])
        rank, limit = worst
        if rank == 2 and any(outcome[0] < 2 for outcome in outcomes):
            some = [version for version, outcome in zip(versions, outcomes, strict=True) if outcome[0] == 2]
            rank, limit = 1, f"with runtime {', '.join(some)}: {limit}"
        state = ("implemented", "partial", "returns-error", "ends-process")[rank]
        return FunctionAnswer(
            "cudart",
            name,
            state,  # type: ignore[arg-type]
            limit=limit or None,
            confidence=confidence,
            source=f"measured calls of runtime {', '.join(versions)} against {self._release.tag}",
        )

    def _runtime_state(self, function: str, version: str) -> tuple[int, str]:
        rows = self._variants.get(function, [])
        seen = sorted({each for _, _, versions in rows for each in versions}, key=_key)
        # Arguments were varied for five runtime versions only; another takes the nearest older one's, or the oldest's.
        stand_in = max(
            (each for each in seen if _key(each) <= _key(version)), key=_key, default=seen[0] if seen else ""
        )
        variants: dict[str, list[str]] = defaultdict(list)
        for arguments, driver, versions in rows:
            if stand_in in versions:
                variants[arguments].append(driver)
        drivers = [
            driver
            for driver, phase, versions in self._calls.get(function, [])
            if phase == "call" and version in versions
        ]
        failing = self._failing([*drivers, *(driver for names in variants.values() for driver in names)])
        if not failing:
            return self._limits(drivers)
        if any(self._driver[driver].state == "ends-process" for driver in failing):
            return 3, f"needs {', '.join(failing)}"
        bad = {arguments: self._failing(names) for arguments, names in variants.items()}
        works = [arguments for arguments, lacking in bad.items() if not lacking and arguments != "zero_bytes"]
        if works:
            fails = _arguments(arguments for arguments, lacking in bad.items() if lacking)
            return 1, f"fails with {fails} (needs {', '.join(failing)})" if fails else f"may need {', '.join(failing)}"
        return 2, f"needs {', '.join(failing)}"

    def _limits(self, drivers: list[str]) -> tuple[int, str]:
        limits = [
            f"{name}: {self._driver[name].limit}"
            for name in dict.fromkeys(drivers)
            if name in self._driver and self._driver[name].state == "partial" and self._driver[name].limit
        ]
        return 0, f"within the limits of {'; '.join(limits)}" if limits else ""

    def start_calls(self, wanted: RuntimeVersions) -> list[str]:
        """Driver functions that every start of these runtime versions was seen to call."""
        rows = self._calls.get(START, [])
        return list(dict.fromkeys(
            driver for driver, phase, versions in rows
            if phase == "init" and any(version in versions for version in wanted.versions)
        ))  # fmt: skip

    def start_fails(self, wanted: RuntimeVersions) -> str | None:
        """Why the first runtime call fails on this release, or None where it was not seen to, for every measured
        version that stands for the program's."""
        reasons = [self._start(version) for version in wanted.versions]
        return reasons[0] if reasons and all(reasons) else None

    def _start(self, version: str) -> str | None:
        lacking = self._failing(
            driver for driver, phase, versions in self._calls.get(START, []) if phase == "init" and version in versions
        )
        if lacking:
            return f"every start of the runtime calls {', '.join(lacking)}"
        return self._refused.get(version)

    @cached_property
    def _refused(self) -> dict[str, str]:
        """Runtime version → the private table without which its first call failed, for releases with v6's tables."""
        found: dict[str, str] = {}
        if not re.match(r"v[567]", self._release.tag):
            return found
        rows = self._database.query(
            "SELECT library, tables_refused, refused_when_asked, first_call_result FROM private_table_refusal"
        )
        granted = {(row[0], row[1]): row[3] for row in rows}
        for library, refused, guids, result in rows:
            if not library.startswith("cudart ") or not refused.startswith("all but") or result == "0":
                continue
            for guid in split(guids):
                if (
                    granted.get((library, f"as A, but {guid} granted")) == "0"
                    or granted.get((library, f"as A, but {guid.split('-')[0]} granted")) == "0"
                ):
                    found[library.split(" ", 1)[1]] = f"its first call asks for the private driver table {guid}"
        return found

    def needs(self, functions: Iterable[tuple[str, str]], wanted: RuntimeVersions) -> frozenset[str]:
        """All driver functions that a program with these (library, function) calls was seen to need.

        The runtime's start and first calls are included; driver functions among the calls stand for themselves.
        """
        first: dict[str, list[str]] = defaultdict(list)
        for function, driver in self._database.query(
            "SELECT runtime_function, driver_function FROM runtime_first_call"
        ):
            first[function].append(driver)
        found = set(self.start_calls(wanted))
        for library, name in functions:
            if library == "nvcuda":
                found.add(name)
            elif library == "cudart":
                found.update(driver for driver, _, _ in self._calls.get(name, []))
                found.update(first.get(name, []))
            else:
                found.update(driver for driver, _ in self._library_calls.get((library, name), []))
        return frozenset(found - {""})

    # --- NVIDIA's libraries that stay NVIDIA's own ----------------------------------------------------------------

    @cached_property
    def _library_calls(self) -> dict[tuple[str, str], list[tuple[str, str]]]:
        found: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
        for library, function, driver, phase in self._database.query(
            "SELECT library, function, driver_function, phase FROM library_to_driver"
            " WHERE caller_under_zluda <> 'replaced' AND driver_function <> '' ORDER BY rowid"
        ):
            found[library, function].append((driver, phase))
        for function, driver in self._seen("nccl"):
            found["nccl", function].append((driver, "call"))
        return found

    @cached_property
    def _library_to_library(self) -> dict[tuple[str, str], list[tuple[str, str]]]:
        found: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
        for library, function, called, name, caller in self._database.query(
            "SELECT DISTINCT library, function, called_library, called_function, caller_library"
            " FROM library_to_library ORDER BY rowid"
        ):
            # Calls that a replaced library makes in turn (cuBLAS into cuBLASLt) are ZLUDA's own affair.
            if caller.startswith(f"lib{library.lower()}."):
                found[library, function].append((called, name))
        return found

    @cached_property
    def _simulated(self) -> dict[tuple[str, str], tuple[str, str]]:
        return {
            (row[0], row[1]): (row[2], row[3])
            for row in self._database.query(
                "SELECT library, function, verdict, functions_refused FROM library_simulated_v6"
            )
        }

    def library(self, library: str, name: str, imported: frozenset[str] | None) -> FunctionAnswer | None:
        """What a function of a passed-through NVIDIA library needs and does not get here; None where not measured.

        ``imported``: functions that the program's own copy of the library imports, when it was read; a measured call
        into another library that this copy does not import cannot happen in it.
        """
        key = (library, name)
        if key not in self._simulated and key not in self._library_calls and key not in self._library_to_library:
            return None
        lacking = self._failing(driver for driver, phase in self._library_calls.get(key, []) if phase == "call")
        for called, function in self._library_to_library.get(key, []):
            if imported is not None and function not in imported:
                continue
            state = self._database.functions(self._release, [(called, function)])[0].state
            if state in _FAILING:
                lacking.append(function)
        verdict, refused = self._simulated.get(key, ("", ""))
        items = split(refused)
        tables = [item for item in items if "private table" in item]
        if not lacking and verdict == "fails" and tables == list(items) and self._release.tag.startswith(("v6", "v7")):
            lacking = tables  # nothing else was refused, so the refused private tables made it fail
        if not lacking:
            return FunctionAnswer(library, name, "unknown", confidence="medium")
        return FunctionAnswer(
            library,
            name,
            "returns-error",
            limit=f"needs {', '.join(dict.fromkeys(lacking))}",
            confidence="medium",
            source=f"measured calls of {library} against {self._release.tag}",
        )


def runtime_start(database: Database, dll: str, file_version: str = "", description: str = "") -> list[Use]:
    """The driver functions that every start of a runtime DLL calls, as evidence that stands for the DLL itself."""
    measured = Measured(database, database.resolve_release("latest"))
    versions = measured.versions(runtime_version(dll, file_version, description))
    itself = Use(role="entry", module=dll, kind="call", dll=dll, found="bundle", init=True, because="it is the runtime")
    return [itself] + [
        Use(
            role="entry",
            module=dll,
            kind="call",
            dll="nvcuda.dll",
            function=driver,
            init=True,
            confidence="high" if versions.exact else "medium",
            because=f"measured start of CUDA runtime {', '.join(versions.versions)}",
        )
        for driver in measured.start_calls(versions)
    ]


@lru_cache(maxsize=16)
def measured_of(database: Database, tag: str) -> Measured:
    """The measured needs for the release ``tag``, whose tables stay read while the process lives."""
    return Measured(database, database.resolve_release(tag))


def runtime_version(dll: str, file_version: str = "", description: str = "") -> str:
    """The CUDA version of a runtime DLL: from its version resource (``12.4.127`` in the description, ``6,14,11,12040``
    as file version), else from its name (``cudart64_110`` → ``11.0``, ``cudart64_12`` → ``12``)."""
    found = re.search(r"CUDA (\d+\.\d+\.\d+)", description)
    if found:
        return found[1]
    number = re.fullmatch(r"\s*\d+[.,]\s*\d+[.,]\s*\d+[.,]\s*(\d{4,5})\s*", file_version)
    if number:
        value = int(number[1])
        return f"{value // 1000}.{value % 1000 // 10}"
    name = re.search(r"cudart(?:32|64)_(\d+)\.dll", dll, re.I)
    if not name:
        return ""
    digits = name[1]
    return digits if len(digits) == 2 else f"{digits[:2]}"


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def _arguments(names: Iterable[str]) -> str:
    """``Default_DtoD_1MB``, ``Default_HtoD_64B`` … shortened to what they share: ``Default``."""
    heads = dict.fromkeys(name.split("_")[0] for name in names)
    return ", ".join(heads)
