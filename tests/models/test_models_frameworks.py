"""frameworks.yaml, apps.yaml and the operator tables: what they name exists, and how frameworks are told."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import onnx
import pytest

from zcheck.cli.content_tables import app_rows, framework_file, workload_tables
from zcheck.cli.data import coverage
from zcheck.collect.frameworks import (
    FrameworkRow,
    KnownRow,
    Sighting,
    called_items,
    find_frameworks,
    fits,
    known_items,
    read_frameworks,
    version_numbers,
)
from zcheck.errors import DataError
from zcheck.model.evidence import Known, Workload, line, parse_line
from zcheck.model.report import WORKLOADS

ROOT = Path(__file__).resolve().parents[2]
ROWS = framework_file().frameworks
KNOWN = [(row.id, known) for row in ROWS for known in row.known] + [
    (row.id, known) for row in app_rows() for known in row.known
]


def row(name: str) -> FrameworkRow:
    return next(row for row in ROWS if row.id == name)


def table(name: str) -> list[dict[str, str]]:
    with (ROOT / "coverage_db/names" / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_ids_are_unique_and_patterns_compile() -> None:
    assert len({row.id for row in ROWS}) == len(ROWS)
    for item in ROWS:
        for pattern in (*item.dlls, *item.loads):
            re.compile(pattern)
        for source in (*item.version, *item.cuda):
            assert re.compile(source.pattern).groups == 1
    for app in app_rows():
        for pattern in app.files:
            re.compile(pattern)


@pytest.mark.parametrize(("owner", "known"), KNOWN, ids=[f"{owner}-{known.key}" for owner, known in KNOWN])
def test_known_facts_have_a_public_source_and_real_releases(owner: str, known: KnownRow) -> None:
    assert "https://" in known.source or re.search(r"\w+/\w+: \S+", known.source)
    tags = {release.tag for release in coverage().releases()}
    assert {known.since, known.until} - {""} <= tags
    assert set(known.releases) <= tags
    assert known.family in ("", *WORKLOADS)
    assert known.do.endswith((".", "all."))
    if known.effect == "setting":
        assert known.variable and known.variable in known.do


def test_called_functions_are_known_to_the_database() -> None:
    exported = {name for (name,) in coverage().query("SELECT DISTINCT function FROM cuda_export")}
    exported |= {name for (name,) in coverage().query("SELECT DISTINCT name FROM function_state")}
    for item in ROWS:
        groups = [call.functions for call in item.calls] + ([item.start.functions] if item.start else [])
        for functions in groups:
            for names in functions.values():
                assert set(names) <= exported, item.id


@pytest.mark.parametrize(
    ("workload", "families"),
    [("torch_fft", ["fft"]), ("torch_rnn", ["rnn"]), ("torch_linalg", ["solver"])],
)
def test_what_pytorch_calls_was_measured(workload: str, families: list[str]) -> None:
    rows = coverage().query("SELECT functions FROM workload WHERE workload = ?", (workload,))
    measured = {name for (functions,) in rows for name in functions.split()}
    for call in row("pytorch").calls:
        if list(call.families) == families:
            for names in call.functions.values():
                assert set(names) <= measured


def test_onnx_operators_exist_in_the_standard() -> None:
    known = {f"{schema.domain or 'ai.onnx'}::{schema.name}" for schema in onnx.defs.get_all_schemas_with_history()}
    standard = [item["name"] for item in table("onnx_ops.csv") if item["name"].startswith("ai.onnx::")]
    newer = {"ai.onnx::CausalConvWithState", "ai.onnx::LinearAttention"}  # not in older onnx packages
    assert set(standard) - newer <= known


@pytest.mark.parametrize("name", ["onnx_ops.csv", "python_calls.csv"])
def test_tables_name_families_and_sources(name: str) -> None:
    families = {*WORKLOADS, "pooling", "normalization", "softmax"}
    rows = table(name)
    assert len({(item["name"], item["family"]) for item in rows}) == len(rows)
    for item in rows:
        assert item["family"] in families and item["source"]
        assert (item["kind"] == "compute") == (item["family"] in WORKLOADS)


def find(files: dict[str, str]) -> dict[str, Sighting]:
    found = find_frameworks(files, ROWS, lambda path: files.get(path, ""), lambda dll: "")
    return {item.row.id: item for item in found}


@pytest.mark.parametrize(
    ("files", "name", "version", "cuda"),
    [
        ({"Lib/site-packages/torch/__init__.py": "", "Lib/site-packages/torch/lib/torch_cuda.dll": "",
          "Lib/site-packages/torch/version.py": "__version__ = '2.5.1+cu121'\ncuda: Optional[str] = '12.1'"},
         "pytorch", "2.5.1+cu121", "12.1"),
        ({"lib/torch_cuda.dll": "", "build-version": "2.3.0+cu118\n"}, "pytorch", "2.3.0+cu118", "11.8"),
        ({"torch-2.6.0+cu124.dist-info/METADATA": ""}, "pytorch", "2.6.0+cu124", "12.4"),
        ({"onnxruntime/__init__.py": "__version__ = \"1.20.1\"", "onnxruntime/capi/onnxruntime_providers_cuda.dll": "",
          "onnxruntime/capi/build_and_package_info.py": "cuda_version = '12.6'"}, "onnxruntime", "1.20.1", "12.6"),
        ({"ctranslate2/__init__.py": "", "ctranslate2/version.py": "__version__ = \"4.8.5\"",
          "ctranslate2/ctranslate2.dll": ""},
         "ctranslate2", "4.8.5", ""),
        ({"app/ggml-cuda.dll": "", "app/llama.dll": ""}, "llama.cpp", "", ""),
        ({"cupy_cuda12x-13.3.0.dist-info/RECORD": ""}, "cupy", "13.3.0", ""),
        ({"xgboost/__init__.py": "", "xgboost/VERSION": "3.2.0\n", "xgboost/lib/xgboost.dll": ""},
         "xgboost", "3.2.0", ""),
        ({"requirements.txt": "numpy>=1\n# torch==1.0\ntorch[opt] == 2.5.1+cu121 ; python_version > '3.8'\n"},
         "pytorch", "2.5.1+cu121", "12.1"),
        ({"app/requirements.txt": "onnxruntime_gpu\n"}, "onnxruntime", "", ""),
        ({"PhysXLoader.dll": ""}, "physx", "", ""),
        ({"opencv_world490.dll": ""}, "opencv", "", ""),
    ],
)  # fmt: skip
def test_a_framework_is_told_with_its_version(files: dict[str, str], name: str, version: str, cuda: str) -> None:
    item = find(files)[name]
    assert (item.version, item.cuda) == (version, cuda)


def test_a_script_named_like_a_framework_is_none() -> None:
    assert find({"torch.py": "", "mytorch/torch_helper.dll": "", "torchvision-0.1.dist-info/METADATA": ""}) == {}


def test_versions_compare_as_numbers() -> None:
    assert version_numbers("2.10.0+cu118") == (2, 10, 0)
    assert fits("2.10.0", "2.4", "") and not fits("2.3.9", "2.4", "")
    assert fits("", "", "") and not fits("", "2.4", "")


def test_known_facts_hold_for_their_releases_only() -> None:
    order = {release.tag: release.order for release in coverage().releases()}
    asked = {
        tag: order[tag] for tag in ("v4", "v5", "v6-preview.63", "v6-preview.64", "v7-preview.9", "lshqqytiger-3.9.5")
    }
    blender = next(app for app in app_rows() if app.id == "blender")

    def tags(version: str, key: str) -> set[str]:
        items = known_items("Blender", version, "", "blender.exe", blender.known, asked, order, {})
        return {item.release for item in items if item.key == key}

    assert tags("4.5.7", "blender-textures") == {"v5", "v6-preview.63"}
    assert tags("4.0.2", "blender-textures") == set()
    assert tags("5.0.1", "blender-supported") == {"v7-preview.9"}
    assert tags("", "blender-own-hip") == set(asked)


def test_a_setting_that_the_program_makes_is_not_asked_for() -> None:
    order = {release.tag: release.order for release in coverage().releases()}
    rows = row("pytorch").known
    asked = {"v6": order["v6"]}
    keys = {item.key for item in known_items("PyTorch", "2.5.1", "12.1", "", rows, asked, order, {})}
    assert "torch-cudnn-v8-api" in keys
    made = {"TORCH_CUDNN_V8_API_DISABLED": "1"}
    keys = {item.key for item in known_items("PyTorch", "2.5.1", "12.1", "", rows, asked, order, made)}
    assert "torch-cudnn-v8-api" not in keys


def test_calls_follow_from_workload_names_and_imports() -> None:
    torch = Sighting(row("pytorch"), "2.5.1", "12.1", ("torch/lib/torch_cuda.dll",), "torch/lib/torch_cuda.dll")
    opencv = Sighting(row("opencv"), "", "", ("opencv_world490.dll",), "opencv_world490.dll")
    uses = called_items(
        [torch, opencv],
        [
            Workload("fft", "required", "a.py:3: torch.fft.rfft"),
            Workload("solver", "optional", "b.py:1: torch.linalg.inv"),
        ],
        {"torch.nn.BatchNorm2d": "a.py:9"},
        {"cv::cuda::GpuMat::create": "app.exe"},
        ["cufft64_11.dll", "cudnn64_9.dll", "cusolver64_11.dll"],
    )
    found = {(use.dll, use.function): use.because for use in uses}
    assert found["cufft64_11.dll", "cufftCreate"] == "a.py:3: torch.fft.rfft"
    assert found["cudnn64_9.dll", "cudnnBatchNormalizationForwardInference"] == "a.py:9: torch.nn.BatchNorm2d"
    assert "GpuMat::create" in found["nvcuda.dll", "cuMemAllocPitch_v2"]
    assert not any(dll.startswith("cusolver") for dll, _ in found)


def test_known_lines_are_read_back() -> None:
    item = Known(
        "PyTorch 2.5.1", "setting", "v6", "key", "convolution", 'it; "ends"', "Set X=1.", "torch_cuda.dll", "https://x"
    )
    assert parse_line(line(item)) == item


@pytest.mark.parametrize(
    "text", ["frameworks: 3", "frameworks: [{id: a}]", "frameworks: []\nunknown: 1", "a: [", "- x"]
)
def test_a_wrong_table_is_named(text: str) -> None:
    with pytest.raises(DataError, match=r"frameworks\.yaml"):
        read_frameworks(text)


def test_known_packages_are_no_frameworks_of_their_own() -> None:
    tables = workload_tables()
    assert "numpy" in tables.known_packages and "numpy" not in tables.gpu_packages
    assert {"torch", "cupy", "onnxruntime", "tensorflow"} <= tables.gpu_packages
