"""How programs in one file, launchers and self-extractors are told, as a table of signs.

A sign is bytes at a known place. Sources of the signs are named in each row's ``source``.
"""

from __future__ import annotations

from typing import BinaryIO, Literal, NamedTuple

from zcheck.model.facts import PeFacts
from zcheck.model.hidden import MemberLimitation

Where = Literal["overlay", "tail", "resources", "data", "section"]
_OVERLAY = 1 << 20
_TAIL = 1 << 16
_DATA = 16 << 20

_UNPACK_7Z = "unpack it with 7-Zip and run zcheck on the folder"
_INSTALL = "install it, or unpack it with a tool for this installer, and run zcheck on the folder"
_FOLDER = "run zcheck on the folder that the program runs from"


class Sign(NamedTuple):
    """``form`` as reported; ``kind`` of limitation; ``what`` completes "this is …"."""

    form: str
    tool: str
    where: Where
    bytes: bytes
    kind: Literal["one-file-archive", "script-launcher", "self-extractor"]
    what: str
    way_on: str
    source: str


SIGNS: tuple[Sign, ...] = (
    Sign(
        "nsis",
        "NSIS",
        "overlay",
        b"\xef\xbe\xad\xdeNullsoftInst",
        "self-extractor",
        "an NSIS installer",
        _UNPACK_7Z,
        "kichik/nsis: Source/exehead/fileform.h (firstheader)",
    ),
    Sign(
        "7z-self-extractor",
        "7-Zip",
        "overlay",
        b"7z\xbc\xaf\x27\x1c",
        "self-extractor",
        "a 7-Zip self-extractor",
        _UNPACK_7Z,
        "7-Zip SDK: DOC/7zFormat.txt (SignatureHeader)",
    ),
    Sign(
        "rar-self-extractor",
        "WinRAR",
        "overlay",
        b"Rar!\x1a\x07",
        "self-extractor",
        "a RAR self-extractor",
        _UNPACK_7Z,
        "RAR technical note: archive signature",
    ),
    Sign(
        "inno-setup",
        "Inno Setup",
        "overlay",
        b"Inno Setup Setup Data (",
        "self-extractor",
        "an Inno Setup installer",
        "unpack it with innoextract, or install it, and run zcheck on the folder",
        "jrsoftware/issrc: Projects/Src/Shared.Struct.pas (SetupID)",
    ),
    Sign(
        "inno-setup",
        "Inno Setup",
        "resources",
        b"rDlPtS",
        "self-extractor",
        "an Inno Setup installer",
        "unpack it with innoextract, or install it, and run zcheck on the folder",
        "jrsoftware/issrc: Projects/Src/Shared.Struct.pas (SetupLdrOffsetTableID)",
    ),
    Sign(
        "wix-burn",
        "WiX Burn",
        "section",
        b".wixburn",
        "self-extractor",
        "a WiX bundle",
        _INSTALL,
        "wixtoolset/wix: src/burn/engine/section.cpp",
    ),
    Sign(
        "cabinet-self-extractor",
        "IExpress",
        "resources",
        b"MSCF\0\0\0\0",
        "self-extractor",
        "a self-extractor with a cabinet file",
        _UNPACK_7Z,
        "Microsoft Cabinet Format (CFHEADER)",
    ),
    Sign(
        "py2exe",
        "py2exe",
        "resources",
        "PYTHONSCRIPT".encode("utf-16-le"),
        "one-file-archive",
        "a Python program made by py2exe",
        _FOLDER,
        "py2exe/py2exe: py2exe/runtime.py (resource PYTHONSCRIPT)",
    ),
    Sign(
        "cx-freeze",
        "cx_Freeze",
        "data",
        "library.dat".encode("utf-16-le"),
        "script-launcher",
        "the start program of a Python application made by cx_Freeze",
        _FOLDER,
        "marcelotduarte/cx_Freeze: source/bases/_common.c",
    ),
    Sign(
        "python-launcher",
        "setuptools",
        "data",
        b"Fatal error in launcher:",
        "script-launcher",
        "a launcher that runs the Python script beside or behind it",
        "run zcheck on the folder of the Python environment",
        "pypa/distlib: PC/launcher.c",
    ),
    Sign(
        "python-launcher",
        "uv",
        "resources",
        "UV_TRAMPOLINE_KIND".encode("utf-16-le"),
        "script-launcher",
        "a launcher that runs a Python script",
        "run zcheck on the folder of the Python environment",
        "astral-sh/uv: crates/uv-trampoline (README.md, src/bounce.rs)",
    ),
    Sign(
        "java-launcher",
        "Launch4j",
        "data",
        b"launch4j.log",
        "script-launcher",
        "a launcher for a Java program",
        "run zcheck on the folder with its jar files and native libraries",
        "launch4j: head_src/head.c",
    ),
    Sign(
        "java-launcher",
        "JLI",
        "data",
        b"JLI_Launch",
        "script-launcher",
        "a launcher for a Java program",
        "run zcheck on the folder with its jar files and native libraries",
        "openjdk/jdk: src/java.base/share/native/launcher",
    ),
    Sign(
        "node-single-file",
        "Node.js",
        "data",
        b"NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2:1",
        "one-file-archive",
        "a Node.js program in one file",
        _FOLDER,
        "nodejs/node: doc/api/single-executable-applications.md",
    ),
    Sign(
        "node-single-file",
        "nexe",
        "tail",
        b"<nexe~~sentinel>",
        "one-file-archive",
        "a Node.js program in one file",
        _FOLDER,
        "nexe/nexe: src/compiler.ts",
    ),
    Sign(
        "bun-single-file",
        "Bun",
        "tail",
        b"\n---- Bun! ----\n",
        "one-file-archive",
        "a Bun program in one file",
        _FOLDER,
        "oven-sh/bun: src/StandaloneModuleGraph.zig",
    ),
    Sign(
        "deno-single-file",
        "Deno",
        "tail",
        b"d3n0l4nd",
        "one-file-archive",
        "a Deno program in one file",
        _FOLDER,
        "denoland/deno: cli/standalone/binary.rs",
    ),
    Sign(
        "autoit",
        "AutoIt",
        "overlay",
        b"AU3!EA06",
        "script-launcher",
        "an AutoIt script",
        _FOLDER,
        "signature of compiled AutoIt 3 scripts",
    ),
    Sign(
        "autoit",
        "AutoIt",
        "resources",
        b"AU3!EA06",
        "script-launcher",
        "an AutoIt script",
        _FOLDER,
        "signature of compiled AutoIt 3 scripts",
    ),
    Sign(
        "autohotkey",
        "AutoHotkey",
        "resources",
        ">AUTOHOTKEY SCRIPT<".encode("utf-16-le"),
        "script-launcher",
        "an AutoHotkey script",
        _FOLDER,
        "AutoHotkey/AutoHotkey: source/script.cpp (resource name)",
    ),
)


def sign_of(file: BinaryIO, facts: PeFacts) -> Sign | None:
    """The first sign of the table that the program bears, or None; a DLL is no launcher and bears none."""
    if facts.is_dll:
        return None
    places: dict[str, list[bytes]] = {}
    for sign in SIGNS:
        if sign.where == "section":
            if any(section.name.encode("latin-1", "replace") == sign.bytes for section in facts.sections):
                return sign
            continue
        if sign.where not in places:
            places[sign.where] = _read(file, facts, sign.where)
        if any(sign.bytes in data for data in places[sign.where]):
            return sign
    return None


def limitation(sign: Sign) -> MemberLimitation:
    """What a sign keeps from being seen, and the way on."""
    return MemberLimitation(sign.kind, f"this is {sign.what}", sign.way_on)


def _read(file: BinaryIO, facts: PeFacts, where: Where) -> list[bytes]:
    if where == "overlay":
        ranges = [(facts.overlay_offset, min(facts.overlay_size, _OVERLAY))] if facts.overlay_size else []
    elif where == "tail":
        start = max(facts.overlay_offset, facts.size - _TAIL) if facts.overlay_size else facts.size - _TAIL
        ranges = [(max(0, start), _TAIL)]
    elif where == "resources":
        ranges = [(s.offset, min(s.size, _DATA)) for s in facts.sections if s.name == ".rsrc"]
    else:
        # strings of the start program stand in its own data; a large program is no start program
        ranges = [
            (s.offset, s.size) for s in facts.sections if not s.executable and s.name != ".rsrc" and s.size <= _DATA
        ]
    found, left = [], _DATA * 4
    for start, size in ranges:
        file.seek(start)
        found.append(file.read(min(size, left)))
        left -= len(found[-1])
        if left <= 0:
            break
    return found
