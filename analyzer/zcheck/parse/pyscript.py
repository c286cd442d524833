"""Python files by their syntax tree: imports, qualified names in use, DLLs loaded by name. Nothing is executed.

Names are resolved through import aliases (``from torch import nn`` makes ``nn.Conv2d`` ``torch.nn.Conv2d``) and
through plain assignments of such a name. What stands in annotations or in ``isinstance`` is no use.
"""

from __future__ import annotations

import ast
import contextlib
import re
import warnings

from zcheck.model.base import Problem
from zcheck.model.workload import LoadedLibrary, NameUse, ScriptFacts
from zcheck.parse.pyscript_marks import MAX_BYTES, declared_coding

_MAX_NODES = 500_000
_MAX_NAMES = 5_000
_LIBRARY = re.compile(r"[^*?\"<>|\r\n]{1,250}\.(dll|pyd|so)", re.I)
_PATTERN = re.compile(r"[^\"<>|\r\n]{0,250}[*?][^\"<>|\r\n]{0,100}\.(dll|pyd)", re.I)
_LOADERS = {
    "ctypes.CDLL", "ctypes.WinDLL", "ctypes.OleDLL", "ctypes.PyDLL", "ctypes.cdll.LoadLibrary",
    "ctypes.windll.LoadLibrary", "ctypes.util.find_library", "cffi.FFI.dlopen", "ctypes.windll.kernel32.LoadLibraryW",
    "ctypes.windll.kernel32.LoadLibraryExW", "ctypes.windll.kernel32.LoadLibraryA", "win32api.LoadLibrary",
}  # fmt: skip
_GLOBS = {"glob.glob", "glob.iglob"}
_FOLDERS = {"os.add_dll_directory"}
_LOADING = {"LoadLibrary", "dlopen"}
_GLOBBING = {"glob", "rglob", "iglob"}
_TESTS = {"isinstance", "issubclass", "hasattr"}
_LEAVES = {ast.Constant, ast.alias, ast.Pass, ast.Break, ast.Continue, ast.Global, ast.Nonlocal, ast.TypeIgnore}
_NO_CHILDREN = {"ctx", "op", "ops", "type_comment", "kind", "id", "attr", "module", "level", "type_ignores"}
_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {}
"""the fields of a kind of node that may hold others, last first"""
_Item = tuple[ast.expr | ast.Assign, str, str]
"""a node that means something, the top-level definition around it, and the first name of a dotted one"""


class _Scan:
    def __init__(self) -> None:
        self.aliases: dict[str, str] = {}
        self.stars: dict[str, None] = {}
        self.imports: dict[str, None] = {}
        self.relative: dict[str, None] = {}
        self.counts: dict[tuple[str, str], list[int]] = {}
        self.arguments: dict[tuple[str, str], dict[str, None]] = {}
        self.refers: set[str] = set()
        self.libraries: dict[LoadedLibrary, None] = {}
        self.environment: dict[tuple[str, str], None] = {}
        self.main = False
        self.cut = False

    # --- names -----------------------------------------------------------------------------------------------------

    def imported(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                self.imports[alias.name] = None
                self.aliases[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
            return
        if node.level:
            for alias in node.names:
                self.relative[node.module or alias.name] = None
                self.refers.add(alias.name)
            return
        module = node.module or ""
        self.imports[module] = None
        for alias in node.names:
            if alias.name == "*":
                self.stars[module] = None
            else:
                self.aliases[alias.asname or alias.name] = f"{module}.{alias.name}"
                self.refers.add(alias.name)

    def qualified(self, node: ast.expr) -> str | None:
        """The full name of a name or dotted name that an import, or an assignment of an imported name, stands for."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or len(parts) > 20:
            return None
        root = self.aliases.get(node.id)
        if root is None or not parts:
            return root
        parts.append(root)
        return ".".join(reversed(parts))

    def use(self, name: str, line: int, inside: str) -> None:
        key = (name, inside)
        if key in self.counts:
            self.counts[key][0] += 1
        elif len(self.counts) < _MAX_NAMES:
            self.counts[key] = [1, line]
        else:
            self.cut = True

    # --- calls -----------------------------------------------------------------------------------------------------

    def called(self, node: ast.Call, inside: str) -> None:
        name = self.qualified(node.func)
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if name is None and method not in _LOADING and method not in _GLOBBING:
            return
        values = [*node.args[:8], *(item.value for item in node.keywords[:16])]
        texts = [text for item in values if (text := _text(item))]
        lists = [item for value in values if isinstance(value, (ast.List, ast.Tuple)) for item in value.elts[:16]]
        texts += [text for item in lists if (text := _constant(item))]
        if name in _LOADERS or method in _LOADING:
            self.load(texts, node.lineno)
        elif name in _FOLDERS:
            for text in texts[:1]:
                self.libraries[LoadedLibrary(text[:250], node.lineno, "folder")] = None
        elif name in _GLOBS or method in _GLOBBING:
            for text in texts:
                if _PATTERN.fullmatch(text):
                    self.libraries[LoadedLibrary(text, node.lineno, "pattern")] = None
        elif name in ("os.environ.setdefault", "os.putenv") and len(node.args) == 2:
            self.variable(_constant(node.args[0]), _constant(node.args[1]))
        if name and texts:
            kept = self.arguments.setdefault((name, inside), {})
            for text in texts:
                if len(kept) < 16 and len(text) <= 120:
                    kept[text] = None

    def load(self, texts: list[str], line: int) -> None:
        for text in texts:
            if _LIBRARY.fullmatch(text):
                self.libraries[LoadedLibrary(text, line)] = None

    def variable(self, key: str | None, value: str | None) -> None:
        if key and value is not None and len(self.environment) < 200:
            self.environment[(key[:120], value[:200])] = None

    def assigned(self, node: ast.Assign) -> None:
        target = node.targets[0]
        if isinstance(target, ast.Name) and isinstance(node.value, (ast.Attribute, ast.Name)):
            name = self.qualified(node.value)
            if name and target.id not in self.aliases:
                self.aliases[target.id] = name
        if isinstance(target, ast.Subscript) and self.qualified(target.value) == "os.environ":
            self.variable(_constant(target.slice), _constant(node.value))


def _constant(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _text(node: ast.expr) -> str | None:
    """A text constant, or the last one of a joined path (``os.path.join(here, "x.dll")``, ``here / "x.dll"``)."""
    for _ in range(8):
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.Call) and node.args:
            node = node.args[-1]
        elif isinstance(node, ast.BinOp):
            node = node.right
        elif isinstance(node, ast.JoinedStr) and node.values:
            last = node.values[-1]
            text = _constant(last)
            return re.split(r"[\\/]", text)[-1] if text and len(node.values) > 1 else text
        else:
            return None
    return None


def _fields(kind: type[ast.AST]) -> tuple[str, ...]:
    found = tuple(name for name in reversed(kind._fields) if name not in _NO_CHILDREN)
    _FIELDS[kind] = found
    return found


def _walk(tree: ast.Module, scan: _Scan) -> list[_Item]:
    """The nodes of a script that count, in the order of the text, without recursion; imports and mentions go to
    ``scan`` at once, since functions are written above the imports that they need, too.

    What stands in annotations or in ``isinstance`` does not count.
    """
    found: list[_Item] = []
    stack: list[tuple[ast.AST, str, bool]] = [(node, "", True) for node in reversed(tree.body)]
    pop, push, mention = stack.pop, stack.append, scan.refers.add
    count = 0
    while stack:
        node, inside, live = pop()
        count += 1
        if count > _MAX_NODES:
            scan.cut = True
            break
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                mention(node.id)
                if live:
                    found.append((node, inside, node.id))
            continue
        if isinstance(node, ast.Attribute):
            # The inner part of a dotted name is no use of its own.
            value = node.value
            while isinstance(value, ast.Attribute):
                value = value.value
            if isinstance(node.ctx, ast.Load):
                mention(node.attr)
                if live and isinstance(value, ast.Name):
                    found.append((node, inside, value.id))
            if not isinstance(value, ast.Name):
                push((node.value, inside, live))
            continue
        dead: object = None
        if isinstance(node, ast.Call):
            if live:
                found.append((node, inside, ""))
            if isinstance(node.func, ast.Name) and node.func.id in _TESTS:
                dead = node.args
        elif isinstance(node, ast.Assign):
            found.append((node, inside, ""))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            scan.imported(node)
            continue
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inside = inside or node.name
            dead = None if isinstance(node, ast.ClassDef) else node.returns
        elif isinstance(node, (ast.arg, ast.AnnAssign)):
            dead = node.annotation
        elif isinstance(node, ast.If) and _is_main(node.test):
            scan.main = True
        for name in _FIELDS.get(node.__class__) or _fields(node.__class__):
            child = getattr(node, name, None)
            if child.__class__ is list:
                alive = live and child is not dead
                for item in reversed(child):
                    if item.__class__ not in _LEAVES and isinstance(item, ast.AST):
                        push((item, inside, alive))
            elif child.__class__ not in _LEAVES and isinstance(child, ast.AST):
                push((child, inside, live and child is not dead))
    return found


def _is_main(test: ast.expr) -> bool:
    if not isinstance(test, ast.Compare):
        return False
    return any(isinstance(side, ast.Name) and side.id == "__name__" for side in (test.left, *test.comparators))


def _decode(data: bytes) -> str:
    if coding := declared_coding(data):
        with contextlib.suppress(LookupError, ValueError):
            return data.decode(coding, "replace")
    return data.decode("utf-8-sig", "replace")


def read_script(data: bytes, path: str) -> ScriptFacts:
    """The facts of one Python file; what cannot be parsed is a Problem."""
    if len(data) > MAX_BYTES:
        why = f"{len(data)} bytes, at most {MAX_BYTES} of a script are read"
        return ScriptFacts(path=path, problems=(Problem(path=path, reason=why, partial=True),))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(_decode(data))
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        why = f"it is no Python that this Python ({type(error).__name__}) can parse"
        return ScriptFacts(path=path, problems=(Problem(path=path, reason=why, partial=True),))
    scan = _Scan()
    for node, inside, first in _walk(tree, scan):
        if isinstance(node, ast.Call):
            scan.called(node, inside)
        elif isinstance(node, ast.Assign):
            scan.assigned(node)
        elif first in scan.aliases:
            if name := scan.qualified(node):
                scan.use(name, node.lineno, inside)
        elif isinstance(node, ast.Name):
            for module in scan.stars:
                scan.use(f"{module}.{node.id}", node.lineno, inside)
    problems = (Problem(path=path, reason="only its first names were read", partial=True),) if scan.cut else ()
    names = tuple(
        NameUse(name, count, line, inside, tuple(scan.arguments.get((name, inside), ())))
        for (name, inside), (count, line) in scan.counts.items()
    )
    return ScriptFacts(
        path=path,
        imports=tuple(name for name in scan.imports if name),
        relative=tuple(scan.relative),
        names=names,
        refers=frozenset(scan.refers),
        libraries=tuple(scan.libraries),
        environment=tuple(scan.environment),
        main=scan.main,
        problems=problems,
    )
