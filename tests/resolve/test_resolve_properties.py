"""Whatever modules need one another, and in whatever order their facts arrive, the graph is the same and whole."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from test_resolve_rules import ROWS, check

from zcheck.model.bundle import Bundle, BundleFile
from zcheck.model.facts import Export, ImportedDll, PeFacts, Symbol
from zcheck.resolve import Dynamic, Resolver

NAMES = ["a.dll", "B.dll", "c.dll", "version.dll", "kernel32.dll"]
FOLDERS = ["", "sub/", "bin/"]
PATHS = [folder + name for folder in FOLDERS for name in NAMES]
dlls = st.sampled_from([*NAMES, "A.DLL", "b", "no.dll", "api-ms-win-x.dll", "sub\\c.dll", "app.exe"])
symbols = st.lists(st.sampled_from(["f", "g", "h"]), max_size=2, unique=True)


@st.composite
def modules(draw: st.DrawFn) -> PeFacts:
    imports = draw(st.lists(st.tuples(dlls, symbols, st.booleans()), max_size=4))
    exports = draw(
        st.lists(
            st.tuples(st.sampled_from(["f", "g"]), st.none() | st.sampled_from(["c.f", "B.g", "no.x"])), max_size=2
        )
    )
    return PeFacts(
        name="m",
        size=1,
        machine=draw(st.sampled_from(["x64", "x64", "x86"])),  # type: ignore[arg-type]
        imports=tuple(
            ImportedDll(dll=dll, symbols=tuple(Symbol(name=name) for name in names), delay=late)
            for dll, names, late in imports
        ),
        exports=tuple(Export(name=name, ordinal=n, forwarder=to) for n, (name, to) in enumerate(exports)),
    )


@settings(max_examples=200, deadline=None)
@given(
    facts=st.dictionaries(st.sampled_from(PATHS), modules(), max_size=8),
    app=modules(),
    entry=st.sampled_from(["app.exe", "bin/app.pyd"]),
    calls=st.lists(st.tuples(st.sampled_from(["app.exe", *PATHS]), dlls), max_size=3),
    data=st.data(),
)
def test_order_of_arrival_does_not_matter(
    facts: dict[str, PeFacts], app: PeFacts, entry: str, calls: list[tuple[str, str]], data: st.DataObject
) -> None:
    facts = {**facts, entry: app}
    files = tuple(BundleFile(path=path, kind="pe") for path in sorted(facts))
    bundle = Bundle(root="r", entries=(entry,), files=files, dll_directories=("bin",))
    graphs = []
    for shuffled in (False, True):
        resolver = Resolver(bundle, entry, ROWS, extra_edges=[Dynamic(*call) for call in calls])
        while paths := resolver.needed():
            order = data.draw(st.permutations(paths)) if shuffled else paths
            for path in order if not shuffled else order[:1]:
                resolver.add(path, facts[path])
        graphs.append(resolver.graph())
        check(graphs[-1])
        # every file that the process gets was asked for
        assert {n.path for n in graphs[-1].nodes if n.origin == "bundle" and n.load != "unreached"} <= set(
            resolver.facts
        )
    assert graphs[0] == graphs[1]
