"""What parse/ reads from one PE file."""

from __future__ import annotations

from typing import Literal

from zcheck.model.base import Problem, Record

Machine = Literal["x64", "x86", "arm64", "arm64ec", "arm", "other"]


class Section(Record, frozen=True):
    """A section header: RVA and sizes in bytes, raw offset in the file."""

    name: str
    rva: int
    virtual_size: int
    offset: int
    size: int
    executable: bool = False
    entropy: float | None = None
    """bits per byte over a sample, only where a packer is suspected"""


class Symbol(Record, frozen=True):
    """One imported symbol; either a name or an ordinal."""

    name: str | None = None
    ordinal: int | None = None
    hint: int | None = None


class ImportedDll(Record, frozen=True):
    """One import or delay-import descriptor, symbols in the order of the table."""

    dll: str
    symbols: tuple[Symbol, ...] = ()
    delay: bool = False
    bound: bool = False


class Export(Record, frozen=True):
    """One exported symbol; ``forwarder`` is ``DLL.name`` or ``DLL.#ordinal`` where the export is a forwarder."""

    name: str | None = None
    ordinal: int = 0
    forwarder: str | None = None


class VersionInfo(Record, frozen=True):
    """Strings of the version resource, and the fixed file version as a dotted number."""

    company: str = ""
    product: str = ""
    description: str = ""
    original_name: str = ""
    file_version: str = ""
    product_version: str = ""
    fixed_version: str = ""


class PeFacts(Record, frozen=True):
    """The facts of one PE file. ``name`` is the file name as on disk, ``size`` in bytes."""

    name: str
    size: int
    machine: Machine
    is_dll: bool = False
    subsystem: str = ""
    is_dotnet: bool = False
    any_cpu: bool = False
    """.NET code without a 32-bit requirement: ``machine`` says x86, the process is 64-bit on a 64-bit system"""
    sections: tuple[Section, ...] = ()
    imports: tuple[ImportedDll, ...] = ()
    """ordinary imports, then delay imports (``delay`` true)"""
    exports: tuple[Export, ...] = ()
    export_name: str = ""
    """the DLL name that the export directory gives itself"""
    version: VersionInfo | None = None
    overlay_offset: int = 0
    overlay_size: int = 0
    packer: str | None = None
    """name of the packer whose signs were seen (UPX, …), or ``unknown`` when only its effect was seen"""
    manifest_assemblies: tuple[str, ...] = ()
    """names of side-by-side assemblies that the embedded manifest asks for"""
    problems: tuple[Problem, ...] = ()

    @property
    def partial(self) -> bool:
        """True when something of the file could not be read."""
        return any(problem.partial for problem in self.problems)
