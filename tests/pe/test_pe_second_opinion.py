"""Two other readers look at every PE file of the corpus: each imported, delayed and exported name has to be the same.

A cap, a dropped character, a wrong address rule or a lost descriptor in our tables makes one of these differ.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import corpus
from zcheck.model.facts import PeFacts
from zcheck.parse.pe import is_pe, read_pe

SUFFIXES = (".dll", ".exe", ".pyd", ".node")
PACKAGES = [row.name for row in corpus.PACKAGES if row.ci and "win" in f"{row.platform}{row.name}" and row.programs]
Names = Counter[tuple[str, str, str]]


def files(package: str) -> list[Path]:
    found = [path for path in sorted(corpus.path(package).rglob("*")) if path.suffix.lower() in SUFFIXES]
    return [path for path in found if is_pe(path)]


def ours(facts: PeFacts) -> Names:
    names: Names = Counter()
    for item in facts.imports:
        kind = "delay" if item.delay else "import"
        for symbol in item.symbols:
            names[kind, item.dll, symbol.name if symbol.name is not None else f"#{symbol.ordinal}"] += 1
    for export in facts.exports:
        names["export", "", export.name or f"#{export.ordinal}"] += 1
    return names


def by_llvm(path: Path) -> Names:
    tool = shutil.which("llvm-readobj")
    if tool is None:
        if os.environ.get("CI"):
            pytest.fail("llvm-readobj is missing")
        pytest.skip("llvm-readobj is not installed")
    done = subprocess.run([tool, "--coff-imports", "--coff-exports", str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    names: Names = Counter()
    kind = dll = ""
    ordinal = name = ""
    for line in done.stdout.splitlines():
        word, _, value = line.strip().partition(": ")
        if line in ("Import {", "DelayImport {", "Export {"):
            kind = {"Import {": "import", "DelayImport {": "delay", "Export {": "export"}[line]
        elif kind == "export" and word == "Ordinal":
            ordinal = value
        elif kind == "export" and line.strip().startswith("Name:"):
            name = value
        elif kind == "export" and (value != "0x0" or word != "RVA"):
            # LLVM lists the empty slots of the address table too; there is nothing in them to link to.
            if word in ("RVA", "ForwardedTo"):
                names["export", "", name or f"#{ordinal}"] += 1
        elif kind != "export" and word == "Name":
            dll = value
        elif kind != "export" and word == "Symbol":
            match = re.fullmatch(r"(.*) \((\d+)\)", value)
            assert match, line
            names[kind, dll, match[1] or f"#{match[2]}"] += 1
    return names


def by_lief(path: Path) -> Names:
    import lief

    config = lief.PE.ParserConfig()
    config.parse_signature = config.parse_reloc = config.parse_rsrc = False
    binary = lief.PE.parse(str(path), config)
    assert binary is not None
    names: Names = Counter()
    for kind, items in (("import", binary.imports), ("delay", binary.delay_imports)):
        for item in items:
            for entry in item.entries:
                names[kind, str(item.name), f"#{entry.ordinal}" if entry.is_ordinal else str(entry.name)] += 1
    table = binary.get_export()
    for entry in table.entries if table else ():
        if entry.name or entry.address or entry.is_forwarded:
            names["export", "", str(entry.name) or f"#{entry.ordinal}"] += 1
    return names


def strings_by_pefile(path: Path) -> tuple[set[tuple[str, str]], str]:
    """Strings of the version resource and the fixed version."""
    import pefile

    with pefile.PE(str(path), fast_load=True) as pe:
        pe.parse_data_directories([pefile.DIRECTORY_ENTRY["IMAGE_DIRECTORY_ENTRY_RESOURCE"]])
        found: set[tuple[str, str]] = set()
        for block in getattr(pe, "FileInfo", []):
            for part in block:
                for table in getattr(part, "StringTable", []):
                    found |= {(key.decode(), value.decode().strip()) for key, value in table.entries.items()}
        fixed = getattr(pe, "VS_FIXEDFILEINFO", None)
        if not fixed:
            return found, ""
        high, low = fixed[0].FileVersionMS, fixed[0].FileVersionLS
        return found, f"{high >> 16}.{high & 0xFFFF}.{low >> 16}.{low & 0xFFFF}"


@pytest.mark.corpus
def test_pefile_reads_the_same_version_strings() -> None:
    seen = 0
    for package in PACKAGES:
        for path in files(package):
            if path.stat().st_size > 20_000_000:
                continue
            version = read_pe(path).version
            strings, fixed = strings_by_pefile(path)
            assert (version.fixed_version if version else "") == fixed, path
            ours_here = (version.company, version.product, version.file_version) if version else ("", "", "")
            for key, value in zip(("CompanyName", "ProductName", "FileVersion"), ours_here, strict=True):
                theirs = {text for name, text in strings if name == key}
                assert value in theirs or (not value and not any(theirs)), path
            seen += bool(version)
    assert seen >= 15


@pytest.mark.corpus
@pytest.mark.parametrize("package", PACKAGES)
def test_llvm_and_lief_read_the_same_names(package: str) -> None:
    paths = files(package)
    assert paths
    for path in paths:
        facts = read_pe(path)
        assert not facts.problems, path
        names = ours(facts)
        assert names == by_llvm(path), f"llvm-readobj reads {path.name} differently"
        assert names == by_lief(path), f"LIEF reads {path.name} differently"
