"""Windows loader rules: facts of single modules → the graph of one entry."""

from __future__ import annotations

from zcheck.resolve.analysis import chain, closure, cycles, networkx_graph, python_imports, top_modules
from zcheck.resolve.build import Dynamic
from zcheck.resolve.exports import ExportTables
from zcheck.resolve.resolver import Resolver, resolve
from zcheck.resolve.windows import WindowsDll, WindowsDlls, read_windows_dlls

__all__ = [
    "Dynamic",
    "ExportTables",
    "Resolver",
    "WindowsDll",
    "WindowsDlls",
    "chain",
    "closure",
    "cycles",
    "networkx_graph",
    "python_imports",
    "read_windows_dlls",
    "resolve",
    "top_modules",
]
