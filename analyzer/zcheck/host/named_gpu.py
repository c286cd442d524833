"""What the tables say of a GPU target that a user named, without any PC: as facts on which the same rules work."""

from __future__ import annotations

from zcheck.host.adapters import generation_of, sdk_support, zluda_support
from zcheck.host.evidence import tolerant
from zcheck.model.evidence import HostFact
from zcheck.model.host import HostTables
from zcheck.model.stack import Stack


def named_gpu_facts(stack: Stack, tables: HostTables) -> tuple[HostFact, ...]:
    """Facts on the stack's GPU target: ZLUDA's list, AMD's table for the HIP SDK, and rocBLAS kernels where that was
    read (HIP SDK 6.4); none where the stack names no target."""
    if not stack.gpu:
        return ()
    gfx = stack.gpu
    generation = generation_of(gfx, tables)
    said = zluda_support(gfx, generation, tables)
    if said == "not supported" and tolerant(stack):
        said = "off the list"
    older = f"{gfx} ({generation})" if generation else gfx
    notes = {
        "not supported": f"{older}: ZLUDA supports the Radeon RX 5000 series and newer",
        "off the list": f"{older}: ZLUDA's own list begins with the Radeon RX 5000 series",
        "unknown": f"{older}: ZLUDA's own list does not mention its generation",
    }
    facts = [HostFact("gpu-zluda", said, gfx, notes.get(said, ""))]
    support = sdk_support(gfx, "", tables)
    version = next((one for one in support if stack.hip_sdk.startswith(one)), "")
    if version:
        facts.append(HostFact("gpu-support", support[version], gfx, f"HIP SDK {version}"))
    row = next((row for row in tables.gfx if row.gfx == gfx), None)
    if said != "not supported" and row is not None and row.rocblas == "no" and stack.hip_sdk.startswith("6.4"):
        note = f"HIP SDK 6.4 has no rocBLAS kernel files for {gfx}, so every cuBLAS call ends the program or is refused"
        # Community-built kernel files are a step of setup; where there are none, another SDK has to be.
        facts.append(HostFact("tensile-missing" if row.community_rocblas == "yes" else "tensile-sdk", gfx, gfx, note))
    return tuple(facts)
