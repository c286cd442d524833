"""The user's PC as a check uses it: facts for each stack, and what it shows in place of what was assumed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import msgspec

from zcheck.cli.data import coverage
from zcheck.errors import UsageError, ZcheckError
from zcheck.host import StackOverrides, host_evidence, named_gpu_facts, stack_overrides
from zcheck.model.evidence import HostFact
from zcheck.model.host import Host
from zcheck.model.stack import Stack

NO_PC = "Nothing is known about the PC: the stack is assumed to be installed as it should be."


@dataclass(frozen=True)
class KnownPc:
    """A PC that was read; ``shown`` is what it shows of the stack."""

    host: Host
    shown: StackOverrides

    @classmethod
    def of(cls, host: Host) -> KnownPc:
        """A PC that was read, as a check uses it."""
        return cls(host, stack_overrides(host))

    @property
    def document(self) -> dict[str, object]:
        """The PC as the report's ``host``."""
        built: dict[str, object] = msgspec.to_builtins(self.host)
        return built

    def facts(self, stack: Stack) -> tuple[HostFact, ...]:
        """What of the PC bears on a program on this stack."""
        return host_evidence(self.host, stack)

    def over(
        self, stacks: Sequence[Stack], zluda: object, hip_sdk: object, gpu: object, whole: object
    ) -> tuple[Stack, ...]:
        """The stacks with what the PC shows, except for what the user named: each option's value is given, ``whole``
        for all of a stack."""
        given = {"zluda": bool(zluda or whole), "hip_sdk": bool(hip_sdk or whole), "gpu": bool(gpu or whole)}
        shown = self.shown
        shown = StackOverrides(
            gpu="" if given["gpu"] else shown.gpu,
            hip_sdk="" if given["hip_sdk"] else shown.hip_sdk,
            zluda="" if given["zluda"] else shown.zluda,
        )
        return tuple(dict.fromkeys(shown.apply(stack) for stack in stacks))


def known_pc(where: Path | None, zluda_dir: str | None) -> KnownPc | None:
    """The PC of ``--host``, or on Windows this one; None where no PC is looked at.

    Raises what ``find_host`` raises for a PC that was named; this PC's own oddities never stop a check.
    """
    from zcheck.cli.host import find_host

    if where is not None and str(where) == "none":
        if zluda_dir:
            raise UsageError("--zluda-dir names a folder of the PC that --host none leaves out")
        return None
    if where is None and not zluda_dir and sys.platform != "win32":
        return None
    try:
        if where is not None and zluda_dir and where.is_dir():
            host = find_host(root=where, zluda_dir=zluda_dir)
        else:
            host = find_host(where, zluda_dir=zluda_dir)
    except ZcheckError:
        if where is None and not zluda_dir:
            return None
        raise
    if where is not None:
        _must_be_windows(where, host)
    return KnownPc.of(host)


@lru_cache(maxsize=64)
def named_gpu(stack: Stack) -> tuple[HostFact, ...]:
    """What the tables say of the GPU target that a stack names, where no PC is known."""
    if not stack.gpu:
        return ()
    from zcheck.cli.host_tables import host_tables

    return named_gpu_facts(stack, host_tables(coverage()))


def _must_be_windows(where: Path, host: Host) -> None:
    """Raises UsageError for a list that tells nothing of a Windows PC: a verdict that seems to rest on it would not."""
    if host.source == "linux" or (host.os and not host.os.casefold().startswith("windows")):
        raise UsageError(
            f"{where.name} lists a machine with {host.os or 'Linux'}: --host takes a Windows PC, the output of "
            "zcheck host --format json there or a folder laid out like its system drive"
        )
    if not (host.adapters or host.system or host.hip or host.zluda or host.checks):
        raise UsageError(f"{where.name} holds nothing that was read of a PC; leave --host out")
