r"""A PC laid out as a folder (design section 8): ``host.yaml`` for what is not a file, the rest as on a system drive.

``C:\x`` is ``ROOT/x``; another drive's ``D:\x`` is ``ROOT/drive_d/x``. Names match in any case, as on Windows.

host.yaml, all keys optional::

    os_build: 10.0.26200.9445
    env: {PATH: ['C:\Windows\System32'], HIP_PATH: 'C:\Program Files\AMD\ROCm\6.4'}
    adapters: [{index, name, gfx, driver_version, software_version, software_edition, pnp_id, memory_mib, integrated}]
    hipinfo: |            # what hipInfo.exe would print; 'hangs' and 'fails: TEXT' are told apart
    user: ada             # for redaction only, never part of what is read
    computer: DESKTOP-1
"""

from __future__ import annotations

import difflib
import ntpath
import stat
from pathlib import Path
from typing import Any

from zcheck.errors import DataError, InputError
from zcheck.host.source import Entry, normal, read_folder, read_names, wanted
from zcheck.model.base import Problem
from zcheck.model.host import Adapter

_KEYS = ("os", "os_build", "env", "adapters", "hipinfo", "user", "computer")
_ADAPTER = {
    "index": int,
    "name": str,
    "vendor": str,
    "gfx": str,
    "driver_version": str,
    "software_version": str,
    "software_edition": str,
    "pnp_id": str,
    "memory_mib": int,
    "integrated": bool,
}
_MAX_YAML = 1 << 20


def _mapping(value: object, what: str, known: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DataError(f"{what}: expected keys and values, found {type(value).__name__}")
    for name in value:
        if str(name) not in known:
            near = difflib.get_close_matches(str(name), known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"it knows {', '.join(known)}"
            raise DataError(f"{what}: no key {str(name)!r}; {hint}")
    return {str(name): item for name, item in value.items()}


def load_yaml(path: Path) -> dict[str, Any]:
    """The checked content of a ``host.yaml``; raises DataError naming file and key, InputError when unreadable."""
    import yaml

    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError(f"{path}: is no regular file")
        if path.stat().st_size > _MAX_YAML:
            raise DataError(f"{path}: larger than 1 MiB, so not a host.yaml")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: is not UTF-8 text") from None
    try:
        # A few lines of aliases stand for millions of values, which an error message would spell out.
        if "*" in text and any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, yaml.SafeLoader)):
            raise DataError(f"{path}: holds an alias (*name), which a host.yaml has no use for")
        content = yaml.safe_load(text)
    except (ValueError, RecursionError) as error:  # a date that is none, nesting without end
        raise DataError(f"{path}: is not YAML: {' '.join(str(error).split())}") from None
    except yaml.YAMLError as error:
        where = getattr(error, "problem_mark", None)
        line = f" line {where.line + 1}" if where else ""
        raise DataError(f"{path}:{line} is not YAML: {getattr(error, 'problem', None) or error}") from None
    if content is None:
        return {}
    return _mapping(content, str(path), _KEYS)


def _adapter(path: Path, position: int, raw: object) -> Adapter:
    what = f"{path}: adapters[{position}]"
    fields = _mapping(raw, what, tuple(_ADAPTER))
    values: dict[str, Any] = {}
    for name, value in fields.items():
        kind = _ADAPTER[name]
        if value is None:
            continue
        if kind is str and isinstance(value, (int, float)) and not isinstance(value, bool):
            value = str(value)  # ``gfx: 1100`` and ``driver_version: 25.3`` come out of YAML as numbers
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise DataError(f"{what}: {name} takes {kind.__name__}, not {value!r}")
        values[name] = value
    gfx = str(values.get("gfx", ""))
    if gfx:
        values["gfx"] = gfx if gfx.startswith("gfx") else f"gfx{gfx}"
        values["gfx_by"] = "given"
    values.setdefault("index", position)
    if not values.get("name"):
        raise DataError(f"{what}: has no name")
    return Adapter(**values)


class FakedSource:
    """A folder that stands for a PC. Raises InputError when it is no folder, DataError when host.yaml is malformed."""

    kind = "root"

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise InputError(f"{root}: no folder, so it cannot stand for a PC")
        self.root = root
        self.problems: list[Problem] = []
        self._names: dict[Path, dict[str, str]] = {}
        self._found: dict[str, Path | None] = {}
        yaml_path = root / "host.yaml"
        content = load_yaml(yaml_path) if yaml_path.exists() else {}
        self.os = str(content.get("os") or "Windows")
        self.os_build = str(content.get("os_build") or "")
        self.people = (str(content.get("user") or ""), str(content.get("computer") or ""))
        self._hipinfo = str(content.get("hipinfo") or "")
        self.described = bool(content)
        adapters = content.get("adapters")
        self.adapters_listed = adapters is not None
        if adapters is None:
            self.problems.append(Problem("host.yaml", "lists no adapters, so nothing is known of the GPU"))
        adapters = adapters or []
        if not isinstance(adapters, list):
            raise DataError(f"{yaml_path}: adapters takes a list")
        self._adapters = tuple(_adapter(yaml_path, position, raw) for position, raw in enumerate(adapters))
        env = content.get("env") or {}
        if not isinstance(env, dict):
            raise DataError(f"{yaml_path}: env takes names and values")
        upper = {str(name).upper(): value for name, value in env.items()}
        search = upper.pop("PATH", None) or []
        if isinstance(search, str):
            search = search.split(";")
        if not isinstance(search, list):
            raise DataError(f"{yaml_path}: env.PATH takes a list of folders or one text with ';' between them")
        self.path = tuple(entry for entry in (normal(str(item)) for item in search) if entry)
        self.env = {name: str(value) for name, value in upper.items() if wanted(name) and value is not None}

    def adapters(self) -> tuple[Adapter, ...]:
        """The adapters of host.yaml."""
        return self._adapters

    def _child(self, folder: Path, name: str) -> Path | None:
        names = self._names.get(folder)
        if names is None:
            names = {}
            for entry in sorted(read_names(folder)):
                names.setdefault(entry.casefold(), entry)
            self._names[folder] = names
        found = names.get(name.casefold())
        return folder / found if found is not None else None

    def local(self, path: str) -> Path | None:
        r"""The file under the root; UNC paths, ``..`` above the drive and unknown drives are not there."""
        cleaned = normal(path)
        if cleaned in self._found:
            return self._found[cleaned]
        drive, rest = ntpath.splitdrive(cleaned)
        place: Path | None = None
        if len(drive) == 2 and drive[1] == ":" and drive[0].isalpha():
            letter = drive[0].lower()
            place = self.root if letter == "c" else self._child(self.root, f"drive_{letter}")
            for part in rest.split("\\"):
                if place is None or part == "..":
                    place = None
                    break
                if part and part != ".":
                    place = self._child(place, part)
        self._found[cleaned] = place
        return place

    def listing(self, path: str) -> tuple[Entry, ...]:
        """The entries of the folder under the root."""
        place = self.local(path)
        return tuple(sorted(read_folder(place))) if place is not None else ()

    def drives(self) -> tuple[str, ...]:
        """C: and every ``drive_x`` folder."""
        others = sorted(
            entry.name[-1].upper()
            for entry in read_folder(self.root)
            if entry.is_dir and len(entry.name) == 7 and entry.name.lower().startswith("drive_")
        )
        return ("C:\\", *(f"{letter}:\\" for letter in others if letter.isalpha()))

    def hipinfo(self, path: str, timeout: float) -> tuple[str | None, str]:
        """What host.yaml says hipInfo.exe prints; nothing of a root is ever run."""
        if not self._hipinfo:
            return None, ""
        if self._hipinfo.strip() == "hangs":
            return None, f"did not answer within {timeout:g} s"
        if self._hipinfo.startswith("fails"):
            return None, self._hipinfo.partition(":")[2].strip() or "failed"
        return self._hipinfo, ""
