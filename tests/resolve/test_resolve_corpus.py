"""Real packages: all that they import from one another has to be found and exported, by the rule that holds there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import corpus
from zcheck.discover import discover
from zcheck.model.facts import PeFacts
from zcheck.model.graph import Graph
from zcheck.parse.pe import read_pe
from zcheck.resolve import Resolver, read_windows_dlls, top_modules

pytestmark = pytest.mark.corpus
ROWS = read_windows_dlls(Path(__file__).parents[2] / "coverage_db" / "windows_dlls.csv")


def graphs(target: Path) -> dict[str, Graph]:
    bundle = discover(target)
    facts: dict[str, PeFacts] = {}
    found = {}
    for entry in bundle.entries:
        resolver = Resolver(bundle, entry, ROWS)
        while paths := resolver.needed():
            for path in paths:
                if path not in facts:
                    facts[path] = read_pe(Path(bundle.root) / path)
                resolver.add(path, facts[path])
        found[entry] = resolver.graph()
    tops = top_modules(bundle, {path: facts[path] for path in bundle.entries})
    return {entry: found[entry] for entry in tops}


def missing(graph: Graph) -> set[str]:
    return {node.id for node in graph.nodes if node.origin in ("missing", "mismatch")}


def rules(graph: Graph) -> dict[str, str]:
    return {edge.dll: edge.resolved_by for edge in graph.edges}


@pytest.mark.parametrize(
    "package",
    [
        "numpy",
        "llvmlite",
        "ctranslate2",
        "drjit",
        "@node-llama-cpp/win-arm64",
        "@ffmpeg-installer/win32-ia32",
        "openmm",
    ],
)
def test_packages_that_are_whole(package: str) -> None:
    for entry, graph in graphs(corpus.path(package)).items():
        assert not missing(graph), entry
        assert not [edge for edge in graph.edges if edge.unresolved], entry


def test_numpy_finds_its_mangled_libraries() -> None:
    graph = graphs(corpus.path("numpy"))["numpy/_core/_multiarray_umath.cp311-win_amd64.pyd"]
    found = [edge for edge in graph.edges if edge.dll.startswith("libscipy_openblas64_")]
    assert [edge.resolved_by for edge in found] == ["dll-directory"]
    assert graph.node("python311.dll").note == "the host program"


def test_openmm_finds_its_plugins_through_the_base_package(tmp_path: Path) -> None:
    """Two wheels in one site-packages, as pip leaves them; the plugin needs OpenMM.dll one folder above its own."""
    site = tmp_path / "Lib" / "site-packages"
    for name in ("openmm", "openmm-cuda-12"):
        shutil.copytree(corpus.path(name), site, dirs_exist_ok=True, copy_function=link)
    bundle = discover(site / "OpenMM.libs" / "lib" / "plugins" / "OpenMMCUDA.dll")
    assert "OpenMM.libs/lib" in bundle.dll_directories
    (graph,) = graphs(site / "OpenMM.libs" / "lib" / "plugins" / "OpenMMCUDA.dll").values()
    assert missing(graph) == {"nvcuda.dll", "cufft64_11.dll", "nvrtc64_120_0.dll"}
    assert rules(graph)["OpenMM.dll"] == "dll-directory"
    (cuda,) = [edge for edge in graph.edges if edge.target == "nvcuda.dll"]
    assert len(cuda.functions) == 41 and cuda.kind == "import"
    assert not [edge for edge in graph.edges if edge.unresolved]
    whole = graphs(site)
    assert "openmm/_openmm.cp311-win_amd64.pyd" in whole
    assert "OpenMM.libs/lib/plugins/OpenMMDrudeCUDA.dll" in whole
    assert "OpenMM.libs/lib/plugins/OpenMMCUDA.dll" not in whole  # the other plugins import it


def link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def test_ctransformers_variants_stay_apart() -> None:
    found = graphs(corpus.path("ctransformers"))
    assert {entry: missing(graph) for entry, graph in found.items()} == {
        "ctransformers/lib/avx/ctransformers.dll": set(),
        "ctransformers/lib/avx2/ctransformers.dll": set(),
        "ctransformers/lib/basic/ctransformers.dll": set(),
        "ctransformers/lib/cuda/ctransformers.dll": {"cudart64_12.dll", "cublas64_12.dll"},
    }


def test_bitsandbytes_has_an_amd_variant_beside_the_cuda_ones() -> None:
    found = {entry.rpartition("_")[2]: missing(graph) for entry, graph in graphs(corpus.path("bitsandbytes")).items()}
    assert {"cublas64_12.dll", "cublasLt64_12.dll".lower()} <= found["cuda121.dll"]
    assert not any(name.startswith(("cu", "nv")) for name in found["rocm72.dll"])


def test_delay_loaded_cufft() -> None:
    (graph,) = graphs(corpus.path("vapoursynth-dfttest2-cuda")).values()
    (cufft,) = [edge for edge in graph.edges if edge.target == "cufft64_12.dll"]
    assert cufft.kind == "delay" and len(cufft.functions) == 8 and cufft.place == "delay-import table"
    assert graph.node("cufft64_12.dll").load == "later"


def test_the_hip_twin_is_whole_but_for_what_it_has_beside_it() -> None:
    found = graphs(corpus.path("vapoursynth-dfttest2-hip"))
    graph = found["vapoursynth/plugins/dfttest2_hip/dfttest2_hip.dll"]
    assert not [name for name in missing(graph) if name.startswith(("cu", "nv"))]
