"""``zcheck db import`` on small checkouts made here: what the sources declare is what comes out."""

from __future__ import annotations

import csv
import importlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from zcheck.cli.db import app
from zcheck.coverage.import_hipify import read_functions, version
from zcheck.coverage.import_zluda import intervals, read_release
from zcheck.coverage.importer import import_zluda
from zcheck.errors import DataError, InputError, UsageError

# The shapes that upstream uses, in names of its own: a declaration file, macros, one call with lists.
DECLARATIONS = """
extern "system" {
    #[must_use]
    fn cuInit(flags: u32) -> CUresult;
    fn cuCtxSetFlags(flags: u32) -> CUresult;
    fn cuMemcpy2D_v2(copy: *const u8) -> CUresult;
    fn cuMemAlloc_v2(size: usize) -> CUresult;
    fn cuProfilerStart() -> CUresult;
    fn cuStreamCreate(stream: *mut u8) -> CUresult;
}
"""
CALLER = """
macro_rules! unimplemented { () => { crate::r#impl::unimplemented() } }
macro_rules! works { () => { crate::r#impl::call() } }
macro_rules! twice { ($m:ident) => { cuda_macros::cuda_function_declarations!($m, works <= [cuStreamCreate]); } }
cuda_macros::cuda_function_declarations!(
    unimplemented,
    works
        <= [
            cuInit, // a comment with cuStreamCreate in it
            cuCtxSetFlags,
            cuMemcpy2D_v2,
            cuMemAlloc_v2,
            cuProfilerStart,
            cuNoSuchFunction,
        ]
);
"""
BODIES = {
    "zluda/src/impl/driver.rs": "pub(crate) fn init(flags: u32) -> CUresult { start(flags)?; Ok(()) }\n"
    "pub(crate) fn profiler_start() -> CUresult { CUresult::SUCCESS }",
    "zluda/src/impl/context.rs": "pub(crate) fn set_flags(_flags: [u32; 2]) -> CUresult {\n // nothing yet\n Ok(())\n}",
    "zluda/src/impl/memory.rs": "pub(crate) unsafe fn alloc_v2() -> CUresult { CUresult::ERROR_NOT_SUPPORTED }\n"
    "pub(crate) fn copy_2d_v2(copy: &Copy) -> CUresult { todo!() }",
    "zluda/src/impl/mod.rs": "fn set_flags() { work() }",
}
EXPECTED = {
    "cuInit": "implemented",
    "cuCtxSetFlags": "no-op",
    "cuMemcpy2D_v2": "returns-error",
    "cuMemAlloc_v2": "returns-error",
    "cuProfilerStart": "no-op",
    "cuStreamCreate": "returns-error",
}
TREE = {"cuda_macros/src/cuda.rs": DECLARATIONS, "zluda/src/lib.rs": CALLER, **BODIES}


def test_states_come_from_lists_and_bodies() -> None:
    def files(folder: str) -> list[str]:
        return sorted(path for path in TREE if path.startswith(folder))

    assert read_release(TREE.get, files) == {"nvcuda": EXPECTED}
    assert read_release({}.get, lambda _: []) == {}


def test_cudnn_versions_share_one_list() -> None:
    tree = {
        "cuda_macros/src/cudnn8.rs": "fn cudnnCreate(h: H) -> S; fn cudnnGetVersion() -> usize;",
        "cuda_macros/src/cudnn9.rs": "fn cudnnCreate(h: H) -> S; fn cudnnGetVersion() -> usize; fn cudnnNew() -> S;",
        "zluda_dnn8/src/lib.rs": "cuda_macros::cudnn8_function_declarations! { export }",
        "zluda_dnn/src/lib.rs": "macro_rules! refuse { () => { unimplemented() } } macro_rules! old { () => { a() } }"
        " macro_rules! new { () => { b() } } macro_rules! works { () => { c() } }"
        " macro_rules! dual_function_declarations { ($d:ident) => { cudnn8_function_declarations!($d) } }"
        " dual_function_declarations! { refuse, (old|new) <= [cudnnGetVersion], works <= [cudnnCreate] }",
        "zluda_dnn/src/impl.rs": "pub(crate) fn create(h: &mut H) -> S { make(h) } pub fn get_version() -> usize { 9 }",
    }
    found = read_release(tree.get, lambda _: [])
    assert found["cudnn8"] == {"cudnnCreate": "implemented", "cudnnGetVersion": "implemented"}
    assert found["cudnn9"] == {**found["cudnn8"], "cudnnNew": "returns-error"}


def test_intervals_close_where_a_state_ends() -> None:
    states = {
        "a": {"l": {"f": "implemented", "g": "no-op"}},
        "b": {"l": {"f": "implemented"}},
        "c": {"l": {"f": "no-op", "g": "no-op"}},
    }
    assert intervals(["a", "b", "c"], states) == [
        ("l", "f", "implemented", "a", "b"),
        ("l", "f", "no-op", "c", ""),
        ("l", "g", "no-op", "a", "a"),
        ("l", "g", "no-op", "c", ""),
    ]


def _git(folder: Path, *arguments: str) -> str:
    identity = {
        "GIT_AUTHOR_NAME": "t",
        "GIT_AUTHOR_EMAIL": "t@t",
        "GIT_COMMITTER_NAME": "t",
        "GIT_COMMITTER_EMAIL": "t@t",
    }
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **identity},
    )
    return done.stdout.strip()


def _commit(folder: Path, files: dict[str, str], tag: str) -> str:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    _git(folder, "add", "-A")
    _git(folder, "commit", "-q", "-m", "a step")
    _git(folder, "tag", tag)
    return _git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    folder.mkdir()
    _git(folder, "init", "-q")
    return folder


def test_a_checkout_makes_the_table_again(repository: Path, tmp_path: Path) -> None:
    commits = {"v3": _commit(repository, {"README": "v3"}, "v3"), "v4": _commit(repository, TREE, "v4")}
    with_stream = CALLER.replace("cuInit, //", "cuStreamCreate, cuInit, //")
    commits["v5"] = _commit(repository, {"zluda/src/lib.rs": with_stream}, "v5")
    _commit(repository, {"README": "newer"}, "v6-preview.1")
    tables = tmp_path / "tables" / "zluda"
    tables.mkdir(parents=True)
    releases = "order,tag,repository,commit,date,main,read\n"
    releases += "".join(f"{n},{tag},r/z,{commit},2024,{tag},yes\n" for n, (tag, commit) in enumerate(commits.items()))
    (tables / "releases.csv").write_text(releases + "1000,fork,r/f,c,2024,fork,yes\n")
    (tables / "functions.csv").write_text(
        "library,name,state,since,until\n"
        "nvapi,nvapi_QueryInterface,implemented,v5,\n"
        "nvcuda,cuInit,implemented,v3,\n"
        "nvcuda,cuInit,implemented,fork,fork\n"
        "nvcuda,cuGone,no-op,v3,v4\n"
    )
    made = import_zluda(repository, tables.parent)
    rows = {
        (r["library"], r["name"], r["since"]): (r["state"], r["until"])
        for r in csv.DictReader(made.texts["zluda/functions.csv"].splitlines())
    }
    assert rows["nvcuda", "cuInit", "v3"] == ("implemented", "")  # v3 is carried over and goes on
    assert rows["nvcuda", "cuInit", "fork"] == ("implemented", "fork")
    assert rows["nvapi", "nvapi_QueryInterface", "v5"] == ("implemented", "")
    assert rows["nvcuda", "cuStreamCreate", "v4"] == ("returns-error", "v4")
    assert rows["nvcuda", "cuStreamCreate", "v5"] == ("implemented", "")
    assert rows["nvcuda", "cuGone", "v3"] == ("no-op", "v3")
    assert (made.revisions, made.unread) == (["v4", "v5"], ["v6-preview.1"])
    assert ("v4 nvcuda", "cuGone", "not exported", "no-op") in made.different
    assert made.same == 2

    done = CliRunner().invoke(app, ["import", "zluda", str(repository), "--tables", str(tables.parent), "--write"])
    assert "written: zluda/functions.csv" in done.stdout
    again = CliRunner().invoke(app, ["import", "zluda", str(repository), "--tables", str(tables.parent), "--write"])
    assert "0 differ" in again.stdout and "nothing to write" in again.stdout
    assert not list(tables.glob("*.tmp"))


def test_a_moved_tag_and_a_wrong_folder_are_told(repository: Path, tables: Path, tmp_path: Path) -> None:
    _commit(repository, TREE, "v4")
    with pytest.raises(DataError, match="the tables were read at"):
        import_zluda(repository, tables)
    with pytest.raises(InputError, match="no Git checkout"):
        import_zluda(tmp_path, tables)
    _git(repository, "tag", "-d", "v4")
    with pytest.raises(InputError, match="none of the release tags"):
        import_zluda(repository, tables)


STATISTICS = "enum hipVersions { HIP_7000 = 7000, HIP_LATEST = HIP_7000, };"
MAPS = """
// {"cudaCommented", {"hipCommented", "", CONV_MEMORY, API_RUNTIME, SEC::MEMORY}},
const std::map<llvm::StringRef, hipCounter> CUDA_RUNTIME_FUNCTION_MAP {
  {"cudaMalloc",    {"hipMalloc",    "", CONV_MEMORY, API_RUNTIME, SEC::MEMORY}},
  {"cudaOld",       {"hipOld",       "", CONV_MEMORY, API_RUNTIME, SEC::MEMORY, HIP_DEPRECATED | CUDA_REMOVED}},
  {"cudaNone",      {"hipNone",      "", CONV_MEMORY, API_RUNTIME, SEC::MEMORY, UNSUPPORTED}},
  {"cudaTry",       {"hipTry",       "roc_try", CONV_MEMORY, API_RUNTIME, SEC::MEMORY, HIP_EXPERIMENTAL}},
};
const std::map<llvm::StringRef, cudaAPIversions> CUDA_RUNTIME_FUNCTION_VER_MAP {
  {"cudaOld", {CUDA_75, CUDA_118, CUDA_120}},
};
const std::map<llvm::StringRef, hipAPIversions> HIP_RUNTIME_FUNCTION_VER_MAP {
  {"hipMalloc", {HIP_1050, HIP_0, HIP_0}},
  {"hipOld",    {HIP_1060, HIP_6020, HIP_0}},
  {"hipTry",    {HIP_7000, HIP_0, HIP_0, HIP_LATEST}},
  {"roc_try",   {HIP_6040, HIP_0, HIP_0}},
};
"""


def test_hipify_maps() -> None:
    rows = {row[0]: row for row in read_functions([MAPS], STATISTICS)}
    assert list(rows) == ["cudaMalloc", "cudaNone", "cudaOld", "cudaTry"]
    assert rows["cudaMalloc"][3:8] == ("hipMalloc", "", "supported", "1.5.0", "")
    assert rows["cudaNone"][3:6] == ("", "", "unsupported")
    assert rows["cudaOld"][5:12] == ("deprecated", "1.6.0", "", "7.5", "11.8", "12.0", "yes")
    assert rows["cudaTry"][5:7] == ("experimental", "7.0.0")
    assert rows["cudaTry"][11:14] == ("no", "supported", "6.4.0")


@pytest.mark.parametrize(
    ("enumerator", "text"),
    [
        ("HIP_6044", "6.4.4"),
        ("HIP_3100", "3.10.0"),
        ("HIP_0", ""),
        ("CUDA_118", "11.8"),
        ("CUDA_75", "7.5"),
        ("CUDNN_50", "cudnn 5.0.0"),
        ("CUDNN_897", "cudnn 8.9.7"),
        ("CUDNN_9110", "cudnn 9.11.0"),
        ("CUTENSOR_1700", "cutensor 1.7.0.0"),
    ],
)
def test_version_enumerators(enumerator: str, text: str) -> None:
    assert version(enumerator) == text


def test_hipify_import_notes_the_commit(repository: Path, tables: Path, tmp_path: Path) -> None:
    commit = _commit(
        repository, {"src/CUDA2HIP_Runtime_API_functions.cpp": MAPS, "src/Statistics.h": STATISTICS}, "rocm"
    )
    copy = shutil.copytree(tables, tmp_path / "tables")
    done = CliRunner().invoke(app, ["import", "hipify", str(repository), "--tables", str(copy), "--write"])
    assert done.exit_code == 0, done.output
    assert "written: hip/hipify.csv, sources.csv, hip/sources.csv" in done.stdout
    assert commit in (copy / "sources.csv").read_text() and commit in (copy / "hip/sources.csv").read_text()
    assert len((copy / "hip/hipify.csv").read_text().splitlines()) == 5


def test_import_of_a_wheel_asks_for_tables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    locate = importlib.import_module("zcheck.coverage.locate")
    monkeypatch.setattr(locate, "locate", lambda what: locate.Location(tmp_path / "coverage.sqlite", True))
    done = CliRunner().invoke(app, ["import", "zluda", str(tmp_path)])
    assert isinstance(done.exception, UsageError)
