"""The stack that a verdict is about, and what the coverage database answers for it."""

from __future__ import annotations

from typing import Literal

from zcheck.model.base import Confidence, Record

LaunchMode = Literal["zluda-exe", "staged"]
State = Literal[
    "implemented", "partial", "no-op", "returns-error", "ends-process", "not-exported", "library-missing", "unknown"
]
Provision = Literal["replaced", "passed-through", "absent", "system", "bundle", "missing"]


class Stack(Record, frozen=True):
    """ZLUDA release + launch mode + HIP SDK version + GPU target. ``hip_sdk`` is a version or ``therock``."""

    zluda: str = "v6"
    launch_mode: LaunchMode = "zluda-exe"
    hip_sdk: str = "6.4"
    gpu: str | None = None

    @property
    def id(self) -> str:
        """Key of the stack in reports: ``v6/zluda-exe/6.4``, with ``/gfx1200`` when a GPU is named."""
        parts = [self.zluda, self.launch_mode, self.hip_sdk]
        if self.gpu:
            parts.append(self.gpu)
        return "/".join(parts)


class FunctionAnswer(Record, frozen=True):
    """What one exported name does on one stack. ``since``/``until`` are release tags of that state."""

    library: str
    name: str
    state: State
    since: str | None = None
    until: str | None = None
    limit: str | None = None
    source: str | None = None
    confidence: Confidence = "high"
    families: tuple[str, ...] = ()
    """workload families: convolution, gemm, attention, fft, sparse, solver, random, rnn, ray tracing, video"""


class LibraryAnswer(Record, frozen=True):
    """Who answers to one DLL name on one stack.

    ``name_answered``: the release knows this very name (suffix included). ``placed``: the launch mode puts its file
    where the program loads it; false means it ships but somebody must stage it. ``stub``: every function of the
    release's library refuses. ``hip_missing``: HIP components the library needs and the SDK lacks.
    """

    dll: str
    library: str
    provision: Provision
    name_answered: bool = False
    placed: bool = False
    stub: bool = False
    file: str | None = None
    hip_missing: tuple[str, ...] = ()
    start_fails: str | None = None
    """a CUDA runtime whose every first call fails here: why"""
    driver_only: bool = False
    """installed by NVIDIA's driver alone, so that nobody can put it beside the program"""
    source: str | None = None


class Answers(Record, frozen=True):
    """All answers for one stack. ``capabilities`` are the release's columns (``launcher_redirects_blas``: ``no`` …)."""

    stack: Stack
    libraries: tuple[LibraryAnswer, ...] = ()
    functions: tuple[FunctionAnswer, ...] = ()
    capabilities: dict[str, str] = {}
    components_missing: tuple[str, ...] = ()
    """components that this HIP SDK lacks: ``MIOpen``, ``hipBLASLt`` …"""
    components_unknown: tuple[str, ...] = ()
    sdk_release: str = ""
    """the very HIP SDK that was judged: ``6.4`` means its newest, 6.4.2"""
    newer: str = ""
    """the newest release known, where it is later than the stack's"""
    newer_functions: tuple[tuple[str, str], ...] = ()
    """(library, name) of functions that fail here and work there, within limits at least"""
    release_read: bool = True
    """False for a release that exists and whose files nobody could read: nothing is known of what it does"""
