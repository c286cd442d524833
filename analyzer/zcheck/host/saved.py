"""A PC from a file: the JSON of ``zcheck host``, or the gpu-report.json of CUDA-for-AMD-Windows' GPU scan."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path
from typing import Any

import msgspec

from zcheck.errors import DataError, InputError
from zcheck.host.adapters import identify
from zcheck.host.check_conflicts import check_known_bad
from zcheck.host.check_gpu import check_adapters
from zcheck.host.check_hip import check_roots
from zcheck.host.faked import FakedSource
from zcheck.host.reader import ordered, stepped
from zcheck.model.host import HOST_SCHEMA, Adapter, HipRoot, Host, HostTables

_MAX_JSON = 32 * 1024 * 1024
"""bytes"""


def load_host(path: Path, tables: HostTables) -> Host:
    """The PC of a JSON file. Raises InputError when it cannot be read and DataError when it is neither of the two."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError(f"{path}: is no regular file")
        if path.stat().st_size > _MAX_JSON:
            raise DataError(f"{path}: larger than 32 MiB, so no host report")
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    try:
        content = json.loads(data.decode("utf-8-sig"))
    except ValueError as error:
        raise DataError(f"{path}: is not JSON: {error}") from None
    except RecursionError:
        raise DataError(f"{path}: is nested too deeply") from None
    if not isinstance(content, dict):
        raise DataError(f"{path}: holds no object, so no host report")
    if "devices" in content and "checks" not in content:
        return _seed_report(path, content, tables)
    if content.get("schema") != HOST_SCHEMA:
        raise DataError(f"{path}: is no host report of schema {HOST_SCHEMA} and no gpu-report.json")
    try:
        return msgspec.convert(content, Host, strict=True)
    except msgspec.ValidationError as error:
        raise DataError(f"{path}: is no host report: {error}") from None


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else str(value) if isinstance(value, (int, float)) else ""


def _memory(value: object) -> int | None:
    """MiB of ``15.92 GB``, or of a number of bytes."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
        return int(value) >> 20 if value > 1 << 24 else None
    match = re.match(r"\s*(\d+(?:\.\d+)?)\s*([GM])i?B", _text(value), re.IGNORECASE)
    if not match:
        return None
    return round(float(match.group(1)) * (1024 if match.group(2).upper() == "G" else 1))


def _seed_report(path: Path, content: dict[str, Any], tables: HostTables) -> Host:
    """gpu-report.json: windows, hip_root, hip_version, devices[index, name, gfx, memory, driver_version, detection]."""
    devices = content["devices"]
    if isinstance(devices, dict):
        devices = [devices]  # PowerShell writes a list of one as the one
    if not isinstance(devices, list):
        raise DataError(f"{path}: devices holds no list")
    adapters: list[Adapter] = []
    for position, raw in enumerate(devices):
        if not isinstance(raw, dict) or not _text(raw.get("name")):
            raise DataError(f"{path}: devices[{position}] has no name")
        gfx = re.match(r"gfx[0-9a-f]{3,5}", _text(raw.get("gfx")).lower())
        index = raw.get("index")
        adapters.append(
            Adapter(
                index=index if isinstance(index, int) and index >= 0 else position,
                name=_text(raw.get("name")),
                gfx=gfx.group() if gfx else "",
                gfx_by=("hipinfo" if "hipinfo" in _text(raw.get("detection")).casefold() else "name") if gfx else "",
                driver_version=_text(raw.get("driver_version")),
                memory_mib=_memory(raw.get("memory")),
            )
        )
    found = tuple(identify(adapter, tables) for adapter in adapters)
    version = re.match(r"\d+\.\d+", _text(content.get("hip_version")))
    hip_root = _text(content.get("hip_root"))
    roots = (
        (
            HipRoot(
                path=hip_root,
                found_by="gpu-report.json",
                kind="sdk" if version else "unknown",
                version=version.group() if version else "",
                version_by="gpu-report.json",
                generation=version.group().partition(".")[0] if version else "",
            ),
        )
        if hip_root
        else ()
    )
    windows = content.get("windows")
    if isinstance(windows, dict):
        windows = windows.get("build") or windows.get("version") or ""
    build = re.search(r"\d+\.\d+\.\d{4,}(?:\.\d+)?", _text(windows))
    active = roots[0] if roots else None
    selected = content.get("selected_gpu_index")
    visible = str(selected) if isinstance(selected, int) and selected >= 0 else ""
    checks = [*check_adapters(found, active, (), visible, tables)]
    if active is not None:
        checks += check_roots((active,), active, {}, tables)
    checks += check_known_bad(build.group() if build else "", found, active, (), tables)
    return Host(
        source="gpu-report",
        os="Windows",
        os_build=build.group() if build else "",
        adapters=stepped(found, checks),
        hip=roots,
        checks=ordered(checks),
    )


def people(root: Path) -> tuple[str, str]:
    """User and computer name that a faked root's host.yaml tells, for redaction; empty where it tells none."""
    return FakedSource(root).people
