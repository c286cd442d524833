"""A whole `zcheck app.exe` as a process: a sample, and a program of 50 modules, beside starting Python.

    python benchmarks/bench_check.py [ROUNDS]

Prints medians in seconds and the ratio to `python -c pass`, run in turn. The 50 modules are made in a folder for
temporary files: an entry that imports 25 DLLs, each of which imports another one and CUDA functions.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests")]

from pe_builder import build  # noqa: E402 - found through the line above

FUNCTIONS = ("cublasCreate_v2", "cublasSgemm_v2", "cublasSetStream_v2", "cublasDestroy_v2")


def program(folder: Path) -> Path:
    """A program of 50 modules in ``folder``; returns its entry."""
    firsts = [f"part{n:02}.dll" for n in range(25)]
    for number, name in enumerate(firsts):
        second = f"deep{number:02}.dll"
        if number < 24:
            (folder / second).write_bytes(build(dll=True, exports=["work"], imports={"cublas64_12.dll": FUNCTIONS}))
        imports = {"cublas64_12.dll": FUNCTIONS, **({second: ["work"]} if number < 24 else {})}
        (folder / name).write_bytes(build(dll=True, exports=["start"], imports=imports))
    entry = folder / "app.exe"
    entry.write_bytes(build(imports={name: ["start"] for name in firsts} | {"KERNEL32.dll": ["ExitProcess"]}))
    return entry


def seconds(*arguments: str) -> float:
    """Wall-clock seconds of one process."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = str(ROOT / "analyzer")
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], env=environment, stdout=subprocess.DEVNULL, check=False)
    return time.perf_counter() - began


def main() -> None:
    """Measure and print."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    with tempfile.TemporaryDirectory() as temporary:
        entry = program(Path(temporary))
        commands = {
            "python -c pass": ("-c", "pass"),
            "zcheck --version": ("-m", "zcheck", "--version"),
            "zcheck samples/gemm.exe": ("-m", "zcheck", str(ROOT / "samples" / "gemm.exe")),
            "zcheck, 50 modules": ("-m", "zcheck", str(entry)),
            "zcheck, 50 modules, 5 releases": (
                *("-m", "zcheck", str(entry)),
                *(f"--zluda={release}" for release in ("v4", "v5", "v6-preview.55", "v6", "v7-preview.9")),
            ),
        }
        for arguments in commands.values():
            seconds(*arguments)
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(rounds):
            for name, arguments in commands.items():
                times[name].append(seconds(*arguments))
        base = statistics.median(times["python -c pass"])
        for name, found in times.items():
            middle = statistics.median(found)
            print(f"{name:<32} {middle:6.2f} s (fastest {min(found):.2f})  {middle / base:5.1f} x python")


if __name__ == "__main__":
    main()
