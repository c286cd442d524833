"""Electron's asar archive (electron/asar README): a JSON directory in a Chromium pickle, then the files end to end."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import BinaryIO

from zcheck.model.base import Problem
from zcheck.parse.archive_base import Budget, Member, escaping, kind_of, safe_path, window

_DIRECTORY = 64 * 1024 * 1024
_DEPTH = 64


def directory(file: BinaryIO) -> tuple[dict[str, object], int] | None:
    """(the JSON directory, offset of the first file), or None when this is no asar archive."""
    size = file.seek(0, 2)
    file.seek(0)
    head = file.read(16)
    if len(head) < 16:
        return None
    four, header, pickled, length = struct.unpack("<IIII", head)
    if four != 4 or not (2 <= length <= pickled <= header) or header - length > 64 or length > _DIRECTORY:
        return None
    if 16 + length > size:
        return None
    try:
        tree = json.loads(file.read(length))
    except (ValueError, RecursionError):
        return None
    return (tree, 8 + header) if isinstance(tree, dict) and isinstance(tree.get("files"), dict) else None


def members(
    file: BinaryIO, name: str, found: tuple[dict[str, object], int], budget: Budget, problems: list[Problem]
) -> Iterator[Member]:
    """The archive's files; those kept unpacked beside it (``app.asar.unpacked``) are not members."""
    size = file.seek(0, 2)
    tree, base = found
    stack: list[tuple[str, object, int]] = [("", tree, 0)]
    while stack:
        prefix, node, depth = stack.pop()
        files = node.get("files") if isinstance(node, dict) else None
        if not isinstance(files, dict):
            continue
        if depth > _DEPTH:
            problems.append(Problem(path=name, reason=f"folders nested deeper than {_DEPTH}", partial=True))
            continue
        for key in sorted(files, reverse=True):
            child = files[key]
            text = f"{prefix}{key}"
            if isinstance(child, dict) and "files" in child:
                stack.append((text + "/", child, depth + 1))
                continue
            if not isinstance(child, dict) or child.get("unpacked") or "link" in child:
                continue
            if not budget.entry():
                problems.append(Problem(path=name, reason=f"more than {budget.limits.entries} members", partial=True))
                return
            path = safe_path(text)
            if path is None:
                problems.append(escaping(name, text))
                continue
            offset, length = child.get("offset"), child.get("size")
            if not (isinstance(offset, str) and offset.isdecimal() and len(offset) < 20 and isinstance(length, int)):
                problems.append(Problem(path=name, reason=f"member {path!r} has no place", partial=True))
                continue
            start = base + int(offset)
            if length < 0 or start + length > size:
                problems.append(Problem(path=name, reason=f"member {path!r} lies outside of the file", partial=True))
                continue
            yield Member(path, length, kind_of(path), lambda s=start, n=length: window(file, s, n))  # type: ignore[misc]
