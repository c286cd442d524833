"""Run the rules over one stack's context."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from zcheck.match.context import Context
from zcheck.match.predicate import Match
from zcheck.match.rule import Rule
from zcheck.model.evidence import FileFact, line
from zcheck.model.finding import REACHES, SEVERITIES, Finding
from zcheck.model.stack import Answers

_LINES = 20
"""evidence lines kept with a finding; a framework's imports are thousands, and the report has them all"""
_NAMES = 8


def match(rules: Iterable[Rule], context: Context) -> tuple[Finding, ...]:
    """All findings for one stack (``build_context``), worst first, then in the order of rule id and module."""
    places = {item.name: item.path for item in context.evidence.items if isinstance(item, FileFact) and item.path}
    typed = _Typed(context.evidence.target, places)
    findings = [_finding(rule, found, context.answers, typed) for rule in rules for found in rule.when.matches(context)]
    return tuple(sorted(dict.fromkeys(findings), key=_order))


class _Typed(NamedTuple):
    """Names as a person types them: with the folder inside of the bundle, in quotes where there is a space."""

    target: str
    places: Mapping[str, str]

    def name(self, module: str) -> str:
        path = self.places.get(module, module)
        return f'"{path}"' if " " in path else path


def _order(finding: Finding) -> tuple[object, ...]:
    return (
        not finding.first,
        -REACHES.index(finding.reach) if finding.severity == "blocker" else 0,
        -SEVERITIES.index(finding.severity),
        -REACHES.index(finding.reach),
        finding.id,
        finding.module or "",
        finding.library or "",
        finding.functions,
    )


class _Words(dict[str, str]):
    """What a message may name; a word that this match does not bind reads as nothing."""

    def __missing__(self, key: str) -> str:
        return ""


def names(functions: tuple[str, ...]) -> str:
    """A list for a sentence: the first few names, and how many more."""
    if not functions:
        return "functions"
    shown = ", ".join(functions[:_NAMES])
    return shown if len(functions) <= _NAMES else f"{shown} and {len(functions) - _NAMES} more"


def _can_say(text: str, words: _Words) -> bool:
    """False for advice about a newer release where there is none, or none that helps."""
    return all(words[name] for name in ("newer", "newer_has") if f"{{{name}}}" in text)


def _finding(rule: Rule, found: Match, answers: Answers, typed: _Typed) -> Finding:
    stack = answers.stack
    better = {name for library, name in answers.newer_functions if library == found.library}
    newer_has = tuple(name for name in found.functions if name in better)
    words = _Words(
        found.bound,
        module=found.module or "the program",
        library=found.library or "",
        functions=names(found.functions),
        count=str(len(found.functions)),
        release=stack.zluda,
        hip_sdk=stack.hip_sdk,
        gpu=stack.gpu or "",
        app=typed.name(typed.target),
        path=typed.name(found.module or typed.target),
        newer=answers.newer,
        newer_has=names(newer_has) if newer_has else "",
    )
    lines = tuple(dict.fromkeys(line(item) for item in found.evidence))
    levels = ("low", "medium", "high")
    confidence = min(rule.confidence, found.confidence, key=levels.index)
    return Finding(
        id=rule.id,
        # What is only mentioned in a string is no more than a note (design section 3, "Fine points").
        severity="note" if found.reach == "mention" else rule.severity,
        reach=found.reach,
        confidence=confidence,
        title=rule.title,
        module=found.module,
        library=found.library,
        functions=found.functions,
        message=" ".join(rule.explain.format_map(words).split()),
        fix=tuple(" ".join(text.format_map(words).split()) for text in rule.fix if _can_say(text, words)),
        evidence=lines[:_LINES],
        evidence_left=len(lines[_LINES:]),
        area=rule.area,
        limitation=rule.limitation,
        first=rule.first,
        refs=rule.refs,
    )
