"""Lines on a ZLUDA folder: release, completeness, makers, bitness, and what HIP does not answer."""

from __future__ import annotations

from collections.abc import Mapping

from zcheck.host.dlls import Dlls
from zcheck.host.keys import known
from zcheck.host.release import LAUNCHERS, library_of
from zcheck.host.sdk import generation_of_runtime
from zcheck.host.source import is_file, join
from zcheck.model.host import HipRoot, HostCheck, ImportGap, Layout, ZludaFolder

_AV = (
    "https://github.com/patientx/ComfyUI-Zluda/issues/231",
    "https://github.com/patientx/ComfyUI-Zluda/issues/344",
    "https://github.com/patientx/ComfyUI-Zluda/issues/364",
    "https://github.com/vosen/ZLUDA/issues/638",
    "https://github.com/vosen/ZLUDA/issues/92",
    "https://github.com/vosen/ZLUDA/issues/98",
)
_SHOWN = 5
"""functions named in one line"""


def check_folders(
    folders: tuple[ZludaFolder, ...],
    layouts: Mapping[str, Layout | None],
    dlls: Dlls,
    active: HipRoot | None,
) -> list[HostCheck]:
    """All lines on the ZLUDA folders; a note when there is none."""
    if not folders:
        return [
            HostCheck(
                known("zluda-missing"),
                "WARN",
                "No ZLUDA folder found on PATH or in the drives' roots: name it with --zluda-dir",
                fix=("Unpack a ZLUDA release into a folder of its own and pass it with --zluda-dir.",),
                cure="setup",
                confidence="medium",
            )
        ]
    checks: list[HostCheck] = []
    for folder in folders:
        if folder.problems:
            checks.append(
                HostCheck(
                    known("zluda-missing"),
                    "MISS",
                    f"{folder.path}: {folder.problems[0].reason}",
                    value=folder.path,
                    subject=folder.path,
                    fix=("Unpack the ZLUDA release again, with the folder excluded from the antivirus scan.",),
                    cure="setup",
                    sources=_AV[2:4],
                )
            )
            continue
        checks += [*_identity(folder), *_files(folder, layouts.get(folder.path)), *_gaps(folder, dlls, active)]
    return checks


def _identity(folder: ZludaFolder) -> list[HostCheck]:
    kind = "" if folder.kind == "release" else " (staged DLLs, no launcher)"
    if not folder.release:
        return [
            HostCheck(
                known("zluda-unknown"),
                "WARN",
                f"{folder.path}: ZLUDA's release cannot be told from its files{kind}",
                subject=folder.path,
                fix=("Say which it is with --zluda.",),
                confidence="low",
            )
        ]
    others = [tag for tag in folder.candidates if tag != folder.release]
    span = f"; fits {folder.candidates[0]} to {folder.candidates[-1]} alike" if others else ""
    return [
        HostCheck(
            known("zluda-release"),
            "PASS" if folder.confidence != "low" else "WARN",
            f"{folder.path}: ZLUDA {folder.release}{kind}, by {folder.identified_by}, "
            f"confidence {folder.confidence}{span}",
            value=folder.release,
            subject=folder.path,
            fix=() if folder.confidence != "low" else ("Say which release it is with --zluda.",),
            confidence=folder.confidence,
        )
    ]


def _files(folder: ZludaFolder, layout: Layout | None) -> list[HostCheck]:
    checks: list[HostCheck] = []
    injected = {name.casefold() for name in layout.injected} if layout is not None else set()
    injected |= {"zluda_redirect.dll", "nccl.dll", *LAUNCHERS}  # the fork's launcher always loads nccl.dll
    for name in folder.missing:
        stops = name.casefold() in injected
        effect = (
            "no program can be started with it"
            if name.casefold() in LAUNCHERS
            else "the launcher puts it into every program, which then does not start (0xC0000135)"
            if stops
            else "programs on the CUDA 13 runtime fail"
            if "hybrid" in name
            else "what asks for it gets NVIDIA's or none"
        )
        checks.append(
            HostCheck(
                known("zluda-file-missing"),
                "MISS" if stops else "WARN",
                f"{folder.path} lacks {name} of ZLUDA {folder.release}: {effect}; "
                "antivirus software quarantines such files",
                value=name,
                subject=folder.path,
                fix=(
                    "Look into the antivirus program's quarantine, restore the file and exclude the folder, "
                    "or unpack the release again into an excluded folder.",
                ),
                cure="setup",
                sources=_AV,
                confidence=folder.confidence,
            )
        )
    for name in folder.foreign:
        checks.append(
            HostCheck(
                known("zluda-file-foreign"),
                "MISS",
                f"{name} in {folder.path} is NVIDIA's own: its device code does not run here",
                value=name,
                subject=folder.path,
                fix=(f"Put ZLUDA's {name} in its place, keeping NVIDIA's under another name.",),
                cure="setup",
                sources=(
                    "https://github.com/githubcto/FramePack-ZLUDA/issues/1",
                    "https://github.com/lshqqytiger/ZLUDA/issues/33",
                    "https://github.com/patientx/ComfyUI-Zluda/issues/326",
                ),
            )
        )
    machines = {row.name: row.machine for row in folder.files}
    for name in folder.wrong_machine:
        checks.append(
            HostCheck(
                known("zluda-file-machine"),
                "MISS",
                f"{name} in {folder.path} is {machines.get(name)}, the others are x64: a 64-bit program cannot load it",
                value=name,
                subject=folder.path,
                fix=("Take the file from the 64-bit part of the release; the 32-bit part belongs into its folder 32.",),
                cure="setup",
            )
        )
    return checks


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _gaps(folder: ZludaFolder, dlls: Dlls, active: HipRoot | None) -> list[HostCheck]:
    # That the SDK in use comes without MIOpen is told once, by component-absent.
    told = active is not None and active.kind == "sdk" and "MIOpen" not in active.components
    gaps = [gap for gap in folder.gaps if not (told and gap.way == "lookup" and gap.dll.casefold() == "miopen.dll")]
    merged: dict[tuple[object, ...], list[ImportGap]] = {}
    for gap in gaps:  # cublas64_11, _12 and _13 are one library under three names
        key = (library_of(gap.importer), gap.dll.casefold(), gap.answered_by, gap.functions, gap.way)
        merged.setdefault(key, []).append(gap)
    checks = [_gap(same[0], ", ".join(gap.importer for gap in same), dlls, active) for same in merged.values()]
    return [check for check in checks if check is not None] + _runtimes(folder, dlls)


def _gap(gap: ImportGap, importers: str, dlls: Dlls, active: HipRoot | None) -> HostCheck | None:
    return _lacking(gap, importers, dlls) if gap.answered_by else _absent(gap, importers, dlls, active)


def _lacking(gap: ImportGap, importers: str, dlls: Dlls) -> HostCheck:
    """Functions that the HIP DLL found does not export."""
    version = dlls.brief(gap.answered_by).version
    where = f"{gap.answered_by}{f' {version}' if version else ''}"
    key, effect = {
        "import": ("hip-import-unresolved", "the process does not start or the DLL does not load (error 127)"),
        "delay": ("hip-delay-unresolved", "the first such call fails"),
        "lookup": ("hip-lookup-unresolved", "every call of it fails"),
    }[gap.way]
    return HostCheck(
        known(key),
        "WARN" if gap.way == "delay" else "MISS",
        f"{importers}: needs {_listed(gap.functions)} of {gap.dll}, but {where} does not export "
        f"{'it' if len(gap.functions) == 1 else 'them'}: {effect}",
        value=library_of(gap.importer) if gap.way == "lookup" else f"{gap.dll}!{gap.functions[0]}",
        subject=gap.importer,
        fix=("Install the HIP SDK and driver that this ZLUDA was built for, or a ZLUDA release built for these.",),
        cure="replace",
        sources=("https://github.com/vosen/ZLUDA/issues/99", "https://github.com/patientx/ComfyUI-Zluda/issues/34"),
    )


def _absent(gap: ImportGap, importers: str, dlls: Dlls, active: HipRoot | None) -> HostCheck | None:
    """A HIP DLL that is nowhere the ZLUDA DLL looks."""
    sources = (
        "https://github.com/vladmandic/sdnext/issues/2880",
        "https://github.com/patientx/ComfyUI-Zluda/issues/25",
        "https://github.com/lshqqytiger/ZLUDA/issues/3",
    )
    if gap.way == "lookup":
        optional = gap.dll.casefold() == "miopen.dll"
        names = (gap.dll, f"lib{gap.dll}") if gap.dll.casefold() == "hipblaslt.dll" else (gap.dll,)
        nearby = next((place for place in (_elsewhere(name, dlls, active) for name in names) if place), "")
        return HostCheck(
            known("hip-library-missing"),
            "WARN" if optional else "MISS",
            f"{importers}: needs {gap.dll}, which is neither beside it nor in HIP_PATH\\bin, so that "
            "every call of it fails, after a message box",
            value=library_of(gap.importer),
            subject=gap.importer,
            fix=(
                f"{nearby} has it: point HIP_PATH at the folder above that."
                if nearby
                else f"Point HIP_PATH at {'an AMD TheRock build' if optional else 'a HIP SDK'} that has {gap.dll}.",
            ),
            cure="setup",
            sources=sources,
        )
    if generation_of_runtime(gap.dll) and gap.way == "delay":
        return None  # the runtime's absence is told once, by hip-runtime-missing
    if active is not None and is_file(dlls.source, join(active.path, "bin", gap.dll)):
        return None  # told by hip-sdk-off-path
    nearby = _elsewhere(gap.dll, dlls, active)
    missing = f"{importers}: needs {gap.dll}, which is neither beside it nor in System32 or on PATH"
    effect = "it does not load (error 126)"
    if nearby:
        return HostCheck(
            known("hip-dll-elsewhere"),
            "MISS",
            f"{missing}, while {nearby} has it: {effect}",
            value=gap.dll,
            subject=gap.importer,
            fix=(f"Add {nearby} to PATH of the program and set HIP_PATH to the folder above it.",),
            cure="setup",
            sources=sources,
        )
    return HostCheck(
        known("hip-dll-missing"),
        "MISS",
        f"{missing}: {effect}",
        value=gap.dll,
        subject=gap.importer,
        fix=(f"Install the HIP SDK that brings {gap.dll}, or take a ZLUDA made for the SDK that is here.",),
        cure="replace",
        sources=sources,
    )


def _elsewhere(dll: str, dlls: Dlls, active: HipRoot | None) -> str:
    """Another place on the PC that has the DLL and where this ZLUDA does not look."""
    source = dlls.source
    roots = [join(drive, "Program Files", "AMD", "ROCm") for drive in source.drives()]
    places = [join(root, entry.name, "bin") for root in roots for entry in source.listing(root) if entry.is_dir]
    places += [*source.path, *([join(active.path, "bin")] if active else [])]
    return next((place for place in places if is_file(source, join(place, dll))), "")


def _runtimes(folder: ZludaFolder, dlls: Dlls) -> list[HostCheck]:
    """Visual C++ runtime DLLs that ZLUDA's DLLs import and System32 has not."""
    source = dlls.source
    system = "C:\\Windows\\System32"
    if not is_file(source, join(system, "kernel32.dll")):
        return []  # System32 is not part of this root
    absent: dict[str, str] = {}
    for row in folder.files:
        facts = dlls.facts(join(folder.path, row.name))
        for entry in facts.imports if facts else ():
            name = entry.dll.casefold()
            if not name.startswith(("vcruntime", "msvcp")):
                continue
            if not any(is_file(source, join(place, name)) for place in (system, folder.path)):
                absent.setdefault(entry.dll, row.name)
    return [
        HostCheck(
            known("vc-runtime-missing"),
            "MISS",
            f"{importer} needs {dll}, which is not in System32",
            value=dll,
            subject=importer,
            fix=("Install the current Microsoft Visual C++ Redistributable (x64).",),
            cure="setup",
            sources=("https://github.com/patientx/ComfyUI-Zluda/issues/326",),
        )
        for dll, importer in sorted(absent.items())
    ]
