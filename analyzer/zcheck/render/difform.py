"""A difference as text or JSON."""

from __future__ import annotations

import msgspec

from zcheck.errors import UsageError
from zcheck.model.diff import ENTRY, Delta, Diff
from zcheck.render.normal import whole_strings
from zcheck.render.options import RenderOptions
from zcheck.render.redact import redact_product
from zcheck.render.safe import ascii_text, escape_json, visible
from zcheck.render.view import plural

DIFF_FORMATS = ("text", "json")
_MARKS = {"worse": "-", "better": "+", "changed": "~", "same": "="}
_STYLES = {"worse": "31", "better": "32", "changed": "33", "same": "2"}


def render_diff(diff: Diff, fmt: str, options: RenderOptions | None = None) -> str:
    """``diff`` in format ``fmt``, ending in a line feed; raises UsageError for a format that does not exist."""
    options = options or RenderOptions()
    if options.redact:
        diff = redact_product(diff, options.names)
    if fmt == "json":
        packed = msgspec.json.format(msgspec.json.encode(whole_strings(diff), order="deterministic"), indent=2)
        return escape_json(packed.decode("utf-8")) + "\n"
    if fmt == "text":
        return _text(diff, options)
    raise UsageError(f"format {fmt!r} does not exist for a difference; choose one of {', '.join(DIFF_FORMATS)}")


def _text(diff: Diff, options: RenderOptions) -> str:
    clean = ascii_text if options.ascii_only else visible
    word = "MIXED" if diff.worse and diff.better else "WORSE" if diff.worse else "BETTER" if diff.better else "SAME"
    lines = [
        f"{word}  {diff.a.target} → {diff.b.target}: {diff.worse} worse, {diff.better} better, {diff.changed} changed"
    ]
    for application in diff.applications:
        if len(diff.applications) > 1:
            lines += [
                "",
                f"{application.a}" if application.a == application.b else f"{application.a} → {application.b}",
            ]
        for stack in application.stacks:
            lines += ["", stack.a if stack.a == stack.b else f"{stack.a} → {stack.b}", _line(stack.verdict)]
            for title, deltas in (("finding", stack.findings), ("function", stack.functions)):
                lines += [_line(delta) for delta in deltas if delta.change != "same" or options.verbose]
                same = sum(delta.change == "same" for delta in deltas)
                if same and not options.verbose:
                    lines.append(f"  = {plural(same, title)} the same")
        for side, names in (("first", application.only_a), ("second", application.only_b)):
            if names:
                lines.append(f"  only in the {side} report: {', '.join(names)}")
    for side, names in (("first", diff.only_a), ("second", diff.only_b)):
        if names:
            lines.append(f"only in the {side} report: {', '.join(names)}")
    if diff.a.database != diff.b.database:
        lines += ["", f"The reports rest on different databases: {diff.a.database} and {diff.b.database}."]
    lines += ["", "- worse   + better   ~ changed, neither better nor worse   = same"]
    styled = [_styled(clean(line), options.color) for line in lines]
    return "\n".join(styled) + "\n"


def _styled(line: str, color: bool) -> str:
    if color:
        for change, mark in _MARKS.items():
            if line.startswith(f"  {mark} "):
                return f"\x1b[{_STYLES[change]}m{line}\x1b[0m"
    return line


def _line(delta: Delta) -> str:
    module = f" in {delta.module}" if delta.module and delta.module != ENTRY else ""
    if delta.change == "same":
        states = delta.after or ""
    else:
        states = f"{delta.before or 'not there'} → {delta.after or 'not there'}"
    return f"  {_MARKS[delta.change]} {delta.subject}{module}: {states}" + (
        f" ({delta.detail})" if delta.detail else ""
    )
