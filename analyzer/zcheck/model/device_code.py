"""Device code of one file: fatbin containers and their entries, PTX modules, and what a ZLUDA release does with them.

Layout of fatbins and PTX selection: see ``parse/fatbin.py`` and ``coverage/replay.py`` for the sources.
"""

from __future__ import annotations

from typing import Literal

from zcheck.model.base import Confidence, Problem, Record

EntryKind = Literal["ptx", "sass", "ltoir", "other"]
Compression = Literal["none", "lz4", "zstd", "unknown"]
FileForm = Literal["pe", "elf", "fatbin", "cubin", "ptx", "other"]
RELOCATABLE = "__nv_rel"
"""section of containers that are input of the device linker (relocatable device code)"""


class PtxFunction(Record, frozen=True):
    """One ``.entry`` or ``.func`` of a PTX module, in the order of the text.

    ``statements`` are indices into the module's ``statements``, distinct, in the order in which they first occur.
    """

    name: str
    kernel: bool = False
    body: bool = True
    """false for a declaration"""
    statements: tuple[int, ...] = ()
    registers: tuple[str, ...] = ()
    """special registers named in the body, with the ``%``; of vectors without the component"""
    calls: tuple[str, ...] = ()
    """functions called by name"""
    traits: tuple[str, ...] = ()
    """operand forms that later passes of ZLUDA look at (``parse.ptx.TRAITS``)"""
    attributes: tuple[str, ...] = ()
    """directives of the header: ``.visible``, ``.maxntid``, ``.explicitcluster`` …"""
    uses: tuple[str, ...] = ()
    """identifiers of module variables that were not read (``PtxModule.unread``) and that the body names"""
    size: int = 0
    """bytes of the body, comments left out"""
    shared: int = 0
    """bytes of ``.shared`` variables declared in the body"""


class PtxDirective(Record, frozen=True):
    """A module-level directive other than functions: its words (``.visible``, ``.global``, ``.align`` …) and name."""

    words: tuple[str, ...]
    name: str = ""
    initialiser: Literal["none", "plain", "expression"] = "none"
    """expression: ``generic(x)``, ``mask(…)``, arithmetic: anything but numbers and names"""


class PtxModule(Record, frozen=True):
    """Facts of one PTX text. ``version`` is the PTX ISA version, ``size`` in bytes."""

    version: str = ""
    target: str = ""
    options: tuple[str, ...] = ()
    """further words of ``.target``: debug, texmode_independent …"""
    address_size: int | None = None
    statements: tuple[str, ...] = ()
    """distinct instructions as dotted names: ``ld.global.nc.f32``"""
    functions: tuple[PtxFunction, ...] = ()
    directives: tuple[PtxDirective, ...] = ()
    """distinct module-level directives that are not functions, ``.file`` and ``.section`` left out"""
    textures: tuple[str, ...] = ()
    surfaces: tuple[str, ...] = ()
    extern_shared: bool = False
    """dynamic shared memory: an ``.extern .shared`` array"""
    stray: str | None = None
    """first piece of text that is no PTX token for ZLUDA's lexer (a lone ``_``, ``*``, a non-ASCII byte)"""
    header_ok: bool = True
    """``.version`` and ``.target`` come first, as a PTX module has to begin"""
    size: int = 0
    problems: tuple[Problem, ...] = ()

    def kernels(self) -> tuple[str, ...]:
        """Names of the ``.entry`` functions with a body, in order."""
        return tuple(function.name for function in self.functions if function.kernel and function.body)


class DeviceEntry(Record, frozen=True):
    """One entry of a container, or one loose PTX or cubin file. Offsets in the file, sizes in bytes."""

    kind: EntryKind
    number: int
    """the kind as written in the file: 1 PTX, 2 ELF, 8 NVVM"""
    arch: str
    """``sm_90a``; of a PTX its target"""
    version: str = ""
    """PTX ISA version of a PTX, ``major.minor`` as written of others"""
    compression: Compression = "none"
    flags: int = 0
    identifier: str = ""
    header: int = 0
    offset: int = 0
    """of the payload"""
    stored: int = 0
    """bytes of the payload in the file, without padding when compressed"""
    size: int = 0
    """bytes of the payload uncompressed"""
    sha256: str = ""
    """of the payload as stored, where it was read"""
    kernels: tuple[str, ...] = ()
    code: tuple[int, ...] = ()
    """bytes of machine code of each kernel of a cubin"""
    ptx: PtxModule | None = None
    problem: str | None = None


class Container(Record, frozen=True):
    """One fatbin container: where it begins, its size with the header, its section and its entries in order."""

    offset: int
    size: int
    section: str = ""
    entries: tuple[DeviceEntry, ...] = ()


class Wrapper(Record, frozen=True):
    """A fatbin wrapper (magic 0x466243B1).

    Version 1 leads to one container. Version 2 (relocatable device code) leads to the linked container; the list of
    prelinked ones is empty in the file and filled at start by NVIDIA's runtime with those of ``__nv_rel``.
    """

    offset: int
    version: int
    section: str = ""
    container: int | None = None
    """offset of the container it leads to, where one was found"""
    prelinked: tuple[int, ...] = ()
    """offsets of containers on a list that the file itself holds"""


class Image(Record, frozen=True):
    """What a program hands to the driver at once.

    ``container`` indexes the file's containers, loose files counted on behind them. ``modules`` are the containers
    whose entries a release may take; ``linked`` is the linked container of a version 2 wrapper, its modules the
    prelinked ones.
    """

    container: int
    modules: tuple[Container, ...]
    linked: Container | None = None


class DeviceCodeFacts(Record, frozen=True):
    """Device code of one file.

    ``regions`` are (offset, size) ranges of containers and loose device code, sorted and not overlapping, so that a
    scanner of strings can leave them out. ``opaque`` names sections that must hold device code and show no container.
    """

    path: str
    size: int
    form: FileForm = "other"
    containers: tuple[Container, ...] = ()
    loose: tuple[DeviceEntry, ...] = ()
    wrappers: tuple[Wrapper, ...] = ()
    opaque: tuple[str, ...] = ()
    regions: tuple[tuple[int, int], ...] = ()
    problems: tuple[Problem, ...] = ()

    def images(self) -> tuple[Image, ...]:
        """The images of the file: one for each container that is not merely prelinked, one for each loose file."""
        by_offset = {container.offset: container for container in self.containers}
        linked = {w.container: w for w in self.wrappers if w.version == 2 and w.container is not None}
        relocatable = tuple(c for c in self.containers if c.section.startswith(RELOCATABLE)) if linked else ()
        prelinked = {c.offset for c in relocatable}
        images = []
        for number, container in enumerate(self.containers):
            if container.offset in linked:
                listed = linked[container.offset].prelinked
                prelinked.update(listed)
                modules = tuple(by_offset[at] for at in listed if at in by_offset) or relocatable
                images.append(Image(number, modules, container))
            else:
                images.append(Image(number, (container,)))
        loose = (Container(offset=entry.offset, size=entry.stored, entries=(entry,)) for entry in self.loose)
        images += [Image(len(self.containers) + number, (container,)) for number, container in enumerate(loose)]
        return tuple(i for i in images if i.linked or i.modules[0].offset not in prelinked)


# --- what a release does -------------------------------------------------------------------------------------------

Selection = Literal["no-fatbin", "highest-sm", "first", "last-valid"]
Effect = Literal["function-dropped", "module-empty", "load-fails"]


class PtxForm(Record, frozen=True):
    """An instruction form that a release accepts: ``add{.sat}.s32`` (``{.x}`` optional, ``(.a|.b)`` one of)."""

    name: str
    form: str


class PtxReject(Record, frozen=True):
    """A form that is parsed and then refused. ``when`` lists what must be present; empty means always."""

    form: str
    when: tuple[str, ...] = ()
    evidence: str = ""


class LaterReject(Record, frozen=True):
    """What passes after the parser refuse (``what`` is a key of ``coverage.ptx_rejects.LATER``)."""

    what: str
    evidence: str = ""


class ReleasePtx(Record, frozen=True):
    """All that the replay needs to know of one release; made from the coverage tables."""

    release: str
    selection: Selection
    forms: tuple[PtxForm, ...]
    registers: tuple[str, ...]
    directives: tuple[str, ...]
    rejects: tuple[PtxReject, ...] = ()
    later: tuple[LaterReject, ...] = ()
    compression: tuple[str, ...] = ()
    any_order: bool = True
    """modifiers in any order before the types (the parser of v4 and later); v3 takes them as written in its grammar"""
    unknown_statement: Effect = "function-dropped"
    later_effect: Effect = "load-fails"
    """what an unknown special register, a call of a dropped function or a later pass that refuses come to"""
    unread_text: Effect = "module-empty"
    """text that the lexer refuses"""
    refused_registers: tuple[str, ...] = ()
    """special registers that the parser refuses: the function goes, as with an unknown statement"""
    skipped_registers: tuple[str, ...] = ()
    """special registers whose sight makes the release pass over the whole PTX entry"""
    address_size_default: int = 64
    target_suffix: bool = True
    target_options: tuple[str, ...] = ()
    no_ptx: Effect = "module-empty"
    """what an image without usable PTX comes to"""
    precompile: bool = False
    """the release ships zluda_precompile"""
    confidence: Confidence = "high"
    inherits: str = ""
    """the main release that facts were taken from, where this one was not read itself"""
    source: str = ""


Fate = Literal["loadable", "dropped", "stub", "empty", "lost"]


class KernelFate(Record, frozen=True):
    """One kernel that is not simply loadable, and why; ``statement`` is the first one that the release refuses."""

    name: str
    fate: Fate
    reason: str = ""
    statement: str = ""


class ContainerReplay(Record, frozen=True):
    """What one release does with one image; counts of kernels.

    ``chosen`` is the index of the PTX entry taken, among the entries of container number ``chosen_container`` (another
    one than ``container`` for relocatable device code).
    """

    container: int
    chosen: int | None = None
    chosen_container: int | None = None
    kernels: int = 0
    loadable: int = 0
    dropped: int = 0
    stub: int = 0
    empty: int = 0
    lost: int = 0
    load_fails: str | None = None
    invalid_directives: int = 0
    fates: tuple[KernelFate, ...] = ()
    notes: tuple[str, ...] = ()


class Replay(Record, frozen=True):
    """What one release does with all device code of one file, container by container."""

    release: str
    containers: tuple[ContainerReplay, ...] = ()
    kernels: int = 0
    loadable: int = 0
    dropped: int = 0
    stub: int = 0
    empty: int = 0
    lost: int = 0
    load_fails: str | None = None
    reasons: tuple[str, ...] = ()
    ptx_bytes: int = 0
    """bytes of the PTX entries that are chosen: what the first run has to compile"""
    confidence: Confidence = "high"
