"""The real Windows adapter: registry, environment, drives and hipInfo. Also works under Wine."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from zcheck.host import hipinfo
from zcheck.host.source import Entry, key, normal, read_folder, wanted
from zcheck.model.base import Problem
from zcheck.model.host import Adapter

DISPLAY_CLASS = r"SYSTEM\CurrentControlSet\Control\Class\{4d36e968-e325-11ce-bfc1-08002be10318}"
"""device setup class of display adapters; one numbered key an adapter"""
_VERSION = r"SOFTWARE\Microsoft\Windows NT\CurrentVersion"
_MACHINE_ENV = r"SYSTEM\CurrentControlSet\Control\Session Manager\Environment"
_MAX_ADAPTERS = 64


class WindowsSource:
    """This Windows PC. Reads the registry and files only; hipInfo is run when asked for."""

    kind = "windows"
    os = "Windows"

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.adapters_listed = True
        self.os_build = self._build()
        self.env = {name.upper(): value for name, value in os.environ.items() if wanted(name)}
        entries: list[str] = []
        for raw in (self._path_of("machine"), self._path_of("user"), os.environ.get("PATH", "")):
            entries += [normal(os.path.expandvars(item)) for item in raw.split(";")]
        seen: dict[str, str] = {}
        for entry in entries:
            if entry:
                seen.setdefault(key(entry), entry)
        self.path = tuple(seen.values())

    def _value(self, hive: str, path: str, name: str) -> Any:
        if sys.platform != "win32":
            return None
        import winreg

        root = winreg.HKEY_LOCAL_MACHINE if hive == "machine" else winreg.HKEY_CURRENT_USER
        try:
            with winreg.OpenKey(root, path, 0, winreg.KEY_READ | winreg.KEY_WOW64_64KEY) as opened:
                return winreg.QueryValueEx(opened, name)[0]
        except OSError:
            return None

    def _build(self) -> str:
        """``10.0.26200.9445``: build and update revision from the registry, where the revision is told at all."""
        build = self._value("machine", _VERSION, "CurrentBuildNumber") or self._value(
            "machine", _VERSION, "CurrentBuild"
        )
        if not build:
            return ""
        major = self._value("machine", _VERSION, "CurrentMajorVersionNumber")
        minor = self._value("machine", _VERSION, "CurrentMinorVersionNumber")
        start = (
            f"{major}.{minor}" if major is not None else str(self._value("machine", _VERSION, "CurrentVersion") or "")
        )
        revision = self._value("machine", _VERSION, "UBR")
        parts = [start, str(build), *([str(revision)] if revision is not None else [])]
        return ".".join(part for part in parts if part)

    def _path_of(self, hive: str) -> str:
        value = self._value(hive, _MACHINE_ENV if hive == "machine" else "Environment", "Path")
        return value if isinstance(value, str) else ""

    def adapters(self) -> tuple[Adapter, ...]:
        """The display class keys of the registry, in their order."""
        if sys.platform != "win32":
            return ()
        import winreg

        found: list[Adapter] = []
        try:
            opened = winreg.OpenKey(
                winreg.HKEY_LOCAL_MACHINE, DISPLAY_CLASS, 0, winreg.KEY_READ | winreg.KEY_WOW64_64KEY
            )
        except OSError as error:
            self.problems.append(Problem("registry", f"the display adapters cannot be read: {error.strerror}"))
            self.adapters_listed = False
            return ()
        with opened:
            names = []
            for position in range(_MAX_ADAPTERS):
                try:
                    names.append(winreg.EnumKey(opened, position))
                except OSError:
                    break
        for name in sorted(names):
            if re.fullmatch(r"\d{4}", name):
                adapter = self._adapter(f"{DISPLAY_CLASS}\\{name}", len(found))
                if adapter is not None:
                    found.append(adapter)
        return tuple(found)

    def _adapter(self, path: str, index: int) -> Adapter | None:
        def text(name: str) -> str:
            value = self._value("machine", path, name)
            if isinstance(value, (list, tuple)):
                value = value[0] if value else ""
            return value.strip("\0 ") if isinstance(value, str) else ""

        name = text("DriverDesc")
        if not name:
            return None
        memory = self._value("machine", path, "HardwareInformation.qwMemorySize")
        if memory is None:
            memory = self._value("machine", path, "HardwareInformation.MemorySize")
        if isinstance(memory, bytes):
            memory = int.from_bytes(memory[:8], "little")
        return Adapter(
            index=index,
            name=name,
            driver_version=text("DriverVersion"),
            software_version=text("RadeonSoftwareVersion"),
            software_edition=text("RadeonSoftwareEdition"),
            pnp_id=text("MatchingDeviceId"),
            memory_mib=memory >> 20 if isinstance(memory, int) and memory > 0 else None,
        )

    def local(self, path: str) -> Path | None:
        """The path itself; a 32-bit Python sees System32 through Sysnative."""
        cleaned = normal(path)
        if not cleaned or cleaned.startswith("\\\\"):
            return None  # a network share may take seconds to say that it is not there
        windows = os.environ.get("SYSTEMROOT")
        if windows:
            cleaned = re.sub(r"(?i)^c:\\windows(?=\\|$)", lambda _: windows, cleaned)
        if sys.maxsize < 1 << 32:
            cleaned = re.sub(r"(?i)^([a-z]:\\windows)\\system32", r"\1\\Sysnative", cleaned)
        place = Path(cleaned)
        try:
            return place if place.exists() else None
        except OSError:
            return None

    def listing(self, path: str) -> tuple[Entry, ...]:
        """The entries of a folder."""
        place = self.local(path)
        return tuple(sorted(read_folder(place))) if place is not None else ()

    def drives(self) -> tuple[str, ...]:
        """The system drive and the other fixed drives."""
        system = (os.environ.get("SYSTEMDRIVE") or "C:").upper() + "\\"
        others = [drive for drive in _fixed_drives() if drive != system]
        return (system, *others)

    def hipinfo(self, path: str, timeout: float) -> tuple[str | None, str]:
        """Runs hipInfo.exe."""
        place = self.local(path)
        if place is None or timeout <= 0:
            return None, ""
        return hipinfo.run(str(place), timeout)


def _fixed_drives() -> list[str]:
    """``D:\\`` and so on, for drives of type 3 (fixed): a network or removable drive may be slow to answer."""
    if sys.platform != "win32":
        return []
    import ctypes

    kernel = ctypes.windll.kernel32
    mask = kernel.GetLogicalDrives()
    letters = [chr(ord("A") + bit) + ":\\" for bit in range(26) if mask >> bit & 1]
    return [letter for letter in letters if kernel.GetDriveTypeW(letter) == 3]
