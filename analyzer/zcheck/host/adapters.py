"""What the adapters of a PC are: vendor, gfx and how it was found, support by HIP SDK and ZLUDA."""

from __future__ import annotations

import re

import msgspec

from zcheck.host.hipinfo import Device
from zcheck.model.host import Adapter, GfxFound, HostTables, PciGpu

_PCI = re.compile(r"VEN_([0-9A-F]{4})&DEV_([0-9A-F]{4})", re.IGNORECASE)
_VENDORS = {"1002": "AMD", "1022": "AMD", "10de": "NVIDIA", "8086": "Intel", "1414": "Microsoft"}
# Words that stand in some lists of one card and not in others; they never tell two chips apart.
_NOISE = frozenset(
    ["amd", "radeon", "tm", "r", "rx", "pro", "graphics", "ati", "series", "gpu", "the", "laptop", "desktop"]
)
RDNA = ("RDNA1", "RDNA2", "RDNA3", "RDNA3.5", "RDNA4")
"""generations that ZLUDA supports: Radeon RX 5000 and newer (its FAQ, v5 and later)"""


def words(name: str) -> frozenset[str]:
    """The words of a GPU name that tell models apart: ``AMD Radeon(TM) RX 7900 XTX`` gives 7900 and xtx."""
    spaced = re.sub(r"(?i)(?<=\d)(?=(xtx|xt|gre|ti)\b)", " ", name)
    found = re.findall(r"[a-z]*\d+[a-z]*|[a-z+]+", spaced.casefold())
    kept = frozenset(word for word in found if word not in _NOISE)
    told = kept & {"vii", "vega"} or any(char.isdigit() for word in kept for char in word)
    return kept if told else frozenset()


def vendor_of(adapter: Adapter) -> str:
    """AMD, NVIDIA, Intel, Microsoft or empty, by PCI id, else by name."""
    match = _PCI.search(adapter.pnp_id)
    if match:
        return _VENDORS.get(match.group(1).lower(), "")
    name = adapter.name.casefold()
    for sign, vendor in (("nvidia", "NVIDIA"), ("geforce", "NVIDIA"), ("intel", "Intel")):
        if sign in name:
            return vendor
    if re.search(r"\b(amd|radeon|firepro|instinct)\b", name.replace("(tm)", "")):
        return "AMD"
    return "Microsoft" if "microsoft" in name else ""


def pci_row(adapter: Adapter, tables: HostTables) -> PciGpu | None:
    """The row of the PCI id table for this adapter."""
    match = _PCI.search(adapter.pnp_id)
    if not match or match.group(1) != "1002":
        return None
    wanted = match.group(2).lower()
    return next((row for row in tables.pci if row.device_id == wanted), None)


def _by_name(name: str, tables: HostTables) -> str:
    """The gfx of that model name where every list that has the name agrees; empty otherwise."""
    mine = words(name)
    if not mine:
        return ""
    exact = {row.gfx for row in tables.gpus if words(row.name) == mine}
    if len(exact) == 1:
        return exact.pop()
    # pci.ids writes families: ``Navi 31 [Radeon RX 7900 XT/7900 XTX/7900 GRE/7900M]``
    found: set[str] = set()
    for row in tables.pci:
        inner = re.search(r"\[(.*)\]", row.name)
        if inner and row.gfx and any(words(part) == mine for part in re.split(r"\s*/\s*", inner.group(1))):
            found.add(row.gfx)
    return found.pop() if len(found) == 1 else ""


def generation_of(gfx: str, tables: HostTables) -> str:
    """RDNA3 of gfx1100, from the tables, or empty."""
    for row in tables.gfx:
        if row.gfx == gfx:
            return row.generation
    return next((row.generation for row in tables.pci if row.gfx == gfx), "")


def sdk_support(gfx: str, name: str, tables: HostTables) -> dict[str, str]:
    """AMD's word by HIP SDK version: for this model where listed, else the best said of its gfx, else not listed."""
    order = ("full", "runtime only", "none")
    mine = words(name)
    result: dict[str, str] = {}
    for version in dict.fromkeys(row.hip_sdk for row in tables.gpus):
        rows = [row for row in tables.gpus if row.hip_sdk == version and row.gfx == gfx]
        own = [row.sdk_support for row in rows if words(row.name) == mine]
        said = own or [row.sdk_support for row in rows]
        result[version] = (
            min(said, key=lambda word: order.index(word) if word in order else 9) if said else "not listed"
        )
    return result


def zluda_support(gfx: str, generation: str, tables: HostTables) -> str:
    """What ZLUDA from v5 on says: supported (Radeon RX 5000 and newer), not supported, or unknown."""
    row = next((row for row in tables.gfx if row.gfx == gfx), None)
    if row is not None and row.zluda_v5_on:
        return {"yes": "supported", "no": "not supported"}.get(row.zluda_v5_on, "unknown")
    if generation in RDNA:
        return "supported"
    return "not supported" if generation.startswith(("GCN", "CDNA")) else "unknown"


def identify(adapter: Adapter, tables: HostTables) -> Adapter:
    """The adapter with vendor, gfx, generation, support filled in; what it knew already is kept."""
    vendor = adapter.vendor or vendor_of(adapter)
    if vendor != "AMD":
        return msgspec.structs.replace(adapter, vendor=vendor)
    row = pci_row(adapter, tables)
    gfx, by = adapter.gfx, adapter.gfx_by
    if not gfx and row is not None and row.gfx:
        gfx, by = row.gfx, "pci-id"
    if not gfx and row is None:
        gfx = _by_name(adapter.name, tables)
        by = "name" if gfx else ""
    generation = adapter.generation or generation_of(gfx, tables) or (row.generation if row else "")
    integrated = adapter.integrated
    if integrated is None and row is not None:
        integrated = row.apu
    if integrated is None:
        integrated = next((known.apu for known in tables.gfx if known.gfx == gfx), None)
    support = sdk_support(gfx, adapter.name, tables) if gfx else {}
    return msgspec.structs.replace(
        adapter,
        vendor=vendor,
        gfx=gfx,
        gfx_by=by,
        generation=generation,
        integrated=integrated,
        hip_sdk=support,
        zluda=zluda_support(gfx, generation, tables),
    )


def merge_hipinfo(adapters: tuple[Adapter, ...], devices: tuple[Device, ...]) -> tuple[Adapter, ...]:
    """The adapters with HIP's own index, gfx and memory where hipInfo lists them; devices only it knows are added.

    The system's list and HIP's list need not have the same order, and two cards may have one name: they are matched by
    name, each once, in order.
    """
    by: GfxFound = "hipinfo"
    left = list(adapters)
    merged: list[Adapter] = []
    for device in devices:
        match = next((one for one in left if one.name.casefold() == device.name.casefold()), None)
        if match is None:
            match = next((one for one in left if words(one.name) and words(one.name) == words(device.name)), None)
        if match is not None:
            left.remove(match)
        base = match or Adapter(index=device.index, name=device.name, vendor="AMD")
        merged.append(
            msgspec.structs.replace(
                base,
                index=device.index,
                vendor=base.vendor or "AMD",
                gfx=device.gfx or base.gfx,
                gfx_by=by if device.gfx else base.gfx_by,
                memory_mib=base.memory_mib or device.memory_mib,
                integrated=base.integrated if device.integrated is None else device.integrated,
            )
        )
    start = max((one.index for one in merged), default=-1) + 1
    if devices:
        left = [msgspec.structs.replace(one, index=start + place) for place, one in enumerate(left)]
    return (*merged, *left)
