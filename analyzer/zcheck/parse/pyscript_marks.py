"""A look at a Python file's bytes that tells whether its syntax tree can matter: thirty times faster than the tree.

It may say yes where the tree says no (a text in a docstring), never the other way round; the tree decides.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from zcheck.model.workload import ScriptMarks

MAX_BYTES = 2 * 1024 * 1024
"""of one script: what is larger holds data"""
# By what a script loads a DLL, adds a folder for them, or sets a variable (``pyscript``). The name of the library may
# stand in pieces, so it is not looked for.
_EFFECTS = re.compile(
    rb"environ|putenv|add_dll_directory|LoadLibrary|CDLL|WinDLL|OleDLL|PyDLL|dlopen|find_library|\b[ir]?glob\b"
)
_CODING = re.compile(rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_ASCII = bytes(range(128)) + b"\\x41\\u0041+AHQ-"
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
    if not _plain(data):
        return ScriptMarks(asked, True)
    imports = b"\n".join(_IMPORT.findall(data)) if asked else b""
    found = {name.decode() for name in _named(asked).findall(imports)} if imports else set()
    return ScriptMarks(frozenset(found), bool(_EFFECTS.search(data)))


def _plain(data: bytes) -> bool:
    """True when names stand in the bytes as Python reads them: no coding that writes ASCII in another way, and no
    letters that Python takes for others (``ｔorch`` is ``torch``: identifiers are normalised, PEP 3131)."""
    coding = declared_coding(data) or "utf-8"
    try:
        if _ASCII.decode(coding) != _ASCII.decode("ascii"):
            return False
        return data.isascii() or unicodedata.is_normalized("NFKC", data.decode(coding, "replace"))
    except (LookupError, ValueError):
        return False


def declared_coding(data: bytes) -> str:
    """The coding that one of the first two lines declares (PEP 263), empty where none does."""
    for line in data.split(b"\n", 2)[:2]:
        if match := _CODING.match(line):
            return match[1].decode("ascii", "replace")
    return ""
