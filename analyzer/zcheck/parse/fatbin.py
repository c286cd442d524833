"""Device code of one file: every fatbin container in every section, and loose PTX, cubin and fatbin files.

The file is streamed once with ``find`` over reads of 8 MiB (a memory map would grow to the size of the file) and each
container is walked by its own sizes; following wrappers alone misses most containers of NVIDIA's own libraries.
Files ending in ``.zst`` are unpacked first. Memory stays a few reads plus one payload at a time.
"""

from __future__ import annotations

import hashlib
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Protocol, cast

import msgspec

from zcheck.errors import InputError
from zcheck.model.base import DEFAULT_LIMITS, Limits, Problem, Record
from zcheck.model.device_code import Container, DeviceCodeFacts, DeviceEntry, PtxModule, Wrapper
from zcheck.parse import fatbin_payload
from zcheck.parse.anchors import Anchors
from zcheck.parse.cubin import read_cubin
from zcheck.parse.fatbin_entries import CONTAINER_HEADER, CONTAINER_MAGIC, Budget, container_header, read_container
from zcheck.parse.fatbin_sections import Layout, read_layout
from zcheck.parse.ptx import PARSER, read_ptx

WINDOW = 8 * 1024 * 1024
WRAPPER_MAGIC = b"\xb1\x43\x62\x46"
_MAGICS = Anchors((CONTAINER_MAGIC, WRAPPER_MAGIC))
_WRAPPER = struct.Struct("<IIQQ")
MAX_WRAPPERS = 65_536
MAX_PRELINKED = 4_096
MAX_POINTERS = 65_536
"""of all lists of prelinked containers together"""
MAX_STRAY_PROBLEMS = 64
# Sections that exist for device code (names cut to eight characters in an image file).
FATBIN_SECTIONS = (".nv_fatb", "__nv_rel")
OPAQUE_SIZE = 256


class ContentCache(Protocol):
    """Where facts of PTX and cubins are kept between runs, by a hash of their stored bytes; values are opaque."""

    def get(self, key: str) -> bytes | None:
        """The value kept under the key, or None."""

    def put(self, key: str, value: bytes) -> None:
        """Keep the value; may do nothing."""


class _Contents(Record, frozen=True):
    kernels: tuple[str, ...] = ()
    code: tuple[int, ...] = ()
    arch: str = ""
    ptx: PtxModule | None = None
    problem: str | None = None


class _Source:
    """Reads of one file by offset; remembers nothing."""

    def __init__(self, handle: IO[bytes], size: int) -> None:
        self.handle, self.size = handle, size

    def read(self, offset: int, size: int) -> bytes:
        if offset < 0 or offset >= self.size or size <= 0:
            return b""
        self.handle.seek(offset)
        return self.handle.read(min(size, self.size - offset))


def read_device_code(
    path: str | Path, limits: Limits = DEFAULT_LIMITS, *, cache: ContentCache | None = None, contents: bool = True
) -> DeviceCodeFacts:
    """The device code of a PE, ELF, fatbin, cubin or PTX file, or of such a file packed with zstd.

    ``contents`` false lists containers and entries only, without unpacking (no kernels, no PTX facts).
    Raises InputError when the file cannot be opened or read.
    """
    path = Path(path)
    try:
        with path.open("rb") as handle:
            size = path.stat().st_size
            if path.suffix.lower() == ".zst" and handle.read(4) == b"\x28\xb5\x2f\xfd":
                handle.seek(0)
                with tempfile.SpooledTemporaryFile(max_size=32 * 1024 * 1024) as inner:
                    problems = _unzstd(handle, cast("IO[bytes]", inner), path.name, size, limits)
                    facts = _read(_Source(cast("IO[bytes]", inner), inner.tell()), path.name, limits, cache, contents)
                    # Offsets are those of the unpacked bytes; the file itself is device code from end to end.
                    return msgspec.structs.replace(
                        facts, problems=facts.problems + problems, size=size, regions=((0, size),)
                    )
            return _read(_Source(handle, size), path.name, limits, cache, contents)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None


def read_payload(path: str | Path, entry: DeviceEntry, limits: Limits = DEFAULT_LIMITS) -> bytes:
    """The uncompressed bytes of one entry of that file, without the zeros behind a PTX text.

    Raises InputError when the file cannot be read or the payload does not unpack within the limits.
    """
    path = Path(path)
    try:
        with path.open("rb") as handle:
            source = _Source(handle, path.stat().st_size)
            if path.suffix.lower() == ".zst" and source.read(0, 4) == b"\x28\xb5\x2f\xfd":
                with tempfile.SpooledTemporaryFile(max_size=32 * 1024 * 1024) as inner:
                    handle.seek(0)
                    _unzstd(handle, cast("IO[bytes]", inner), path.name, source.size, limits)
                    data, problem = _unpack(_Source(cast("IO[bytes]", inner), inner.tell()), entry, limits)
            else:
                data, problem = _unpack(source, entry, limits)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    if problem:
        raise InputError(f"{path}: device code entry at {entry.header:#x} {problem}")
    return data


def _unzstd(handle: IO[bytes], out: IO[bytes], name: str, stored: int, limits: Limits) -> tuple[Problem, ...]:
    import zstandard

    most = min(limits.payload, max(fatbin_payload.SLACK, stored * limits.ratio))
    decompressor: Any = zstandard.ZstdDecompressor(max_window_size=1 << 27)
    left = most
    try:
        claimed = zstandard.frame_content_size(handle.read(18))
        handle.seek(0)
        with decompressor.stream_reader(handle, closefd=False) as reader:
            while left > 0 and (part := reader.read(min(left, 1 << 20))):
                out.write(part)
                left -= len(part)
            if left == 0 and reader.read(1):
                return (Problem(name, f"unpacks to more than {most} bytes; the rest was not read", None, True),)
    except zstandard.ZstdError as error:
        return (Problem(name, f"does not unpack as zstd: {error}", None, True),)
    if most - left < max(claimed, 1):
        return (Problem(name, f"unpacks to {most - left} bytes of the {claimed} it claims", None, True),)
    return ()


def _read(source: _Source, name: str, limits: Limits, cache: ContentCache | None, contents: bool) -> DeviceCodeFacts:
    layout = read_layout(source.read, source.size)
    if layout.form in ("ptx", "cubin"):
        return _loose(source, name, layout, limits, cache, contents)
    problems: list[Problem] = []
    containers: list[Container] = []
    wrappers: list[Wrapper] = []
    budget = Budget(limits)
    pointers = MAX_POINTERS
    for at, found in _scan(source, name, layout, budget, problems):
        if isinstance(found, Container):
            containers.append(found)
        elif len(wrappers) < MAX_WRAPPERS:
            wrapper = _wrapper(source, layout, at, found, min(MAX_PRELINKED, pointers))
            pointers -= len(wrapper.prelinked)
            wrappers.append(wrapper)
    known = {container.offset for container in containers}
    wrappers = [w for w in wrappers if w.container in known or layout.section(w.offset).startswith(".nvFat")]
    if contents:
        left = limits.total_payload
        for index, container in enumerate(containers):
            filled, left = _fill(source, container, limits, left, cache)
            containers[index] = filled
    opaque = _opaque(source, layout, containers)
    problems += [Problem(name, f"section {text} holds device code that is compressed as a whole") for text in opaque]
    return DeviceCodeFacts(
        path=name,
        size=source.size,
        form=layout.form,
        containers=tuple(containers),
        wrappers=tuple(wrappers),
        opaque=opaque,
        regions=_merge([(c.offset, c.size) for c in containers]),
        problems=tuple(problems),
    )


def _scan(
    source: _Source, name: str, layout: Layout, budget: Budget, problems: list[Problem]
) -> Iterator[tuple[int, Container | tuple[int, int, int]]]:
    """Containers and wrapper headers in the order of the file; clean containers are stepped over."""
    base = 0
    while base < source.size:
        source.handle.seek(base)
        data = source.handle.read(WINDOW)
        if not data:
            break
        last = base + len(data) >= source.size
        following = source.size if last else base + len(data) - (_WRAPPER.size - 1)
        at = 0
        for number, hit in _MAGICS.find(data, 0, len(data)):
            if hit < at:
                continue
            if hit + _WRAPPER.size > len(data) and not last:
                # The header goes on in the next window: begin that one here.
                following = base + hit
                break
            at = hit + 4
            if number == 1:
                if hit + _WRAPPER.size <= len(data):
                    _, version, data_at, extra = _WRAPPER.unpack_from(data, hit)
                    if version in (1, 2):
                        yield base + hit, (version, data_at, extra)
                continue
            start = base + hit
            header = container_header(data[hit : hit + CONTAINER_HEADER], 0, source.size - start)
            if header is None:
                continue
            section = layout.section(start)
            container, found, clean = read_container(
                source.read, name, start, header[0], header[1], source.size, budget, section
            )
            if len(problems) < MAX_STRAY_PROBLEMS:
                problems += found
            if clean or container.entries:
                yield start, container
            # Behind a broken container the search goes on inside of it: what it claims to hold may be others.
            at = hit + (container.size if clean else header[0])
            if at >= len(data):
                following = source.size if last else base + at
                break
        base = following


def _wrapper(source: _Source, layout: Layout, at: int, raw: tuple[int, int, int], most: int) -> Wrapper:
    version, address, extra = raw
    prelinked: list[int] = []
    where = layout.offset(extra) if version == 2 and extra else None
    if where is not None:
        seen: set[int] = set()
        for (pointer,) in struct.iter_unpack("<Q", _whole(source.read(where, most * 8))):
            offset = layout.offset(pointer) if pointer else None
            # A list that comes back to itself, or leaves the file, is over.
            if offset is None or offset in seen:
                break
            seen.add(offset)
            prelinked.append(offset)
    return Wrapper(at, version, layout.section(at), layout.offset(address), tuple(prelinked))


def _whole(data: bytes) -> bytes:
    return data[: len(data) & ~7]


def _opaque(source: _Source, layout: Layout, containers: list[Container]) -> tuple[str, ...]:
    """Names of device code sections in which no container was found."""
    shown = {container.section for container in containers}
    opaque = []
    for span in layout.spans:
        if span.name.startswith(FATBIN_SECTIONS) and span.name not in shown and span.size >= OPAQUE_SIZE:
            sample = source.read(span.offset, 4096)
            if sample.strip(b"\0"):
                opaque.append(span.name)
    return tuple(dict.fromkeys(opaque))


def _merge(regions: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for offset, size in sorted(regions):
        if merged and offset <= merged[-1][0] + merged[-1][1]:
            start, length = merged[-1]
            merged[-1] = (start, max(length, offset + size - start))
        else:
            merged.append((offset, size))
    return tuple(merged)


# --- contents ------------------------------------------------------------------------------------------------------


def _loose(
    source: _Source, name: str, layout: Layout, limits: Limits, cache: ContentCache | None, contents: bool
) -> DeviceCodeFacts:
    kind = "ptx" if layout.form == "ptx" else "sass"
    size = min(source.size, limits.payload)
    entry = DeviceEntry(
        kind="ptx" if kind == "ptx" else "sass",
        number=1 if kind == "ptx" else 2,
        arch="",
        stored=size,
        size=size,
    )
    problems: tuple[Problem, ...] = ()
    if size < source.size:
        reason = f"is larger than the limit of {limits.payload} bytes; the rest was not read"
        problems = (Problem(name, reason, size, True),)
    # Architecture and version stand in the contents, so they are read even for a plain list.
    filled, _ = _fill(source, Container(0, size, "", (entry,)), limits, limits.total_payload, cache)
    entry = filled.entries[0]
    if entry.ptx is not None:
        entry = msgspec.structs.replace(entry, arch=entry.ptx.target, version=entry.ptx.version)
    if not contents:
        entry = msgspec.structs.replace(entry, ptx=None, kernels=())
    return DeviceCodeFacts(
        path=name, size=source.size, form=layout.form, loose=(entry,), regions=((0, source.size),), problems=problems
    )


def _fill(
    source: _Source, container: Container, limits: Limits, left: int, cache: ContentCache | None
) -> tuple[Container, int]:
    entries: list[DeviceEntry] = []
    for entry in container.entries:
        if entry.kind in ("ptx", "sass") and entry.problem is None and entry.stored:
            if entry.size > left:
                entry = msgspec.structs.replace(entry, problem="is beyond the limit for one file's device code")
            else:
                left -= entry.size
                entry = _with_contents(source, entry, limits, cache)
                if entries and entry.kernels == entries[-1].kernels:
                    # The same names for each architecture: kept once, as large programs have tens of thousands.
                    entry = msgspec.structs.replace(entry, kernels=entries[-1].kernels)
        entries.append(entry)
    return msgspec.structs.replace(container, entries=tuple(entries)), left


def _with_contents(source: _Source, entry: DeviceEntry, limits: Limits, cache: ContentCache | None) -> DeviceEntry:
    problem = fatbin_payload.bound(entry.stored, entry.size, limits)
    if problem:
        return msgspec.structs.replace(entry, problem=problem)
    stored = source.read(entry.offset, entry.stored)
    digest = hashlib.sha256(stored).hexdigest()
    key = f"{PARSER}:{entry.kind}:{entry.compression}:{entry.size}:{digest}"
    kept = _decode(cache.get(key)) if cache is not None else None
    if kept is None:
        kept = _contents(stored, entry, limits)
        if cache is not None:
            cache.put(key, msgspec.msgpack.encode(kept))
    return msgspec.structs.replace(
        entry,
        sha256=digest,
        kernels=kept.kernels,
        code=kept.code,
        ptx=kept.ptx,
        problem=kept.problem,
        arch=entry.arch or kept.arch,
    )


def _decode(value: bytes | None) -> _Contents | None:
    if value is None:
        return None
    try:
        return msgspec.msgpack.decode(value, type=_Contents)
    except msgspec.MsgspecError:
        # An older zcheck's notes, or a damaged cache: read again.
        return None


def _contents(stored: bytes, entry: DeviceEntry, limits: Limits) -> _Contents:
    data, problem = fatbin_payload.unpack(stored, entry.compression, entry.size)
    if problem and not data:
        return _Contents(problem=problem)
    if entry.kind == "ptx":
        data = data.rstrip(b"\0")
        module = read_ptx(data, limits)
        return _Contents(module.kernels(), (), module.target, module, problem)
    cubin = read_cubin(data, limits)
    return _Contents(cubin.kernels, cubin.code, cubin.arch, None, problem or cubin.problem)


def _unpack(source: _Source, entry: DeviceEntry, limits: Limits) -> tuple[bytes, str | None]:
    problem = fatbin_payload.bound(entry.stored, entry.size, limits)
    if problem:
        return b"", problem
    stored = source.read(entry.offset, entry.stored)
    data, problem = fatbin_payload.unpack(stored, entry.compression, entry.size)
    return (data.rstrip(b"\0") if entry.kind == "ptx" else data), problem
