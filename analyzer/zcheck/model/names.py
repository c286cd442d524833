"""Name look-ups that stages are handed (filled from the coverage database by cli): plain callables and mappings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class NameLookups:
    """``library_of`` DLL name → CUDA library id or None; the mappings are keyed by lower-case DLL name.

    ``framework_dlls`` gives the framework whose DLL it is, ``own_path_dlls`` the API of an own AMD path, and
    ``host_provided`` names DLLs that the program hosting a plugin brings along (python311.dll, node.exe).
    """

    library_of: Callable[[str], str | None]
    framework_of: Callable[[str], str | None]
    own_path_of: Callable[[str], str | None] = field(default=lambda _: None)
    host_provided: Callable[[str], bool] = field(default=lambda _: False)
    operator_libraries: Mapping[str, str] = field(default_factory=dict)
    """framework DLL → library id under which its operators are tabled (``torch``)"""
