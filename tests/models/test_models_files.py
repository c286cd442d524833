"""GGUF, ggml, CTranslate2 and safetensors: names and shapes, and headers that lie."""

from __future__ import annotations

import io
import json
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corpus
from zcheck.model.workload import ModelFacts
from zcheck.parse.gguf import read_gguf
from zcheck.parse.safetensors import read_safetensors
from zcheck.parse.tensors import use_of


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def gguf(tensors: dict[str, tuple[int, ...]], version: int = 3, architecture: str = "llama") -> bytes:
    pairs = [
        text("general.architecture") + struct.pack("<I", 8) + text(architecture),
        text("tokens") + struct.pack("<IIQ", 9, 8, 3) + text("a") + text("b") + text("c"),
        text("scores") + struct.pack("<IIQ", 9, 6, 2) + bytes(8),
        text("flag") + struct.pack("<IB", 7, 1),
    ]
    out = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(pairs)) + b"".join(pairs)
    for name, shape in tensors.items():
        out += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape)
        out += struct.pack("<IQ", 1, 0)
    return out


def read(data: bytes) -> ModelFacts | None:
    return read_gguf(io.BytesIO(data), len(data), "model.gguf")


def test_gguf_tells_architecture_and_weights() -> None:
    shapes = {
        "token_embd.weight": (4096, 32000), "blk.0.attn_q.weight": (4096, 4096), "blk.0.ffn_up.weight": (4096, 11008),
        "blk.0.attn_norm.weight": (4096,), "v.patch_embd.weight": (14, 14, 3, 1024),
    }  # fmt: skip
    facts = read(gguf(shapes))
    assert facts is not None
    assert (facts.architecture, facts.tensors, facts.complete) == ("llama", 5, True)
    assert {group.use: group.count for group in facts.groups} == {"attention": 1, "matrix": 1, "convolution": 1}


@pytest.mark.parametrize(
    ("form", "values"),
    [("<IQQ", (3, 2**60, 1)), ("<IQQ", (3, 1, 2**60)), ("<IQQ", (77, 1, 1))],
)
def test_gguf_that_lies_about_counts_is_partial(form: str, values: tuple[int, ...]) -> None:
    facts = read(b"GGUF" + struct.pack(form, *values) + bytes(100))
    assert facts is not None
    assert not facts.complete


def test_gguf_strings_and_arrays_beyond_the_file_are_partial() -> None:
    for pair in (
        struct.pack("<Q", 2**62),
        text("k") + struct.pack("<IIQ", 9, 6, 2**61),
        text("k") + struct.pack("<I", 99),
    ):
        facts = read(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + pair)
        assert facts is not None and not facts.complete


@given(st.integers(min_value=0), st.integers(min_value=0, max_value=255), st.integers(min_value=0, max_value=80))
@settings(deadline=None, max_examples=200)
def test_damaged_gguf_never_raises(at: int, byte: int, cut: int) -> None:
    data = bytearray(gguf({"conv1.weight": (3, 3, 4, 4)}))
    data[at % len(data)] = byte
    read(bytes(data[: len(data) - cut]))


def test_older_whisper_models_and_ctranslate2_are_told_by_their_first_bytes() -> None:
    facts = read(b"lmgg" + struct.pack("<II", 51865, 1500))
    assert facts is not None and (facts.format, facts.architecture) == ("ggml", "whisper")
    spec = b"WhisperSpec\0"
    variables = b""
    for name, shape in (("encoder/conv1/weight", (512, 80, 3)), ("decoder/layer_0/attention/linear_0/weight", (8, 8))):
        raw = name.encode() + b"\0"
        variables += struct.pack("<H", len(raw)) + raw + struct.pack("<B", len(shape))
        variables += struct.pack(f"<{len(shape)}I", *shape) + b"\0" + struct.pack("<I", 4) + bytes(4)
    data = struct.pack("<IH", 6, len(spec)) + spec + struct.pack("<II", 3, 2) + variables
    facts = read(data)
    assert facts is not None
    assert (facts.format, facts.architecture, facts.tensors) == ("ctranslate2", "WhisperSpec", 2)
    assert {group.use for group in facts.groups} == {"convolution", "attention"}
    assert read(b"\x06\0\0\0\x05\0ab") is None


# --- safetensors ---------------------------------------------------------------------------------------------------


def safetensors(header: object) -> bytes:
    raw = json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw


def safe(data: bytes) -> ModelFacts | None:
    return read_safetensors(io.BytesIO(data), len(data), "model.safetensors")


def test_safetensors_tells_names_and_shapes() -> None:
    header = {
        "__metadata__": {"format": "pt"},
        "conv1.weight": {"dtype": "F32", "shape": [8, 3, 3, 3], "data_offsets": [0, 864]},
        "fc.weight": {"dtype": "F32", "shape": [10, 8], "data_offsets": [864, 1184]},
    }
    facts = safe(safetensors(header))
    assert facts is not None and facts.complete
    assert {group.use: group.example for group in facts.groups} == {
        "convolution": "conv1.weight 8x3x3x3",
        "matrix": "fc.weight 10x8",
    }


@pytest.mark.corpus
def test_a_real_checkpoint() -> None:
    path = corpus.path("silero-vad") / "silero_vad/data/silero_vad_16k.safetensors"
    data = path.read_bytes()
    facts = safe(data)
    assert facts is not None and facts.complete
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    assert facts.tensors == len(header)
    assert {group.use for group in facts.groups} == {"convolution", "rnn"}


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("<Q", 2**63) + b"{}",
        struct.pack("<Q", 10**9) + b"{}",
        struct.pack("<Q", 50) + b"{}",
        struct.pack("<Q", 6) + b'{"a":1' + b"xx",
        struct.pack("<Q", 400_000) + b'{"a":' + b"[" * 399_995,
        safetensors({"a": {"shape": "no"}}),
        safetensors({"a": 3}),
    ],
    ids=["huge", "large", "cut", "no JSON", "nested", "no shape", "no tensor"],
)
def test_headers_that_lie_are_partial(data: bytes) -> None:
    facts = safe(data)
    assert facts is not None
    assert not facts.complete


def test_other_files_are_no_safetensors() -> None:
    assert safe(b"") is None
    assert safe(b"PK\x03\x04" + bytes(50)) is None


@pytest.mark.parametrize(
    ("name", "shape", "use"),
    [
        ("conv1.weight", (64, 3, 7, 7), "convolution"),
        ("block1_conv1/kernel", (3, 3, 3, 64), "convolution"),
        ("encoder.conv1.weight", (512, 80, 3), "convolution"),
        ("experts.w1.weight", (8, 1024, 4096), None),
        ("rel_pos_table.weight", (1, 128, 512, 512), None),
        ("h.0.mlp.c_fc.weight", (768, 3072), "matrix"),
        ("embeddings.word_embeddings.weight", (30522, 768), None),
        ("model.layers.0.self_attn.k_proj.weight", (1024, 4096), "attention"),
        ("rnn.weight_hh_l0", (256, 64), "rnn"),
        ("norm.weight", (64,), None),
        ("anything.bias", (64, 64), None),
    ],
)
def test_what_a_weight_is_for(name: str, shape: tuple[int, ...], use: str | None) -> None:
    assert use_of(name, shape) == use
