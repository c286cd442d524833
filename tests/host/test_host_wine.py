"""The real Windows adapter, run by CPython for Windows under Wine: registry adapters, System32, hipInfo.exe."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pcs
import pytest
from test_host_matrix import read

from winpython import WinPython, mingw, winpython  # noqa: F401 (the fixture)

pytestmark = [pytest.mark.wine, pytest.mark.xdist_group("host-wine")]
HIPINFO = r"""
#define PARENT "C:\\hipinfo.parent"
#define CHILD "C:\\hipinfo.child"
#include <stdio.h>
#include <string.h>
#include <windows.h>
int main(int argc, char **argv) {
#ifdef HANG
    /* The file goes when the process that holds it does. The child keeps the pipe open, too. */
    CreateFileA(argc < 2 ? PARENT : CHILD, GENERIC_WRITE, 7, NULL, CREATE_ALWAYS, FILE_FLAG_DELETE_ON_CLOSE, NULL);
    if (argc < 2) {
        STARTUPINFOA start; PROCESS_INFORMATION made; char line[1024];
        memset(&start, 0, sizeof start); start.cb = sizeof start;
        start.dwFlags = STARTF_USESTDHANDLES; start.hStdOutput = GetStdHandle(STD_OUTPUT_HANDLE);
        snprintf(line, sizeof line, "\"%s\" child", argv[0]);
        CreateProcessA(NULL, line, NULL, NULL, TRUE, 0, NULL, NULL, &start, &made);
    }
    Sleep(120000);
    return 0;
#elif defined(FAIL)
    puts("checkHipErrors() HIP API error = 0100 \"no ROCm-capable device is detected\"");
    return 100;
#else
    puts("--------------------------------------------------------------------------------");
    puts("device#                           0");
    puts("Name:                             AMD Radeon RX 9060 XT");
    puts("pciBusID:                         3");
    puts("totalGlobalMem:                   15.92 GB");
    puts("isIntegrated:                     0");
    puts("gcnArchName:                      gfx1200");
    puts("device#                           1");
    puts("Name:                             AMD Radeon(TM) Graphics");
    puts("totalGlobalMem:                   12.10 GB");
    puts("isIntegrated:                     1");
    puts("gcnArchName:                      gfx1036");
    return 0;
#endif
}
"""
# Not through typer: the pydantic that newer ones parse options with does not load under Wine 8.
VERB = """
import sys, json
from zcheck.cli.host import HostFormat, find_host, redaction_names, written
options = json.loads(sys.argv[1])
form = HostFormat(options.pop("form", "json"))
found = find_host(**options)
if form is not HostFormat.json:
    from zcheck.render import redact_product
    found = redact_product(found, redaction_names(None))
sys.stdout.buffer.write(written(found, form).encode())
"""
ADAPTERS: dict[str, dict[str, tuple[str, str]]] = {
    "0007": {
        "DriverDesc": ("REG_SZ", "AMD Radeon(TM) Graphics"),
        "DriverVersion": ("REG_SZ", "32.0.21025.1024"),
        "MatchingDeviceId": ("REG_SZ", r"PCI\VEN_1002&DEV_164E&REV_C1"),
        "HardwareInformation.MemorySize": ("REG_BINARY", "00000020"),
    },
    "0008": {
        "DriverDesc": ("REG_SZ", "AMD Radeon RX 9060 XT"),
        "DriverVersion": ("REG_SZ", "32.0.21025.1024"),
        "RadeonSoftwareVersion": ("REG_SZ", "25.3.1"),
        "RadeonSoftwareEdition": ("REG_SZ", "Adrenalin Edition"),
        "MatchingDeviceId": ("REG_SZ", r"PCI\VEN_1002&DEV_7590&REV_C0"),
        "HardwareInformation.qwMemorySize": ("REG_QWORD", "17095983104"),
    },
}


class Pc:
    """A Windows PC under Wine with two AMD adapters in its registry, a driver, an SDK and a ZLUDA folder."""

    def __init__(self, windows: WinPython, root: Path) -> None:
        self.windows = windows
        self.root = root
        self.bin = windows.drive_c / "Program Files" / "AMD" / "ROCm" / "6.4" / "bin"

    def hipinfo(self, tmp_path: Path, kind: str = "") -> None:
        """Put a hipInfo.exe into the SDK: one that lists two devices, fails or hangs."""
        source = tmp_path / "hipinfo.c"
        source.write_text(HIPINFO)
        flags = [f"-D{kind}"] if kind else []
        subprocess.run([mingw(), "-O1", "-s", *flags, "-o", str(self.bin / "hipInfo.exe"), str(source)], check=True)

    def written(self, env: Mapping[str, str] | None = None, **options: object) -> str:
        """What zcheck host writes on this PC."""
        variables = {"HIP_PATH": r"C:\Program Files\AMD\ROCm\6.4", **(env or {})}
        done = self.windows.python("-c", VERB, json.dumps({"zluda_dir": r"C:\zluda", **options}), env=variables)
        assert done.returncode == 0, done.stderr
        return str(done.stdout)

    def host(self, **options: object) -> dict[str, Any]:
        """The JSON of zcheck host on this PC."""
        return json.loads(self.written(**options))  # type: ignore[no-any-return]


REGISTER = r"""
import json, sys, winreg
path = r"SYSTEM\CurrentControlSet\Control\Class\{4d36e968-e325-11ce-bfc1-08002be10318}"
for number, values in json.loads(sys.argv[1]).items():
    key = winreg.CreateKey(winreg.HKEY_LOCAL_MACHINE, path + chr(92) + number)
    for name, (kind, value) in values.items():
        data = bytes.fromhex(value) if kind == "REG_BINARY" else int(value) if kind == "REG_QWORD" else value
        winreg.SetValueEx(key, name, 0, getattr(winreg, kind), data)
"""
UNREGISTER = r"""
import json, sys, winreg
path = r"SYSTEM\CurrentControlSet\Control\Class\{4d36e968-e325-11ce-bfc1-08002be10318}"
for number in json.loads(sys.argv[1]):
    winreg.DeleteKey(winreg.HKEY_LOCAL_MACHINE, path + chr(92) + number)
"""


@pytest.fixture(scope="module")
def pc(winpython: WinPython, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pc]:  # noqa: F811 (the fixture)
    root = pcs.build(tmp_path_factory.mktemp("pc") / "root", {"driver": ["6.4"]})
    drive = winpython.drive_c
    placed: list[Path] = []
    for source in sorted(path for path in root.rglob("*") if path.is_file() and path.name != "host.yaml"):
        relative = source.relative_to(root)
        parts = ["windows", "system32", relative.name] if relative.parts[0] == "Windows" else list(relative.parts)
        target = drive.joinpath(*parts)
        if target.exists():
            continue  # Wine's own vcruntime140.dll and the like
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())
        placed.append(target)
    done = winpython.python("-c", REGISTER, json.dumps(ADAPTERS))
    assert done.returncode == 0, done.stderr
    yield Pc(winpython, root)
    winpython.python("-c", UNREGISTER, json.dumps(list(ADAPTERS)))
    for target in placed:
        target.unlink(missing_ok=True)


def values(host: dict[str, Any], key: str) -> list[str]:
    """Values of the lines of one key."""
    return [check.get("value", "") for check in host["checks"] if check["key"] == key]


def test_registry_and_files(pc: Pc) -> None:
    host = pc.host()
    assert host["source"] == "windows"
    mine = [adapter for adapter in host["adapters"] if adapter.get("vendor") == "AMD"]
    card = next(adapter for adapter in mine if adapter["name"] == "AMD Radeon RX 9060 XT")
    assert (card["gfx"], card["gfx_by"], card["memory_mib"]) == ("gfx1200", "pci-id", 16304)
    assert (card["driver_version"], card["software_version"]) == ("32.0.21025.1024", "25.3.1")
    graphics = next(adapter for adapter in mine if adapter["name"] == "AMD Radeon(TM) Graphics")
    assert (graphics["integrated"], graphics["memory_mib"]) == (True, 512)
    assert values(host, "igpu-first")
    assert values(host, "hip-sdk") == ["6.4"]
    assert values(host, "zluda-release") == ["v6"]
    assert [row["name"] for row in host["system"] if row["name"].startswith("amdhip64")] == ["amdhip64_6.dll"]
    assert not values(host, "hip-import-unresolved")
    assert host["os_build"].count(".") >= 2


def test_hipinfo_gives_the_order(pc: Pc, tmp_path: Path) -> None:
    pc.hipinfo(tmp_path)
    host = pc.host(hipinfo=True)
    assert values(host, "hipinfo") == ["ok"]
    assert [(one["index"], one["gfx"]) for one in host["adapters"][:2]] == [(0, "gfx1200"), (1, "gfx1036")]
    assert not values(host, "igpu-first")


def test_hipinfo_that_hangs_is_ended_with_its_child(pc: Pc, tmp_path: Path) -> None:
    pc.hipinfo(tmp_path, "HANG")
    host = pc.host(hipinfo=True)
    assert values(host, "hipinfo-failed") == ["did not answer within 5 s"]
    assert {adapter["gfx"] for adapter in host["adapters"] if adapter.get("gfx")} == {"gfx1036", "gfx1200"}
    assert not [path.name for path in pc.windows.drive_c.glob("hipinfo.*")], "a process of it is still there"


def test_hipinfo_that_finds_nothing(pc: Pc, tmp_path: Path) -> None:
    pc.hipinfo(tmp_path, "FAIL")
    (said,) = values(pc.host(hipinfo=True), "hipinfo-failed")
    assert "no ROCm-capable device" in said


def test_the_faked_root_reads_the_same(pc: Pc) -> None:
    """One reader: the real adapter and a faked root of the same files say the same of SDK and ZLUDA."""
    real, faked = pc.host(), json.loads(msgspec.json.encode(read(pc.root, r"C:\zluda")))
    keys = ("hip-sdk", "hip-runtime", "zluda-release", "component-absent", "hip-dll-missing", "zluda-file-missing")
    for key in keys:
        assert values(real, key) == values(faked, key), key
    assert real["zluda"] == faked["zluda"]


def test_redaction_on_windows(pc: Pc) -> None:
    env = {"USERNAME": "ada", "USERPROFILE": r"C:\Users\ada"}
    said = pc.written(env, form="markdown", zluda_dir=r"C:\Users\ada\zluda")
    assert "zluda" in said
    assert "ada" not in said
