"""The loader's rules, one by one, on facts made by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import pytest

from zcheck.errors import DataError
from zcheck.model.bundle import Bundle, BundleFile
from zcheck.model.facts import Export, ImportedDll, Machine, PeFacts, Symbol
from zcheck.model.graph import Edge, Graph, Node
from zcheck.resolve import (
    Dynamic,
    Resolver,
    WindowsDlls,
    chain,
    closure,
    cycles,
    networkx_graph,
    python_imports,
    read_windows_dlls,
    resolve,
    top_modules,
)

ROWS = read_windows_dlls(Path(__file__).parents[2] / "coverage_db" / "windows_dlls.csv")


def pe(
    imports: Mapping[str, Iterable[str | int]] | Iterable[str] = (),
    delay: Mapping[str, Iterable[str]] | Iterable[str] = (),
    exports: Iterable[str | tuple[str, str]] = (),
    machine: Machine = "x64",
    **more: object,
) -> PeFacts:
    def table(tables: object, late: bool) -> tuple[ImportedDll, ...]:
        items = tables.items() if isinstance(tables, Mapping) else [(dll, ()) for dll in tables]  # type: ignore[attr-defined]
        return tuple(
            ImportedDll(
                dll=dll,
                symbols=tuple(Symbol(ordinal=n) if isinstance(n, int) else Symbol(name=n) for n in names),
                delay=late,
            )
            for dll, names in items
        )

    rows = [(item, None) if isinstance(item, str) else item for item in exports]
    return PeFacts(
        name="x",
        size=1,
        machine=machine,
        imports=table(imports, False) + table(delay, True),
        exports=tuple(Export(name=name, ordinal=n + 1, forwarder=to) for n, (name, to) in enumerate(rows)),
        **more,  # type: ignore[arg-type]
    )


def graph_of(facts: Mapping[str, PeFacts], entry: str = "app.exe", dirs: Iterable[str] = (), **more: object) -> Graph:
    files = tuple(BundleFile(path=path, kind="pe") for path in sorted(facts))
    bundle = Bundle(root="r", entries=(entry,), files=files, dll_directories=tuple(dirs))
    graph = resolve(bundle, entry, facts, ROWS, **more)  # type: ignore[arg-type]
    check(graph)
    return graph


def check(graph: Graph) -> None:
    """What holds for every graph."""
    ids = [node.id for node in graph.nodes]
    assert ids == sorted(set(ids))
    assert {edge.source for edge in graph.edges} | {edge.target for edge in graph.edges} <= set(ids)
    start = {node.id for node in graph.nodes if node.load == "start"}
    assert start <= closure(graph, graph.entry)
    if not any(edge.kind == "forwarder" for edge in graph.edges):
        # A forwarder counts for the closure, even where only a module that is loaded later uses it.
        assert start == closure(graph, graph.entry)
    assert msgspec.json.decode(msgspec.json.encode(graph), type=Graph) == graph


def edge(graph: Graph, dll: str, kind: str | None = None) -> Edge:
    (found,) = [e for e in graph.edges if e.dll == dll and (kind is None or e.kind == kind)]
    return found


def rule(graph: Graph, dll: str) -> tuple[str, str]:
    found = edge(graph, dll)
    return found.resolved_by, found.target


def node(graph: Graph, node_id: str) -> Node:
    return graph.node(node_id)


def test_search_order_of_a_program() -> None:
    facts = {
        "app.exe": pe(
            ["API-MS-Win-Core-Synch-l1-2-0.dll", "Kernel32.DLL", "VERSION.dll", "Own.DLL", "d3d12.dll", "no.dll"]
        ),
        "api-ms-win-core-synch-l1-2-0.dll": pe(),  # shipped for Windows 7; the schema wins
        "kernel32.dll": pe(),  # a known DLL is never taken from the program's folder
        "version.dll": pe(),  # any other is
        "own.dll": pe(),
    }
    graph = graph_of(facts)
    assert rule(graph, "API-MS-Win-Core-Synch-l1-2-0.dll") == ("api-set", "api-ms-win-core-synch-l1-2-0.dll")
    assert node(graph, "kernel32.dll").origin == "system"
    assert rule(graph, "Kernel32.DLL") == ("known-dll", "kernel32.dll")
    assert rule(graph, "VERSION.dll") == ("application-directory", "version.dll")
    assert node(graph, "version.dll").origin == "bundle"
    assert rule(graph, "Own.DLL") == ("application-directory", "own.dll")
    assert rule(graph, "d3d12.dll") == ("system32", "d3d12.dll")
    assert rule(graph, "no.dll") == ("not-found", "no.dll")
    assert node(graph, "no.dll").origin == "missing"


def test_current_directory_and_path_come_last(tmp_path: Path) -> None:
    for name in ("onpath.dll", "both.dll", "d3d12.dll"):
        (tmp_path / name).write_bytes(b"")
    facts = {
        "app.exe": pe(["ONPATH.dll", "both.dll", "here.dll", "d3d12.dll"]),
        "work/both.dll": pe(),
        "work/here.dll": pe(),
    }
    graph = graph_of(facts, path_dirs=[tmp_path, tmp_path / "no such folder"], current_directory="work")
    assert rule(graph, "ONPATH.dll") == ("path", "onpath.dll")
    assert node(graph, "onpath.dll").path == str(tmp_path / "onpath.dll")
    assert rule(graph, "both.dll") == ("current-directory", "work/both.dll")
    assert rule(graph, "here.dll") == ("current-directory", "work/here.dll")
    assert rule(graph, "d3d12.dll")[0] == "system32"


def test_files_of_path_are_asked_for_and_followed(tmp_path: Path) -> None:
    (tmp_path / "tool.dll").write_bytes(b"")
    bundle = Bundle(root="r", entries=("app.exe",), files=(BundleFile(path="app.exe", kind="pe"),))
    resolver = Resolver(bundle, "app.exe", ROWS, path_dirs=[tmp_path])
    assert resolver.needed() == ("app.exe",)
    resolver.add("app.exe", pe(["tool.dll"]))
    (wanted,) = resolver.needed()
    assert wanted == str(tmp_path / "tool.dll")
    resolver.add(wanted, pe(["nvcuda.dll"]))
    graph = resolver.graph()
    check(graph)
    assert edge(graph, "nvcuda.dll").source == "tool.dll" and node(graph, "nvcuda.dll").load == "start"


def test_a_static_import_is_not_found_in_a_folder_below_but_a_later_load_can_be() -> None:
    facts = {"app.exe": pe(["a.dll"], ["b.dll"]), "bin/a.dll": pe(), "bin/b.dll": pe()}
    graph = graph_of(facts)
    static, late = edge(graph, "a.dll"), edge(graph, "b.dll")
    assert (static.resolved_by, static.confidence) == ("not-found", "medium")
    assert (late.resolved_by, late.target, late.confidence) == ("dll-directory", "bin/b.dll", "medium")
    assert node(graph, "a.dll").load == "start" and node(graph, "bin/b.dll").load == "later"


def test_dll_directories_serve_a_library_at_once_and_a_program_later() -> None:
    facts = {"p/m.pyd": pe(["dep.dll"]), "nvidia/x/bin/dep.dll": pe()}
    graph = graph_of(facts, "p/m.pyd", ["nvidia/x/bin"])
    assert rule(graph, "dep.dll") == ("dll-directory", "nvidia/x/bin/dep.dll")
    assert edge(graph, "dep.dll").confidence == "high"


def test_a_library_finds_its_host() -> None:
    graph = graph_of({"p/m.pyd": pe(["python311.dll", "Python3.dll"])}, "p/m.pyd")
    assert node(graph, "python311.dll").note == "the host program"
    graph = graph_of({"m.node": pe((), ["node.exe"])}, "m.node")
    assert node(graph, "node.exe").origin == "system" and node(graph, "node.exe").load == "later"
    graph = graph_of({"app.exe": pe(["python311.dll"])})
    assert node(graph, "python311.dll").origin == "missing"


def test_redistributables_are_told_apart_and_a_copy_beside_wins() -> None:
    graph = graph_of({"app.exe": pe(["VCRUNTIME140.dll", "MSVCP140.dll"]), "msvcp140.dll": pe()})
    assert "redistributable" in node(graph, "vcruntime140.dll").note
    assert node(graph, "msvcp140.dll").origin == "bundle"
    graph = graph_of({"app.exe": pe(["msvcp140-a4c2229bdc2a2a63.dll"])})
    assert node(graph, "msvcp140-a4c2229bdc2a2a63.dll").origin == "missing"


def test_windows_has_some_dlls_for_one_machine_only() -> None:
    x86, x64 = (graph_of({"app.exe": pe(["msvcrt20.dll"], machine=m)}) for m in ("x86", "x64"))
    assert node(x86, "msvcrt20.dll").origin == "system"
    assert node(x64, "msvcrt20.dll").origin == "missing"


def test_names_of_a_graphics_driver_can_be_given() -> None:
    facts = {"app.exe": pe(["amdhip64_6.dll"])}
    assert node(graph_of(facts), "amdhip64_6.dll").origin == "missing"
    assert node(graph_of(facts, system_names=["AMDHIP64_6.dll"]), "amdhip64_6.dll").origin == "system"


def test_a_dll_of_another_machine() -> None:
    facts = {"app.exe": pe(["a.dll"]), "a.dll": pe(["b.dll"], machine="x86"), "b.dll": pe()}
    graph = graph_of(facts)
    assert edge(graph, "a.dll").resolved_by == "machine-mismatch"
    assert node(graph, "a.dll").origin == "mismatch"
    assert not [e for e in graph.edges if e.source == "a.dll"]  # the loader never gets to its imports
    for same in ({"machine": "x86", "is_dotnet": True}, {"machine": "x64"}):
        graph = graph_of({"app.exe": pe(["a.dll"]), "a.dll": pe(**same)})  # type: ignore[arg-type]
        assert node(graph, "a.dll").origin == "bundle"
    graph = graph_of({"app.exe": pe(["a.dll"], machine="x86", is_dotnet=True, any_cpu=True), "a.dll": pe()})
    assert node(graph, "a.dll").origin == "bundle"


def test_the_right_variant_of_several_is_chosen_when_a_folder_is_added_at_run_time() -> None:
    facts = {"app.exe": pe((), ["native.dll"]), "x64/native.dll": pe(), "x86/native.dll": pe(machine="x86")}
    assert edge(graph_of(facts), "native.dll").target == "x64/native.dll"
    facts["app.exe"] = pe((), ["native.dll"], machine="x86")
    assert edge(graph_of(facts), "native.dll").target == "x86/native.dll"


def test_the_folder_of_another_program_is_not_this_ones() -> None:
    paths = ["a.exe", "one/b.exe", "one/cudart64_12.dll", "one/late.dll", "own/cublas64_12.dll"]
    bundle = Bundle(
        root="r", entries=("a.exe", "one/b.exe"), files=tuple(BundleFile(path=path, kind="pe") for path in paths)
    )
    facts = {"a.exe": pe((), ["late.dll"]), "one/b.exe": pe((), ["cublas64_12.dll"])}
    graph = resolve(bundle, "a.exe", facts, ROWS)
    assert node(graph, "late.dll").origin == "missing"
    assert {n.id for n in graph.nodes if n.load == "unreached"} == {"own/cublas64_12.dll"}
    graph = resolve(bundle, "one/b.exe", facts, ROWS)  # what lies around a program in a folder below may be its own
    assert edge(graph, "cublas64_12.dll").target == "own/cublas64_12.dll"


def test_side_by_side_assemblies() -> None:
    app = pe(["msvcr90.dll", "priv.dll"], manifest_assemblies=("Microsoft.VC90.CRT", "My.Parts"))
    graph = graph_of({"app.exe": app, "My.Parts/priv.dll": pe()})
    assert rule(graph, "msvcr90.dll") == ("side-by-side", "msvcr90.dll")
    assert node(graph, "msvcr90.dll").origin == "system"
    assert rule(graph, "priv.dll") == ("side-by-side", "My.Parts/priv.dll")
    assert node(graph_of({"app.exe": pe(["msvcr90.dll"])}), "msvcr90.dll").origin == "missing"


def test_what_the_process_holds_already_is_not_searched_again() -> None:
    facts = {
        "app.exe": pe(["cudart64_12.dll"], ["plugins/p.dll"]),
        "cudart64_12.dll": pe(),
        "plugins/p.dll": pe(["cudart64_12.dll", "extra.dll"]),
        "plugins/cudart64_12.dll": pe(),
        "plugins/extra.dll": pe(),
        "extra.dll": pe(),
    }
    graph = graph_of(facts)
    targets = {(e.source, e.dll): (e.target, e.resolved_by) for e in graph.edges}
    assert targets["app.exe", "plugins/p.dll"] == ("plugins/p.dll", "application-directory")
    assert targets["plugins/p.dll", "cudart64_12.dll"] == ("cudart64_12.dll", "application-directory")
    assert targets["plugins/p.dll", "extra.dll"] == ("plugins/extra.dll", "module-directory")
    assert node(graph, "plugins/cudart64_12.dll").load == "unreached"


def test_forwarders_follow_the_functions_in_use() -> None:
    facts = {
        "app.exe": pe({"front.dll": ["one", "two"]}),
        "front.dll": pe(exports=["one", ("two", "back.second"), ("three", "other.#1")]),
        "back.dll": pe(exports=[("second", "deep.last"), "unused"]),
        "deep.dll": pe(exports=["last"]),
        "other.dll": pe(["late.dll"], exports=["x"]),
        "late.dll": pe(),
    }
    graph = graph_of(facts)
    used = edge(graph, "back")
    assert (used.source, used.target, used.functions, used.kind) == ("front.dll", "back.dll", ("second",), "forwarder")
    assert edge(graph, "deep").source == "back.dll" and node(graph, "deep.dll").load == "start"
    unused = edge(graph, "other")
    assert unused.confidence == "low" and unused.functions == ("#1",)
    assert node(graph, "other.dll").load == node(graph, "late.dll").load == "later"


def test_a_forwarder_to_a_function_that_is_not_there() -> None:
    facts = {"app.exe": pe({"a.dll": ["f"]}), "a.dll": pe(exports=[("f", "b.gone")]), "b.dll": pe(exports=["g"])}
    assert edge(graph_of(facts), "b").unresolved == ("gone",)


def test_forwarders_in_a_ring_end() -> None:
    facts = {"app.exe": pe({"a.dll": ["f"]}), "a.dll": pe(exports=[("f", "b.f")]), "b.dll": pe(exports=[("f", "a.f")])}
    assert {e.dll for e in graph_of(facts).edges} == {"a.dll", "b", "a"}


def test_functions_that_the_target_lacks() -> None:
    facts = {"app.exe": pe({"a.dll": ["there", "Gone", 1, 9]}), "a.dll": pe(exports=["there", "gone"])}
    assert edge(graph_of(facts), "a.dll").unresolved == ("Gone", "#9")
    assert edge(graph_of(facts), "a.dll").functions == ("there", "Gone", "#1", "#9")


def test_dynamic_edges_bring_in_files_and_count_as_later() -> None:
    facts = {"app.exe": pe(["own.dll"]), "own.dll": pe(), "lib/cublas64_12.dll": pe(["cublasLt64_12.dll"])}
    facts["lib/cublaslt64_12.dll"] = pe()
    call = Dynamic("own.dll", "cublas64_12", ("cublasCreate_v2",), "medium", ".rdata+0x20")
    assert node(graph_of(facts), "lib/cublas64_12.dll").load == "unreached"
    graph = graph_of(facts, extra_edges=[call, tuple(call)])
    found = edge(graph, "cublas64_12")
    assert (found.kind, found.place, found.functions) == ("dynamic", ".rdata+0x20", ("cublasCreate_v2",))
    assert node(graph, "lib/cublas64_12.dll").load == "later"
    assert rule(graph, "cublasLt64_12.dll") == ("module-directory", "lib/cublaslt64_12.dll")


@pytest.mark.parametrize("entry", ["python.exe", "Scripts/python.exe"])
def test_an_interpreter_may_load_the_modules_of_its_environment(entry: str) -> None:
    module = "Lib/site-packages/torch/_C.cp311-win_amd64.pyd"
    facts = {entry: pe(), module: pe(["c10.dll"]), "Lib/site-packages/torch/lib/c10.dll": pe(["nvcuda.dll"])}
    files = tuple(BundleFile(path=path, kind="pe") for path in facts)
    calls = python_imports(Bundle(root="r", entries=(entry,), files=files), entry)
    graph = graph_of(facts, entry, ["Lib/site-packages/torch/lib"], extra_edges=calls)
    (load,) = [e for e in graph.edges if e.source == entry]
    assert (load.kind, load.target, load.confidence) == ("dynamic", module, "low")
    assert [e.target for e in chain(graph, "nvcuda.dll")][-1] == "nvcuda.dll"
    assert node(graph, "nvcuda.dll").load == "later"
    assert python_imports(Bundle(root="r", entries=("app.exe",), files=files), "app.exe") == ()


def test_names_without_suffix_with_folder_and_with_a_last_dot() -> None:
    facts = {"app.exe": pe(["a", "..\\up\\b.dll", "plain."]), "a.dll": pe(), "plain": pe()}
    graph = graph_of(facts)
    assert edge(graph, "a").target == "a.dll" and edge(graph, "plain.").target == "plain"
    assert edge(graph, "..\\up\\b.dll").target == "b.dll"


def test_an_unreadable_file_is_a_leaf() -> None:
    files = tuple(BundleFile(path=path, kind="pe") for path in ("app.exe", "a.dll"))
    resolver = Resolver(Bundle(root="r", entries=("app.exe",), files=files), "app.exe", ROWS)
    resolver.add("app.exe", pe({"a.dll": ["f"]}))
    resolver.add("a.dll", None)
    assert resolver.needed() == ()
    assert edge(resolver.graph(), "a.dll").unresolved == ()


def test_only_what_is_reached_is_asked_for() -> None:
    others = [f"f/{n}.dll" for n in range(1_000)]
    files = tuple(
        BundleFile(path=path, kind="pe") for path in ["app.exe", "a.dll", "kernel32.dll", "x/cudnn64_9.dll", *others]
    )
    resolver = Resolver(Bundle(root="r", entries=("app.exe",), files=files), "app.exe", ROWS)
    asked: list[str] = []
    while paths := resolver.needed():
        for path in paths:
            asked.append(path)
            resolver.add(path, pe(["a.dll", "KERNEL32.dll"]))
    assert asked == ["app.exe", "a.dll"]
    graph = resolver.graph()
    # of what nothing leads to, only names worth a mention are in the graph
    assert [n.id for n in graph.nodes if n.load == "unreached"] == ["x/cudnn64_9.dll"]
    assert len(resolver.unreached()) == 1_002


def test_chain_closure_and_cycles() -> None:
    facts = {
        "app.exe": pe(["a.dll"], ["z.dll"]),
        "a.dll": pe(["b.dll", "a.dll"]),
        "b.dll": pe(["c.dll", "app.exe"]),
        "c.dll": pe(["b.dll"]),
        "z.dll": pe(["c.dll"]),
    }
    graph = graph_of(facts)
    assert closure(graph, "z.dll") == {"z.dll", "c.dll", "b.dll", "app.exe", "a.dll"}
    assert [e.target for e in chain(graph, "c.dll")] == ["a.dll", "b.dll", "c.dll"]
    assert [e.kind for e in chain(graph, "z.dll")] == ["delay"]
    assert chain(graph, "app.exe") == () and chain(graph, "nothing") == ()
    assert cycles(graph) == (("a.dll", "app.exe", "b.dll", "c.dll"),)
    assert networkx_graph(graph).number_of_edges() == len(graph.edges)


def test_a_line_of_five_thousand_modules() -> None:
    facts = {f"m{n}.dll": pe({f"m{n + 1}.dll": ["f"]}, exports=[("f", f"m{n + 1}.f")]) for n in range(5_000)}
    facts["app.exe"] = pe({"m0.dll": ["f"]})
    graph = graph_of(facts)
    assert node(graph, "m4999.dll").load == "start" and node(graph, "m5000.dll").origin == "missing"


def test_top_modules_of_a_folder_without_a_program() -> None:
    facts = {
        "m.pyd": pe(["core.dll"]), "core.dll": pe(["peer.dll"]), "peer.dll": pe(), "plugin.dll": pe((), ["core.dll"]),
        "x.dll": pe(["y.dll"]), "y.dll": pe(["x.dll"]), "self.dll": pe(["self.dll"]),
    }  # fmt: skip
    bundle = Bundle(root="r", entries=tuple(facts))
    assert top_modules(bundle, facts) == ("m.pyd", "plugin.dll", "x.dll", "y.dll", "self.dll")


def test_a_malformed_table_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="malformed"):
        WindowsDlls([{"dll": "a.dll", "kind": "odd"}])
    with pytest.raises(DataError, match="cannot be read"):
        read_windows_dlls(tmp_path / "no.csv")


def test_the_table_says_where_each_row_comes_from() -> None:
    import csv

    folder = Path(__file__).parents[2] / "coverage_db"
    with (folder / "windows_dlls_sources.csv").open(newline="", encoding="utf-8") as file:
        known = {row["id"] for row in csv.DictReader(file)}
    with (folder / "windows_dlls.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len({row["dll"] for row in rows}) == len(rows) > 3_000
    assert all(row["dll"] == row["dll"].lower() and set(row["source"].split(";")) <= known for row in rows)
    assert not [row for row in rows if row["dll"] in ("nvcuda.dll", "nvml.dll", "amdhip64_6.dll", "python311.dll")]
