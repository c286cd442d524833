"""Real programs against NVIDIA's cuobjdump, byte for byte, and what ZLUDA releases do with them.

cuobjdump reads no PE file, so containers are carved out of it. Packages: tests/corpus.py.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import corpus
from zcheck.coverage.locate import open_database
from zcheck.coverage.replay import replay
from zcheck.coverage.replay_facts import release_ptx, tables_from
from zcheck.coverage.replay_report import evidence_items, reasons
from zcheck.model.device_code import DeviceCodeFacts, Replay
from zcheck.parse.fatbin import read_device_code, read_payload

pytestmark = pytest.mark.corpus

FILES = {
    "ctransformers": ("ctransformers", "ctransformers/lib/cuda/ctransformers.dll"),
    "dfttest2": ("vapoursynth-dfttest2-cuda", "vapoursynth/plugins/dfttest2_cuda/dfttest2_cuda.dll"),
    "bitsandbytes118": ("bitsandbytes", "bitsandbytes/libbitsandbytes_cuda118.dll"),
    "bitsandbytes132": ("bitsandbytes", "bitsandbytes/libbitsandbytes_cuda132.dll"),
    "ctranslate2": ("ctranslate2", "ctranslate2/ctranslate2.dll"),
    "xgboost": ("xgboost", "xgboost/lib/xgboost.dll"),
}
SMALL = [pytest.param(name, marks=[pytest.mark.slow] if name == "xgboost" else []) for name in FILES]


def file(name: str) -> Path:
    package, path = FILES[name]
    return corpus.path(package) / path


@pytest.fixture(scope="module")
def cuobjdump() -> Path:
    tool = corpus.path("nvidia-cuda-cuobjdump") / "nvidia/cu13/bin/cuobjdump"
    tool.chmod(0o755)
    return tool


_READ: dict[str, DeviceCodeFacts] = {}


def read(name: str) -> DeviceCodeFacts:
    if name not in _READ:
        _READ[name] = read_device_code(file(name))
    return _READ[name]


def on(name: str, tag: str) -> Replay:
    return replay(read(name), release_ptx(tables_from(open_database()), tag))


def listed(output: str) -> dict[str, list[tuple[str, str, bool]]]:
    """Blocks of cuobjdump's listing by kind, in its order: architecture, version, compressed."""
    found: dict[str, list[tuple[str, str, bool]]] = {"elf": [], "ptx": []}
    for block in re.split(r"(?=^Fatbin (?:elf|ptx) code:)", output, flags=re.M):
        head = re.match(r"Fatbin (elf|ptx) code:\n=+\narch = (\w+)\ncode version = \[(\d+),(\d+)\]\n", block)
        if head:
            kind, arch, major, minor = head.groups()
            packed = re.search(r"^compressed$", block[: head.end() + 200], re.M) is not None
            found[kind].append((arch, f"{major}.{minor}", packed))
    return found


@pytest.mark.parametrize("name", SMALL)
def test_agrees_with_cuobjdump(name: str, cuobjdump: Path, tmp_path: Path) -> None:
    """Listing of every container, and the bytes of every PTX."""
    code = read(name)
    assert code.containers
    data = file(name).read_bytes()
    texts = 0
    for number, container in enumerate(code.containers):
        folder = tmp_path / str(number)
        folder.mkdir()
        carved = folder / "c.fatbin"
        carved.write_bytes(data[container.offset : container.offset + container.size])

        def run(*arguments: str, folder: Path = folder) -> str:
            done = subprocess.run([cuobjdump, *arguments, "c.fatbin"], cwd=folder, capture_output=True, timeout=240)
            assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
            return done.stdout.decode("utf-8", "replace")

        theirs = listed(run())
        for kind, ours in (("elf", "sass"), ("ptx", "ptx")):
            mine = [(e.arch, e.version, e.compression != "none") for e in container.entries if e.kind == ours]
            assert sorted(mine) == sorted(theirs[kind]), (number, kind)
        ptx = [entry for entry in container.entries if entry.kind == "ptx"]
        if ptx:
            run("-xptx", "all")
            files = sorted(folder.glob("*.ptx"), key=lambda path: int(path.name.split(".")[1]))
            assert [read_payload(file(name), entry) for entry in ptx] == [path.read_bytes() for path in files], number
            texts += len(ptx)
    assert texts == sum(1 for c in code.containers for e in c.entries if e.kind == "ptx")


@pytest.mark.parametrize("name", ["ctransformers", "dfttest2", "bitsandbytes132"])
def test_kernels_of_cubins_agree_with_cuobjdump(name: str, cuobjdump: Path, tmp_path: Path) -> None:
    code = read(name)
    for number, container in enumerate(code.containers):
        for index, entry in enumerate(container.entries):
            if entry.kind != "sass":
                continue
            cubin = tmp_path / f"{number}-{index}.cubin"
            cubin.write_bytes(read_payload(file(name), entry))
            done = subprocess.run([cuobjdump, "--dump-elf-symbols", cubin], capture_output=True, text=True, timeout=120)
            names = re.findall(r"^FUNC\s+\w+\s+\w+\s+ENTRY\s+(?:U\s+)?(\S+)$", done.stdout, re.M)
            assert sorted(entry.kernels) == sorted(names), (number, index)


@pytest.mark.parametrize(
    ("name", "containers", "ptx"),
    [
        ("ctransformers", 1, {("sm_52", "8.1"): 1, ("sm_61", "8.1"): 1, ("sm_70", "8.1"): 1}),
        ("dfttest2", 1, {("sm_75", "9.4"): 1}),
        ("bitsandbytes132", 7, {("sm_120", "9.2"): 6}),
        ("ctranslate2", 34, {("sm_86", "8.7"): 34}),
        pytest.param("xgboost", 63, {("sm_120", "8.8"): 63}, marks=pytest.mark.slow),
    ],
)
def test_counts(name: str, containers: int, ptx: dict[tuple[str, str], int]) -> None:
    code = read(name)
    found: dict[tuple[str, str], int] = {}
    for container in code.containers:
        for entry in container.entries:
            assert entry.problem is None
            if entry.kind == "ptx":
                found[entry.arch, entry.version] = found.get((entry.arch, entry.version), 0) + 1
                assert entry.ptx is not None
                # Two places say it: the entry's header and the text.
                assert (entry.ptx.target, entry.ptx.version) == (entry.arch, entry.version)
    assert (len(code.containers), found) == (containers, ptx)
    assert not code.problems
    # dfttest2 hands its fatbin to the driver itself, without a wrapper.
    assert len(code.wrappers) == (0 if name == "dfttest2" else containers)


@pytest.mark.parametrize("name", ["ctransformers", "dfttest2"])
def test_ptx_and_machine_code_name_the_same_kernels(name: str) -> None:
    """Within a container of one program each architecture has the same kernels, whoever reads them."""
    for container in read(name).containers:
        assert len({frozenset(entry.kernels) for entry in container.entries}) == 1


def test_ctransformers_on_four_releases() -> None:
    v4 = on("ctransformers", "v4")
    assert (v4.kernels, v4.lost, v4.load_fails) == (71, 71, "v4 takes PTX texts only, no fatbins")
    # v5 takes the first PTX, for sm_52: there the quantized products are compiled to nothing.
    v5 = on("ctransformers", "v5")
    assert (v5.containers[0].chosen, v5.loadable, v5.stub) == (0, 51, 20)
    assert {fate.name.split("I")[0] for fate in v5.containers[0].fates} == {
        f"_Z12mul_mat_q{kind}" for kind in ("4_0", "4_1", "5_0", "5_1", "8_0", "2_K", "3_K", "4_K", "5_K", "6_K")
    }
    assert reasons(v5.containers)[0].startswith("stub: its PTX only returns, beside real machine code (20: ")
    # v6 and later take the last one, for sm_70, whole.
    for tag in ("v6", "v7-preview.9"):
        later = on("ctransformers", tag)
        assert (later.containers[0].chosen, later.loadable) == (4, 71)


def test_bitsandbytes_has_ptx_for_linking_only() -> None:
    """The executable fatbin is machine code; of six PTX texts for the linker one is compiled."""
    code = read("bitsandbytes132")
    assert {c.section for c in code.containers if any(e.kind == "ptx" for e in c.entries)} == {"__nv_rel"}
    (image,) = code.images()
    assert image.linked is not None
    assert all(entry.kind == "sass" for entry in image.linked.entries)
    v6 = on("bitsandbytes132", "v6")
    assert (v6.kernels, v6.loadable, v6.stub, v6.empty) == (202, 20, 2, 180)
    assert v6.containers[0].chosen_container == 5
    assert "one of 6 PTX texts" in v6.containers[0].notes[0]
    v3 = on("bitsandbytes132", "v3")
    assert v3.load_fails == "no usable PTX"
    assert all("zstd" in note for note in v3.containers[0].notes)


def test_ctranslate2_loses_what_it_does_in_half_precision() -> None:
    v6 = on("ctranslate2", "v6")
    assert (v6.kernels, v6.loadable, v6.dropped, v6.lost) == (539, 498, 41, 0)
    assert set(v6.reasons) == {
        "unknown form of a known instruction set.eq.f16.f16",
        "unknown form of a known instruction fma.rn.bf16",
        "unknown instruction lop3.b32",
    }
    v5 = on("ctranslate2", "v5")
    assert v5.dropped > v6.dropped
    assert any("mma.sync" in reason for reason in v5.reasons)


@pytest.mark.slow
def test_xgboost_loses_four_translation_units_to_one_underscore() -> None:
    v6 = on("xgboost", "v6")
    assert (v6.kernels, v6.loadable, v6.lost) == (1667, 1490, 177)
    assert v6.reasons == ("a lone _ is no token for the lexer",)
    lost = [one for one in v6.containers if one.lost]
    assert len(lost) == 4
    # Without it the functions around cp.async.bulk and mbarrier would go all the same.
    assert all("elect.sync" in one.notes[0] and "mbarrier" in one.notes[0] for one in lost)
    v5 = on("xgboost", "v5")
    assert v5.loadable < v6.loadable
    facts = evidence_items("xgboost.dll", read("xgboost"), (v6,))
    assert (facts[0].kernels, facts[0].ptx, facts[1].lost) == (1667, 63, 177)
