"""Device code: what reading and replaying costs, as ratios against something run beside it in the same process.

    python benchmarks/bench_device.py [FILE …] [--cuobjdump PATH] [--release TAG] [--repeat N] [--json]

Without FILE: the programs of the corpus (tests/corpus.py). Measured for all files together, best of N each:

* listing of all containers, against one sequential ``find`` of the magic over the same 8 MiB reads;
* reading PTX and replaying a release, in MB of PTX a second, against a bare loop over the same text's statements;
* the PTX entries alone, unpacked, read and replayed, against the same from the cache of contents (which is keyed by a
  hash of the stored bytes), and so with the whole files (where machine code has to be hashed too);
* NVIDIA's cuobjdump on the same containers, carved out before (listing, and extraction of all PTX);
* peak memory of a process that only lists (Linux).

Times are processor seconds, so that other work on the machine spoils them less.

Targets: listing at most 3 times the bare find; PTX at 30 MB/s or more; cached at least 20 times faster; 150 MB.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "analyzer"), str(ROOT / "tests")]

from zcheck.coverage.locate import open_database  # noqa: E402
from zcheck.coverage.replay import replay  # noqa: E402
from zcheck.coverage.replay_facts import release_ptx, tables_from  # noqa: E402
from zcheck.parse.fatbin import WINDOW, read_device_code, read_payload  # noqa: E402
from zcheck.parse.fatbin_entries import CONTAINER_MAGIC  # noqa: E402
from zcheck.parse.ptx import read_ptx  # noqa: E402

CORPUS = (
    ("ctransformers", "ctransformers/lib/cuda/ctransformers.dll"),
    ("vapoursynth-dfttest2-cuda", "vapoursynth/plugins/dfttest2_cuda/dfttest2_cuda.dll"),
    ("bitsandbytes", "bitsandbytes/libbitsandbytes_cuda132.dll"),
    ("ctranslate2", "ctranslate2/ctranslate2.dll"),
    ("xgboost", "xgboost/lib/xgboost.dll"),
)
# A statement: a word with dots, then anything up to the semicolon.
STATEMENT = re.compile(rb"([a-z][\w.:]*)\s+([^;]*);")


class Memory(dict[str, bytes]):
    """A cache of contents in memory."""

    def put(self, key: str, value: bytes) -> None:
        self[key] = value


def best(repeat: int, work: Callable[[], object]) -> float:
    """Processor seconds of the fastest of ``repeat`` runs: what one core does when it is left alone."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def bare_find(files: list[Path]) -> int:
    hits = 0
    for file in files:
        with file.open("rb") as handle:
            while data := handle.read(WINDOW):
                at = data.find(CONTAINER_MAGIC)
                while at >= 0:
                    hits += 1
                    at = data.find(CONTAINER_MAGIC, at + 4)
    return hits


def bare_loop(texts: list[bytes]) -> int:
    """Every statement's dotted name, counted: the least that a reader of statements does."""
    seen: dict[bytes, int] = {}
    for text in texts:
        for match in STATEMENT.finditer(text):
            name = match.group(1)
            seen[name] = seen.get(name, 0) + 1
    return len(seen)


def peak_of_listing(files: list[Path]) -> float:
    """MB of memory that a fresh process takes to list the files (Linux)."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from zcheck.parse.fatbin import read_device_code\n"
        "for f in sys.argv[2:]: read_device_code(f, contents=False)\n"
        # Not getrusage: its peak begins with the parent's memory.
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    command = [sys.executable, "-c", code, str(ROOT / "analyzer"), *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout) * 1024 / 1e6


def carve_ptx(file: Path, target: Path) -> Path:
    """A fatbin file of the same containers with their PTX entries only."""
    data, out = file.read_bytes(), []
    for container in read_device_code(file, contents=False).containers:
        entries = [e for e in container.entries if e.kind == "ptx"]
        body = b"".join(data[e.header : e.offset + (e.stored + 7) // 8 * 8] for e in entries)
        out.append(struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body)
    target.write_bytes(b"".join(out))
    return target


def child_seconds(command: list[Path | str], folder: Path) -> float:
    """Processor seconds of a child process."""
    before = os.times()
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    after = os.times()
    return after.children_user - before.children_user + after.children_system - before.children_system


def cuobjdump_times(tool: Path, files: list[Path]) -> tuple[float, float]:
    """Processor seconds of cuobjdump over all containers: its listing, and its extraction of all PTX."""
    listing = extraction = 0.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, file in enumerate(files):
            data = file.read_bytes()
            for container in read_device_code(file, contents=False).containers:
                carved = folder / f"{number}-{container.offset}.fatbin"
                carved.write_bytes(data[container.offset : container.offset + container.size])
                listing += child_seconds([tool, carved], folder)
                extraction += child_seconds([tool, "-all", "-xptx", "all", carved], folder)
                carved.unlink()
    return listing, extraction


def measure(files: list[Path], release: str, repeat: int, tool: Path | None) -> dict[str, float]:
    facts = release_ptx(tables_from(open_database()), release)
    codes = [read_device_code(file) for file in files]
    texts = [
        read_payload(file, entry)
        for file, code in zip(files, codes, strict=True)
        for container in code.containers
        for entry in container.entries
        if entry.kind == "ptx" and entry.problem is None
    ]
    megabytes = sum(map(len, texts)) / 1e6
    result = {"files_mb": sum(file.stat().st_size for file in files) / 1e6, "ptx_mb": megabytes}
    result["find_s"] = best(repeat, lambda: bare_find(files))
    result["list_s"] = best(repeat, lambda: [read_device_code(file, contents=False) for file in files])
    result["list_to_find"] = result["list_s"] / result["find_s"]
    result["list_peak_mb"] = peak_of_listing(files)
    result["loop_s"] = best(repeat, lambda: bare_loop(texts))
    read = best(repeat, lambda: [read_ptx(text) for text in texts])
    replayed = best(repeat, lambda: [replay(code, facts) for code in codes])
    result |= {"read_ptx_s": read, "replay_s": replayed}
    result["loop_mb_s"] = megabytes / result["loop_s"]
    result["ptx_mb_s"] = megabytes / (read + replayed)
    result["ptx_to_loop"] = (read + replayed) / result["loop_s"]
    with tempfile.TemporaryDirectory() as name:
        only = [carve_ptx(file, Path(name) / f"{number}.fatbin") for number, file in enumerate(files)]
        result["ptx_first_s"] = best(repeat, lambda: [replay(read_device_code(file), facts) for file in only])
        kept = Memory()
        for file in only:
            read_device_code(file, cache=kept)
        result["ptx_cached_s"] = best(repeat, lambda: [replay(read_device_code(f, cache=kept), facts) for f in only])
        result["ptx_first_to_cached"] = result["ptx_first_s"] / result["ptx_cached_s"]
    result["first_s"] = best(repeat, lambda: [replay(read_device_code(file), facts) for file in files])
    cache = Memory()
    for file in files:
        read_device_code(file, cache=cache)
    result["cached_s"] = best(repeat, lambda: [replay(read_device_code(file, cache=cache), facts) for file in files])
    result["first_to_cached"] = result["first_s"] / result["cached_s"]
    if tool is not None:
        result["cuobjdump_list_s"], result["cuobjdump_ptx_s"] = cuobjdump_times(tool, files)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--cuobjdump", type=Path)
    parser.add_argument("--release", default="v6")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    files, tool = arguments.files, arguments.cuobjdump
    if not files:
        import corpus

        files = [corpus.path(name) / path for name, path in CORPUS]
        if tool is None and sys.platform == "linux":
            tool = corpus.path("nvidia-cuda-cuobjdump") / "nvidia/cu13/bin/cuobjdump"
            tool.chmod(0o755)
    result = measure(files, arguments.release, arguments.repeat, tool)
    if arguments.json:
        print(json.dumps(result, indent=2))
        return
    for key, value in result.items():
        print(f"{key:20} {value:10.3f}")


if __name__ == "__main__":
    main()
