"""One-file programs, launchers and archives, made here by their published layouts; and hostile ones."""

from __future__ import annotations

import io
import json
import marshal
import pickle
import stat
import struct
import zipfile
import zlib
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from name_tables import tables

import pe_builder
from zcheck.model.base import DEFAULT_LIMITS, Limits, Problem
from zcheck.model.facts import PeFacts, Section
from zcheck.model.hidden import ArchiveFacts
from zcheck.parse import archive, archive_dotnet, archive_pe, archive_pyinstaller, strings
from zcheck.parse.archive_base import BadMember, TooLarge, safe_path

STUB = b"MZ" + bytes(510)
DLL = b"MZ" + b"payload" * 100


def facts_of(data: bytes, **more: object) -> PeFacts:
    return PeFacts("app.exe", len(data), "x64", overlay_offset=512, overlay_size=len(data) - 512, **more)  # type: ignore[arg-type]


def recognise(data: bytes, **more: object) -> ArchiveFacts | None:
    return archive.recognise(io.BytesIO(data), "app.exe", facts_of(data, **more))


def contents(
    data: bytes, limits: Limits = DEFAULT_LIMITS, facts: PeFacts | None = None
) -> tuple[dict[str, bytes], list[Problem]]:
    problems: list[Problem] = []
    found = {}
    for member in archive.walk(io.BytesIO(data), "app.exe", facts or facts_of(data), limits, problems):
        try:
            found[member.path] = member.open().read()
        except BadMember as error:
            problems.append(Problem(path=member.path, reason=str(error), partial=True))
    return found, problems


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as out:
        for name, data in files.items():
            out.writestr(name, data)
    return buffer.getvalue()


def pyinstaller(entries: list[tuple[str, str, bytes]], pyz: object = None) -> bytes:
    """A CArchive as PyInstaller 6 writes it: entries are (type letter, name, bytes)."""
    body, toc = b"", b""
    if pyz is not None:
        modules = b"PYZ\0" + b"\xa7\x0d\x0d\x0a" + struct.pack("!I", 17) + bytes(5) + marshal.dumps(pyz)
        entries = [*entries, ("z", "PYZ.pyz", modules)]
    for letter, name, data in entries:
        packed = zlib.compress(data) if letter in "bx" else data
        text = name.encode() + b"\0"
        text += bytes(-(18 + len(text)) % 16)
        toc += struct.pack(
            "!IIIIBc", 18 + len(text), len(body), len(packed), len(data), letter in "bx", letter.encode()
        )
        toc += text
        body += packed
    length = len(body) + len(toc) + 88
    cookie = struct.pack("!8sIIII64s", archive_pyinstaller.MAGIC, length, len(body), len(toc), 311, b"python311.dll")
    return STUB + body + toc + cookie


def nuitka(files: dict[str, bytes], compressed: bool, checksums: bool) -> bytes:
    stream = b""
    for name, data in files.items():
        stream += name.encode("utf-16-le") + b"\0\0" + struct.pack("<Q", len(data))
        stream += struct.pack("<I", zlib.crc32(data)) if checksums else b""
        stream += data
    stream += b"\0\0"
    payload = b"KAY" + zstandard.compress(stream) if compressed else b"KAX" + stream
    return STUB + payload + struct.pack("<Q", len(payload))


def dotnet(files: dict[str, bytes], major: int, compress: bool = False) -> bytes:
    def text(value: str) -> bytes:
        raw = value.encode()
        assert len(raw) < 128
        return bytes([len(raw)]) + raw

    marker = bytes(8) + archive_dotnet.SIGNATURE
    data = bytearray(STUB + marker)
    rows = []
    for name, content in files.items():
        packed = b""
        if compress:
            engine = zlib.compressobj(wbits=-15)
            packed = engine.compress(content) + engine.flush()
        rows.append((len(data), len(content), len(packed), name))
        data += packed or content
    offset = len(data)
    data += struct.pack("<IIi", major, 0, len(rows)) + text("bundle-id")
    data += bytes(40) if major >= 2 else b""
    for start, size, packed_size, name in rows:
        data += (
            struct.pack("<qq", start, size)
            + (struct.pack("<q", packed_size) if major >= 6 else b"")
            + b"\1"
            + text(name)
        )
    data[512:520] = struct.pack("<q", offset)
    return bytes(data)


def asar(files: dict[str, bytes]) -> bytes:
    tree: dict[str, object] = {}
    body = b""
    for path, content in files.items():
        *folders, name = path.split("/")
        node = tree
        for folder in folders:
            node = node.setdefault(folder, {"files": {}})["files"]  # type: ignore[index,assignment]
        node[name] = {"size": len(content), "offset": str(len(body))}
        body += content
    text = json.dumps({"files": tree}).encode()
    padded = text + bytes(-len(text) % 4)
    return struct.pack("<IIII", 4, len(padded) + 8, len(padded) + 4, len(text)) + padded + body


# --- each form ------------------------------------------------------------------------------------------------------


def test_pyinstaller_one_file() -> None:
    pyz = [("torch.nn", (1, 17, 120)), ("app", (0, 137, 30))]
    data = pyinstaller(
        [("s", "main", b"code"), ("b", "torch\\lib\\cudart64_12.dll", DLL), ("x", "base.zip", b"x")], pyz
    )
    found = recognise(data)
    assert found is not None and found.readable and found.limitation is None
    assert (found.form, found.tool, found.version) == ("pyinstaller-one-file", "PyInstaller", "Python 3.11")
    assert [(m.path, m.kind) for m in found.members] == [
        ("main", "script"),
        ("torch/lib/cudart64_12.dll", "pe"),
        ("base.zip", "file"),
        ("torch/nn.pyc", "python-module"),
        ("app.pyc", "python-module"),
    ]
    files, _ = contents(data)
    assert files["torch/lib/cudart64_12.dll"] == DLL


def test_pyinstaller_one_dir_and_with_a_signature_behind_it() -> None:
    data = pyinstaller([("s", "main", b"code")]) + b"signature" * 900
    found = recognise(data)
    assert found is not None and found.form == "pyinstaller-one-dir"


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("checksums", [True, False])
def test_nuitka_one_file(compressed: bool, checksums: bool) -> None:
    files = {"app.exe": b"MZ" + bytes(range(256)) * 5, "torch\\lib\\c10.dll": DLL, "model.onnx": b"o" * 3000}
    data = nuitka(files, compressed, checksums)
    found = recognise(data)
    assert found is not None and found.form == "nuitka-one-file"
    assert [m.path for m in found.members] == ["app.exe", "torch/lib/c10.dll", "model.onnx"]
    read, problems = contents(data)
    assert read == {name.replace("\\", "/"): content for name, content in files.items()}
    assert not problems


@pytest.mark.parametrize(("major", "compress"), [(1, False), (2, False), (6, False), (6, True)])
def test_dotnet_single_file(major: int, compress: bool) -> None:
    files = {"App.dll": DLL, "runtimes/win-x64/native/cublas64_12.dll": b"MZ" * 400, "App.deps.json": b"{}"}
    data = dotnet(files, major, compress)
    found = archive.recognise(io.BytesIO(data), "App.exe", PeFacts("App.exe", len(data), "x64"))
    assert found is not None and (found.form, found.version) == ("dotnet-single-file", f"bundle {major}.0")
    read, problems = contents(data, facts=PeFacts("App.exe", len(data), "x64"))
    assert (read, problems) == (files, [])


def test_a_plain_apphost_is_no_bundle() -> None:
    data = STUB + bytes(8) + archive_dotnet.SIGNATURE + bytes(500)
    assert archive.recognise(io.BytesIO(data), "App.exe", PeFacts("App.exe", len(data), "x64")) is None


def test_electron_asar() -> None:
    files = {"package.json": b'{"main": "x"}', "node_modules/llama/build/llama-addon.node": DLL}
    data = asar(files)
    found = archive.recognise(io.BytesIO(data), "app.asar")
    assert found is not None and found.form == "asar"
    assert {m.path: m.kind for m in found.members}["node_modules/llama/build/llama-addon.node"] == "pe"
    read, problems = contents(data)
    assert (read, problems) == (files, [])


def test_a_distlib_launcher_is_named_with_its_interpreter() -> None:
    data = STUB + b'#!"C:\\Users\\someone\\env\\Scripts\\python.exe"\r\n' + zipped({"__main__.py": b"import torch"})
    found = recognise(data)
    assert found is not None and found.limitation is not None
    assert (found.form, found.limitation.kind) == ("python-launcher", "script-launcher")
    assert "python.exe" in found.limitation.note and "someone" not in found.limitation.note
    assert contents(data)[0] == {"__main__.py": b"import torch"}


def test_a_jar_behind_a_program() -> None:
    data = STUB + zipped({"META-INF/MANIFEST.MF": b"Main-Class: A", "native/jcuda.dll": DLL})
    found = recognise(data)
    assert found is not None and found.limitation is not None
    assert (found.form, found.limitation.kind) == ("java-launcher", "script-launcher")
    assert contents(data)[0]["native/jcuda.dll"] == DLL


def test_a_zip_self_extractor_is_read_and_nested_archives_too() -> None:
    inner = zipped({"lib/cublas64_12.dll": DLL})
    data = STUB + zipped({"setup.txt": b"hello", "pack.whl": inner})
    found = recognise(data)
    assert found is not None and (found.form, found.limitation) == ("zip-self-extractor", None)
    assert contents(data)[0]["pack.whl!lib/cublas64_12.dll"] == DLL


@pytest.mark.parametrize(
    ("overlay", "form"),
    [
        (bytes(4) + b"\xef\xbe\xad\xdeNullsoftInst" + bytes(99), "nsis"),
        (b";!@Install@!UTF-8!\n;!@InstallEnd@!7z\xbc\xaf\x27\x1c" + bytes(99), "7z-self-extractor"),
        (b"Rar!\x1a\x07\x01\x00" + bytes(99), "rar-self-extractor"),
        (bytes(99) + b"\n---- Bun! ----\n", "bun-single-file"),
    ],
)
def test_self_extractors_that_stay_shut_say_the_way_on(overlay: bytes, form: str) -> None:
    found = recognise(STUB + overlay)
    assert found is not None and found.limitation is not None
    assert found.form == form and not found.readable
    assert found.limitation.way_on.startswith(("unpack it with 7-Zip", "run zcheck on the folder"))


def test_signs_in_sections_and_resources() -> None:
    data = STUB + "PYTHONSCRIPT".encode("utf-16-le") + bytes(100)
    section = Section(".rsrc", 4096, 124, 512, 124)
    found = archive.recognise(io.BytesIO(data), "a.exe", PeFacts("a.exe", len(data), "x64", sections=(section,)))
    assert found is not None and found.form == "py2exe"
    burn = Section(".wixburn", 4096, 16, 0, 0)
    found = archive.recognise(io.BytesIO(STUB), "a.exe", PeFacts("a.exe", 512, "x64", sections=(burn,)))
    assert found is not None and found.form == "wix-burn"


def test_an_ordinary_program_is_none() -> None:
    assert archive.recognise(io.BytesIO(STUB), "a.exe", PeFacts("a.exe", 512, "x64")) is None


# --- hostile --------------------------------------------------------------------------------------------------------


def test_a_zip_bomb_is_refused_before_it_is_unpacked() -> None:
    data = zipped({"bomb": bytes(64 << 20)})
    assert len(data) < 100_000
    files, problems = contents(data, Limits(ratio=200))
    assert not files and "claim to unpack" in problems[0].reason
    files, problems = contents(data, Limits(payload=1 << 20))
    assert not files and "the limit is" in problems[0].reason


def test_many_members_share_one_limit() -> None:
    data = zipped({f"{n}": b"x" * 1000 for n in range(20)})
    files, problems = contents(data, Limits(total_payload=5_500))
    assert len(files) == 5 and all("in all" in p.reason for p in problems)
    files, problems = contents(data, Limits(entries=3))
    assert len(files) == 3 and problems[-1].partial


def test_a_member_longer_than_its_entry_says_is_refused() -> None:
    data = bytearray(zipped({"a": b"A" * 5000}))
    place = data.rfind(b"PK\x01\x02")
    data[place + 24 : place + 28] = struct.pack("<I", 10)
    files, problems = contents(bytes(data))
    assert not files and problems


@pytest.mark.parametrize(
    "name", ["../evil.dll", "..\\..\\evil.dll", "/abs.dll", "C:\\Windows\\evil.dll", "a/../../evil.dll"]
)
def test_paths_that_leave_the_archive_are_refused(name: str) -> None:
    for data in (
        STUB + zipped({name: DLL}),
        pyinstaller([("b", name, DLL)]),
        dotnet({name: DLL}, 6),
        nuitka({name: DLL}, True, False),
    ):
        facts = PeFacts("app.exe", len(data), "x64")
        files, problems = contents(data, facts=facts)
        assert not files, name
        assert any("points out of the archive" in p.reason for p in problems)


def test_a_hundred_nested_archives_end_at_the_limit() -> None:
    data = zipped({"core.dll": DLL})
    for _ in range(100):
        data = zipped({"next.zip": data})
    files, problems = contents(data, Limits(depth=8))
    assert len(files) == 8
    assert any("nested deeper than 8" in p.reason and p.partial for p in problems)


def test_an_archive_that_holds_itself_ends() -> None:
    """The classic: a directory entry that points at the archive's own start."""
    data = bytearray(zipped({"self.zip": bytes(200)}, zipfile.ZIP_STORED))
    place = data.rfind(b"PK\x01\x02")
    data[place + 20 : place + 28] = struct.pack("<II", len(data), len(data))
    contents(bytes(data))


def test_symbolic_links_in_archives_are_not_followed() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as out:
        for name, target in (("a", "b"), ("b", "a")):
            info = zipfile.ZipInfo(name)
            info.external_attr = (stat.S_IFLNK | 0o777) << 16
            out.writestr(info, target)
        out.writestr("real.dll", DLL)
    files, problems = contents(buffer.getvalue())
    assert files == {"real.dll": DLL}
    assert len([p for p in problems if "symbolic link" in p.reason]) == 2
    assert not contents(pyinstaller([("n", "a", b"b"), ("n", "b", b"a")]))[0]


def test_nothing_is_unpickled_or_unmarshalled(tmp_path: Path) -> None:
    flag = tmp_path / "executed"

    class Hostile:
        def __reduce__(self) -> tuple[object, ...]:
            return (Path.touch, (flag,))

    code = compile(f"open({str(flag)!r}, 'w')", "x", "exec")
    for data in (
        zipped({"model/data.pkl": pickle.dumps(Hostile())}),
        pyinstaller([("x", "data.pkl", pickle.dumps(Hostile()))], [("evil", (0, 17, 3)), code]),
        pyinstaller([], {"evil": code}),
    ):
        contents(data)
        archive.recognise(io.BytesIO(data), "app.exe", facts_of(data))
    assert not flag.exists()
    _, problems = contents(pyinstaller([], [("evil", code)]))
    assert any("table is damaged" in p.reason for p in problems)


def test_a_zstd_bomb_in_nuitka_s_payload() -> None:
    data = nuitka({"a.dll": bytes(8 << 20), "b.dll": DLL}, True, False)
    files, problems = contents(data, Limits(payload=1 << 20))
    assert files == {"b.dll": DLL}
    assert "too many to hold" in problems[0].reason


def test_damaged_tables_are_problems() -> None:
    good = pyinstaller([("b", "a.dll", DLL), ("b", "b.dll", DLL)])
    toc = good.rfind(b"a.dll") - 18
    bad = good[:toc] + struct.pack("!I", 0x7FFFFFFF) + good[toc + 4 :]
    files, problems = contents(bad)
    assert not files and problems[0].partial
    data = dotnet({"a.dll": DLL}, 6)
    files, problems = contents(data[:-4], facts=PeFacts("a.exe", len(data), "x64"))
    assert problems and problems[0].partial


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_mangled_archives_never_raise(data: st.DataObject) -> None:
    makers = [
        lambda: STUB + zipped({"a.dll": DLL, "b.zip": zipped({"c": b"c"})}),
        lambda: pyinstaller([("b", "a.dll", DLL)], [("m", (0, 17, 9))]),
        lambda: nuitka({"a.dll": DLL, "b": b"b"}, True, True),
        lambda: dotnet({"a.dll": DLL}, 6, True),
        lambda: asar({"a/b.node": DLL, "c": b"c"}),
    ]
    raw = bytearray(data.draw(st.sampled_from(makers))())
    for _ in range(data.draw(st.integers(1, 6))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(raw[: data.draw(st.integers(len(raw) // 2, len(raw)))])
    facts = PeFacts("app.exe", len(cut), "x64")
    contents(cut, Limits(payload=1 << 22, total_payload=1 << 24, entries=5000), facts)
    archive.recognise(io.BytesIO(cut), "app.exe", facts)


@given(st.text(max_size=30))
def test_a_safe_path_stays_inside(name: str) -> None:
    path = safe_path(name)
    if path is not None:
        assert not path.startswith(("/", "../")) and "\\" not in path
        assert ".." not in path.split("/")


def test_too_large_is_a_bad_member() -> None:
    assert issubclass(TooLarge, BadMember)


def test_programs_inside_are_read_in_memory() -> None:
    """A PyInstaller program whose DLL loads cuBLAS by name, without a file on disk."""
    dll = pe_builder.build(
        dll=True, imports={"KERNEL32.dll": ["LoadLibraryA", "GetProcAddress"], "nvcuda.dll": ["cuInit"]}
    )
    dll += b"\0\0cublas64_12.dll\0cublasGemmEx\0"
    data = pyinstaller(
        [("b", "lib\\ops.dll", dll), ("b", "data.bin", b"MZ not a program"), ("x", "notes.txt", b"text")]
    )
    problems: list[Problem] = []
    found = {
        path: strings.scan_file(stream, facts.name, facts, tables())
        for path, facts, stream in archive_pe.pe_members(io.BytesIO(data), "app.exe", facts_of(data), problems=problems)
    }
    assert [(d.dll, f.name) for d in found["lib/ops.dll"].dlls for f in found["lib/ops.dll"].functions] == [
        ("cublas64_12.dll", "cublasGemmEx")
    ]
    assert list(found) == ["lib/ops.dll"] and problems[0].path == "data.bin"


def test_an_empty_name_and_a_file_that_is_cut_short() -> None:
    """Both came out of fuzzing: zipfile fails on an empty member name, headers promise an overlay that is gone."""
    data = bytearray(zipped({"a": b"x", "b.dll": DLL}))
    place = data.find(b"PK\x01\x02")
    data[place + 28 : place + 30] = b"\0\0"
    contents(bytes(data))
    payload = nuitka({"a.dll": DLL}, True, False)[:-40]
    facts = PeFacts("a.exe", 10**6, "x64", overlay_offset=512, overlay_size=10**6 - 512)
    _, problems = contents(payload, facts=facts)
    assert problems and problems[0].partial
