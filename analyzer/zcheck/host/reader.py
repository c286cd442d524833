"""``read_host``: everything about one PC, in one pass over a source."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from zcheck.errors import InputError
from zcheck.host import hipinfo as hipinfo_reader
from zcheck.host.adapters import identify, merge_hipinfo
from zcheck.host.check_conflicts import (
    check_known_bad,
    check_leftovers,
    check_off_path,
    check_paths,
    check_search_path,
    system_dlls,
)
from zcheck.host.check_gpu import check_adapters
from zcheck.host.check_hip import check_kernels, check_roots, check_runtimes
from zcheck.host.check_zluda import check_folders
from zcheck.host.dlls import Dlls, ReadPe
from zcheck.host.faked import FakedSource
from zcheck.host.keys import known
from zcheck.host.linux import LinuxSource
from zcheck.host.sdk import RUNTIMES, active_root, read_roots, with_kernels
from zcheck.host.source import Source, is_dir
from zcheck.host.zluda import layout_for, read_folders
from zcheck.model.base import Problem
from zcheck.model.host import LEVELS, Adapter, HipRoot, Host, HostCheck, HostTables, Layout, ZludaExports

HIPINFO_TIMEOUT = 5.0
"""seconds; a healthy hipInfo answers in well under one"""

SYSTEM32 = r"C:\Windows\System32"
_IN_SYSTEM32 = frozenset(("hip-runtime-missing", "hip-dll-missing", "vc-runtime-missing"))
"""lines on DLLs that may lie in System32: sure only where that was read"""


def open_source(root: Path | None) -> Source:
    """The source for a folder, or for this machine. Raises InputError and DataError for a bad folder."""
    if root is not None:
        return FakedSource(root)
    if sys.platform == "win32":
        from zcheck.host.windows import WindowsSource

        return WindowsSource()
    return LinuxSource()


def read_host(
    root: Path | None,
    *,
    read_pe: ReadPe,
    tables: HostTables,
    exports: Callable[[], ZludaExports] = ZludaExports,
    zluda_dir: str | None = None,
    hip_dir: str | None = None,
    hipinfo_timeout: float = 0.0,
    source: Source | None = None,
) -> Host:
    """The PC, read and judged.

    ``root``: a folder laid out like a system drive, None for this machine. ``zluda_dir``, ``hip_dir``: Windows paths on
    that PC. ``read_pe``: parse's reader; ``tables``, ``exports``: what the coverage database knows (exports are asked
    for only when a ZLUDA folder is found). ``hipinfo_timeout``: seconds for hipInfo.exe, 0 leaves it alone; it is the
    only program ever run and the only thing here that reaches the GPU.

    Raises InputError when the root is no folder or nothing of a PC is in it, and DataError when its host.yaml is
    malformed; anything else that is odd becomes a problem or a line of the list.
    """
    source = source if source is not None else open_source(root)
    if isinstance(source, LinuxSource):
        return _linux(source, tables)
    dlls = Dlls(source, read_pe)
    raw = source.adapters()
    roots = read_roots(source, hip_dir, dlls, tables)
    active = active_root(roots, source)
    if active is not None:
        active = with_kernels(active, source)
    adapters, hipinfo_checks = _with_hipinfo(raw, source, active, roots, hipinfo_timeout)
    adapters = tuple(identify(adapter, tables) for adapter in adapters)
    system = system_dlls(dlls, RUNTIMES)
    known_exports: list[ZludaExports] = []

    def asked() -> ZludaExports:
        if not known_exports:
            known_exports.append(exports())
        return known_exports[0]

    folders = read_folders(source, zluda_dir, active, dlls, tables, asked)
    usable = tuple(folder for folder in folders if not folder.problems)
    layouts = {folder.path: layout_for(folder.release, tables) for folder in usable}
    shown = active or next((one for one in roots if not one.problems), None)
    # An empty folder stands for a system folder that was not copied.
    system_read = bool(source.listing(SYSTEM32)) if isinstance(source, FakedSource) else is_dir(source, SYSTEM32)
    if isinstance(source, FakedSource) and not (source.described or system_read or adapters or roots or folders):
        raise InputError(f"{root}: holds no Windows: no host.yaml, no {SYSTEM32[3:]}, no HIP SDK and no ZLUDA")
    if not system_read:
        source.problems.append(Problem(SYSTEM32, "was not read, so nothing is known of the DLLs in it"))
    visible = source.env.get("HIP_VISIBLE_DEVICES", "")
    # In the order in which a program meets them: what fails first is said first.
    checks: list[HostCheck] = [
        # That no adapter is there can be told from a list only, not from the lack of one.
        *(check_adapters(adapters, shown, usable, visible, tables) if adapters or source.adapters_listed else ()),
        *hipinfo_checks,
        *check_folders(folders, layouts, dlls, active),
        *check_runtimes(system, active, usable, layouts, adapters),
        *check_off_path(source, active, usable, dlls),
        *check_roots(roots, active, source.env, tables, _reads_hip_path(layouts)),
        *check_known_bad(source.os_build, adapters, shown, usable, tables),
        *check_kernels(shown, adapters, tables),
        *check_paths(source, active, usable),
        *check_leftovers(source, system, adapters, dlls),
        *check_search_path(source, usable, dlls),
    ]
    if not system_read:
        checks = [check for check in checks if check.key not in _IN_SYSTEM32]
    return Host(
        source=source.kind,
        os=source.os,
        os_build=source.os_build,
        env=dict(sorted(source.env.items())),
        path=source.path,
        adapters=stepped(adapters, checks),
        system=system,
        hip=roots,
        zluda=folders,
        checks=ordered(checks),
        problems=tuple(dict.fromkeys([*source.problems, *dlls.problems])),
    )


def ordered(checks: Iterable[HostCheck]) -> tuple[HostCheck, ...]:
    """MISS before WARN before PASS, otherwise as found; each line once."""
    unique = list(dict.fromkeys(checks))
    return tuple(sorted(unique, key=lambda check: LEVELS.index(check.level)))


def _reads_hip_path(layouts: dict[str, Layout | None]) -> bool:
    known_ones = [layout for layout in layouts.values() if layout is not None]
    return not known_ones or any(layout.hip_path_read for layout in known_ones)


def _with_hipinfo(
    raw: tuple[Adapter, ...], source: Source, active: HipRoot | None, roots: tuple[HipRoot, ...], timeout: float
) -> tuple[tuple[Adapter, ...], list[HostCheck]]:
    path = next((one.hipinfo for one in ([active] if active else []) + list(roots) if one and one.hipinfo), "")
    if not path or (timeout <= 0 and source.kind != "root"):
        return raw, []
    text, why = source.hipinfo(path, timeout or HIPINFO_TIMEOUT)
    if text is None:
        if not why:
            return raw, []
        return raw, [
            HostCheck(
                known("hipinfo-failed"),
                "MISS",
                f"{path} {why}: the HIP runtime finds no device, so no CUDA program will",
                value=why,
                subject=path,
                fix=(
                    "Use a HIP SDK and a driver of one generation: bring the driver up to date, "
                    "or take the SDK whose runtime the driver has.",
                ),
                cure="replace",
                sources=("https://github.com/vosen/ZLUDA/issues/659",),
                confidence="medium",
            )
        ]
    devices = hipinfo_reader.parse(text)
    line = HostCheck(known("hipinfo"), "PASS", f"{path} lists {len(devices)} device(s)", value="ok", subject=path)
    return merge_hipinfo(raw, devices), [line]


def stepped(adapters: tuple[Adapter, ...], checks: list[HostCheck]) -> tuple[Adapter, ...]:
    """The adapters with the ladder step that the list gives them."""
    steps = {check.subject: check.value for check in checks if check.key == "gpu-evidence"}
    return tuple(
        msgspec.convert({**msgspec.structs.asdict(one), "status": steps[one.name]}, Adapter)
        if one.name in steps
        else one
        for one in adapters
    )


def _linux(source: LinuxSource, tables: HostTables) -> Host:
    adapters = tuple(identify(adapter, tables) for adapter in source.adapters())
    roots = source.rocm()
    checks: list[HostCheck] = []
    if adapters:
        checks += check_adapters(adapters, None, (), source.env.get("HIP_VISIBLE_DEVICES", ""), tables)
    checks += [
        HostCheck(known("hip-sdk"), "PASS", f"ROCm {one.version} in {one.path}", value=one.version, subject=one.path)
        for one in roots
    ]
    return Host(
        source=source.kind,
        os=source.os,
        os_build=source.os_build,
        env=dict(sorted(source.env.items())),
        adapters=stepped(adapters, checks),
        hip=roots,
        checks=ordered(checks),
        problems=tuple(source.problems),
    )
