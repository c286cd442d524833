"""PyTorch files: TorchScript archives by their code, mobile archives by their operator table, checkpoints by names
and shapes. Nothing is unpickled or executed.

Forms (pytorch/pytorch: torch/csrc/jit/docs/serialization.md): a zip whose members lie in one folder, ``code/**.py``
with the program's text, ``data.pkl`` with attributes, ``bytecode.pkl`` in mobile archives; ``torch.save`` writes the
same zip without code, before PyTorch 1.6 five pickles one after the other.
"""

from __future__ import annotations

import re
import struct
import zipfile
from collections import Counter
from typing import BinaryIO

from zcheck.model.base import DEFAULT_LIMITS, Limits, Problem
from zcheck.model.workload import ModelFacts, OperatorCount
from zcheck.parse.archive_base import BadMember, Budget, escaping, safe_path
from zcheck.parse.archive_zip import read_member
from zcheck.parse.pickled import BadPickle, Pickled, read_pickle
from zcheck.parse.tensors import group

_CODE = re.compile(r"(^|/)code/.*\.py$")
# Operators as PyTorch prints them: torch.conv2d(…), ops.quantized.conv2d(…); text constants are taken out before.
_TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|#[^\n]*')
_OPERATOR = re.compile(r"(?<![\w.])(?:torch|ops\.([a-z_][a-z0-9_]*))\.([A-Za-z_]\w*)\(")
_MAX_CODE = 64 * 1024 * 1024
_MAX_PICKLE = 64 * 1024 * 1024
_LEGACY_MAGIC = b"\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"
"""PyTorch's magic number as a pickle writes it (torch/serialization.py)"""
_LEGACY_READ = 256 * 1024 * 1024
_LEGACY_PICKLES = 5
# What a checkpoint of weights needs; other names are told, since unpickling would call them.
_PLAIN = re.compile(
    r"(torch(\.\w+)*|collections|numpy(\.\w+)*|__torch__(\.\w+)*|_codecs|copyreg|argparse|pathlib|omegaconf(\.\w+)*)\..+"
    r"|__builtin__\.(set|dict|list|getattr|object|bytes|bytearray|complex|frozenset|slice|range)"
    r"|builtins\.(set|dict|list|getattr|object|bytes|bytearray|complex|frozenset|slice|range)"
)


def read_torch(file: BinaryIO, size: int, path: str, limits: Limits = DEFAULT_LIMITS) -> ModelFacts | None:
    """The facts of a TorchScript archive or PyTorch checkpoint of ``size`` bytes, or None when the file is neither."""
    file.seek(0)
    head = file.read(64)
    if head.startswith(b"PK\x03\x04"):
        return _read_zip(file, path, limits)
    if head[:1] == b"\x80" and _LEGACY_MAGIC in head:
        return _read_legacy(file, size, path)
    return None


def _read_zip(file: BinaryIO, path: str, limits: Limits) -> ModelFacts | None:
    problems: list[Problem] = []
    try:
        archive = zipfile.ZipFile(file)
        infos = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, struct.error) as error:
        problems.append(Problem(path=path, reason=f"its zip directory cannot be read: {error}", partial=True))
        return ModelFacts(path=path, format="torch-checkpoint", problems=tuple(problems))
    budget = Budget(limits)
    operators: Counter[str] = Counter()
    pickles: list[Pickled] = []
    has_code = recognised = False
    for info in infos:
        if not budget.entry():
            problems.append(Problem(path=path, reason=f"more than {limits.entries} members", partial=True))
            break
        inside = safe_path(info.filename)
        if inside is None:
            problems.append(escaping(path, info.filename))
            continue
        base = inside.rpartition("/")[2]
        code = _CODE.search(inside) is not None
        if not code and base not in ("data.pkl", "bytecode.pkl"):
            continue
        recognised = True
        try:
            data = read_member(archive, info, budget, _MAX_CODE if code else _MAX_PICKLE)
        except BadMember as error:
            problems.append(Problem(path=path, reason=f"member {inside[:120]!r} was not read: {error}", partial=True))
            continue
        if code:
            has_code = True
            operators.update(code_operators(data.decode("utf-8", "replace")))
            continue
        try:
            pickles.append(read_pickle(data))
        except BadPickle as error:
            problems.append(Problem(path=path, reason=f"member {inside[:120]!r}: {error}", partial=True))
    if not recognised:
        return None
    return _facts(path, operators, pickles, problems, has_code)


def code_operators(text: str) -> Counter[str]:
    """Operators that TorchScript code calls: ``aten::conv2d`` (written ``torch.conv2d``), ``quantized::conv2d``."""
    return Counter(f"{match[1] or 'aten'}::{match[2]}" for match in _OPERATOR.finditer(_TEXT.sub('""', text)))


def _read_legacy(file: BinaryIO, size: int, path: str) -> ModelFacts:
    """Five pickles in a row: magic number, protocol, system, object, storage keys."""
    file.seek(0)
    data = file.read(min(size, _LEGACY_READ))
    problems: list[Problem] = []
    pickles: list[Pickled] = []
    at = 0
    for _ in range(_LEGACY_PICKLES):
        try:
            found = read_pickle(data[at:])
        except BadPickle as error:
            problems.append(Problem(path=path, reason=f"a pickle at {at}: {error}", partial=True))
            break
        pickles.append(found)
        at += found.length
        if not found.length or at >= len(data):
            break
    return _facts(path, Counter(), pickles, problems, has_code=False)


def _facts(
    path: str, operators: Counter[str], pickles: list[Pickled], problems: list[Problem], has_code: bool
) -> ModelFacts:
    classes: dict[str, None] = {}
    for found in pickles:
        classes.update(dict.fromkeys(found.classes))
        if not has_code:
            operators.update(found.operators)
    tensors = [tensor for found in pickles for tensor in found.tensors]
    odd = [name for name in classes if not _PLAIN.fullmatch(name)]
    if odd:
        named = ", ".join(odd[:4])
        problems.append(Problem(path=path, reason=f"loading it would call {named}: it was read, not loaded"))
    return ModelFacts(
        path=path,
        format="torchscript" if has_code or operators else "torch-checkpoint",
        operators=tuple(OperatorCount(name, operators[name]) for name in sorted(operators)),
        groups=group(tensors),
        tensors=len(tensors),
        globals=tuple(sorted(classes)),
        problems=tuple(problems),
    )
