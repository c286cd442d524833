"""Replays → report sections, evidence items and notes. Pure functions.

``device_code_reports`` fills ``model.report.DeviceCodeReport`` (section by section), ``evidence_items`` the evidence
vocabulary (whole file), ``hardware_notes`` what a GPU makes of it, ``compile_estimate`` the work of a first run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from zcheck.model.device_code import (
    Container,
    ContainerReplay,
    DeviceCodeFacts,
    DeviceEntry,
    PtxModule,
    ReleasePtx,
    Replay,
)
from zcheck.model.evidence import DeviceCode
from zcheck.model.report import DeviceCodeReport, ReplayReport
from zcheck.model.report import DeviceEntry as ReportedEntry

MAX_NAME = 96
"""characters of a kernel name in a reason (mangled template names pass 2,000)"""
MAX_NOTED = 3
"""reasons in the one sentence of an evidence item"""
MAX_NAMED = 12
"""kernels named in one reason"""
# PTX text a second: what ZLUDA's compiler gets through is not known to the tables, so the estimate names sizes and the
# advice only, never seconds.
LARGE_PTX = 8 * 1024 * 1024


def device_code_reports(
    module: str, code: DeviceCodeFacts, replays: Sequence[Replay], notes: Sequence[str] = ()
) -> tuple[DeviceCodeReport, ...]:
    """One report per section that holds device code, in the order of the file; loose files have the section ``""``."""
    images = {image.container: image for image in code.images()}
    everything: list[Container] = list(code.containers)
    everything += [Container(entry.offset, entry.stored, "", (entry,)) for entry in code.loose]
    sections: dict[str, list[int]] = {}
    for number, container in enumerate(everything):
        sections.setdefault(container.section, []).append(number)
    reports = []
    for section, numbers in sections.items():
        entries = tuple(_entry(entry, number) for number in numbers for entry in everything[number].entries)
        by_release = {
            one.release: _section_replay(one, [c for c in one.containers if c.container in numbers]) for one in replays
        }
        own = list(notes)
        if section in code.opaque:
            own.append("compressed as a whole: not read")
        if not any(number in images for number in numbers):
            own.append("relocatable device code: input of the linked image, not loaded by itself")
        reports.append(DeviceCodeReport(module, section, entries, by_release, len(numbers), tuple(own)))
    for section in code.opaque:
        if section not in sections:
            reports.append(DeviceCodeReport(module, section, (), {}, 0, ("compressed as a whole: not read",)))
    return tuple(reports)


def _entry(entry: DeviceEntry, container: int) -> ReportedEntry:
    return ReportedEntry(
        kind=entry.kind if entry.kind != "other" else f"other ({entry.number})",
        arch=entry.arch,
        version=entry.version,
        compression=entry.compression,
        kernels=len(entry.kernels),
        size=entry.size,
        container=container,
        problem=entry.problem,
    )


def _section_replay(replay: Replay, parts: list[ContainerReplay]) -> ReplayReport:
    failing = [part.load_fails for part in parts if part.load_fails]
    return ReplayReport(
        chosen=parts[0].chosen if len(parts) == 1 else None,
        kernels=sum(part.kernels for part in parts),
        loadable=sum(part.loadable for part in parts),
        dropped=sum(part.dropped for part in parts),
        stub=sum(part.stub for part in parts),
        load_fails=failing[0] if failing and all(part.load_fails for part in parts if part.kernels) else None,
        empty=sum(part.empty for part in parts),
        lost=sum(part.lost for part in parts),
        reasons=reasons(parts),
    )


def reasons(parts: Sequence[ContainerReplay], names: int = MAX_NAMED) -> tuple[str, ...]:
    """Why kernels are not loadable, the most frequent cause first, with the kernels it concerns."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for part in parts:
        for fate in part.fates:
            grouped.setdefault((fate.fate, fate.reason), []).append(fate.name)
    lines = []
    for (kind, reason), kernels in sorted(grouped.items(), key=lambda item: -len(item[1])):
        named = ", ".join(_short(name) for name in kernels[:names])
        if len(kernels) > names:
            named += f" and {len(kernels) - names} more"
        lines.append(f"{kind}: {reason} ({len(kernels)}: {named})")
    return tuple(lines)


def _short(name: str) -> str:
    """A mangled name as far as a line can hold it."""
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"


def evidence_items(module: str, code: DeviceCodeFacts, replays: Sequence[Replay]) -> tuple[DeviceCode, ...]:
    """One item without a release (what is there), then one for each release; none when there is no device code."""
    images = code.images()
    entries = [entry for container in code.containers for entry in container.entries] + list(code.loose)
    if not entries and not code.opaque:
        return ()
    held = [container for image in images for container in _parts(image.modules, image.linked)]
    names = {(c.offset, name) for c in held for entry in c.entries for name in entry.kernels}
    facts = DeviceCode(
        module=module,
        containers=len(code.containers),
        ptx=sum(1 for entry in entries if entry.kind == "ptx"),
        sass=sum(1 for entry in entries if entry.kind == "sass"),
        kernels=len(names),
        opaque=bool(code.opaque),
        ptx_bytes=sum(entry.size for entry in entries if entry.kind == "ptx"),
        note="; ".join(f"section {name} compressed as a whole" for name in code.opaque),
    )
    items = [facts]
    for replay in replays:
        note = replay.load_fails or "; ".join(replay.reasons[:MAX_NOTED])
        items.append(
            DeviceCode(
                module=module,
                release=replay.release,
                containers=len(code.containers),
                ptx=facts.ptx,
                sass=facts.sass,
                kernels=replay.kernels,
                loadable=replay.loadable,
                dropped=replay.dropped,
                stub=replay.stub,
                empty=replay.empty,
                lost=replay.lost,
                opaque=bool(code.opaque),
                ptx_bytes=replay.ptx_bytes,
                note=note,
            )
        )
    return tuple(items)


def _parts(modules: tuple[Container, ...], linked: Container | None) -> tuple[Container, ...]:
    return (*modules, linked) if linked is not None else modules


def texts(code: DeviceCodeFacts) -> tuple[PtxModule, ...]:
    """All PTX texts of the file."""
    entries = [entry for container in code.containers for entry in container.entries] + list(code.loose)
    return tuple(entry.ptx for entry in entries if entry.ptx is not None)


def hardware_notes(
    code: DeviceCodeFacts, release: ReleasePtx, gfx: str, capabilities: Sequence[Mapping[str, str]]
) -> tuple[str, ...]:
    """What the tables know of this GPU and the program's PTX; nothing for a GPU that they do not know.

    ``capabilities`` are rows of the table gfx_capabilities (hip/gfx_capabilities.csv).
    """
    row = next((row for row in capabilities if row["gfx"] == gfx), None)
    if row is None:
        return ()
    modules = texts(code)
    used = {statement for module in modules for statement in module.statements}
    opcodes = {statement.partition(".")[0] for statement in used}
    notes = []
    upstream = release.selection in ("first", "last-valid")
    if upstream and row["wavefront_default"] == "64":
        notes.append(f"{gfx} runs waves of 64, {release.release} compiles for waves of 32 only")
    if "mma" in opcodes:
        if release.selection == "last-valid":
            integer = any(s.startswith("mma.") and ".s8" in s for s in used)
            kinds = "bf16 and int8" if integer else "bf16"
            if row["generation"].startswith("RDNA3"):
                notes.append(f"mma of {kinds} goes through WMMA on {gfx}, of f16 through software")
            else:
                notes.append(f"mma is done in software on {gfx}: correct, and slow")
        elif release.selection == "first" and not row["generation"].startswith("RDNA3"):
            notes.append(f"{release.release} turns mma into the WMMA instruction of gfx11, which {gfx} does not have")
    if any("bf16" in statement for statement in used) and row["bf16_instructions"] == "no":
        notes.append(f"{gfx} has no bf16 instructions: bf16 arithmetic is emulated")
    if opcodes & {"dp4a", "dp2a"} and row["int8_dot4"] == "no":
        notes.append(f"{gfx} has no int8 dot product: dp4a is emulated")
    notes += _shared_notes(modules, gfx, row)
    return tuple(notes)


def _shared_notes(modules: Sequence[PtxModule], gfx: str, row: Mapping[str, str]) -> list[str]:
    limit = int(row["lds_kib_per_workgroup"] or 0) * 1024
    if not limit:
        return []
    over = sorted({f.name for module in modules for f in module.functions if f.shared > limit})
    notes = []
    if over:
        named = ", ".join(over[:MAX_NAMED])
        notes.append(f"shared memory beyond the {limit // 1024} KiB of a work-group on {gfx}: {named}")
    if any(module.extern_shared for module in modules):
        notes.append(
            f"kernels ask for dynamic shared memory at launch; a launch beyond {limit // 1024} KiB fails on {gfx} "
            "(NVIDIA GPUs allow up to 227 KiB)"
        )
    return notes


def compile_estimate(replay: Replay, release: ReleasePtx) -> str | None:
    """The work of a first run and what to do about it; None when nothing has to be compiled."""
    if not replay.ptx_bytes or not replay.loadable:
        return None
    size = replay.ptx_bytes
    text = f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{max(1, size // 1000)} kB"
    line = f"the first run compiles up to {text} of PTX ({replay.loadable} kernels); ZLUDA keeps the result"
    if size >= LARGE_PTX:
        line += "; let it finish undisturbed once"
        if release.precompile:
            # It reads containers of a section .nv_fatb only (zluda_precompile/src/main.rs).
            line += ", or run zluda_precompile on the program's folder before"
    return line
