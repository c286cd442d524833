"""The applications below a folder: programs with the files that belong to them, Python environments, plugin folders.

What is told from names and places alone (nothing is opened):

* a Python environment or unpacked packages: ``python.exe`` beside ``Lib``, ``DLLs`` or its own DLL, ``pyvenv.cfg``, or
  ``*.dist-info``; everything below belongs to it;
* a frozen program: one beside ``_internal`` or ``base_library.zip`` (PyInstaller), or with ``python3*.dll`` and
  ``.pyd`` files beside it (Nuitka, cx_Freeze, py2exe);
* a program folder: a folder with programs; programs in folders below belong to it. Of the folder that was named itself
  this is not assumed: folders with programs below it are applications of their own;
* a plugin folder: libraries that no program around them can claim.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from zcheck.discover.bundle import bundle_of, helper, libraries_of, nothing_to_judge, scripts_only
from zcheck.discover.kinds import LIBRARIES, PROGRAMS
from zcheck.discover.walk import Walk
from zcheck.errors import InputError, UsageError
from zcheck.model.audit import Application, ApplicationKind
from zcheck.model.base import DEFAULT_LIMITS, Limits, Skipped
from zcheck.model.bundle import Bundle, BundleFile
from zcheck.model.text import shown

_PYTHON = re.compile(r"python(3(\.\d+)?t?(_d)?)?\.exe", re.I)
_PYTHON_DLL = re.compile(r"python3\d*t?(_d)?\.dll", re.I)
ENTRIES_TOGETHER = 64
"""programs of one folder that are judged in one piece of work"""


def find_applications(folder: Path, limits: Limits = DEFAULT_LIMITS) -> tuple[list[Application], list[Skipped]]:
    """The applications below ``folder`` in the order of their paths, and what was not looked at and why.

    Raises InputError when it cannot be looked at and UsageError when it is no folder or holds nothing to judge.
    """
    name = shown(folder.name or str(folder))
    try:
        if not folder.is_dir():
            if folder.exists():
                raise UsageError(f"{name} is a file; zcheck audit takes a folder, zcheck check a program")
            raise InputError(f"{name} cannot be read: no such folder")
    except (OSError, ValueError) as error:
        raise InputError(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    walk = Walk(folder, limits.entries)
    walk.add()
    found = _Finder(walk).applications()
    if not found:
        raise nothing_to_judge(folder, walk.files.values())
    return found, walk.skipped


def bundles(folder: Path, application: Application) -> list[Bundle]:
    """The bundles to judge for an application: one, or for very many programs in one folder one for every few of them.

    A part of many holds the libraries and the programs of that part, for the loader asks for no others.
    """
    root = folder / application.path if application.path else folder
    parts: list[Sequence[str]] = [application.entries]
    if len(application.entries) > ENTRIES_TOGETHER:
        step = ENTRIES_TOGETHER
        parts = [application.entries[at : at + step] for at in range(0, len(application.entries), step)]
    found = []
    for entries in parts:
        walk = Walk(root, 0)
        chosen, all_entries = set(entries), set(application.entries)
        walk.files = {
            file.path: file
            for file in application.files
            if len(parts) == 1 or file.path in chosen or file.path not in all_entries
        }
        program = any(entry.lower().endswith(PROGRAMS) for entry in entries)
        found.append(bundle_of(root, tuple(entries), walk, program))
    return found


class _Finder:
    """Sorts the files of one walk into applications."""

    def __init__(self, walk: Walk) -> None:
        self._walk = walk
        self._programs: dict[str, list[str]] = {}
        self._libraries: dict[str, list[str]] = {}
        self._all_programs: set[str] = set()
        for file in walk.files.values():
            if file.kind != "pe":
                continue
            place = file.path.rpartition("/")[0]
            if not file.path.lower().endswith(PROGRAMS):
                self._libraries.setdefault(place, []).append(file.path)
            elif reason := helper(file.path, walk):
                walk.skipped.append(Skipped(path=shown(file.path), reason=reason))
            else:
                self._programs.setdefault(place, []).append(file.path)
                self._all_programs.add(file.path)

    def applications(self) -> list[Application]:
        """Every application, by path."""
        environments = self._environments()
        roots: dict[str, ApplicationKind] = dict.fromkeys(environments, "python-environment")
        for place in self._programs:
            if _owner(place, environments) is None:
                root = self._program_root(place, environments)
                roots.setdefault(root, self._kind(root))
        # All below an environment is the environment's, also where it is the folder that was named.
        whole = "" in environments
        for place in self._libraries:
            if _owner(place, roots, own_root=whole) is None:
                roots.setdefault(self._plugin_root(place, roots), "plugins")
        members: dict[str, list[BundleFile]] = {root: [] for root in roots}
        for file in self._walk.files.values():
            owner = _owner(file.path.rpartition("/")[0], roots)
            if owner is not None:
                members[owner].append(file)
        # An environment inside of a program's folder is an application, and the program can load its files too.
        reached = {root: list(files) for root, files in members.items()}
        for root in sorted(roots, reverse=True):
            outer = _owner(root.rpartition("/")[0], roots) if root else None
            if outer:
                reached[outer] += [file for file in members[root] if file.kind == "pe"]
        made = {root: self._application(root, kind, members[root], reached[root]) for root, kind in roots.items()}
        self._note_scripts(made, members)
        return sorted((app for app in made.values() if app is not None), key=lambda app: app.path)

    def _note_scripts(self, made: dict[str, Application | None], members: dict[str, list[BundleFile]]) -> None:
        """Environments and folders of scripts or models with nothing to judge get no row: say that they were seen."""
        groups = {root: members[root] for root, application in made.items() if application is None}
        for file in self._walk.files.values():
            top, inside, _ = file.path.partition("/")
            if inside and _owner(file.path.rpartition("/")[0], made) is None:
                groups.setdefault(top, []).append(file)
        for root, files in groups.items():
            around = _owner(root.rpartition("/")[0], made) if root else None
            below = any(other != root and other.startswith(f"{root}/" if root else "") for other in made)
            reason = scripts_only(files) or ("no Windows program or library" if root in made else "")
            # What lies beside or inside of an application is that one's business.
            if reason and not below and (around is None or made[around] is None):
                self._walk.skipped.append(Skipped(path=shown(root) or ".", reason=reason))

    def _environments(self) -> dict[str, None]:
        found: dict[str, None] = {}
        for path in self._walk.files:
            place, _, name = path.rpartition("/")
            if name.lower() == "pyvenv.cfg":
                found[place] = None
            elif ".dist-info/" in path:
                found[path[: path.index(".dist-info/")].rpartition("/")[0]] = None
        for place, programs in self._programs.items():
            if any(_PYTHON.fullmatch(path.rpartition("/")[2]) for path in programs):
                inside = f"{place}/" if place else ""
                own_dll = any(_PYTHON_DLL.fullmatch(p.rpartition("/")[2]) for p in self._libraries.get(place, ()))
                if own_dll or f"{inside}DLLs" in self._libraries or f"{inside}Lib" in self._folders():
                    found[place] = None
        # Packages below an interpreter's folder are that environment's.
        return {place: None for place in found if _owner(place.rpartition("/")[0], found) in (None, place)}

    def _folders(self) -> set[str]:
        if not hasattr(self, "_all"):
            self._all: set[str] = set()
            for path in self._walk.files:
                place = path.rpartition("/")[0]
                while place and place not in self._all:
                    self._all.add(place)
                    place = place.rpartition("/")[0]
        return self._all

    def _program_root(self, place: str, environments: Iterable[str]) -> str:
        """The outermost folder with programs around these, the named folder itself left out."""
        root = place
        while place:
            place = place.rpartition("/")[0]
            if place and place in self._programs and place not in environments:
                root = place
        return root

    def _plugin_root(self, place: str, roots: dict[str, ApplicationKind]) -> str:
        """The outermost folder around libraries that has no application in it; the named folder if it has none."""
        root = place
        while place:
            outer = place.rpartition("/")[0]
            inside = f"{outer}/" if outer else ""
            if any(kind != "plugins" and (other == outer or other.startswith(inside)) for other, kind in roots.items()):
                break
            if not outer and self._libraries.get("") is None:
                break
            root = place = outer
        return root

    def _kind(self, root: str) -> ApplicationKind:
        inside = f"{root}/" if root else ""
        libraries = self._libraries.get(root, ())
        frozen = (
            f"{inside}_internal" in self._folders()
            or f"{inside}base_library.zip" in self._walk.files
            or (
                any(_PYTHON_DLL.fullmatch(path.rpartition("/")[2]) for path in libraries)
                and any(path.lower().endswith(".pyd") for path in libraries)
            )
        )
        return "frozen" if frozen else "program"

    def _application(
        self, root: str, kind: ApplicationKind, members: list[BundleFile], reached: list[BundleFile]
    ) -> Application | None:
        """``members`` lie in no other application; the programs of it are among them. ``reached``: further ones too."""
        cut = len(root) + 1 if root else 0
        own = [BundleFile(path=file.path[cut:], kind=file.kind, size=file.size) for file in reached]
        own.sort(key=lambda file: file.path)
        entries = [file.path[cut:] for file in members if file.path in self._all_programs]
        if kind in ("plugins", "python-environment"):
            libraries = [f for f in own if f.kind == "pe" and f.path.lower().endswith(LIBRARIES)]
            entries = (entries if kind == "python-environment" else []) + libraries_of(libraries)
        if not entries:
            return None
        return Application(
            path=root,
            kind=kind,
            entries=tuple(sorted(dict.fromkeys(entries))),
            files=tuple(own),
            size=sum(file.size for file in own),
        )


def _owner(place: str, roots: Iterable[str], own_root: bool = True) -> str | None:
    """The nearest of ``roots`` that a folder lies in, or is. With ``own_root`` false the walk's root owns only itself:
    libraries in folders below it are no part of the programs that lie loosely in it."""
    known = roots if isinstance(roots, dict) else set(roots)
    first = place
    while True:
        if place in known and (place or own_root or not first):
            return place
        if not place:
            return None
        place = place.rpartition("/")[0]
