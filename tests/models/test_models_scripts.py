"""Python scripts by their syntax tree, and what scripts and models together say about the workload."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zcheck.cli.content_tables import workload_tables
from zcheck.collect.workload import model_items, on_cpu_only, script_items, used_names
from zcheck.model.workload import ModelFacts, OperatorCount, ScriptFacts
from zcheck.parse.pyscript import MAX_BYTES, read_script


def script(text: str, path: str = "train.py") -> ScriptFacts:
    return read_script(text.encode(), path)


def names(text: str) -> set[str]:
    return {name.name for name in script(text).names}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import torch\ntorch.nn.Conv2d(1, 1, 1)", "torch.nn.Conv2d"),
        ("import torch.nn as nn\nnn.Conv2d(1, 1, 1)", "torch.nn.Conv2d"),
        ("from torch import nn\nnn.Conv2d(1, 1, 1)", "torch.nn.Conv2d"),
        ("from torch.nn import Conv2d as C\nC(1, 1, 1)", "torch.nn.Conv2d"),
        ("from torch.nn import *\nConv2d(1, 1, 1)", "torch.nn.Conv2d"),
        ("import torch.nn.functional as F\nF.conv2d(1, 2)", "torch.nn.functional.conv2d"),
        ("import torch\nL = torch.nn.Conv2d\nL(1, 1, 1)", "torch.nn.Conv2d"),
        ("from functools import partial\nfrom torch import nn\npartial(nn.Conv2d, bias=False)", "torch.nn.Conv2d"),
        ("from torch import nn\nclass A(nn.Conv2d): pass", "torch.nn.Conv2d"),
        ("def f():\n    import torch\n    return torch.fft.rfft(1)", "torch.fft.rfft"),
        ("# -*- coding: latin-1 -*-\nimport torch\ntorch.fft.rfft(1)", "torch.fft.rfft"),
    ],
)
def test_names_are_resolved_through_aliases(text: str, name: str) -> None:
    assert name in names(text)


@pytest.mark.parametrize(
    "text",
    [
        "from torch import nn\ndef f(x: nn.Conv2d) -> nn.Conv2d: return x",
        "from torch import nn\nisinstance(1, nn.Conv2d)",
        "from torch import nn\nx: nn.Conv2d",
        "# torch.nn.Conv2d\n'nn.Conv2d'",
        "nn = object()\nnn.Conv2d(1, 1, 1)",
        "from mytorch import nn\nnn.Conv2d(1, 1, 1)",
    ],
)
def test_what_is_no_use(text: str) -> None:
    assert "torch.nn.Conv2d" not in names(text)


def test_libraries_loaded_by_name() -> None:
    facts = script(
        "import ctypes, os, glob\nfrom pathlib import Path\nhere = Path(__file__).parent\n"
        "ctypes.CDLL('cublas64_12.dll')\nctypes.WinDLL(str(here / 'lib' / 'cudnn64_9.dll'))\n"
        "ctypes.cdll.LoadLibrary(os.path.join('a', 'cufft64_11.dll'))\nos.add_dll_directory('C:/x')\n"
        "for x in glob.glob(os.path.join(here, '*.dll')): ctypes.CDLL(x)\nopen('nvcuda.dll')\n"
    )
    assert {(library.name, library.kind) for library in facts.libraries} == {
        ("cublas64_12.dll", "library"),
        ("cudnn64_9.dll", "library"),
        ("cufft64_11.dll", "library"),
        ("C:/x", "folder"),
        ("*.dll", "pattern"),
    }


def test_environment_that_a_script_sets() -> None:
    facts = script("import os\nos.environ['A'] = '1'\nos.environ.setdefault('B', '2')\nos.putenv('C', '3')")
    assert dict(facts.environment) == {"A": "1", "B": "2", "C": "3"}


@pytest.mark.parametrize(
    "data",
    [b"\x00\x01", b"def f(:\n", b"(" * 5000, b"-" * 100_000 + b"1", b"x" * (MAX_BYTES + 1),
     "a = '\ud800'".encode("utf-8", "surrogatepass")],
    ids=["null", "syntax", "parentheses", "signs", "large", "surrogate"],
)  # fmt: skip
def test_odd_scripts_are_problems_or_nothing(data: bytes) -> None:
    facts = read_script(data, "odd.py")
    assert facts.path == "odd.py"
    assert not facts.names


@given(st.text(max_size=200))
@settings(deadline=None, max_examples=100)
def test_any_text_never_raises(text: str) -> None:
    read_script(text.encode("utf-8", "surrogatepass"), "any.py")


def test_long_chains_need_no_recursion() -> None:
    assert not script("x = " + "+".join(["1"] * 20_000)).names


# --- workload ------------------------------------------------------------------------------------------------------


def needs(*scripts: ScriptFacts) -> dict[str, str]:
    order = ("not seen", "unknown", "optional", "required")
    found: dict[str, str] = {}
    for item in script_items(scripts, workload_tables()):
        if order.index(item.need) >= order.index(found.get(item.family, "not seen")):
            found[item.family] = item.need
    return found


def test_a_trainer_of_linear_layers_needs_gemm_and_no_convolution() -> None:
    assert needs(script("import torch\nfrom torch import nn\nm = nn.Linear(1, 2)")) == {
        "gemm": "required",
        "convolution": "not seen",
    }


def test_code_that_nothing_mentions_is_optional() -> None:
    functions = "def unused():\n    return nn.Conv2d(1, 1, 1)\ndef used():\n    return nn.Linear(1, 1)\nused()"
    assert needs(script(f"from torch import nn\n{functions}")) == {"convolution": "optional", "gemm": "required"}


def test_modules_count_when_a_running_script_imports_them() -> None:
    network = "class Net(nn.Module):\n    def __init__(self):\n        self.c = nn.Conv2d(1, 1, 1)"
    model = script(f"from torch import nn\n{network}", "nets/unet.py")
    main = script("import torch\nfrom nets.unet import Net\nif __name__ == '__main__':\n    Net()", "main.py")
    assert needs(main, model)["convolution"] == "required"
    other = script("import torch\nif __name__ == '__main__':\n    torch.mm(1, 2)", "other.py")
    assert needs(main, model, other)["convolution"] == "optional"


def test_a_package_that_was_not_read_leaves_convolution_unknown() -> None:
    assert needs(script("import torch, somebodys_nets\ntorch.mm(1, 2)"))["convolution"] == "unknown"
    assert needs(script("import torch\nm = torch.load('x.pt')"))["convolution"] == "unknown"


def test_scripts_without_a_gpu_package_say_nothing() -> None:
    assert needs(script("import numpy\nnumpy.dot(1, 2)")) == {}


def test_a_policy_by_name() -> None:
    text = "from stable_baselines3 import PPO\nPPO('{}', 'CartPole')"
    assert "required" not in needs(script(text.format("MlpPolicy"))).get("convolution", "")
    assert needs(script(text.format("CnnPolicy")))["convolution"] == "required"


def test_a_package_without_a_start_makes_nothing_required() -> None:
    first = script("from pkg.nets import Net", "pkg/__init__.py")
    second = script("import pkg\nfrom torch import nn\nnn.Conv2d(1, 1, 1)", "pkg/nets.py")
    assert needs(first, second) == {"convolution": "optional"}


@pytest.mark.parametrize(
    ("providers", "cpu"),
    [
        ("['CPUExecutionProvider']", True),
        ("['CUDAExecutionProvider', 'CPUExecutionProvider']", False),
        ("chosen", False),
    ],
)
def test_sessions_made_for_the_cpu_only(providers: str, cpu: bool) -> None:
    text = f"import onnxruntime\nonnxruntime.InferenceSession('m.onnx', providers={providers})"
    assert on_cpu_only([script(text)]) == cpu


def onnx(path: str, **operators: int) -> ModelFacts:
    counted = tuple(OperatorCount(f"ai.onnx::{name}", count) for name, count in sorted(operators.items()))
    return ModelFacts(path=path, format="onnx", operators=counted)


def test_models_say_required_where_all_have_it_and_optional_where_some_do() -> None:
    items = model_items([onnx("a.onnx", Conv=53, MatMul=2), onnx("b.onnx", MatMul=4, Relu=9)], workload_tables())
    assert {(item.family, item.need) for item in items} == {("convolution", "optional"), ("gemm", "required")}
    assert any(item.by == "a.onnx: 53 Conv" for item in items)


def test_a_model_without_convolution_says_so_with_its_count() -> None:
    items = model_items([onnx("a.onnx", MatMul=4, Relu=9)], workload_tables())
    said = next(item for item in items if item.family == "convolution")
    assert (said.need, said.by) == ("not seen", "a.onnx: 13 operators, no convolution")


def test_installed_models_make_nothing_required() -> None:
    items = model_items(
        [onnx("site-packages/x/a.onnx", Conv=5)], workload_tables(), frozenset({"site-packages/x/a.onnx"})
    )
    assert [(item.family, item.need) for item in items] == [("convolution", "optional")]


def test_names_in_use_are_those_that_surely_run() -> None:
    text = "from torch import nn\ndef f():\n    nn.BatchNorm2d(3)\nnn.Conv2d(1, 1, 1)"
    found = used_names([onnx("a.onnx", LSTM=1)], [script(text)], workload_tables())
    assert "torch.nn.Conv2d" in found and "ai.onnx::LSTM" in found
    assert "torch.nn.BatchNorm2d" not in found
