"""The committed sample programs are what their table and their sources say."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pefile
import pytest

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
BINARIES = sorted(path for path in SAMPLES.rglob("*") if path.suffix in (".exe", ".dll"))
ROW = re.compile(r"^\| `([^`]+\.exe)` \| .+ \| ([a-z-]+) \|$", re.MULTILINE)
TABLE = dict(ROW.findall((SAMPLES / "README.md").read_text(encoding="utf-8")))


def imports(path: Path, directory: str) -> dict[str, set[str]]:
    """Functions by DLL name (lower case) in one import directory of a PE file."""
    with pefile.PE(str(path), fast_load=True) as pe:
        pe.parse_data_directories([pefile.DIRECTORY_ENTRY[f"IMAGE_{directory}"]])
        entries = getattr(pe, directory, [])
        return {entry.dll.decode().lower(): {symbol.name.decode() for symbol in entry.imports} for entry in entries}


def loaded(path: Path) -> dict[str, set[str]]:
    return imports(path, "DIRECTORY_ENTRY_IMPORT")


def delayed(path: Path) -> dict[str, set[str]]:
    return imports(path, "DIRECTORY_ENTRY_DELAY_IMPORT")


def sums(path: Path) -> tuple[dict[str, str], list[str]]:
    """Hashes by file name, and the versions of the tools that made the files."""
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [line.split("  ", 1) for line in lines if not line.startswith("#")]
    return {name: digest for digest, name in rows}, [line for line in lines if line.startswith("#")]


def test_every_binary_is_recorded_and_unchanged() -> None:
    recorded, tools = sums(SAMPLES / "SHA256SUMS")
    assert tools
    assert {
        path.relative_to(SAMPLES).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in BINARIES
    } == recorded


def test_every_binary_is_small() -> None:
    assert {path.name: path.stat().st_size for path in BINARIES if path.stat().st_size >= 100_000} == {}


def test_the_table_names_every_program() -> None:
    assert set(TABLE) == {path.relative_to(SAMPLES).as_posix() for path in BINARIES if path.suffix == ".exe"}


@pytest.mark.parametrize(
    ("program", "libraries"),
    [
        ("plain.exe", set()),
        ("by-name.exe", set()),
        ("driver.exe", {"nvcuda.dll"}),
        ("not-exported.exe", {"nvcuda.dll"}),
        ("x86-driver.exe", {"nvcuda.dll"}),
        ("gemm.exe", {"cudart64_12.dll", "cublas64_12.dll"}),
        ("conv.exe", {"cudart64_12.dll", "cudnn64_9.dll"}),
        ("gemm-and-conv.exe", {"cudart64_12.dll", "cublas64_12.dll", "cudnn64_9.dll"}),
        ("fft.exe", {"cudart64_12.dll", "cufft64_11.dll"}),
        ("delay-load.exe", {"cudart64_12.dll", "cublas64_12.dll"}),
        ("ppo-gemm/ppo-trainer.exe", {"torch_cpu.dll", "torch_cuda.dll"}),
        ("image-conv/image-model.exe", {"torch_cpu.dll", "torch_cuda.dll"}),
    ],
)
def test_a_program_imports_what_its_name_says(program: str, libraries: set[str]) -> None:
    assert set(loaded(SAMPLES / program)) - {"kernel32.dll", "msvcrt.dll"} == libraries


def test_the_delay_import_directory_is_a_real_one() -> None:
    assert delayed(SAMPLES / "delay-load.exe") == {"cufft64_11.dll": {"cufftPlan1d", "cufftExecC2C", "cufftDestroy"}}
    assert all(delayed(path) == {} for path in BINARIES if path.name != "delay-load.exe")


def test_machines() -> None:
    machines = {}
    for path in BINARIES:
        with pefile.PE(str(path), fast_load=True) as pe:
            machines[path.name] = pe.FILE_HEADER.Machine
    assert {name for name, machine in machines.items() if machine == 0x14C} == {"x86-driver.exe"}
    assert set(machines.values()) == {0x14C, 0x8664}


@pytest.mark.parametrize("folder", ["ppo-gemm", "image-conv"])
def test_a_libtorch_folder_is_closed(folder: str) -> None:
    """Every function that a module imports from a stand-in is exported there: the loader would find all of them."""
    exports = {}
    for path in (SAMPLES / folder).glob("*.dll"):
        with pefile.PE(str(path)) as pe:
            exports[path.name.lower()] = {symbol.name.decode() for symbol in pe.DIRECTORY_ENTRY_EXPORT.symbols}
    for path in (SAMPLES / folder).iterdir():
        for dll, functions in loaded(path).items():
            assert functions <= exports.get(dll, functions), f"{path.name} → {dll}"


def test_stand_ins_say_that_they_are() -> None:
    for path in BINARIES:
        if path.suffix == ".dll":
            with pefile.PE(str(path)) as pe:
                strings = {key: value for table in pe.FileInfo[0] for item in getattr(table, "StringTable", [])
                           for key, value in item.entries.items()}  # fmt: skip
            assert strings[b"CompanyName"] == b"The zcheck authors"
            assert b"computes nothing" in strings[b"FileDescription"]


@pytest.mark.wine
def test_a_rebuild_gives_the_same_programs(tmp_path: Path) -> None:
    """The same bytes with the same tools, the same imports with others: sources and binaries have not drifted apart."""
    for tool in ("x86_64-w64-mingw32-gcc", "i686-w64-mingw32-gcc", "ld.lld", "llvm-dlltool"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    bash = shutil.which("bash")
    assert bash is not None
    subprocess.run([bash, str(SAMPLES / "build.sh"), str(tmp_path)], check=True)
    recorded, tools = sums(SAMPLES / "SHA256SUMS")
    rebuilt, tools_here = sums(tmp_path / "SHA256SUMS")
    assert set(rebuilt) == set(recorded)
    if tools_here == tools:
        assert rebuilt == recorded
    for name in recorded:
        assert (loaded(tmp_path / name), delayed(tmp_path / name)) == (loaded(SAMPLES / name), delayed(SAMPLES / name))


@pytest.mark.parametrize("program", sorted(TABLE))
def test_the_verdict_is_that_of_the_table(program: str) -> None:
    command = [sys.executable, "-m", "zcheck", str(SAMPLES / program), "--format", "json", "--fail-on", "never"]
    environment = {**os.environ, "PYTHONPATH": str(SAMPLES.parent / "analyzer")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode in (0, 3), done.stderr
    assert [stack["verdict"] for stack in json.loads(done.stdout)["stacks"]] == [TABLE[program]]
