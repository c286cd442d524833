"""The look at a script's bytes against its syntax tree: it may promise too much, never too little."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import corpus
from zcheck.cli.cache_store import FactCache
from zcheck.cli.content_scripts import ScriptReader
from zcheck.discover import discover
from zcheck.model.workload import ScriptMarks
from zcheck.parse.pyscript import read_script
from zcheck.parse.pyscript_marks import read_marks

ASKED = frozenset({"torch", "cupy", "re", "os", "numpy", "typing", "numba", "collections"})


def promised(data: bytes, path: str = "a.py") -> None:
    """What the tree shows, the bytes let expect."""
    facts, marks = read_script(data, path), read_marks(data, ASKED)
    assert {name.partition(".")[0] for name in facts.imports} & ASKED <= marks.packages, path
    assert marks.effects or not (facts.libraries or facts.environment), path


@pytest.mark.parametrize(
    "text",
    [
        "import torch",
        "import sys, torch as t, cupy",
        "import sys, \\\n    torch",
        "import sys, \\\r\n  cupy, \\\r\n  torch",
        "x = 1; import\ttorch",
        "if x: from torch.nn import Conv2d",
        "from torch import (\n  nn,\n  cuda,\n)",
        "from\\\n  torch\\\n  import nn",
        "try:\n\timport torch.nn.functional as F\nexcept ImportError: pass",
        "'''import nothing'''; import cupy",
        "\x0cimport torch",
        "# coding: latin-1\nimport torch  # \xe9",
        "import os\ros.environ['A'] = 'b'",
        "from os import environ as e\ne['A'] = 'b'",
        "from ctypes import CDLL as load\nload('cublas64_12.dll')",
        "import ctypes\nctypes.windll.LoadLibrary('A.DLL')",
        "import glob\nglob.glob('lib/*.PYD')",
        "import \uff54orch\ntorch.nn.Conv2d(1, 1, 1)",
        "# coding: utf-7\nimport +AHQ-orch",
        "import ctypes\nctypes.CDLL('cufft64' '_11.d' 'll')",
        "import ctypes\nctypes.CDLL('nvcuda\\x2edll')",
        "import glob\nglob.glob('*.d' 'll')",
        "import os\nos.\uff45nviron['A'] = 'b'",
    ],
)
def test_each_way_to_write_it_is_seen(text: str) -> None:
    data = text.encode("latin-1" if "latin-1" in text else "utf-8")
    facts = read_script(data, "a.py")
    assert facts.imports, "the case says nothing"
    promised(data)


@pytest.mark.parametrize(
    "text", ["x = torch", "import sys\ntorch = 1", "from x import (\n torch)", "import torchy, mytorch"]
)
def test_a_name_that_no_import_has_is_none(text: str) -> None:
    assert read_marks(text.encode(), ASKED).packages == frozenset()


def test_nothing_asked_is_nothing_found() -> None:
    assert read_marks(b"import torch", ()) == ScriptMarks()


_PIECES = st.sampled_from(
    ["import ", "from ", "torch", "cupy", "sys", ".", ",", " as x", "\\\n", "\\\r\n", "\n", "\r", ";", " ", "\t", "(",
     ")", "x=1", "'", '"""', "#", "if 1:", "nn", "import torch", "from cupy import y",
     "os.environ['a']='b'", "import os"]
)  # fmt: skip


@given(st.lists(_PIECES, max_size=25))
def test_texts_of_such_pieces_keep_the_promise(pieces: list[str]) -> None:
    promised("".join(pieces).encode())


@pytest.mark.corpus
@pytest.mark.parametrize("package", ["numpy", "bitsandbytes", "openmm", "ctranslate2", "llvmlite"])
def test_real_packages_keep_the_promise(package: str) -> None:
    for path in corpus.path(package).rglob("*.py"):
        promised(path.read_bytes(), str(path))


def test_the_standard_library_keeps_the_promise() -> None:
    for path in sorted(Path(os.__file__).parent.glob("*.py")):
        promised(path.read_bytes(), str(path))


# --- which scripts are read ------------------------------------------------------------------------------------------


def folder_of(tmp_path: Path, **texts: str) -> ScriptReader:
    (tmp_path / "app.exe").write_bytes(b"MZ")
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    return ScriptReader(discover(tmp_path / "app.exe"), [], FactCache(None))


def read_of(reader: ScriptReader, tmp_path: Path) -> list[str]:
    return [facts.path for facts in reader.telling("app.exe", discover(tmp_path / "app.exe").files)]


def test_without_a_gpu_package_only_scripts_that_load_or_set_are_read(tmp_path: Path) -> None:
    reader = folder_of(
        tmp_path, a="import sys\n", b="import os\nos.environ['X'] = '1'\n", c="'''from torch import nn'''\nimport re\n"
    )
    assert read_of(reader, tmp_path) == ["b.py"]


def test_one_import_of_a_gpu_package_has_them_all_read(tmp_path: Path) -> None:
    reader = folder_of(tmp_path, a="import sys\n", b="import c\n", c="def f():\n    import torch\n")
    assert read_of(reader, tmp_path) == ["a.py", "b.py", "c.py"]


def test_what_a_program_imports_is_told_from_a_program_without_imports(tmp_path: Path) -> None:
    files = discover(tmp_path).files if any(tmp_path.iterdir()) else ()
    assert folder_of(tmp_path).imported("app.exe", files, ["torch"]) is None
    reader = folder_of(tmp_path, a="import sys\n", b="from torch import nn\n")
    files = discover(tmp_path / "app.exe").files
    assert reader.imported("app.exe", files, ["torch", "cupy"]) == {"torch": "b.py"}
    assert reader.imported("app.exe", files, ["cupy"]) == {}


def test_a_second_run_takes_the_tree_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder_of(tmp_path, a="import torch\n", b="import torch\nx = torch.nn.Conv2d\n")
    bundle = discover(tmp_path / "app.exe")
    with FactCache(tmp_path / "facts.sqlite") as cache:
        first = ScriptReader(bundle, [], cache).telling("app.exe", bundle.files)
    monkeypatch.setattr("zcheck.parse.pyscript.read_script", lambda *_: pytest.fail("read again"))
    with FactCache(tmp_path / "facts.sqlite") as cache:
        assert ScriptReader(bundle, [], cache).telling("app.exe", bundle.files) == first
        assert [facts.path for facts in first] == ["a.py", "b.py"]
        (tmp_path / "b.py").write_text("import torch\n")
        with pytest.raises(pytest.fail.Exception):
            ScriptReader(bundle, [], cache).telling("app.exe", bundle.files)


def test_what_failed_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder_of(tmp_path, a="import torch\n")
    bundle = discover(tmp_path / "app.exe")

    def no_memory(*_: object, **__: object) -> None:
        raise MemoryError

    with FactCache(tmp_path / "facts.sqlite") as cache:
        with monkeypatch.context() as patch:
            patch.setattr("zcheck.parse.pyscript.ast.parse", no_memory)
            assert ScriptReader(bundle, [], cache).telling("app.exe", bundle.files) == []
        (facts,) = ScriptReader(bundle, [], cache).telling("app.exe", bundle.files)
        assert facts.imports == ("torch",)
