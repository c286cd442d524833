"""PE files: bytes → :class:`PeFacts`."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path
from typing import Any

from zcheck.errors import InputError
from zcheck.model.base import DEFAULT_LIMITS, Limits
from zcheck.model.facts import Machine, PeFacts, Section
from zcheck.model.text import shown
from zcheck.parse.pe_exports import read_exports
from zcheck.parse.pe_image import CLR, LOAD_CONFIG, SECURITY, Image, open_image
from zcheck.parse.pe_imports import read_imports
from zcheck.parse.pe_packer import packer, section_name
from zcheck.parse.pe_resources import dependent_assemblies, read_resources
from zcheck.parse.version_info import read_version

# Microsoft, PE Format, "Machine Types" and "Windows Subsystem"
_MACHINES: dict[int, Machine] = {
    0x8664: "x64", 0x014C: "x86", 0xAA64: "arm64", 0xA641: "arm64ec", 0x01C0: "arm", 0x01C4: "arm",
}  # fmt: skip
_SUBSYSTEMS = {
    1: "native", 2: "windows", 3: "console", 5: "os2", 7: "posix", 9: "windows-ce", 10: "efi-application",
    11: "efi-boot-driver", 12: "efi-runtime-driver", 13: "efi-rom", 14: "xbox", 16: "boot-application",
}  # fmt: skip
_CHPE_POINTER = 0xC8
"""offset of CHPEMetadataPointer in IMAGE_LOAD_CONFIG_DIRECTORY64 (winnt.h), set in ARM64EC images, which claim x64"""
_IL_ONLY, _REQUIRE_32 = 1, 2
"""flags of the CLR header (ECMA-335 II.25.3.3.1)"""


def is_pe(path: Path) -> bool:
    """True when the file begins like a PE file: ``MZ`` and, where it points to, ``PE``. Never raises."""
    try:
        with path.open("rb") as file:
            head = file.read(64)
            if len(head) < 64 or head[:2] != b"MZ":
                return False
            file.seek(struct.unpack_from("<I", head, 60)[0])
            return file.read(4) == b"PE\0\0"
    except (OSError, ValueError):
        return False


def sha256(path: Path) -> str:
    """SHA-256 of a file, read in pieces; raises InputError when it cannot be read."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except OSError as error:
        raise InputError(f"{shown(path.name)} cannot be read: {error.strerror}") from None
    return digest.hexdigest()


def read_pe(path: Path, limits: Limits = DEFAULT_LIMITS) -> PeFacts:
    """The facts of one PE file, and as ``problems`` whatever was odd or missing in it.

    Raises InputError when the file cannot be opened or is not a PE file.
    """
    with open_image(path, limits) as image:
        return _facts(image)


def _facts(image: Image) -> PeFacts:
    pe = image.pe
    imports = read_imports(image)
    export_name, exports = read_exports(image)
    versions, manifests = read_resources(image)
    clr = image.directory(CLR)[0]
    dotnet = bool(clr)
    sign, entropies = packer(image, sum(len(item.symbols) for item in imports), dotnet)
    declared = pe.FILE_HEADER.NumberOfSections
    if len(pe.sections) < declared:
        image.problem(f"only {len(pe.sections)} of {declared} sections could be read")
    overlay, overlay_size = _overlay(image)
    return PeFacts(
        name=image.name,
        size=image.size,
        machine=_machine(image),
        is_dll=bool(pe.FILE_HEADER.Characteristics & 0x2000),
        subsystem=_SUBSYSTEMS.get(image.header.Subsystem, ""),
        is_dotnet=dotnet,
        any_cpu=dotnet and not image.wide and _any_cpu(image, clr),
        sections=tuple(_section(section, entropies) for section in pe.sections),
        imports=imports,
        exports=exports,
        export_name=export_name,
        version=read_version(versions),
        overlay_offset=overlay if overlay_size else 0,
        overlay_size=overlay_size,
        packer=sign,
        manifest_assemblies=dependent_assemblies(manifests, image),
        problems=tuple(image.problems),
    )


def _section(section: Any, entropies: dict[str, float]) -> Section:
    name = section_name(section)
    return Section(
        name=name,
        rva=section.VirtualAddress,
        virtual_size=section.Misc_VirtualSize,
        offset=section.PointerToRawData,
        size=section.SizeOfRawData,
        executable=bool(section.Characteristics & 0x2000_0000),
        entropy=entropies.get(name),
    )


def _machine(image: Image) -> Machine:
    machine = _MACHINES.get(image.pe.FILE_HEADER.Machine, "other")
    start, _ = image.directory(LOAD_CONFIG)
    if machine == "x64" and start:
        raw = image.read(start, _CHPE_POINTER + 8)
        # The structure says its own size; older, shorter ones end before the field.
        if len(raw) == _CHPE_POINTER + 8 and struct.unpack_from("<I", raw)[0] >= len(raw) and any(raw[_CHPE_POINTER:]):
            return "arm64ec"
    return machine


def _any_cpu(image: Image, clr: int) -> bool:
    """True for IL without a 32-bit requirement: its process has the width of the system."""
    raw = image.read(clr, 20)
    return len(raw) == 20 and struct.unpack_from("<I", raw, 16)[0] & (_IL_ONLY | _REQUIRE_32) == _IL_ONLY


def _overlay(image: Image) -> tuple[int, int]:
    """Offset and size of what follows the last section, without the certificate table (its "RVA" is a file offset)."""
    end = max(
        (s.PointerToRawData + s.SizeOfRawData for s in image.pe.sections if s.PointerToRawData),
        default=image.header.SizeOfHeaders,
    )
    if end > image.size:
        image.problem(f"the file ends {end - image.size} bytes before its last section", image.size)
    certificate, certificate_size = image.directory(SECURITY)
    stop = image.size
    if certificate >= end and certificate_size and certificate + certificate_size >= image.size - 8:
        stop = min(certificate, image.size)
    size = max(0, stop - end)
    if size < 8 and not any(image.data[end:stop]):
        return end, 0  # padding to the next multiple of eight
    return end, size
