"""What each release does with small fatbins: which PTX is taken, what is dropped, what sinks the load, and why."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from fatbin_writer import Entry, Pe, container, cubin, kernel, ptx, wrapper

from zcheck.coverage.locate import open_database
from zcheck.coverage.replay import replay
from zcheck.coverage.replay_facts import PtxTables, release_ptx, tables_from
from zcheck.model.device_code import ContainerReplay, DeviceCodeFacts, Replay
from zcheck.parse.fatbin import read_device_code

ADD = "st.global.u32 [%rd1], %r1"
UNKNOWN = "lop3.b32 %r1, %r1, %r1, %r1, 0x3f"
CLOCK = "mov.u64 %rd1, %clock64"
UPSTREAM = ("v5", "v6-preview.69", "v6", "v7-preview.9")


@pytest.fixture(scope="module")
def tables() -> PtxTables:
    return tables_from(open_database())


class Tried:
    """A file of one container and what releases do with it."""

    def __init__(self, tmp_path: Path, tables: PtxTables) -> None:
        self.path, self.tables = tmp_path / "a.fatbin", tables

    def read(self, *entries: Entry) -> DeviceCodeFacts:
        return self.bytes(container(entries))

    def bytes(self, data: bytes, name: str = "a.fatbin") -> DeviceCodeFacts:
        self.path = self.path.with_name(name)
        self.path.write_bytes(data)
        return read_device_code(self.path)

    def on(self, code: DeviceCodeFacts, tag: str) -> Replay:
        return replay(code, release_ptx(self.tables, tag))

    def one(self, code: DeviceCodeFacts, tag: str) -> ContainerReplay:
        (only,) = self.on(code, tag).containers
        return only


@pytest.fixture
def tried(tmp_path: Path, tables: PtxTables) -> Tried:
    return Tried(tmp_path, tables)


def fates(one: ContainerReplay) -> dict[str, str]:
    return {fate.name: fate.fate for fate in one.fates}


def reason(one: ContainerReplay) -> str:
    return one.fates[0].reason


def text(*functions: str, **more: str) -> Entry:
    return Entry(ptx(*functions, **more))


# --- which PTX -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tag", "chosen"),
    [("v3", 1), ("lshqqytiger-3.9.5", 1), ("v5", 0), ("v6-preview.23", 0), ("v6", 2), ("v7-preview.9", 2)],
)
def test_choice_among_valid_ones(tried: Tried, tag: str, chosen: int) -> None:
    """v3 and the fork: highest sm; v5: the first; v6 on: the last, whatever its sm."""
    k = kernel("k", ADD)
    code = tried.read(
        Entry(ptx(k), sm=60), Entry(ptx(k), sm=90), Entry(ptx(k), sm=52), Entry(cubin({"k": 640}), kind=2)
    )
    one = tried.one(code, tag)
    assert (one.chosen, one.chosen_container, one.loadable) == (chosen, 0, 1)


def test_v4_reads_no_fatbins_but_texts(tried: Tried) -> None:
    code = tried.read(text(kernel("k", ADD)))
    one = tried.one(code, "v4")
    assert (one.chosen, one.lost) == (None, 1)
    assert one.load_fails == "v4 takes PTX texts only, no fatbins"
    assert tried.on(code, "v4").load_fails == one.load_fails
    loose = tried.bytes(ptx(kernel("k", ADD)), "k.ptx")
    assert tried.one(loose, "v4").loadable == 1


def test_v6_takes_the_last_without_invalid_directives_else_the_fewest(tried: Tried) -> None:
    good, bad = kernel("k", ADD), kernel("k", UNKNOWN)
    code = tried.read(text(good), text(good), text(bad))
    assert tried.one(code, "v6").chosen == 1
    code = tried.read(text(bad, kernel("l", ADD)), text(bad, kernel("l", UNKNOWN)))
    one = tried.one(code, "v6")
    assert (one.chosen, one.invalid_directives, fates(one)) == (0, 1, {"k": "dropped"})
    # Of equals the one that was tried first stays, the last of the container.
    assert tried.one(tried.read(text(bad), text(bad)), "v6").chosen == 1
    # v5 looks at nothing of it.
    assert tried.one(code, "v5").chosen == 0


def test_text_that_does_not_lex_is_the_last_choice(tried: Tried) -> None:
    code = tried.read(text(kernel("k", UNKNOWN)), text(kernel("k", "mov.b32 {_, %h1}, %r1")))
    one = tried.one(code, "v6")
    assert (one.chosen, fates(one)) == (0, {"k": "dropped"})


def test_v6_preview_24_passes_over_texts_with_anything_unknown(tried: Tried) -> None:
    code = tried.read(text(kernel("k", ADD)), text(kernel("k", ADD), kernel("l", UNKNOWN)))
    one = tried.one(code, "v6-preview.24")
    assert (one.chosen, one.loadable, fates(one)) == (0, 1, {"l": "empty"})
    code = tried.read(text(kernel("k", ADD), kernel("l", UNKNOWN)))
    one = tried.one(code, "v6-preview.24")
    assert (one.chosen, one.lost) == (None, 2)
    assert "lop3.b32" in reason(one)
    assert tried.one(code, "v6-preview.51").loadable == 1


def test_packing(tried: Tried) -> None:
    k = ptx(kernel("k", ADD))
    for pack, tags in {"lz4": ("v3", *UPSTREAM), "zstd": UPSTREAM}.items():
        for tag in tags:
            assert tried.one(tried.read(Entry(k, pack=pack)), tag).loadable == 1, (pack, tag)
    one = tried.one(tried.read(Entry(k, pack="zstd")), "v3")
    assert (one.loadable, one.lost) == (0, 1)
    assert "zstd" in one.notes[0]
    # The one that can be unpacked is taken although its sm is lower.
    assert tried.one(tried.read(Entry(k, sm=50, pack="lz4"), Entry(k, sm=90, pack="zstd")), "v3").chosen == 0


# --- what is dropped -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tag", UPSTREAM)
def test_function_with_an_unknown_statement_goes_alone(tried: Tried, tag: str) -> None:
    code = tried.read(text(kernel("a", ADD), kernel("b", ADD, UNKNOWN, "wgmma.fence.sync.aligned"), kernel("c", ADD)))
    one = tried.one(code, tag)
    assert (one.kernels, one.loadable, one.dropped, one.invalid_directives) == (3, 2, 1, 1)
    (fate,) = one.fates
    assert (fate.name, fate.statement, fate.reason) == ("b", "lop3.b32", "unknown instruction lop3.b32")


def test_known_instruction_in_an_unknown_form(tried: Tried) -> None:
    one = tried.one(tried.read(text(kernel("k", "cvt.rna.tf32.f32 %r1, %f1"))), "v6")
    assert reason(one) == "unknown form of a known instruction cvt.rna.tf32.f32"


def test_parsed_and_refused_statement(tried: Tried) -> None:
    one = tried.one(tried.read(text(kernel("k", "ld.global.L2::128B.f32 %f1, [%rd1]"))), "v6")
    assert (one.dropped, reason(one)) == (1, "ld.global.L2::128B.f32 is parsed and refused")


def test_unknown_statement_empties_v3_and_fails_v4(tried: Tried) -> None:
    code = tried.read(text(kernel("a", ADD), kernel("b", UNKNOWN)))
    old = tried.one(code, "v3")
    assert (old.lost, old.load_fails, old.notes) == (2, None, ("first in b",))
    loose = tried.bytes(ptx(kernel("a", ADD), kernel("b", UNKNOWN)), "k.ptx")
    assert tried.one(loose, "v4").load_fails == "unknown instruction lop3.b32"


def test_caller_of_a_function_declared_nowhere_is_dropped(tried: Tried) -> None:
    code = tried.read(text(kernel("k", "call.uni helper"), ".func helper() { ret; }", kernel("l", "call.uni helper")))
    one = tried.one(code, "v6")
    assert fates(one) == {"k": "dropped"}
    assert reason(one) == "calls helper, which is not declared before it"
    assert tried.one(
        tried.read(text(".func helper();", kernel("k", "call.uni helper"), ".func helper() { ret; }")), "v6"
    ).loadable


def test_call_of_a_dropped_function_sinks_the_load(tried: Tried) -> None:
    code = tried.read(text(f".func helper() {{ {UNKNOWN}; ret; }}", kernel("a", ADD), kernel("b", "call.uni helper")))
    for tag in UPSTREAM:
        one = tried.one(code, tag)
        assert (one.lost, one.loadable) == (2, 0), tag
        assert one.load_fails == "calls helper, which was dropped: unknown instruction lop3.b32"
        assert "first in b" in one.notes


def test_indirect_call_drops_the_caller(tried: Tried) -> None:
    code = tried.read(text(kernel("k", "call (%r1), %rd1, (%r2), proto")))
    assert (tried.one(code, "v6").dropped, reason(tried.one(code, "v6"))) == (1, "makes an indirect call")


def test_what_zluda_brings_along_may_be_called(tried: Tried) -> None:
    code = tried.read(
        text(
            ".extern .func vprintf();\n.extern .func other();",
            kernel("k", ADD, "call vprintf"),
            kernel("l", "call other", "st.global.u32 [%rd1], %r1"),
        )
    )
    one = tried.one(code, "v6")
    assert one.loadable == 2 - one.stub
    assert one.notes == ("calls other, which this PTX declares and does not define",)


# --- what sinks the load -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tag", UPSTREAM)
def test_unknown_special_register_sinks_the_load(tried: Tried, tag: str) -> None:
    code = tried.read(text(kernel("a", ADD), kernel("b", CLOCK)))
    one = tried.one(code, tag)
    assert (one.kernels, one.loadable, one.lost) == (2, 0, 2)
    assert one.load_fails == "reads %clock64, which the release does not know"
    assert tried.one(code, "v3").loadable == 2


def test_register_of_a_dropped_function_sinks_nothing(tried: Tried) -> None:
    one = tried.one(tried.read(text(kernel("a", ADD), kernel("b", CLOCK, UNKNOWN))), "v6")
    assert (one.loadable, fates(one), one.load_fails) == (1, {"b": "dropped"}, None)


def test_registers_by_release(tried: Tried) -> None:
    code = tried.read(text(kernel("k", "mov.u32 %r1, %lanemask_le")))
    assert tried.one(code, "v5").load_fails
    assert tried.one(code, "v6-preview.59").load_fails
    assert tried.one(code, "v6-preview.60").loadable == 1


def test_envreg(tried: Tried) -> None:
    code = tried.read(text(kernel("k", "mov.b32 %r1, %envreg2"), kernel("l", ADD)))
    assert fates(tried.one(code, "v6")) == {"k": "dropped"}
    assert tried.one(code, "v6-preview.50").load_fails == "reads %envreg2, which the release does not know"
    assert "passed over" in tried.one(code, "v3").notes[0]
    # %envreg0 is not on the list of the parser.
    assert tried.one(tried.read(text(kernel("k", "mov.b32 %r1, %envreg0"))), "v6").load_fails


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("setp.lt.s32 %p1|%p2, %r1, %r2", "setp with two destinations"),
        ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r2]", "ldmatrix .x1"),
        ("dp4a.u32.s32 %r1, %r2, %r3, %r4", "dp4a mixed signedness"),
        ("atom.cluster.global.add.u32 %r1, [%rd1], 1", ".cluster scope"),
        ("st.shared::cta.u32 [%r1], %r2", ".shared::cta"),
        ("mov.u64 %rd1, helper", "function pointers"),
    ],
)
def test_later_passes_sink_the_load(tried: Tried, statement: str, why: str) -> None:
    code = tried.read(text(".func helper() { ret; }", kernel("a", ADD), kernel("b", statement)))
    one = tried.one(code, "v6")
    assert one.lost == 2
    assert why in (one.load_fails or "")


def test_lone_underscore_empties_the_module(tried: Tried) -> None:
    code = tried.read(text(kernel("a", ADD), kernel("b", "elect.sync _|%p1, %r1")))
    one = tried.one(code, "v6")
    assert (one.lost, one.load_fails) == (2, None)
    assert reason(one) == "a lone _ is no token for the lexer"
    assert "elect.sync" in one.notes[0]
    assert tried.one(tried.bytes(ptx(kernel("b", "mov.b32 {_, %h1}, %r1")), "k.ptx"), "v4").load_fails


def test_address_size(tried: Tried) -> None:
    code = tried.read(text(kernel("k", ADD), size=""))
    assert tried.one(code, "v6-preview.70").loadable == 1
    for tag in ("v6-preview.71", "v6", "v7-preview.9"):
        one = tried.one(code, tag)
        assert (one.lost, one.loadable) == (1, 0), tag
        assert "32-bit" in reason(one)


def test_target(tried: Tried) -> None:
    letters = tried.read(text(kernel("k", ADD), target="sm_90a"))
    assert tried.one(letters, "v3").lost == 1
    assert tried.one(letters, "v6").loadable == 1
    debug = tried.read(text(kernel("k", ADD), target="sm_80, debug"))
    assert tried.one(debug, "v6-preview.77").lost == 1
    assert tried.one(debug, "v6").loadable == 1
    textures = tried.read(text(kernel("k", ADD), target="sm_80, texmode_independent"))
    assert (tried.one(textures, "v6").lost, tried.one(textures, "v3").loadable) == (1, 1)


def test_header_that_is_not_read(tried: Tried) -> None:
    """Recovery drops one word, then looks for the next directive: behind .visible it finds none and gives up."""
    cluster = kernel("b", ADD, tuning=".explicitcluster")
    one = tried.one(tried.read(text(kernel("a", ADD), cluster)), "v6")
    assert (one.lost, one.notes[0]) == (2, "first in b")
    assert "does not recover" in reason(one)
    bare = kernel("b", ADD, head=".entry", tuning=".explicitcluster")
    one = tried.one(tried.read(text(kernel("a", ADD), bare)), "v6")
    assert (one.loadable, fates(one)) == (1, {"b": "dropped"})


def test_variables_that_are_not_read(tried: Tried) -> None:
    use, plain = kernel("b", "mov.u64 %rd1, table"), kernel("a", ADD)
    code = tried.read(text(".global .u64 table = generic(other);", plain, use))
    assert "table, which was not read" in (tried.one(code, "v6").load_fails or "")
    assert tried.one(tried.read(text(".global .u64 table = generic(other);", plain)), "v6").loadable == 1
    visible = tried.read(text(".visible .global .u64 table = generic(other);", plain))
    assert "does not recover" in reason(tried.one(visible, "v6"))


def test_statements_that_are_directives(tried: Tried) -> None:
    one = tried.one(tried.read(text(kernel("a", ADD), kernel("b", "targets: .branchtargets A, B"))), "v6")
    assert fates(one) == {"b": "dropped"}
    assert reason(one) == "unknown statement .branchtargets"


def test_managed_variables(tried: Tried) -> None:
    managed = ".global .attribute(.managed) .align 4 .u32 managed;"
    use = kernel("b", "mov.u64 %rd1, managed")
    assert tried.one(tried.read(text(managed, kernel("a", ADD))), "v6").loadable == 1
    load_fails = tried.one(tried.read(text(managed, kernel("a", ADD), use)), "v6").load_fails
    assert load_fails == "uses managed, which was not read: the directive .attribute"


def test_textures_by_release(tried: Tried) -> None:
    fetch = "tex.2d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [image, {%r1,%r2}]"
    code = tried.read(text(".global .texref image;", kernel("a", ADD), kernel("b", fetch)))
    assert tried.one(code, "v6").loadable == 2
    assert tried.one(code, "v6-preview.63").loadable == 1
    assert fates(tried.one(code, "v5")) == {"b": "dropped"}


# --- without PTX ---------------------------------------------------------------------------------------------------


def test_machine_code_only(tried: Tried) -> None:
    code = tried.read(Entry(cubin({"a": 640, "b": 900}), kind=2), Entry(cubin({"a": 640}), kind=2, sm=90))
    for tag in UPSTREAM:
        one = tried.one(code, tag)
        assert (one.kernels, one.empty, one.load_fails) == (2, 2, None), tag
        assert "empty module" in reason(one)
    for tag in ("v3", "v5-preview.132", "lshqqytiger-3.9.5"):
        assert tried.one(code, tag).load_fails == "no PTX"
    assert tried.on(code, "v6").load_fails is None


def test_kernel_that_the_chosen_ptx_lacks(tried: Tried) -> None:
    code = tried.read(text(kernel("a", ADD)), Entry(cubin({"a": 640, "b": 900}), kind=2))
    one = tried.one(code, "v6")
    assert (one.kernels, one.loadable, fates(one)) == (2, 1, {"b": "empty"})


def test_unreadable_ptx_is_said(tried: Tried) -> None:
    code = tried.read(Entry(b"\x00" * 40, pack="", flags=0x2041, compressed=40, uncompressed=4000))
    one = tried.one(code, "v6")
    assert one.kernels == 0
    assert "was not read" in one.notes[0]


# --- stubs ---------------------------------------------------------------------------------------------------------


def test_stub_beside_real_machine_code(tried: Tried) -> None:
    sizes = {"traps": 9000, "prints": 9000, "returns": 9000, "empty": 128, "works": 9000}
    code = tried.read(
        text(
            ".extern .func vprintf();",
            kernel("traps", "trap"),
            kernel("prints", "st.local.u32 [%rd2], %r1", "call.uni (r), vprintf, (p0, p1)"),
            kernel("returns"),
            kernel("empty"),
            kernel("works", ADD),
        ),
        Entry(cubin(sizes), kind=2),
        # The largest of all architectures counts.
        Entry(cubin({"traps": 128}), kind=2, sm=60),
    )
    one = tried.one(code, "v6")
    assert fates(one) == {"traps": "stub", "prints": "stub", "returns": "stub"}
    assert (one.kernels, one.stub, one.loadable) == (5, 3, 2)
    assert (reason(one), one.fates[0].statement) == (
        "its PTX only traps, beside real machine code",
        "9000 bytes of machine code",
    )


def test_stub_without_machine_code(tried: Tried) -> None:
    """A trap is one whatever stands beside it; a kernel that returns or prints may be meant so."""
    hello = kernel("hello", "call.uni (r), vprintf, (p0, p1)")
    texts = text(".extern .func vprintf();", kernel("traps", "trap"), kernel("empty"), hello)
    assert fates(tried.one(tried.read(texts), "v6")) == {"traps": "stub"}
    small = Entry(cubin({"traps": 128, "empty": 256, "hello": 900}), kind=2)
    assert fates(tried.one(tried.read(texts, small), "v6")) == {"traps": "stub"}


# --- relocatable device code ---------------------------------------------------------------------------------------


def relocatable(tried: Tried, *texts: bytes, linked: bytes | None = None) -> DeviceCodeFacts:
    pe = Pe()
    first = pe.add("__nv_rel", b"".join(container([Entry(one)]) for one in texts))
    names = {f"k{n}": 900 for n in range(len(texts))}
    end = pe.add(".nv_fatb", linked or container([Entry(cubin(names), kind=2)]))
    pe.add(".nvFatBi", wrapper(first) + wrapper(end, 2))
    return tried.bytes(pe.encode(), "a.dll")


def test_one_of_the_prelinked_texts_is_taken(tried: Tried) -> None:
    code = relocatable(tried, *(ptx(kernel(f"k{n}", ADD)) for n in range(3)))
    last = tried.one(code, "v6")
    assert (last.container, last.chosen_container, last.chosen) == (3, 2, 0)
    assert (last.kernels, last.loadable, fates(last)) == (3, 1, {"k0": "empty", "k1": "empty"})
    assert tried.one(code, "v5").chosen_container == 0
    assert "none is linked to it" in last.notes[0]


def test_v3_prefers_the_linked_container(tried: Tried) -> None:
    code = relocatable(tried, ptx(kernel("k0", ADD)), linked=container([Entry(ptx(kernel("k0", ADD)), sm=90)]))
    one = tried.one(code, "v3")
    assert (one.chosen_container, one.chosen, one.loadable) == (1, 0, 1)


def test_v3_links_the_best_of_each_prelinked_container(tried: Tried) -> None:
    code = relocatable(tried, ptx(kernel("k0", ADD)), ptx(kernel("k1", UNKNOWN)), ptx(kernel("k2", ADD)))
    one = tried.one(code, "v3")
    assert (one.kernels, one.loadable, fates(one), one.load_fails) == (3, 2, {"k1": "lost"}, None)
    # One without any PTX, and nothing is linked.
    pe = Pe()
    first = pe.add(
        "__nv_rel", container([Entry(ptx(kernel("k0", ADD)))]) + container([Entry(cubin({"k1": 9}), kind=2)])
    )
    end = pe.add(".nv_fatb", container([Entry(cubin({"k0": 900, "k1": 900}), kind=2)]))
    pe.add(".nvFatBi", wrapper(first) + wrapper(end, 2))
    assert tried.one(tried.bytes(pe.encode(), "b.dll"), "v3").load_fails == "no PTX"


def test_failed_translation_empties_v3_and_fails_later_ones(tried: Tried) -> None:
    code = tried.read(text(kernel("a", ADD), kernel("b", "mov.u32 %r1, %smid")))
    old, new = tried.one(code, "v3"), tried.one(code, "v6")
    assert (old.lost, old.load_fails) == (2, None)
    assert reason(old) == reason(new) == new.load_fails == "reads %smid, which the release does not know"


# --- as a whole ----------------------------------------------------------------------------------------------------


def test_counts_add_up_and_survive_json(tried: Tried, tables: PtxTables) -> None:
    data = container([text(kernel("a", ADD), kernel("b", UNKNOWN)), Entry(cubin({"a": 9, "b": 9, "c": 9}), kind=2)])
    code = tried.bytes(data + container([text(kernel("d", CLOCK))]) + container([text(kernel("e", "trap"))]))
    for tag in ("v3", "v4", *UPSTREAM, "v6-preview.30", "lshqqytiger-3.9.5"):
        result = tried.on(code, tag)
        parts = result.loadable + result.dropped + result.stub + result.empty + result.lost
        assert result.kernels == parts == 5, tag
        assert msgspec.json.decode(msgspec.json.encode(result), type=Replay) == result
        assert result == replay(
            msgspec.json.decode(msgspec.json.encode(code), type=DeviceCodeFacts), release_ptx(tables, tag)
        )
    assert tried.on(code, "v6").load_fails is None
