"""Names as they may be shown or typed: file names come from strangers and reach terminals, reports and JSON."""

from __future__ import annotations

import unicodedata

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def shown(name: str) -> str:
    """``name`` with control, bidirectional and undecodable characters as escapes, so that it cannot fool a reader.

    Undecodable bytes of a file name (surrogate escapes) become ``\\xNN``, others ``\\uNNNN``.
    """
    if name.isascii() and name.isprintable():
        return name
    return "".join(_escape(char) if unicodedata.category(char) in _HIDDEN else char for char in name)


def _escape(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def encodable(name: str) -> bool:
    """True when ``name`` is valid Unicode, so that it survives JSON."""
    return not any(0xD800 <= ord(char) <= 0xDFFF for char in name)


def start_command(target: str) -> str:
    """What a person types to start the target; a library is started by the program that loads it."""
    if target.lower().endswith(".pyd"):
        return "python.exe YOUR_SCRIPT.py"
    if target.lower().endswith(".node"):
        return "node.exe YOUR_SCRIPT.js"
    if not target.lower().endswith(".exe"):
        return "PROGRAM.exe"
    return f'"{target}"' if " " in target else target
