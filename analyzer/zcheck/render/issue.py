"""Text for an issue: the answers to the two forms that people are asked to fill, and the report folded away below.

Fields: vosen/ZLUDA .github/ISSUE_TEMPLATE/zluda_dump.yml (logs, description, steps, operating system, GPU) and
Speedstu/CUDA-for-AMD-Windows .github/ISSUE_TEMPLATE/gpu-compatibility.yml (GPU, gfx target, HIP version, driver,
result, workload, output, scanner report, validation note). GitHub takes 65,536 characters; this stays under 60,000.
"""

from __future__ import annotations

from collections.abc import Mapping

from zcheck.model.report import VERDICTS, Applications, Report, StackReport
from zcheck.model.text import start_command
from zcheck.render import markdown, view
from zcheck.render.options import RenderOptions
from zcheck.render.safe import map_strings, visible
from zcheck.render.safe import markdown_code as code
from zcheck.render.safe import markdown_text as prose

LIMIT = 60_000
_CUT = (
    "\n\n*Cut here to keep the issue under 60,000 characters; attach the whole report, written by "
    "`zcheck APP --output json=report.json`.*\n"
)
_ADD = "**please add:**"
_SHORT = 600
_LONGEST = 4_000
"""characters of any one string of the report; no file's name may fill the issue by itself"""
_IN_FULL = 50
"""findings given in full"""


def render(product: Report | Applications, options: RenderOptions) -> str:
    """The issue text of a product, always shorter than LIMIT characters.

    With several applications the forms are filled for the one with the most severe verdict; the others follow folded.
    """
    product = map_strings(product, _bounded)
    reports = view.reports(product)
    ranked = sorted(range(len(reports)), key=lambda i: (_rank(reports[i]), i))
    parts = []
    if ranked:
        parts.append(_form(reports[ranked[0]]))
    if isinstance(product, Applications):
        parts.append(_details("All programs of this folder", markdown.applications_table(product)))
    blocks = [block for i in ranked for block in _blocks(reports[i])]
    blocks.append(markdown.closing(product.zcheck, product.database))
    return _fit(parts, blocks)


def _rank(report: Report) -> int:
    worst = view.worst(report.stacks)
    return list(VERDICTS).index(worst) if worst else 0


def _bounded(text: str) -> str:
    return _short(text, _LONGEST)


def _short(text: str, limit: int = _SHORT) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _details(title: str, body: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def _fit(parts: list[str], blocks: list[str]) -> str:
    """Whole blocks while they fit; one that does not is left out with a note (half a block would break the fold)."""
    text, cut = "\n\n".join(parts), False
    room = LIMIT - len(_CUT) - 2
    if len(text) > room:
        text, cut = text[: room - 200].rsplit("\n", 1)[0], True
        # Close what the cut may have left open.
        text += (
            "\n```\n\n</details>"
            if text.count("\n```") % 2
            else "\n\n</details>"
            if text.count("<details>") > text.count("</details>")
            else ""
        )
    for block in blocks:
        if len(text) + len(block) + 2 <= room:
            text += "\n\n" + block
        else:
            cut = True
    return text.rstrip() + (_CUT if cut else "\n")


def _form(report: Report) -> str:
    stack = report.stacks[0] if report.stacks else None
    host = report.host or {}
    fields: list[tuple[str, str]] = [
        ("Description", _description(report)),
        ("Steps to reproduce", _steps(report, stack)),
        (
            "zluda_dump logs (tarball/zip file)",
            f"{_ADD} the log folder of a traced run (`zluda.exe --zluda-trace`), as a zip file.",
        ),
        ("Operating System", _known(host, ("os", "os_name", "os_build"), "Windows version and build (`winver`)")),
        ("GPU", _adapter(host, "name", "exact model of the graphics card")),
        ("gfx target", _adapter(host, "gfx", "the gfx name that hipInfo prints", stack.gpu if stack else None)),
        ("ZLUDA version", code(stack.zluda) + " (assumed by this check)" if stack else f"{_ADD} the release"),
        ("HIP / ROCm version", code(stack.hip_sdk) + " (assumed by this check)" if stack else f"{_ADD} the version"),
        ("AMD driver version", _adapter(host, "driver_version", "the driver version that the device manager shows")),
        ("Result", _result(stack)),
        ("Workload / application", _workload(report, stack)),
        ("Output or first useful error", f"{_ADD} what the program printed.{_expected(stack)}"),
        ("GPU scanner report", f"{_ADD} `gpu-report.json`, or the output of `zcheck host --format json`."),
        (
            "Validation note",
            f"{_ADD} your tick, if you agree.\n- [ ] I understand that only RX 9060 XT / gfx1200 is currently "
            "validated by the project and this report is community compatibility data.",
        ),
    ]
    return "\n\n".join(f"### {title}\n\n{text}" for title, text in fields)


def _description(report: Report) -> str:
    lines = [f"{code(report.target)}: what zcheck predicts from the files, nothing was run."]
    lines += [
        f"* **{view.VERDICT_WORDS[s.verdict]}** on {prose(view.stack_label(s))}: {prose(_short(s.headline))}"
        for s in report.stacks[:8]
    ]
    for row in view.merged(report)[:3]:
        finding = row.finding
        where = f" in {code(_short(finding.module, 120))}" if finding.module else ""
        why = prose(_short(finding.message or finding.title))
        lines.append(f"* {view.severity_word(finding, view.SEVERITY_WORDS)} {code(finding.id)}{where}: {why}")
    return "\n".join([*lines, "", f"{_ADD} what you expected and what happened."])


def _steps(report: Report, stack: StackReport | None) -> str:
    release = prose(stack.zluda) if stack else "the release"
    entry = report.entries[0] if report.entries else report.target
    command = _short(visible(start_command(entry)), 200)
    what = "it" if entry.lower().endswith(".exe") else f"the program that loads {code(_short(entry, 200))}"
    start = f"2. Start {what} through ZLUDA {release}: {code(f'zluda.exe -- {command}')}"
    if stack is not None and stack.launch_mode == "staged":
        start = f"2. Start {what} with the files of ZLUDA {release} beside the program: {code(command)}"
    return "\n".join(
        [
            f"1. {_ADD} where the program comes from (name, version, download link).",
            start,
            f"3. {_ADD} what you did in the program.",
        ]
    )


def _known(host: Mapping[str, object], keys: tuple[str, ...], what: str) -> str:
    found = [str(host[key]) for key in keys if host.get(key)]
    return code(_short(" ".join(found), 200)) if found else f"{_ADD} {what}."


def _adapter(host: Mapping[str, object], key: str, what: str, fallback: str | None = None) -> str:
    adapters = host.get("adapters")
    values = (
        [str(a[key]) for a in adapters if isinstance(a, Mapping) and a.get(key)]
        if isinstance(adapters, (list, tuple))
        else []
    )
    if values:
        return ", ".join(code(_short(value, 120)) for value in dict.fromkeys(values[:8]))
    if fallback:
        return f"{code(fallback)} (assumed by this check)"
    return f"{_ADD} {what}."


def _result(stack: StackReport | None) -> str:
    options = (
        "Works - training/inference completed", "Works - basic CUDA workload only",
        "Partial - launches but some operations fail", "Fails to launch", "GPU/HIP not detected",
    )  # fmt: skip
    choice = "\n".join(f"- [ ] {option}" for option in options)
    predicted = f" (predicted: {view.VERDICT_WORDS[stack.verdict].lower()}, which is no result)" if stack else ""
    return f"{_ADD} what a run showed{predicted}.\n{choice}"


def _workload(report: Report, stack: StackReport | None) -> str:
    lines = [f"Application: {code(_short(report.target, 200))}"]
    if report.frameworks:
        lines.append("Frameworks: " + ", ".join(code(_short(f, 120)) for f in report.frameworks[:12]))
    if stack:
        lines += [
            f"{need.capitalize()}: {prose(', '.join(families))}"
            for need, families in view.workload_words(stack).items()
            if need != "not seen"
        ]
    return "  \n".join([*lines, f"{_ADD} what you ran (model, command, settings)."])


def _expected(stack: StackReport | None) -> str:
    if stack is None or not stack.findings or stack.verdict in ("likely", "no-cuda", "verified"):
        return ""
    finding = stack.findings[0]
    title = prose(_short(finding.title, 300))
    return f" Expected first: {code(finding.id)}, {view.REACH_MEANING[finding.reach]}: {title}."


def _blocks(report: Report) -> list[str]:
    """The folded report in pieces, so that a long one loses its least important pieces first."""
    target = prose(report.target)
    pieces = [
        ("first actions", markdown.actions(report)),
        *((f"finding {code(r.finding.id)}", markdown.finding(r.finding, 4)) for r in view.merged(report)[:_IN_FULL]),
        ("dependency graph", markdown.graph(report)),
        ("device code", markdown.device_code(report)),
        ("CUDA functions in use", markdown.functions(report)),
        ("workload", markdown.workload(report)),
        ("taken for granted", markdown.bullets(prose(a) for a in report.assumptions)),
        (f"modules with {'hashes' if any(m.sha256 for m in report.modules) else 'versions'}", _modules(report)),
        ("not judged", markdown.bullets(f"{code(s.path)}: {prose(s.reason)}" for s in report.skipped)),
    ]
    findings = [body for title, body in pieces if title.startswith("finding ") and body]
    blocks = [
        _details(f"{target}: {title}", body) for title, body in pieces if body and not title.startswith("finding ")
    ]
    joined = "\n\n".join(findings)
    at = 1 if markdown.actions(report) else 0
    if joined and len(joined) < LIMIT // 2 and len(view.merged(report)) <= _IN_FULL:
        return [*blocks[:at], _details(f"{target}: findings", joined), *blocks[at:]]
    if findings:
        ids = _details(f"{target}: findings", markdown.bullets(_index(report)))
        return [*blocks[:at], ids, *(_details(f"{target}: a finding in full", f) for f in findings), *blocks[at:]]
    return blocks


def _index(report: Report) -> list[str]:
    seen: dict[str, int] = {}
    for row in view.merged(report):
        key = f"{view.severity_word(row.finding, view.SEVERITY_WORDS)} {code(_short(row.finding.id, 80))}"
        seen[key] = seen.get(key, 0) + 1
    return [f"{key}" + (f" ({count} places)" if count > 1 else "") for key, count in list(seen.items())[:400]]


def _modules(report: Report) -> str:
    told = [m for m in report.modules if set(m.role.values()) != {"system"}]
    hashed = any(m.sha256 for m in told)  # a saved report may have none
    rows = [
        [code(m.name), prose(m.version), prose(m.machine), *([code(m.sha256) if m.sha256 else ""] if hashed else [])]
        for m in told
    ]
    head = ["module", "version", "machine", *(["SHA-256"] if hashed else [])]
    return markdown.table(head, rows[:150]) if rows else ""
