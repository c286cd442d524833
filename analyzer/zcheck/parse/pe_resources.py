"""The two resources that matter here: version (type 16) and manifest (type 24).

Source: Microsoft, PE Format, "The .rsrc Section"; "Application manifests" (dependentAssembly, assemblyIdentity).
Only the branches of these types are walked: pefile's reader takes all of them, icons and embedded files too.
"""

from __future__ import annotations

import struct

from zcheck.parse.pe_image import RESOURCE, Image
from zcheck.parse.version_info import MAX_BYTES

RT_VERSION, RT_MANIFEST = 16, 24


def read_resources(image: Image) -> tuple[list[bytes], list[bytes]]:
    """The bytes of all version resources and of all manifests, in the order of the tree."""
    start, _ = image.directory(RESOURCE)
    versions: list[bytes] = []
    manifests: list[bytes] = []
    if not start:
        return versions, manifests
    budget = [image.limits.resources]
    for kind, offset in _entries(image, start, 0, budget):
        if kind not in (RT_VERSION, RT_MANIFEST) or not offset & 0x8000_0000:
            continue
        for _, by_name in _entries(image, start, offset & 0x7FFF_FFFF, budget):
            leaves = [by_name]
            if by_name & 0x8000_0000:
                leaves = [leaf for _, leaf in _entries(image, start, by_name & 0x7FFF_FFFF, budget)]
            for leaf in leaves:
                header = image.read(start + leaf, 16) if not leaf & 0x8000_0000 else b""
                if len(header) < 16:
                    image.problem("a resource is cut off", image.offset(start), partial=False)
                    continue
                rva, size = struct.unpack_from("<II", header)
                (versions if kind == RT_VERSION else manifests).append(image.read(rva, min(size, MAX_BYTES)))
    return versions, manifests


def _entries(image: Image, start: int, offset: int, budget: list[int]) -> list[tuple[int, int]]:
    """Id and offset of each entry of one resource directory; named entries have the id -1."""
    header = image.read(start + offset, 16)
    if len(header) < 16:
        image.problem("the resource table is cut off", image.offset(start), partial=False)
        return []
    named, numbered = struct.unpack_from("<HH", header, 12)
    count = min(named + numbered, budget[0])
    if count < named + numbered:
        image.problem(f"more than {image.limits.resources} resources", image.offset(start), partial=False)
    budget[0] -= count
    raw = image.read(start + offset + 16, count * 8)
    pairs = struct.iter_unpack("<II", raw[: len(raw) & ~7])
    return [(-1 if entry & 0x8000_0000 else entry, target) for entry, target in pairs]


def dependent_assemblies(manifests: list[bytes], image: Image) -> tuple[str, ...]:
    """Names of the side-by-side assemblies that the manifests ask for, sorted."""
    from xml.etree import ElementTree

    names: set[str] = set()
    for manifest in manifests:
        text = manifest.strip(b"\0 \r\n\t")
        if b"<!" in text.replace(b"<!--", b""):
            image.problem("the manifest declares entities and was not read", partial=False)
            continue
        try:
            root = ElementTree.fromstring(text)
        except (ElementTree.ParseError, ValueError, LookupError):
            image.problem("the manifest is not well-formed", partial=False)
            continue
        for element in root.iter():
            if element.tag.rpartition("}")[2] != "dependentAssembly":
                continue
            for child in element.iter():
                if child.tag.rpartition("}")[2] == "assemblyIdentity" and child.get("name"):
                    names.add(str(child.get("name")))
    return tuple(sorted(names))
