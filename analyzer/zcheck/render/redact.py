"""Take names of people and machines out of a report; a pure function of the names the caller passes.

Replaced: the user's profile folder, other people's folders under ``Users`` and ``home``, known user and machine names
as components of absolute paths, machine names as words, hosts of UNC paths, e-mail addresses. Kept: relative paths
of the bundle. In doubt it takes away too much rather than too little.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar, cast

import msgspec

from zcheck.model.base import Record
from zcheck.render.safe import map_strings

USER, MACHINE, HOST, MAIL, PROFILE, HOME = "<user>", "<machine>", "<host>", "<e-mail>", "%USERPROFILE%", "~"

_SEP = r"[\\/]+"
# An absolute path, from a drive or a separator up to what no Windows file name holds or up to the next drive. None of
# these patterns can go back over what it took: texts come from strangers' files and may be long.
_PATH = re.compile(r"(?<![\w.\\/])(?:[A-Za-z]:)?[\\/](?:(?!\s[A-Za-z]:[\\/])[^:*?\"<>|\r\n\t])*")
_RELATIVE_USERS = re.compile(r"^(?P<before>(?:Users|Documents and Settings)[\\/]+)(?P<name>[^\\/:*?\"<>|\r\n\t]+)")
_WEB = re.compile(r"(?<![A-Za-z])(?:https?|ftp|git|ssh):$", re.IGNORECASE)
_PEOPLE = {"users", "home", "documents and settings"}
# Folders that may stand before Users or home, as in /mnt/c/Users.
_PEOPLE_DEPTH = 4
_UNC = re.compile(
    r"(?<![:\w\\/])(?P<lead>(?:\\{2,}|//)(?:\?[\\/]+UNC[\\/]+)?)"
    r"(?P<host>[^\\/\s?.\"<>|:*][^\\/\s\"<>|:*?]*)(?=[\\/])"
)
_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@(?=[\w.-]*[^\W\d_])[\w-]+(?:\.[\w-]+)*\.(?P<top>[^\W\d_]{2,})", re.UNICODE)
_FILE_ENDINGS = {"dll", "exe", "pyd", "sys", "lib", "node", "onnx", "json", "zip", "txt"}
_NOBODY = {"public", "default", "default user", "all users", "shared", "guest"}
# COMMON: a user or a machine may be called like a folder of every system; such a name is taken out only below Users
# or home (or as a UNC host), else C:\Windows\System32 would vanish from the reports of the user "Windows".
COMMON = set(
    """windows|system32|syswow64|users|home|program files|program files (x86)|programdata|amd|rocm|hip|zluda|bin|lib|app
apps|data|python|scripts|temp|tmp|usr|opt|mnt|root|var|desktop|documents|downloads|appdata|local|roaming|nvidia|cuda
torch|site-packages|dlls""".replace("\n", "|").split("|")
)
T = TypeVar("T")


class RedactionNames(Record, frozen=True):
    """What to take out: user names, machine names, and home folders as full paths (Windows or POSIX)."""

    users: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    homes: tuple[str, ...] = ()


def _forms(name: str) -> set[str]:
    return {form for kind in ("NFC", "NFD") if (form := unicodedata.normalize(kind, name.strip()))}


def _fold(name: str) -> str:
    return unicodedata.normalize("NFC", name.strip()).casefold()


def _home_pattern(homes: tuple[str, ...]) -> re.Pattern[str] | None:
    paths = set()
    for home in homes:
        parts = [part for part in re.split(_SEP, home.strip()) if part]
        rooted = home.strip()[:1] in ("\\", "/")
        if len(parts) < (1 if rooted else 2):
            continue  # a bare drive or the root folder names nobody
        start = r"(?<![\w.\\/])" + _SEP if rooted else r"(?<!\w)"
        for kind in ("NFC", "NFD"):
            paths.add(start + _SEP.join(re.escape(unicodedata.normalize(kind, part)) for part in parts))
    if not paths:
        return None
    choice = "|".join(sorted(paths, key=lambda path: (-len(path), path)))
    return re.compile(rf"(?:{choice})(?=[\\/:*?\"<>|\s;,')\]]|$)", re.IGNORECASE)


def _any(names: list[str]) -> str:
    return "|".join(re.escape(name) for name in sorted(names, key=lambda name: (-len(name), name)))


@lru_cache(maxsize=16)
def _changer(names: RedactionNames) -> Callable[[str], str]:
    home = _home_pattern(names.homes)
    users = {_fold(name) for name in names.users if name.strip()}
    machines = {_fold(name) for name in names.machines if name.strip()}
    rare = dict.fromkeys(users - COMMON, USER) | dict.fromkeys(machines - COMMON - users, MACHINE)
    words = sorted(
        {form for name in names.machines if len(_fold(name)) > 2 and _fold(name) in rare for form in _forms(name)}
    )
    machine = re.compile(rf"(?<![\w.\\/-])(?:{_any(words)})(?![\w-]|\.\w)", re.IGNORECASE) if words else None
    # The last component may run on into prose: only a name at its start can be told.
    ahead = sorted({form for name in (*names.users, *names.machines) if _fold(name) in rare for form in _forms(name)})
    leading = re.compile(rf"(?:{_any(ahead)})(?=[\s,;')\]])", re.IGNORECASE) if ahead else None

    def path(match: re.Match[str]) -> str:
        if _WEB.search(match.string[max(0, match.start() - 7) : match.start()]):
            return match.group()
        parts = re.split(r"([\\/]+)", match.group())
        people = False
        depth = 0
        for position in range(0, len(parts), 2):
            name = _fold(parts[position])
            if people and name:
                if name not in _NOBODY or name in users:
                    parts[position] = USER
            elif name in rare:
                parts[position] = rare[name]
            elif leading and position == len(parts) - 1 and (found := leading.match(parts[position])):
                parts[position] = rare.get(_fold(found.group()), USER) + parts[position][found.end() :]
            people = not people and name in _PEOPLE and depth <= _PEOPLE_DEPTH
            depth += bool(name)
        return "".join(parts)

    def relative(match: re.Match[str]) -> str:
        return match.group() if _fold(match["name"]) in _NOBODY - users else match["before"] + USER

    def mail(match: re.Match[str]) -> str:
        return match.group() if match["top"].lower() in _FILE_ENDINGS else MAIL

    def change(text: str) -> str:
        if "\\" in text or "/" in text:
            if home:
                text = home.sub(lambda m: HOME if m.group()[:1] == "/" else PROFILE, text)
            text = _UNC.sub(lambda m: m["lead"] + HOST, text)
            text = _PATH.sub(path, text)
            text = _RELATIVE_USERS.sub(relative, text)
        if machine:
            text = machine.sub(MACHINE, text)
        if "@" in text:
            text = _MAIL.sub(mail, text)
        return text

    return change


def redact(text: str, names: RedactionNames) -> str:
    """``text`` without the names of people and machines; the same text again when applied twice."""
    return _changer(names)(text)


def redact_product(product: T, names: RedactionNames) -> T:
    """A report (or any other product) with ``redact`` applied to every string in it, nested ones included.

    In a ``host`` block a value that *is* a user or machine name goes too: there it stands without a path.
    """
    return cast(T, _hosts(map_strings(product, _changer(names)), names))


def _hosts(product: Any, names: RedactionNames) -> Any:
    if isinstance(product, tuple):
        return tuple(_hosts(item, names) for item in product)
    if not isinstance(product, msgspec.Struct):
        return product
    changes: dict[str, Any] = {}
    for field in product.__struct_fields__:
        value = getattr(product, field)
        if field == "host" and value is not None:
            changes[field] = map_strings(value, lambda text: _whole(text, names))
        elif field == "applications":
            changes[field] = _hosts(value, names)
    return msgspec.structs.replace(product, **changes) if changes else product


def _whole(text: str, names: RedactionNames) -> str:
    folded = _fold(text)
    if folded and folded in {_fold(name) for name in names.users}:
        return USER
    return MACHINE if folded and folded in {_fold(name) for name in names.machines} else text
