"""Which files of a bundle are read as models and scripts, and the evidence that they and the frameworks give.

One ContentReader serves all entries of a bundle; every file is read once, within bounds. What was left out is in
``skipped``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path

from msgspec.structs import replace

from zcheck.cli.cache_store import FactCache
from zcheck.cli.content_models import ModelReader, unread_models
from zcheck.cli.content_scripts import ScriptReader
from zcheck.cli.content_tables import app_rows, framework_file, workload_tables
from zcheck.cli.data import coverage, name_lookups
from zcheck.collect.demangle import qualified_name
from zcheck.collect.frameworks import (
    KnownRow,
    Sighting,
    called_items,
    find_frameworks,
    framework_items,
    known_items,
)
from zcheck.collect.workload import model_items, on_cpu_only, script_items, used_names
from zcheck.model.base import Confidence, Skipped
from zcheck.model.bundle import Bundle, BundleFile
from zcheck.model.evidence import Item, Use, Workload
from zcheck.model.facts import PeFacts
from zcheck.model.workload import ScriptFacts

LoadedEdge = tuple[str, str, tuple[str, ...], Confidence, str]
"""module, DLL, functions, confidence, place: as resolve/ takes a dynamic edge"""
_TEXT_READ = 64 * 1024
_PYTHON_DLL = re.compile(r"python3\d*(_d|t)?\.dll", re.I)
_SET = re.compile(r"^\s*(?:@?set\s+\"?|export\s+|\$env:)([A-Za-z_]\w*)\s*=\s*\"?([^\"\r\n]*)", re.I | re.M)


class ContentReader:
    """Reads models and scripts of one bundle."""

    def __init__(self, bundle: Bundle, releases: Sequence[str], cache: FactCache | None = None) -> None:
        """``releases``: the ZLUDA releases of the stacks in question; ``cache`` keeps facts between runs."""
        self._bundle = bundle
        self._root = Path(bundle.root)
        self._releases = tuple(dict.fromkeys(releases))
        self._scopes: dict[str, list[BundleFile]] = {}
        self._none: list[BundleFile] = []  # one list, since what is read is kept by the identity of its files
        self._told: dict[int, tuple[list[Workload], dict[str, str]]] = {}
        self._sightings: dict[int, list[Sighting]] = {}
        self.skipped: list[Skipped] = []
        self._models = ModelReader(bundle, self.skipped)
        self._scripts = ScriptReader(bundle, self.skipped, cache or FactCache(None))

    def evidence(self, entry: str, facts: Mapping[str, PeFacts]) -> list[Item]:
        """Workload, Framework, Known and Use items for one entry. ``facts``: of the files that it reaches, by path."""
        files = self._files(entry, facts)
        if not files:
            return self._applications(entry, facts, {})
        sightings = self._frameworks(files, facts)
        scripts = self._scripts.telling(entry, files)
        models, maybe = self._models.read(files)
        tables = workload_tables()
        if on_cpu_only(scripts):
            maybe |= {model.path for model in models if model.format == "onnx"}
        stated: list[Workload] = []
        if sightings or models:
            stated += model_items(models, tables, maybe)
        if id(scripts) not in self._told:  # one list of scripts, and so one of models, for all entries of a folder
            told = script_items(scripts, tables, bool(models)), used_names(models, scripts, tables)
            self._told[id(scripts)] = told
        written, names = self._told[id(scripts)]
        stated = _settle([*stated, *written])
        if not sightings:  # what was not seen or not read matters only where a framework imports everything
            stated = [item for item in stated if item.need in ("required", "optional")]
        if sightings and not any(item.family == "convolution" for item in stated):
            stated += unread_models(files)
        variables = self._variables(files, scripts)
        # What a framework calls, and what is known of it, says something only about who reaches its main DLL.
        reached = [item for item in sightings if not item.dlls or any(dll in facts for dll in item.main)]
        return [
            *stated,
            *framework_items(sightings),
            *called_items(reached, stated, names, self._imported(reached, facts), self._cuda_dlls(files, facts)),
            *self._loaded(entry, files, scripts),
            *self._known(reached, variables),
            *self._applications(entry, facts, variables),
        ]

    def edges(self, entry: str, facts: Mapping[str, PeFacts]) -> list[LoadedEdge]:
        """DLLs of frameworks that Python, run by this entry, loads with their packages: dynamic edges for the resolver.

        Those whose package a script of the program imports; with no script to read, those of all packages there.
        """
        name = entry.rpartition("/")[2].lower()
        imported = {item.dll for fact in facts.values() for item in fact.imports}
        runs_python = name.startswith("python") or any(_PYTHON_DLL.fullmatch(dll) for dll in imported)
        if not name.endswith(".exe") or not runs_python:
            return []
        files = self._files(entry, facts)
        sightings = self._frameworks(files, facts)
        packages = [package for item in sightings for package in item.row.packages]
        wants = self._scripts.imported(entry, files, packages) if sightings else None
        found: list[LoadedEdge] = []
        for item in sightings:
            by = next((wants[package] for package in item.row.packages if package in wants), "") if wants else ""
            if not by and wants is not None:
                continue
            place = f"{by} imports it" if by else f"package {item.row.name} of the environment"
            found += [(entry, dll, (), "high" if by else "medium", place) for dll in item.loads]
        return found

    # --- which files -----------------------------------------------------------------------------------------------

    def _files(self, entry: str, facts: Mapping[str, PeFacts]) -> list[BundleFile]:
        """The bundle files that go with this entry: of a folder of many programs, those below its own folder, and only
        where it has to do with a framework or with Python; below a folder with programs of its own, none."""
        folder, _, name = entry.rpartition("/")
        if self._bundle.kind == "python-environment" or not name.lower().endswith(".exe"):
            return self._scopes.setdefault("", list(self._bundle.files))
        programs = self._programs
        if programs.get(folder, 0) > 1 and not self._hosts(facts):
            return self._none
        return self.below(entry)

    def below(self, entry: str) -> list[BundleFile]:
        """The files in the folder of a program and below it, without those below folders with programs of their own;
        one list for all programs of a folder."""
        folder = entry.rpartition("/")[0]
        key = f"{folder}/"
        if key not in self._scopes:
            prefix = key if folder else ""
            outside = tuple(f"{place}/" for place in self._programs if place != folder and place.startswith(prefix))
            self._scopes[key] = [
                file
                for file in self._bundle.files
                if file.path.startswith(prefix) and not file.path.startswith(outside)
            ]
        return self._scopes[key]

    @cached_property
    def _programs(self) -> dict[str, int]:
        """How many programs lie right in each folder."""
        inside = (file.path.rpartition("/")[0] for file in self._bundle.files if file.path.lower().endswith(".exe"))
        return dict(Counter(inside))

    def _hosts(self, facts: Mapping[str, PeFacts]) -> bool:
        """True when an entry reaches a framework's DLL or Python's."""
        names = name_lookups()
        dlls = {path.rpartition("/")[2] for path in facts} | {
            dll.dll for fact in facts.values() for dll in fact.imports
        }
        return any(names.framework_of(dll) or _PYTHON_DLL.fullmatch(dll) for dll in dlls)

    # --- reading ---------------------------------------------------------------------------------------------------

    def _bytes(self, path: str, most: int) -> bytes | None:
        try:
            with (self._root / path).open("rb") as file:
                return file.read(most)
        except (OSError, ValueError):
            return None

    def _text(self, path: str) -> str:
        data = self._bytes(path, _TEXT_READ)
        return data.decode("utf-8", "replace") if data else ""

    # --- frameworks ------------------------------------------------------------------------------------------------

    def _frameworks(self, files: Sequence[BundleFile], facts: Mapping[str, PeFacts]) -> list[Sighting]:
        def version(dll: str) -> str:
            fact = facts.get(dll)
            return fact.version.file_version if fact and fact.version else ""

        if id(files) not in self._sightings:
            paths = (file.path for file in files)
            self._sightings[id(files)] = find_frameworks(paths, framework_file().frameworks, self._text, lambda _: "")
        return [
            item
            if item.version
            else replace(item, version=next((text for dll in item.dlls if (text := version(dll))), ""))
            for item in self._sightings[id(files)]
        ]

    def _cuda_dlls(self, files: Sequence[BundleFile], facts: Mapping[str, PeFacts]) -> list[str]:
        names = name_lookups()
        seen = [item.dll for fact in facts.values() for item in fact.imports]
        seen += [file.path.rpartition("/")[2] for file in files if file.kind == "pe"]
        return list(dict.fromkeys(dll for dll in seen if names.library_of(dll) is not None))

    @staticmethod
    def _imported(sightings: Sequence[Sighting], facts: Mapping[str, PeFacts]) -> dict[str, str]:
        """Qualified C++ names that modules import from the frameworks' DLLs, of those that a row asks for → module."""
        wanted = {item.row.id: {name for call in item.row.calls for name in call.imports} for item in sightings}
        found: dict[str, str] = {}
        for item in sightings:
            if not wanted[item.row.id]:
                continue
            dlls = {dll.rpartition("/")[2].lower() for dll in item.dlls}
            for path, fact in facts.items():
                if path in item.dlls:
                    continue
                for imported in fact.imports:
                    if imported.dll.lower() in dlls:
                        for symbol in imported.symbols:
                            name = qualified_name(symbol.name or "")
                            if name in wanted[item.row.id]:
                                found.setdefault(name, path.rpartition("/")[2])
        return found

    def _loaded(self, entry: str, files: Sequence[BundleFile], scripts: Sequence[ScriptFacts]) -> list[Use]:
        """CUDA DLLs that scripts load by name: the program's own, and the ``__init__.py`` of the entry's package."""
        names = name_lookups()
        present = {file.path.rpartition("/")[2].lower(): file.path for file in files if file.kind == "pe"}
        own = {script.path: script for script in scripts}
        package = entry.rpartition("/")[0]
        uses: list[Use] = []
        for file in files:
            initial = bool(package) and file.path == f"{package}/__init__.py"
            if file.path not in own and not initial:
                continue
            facts = own.get(file.path) or self._scripts.one(file)
            for library in facts.libraries if facts else ():
                base = re.split(r"[\\/]", library.name)[-1].lower()
                dlls = [base]
                if library.kind == "folder":
                    continue
                if library.kind == "pattern":
                    wanted = re.compile(re.escape(base).replace(r"\*", ".*").replace(r"\?", "."))
                    here = file.path.rpartition("/")[0]
                    dlls = [name for name, path in present.items() if wanted.fullmatch(name) and path.startswith(here)]
                uses += [
                    Use(
                        "module" if file.path in own else "framework",
                        file.path,
                        "dynamic",
                        dll,
                        load="later",
                        found="bundle" if dll in present else "",
                        place=f"line {library.line}",
                        confidence="high" if library.kind == "library" else "medium",
                    )
                    for dll in dlls
                    if names.library_of(dll) is not None
                ]
        return list(dict.fromkeys(uses))

    def _variables(self, files: Sequence[BundleFile], scripts: Sequence[ScriptFacts]) -> dict[str, str]:
        """Environment variables that the program's scripts and start files set."""
        found = {name: value for script in scripts for name, value in script.environment}
        starters = [file for file in files if file.path.lower().endswith((".bat", ".cmd", ".ps1"))]
        for file in sorted(starters, key=lambda file: (file.path.count("/"), file.path))[:50]:
            found.update((name, value.strip()) for name, value in _SET.findall(self._text(file.path)))
        return found

    def _known(self, sightings: Sequence[Sighting], variables: Mapping[str, str]) -> list[Item]:
        items: list[Item] = []
        for item in sightings:
            rows = item.row.known
            if item.row.own_path and item.dlls:
                way = f"Look first for a build of {item.row.name} with its own AMD path, which needs no ZLUDA."
                rows += (KnownRow(f"{item.row.id}-own-path", "own-path", item.row.own_path, way, item.row.source),)
            module = item.module.rpartition("/")[2]
            asked, order = self._asked(), _order()
            items += known_items(item.row.name, item.version, item.cuda, module, rows, asked, order, variables)
        return items

    def _applications(self, entry: str, facts: Mapping[str, PeFacts], variables: Mapping[str, str]) -> list[Item]:
        name = entry.rpartition("/")[2]
        fact = facts.get(entry)
        version = fact.version if fact else None
        items: list[Item] = []
        for row in app_rows():
            if not any(re.fullmatch(pattern, name, re.I) for pattern in row.files):
                continue
            if row.company and (version is None or not re.search(row.company, version.company, re.I)):
                continue
            number = (version.product_version or version.file_version) if version else ""
            items += known_items(row.name, number, "", name, row.known, self._asked(), _order(), variables)
        return items

    def _asked(self) -> dict[str, int]:
        order = _order()
        return {tag: order.get(coverage().resolve_release(tag).tag, -1) for tag in self._releases}


@lru_cache(maxsize=1)
def _order() -> dict[str, int]:
    return {release.tag: release.order for release in coverage().releases()}


def _settle(items: Sequence[Workload]) -> list[Workload]:
    """What one reader did not see does not count where another saw it."""
    seen = {item.family for item in items if item.need in ("required", "optional")}
    unknown = {item.family for item in items if item.need == "unknown"}
    return [
        item
        for item in items
        if item.need in ("required", "optional")
        or (item.family not in seen and (item.need == "unknown" or item.family not in unknown))
    ]
