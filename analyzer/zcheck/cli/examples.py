"""Run the examples of rules against the coverage database."""

from __future__ import annotations

from collections.abc import Iterable

from zcheck.coverage import Database, answer
from zcheck.match import Rule, build_context, match


def failures(rules: Iterable[Rule], database: Database) -> list[str]:
    """One sentence for each example that does not come out as it says."""
    wrong = []
    for rule in rules:
        for example in rule.examples:
            answers = answer(database, example.stack, example.evidence)
            matched = bool(match([rule], build_context(example.evidence, answers)))
            if matched != example.expect_match:
                what = "matches" if matched else "does not match"
                wrong.append(f"{rule.path}: {rule.id}: example {example.name!r} {what}")
    return wrong
