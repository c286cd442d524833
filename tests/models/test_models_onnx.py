"""ONNX models: counts as the onnx package has them, external data, and bytes that are no model."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

import corpus
from zcheck.model.base import Limits
from zcheck.model.workload import ModelFacts
from zcheck.parse.onnx import read_onnx

REAL = {
    "silero-vad": 7,
    "faster-whisper": 1,
    "rapidocr-onnxruntime": 3,
}


def opinion(model: onnx.ModelProto) -> dict[str, int]:
    """Operators by the onnx package: the graph, graphs inside of nodes, function bodies."""
    found: Counter[str] = Counter()

    def graph(nodes: object) -> None:
        for node in nodes:  # type: ignore[attr-defined]
            found[f"{node.domain or 'ai.onnx'}::{node.op_type}"] += 1
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    graph(attribute.g.node)
                for inner in attribute.graphs:
                    graph(inner.node)

    graph(model.graph.node)
    for function in model.functions:
        graph(function.node)
    return dict(found)


def counts(facts: ModelFacts) -> dict[str, int]:
    return {operator.name: operator.count for operator in facts.operators}


def value(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, None)


def nested() -> onnx.ModelProto:
    """A model with a graph in each branch of an If, one more inside, a function, a foreign domain and weights."""
    inner = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"])], "inner", [], [value("y")],
        initializer=[numpy_helper.from_array(numpy.zeros((4, 3, 3, 3), numpy.float32), "w")],
    )  # fmt: skip
    outer = helper.make_graph(
        [helper.make_node("If", ["c"], ["z"], then_branch=inner, else_branch=inner)], "outer", [], [value("z")]
    )
    nodes = [
        helper.make_node("If", ["c"], ["a"], then_branch=outer, else_branch=inner),
        helper.make_node("FusedMatMul", ["a", "a"], ["b"], domain="com.microsoft"),
        helper.make_node("Twice", ["b"], ["d"], domain="own"),
    ]
    function = helper.make_function(
        "own", "Twice", ["p"], ["q"], [helper.make_node("Gemm", ["p", "p"], ["q"])], [helper.make_opsetid("", 18)]
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1), helper.make_opsetid("own", 1)]
    graph = helper.make_graph(nodes, "main", [value("x"), value("c")], [value("d")])
    return helper.make_model(graph, opset_imports=opsets, functions=[function], producer_name="test", ir_version=9)


def test_graphs_in_nodes_functions_and_domains_count_as_the_onnx_package_counts() -> None:
    model = nested()
    facts = read_onnx(model.SerializeToString(), "nested.onnx")
    assert facts is not None
    assert counts(facts) == opinion(model)
    assert counts(facts)["ai.onnx::Conv"] == 3
    assert counts(facts)["own::Twice"] == 1
    assert dict(facts.opsets) == {"ai.onnx": 18, "com.microsoft": 1, "own": 1}
    assert facts.producer == "test"
    assert facts.complete


@pytest.mark.corpus
@pytest.mark.parametrize("name", REAL)
def test_real_models_count_as_the_onnx_package_counts(name: str) -> None:
    paths = sorted(corpus.path(name).rglob("*.onnx"))
    assert len(paths) == REAL[name] or name == "silero-vad"
    assert paths
    for path in paths:
        facts = read_onnx(path.read_bytes(), path.name)
        assert facts is not None
        assert counts(facts) == opinion(onnx.load(str(path)))
        assert any(name in counts(facts) for name in ("ai.onnx::Conv", "ai.onnx::LSTM"))


def test_external_data_is_named_and_a_place_outside_is_told(tmp_path: Path) -> None:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4])
    tensor.data_location = TensorProto.EXTERNAL
    for key, text in (("location", "../../secret.bin"), ("offset", "0")):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, text
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [], [], initializer=[tensor])
    facts = read_onnx(helper.make_model(graph).SerializeToString(), "model.onnx")
    assert facts is not None
    assert facts.external == ("../../secret.bin",)
    assert any("outside" in problem.reason for problem in facts.problems)


@given(st.integers(min_value=0), st.binary(max_size=6), st.integers(min_value=0))
@settings(deadline=None, max_examples=150)
def test_damaged_models_never_raise_and_say_so(at: int, junk: bytes, cut: int) -> None:
    data = nested().SerializeToString()
    at %= len(data)
    damaged = (data[:at] + junk + data[at + len(junk) :])[: len(data) - cut % 20]
    facts = read_onnx(damaged, "damaged.onnx")
    assert facts is None or all(operator.count > 0 for operator in facts.operators)


def test_a_cut_model_is_partial() -> None:
    data = nested().SerializeToString()
    facts = read_onnx(data[: len(data) - 40], "cut.onnx")
    assert facts is None or not facts.complete
    whole = read_onnx(data, "whole.onnx")
    assert whole is not None and whole.complete


def test_other_files_are_no_models() -> None:
    assert read_onnx(b"", "empty.onnx") is None
    assert read_onnx(b"MZ" + bytes(200), "exe.onnx") is None
    assert read_onnx(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12\n", "pointer.onnx") is None


def test_graphs_nested_without_end_stop_at_a_bound() -> None:
    def field(number: int, data: bytes) -> bytes:
        size, length = b"", len(data)
        while length > 127:
            size, length = size + bytes([length & 127 | 128]), length >> 7
        return bytes([number << 3 | 2]) + size + bytes([length]) + data

    graph = field(1, field(4, b"Relu"))
    for _ in range(80):
        graph = field(1, field(4, b"Loop") + field(5, field(6, graph)))
    facts = read_onnx(field(7, graph), "deep.onnx")
    assert facts is not None
    assert not facts.complete
    assert "deep" in facts.problems[0].reason


def test_a_flood_of_fields_stops_at_a_bound() -> None:
    facts = read_onnx(nested().SerializeToString() + b"\x08\x01" * 1000, "flood.onnx", Limits(entries=20))
    assert facts is not None
    assert not facts.complete
