"""The evidence vocabulary: every record has a line, and every line gives its record back."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from zcheck.errors import DataError
from zcheck.model.evidence import (
    DeviceCode,
    Evidence,
    FileFact,
    Framework,
    HostFact,
    Item,
    Limitation,
    Mention,
    OwnPath,
    RecordedRun,
    Use,
    Workload,
    line,
    parse_line,
)

# Any text a file can be named by or a message can hold: quotes, semicolons, verbs of the vocabulary, bidi controls.
TEXT = st.one_of(
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=20),
    st.sampled_from(["imports", "my app.exe", 'a"b', "a;b", "x!y", "; at", "‮exe.txt", "no", "yes", "-1"]),
)
RECORDS = st.one_of(
    *(
        st.builds(kind, **dict.fromkeys(names, TEXT))
        for kind, names in (
            (Use, ("module", "dll", "function", "place", "because")),
            (FileFact, ("name", "company", "version", "path")),
            (DeviceCode, ("module", "release", "note")),
            (Workload, ("family", "by")),
            (Framework, ("name", "version", "module", "cuda")),
            (OwnPath, ("api", "module", "note")),
            (Limitation, ("kind", "module", "note")),
            (Mention, ("module", "text", "place")),
            (HostFact, ("key", "value", "subject", "note")),
            (RecordedRun, ("zluda", "hip_sdk", "gpu", "date", "note")),
        )
    )
)


# The machine may be busy with other tests: neither slow examples nor slow generation says anything here.
CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@CALM
@given(RECORDS)
def test_a_line_gives_its_record_back(record: Item) -> None:
    text = line(record)
    assert "\n" not in text
    assert parse_line(text) == record


@CALM
@given(st.lists(RECORDS, max_size=5))
def test_json_gives_the_evidence_back(items: list[Item]) -> None:
    evidence = Evidence(target="app.exe", items=tuple(items))
    assert msgspec.json.decode(msgspec.json.encode(evidence), type=Evidence) == evidence


@CALM
@given(st.text(max_size=60))
def test_any_text_is_a_record_or_a_sentence(text: str) -> None:
    try:
        record = parse_line(text)
    except DataError as error:
        assert error.message.startswith("evidence line")
    else:
        assert parse_line(line(record)) == record


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("entry app.exe import cublas64_12.dll!f", "is no verb"),
        ("entri app.exe imports x.dll", "begins no evidence line"),
        ("entry app.exe imports x.dll; confidense high", "did you mean 'confidence'"),
        ("entry app.exe imports x.dll; init maybe", "takes yes or no"),
        ("device-code a.dll; kernels many", "whole number"),
        ("entry app.exe imports x.dll; confidence certain", "Invalid enum value"),
        ('entry "app.exe imports x.dll', "does not end"),
        ("entry app.exe imports x.dll; place a; at b", "given twice"),
        ("workload", "expected family"),
    ],
)
def test_what_is_wrong_is_said(text: str, says: str) -> None:
    with pytest.raises(DataError, match=says):
        parse_line(text)
