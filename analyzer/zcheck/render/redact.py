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
_NAME = r'[^\\/:*?"<>|\r\n\t]+'
_PEOPLE = r"(?:users|home|documents and settings)"
# A path is absolute from a drive, a leading separator or a UNC host; up to 8 folders may stand before Users or home.
_ROOT = r"(?<![\w.])(?:[A-Za-z]:)?" + _SEP
_FOLDER = re.compile(
    rf"(?P<before>(?:(?:{_ROOT})(?:{_NAME}{_SEP}){{0,8}}?|^){_PEOPLE}{_SEP})(?P<name>{_NAME}?)(?=[\\/]|\s+[A-Za-z]:[\\/]|[:*?\"<>|\r\n\t]|$)",
    re.IGNORECASE,
)
_COMPONENT_PATH = re.compile(rf"{_ROOT}(?:{_NAME}{_SEP})*{_NAME}")
_UNC = re.compile(
    r"(?<![:\w\\/])(?P<lead>(?:\\{2,}|//)(?:\?[\\/]+UNC[\\/]+)?)(?P<host>[^\\/\s?.\"<>|:*][^\\/\s\"<>|:*?]*)(?=[\\/])"
)
_MAIL = re.compile(r"[\w.+-]+@(?=[\w.-]*[^\W\d_])[\w-]+(?:\.[\w-]+)*\.(?P<top>[^\W\d_]{2,})", re.UNICODE)
_FILE_ENDINGS = {"dll", "exe", "pyd", "sys", "lib", "node", "onnx", "json", "zip", "txt"}
_NOBODY = {"public", "default", "default user", "all users", "shared", "guest"}
# A user or a machine may be called like a folder of every system; such a name is taken out only below Users or home
# (or as a UNC host), else C:\Windows\System32 would vanish from the reports of the user "Windows".
_COMMON = set(
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
        if len(parts) < (2 if re.match(r"[A-Za-z]:", home) else 1):
            continue  # a bare drive or the root folder names nobody
        for kind in ("NFC", "NFD"):
            body = _SEP.join(re.escape(unicodedata.normalize(kind, part)) for part in parts)
            paths.add((r"(?<![\w.])" if home[:1] in "\\/" else r"(?<!\w)") + (_SEP if home[:1] in "\\/" else "") + body)
    if not paths:
        return None
    return re.compile(
        "(?:" + "|".join(sorted(paths, key=lambda p: (-len(p), p))) + r")(?=[\\/:*?\"<>|\s;,')\]]|$)", re.IGNORECASE
    )


@lru_cache(maxsize=16)
def _changer(names: RedactionNames) -> Callable[[str], str]:
    home = _home_pattern(names.homes)
    users = {_fold(name) for name in names.users if name.strip()}
    machines = {_fold(name) for name in names.machines if name.strip()}
    rare_users = users - _COMMON
    rare_machines = machines - _COMMON
    words = sorted(
        {form for name in names.machines if _fold(name) in rare_machines and len(name) > 2 for form in _forms(name)}
    )
    machine = (
        re.compile(rf"(?<![\w.\\/-])(?:{'|'.join(re.escape(w) for w in words)})(?![\w-]|\.\w)", re.IGNORECASE)
        if words
        else None
    )

    def folder(match: re.Match[str]) -> str:
        name = match["name"].strip()
        if _fold(name) in _NOBODY and _fold(name) not in users:
            return match.group()
        return match["before"] + (USER if name else match["name"])

    def component(match: re.Match[str]) -> str:
        parts = re.split(r"([\\/]+)", match.group())
        return "".join(USER if _fold(p) in rare_users else MACHINE if _fold(p) in rare_machines else p for p in parts)

    def mail(match: re.Match[str]) -> str:
        return match.group() if match["top"].lower() in _FILE_ENDINGS else MAIL

    def change(text: str) -> str:
        if "\\" in text or "/" in text:
            if home:
                text = home.sub(lambda m: HOME if m.group()[:1] == "/" else PROFILE, text)
            text = _UNC.sub(lambda m: m["lead"] + HOST, text)
            text = _FOLDER.sub(folder, text)
            if rare_users or rare_machines:
                text = _COMPONENT_PATH.sub(component, text)
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
