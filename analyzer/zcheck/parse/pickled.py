"""What a pickle names, from its opcodes alone: nothing is imported, called or built.

A symbolic stack machine over ``pickletools.genops`` keeps text, numbers, tuples and containers; a class or function is
its name, a call is a record of that name and its arguments. From that come the tensors of a PyTorch checkpoint
(pytorch/pytorch: torch/_utils.py, ``_rebuild_tensor_v2(storage, offset, size, stride, …)``), the classes of a whole
pickled model (``torch.nn.modules.conv Conv2d``) and the operator table of a mobile archive.
"""

from __future__ import annotations

import io
import pickletools
import re
from dataclasses import dataclass, field

_MAX_OPCODES = 3_000_000
_MAX_TEXT = 1_024
_MAX_NAMES = 200_000
_MAX_DEPTH = 200_000
_OPERATOR = re.compile(r"[a-z_][a-z0-9_]*::[A-Za-z_][A-Za-z0-9_]*")
_TENSOR_CALLS = (
    "_rebuild_tensor",
    "_rebuild_tensor_v2",
    "_rebuild_tensor_v3",
    "_rebuild_parameter",
    "_rebuild_qtensor",
)


class BadPickle(Exception):
    """Not a pickle, cut off, or beyond the bounds; the text says which."""


@dataclass
class _Name:
    text: str


@dataclass
class _Call:
    name: str
    arguments: tuple[object, ...]
    state: object = None


class _Mark:
    pass


_MARK = _Mark()
_NOTHING = object()


@dataclass
class Pickled:
    """``tensors``: (dotted name, shape); ``classes``: each class or function that it names with how often;
    ``operators``: texts of the form ``aten::conv2d`` with how often; ``length``: bytes up to its end."""

    tensors: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    classes: dict[str, int] = field(default_factory=dict)
    operators: dict[str, int] = field(default_factory=dict)
    length: int = 0


class _Machine:
    def __init__(self) -> None:
        self.stack: list[object] = []
        self.memo: dict[int, object] = {}
        self.found = Pickled()

    def pop(self) -> object:
        return self.stack.pop() if self.stack else _NOTHING

    def to_mark(self) -> list[object]:
        taken: list[object] = []
        while self.stack:
            item = self.stack.pop()
            if item is _MARK:
                break
            taken.append(item)
        taken.reverse()
        return taken

    def push(self, item: object) -> None:
        if len(self.stack) >= _MAX_DEPTH:
            raise BadPickle(f"more than {_MAX_DEPTH} objects on its stack")
        self.stack.append(item)

    def name(self, module: object, name: object) -> _Name:
        # Anything but text stays unwritten: a container of containers could be as long as it likes.
        known = isinstance(module, str) and isinstance(name, str)
        text = f"{module}.{name}"[:_MAX_TEXT] if known else "(a name that is no text)"
        if text in self.found.classes or len(self.found.classes) < _MAX_NAMES:
            self.found.classes[text] = self.found.classes.get(text, 0) + 1
        return _Name(text)

    def call(self, target: object, arguments: object) -> None:
        name = target.text if isinstance(target, _Name) else ""
        self.push(_Call(name, arguments if isinstance(arguments, tuple) else ()))

    def set_items(self, target: object, items: list[object]) -> None:
        into = target.state if isinstance(target, _Call) and isinstance(target.state, dict) else target
        if isinstance(target, _Call) and target.state is None:
            target.state = into = {}
        if isinstance(into, dict):
            for key, value in zip(items[::2], items[1::2], strict=False):
                if isinstance(key, (str, int)):
                    into[key] = value

    def step(self, op: str, argument: object) -> None:
        if op in ("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "STRING", "BINSTRING", "SHORT_BINSTRING"):
            text = str(argument)[:_MAX_TEXT]
            if _OPERATOR.fullmatch(text):
                self.found.operators[text] = self.found.operators.get(text, 0) + 1
            self.push(text)
        elif op in ("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"):
            self.push(argument)
        elif op == "MARK":
            self.push(_MARK)
        elif op in ("EMPTY_TUPLE", "EMPTY_LIST", "EMPTY_DICT", "EMPTY_SET"):
            self.push({"EMPTY_TUPLE": (), "EMPTY_LIST": [], "EMPTY_DICT": {}, "EMPTY_SET": []}[op])
        elif op in ("TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"):
            count = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}.get(op)
            items = self.to_mark() if count is None else [self.pop() for _ in range(count)][::-1]
            self.push(tuple(items))
        elif op in ("LIST", "FROZENSET"):
            self.push(self.to_mark())
        elif op == "DICT":
            made: dict[object, object] = {}
            self.set_items(made, self.to_mark())
            self.push(made)
        elif op in ("BINPUT", "LONG_BINPUT", "PUT", "MEMOIZE"):
            number = len(self.memo) if op == "MEMOIZE" else int(str(argument))
            if self.stack and len(self.memo) < _MAX_OPCODES:
                self.memo[number] = self.stack[-1]
        elif op in ("BINGET", "LONG_BINGET", "GET"):
            self.push(self.memo.get(int(str(argument)), _NOTHING))
        elif op == "GLOBAL":
            module, _, name = str(argument).partition(" ")
            self.push(self.name(module, name))
        elif op == "STACK_GLOBAL":
            last, first = self.pop(), self.pop()
            self.push(self.name(first, last))
        elif op == "INST":
            module, _, name = str(argument).partition(" ")
            self.call(self.name(module, name), tuple(self.to_mark()))
        elif op == "OBJ":
            items = self.to_mark()
            self.call(items[0] if items else _NOTHING, tuple(items[1:]))
        elif op in ("REDUCE", "NEWOBJ"):
            arguments, target = self.pop(), self.pop()
            self.call(target, arguments)
        elif op == "NEWOBJ_EX":
            self.pop()
            arguments, target = self.pop(), self.pop()
            self.call(target, arguments)
        elif op == "BUILD":
            state = self.pop()
            if self.stack and isinstance(self.stack[-1], _Call):
                self.stack[-1].state = state
        elif op == "SETITEM":
            value, key = self.pop(), self.pop()
            self.set_items(self.stack[-1] if self.stack else _NOTHING, [key, value])
        elif op == "SETITEMS":
            items = self.to_mark()
            self.set_items(self.stack[-1] if self.stack else _NOTHING, items)
        elif op == "APPEND":
            value = self.pop()
            if self.stack and isinstance(self.stack[-1], list):
                self.stack[-1].append(value)
        elif op in ("APPENDS", "ADDITEMS"):
            items = self.to_mark()
            if self.stack and isinstance(self.stack[-1], list):
                self.stack[-1].extend(items)
        elif op == "POP":
            self.pop()
        elif op == "POP_MARK":
            self.to_mark()
        elif op == "DUP":
            if self.stack:
                self.push(self.stack[-1])
        elif op == "BINPERSID":
            self.pop()
            self.push(_NOTHING)
        elif op not in ("PROTO", "FRAME", "STOP"):
            self.push(_NOTHING)


def read_pickle(data: bytes) -> Pickled:
    """What the first pickle of ``data`` names; raises BadPickle."""
    machine = _Machine()
    try:
        for count, (opcode, argument, position) in enumerate(pickletools.genops(io.BytesIO(data))):
            if count > _MAX_OPCODES:
                raise BadPickle(f"more than {_MAX_OPCODES:,} opcodes")
            machine.step(opcode.name, argument)
            machine.found.length = (position or 0) + 1
    except (ValueError, OverflowError, UnicodeDecodeError, MemoryError, RecursionError, EOFError, IndexError) as error:
        raise BadPickle(f"it is no whole pickle ({type(error).__name__}: {str(error)[:120]})") from error
    if machine.stack:
        _tensors(machine.stack[-1], machine.found)
    return machine.found


def _tensors(root: object, found: Pickled) -> None:
    """Named tensors below ``root``, without recursion; an object that is met again is not gone into."""
    seen: set[int] = set()
    queue: list[tuple[str, object]] = [("", root)]
    while queue and len(found.tensors) < _MAX_NAMES:
        name, item = queue.pop()
        shape = _shape(item)
        if shape is not None:
            if name:
                found.tensors.append((name, shape))
            continue
        inside = item.state if isinstance(item, _Call) else item
        if isinstance(item, _Call) and isinstance(inside, tuple) and inside and isinstance(inside[0], dict):
            inside = inside[0]
        if not isinstance(inside, dict) or id(inside) in seen:
            continue
        seen.add(id(inside))
        for key, value in reversed(inside.items()):
            # A pickled module keeps its weights in _parameters and its children in _modules.
            plain = key in ("_parameters", "_buffers", "_modules") or (not name and key in ("state_dict", "model"))
            path = name if plain else f"{name}.{key}" if name else str(key)
            queue.append((path[:_MAX_TEXT], value))


def _shape(item: object) -> tuple[int, ...] | None:
    for _ in range(3):  # a parameter wraps a tensor
        if not isinstance(item, _Call) or not item.name.startswith("torch._utils."):
            return None
        if item.name.rpartition(".")[2] not in _TENSOR_CALLS:
            return None
        if item.name.endswith("_rebuild_parameter"):
            item = item.arguments[0] if item.arguments else None
            continue
        size = item.arguments[2] if len(item.arguments) > 2 else None
        if isinstance(size, tuple) and all(isinstance(side, int) for side in size):
            return tuple(side for side in size if isinstance(side, int))
        return None
    return None
