"""Lines on HIP: SDK folders, HIP_PATH, runtimes of driver and SDK, components and kernel files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from zcheck.host.check_gpu import advised_sdk, amd, label, meant
from zcheck.host.keys import known
from zcheck.host.sdk import generation_of_runtime, known_version
from zcheck.host.source import key
from zcheck.model.host import Adapter, Component, DllFact, HipRoot, HostCheck, HostTables, Layout, ZludaFolder

_SDK_PAGE = "https://zluda.readthedocs.io/latest/hip_sdk.html"
_SDK_ROWS = ("https://github.com/vosen/ZLUDA/issues/604",)


def name_of(root: HipRoot) -> str:
    """``HIP SDK 6.4`` or ``TheRock build 7.14``."""
    kind = "TheRock build" if root.kind == "therock" else "HIP SDK"
    return f"{kind} {root.version}".rstrip() if root.version else f"{kind} of unknown version"


def check_roots(
    roots: tuple[HipRoot, ...],
    active: HipRoot | None,
    env: Mapping[str, str],
    tables: HostTables,
    reads_hip_path: bool = True,
) -> list[HostCheck]:
    """SDK folders and HIP_PATH; ``reads_hip_path``: whether a ZLUDA that is here looks at it (v6-preview.28 and on)."""
    checks: list[HostCheck] = []
    good = [root for root in roots if not root.problems]
    for root in roots:
        if root.problems:
            checks.append(_broken(root, good))
    if not good:
        if not any(root.problems for root in roots):
            checks.append(
                HostCheck(
                    known("hip-sdk-missing"),
                    "MISS",
                    "No HIP SDK found: HIP_PATH is not set and AMD's folders are not there",
                    fix=(
                        "Install AMD's HIP SDK 6.4.2 for Windows, or unpack an AMD TheRock build "
                        "(needed for programs that use cuDNN), and set HIP_PATH to the folder that holds bin.",
                    ),
                    cure="setup",
                    sources=(_SDK_PAGE, *_SDK_ROWS),
                )
            )
        return checks
    if active is None and not env.get("HIP_PATH") and reads_hip_path:
        checks.append(
            HostCheck(
                known("hip-path-unset"),
                "MISS",
                f"{name_of(good[0])} is in {good[0].path}, but HIP_PATH is not set: "
                "ZLUDA from v6-preview.28 on looks beside itself and in HIP_PATH\\bin, nowhere else",
                fix=(f"Set HIP_PATH={good[0].path} for your user or in the program's shortcut.",),
                cure="setup",
                sources=(_SDK_PAGE, *_SDK_ROWS),
            )
        )
    shown = active or good[0]
    checks.append(
        HostCheck(
            known("hip-sdk"),
            "PASS",
            f"{name_of(shown)} in {shown.path}" + (f" (version from {shown.version_by})" if shown.version_by else ""),
            value="therock" if shown.kind == "therock" else shown.version,
            subject=shown.path,
            confidence="high" if "dll" in shown.version_by.casefold() else "medium",
        )
    )
    if len(good) > 1:
        listed = "; ".join(f"{name_of(root)} in {root.path}" for root in good)
        used = f"HIP_PATH chooses {active.path}" if active else "HIP_PATH chooses none"
        checks.append(
            HostCheck(
                known("hip-sdk-several"),
                "WARN",
                f"{len(good)} HIP SDKs: {listed}. {used}; PATH may bring DLLs of another",
                value=" ".join(root.version or root.kind for root in good),
                fix=("Keep one SDK's bin on PATH, the one that HIP_PATH names, and take the others off.",),
                cure="setup",
                sources=("https://github.com/CS1o/Stable-Diffusion-Info/issues/41",),
            )
        )
    return checks + _components(shown, tables)


def _broken(root: HipRoot, good: list[HipRoot]) -> HostCheck:
    reason = root.problems[0].reason
    nowhere = reason == "no such folder"
    instead = (
        f"Set HIP_PATH={good[0].path}."
        if good
        else "Install the HIP SDK, or unpack a TheRock build, and name its folder."
    )
    return HostCheck(
        known("hip-path-nowhere" if nowhere else "hip-path-no-bin"),
        "MISS",
        f"{root.found_by} is {root.path}: {reason}",
        value=root.path,
        subject=root.found_by,
        fix=(instead, "HIP_PATH is the folder above bin."),
        cure="setup",
        sources=(_SDK_PAGE,),
    )


def _components(root: HipRoot, tables: HostTables) -> list[HostCheck]:
    arrived = {
        row.name: arrival(row) for row in tables.components if row.version == known_version(root.version, tables)
    }
    checks = [
        HostCheck(
            known("component-missing"),
            "MISS" if name == "rocBLAS" else "WARN",
            f"{name_of(root)} comes with {name}{f' from {arrived[name]} on' if arrived.get(name) else ''}, "
            f"but {root.path} has no file of it",
            value=name,
            subject=root.path,
            fix=(
                f"Install {arrived[name]} or later."
                if arrived.get(name)
                else "Repair or reinstall the HIP SDK with all components.",
            ),
            cure="setup",
            sources=_SDK_ROWS if name == "rocBLAS" else (),
            confidence="medium",
        )
        for name in root.missing
        # The driver brings the runtime and comgr too: their absence from bin alone means nothing.
        if name not in ("HIP runtime", "comgr")
    ]
    version = known_version(root.version, tables) if root.kind != "therock" else ""
    for row in tables.components:
        if row.version == version and row.name in ("MIOpen", "hipBLASLt") and row.included == "no":
            if row.name in root.components:
                continue
            what = "cuDNN does not load without it" if row.name == "MIOpen" else "cuBLASLt does not load without it"
            checks.append(
                HostCheck(
                    known("component-absent"),
                    "WARN",
                    f"{name_of(root)} does not come with {row.name}: {what}",
                    value=row.name,
                    subject=root.path,
                    fix=(
                        "For programs that use cuDNN, unpack an AMD TheRock build for this GPU; point HIP_PATH at it."
                        if row.name == "MIOpen"
                        else "Install HIP SDK 6.4.2 or later, which has hipBLASLt.",
                    ),
                    cure="replace",
                    sources=(_SDK_PAGE,),
                )
            )
    return checks


def arrival(row: Component) -> str:
    """``6.4.2`` where the table says that a component came with a patch release, else empty."""
    match = re.match(r"from (\d+\.\d+\.\d+)\b", row.note)
    return match.group(1) if match else ""


def check_kernels(root: HipRoot | None, adapters: Iterable[Adapter], tables: HostTables) -> list[HostCheck]:
    """rocBLAS and hipBLASLt kernel files against the adapters."""
    if root is None:
        return []
    checks: list[HostCheck] = []
    for adapter in meant(adapters):
        if not adapter.gfx or adapter.zluda == "not supported":
            continue
        if "rocBLAS" in root.components and adapter.gfx not in root.rocblas_gfx:
            checks.append(_no_rocblas(root, adapter, tables))
        if "hipBLASLt" in root.components and adapter.gfx not in root.hipblaslt_gfx:
            checks.append(
                HostCheck(
                    known("hipblaslt-kernels-missing"),
                    "WARN",
                    f"{root.path} has no hipBLASLt kernels for {label(adapter)}: cublasLt calls return NOT_SUPPORTED",
                    value=adapter.gfx,
                    subject=adapter.name,
                    fix=("For PyTorch set DISABLE_ADDMM_CUDA_LT=1; else use a build that has kernels for this GPU.",),
                    cure="setup",
                    sources=("https://github.com/patientx/ComfyUI-Zluda/issues/64",),
                    confidence="medium",
                )
            )
    return checks


def _no_rocblas(root: HipRoot, adapter: Adapter, tables: HostTables) -> HostCheck:
    row = next((row for row in tables.gfx if row.gfx == adapter.gfx), None)
    there = ", ".join(root.rocblas_gfx) or "none at all"
    version = known_version(root.version, tables)
    said = adapter.hip_sdk.get(version, "not listed")
    better = advised_sdk(adapter, version)
    if said == "full":
        fix, cure = f"{name_of(root)} should have them: repair or reinstall it.", "setup"
    elif better:
        fix, cure = f"Install HIP SDK {better}, which has kernels for this GPU.", "replace"
    elif row is not None and row.community_rocblas == "yes":
        fix, cure = (
            f"Place community-built rocBLAS library files for {adapter.gfx} into {root.path}\\bin\\rocblas\\library.",
            "setup",
        )
    else:
        fix, cure = f"Use an AMD TheRock build for {adapter.gfx}, or choose another GPU.", "replace"
    return HostCheck(
        known("tensile-missing" if cure == "setup" else "tensile-sdk"),
        "MISS",
        f"{root.path}\\bin\\rocblas\\library has no kernels for {label(adapter)} (there: {there}): "
        "every cuBLAS call ends the program or returns NOT_SUPPORTED",
        value=adapter.gfx,
        subject=adapter.name,
        fix=(fix,),
        cure="setup" if cure == "setup" else "replace",
        sources=(
            "https://github.com/patientx/ComfyUI-Zluda/issues/162",
            "https://github.com/vladmandic/sdnext/issues/4405",
        ),
    )


def check_runtimes(
    system: tuple[DllFact, ...],
    active: HipRoot | None,
    folders: tuple[ZludaFolder, ...],
    layouts: dict[str, Layout | None],
    adapters: Iterable[Adapter],
) -> list[HostCheck]:
    """HIP runtimes: what the driver put into System32, which one wins for each ZLUDA, mixed generations."""
    checks: list[HostCheck] = []
    driver = [row for row in system if generation_of_runtime(row.name)]
    if driver:
        listed = ", ".join(f"{row.name} {row.version}".strip() for row in driver)
        checks.append(
            HostCheck(
                known("hip-runtime"),
                "PASS",
                f"The driver's HIP runtime in System32: {listed}",
                value=" ".join(row.name.casefold() for row in driver),
            )
        )
    elif not folders and not (active and any(generation_of_runtime(row.name) for row in active.dlls)):
        checks.append(
            HostCheck(
                known("hip-runtime-missing"),
                "MISS",
                "No amdhip64 DLL in System32: the AMD driver is not installed or brings no HIP runtime for this GPU",
                value="amdhip64_6.dll",
                fix=("Install the current AMD Adrenalin driver.",),
                cure="replace",
                sources=("https://github.com/vosen/ZLUDA/issues/545",),
                confidence="medium" if not list(amd(adapters)) else "high",
            )
        )
    for folder in folders:
        checks += _winner(folder, active, layouts.get(folder.path), driver)
    return checks


def _winner(
    folder: ZludaFolder, active: HipRoot | None, layout: Layout | None, driver: list[DllFact]
) -> list[HostCheck]:
    wants = sorted({generation_of_runtime(dll) for row in folder.files for dll in row.wants} - {""})
    checks: list[HostCheck] = []
    either = layout is not None and "delay-loads" in layout.hip_runtime
    if len(wants) > 1 and not (either and set(wants) <= {"6", "7"}):
        odd: dict[str, list[str]] = {}
        for row in folder.files:
            for dll in row.wants:
                if generation_of_runtime(dll):
                    odd.setdefault(dll.casefold(), []).append(row.name)
        listed = "; ".join(f"{dll} by {', '.join(names)}" for dll, names in sorted(odd.items()))
        checks.append(
            HostCheck(
                known("hip-generation-mixed"),
                "MISS",
                f"ZLUDA's DLLs in {folder.path} ask for different HIP runtimes: {listed}",
                value=" ".join(wants),
                subject=folder.path,
                fix=("Take all DLLs of one ZLUDA release made for one HIP generation.",),
                cure="setup",
                sources=(
                    "https://github.com/lshqqytiger/ZLUDA/issues/135",
                    "https://github.com/lshqqytiger/ZLUDA/issues/134",
                ),
            )
        )
    if not folder.runtime:
        if wants or either:
            asked = "amdhip64_7.dll or amdhip64_6.dll" if either or not wants else _runtime_of(wants[-1])
            have = ", ".join(row.name for row in driver) or "none"
            checks.append(
                HostCheck(
                    known("hip-runtime-missing"),
                    "MISS",
                    f"ZLUDA in {folder.path} needs {asked}; System32 has {have}: no CUDA call will work",
                    value=asked.partition(" ")[0],
                    subject=folder.path,
                    fix=(
                        "Install an AMD driver that brings this HIP runtime; if none does for this GPU, "
                        "the GPU is too old for this ZLUDA.",
                    ),
                    cure="replace",
                    sources=(
                        "https://github.com/vosen/ZLUDA/issues/545",
                        "https://github.com/patientx/ComfyUI-Zluda/issues/400",
                    ),
                )
            )
        return checks
    won = generation_of_runtime(key(folder.runtime).rpartition("\\")[2])
    if active is not None and active.generation and won and won != active.generation:
        checks.append(
            HostCheck(
                known("wrong-amdhip-wins"),
                "MISS",
                f"{folder.runtime} (HIP {won}) wins for ZLUDA in {folder.path}, but {name_of(active)} "
                f"was made for HIP {active.generation}: two runtimes in one process break",
                value=key(folder.runtime).rpartition("\\")[2],
                subject=folder.runtime,
                fix=(
                    f"Make {active.path}\\bin hold its own {_runtime_of(active.generation)}, "
                    f"or use an SDK made for HIP {won}.",
                ),
                cure="setup",
                sources=(
                    "https://github.com/vladmandic/sdnext/issues/4032",
                    "https://github.com/vosen/ZLUDA/issues/659",
                ),
                confidence="medium",
            )
        )
    elif active is None and won == "7" and any(row.name.casefold() == "amdhip64_6.dll" for row in driver):
        checks.append(
            HostCheck(
                known("wrong-amdhip-wins"),
                "WARN",
                f"No SDK is chosen, so ZLUDA in {folder.path} takes {folder.runtime}; "
                "rocBLAS of a HIP 6 SDK loaded later would bring a second runtime",
                value="amdhip64_7.dll",
                subject=folder.runtime,
                fix=("Set HIP_PATH to the SDK that the program is to use.",),
                cure="setup",
                confidence="medium",
            )
        )
    else:
        checks.append(
            HostCheck(
                known("hip-runtime"),
                "PASS",
                f"{folder.runtime} answers to ZLUDA in {folder.path} ({folder.runtime_by})",
                value=key(folder.runtime).rpartition("\\")[2],
                subject=folder.runtime,
            )
        )
    return checks


def _runtime_of(generation: str) -> str:
    return "amdhip64.dll" if generation == "5" else f"amdhip64_{generation}.dll"
