"""Which DLL a started program gets, what arguments arrive, how ends are reported: on Windows (Wine) and from Linux."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from staging import tree
from winhost import Host

from winpython import Missing, WinPython

pytestmark = pytest.mark.wine


@pytest.fixture(params=["windows", "linux"])
def host(request: pytest.FixtureRequest, winpython: WinPython, tmp_path: Path) -> Host:
    return Host(tmp_path, winpython, request.param == "windows")


@pytest.fixture
def windows(winpython: WinPython, tmp_path: Path) -> Host:
    return Host(tmp_path, winpython, True)


def test_path_serves_a_static_import_and_writes_nothing(host: Host) -> None:
    program = host.put("static.exe")
    before = tree(host.app)
    result = host.run(program, strategy="path", check=True, anyway=True)
    assert "[zluda]" in result.out, result.err
    assert result.code == 0
    assert host.loaded(result.report, "nvcuda.dll") == ["zluda"]
    assert result.report["grade"] == "functional"
    assert tree(host.app) == before


def test_path_serves_delay_loads_and_bare_loads(host: Host) -> None:
    for name in ("delay.exe", "dynamic.exe"):
        result = host.run(host.put(name), strategy="path")
        assert "[zluda]" in result.out, (name, result.err)
        assert host.loaded(result.report, "nvcuda.dll") == ["zluda"]


def test_own_copy_beats_the_path_and_so_path_is_refused(host: Host) -> None:
    program = host.put("static.exe")
    host.put("app/nvcuda.dll")
    result = host.run(program, strategy="path", check=True, anyway=True)
    assert result.code == 125
    assert "ships its own nvcuda.dll" in result.err
    unchecked = host.run(program, strategy="path")
    assert "[app]" in unchecked.out, "what the refusal is about: the program's own copy is loaded"
    assert host.loaded(unchecked.report, "nvcuda.dll") == ["app"]
    assert unchecked.report["outcome"] == "inconclusive"


def test_stage_replaces_the_own_copy_for_the_run_only(host: Host) -> None:
    program = host.put("static.exe")
    host.put("app/nvcuda.dll")
    before = tree(host.app)
    result = host.run(program, strategy="stage", check=True, anyway=True)
    assert "[zluda]" in result.out, result.err
    assert host.loaded(result.report, "nvcuda.dll") == ["zluda"]
    assert [file["state"] for file in result.report["staging"]] == ["restored"]
    assert tree(host.app) == before


def test_stage_serves_a_plugin_in_a_folder_of_its_own(host: Host) -> None:
    program = host.put("plugin_host.exe")
    host.put("plugin.dll", "lib")
    host.put("app/cublas64_12.dll", "lib")
    before = tree(host.app)
    own = host.run(program, strategy="path")
    assert "[app]" in own.out
    result = host.run(program, strategy="stage", check=True, anyway=True)
    assert "cublasCreate_v2" in result.out, result.err
    assert "[zluda]" in result.out
    assert tree(host.app) == before


def test_children_inherit_the_path(host: Host) -> None:
    program = host.put("parent.exe")
    host.put("dynamic.exe", "child")
    for _ in range(3):  # Wine now and then loses a write while somebody reads the writer's memory, see winprograms.py
        result = host.run(program, strategy="path")
        assert result.code == 0, result.err
        if result.out:
            break
    assert "[zluda]" in result.out, result.err


def test_system32_lookup_sees_neither_path_nor_own_folder_only_the_launcher(host: Host) -> None:
    """NVIDIA's runtime loads nvcuda.dll with LOAD_LIBRARY_SEARCH_SYSTEM32 (0x800)."""
    program = host.put("dynamic.exe")
    by_path = host.run(program, "800", strategy="path")
    assert by_path.code == 35
    assert by_path.report["first_error"]["rule"] == "cuda-driver-version"
    assert by_path.report["grade"] == "safe-refusal"
    launched = host.run(program, "800")
    assert "[zluda]" in launched.out, launched.err
    assert launched.code == 0
    assert launched.report["strategy"] == "zluda-exe"


def test_a_driver_in_system32_is_what_that_lookup_takes_and_the_launcher_beats_it(host: Host) -> None:
    """The control: the same look-up finds a copy in System32, so it is the folder that counts."""
    program = host.put("dynamic.exe")
    installed = host.windows.system32 / "nvcuda.dll"
    try:
        installed.write_bytes((host.made / "system" / "nvcuda.dll").read_bytes())
        assert "[system]" in host.run(program, "800", strategy="path").out
        assert "[zluda]" in host.run(program, "800").out
    finally:
        installed.unlink()


def test_preload_serves_the_system32_lookup_without_a_launcher(windows: Host) -> None:
    program = windows.put("dynamic.exe")
    refused = windows.run(program, "800", strategy="preload")
    assert refused.code == 125
    assert "--allow-inject" in refused.err
    result = windows.run(program, "800", strategy="preload", allow_inject=True)
    assert "[zluda]" in result.out, result.err
    assert windows.loaded(result.report, "nvcuda.dll") == ["zluda"]


ARGUMENTS = [
    "a b",
    "",
    'say "hi"',
    "C:\\dir with space\\",
    "--",
    "ä€😀",
    "tab\there",
    '\\"',
    "plain",
    "a=b;c",
    "%PATH%",
]


@pytest.mark.parametrize(
    ("launcher", "file", "release"), [("launcher_raw", "zluda.exe", "v6"), ("launcher_quoted", "zluda_with.exe", "v5")]
)
def test_arguments_arrive_as_given_through_either_kind_of_launcher(
    host: Host, launcher: str, file: str, release: str
) -> None:
    host.release(launcher, file)
    program = host.put("arguments.exe")
    result = host.run(program, *ARGUMENTS, zluda=release)
    assert [bytes.fromhex(line).decode() for line in result.out.splitlines()] == ARGUMENTS, result.err
    assert result.code == 0


def test_arguments_would_be_lost_without_the_quoting(host: Host) -> None:
    """The control: the joining launcher, told that it quotes (v5's file name), loses spaces and empty arguments."""
    host.release("launcher_raw", "zluda_with.exe")
    result = host.run(host.put("arguments.exe"), "a b", "", zluda="v5")
    assert [bytes.fromhex(line).decode() for line in result.out.splitlines()] != ["a b", ""]


def test_real_cudart_finds_a_preloaded_driver_and_no_other(host: Host, cudart: Path) -> None:
    program = host.put("cudart.exe")
    (host.app / "cudart64_12.dll").write_bytes(cudart.read_bytes())
    host.release("launcher_raw", nvcuda="fake")
    refused = host.run(program, strategy="stage", check=True, anyway=True)
    assert refused.code == 125
    assert "System32 only" in refused.err
    by_path = host.run(program, strategy="path")
    assert "cudaGetDeviceCount -> 35" in by_path.out
    assert "fake" not in by_path.err
    launched = host.run(program)
    assert "fake cuInit" in launched.err
    assert "cudaGetDeviceCount -> 100" in launched.out, launched.out + launched.err
    assert host.loaded(launched.report, "nvcuda.dll") == ["zluda"]
    assert host.loaded(launched.report, "cudart64_12.dll") == ["app"]


@pytest.fixture(scope="session")
def cudart() -> Path:
    """NVIDIA's cudart64_12.dll 12.4.127, from the corpus."""
    import winpython as helper

    digest = "09c2e35f48359752dfa822c09918211844a3d93c100a715d79b59591130c5e1e"
    folder = helper.cache_dir()
    wheels = [
        p for p in folder.rglob("nvidia_cuda_runtime_cu12-12.4.127-*win_amd64.whl") if helper._sha256(p) == digest
    ]
    if not wheels:
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--no-deps",
            "--only-binary=:all:",
            "--platform",
            "win_amd64",
        ]
        done = subprocess.run([*command, "-d", str(folder), "nvidia-cuda-runtime-cu12==12.4.127"], capture_output=True)
        wheels = list(folder.glob("nvidia_cuda_runtime_cu12-12.4.127-*win_amd64.whl"))
        if done.returncode or not wheels or helper._sha256(wheels[0]) != digest:
            raise Missing("the wheel of cudart cannot be had")
    target = folder / "winprograms" / "cudart64_12.dll"
    with helper._only_one(target):
        if not target.exists():
            with zipfile.ZipFile(wheels[0]) as archive:
                name = next(n for n in archive.namelist() if n.endswith("bin/cudart64_12.dll"))
                part = target.with_name("cudart.part")
                part.write_bytes(archive.read(name))
                part.rename(target)
    return target


def test_crashing_program(host: Host) -> None:
    result = host.run(host.put("crash.exe"))
    rule = "exit-crash" if host.on_windows else "segmentation"  # Wine itself says on stderr what happened
    assert result.report["first_error"]["rule"] == rule, result.err
    assert result.report["outcome"] == "failed"
    if host.on_windows:
        assert result.code == 0xC0000005
        assert "ACCESS_VIOLATION" in result.report["exit"]["meaning"]
        assert result.report["exit"]["code"] == 0xC0000005


def test_program_with_a_missing_dll(host: Host) -> None:
    program = host.put("static.exe")
    host.release("launcher_raw")
    (host.zluda / "nvcuda.dll").unlink()
    incomplete = host.run(program)
    assert incomplete.code == 125
    assert "nvcuda.dll of ZLUDA v6 is missing" in incomplete.err
    plugin = host.put("plugin.dll")
    host.release("launcher_raw")
    (host.zluda / "cublas64_12.dll").rename(host.zluda / "away.dll")
    assert plugin.exists()
    missing = host.run(host.put("static.exe"), strategy="path", hip_dir=host.hip)
    assert missing.code == 0, "path needs nvcuda.dll only"


def test_missing_dll_at_start_is_named(host: Host) -> None:
    program = host.app / "needs.exe"
    program.write_bytes((host.made / "static.exe").read_bytes().replace(b"nvcuda.dll", b"nvnone.dll"))
    result = host.run(program, strategy="path", check=host.on_windows, anyway=True)
    assert result.report["outcome"] == "failed", result.err
    assert result.report["grade"] == "detected"
    if host.on_windows:
        assert result.code == 0xC0000135
        assert result.report["first_error"]["rule"] == "exit-loader"
        assert "nvnone.dll" in result.report["first_error"]["meaning"]
    else:
        assert result.report["first_error"]["rule"] == "loader-wine-missing"
        assert "nvnone.dll" in result.report["first_error"]["text"]


def test_hanging_program_and_its_child_are_ended(host: Host) -> None:
    program = host.put("hang.exe")
    unique = host.app / f"hang{hashlib.sha256(str(host.root).encode()).hexdigest()[:8]}.exe"
    program.rename(unique)
    result = host.run(unique, strategy="path", timeout=3)
    assert result.report["exit"]["timed_out"] is True
    assert result.report["first_error"]["rule"] == "timeout"
    assert result.code == 124
    left = [entry.parent.name for entry in Path("/proc").glob("[0-9]*/cmdline") if unique.name.encode() in _read(entry)]
    assert left == []


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_python_program(host: Host) -> None:
    script = host.app / "train.py"
    script.write_text(
        "import sys\nprint('start', flush=True)\ndef step():\n"
        "    raise RuntimeError('CUDA error: CUBLAS_STATUS_NOT_SUPPORTED')\n"
        "step()\n"
    )
    python = host.windows.root / "python.exe"
    result = host.run(python, host.windows.windows_path(script))
    assert result.code == 1
    first = result.report["first_error"]
    assert (first["rule"], first["stream"]) == ("cublas-status", "stderr"), result.err
    assert first["text"] == "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_SUPPORTED"
    assert result.report["grade"] == "safe-refusal"


def test_flood_on_both_pipes_does_not_block_and_is_bounded(host: Host) -> None:
    blocks = 2500 if host.on_windows else 25600  # 100 MB; Wine's pipes between its own programs are slow
    result = host.run(host.put("flood.exe"), str(blocks), strategy="path", quiet=True)
    assert result.code == 0, result.err
    for stream in ("stdout", "stderr"):
        part = result.report[stream]
        assert part["bytes"] == blocks * 4096
        assert part["kept"] <= 32 * 1024 * 1024
        assert sum(map(len, part["tail"])) < 1024 * 1024
