"""The string scanner on made files: every way to write a name, and what is no evidence."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from name_tables import tables

from zcheck.model.base import Limits
from zcheck.model.facts import Export, ImportedDll, PeFacts, Section, Symbol, VersionInfo
from zcheck.model.hidden import HiddenFacts
from zcheck.parse import strings

LOADER = ImportedDll("KERNEL32.dll", (Symbol("LoadLibraryA"), Symbol("GetProcAddress")))


def wide(text: str) -> bytes:
    return text.encode("utf-16-le")


def scan(
    body: bytes, *, imports: tuple[ImportedDll, ...] = (LOADER,), section: str = ".rdata", **more: object
) -> HiddenFacts:
    """Scan one section of bytes, 512 zero bytes of header before it."""
    data = bytes(512) + body + bytes(16)
    facts = PeFacts(
        name="app.exe",
        size=len(data),
        machine="x64",
        imports=imports,
        sections=(Section(section, 0x1000, len(body) + 16, 512, len(body) + 16),),
        **more,  # type: ignore[arg-type]
    )
    return strings.scan_file(io.BytesIO(data), "app.exe", facts, tables())


def dlls(hidden: HiddenFacts) -> list[tuple[str, str, str]]:
    return [(d.dll, d.how, d.confidence) for d in hidden.dlls]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"\0cublas64_12.dll\0", ("cublas64_12.dll", "exact", "high")),
        (b"\0CUBLAS64_12.DLL\0", ("CUBLAS64_12.DLL", "exact", "high")),
        (b"\0\0" + wide("nvml.dll") + b"\0\0", ("nvml.dll", "exact", "high")),
        (b"\0\0" + wide("NVCUDA.DLL") + b"\0\0", ("NVCUDA.DLL", "exact", "high")),
        (b"\0nvcuda\0", ("nvcuda.dll", "no-suffix", "medium")),
        (b"\0cudnn64_8\0", ("cudnn64_8.dll", "no-suffix", "medium")),
        (b"\0bin\\cufft64_11.dll\0", ("cufft64_11.dll", "exact", "high")),
        (b"\0cudnn_cnn_infer64_8.dll\0", ("cudnn_cnn_infer64_8.dll", "exact", "high")),
        (b"\0cudnn_engines_precompiled64_9.dll\0", ("cudnn_engines_precompiled64_9.dll", "exact", "high")),
        (b"\0nvrtc64_%d%d_0.dll\0", ("nvrtc64_*_0.dll", "format", "medium")),
        (b"\0cudart64_%d.dll\0", ("cudart64_*.dll", "format", "medium")),
        (b"\0cupti64_2026.2.1.dll\0", ("cupti64_2026.2.1.dll", "exact", "high")),
        (b"\0nvcudart_hybrid64.dll\0", ("nvcudart_hybrid64.dll", "runtime", "high")),
        (b"\0cublas64_\0", ("cublas64_*.dll", "fragments", "medium")),
        (b"\0cudart\0\0\0" + b"64_110\0", ("cudart64_110.dll", "fragments", "low")),
        (b"\0cudart\0\0\0" + b"64_110\0" + b"64_12\0", ("cudart64_*.dll", "fragments", "low")),
        # 3.0 as a double ends in two printable bytes; the literal behind it is aligned
        (b"\0" * 6 + b"\x08@" + b"cublas64_12.dll\0", ("cublas64_12.dll", "exact", "high")),
        (b"\0" * 7 + b"A" + b"cublas64_12.dll\0", ("cublas64_12.dll", "exact", "high")),
    ],
)
def test_ways_to_write_a_dll(body: bytes, expected: tuple[str, str, str]) -> None:
    assert dlls(scan(body)) == [expected]


def test_a_list_in_one_string_gives_each_name() -> None:
    found = scan(b"\0cublas64_118.dll;cublas64_11.dll\0")
    assert dlls(found) == [("cublas64_11.dll", "list", "medium"), ("cublas64_118.dll", "list", "medium")]


def test_a_place_is_section_offset_and_encoding() -> None:
    (ascii_dll,) = scan(b"\0" * 0x20 + b"nvcuda.dll\0").dlls
    assert str(ascii_dll.place) == ".rdata+0x20"
    assert ascii_dll.place.file_offset == 512 + 0x20
    (wide_dll,) = scan(b"\0" * 0x40 + wide("nvcuda.dll") + b"\0\0").dlls
    assert str(wide_dll.place) == ".rdata+0x40 (UTF-16)"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"\0cannot load cublas64_12.dll, please install\0", "part of a longer text"),
        (b"\0please install cublas64_12.dll\0", "part of a longer text"),
        (b"\0\0" + wide("please install cublas64_12.dll") + b"\0\0", "part of a longer text"),
    ],
)
def test_a_name_in_a_message_is_a_mention(body: bytes, why: str) -> None:
    found = scan(body)
    assert not found.dlls
    assert [(m.name, m.why, m.is_dll) for m in found.mentions] == [("cublas64_12.dll", why, True)]


def test_without_a_loader_every_name_is_a_mention() -> None:
    found = scan(b"\0cublas64_12.dll\0cublasGemmEx\0", imports=())
    assert (found.dlls, found.functions) == ((), ())
    assert {m.name for m in found.mentions} == {"cublas64_12.dll", "cublasGemmEx"}


def test_names_in_resources_are_mentions() -> None:
    found = scan(b"\0\0" + wide("cublas64_12.dll") + b"\0\0", section=".rsrc")
    assert not found.dlls and found.mentions[0].why == "in resources"


def test_own_and_imported_names_are_no_evidence() -> None:
    body = b"\0cublas64_12.dll\0cublasGemmEx\0cufft64_11.dll\0cudnn64_9.dll\0"
    found = scan(
        body,
        imports=(LOADER, ImportedDll("cublas64_12.dll", (Symbol("cublasGemmEx"),), delay=True)),
        export_name="cufft64_11.dll",
        version=VersionInfo(original_name="cudnn64_9.dll"),
    )
    assert (found.dlls, found.functions, found.mentions) == ((), (), ())


def test_an_exported_stub_that_looks_its_twin_up_is_evidence() -> None:
    exports = (Export("cublasGemmEx", 1),)
    once = scan(b"\0cublas64_12.dll\0cublasGemmEx\0", exports=exports)
    twice = scan(b"\0cublas64_12.dll\0cublasGemmEx\0\0cublasGemmEx\0", exports=exports)
    assert not once.functions
    assert [f.name for f in twice.functions] == ["cublasGemmEx"]


def test_a_function_counts_only_with_a_dll_of_its_library() -> None:
    found = scan(b"\0cublas64_12.dll\0cublasGemmEx\0cufftExecC2C\0")
    assert [(f.name, f.library, f.confidence) for f in found.functions] == [("cublasGemmEx", "cublas", "high")]
    assert [(m.name, m.why) for m in found.mentions] == [("cufftExecC2C", "no DLL of cufft is named in the file")]


def test_functions_of_cudnn_belong_to_the_version_whose_dll_is_named() -> None:
    for dll, library in (("cudnn64_8.dll", "cudnn8"), ("cudnn64_9.dll", "cudnn9")):
        found = scan(f"\0{dll}\0cudnnConvolutionForward\0".encode())
        assert [(f.name, f.library) for f in found.functions] == [("cudnnConvolutionForward", library)]


def test_cu_get_proc_address_is_the_driver_s_loader() -> None:
    found = scan(b"\0cuGetProcAddress_v2\0cuMemAllocAsync\0", imports=())
    assert {f.name for f in found.functions} == {"cuGetProcAddress_v2", "cuMemAllocAsync"}


def test_names_that_only_look_alike() -> None:
    found = scan(
        b"\0nvcuda.dll\0" + b"\0cuddle\0cuInitialise\0ducuInit\0cuinit\0myNvcuda.dllx\0acute\0environ\0NVIDIA\0"
    )
    assert [d.dll for d in found.dlls] == ["nvcuda.dll"]
    assert not found.functions


def test_strings_without_terminators() -> None:
    """Rust and Go store literals end to end."""
    text = b"failed to open the device because " * 6
    found = scan(b"\0" + text + b"loading nvcuda.dllentering cuMemAlloc_v2cuInitnot found" + text + b"\0")
    assert [(d.dll, d.confidence) for d in found.dlls] == [("nvcuda.dll", "low")]
    assert {(f.name, f.how) for f in found.functions} == {("cuMemAlloc_v2", "joined"), ("cuInit", "joined")}


def test_children_and_plugins() -> None:
    found = scan(b"\0worker_cuda.exe\0app.exe\0OpenMMCUDA.dll\0run worker2.exe now\0")
    assert [c.name for c in found.children] == ["worker_cuda.exe"]
    assert [(d.dll, d.library) for d in found.other_dlls] == [("OpenMMCUDA.dll", "")]


def test_skipped_ranges_are_not_read() -> None:
    body = b"\0cublas64_12.dll\0"
    data = bytes(512) + body + bytes(16)
    facts = PeFacts("app.exe", len(data), "x64", imports=(LOADER,), sections=(Section(".rdata", 4096, 64, 512, 64),))
    for skip, seen in (([(0, len(data))], 0), ([(500, 530)], 0), ([(0, 512)], 1), ([(540, 10**9)], 1)):
        found = strings.scan_file(io.BytesIO(data), "app.exe", facts, tables(), skip)
        assert len(found.dlls) == seen
        assert found.scanned + found.skipped == len(data)


def test_too_many_names_are_a_partial_problem() -> None:
    data = b"\0".join(b"cublas64_%d.dll" % n for n in range(50))
    found = strings.scan_file(io.BytesIO(data), "x.bin", None, tables(), (), Limits(strings=10))
    assert found.problems[0].partial


def test_a_missing_file_is_a_problem(tmp_path: object) -> None:
    from pathlib import Path

    found = strings.scan(Path(str(tmp_path)) / "gone.exe", None, tables())
    assert found.problems and found.problems[0].partial


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.integers(0, 4096), st.booleans())
def test_a_name_on_the_edge_of_a_piece_is_found_once(at: int, utf16: bool) -> None:
    old = strings.PIECE
    strings.PIECE = 1024
    try:
        name = wide("cublas64_12.dll") + b"\0\0" if utf16 else b"cublas64_12.dll\0"
        data = bytes(at) + b"\0\0" + name + bytes(4096 - at)
        facts = PeFacts("a.exe", len(data), "x64", imports=(LOADER,))
        found = strings.scan_file(io.BytesIO(data), "a.exe", facts, tables())
    finally:
        strings.PIECE = old
    assert dlls(found) == [("cublas64_12.dll", "exact", "high")]
    assert found.dlls[0].place.file_offset == at + 2


_NAMES = st.sampled_from(
    ["cuInit", "cublasGemmEx", "cudnnCreate", "nvcuda.dll", "cublas64_12.dll", "nvmlInit_v2", "cuMemAlloc_v2"]
)
_JUNK = st.binary(max_size=40).filter(lambda b: not re.search(rb"(?i)[a-z0-9_.%]{3}", b + b"\0"))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(_JUNK, _NAMES, st.booleans()), max_size=8))
def test_the_same_names_as_a_naive_reader(parts: list[tuple[bytes, str, bool]]) -> None:
    data = b"\0\0".join(
        junk + b"\0\0" + (wide(name) if utf16 else name.encode()) + b"\0\0" for junk, name, utf16 in parts
    )
    facts = PeFacts("a.exe", len(data), "x64", imports=(LOADER,))
    found = strings.scan_file(io.BytesIO(data), "a.exe", facts, tables())
    named = {f.name for f in found.functions} | {m.name for m in found.mentions} | {d.dll for d in found.dlls}
    assert {name for _, name, _ in parts} == named


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=600), st.lists(st.tuples(st.integers(-50, 700), st.integers(-50, 700)), max_size=3))
def test_any_bytes_are_read_past(data: bytes, skip: list[tuple[int, int]]) -> None:
    body = data + b"cu" + data[:3] + b"64_" + data[3:9] + b".dll" + data[:2]
    strings.scan_file(io.BytesIO(body), "x", None, tables(), skip)
