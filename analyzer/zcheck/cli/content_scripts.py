"""Which files of a bundle are read as Python scripts: the program's own, and of these only those that can matter.

A syntax tree takes long, so the bytes are looked at first (``parse/pyscript_marks``). Where no script of a program
imports a package with a GPU side, only those that load a DLL or set a variable say anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from zcheck.cli.cache_store import FactCache
from zcheck.cli.content_tables import INSTALLED, TESTS, foreign_packages, workload_tables
from zcheck.collect.workload import on_gpu
from zcheck.model.base import Skipped
from zcheck.model.bundle import Bundle, BundleFile
from zcheck.model.workload import ScriptFacts, ScriptMarks

SCRIPTS_READ = 400
SCRIPTS_LOOKED_AT = 10_000
SCRIPT_BYTES = 32 * 1024 * 1024
"""of all scripts that are read together"""


class ScriptReader:
    """Reads scripts of one bundle, each once and within bounds; ``skipped`` gets what was left out."""

    def __init__(self, bundle: Bundle, skipped: list[Skipped], cache: FactCache) -> None:
        self._bundle = bundle
        self._cache = cache
        self._root = Path(bundle.root)
        self._skipped = skipped
        self._facts: dict[str, ScriptFacts | None] = {}
        self._marks: dict[str, ScriptMarks | None] = {}
        self._bytes_read = 0
        self._own_files: dict[tuple[int, str], list[BundleFile]] = {}
        self._telling: dict[tuple[int, str], list[ScriptFacts]] = {}

    def telling(self, entry: str, files: Sequence[BundleFile]) -> list[ScriptFacts]:
        """The program's own scripts that say what work it does, what it loads or sets: all when one of them imports a
        package with a GPU side. The same list for all entries that share it."""
        key = self._key(entry, files)
        if key not in self._telling:
            own = self._own(key, files)
            gpu = workload_tables().gpu_packages
            # The confirming reads end at the first script that does import one.
            on_one = any(
                on_gpu([facts], workload_tables()) for facts in self._read(own, lambda m: bool(m.packages & gpu))
            )
            self._telling[key] = list(self._read(own, lambda marks: on_one or marks.effects))
        return self._telling[key]

    def imported(self, entry: str, files: Sequence[BundleFile], packages: Iterable[str]) -> dict[str, str] | None:
        """Which of the packages the program's own scripts import → the first script; None when no script imports
        anything, so that none tells what the program wants."""
        own = self._own(self._key(entry, files), files)
        asked = frozenset(packages)
        wants: dict[str, str] = {}
        for facts in self._read(own, lambda marks: bool(marks.packages & asked)):
            for module in facts.imports:
                wants.setdefault(module.partition(".")[0], facts.path)
        wants = {package: path for package, path in wants.items() if package in asked}
        if wants or any(facts.imports for facts in self._read(own, lambda _: True)):
            return wants
        return None

    def one(self, file: BundleFile) -> ScriptFacts | None:
        """What one script loads and sets, among the rest; None where it does neither or cannot be read."""
        marks = self._look(file)
        return self._script(file) if marks is not None and marks.effects else None

    # --- which -----------------------------------------------------------------------------------------------------

    def _key(self, entry: str, files: Sequence[BundleFile]) -> tuple[int, str]:
        """Of a Python environment only the top folder of the entry is looked into."""
        in_site = self._bundle.kind == "python-environment" and not entry.lower().endswith(".exe")
        return id(files), entry.partition("/")[0] if in_site and "/" in entry else ""

    def _own(self, key: tuple[int, str], files: Sequence[BundleFile]) -> list[BundleFile]:
        """The program's own Python files: neither the interpreter's library nor installed packages."""
        if key not in self._own_files:
            top = key[1]
            library = tuple(file.path[: -len("os.py")] for file in files if file.path.lower().endswith("lib/os.py"))
            foreign = foreign_packages(neutral=True)
            found = []
            for file in sorted(files, key=lambda file: (file.path.count("/"), file.path)):
                parts = file.path.split("/")
                if file.kind != "script" or not parts[-1].lower().endswith((".py", ".pyw")):
                    continue
                if file.path.startswith(library) or any(part.lower() in INSTALLED for part in parts):
                    continue
                if foreign & set(parts[:-1]) or TESTS & set(parts[:-1]) or (top and parts[0] != top):
                    continue
                found.append(file)
            self._own_files[key] = found
        return self._own_files[key]

    # --- reading ---------------------------------------------------------------------------------------------------

    def _read(self, files: Iterable[BundleFile], wanted: Callable[[ScriptMarks], bool]) -> Iterator[ScriptFacts]:
        for file in files:
            marks = self._look(file)
            if marks is not None and wanted(marks):
                facts = self._script(file)
                if facts is not None:
                    yield facts

    def _look(self, file: BundleFile) -> ScriptMarks | None:
        if file.path not in self._marks:
            from zcheck.parse.pyscript_marks import read_marks

            self._marks[file.path] = None
            if len(self._marks) > SCRIPTS_LOOKED_AT:
                self._skipped.append(Skipped(file.path, "more scripts than are looked at"))
                return None
            data = self._bytes(file.path)
            if data is not None:
                packages = foreign_packages(neutral=False) | workload_tables().gpu_packages
                self._marks[file.path] = read_marks(data, packages)
        return self._marks[file.path]

    def _script(self, file: BundleFile) -> ScriptFacts | None:
        if file.path not in self._facts:
            self._facts[file.path] = None
            if len(self._facts) > SCRIPTS_READ or self._bytes_read + file.size > SCRIPT_BYTES:
                self._skipped.append(Skipped(file.path, "more scripts than are read"))
                return None
            data = self._bytes(file.path)
            if data is not None:
                self._bytes_read += len(data)
                self._facts[file.path] = self._read_one(data, file.path)
        return self._facts[file.path]

    def _read_one(self, data: bytes, path: str) -> ScriptFacts:
        key = self._cache.key("script", hashlib.sha256(data).hexdigest(), path)
        kept = self._cache.value(key, ScriptFacts)
        if kept is None:
            from zcheck.parse.pyscript import read_script

            kept = read_script(data, path)
            if not kept.problems:  # what failed may have failed for want of memory, or for this Python's age
                self._cache.put_value(key, kept)
        return kept

    def _bytes(self, path: str) -> bytes | None:
        from zcheck.parse.pyscript_marks import MAX_BYTES

        try:
            with (self._root / path).open("rb") as file:
                return file.read(MAX_BYTES + 1)
        except (OSError, ValueError):
            return None
