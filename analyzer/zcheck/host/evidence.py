"""What a PC means for one verdict: host facts in the evidence vocabulary, and what of the stack the PC itself shows."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from zcheck.host.check_gpu import amd, chosen
from zcheck.host.keys import KEYS
from zcheck.host.sdk import generation_of_runtime
from zcheck.model.base import Record
from zcheck.model.evidence import HostFact
from zcheck.model.host import Adapter, HipRoot, Host, HostCheck, ZludaFolder
from zcheck.model.stack import Stack

BESIDE = {
    "miopen.dll": "MIOpen",
    "rocblas.dll": "rocBLAS",
    "rocsparse.dll": "rocSPARSE",
    "hipblaslt.dll": "hipBLASLt",
    "libhipblaslt.dll": "hipBLASLt",
}
"""components that ZLUDA finds beside itself"""
_SILENT = frozenset(("zluda-missing",))
"""lines for the PC's own sake: that nobody named a ZLUDA folder is no fault; that the named one is empty is"""


class StackOverrides(Record, frozen=True):
    """What the PC shows, to be set over what was assumed; empty fields are not shown.

    ``components``: HIP components that are there although the SDK's table says no (MIOpen copied beside, TheRock);
    ``said``: one sentence an override, for the report's assumptions.
    """

    gpu: str = ""
    hip_sdk: str = ""
    zluda: str = ""
    zluda_dir: str = ""
    components: tuple[str, ...] = ()
    components_missing: tuple[str, ...] = ()
    said: tuple[str, ...] = ()

    def apply(self, stack: Stack) -> Stack:
        """The stack with what the PC shows in place of what was assumed."""
        return msgspec.structs.replace(
            stack,
            gpu=self.gpu or stack.gpu,
            hip_sdk=self.hip_sdk or stack.hip_sdk,
            zluda=self.zluda or stack.zluda,
        )


def used_adapter(host: Host) -> Adapter | None:
    """The adapter that a program gets: device 0 of what HIP_VISIBLE_DEVICES leaves; None without an AMD adapter."""
    left = chosen(host.adapters, host.env.get("HIP_VISIBLE_DEVICES", ""))
    return left[0] if left else None


def used_root(host: Host) -> HipRoot | None:
    """The HIP SDK in use: of --hip-dir or HIP_PATH, else the only usable one."""
    good = [root for root in host.hip if not root.problems]
    named = [root for root in good if root.found_by in ("--hip-dir", "HIP_PATH", "gpu-report.json")]
    return named[0] if named else good[0] if len(good) == 1 else None


def used_folder(host: Host) -> ZludaFolder | None:
    """The ZLUDA folder in use, when there is exactly one or one was named."""
    good = [folder for folder in host.zluda if not folder.problems]
    named = [folder for folder in good if folder.found_by == "--zluda-dir"]
    return named[0] if named else good[0] if len(good) == 1 else None


def stack_overrides(host: Host) -> StackOverrides:
    """What the PC shows of the stack: GPU, HIP SDK (a version or therock), ZLUDA release, components."""
    said: list[str] = []
    adapter, root, folder = used_adapter(host), used_root(host), used_folder(host)
    gpu = adapter.gfx if adapter is not None else ""
    if adapter is not None and gpu:
        said.append(f"GPU {gpu}: {adapter.name}, device {adapter.index} of this PC")
    if not host.adapters and not any(check.key == "gpu-none" for check in host.checks):
        said.append("Nothing is known of this PC's GPU: it is assumed to be one that the stack supports")
    sdk = ""
    components: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    if root is not None:
        sdk = "therock" if root.kind == "therock" else root.patch or root.version
        components = root.components
        missing = tuple(name for name in root.missing if name not in ("HIP runtime", "comgr"))
        if sdk:
            said.append(f"HIP SDK {sdk}: {root.path} ({root.version_by or root.found_by})")
    release = ""
    if folder is not None:
        found = {BESIDE[name.casefold()] for name in folder.beside if name.casefold() in BESIDE}
        components = tuple(sorted({*components, *found}))
        missing = tuple(name for name in missing if name not in found)
        if folder.release and folder.confidence != "low":
            release = folder.release
            span = f"; {folder.candidates[0]} to {folder.candidates[-1]} fit alike" if folder.candidates[1:] else ""
            said.append(f"ZLUDA {release}: {folder.path}, told by {folder.identified_by}{span}")
        elif folder.release:
            said.append(f"ZLUDA in {folder.path} looks like {folder.release}, too unsure to judge by")
    return StackOverrides(
        gpu=gpu,
        hip_sdk=sdk,
        zluda=release,
        zluda_dir=folder.path if folder is not None else "",
        components=components,
        components_missing=missing,
        said=tuple(said),
    )


def host_evidence(host: Host, stack: Stack) -> tuple[HostFact, ...]:
    """The facts of the PC that bear on a program on this stack, keys of ``keys.KEYS``, in the order of the list.

    Facts on adapters that the program will not get are left out, and so are lines on ZLUDA folders other than the one
    in use; ``gpu-support`` and ``gpu-evidence`` are told anew for the stack's own SDK.
    """
    adapter, folder = used_adapter(host), used_folder(host)
    facts: list[HostFact] = []
    named = {one.path for one in host.zluda if one.found_by == "--zluda-dir"}
    for check in host.checks:
        if check.key in _SILENT and check.subject not in named:
            continue
        if not _bears(check, host, adapter, folder):
            continue
        if check.key == "gpu-support" and adapter is not None:
            continue
        fact = _fact(check)
        if check.key == "gpu-zluda" and check.value == "not supported" and tolerant(stack):
            fact = msgspec.structs.replace(fact, value="off the list")
        facts.append(fact)
    if adapter is not None and adapter.gfx and stack.hip_sdk != "therock":
        version = next((name for name in adapter.hip_sdk if stack.hip_sdk.startswith(name)), "")
        if version:
            facts.append(HostFact("gpu-support", adapter.hip_sdk[version], adapter.name, f"HIP SDK {version}"))
    return tuple(dict.fromkeys(facts))


def tolerant(stack: Stack) -> bool:
    """Whether this ZLUDA starts on GPUs older than its list: v3 and the fork of it do, v4 and later do not."""
    return stack.zluda == "v3" or stack.zluda.startswith("lshqqytiger")


def _fact(check: HostCheck) -> HostFact:
    note = check.text if check.level != "PASS" else ""
    return HostFact(check.key, check.value, check.subject, note)


def _bears(check: HostCheck, host: Host, adapter: Adapter | None, folder: ZludaFolder | None) -> bool:
    names = {one.name for one in amd(host.adapters)}
    if check.subject in names and adapter is not None and check.subject != adapter.name and check.key != "igpu-first":
        return False
    others = {one.path for one in host.zluda if folder is not None and one.path != folder.path}
    return check.subject not in others


def runtime_generation(host: Host) -> str:
    """Generation of the HIP runtime that answers to the ZLUDA in use: 5, 6, 7, or empty."""
    folder = used_folder(host)
    return generation_of_runtime(folder.runtime.rpartition("\\")[2]) if folder is not None and folder.runtime else ""


def unknown_keys(facts: Iterable[HostFact]) -> tuple[str, ...]:
    """Keys that are not in the closed list; empty for everything that comes from here."""
    return tuple(fact.key for fact in facts if fact.key not in KEYS)
