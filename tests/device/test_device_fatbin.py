"""Fatbins that the small writer makes: every kind, flag, compression, wrapper and place, read back field by field."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import zstandard
from fatbin_writer import Entry, Pe, container, cubin, kernel, ptx, wrapper

from zcheck.errors import InputError
from zcheck.model.device_code import DeviceCodeFacts
from zcheck.parse import fatbin
from zcheck.parse.fatbin import read_device_code, read_payload

TEXT = ptx(kernel("k", "add.s32 %r1, %r1, 1"))


def read(tmp_path: Path, data: bytes, name: str = "a.fatbin", **more: object) -> DeviceCodeFacts:
    file = tmp_path / name
    file.write_bytes(data)
    return read_device_code(file, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("pack", ["", "lz4", "zstd"])
@pytest.mark.parametrize(
    ("flags", "arch"), [(0x41, "sm_90"), (0x100041, "sm_90a"), (0x200041, "sm_90f"), (0x11, "sm_90")]
)
def test_entry_is_read_back(tmp_path: Path, pack: str, flags: int, arch: str) -> None:
    entries = [
        Entry(TEXT + b"\0", sm=90, version=(8, 1), pack=pack, flags=flags, identifier=b"src/a.cu"),
        Entry(cubin({"k": 700}, 90), kind=2, sm=90, version=(1, 7), pack=pack, flags=flags),
        Entry(b"BC\xc0\xde" * 9, kind=8, sm=90, pack=pack, flags=flags | 0x10000),
        Entry(b"\x01\x02\x03\x04" * 5, kind=0x40, sm=90, pack=pack, flags=flags),
    ]
    code = read(tmp_path, container(entries))
    (one,) = code.containers
    assert [entry.kind for entry in one.entries] == ["ptx", "sass", "ltoir", "other"]
    assert [entry.number for entry in one.entries] == [1, 2, 8, 0x40]
    assert {entry.arch for entry in one.entries} == {arch}
    assert {entry.compression for entry in one.entries} == {pack or "none"}
    assert one.entries[0].version == "8.1"
    assert one.entries[0].identifier == "src/a.cu"
    assert one.entries[0].kernels == one.entries[1].kernels == ("k",)
    assert one.entries[1].code == (700,)
    assert one.entries[0].ptx is not None
    assert one.entries[0].ptx.target == "sm_80"
    assert not code.problems
    assert read_payload(tmp_path / "a.fatbin", one.entries[0]) == TEXT
    assert read_payload(tmp_path / "a.fatbin", one.entries[1]).rstrip(b"\0") == cubin({"k": 700}, 90).rstrip(b"\0")
    assert code.regions == ((0, one.size),)


def test_survives_json(tmp_path: Path) -> None:
    code = read(tmp_path, container([Entry(TEXT), Entry(cubin({"k": 9}), kind=2)]))
    assert msgspec.json.decode(msgspec.json.encode(code), type=DeviceCodeFacts) == code


def test_containers_in_every_section(tmp_path: Path) -> None:
    pe = Pe()
    first, second, third = (container([Entry(TEXT + b"\n" * n, sm=50 + n)]) for n in range(3))
    pe.add(".text", b"\xcc" * 900)
    pe.add(".rdata", b"abc" * 33 + first)
    address = pe.add(".nv_fatb", second + third)
    pe.add(".nvFatBi", wrapper(address) + wrapper(address + len(second)))
    code = read(tmp_path, pe.encode(), "a.dll")
    assert code.form == "pe"
    assert [c.section for c in code.containers] == [".rdata", ".nv_fatb", ".nv_fatb"]
    assert [w.container for w in code.wrappers] == [code.containers[1].offset, code.containers[2].offset]
    assert [w.section for w in code.wrappers] == [".nvFatBi"] * 2
    # Two neighbours are one region.
    assert len(code.regions) == 2
    assert len(code.images()) == 3


def test_relocatable_code_is_one_image(tmp_path: Path) -> None:
    pe = Pe()
    parts = [container([Entry(ptx(kernel(f"k{n}")), sm=90)]) for n in range(3)]
    relocatable = pe.add("__nv_rel", b"".join(parts))
    linked = pe.add(".nv_fatb", container([Entry(cubin({"k0": 900, "k1": 900, "k2": 900}), kind=2)]))
    pe.add(".nvFatBi", wrapper(relocatable) + wrapper(linked, 2))
    code = read(tmp_path, pe.encode(), "a.dll")
    (image,) = code.images()
    assert image.container == 3
    assert image.linked is code.containers[3]
    assert image.modules == code.containers[:3]


def test_list_of_prelinked_containers_in_the_file(tmp_path: Path) -> None:
    pe = Pe()
    parts = [container([Entry(ptx(kernel(f"k{n}")))]) for n in range(2)]
    first = pe.add(".data", b"".join(parts))
    linked = pe.add(".nv_fatb", container([Entry(cubin({"k0": 9}), kind=2)]))
    second = first + len(parts[0])
    # The list comes back to its beginning: read once round.
    table = pe.add(".rdata", b"".join(p.to_bytes(8, "little") for p in (second, first, second)))
    pe.add(".nvFatBi", wrapper(linked, 2, table))
    code = read(tmp_path, pe.encode(), "a.dll")
    offsets = [c.offset for c in code.containers]
    assert code.wrappers[0].prelinked == (offsets[1], offsets[0])
    (image,) = code.images()
    assert [c.offset for c in image.modules] == [offsets[1], offsets[0]]


@pytest.mark.parametrize("window", [64, 65, 100, 4096])
def test_headers_across_reads(tmp_path: Path, window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pe = Pe()
    blob = b"".join(b"\0" * n + container([Entry(TEXT[: 40 + n], sm=50 + n)]) for n in range(0, 48, 3))
    address = pe.add(".nv_fatb", blob)
    pe.add(".nvFatBi", b"".join(b"\0" * n + wrapper(address) for n in range(24)))
    data = pe.encode()
    whole = read(tmp_path, data, "a.dll")
    monkeypatch.setattr(fatbin, "WINDOW", window)
    assert read(tmp_path, data, "a.dll") == whole
    assert len(whole.containers) == 16
    assert len(whole.wrappers) == 24


def test_magic_in_data_is_no_container(tmp_path: Path) -> None:
    stray = (0xBA55ED50).to_bytes(4, "little")
    code = read(tmp_path, b"MZ" + b"\0" * 99 + stray + b"\xff" * 40 + stray + b"\x01\0\x10\0", "a.exe")
    assert not code.containers
    assert not code.problems


def test_opaque_section(tmp_path: Path) -> None:
    pe = Pe()
    pe.add(".text", b"\xcc" * 900)
    pe.add(".nv_fatb", bytes(range(1, 256)) * 20)
    code = read(tmp_path, pe.encode(), "a.dll")
    assert code.opaque == (".nv_fatb",)
    assert "compressed as a whole" in code.problems[0].reason
    pe.sections[1] = (".nv_fatb", b"\0" * 4096)
    assert not read(tmp_path, pe.encode(), "b.dll").opaque


@pytest.mark.parametrize("packed", [False, True])
def test_loose_files(tmp_path: Path, packed: bool) -> None:
    def written(name: str, data: bytes) -> DeviceCodeFacts:
        if packed:
            return read(tmp_path, zstandard.ZstdCompressor().compress(data), name + ".zst")
        return read(tmp_path, data, name)

    text = written("k.ptx", b"// a comment\n\n" + TEXT)
    assert text.form == "ptx"
    assert text.loose[0].kernels == ("k",)
    assert text.loose[0].arch == "sm_80"
    binary = written("k.cubin", cubin({"k": 640}, 75, 7))
    assert binary.form == "cubin"
    assert (binary.loose[0].arch, binary.loose[0].kernels) == ("sm_75", ("k",))
    fat = written("k.fatbin", container([Entry(TEXT)]))
    assert fat.form == "fatbin"
    assert fat.containers[0].entries[0].kernels == ("k",)
    assert read_payload(tmp_path / ("k.fatbin.zst" if packed else "k.fatbin"), fat.containers[0].entries[0]) == TEXT
    assert all(code.regions == ((0, code.size),) for code in (text, binary, fat))
    assert not text.problems + binary.problems + fat.problems


def test_list_without_contents(tmp_path: Path) -> None:
    code = read(tmp_path, container([Entry(TEXT, pack="zstd")]), contents=False)
    (entry,) = code.containers[0].entries
    assert (entry.ptx, entry.kernels, entry.sha256) == (None, (), "")
    assert entry.size == len(TEXT)


def test_cache_answers_the_second_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Kept(dict[str, bytes]):
        def put(self, key: str, value: bytes) -> None:
            self[key] = value

    kept = Kept()
    data = container([Entry(TEXT, pack="lz4"), Entry(cubin({"k": 640}), kind=2), Entry(b"odd", pack="lz4", kind=2)])
    first = read(tmp_path, data, cache=kept)
    assert len(kept) == 3
    monkeypatch.setattr(fatbin, "read_ptx", None)
    monkeypatch.setattr(fatbin, "read_cubin", None)
    assert read(tmp_path, data, cache=kept) == first
    # Damaged notes are read again, not believed.
    monkeypatch.undo()
    for key in kept:
        kept[key] = b"\xff"
    assert read(tmp_path, data, cache=kept) == first


def test_unreadable_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"missing\.dll"):
        read_device_code(tmp_path / "missing.dll")
