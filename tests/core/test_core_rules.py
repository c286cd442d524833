"""Rule files: every example comes out as it says, and a mistake in a file is named with its likely mend."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from zcheck.cli.data import coverage, rule_set
from zcheck.cli.examples import failures
from zcheck.coverage import answer, rules_folder
from zcheck.errors import DataError
from zcheck.match import Example, Rule, build_context, load_rules, match
from zcheck.match.loader import parse_rule, read_rule

EXAMPLES = [(rule, example) for rule in rule_set() for example in rule.examples]


@pytest.mark.parametrize(("rule", "example"), EXAMPLES, ids=[f"{r.id}: {e.name}" for r, e in EXAMPLES])
def test_example(rule: Rule, example: Example) -> None:
    answers = answer(coverage(), example.stack, example.evidence)
    found = match([rule], build_context(example.evidence, answers))
    assert bool(found) == example.expect_match
    for finding in found:
        assert finding.message.strip()
        assert "{" not in finding.message
        assert all("{" not in text for text in finding.fix)


def test_a_wrong_expectation_is_noticed() -> None:
    rule, example = EXAMPLES[0]
    turned = Example(example.name, example.evidence, example.stack, not example.expect_match)
    import msgspec

    wrong = failures([msgspec.structs.replace(rule, examples=(turned,))], coverage())
    assert len(wrong) == 1
    assert rule.id in wrong[0]


def test_ids_are_those_of_the_file_names_area() -> None:
    ids = [rule.id for rule in rule_set()]
    assert ids == sorted(set(ids))
    assert {path.suffix for path in rules_folder().rglob("*") if path.is_file()} == {".yaml"}


def good() -> dict[str, object]:
    """A rule that loads."""
    return {
        "id": "TEST-RULE",
        "title": "A title",
        "area": "test",
        "severity": "note",
        "when": {"function": {"library": "nvcuda", "name": "cuInit"}},
        "explain": "{module} uses {functions}",
        "fix": ["nothing"],
        "examples": [
            {"name": "yes", "given": "entry app.exe imports nvcuda.dll!cuInit", "expect": "match"},
            {"name": "no", "given": "entry app.exe imports nvcuda.dll!cuFree", "expect": "no-match"},
        ],
    }


def test_the_good_rule_loads() -> None:
    assert parse_rule(good(), "t.yaml").id == "TEST-RULE"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"severty": "note"}, "no key 'severty'; did you mean 'severity'"),
        ({"severity": "blockr"}, "did you mean 'blocker'"),
        ({"when": {"functon": {}}}, "did you mean 'function'"),
        ({"when": {"function": {"libary": "x"}}}, "did you mean 'library'"),
        ({"when": {"workload": {"convolutoin": "required"}}}, "did you mean 'convolution'"),
        ({"when": {"function": {}, "library": {}}}, "exactly one of"),
        ({"when": {"all": []}}, "is empty"),
        ({"when": {"library": {"placed": "perhaps"}}}, "Expected `bool"),
        ({"explain": "{modul} fails"}, "did you mean 'module'"),
        ({"explain": "a single { brace"}, "brace|Single|expected"),
        ({"id": "lower-case"}, "capitals"),
        ({"examples": good()["examples"][:1]}, "at least one example that matches and one"),  # type: ignore[index]
        ({"fix": "not a list"}, "must be a list"),
        ({"confidence": "sure"}, "is unknown"),
        ({"limitation": "yes"}, "true or false"),
    ],
)
def test_mistakes_are_named(change: dict[str, object], says: str) -> None:
    with pytest.raises(DataError, match=says):
        parse_rule({**good(), **change}, "t.yaml")


def test_a_bad_evidence_line_names_file_and_example() -> None:
    rule = good()
    rule["examples"][0]["given"] = "entry app.exe imprts nvcuda.dll"  # type: ignore[index]
    with pytest.raises(DataError, match=r"t\.yaml, example 'yes'"):
        parse_rule(rule, "t.yaml")


def test_a_key_given_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "twice.yaml"
    path.write_text(yaml.safe_dump(good()) + "\nseverity: risk\n")
    with pytest.raises(DataError, match="given twice"):
        read_rule(path)


def test_a_file_that_is_no_rule(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match=r"x\.yaml"):
        load_rules(tmp_path)
    path.write_text("- a\n- list\n")
    with pytest.raises(DataError, match="mapping"):
        load_rules(tmp_path)


def test_two_rules_with_one_id(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(yaml.safe_dump(good()))
    with pytest.raises(DataError, match="is taken by"):
        load_rules(tmp_path)
