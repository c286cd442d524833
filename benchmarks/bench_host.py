"""How long reading a PC of 20,000 files takes, beside walking the same folder with os.walk and stat.

    python benchmarks/bench_host.py [--files 20000] [--rounds 5]

Prints medians in milliseconds and their ratio. The PC is a faked root: two HIP SDKs with Tensile files, a ZLUDA folder,
System32 and programs; DLLs are the test data's real PE files.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(CHECKOUT / "analyzer"), str(CHECKOUT / "tests" / "host")]

import pcs  # noqa: E402 (needs the path)
from timing import median_ms  # noqa: E402

from zcheck.host import read_host  # noqa: E402
from zcheck.parse.pe import read_pe  # noqa: E402

GFX = ("gfx1030", "gfx1100", "gfx1101", "gfx1102", "gfx1200", "gfx1201")


def fill(root: Path, files: int) -> int:
    """Add kernel files, system files and programs until the root holds ``files`` files; returns how many it holds."""
    count = sum(len(names) for _, _, names in os.walk(root))
    library = root / "Program Files" / "AMD" / "ROCm" / "6.4" / "bin" / "rocblas" / "library"
    groups = [
        (library, "TensileLibrary_Type_HH_Contraction_{0}_{1}.co", files // 5),
        (root / "Windows" / "System32", "system{0}.dll", files // 4),
        (root / "Program Files" / "Programs", "{1}/file{0}.bin", files),
    ]
    for folder, pattern, most in groups:
        for number in range(most):
            if count >= files:
                return count
            path = folder / pattern.format(number, GFX[number % len(GFX)])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            count += 1
    return count


def walk(root: Path) -> int:
    """The yardstick: visit every file once and ask for its size."""
    total = 0
    for folder, _, names in os.walk(root):
        for name in names:
            total += os.stat(f"{folder}/{name}").st_size  # noqa: PTH116 (a Path each would slow the yardstick down)
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    tables, exports = pcs.tables(), pcs.exports()
    with tempfile.TemporaryDirectory() as folder:
        root = pcs.build(Path(folder) / "pc", {"sdks": [{"version": "6.4"}, {"version": "6.2"}], "path": [r"C:\zluda"]})
        count = fill(root, options.files)
        walked = median_ms(lambda: walk(root), options.rounds, warm=True)
        read = median_ms(
            lambda: read_host(root, read_pe=read_pe, tables=tables, exports=lambda: exports), options.rounds, warm=True
        )
    print(f"{count} files: os.walk and stat {walked:.0f} ms, read_host {read:.0f} ms, ratio {read / walked:.2f}")


if __name__ == "__main__":
    main()
