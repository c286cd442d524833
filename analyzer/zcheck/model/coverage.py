"""What the coverage database answers with. Sources are repository@commit:path; empty text means "not known"."""

from __future__ import annotations

import msgspec

from zcheck.model.base import Confidence, Record
from zcheck.model.stack import State


class Release(Record, frozen=True):
    """A ZLUDA release. ``main`` is the nearest release whose function bodies were read (itself for such a one).

    ``read`` is false for releases that nobody has read: nothing is known about them. ``asked`` is the alias by which it
    was looked up, if any. ``order`` counts upstream releases from the oldest on; a fork's are 1000 and up.
    """

    tag: str
    order: int = -1
    repository: str = ""
    commit: str = ""
    date: str = ""
    main: str = ""
    read: bool = True
    asked: str = ""

    @property
    def is_main(self) -> bool:
        """True where every table was read for this very release."""
        return self.main == self.tag


class StateRange(Record, frozen=True):
    """One stretch of a function's history; ``until`` is None where it still holds at the newest release read."""

    library: str
    name: str
    state: State
    since: str
    until: str | None = None
    limit: str = ""
    source: str = ""


class Capability(Record, frozen=True):
    """One column of a release: ``launcher_redirects_blas`` = ``no``."""

    name: str
    value: str
    confidence: Confidence = "high"
    source: str = ""


class Layout(Record, frozen=True):
    """What a release's Windows zip holds and its launcher places. ``redirects`` are DLL names, lower or mixed case."""

    release: str
    launcher: str = ""
    redirects: tuple[str, ...] = ()
    library_files: tuple[str, ...] = ()
    hip_runtime: str = ""
    hip_path_read: bool = False
    hipblaslt_names: tuple[str, ...] = ()
    since: str = ""
    until: str | None = None
    source: str = ""


class ReleaseLibrary(Record, frozen=True):
    """A library that a release ships for Windows.

    ``dll_names``: the names it answers to; ``injected``: those of them that the launcher puts into the process and
    redirects; ``hip_dlls``: what it needs from HIP, each with its alternatives. ``functions`` and ``refusing``
    count its exports and those that only refuse or end the process: ``stub`` when all do.
    """

    library: str
    dll_names: tuple[str, ...] = ()
    injected: tuple[str, ...] = ()
    hip_dlls: tuple[tuple[str, ...], ...] = ()
    provided_how: str = ""
    functions: int = 0
    refusing: int = 0
    confidence: Confidence = "high"
    source: str = ""

    @property
    def stub(self) -> bool:
        """True when every function of it refuses."""
        return self.functions > 0 and self.functions == self.refusing


class Component(Record, frozen=True):
    """A part of a HIP SDK for Windows; ``included``: yes, no, unknown. ``dlls`` empty: header only or name not seen."""

    name: str
    included: str
    dlls: tuple[str, ...] = ()
    confidence: Confidence | None = None
    notes: str = ""
    source: str = ""


class HipSdk(Record, frozen=True):
    """A HIP SDK for Windows. ``release`` is the newest patch release of ``version``."""

    version: str
    release: str = ""
    windows: bool = True
    components: tuple[Component, ...] = ()
    source: str = ""

    def with_state(self, included: str) -> tuple[str, ...]:
        """Names of the components that are included (``yes``), missing (``no``) or ``unknown``."""
        return tuple(item.name for item in self.components if item.included == included)


class HipName(Record, frozen=True):
    """A CUDA name in HIPIFY. ``kind`` other than ``function`` never shows in an import table."""

    cuda_name: str
    api: str = ""
    kind: str = ""
    hip_name: str = ""
    roc_name: str = ""
    status: str = ""
    hip_since: str = ""
    hip_removed: str = ""
    cuda_added: str = ""
    cuda_removed: str = ""
    in_hip_6_4: bool = False
    v2_signature_only: bool = False


class Gpu(Record, frozen=True):
    """One GPU name under one HIP SDK version: ``sdk_support`` full, runtime only, none, not listed."""

    name: str
    gfx: str
    generation: str = ""
    apu: bool = False
    hip_sdk: str = ""
    runtime_support: str = ""
    sdk_support: str = ""
    source: str = ""


class Gfx(Record, frozen=True):
    """Facts on one GPU target, as column → value (wavefront_default, wmma, rocblas_kernels_in_sdk_6_4 …)."""

    gfx: str
    facts: dict[str, str] = msgspec.field(default_factory=dict)


class CudaExport(Record, frozen=True):
    """A function that NVIDIA's DLL of this version exports."""

    library: str
    function: str
    dll: str
    version: str
    cuda_major: str


class DriverCall(Record, frozen=True):
    """A driver function that a runtime or library function was seen to call.

    ``phase``: init (start of the runtime or process exit) or call; ``when``: process_init, process_exit, first_call,
    every_call; ``versions``: of the CUDA runtime or library it was seen with.
    """

    caller: str
    driver_function: str
    phase: str = ""
    when: str = ""
    linkage: str = ""
    versions: tuple[str, ...] = ()


class ProcAddress(Record, frozen=True):
    """What cuGetProcAddress answers for ``name``: ``flags`` holds 0 default, 1 legacy stream, 2 per-thread stream."""

    name: str
    symbol: str
    flags: str
    min_cuda_version: int


class DllName(Record, frozen=True):
    """A DLL name recognised as a CUDA library. ``kind``: driver, toolkit, redistributable or zluda-file."""

    dll: str
    library: str
    kind: str
    source: str = ""


class Family(Record, frozen=True):
    """A workload family of a function or operator; ``kind``: compute, dnn (non-convolution parts of cuDNN), torch."""

    name: str
    family: str
    kind: str = "compute"
    library: str = ""


class PtxForm(Record, frozen=True):
    """An accepted PTX form, special register or directive of one release (``kind`` opcode, special_register …)."""

    kind: str
    name: str
    form: str
    confidence: Confidence = "high"


class PtxReject(Record, frozen=True):
    """A form that the parser refuses (``when`` one of these modifiers is given) or a later pass cannot translate."""

    stage: str
    what: str
    when: str = ""
    source: str = ""


class RecordedReport(Record, frozen=True):
    """A recorded run of an application on a stack, as table columns."""

    application: str
    workload: str
    outcome: str
    evidence: str
    zluda: str
    hip_sdk: str
    gpu_name: str
    gpu: str
    framework: str
    date: str
    note: str
    source: str


class Measurement(Record, frozen=True):
    """A recorded measurement of one variant of an A/B comparison."""

    application: str
    variant: str
    zluda: str
    hip_sdk: str
    gpu: str
    date: str
    iterations: int
    median: float
    unit: str
    change_percent: float | None = None
    note: str = ""
    source: str = ""
