"""A look at a Python file's bytes that tells whether its syntax tree can matter: thirty times faster than the tree.

It may say yes where the tree says no (a text in a docstring), never the other way round; the tree decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from zcheck.model.workload import ScriptMarks

MAX_BYTES = 2 * 1024 * 1024
"""of one script: what is larger holds data"""
# os.environ, os.putenv and os.add_dll_directory work by themselves; a loader or a glob does with the name of a library.
_SETS = re.compile(rb"environ|putenv|add_dll_directory")
_LOADS = re.compile(rb"LoadLibrary|CDLL|WinDLL|OleDLL|PyDLL|dlopen|find_library|glob")
_LIBRARY = re.compile(rb"\.(?:[dD][lL][lL]|[pP][yY][dD]|[sS][oO])")
# From an import keyword to the end of its line, which a backslash puts off. ``import`` takes no brackets, and what a
# ``from`` has in brackets are no packages.
_IMPORT = re.compile(rb"\b(?:import|from)\b([^\n\\]*(?:\\(?:\r\n|[\s\S])[^\n\\]*)*)")


@lru_cache(maxsize=8)
def _named(packages: frozenset[str]) -> re.Pattern[bytes]:
    longest_first = sorted(packages, key=lambda name: (-len(name), name))
    return re.compile(rb"\b(?:" + b"|".join(re.escape(name.encode()) for name in longest_first) + rb")\b")


def read_marks(data: bytes, packages: Iterable[str]) -> ScriptMarks:
    """What a Python file may do: which of the top-level ``packages`` it may import, and whether it may load a DLL or
    set an environment variable (``effects``)."""
    asked = frozenset(packages)
    imports = b"\n".join(_IMPORT.findall(data)) if asked else b""
    found = {name.decode() for name in _named(asked).findall(imports)} if imports else set()
    effects = bool(_SETS.search(data)) or bool(_LIBRARY.search(data) and _LOADS.search(data))
    return ScriptMarks(frozenset(found), effects)
