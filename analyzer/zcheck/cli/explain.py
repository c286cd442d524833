"""``zcheck explain ID|FUNCTION``."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Annotated

import typer

from zcheck.errors import UsageError

if TYPE_CHECKING:
    from zcheck.match import Rule


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
    from zcheck.cli.db import explained

    if explained(what):
        return
    near = difflib.get_close_matches(what.upper(), rules, 1) or list(coverage().suggestions(what))[:3]
    hint = f"; did you mean {' or '.join(near)}?" if near else "; zcheck rules list shows the ids"
    raise UsageError(f"{what!r} is neither a finding's id nor a CUDA function that the tables know{hint}")


def _rule(rule: Rule) -> None:
    from zcheck.cli import people
    from zcheck.model.evidence import line

    out = people.writer()
    out.hang(out.styled((f"{rule.id} ({rule.severity}): ", "bold")), out.styled(rule.title))
    out.console.print()
    out.console.print(out.styled(" ".join(rule.explain.split())))
    for title, texts in (("What to do:", rule.fix), ("See:", rule.refs)):
        if texts:
            out.heading(title)
        for text in texts:
            out.hang(out.styled("- "), out.styled(" ".join(text.split())), 2)
    out.heading("Examples (words in braces are filled in from the program):")
    for example in rule.examples:
        lead = "found: " if example.expect_match else "not found: "
        out.hang(out.styled(lead), out.styled(f"{example.name} ({example.stack.id})"), 2)
        for item in example.evidence.items:
            out.hang(out.styled(""), out.styled((line(item), "dim")), 6)
    people.show(out)
