"""What of the graph is evidence: uses of CUDA libraries and framework operators, missing DLLs, own AMD paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from zcheck.collect.demangle import qualified_name
from zcheck.model.evidence import Evidence, FileFact, Framework, Item, Limitation, OwnPath, Role, Use, UseKind
from zcheck.model.facts import PeFacts
from zcheck.model.graph import Edge, Graph, Node
from zcheck.model.names import NameLookups

_KINDS: dict[str, UseKind] = {"import": "import", "delay": "delay", "dynamic": "dynamic", "forwarder": "import"}


def collect(graph: Graph, facts: Mapping[str, PeFacts], names: NameLookups, extra: Iterable[Item] = ()) -> Evidence:
    """The evidence on the graph's entry. ``facts`` is keyed by node id; ``extra`` are items of other readers
    (strings, device code, models, host), which follow the graph's own in the order given, without repeats."""
    nodes = {node.id: node for node in graph.nodes}
    entry = nodes[graph.entry]
    roles = {node.id: role_of(node, entry, facts.get(node.id), names) for node in graph.nodes}
    shown = _shown_names(graph)
    items: list[Item] = []
    for node in graph.nodes:
        fact = facts.get(node.id)
        if node.origin == "bundle" and fact is not None and node.load != "unreached":
            items.append(_file(node, fact, roles[node.id], shown[node.id]))
            items.extend(_limits(fact, shown[node.id]))
    plugin = not entry.name.lower().endswith(".exe")
    for edge in graph.edges:
        source = nodes[edge.source]
        if source.load != "unreached":
            items.extend(_uses(edge, source, nodes[edge.target], roles, shown, names, plugin))
    items.extend(_runtime_needs_driver(items, names))
    items.extend(_own_paths(graph, nodes, shown, names))
    extra = tuple(extra)
    told = {item.name for item in extra if isinstance(item, Framework)}  # read off more than a DLL's name
    items.extend(item for item in _frameworks(graph, facts, shown, names) if item.name not in told)
    merged = tuple(dict.fromkeys([*items, *extra]))
    evidence = Evidence(target=shown[entry.id], items=merged)
    hidden = _nothing_visible(evidence, names)
    return evidence if hidden is None else Evidence(target=evidence.target, items=(*merged, hidden))


def role_of(node: Node, entry: Node, fact: PeFacts | None, names: NameLookups) -> Role:
    """Whose code a module is: the entry, NVIDIA's (vendor), a framework's, or the program's own."""
    if node.id == entry.id:
        return "entry"
    if names.library_of(node.name) is not None and names.framework_of(node.name) is None:
        return "vendor"
    if names.framework_of(node.name) is not None:
        return "framework"
    if fact is not None and fact.version is not None and "nvidia" in fact.version.company.lower():
        return "vendor"
    return "module"


def _shown_names(graph: Graph) -> dict[str, str]:
    """File names where they tell modules apart, else paths."""
    count: dict[str, int] = {}
    for node in graph.nodes:
        count[node.name.lower()] = count.get(node.name.lower(), 0) + 1
    return {node.id: node.name if count[node.name.lower()] == 1 else node.id for node in graph.nodes}


def _file(node: Node, fact: PeFacts, role: Role, name: str) -> FileFact:
    version = fact.version
    return FileFact(
        name=name,
        role=role,
        machine="x64" if fact.any_cpu else fact.machine,
        load=node.load,
        company=version.company if version else "",
        version=(version.file_version or version.fixed_version) if version else "",
        description=version.description if version and role == "vendor" else "",
        path=node.id if node.id != name else "",
        dotnet=fact.is_dotnet,
    )


def _limits(fact: PeFacts, name: str) -> Iterable[Item]:
    if fact.packer is not None:
        yield Limitation("packed", name, fact.packer)
    for problem in fact.problems:
        if problem.partial:
            yield Limitation("partly-read", name, problem.reason)
            break


def _uses(
    edge: Edge,
    source: Node,
    target: Node,
    roles: Mapping[str, Role],
    shown: Mapping[str, str],
    names: NameLookups,
    plugin: bool,
) -> Iterable[Item]:
    if edge.kind == "dynamic":
        return  # what is loaded by name is evidence by the name itself (collect/hidden.py), found or not
    library = names.library_of(edge.dll)
    operators = names.operators_of(edge.dll)
    role = roles[source.id]
    if role == "entry" and names.framework_of(source.name) is not None:
        role = "framework"  # judged by itself or for a script: it imports everything all the same
    if library is None and operators is None:
        if target.origin not in ("missing", "mismatch"):
            return
        if (plugin and names.host_provided(edge.dll)) or names.own_path_of(edge.dll) is not None:
            return  # the host program or AMD's driver and SDK bring these along
    if operators is not None and library is None and role == "framework":
        return  # how a framework's own DLLs use one another says nothing about the program
    found = {"missing": "missing", "mismatch": "mismatch", "bundle": "bundle"}.get(target.origin, "system")
    common = {
        "role": role,
        "module": shown[source.id],
        "kind": _KINDS[edge.kind],
        "load": source.load,
        "found": found,
        "confidence": edge.confidence,
        "place": "" if edge.kind in ("import", "delay") else edge.place,
    }
    functions = edge.functions if (library or operators) else ()
    if not functions:
        yield Use(dll=edge.dll, **common)  # type: ignore[arg-type]
    for function in functions:
        name = qualified_name(function) if operators is not None else function
        yield Use(dll=edge.dll, function=name, **common)  # type: ignore[arg-type]


def _runtime_needs_driver(items: Iterable[Item], names: NameLookups) -> list[Item]:
    """The CUDA runtime loads the driver DLL by name at its first call: no import table says so."""
    runtimes = dict.fromkeys(
        item.dll
        for item in items
        if isinstance(item, Use) and names.library_of(item.dll) == "cudart" and item.role != "vendor"
    )
    return [
        Use(
            "vendor", dll, "dynamic", "nvcuda.dll", load="later", init=True, because="the CUDA runtime loads the driver"
        )
        for dll in runtimes
    ]


def _own_paths(graph: Graph, nodes: Mapping[str, Node], shown: Mapping[str, str], names: NameLookups) -> Iterable[Item]:
    for edge in graph.edges:
        api = names.own_path_of(edge.dll)
        if api is not None and nodes[edge.source].load != "unreached":
            verb = {"import": "imports", "delay": "delay-imports"}.get(edge.kind, "names")
            yield OwnPath(api, shown[edge.source], f"{verb} {edge.dll}")
    for node in graph.nodes:
        api = names.own_path_of(node.name)
        if api is not None and node.origin == "bundle":
            yield OwnPath(api, shown[node.id], "in the bundle")


def own_path_variants(facts: Mapping[str, PeFacts], names: NameLookups) -> list[OwnPath]:
    """Own AMD paths of bundle files that no edge leads to: alternatives chosen at run time. ``facts`` by path."""
    found = []
    for path, fact in facts.items():
        apis = {api: item.dll for item in fact.imports if (api := names.own_path_of(item.dll)) is not None}
        found += [OwnPath(api, path, f"a variant in the bundle that imports {dll}") for api, dll in apis.items()]
    return found


def _frameworks(
    graph: Graph, facts: Mapping[str, PeFacts], shown: Mapping[str, str], names: NameLookups
) -> Iterable[Framework]:
    found: dict[str, Framework] = {}
    for node in graph.nodes:
        framework = names.framework_of(node.name)
        if framework is None or node.origin != "bundle" or node.load == "unreached":
            continue
        fact = facts.get(node.id)
        version = fact.version.file_version if fact and fact.version else ""
        if framework not in found or (version and not found[framework].version):
            found[framework] = Framework(name=framework, version=version, module=shown[node.id])
    return found.values()


def _nothing_visible(evidence: Evidence, names: NameLookups) -> Limitation | None:
    """A CUDA library is named but not one function of it, so nothing can be looked up."""
    uses = [use for use in evidence.uses() if names.library_of(use.dll) is not None]
    if not uses or any(use.function or use.kind in ("import", "delay") for use in uses):
        return None
    named = sorted({use.dll for use in uses})
    return Limitation("nothing-visible", evidence.target, f"only the names {', '.join(named[:4])} are seen")
