"""Instruction forms of a release → a matcher of dotted names.

A form is written as in the coverage tables: ``add{.sat}.s32``, ``{.x|.y}`` optional, ``(.x|.y)`` one of. From v4 on
they follow vosen/ZLUDA's ptx_parser: modifiers in any order, then the trailing vector and type modifiers in theirs
(ptx_parser_macros/src/lib.rs, ``extract_ordered_modifiers``); v3 and the fork take them in the order of their grammar.

Not modelled: the number and kind of operands (save ``parse.ptx.TRAITS``), and that the parser commits to one form by a
telling modifier where another form might have matched.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import lru_cache
from typing import NamedTuple

from zcheck.errors import DataError
from zcheck.model.device_code import PtxForm

# Modifiers that name types and vectors; a single one at the end may still stand anywhere.
_POSTFIX = re.compile(r"\.(?:v[248]|[usfb]\d+(?:x\d+)?|bf16(?:x2)?|pred|e\dm\d(?:x\d)?|tf32)")
_NAME = re.compile(r"[a-z]\w*")
_PARTS = re.compile(r"\{([^{}()]*)\}|\(([^{}()]*)\)|(\.[\w:]+)")


class _Slot(NamedTuple):
    optional: bool
    choices: frozenset[str]


class _Form(NamedTuple):
    text: str
    free: tuple[_Slot, ...]
    ordered: tuple[_Slot, ...]


def modifiers(statement: str) -> tuple[str, ...]:
    """The modifiers of a dotted name, with their dots: ``ld.global.L2::128B.f32`` → (.global, .L2::128B, .f32)."""
    return tuple("." + part for part in statement.split(".")[1:])


class Matcher:
    """Says which form of a release a dotted name is in."""

    def __init__(self, forms: tuple[PtxForm, ...], any_order: bool) -> None:
        self._any_order = any_order
        self._forms: dict[str, list[_Form]] = defaultdict(list)
        self._patterns: dict[str, list[tuple[str, re.Pattern[str]]]] = defaultdict(list)
        for form in forms:
            if any_order:
                self._forms[form.name].append(_compile(form.form))
            else:
                self._patterns[form.name].append((form.form, _pattern(form.form)))

    def match(self, statement: str) -> str | None:
        """The text of the form that takes the dotted name; None when the release knows none."""
        return self._find(statement)

    def opcode_known(self, statement: str) -> bool:
        """Whether the release knows the opcode in any form."""
        opcode = statement.partition(".")[0]
        return opcode in self._forms or opcode in self._patterns

    def _find(self, statement: str) -> str | None:
        opcode = statement.partition(".")[0]
        if not self._any_order:
            for text, pattern in self._patterns.get(opcode, ()):
                if pattern.fullmatch(statement):
                    return text
            return None
        words = modifiers(statement)
        for form in self._forms.get(opcode, ()):
            if len(words) <= len(form.free) + len(form.ordered) and _fits(form, words):
                return form.text
        return None


@lru_cache(maxsize=4096)
def _compile(text: str) -> _Form:
    name = _NAME.match(text)
    if name is None:
        raise DataError(f"PTX form {text!r} does not begin with an opcode")
    at, slots = name.end(), []
    while at < len(text):
        part = _PARTS.match(text, at)
        if part is None:
            raise DataError(f"PTX form {text!r} cannot be read at column {at + 1}")
        optional, choice, word = part.groups()
        choices = frozenset((optional or choice or word).split("|"))
        slots.append(_Slot(optional is not None, choices))
        at = part.end()
    ordered: list[_Slot] = []
    while slots and all(_POSTFIX.fullmatch(word) for word in slots[-1].choices):
        ordered.insert(0, slots.pop())
    if len(ordered) == 1:
        slots.append(ordered.pop())
    return _Form(text, tuple(slots), tuple(ordered))


def _pattern(text: str) -> re.Pattern[str]:
    out = {"{": "(?:", "}": ")?", "(": "(?:", ")": ")", "|": "|"}
    try:
        return re.compile("".join(out.get(char, re.escape(char)) for char in text))
    except re.error as error:
        raise DataError(f"PTX form {text!r} cannot be read: {error}") from None


def _fits(form: _Form, words: tuple[str, ...]) -> bool:
    return any(
        _ordered(form.ordered, words[cut:]) and _free(form.free, words[:cut]) for cut in range(len(words), -1, -1)
    )


def _ordered(slots: tuple[_Slot, ...], words: tuple[str, ...]) -> bool:
    if not slots:
        return not words
    if words and words[0] in slots[0].choices and _ordered(slots[1:], words[1:]):
        return True
    return slots[0].optional and _ordered(slots[1:], words)


def _free(slots: tuple[_Slot, ...], words: tuple[str, ...]) -> bool:
    if not words:
        return all(slot.optional for slot in slots)
    for index, slot in enumerate(slots):
        if words[0] in slot.choices and _free(slots[:index] + slots[index + 1 :], words[1:]):
            return True
    return False
