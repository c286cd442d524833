"""Hidden facts as evidence lines and edges; variants of one library."""

from __future__ import annotations

import msgspec
import pytest

from zcheck.collect.hidden import archive_items, child_programs, edges, items, member_items
from zcheck.model.evidence import Use, line, parse_line
from zcheck.model.facts import ImportedDll, PeFacts, Symbol
from zcheck.model.hidden import (
    ArchiveFacts,
    ArchiveMember,
    ChildProgram,
    DynamicDll,
    DynamicFunction,
    HiddenFacts,
    LinkedRuntime,
    LoaderFacts,
    MemberLimitation,
    NameMention,
    Place,
)
from zcheck.parse.names_variants import variants

AT = Place(".rdata", 0x1F20, 0x2520)
FACTS = HiddenFacts(
    name="ops.dll",
    dlls=(
        DynamicDll("cublas64_*.dll", "cublas", "fragments", "medium", AT, ("cublas64_",)),
        DynamicDll("nvcuda.dll", "nvcuda", "runtime", "high", AT),
    ),
    functions=(
        DynamicFunction("cublasGemmEx", "cublas", "string", "high", AT),
        DynamicFunction(
            "cuMemAlloc", "nvcuda", "loader", "high", Place(".text", 4, 516, "code"), "cuMemAlloc_v2", 3020
        ),
    ),
    mentions=(NameMention("cudnn64_9.dll", "cudnn9", "part of a longer text", AT, True),),
    other_dlls=(DynamicDll("plugin.dll", "", "exact", "high", AT),),
    runtimes=(LinkedRuntime("cudart", "12.8.90", "12.9.79", 1112, 1114, "high"),),
    loader=LoaderFacts(("LoadLibraryA",), True),
    subtracted=1114,
)


def test_evidence_lines() -> None:
    lines = [line(item) for item in items("ops.dll", "module", FACTS, "later")]
    assert lines == [
        "module ops.dll looks-up cublas64_*.dll; load later; confidence medium; "
        'place ".rdata+0x1f20, joined from cublas64_"',
        "module ops.dll looks-up nvcuda.dll; load later; place .rdata+0x1f20",
        "module ops.dll looks-up cublas64_*.dll!cublasGemmEx; load later; place .rdata+0x1f20",
        "module ops.dll looks-up nvcuda.dll!cuMemAlloc_v2; load later; "
        'place ".text+0x4 (code)"; because "slot of the linked-in loader is read"',
        "module ops.dll mentions cudnn64_9.dll; load later; confidence low; place .rdata+0x1f20; "
        'because "part of a longer text"',
        'limitation static-runtime ops.dll; note "the CUDA runtime 12.8.90 to 12.9.79 is linked in: which runtime '
        "functions the program calls cannot be seen, and 1114 names of its own hide the program's look-ups\"",
    ]
    assert [parse_line(text) for text in lines] == list(items("ops.dll", "module", FACTS, "later"))


def test_edges() -> None:
    found = {edge.dll: edge for edge in edges("bin/ops.dll", FACTS)}
    assert found["nvcuda.dll"].functions == ("cuMemAlloc_v2",)
    assert found["cublas64_*.dll"].functions == ("cublasGemmEx",)
    assert found["plugin.dll"].functions == () and found["plugin.dll"].library == ""
    assert found["nvcuda.dll"].place == ".rdata+0x1f20"


def test_functions_without_their_dll_fall_to_the_driver_s_default_name() -> None:
    facts = HiddenFacts("a.dll", functions=(DynamicFunction("cuInit", "nvcuda", "string", "high", AT),))
    (use,) = items("a.dll", "module", facts)
    assert isinstance(use, Use) and (use.dll, use.function) == ("nvcuda.dll", "cuInit")


def test_functions_of_the_hybrid_runtime_stand_with_the_runtime() -> None:
    facts = HiddenFacts(
        "a.dll",
        dlls=(DynamicDll("nvcudart_hybrid64.dll", "cudart_hybrid", "runtime", "high", AT),),
        functions=(DynamicFunction("cudaMallocManaged", "cudart", "loader", "high", AT),),
        runtimes=(LinkedRuntime("cudart-hybrid", "13", "13", 2, 3, "high"),),
        loader=LoaderFacts(delay_hooks=("__delayLoadHelper2", "__pfnDliNotifyHook2")),
    )
    lines = [line(item) for item in items("a.dll", "module", facts)]
    assert lines[1].startswith("module a.dll looks-up cudart64_13.dll!cudaMallocManaged; found bundle;")
    assert lines[2:] == ["string a.dll __pfnDliNotifyHook2"]
    unseen = msgspec.structs.replace(facts, functions=())
    assert "its table of functions was not found" in line(items("a.dll", "module", unseen)[-1])


def test_children_that_are_in_the_bundle() -> None:
    facts = HiddenFacts("a.exe", children=(ChildProgram("bin\\Worker.exe", AT), ChildProgram("cmd.exe", AT)))
    assert child_programs(facts, ["a.exe", "tools/worker.exe"]) == ("tools/worker.exe",)


def test_the_runtime_itself_hides_nothing() -> None:
    facts = HiddenFacts("cudart64_12.dll", runtimes=(LinkedRuntime("cudart", "12.4", "12.4", 9, 9, "high", True),))
    assert items("cudart64_12.dll", "vendor", facts) == ()


def test_an_archive_s_limitation_names_the_way_on() -> None:
    shut = ArchiveFacts(
        "a.exe", "nsis", "x", limitation=MemberLimitation("self-extractor", "this is an NSIS installer", "unpack it")
    )
    assert [line(item) for item in archive_items("a.exe", shut)] == [
        'limitation self-extractor a.exe; note "this is an NSIS installer; unpack it"'
    ]
    assert archive_items("a.exe", ArchiveFacts("a.exe", "zip", "x", readable=True)) == ()


def test_a_program_that_was_not_looked_into_is_a_limitation() -> None:
    members = (ArchiveMember("ops.dll", 9, "pe"), ArchiveMember("main", 9, "script"))
    frozen = ArchiveFacts("a.exe", "pyinstaller-one-file", "x", "PyInstaller", members=members, readable=True)
    assert [line(item) for item in archive_items("a.exe", frozen)] == [
        'limitation one-file-archive a.exe; note "PyInstaller keeps 2 files, 1 of them programs or DLLs inside, '
        'which were not looked into; unpack it and run zcheck on the folder"'
    ]
    assert archive_items("a.exe", frozen, looked_into=True) == ()
    scripts = ArchiveFacts("a.exe", "pyinstaller-one-dir", "x", "PyInstaller", members=members[1:], readable=True)
    assert archive_items("a.exe", scripts) == ()


def test_members_of_a_program_give_their_imports_and_names() -> None:
    facts = PeFacts(
        "ops.dll",
        9,
        "x64",
        imports=(
            ImportedDll("cufft64_11.dll", (Symbol("cufftExecC2C"),)),
            ImportedDll("nvrtc64_120_0.dll", (Symbol("nvrtcGetPTX"),), delay=True),
            ImportedDll("KERNEL32.dll", (Symbol("Sleep"),)),
        ),
    )
    known = {"cufft64_11.dll": "cufft", "nvrtc64_120_0.dll": "nvrtc"}
    found = member_items("a.exe", "lib/ops.dll", facts, FACTS, "module", known.get, {"cufft64_11.dll"})
    lines = [line(item) for item in found]
    assert lines[:3] == [
        'file ops.dll; load later; path "a.exe!lib/ops.dll"',
        'module ops.dll imports cufft64_11.dll!cufftExecC2C; load later; found bundle; place "a.exe!lib/ops.dll"',
        'module ops.dll delay-imports nvrtc64_120_0.dll!nvrtcGetPTX; load later; place "a.exe!lib/ops.dll"',
    ]
    assert "module ops.dll looks-up cublas64_*.dll!cublasGemmEx; load later; place .rdata+0x1f20" in lines


def test_facts_survive_json() -> None:
    assert msgspec.json.decode(msgspec.json.encode(FACTS), type=HiddenFacts) == FACTS


BITSANDBYTES = [
    f"libbitsandbytes_{v}.dll"
    for v in (
        "cuda118",
        "cuda121",
        "cuda124",
        "cuda126",
        "cuda128",
        "cuda130",
        "cuda132",
        "rocm714",
        "rocm715",
        "rocm72",
    )
] + ["libbitsandbytes_cpu.dll", "libbitsandbytes_xpu2025.dll", "nvidia.txt"]


def test_bitsandbytes_is_seven_cuda_builds_and_three_for_rocm() -> None:
    (group,) = variants(BITSANDBYTES)
    found = [variant for variant, _ in group.choices]
    assert [v for v in found if v.startswith("cuda")] == [
        "cuda118",
        "cuda121",
        "cuda124",
        "cuda126",
        "cuda128",
        "cuda130",
        "cuda132",
    ]
    assert [v for v in found if v.startswith("rocm")] == ["rocm72", "rocm714", "rocm715"]
    assert {"cpu", "xpu2025"} <= set(found)
    assert variants(reversed(BITSANDBYTES)) == (group,)


@pytest.mark.parametrize(
    ("names", "groups"),
    [
        (["ggml-cuda.dll", "ggml-vulkan.dll", "ggml-base.dll"], [["cuda", "vulkan"]]),
        (
            ["bins/win-x64-cuda/llama.node", "bins/win-x64-vulkan/llama.node", "bins/win-x64/llama.node"],
            [["cuda", "vulkan"]],
        ),
        (["lib/avx/ct.dll", "lib/avx2/ct.dll", "lib/cuda/ct.dll"], [["avx", "avx2", "cuda"]]),
        (["x_cu118.pyd", "x_cu121.pyd"], [["cu118", "cu121"]]),
        (["x-cuda-11.8.dll", "x-cuda-12.4.dll"], [["cuda-11.8", "cuda-12.4"]]),
        # no alternatives: different libraries, one build only, words inside other words
        (["cublas64_11.dll", "cudart64_110.dll"], []),
        (["torch_cuda.dll", "c10_cuda.dll"], []),
        (["torch_cpu.dll", "torch_hip.dll"], []),
        (["torch_cpu.dll", "torch_cuda.dll"], []),
        (["accuracy1.dll", "document2.dll", "barracuda7.dll"], []),
        (["cpu.dll", "CUDA"], []),
    ],
)
def test_variants(names: list[str], groups: list[list[str]]) -> None:
    assert [[variant for variant, _ in group.choices] for group in variants(names)] == groups


def test_alternatives_of_one_name_are_told_apart_by_their_folders() -> None:
    from zcheck.cli.entry import told_apart

    paths = ["lib/cuda/llama.dll", "lib/avx2/llama.dll", "lib/avx/llama.dll"]
    assert told_apart(paths, "lib/cuda/llama.dll") == ["lib/avx2/llama.dll", "lib/avx/llama.dll"]
    assert told_apart(["lib/x_cuda12.dll", "lib/x_cuda11.dll"], "lib/x_cuda12.dll") == ["x_cuda11.dll"]
