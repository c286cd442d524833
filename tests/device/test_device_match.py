"""Forms of the tables as matchers: what each form spells out is taken, in any order where the parser allows it."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zcheck.coverage.locate import open_database
from zcheck.coverage.ptx_match import Matcher, modifiers
from zcheck.coverage.ptx_rejects import LATER, refused
from zcheck.coverage.replay_facts import PtxTables, known_releases, main_releases, release_ptx, tables_from
from zcheck.errors import DataError, UsageError
from zcheck.model.device_code import PtxForm, PtxReject


@pytest.fixture(scope="module")
def tables() -> PtxTables:
    return tables_from(open_database())


def matcher(*forms: str, any_order: bool = True) -> Matcher:
    import re

    names = [re.match(r"[a-z]\w*", form) for form in forms]
    return Matcher(tuple(PtxForm(n.group(), f) for n, f in zip(names, forms, strict=True) if n), any_order)


@pytest.mark.parametrize(
    ("form", "statement", "taken"),
    [
        ("add{.sat}.s32", "add.s32", True),
        ("add{.sat}.s32", "add.sat.s32", True),
        ("add{.sat}.s32", "add.s32.sat", True),
        ("add{.sat}.s32", "add.sat.sat.s32", False),
        ("add{.sat}.s32", "add.sat", False),
        ("add{.sat}.s32", "add.sat.u32", False),
        ("add{.sat}.s32", "addc.s32", False),
        # ``ld.relaxed.global`` and ``ld.global.relaxed`` are the same; the vector stays before the type.
        ("ld.relaxed(.cta|.gpu){.global|.shared}{.v2|.v4}(.b32|.f32)", "ld.global.gpu.relaxed.v2.f32", True),
        ("ld.relaxed(.cta|.gpu){.global|.shared}{.v2|.v4}(.b32|.f32)", "ld.relaxed.gpu.f32", True),
        ("ld.relaxed(.cta|.gpu){.global|.shared}{.v2|.v4}(.b32|.f32)", "ld.relaxed.gpu.f32.v2", False),
        ("ld.relaxed(.cta|.gpu){.global|.shared}{.v2|.v4}(.b32|.f32)", "ld.relaxed.global.f32", False),
        # Two types keep their order: the first is the destination's.
        ("cvt(.rn|.rz){.ftz}(.f16|.f32)(.u32|.f32)", "cvt.ftz.rn.f16.u32", True),
        ("cvt(.rn|.rz){.ftz}(.f16|.f32)(.u32|.f32)", "cvt.rn.u32.f16", False),
        ("cvt(.rn|.rz){.ftz}(.f16|.f32)(.u32|.f32)", "cvt.rn.f16.ftz.u32", False),
        ("ld.global{.L2::64B|.L2::128B}.f32", "ld.global.L2::128B.f32", True),
        (
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
            True,
        ),
        (
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
            "mma.sync.aligned.m16n8k16.col.row.f32.f16.f16.f32",
            True,
        ),
        (
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
            "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32",
            False,
        ),
        ("ret{.uni}", "ret", True),
        ("exit", "exit", True),
        ("exit", "exit.uni", False),
    ],
)
def test_forms(form: str, statement: str, taken: bool) -> None:
    assert (matcher(form).match(statement) == form) is taken


def test_old_grammar_keeps_the_order_and_nests() -> None:
    nested = "add((.u16|.u32)|.sat.s32|({.rn|.rz}{.ftz}.f32|{.rn}.f64))"
    known = matcher(nested, any_order=False)
    taken = ["add.u16", "add.sat.s32", "add.rn.ftz.f32", "add.f64", "add.rn.f64"]
    refused_ones = ["add.s32.sat", "add.ftz.rn.f32", "add", "add.rz.f64", "add.u64"]
    assert [known.match(statement) for statement in taken] == [nested] * len(taken)
    assert [known.match(statement) for statement in refused_ones] == [None] * len(refused_ones)


def test_malformed_forms_are_told() -> None:
    for form in ("add{.sat", "add.s32)", "add{.a(.b)}"):
        with pytest.raises(DataError, match="form"):
            matcher(form)
    with pytest.raises(DataError, match="form"):
        matcher("add(.s32", any_order=False)


def spelled_out(form: str, limit: int = 60) -> Iterator[str]:
    """Statements that a flat form describes, by taking each choice and each option in and out."""
    import re

    name = re.match(r"[a-z]\w*", form)
    assert name
    parts = re.findall(r"\{([^{}()]*)\}|\(([^{}()]*)\)|(\.[\w:]+)", form[name.end() :])
    choices = [[*o.split("|"), ""] if o else (c.split("|") if c else [w]) for o, c, w in parts]
    for words in itertools.islice(itertools.product(*choices), limit):
        yield name.group() + "".join(words)


def test_every_form_of_every_release_takes_what_it_spells_out(tables: PtxTables) -> None:
    for tag in main_releases(tables):
        release = release_ptx(tables, tag)
        known = Matcher(release.forms, release.any_order)
        for form in release.forms:
            if "((" in form.form or "|(" in form.form or form.form.count("(") != form.form.count(")"):
                continue
            if not release.any_order and any(c in form.form for c in ("{.weak|.volatile|",)):
                continue
            for statement in spelled_out(form.form):
                assert known.match(statement), (tag, form.form, statement)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_free_modifiers_take_any_order(data: st.DataObject) -> None:
    form = "atom{.relaxed|.acquire}{.gpu|.sys}{.global|.shared}(.add|.min){.L2::cache_hint}(.u32|.f32)"
    statement = data.draw(st.sampled_from(list(spelled_out(form, 200))))
    words = data.draw(st.permutations(modifiers(statement)))
    assert matcher(form).match("atom" + "".join(words)) == form


def test_every_release_has_facts(tables: PtxTables) -> None:
    for tag in known_releases(tables):
        release = release_ptx(tables, tag)
        assert release.forms, tag
        assert release.registers, tag
        assert ".entry" in release.directives, tag
        assert release.source, tag
        assert (release.confidence == "high") == (not release.inherits), tag
    assert {what.what for tag in main_releases(tables) for what in release_ptx(tables, tag).later} <= LATER


def test_release_by_alias_and_unknown_release(tables: PtxTables) -> None:
    assert release_ptx(tables, "latest").release == "v6"
    with pytest.raises(UsageError, match="did you mean v6-preview"):
        release_ptx(tables, "v6-preview.699")
    with pytest.raises(UsageError, match="was not read"):
        release_ptx(tables, "v5-preview.43")


@pytest.mark.parametrize(
    ("tag", "selection", "statement_effect", "address"),
    [
        ("v3", "highest-sm", "module-empty", 64),
        ("v4", "no-fatbin", "load-fails", 64),
        ("v5-preview.119", "first", "load-fails", 64),
        ("v5", "first", "function-dropped", 64),
        ("v6-preview.23", "first", "function-dropped", 64),
        ("v6-preview.24", "last-valid", "module-empty", 64),
        ("v6-preview.70", "last-valid", "function-dropped", 64),
        ("v6-preview.71", "last-valid", "function-dropped", 32),
        ("v7-preview.9", "last-valid", "function-dropped", 32),
        ("lshqqytiger-3.9.5", "highest-sm", "module-empty", 64),
    ],
)
def test_turns_of_behaviour(tables: PtxTables, tag: str, selection: str, statement_effect: str, address: int) -> None:
    release = release_ptx(tables, tag)
    seen = (release.selection, release.unknown_statement, release.address_size_default)
    assert seen == (selection, statement_effect, address)


def test_history_gives_previews_their_own_forms(tables: PtxTables) -> None:
    def takes(tag: str, statement: str) -> bool:
        release = release_ptx(tables, tag)
        return Matcher(release.forms, release.any_order).match(statement) is not None

    assert not takes("v6-preview.69", "exit")
    assert takes("v6", "exit")
    assert not takes("v6", "red.global.add.f32")
    assert "%laneid" not in release_ptx(tables, "v5-preview.104").registers
    assert "%laneid" in release_ptx(tables, "v5-preview.105").registers


def test_parsed_and_refused() -> None:
    form = "ld.global{.cg}.nc{.L1::no_allocate}{.L2::cache_hint}{.L2::128B}.f32"
    reject = (PtxReject(form, ("level_eviction_priority", "level_prefetch_size")),)
    assert not refused("ld.global.nc.f32", form, reject)
    assert refused("ld.global.nc.L2::128B.f32", form, reject)
    assert refused("ld.global.L1::no_allocate.nc.f32", form, reject)
    assert not refused("ld.global.nc.L2::128B.f32", "another form", reject)
    assert refused("st.mmio.f32", "st.mmio.f32", (PtxReject("st.mmio.f32"),))


def test_database_without_the_tables() -> None:
    with pytest.raises(DataError, match="lacks release"):
        tables_from(sqlite3.connect(":memory:"))


def test_malformed_tables(tables: PtxTables) -> None:
    import msgspec

    row = {"stage": "later pass", "what": "moonlight", "when": "", "source": "", "releases": "v6"}
    with pytest.raises(DataError, match="moonlight"):
        release_ptx(msgspec.structs.replace(tables, rejects=(row,)), "v6")
    row = {"stage": "parser", "what": "add.s32", "when": "moonlight", "source": "", "releases": "v6"}
    with pytest.raises(DataError, match="moonlight"):
        release_ptx(msgspec.structs.replace(tables, rejects=(row,)), "v6")
    row = {"key": "selection", "value": "dice", "since": "v6", "until": "v6", "source": ""}
    with pytest.raises(DataError, match="dice"):
        release_ptx(msgspec.structs.replace(tables, behaviour=(row,)), "v6")
