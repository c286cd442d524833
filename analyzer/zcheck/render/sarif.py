"""SARIF 2.1.0 (OASIS standard), as code scanning services read it."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from zcheck.model.finding import Finding
from zcheck.model.report import Applications, Report
from zcheck.render import view
from zcheck.render.options import RenderOptions
from zcheck.render.safe import escape_json, sarif_text, uri_path, visible

SCHEMA_URI = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
BASE = "BUNDLE"
LEVELS = {"blocker": "error", "risk": "warning", "setup": "warning", "note": "note"}


def render(product: Report | Applications, options: RenderOptions) -> str:
    """One run an application; results carry the stacks they hold on in their properties."""
    several = isinstance(product, Applications)
    runs = [
        _run(report, f"zcheck/{number}/" if several else "zcheck/")
        for number, report in enumerate(view.reports(product), 1)
    ]
    document = {"$schema": SCHEMA_URI, "version": "2.1.0", "runs": runs}
    return escape_json(json.dumps(document, indent=2, ensure_ascii=False)) + "\n"


def _run(report: Report, category: str) -> dict[str, Any]:
    open_rows, ignored_rows = view.merged(report), view.merged(report, ignored=True)
    rules: dict[str, dict[str, Any]] = {}
    for row in (*open_rows, *ignored_rows):
        rules.setdefault(row.finding.id, _rule(row.finding))
    index = {rule: number for number, rule in enumerate(rules)}
    places = {module.name: number for number, module in enumerate(report.modules)}
    results = [_result(report, row, index, places) for row in open_rows]
    for row in ignored_rows:
        result = _result(report, row, index, places)
        result["suppressions"] = [{"kind": "external", "justification": visible(row.finding.message)}]
        results.append(result)
    return {
        "tool": {
            "driver": {
                "name": "zcheck",
                "semanticVersion": report.zcheck,
                "rules": list(rules.values()),
                "properties": {"database": report.database},
            }
        },
        "automationDetails": {"id": category, "description": {"text": sarif_text(report.target)}},
        "originalUriBaseIds": {BASE: {"description": {"text": "The folder of the application that was checked."}}},
        "artifacts": [_artifact(module.path or module.name, module.size, module.sha256) for module in report.modules],
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [
                    {"level": "note", "message": {"text": sarif_text(f"not judged: {s.path}: {s.reason}")}}
                    for s in report.skipped
                ],
            }
        ],
        "columnKind": "utf16CodeUnits",
        "results": results,
        "properties": {
            "verdicts": {stack.id: stack.verdict for stack in report.stacks},
            "headlines": {stack.id: visible(stack.headline) for stack in report.stacks},
            "actions": {stack.id: [visible(action) for action in stack.actions] for stack in report.stacks},
            "disclaimer": view.DISCLAIMER,
        },
    }


def _artifact(path: str, size: int, sha256: str | None) -> dict[str, Any]:
    artifact: dict[str, Any] = {"location": _location(path)}
    if size:
        artifact["length"] = size
    if sha256:
        artifact["hashes"] = {"sha-256": visible(sha256)}
    return artifact


def _location(path: str) -> dict[str, Any]:
    uri = uri_path(path)
    return {"uri": uri} if uri.startswith(("file:", "/")) else {"uri": uri, "uriBaseId": BASE}


def _rule(finding: Finding) -> dict[str, Any]:
    rule: dict[str, Any] = {
        "id": visible(finding.id),
        "shortDescription": {"text": sarif_text(finding.title)},
        "fullDescription": {"text": sarif_text(finding.title)},
        "help": {"text": sarif_text("\n".join(finding.fix) or finding.title).replace("\\x0a", "\n")},
        "defaultConfiguration": {"level": _level(finding)},
        "properties": {"tags": sorted({"zcheck", visible(finding.area)} - {""}), "precision": _precision(finding)},
    }
    ref = next(
        (
            ref
            for ref in finding.refs
            if ref.startswith("https://") and ref.isascii() and ref.isprintable() and " " not in ref
        ),
        None,
    )
    if ref:
        rule["helpUri"] = ref
    return rule


def _level(finding: Finding) -> str:
    """An error only for what makes the verdict blocked, so that the levels agree with verdict and exit code."""
    return "warning" if view.conditional(finding) else LEVELS[finding.severity]


def _message(finding: Finding) -> str:
    """What code scanning shows of a result: why, and how surely the program gets there."""
    reach = f"Reach: {finding.reach} ({view.REACH_MEANING[finding.reach]})."
    return f"{'If used: ' if view.conditional(finding) else ''}{finding.message or finding.title} {reach}"


def _precision(finding: Finding) -> str:
    return finding.confidence if finding.confidence != "high" or finding.reach in ("use", "mention") else "very-high"


def _result(report: Report, row: view.Merged, index: dict[str, int], places: dict[str, int]) -> dict[str, Any]:
    finding = row.finding
    path = finding.module or (report.entries[0] if report.entries else report.target)
    artifact: dict[str, Any]
    if finding.module in places:
        module = report.modules[places[finding.module]]
        artifact = {**_location(module.path or module.name), "index": places[finding.module]}
    else:
        artifact = _location(path)
    logical = [{"name": visible(path), "kind": "module"}]
    logical += [
        {"name": visible(name), "fullyQualifiedName": visible(f"{finding.library or '?'}!{name}"), "kind": "function"}
        for name in finding.functions[:50]
    ]
    fingerprint = "\0".join([finding.id, finding.module or "", finding.library or "", *finding.functions])
    return {
        "ruleId": visible(finding.id),
        "ruleIndex": index[finding.id],
        "level": _level(finding),
        "message": {"text": sarif_text(_message(finding))},
        "locations": [{"physicalLocation": {"artifactLocation": artifact}, "logicalLocations": logical}],
        "partialFingerprints": {"zcheckFinding/v1": hashlib.sha256(fingerprint.encode("utf-8", "replace")).hexdigest()},
        "properties": {
            "severity": finding.severity,
            "reach": finding.reach,
            "confidence": finding.confidence,
            "stacks": list(row.stacks),
            "fix": [visible(fix) for fix in finding.fix],
            "evidence": [visible(line) for line in finding.evidence],
            **({"evidenceLeft": finding.evidence_left} if finding.evidence_left else {}),
        },
    }
