"""What holds for every format: all findings are there, the same report gives the same bytes, schemas are kept."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import re
import subprocess
import sys
from typing import Any

import jsonschema
import msgspec
import pytest
import sample_reports
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from zcheck.errors import InputError, UsageError
from zcheck.model.report import Applications, Report
from zcheck.render import FORMATS, RenderOptions, from_json, render, schema
from zcheck.render.view import VERDICT_MEANING

EVERYTHING = {**sample_reports.SAMPLES, "hostile": sample_reports.hostile}


def reports(product: Any) -> tuple[Report, ...]:
    return product.applications if isinstance(product, Applications) else (product,)


@pytest.mark.parametrize("fmt", sorted(FORMATS))
@pytest.mark.parametrize("name", sorted(EVERYTHING))
def test_every_finding_is_in_every_format(name: str, fmt: str) -> None:
    product = EVERYTHING[name]()
    text = render(product, fmt, RenderOptions(width=200, verbose=True))
    ids = {f.id for r in reports(product) for s in r.stacks for f in (*s.findings, *s.ignored)}
    assert all(rule in text for rule in ids)


@pytest.mark.parametrize("fmt", sorted(FORMATS))
def test_ignored_findings_are_shown_as_such(fmt: str) -> None:
    report = sample_reports.unknown_packed()
    (stack,) = report.stacks
    ignored = msgspec.structs.replace(stack.findings[0], id="LATER-ID", message="accepted until 2027")
    report = msgspec.structs.replace(report, stacks=(msgspec.structs.replace(stack, ignored=(ignored,)),))
    text = render(report, fmt, RenderOptions(width=200))
    if fmt not in ("mermaid", "dot", "issue"):  # pictures and issue texts are about what is open
        assert "LATER-ID" in text
    if fmt == "sarif":
        (held,) = [r for r in json.loads(text)["runs"][0]["results"] if r["ruleId"] == "LATER-ID"]
        assert held["suppressions"] == [{"kind": "external", "justification": "accepted until 2027"}]


def shuffled(report: Report, seed: int) -> Report:
    """The same facts in another order."""
    mixed = random.Random(seed)
    fields = ("modules", "edges", "functions", "device_code", "skipped", "frameworks")
    changes = {field: tuple(mixed.sample(getattr(report, field), len(getattr(report, field)))) for field in fields}
    return msgspec.structs.replace(report, **changes)


@pytest.mark.parametrize("fmt", sorted(FORMATS))
@pytest.mark.parametrize("make", [sample_reports.blocked_conv, sample_reports.hostile])
def test_order_of_facts_does_not_matter(make: Any, fmt: str) -> None:
    assert render(make(), fmt) == render(shuffled(make(), 1), fmt) == render(shuffled(make(), 2), fmt)


@pytest.mark.parametrize("fmt", sorted(FORMATS))
@pytest.mark.parametrize("name", sorted(EVERYTHING))
def test_a_saved_report_renders_the_same(name: str, fmt: str) -> None:
    product = EVERYTHING[name]()
    saved = from_json(render(product, "json"))
    assert render(saved, fmt, RenderOptions(tree=True)) == render(product, fmt, RenderOptions(tree=True))


@pytest.mark.parametrize("name", sorted(EVERYTHING))
def test_json_keeps_to_the_schema(name: str) -> None:
    document = json.loads(render(EVERYTHING[name](), "json"))
    validator = jsonschema.Draft202012Validator(schema())
    validator.check_schema(schema())
    validator.validate(document)
    document.get("applications", [document])[0]["stacks"][0]["verdict"] = "works"
    assert not validator.is_valid(document)


def test_schema_allows_later_keys_and_names_its_number() -> None:
    document = json.loads(render(sample_reports.no_cuda(), "json"))
    document["invented_later"] = 1
    validator = jsonschema.Draft202012Validator(schema())
    validator.validate(document)
    document["schema"] = 2
    assert not validator.is_valid(document)


def test_keys_that_others_rely_on() -> None:
    """Design section 9, key by key."""
    document = json.loads(render(sample_reports.blocked_conv(), "json"))
    top = "schema zcheck database target entries stacks modules edges functions device_code host skipped"
    assert set(top.split()) <= set(document)
    stack = "id zluda launch_mode hip_sdk gpu verdict workload actions findings"
    assert set(stack.split()) <= set(document["stacks"][0])
    finding = "id severity reach confidence module functions message fix evidence"
    assert set(finding.split()) <= set(document["stacks"][0]["findings"][0])
    assert {"name", "path", "machine", "size", "version", "company", "role"} <= set(document["modules"][0])
    assert {"from", "to", "kind", "functions", "resolved_by", "confidence"} <= set(document["edges"][0])
    assert {"library", "name", "kind", "from", "state"} <= set(document["functions"][0])
    assert {"kind", "arch", "version", "compression", "kernels"} <= set(document["device_code"][0]["entries"][0])
    assert {"chosen", "kernels", "loadable", "dropped", "stub", "load_fails"} <= set(
        document["device_code"][0]["replay"]["v6"]
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no JSON"),
        ("{", "no JSON"),
        ("[]", "no zcheck report"),
        ('{"a": 1}', "no zcheck report"),
        ('{"schema": 99}', "schema is 99"),
        ('{"schema": 1, "zcheck": "0.1.0"}', "missing required field"),
        ('{"schema": 1, "applications": 3}', "applications"),
        ('{"schema": 1, "zcheck": "99.0", "target": "x", "new_key": 1}', "99.0"),
        ("[" * 100_000, "no JSON"),
        (b"\xff\xfe", "no JSON"),
    ],
)
def test_a_malformed_report_is_one_sentence(text: Any, says: str) -> None:
    with pytest.raises(InputError) as caught:
        from_json(text, "old.json")
    assert caught.value.message.startswith("old.json: ") and says in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("fmt", sorted(FORMATS))
def test_a_report_with_nothing_in_it_renders(fmt: str) -> None:
    assert "empty.exe" in render(sample_reports.report("empty.exe", ()), fmt)
    bare = msgspec.structs.replace(sample_reports.no_cuda(), entries=(), modules=(), edges=())
    assert "viewer.exe" in render(bare, fmt)
    folder = msgspec.structs.replace(sample_reports.applications(), applications=(), skipped=())
    assert render(folder, fmt).endswith("\n") or not folder.applications


def test_importing_the_package_is_light() -> None:
    heavy = "{'rich', 'jinja2', 'cyclonedx', 'networkx', 'markupsafe'}"
    code = f"import sys, zcheck.render; zcheck.render.schema(); print(sorted({heavy} & set(sys.modules)))"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert ran.stdout.strip() == "[]"


def test_unknown_format_is_told() -> None:
    with pytest.raises(UsageError, match="choose one of text, json"):
        render(sample_reports.no_cuda(), "pdf")


@pytest.mark.parametrize("name", sorted(EVERYTHING))
def test_sarif_keeps_to_the_published_schema(name: str, sarif_schema: Any) -> None:
    product = EVERYTHING[name]()
    log = json.loads(render(product, "sarif"))
    jsonschema.Draft4Validator(sarif_schema, format_checker=jsonschema.FormatChecker()).validate(log)
    for run, report in zip(log["runs"], reports(product), strict=True):
        rules = run["tool"]["driver"]["rules"]
        for result in run["results"]:
            assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
            (location,) = result["locations"]
            artifact = location["physicalLocation"]["artifactLocation"]
            if "index" in artifact:
                assert run["artifacts"][artifact["index"]]["location"]["uri"] == artifact["uri"]
            assert all(c.isascii() and c.isprintable() and c not in ' "<>\\^`{|}' for c in artifact["uri"])
        assert len(run["artifacts"]) == len(report.modules)


@pytest.mark.parametrize("name", sorted(EVERYTHING))
def test_cyclonedx_keeps_to_the_published_schema(name: str) -> None:
    text = render(EVERYTHING[name](), "cyclonedx")
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    assert "timestamp" not in json.loads(text)["metadata"]


def test_cyclonedx_has_hashes_versions_and_edges() -> None:
    bom = json.loads(render(sample_reports.blocked_conv(), "cyclonedx"))
    by_name = {component["name"]: component for component in bom["components"]}
    assert by_name["upscale.exe"]["hashes"] == [{"alg": "SHA-256", "content": "ab" * 32}]
    assert by_name["cudnn64_9.dll"]["version"] == "9.1.0.70"
    refs = {component["bom-ref"]: component["name"] for component in bom["components"]}
    edges = {
        (refs.get(d["ref"]), refs[t]) for d in bom["dependencies"] for t in d.get("dependsOn", ()) if d["ref"] in refs
    }
    assert edges == {(e.source, e.target) for e in sample_reports.blocked_conv().edges}


def test_csv_has_a_row_for_each_finding_and_stack() -> None:
    report = sample_reports.blocked_conv()
    rows = list(csv.DictReader(io.StringIO(render(report, "csv"))))
    wanted = [(s.id, f.id, f.module or "") for s in report.stacks for f in s.findings]
    assert [(row["stack"], row["id"], row["module"]) for row in rows] == wanted
    (only,) = csv.DictReader(io.StringIO(render(sample_reports.no_cuda(), "csv")))
    assert only["verdict"] == "no-cuda" and only["id"] == ""


def test_no_verdict_promises_more_than_predicted_loadable() -> None:
    for verdict in ("likely", "needs-setup", "at-risk"):
        assert "predicted loadable" in VERDICT_MEANING[verdict] and "nothing was run" in VERDICT_MEANING[verdict]
    assert "recorded run" in VERDICT_MEANING["verified"]


@pytest.mark.parametrize("fmt", sorted(FORMATS))
def test_a_blocker_of_which_no_use_was_seen_is_none_in_any_format(fmt: str) -> None:
    base = sample_reports.blocked_conv()
    finding = msgspec.structs.replace(base.stacks[0].findings[0], reach="use")
    stacks = tuple(
        msgspec.structs.replace(stack, verdict="at-risk", findings=(finding,) if number == 0 else ())
        for number, stack in enumerate(base.stacks)
    )
    text = render(msgspec.structs.replace(base, stacks=stacks), fmt, RenderOptions(width=200, tree=True))
    if fmt in ("json", "csv"):  # severity and reach have a key and a column each
        assert '"reach": "use"' in text or ",use," in text
        return
    plain = re.sub(r"<[^>]*>| +", " ", text) if fmt == "html" else text
    assert re.search(r"if used", plain, re.IGNORECASE)
    # HTML's filter and graph name the severity alone, and SARIF has a property for it.
    if fmt not in ("html", "sarif"):
        assert not re.search(r"\bblocker\b(?! if used)", text, re.IGNORECASE)


def test_sarif_has_errors_only_where_the_verdict_is_blocked(sarif_schema: Any) -> None:
    base = sample_reports.blocked_conv()
    levels = {}
    for reach in ("load", "init", "called", "use"):
        finding = msgspec.structs.replace(base.stacks[0].findings[0], reach=reach)
        report = msgspec.structs.replace(base, stacks=(msgspec.structs.replace(base.stacks[0], findings=(finding,)),))
        log = json.loads(render(report, "sarif"))
        jsonschema.Draft4Validator(sarif_schema).validate(log)
        (result,) = log["runs"][0]["results"]
        (rule,) = log["runs"][0]["tool"]["driver"]["rules"]
        assert result["level"] == rule["defaultConfiguration"]["level"]
        levels[reach] = result["level"]
        assert f"Reach: {reach} (" in result["message"]["text"]
        assert result["message"]["text"].startswith("If used: ") == (reach == "use")
    assert levels == {"load": "error", "init": "error", "called": "error", "use": "warning"}
