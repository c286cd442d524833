"""``zcheck explain ID|FUNCTION``."""

from __future__ import annotations

import difflib
from typing import Annotated

import typer

from zcheck.errors import UsageError


def explain(
    what: Annotated[str, typer.Argument(metavar="ID|FUNCTION", help="A finding's id, or an exported CUDA function.")],
) -> None:
    """Explain a finding (why, what to do, examples) or a CUDA function (its states over the releases)."""
    from zcheck.cli.data import coverage, rule_set

    rules = {rule.id: rule for rule in rule_set()}
    rule = rules.get(what.upper())
    if rule is not None:
        _rule(rule)
        return
    from zcheck.cli.db import known, show

    if known(what):
        show(what)
        return
    near = difflib.get_close_matches(what.upper(), rules, 1) or list(coverage().suggestions(what))[:3]
    hint = f"; did you mean {' or '.join(near)}?" if near else "; zcheck rules list shows the ids"
    raise UsageError(f"{what!r} is neither a finding's id nor a CUDA function that the tables know{hint}")


def _rule(rule: object) -> None:
    from zcheck.cli.output import write
    from zcheck.match import Rule
    from zcheck.model.evidence import line

    assert isinstance(rule, Rule)
    lines = [f"{rule.id} ({rule.severity}): {rule.title}", "", " ".join(rule.explain.split()), "", "What to do:"]
    lines += [f"  - {' '.join(text.split())}" for text in rule.fix]
    if rule.refs:
        lines += ["", "See:"] + [f"  - {ref}" for ref in rule.refs]
    lines += ["", "Examples (words in braces are filled in from the program):"]
    for example in rule.examples:
        lines.append(f"  {'found' if example.expect_match else 'not found'}: {example.name} ({example.stack.id})")
        lines += [f"      {line(item)}" for item in example.evidence.items]
    write("\n".join(lines) + "\n")
