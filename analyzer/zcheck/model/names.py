"""Name look-ups that stages are handed (filled from the coverage database by cli): plain callables and mappings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class NameLookups:
    """Each is asked with a DLL name in any letter case.

    ``library_of``: the CUDA library id; ``framework_of``: the framework whose all-importing DLL it is;
    ``operators_of``: the operator table of its exports (``torch``); ``own_path_of``: the API of an own AMD path;
    ``host_provided``: True for a DLL that the program hosting a plugin brings along (python311.dll, node.exe).
    """

    library_of: Callable[[str], str | None]
    framework_of: Callable[[str], str | None]
    own_path_of: Callable[[str], str | None] = field(default=lambda _: None)
    host_provided: Callable[[str], bool] = field(default=lambda _: False)
    operators_of: Callable[[str], str | None] = field(default=lambda _: None)
