"""Which modules of a Python environment use CUDA: an interpreter's own imports say nothing about that."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from zcheck.cli.data import coverage
from zcheck.model.bundle import Bundle

if TYPE_CHECKING:
    from zcheck.cli.pipeline import Reader


def cuda_entries(bundle: Bundle, reader: Reader, most_read: int, most: int) -> tuple[Sequence[str], str]:
    """The outermost modules whose imports lead to a CUDA library, and what was left out (empty when nothing was).

    Where none does, the entries as for any other bundle: programs, or the modules that no other one imports.
    """
    from zcheck.cli.pipeline import entries_of

    library_of = coverage().library_of
    candidates = [file.path for file in bundle.files if file.kind == "pe"]
    own = [path for path in candidates if library_of(_name(path)) is None and not path.lower().endswith(".exe")]
    cut = ""
    if len(own) > most_read:
        cut = f"{len(own) - most_read} of {len(own)} modules of this environment were not looked at"
        own = own[:most_read]
    imports: dict[str, set[str]] = {}
    for path in own:
        facts = reader.read(path)
        if facts is not None:
            imports[path] = {item.dll.lower() for item in facts.imports}
    using = {path for path, dlls in imports.items() if any(library_of(dll) is not None for dll in dlls)}
    users: dict[str, list[str]] = {}
    for path, dlls in imports.items():
        for dll in dlls:
            users.setdefault(dll, []).append(path)
    queue = deque(sorted(using))
    inner: set[str] = set()
    while queue:
        path = queue.popleft()
        for user in users.get(_name(path).lower(), ()):
            if user != path:
                inner.add(path)
            if user not in using:
                using.add(user)
                queue.append(user)
    # Modules that need one another would all be inner; then all of them stay.
    top = [path for path in own if path in using and path not in inner] or sorted(using)
    if not top:
        top = list(entries_of(bundle, reader))
    if len(top) > most:
        more = f"{len(top) - most} of {len(top)} modules of this environment were not judged"
        cut = f"{cut}; {more}" if cut else more
        top = top[:most]
    return top, cut


def _name(path: str) -> str:
    return path.rpartition("/")[2]
