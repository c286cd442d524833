"""What a file is taken for, by its name alone: nothing is opened while walking."""

from __future__ import annotations

import re

from zcheck.model.bundle import FileKind

PROGRAMS = (".exe", ".scr")
LIBRARIES = (".pyd", ".node", ".dll")
_SUFFIXES: dict[FileKind, tuple[str, ...]] = {
    "pe": (
        *PROGRAMS, *LIBRARIES, ".ocx", ".cpl", ".ax", ".asi", ".xll", ".drv", ".vst3", ".aex", ".ofx", ".mexw64",
        ".mexw32", ".8bf",
    ),
    "script": (
        ".py", ".pyw", ".bat", ".cmd", ".ps1", ".vpy", ".js", ".mjs", ".cjs", ".ts", ".lua", ".jl", ".m", ".sh", ".cu",
        ".cuh",
    ),
    "model": (
        ".onnx", ".pt", ".pth", ".ptl", ".jit", ".torchscript", ".safetensors", ".gguf", ".ggml", ".ckpt", ".engine",
        ".plan", ".trt", ".tflite", ".pb", ".h5", ".keras", ".pdmodel",
    ),
    "device-code": (".ptx", ".cubin", ".fatbin", ".ltoir", ".optixir", ".hsaco", ".co", ".hipfb"),
    "archive": (
        ".zip", ".whl", ".7z", ".rar", ".tar", ".gz", ".tgz", ".xz", ".zst", ".cab", ".msi", ".asar", ".pak", ".pyz",
        ".jar", ".nupkg", ".egg", ".pkg",
    ),
    "metadata": (".manifest", ".config", "._pth", ".pth_", ".toml", ".cfg", ".ini"),
}  # fmt: skip
_BY_SUFFIX: dict[str, FileKind] = {suffix: kind for kind, suffixes in _SUFFIXES.items() for suffix in suffixes}
_METADATA_NAMES = {
    "metadata", "record", "wheel", "pkg-info", "top_level.txt", "entry_points.txt", "package.json", "config.json",
    "requirements.txt", "pyvenv.cfg", "environment.yml", "environment.yaml", "version.txt", "model_index.json",
}  # fmt: skip
# Models whose suffix says nothing: Hugging Face's and CTranslate2's, whisper.cpp's.
_MODEL_BIN = re.compile(r"(ggml[-_.].*|([a-z_]*pytorch_)?model([-_.]\d+)?(-of-\d+)?)\.bin")
_METADATA_ENDS = (".deps.json", ".runtimeconfig.json", ".exe.config")


def kind_of(name: str) -> FileKind | None:
    """The kind of a file by its name, or None for a file that tells nothing."""
    lower = name.lower()
    if lower in _METADATA_NAMES or lower.endswith(_METADATA_ENDS):
        return "metadata"
    if lower.endswith(".bin"):
        return "model" if _MODEL_BIN.fullmatch(lower) else None
    return _BY_SUFFIX.get("." + lower.rpartition(".")[2]) if "." in lower else None
