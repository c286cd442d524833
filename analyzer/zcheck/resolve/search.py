"""Where the loader looks for a DLL, and what it finds.

Source: Microsoft, "Dynamic-link library search order" (learn.microsoft.com/windows/win32/dlls), standard search order
for unpackaged apps with safe DLL search mode, and LoadLibraryEx's LOAD_LIBRARY_SEARCH_* flags for what a host loads.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from zcheck.model.base import Confidence
from zcheck.model.bundle import Bundle
from zcheck.model.facts import Machine, PeFacts
from zcheck.model.graph import Origin
from zcheck.resolve.names import HOST_PROGRAM, folder_part, in_assembly, is_api_set, module_name
from zcheck.resolve.windows import WindowsDlls

MAX_SAME_NAME = 8
"""files of one name in the bundle that are considered when no rule points to one of them"""
VC_NOTE = "Microsoft Visual C++ redistributable, not part of Windows"


@dataclass(frozen=True)
class Found:
    """What answers to a DLL name: ``key`` is the bundle path, a file of PATH, or the lower-case name."""

    key: str
    name: str
    origin: Origin
    rule: str
    confidence: Confidence = "high"
    note: str = ""


class Search:
    """The search of one process: ``entry`` is a bundle path, a program (its folder is the application's) or a DLL."""

    def __init__(
        self,
        bundle: Bundle,
        entry: str,
        windows: WindowsDlls,
        path_dirs: Sequence[Path] = (),
        system_names: Iterable[str] = (),
        current_directory: str | None = None,
    ) -> None:
        self.entry = entry
        self.windows = windows
        self.is_program = entry.lower().endswith((".exe", ".scr", ".com"))
        self.home = _folder(entry)
        self.dll_directories = [_plain(folder) for folder in bundle.dll_directories]
        self.current = None if current_directory is None else _plain(current_directory)
        self.system_names = {name.lower() for name in system_names}
        self.files: dict[str, dict[str, str]] = {}
        self.by_name: dict[str, list[str]] = {}
        for file in bundle.files:
            if file.kind == "pe":
                name = file.path.rpartition("/")[2].lower()
                # Two names that differ in case only cannot both exist on Windows; the first in order stands.
                self.files.setdefault(_folder(file.path), {}).setdefault(name, file.path)
                self.by_name.setdefault(name, []).append(file.path)
        self._foreign = {
            folder
            for other in bundle.entries
            if self.is_program and (folder := _folder(other)) and not f"{self.home}/".startswith(f"{folder}/")
        }
        self._path_dirs = list(path_dirs)
        self._path_files: dict[str, str] | None = None
        self.assemblies: tuple[str, ...] = ()
        """side-by-side assemblies of the program's manifest: the process default"""
        self.machine: Machine | None = None

    def is_foreign(self, path: str) -> bool:
        """True for a file below the folder of another entry, when this entry does not lie there too."""
        folder = f"{_folder(path)}/"
        return any(folder.startswith(f"{other}/") for other in self._foreign)

    def _of_that_name(self, name: str) -> list[str]:
        return [path for path in self.by_name.get(name, ()) if not self.is_foreign(path)][:MAX_SAME_NAME]

    def candidates(self, dll: str, importer: str) -> list[str]:
        """Files (bundle paths or absolute ones of PATH) that any rule could pick for a name: they have to be parsed."""
        name = module_name(dll)
        if is_api_set(name):
            return []
        row = self.windows.get(name, self.machine)
        if row and row.known:
            return []
        places = self._folders(dll, importer, True)
        found = [path for _, folder in places if (path := self.files.get(folder, {}).get(name))]
        found.extend(path for _, path in self._assembly_files(name, ()))
        if not found and not row:
            found = self._of_that_name(name)
        if not found and not row and (outside := self._on_path(name)):
            found = [outside]
        return list(dict.fromkeys(found))

    def find(
        self, dll: str, importer: str, facts: Mapping[str, PeFacts | None], start: bool, assemblies: Sequence[str] = ()
    ) -> Found:
        """What the loader takes for ``dll`` when ``importer`` asks for it, at process start or later."""
        name = module_name(dll)
        if is_api_set(name):
            return Found(name, name, "api-set", "api-set")
        for rule, path in self._assembly_files(name, assemblies):
            return self._file(path, rule, facts)
        for assembly in (*self.assemblies, *assemblies):
            if in_assembly(assembly, name):
                return Found(name, name, "system", "side-by-side", note=VC_NOTE)
        row = self.windows.get(name, self.machine)
        if row and row.known:
            return Found(name, name, "system", "known-dll", note=row.note)
        for rule, folder in self._folders(dll, importer, not start):
            if beside := self.files.get(folder, {}).get(name):
                return self._file(beside, rule, facts)
        if row or name in self.system_names:
            return Found(name, name, "system", "system32", note=row.note if row else "")
        if self.current is not None and (here := self.files.get(self.current, {}).get(name)):
            return self._file(here, "current-directory", facts)
        if outside := self._on_path(name):
            return self._file(outside, "path", facts, origin="path")
        same = self._of_that_name(name)
        if same and not (self.is_program and start):
            # Somebody adds a folder at run time: a file of the bundle with that name is what can be meant.
            same = sorted(same, key=lambda path: (self._wrong(path, facts), -_shared(path, importer), path))
            return self._file(same[0], "dll-directory", facts, confidence="medium")
        if not self.is_program and HOST_PROGRAM.fullmatch(name):
            return Found(name, name, "system", "application-directory", "medium", "the host program")
        return Found(name, name, "missing", "not-found", "medium" if same else "high")

    def _folders(self, dll: str, importer: str, later: bool) -> list[tuple[str, str]]:
        """Rule and bundle folder of each place before System32, in order; a folder in the name itself goes first."""
        own = _folder(importer)
        home = (("application-directory" if self.is_program else "module-directory"), self.home)
        order = [home]
        if (later or not self.is_program) and own != self.home:
            # A module elsewhere was loaded by its path, mostly so that its own folder is searched first.
            order.insert(0, ("module-directory", own))
        if later or not self.is_program:
            order += [("dll-directory", folder) for folder in self.dll_directories]
        sub = folder_part(dll)
        if sub and ":" not in sub:
            order = [(rule, _join(folder, sub)) for rule, folder in order] + order
        return order

    def _assembly_files(self, name: str, assemblies: Sequence[str]) -> Iterable[tuple[str, str]]:
        """Private assemblies: a folder of the assembly's name beside the program (Microsoft, "Private Assemblies")."""
        for assembly in (*self.assemblies, *assemblies):
            path = self.files.get(_join(self.home, assembly.lower()), {}).get(name)
            if path:
                yield "side-by-side", path

    def _file(
        self,
        path: str,
        rule: str,
        facts: Mapping[str, PeFacts | None],
        confidence: Confidence = "high",
        origin: Origin = "bundle",
    ) -> Found:
        name = path.replace("\\", "/").rpartition("/")[2]
        if self._wrong(path, facts):
            # The loader does not look on: it fails with 0xC000007B, LoadLibrary with error 193.
            return Found(path, name, "mismatch", "machine-mismatch", confidence)
        return Found(path, name, origin, rule, confidence)

    def _wrong(self, path: str, facts: Mapping[str, PeFacts | None]) -> bool:
        read = facts.get(path)
        if read is None or self.machine is None or read.is_dotnet or read.machine == self.machine:
            return False
        return not (self.machine == "arm64ec" and read.machine == "x64")

    def _on_path(self, name: str) -> str | None:
        if self._path_files is None:
            self._path_files = {}
            for folder in self._path_dirs:
                try:
                    names = sorted(entry.name for entry in os.scandir(folder))
                except OSError:
                    continue
                for file in names:
                    if file.lower().endswith((".dll", ".exe")):
                        self._path_files.setdefault(file.lower(), str(folder / file))
        return self._path_files.get(name)


def _folder(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[0].lower()


def _plain(folder: str) -> str:
    return "/".join(part for part in folder.replace("\\", "/").lower().split("/") if part not in ("", "."))


def _join(folder: str, sub: str) -> str:
    parts: list[str] = []
    for part in f"{folder}/{sub}".split("/"):
        if part == "..":
            if parts:
                parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _shared(path: str, other: str) -> int:
    """How many leading folders two paths share: the nearest file of a name is the likeliest."""
    count = 0
    for a, b in zip(_folder(path).split("/"), _folder(other).split("/"), strict=False):
        if a != b:
            break
        count += 1
    return count
