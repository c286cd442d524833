"""A Linux machine with ROCm: the kernel driver's list of devices and the ROCm folders. Anything else: nothing found."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

from zcheck.host.source import Entry, read_folder, wanted
from zcheck.model.base import Problem
from zcheck.model.host import Adapter, DllFact, HipRoot

_NODES = "sys/class/kfd/kfd/topology/nodes"
# library file of ROCm on Linux -> component
_LIBRARIES = {
    "libamdhip64.so": "HIP runtime",
    "librocblas.so": "rocBLAS",
    "libhipblas.so": "hipBLAS",
    "libhipblaslt.so": "hipBLASLt",
    "librocsparse.so": "rocSPARSE",
    "libMIOpen.so": "MIOpen",
    "librocfft.so": "rocFFT",
    "librocrand.so": "rocRAND",
    "librocsolver.so": "rocSOLVER",
}


def gfx_of(target: int) -> str:
    """``gfx1100`` of the kernel's gfx_target_version 110000: major, two digits of minor, two of stepping."""
    major, minor, step = target // 10000, target // 100 % 100, target % 100
    return f"gfx{major}{minor:x}{step:x}"


class LinuxSource:
    """This machine, through ``/sys`` and ``/opt``; ``top`` stands for ``/``."""

    kind = "linux"

    def __init__(self, top: Path = Path("/")) -> None:
        self.top = top
        self.problems: list[Problem] = []
        self.adapters_listed = True
        self.os = platform.system()
        self.os_build = platform.release()
        self.env = {name.upper(): value for name, value in os.environ.items() if wanted(name)}
        self.path: tuple[str, ...] = ()

    def adapters(self) -> tuple[Adapter, ...]:
        """The GPUs that the kernel's compute driver lists."""
        found: list[Adapter] = []
        nodes = sorted((entry.name for entry in read_folder(self.top / _NODES)), key=lambda name: (len(name), name))
        for node in nodes:
            try:
                text = (self.top / _NODES / node / "properties").read_text(encoding="ascii", errors="replace")
            except OSError:
                continue
            values = {name: int(value) for name, value in re.findall(r"(?m)^(\w+) (\d+)$", text)}
            target = values.get("gfx_target_version", 0)
            if not target:
                continue  # the processor is a node, too
            device = f"{values.get('device_id', 0):04x}"
            found.append(
                Adapter(
                    index=len(found),
                    name=f"AMD GPU {device}",
                    vendor="AMD",
                    gfx=gfx_of(target),
                    gfx_by="kfd",
                    pnp_id=f"PCI\\VEN_{values.get('vendor_id', 0):04X}&DEV_{device.upper()}",
                )
            )
        return tuple(found)

    def rocm(self) -> tuple[HipRoot, ...]:
        """The ROCm folders under ``/opt``."""
        roots = []
        for entry in sorted(read_folder(self.top / "opt")):
            if not re.fullmatch(r"rocm(-[\d.]+)?", entry.name) or not entry.is_dir:
                continue
            folder = self.top / "opt" / entry.name
            version, by = "", ""
            try:
                version = (
                    (folder / ".info" / "version").read_text(encoding="ascii", errors="replace").split("-")[0].strip()
                )
                by = ".info/version"
            except OSError:
                if "-" in entry.name:
                    version, by = entry.name.partition("-")[2], "folder name"
            libraries = {file.name for file in read_folder(folder / "lib")}
            present = {name: part for name, part in _LIBRARIES.items() if name in libraries}
            roots.append(
                HipRoot(
                    path=f"/opt/{entry.name}",
                    found_by="/opt",
                    kind="sdk",
                    version=version,
                    version_by=by,
                    generation=version.partition(".")[0],
                    dlls=tuple(DllFact(name=name, path=f"/opt/{entry.name}/lib/{name}") for name in present),
                    components=tuple(dict.fromkeys(present.values())),
                )
            )
        return tuple(roots)

    def local(self, path: str) -> Path | None:
        """No Windows path is here."""
        return None

    def listing(self, path: str) -> tuple[Entry, ...]:
        """No Windows folder is here."""
        return ()

    def drives(self) -> tuple[str, ...]:
        """No drives."""
        return ()

    def hipinfo(self, path: str, timeout: float) -> tuple[str | None, str]:
        """No hipInfo.exe."""
        return None, ""
