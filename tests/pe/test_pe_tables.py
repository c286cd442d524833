"""Tables that linkers write rarely or other readers get wrong, in files made by hand and read by two others too."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from test_pe_second_opinion import by_lief, by_llvm, ours

from pe_builder import build, version_block
from zcheck.errors import InputError
from zcheck.model.base import Limits
from zcheck.model.facts import PeFacts, Symbol, VersionInfo
from zcheck.parse.pe import is_pe, read_pe, sha256
from zcheck.parse.version_info import read_version


def read(tmp_path: Path, raw: bytes, name: str = "a.exe", limits: Limits | None = None) -> PeFacts:
    path = tmp_path / name
    path.write_bytes(raw)
    return read_pe(path, limits) if limits else read_pe(path)


@pytest.mark.parametrize("machine", ["x64", "x86", "arm64"])
def test_what_the_builder_writes_is_read_alike_by_three_readers(tmp_path: Path, machine: str) -> None:
    raw = build(
        machine=machine,
        imports={"KERNEL32.dll": ["Sleep", "ExitProcess"], "ws2_32.dll": [115, "recv", 3]},
        delay={"cufft64_12.dll": ["cufftPlanMany", 9]},
        exports=["b", "a", (None, None), ("fw", "NTDLL.RtlAllocateHeap"), ("#odd", "other.#7")],
        export_name="inside.dll",
        ordinal_base=5,
    )
    facts = read(tmp_path, raw)
    assert facts.machine == machine and not facts.problems
    assert ours(facts) == by_llvm(tmp_path / "a.exe") == by_lief(tmp_path / "a.exe")
    assert [item.dll for item in facts.imports] == ["KERNEL32.dll", "ws2_32.dll", "cufft64_12.dll"]
    assert facts.imports[1].symbols[:2] == (Symbol(ordinal=115), Symbol(name="recv", hint=1))
    assert facts.export_name == "inside.dll"
    assert {e.name: (e.ordinal, e.forwarder) for e in facts.exports} == {
        "b": (5, None), "a": (6, None), None: (7, None), "fw": (8, "NTDLL.RtlAllocateHeap"), "#odd": (9, "other.#7"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("machine", "base"), [("x86", 0x40_0000), ("x64", 0x18_0000), ("x64", 0x1_8000_0000), ("x64", 0x7FF6_1234_0000)]
)
def test_delay_imports_by_virtual_address(tmp_path: Path, machine: str, base: int) -> None:
    """Attributes 0: pefile converts them for 32-bit files only, LLVM never; above 4 GiB half an address fits."""
    raw = build(machine=machine, image_base=base, delay={"x.dll": ["one", 2, "three"]}, delay_by_rva=False)
    facts = read(tmp_path, raw)
    assert not facts.problems
    assert facts.imports[0].delay and facts.imports[0].dll == "x.dll"
    assert [s.name or s.ordinal for s in facts.imports[0].symbols] == ["one", 2, "three"]


def test_names_and_counts_that_pefile_cuts(tmp_path: Path) -> None:
    """8,192 symbols, 512-byte names, characters outside of a list, one name imported twenty times."""
    many = [f"function_{n}" for n in range(20_000)]
    long = "?" + "a" * 9_000 + "@@QEAAXXZ"
    odd = ["a-b", "a b", "ünïcode", "[x]", "a,b;c", "{}"]
    raw = build(
        imports={"many.dll": many, "long.dll": [long], "odd.dll": odd, "same.dll": ["again"] * 20},
        delay={"late.dll": many},
        exports=[*many, long, *odd],
    )
    facts = read(tmp_path, raw)
    assert not facts.problems
    assert [len(item.symbols) for item in facts.imports] == [20_000, 1, 6, 20, 20_000]
    assert facts.imports[1].symbols[0].name == long
    assert [symbol.name for symbol in facts.imports[2].symbols] == odd
    assert {export.name for export in facts.exports} == {*many, long, *odd}


def test_bound_imports_keep_their_names(tmp_path: Path) -> None:
    facts = read(tmp_path, build(imports={"a.dll": ["f"]}, bound=True))
    assert facts.imports[0].bound and facts.imports[0].symbols[0].name == "f"


@pytest.mark.parametrize(
    ("limits", "word"),
    [
        (Limits(symbols=5), "more imported symbols than"),
        (Limits(dlls=1), "more than 1 imported DLLs"),
        (Limits(name_length=3), "no readable name"),
    ],
)
def test_limits_leave_a_partial_problem(tmp_path: Path, limits: Limits, word: str) -> None:
    raw = build(imports={"a.dll": ["first", "second", "third"], "b.dll": ["fourth", "fifth", "sixth"]})
    facts = read(tmp_path, raw, limits=limits)
    assert facts.partial and any(word in problem.reason for problem in facts.problems)


def test_endless_names_are_bounded_by_the_size_of_the_file(tmp_path: Path) -> None:
    """All thunks at one long name: the names of a file together are no longer than the file."""
    raw = bytearray(build(imports={"a.dll": ["x" * 30_000, *["y"] * 200_000]}))
    first = struct.pack("<Q", 0x1000)  # the thunk of the long name, at the beginning of both tables
    for table in (raw.index(first, 0x400), raw.rindex(first)):
        raw[table : table + 8 * 200_000] = first * 200_000
    facts = read(tmp_path, bytes(raw))
    assert facts.partial
    assert sum(len(symbol.name or "") for symbol in facts.imports[0].symbols) <= len(raw) + (1 << 20)


def test_version_resource_in_several_languages(tmp_path: Path) -> None:
    version = {
        "040704b0": {"CompanyName": "Beispiel GmbH", "FileDescription": "Prüfling", "ProductVersion": "2.0 β"},
        "040904b0": {
            "CompanyName": "Example Ltd",
            "ProductName": "日本語",
            "OriginalFilename": "a.exe",
            "FileVersion": "1",
        },
    }
    facts = read(tmp_path, build(version=version, fixed=(12, 4, 127, 65535)))
    assert facts.version == VersionInfo(
        company="Example Ltd", product="日本語", description="Prüfling", original_name="a.exe", file_version="1",
        product_version="2.0 β", fixed_version="12.4.127.65535",
    )  # fmt: skip


def test_a_cut_version_resource_gives_what_is_left() -> None:
    block = version_block({"040904b0": {"CompanyName": "Example Ltd", "ProductName": "P"}}, (1, 2, 3, 4))
    for end in range(len(block)):
        read_version([block[:end]])  # must not raise
    assert read_version([block[:100]]) == VersionInfo(fixed_version="1.2.3.4")
    assert read_version([b""]) is None


MANIFEST = b"""<?xml version="1.0"?><assembly xmlns="urn:schemas-microsoft-com:asm.v1"><!-- c -->
<dependency><dependentAssembly><assemblyIdentity type="win32" name="Microsoft.VC90.CRT" version="9.0.21022.8"/>
</dependentAssembly></dependency></assembly>"""


def test_manifest_names_its_assemblies(tmp_path: Path) -> None:
    assert read(tmp_path, build(manifest=MANIFEST)).manifest_assemblies == ("Microsoft.VC90.CRT",)


@pytest.mark.parametrize(
    "bad", [b"<a>", b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', b"\xff\xfe\x00", b"<a encoding='\xff'/>"]
)
def test_a_bad_manifest_is_a_problem_and_no_more(tmp_path: Path, bad: bytes) -> None:
    facts = read(tmp_path, build(imports={"a.dll": ["f"]}, manifest=bad))
    assert facts.problems and not facts.partial and facts.imports


@pytest.mark.parametrize(("flags", "any_cpu"), [(1, True), (3, False), (0, False)])
def test_dotnet(tmp_path: Path, flags: int, any_cpu: bool) -> None:
    facts = read(tmp_path, build(machine="x86", clr_flags=flags, imports={"mscoree.dll": ["_CorExeMain"]}))
    assert facts.is_dotnet and facts.any_cpu is any_cpu and facts.packer is None


def noise(count: int) -> bytes:
    """Bytes without structure, the same on every run."""
    value, out = 1, bytearray()
    for _ in range(count):
        value = (value * 6364136223846793005 + 1442695040888963407) & 0xFFFF_FFFF_FFFF_FFFF
        out.append(value >> 56)
    return bytes(out)


def test_packers(tmp_path: Path) -> None:
    few = {"KERNEL32.DLL": ["LoadLibraryA", "GetProcAddress"]}
    for section, name in (("UPX1", "UPX"), (".MPRESS1", "MPRESS"), (".vmp0", "VMProtect"), (".themida", "Themida")):
        assert read(tmp_path, build(imports=few, sections=[(section, b"\x90" * 64, True)])).packer == name
    packed = read(tmp_path, build(imports=few, sections=[(".text", noise(20_000), True)]))
    assert packed.packer == "unknown" and packed.sections[1].entropy and packed.sections[1].entropy > 7.8
    plain = b"\x48\x8b\x05\x10\x00\x00\x00\xc3\xe8\x00\x11\x22\x33" * 2_000
    assert read(tmp_path, build(imports=few, sections=[(".text", plain, True)])).packer is None
    many = {"KERNEL32.DLL": [f"f{n}" for n in range(40)]}
    assert read(tmp_path, build(imports=many, sections=[(".text", noise(20_000), True)])).packer is None
    # data that looks like noise is a picture or device code, not a packed program
    assert read(tmp_path, build(imports=few, sections=[(".rsrc2", noise(20_000), False)])).packer is None


def test_overlay(tmp_path: Path) -> None:
    raw = build(imports={"a.dll": ["f"]})
    facts = read(tmp_path, raw + b"PK\x03\x04" + bytes(100))
    assert (facts.overlay_offset, facts.overlay_size) == (len(raw), 104)
    assert read(tmp_path, raw).overlay_size == 0
    assert read(tmp_path, raw + bytes(4)).overlay_size == 0


def test_hash_and_recognition(tmp_path: Path) -> None:
    path = tmp_path / "a.exe"
    path.write_bytes(build())
    assert is_pe(path) and not is_pe(tmp_path) and not is_pe(tmp_path / "no")
    path.write_bytes(b"abc")
    assert not is_pe(path)
    assert sha256(path) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    with pytest.raises(InputError, match="no cannot be read"):
        sha256(tmp_path / "no")
