"""From a folder to the verdict: what models and scripts change in it, and what they must not change."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto, helper

import corpus
from zcheck.cli import content_models
from zcheck.cli.content import ContentReader
from zcheck.cli.pipeline import analyse, judge_analysis
from zcheck.cli.progress import Progress
from zcheck.discover import discover
from zcheck.model.evidence import Evidence, Framework, Known, Use, Workload, line, parse_line
from zcheck.model.facts import ImportedDll, PeFacts, Symbol, VersionInfo
from zcheck.model.report import StackReport
from zcheck.model.stack import Stack

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
WITHOUT, WITH = Stack(zluda="v6", hip_sdk="6.4"), Stack(zluda="v6", hip_sdk="therock")


def judged(
    target: Path, entry: str = "", stacks: tuple[Stack, ...] = (WITHOUT, WITH)
) -> tuple[Evidence, list[StackReport]]:
    """Evidence and reports of one entry of a folder."""
    _, found = analyse(target, stacks, Progress())
    analysis = next(item for item in found if item.entry.endswith(entry))
    return analysis.evidence, list(judge_analysis(analysis, stacks, target.name).stacks)


def ids(report: StackReport) -> set[str]:
    return {finding.id for finding in report.findings if finding.severity != "note"}


def python_folder(tmp_path: Path, scripts: str, libraries: str, version: str = "") -> Path:
    """A folder as a Python program with PyTorch has it: scripts, and PyTorch's package with its DLLs."""
    folder = tmp_path / "app"
    shutil.copytree(SAMPLES / scripts, folder)
    lib = folder / "torch" / "lib"
    lib.mkdir(parents=True)
    for dll in (SAMPLES / libraries).glob("*.dll"):
        shutil.copy(dll, lib)
    (folder / "torch" / "__init__.py").write_text("from torch.nn import Conv2d\nConv2d(1, 1, 1)\n")
    if version:
        (folder / "torch" / "version.py").write_text(f"__version__ = '{version}'\n")
    return folder


def onnx_model(path: Path, *operators: str) -> None:
    nodes = [helper.make_node(name, ["x", "w"], ["y"]) for name in operators]
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", [value], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    path.write_bytes(helper.make_model(graph).SerializeToString())


def torchscript(path: Path, code: str) -> None:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("m/code/__torch__.py", f"def forward(self, x):\n  return {code}\n")
        file.writestr("m/data.pkl", b"\x80\x02}.")


# --- the two LibTorch samples as scripts ----------------------------------------------------------------------------


def test_a_trainer_in_python_is_gemm_only(tmp_path: Path) -> None:
    _, (without, _with) = judged(python_folder(tmp_path, "ppo-python", "ppo-gemm"), "torch_cuda.dll")
    assert without.verdict in ("likely", "needs-setup")
    assert without.workload["gemm"] == "required"
    assert without.workload["convolution"] == "not seen"
    assert "DNN-CONV-NO-MIOPEN" not in ids(without)


def test_an_image_model_in_python_is_blocked_without_miopen_only(tmp_path: Path) -> None:
    evidence, (without, with_) = judged(python_folder(tmp_path, "image-python", "image-conv"), "torch_cuda.dll")
    assert without.verdict == "blocked"
    assert "DNN-CONV-NO-MIOPEN" in ids(without)
    assert with_.verdict in ("likely", "needs-setup")
    said = [item.by for item in evidence.items if isinstance(item, Workload) and item.family == "convolution"]
    assert said and all(by.startswith("network.py:") for by in said)


def test_with_a_known_pytorch_the_measured_setting_is_the_first_action(tmp_path: Path) -> None:
    folder = python_folder(tmp_path, "image-python", "image-conv", "2.5.1+cu121")
    evidence, (_, with_) = judged(folder, "torch_cuda.dll")
    assert Framework("pytorch", "2.5.1+cu121", "torch/lib/torch_cuda.dll", "12.1") in evidence.items
    assert with_.verdict == "at-risk"
    assert "TORCH_CUDNN_V8_API_DISABLED=1" in with_.actions[0]
    (folder / "start.bat").write_text("@echo off\r\nset TORCH_CUDNN_V8_API_DISABLED=1\r\npython classify.py\r\n")
    _, (_, with_) = judged(folder, "torch_cuda.dll")
    assert "KNOWN-SETTING" not in ids(with_)


def test_batch_normalisation_in_pytorch_2_is_a_certain_failure(tmp_path: Path) -> None:
    folder = python_folder(tmp_path, "image-python", "image-conv", "2.5.1+cu121")
    network = folder / "network.py"
    network.write_text(network.read_text().replace("nn.MaxPool2d(2),", "nn.BatchNorm2d(16), nn.MaxPool2d(2),"))
    evidence, (_, with_) = judged(folder, "torch_cuda.dll")
    called = [use for use in evidence.uses() if use.kind == "call" and "BatchNormalization" in use.function]
    assert called and "network.py" in called[0].because
    assert with_.verdict == "blocked"


def test_fft_in_a_script_blocks_as_measured(tmp_path: Path) -> None:
    folder = python_folder(tmp_path, "ppo-python", "ppo-gemm", "2.5.1+cu121")
    (folder / "train.py").write_text("import torch\nprint(torch.fft.rfft(torch.zeros(8).cuda()))\n")
    _, (without, _) = judged(folder, "torch_cuda.dll")
    assert without.workload["fft"] == "required"
    assert without.verdict == "blocked"


# --- the same two as models ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["onnx", "torchscript"])
@pytest.mark.parametrize(("convolves", "verdict"), [(False, ("likely", "needs-setup")), (True, ("blocked",))])
def test_models_decide_for_a_program_whose_framework_imports_everything(
    tmp_path: Path, form: str, convolves: bool, verdict: tuple[str, ...]
) -> None:
    shutil.copytree(SAMPLES / "ppo-gemm", tmp_path / "app")
    app = tmp_path / "app"
    if form == "onnx":
        onnx_model(app / "model.onnx", "MatMul", *(["Conv", "Conv"] if convolves else []))
    else:
        torchscript(app / "model.pt", "torch.conv2d(torch.matmul(x, x))" if convolves else "torch.matmul(x, x)")
    evidence, (without, _) = judged(app)
    assert without.verdict in verdict
    said = {item.by for item in evidence.items if isinstance(item, Workload) and item.family == "convolution"}
    assert any("model." in by for by in said)


def test_a_damaged_model_does_not_clear_convolution(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "image-conv", tmp_path / "app")
    onnx_model(tmp_path / "app" / "model.onnx", "MatMul", "MatMul")
    data = (tmp_path / "app" / "model.onnx").read_bytes()
    (tmp_path / "app" / "model.onnx").write_bytes(data[:-3] + b"\xff\xff\xff")
    bundle = discover(tmp_path / "app" / "image-model.exe")
    reader = ContentReader(bundle, ["v6"])
    items = reader.evidence("image-model.exe", {})
    assert Workload("convolution", "not seen", "model.onnx: 2 operators, no convolution") not in items
    assert any("damaged" in skipped.reason for skipped in reader.skipped)


# --- what belongs to whom --------------------------------------------------------------------------------------------


def test_content_of_other_programs_changes_nothing(tmp_path: Path) -> None:
    for name in ("gemm.exe", "conv.exe"):
        shutil.copy(SAMPLES / name, tmp_path)
    onnx_model(tmp_path / "model.onnx", "Conv")
    (tmp_path / "train.py").write_text("import torch\ntorch.fft.rfft(1)\n")
    evidence, _ = judged(tmp_path / "gemm.exe")
    assert not [item for item in evidence.items if isinstance(item, (Workload, Framework, Known))]


def test_a_program_in_a_folder_below_keeps_its_content_to_itself(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "ppo-gemm", tmp_path / "app")
    shutil.copytree(SAMPLES / "image-conv", tmp_path / "app" / "tools")
    onnx_model(tmp_path / "app" / "tools" / "net.onnx", "Conv")
    evidence, (without, _) = judged(tmp_path / "app" / "ppo-trainer.exe")
    assert not [item for item in evidence.items if isinstance(item, Workload)]
    assert without.workload["convolution"] == "not seen"


def test_dlls_that_a_script_loads_by_name_are_uses(tmp_path: Path) -> None:
    shutil.copy(SAMPLES / "plain.exe", tmp_path / "app.exe")
    (tmp_path / "load.py").write_text("import ctypes\nctypes.CDLL('cublas64_12.dll')\nctypes.CDLL('other.dll')\n")
    evidence, _ = judged(tmp_path / "app.exe")
    uses = [use for use in evidence.uses() if use.module == "load.py"]
    assert uses == [Use("module", "load.py", "dynamic", "cublas64_12.dll", load="later", place="line 2")]


def test_a_python_environment_reaches_pytorch(tmp_path: Path) -> None:
    site = tmp_path / "Lib" / "site-packages"
    shutil.copytree(python_folder(tmp_path / "x", "image-python", "image-conv", "2.5.1+cu121"), tmp_path / "y")
    shutil.copytree(tmp_path / "y" / "torch", site / "torch")
    shutil.copy(SAMPLES / "plain.exe", tmp_path / "python.exe")
    shutil.rmtree(tmp_path / "x")
    shutil.rmtree(tmp_path / "y")
    shutil.copy(SAMPLES / "image-python" / "network.py", tmp_path)
    shutil.copy(SAMPLES / "image-python" / "classify.py", tmp_path)
    evidence, (without, _) = judged(tmp_path / "python.exe")
    assert any(use.module == "torch_cuda.dll" and use.dll == "cudnn64_9.dll" for use in evidence.uses())
    assert without.verdict == "blocked"


def test_bounds_are_kept_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content_models, "MODELS_READ", 2)
    shutil.copytree(SAMPLES / "ppo-gemm", tmp_path / "app")
    for number in range(4):
        onnx_model(tmp_path / "app" / f"m{number}.onnx", "MatMul")
    reader = ContentReader(discover(tmp_path / "app" / "ppo-trainer.exe"), ["v6"])
    reader.evidence("ppo-trainer.exe", {})
    assert [skipped.path for skipped in reader.skipped] == ["m2.onnx", "m3.onnx"]


def test_all_items_survive_as_lines(tmp_path: Path) -> None:
    evidence, _ = judged(python_folder(tmp_path, "image-python", "image-conv", "2.5.1+cu121"), "torch_cuda.dll")
    for item in evidence.items:
        assert parse_line(line(item)) == item


@pytest.mark.corpus
def test_a_real_package_with_models_says_what_they_need(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    shutil.copytree(SAMPLES / "ppo-gemm", folder)
    shutil.copytree(corpus.path("rapidocr-onnxruntime") / "rapidocr_onnxruntime", folder / "rapidocr_onnxruntime")
    evidence, (without, _) = judged(folder)
    said = [item.by for item in evidence.items if isinstance(item, Workload) and item.family == "convolution"]
    assert "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx: 53 Conv" in said
    assert without.workload["convolution"] == "required"
    assert json.dumps(without.workload)


@pytest.mark.corpus
def test_ctranslate2_is_recognised_and_its_package_loads_its_dlls() -> None:
    root = corpus.path("ctranslate2")
    extension = next(root.rglob("_ext*.pyd"))
    bundle, found = analyse(extension, (WITHOUT,), Progress())
    items: list[Any] = [item for analysis in found for item in analysis.evidence.items]
    assert any(isinstance(item, Framework) and (item.name, item.version) == ("ctranslate2", "4.8.5") for item in items)
    assert any(isinstance(item, Use) and item.dll.lower() == "cudnn64_9.dll" and item.module.endswith("__init__.py")
               for item in items)  # fmt: skip
    assert bundle.entries


def test_a_framework_function_that_the_program_imports_is_called(tmp_path: Path) -> None:
    (tmp_path / "app.exe").write_bytes(b"MZ")
    (tmp_path / "opencv_world490.dll").write_bytes(b"MZ")
    create = Symbol("?create@GpuMat@cuda@cv@@QEAAXHHH@Z")
    facts = {
        "app.exe": PeFacts("app.exe", 2, "x64", imports=(ImportedDll("opencv_world490.dll", (create,)),)),
        "opencv_world490.dll": PeFacts("opencv_world490.dll", 2, "x64", is_dll=True),
    }
    items = ContentReader(discover(tmp_path / "app.exe"), ["v6"]).evidence("app.exe", facts)
    (use,) = [item for item in items if isinstance(item, Use)]
    assert (use.kind, use.dll, use.function) == ("call", "nvcuda.dll", "cuMemAllocPitch_v2")
    assert use.because == "app.exe imports cv::cuda::GpuMat::create"


def test_what_is_known_of_an_application_goes_by_its_version(tmp_path: Path) -> None:
    (tmp_path / "blender.exe").write_bytes(b"MZ")
    reader = ContentReader(discover(tmp_path / "blender.exe"), ["v5", "v7-preview.9"])
    version = VersionInfo(product_version="4.5.7")
    items = reader.evidence("blender.exe", {"blender.exe": PeFacts("blender.exe", 2, "x64", version=version)})
    known = {(item.key, item.release, item.effect) for item in items if isinstance(item, Known)}
    assert ("blender-textures", "v5", "fails") in known
    assert ("blender-supported", "v7-preview.9", "works") in known
    assert ("blender-own-hip", "v5", "own-path") in known
    assert not any(key == "blender-contexts-v3" for key, _, _ in known)
