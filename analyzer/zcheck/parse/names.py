"""Names that count as CUDA: exported functions, DLL name patterns and runtime fingerprints, made ready for scanning.

The rows come from the coverage database (tables ``cuda_export``, ``function``, ``dll_name``, ``runtime_name``,
``driver_loader``); nothing is read here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

_CUDA_STYLE = re.compile(r"_*(?:[cC][uU]|[nN][vV]|npp|nccl|optix)[A-Za-z0-9_]{2,127}")

# Libraries whose complete export tables nobody may publish or that export one query function only: the shape of their
# public names, from the headers' naming (nvcuvid, NVENC, NVAPI, NGX, OptiX, NCCL, TensorRT).
SHAPES: tuple[tuple[str, str], ...] = (
    ("nvcuvid", r"cuvid[A-Z][A-Za-z0-9]{4,40}"),
    ("nvencode", r"NvEncodeAPI[A-Z][A-Za-z0-9]{4,40}"),
    ("nvapi", r"nvapi_(?:QueryInterface|Direct_GetMethod)"),
    ("nvml", r"nvml[A-Z][A-Za-z0-9]{3,60}(?:_v\d)?"),
    ("ngx", r"NVSDK_NGX_[A-Za-z0-9_]{3,60}"),
    ("optix", r"optixQueryFunctionTable"),
    ("nccl", r"nccl[A-Z][A-Za-z0-9]{3,40}"),
    ("nvJitLink", r"(?:__)?nvJitLink[A-Z][A-Za-z0-9_]{3,60}"),
    ("nvrtc", r"nvrtc(?:Get|Set|Create|Destroy|Compile|Add|Version)[A-Za-z0-9]{0,40}"),
)


@dataclass(frozen=True)
class Fingerprint:
    """Identifier strings of one version of a linked-in runtime: ``kind`` is cudart or cuda.lib, ``file`` NVIDIA's file
    that they were read from."""

    kind: str
    version: str
    file: str
    names: frozenset[str]


@dataclass(frozen=True)
class NameTables:
    """Frozen look-up tables of the scanner; make them with :func:`build`."""

    functions: Mapping[str, str]
    """exported function → library"""
    dll_patterns: tuple[tuple[str, str], ...]
    """(library, pattern over the whole DLL name, any letter case)"""
    fingerprints: tuple[Fingerprint, ...] = ()
    loader: Mapping[tuple[str, int, int], str] = field(default_factory=dict)
    """(asked name, CUDA version, flags) → exported symbol, for CUDA 13's driver loader"""
    hybrid: Mapping[int, str] = field(default_factory=dict)
    """number → runtime function, for CUDA 13's hybrid runtime loader"""

    @cached_property
    def _patterns(self) -> tuple[tuple[str, re.Pattern[str]], ...]:
        return tuple((library, re.compile(pattern, re.IGNORECASE)) for library, pattern in self.dll_patterns)

    @cached_property
    def dll_ends(self) -> tuple[tuple[str, re.Pattern[str]], ...]:
        """Patterns for a DLL name at the end of a text that runs into it."""
        return tuple((library, re.compile(f"(?:{p})$", re.IGNORECASE)) for library, p in self.dll_patterns)

    @cached_property
    def _shape(self) -> re.Pattern[str]:
        return re.compile("|".join(f"(?P<{library}>{shape})" for library, shape in SHAPES))

    @cached_property
    def _bare(self) -> re.Pattern[str]:
        exact = [pattern.removesuffix(r"\.dll") for _, pattern in self.dll_patterns if ".*" not in pattern]
        # a word without digits is a label far more often than a DLL, but for the driver's own names
        return re.compile(
            r"(?=.*\d|nvcuda$|nvcuvid$|nvoptix$)(?:" + "|".join(f"(?:{pattern})" for pattern in exact) + ")",
            re.IGNORECASE,
        )

    @cached_property
    def stems(self) -> Mapping[str, str]:
        """Lower-case start of versioned DLL names (``cublas`` for ``cublas64_12.dll``) → library."""
        found: dict[str, str] = {}
        for library, pattern in self.dll_patterns:
            match = re.match(r"([A-Za-z]+)(?:\(32\|64\)|64)", pattern) or re.match(r"(nvJitLink)_", pattern)
            if match:
                found.setdefault(match.group(1).lower(), library)
        return found

    @cached_property
    def fingerprint_names(self) -> Mapping[str, frozenset[str]]:
        """All names of a kind of runtime, over its versions."""
        united: dict[str, set[str]] = {}
        for fingerprint in self.fingerprints:
            united.setdefault(fingerprint.kind, set()).update(fingerprint.names)
        return {kind: frozenset(names) for kind, names in united.items()}

    @cached_property
    def all_fingerprint_names(self) -> frozenset[str]:
        """Names of all kinds of runtimes together."""
        return frozenset().union(*self.fingerprint_names.values())

    def library_of_dll(self, dll: str) -> str:
        """The CUDA library of a DLL name with ``.dll`` (no folder), or an empty string."""
        for library, pattern in self._patterns:
            if pattern.fullmatch(dll):
                return library
        return ""

    def library_of_bare(self, stem: str) -> str:
        """The CUDA library of a DLL name without ``.dll``, by patterns that leave no room for any ending."""
        return self.library_of_dll(stem + ".dll") if self._bare.fullmatch(stem) else ""

    def library_of_shape(self, name: str) -> str:
        """The library whose naming a function name follows although no table holds it, or an empty string."""
        match = self._shape.fullmatch(name)
        return (match.lastgroup or "") if match else ""


def build(
    functions: Iterable[tuple[str, str]],
    dll_patterns: Iterable[tuple[str, str]],
    fingerprints: Iterable[tuple[str, str, str, str]] = (),
    loader: Iterable[tuple[str, str, int, int]] = (),
    hybrid: Iterable[tuple[int, str]] = (),
) -> NameTables:
    """NameTables from rows.

    ``functions``: (name, library), the first library given for a name stands, names outside NVIDIA's naming (C++
    manglings, ``Event`` …) are left out; ``dll_patterns``: (library, regular expression); ``fingerprints``: (kind,
    version, file, name); ``loader``: (symbol, asked name, version, flags); ``hybrid``: (number, function).
    """
    by_name: dict[str, str] = {}
    for name, library in functions:
        if _CUDA_STYLE.fullmatch(name) and name != "NvOptimusEnablementCuda":
            by_name.setdefault(name, library)
    sets: dict[tuple[str, str, str], set[str]] = {}
    for kind, version, file, name in fingerprints:
        sets.setdefault((kind, version, file), set()).add(name)
    return NameTables(
        functions=by_name,
        dll_patterns=tuple(dll_patterns),
        fingerprints=tuple(
            Fingerprint(kind, version, file, frozenset(names))
            for (kind, version, file), names in sorted(
                sets.items(), key=lambda item: (item[0][0], version_key(item[0][1]), item[0][2])
            )
        ),
        loader={(name, version, flags): symbol for symbol, name, version, flags in loader},
        hybrid=dict(hybrid),
    )


def version_key(version: str) -> tuple[int, ...]:
    """``12.4.127`` → (12, 4, 127)."""
    return tuple(int(number) for number in re.findall(r"\d+", version))
