"""Makes the table of HIPIFY's functions again from a HIPIFY checkout.

HIPIFY names CUDA functions and their HIP and roc counterparts in maps of ``src/CUDA2HIP_*_functions.cpp``, the versions
in which each name came, was deprecated and went in maps beside them; numbers of versions are enumerators of
``src/Statistics.h``, made of the digits of the version.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

COLUMNS = [
    "cuda_name",
    "api",
    "kind",
    "hip_name",
    "roc_name",
    "status",
    "hip_since",
    "hip_removed",
    "cuda_added",
    "cuda_deprecated",
    "cuda_removed",
    "in_hip_6_4",
    "roc_status",
    "roc_since",
    "roc_removed",
    "in_roc_6_4",
    "hip_deprecated",
    "hip_experimental",
    "hip_changed",
    "cuda_deprecated_flag",
    "cuda_removed_flag",
    "v2_signature_only",
    "map",
]
"""columns of ``hip/hipify.csv``"""

_APIS = {"API_RTC": "nvrtc"}
_KINDS = {
    "CONV_DEVICE_FUNC": "device_function",
    "CONV_LIB_DEVICE_FUNC": "device_function",
    "CONV_COMPLEX": "inline_function",
}
# Declared as inline functions in CUDA's headers, not told apart by HIPIFY.
_INLINE = {"make_cudaExtent", "make_cudaPitchedPtr", "make_cudaPos"}
_MAP = re.compile(r"const std::map<llvm::StringRef,\s*(\w+)>\s+(\w+)\s*\{")
_ENTRY = re.compile(r'\{\s*"([^"]+)"\s*,\s*\{([^{}]*)\}\s*\}')


class _Versions(NamedTuple):
    appeared: str = ""
    deprecated: str = ""
    removed: str = ""
    experimental: str = ""


def version(enumerator: str) -> str:
    """``HIP_6044`` → ``6.4.4``, ``CUDA_118`` → ``11.8``, ``CUDNN_897`` → ``cudnn 8.9.7``; empty for ``…_0``.

    HIP and cuTENSOR write one, two and one digits after the major number, cuDNN one each, CUDA one minor digit.
    """
    product, _, digits = enumerator.strip().partition("_")
    if not digits.isdigit() or int(digits) == 0:
        return ""
    if product == "CUDA":
        return f"{digits[:-1]}.{digits[-1]}"
    if product == "HIP":
        return f"{digits[:-3]}.{int(digits[-3:-1])}.{digits[-1]}"
    if product == "CUDNN":
        digits = digits.ljust(3, "0")
        head, last = (digits[:2], digits[2]) if len(digits) == 3 else (digits[:-1], digits[-1])
        return f"cudnn {head[0]}.{head[1:]}.{last}"
    return f"cutensor {'.'.join(digits)}"


def _maps(texts: Iterable[str]) -> dict[str, tuple[str, list[tuple[str, list[str]]]]]:
    """name of a map → (type of its values, entries with their fields)."""
    found: dict[str, tuple[str, list[tuple[str, list[str]]]]] = {}
    for text in texts:
        plain = re.sub(r"//[^\n]*", "", text)
        for match in _MAP.finditer(plain):
            end = plain.find("};", match.end())
            body = plain[match.end() : end if end > 0 else len(plain)]
            entries = [
                (key, [field.strip().strip('"') for field in fields.split(",")]) for key, fields in _ENTRY.findall(body)
            ]
            found[match[2]] = (match[1], entries)
    return found


def _api(name: str, fields: list[str]) -> str:
    if fields[2] == "CONV_DEVICE_FUNC":
        return "device"
    if name.startswith("cublasLt"):
        return "blaslt"
    if name.startswith("cusolverMg"):
        return "solvermg"
    return _APIS.get(fields[3], fields[3].removeprefix("API_").lower())


def _in_6_4(versions: _Versions, supported: bool) -> str:
    def before_6_5(text: str) -> bool:
        return tuple(map(int, text.split("."))) < (6, 5)

    if not supported or not versions.appeared:
        return "no"
    gone = versions.removed and before_6_5(versions.removed)
    return "yes" if before_6_5(versions.appeared) and not gone else "no"


def read_functions(texts: Iterable[str], statistics: str) -> list[tuple[str, ...]]:
    """Rows of ``hip/hipify.csv`` from the texts of HIPIFY's function maps and of ``Statistics.h``, by api and name."""
    maps = _maps(texts)
    newest = dict(re.findall(r"\b(\w+_LATEST)\s*=\s*(\w+)", statistics))
    hip: dict[str, _Versions] = defaultdict(_Versions)
    cuda: dict[str, _Versions] = defaultdict(_Versions)
    changed: dict[str, str] = {}
    for kind, entries in maps.values():
        for name, fields in entries:
            numbers = [version(newest.get(field, field)) for field in fields]
            if kind == "hipAPIversions":
                hip[name] = _Versions(*numbers)
            elif kind == "cudaAPIversions":
                cuda[name] = _Versions(*numbers)
            elif kind == "hipAPIChangedVersions":
                changed[name] = ";".join(numbers)
    rows = []
    for map_name, (kind, entries) in maps.items():
        for name, fields in entries if kind == "hipCounter" else ():
            dated = bool(maps.get(map_name.replace("CUDA_", "HIP_", 1).replace("_MAP", "_VER_MAP"), ("", []))[1])
            rows.append(_row(name, fields, map_name, (hip, cuda, changed), dated))
    return sorted(rows, key=lambda row: (row[1], row[0]))


def _row(
    name: str,
    fields: list[str],
    map_name: str,
    known: tuple[dict[str, _Versions], dict[str, _Versions], dict[str, str]],
    dated: bool,
) -> tuple[str, ...]:
    """``known``: versions of HIP and roc names, of CUDA names, HIP versions in which a name changed; ``dated``: HIPIFY
    dates the names of this map at all."""
    hips, cudas, changed = known
    flags = set(re.findall(r"\w+", fields[5])) if len(fields) > 5 else set()
    hip, roc, cuda = hips[fields[0]], hips[fields[1]], cudas[name]
    hip_works = not flags & {"UNSUPPORTED", "HIP_UNSUPPORTED"}
    roc_works = bool(fields[1]) and not flags & {"UNSUPPORTED", "ROC_UNSUPPORTED"}
    status = "supported" if hip_works else "unsupported"
    if hip_works and flags & {"HIP_REMOVED", "REMOVED"}:
        status = "removed"
    elif hip_works and hip.experimental:
        status = "experimental"
    elif hip_works and (hip.deprecated or flags & {"HIP_DEPRECATED", "DEPRECATED"}):
        status = "deprecated"
    roc_status = "" if not fields[1] else "supported" if roc_works else "unsupported"
    if roc_works and flags & {"ROC_DEPRECATED", "DEPRECATED"}:
        roc_status = "deprecated"
    record = {
        "cuda_name": name,
        "api": _api(name, fields),
        "kind": "inline_function" if name in _INLINE else _KINDS.get(fields[2], "function"),
        "hip_name": fields[0] if hip_works else "",
        "roc_name": fields[1] if roc_works else "",
        "status": status,
        "hip_since": hip.appeared if hip_works else "",
        "hip_removed": hip.removed if hip_works else "",
        "cuda_added": cuda.appeared,
        "cuda_deprecated": cuda.deprecated,
        "cuda_removed": cuda.removed,
        "in_hip_6_4": _in_6_4(hip, hip_works) if dated or not hip_works else "unknown",
        "roc_status": roc_status,
        "roc_since": roc.appeared if fields[1] else "",
        "roc_removed": roc.removed if fields[1] else "",
        "in_roc_6_4": _in_6_4(roc, roc_works) if fields[1] else "",
        "hip_deprecated": hip.deprecated if hip_works else "",
        "hip_experimental": hip.experimental if hip_works else "",
        "hip_changed": changed.get(fields[0], "") if hip_works else "",
        "cuda_deprecated_flag": "yes" if flags & {"CUDA_DEPRECATED", "DEPRECATED"} else "",
        "cuda_removed_flag": "yes" if flags & {"CUDA_REMOVED", "REMOVED"} else "",
        "v2_signature_only": "yes" if "HIP_SUPPORTED_V2_ONLY" in flags else "",
        "map": map_name,
    }
    return tuple(record[column] for column in COLUMNS)
