"""zcheck audit beside other readers of the same files, all in one run.

    python benchmarks/bench_audit.py FOLDER                  # the packages of a folder, as they are
    python benchmarks/bench_audit.py FOLDER --copies 5       # and five distinct copies of them in a temporary folder
    python benchmarks/bench_audit.py FOLDER --skip "pefile full" --skip lief
    python benchmarks/bench_audit.py --small 25000           # that many folders with four small PE files each

Each subject is a process of its own over the same list of PE files; the files are read once before, so that all find
them in memory. Printed are wall-clock seconds, processor seconds (of all processes of a subject) and the largest
memory of one process; ratios are of processor seconds where several subjects are compared on one core, of wall-clock
seconds for scaling, and on a machine that does other work only the former mean much.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SUFFIXES = (".exe", ".dll", ".pyd", ".node")
_HERE = str(Path(__file__).resolve())
SUBJECTS = ("read", "pefile fast", "pefile full", "lief", "llvm-readobj")


@dataclass
class Taken:
    """What one subject took: seconds, and megabytes of its largest process."""

    wall: float
    cpu: float
    memory: float


def files_of(folder: Path) -> list[str]:
    """The PE files below a folder, in order."""
    return sorted(str(path) for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())


def read(files: Sequence[str]) -> None:
    """One sequential read of all bytes."""
    for name in files:
        with open(name, "rb", buffering=0) as file:
            while file.read(1 << 20):
                pass


def pefile_fast(files: Sequence[str]) -> None:
    """Headers, imports and delay imports."""
    import pefile

    wanted = [pefile.DIRECTORY_ENTRY[f"IMAGE_DIRECTORY_ENTRY_{name}"] for name in ("IMPORT", "DELAY_IMPORT")]
    for name in files:
        try:
            with pefile.PE(name, fast_load=True) as pe:
                pe.parse_data_directories(wanted)
        except pefile.PEFormatError:
            continue


def pefile_full(files: Sequence[str]) -> None:
    """Everything that pefile parses."""
    import pefile

    for name in files:
        try:
            pefile.PE(name).close()
        except pefile.PEFormatError:
            continue


def lief_parse(files: Sequence[str]) -> None:
    """LIEF's default parse."""
    import lief

    lief.logging.disable()
    for name in files:
        lief.PE.parse(name)


def llvm_readobj(files: Sequence[str]) -> None:
    """One llvm-readobj a file."""
    program = shutil.which("llvm-readobj") or "llvm-readobj"
    for name in files:
        subprocess.run(
            [program, "--coff-imports", name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
        )


_FUNCTIONS = dict(zip(SUBJECTS, (read, pefile_fast, pefile_full, lief_parse, llvm_readobj), strict=True))


def measure(
    command: Sequence[str], environment: dict[str, str] | None = None, limit: float | None = None
) -> Taken | None:
    """Run a command and say what it took; None when it did not end within ``limit`` seconds."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    timer = time.monotonic() + limit if limit else None
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        if timer and time.monotonic() > timer:
            process.kill()
            os.wait4(process.pid, 0)
            process.returncode = -9
            return None
        time.sleep(0.02)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - start
    if process.returncode not in (0, 1, 3):
        raise SystemExit(f"{' '.join(map(str, command))} ended with {process.returncode}")
    return Taken(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def audit(folder: Path, cache: Path, *options: str) -> Taken:
    """One audit with the cache in that folder."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "analyzer"),
        "ZCHECK_CACHE": str(cache),
        "ZCHECK_CONFIG": "off",
    }
    taken = measure([sys.executable, "-m", "zcheck", "audit", str(folder), "-f", "json", *options], environment)
    assert taken is not None
    return taken


def subjects(folder: Path, skip: Sequence[str], limit: float, scratch: Path) -> dict[str, Taken | None]:
    """Every subject over one folder."""
    files = files_of(folder)
    size = sum(Path(name).stat().st_size for name in files)
    listed = scratch / "files.json"
    listed.write_text(json.dumps(files))
    print(f"\n{len(files)} PE files, {size / 1e9:.2f} GB; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    read(files)
    taken: dict[str, Taken | None] = {}
    for name in SUBJECTS:
        if name not in skip:
            taken[name] = measure([sys.executable, _HERE, "--subject", name, str(listed)], limit=limit)
            _say(name, taken[name])
    for name, options in (
        ("audit cold, 1 process", ["-j", "1"]),
        ("audit cold, 2 processes", ["-j", "2"]),
        ("audit warm, 1 process", ["-j", "1"]),
        ("audit cold, cluster local[2]", ["--cluster", "local[2]"]),
    ):
        if name not in skip:
            cache = scratch / "cache"
            if "cold" in name:
                shutil.rmtree(cache, ignore_errors=True)
            taken[name] = audit(folder, cache, *options)
            _say(name, taken[name])
    return taken


def _say(name: str, taken: Taken | None) -> None:
    if taken is None:
        print(f"{name:30} not over in the time given")
    else:
        print(f"{name:30} {taken.wall:8.1f} s  {taken.cpu:8.1f} s of processor  {taken.memory:6.0f} MB", flush=True)


def ratios(taken: dict[str, Taken | None]) -> None:
    """The goals, as ratios."""

    def cpu(name: str) -> float | None:
        found = taken.get(name)
        return found.cpu if found else None

    cold = cpu("audit cold, 1 process") or cpu("audit cold, 2 processes")
    warm = cpu("audit warm, 1 process")
    fast, once, full = cpu("pefile fast"), cpu("read"), cpu("pefile full")
    if cold and fast and once:
        print(f"cold over (pefile fast + one read): {cold / (fast + once):.2f}")
    if cold and full:
        print(f"pefile full over cold: {full / cold:.2f}")
    if cold and warm:
        print(f"cold over warm: {cold / warm:.1f}")
    one, two = taken.get("audit cold, 1 process"), taken.get("audit cold, 2 processes")
    if one and two:
        print(f"1 process over 2 processes, wall-clock: {one.wall / two.wall:.2f}")


def copies(folder: Path, count: int, target: Path) -> None:
    """``count`` copies of a folder, each PE file made distinct by some bytes at its end."""
    for number in range(count):
        shutil.copytree(folder, target / f"copy{number}", ignore=shutil.ignore_patterns("*.sha256"))
    for position, name in enumerate(files_of(target)):
        with open(name, "ab") as file:
            file.write(b"copy" + position.to_bytes(8, "little"))


def small(target: Path, count: int) -> None:
    """``count`` folders with a program and three libraries of about 1 KB, all distinct."""
    sys.path[:0] = [str(ROOT / "tests")]
    from pe_builder import build

    cublas = {"cublas64_12.dll": ["cublasCreate_v2", "cublasSgemm_v2"]}
    uses = [build(imports={"KERNEL32.dll": ["ExitProcess"], "a.dll": ["run"], **more}) for more in ({}, cublas)]
    library = build(dll=True, imports={"cudart64_12.dll": ["cudaMalloc", "cudaFree"]}, exports=["run"])
    for number in range(count):
        folder = target / f"group{number // 250:03}" / f"app{number:05}"
        folder.mkdir(parents=True)
        (folder / "app.exe").write_bytes(uses[number % 2] + number.to_bytes(8, "little"))
        for name in "abc":
            (folder / f"{name}.dll").write_bytes(library + name.encode() + number.to_bytes(8, "little"))


def main() -> None:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--copies", type=int, default=0)
    parser.add_argument("--small", type=int, default=0)
    parser.add_argument("--skip", action="append", default=[])
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for each of the others")
    parser.add_argument("--subject", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.subject:
        _FUNCTIONS[chosen.subject](json.loads(chosen.folder.read_text()))
        return
    with tempfile.TemporaryDirectory() as made:
        scratch = Path(made)
        if chosen.small:
            small(scratch / "small", chosen.small)
            for name in ("cold", "warm"):
                _say(f"audit {name}, 2 processes", audit(scratch / "small", scratch / "cache", "-j", "2"))
            return
        folder = chosen.folder
        if chosen.copies:
            copies(folder, chosen.copies, scratch / "copies")
            folder = scratch / "copies"
        ratios(subjects(folder, chosen.skip, chosen.limit, scratch))


if __name__ == "__main__":
    main()
