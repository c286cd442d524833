"""Qualified names of MSVC symbols, held against llvm-undname."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from zcheck.collect.demangle import qualified_name

SYMBOLS = {
    "?call@addmm@_ops@at@@SA?AVTensor@3@AEBV43@00AEBVScalar@c10@@1@Z": "at::_ops::addmm::call",
    "?call@conv2d@_ops@at@@SA?AVTensor@3@AEBV43@0AEBV?$optional@VTensor@at@@@c10@@@Z": "at::_ops::conv2d::call",
    "?forward@Conv2dImpl@nn@torch@@QEAA?AVTensor@at@@AEBV45@@Z": "torch::nn::Conv2dImpl::forward",
    "??0Adam@optim@torch@@QEAA@XZ": "torch::optim::Adam::Adam",
    "??1Adam@optim@torch@@QEAA@XZ": "torch::optim::Adam::~Adam",
    "?f@a@1@@YAXXZ": None,
    "cublasSgemm_v2": "cublasSgemm_v2",
    "_ZN2at4_ops5addmmE": "_ZN2at4_ops5addmmE",
    "?": "?",
    "??": "??",
    "?@@": "?@@",
    "?f@9@@YAXXZ": "?f@9@@YAXXZ",
}


@pytest.mark.parametrize(("symbol", "expected"), [(s, e) for s, e in SYMBOLS.items() if e is not None])
def test_qualified_name(symbol: str, expected: str) -> None:
    assert qualified_name(symbol) == expected


def test_llvm_agrees() -> None:
    tool = shutil.which("llvm-undname") or shutil.which("llvm-undname-14")
    assert tool, "llvm-undname (Debian package llvm) is needed"
    mangled = [symbol for symbol, name in SYMBOLS.items() if name and symbol.startswith("?") and name != symbol]
    output = subprocess.run([tool, *mangled], capture_output=True, text=True, check=False).stdout
    for symbol in mangled:
        assert f"{qualified_name(symbol)}(" in output
