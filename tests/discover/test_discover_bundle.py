"""Bundles: which files belong to what the user names, which programs are judged, what was not looked at."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from zcheck.discover import bundle as bundle_module
from zcheck.discover import discover
from zcheck.errors import InputError, UsageError
from zcheck.model.base import Limits
from zcheck.model.bundle import Bundle


def make(root: Path, names: Iterable[str]) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"MZ")


def paths(bundle: Bundle, kind: str = "pe") -> list[str]:
    assert [file.path for file in bundle.files] == sorted({file.path for file in bundle.files})
    assert msgspec.json.decode(msgspec.json.encode(bundle), type=Bundle) == bundle
    return [file.path for file in bundle.files if file.kind == kind]


def test_a_program_brings_its_folder_tree(tmp_path: Path) -> None:
    make(
        tmp_path, ["app/app.exe", "app/a.dll", "app/plugins/Deep/p.DLL", "app/model.onnx", "app/run.py", "other/b.dll"]
    )
    make(tmp_path, ["app/k.ptx", "app/data.zip", "app/picture.png", "app/app.deps.json", "app/__pycache__/x.pyd"])
    bundle = discover(tmp_path / "app" / "app.exe")
    assert bundle.root == str(tmp_path / "app") and bundle.entries == ("app.exe",) and bundle.kind == "folder"
    assert paths(bundle) == ["a.dll", "app.exe", "plugins/Deep/p.DLL"]
    kinds = {file.path: file.kind for file in bundle.files if file.kind != "pe"}
    assert kinds == {
        "model.onnx": "model", "run.py": "script", "k.ptx": "device-code", "data.zip": "archive",
        "app.deps.json": "metadata",
    }  # fmt: skip


def test_a_folder_has_all_its_programs_but_not_the_helpers(tmp_path: Path) -> None:
    make(tmp_path, ["b.exe", "sub/a.EXE", "lib.dll", "m.pyd", "unins000.exe", "vc_redist.x64.exe", "d/distlib/t64.exe"])
    bundle = discover(tmp_path)
    assert bundle.entries == ("b.exe", "sub/a.EXE")
    assert sorted(item.path for item in bundle.skipped) == ["d/distlib/t64.exe", "unins000.exe", "vc_redist.x64.exe"]


def test_a_folder_without_a_program_gives_its_libraries(tmp_path: Path) -> None:
    make(tmp_path, ["p/m.pyd", "p/plugin.dll", "p.libs/dep-1a2b.dll", "nvidia/cublas/bin/cublas64_12.dll"])
    make(tmp_path, ["p/vcruntime140.dll", "x/a.node", "x/readme.md"])
    assert discover(tmp_path).entries == ("p/m.pyd", "p/plugin.dll", "x/a.node")
    make(tmp_path, ["only/nvidia/cublas/bin/cublas64_12.dll"])
    assert discover(tmp_path / "only").entries == ("nvidia/cublas/bin/cublas64_12.dll",)


SITE = [
    "pkg/_ext.pyd", "pkg/lib/own.dll", "pkg.libs/dep-1.dll", "base/core.dll", "base/lib/base.dll", "unrelated/u.dll",
    "nvidia/cublas/bin/cublas64_12.dll", "nvidia/cu13/bin/x86_64/cudart64_13.dll", "torch/lib/c10.dll", "single.pyd",
    "extra.libs/e.dll",
]  # fmt: skip


def site(root: Path) -> Path:
    folder = root / "Lib" / "site-packages"
    make(folder, SITE)
    for name, requires, tops in (
        ("Pkg_Name-1.0", ["Base.Thing>=1", 'torch; extra == "gpu"', "absent"], ["pkg", "pkg.libs"]),
        ("base_thing-2", ["pkg-name"], ["base"]),
        ("torch-2", [], ["torch"]),
        ("unrelated-1", [], ["unrelated"]),
    ):
        info = folder / f"{name}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Name: x\n" + "".join(f"Requires-Dist: {item}\n" for item in requires))
        record = [file for file in SITE if file.partition("/")[0] in tops]
        (info / "RECORD").write_text("".join(f"{file},sha256=x,1\n" for file in record))
    return folder


def test_a_module_in_site_packages_brings_what_it_can_reach(tmp_path: Path) -> None:
    folder = site(tmp_path)
    bundle = discover(folder / "pkg" / "_ext.pyd")
    assert bundle.kind == "python-environment" and bundle.root == str(folder)
    assert bundle.entries == ("pkg/_ext.pyd",)
    found = paths(bundle)
    assert "unrelated/u.dll" not in found and "single.pyd" not in found
    assert set(found) == set(SITE) - {"unrelated/u.dll", "single.pyd"}
    assert bundle.dll_directories == (
        "pkg/lib", "base/lib", "extra.libs", "nvidia/cu13/bin/x86_64", "nvidia/cublas/bin", "pkg.libs", "torch/lib",
    )  # fmt: skip


def test_a_module_right_in_site_packages(tmp_path: Path) -> None:
    bundle = discover(site(tmp_path) / "single.pyd")
    assert bundle.entries == ("single.pyd",)
    assert paths(bundle) == [
        "extra.libs/e.dll", "nvidia/cu13/bin/x86_64/cudart64_13.dll", "nvidia/cublas/bin/cublas64_12.dll",
        "pkg.libs/dep-1.dll", "single.pyd",
    ]  # fmt: skip


def test_python_itself_and_a_script_of_an_environment(tmp_path: Path) -> None:
    site(tmp_path)
    make(tmp_path, ["python.exe", "Scripts/tool.exe", "Library/bin/conda.dll"])
    bundle = discover(tmp_path / "python.exe")
    assert bundle.kind == "python-environment" and bundle.entries == ("python.exe",)
    assert bundle.dll_directories[0] == "Library/bin"
    assert "Lib/site-packages/torch/lib" in bundle.dll_directories
    assert discover(tmp_path / "Scripts" / "tool.exe").entries == ("Scripts/tool.exe",)


def test_launchers_of_an_environment_are_no_programs_of_their_own(tmp_path: Path) -> None:
    site(tmp_path)
    make(tmp_path, ["python.exe", "pythonw.exe", "Scripts/pip.exe", "Lib/venv/scripts/nt/python.exe", "tools/my.exe"])
    assert discover(tmp_path).entries == ("python.exe", "tools/my.exe")
    make(tmp_path / "venv", ["Scripts/python.exe", "Scripts/pythonw.exe", "Scripts/pip.exe", "Lib/site-packages/m.pyd"])
    assert discover(tmp_path / "venv").entries == ("Scripts/python.exe",)


def test_a_program_in_a_folder_of_many_programs_does_not_bring_them_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, ["app.exe", "beside.dll", "Documents/secret.dll", "Downloads/tool.exe", "Downloads/game/g.dll"])
    monkeypatch.setattr(Path, "home", classmethod(lambda cls: tmp_path))
    bundle = discover(tmp_path / "app.exe")
    assert paths(bundle) == ["app.exe", "beside.dll"]
    assert bundle.skipped[0].reason == "2 folders below it were not looked at"
    assert paths(discover(tmp_path / "Downloads" / "tool.exe")) == ["tool.exe"]
    assert paths(discover(tmp_path / "Downloads" / "game" / "g.dll")) == ["g.dll"]


def test_bounds_are_told_and_the_named_file_is_always_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, [f"f{n:03}.dll" for n in range(50)] + ["z.exe"])
    bundle = discover(tmp_path / "z.exe", Limits(entries=20))
    assert "z.exe" in paths(bundle) and len(bundle.files) == 21
    assert "more than 20 entries" in bundle.skipped[0].reason
    monkeypatch.setattr("zcheck.discover.walk.MAX_DEPTH", 2)
    make(tmp_path / "deep", ["app.exe", "a/b/c/d.dll"])
    bundle = discover(tmp_path / "deep")
    assert paths(bundle) == ["app.exe"] and "levels deep" in bundle.skipped[0].reason


def test_near_folders_come_before_far_ones(tmp_path: Path) -> None:
    make(tmp_path, [f"a/{n}/x.dll" for n in range(20)] + ["z/near.dll", "app.exe"])
    assert "z/near.dll" in paths(discover(tmp_path, Limits(entries=25)))


def test_links(tmp_path: Path) -> None:
    root = tmp_path / "app"
    make(tmp_path, ["app/app.exe", "app/real/a.dll", "elsewhere/lib.dll"])
    (root / "loop").symlink_to(root)
    (root / "up").symlink_to(tmp_path)
    (root / "again").symlink_to(root / "real")
    (root / "real" / "back").symlink_to(root / "real")
    (root / "dead.dll").symlink_to(tmp_path / "nothing")
    (root / "self.dll").symlink_to(root / "self.dll")
    (root / "linked.dll").symlink_to(tmp_path / "elsewhere" / "lib.dll")
    (root / "packages").symlink_to(tmp_path / "elsewhere")
    bundle = discover(root)
    assert paths(bundle) == ["app.exe", "linked.dll", "packages/lib.dll", "real/a.dll"]
    reasons = {item.path: item.reason for item in bundle.skipped}
    assert reasons["up"] == "a link to a folder around this one"
    assert "cannot be read" in reasons["dead.dll"] and "cannot be read" in reasons["self.dll"]
    assert reasons["loop"] == "a link to a folder that was looked at already"


def test_folders_and_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, ["app.exe", "locked/a.dll"])
    real = os.scandir

    def scandir(path: os.PathLike[str]) -> object:
        if Path(path).name == "locked":
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    bundle = discover(tmp_path)
    assert paths(bundle) == ["app.exe"]
    assert [(item.path, item.reason) for item in bundle.skipped] == [("locked", "cannot be read: Permission denied")]


@pytest.mark.skipif(sys.platform != "linux", reason="such names exist on Linux only")
def test_odd_names(tmp_path: Path) -> None:
    make(tmp_path, ["app.exe", "a\nb.dll", "gpj\u202elld.dll", "ünï.dll", "back\\slash.dll"])
    raw = os.fsencode(tmp_path)
    Path(os.fsdecode(raw + b"/caf\xe9.dll")).write_bytes(b"MZ")
    Path(os.fsdecode(raw + b"/d\xe9")).mkdir()
    os.mkfifo(tmp_path / "pipe.dll")
    bundle = discover(tmp_path)
    assert paths(bundle) == ["app.exe", "gpj\u202elld.dll", "ünï.dll"]
    assert {item.path: item.reason for item in bundle.skipped} == {
        "a\\u000ab.dll": "its name has characters that Windows does not allow",
        "back\\slash.dll": "its name has characters that Windows does not allow",
        "caf\\xe9.dll": "its name is not valid Unicode",
        "d\\xe9": "its name is not valid Unicode",
        "pipe.dll": "not a regular file",
    }
    with pytest.raises(InputError, match=r"caf\\xe9.dll cannot be judged: its path is not valid Unicode"):
        discover(Path(os.fsdecode(raw + b"/caf\xe9.dll")))


def test_sizes_come_without_reading(tmp_path: Path) -> None:
    make(tmp_path, ["app.exe"])
    with (tmp_path / "huge.dll").open("wb") as file:
        file.truncate(4 << 30)
    assert {file.path: file.size for file in discover(tmp_path).files} == {"app.exe": 2, "huge.dll": 4 << 30}


def test_what_cannot_be_judged(tmp_path: Path) -> None:
    for name, message in (("no.exe", "no such file or folder"), ("dead.exe", "leads nowhere")):
        if name == "dead.exe":
            (tmp_path / name).symlink_to(tmp_path / "gone")
        with pytest.raises(InputError, match=message):
            discover(tmp_path / name)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="empty is an empty folder"):
        discover(tmp_path / "empty")
    make(tmp_path, ["docs/a.py"])
    with pytest.raises(UsageError, match=r"docs holds no Windows program .*only Python scripts"):
        discover(tmp_path / "docs")
    with pytest.raises(InputError):
        discover(Path("nul\0byte.exe"))


def test_a_named_file_counts_whatever_its_suffix(tmp_path: Path) -> None:
    make(tmp_path, ["program.bin", "tool.zip"])
    assert paths(discover(tmp_path / "program.bin")) == ["program.bin"]
    assert paths(discover(tmp_path / "tool.zip")) == ["tool.zip"]


def test_relative_targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, ["app.exe", "a/b.dll"])
    monkeypatch.chdir(tmp_path)
    assert discover(Path("app.exe")).root == "."
    assert discover(Path("app.exe")).entries == ("app.exe",)
    assert discover(Path()).entries == ("app.exe",)
    assert bundle_module.MAX_AROUND_FILE > 10_000
