"""hipInfo.exe of a HIP SDK: run it under a time limit, read what it prints. Needs Windows to run; parsing is pure."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from zcheck.model.base import Record

_LINE = re.compile(r"^\s*(device#)\s+(\S.*?)\s*$|^\s*([A-Za-z][\w ]*?)\s*:\s*(\S.*?)\s*$")
_GFX = re.compile(r"gfx[0-9a-f]{3,5}", re.IGNORECASE)
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B", re.IGNORECASE)
_UNIT = {"": 1 / (1 << 20), "K": 1 / 1024, "M": 1, "G": 1024, "T": 1024 * 1024}
MAX_OUTPUT = 1 << 20
"""bytes of output that are read"""


class Device(Record, frozen=True):
    """One device of hipInfo's list, in HIP's order."""

    index: int
    name: str
    gfx: str
    memory_mib: int | None
    integrated: bool | None


def parse(text: str) -> tuple[Device, ...]:
    """The devices of hipInfo's output; lines that say nothing known are passed over.

    Format: one block a device that begins with ``device#``; ``gcnArchName`` may carry features (``gfx906:sramecc+``).
    """
    blocks: list[dict[str, str]] = []
    for raw in text[:MAX_OUTPUT].splitlines():
        match = _LINE.match(raw)
        if not match:
            continue
        name, value = (match.group(1) or match.group(3)).casefold(), match.group(2) or match.group(4)
        if name == "device#":
            blocks.append({"device#": value})
        elif blocks:
            blocks[-1].setdefault(name, value)
    devices = []
    for position, block in enumerate(blocks):
        gfx = _GFX.match(block.get("gcnarchname", ""))
        size = _SIZE.match(block.get("totalglobalmem", ""))
        digits = re.match(r"\d+", block["device#"])
        devices.append(
            Device(
                index=int(digits.group()) if digits else position,
                name=block.get("name", ""),
                gfx=gfx.group().lower() if gfx else "",
                memory_mib=round(float(size.group(1)) * _UNIT[size.group(2).upper()]) if size else None,
                integrated={"1": True, "0": False}.get(block.get("isintegrated", "")),
            )
        )
    return tuple(devices)


def run(program: str, timeout: float) -> tuple[str | None, str]:
    """hipInfo's output and an empty string, or None and why: it did not start, hung or failed.

    The program is ended with everything it started when ``timeout`` seconds have passed.
    """
    try:
        process = subprocess.Popen(
            [program],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except OSError as error:
        return None, f"could not be started: {error.strerror or error}"
    end = _ender(process)
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        end()
        with contextlib.suppress(subprocess.TimeoutExpired):  # whatever still holds the pipe must not hold us
            process.communicate(timeout=2)
        return None, f"did not answer within {timeout:g} s"
    text = output[:MAX_OUTPUT].decode("utf-8", "replace")
    if process.returncode or not parse(text):
        said = next((line.strip() for line in text.splitlines() if "error" in line.casefold()), "")
        return None, said or f"listed no device (exit code {process.returncode & 0xFFFFFFFF:#x})"
    return text, ""


def _ender(process: subprocess.Popen[bytes]) -> Callable[[], None]:
    """What ends the process with all its children: a job object on Windows, where killing a parent spares them."""
    if sys.platform != "win32":
        return process.kill
    import ctypes
    from ctypes import wintypes

    kernel = ctypes.WinDLL("kernel32", use_last_error=True)
    kernel.CreateJobObjectW.restype = wintypes.HANDLE
    kernel.CreateJobObjectW.argtypes = (wintypes.LPVOID, wintypes.LPCWSTR)
    kernel.AssignProcessToJobObject.argtypes = (wintypes.HANDLE, wintypes.HANDLE)
    kernel.TerminateJobObject.argtypes = (wintypes.HANDLE, wintypes.UINT)
    opened: Any = process  # the handle is Popen's own, not a documented attribute
    job = kernel.CreateJobObjectW(None, None)
    if not job or not kernel.AssignProcessToJobObject(job, int(opened._handle)):
        return process.kill

    def end() -> None:
        kernel.TerminateJobObject(job, 1)

    return end
