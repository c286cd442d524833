"""The list of ``zcheck host`` as text, markdown and issue text. Pure: a Host in, text out."""

from __future__ import annotations

import textwrap

import msgspec

from zcheck.model.host import Host, HostCheck
from zcheck.render.safe import markdown_text, visible

_ISSUE_LIMIT = 60_000
"""characters that an issue body may have with room to spare (GitHub takes 65,536)"""


def told(host: Host) -> list[HostCheck]:
    """The lines of the list, with the missing components of one SDK that have one fix on one line."""
    groups: dict[object, list[HostCheck]] = {}
    for place, check in enumerate(host.checks):
        same = (check.level, check.subject, check.fix) if check.key == "component-missing" else place
        groups.setdefault(same, []).append(check)
    return [_together(group) for group in groups.values()]


def _together(group: list[HostCheck]) -> HostCheck:
    first = group[0]
    if len(group) == 1:
        return first
    values = ", ".join(check.value for check in group)
    text = first.text.replace(f"comes with {first.value}", f"comes with {values}", 1)
    text = text.replace("has no file of it", "has no file of them")
    return msgspec.structs.replace(first, text=text, value=values)


def _summary(host: Host) -> str:
    missing = sum(check.level == "MISS" for check in told(host))
    warned = sum(check.level == "WARN" for check in told(host))
    if host.source == "linux":
        return (
            f"zcheck host looks at Windows PCs only, and this is {host.os}: name a Windows PC's copied files with "
            "--root, or give the list that zcheck host --format json made there; --host of a check takes the same two"
        )
    if not host.checks:
        return "Nothing was found out about this PC"
    if not missing and not warned:
        return "Nothing stands in the way on this PC as far as files tell"
    parts = [f"{missing} missing or broken"] if missing else []
    parts += [f"{warned} to look at"] if warned else []
    return f"{' and '.join(parts)} on this PC"


def _sure(check: HostCheck) -> str:
    return "" if check.confidence == "high" else f" [{check.confidence} confidence]"


def as_text(host: Host, width: int | None = None) -> str:
    """One line a check, its fixes below; the worst first. Lines are folded at ``width`` columns, where given."""
    lines = [*_folded(_summary(host), width), ""]
    for check in told(host):
        lines += _folded(f"{check.level:4}  {visible(check.text)}{_sure(check)}", width)
        for fix in check.fix:
            lines += _folded(f"      fix: {visible(fix)}", width)
    for problem in host.problems:
        lines += _folded(f"note  {visible(problem.path)}: {visible(problem.reason)}", width)
    return "\n".join(lines) + "\n"


def _folded(line: str, width: int | None) -> list[str]:
    """The line in pieces of at most ``width`` columns, later ones indented; paths are not broken."""
    if width is None or len(line) <= width:
        return [line]
    indent = " " * (11 if line.startswith(" ") else 6)
    return textwrap.wrap(
        line, max(width, 40), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False,
        drop_whitespace=True, replace_whitespace=False, expand_tabs=False,
    )  # fmt: skip


def _cell(text: str) -> str:
    """Prose for markdown: no markup, no HTML, no table break."""
    return markdown_text(text)


def as_markdown(host: Host) -> str:
    """A table of checks with fixes and sources."""
    lines = [f"## {_summary(host)}", "", "| | what | fix |", "|---|---|---|"]
    for check in told(host):
        links = " ".join(f"[{place + 1}]({source})" for place, source in enumerate(check.sources) if "://" in source)
        what = _cell(check.text + _sure(check)) + (f" ({links})" if links else "")
        lines.append(f"| {check.level} | {what} | {_cell(' '.join(check.fix))} |")
    return "\n".join(lines) + "\n"


def as_issue(host: Host, encoded: str) -> str:
    """What maintainers ask for, ready to paste: GPU, gfx, HIP version, driver, what is wrong, the report folded."""
    mine = [adapter for adapter in host.adapters if adapter.vendor == "AMD"] or list(host.adapters)
    gpu = "; ".join(adapter.name for adapter in mine) or "none found"
    gfx = "; ".join(adapter.gfx or "unknown" for adapter in mine) or "unknown"
    driver = "; ".join(
        " ".join(part for part in (adapter.driver_version, adapter.software_version) if part) or "unknown"
        for adapter in mine
    )
    good = [root for root in host.hip if not root.problems]
    hip = "; ".join(f"{root.kind} {root.version or 'unknown'}" for root in good) or "none"
    zluda = "; ".join(folder.release or "unknown" for folder in host.zluda if not folder.problems) or "none"
    first = next((check.text for check in told(host) if check.level != "PASS"), "")
    first = first or (_summary(host) if host.source == "linux" else "nothing found")
    head = [
        f"**GPU**: {_cell(gpu)}",
        f"**gfx**: {gfx}",
        f"**HIP version**: {hip}",
        f"**Driver**: {driver or 'unknown'}",
        f"**ZLUDA version**: {zluda}",
        f"**Operating system**: {host.os} {host.os_build}".rstrip(),
        f"**First finding**: {_cell(first)}",
        "",
    ]
    body = [f"- **{check.level}** {_cell(check.text)}" for check in told(host) if check.level != "PASS"]
    text = "\n".join([*head, *body, ""])
    folded = f"\n<details><summary>zcheck host --format json</summary>\n\n```json\n{encoded}\n```\n\n</details>\n"
    if len(text) + len(folded) <= _ISSUE_LIMIT:
        return text + folded
    return text[:_ISSUE_LIMIT] + "\nThe full report is too long for an issue: attach the JSON as a file.\n"
