"""What the analysed program wants of a launcher, taken from its report."""

from __future__ import annotations

import re
from collections.abc import Iterable

from zcheck.model.base import Record
from zcheck.model.report import ModuleReport, Report

_CUDART = re.compile(r"(cudart(32|64)_\d+(_\d+)?|nvcudart_hybrid64)\.dll", re.IGNORECASE)


class Wanted(Record, frozen=True):
    """One DLL name that the program loads; ``users`` are paths of the modules that load it, relative to the bundle."""

    dll: str
    kinds: tuple[str, ...]
    users: tuple[str, ...]


class InBundle(Record, frozen=True):
    """A DLL of the bundle; ``path`` relative to its root with ``/``; SHA-256 where the analysis took it."""

    name: str
    path: str
    size: int
    sha256: str | None


class Demand(Record, frozen=True):
    """``cudart``: what shows that NVIDIA's runtime is in the program, empty when nothing does.

    ``direct``: nvcuda.dll is imported by table, so that Windows' ordinary search finds it.
    """

    root: str = ""
    entry: str = ""
    cudart: str = ""
    direct: bool = False
    wanted: tuple[Wanted, ...] = ()
    bundle: tuple[InBundle, ...] = ()

    def conflicts(self, injected: Iterable[str]) -> tuple[str, ...]:
        """Names of ZLUDA's DLLs that the program ships itself."""
        names = {name.lower() for name in injected}
        return tuple(sorted({file.name for file in self.bundle if file.name.lower() in names}))


def demand(report: Report, root: str) -> Demand:
    """The demand of one report; ``root`` is the folder that its module paths are relative to."""
    by_name: dict[str, tuple[list[str], list[str]]] = {}
    paths = {module.name.lower(): module.path or module.name for module in report.modules}
    for edge in report.edges:
        kinds, users = by_name.setdefault(edge.target.rsplit("/", 1)[-1].lower(), ([], []))
        kinds.append(edge.kind)
        users.append(paths.get(edge.source.lower(), edge.source))
    wanted = tuple(
        Wanted(name, tuple(dict.fromkeys(kinds)), tuple(dict.fromkeys(users)))
        for name, (kinds, users) in sorted(by_name.items())
    )
    bundle = tuple(
        InBundle(module.name, module.path, module.size, module.sha256)
        for module in report.modules
        if module.path and not _outside(module)
    )
    direct = any(item.dll == "nvcuda.dll" and {"import", "delay"} & set(item.kinds) for item in wanted)
    entry = report.entries[0] if report.entries else report.target
    return Demand(root, entry, _cudart(report, wanted, direct), direct, wanted, bundle)


def _outside(module: ModuleReport) -> bool:
    return module.kind == "system" or set(module.role.values()) == {"system"}


def _cudart(report: Report, wanted: tuple[Wanted, ...], direct: bool) -> str:
    for item in wanted:
        if _CUDART.fullmatch(item.dll):
            return f"{item.users[0]} uses {item.dll}"
    for module in report.modules:
        if module.path and _CUDART.fullmatch(module.name):
            return f"{module.path} lies in its folder"
    for function in report.functions:
        if function.library == "cudart":
            return f"{function.users[0] if function.users else report.target} uses {function.name}"
    if not direct:
        for part in report.device_code:
            return f"{part.module} carries device code, and so CUDA's runtime linked in"
    return ""
