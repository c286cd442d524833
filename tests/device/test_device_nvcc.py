"""Fatbins built by nvcc: what the compiler of today writes is read, with every compression and several targets."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from zcheck.coverage.locate import open_database
from zcheck.coverage.replay import replay
from zcheck.coverage.replay_facts import release_ptx, tables_from
from zcheck.model.device_code import DeviceCodeFacts, Replay
from zcheck.parse.fatbin import read_device_code, read_payload

pytestmark = pytest.mark.nvcc

SOURCE = r"""
#include <cstdio>
#include <cuda_fp16.h>
__device__ __noinline__ float helper(float x) { return x * x + 1; }
__device__ __noinline__ int timed(int x) { return x + (int)clock64(); }
__device__ __noinline__ unsigned odd(unsigned x) {
  unsigned r; asm("lop3.b32 %0, %1, %1, %1, 0x3f;" : "=r"(r) : "r"(x)); return r; }
extern "C" __global__ void plain(float *x) { x[threadIdx.x] *= 2; }
extern "C" __global__ void calls(float *x) { x[threadIdx.x] = helper(x[0]); }
extern "C" __global__ void prints(int *x) { if (x[0] > 3) printf("%d\n", x[0]); x[1] = 2; }
extern "C" __global__ void halves(__half2 *x) { x[0] = __hfma2(x[1], x[2], x[3]); x[4] = __float2half2_rn(x[5].x); }
extern "C" __global__ void shared(float *x) { __shared__ float t[1000]; extern __shared__ float d[];
  t[threadIdx.x] = x[0]; d[threadIdx.x] = t[0]; __syncthreads(); x[1] = t[9] + d[9]; }
extern "C" __global__ void unsure(float *x) {
#if __CUDA_ARCH__ >= 900
  x[0] = 1;
#else
  __trap();
#endif
}
#ifdef ODD
extern "C" __global__ void dropped(unsigned *x) { asm("lop3.b32 %0, %0, %0, %0, 0x3f;" : "+r"(x[0])); }
#endif
#ifdef SUNK
extern "C" __global__ void clocks(int *x) { x[0] = timed(x[1]); }
#endif
#ifdef CALLER
extern "C" __global__ void caller(unsigned *x) { x[0] = odd(x[1]); }
#endif
"""
ARCHES = (
    *("-gencode", "arch=compute_75,code=sm_75"),
    *("-gencode", "arch=compute_90a,code=sm_90a"),
    *("-gencode", "arch=compute_80,code=compute_80"),
    *("-gencode", "arch=compute_90,code=compute_90"),
)

KERNELS = {"plain", "calls", "prints", "halves", "shared", "unsure"}


@pytest.fixture(scope="module")
def nvcc() -> str:
    found = shutil.which("nvcc")
    if found is None:
        if os.environ.get("CI"):
            pytest.fail("nvcc is missing")
        pytest.skip("nvcc is missing")
    return found


@pytest.fixture(scope="module")
def several(nvcc: str, tmp_path_factory: pytest.TempPathFactory) -> DeviceCodeFacts:
    """A fatbin of two PTX and two cubins."""
    return read_device_code(build(nvcc, tmp_path_factory.mktemp("several"), "-fatbin", *ARCHES))


def build(nvcc: str, folder: Path, *options: str, name: str = "a.fatbin") -> Path:
    source = folder / "a.cu"
    source.write_text(SOURCE)
    done = subprocess.run([nvcc, *options, "-o", name, "a.cu"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / name


def on(code: DeviceCodeFacts, tag: str) -> Replay:
    return replay(code, release_ptx(tables_from(open_database()), tag))


@pytest.mark.parametrize("mode", ["none", "speed", "size"])
def test_entries(nvcc: str, tmp_path: Path, mode: str) -> None:
    file = build(nvcc, tmp_path, "-fatbin", f"--compress-mode={mode}", *ARCHES)
    code = read_device_code(file)
    (container,) = code.containers
    kinds = sorted((entry.kind, entry.arch) for entry in container.entries)
    assert kinds == [("ptx", "sm_80"), ("ptx", "sm_90"), ("sass", "sm_75"), ("sass", "sm_90a")]
    for entry in container.entries:
        assert entry.problem is None
        assert set(entry.kernels) == KERNELS, (entry.kind, entry.arch)
    packed = {entry.compression for entry in container.entries if entry.kind == "ptx"}
    assert packed == {{"none": "none", "speed": "lz4"}.get(mode, "zstd")}
    texts = [entry for entry in container.entries if entry.kind == "ptx"]
    assert all(read_payload(file, entry).startswith((b"//", b"\n", b".version")) for entry in texts)
    facts = texts[0].ptx
    assert facts is not None
    by_name = {function.name: function for function in facts.functions}
    assert by_name["shared"].shared == 4000
    assert facts.extern_shared
    assert by_name["calls"].calls
    assert "vprintf" in by_name["prints"].calls


def test_lto_ir(nvcc: str, tmp_path: Path) -> None:
    file = build(nvcc, tmp_path, "-fatbin", "-dc", "-gencode", "arch=compute_80,code=lto_80")
    (container,) = read_device_code(file).containers
    assert [(entry.kind, entry.arch) for entry in container.entries] == [("ltoir", "sm_80")]


def test_loose_outputs(nvcc: str, tmp_path: Path) -> None:
    text = read_device_code(build(nvcc, tmp_path, "-ptx", "-arch=compute_80", name="a.ptx"))
    binary = read_device_code(build(nvcc, tmp_path, "-cubin", "-arch=sm_90", name="a.cubin"))
    assert set(text.loose[0].kernels) == set(binary.loose[0].kernels) == KERNELS
    assert (text.loose[0].arch, binary.loose[0].arch) == ("sm_80", "sm_90")


def test_line_information_hides_no_statement(nvcc: str, tmp_path: Path) -> None:
    """``.loc`` has no end of its own, so the statement behind it is easily missed."""
    plain = read_device_code(build(nvcc, tmp_path, "-ptx", "-arch=compute_80", name="a.ptx")).loose[0].ptx
    lines = read_device_code(build(nvcc, tmp_path, "-ptx", "-lineinfo", "-arch=compute_80", name="b.ptx")).loose[0].ptx
    assert plain is not None
    assert lines is not None
    assert set(plain.statements) == set(lines.statements)
    assert [f.name for f in plain.functions] == [f.name for f in lines.functions]


def test_host_executable(nvcc: str, tmp_path: Path) -> None:
    """The same containers inside of an ELF file, found without its section table."""
    (tmp_path / "a.cu").write_text(SOURCE + "int main() { return 0; }")
    done = subprocess.run(
        [nvcc, *ARCHES, "-cudart", "none", "-c", "-o", "a.o", "a.cu"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    code = read_device_code(tmp_path / "a.o")
    assert code.form == "elf"
    assert [len(container.entries) for container in code.containers] == [4]


@pytest.mark.parametrize(("tag", "chosen"), [("v5", 0), ("v6", 1), ("v7-preview.9", 1)])
def test_replay(several: DeviceCodeFacts, tag: str, chosen: int) -> None:
    (one,) = on(several, tag).containers
    texts = [index for index, entry in enumerate(several.containers[0].entries) if entry.kind == "ptx"]
    assert one.chosen == texts[chosen]
    # In the text for sm_80 the last kernel only traps; v5 takes whatever comes first.
    fates = {fate.name: fate.fate for fate in one.fates}
    assert (fates.get("unsure") == "stub") is (several.containers[0].entries[one.chosen].arch == "sm_80")
    if tag != "v5":
        assert set(fates) <= {"unsure"}


def test_function_dropped_and_load_sunk(nvcc: str, tmp_path: Path) -> None:
    def built(define: str) -> Replay:
        code = read_device_code(build(nvcc, tmp_path, "-fatbin", "-arch=compute_90", "-code=compute_90", define))
        return on(code, "v6")

    dropped = built("-DODD").containers[0]
    assert {fate.name: fate.fate for fate in dropped.fates} == {"dropped": "dropped"}
    assert dropped.fates[0].statement == "lop3.b32"
    sunk = built("-DSUNK")
    assert sunk.load_fails == "reads %clock64, which the release does not know"
    assert sunk.lost == len(KERNELS) + 1
    caller = built("-DCALLER")
    assert "which was dropped: unknown instruction lop3.b32" in (caller.load_fails or "")
