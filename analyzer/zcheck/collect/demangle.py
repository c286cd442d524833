"""Qualified names of MSVC-mangled C++ symbols.

Only the name is read, not the type behind it: ``?call@addmm@_ops@at@@SA?AV…`` gives ``at::_ops::addmm::call``. The
scheme (fragments from the inside out, digits referring back to earlier fragments, ``??0`` for a constructor) is
described in LLVM's MicrosoftDemangle and in Agner Fog's "Calling conventions", chapter 8.
"""

from __future__ import annotations

_SPECIAL = {"0": "", "1": "~", "4": "operator=", "R": "operator()", "_G": "~"}


def qualified_name(symbol: str) -> str:
    """``a::b::c`` of a mangled symbol; the symbol itself where it is not mangled or not understood."""
    if not symbol.startswith("?"):
        return symbol
    rest = symbol[1:]
    special: str | None = None
    if rest.startswith("?"):
        rest = rest[1:]
        if rest.startswith("$"):
            return symbol
        code = rest[:2] if rest.startswith("_") else rest[:1]
        if code not in _SPECIAL:
            return symbol
        special, rest = _SPECIAL[code], rest[len(code) :]
    scope, _, _ = rest.partition("@@")
    if "?" in scope:
        return symbol
    fragments: list[str] = []
    seen: list[str] = []
    for fragment in scope.split("@"):
        # A digit stands for an earlier fragment and may be glued to the next one.
        while fragment[:1].isdigit():
            index = int(fragment[0])
            if index >= len(seen):
                return symbol
            fragments.append(seen[index])
            fragment = fragment[1:]
        if fragment:
            fragments.append(fragment)
            seen.append(fragment)
    if not fragments:
        return symbol
    if special is not None:
        name = fragments[0]
        fragments.insert(0, name if special == "" else f"~{name}" if special == "~" else special)
    return "::".join(reversed(fragments))
