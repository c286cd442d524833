"""The evidence vocabulary: what collect/ says about a program, as records and as the lines that rules and people use.

A line names one record; ``parse_line(line(record)) == record`` for every record. The lines of a rule's ``given`` and of
``zcheck check --evidence`` are the same (design section 5)::

    entry app.exe imports cublas64_12.dll!cublasGemmEx
    module ops.dll delay-imports cufft64_11.dll!cufftExecC2C
    module ops.dll looks-up nvcuda.dll!cuInit; at .rdata+0x1f20; confidence medium
    module ops.dll mentions cudnn64_9.dll
    framework torch_cuda.dll imports cudnn64_9.dll!cudnnConvolutionForward
    file app.exe role entry; machine x64; company "Example Ltd"
    workload convolution required; by "model.onnx: 53 Conv"
    limitation packed app.exe; note "UPX"
    own-path DirectML app.exe; note "imports DirectML.dll"
    stack zluda v6, hip_sdk 6.4, gpu gfx1100
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Literal, cast

import msgspec

from zcheck.errors import DataError
from zcheck.model.base import Confidence, Record
from zcheck.model.facts import Machine
from zcheck.model.graph import LoadTime
from zcheck.model.report import Need
from zcheck.model.stack import LaunchMode, Stack

Role = Literal["entry", "module", "framework", "vendor"]
"""entry: the program itself; module: its own DLL; framework: a DLL that imports everything; vendor: NVIDIA's library"""
UseKind = Literal["import", "delay", "dynamic", "mention", "call"]
_VERBS: dict[UseKind, str] = {
    "import": "imports",
    "delay": "delay-imports",
    "dynamic": "looks-up",
    "mention": "mentions",
    "call": "calls",
}
_KINDS = {verb: kind for kind, verb in _VERBS.items()}


class Use(Record, frozen=True, tag="use"):
    """A module uses a DLL (``function`` empty: the DLL as a whole) or one function of it.

    ``kind`` call: shown by a trace, a measured table or framework knowledge; ``reach`` init: every CUDA start calls it.
    ``found``: what resolve/ found for the DLL in the bundle or Windows; empty leaves it to the coverage database.
    ``because``: for a call, the function or fact that it follows from.
    """

    role: Role
    module: str
    kind: UseKind
    dll: str
    function: str = ""
    load: LoadTime = "start"
    found: Literal["", "bundle", "system", "missing", "mismatch"] = ""
    init: bool = False
    confidence: Confidence = "high"
    place: str = ""
    because: str = ""


class FileFact(Record, frozen=True, tag="file"):
    """A module of the bundle."""

    name: str
    role: Role = "module"
    machine: Machine = "x64"
    load: LoadTime = "start"
    company: str = ""
    version: str = ""
    description: str = ""
    path: str = ""
    dotnet: bool = False


class DeviceCode(Record, frozen=True, tag="device-code"):
    """Device code of one module under one release, kernels counted (the replay), or under no release what is there.

    ``release`` empty: facts that hold for all releases. ``opaque``: a section compressed as a whole.
    """

    module: str
    release: str = ""
    containers: int = 0
    ptx: int = 0
    sass: int = 0
    kernels: int = 0
    loadable: int = 0
    dropped: int = 0
    stub: int = 0
    empty: int = 0
    lost: int = 0
    opaque: bool = False
    ptx_bytes: int = 0
    note: str = ""


class Workload(Record, frozen=True, tag="workload"):
    """A workload family is needed, and what says so."""

    family: str
    need: Need
    by: str = ""


class Framework(Record, frozen=True, tag="detected"):
    """A framework recognised in the bundle."""

    name: str
    version: str = ""
    module: str = ""
    cuda: str = ""


class OwnPath(Record, frozen=True, tag="own-path"):
    """The program's own way to an AMD GPU: HIP, OpenCL, Vulkan, DirectML."""

    api: str
    module: str
    note: str = ""


STATIC_RUNTIME = "cudart_static.lib"
"""the name of NVIDIA's static runtime, under which a linked-in runtime stands in the evidence"""


class Limitation(Record, frozen=True, tag="limitation"):
    """Why a file could not be judged: packed, one-file-archive, script-launcher, partly-read, nothing-visible …"""

    kind: str
    module: str
    note: str = ""


class Mention(Record, frozen=True, tag="string"):
    """A string of interest that is no DLL or function name."""

    module: str
    text: str
    place: str = ""


class Known(Record, frozen=True, tag="known"):
    """What is publicly known of a framework or application on one ZLUDA release (frameworks.yaml, apps.yaml).

    ``effect``: *fails*, *setting* (fails until one documented setting is made), *works* (reported to), *note*,
    *own-path* (it is there for AMD GPUs without ZLUDA);
    ``family``: it matters only to programs with this workload; ``remedy``: what to do; ``source``: who says so.
    """

    subject: str
    effect: Literal["fails", "setting", "works", "note", "own-path"]
    release: str = ""
    key: str = ""
    family: str = ""
    note: str = ""
    remedy: str = ""
    module: str = ""
    source: str = ""


class HostFact(Record, frozen=True, tag="host"):
    """One fact of the PC: ``key`` from a closed list (host/), ``value`` free, ``subject`` the file or adapter."""

    key: str
    value: str = ""
    subject: str = ""
    note: str = ""


class RecordedRun(Record, frozen=True, tag="run"):
    """A recorded run of this application on a stack."""

    outcome: Literal["passed", "failed"]
    zluda: str
    hip_sdk: str
    gpu: str
    date: str
    note: str = ""
    launch_mode: LaunchMode = "zluda-exe"


Item = (
    Use | FileFact | DeviceCode | Workload | Framework | OwnPath | Limitation | Mention | Known | HostFact | RecordedRun
)


class Evidence(Record, frozen=True):
    """All evidence on one entry, in order; ``target`` is the entry's name."""

    target: str
    items: tuple[Item, ...] = ()

    def newest_run(self, stack: Stack) -> RecordedRun | None:
        """The newest recorded run of this application on this very stack, launch mode and GPU included.

        ``6.4`` covers its patches. Runs stand oldest first, so that of several of one day the last counts.
        """
        runs = [
            item
            for item in self.items
            if isinstance(item, RecordedRun)
            and (item.zluda, item.launch_mode, item.gpu) == (stack.zluda, stack.launch_mode, stack.gpu)
            and (item.hip_sdk == stack.hip_sdk or item.hip_sdk.startswith(stack.hip_sdk + "."))
        ]
        return max(reversed(runs), key=lambda run: run.date, default=None)

    def uses(self) -> tuple[Use, ...]:
        """The Use records."""
        return tuple(item for item in self.items if isinstance(item, Use))


# --- lines ---------------------------------------------------------------------------------------------------------

_NUMBER = re.compile(r"-?[0-9]{1,18}")
_BARE = re.compile(r"[^\s\";,!]+")
_USE_ROLES = ("entry", "module", "framework", "vendor")
# record type -> (leading word, positional fields, of which the first is mandatory)
_SHAPES: dict[str, tuple[type, tuple[str, ...]]] = {
    "file": (FileFact, ("name",)),
    "device-code": (DeviceCode, ("module",)),
    "workload": (Workload, ("family", "need")),
    "detected": (Framework, ("name", "version")),
    "own-path": (OwnPath, ("api", "module")),
    "limitation": (Limitation, ("kind", "module")),
    "string": (Mention, ("module", "text")),
    "known": (Known, ("subject", "effect")),
    "host": (HostFact, ("key", "value")),
    "run": (RecordedRun, ("outcome",)),
}


# What str.splitlines ends a line at and json.dumps leaves as it is, and halves of characters, which UTF-8 cannot write.
_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def _token(text: str) -> str:
    if _BARE.fullmatch(text) and not _UNSAFE.search(text):
        return text
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))


@lru_cache(maxsize=64)
def _fields(struct: type) -> tuple[msgspec.structs.FieldInfo, ...]:
    """msgspec evaluates a type's annotations anew at each question; reports have thousands of lines."""
    return msgspec.structs.fields(struct)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _token(str(value))


def _attributes(item: Record, skip: tuple[str, ...]) -> str:
    parts = []
    for field in _fields(type(item)):
        value = getattr(item, field.name)
        if field.name not in skip and value != field.default:
            parts.append(f"; {field.name} {_value(value)}")
    return "".join(parts)


def line(item: Item) -> str:
    """The line of one record."""
    if isinstance(item, Use):
        name = _token(item.dll) + (f"!{_token(item.function)}" if item.function else "")
        head = f"{item.role} {_token(item.module)} {_VERBS[item.kind]} {name}"
        return head + _attributes(item, ("role", "module", "kind", "dll", "function"))
    word = str(item.__struct_config__.tag)
    _, positional = _SHAPES[word]
    values = [getattr(item, name) for name in positional]
    while len(values) > 1 and values[-1] == "":
        values.pop()
    return " ".join([word, *(_value(value) for value in values)]) + _attributes(item, positional)


class _Cursor:
    """Reads tokens of one line; raises DataError that quotes the line."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def fail(self, why: str) -> DataError:
        return DataError(f"evidence line {self.text!r}: {why}")

    def skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def done(self) -> bool:
        self.skip()
        return self.at >= len(self.text)

    def eat(self, char: str) -> bool:
        if self.text.startswith(char, self.at):
            self.at += len(char)
            return True
        return False

    def peek(self, char: str) -> bool:
        self.skip()
        return self.text.startswith(char, self.at)

    def token(self, what: str) -> str:
        self.skip()
        if self.text.startswith('"', self.at):
            try:
                value, end = json.JSONDecoder().raw_decode(self.text, self.at)
            except ValueError:
                raise self.fail(f"the quoted {what} does not end") from None
            self.at = end
            return str(value)
        match = _BARE.match(self.text, self.at)
        if not match:
            raise self.fail(f"expected {what} at column {self.at + 1}")
        self.at = match.end()
        return match.group()


def _convert(cursor: _Cursor, struct: type, raw: dict[str, str]) -> Item:
    types = {field.name: field for field in _fields(struct)}
    values: dict[str, object] = {}
    for key, text in raw.items():
        if key not in types:
            import difflib

            near = difflib.get_close_matches(key, types, 1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; it knows {', '.join(types)}"
            raise cursor.fail(f"no attribute {key!r}{hint}")
        kind = types[key].type
        if kind is bool:
            if text not in ("yes", "no"):
                raise cursor.fail(f"{key} takes yes or no, not {text!r}")
            values[key] = text == "yes"
        elif kind is int:
            if not _NUMBER.fullmatch(text):
                raise cursor.fail(f"{key} takes a whole number, not {text[:40]!r}")
            values[key] = int(text)
        else:
            values[key] = text
    try:
        return cast(Item, msgspec.convert(values, struct, strict=True, str_keys=True))
    except msgspec.ValidationError as error:
        raise cursor.fail(str(error)) from None


def parse_line(text: str) -> Item:
    """The record of one line; raises DataError naming the line and what is wrong with it."""
    cursor = _Cursor(text.strip())
    word = cursor.token("the first word")
    raw: dict[str, str] = {}
    if word in _USE_ROLES:
        struct: type = Use
        raw = {"role": word, "module": cursor.token("a module name")}
        verb = cursor.token("a verb")
        if verb not in _KINDS:
            raise cursor.fail(f"{verb!r} is no verb; it knows {', '.join(_KINDS)}")
        raw["kind"] = _KINDS[verb]
        raw["dll"] = cursor.token("a DLL name")
        if cursor.eat("!"):
            raw["function"] = cursor.token("a function name")
    elif word in _SHAPES:
        struct, positional = _SHAPES[word]
        for index, name in enumerate(positional):
            if index and (cursor.done() or cursor.peek(";")):
                break
            raw[name] = cursor.token(name)
        if struct is FileFact and not (cursor.done() or cursor.peek(";")):
            key = cursor.token("an attribute")  # ``file app.exe role entry`` reads better without a semicolon
            raw[key] = cursor.token("a value")
    else:
        raise cursor.fail(f"{word!r} begins no evidence line; it knows {', '.join((*_USE_ROLES, *_SHAPES))}")
    while not cursor.done():
        if not cursor.eat(";"):
            raise cursor.fail(f"expected ';' at column {cursor.at + 1}")
        key = cursor.token("an attribute")
        key = {"at": "place"}.get(key, key)
        if key in raw:
            raise cursor.fail(f"{key} is given twice")
        raw[key] = cursor.token(f"the value of {key}")
    return _convert(cursor, struct, raw)
