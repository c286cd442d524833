"""Makes the table of ZLUDA's exported functions again from an upstream checkout.

From v4 on each library's ``lib.rs`` names its functions in one macro call: a declaration file lists all of them, the
call lists those that a macro other than the refusing one takes. What is read here is what each release *declares*; the
closer reading of bodies (``readings.csv``) is people's work and stays as it is. A function whose body only returns
success is a no-op. v3, nvapi and the fork are built otherwise: their rows are carried over.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple

Read = Callable[[str], "str | None"]
"""text of a file of the checkout at one revision, None when it is not there"""


class _Library(NamedTuple):
    library: str
    prefix: str
    macro: str
    declarations: tuple[str, ...]
    callers: tuple[str, ...]
    """files with the macro call, the first that has one counts"""
    ships: str
    """file without which the release does not ship the library"""
    bodies: tuple[str, ...]
    """files with bodies, or folders (ending in a slash)"""


_BASE, _MACROS = "cuda_base/src", "cuda_macros/src"
_DNN = ("zluda_dnn/src/lib.rs",)
LIBRARIES: tuple[_Library, ...] = (
    _Library(
        "nvcuda",
        "cu",
        "cuda_function_declarations",
        (f"{_MACROS}/cuda.rs", f"{_BASE}/cuda.rs"),
        ("zluda/src/lib.rs",),
        "zluda/src/lib.rs",
        ("zluda/src/impl/",),
    ),
    _Library(
        "nvcuda32",
        "cu",
        "cuda_function_declarations",
        (f"{_MACROS}/cuda.rs",),
        ("zluda32/src/lib.rs",),
        "zluda32/src/lib.rs",
        ("zluda32/src/",),
    ),
    _Library(
        "nvml",
        "nvml",
        "nvml_function_declarations",
        (f"{_MACROS}/nvml.rs", f"{_BASE}/nvml.rs"),
        ("zluda_ml/src/lib.rs",),
        "zluda_ml/src/lib.rs",
        ("zluda_ml/src/impl_win.rs", "zluda_ml/src/impl_common.rs", "zluda_ml/src/impl.rs"),
    ),
    *(
        _Library(
            library,
            prefix,
            f"{name}_function_declarations",
            (f"{_MACROS}/{name}.rs",),
            (f"{crate}/src/lib.rs",),
            f"{crate}/src/lib.rs",
            (f"{crate}/src/impl.rs",),
        )
        for library, prefix, name, crate in (
            ("cublas", "cublas", "cublas", "zluda_blas"),
            ("cublasLt", "cublasLt", "cublaslt", "zluda_blaslt"),
            ("cufft", "cufft", "cufft", "zluda_fft"),
            ("cusparse", "cusparse", "cusparse", "zluda_sparse"),
        )
    ),
    _Library(
        "cudnn8",
        "cudnn",
        "cudnn8_function_declarations",
        (f"{_MACROS}/cudnn8.rs",),
        _DNN,
        "zluda_dnn8/src/lib.rs",
        ("zluda_dnn/src/impl.rs",),
    ),
    _Library(
        "cudnn9",
        "cudnn",
        "cudnn9_function_declarations",
        (f"{_MACROS}/cudnn9.rs",),
        _DNN,
        "zluda_dnn/src/lib.rs",
        ("zluda_dnn/src/impl.rs",),
    ),
)
_WORDS = {"ctx": "context", "func": "function", "mem": "memory", "memcpy": "memory_copy", "memset": "memory_set"}
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_SUCCESS = re.compile(r"(?:return )?(?:Ok\(\(\)\)|(?:\w+::)*(?:SUCCESS|Success|success))(?:;)?")
_REFUSAL = re.compile(
    r"(?:return )?(?:(?:\w+::)*unimplemented\(\)\??|(?:todo|unimplemented|panic)!\([^()]*\)"
    r"|(?:\w+::)*(?:ERROR_)?NOT_SUPPORTED|Err\((?:\w+::)*(?:ERROR_)?NOT_SUPPORTED\));?"
)
_ARM = re.compile(r"(\(\s*\w+(?:\s*\|\s*\w+)*\s*\)|\w+)\s*<=\s*\[([^\]]*)\]")


def _block(text: str, start: int) -> str:
    """What stands between the bracket at ``start`` and its partner (to the end where there is none)."""
    partner = {"(": ")", "{": "}", "[": "]"}[text[start]]
    depth = 0
    for index in range(start, len(text)):
        if text[index] == text[start]:
            depth += 1
        elif text[index] == partner:
            depth -= 1
            if depth == 0:
                return text[start + 1 : index]
    return text[start + 1 :]


def _macro_call(text: str, names: Iterable[str]) -> str | None:
    """Arguments of the first call of one of the macros that is no template of another macro."""
    for name in names:
        for found in re.finditer(rf"\b{name}!\s*([({{])", text):
            arguments = _block(text, found.start(1))
            if "$" not in arguments:
                return arguments
    return None


def _refusing(text: str, macro: str) -> bool:
    """Whether the functions that this macro makes only refuse."""
    found = re.search(rf"macro_rules!\s*{macro}\s*{{", text)
    body = _block(text, found.end() - 1) if found else macro
    return "unimplemented" in body.replace(f"macro_rules! {macro}", "") or "NOT_SUPPORTED" in body


def _snake(name: str, prefix: str, spelled_out: bool = True) -> str:
    words = re.findall(r"\dD|[A-Z][^A-Z\d]*(?:\d(?!D)[^A-Z\d]*)*|_\w+|[a-z]\w*", name[len(prefix) :])
    expansion = _WORDS if spelled_out else {}
    return "_".join(expansion.get(word.lower(), word.lower()) for word in words).replace("__", "_")


def _bodies(texts: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """Function name (``module_name`` where the module is given) → states that its bodies amount to."""
    found: dict[str, set[str]] = defaultdict(set)
    for module, text in texts:
        plain = _COMMENT.sub("", text)
        for match in re.finditer(r"\bfn\s+(?:r#)?(\w+)\s*(?:<[^>{]*>)?\(", plain):
            opening = plain.find("{", match.end())
            if opening < 0 or re.search(r";\s*$", plain[match.end() : opening].split("{")[0]):
                continue
            body = _block(plain, opening).strip()
            state = (
                "no-op" if _SUCCESS.fullmatch(body) else "returns-error" if _REFUSAL.fullmatch(body) else "implemented"
            )
            found[f"{module}_{match[1]}" if module else match[1]].add(state)
    return found


def _body_state(name: str, prefix: str, bodies: dict[str, set[str]]) -> str:
    """What the body of an exported function amounts to; ``implemented`` where none is found or they differ."""
    snake = _snake(name, prefix)
    for candidate in (snake, f"driver_{snake}", f"{prefix.lower()}_{_snake(name, prefix, spelled_out=False)}"):
        if candidate in bodies:
            return next(iter(bodies[candidate])) if len(bodies[candidate]) == 1 else "implemented"
    return "implemented"


def read_release(read: Read, files: Callable[[str], list[str]]) -> dict[str, dict[str, str]]:
    """library → function → declared state (implemented, no-op, returns-error) of one revision.

    ``files`` lists the paths under a folder. Libraries that this revision does not ship, or builds in a way not known
    here, are left out.
    """
    found: dict[str, dict[str, str]] = {}
    for item in LIBRARIES:
        caller = next((text for text in map(read, item.callers) if text is not None), None)
        if read(item.ships) is None or caller is None:
            continue
        arguments = _macro_call(caller, (item.macro, "dual_function_declarations"))
        declarations = next((text for text in map(read, item.declarations) if text is not None), None)
        if arguments is None or declarations is None:
            continue
        default = re.match(r"\s*(?:\w+::)*(\w+)", arguments)
        if default is None:
            continue
        names = re.findall(r"\bfn\s+(\w+)\s*\(", declarations)
        refused = "returns-error" if _refusing(caller, default[1]) else "implemented"
        states = dict.fromkeys(names, refused)
        for macros, listed in _ARM.findall(arguments):
            macro = re.findall(r"\w+", macros)[-1 if item.library == "cudnn9" else 0]
            state = "returns-error" if _refusing(caller, macro) else "implemented"
            for name in re.findall(r"\w+", _COMMENT.sub("", listed)):
                if name in states:
                    states[name] = state
        paths = [path for part in item.bodies for path in (files(part) if part.endswith("/") else [part])]
        bodies = _bodies(
            (path.rsplit("/", 1)[-1].removesuffix(".rs") if "/impl/" in path else "", read(path) or "")
            for path in paths
            if path.endswith(".rs")
        )
        for name, state in states.items():
            if state == "implemented":
                states[name] = _body_state(name, item.prefix, bodies)
        found[item.library] = states
    return found


def intervals(tags: list[str], states: dict[str, dict[str, dict[str, str]]]) -> list[tuple[str, str, str, str, str]]:
    """Rows (library, name, state, since, until) from tag → library → function → state, ``tags`` in their order."""
    runs: dict[tuple[str, str], list[list[str]]] = defaultdict(list)
    for index, tag in enumerate(tags):
        for library, functions in states[tag].items():
            for name, state in functions.items():
                row = runs[library, name]
                if row and row[-1][0] == state and index and row[-1][2] == tags[index - 1]:
                    row[-1][2] = tag
                else:
                    row.append([state, tag, tag])
    newest = tags[-1]
    return [
        (library, name, state, since, "" if until == newest else until)
        for (library, name), row in sorted(runs.items())
        for state, since, until in row
    ]
