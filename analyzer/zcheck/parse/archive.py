"""One-file programs and archives: what they are, what they hold, and their files in memory.

    facts = recognise(file, "app.exe", pe_facts)
    for member in walk(file, "app.exe", pe_facts, limits, problems): …

Nothing is written to disk, executed or unpickled. Members that are archives themselves are walked too, to
``Limits.depth``; every size is checked before it is unpacked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from zcheck.model.base import DEFAULT_LIMITS, Limits, Problem
from zcheck.model.facts import PeFacts
from zcheck.model.hidden import ArchiveFacts, ArchiveMember, MemberLimitation
from zcheck.parse import archive_asar, archive_dotnet, archive_nuitka, archive_pyinstaller, archive_zip, frozen
from zcheck.parse.archive_base import BadMember, Budget, Member

__all__ = ["BadMember", "Member", "recognise", "walk"]

_ARCHIVES = (".zip", ".jar", ".whl", ".egg", ".asar", ".nupkg", ".pyz")
_SHEBANG = re.compile(rb"#!([^\r\n]{3,512}?\.exe\"?)[^\r\n]{0,200}\r?\n")
_LISTED = 65_536
"""members listed in the facts; all are walked"""


class _Form(NamedTuple):
    form: str
    tool: str
    evidence: str
    found: object = None
    version: str = ""


def recognise(
    file: BinaryIO, name: str, facts: PeFacts | None = None, limits: Limits = DEFAULT_LIMITS
) -> ArchiveFacts | None:
    """What kind of container this file is, with its contents listed, or None when it is none.

    ``limitation`` is set where something of the program cannot be seen: contents that no reader knows, or a launcher
    whose program lies elsewhere.
    """
    form = _form(file, facts)
    if form is None:
        sign = frozen.sign_of(file, facts) if facts is not None else None
        if sign is None:
            return None
        evidence = f"{sign.bytes[:24]!r} in its {sign.where}"
        return ArchiveFacts(name, sign.form, evidence, sign.tool, limitation=frozen.limitation(sign))
    problems: list[Problem] = []
    listed: list[ArchiveMember] = []
    for member in _members(file, name, form, Budget(limits), problems, list_only=True):
        if len(listed) < _LISTED:
            listed.append(ArchiveMember(member.path, member.size, member.kind))
    kind, limitation = _nature(file, form, listed, facts)
    if any(problem.partial for problem in problems) and limitation is None:
        limitation = MemberLimitation("partly-read", problems[0].reason, "unpack it and run zcheck on the folder")
    return ArchiveFacts(
        name, kind, form.evidence, form.tool, form.version, tuple(listed), True, limitation, tuple(problems)
    )


def walk(
    file: BinaryIO,
    name: str,
    facts: PeFacts | None = None,
    limits: Limits = DEFAULT_LIMITS,
    problems: list[Problem] | None = None,
) -> Iterator[Member]:
    """All files inside, nested archives included (``outer.jar!inner.dll``); oddities are added to ``problems``."""
    yield from _walk(file, name, facts, Budget(limits), [] if problems is None else problems, 0)


def _walk(
    file: BinaryIO, name: str, facts: PeFacts | None, budget: Budget, problems: list[Problem], depth: int
) -> Iterator[Member]:
    form = _form(file, facts)
    if form is None:
        return
    for member in _members(file, name, form, budget, problems):
        inner = f"{name}!{member.path}" if depth else member.path
        yield member._replace(path=inner)
        if not member.path.lower().endswith((*_ARCHIVES, ".exe")):
            continue
        if depth + 1 >= budget.limits.depth:
            if member.path.lower().endswith(_ARCHIVES):
                reason = f"archives nested deeper than {budget.limits.depth} were not read"
                problems.append(Problem(path=inner, reason=reason, partial=True))
            continue
        try:
            nested = member.open()
        except BadMember as error:
            problems.append(Problem(path=inner, reason=f"not read: {error}", partial=True))
            continue
        yield from _walk(nested, inner, None, budget, problems, depth + 1)


def _form(file: BinaryIO, facts: PeFacts | None) -> _Form | None:
    cookie = archive_pyinstaller.cookie(file)
    if cookie is not None:
        python = f"{cookie.python // 100}.{cookie.python % 100}" if cookie.python >= 100 else str(cookie.python)
        return _Form("pyinstaller", "PyInstaller", "MEI cookie at the end", cookie, f"Python {python}")
    payload = archive_nuitka.payload(file, facts)
    if payload is not None:
        return _Form("nuitka-one-file", "Nuitka", "KA payload header", payload)
    file.seek(0)
    program = file.read(2) == b"MZ"
    if program and (facts is None or not (facts.is_dll or facts.is_dotnet)):
        bundle = archive_dotnet.bundle(file, facts.overlay_offset if facts and facts.overlay_size else None)
        if bundle is not None:
            return _Form(
                "dotnet-single-file", ".NET", "bundle signature", bundle, f"bundle {bundle.major}.{bundle.minor}"
            )
    if not program:
        asar = archive_asar.directory(file)
        if asar is not None:
            return _Form("asar", "Electron", "asar header", asar)
    if archive_zip.has_end(file):
        return _Form("zip-self-extractor" if program else "zip", "zip", "end-of-central-directory record")
    return None


def _members(
    file: BinaryIO, name: str, form: _Form, budget: Budget, problems: list[Problem], list_only: bool = False
) -> Iterator[Member]:
    found = form.found
    if isinstance(found, archive_pyinstaller.Cookie):
        yield from archive_pyinstaller.members(file, name, found, budget, problems)
    elif isinstance(found, archive_dotnet.Bundle):
        yield from archive_dotnet.members(file, name, found, budget, problems)
    elif form.form == "nuitka-one-file":
        yield from archive_nuitka.members(file, name, found, budget, problems, list_only)  # type: ignore[arg-type]
    elif form.form == "asar":
        yield from archive_asar.members(file, name, found, budget, problems)  # type: ignore[arg-type]
    else:
        yield from archive_zip.members(file, name, budget, problems)


def _nature(
    file: BinaryIO, form: _Form, members: list[ArchiveMember], facts: PeFacts | None
) -> tuple[str, MemberLimitation | None]:
    """The form told more closely by what is inside, and what stays unseen."""
    paths = {member.path for member in members}
    if form.form == "pyinstaller":
        one_file = any(member.kind in ("pe", "file") for member in members)  # one-dir programs hold scripts only
        return ("pyinstaller-one-file" if one_file else "pyinstaller-one-dir"), None
    if form.form != "zip-self-extractor":
        return form.form, None
    if "__main__.py" in paths or "__main__.pyc" in paths:
        script = _shebang(file, facts)
        note = (
            f"this is a launcher that runs its script with {script}"
            if script
            else "this is a launcher for a Python script"
        )
        return "python-launcher", MemberLimitation(
            "script-launcher", note, "run zcheck on the folder of the Python environment"
        )
    if "META-INF/MANIFEST.MF" in paths:
        return "java-launcher", MemberLimitation(
            "script-launcher",
            "this is a launcher with a Java program behind it",
            "run zcheck on the folder with its native libraries as well",
        )
    return form.form, None


def _shebang(file: BinaryIO, facts: PeFacts | None) -> str:
    """File name of the interpreter that a launcher's shebang line names."""
    if facts is None or not facts.overlay_size:
        return ""
    file.seek(facts.overlay_offset)
    match = _SHEBANG.search(file.read(4096))
    return re.split(rb"[\\/]", match.group(1).strip(b'"'))[-1].decode("utf-8", "replace") if match else ""
