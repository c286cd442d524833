"""Which HIP components a library of ZLUDA needs and a HIP SDK lacks."""

from __future__ import annotations

import re
from collections.abc import Iterable

from zcheck.model.coverage import HipSdk

# DLL name → component of hip/sdk.csv; DLLs of AMD's display driver are not the SDK's business.
_COMPONENTS: tuple[tuple[str, str], ...] = (
    (r"amdhip64(_\d+)?\.dll", "HIP runtime"),
    (r"(lib)?hipblaslt\.dll", "hipBLASLt"),
    (r"rocblas\.dll", "rocBLAS"),
    (r"rocsparse\.dll", "rocSPARSE"),
    (r"rocsolver\.dll", "rocSOLVER"),
    (r"(lib)?hipfft\.dll", "hipFFT"),
    (r"miopen\.dll", "MIOpen"),
)


def component_of(dll: str) -> str | None:
    """The HIP SDK component that a DLL name belongs to, None for files of the display driver and unknown ones."""
    name = dll.lower()
    return next((component for pattern, component in _COMPONENTS if re.fullmatch(pattern, name)), None)


def missing_components(needs: Iterable[tuple[str, ...]], sdk: HipSdk) -> tuple[str, ...]:
    """Components of ``needs`` (each a tuple of alternative DLL names) that the SDK is known to lack.

    An SDK whose row for a component is not known lacks nothing here: unknown is no evidence. A HIP runtime of another
    generation is named with its DLL (``HIP runtime (amdhip64.dll)``).
    """
    have = {component.name: component for component in sdk.components}
    missing = []
    for alternatives in needs:
        components = [component_of(dll) for dll in alternatives]
        known = [have[name] for name in components if name is not None and name in have]
        if not known:
            continue
        if all(component.included == "no" for component in known):
            missing.append(known[0].name)
            continue
        names = {dll.lower() for component in known if component.included == "yes" for dll in component.dlls}
        generation = {dll.lower() for dll in alternatives}
        if known[0].name == "HIP runtime" and names and not names & generation:
            missing.append(f"HIP runtime ({' or '.join(alternatives)})")
    return tuple(dict.fromkeys(missing))
