"""Reading a PE file of 1.5 GiB: memory and time, beside pefile's own fast path in the same process.

    python benchmarks/bench_pe.py            # prints ratios; exits 1 when a bound is not kept

The file is sparse: 1.5 GiB of device code in a section of its own, as in NVIDIA's largest libraries, made in a folder
for temporary files. Bounds: under 120 MB of memory for the whole process, and under three times the time of
``pefile.PE(fast_load=True)`` with its import and delay-import directories. A second line reads a file of ordinary
size, so that a cost that grows with the file shows; a third resolves a program of 50 modules, whole.
"""

from __future__ import annotations

import functools
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "analyzer"), str(ROOT / "tests")]

from timing import median_seconds  # noqa: E402

from pe_builder import build  # noqa: E402 - found through the line above

SIZE = 1536 * 1024 * 1024
MEMORY_MB = 120
TIMES = 3.0
ROUNDS = 15
seconds = functools.partial(median_seconds, rounds=ROUNDS, warm=True)


def make(path: Path, sparse: int) -> None:
    """A library with a few thousand names and, if asked, a section of ``sparse`` zero bytes at its end."""
    names = [f"cudnnBackendFunctionWithALongName_{n}" for n in range(400)]
    raw = bytearray(
        build(
            dll=True,
            imports={"KERNEL32.dll": names, "cublas64_12.dll": names, "cublasLt64_12.dll": names},
            delay={"nvrtc64_120_0.dll": names},
            exports=[f"export_{name}" for name in names],
            version={"040904b0": {"CompanyName": "Example Ltd", "FileVersion": "1.2.3"}},
            sections=[(".nv_fatb", bytes(512), False)],
        )
    )
    header = raw.index(b".nv_fatb")
    offset = int.from_bytes(raw[header + 20 : header + 24], "little")
    if sparse:
        raw[header + 8 : header + 12] = raw[header + 16 : header + 20] = sparse.to_bytes(4, "little")
    with path.open("wb") as file:
        file.write(raw)
        if sparse:
            file.truncate(offset + sparse)


def peak_mb() -> float:
    """Highest memory use of this process so far; 0 where the system does not say."""
    try:
        import resource
    except ImportError:
        return 0.0
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / (1024 * 1024 if sys.platform == "darwin" else 1024)


def by_pefile(path: Path) -> None:
    """What others do: the header and the two import directories."""
    import pefile

    with pefile.PE(str(path), fast_load=True) as pe:
        pe.parse_data_directories(
            [
                pefile.DIRECTORY_ENTRY["IMAGE_DIRECTORY_ENTRY_IMPORT"],
                pefile.DIRECTORY_ENTRY["IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT"],
            ]
        )


def fifty_modules(folder: Path) -> None:
    """discover, parse and resolve a program of 50 modules with 200 imports each."""
    from zcheck.discover import discover
    from zcheck.parse.pe import read_pe
    from zcheck.resolve import Resolver, read_windows_dlls

    bundle = discover(folder / "app.exe")
    resolver = Resolver(bundle, "app.exe", read_windows_dlls(ROOT / "coverage_db" / "windows_dlls.csv"))
    while paths := resolver.needed():
        for path in paths:
            resolver.add(path, read_pe(folder / path))
    assert len([node for node in resolver.graph().nodes if node.origin == "bundle"]) == 50


def make_program(folder: Path) -> None:
    folder.mkdir()
    names = [f"function_number_{n}" for n in range(100)]
    for n in range(50):
        imports = {"KERNEL32.dll": names, **({f"m{n + 1}.dll": names} if n < 49 else {})}
        (folder / ("app.exe" if n == 0 else f"m{n}.dll")).write_bytes(build(imports=imports, exports=names))


def main() -> int:
    """Prints the figures; 1 when a bound is not kept."""
    from zcheck.parse.pe import read_pe

    with tempfile.TemporaryDirectory() as scratch:
        large, small = Path(scratch) / "large.dll", Path(scratch) / "small.dll"
        make(large, SIZE)
        make(small, 0)
        facts = read_pe(large)
        assert facts.size > SIZE and sum(len(item.symbols) for item in facts.imports) == 1600 and not facts.problems
        memory = peak_mb()
        ours, ours_small = seconds(lambda: read_pe(large)), seconds(lambda: read_pe(small))
        theirs = seconds(lambda: by_pefile(large))
        print(f"memory after reading 1.5 GiB: {memory:.0f} MB (bound {MEMORY_MB})")
        print(f"time over pefile's fast path: {ours / theirs:.2f} (bound {TIMES}); {ours * 1e3:.1f} ms")
        print(f"time over a file of {small.stat().st_size // 1024} KiB with the same tables: {ours / ours_small:.2f}")
        make_program(Path(scratch) / "app")
        whole = seconds(lambda: fifty_modules(Path(scratch) / "app"))
        print(
            f"discover, parse, resolve 50 modules: {whole / theirs:.1f} times pefile's one file; {whole * 1e3:.0f} ms"
        )
    return int(memory > MEMORY_MB or ours > TIMES * theirs)


if __name__ == "__main__":
    sys.exit(main())
