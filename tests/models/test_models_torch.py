"""PyTorch files: operators from TorchScript code and mobile archives, shapes from pickles that are never executed."""

from __future__ import annotations

import ast
import contextlib
import io
import os
import pickle
import struct
import zipfile
from collections import OrderedDict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corpus
from zcheck.model.base import Limits
from zcheck.model.workload import ModelFacts
from zcheck.parse.pickled import BadPickle, read_pickle
from zcheck.parse.torchscript import code_operators, read_torch

CODE = """class Net(Module):
  __parameters__ = ["weight", ]
  def forward(self: __torch__.Net, x: Tensor) -> Tensor:
    note = "torch.fft_fft(not a call"  # torch.linear(neither
    y = torch.conv2d(x, self.weight, None, [1, 1], [0, 0], [1, 1])
    z = ops.quantized.conv2d(torch.relu_(y), 1)
    return torch.add(torch.conv2d(z, self.weight), 1)
"""


def archive(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return out.getvalue()


def read(data: bytes, limits: Limits | None = None) -> ModelFacts | None:
    return read_torch(io.BytesIO(data), len(data), "model.pt", limits or Limits())


class Persistent(pickle.Pickler):
    """Writes a storage the way torch.save does: as a persistent id."""

    def persistent_id(self, item: object) -> object:
        return ("storage", "FloatStorage", "0", "cpu", 1) if item == "STORAGE" else None


class Call:
    """Pickles as a call of any name with any arguments."""

    def __init__(self, module: str, name: str, *arguments: object) -> None:
        self.module, self.name, self.arguments = module, name, arguments


def checkpoint(tensors: dict[str, tuple[int, ...]], protocol: int = 2) -> bytes:
    """A state dict as torch.save pickles it: _rebuild_tensor_v2(storage, offset, size, stride, …) by name."""
    body = io.BytesIO()
    body.write(b"\x80\x02}(")
    for name, shape in tensors.items():
        text = name.encode()
        body.write(b"X" + struct.pack("<I", len(text)) + text)
        body.write(b"ctorch._utils\n_rebuild_tensor_v2\n(")
        body.write(b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000tQK\x00")
        body.write(b"(" + b"".join(b"J" + struct.pack("<i", side) for side in shape) + b"t")
        body.write(b"(" + b"K\x01" * len(shape) + b"t\x89}tR")
    body.write(b"u.")
    return body.getvalue()


def test_operators_of_code_are_counted_without_text_and_comments() -> None:
    assert dict(code_operators(CODE)) == {
        "aten::conv2d": 2,
        "quantized::conv2d": 1,
        "aten::relu_": 1,
        "aten::add": 1,
    }


def test_a_torchscript_archive_tells_its_operators() -> None:
    data = archive({"net/code/__torch__.py": CODE.encode(), "net/data.pkl": checkpoint({"weight": (8, 3, 3, 3)})})
    facts = read(data)
    assert facts is not None
    assert facts.format == "torchscript"
    assert {operator.name: operator.count for operator in facts.operators}["aten::conv2d"] == 2
    assert [(group.use, group.count) for group in facts.groups] == [("convolution", 1)]


@pytest.mark.corpus
def test_a_real_archive_counts_as_a_syntax_tree_counts() -> None:
    path = corpus.path("silero-vad") / "silero_vad/data/silero_vad.jit"
    with path.open("rb") as file:
        facts = read_torch(file, path.stat().st_size, path.name)
    assert facts is not None
    expected: dict[str, int] = {}
    with zipfile.ZipFile(path) as file_:
        for name in file_.namelist():
            if "/code/" not in name or not name.endswith(".py"):
                continue
            for node in ast.walk(ast.parse(file_.read(name).decode())):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    text = ast.unparse(node.func)
                    parts = text.split(".")
                    if parts[0] == "torch" and len(parts) == 2:
                        expected[f"aten::{parts[1]}"] = expected.get(f"aten::{parts[1]}", 0) + 1
                    elif parts[0] == "ops" and len(parts) == 3:
                        expected[f"{parts[1]}::{parts[2]}"] = expected.get(f"{parts[1]}::{parts[2]}", 0) + 1
    assert {operator.name: operator.count for operator in facts.operators} == expected
    assert expected["aten::conv1d"] == 12
    assert facts.complete


def test_a_mobile_archive_tells_its_operators_from_bytecode() -> None:
    table = (6, ("__torch__.Net.forward", (("operators", (("aten::conv2d", ""), ("aten::add", "Tensor"))),)))
    facts = read(archive({"m/bytecode.pkl": pickle.dumps(table, 2), "m/data.pkl": pickle.dumps({}, 2)}))
    assert facts is not None
    assert {operator.name for operator in facts.operators} == {"aten::conv2d", "aten::add"}


def test_a_checkpoint_tells_names_and_shapes() -> None:
    shapes = {
        "conv1.weight": (64, 3, 7, 7), "fc.weight": (10, 512), "fc.bias": (10,), "bn1.weight": (64,),
        "wte.weight": (50257, 768), "layer.attn.q_proj.weight": (64, 64), "lstm.weight_ih_l0": (256, 64),
        "experts.gate_up.weight": (8, 2048, 768),
    }  # fmt: skip
    facts = read(archive({"archive/data.pkl": checkpoint(shapes), "archive/data/0": bytes(8)}))
    assert facts is not None
    assert facts.format == "torch-checkpoint"
    assert facts.tensors == len(shapes)
    assert {group.use: group.count for group in facts.groups} == {
        "convolution": 1,
        "matrix": 1,
        "attention": 1,
        "rnn": 1,
    }


def test_the_form_before_pytorch_1_6_is_read_too() -> None:
    magic = pickle.dumps(0x1950A86A20F9469CFC6C, 2)
    data = magic + pickle.dumps(1001, 2) + pickle.dumps({"little_endian": True}, 2)
    data += checkpoint({"conv.weight": (4, 4, 3, 3)}) + pickle.dumps(["0"], 2) + bytes(64)
    facts = read(data)
    assert facts is not None
    assert [(group.use, group.count) for group in facts.groups] == [("convolution", 1)]


def test_a_hostile_pickle_is_read_and_not_executed(tmp_path: Path) -> None:
    target = tmp_path / "owned"
    hostile = b"cos\nsystem\n(S'echo > " + str(target).encode() + b"'\ntR."
    facts = read(archive({"x/data.pkl": hostile}))
    assert facts is not None
    assert not target.exists()
    assert "os.system" in facts.globals
    assert any("os.system" in problem.reason and "not loaded" in problem.reason for problem in facts.problems)


def test_containers_of_containers_are_not_written_out() -> None:
    twice = b"".join(b"h%c" % 0 * 2 + b"\x86q\x00" for _ in range(200))  # a pair of the pair before, 200 times
    data = b"\x80\x04K\x01q\x00" + twice + b"h\x00h\x00\x93."
    assert list(read_pickle(data).classes) == ["(a name that is no text)"]


def test_sizes_beyond_all_measure_are_left_out() -> None:
    huge = b"\x8b" + struct.pack("<i", 3000) + b"\x01" * 3000
    data = checkpoint({"conv.weight": (4, 4, 3, 3)}).replace(b"J\x04\x00\x00\x00", huge, 1)
    facts = read(archive({"x/data.pkl": data}))
    assert facts is not None
    assert facts.groups == ()


def test_ordinary_classes_are_no_alarm() -> None:
    data = pickle.dumps(OrderedDict(a=1), 2)
    facts = read(archive({"x/data.pkl": data}))
    assert facts is not None
    assert not facts.problems


def test_a_zip_bomb_is_not_unpacked() -> None:
    bomb = archive({"x/code/a.py": bytes(50_000_000)}, zipfile.ZIP_DEFLATED)
    assert len(bomb) < 100_000
    facts = read(bomb, Limits(ratio=100))
    assert facts is not None
    assert not facts.complete
    assert "claim to unpack" in facts.problems[0].reason
    small = read(archive({"x/code/a.py": CODE.encode()}), Limits(payload=10))
    assert small is not None and not small.complete


def test_members_that_point_out_of_the_archive_are_left_alone() -> None:
    facts = read(archive({"../../code/a.py": CODE.encode(), "x/data.pkl": pickle.dumps({}, 2)}))
    assert facts is not None
    assert not facts.operators
    assert any("points out" in problem.reason for problem in facts.problems)


def test_other_files_are_no_models() -> None:
    assert read(b"") is None
    assert read(b"MZ" + bytes(100)) is None
    assert read(archive({"readme.txt": b"hello"})) is None


@given(st.binary(max_size=300))
@settings(deadline=None, max_examples=200)
def test_any_bytes_are_a_pickle_or_none(data: bytes) -> None:
    with contextlib.suppress(BadPickle):
        read_pickle(data)


@given(st.recursive(st.integers() | st.text() | st.booleans() | st.none() | st.binary(),
                    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner)),
       st.integers(min_value=0, max_value=pickle.HIGHEST_PROTOCOL))  # fmt: skip
@settings(deadline=None, max_examples=100)
def test_every_plain_pickle_can_be_read(item: object, protocol: int) -> None:
    data = pickle.dumps(item, protocol)
    found = read_pickle(data + b"more")
    assert found.length == len(data)
    assert not [name for name in found.classes if name not in ("_codecs.encode", "__builtin__.bytes")]


@given(st.integers(min_value=0), st.integers(min_value=0, max_value=255))
@settings(deadline=None, max_examples=100)
def test_a_damaged_archive_never_raises(at: int, byte: int) -> None:
    data = bytearray(
        archive({"n/code/__torch__.py": CODE.encode(), "n/data.pkl": checkpoint({"w.weight": (4, 4, 3, 3)})})
    )
    data[at % len(data)] = byte
    read(bytes(data))


def test_memory_is_no_use_of_os(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "system", lambda _: pytest.fail("executed"))
    monkeypatch.setattr(pickle, "loads", lambda *_: pytest.fail("unpickled"))
    monkeypatch.setattr(pickle, "load", lambda *_: pytest.fail("unpickled"))
    read(archive({"x/data.pkl": b"cos\nsystem\n(S'true'\ntR."}))
