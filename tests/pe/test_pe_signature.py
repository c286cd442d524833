"""The signer's name, from a signed DLL of the corpus and from files that have none."""

from __future__ import annotations

from pathlib import Path

import pytest

import corpus
from pe_builder import build
from zcheck.parse.pe import read_pe
from zcheck.parse.signature import _common_name, signer


@pytest.mark.corpus
@pytest.mark.parametrize(
    ("package", "file", "name"),
    [
        ("nvidia-cuda-runtime", "nvidia/cu13/bin/x86_64/cudart64_13.dll", "NVIDIA Corporation"),
        ("nvidia-cuda-runtime-cu12", "nvidia/cuda_runtime/bin/cudart64_12.dll", None),  # NVIDIA left this one unsigned
        ("ctranslate2", "ctranslate2/libiomp5md.dll", "Intel Corporation"),
        ("hardwaremonitor", "HardwareMonitor/lib/System.Memory.dll", ".NET"),
    ],
)
def test_signer_of_a_real_file(package: str, file: str, name: str | None) -> None:
    path = corpus.path(package) / file
    assert signer(path) == name
    assert read_pe(path).overlay_size == 0  # what follows the sections is the signature alone


@pytest.mark.corpus
def test_version_of_a_real_file() -> None:
    path = corpus.path("nvidia-cuda-runtime") / "nvidia/cu13/bin/x86_64/cudart64_13.dll"
    version = read_pe(path).version
    assert (
        version is not None
        and version.company == "NVIDIA Corporation"
        and version.original_name == "CUDART64_135_37.DLL"
    )


def test_unsigned_cut_and_missing_files(tmp_path: Path) -> None:
    path = tmp_path / "a.exe"
    assert signer(path) is None
    for raw in (b"", b"MZ", build(), build()[:300]):
        path.write_bytes(raw)
        assert signer(path) is None


def test_common_name() -> None:
    assert _common_name("C=US, O=Example, CN=Example\\, Inc., OU=x") == "Example, Inc."
    assert _common_name("O=Example") is None
