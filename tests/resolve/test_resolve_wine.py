"""Another loader's opinion: Wine starts a program with decoys in its folders, and has to load the files that we say."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from zcheck.discover import discover
from zcheck.parse.pe import read_pe
from zcheck.resolve import Dynamic, Resolver, read_windows_dlls

pytestmark = pytest.mark.wine
ROWS = read_windows_dlls(Path(__file__).parents[2] / "coverage_db" / "windows_dlls.csv")
GCC = "x86_64-w64-mingw32-gcc"

APP = r"""
#include <windows.h>
#include <stdio.h>
#define PSAPI_VERSION 2
#include <psapi.h>
int a(void); int ver(void); int front(void);
int main(void) {
    HMODULE modules[256]; DWORD size = 0; char path[MAX_PATH];
    int sum = a() + ver() + front();
    GetModuleFileNameA(NULL, path, MAX_PATH);
    strcpy(strrchr(path, '\\'), "\\plugins\\p.dll");
    if (!LoadLibraryExA(path, NULL, LOAD_WITH_ALTERED_SEARCH_PATH)) printf("no plugin: %lu\n", GetLastError());
    EnumProcessModules(GetCurrentProcess(), modules, sizeof modules, &size);
    for (DWORD n = 0; n < size / sizeof *modules; n++) {
        GetModuleFileNameA(modules[n], path, MAX_PATH);
        printf("loaded %s\n", path);
    }
    printf("sum %d\n", sum);
    return 0;
}
"""


def tool(name: str, *places: str) -> str:
    found = next((place for place in (*places, shutil.which(name)) if place and Path(place).exists()), None)
    if found is None:
        if os.environ.get("CI"):
            pytest.fail(f"{name} is missing")
        pytest.skip(f"{name} is not installed")
    return found


def compile_to(target: Path, source: str, *more: Path, scratch: Path) -> None:
    """A program or library from C text; ``more`` are DLLs to link against (their folders are not remembered)."""
    target.parent.mkdir(parents=True, exist_ok=True)
    code = scratch / f"{target.stem}.c"
    code.write_text(source)
    shared = ["-shared"] if target.suffix == ".dll" else []
    command = [tool(GCC), "-s", *shared, "-o", str(target), str(code), *map(str, more), "-lpsapi"]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture(scope="module")
def wine(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    prefix = tmp_path_factory.mktemp("wine") / "prefix"
    # Wine prefers its own version.dll wherever it lies; with n,b it takes the first that is found, as Windows does.
    overrides = "mscoree,mshtml,winedbg.exe=;version=n,b"
    quiet = {"WINEPREFIX": str(prefix), "WINEDEBUG": "-all", "WINEDLLOVERRIDES": overrides}
    environment = {**{k: v for k, v in os.environ.items() if k != "DISPLAY"}, **quiet}
    program = tool("wine64", "/usr/lib/wine/wine64")
    key = ["reg", "add", r"HKCU\Software\Wine", "/v", "Version", "/d", "win10", "/f"]
    subprocess.run([program, *key], env=environment, check=True, capture_output=True, timeout=240)
    return environment


def lines(program: Path, environment: dict[str, str]) -> list[str]:
    done = subprocess.run(
        [tool("wine64", "/usr/lib/wine/wine64"), str(program)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    return done.stdout.splitlines()


def function(name: str, value: int, needs: str = "") -> str:
    call = f"int {needs}(void);" if needs else ""
    return f"{call} __declspec(dllexport) int {name}(void) {{ return {value} + {needs + '()' if needs else 0}; }}"


def test_wine_loads_what_the_graph_says(tmp_path: Path, wine: dict[str, str]) -> None:
    app, c = tmp_path / "app", tmp_path / "c"
    c.mkdir()
    for name, source, needs in (
        ("b", function("b", 1), ""),
        ("a", function("a", 2, "b"), "b"),
        ("version", function("ver", 4), ""),  # beside the program it goes before Windows' own
        ("back", function("second", 8), ""),
        ("extra", function("extra", 16), ""),
    ):
        compile_to(app / f"{name}.dll", source, *([app / f"{needs}.dll"] if needs else []), scratch=c)
    definition = c / "front.def"
    definition.write_text("LIBRARY front.dll\nEXPORTS\n front = back.second\n")
    compile_to(app / "front.dll", "int unused(void) { return 0; }", definition, scratch=c)
    compile_to(app / "plugins" / "extra.dll", function("extra", 32), scratch=c)
    plugin = "int a(void); int extra(void); __declspec(dllexport) int p(void) { return a() + extra(); }"
    compile_to(app / "plugins" / "p.dll", plugin, app / "a.dll", app / "extra.dll", scratch=c)
    shutil.copy(app / "b.dll", app / "plugins" / "a.dll")  # a decoy: the process holds that name already
    parts = [app / "a.dll", app / "version.dll", app / "front.dll"]
    compile_to(app / "app.exe", APP, *parts, scratch=c)

    told = lines(app / "app.exe", wine)
    assert "sum 15" in told, told
    marker = "\\app\\"
    loaded = {line.rpartition(marker)[2].replace("\\", "/").lower() for line in told if marker in line.lower()}

    bundle = discover(app / "app.exe")
    resolver = Resolver(bundle, "app.exe", ROWS, extra_edges=[Dynamic("app.exe", "plugins\\p.dll")])
    while paths := resolver.needed():
        for path in paths:
            resolver.add(path, read_pe(app / path))
    graph = resolver.graph()
    ours = {node.id.lower() for node in graph.nodes if node.origin == "bundle" and node.load != "unreached"}
    assert ours == loaded
    assert not [edge for edge in graph.edges if edge.unresolved]
    start = {node.id for node in graph.nodes if node.origin == "bundle" and node.load == "start"}
    assert start == {"app.exe", "a.dll", "b.dll", "version.dll", "front.dll", "back.dll"}


def test_wine_does_not_find_a_static_import_in_a_folder_below(tmp_path: Path, wine: dict[str, str]) -> None:
    c, app = tmp_path / "c", tmp_path / "app"
    c.mkdir()
    compile_to(app / "bin" / "gone.dll", function("gone", 1), scratch=c)
    source = '#include <stdio.h>\nint gone(void); int main(void) { printf("up %d\\n", gone()); return 0; }'
    compile_to(app / "app.exe", source, app / "bin" / "gone.dll", scratch=c)
    assert not [line for line in lines(app / "app.exe", wine) if "up" in line]
    shutil.copy(app / "bin" / "gone.dll", app)
    assert lines(app / "app.exe", wine) == ["up 1"]
