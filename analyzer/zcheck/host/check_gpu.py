"""Lines on the adapters: is there one that HIP and ZLUDA take, is it the first, what has been shown for it."""

from __future__ import annotations

from collections.abc import Iterable

from zcheck.host.keys import known
from zcheck.model.host import Adapter, GpuRun, HipRoot, HostCheck, HostTables, Ladder, ZludaFolder

_FAQ = "https://zluda.readthedocs.io/latest/faq.html"


def amd(adapters: Iterable[Adapter]) -> list[Adapter]:
    """The AMD adapters."""
    return [adapter for adapter in adapters if adapter.vendor == "AMD"]


def meant(adapters: Iterable[Adapter]) -> list[Adapter]:
    """The AMD adapters that somebody would compute on: not the integrated one where a dedicated one is there."""
    mine = amd(adapters)
    dedicated = [adapter for adapter in mine if not adapter.integrated]
    return dedicated or mine


def advised_sdk(adapter: Adapter, version: str) -> str:
    """The HIP SDK that lists the adapter in full: the next newer than ``version``, else the newest; or empty."""

    def number(text: str) -> tuple[int, ...]:
        return tuple(int(part) for part in text.split(".") if part.isdigit())

    full = sorted((one for one, word in adapter.hip_sdk.items() if word == "full" and one != version), key=number)
    newer = [one for one in full if number(one) > number(version)]
    return newer[0] if newer else full[-1] if full else ""


def chosen(adapters: Iterable[Adapter], visible: str) -> list[Adapter]:
    """The AMD adapters that HIP_VISIBLE_DEVICES leaves, in its order; all without it."""
    mine = sorted(amd(adapters), key=lambda adapter: adapter.index)
    picked = [part.strip() for part in visible.split(",") if part.strip()]
    if not picked or not all(part.isdigit() for part in picked):
        return mine
    by_index = {adapter.index: adapter for adapter in mine}
    return [by_index[int(part)] for part in picked if int(part) in by_index]


def label(adapter: Adapter) -> str:
    """``AMD Radeon RX 9060 XT (gfx1200)``."""
    return f"{adapter.name} ({adapter.gfx})" if adapter.gfx else adapter.name


def table_version(root: HipRoot | None, tables: HostTables) -> str:
    """The HIP SDK version as the GPU table has it, or empty for TheRock and unknown ones."""
    if root is None or root.kind == "therock":
        return ""
    versions = {row.hip_sdk for row in tables.gpus}
    return root.version if root.version in versions else ""


def passed_runs(adapter: Adapter, tables: HostTables) -> list[GpuRun]:
    """Recorded runs that passed on this gfx, whatever the stack."""
    return [run for run in tables.runs if run.gfx == adapter.gfx and run.gfx and run.outcome == "passed"]


def of_this_stack(runs: list[GpuRun], root: HipRoot | None, folders: Iterable[ZludaFolder]) -> list[GpuRun]:
    """Those of the runs made with this very SDK version and this very ZLUDA release; none when either is not sure."""
    if root is None or root.kind == "therock" or not root.version:
        return []
    releases = {folder.release for folder in folders if folder.candidates == (folder.release,)}
    return [run for run in runs if run.hip_sdk == root.version and run.zluda in releases]


def step(adapter: Adapter, version: str, runs: list[GpuRun]) -> Ladder:
    """The adapter's step of the evidence ladder; *verified* by recorded passing runs of this stack (``runs``) alone."""
    if runs:
        return "verified"
    if not adapter.gfx:
        return "unknown"
    if adapter.zluda == "not supported":
        return "unsupported"
    full = adapter.hip_sdk.get(version) == "full" if version else "full" in adapter.hip_sdk.values()
    if adapter.zluda == "supported":
        return "unverified candidate" if full else "experimental"
    return "unknown"


def check_adapters(
    adapters: tuple[Adapter, ...],
    root: HipRoot | None,
    folders: tuple[ZludaFolder, ...],
    visible: str,
    tables: HostTables,
) -> list[HostCheck]:
    """All lines on the adapters."""
    mine = amd(adapters)
    if not mine:
        others = sorted({adapter.vendor or adapter.name for adapter in adapters})
        text = f"No AMD GPU found, only {' and '.join(others)}" if others else "No display adapter found"
        return [
            HostCheck(
                known("gpu-none"),
                "MISS",
                text,
                value=" ".join(others),
                fix=(
                    "ZLUDA needs an AMD Radeon RX 5000 or newer; on another GPU the program will find no CUDA device.",
                ),
                cure="replace" if others else "",
                confidence="high" if others else "medium",
                sources=("https://github.com/vosen/ZLUDA/issues/677",),
            )
        ]
    checks: list[HostCheck] = []
    version = table_version(root, tables)
    for adapter in mine:
        checks += _one(adapter, version, root, folders, tables, adapter in meant(adapters))
    return checks + _order(mine, visible)


def _one(
    adapter: Adapter,
    version: str,
    root: HipRoot | None,
    folders: tuple[ZludaFolder, ...],
    tables: HostTables,
    computed_on: bool,
) -> list[HostCheck]:
    name = label(adapter)
    how = {"hipinfo": "hipInfo", "pci-id": "PCI id", "name": "model name", "given": "as given", "kfd": "kernel driver"}
    if not adapter.gfx:
        return [
            HostCheck(
                known("gpu-unknown"),
                "WARN",
                f"{adapter.name}: its gfx name cannot be told from {adapter.pnp_id or 'its name'}",
                subject=adapter.name,
                fix=("Run hipInfo.exe of the HIP SDK: the line gcnArchName has it; pass it with --gpu.",),
                confidence="low",
            )
        ]
    kind = "integrated, " if adapter.integrated else ""
    checks = [
        HostCheck(
            known("gpu"),
            "PASS",
            f"GPU {adapter.index}: {name}, {kind}{adapter.generation or 'generation unknown'}, "
            f"found by {how.get(adapter.gfx_by, 'its source')}"
            + (f", driver {adapter.driver_version}" if adapter.driver_version else "")
            + (f", AMD Software {adapter.software_version}" if adapter.software_version else ""),
            value=adapter.gfx,
            subject=adapter.name,
        )
    ]
    if not computed_on:
        return checks  # what an unused integrated GPU lacks is no trouble
    if adapter.zluda == "not supported":
        checks.append(
            HostCheck(
                known("gpu-zluda"),
                "MISS",
                f"{name}: ZLUDA supports the Radeon RX 5000 series and newer; {adapter.generation} is older",
                value="not supported",
                subject=adapter.name,
                fix=(
                    "Use a Radeon RX 5000 or newer; ZLUDA 3 builds start on this GPU and give wrong results in places.",
                ),
                cure="replace",
                sources=(
                    _FAQ,
                    "https://github.com/vosen/ZLUDA/issues/343",
                    "https://github.com/vosen/ZLUDA/issues/208",
                ),
            )
        )
    else:
        checks.append(
            HostCheck(
                known("gpu-zluda"),
                "PASS" if adapter.zluda == "supported" else "WARN",
                f"{name}: ZLUDA's own list "
                f"{'includes' if adapter.zluda == 'supported' else 'does not mention'} its generation",
                value=adapter.zluda or "unknown",
                subject=adapter.name,
                fix=() if adapter.zluda == "supported" else ("Try with a small program first.",),
            )
        )
    if version:
        checks.append(_support(adapter, version))
    elsewhere = passed_runs(adapter, tables)
    runs = of_this_stack(elsewhere, root, folders)
    status = step(adapter, version, runs)
    listed = sorted({f"{run.workload} with ZLUDA {run.zluda} on HIP SDK {run.hip_sdk}" for run in runs or elsewhere})
    nearby = f"; on this GPU a run of {'; '.join(listed)} passed" if listed else ""
    said = {
        "verified": f"a recorded run passed: {'; '.join(listed)}; nothing else is implied",
        "unverified candidate": f"AMD and ZLUDA list it, no recorded run of this stack{nearby}",
        "experimental": f"ZLUDA lists it, AMD's table for {version or 'any HIP SDK'} gives no full support",
        "unsupported": "outside ZLUDA's list",
        "unknown": "nothing recorded",
    }
    checks.append(
        HostCheck(
            known("gpu-evidence"),
            "PASS" if status in ("verified", "unverified candidate") else "WARN",
            f"{name}: {status} — {said[status]}",
            value=status,
            subject=adapter.name,
            fix=() if status in ("verified", "unverified candidate") else ("Expect to be the first to try this.",),
        )
    )
    return checks


def _support(adapter: Adapter, version: str) -> HostCheck:
    said = adapter.hip_sdk.get(version, "not listed")
    name = label(adapter)
    if said == "full":
        return HostCheck(
            known("gpu-support"),
            "PASS",
            f"{name}: HIP SDK {version} supports it fully",
            value=said,
            subject=adapter.name,
        )
    better = advised_sdk(adapter, version)
    fix = (
        f"Install HIP SDK {better}, which lists this GPU in full."
        if better
        else "No HIP SDK for Windows lists this GPU in full: an AMD TheRock build for it, if there is one, is the way."
    )
    texts = {
        "runtime only": f"HIP SDK {version} runs programs on it but has no library kernels for it",
        "none": f"HIP SDK {version} does not support it",
        "not listed": f"HIP SDK {version} does not list it",
    }
    return HostCheck(
        known("gpu-support"),
        "MISS" if said == "none" else "WARN",
        f"{name}: {texts.get(said, said)}",
        value=said,
        subject=adapter.name,
        fix=(fix,),
        cure="replace" if said == "none" else "",
        sources=("https://rocm.docs.amd.com/projects/install-on-windows/en/latest/reference/system-requirements.html",),
    )


def _order(mine: list[Adapter], visible: str) -> list[HostCheck]:
    """An integrated GPU before a dedicated one: programs take device 0."""
    ordered = chosen(mine, visible)
    dedicated = [adapter for adapter in ordered if adapter.integrated is False]
    if not ordered or not ordered[0].integrated or not dedicated:
        return []
    best = max(dedicated, key=lambda adapter: (adapter.zluda == "supported", adapter.memory_mib or 0, -adapter.index))
    sure = ordered[0].gfx_by == "hipinfo"
    return [
        HostCheck(
            known("igpu-first"),
            "WARN",
            f"The integrated {label(ordered[0])} is device {ordered[0].index}, before {label(best)}: "
            "most programs take the first device"
            + ("" if sure else " (order as Windows lists them; HIP may count differently)"),
            value=str(ordered[0].index),
            subject=ordered[0].name,
            fix=(f"Set HIP_VISIBLE_DEVICES={best.index} for the program, or turn the other off in Device Manager.",),
            cure="setup",
            confidence="high" if sure else "medium",
            sources=("https://github.com/patientx/ComfyUI-Zluda/issues/231",),
        )
    ]
