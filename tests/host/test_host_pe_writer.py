"""The test data's own PE files, read by another tool: a mistake in the writer must not look like one in host/."""

from __future__ import annotations

from pathlib import Path

import pytest
from pe_writer import write_pe

from zcheck.parse.pe import read_pe

VERSION = {"CompanyName": "NVIDIA Corporation", "FileVersion": "12.9.1.4", "ProductName": "CUDA"}


@pytest.mark.parametrize("machine", ["x64", "x86"])
def test_lief_reads_what_was_asked_for(machine: str) -> None:
    import lief

    data = write_pe(
        "nvcuda.dll",
        imports={"amdhip64_6.dll": ["hipInit", "hipMalloc"], "KERNEL32.dll": ["ExitProcess"]},
        delay_imports={"rocblas.dll": ["rocblas_sgemm"]},
        exports=["cuInit", "cuCtxCreate_v2"],
        version=VERSION,
        machine=machine,
    )
    binary = lief.parse(data)
    assert isinstance(binary, lief.PE.Binary)
    assert {entry.name: [function.name for function in entry.entries] for entry in binary.imports} == {
        "amdhip64_6.dll": ["hipInit", "hipMalloc"],
        "KERNEL32.dll": ["ExitProcess"],
    }
    assert {entry.name: [function.name for function in entry.entries] for entry in binary.delay_imports} == {
        "rocblas.dll": ["rocblas_sgemm"]
    }
    assert sorted(entry.name for entry in binary.exported_functions) == ["cuCtxCreate_v2", "cuInit"]


def test_our_reader_agrees(tmp_path: Path) -> None:
    path = tmp_path / "nvcuda.dll"
    path.write_bytes(
        write_pe("nvcuda.dll", delay_imports={"amdhip64_7.dll": ["hipInit"]}, exports=["cuInit"], version=VERSION)
    )
    facts = read_pe(path)
    assert not facts.problems
    assert facts.machine == "x64"
    assert facts.is_dll
    assert [(entry.dll, entry.delay, entry.symbols[0].name) for entry in facts.imports] == [
        ("amdhip64_7.dll", True, "hipInit")
    ]
    assert [entry.name for entry in facts.exports] == ["cuInit"]
    assert facts.version is not None
    assert facts.version.company == "NVIDIA Corporation"
    assert facts.version.fixed_version == "12.9.1.4"
