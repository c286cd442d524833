"""Put the report of one entry together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from zcheck.model.base import Skipped
from zcheck.model.evidence import Evidence, FileFact, Framework, Use, line
from zcheck.model.facts import PeFacts
from zcheck.model.graph import Graph, Node
from zcheck.model.report import (
    SCHEMA,
    DeviceCodeReport,
    EdgeReport,
    FunctionReport,
    ModuleReport,
    Report,
    StackReport,
)
from zcheck.model.stack import Answers, Provision, State


@dataclass(frozen=True)
class Judged:
    """One stack's answers beside what was decided from them."""

    answers: Answers
    report: StackReport


def build_report(
    *,
    version: str,
    database: str,
    target: str,
    graph: Graph | None,
    facts: Mapping[str, PeFacts],
    evidence: Evidence,
    judged: Sequence[Judged],
    device_code: Sequence[DeviceCodeReport] = (),
    host: dict[str, object] | None = None,
    skipped: Sequence[Skipped] = (),
    assumptions: Sequence[str] = (),
    hashes: Mapping[str, str] | None = None,
) -> Report:
    """The report of one entry; ``facts`` and ``hashes`` are keyed by node id. Without a graph (evidence from a saved
    file) modules come from the evidence alone."""
    return Report(
        schema=SCHEMA,
        zcheck=version,
        database=database,
        target=target,
        entries=(evidence.target,),
        stacks=tuple(each.report for each in judged),
        modules=_modules(graph, facts, evidence, judged, hashes or {}),
        edges=_edges(graph, evidence),
        functions=_functions(evidence, judged),
        device_code=tuple(device_code),
        host=host,
        skipped=tuple(skipped),
        frameworks=tuple(
            " ".join(part for part in (item.name, item.version, f"(CUDA {item.cuda})" if item.cuda else "") if part)
            for item in evidence.items
            if isinstance(item, Framework)
        ),
        assumptions=tuple(assumptions),
        evidence=tuple(line(item) for item in evidence.items),
    )


def _role(node: Node, answers: Answers) -> Provision:
    for answer in answers.libraries:
        if answer.dll.lower() == node.name.lower():
            return answer.provision
    if node.origin in ("system", "api-set", "path"):
        return "system"
    return "bundle" if node.origin == "bundle" else "missing"


def _modules(
    graph: Graph | None,
    facts: Mapping[str, PeFacts],
    evidence: Evidence,
    judged: Sequence[Judged],
    hashes: Mapping[str, str],
) -> tuple[ModuleReport, ...]:
    known = {(item.path or item.name).lower(): item for item in evidence.items if isinstance(item, FileFact)}
    if graph is None:
        nodes = [
            Node(id=item.path or item.name, name=item.name, origin="bundle", load=item.load) for item in known.values()
        ]
    else:
        nodes = list(graph.nodes)
    modules = []
    for node in nodes:
        fact = facts.get(node.id)
        said = known.get(node.id.lower())
        version = fact.version if fact else None
        modules.append(
            ModuleReport(
                name=node.name,
                path=node.id if node.origin == "bundle" else None,
                machine=fact.machine if fact else (said.machine if said else ""),
                size=fact.size if fact else 0,
                version=(version.file_version or version.fixed_version) if version else (said.version if said else ""),
                company=version.company if version else (said.company if said else ""),
                role={each.report.id: _role(node, each.answers) for each in judged},
                kind=said.role if said else ("system" if node.origin in ("system", "api-set") else "module"),
                load=node.load,
                sha256=hashes.get(node.id),
            )
        )
    return tuple(modules)


def _edges(graph: Graph | None, evidence: Evidence) -> tuple[EdgeReport, ...]:
    if graph is not None:
        return tuple(
            EdgeReport(
                source=edge.source,
                target=edge.target,
                kind=edge.kind,
                functions=edge.functions,
                resolved_by=edge.resolved_by,
                confidence=edge.confidence,
                place=edge.place,
            )
            for edge in graph.edges
        )
    groups: dict[tuple[str, str, str], list[Use]] = {}
    for use in evidence.uses():
        if use.kind in ("import", "delay", "dynamic"):
            groups.setdefault((use.module, use.dll, use.kind), []).append(use)
    return tuple(
        EdgeReport(
            source=module,
            target=dll,
            kind=kind,  # type: ignore[arg-type]
            functions=tuple(use.function for use in uses if use.function),
            resolved_by="",
            confidence=uses[0].confidence,
            place=uses[0].place,
        )
        for (module, dll, kind), uses in groups.items()
    )


def _functions(evidence: Evidence, judged: Sequence[Judged]) -> tuple[FunctionReport, ...]:
    by_stack = [
        (
            each.report.id,
            {answer.dll.lower(): answer.library for answer in each.answers.libraries},
            {(answer.library, answer.name): answer for answer in each.answers.functions},
        )
        for each in judged
    ]
    groups: dict[tuple[str, str, str], list[Use]] = {}
    for use in evidence.uses():
        if not use.function or not by_stack:
            continue
        library = by_stack[0][1].get(use.dll.lower())
        if library is not None and library != "torch":
            groups.setdefault((library, use.function, use.kind), []).append(use)
    result = []
    for (library, name, kind), uses in sorted(groups.items()):
        state: dict[str, State] = {}
        limit: dict[str, str] = {}
        families: tuple[str, ...] = ()
        for stack_id, libraries, functions in by_stack:
            answer = functions.get((libraries.get(uses[0].dll.lower(), library), name))
            state[stack_id] = answer.state if answer else "unknown"
            if answer and answer.limit:
                limit[stack_id] = answer.limit
            families = families or (answer.families if answer else ())
        result.append(
            FunctionReport(
                library=library,
                name=name,
                kind=kind,
                users=tuple(dict.fromkeys(use.module for use in uses)),
                state=state,
                limit=limit,
                families=families,
            )
        )
    return tuple(result)
