"""The child's environment: changes as data, applied to a copy; this process and the machine keep theirs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from zcheck.model.launch import EnvironmentChange


def prepend(folders: Iterable[str], old: str, separator: str, *, ignore_case: bool) -> str:
    """A search path with ``folders`` first, in order, and no folder twice."""

    def key(folder: str) -> str:
        return folder.rstrip("\\/").lower() if ignore_case else folder.rstrip("/")

    seen: dict[str, str] = {}
    for folder in (*folders, *old.split(separator)):
        if folder:
            seen.setdefault(key(folder), folder)
    return separator.join(seen.values())


def apply(base: Mapping[str, str], changes: Iterable[EnvironmentChange], *, ignore_case: bool) -> dict[str, str]:
    """A copy of ``base`` with the changes; on Windows ``Path`` and ``PATH`` are one variable."""
    result = dict(base)
    for change in changes:
        if ignore_case:
            for name in [name for name in result if name.lower() == change.name.lower()]:
                del result[name]
        result[change.name] = change.value
    return result


def lookup(base: Mapping[str, str], name: str, *, ignore_case: bool) -> str:
    """The variable's value, empty when it is not set."""
    if not ignore_case:
        return base.get(name, "")
    return next((value for key, value in base.items() if key.lower() == name.lower()), "")
