"""From the facts of models and scripts to Workload items: which families the program needs, and what says so.

*required*: every model that tells anything has it, or a script that runs uses it; *optional*: only some do, or the
code that uses it may never run; *not seen*: all was read and none has it; *unknown*: none has it, but not all was read.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from zcheck.model.evidence import Workload
from zcheck.model.report import WORKLOADS, Need
from zcheck.model.workload import ModelFacts, NameUse, ScriptFacts, TensorUse

_USES: dict[TensorUse, tuple[str, ...]] = {
    "convolution": ("convolution",),
    "matrix": ("gemm",),
    "attention": ("attention", "gemm"),
    "rnn": ("rnn", "gemm"),
}
_WHAT: dict[TensorUse, str] = {
    "convolution": "convolution kernels",
    "matrix": "matrices",
    "attention": "attention matrices",
    "rnn": "recurrent matrices",
}
_SHOWN = 4
_SESSION = "onnxruntime.InferenceSession"
_PROVIDERS = {
    "CPUExecutionProvider", "CUDAExecutionProvider", "TensorrtExecutionProvider", "DmlExecutionProvider",
}  # fmt: skip
_SCRIPTS_SHOWN = 3


@dataclass(frozen=True)
class CallRow:
    """One row of names/python_calls.csv: a family that using a qualified name needs."""

    family: str
    need: Need


@dataclass(frozen=True)
class WorkloadTables:
    """What cli/ reads off the coverage database.

    ``operators``: model operator (``ai.onnx::Conv``, ``aten::conv2d``) → families; ``calls``: qualified Python name →
    rows; ``architectures``: name of a model's architecture → families; ``arguments``: (qualified name, text argument) →
    families; ``known_packages``: top-level packages whose calls are tabled or that compute nothing on a GPU;
    ``loads_model``: qualified names that load a model from a file.
    """

    operators: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    calls: Mapping[str, tuple[CallRow, ...]] = field(default_factory=dict)
    architectures: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    arguments: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    known_packages: frozenset[str] = frozenset()
    gpu_packages: frozenset[str] = frozenset()
    loads_model: frozenset[str] = frozenset()


# --- models --------------------------------------------------------------------------------------------------------


def model_families(model: ModelFacts, tables: WorkloadTables) -> dict[str, str]:
    """Family → what in the model says so (``53 Conv, 2 ConvTranspose``)."""
    counts: dict[str, list[str]] = {}
    for operator in sorted(model.operators, key=lambda item: -item.count):
        for family in tables.operators.get(operator.name, ()):
            if family in WORKLOADS:
                name = operator.name.removeprefix("ai.onnx::").removeprefix("aten::")
                counts.setdefault(family, []).append(f"{operator.count} {name}")
    found = {family: _list(texts) for family, texts in counts.items()}
    if not model.operators:  # weights tell only where no graph does
        for group in model.groups:
            for family in _USES[group.use]:
                found.setdefault(family, f"{group.count} {_WHAT[group.use]} such as {group.example}")
    for family in tables.architectures.get(model.architecture.lower(), ()):
        found.setdefault(family, f"architecture {model.architecture}")
    return found


def model_items(
    models: Sequence[ModelFacts], tables: WorkloadTables, maybe: frozenset[str] = frozenset()
) -> list[Workload]:
    """The Workload items of all models together; those whose path is in ``maybe`` make nothing required."""
    telling = {model.path: found for model in models if (found := model_families(model, tables))}
    surely = [path for path in telling if path not in maybe]
    items: list[Workload] = []
    for family in WORKLOADS:
        for path, found in telling.items():
            if family not in found:
                continue
            everywhere = all(family in telling[other] for other in surely)
            need: Need = "required" if path not in maybe and everywhere else "optional"
            items.append(Workload(family, need, f"{path}: {found[family]}"))
    if models and not any(item.family == "convolution" for item in items):
        cut = next((model for model in models if not model.complete), None)
        if cut is not None:
            items.append(Workload("convolution", "unknown", f"{cut.path}: read in part only"))
        elif telling or any(model.operators for model in models):
            operators = sum(operator.count for model in models for operator in model.operators)
            what = f"{operators} operators" if operators else f"{sum(model.tensors for model in models)} weights"
            named = _list([model.path for model in models])
            items.append(Workload("convolution", "not seen", f"{named}: {what}, no convolution"))
    return items


# --- scripts -------------------------------------------------------------------------------------------------------


def script_items(scripts: Sequence[ScriptFacts], tables: WorkloadTables, have_models: bool = False) -> list[Workload]:
    """The Workload items of the program's own scripts together; none when no script uses a package with a GPU side.

    A call counts as required when every script that can be started, with what it imports, has one of its family at
    module level or in a definition that is mentioned somewhere; else it is optional.
    """
    programs = _programs(scripts, tables)
    library = not programs and on_gpu(scripts, tables)
    if library:  # a package without a start: what of it a program uses, its own scripts do not tell
        programs = [list(scripts)]
    if not programs:
        return []
    used = list({script.path: script for program in programs for script in program}.values())
    sure = [set() if library else {family for _, family in _surely(program, tables)} for program in programs]
    everywhere = set.intersection(*sure)
    found: dict[tuple[str, Need], list[tuple[int, str]]] = {}
    for script in used:
        for name in script.names:
            live = not name.inside or _mentioned(name.inside, script, used)
            for family, need in _families(name, tables):
                key: tuple[str, Need] = (family, need if live and family in everywhere else "optional")
                times = f" ({name.count} times)" if name.count > 1 else ""
                found.setdefault(key, []).append((name.count, f"{script.path}:{name.line}: {name.name}{times}"))
    items = [
        Workload(family, need, text)
        for family in WORKLOADS
        for need in ("required", "optional")
        for _, text in sorted(found.get((family, need), []), key=lambda item: -item[0])[:_SHOWN]
    ]
    if not any(item.family == "convolution" for item in items):
        items.append(_unseen(used, tables, have_models))
    return items


def on_cpu_only(scripts: Sequence[ScriptFacts]) -> bool:
    """True when each ONNX Runtime session of the scripts is made for the CPU, by name, and none for another device."""
    sessions = [name for script in scripts for name in script.names if name.name == _SESSION]
    given = [set(name.arguments) & _PROVIDERS for name in sessions]
    return bool(given) and all(providers == {"CPUExecutionProvider"} for providers in given)


def used_names(models: Sequence[ModelFacts], scripts: Sequence[ScriptFacts], tables: WorkloadTables) -> dict[str, str]:
    """Operators that all models have and qualified names that every script to start surely uses → where."""
    found: dict[str, str] = {}
    with_graph = [{operator.name: model.path for operator in model.operators} for model in models if model.operators]
    if with_graph:
        shared = set.intersection(*(set(operators) for operators in with_graph))
        found.update((name, path) for name, path in with_graph[0].items() if name in shared)
    places = [
        {
            name.name: f"{script.path}:{name.line}"
            for script in program
            for name in script.names
            if not name.inside or _mentioned(name.inside, script, program)
        }
        for program in _programs(scripts, tables)
    ]
    if places:
        shared = set.intersection(*(set(names) for names in places))
        found.update((name, place) for name, place in places[0].items() if name in shared)
    return found


def _surely(program: Sequence[ScriptFacts], tables: WorkloadTables) -> set[tuple[Need, str]]:
    """("required", family) of all that a script and what it imports surely use."""
    return {
        (need, family)
        for script in program
        for name in script.names
        if not name.inside or _mentioned(name.inside, script, program)
        for family, need in _families(name, tables)
        if need == "required"
    }


def _unseen(used: Sequence[ScriptFacts], tables: WorkloadTables, have_models: bool) -> Workload:
    """Convolution was found in no script: *not seen* when nothing was left unread, else *unknown* and why."""
    paths = {script.path for script in used}
    names = _list(sorted(paths), _SCRIPTS_SHOWN)
    for script in used:
        if any(problem.partial for problem in script.problems):
            return Workload("convolution", "unknown", f"{script.path} could not be read whole")
        for module in script.imports:
            top = module.partition(".")[0]
            own = any(_module_of(path)[-1:] == (top,) or top in _module_of(path)[:-1] for path in paths)
            if not own and top not in tables.known_packages and top not in sys.stdlib_module_names:
                return Workload("convolution", "unknown", f"{script.path} imports {top}, which was not read")
        for name in script.names:
            if not have_models and name.name in tables.loads_model:
                return Workload("convolution", "unknown", f"{script.path}:{name.line}: {name.name} loads a model")
    return Workload("convolution", "not seen", f"{names}: no convolution in the scripts")


def _families(name: NameUse, tables: WorkloadTables) -> list[tuple[str, Need]]:
    """Families of a qualified name: its own rows, else those of its nearest enclosing scope; and of its arguments."""
    parts = name.name.split(".")
    rows: tuple[CallRow, ...] = ()
    for end in range(len(parts), 1, -1):
        rows = tables.calls.get(".".join(parts[:end]), ())
        if rows:
            break
    found: dict[str, Need] = {row.family: row.need for row in rows}
    for text in name.arguments:
        found.update(dict.fromkeys(tables.arguments.get((name.name, text), ()), "required"))
    return [(family, need) for family, need in found.items() if family in WORKLOADS]


def _module_of(path: str) -> tuple[str, ...]:
    parts = path.rsplit(".", 1)[0].split("/")
    return tuple(parts[:-1] if parts[-1] == "__init__" else parts)


def _programs(scripts: Sequence[ScriptFacts], tables: WorkloadTables) -> list[list[ScriptFacts]]:
    """Each script that can be started (one with a ``__main__`` part, or that nobody imports) with all that it imports;
    only those that use a package with a GPU side."""
    by_name: dict[str, list[str]] = {}
    for script in scripts:
        module = _module_of(script.path)
        if module:
            by_name.setdefault(module[-1], []).append(script.path)
        for part in module[:-1]:
            if script.path.endswith("/__init__.py"):
                by_name.setdefault(part, []).append(script.path)
    wants = {
        script.path: {
            path
            for name in (*script.imports, *script.relative, *_from_packages(script))
            for part in name.split(".")
            for path in by_name.get(part, ())
            if path != script.path
        }
        for script in scripts
    }
    imported = {path for found in wants.values() for path in found}
    by_path = {script.path: script for script in scripts}
    programs = []
    for start in (script for script in scripts if script.main or script.path not in imported):
        queue, runs = [start.path], {start.path: start}
        while queue:
            for path in sorted(wants[queue.pop()] - set(runs)):
                runs[path] = by_path[path]
                queue.append(path)
        if on_gpu(runs.values(), tables):
            programs.append(list(runs.values()))
    return programs


def on_gpu(scripts: Iterable[ScriptFacts], tables: WorkloadTables) -> bool:
    """True when one of them imports a package with a GPU side."""
    return any(name.partition(".")[0] in tables.gpu_packages for script in scripts for name in script.imports)


def _from_packages(script: ScriptFacts) -> set[str]:
    """Names imported from packages (``from nets import unet``), which may be modules."""
    return {name.name.rpartition(".")[2] for name in script.names} & set(script.refers)


def _mentioned(definition: str, script: ScriptFacts, scripts: Sequence[ScriptFacts]) -> bool:
    return definition in script.refers or any(definition in other.refers for other in scripts if other is not script)


def _list(texts: Sequence[str], most: int = _SHOWN) -> str:
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more
