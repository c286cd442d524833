"""Plans follow from facts alone: strategy, command, environment, files, and every reason to refuse."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zcheck.launch import environment, quoting
from zcheck.launch.demand import Demand, InBundle, Wanted, demand
from zcheck.launch.plan import Request, Situation, System, make_plan
from zcheck.model.launch import (
    Folder,
    FolderFile,
    HipInstallation,
    HipNeed,
    Plan,
    Program,
    ReleaseFile,
    ReleaseFiles,
)
from zcheck.model.report import EdgeReport, ModuleReport, Report

A, B, C = "a" * 64, "b" * 64, "c" * 64
RELEASE = ReleaseFiles(
    "v6",
    quoting="raw",
    files=(ReleaseFile("zluda.exe"), ReleaseFile("nvcuda.dll"), ReleaseFile("cublas64_12.dll")),
    injected=("nvcuda.dll", "cublas64_12.dll", "cudnn64_9.dll"),
    hip_needs=(
        HipNeed("cublas", ("cublas64_12.dll",), (("rocblas.dll",), ("hipblaslt.dll", "libhipblaslt.dll"))),
        HipNeed("cudnn9", ("cudnn64_9.dll",), (("MIOpen.dll",),)),
    ),
)
ZLUDA = Folder(
    "/z",
    tuple(FolderFile(name, 10, digest, "x64") for name, digest in
          (("zluda.exe", A), ("nvcuda.dll", B), ("cublas64_12.dll", C), ("cudnn64_9.dll", A))),
)  # fmt: skip
HIP = HipInstallation(
    "/hip/6.4",
    "6.4",
    ("amdhip64_6.dll", "rocblas.dll", "hipblaslt.dll"),
    rocblas_library="/hip/6.4/bin/rocblas/library",
)
PROGRAM = Program("/app/app.exe", "app.exe", A, "pe", "x64")
POSIX = System(False, "/usr/bin/wine64", {"PATH": "/usr/bin"})
DIRECT = Demand("/app", "app.exe", direct=True, wanted=(Wanted("nvcuda.dll", ("import",), ("app.exe",)),))
CUDART = msgspec.structs.replace(DIRECT, direct=False, cudart="app.exe uses cudart64_12.dll")


def situation(**changes: Any) -> Situation:
    base: dict[str, Any] = {
        "program": PROGRAM, "release": RELEASE, "zluda": ZLUDA, "hip": HIP, "system": POSIX, "demand": DIRECT,
        "places": (Folder("/app"),), "stack": "v6/zluda-exe/6.4",
    }  # fmt: skip
    return Situation(**(base | changes))


def keys(plan: Plan) -> set[str]:
    return {refusal.key for refusal in plan.refusals}


def test_default_is_the_releases_own_launcher() -> None:
    plan = make_plan(situation(demand=CUDART), Request(arguments=("a b",)))
    assert (plan.strategy, keys(plan)) == ("zluda-exe", set())
    assert plan.command == ("/usr/bin/wine64", "Z:\\z\\zluda.exe", "--", "Z:\\app\\app.exe", '"a b"')
    assert any("System32 only" in why for why in plan.why)
    assert plan.stage == ()


def test_windows_command_and_environment() -> None:
    system = System(True, variables={"Path": r"C:\Windows;C:\z", "HIP_PATH": "C:\\old"})
    program = Program(r"C:\Program Files\a\app.exe", "app.exe", A, "pe", "x64")
    hip = HipInstallation(r"C:\ROCm\6.4", "6.4", HIP.files, rocblas_library=r"C:\ROCm\6.4\bin\rocblas\library")
    zluda = msgspec.structs.replace(ZLUDA, path=r"C:\z")
    plan = make_plan(
        situation(system=system, program=program, hip=hip, zluda=zluda), Request(gpu_index=1, zluda_cc="8.6")
    )
    assert plan.command == (r"C:\z\zluda.exe", "--", r'"C:\Program Files\a\app.exe"')
    assert plan.cwd == r"C:\Program Files\a"
    changed = environment.apply(system.variables, plan.environment, ignore_case=True)
    assert changed["PATH"] == r"C:\z;C:\ROCm\6.4\bin;C:\Windows"
    assert "Path" not in changed
    assert changed["HIP_PATH"] == r"C:\ROCm\6.4"
    assert changed["HIP_VISIBLE_DEVICES"] == "1"
    assert changed["ZLUDA_CC"] == "8.6"
    assert changed["ROCBLAS_TENSILE_LIBPATH"].endswith("library")
    assert "HIPBLASLT_TENSILE_LIBPATH" not in changed, "no folder, no variable"
    assert system.variables["Path"] == r"C:\Windows;C:\z", "ours is untouched"


def test_zluda_cc_only_on_request_and_where_it_is_read() -> None:
    assert not any(c.name == "ZLUDA_CC" for c in make_plan(situation(), Request()).environment)
    old = msgspec.structs.replace(RELEASE, zluda_cc=False)
    plan = make_plan(situation(release=old), Request(zluda_cc="8.6"))
    assert not any(c.name == "ZLUDA_CC" for c in plan.environment)
    assert any("does not read ZLUDA_CC" in w for w in plan.warnings)


@pytest.mark.parametrize("strategy", ["path", "stage"])
def test_cudart_is_refused_where_it_cannot_be_served(strategy: Any) -> None:
    assert "cudart" in keys(make_plan(situation(demand=CUDART), Request(strategy=strategy)))


def test_without_launcher_path_then_stage() -> None:
    bare = msgspec.structs.replace(RELEASE, launcher="")
    assert make_plan(situation(release=bare), Request()).strategy == "path"
    own = msgspec.structs.replace(DIRECT, bundle=(InBundle("nvcuda.dll", "nvcuda.dll", 3, C),))
    place = Folder("/app", (FolderFile("nvcuda.dll", 3, C, "x64"),))
    plan = make_plan(situation(release=bare, demand=own, places=(place,)), Request())
    assert plan.strategy == "stage"
    assert [(f.target, f.original, f.sha256) for f in plan.stage] == [("/app/nvcuda.dll", C, B)]


def test_unknown_and_changed_files_in_place_are_refused() -> None:
    place = Folder("/app", (FolderFile("nvcuda.dll", 3, C, "x64"),))
    assert "unknown-file" in keys(make_plan(situation(places=(place,)), Request(strategy="stage")))
    own = msgspec.structs.replace(DIRECT, bundle=(InBundle("nvcuda.dll", "nvcuda.dll", 3, A),))
    assert "unknown-file" in keys(make_plan(situation(demand=own, places=(place,)), Request(strategy="stage")))


def test_zludas_own_file_already_in_place_is_left_alone() -> None:
    place = Folder("/app", (FolderFile("nvcuda.dll", 3, B, "x64"),))
    plan = make_plan(situation(places=(place,)), Request(strategy="stage"))
    assert (plan.stage, keys(plan)) == ((), set())


def test_the_name_on_disk_is_kept() -> None:
    own = msgspec.structs.replace(DIRECT, bundle=(InBundle("NVCUDA.DLL", "NVCUDA.DLL", 3, C),))
    place = Folder("/app", (FolderFile("NVCUDA.DLL", 3, C, "x64"),))
    plan = make_plan(situation(demand=own, places=(place,)), Request(strategy="stage"))
    assert plan.stage[0].target == "/app/NVCUDA.DLL"


def test_a_module_elsewhere_gets_a_copy_in_its_own_folder_too() -> None:
    wanted = Demand("/app", "app.exe", wanted=(Wanted("cublas64_12.dll", ("import",), ("lib/x.dll",)),))
    plan = make_plan(situation(demand=wanted, places=(Folder("/app"), Folder("/app/lib"))), Request(strategy="stage"))
    assert [f.target for f in plan.stage] == ["/app/cublas64_12.dll", "/app/lib/cublas64_12.dll"]


@pytest.mark.parametrize(
    ("program", "key"),
    [
        ({"machine": "x86"}, "machine"),
        ({"machine": "arm64"}, "machine"),
        ({"elevated": True}, "elevated"),
        ({"packaged": True}, "packaged"),
        ({"batch": True}, "batch"),
        ({"anti_cheat": ("BattlEye (BEService.exe)",)}, "anti-cheat"),
    ],
)
def test_programs_that_are_refused_even_with_anyway(program: dict[str, Any], key: str) -> None:
    changed = msgspec.structs.replace(PROGRAM, **program)
    assert key in keys(make_plan(situation(program=changed), Request(anyway=True)))


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"verdict": "blocked"}, "blocked"),
        ({"hip": HipInstallation("/hip")}, "hip-runtime"),
        (
            {
                "hip": msgspec.structs.replace(HIP, files=("amdhip64_6.dll", "hipblaslt.dll")),
                "demand": Demand("/app", "app.exe", wanted=(Wanted("cublas64_12.dll", ("import",), ("app.exe",)),)),
            },
            "hip-library",
        ),
        ({"hip": msgspec.structs.replace(HIP, gpu="gfx1103", tensile=("gfx1100",))}, "hip-tensile"),
    ],
)
def test_anyway_lifts_what_the_user_may_decide_and_warns(changes: dict[str, Any], key: str) -> None:
    assert keys(make_plan(situation(**changes), Request())) == {key}
    plan = make_plan(situation(**changes), Request(anyway=True))
    assert keys(plan) == set()
    assert any(warning.startswith("--anyway") for warning in plan.warnings)


def test_missing_miopen_is_a_warning_for_a_program_that_may_never_convolve() -> None:
    wanted = Demand("/app", "app.exe", wanted=(Wanted("cudnn64_9.dll", ("import",), ("torch.dll",)),))
    plan = make_plan(situation(demand=wanted), Request())
    assert keys(plan) == set()
    assert any("MIOpen" in warning for warning in plan.warnings)


def test_features_of_a_gpu_name_do_not_hide_its_kernels() -> None:
    hip = msgspec.structs.replace(HIP, gpu="gfx90a:sramecc+:xnack-", tensile=("gfx90a",))
    assert keys(make_plan(situation(hip=hip), Request())) == set()


def test_zluda_folder_states() -> None:
    gone = Folder("/z", ZLUDA.files[:2])
    assert "zluda-incomplete" in keys(make_plan(situation(zluda=gone), Request()))
    assert "no-zluda" in keys(make_plan(situation(zluda=Folder("/z")), Request()))
    known = tuple(ReleaseFile(f.name, h) for f, h in zip(RELEASE.files, (A, B, C), strict=True))
    good = msgspec.structs.replace(RELEASE, files=known)
    assert make_plan(situation(release=good), Request()).release_hashes == "verified"
    bad = msgspec.structs.replace(RELEASE, files=(ReleaseFile("nvcuda.dll", A),))
    assert "zluda-wrong-hash" in keys(make_plan(situation(release=bad), Request()))


def test_a_trace_needs_the_trace_files() -> None:
    assert "zluda-incomplete" in keys(make_plan(situation(), Request(trace=True)))
    traced = tuple(FolderFile(f"trace/{name}", 1, A, "x64") for name in RELEASE.injected)
    plan = make_plan(
        situation(zluda=msgspec.structs.replace(ZLUDA, files=(*ZLUDA.files, *traced))), Request(trace=True)
    )
    assert keys(plan) == set()
    assert plan.command[2:4] == ("--zluda-trace", "--")


def test_unknown_quoting_is_refused_only_where_it_matters() -> None:
    unknown = msgspec.structs.replace(RELEASE, quoting="unknown")
    assert keys(make_plan(situation(release=unknown), Request(arguments=("plain",)))) == set()
    assert "quoting" in keys(make_plan(situation(release=unknown), Request(arguments=("a b",))))


def test_preload_has_to_be_allowed_and_needs_windows() -> None:
    assert "inject" in keys(make_plan(situation(), Request(strategy="preload")))
    assert "strategy" in keys(make_plan(situation(), Request(strategy="preload", allow_inject=True)))


def test_native_program_gets_ld_library_path() -> None:
    program = Program("/app/app", "app", A, "native")
    zluda = Folder("/z", (FolderFile("libcuda.so", 1, A),))
    release = msgspec.structs.replace(RELEASE, files=(ReleaseFile("libcuda.so"),))
    system = System(False, variables={"LD_LIBRARY_PATH": "/x:/z"})
    plan = make_plan(situation(program=program, zluda=zluda, release=release, system=system), Request())
    assert (plan.strategy, plan.command) == ("path", ("/app/app",))
    assert [(c.name, c.value) for c in plan.environment] == [("LD_LIBRARY_PATH", "/z:/x")]


def test_plan_survives_json() -> None:
    plan = make_plan(situation(demand=CUDART, verdict="blocked"), Request())
    assert msgspec.json.decode(msgspec.json.encode(plan), type=Plan) == plan


def test_demand_from_a_report() -> None:
    def module(name: str, path: str | None, kind: str) -> ModuleReport:
        return ModuleReport(name, path, "x64", 5, "", "", {}, kind, "start", None)

    report = Report(
        schema=1, zcheck="0", database="d", target="app.exe", entries=("app.exe",), stacks=(),
        modules=(module("app.exe", "app.exe", "entry"), module("x.dll", "lib/x.dll", "module"),
                 module("kernel32.dll", None, "system")),
        edges=(EdgeReport("x.dll", "cudart64_12.dll", "import", (), "", "high"),
               EdgeReport("app.exe", "nvcuda.dll", "delay", (), "", "high")),
        functions=(), device_code=(), host=None, skipped=(),
    )  # fmt: skip
    found = demand(report, "/app")
    assert found.cudart == "lib/x.dll uses cudart64_12.dll"
    assert found.direct
    assert [file.path for file in found.bundle] == ["app.exe", "lib/x.dll"]


def _c_runtime(line: str) -> list[str]:
    """Splits a command line as Microsoft describes it (the program's own name apart)."""
    arguments: list[str] = []
    current: list[str] | None = None
    quoted, at = False, 0
    while at < len(line):
        if line[at] in " \t" and not quoted:
            if current is not None:
                arguments.append("".join(current))
                current = None
            at += 1
            continue
        current = [] if current is None else current
        slashes = 0
        while at < len(line) and line[at] == "\\":
            slashes, at = slashes + 1, at + 1
        if at < len(line) and line[at] == '"':
            current.append("\\" * (slashes // 2))
            if slashes % 2:
                current.append('"')
            elif quoted and line[at + 1 : at + 2] == '"':
                current.append('"')
                at += 1
            else:
                quoted = not quoted
            at += 1
        else:
            current.append("\\" * slashes)
            if at < len(line) and not (line[at] in " \t" and not quoted):
                current.append(line[at])
                at += 1
    if current is not None:
        arguments.append("".join(current))
    return arguments


WORDS = st.lists(st.text(alphabet=' "\\\tabä=', max_size=8), max_size=5)


@given(WORDS)
def test_quoting_survives_the_c_runtime(words: list[str]) -> None:
    assert _c_runtime(quoting.command_line(words)) == words


@given(WORDS)
def test_quoting_survives_a_launcher_of_either_kind(words: list[str]) -> None:
    raw = quoting.for_launcher("C:\\a b\\x.exe", words, "raw")
    assert raw is not None
    received = _c_runtime(quoting.command_line(raw))
    assert _c_runtime(" ".join(received))[1:] == words, "a joining launcher"
    right = quoting.for_launcher("C:\\a b\\x.exe", words, "quoted")
    assert right is not None
    received = _c_runtime(quoting.command_line(right))
    assert _c_runtime(quoting.command_line(received))[1:] == words, "a quoting launcher"


@given(st.lists(st.sampled_from(["/a", "/b", "/B", "/c/"])), st.lists(st.sampled_from(["/a", "/b", "/c", ""])))
def test_search_paths_grow_no_twins(first: list[str], old: list[str]) -> None:
    once = environment.prepend(first, ":".join(old), ":", ignore_case=False)
    assert environment.prepend(first, once, ":", ignore_case=False) == once
