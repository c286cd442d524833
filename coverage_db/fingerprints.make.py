"""Regenerates the fingerprint tables from NVIDIA's ``nvidia-cuda-runtime*`` wheels for Windows.

    python coverage_db/fingerprints.make.py FOLDER_WITH_WHEELS

Reads ``cudart64_*.dll`` (identifier strings that a linked-in runtime brings along as well) and, from CUDA 13 on,
``cuda.lib`` (the driver loader that is linked into programs: its strings, and for each driver function the name and
version that it asks ``cuGetProcAddress`` for) and ``cudart.lib`` (the loader of the hybrid runtime, which asks the
driver's ``nvcudart_hybrid64.dll`` for runtime functions by number). Writes ``fingerprints.csv``,
``fingerprints.loader.csv``, ``fingerprints.hybrid.csv`` and ``fingerprints.files.csv`` beside itself. Formats: PE and
COFF specification, section "Archive (Library) File Format".
"""

from __future__ import annotations

import csv
import hashlib
import re
import sys
import zipfile
from collections import defaultdict
from pathlib import Path

NAME = re.compile(rb"(?<![A-Za-z0-9_])(?:cu[A-Z]|cuda[A-Z])[A-Za-z0-9_]{2,}(?=\0)")
# third and fourth argument, version and flags: movl imm, %r8d; movl imm, %r9d or leal 2(%zeroed), %r9d (else 0)
VERSION = re.compile(rb"(?s)\x41\xb8(....)")
FLAGS = re.compile(rb"(?s)\x41\xb9(....)|\x44\x8d[\x48-\x4f](.)")


def strings(data: bytes) -> set[str]:
    """Whole NUL-terminated identifiers of the CUDA naming style."""
    return {match.group().decode() for match in NAME.finditer(data)}


def members(archive: bytes) -> list[bytes]:
    """The object files of a COFF archive, linker and long-name members left out."""
    found, at = [], 8
    while archive[:8] == b"!<arch>\n" and at + 60 <= len(archive):
        header = archive[at : at + 60]
        size = int(header[48:58])
        if header[:16].rstrip() not in (b"/", b"//") and archive[at + 60 : at + 64] != b"\0\0\xff\xff":
            found.append(archive[at + 60 : at + 60 + size])
        at += 60 + size + (size & 1)
    return found


def literals(obj: bytes) -> bytes:
    """The string literals of an object file, one after the other: what a linked program keeps of its names."""
    import lief

    coff = lief.COFF.parse(list(obj))
    if not isinstance(coff, lief.COFF.Binary):
        return b""
    return b"".join(
        bytes(s.section.content) for s in coff.symbols if str(s.name).startswith("??_C@") and s.section is not None
    )


def loader_pairs(obj: bytes) -> set[tuple[str, str, int, int]]:
    """(symbol, asked name, version, flags) of each look-up in one loader object."""
    import lief

    coff = lief.COFF.parse(list(obj))
    pairs: set[tuple[str, str, int, int]] = set()
    if not isinstance(coff, lief.COFF.Binary):
        return pairs
    for section in coff.sections:
        names = [(r.address, r.symbol) for r in section.relocations if r.symbol is not None]
        code = bytes(section.content)
        slot, texts, start = "", [], 0
        for offset, symbol in sorted(names, key=lambda item: item[0]):
            name = str(symbol.name)
            if name == "pfn_driver_cuGetProcAddress":
                block = code[start : offset + 4]
                version, flags = VERSION.findall(block), FLAGS.findall(block)
                if slot and texts and version:
                    flag = int.from_bytes(flags[-1][0] or flags[-1][1], "little") if flags else 0
                    pairs.add((slot, min(texts, key=len), int.from_bytes(version[-1], "little"), flag))
                slot, texts, start = "", [], offset + 4
            elif name.startswith("pfn_"):
                slot = name[4:]
            elif name.startswith("??_C@") and symbol.section is not None:
                texts.append(bytes(symbol.section.content)[symbol.value :].split(b"\0")[0].decode())
    return pairs


HYBRID = re.compile(rb"(?s)\xb9(?P<id>....)|\xe8(?P<call>....)|\x48\x89\x05(?P<store>....)")


def hybrid_numbers(obj: bytes) -> set[tuple[int, str]]:
    """(number, function) of the hybrid runtime's loader: the number that it asks the driver's runtime DLL for."""
    import lief

    coff = lief.COFF.parse(list(obj))
    if not isinstance(coff, lief.COFF.Binary):
        return set()
    starts = {
        s.section.pointerto_raw_data: str(s.name)
        for s in coff.symbols
        if s.section is not None and s.value == 0 and str(s.name).startswith(("cuda", "__cuda"))
    }
    numbers: dict[tuple[str, int], int] = {}  # slot (symbol, offset) → number
    reads: dict[tuple[str, int], str] = {}
    for section in coff.sections:
        code = bytes(section.content)
        symbols = {r.address: str(r.symbol.name) for r in section.relocations if r.symbol is not None}
        number = asked = -1
        if any(name.lower().endswith("getfunction") for name in symbols.values()):
            for match in HYBRID.finditer(code):
                if match.lastgroup == "id":
                    number = int.from_bytes(match["id"], "little")
                elif match.lastgroup == "call" and symbols.get(match.start("call"), "").lower().endswith("getfunction"):
                    asked = number
                elif match.lastgroup == "store" and match.start("store") in symbols and asked >= 0:
                    slot = symbols[match.start("store")], int.from_bytes(match["store"], "little", signed=True)
                    numbers[slot] = asked
                    asked = -1
        function = starts.get(section.pointerto_raw_data, "")
        for address, symbol in symbols.items() if function else ():
            if symbol == "cachedFunctionPointers" and code[address - 2 : address - 1] == b"\x8b":
                reads[symbol, int.from_bytes(code[address : address + 4], "little", signed=True)] = function
    return {(numbers[slot], function) for slot, function in reads.items() if slot in numbers}


def table(path: Path, header: tuple[str, ...], rows: list[tuple[object, ...]]) -> None:
    """Write one CSV table with LF line ends."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def runs(numbers: set[int]) -> str:
    """{1, 2, 3, 7} → ``1-3 7``."""
    out: list[list[int]] = []
    for number in sorted(numbers):
        if out and out[-1][1] == number - 1:
            out[-1][1] = number
        else:
            out.append([number, number])
    return " ".join(f"{a}-{b}" if a != b else f"{a}" for a, b in out)


def main(folder: Path) -> None:
    """Read every wheel of ``folder``, write the three tables beside this file."""
    wheels = sorted(
        folder.glob("nvidia_cuda_runtime*.whl"), key=lambda p: [int(n) for n in p.name.split("-")[1].split(".")]
    )
    files: list[tuple[object, ...]] = []
    names: dict[tuple[str, str], set[int]] = defaultdict(set)
    asked: dict[tuple[str, str, int, int], set[int]] = defaultdict(set)
    hybrid: dict[tuple[int, str], set[int]] = defaultdict(set)
    for kind in ("cudart", "cudart-hybrid", "cuda.lib"):
        for wheel in wheels:
            version = wheel.name.split("-")[1]
            with zipfile.ZipFile(wheel) as package:
                for member in package.namelist():
                    base = member.rsplit("/", 1)[-1]
                    if kind == "cudart" and not re.fullmatch(r"cudart64_\d+\.dll|cudart_static\.lib", base):
                        continue
                    if kind == "cudart-hybrid" and not (base == "cudart.lib" and int(version.split(".")[0]) >= 13):
                        continue
                    if kind == "cuda.lib" and (base != "cuda.lib" or int(version.split(".")[0]) < 13):
                        continue
                    data = package.read(member)
                    number = len(files) + 1
                    digest = hashlib.sha256(data).hexdigest()
                    files.append((number, kind, version, wheel.name.split("-")[0].replace("_", "-"), base, digest))
                    library = base.endswith(".lib")
                    for part in members(data) if library else [data]:
                        for name in strings(literals(part) if library else part):
                            names[kind, name].add(number)
                        if kind == "cudart-hybrid":
                            for row in hybrid_numbers(part):
                                hybrid[row].add(number)
                        if kind == "cuda.lib":
                            for pair in loader_pairs(part):
                                asked[pair].add(number)
    here = Path(__file__).parent
    table(here / "fingerprints.files.csv", ("id", "kind", "version", "package", "file", "sha256"), files)
    table(here / "fingerprints.csv", ("kind", "name", "files"), [(*k, runs(v)) for k, v in sorted(names.items())])
    rows = [(n, name, runs(v)) for (n, name), v in sorted(hybrid.items())]
    table(here / "fingerprints.hybrid.csv", ("number", "name", "files"), rows)
    columns = ("symbol", "name", "version", "flags", "files")
    table(here / "fingerprints.loader.csv", columns, [(*k, runs(v)) for k, v in sorted(asked.items())])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
