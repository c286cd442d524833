"""What every ZLUDA DLL asks of the HIP DLLs, against what the HIP DLLs really found export.

How a ZLUDA from v6-preview.34 on finds them (vosen/ZLUDA zluda_windows/src/lib.rs and zluda/src/os_win.rs): a
performance library (rocBLAS, hipBLASLt, rocSPARSE, MIOpen) is loaded from ZLUDA's own folder, else from the bin folder
of HIP_PATH, with LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | DEFAULT_DIRS, so that its own imports come from its folder, then
System32, never from PATH. nvcuda.dll tries these first and takes the HIP runtime that they brought; failing that it
looks for amdhip64_7.dll and then amdhip64_6.dll in the ordinary order: System32, then PATH. Earlier releases import the
runtime by their import table.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from zcheck.host.dlls import Dlls
from zcheck.host.release import library_of
from zcheck.host.sdk import HIPBLASLT, RUNTIMES, generation_of_runtime
from zcheck.host.source import is_file, join, key
from zcheck.model.facts import ImportedDll, PeFacts
from zcheck.model.host import HipRoot, HostTables, ImportGap, Layout

SYSTEM32 = "C:\\Windows\\System32"
PERFORMANCE = (*HIPBLASLT, "rocblas.dll", "rocsparse.dll", "miopen.dll")
"""in the order in which nvcuda.dll tries them"""
_HIP_PREFIXES = (
    "amdhip64",
    "hiprtc",
    "amd_comgr",
    "rocblas",
    "hipblas",
    "libhipblas",
    "rocsparse",
    "hipsparse",
    "miopen",
)
_MATH_PREFIXES = ("rocsolver", "hipsolver", "rocfft", "hipfft", "rocrand", "hiprand")
Order = Literal["normal", "own-or-hip"]


class Runtime(NamedTuple):
    """The HIP runtime that answers: path (empty when none), why that one, and its generation."""

    path: str
    by: str
    generation: str


def is_hip(dll: str) -> bool:
    """Whether a DLL name is one of HIP's."""
    return dll.casefold().startswith((*_HIP_PREFIXES, *_MATH_PREFIXES))


class Search:
    """Finds HIP DLLs for one ZLUDA folder on one PC."""

    def __init__(self, folder: str, root: HipRoot | None, dlls: Dlls, layout: Layout | None) -> None:
        self.folder = folder
        self.root = root
        self.dlls = dlls
        self.source = dlls.source
        self.layout = layout
        self.hip_bin = join(root.path, "bin") if root is not None else ""

    def _first(self, name: str, folders: Iterable[str]) -> str:
        for folder in folders:
            if folder and is_file(self.source, join(folder, name)):
                return join(folder, name)
        return ""

    def normal(self, name: str) -> str:
        """The ordinary order without the application's folder, which is not known here: System32, then PATH."""
        return self._first(name, (SYSTEM32, *self.source.path))

    def own_or_hip(self, name: str) -> str:
        """ZLUDA's own folder, then HIP_PATH\\bin."""
        return self._first(name, (self.folder, self.hip_bin))

    @property
    def delay_loads(self) -> bool:
        """Whether this release takes amdhip64_7 or amdhip64_6, whichever is there."""
        return self.layout is None or "delay-loads" in self.layout.hip_runtime

    def runtime(self, wanted: str) -> Runtime:
        """The runtime for an nvcuda.dll that asks for ``wanted``."""
        if not self.delay_loads or wanted not in ("amdhip64_7.dll", ""):
            name = wanted or "amdhip64_6.dll"
            path = self.normal(name) or self._first(name, (self.folder,))
            return Runtime(path, "ordinary search order" if path else "", generation_of_runtime(name) if path else "")
        for name in PERFORMANCE:
            library = self.own_or_hip(name)
            facts = self.dlls.facts(library) if library else None
            if facts is None:
                continue
            asked = next((entry.dll for entry in facts.imports if generation_of_runtime(entry.dll)), "")
            if not asked:
                continue
            beside = library[: -len(name) - 1]
            path = self._first(asked, (beside, SYSTEM32))
            if path:
                return Runtime(path, f"imported by {library}", generation_of_runtime(asked))
        for name in ("amdhip64_7.dll", "amdhip64_6.dll"):
            path = self.normal(name)
            if path:
                return Runtime(path, "ordinary search order", generation_of_runtime(name))
        return Runtime("", "", "")

    def answer(self, name: str, runtime: Runtime, delay: bool) -> str:
        """The path of the DLL that answers to an imported name, or empty.

        The import table knows the ordinary order alone; the folder itself counts where the program lies in it.
        """
        folded = name.casefold()
        if not delay:
            return self.normal(name) or self._first(name, (self.folder,))
        if generation_of_runtime(folded):
            if self.delay_loads and folded == "amdhip64_7.dll":
                return runtime.path
            return self.normal(name) or self._first(name, (self.folder,))
        if folded in PERFORMANCE:
            found = self.own_or_hip(name)
            if not found and folded in HIPBLASLT and self.layout is not None:
                others = [other for other in self.layout.hipblaslt_names if other.casefold() != folded]
                found = next((path for path in map(self.own_or_hip, others) if path), "")
            return found or self.normal(name)
        return self.normal(name) or self.own_or_hip(name)


def _functions(entry: ImportedDll) -> tuple[str, ...]:
    return tuple(symbol.name for symbol in entry.symbols if symbol.name)


def table_gaps(importer: str, facts: PeFacts, search: Search, runtime: Runtime) -> list[ImportGap]:
    """Gaps of the import and delay-import tables of one ZLUDA DLL."""
    gaps: list[ImportGap] = []
    for entry in facts.imports:
        if not is_hip(entry.dll):
            continue
        way: Literal["import", "delay"] = "delay" if entry.delay else "import"
        path = search.answer(entry.dll, runtime, entry.delay)
        if not path:
            gaps.append(ImportGap(importer, entry.dll, "", _functions(entry), way))
            continue
        answering = search.dlls.facts(path)
        if answering is None or answering.partial or not answering.exports:
            continue  # a DLL whose exports were not read shows no gap
        there = {export.name for export in answering.exports}
        absent = tuple(name for name in _functions(entry) if name not in there)
        if absent:
            gaps.append(ImportGap(importer, entry.dll, path, absent, way))
    return gaps


def lookup_gaps(importer: str, release_order: int, search: Search, tables: HostTables) -> list[ImportGap]:
    """Gaps of what a ZLUDA library looks up by name at its first use: one absent name fails the whole library."""
    library = library_of(importer)
    names = {library, "cudnn"} if library.startswith("cudnn") else {library}
    if library == "cublas" and search.layout is not None and search.layout.cublas_needs_hipblaslt:
        names.add("cublasLt")  # cublasCreate makes a cublasLt handle too (v6-preview.58 and on)
    rows = [row for row in tables.hip_symbols if row.library in names and row.since <= release_order <= row.until]
    gaps: list[ImportGap] = []
    for dlls in dict.fromkeys(row.dlls for row in rows):
        wanted = tuple(row.symbol for row in rows if row.dlls == dlls)
        path = next((path for path in map(search.own_or_hip, dlls) if path), "")
        if not path:
            gaps.append(ImportGap(importer, dlls[0], "", wanted, "lookup"))
            continue
        answering = search.dlls.facts(path)
        if answering is None or answering.partial or not answering.exports:
            continue
        there = {export.name for export in answering.exports}
        absent = tuple(name for name in wanted if name not in there)
        if absent:
            gaps.append(ImportGap(importer, dlls[0], path, absent, "lookup"))
    return gaps


def runtime_name(path: str) -> str:
    """The file name of a runtime's path in lower case."""
    return key(path).rpartition("\\")[2]


def runtimes_in(folder: str, dlls: Dlls) -> tuple[str, ...]:
    """The HIP runtimes in a folder, newest name first."""
    return tuple(join(folder, name) for name in RUNTIMES if is_file(dlls.source, join(folder, name)))
