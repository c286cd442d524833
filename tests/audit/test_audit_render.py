"""An audit as text in pieces: the same document as in one piece, however its rows are named."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zcheck.cli.audit_build import build_audit
from zcheck.model.audit import Audit, AuditRow
from zcheck.model.stack import Stack
from zcheck.render.audit import audit_from_json, render_audit
from zcheck.render.safe import escape_json

NAMES = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs"]), st.sampled_from(list('"\\\n\r\x7f\u202e{}[],: /<>&')),
    ), min_size=1, max_size=20,
) | st.sampled_from(['"applications": []', '\\"applications\\": []', "\n    ", "\udc80"])  # fmt: skip


def audit_of(names: list[str], target: str = "share") -> Audit:
    stack = Stack(zluda="v6")
    rows = [
        AuditRow(
            path=name, application=name, kind="program", programs=(name, "b"), verdict={stack.id: "blocked"},
            workload={"gemm": "required"}, top_cause=name, cause_id="X", causes={stack.id: "X"}, first_action=name,
            blockers={stack.id: 1}, risks={stack.id: 0}, cuda="12", frameworks=(), size=1, files=number,
        )
        for number, name in enumerate(names)
    ]  # fmt: skip
    return build_audit(target, "2026-11-30", [stack], rows)


def whole(audit: Audit) -> str:
    packed = msgspec.json.format(msgspec.json.encode(audit, order="deterministic"), indent=2)
    return escape_json(packed.decode()) + "\n"


@given(st.lists(NAMES, max_size=5), NAMES)
def test_pieces_are_the_document_that_one_call_makes(names: list[str], target: str) -> None:
    audit = audit_of(names, target)
    text = "".join(render_audit(audit, "json"))
    back = audit_from_json(text)
    assert text == whole(back)
    assert len(back.applications) == len(names) and text.endswith("}\n")


def test_the_bytes_are_those_of_one_call() -> None:
    for names in ([], ["a"], ["a", "b/c.exe", 'quote"']):
        audit = audit_of(names)
        assert "".join(render_audit(audit, "json")) == whole(audit)


def test_no_piece_holds_all_rows() -> None:
    pieces = [len(piece) for piece in render_audit(audit_of([f"app{number}" for number in range(500)]), "json")]
    rows = sum(pieces[1:-1])
    assert max(pieces[1:-1]) < rows / 100


@pytest.mark.parametrize("fmt", ["text", "csv", "markdown", "html"])
def test_other_formats_end_in_a_line_feed(fmt: str) -> None:
    assert "".join(render_audit(audit_of(["a"]), fmt)).endswith("\n")
