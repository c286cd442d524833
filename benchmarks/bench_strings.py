"""The string scanner against what one would write first, on the same bytes: ratios, not seconds.

    PYTHONPATH=analyzer:tests/hidden python benchmarks/bench_strings.py [FILE …]

Without a file, 64 MiB that look like a program: x86-like bytes with strings strewn in. Beside the scanner run
``fourteen finds`` (``bytes.find`` of fourteen DLL names), ``ignore case`` (one case-insensitive ``re`` over DLL names,
on the first 4 MiB) and ``one find`` (a single ``bytes.find``, near the speed of memory). The table gives bytes per
second relative to ``one find``, and the scanner's peak of Python memory beyond its tables.
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path

from name_tables import tables

from zcheck.errors import InputError
from zcheck.model.facts import PeFacts
from zcheck.parse.pe import read_pe
from zcheck.parse.strings import scan

NAMES = ("nvcuda", "cudart64", "cublas64", "cublasLt64", "cudnn64", "cufft64", "curand64", "cusparse64", "cusolver64")
NAMES += ("nvrtc64", "nvml", "nvJitLink", "nppc64", "nvjpeg64")


def made(size: int) -> bytes:
    """Bytes with the letters' and zeros' shares of x64 code, and a string every 400 bytes."""
    pick = random.Random(1)
    block = bytes(
        pick.choices(
            range(256), weights=[60 if i == 0 else 6 if i in (0x48, 0x8B, 0xFF) else 1 for i in range(256)], k=1 << 20
        )
    )
    out = bytearray(block * (size >> 20))
    words = [
        b"cuMemAlloc_v2",
        b"current environment of the document",
        b"cublas64_12.dll",
        "nvml.dll".encode("utf-16-le"),
    ]
    for at in range(4096, size - 128, 400):
        word = words[at % len(words)] if at % 4000 == 96 else pick.randbytes(4).hex().encode()
        out[at : at + len(word) + 2] = word + b"\0\0"
    return bytes(out)


def rate(size: int, work: Callable[[], object], rounds: int = 3) -> float:
    """Bytes per second of processor time, of the fastest round (other work on the machine does not count)."""
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return size / best


def count_all(data: bytes, names: list[bytes]) -> list[int]:
    """How often each name stands in the bytes."""
    return [data.count(name) for name in names]


def compare(path: Path) -> None:
    """One table for one file."""
    data = path.read_bytes()
    facts: PeFacts | None = None
    try:
        facts = read_pe(path)
    except InputError:
        facts = None
    names = tables()
    scan(path, facts, names)  # tables made ready, file cached
    folded = [name.encode() for name in NAMES]
    slow = re.compile(b"|".join(rb"(?:%s)[0-9_]*\.dll" % name for name in folded), re.IGNORECASE)
    size, head = len(data), data[: 4 << 20]
    rates = {
        "one find": rate(size, partial(data.find, b"nvcuda.dll?")),
        "scanner": rate(size, lambda: scan(path, facts, names)),
        "fourteen finds": rate(size, partial(count_all, data, folded)),
        "ignore case": rate(len(head), partial(slow.findall, head), 1),
    }
    del data, head
    tracemalloc.start()
    scan(path, facts, names)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(path.name)
    for name, value in rates.items():
        share, times = value / rates["one find"], rates["scanner"] / value
        print(f"  {name:15} {value / 1e6:8.0f} MB/s  {share:6.3f} of one find, scanner {times:5.2f} times")
    print(f"  peak {peak / 1e6:.1f} MB")


def main(arguments: list[str]) -> None:
    """Compare on the given files, or on a made one."""
    if arguments:
        for name in arguments:
            compare(Path(name))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.bin"
        path.write_bytes(made(64 << 20))
        compare(path)


if __name__ == "__main__":
    main(sys.argv[1:])
