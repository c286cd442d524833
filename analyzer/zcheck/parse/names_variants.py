"""Files of one folder that are builds of the same library for different back-ends or CUDA versions."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from zcheck.model.hidden import FileVariants

# cuda118, cu121, cuda-12.4, cuda12, rocm6, rocm72, hip, xpu2025, cpu, vulkan, directml …; a version belongs to its word
_VARIANT = re.compile(
    r"(?<![A-Za-z0-9])(?P<word>cuda|cu|rocm|hip|zluda|xpu|sycl|opencl|vulkan|metal|directml|dml|cpu|avx512|avx2|avx|noavx)"
    r"(?P<version>[-_.]?\d+(?:[._]\d+)*)?(?=$|[^A-Za-z0-9])",
    re.IGNORECASE,
)
_NEEDS_VERSION = frozenset({"cu"})
_PROCESSOR = ("cpu", "avx", "noavx")


def variants(names: Iterable[str]) -> tuple[FileVariants, ...]:
    """Groups of alternatives among file names or relative paths, each with its (variant, name) choices in order.

    A name is a variant when a back-end word stands by itself in it (``libbitsandbytes_cuda118.dll``,
    ``win-x64-cuda/llama-addon.node``); names that are equal but for that word form a group when one of them is CUDA and
    they exclude each other: two builds for GPUs, or files of one name in different folders. A CPU half beside a CUDA
    half (``torch_cpu.dll``, ``torch_cuda.dll``) is no alternative: programs load both. The order is that of the words
    and then of the versions as numbers.
    """
    groups: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for name in names:
        stem, dot, ending = name.replace("\\", "/").rpartition(".")
        if not dot or "/" in ending:
            continue
        for match in _VARIANT.finditer(stem):
            word = match["word"].lower()
            if word in _NEEDS_VERSION and not match["version"]:
                continue
            key = (stem[: match.start()] + "*" + stem[match.end() :]).lower(), ending.lower()
            groups[key].setdefault(match.group().lower(), name)
    found = []
    for (stem, ending), choices in sorted(groups.items()):
        cuda = any(re.match(r"cu(?:da)?[-_.\d]|cuda$", variant) for variant in choices)
        gpu = [variant for variant in choices if not variant.startswith(_PROCESSOR)]
        one_name = len({name.replace("\\", "/").rpartition("/")[2].lower() for name in choices.values()}) == 1
        if cuda and len(choices) > 1 and (len(gpu) > 1 or one_name):
            ordered = sorted(choices.items(), key=lambda item: _order(item[0]))
            found.append(FileVariants(f"{stem}.{ending}", tuple(ordered)))
    return tuple(found)


def _order(variant: str) -> tuple[str, tuple[int, ...], str]:
    word = re.match(r"[a-z]+", variant)
    return (word.group() if word else "", tuple(int(n) for n in re.findall(r"\d+", variant)), variant)
