"""Parts of host/: hipInfo's output, GPU names, paths, commit search, saved reports, odd input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pcs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_host_matrix import read

from zcheck.errors import DataError, InputError
from zcheck.host import hipinfo, load_host
from zcheck.host.adapters import identify, merge_hipinfo, words
from zcheck.host.faked import FakedSource
from zcheck.host.linux import LinuxSource, gfx_of
from zcheck.host.reader import read_host
from zcheck.host.release import find_commit
from zcheck.host.source import key, normal
from zcheck.model.host import Adapter, Host
from zcheck.parse.pe import read_pe

OUTPUT = """
--------------------------------------------------------------------------------
device#                           0
Name:                             AMD Radeon RX 7900 XTX
pciBusID:                         3
totalGlobalMem:                   23.98 GB
sharedMemPerBlock:                64.00 KB
isIntegrated:                     0
gcnArchName:                      gfx1100
--------------------------------------------------------------------------------
device#                           1
Name:                             AMD Radeon VII
totalGlobalMem:                   16368.00 MB
gcnArchName:                      gfx906:sramecc+:xnack-
"""


def test_hipinfo_output() -> None:
    first, second = hipinfo.parse(OUTPUT)
    assert (first.index, first.name, first.gfx, first.memory_mib, first.integrated) == (
        0, "AMD Radeon RX 7900 XTX", "gfx1100", 24556, False,
    )  # fmt: skip
    assert (second.index, second.gfx, second.memory_mib, second.integrated) == (1, "gfx906", 16368, None)


@given(st.text(max_size=400))
def test_hipinfo_never_raises(text: str) -> None:
    hipinfo.parse(text)
    hipinfo.parse("device# 0\n" + text)
    for field in ("totalGlobalMem", "gcnArchName", "Name", "isIntegrated"):
        hipinfo.parse(f"device#  {text}\n{field}: {text}")


@pytest.mark.parametrize(
    ("name", "gfx"),
    [
        ("AMD Radeon RX 7900 XTX", "gfx1100"),
        ("AMD Radeon RX 7900XT", "gfx1100"),
        ("Radeon RX 6700 XT", "gfx1031"),
        ("AMD Radeon(TM) RX 6600", "gfx1032"),
        ("AMD Radeon RX 9060 XT", "gfx1200"),
        ("AMD Radeon RX 9070 GRE", "gfx1201"),
        ("AMD Radeon RX 5700 XT", "gfx1010"),
        ("Radeon RX 580", "gfx803"),
        ("AMD Radeon 890M Graphics", "gfx1150"),
        ("AMD Radeon(TM) Graphics", ""),
        ("AMD Radeon RX 7999 XTX", ""),
        ("NVIDIA GeForce RTX 4070", ""),
        ("AMD Radeon RX 79", ""),
    ],
)
def test_gfx_by_model_name(name: str, gfx: str) -> None:
    assert identify(Adapter(index=0, name=name), pcs.tables()).gfx == gfx


def test_models_of_one_number_are_told_apart() -> None:
    names = ["RX 7900 XT", "RX 7900 XTX", "RX 7900 GRE", "RX 7900M", "RX 7900"]
    assert len({words(name) for name in names}) == len(names)


def test_every_gpu_of_amds_table_is_found_by_its_name() -> None:
    """A name pattern too loose or too strict would show here: the table's own names give the table's own gfx."""
    for row in pcs.tables().gpus:
        found = identify(Adapter(index=0, name=row.name), pcs.tables())
        assert found.vendor == "AMD"
        assert found.gfx in (row.gfx, ""), row.name
        if "Ryzen" not in row.name:
            assert found.gfx == row.gfx, row.name
            assert found.hip_sdk[row.hip_sdk] == row.sdk_support


def test_pci_table_agrees_with_amds_names() -> None:
    """Two sources, one answer: device ids whose family names a model of AMD's table have that model's gfx."""
    import re

    named = {words(row.name): row.gfx for row in pcs.tables().gpus}
    checked = 0
    for row in pcs.tables().pci:
        inner = re.search(r"\[(.*)\]", row.name)
        for part in re.split(r"\s*/\s*", inner.group(1)) if inner else ():
            if words(part) in named:
                checked += 1
                assert row.gfx == named[words(part)], row.name
    assert checked > 20


def test_two_cards_of_one_name_keep_their_order() -> None:
    cards = tuple(Adapter(index=place, name="AMD Radeon RX 7600", pnp_id=str(place)) for place in range(2))
    devices = hipinfo.parse(
        "device# 0\nName:   AMD Radeon RX 7600\ngcnArchName:   gfx1102\n"
        "device# 1\nName:   AMD Radeon RX 7600\ngcnArchName:   gfx1102\n"
    )
    assert [(one.index, one.pnp_id) for one in merge_hipinfo(cards, devices)] == [(0, "0"), (1, "1")]


def test_hipinfo_that_lists_fewer_devices_keeps_the_others() -> None:
    cards = (Adapter(index=0, name="AMD Radeon(TM) Graphics"), Adapter(index=1, name="AMD Radeon RX 9060 XT"))
    devices = hipinfo.parse("device# 0\nName:   AMD Radeon RX 9060 XT\ngcnArchName:   gfx1200\n")
    assert [(one.index, one.name) for one in merge_hipinfo(cards, devices)] == [
        (0, "AMD Radeon RX 9060 XT"),
        (1, "AMD Radeon(TM) Graphics"),
    ]


def test_commit_search() -> None:
    known = frozenset(row.commit for row in pcs.tables().releases if row.commit)
    one = sorted(known)[0]
    assert find_commit(b"builtin" + one.encode() + b"gfx", known) == one
    assert find_commit(b"0123abc" + one.encode() + b"def", known) == one, "strings lie next to one another"
    assert find_commit(one.encode()[:-1], known) == ""
    assert find_commit(b"f" * 40, known) == ""


@pytest.mark.parametrize(
    "release",
    ["v3", "v4", "v5-preview.66", "v6-preview.30", "v6-preview.69", "v6", "v7-preview.9", "lshqqytiger-3.9.5"],
)
@pytest.mark.parametrize("commit", [True, False])
def test_release_is_told(tmp_path: Path, release: str, commit: bool) -> None:
    """With the commit exactly, without it as one of the candidates that export the same."""
    root = pcs.build(tmp_path / "pc", {"zluda": [{"release": release, "no_commit": not commit}]})
    (folder,) = read(root).zluda
    if commit:
        assert (folder.release, folder.confidence) == (release, "high")
    else:
        assert release in folder.candidates
        assert folder.confidence != "low"
    assert not folder.missing


@pytest.mark.parametrize("release", ["v6", "v7-preview.9", "v5-preview.66", "lshqqytiger-3.9.5"])
def test_any_one_missing_file_is_named(tmp_path: Path, release: str) -> None:
    """Each file of the release in turn: exactly it is missing, and the release is still told."""
    import shutil

    whole = pcs.build(tmp_path / "pc", {"zluda": [{"release": release}]})
    names = sorted(path.name for path in (whole / "zluda").iterdir())
    spare = tmp_path / "spare"
    for name in names:
        shutil.move(whole / "zluda" / name, spare)
        (folder,) = read(whole, r"C:\zluda").zluda
        shutil.move(spare, whole / "zluda" / name)
        assert [one.casefold() for one in folder.missing] == [name.casefold()], name
        assert release in folder.candidates, name


@given(st.lists(st.sampled_from(["C:", "a", "B", "..", ".", "\\", "/", " ", '"', "ä", "x.dll"]), max_size=8))
def test_paths_have_one_form(parts: list[str]) -> None:
    path = normal("\\".join(parts))
    assert normal(path) == path
    assert key(path) == key(path.upper())


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from(["..", ".", "C:", "windows", "*", "a:b", "\\\\host", "/etc", "zluda"]), max_size=6))
def test_a_faked_root_is_never_left(tmp_path_factory: pytest.TempPathFactory, parts: list[str]) -> None:
    root = tmp_path_factory.mktemp("root")
    (root / "Windows").mkdir()
    found = FakedSource(root).local("C:\\" + "\\".join(parts))
    assert found is None or found == root or root in found.parents


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("adapters: [{nam: x}]", "did you mean 'name'"),
        ("adaptors: []", "did you mean 'adapters'"),
        ("adapters: {a: 1}", "adapters takes a list"),
        ("adapters: [{name: x, index: one}]", "index takes int"),
        ("env: [1]", "env takes names and values"),
        ("env: {PATH: 7}", "env.PATH takes a list"),
        ("- a", "expected keys and values"),
        ("a: [", "is not YAML"),
    ],
)
def test_host_yaml_mistakes_are_named(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "host.yaml").write_text(text)
    with pytest.raises(DataError, match=r"host\.yaml") as caught:
        FakedSource(tmp_path)
    assert said in caught.value.message


def test_a_folder_without_a_pc_is_refused(tmp_path: Path) -> None:
    (tmp_path / "Windows" / "System32").mkdir(parents=True)
    with pytest.raises(InputError, match="holds no Windows"):
        read(tmp_path)


def test_only_what_was_there_to_be_read_is_said_to_be_missing(tmp_path: Path) -> None:
    (tmp_path / "host.yaml").write_text("os_build: 10.0.26200.8000")
    host = read(tmp_path)
    assert {check.key: check.level for check in host.checks} == {"hip-sdk-missing": "MISS", "zluda-missing": "WARN"}
    assert [problem.path for problem in host.problems] == ["host.yaml", r"C:\Windows\System32"]
    pcs.place(tmp_path, r"C:\Windows\System32\kernel32.dll", b"MZ")
    (tmp_path / "host.yaml").write_text("adapters: []")
    host = read(tmp_path)
    assert {"gpu-none", "hip-runtime-missing"} <= {check.key for check in host.checks}
    assert not host.problems


def test_zluda_alone_says_nothing_of_system32(tmp_path: Path) -> None:
    pc = pcs.build(tmp_path / "pc", {"driver": [], "system32": [], "sdks": []})
    (pc / "host.yaml").unlink()
    host = read(pc, zluda_dir=r"C:\zluda")
    assert host.zluda and not any("System32" in check.text for check in host.checks if check.level == "MISS")
    assert not {"gpu-none", "hip-runtime-missing", "hip-dll-missing"} & {check.key for check in host.checks}


@settings(max_examples=30, deadline=None)
@given(st.binary(max_size=600))
def test_odd_dlls_do_not_stop_it(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    root = tmp_path_factory.mktemp("odd")
    for path in (r"C:\zluda\nvcuda.dll", r"C:\zluda\zluda.exe", r"C:\Windows\System32\amdhip64_6.dll"):
        pcs.place(root, path, data)
    pcs.place(root, r"C:\Program Files\AMD\ROCm\6.4\bin\rocblas.dll", b"MZ" + data)
    host = read(root)
    assert host.zluda
    assert msgspec.json.decode(msgspec.json.encode(host), type=Host) == host


def test_round_trip_and_saved_host(tmp_path: Path) -> None:
    host = read(pcs.build(tmp_path / "pc", {"gpus": ["raphael", "rx9070xt"], "sdks": [{"version": "6.2"}]}))
    saved = tmp_path / "host.json"
    saved.write_bytes(msgspec.json.encode(host))
    assert load_host(saved, pcs.tables()) == host


SEED: dict[str, Any] = {
    "schema": 2,
    "generated_utc": "2026-09-13T10:00:00Z",
    "windows": "Microsoft Windows 11 Pro 10.0.26200",
    "hip_root": r"C:\Program Files\AMD\ROCm\6.4",
    "hip_version": "6.4",
    "hip_info": r"C:\Program Files\AMD\ROCm\6.4\bin\hipInfo.exe",
    "selected_gpu_index": 0,
    "notes": [],
    "devices": [
        {
            "index": 0, "name": "AMD Radeon RX 9060 XT", "gfx": "gfx1200", "generation": "RDNA4", "memory": "15.92 GB",
            "driver_version": "32.0.21025.1024", "detection": "hipInfo", "current_windows_hip_sdk": True,
            "project_tested": True, "project_status": "validated-reference",
        }
    ],
}  # fmt: skip


def test_gpu_report_of_the_seed_project(tmp_path: Path) -> None:
    path = tmp_path / "gpu-report.json"
    path.write_text("\ufeff" + json.dumps(SEED), encoding="utf-8")  # PowerShell writes a byte order mark
    host = load_host(path, pcs.tables())
    (card,) = host.adapters
    assert (card.gfx, card.gfx_by, card.memory_mib) == ("gfx1200", "hipinfo", 16302)
    assert host.hip[0].version == "6.4"
    assert host.os_build == "10.0.26200"
    # Their own grade is no recorded run on a ZLUDA release; ours is, for the release it names.
    assert {check.key: check.value for check in host.checks}["gpu-support"] == "full"


@pytest.mark.parametrize("devices", [[{"index": 0}], "x", [1]])
def test_gpu_report_with_odd_devices(tmp_path: Path, devices: object) -> None:
    path = tmp_path / "gpu-report.json"
    path.write_text(json.dumps({**SEED, "devices": devices}))
    with pytest.raises(DataError, match=r"gpu-report\.json"):
        load_host(path, pcs.tables())


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 1, "checks": 3}', "\x00", "[" * 100_000])
def test_other_json_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "some.json"
    path.write_text(text)
    with pytest.raises(DataError, match=r"some\.json"):
        load_host(path, pcs.tables())


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing\.json"):
        load_host(tmp_path / "nothing.json", pcs.tables())


def test_linux_with_rocm(tmp_path: Path) -> None:
    nodes = tmp_path / "sys/class/kfd/kfd/topology/nodes"
    for name, text in (
        ("0", "cpu_cores_count 16\ngfx_target_version 0\n"),
        ("1", "gfx_target_version 110000\nvendor_id 4098\ndevice_id 29772\n"),
        ("2", "gfx_target_version 90010\nvendor_id 4098\ndevice_id 29711\n"),
    ):
        (nodes / name).mkdir(parents=True)
        (nodes / name / "properties").write_text(text)
    (tmp_path / "opt/rocm-6.4.1/lib").mkdir(parents=True)
    (tmp_path / "opt/rocm-6.4.1/lib/libMIOpen.so").touch()
    (tmp_path / "opt/rocm-6.4.1/.info").mkdir()
    (tmp_path / "opt/rocm-6.4.1/.info/version").write_text("6.4.1-83\n")
    host = read_host(None, read_pe=read_pe, tables=pcs.tables(), source=LinuxSource(tmp_path))
    assert [adapter.gfx for adapter in host.adapters] == ["gfx1100", "gfx90a"]
    assert host.hip[0].version == "6.4.1"
    assert host.hip[0].components == ("MIOpen",)
    assert not [check for check in host.checks if check.key.startswith("hip-sdk-missing")]


def test_linux_without_anything(tmp_path: Path) -> None:
    host = read_host(None, read_pe=read_pe, tables=pcs.tables(), source=LinuxSource(tmp_path))
    assert not host.adapters
    assert not host.checks


@pytest.mark.parametrize(
    ("target", "gfx"), [(110000, "gfx1100"), (90010, "gfx90a"), (100306, "gfx1036"), (80003, "gfx803")]
)
def test_gfx_of_the_kernel_driver(target: int, gfx: str) -> None:
    assert gfx_of(target) == gfx


def test_sdk_without_hipblaslt_is_an_older_patch(tmp_path: Path) -> None:
    from zcheck.host import stack_overrides

    host = read(pcs.build(tmp_path / "pc", {"sdks": [{"version": "6.4", "hipblaslt": "none", "without": ["none"]}]}))
    assert stack_overrides(host).hip_sdk == "6.4.1"
