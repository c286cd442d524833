"""CUDA that the import table does not show: what parse/ reads from strings, code and metadata of one file."""

from __future__ import annotations

from typing import Literal

from zcheck.model.base import Confidence, Problem, Record

Encoding = Literal["ascii", "utf-16", "metadata", "code"]
DllHow = Literal["exact", "no-suffix", "list", "format", "fragments", "p-invoke", "runtime"]
FunctionHow = Literal["string", "shape", "joined", "p-invoke", "loader"]
RuntimeKind = Literal["cudart", "cudart-hybrid", "cuda.lib"]


class Place(Record, frozen=True):
    """Where it was read. ``offset`` in bytes from the section's start, ``file_offset`` from the file's.

    For .NET metadata, ``section`` is the table and ``offset`` the row.
    """

    section: str
    offset: int
    file_offset: int
    encoding: Encoding = "ascii"

    def __str__(self) -> str:
        """``.rdata+0x1f20``, with the encoding where it is not ASCII."""
        suffix = {"ascii": "", "utf-16": " (UTF-16)", "metadata": " (metadata)", "code": " (code)"}[self.encoding]
        return f"{self.section}+{self.offset:#x}{suffix}"


class DynamicDll(Record, frozen=True):
    """A DLL that the file names for loading at run time.

    ``dll`` as the loader gets it (``.dll`` added where the program leaves that to Windows; digits that only the running
    program knows stand as ``*``); ``library`` is the CUDA library, empty for any other DLL. ``how``: ``exact`` the
    whole name; ``no-suffix`` without ``.dll``; ``list`` one of several in a string; ``format`` a printf pattern;
    ``fragments`` put together from ``parts``; ``p-invoke`` a .NET module reference; ``runtime`` loaded by the NVIDIA
    runtime linked into the file, not by the program's own code.
    """

    dll: str
    library: str
    how: DllHow
    confidence: Confidence
    place: Place
    parts: tuple[str, ...] = ()


class DynamicFunction(Record, frozen=True):
    """A function name for a look-up at run time; ``symbol`` is the exported name where the loader asks for another.

    ``how``: ``string`` a whole string; ``shape`` a string shaped like the library's names that no table holds;
    ``joined`` found inside strings stored without terminators (Go, Rust); ``p-invoke`` .NET metadata; ``loader`` a slot
    of CUDA 13's linked-in driver loader that code reads.
    """

    name: str
    library: str
    how: FunctionHow
    confidence: Confidence
    place: Place
    symbol: str = ""
    version: int = 0
    """CUDA version given to cuGetProcAddress (12050 = 12.5), 0 where none is"""


class NameMention(Record, frozen=True):
    """A name that is no evidence of a load: inside a message, or in a file that cannot load by name."""

    name: str
    library: str
    why: str
    place: Place
    is_dll: bool = False


class LinkedRuntime(Record, frozen=True):
    """NVIDIA code linked into the file, known by the strings that it brings along.

    ``oldest``, ``newest``: the measured versions that fit best (the same when one fits); ``seen`` of ``known`` names of
    the newest one are there. ``whole_file``: the file is the runtime DLL itself.
    """

    kind: RuntimeKind
    oldest: str
    newest: str
    seen: int
    known: int
    confidence: Confidence
    whole_file: bool = False


class LoaderFacts(Record, frozen=True):
    """What the file can load with: imported names, in table order."""

    load_library: tuple[str, ...] = ()
    get_proc_address: bool = False
    cu_get_proc_address: bool = False
    delay_hooks: tuple[str, ...] = ()
    """delay-load helpers and hooks seen (``__delayLoadHelper2``, ``__pfnDliNotifyHook2`` …)"""

    @property
    def by_name(self) -> bool:
        """True when the file can load a DLL and look up a function in it."""
        return bool(self.load_library) and self.get_proc_address


class PInvoke(Record, frozen=True):
    """One .NET import: the method's class and name, the native entry point, the module reference."""

    dll: str
    function: str
    method: str
    used_for_loading: bool = False
    """the entry point itself loads DLLs or looks up functions (kernel32!LoadLibrary …)"""


class ChildProgram(Record, frozen=True):
    """Another program whose name stands in the file as a whole string."""

    name: str
    place: Place


class HiddenFacts(Record, frozen=True):
    """Everything of one file that its import table does not show; each tuple in order of its names."""

    name: str
    dlls: tuple[DynamicDll, ...] = ()
    functions: tuple[DynamicFunction, ...] = ()
    mentions: tuple[NameMention, ...] = ()
    other_dlls: tuple[DynamicDll, ...] = ()
    """DLL names outside the CUDA libraries (plug-ins, frameworks), for edges inside the bundle"""
    runtimes: tuple[LinkedRuntime, ...] = ()
    loader: LoaderFacts = LoaderFacts()
    p_invokes: tuple[PInvoke, ...] = ()
    children: tuple[ChildProgram, ...] = ()
    subtracted: int = 0
    """names not counted because a linked-in runtime brings them along"""
    scanned: int = 0
    """bytes read for strings"""
    skipped: int = 0
    """bytes of device code and other ranges not read"""
    problems: tuple[Problem, ...] = ()


class MemberLimitation(Record, frozen=True):
    """Why the insides of a one-file program could not be read, and the way on; ``kind`` as in evidence Limitation."""

    kind: Literal["one-file-archive", "script-launcher", "self-extractor", "partly-read"]
    note: str
    way_on: str


class ArchiveMember(Record, frozen=True):
    """One file inside a one-file program. ``path`` with ``/`` and made safe; ``size`` unpacked, in bytes."""

    path: str
    size: int
    kind: str = "file"
    """file, python-module, script, pe"""


class ArchiveFacts(Record, frozen=True):
    """A file recognised as a container of programs: ``form`` names it, ``evidence`` says by which bytes."""

    name: str
    form: str
    evidence: str
    tool: str = ""
    version: str = ""
    members: tuple[ArchiveMember, ...] = ()
    readable: bool = False
    """members can be read in memory"""
    limitation: MemberLimitation | None = None
    problems: tuple[Problem, ...] = ()


class FileVariants(Record, frozen=True):
    """Files that are alternatives of one library, chosen at run time: never to be united.

    ``stem`` is the common part; ``choices`` are (variant, file name), in order.
    """

    stem: str
    choices: tuple[tuple[str, str], ...]
