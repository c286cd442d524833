"""What counts as an application below a folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from audit_programs import CONV, program, share, touch

from zcheck.discover import bundles, discover, find_applications
from zcheck.discover.applications import ENTRIES_TOGETHER
from zcheck.errors import InputError, UsageError


def found(folder: Path) -> dict[str, tuple[str, tuple[str, ...]]]:
    return {app.path: (app.kind, app.entries) for app in find_applications(folder)[0]}


def test_programs_of_one_folder_are_one_application_with_the_folders_below(tmp_path: Path) -> None:
    program(tmp_path / "Paint" / "paint.exe")
    program(tmp_path / "Paint" / "tools" / "convert.exe")
    program(tmp_path / "Paint" / "plugins" / "blur.dll", dll=True)
    program(tmp_path / "Other" / "other.exe")
    assert found(tmp_path) == {
        "Other": ("program", ("other.exe",)),
        "Paint": ("program", ("paint.exe", "tools/convert.exe")),
    }


def test_programs_loose_in_the_named_folder_do_not_swallow_the_applications_below(tmp_path: Path) -> None:
    program(tmp_path / "loose.exe")
    program(tmp_path / "App" / "app.exe")
    program(tmp_path / "App" / "app.dll", dll=True)
    apps = {app.path: app for app in find_applications(tmp_path)[0]}
    assert apps[""].entries == ("loose.exe",)
    assert [file.path for file in apps[""].files] == ["loose.exe"]
    assert [file.path for file in apps["App"].files] == ["app.dll", "app.exe"]


def test_a_python_environment_is_one_application(tmp_path: Path) -> None:
    env = tmp_path / "portable" / "python_embeded"
    program(tmp_path / "portable" / "start.exe")
    program(env / "python.exe")
    program(env / "python311.dll", dll=True)
    program(env / "Lib" / "site-packages" / "torch" / "lib" / "torch_cuda.dll", dll=True)
    touch(env / "Lib" / "site-packages" / "torch-2.5.dist-info" / "METADATA")
    apps = {app.path: app for app in find_applications(tmp_path)[0]}
    assert {path: app.kind for path, app in apps.items()} == {
        "portable": "program",
        "portable/python_embeded": "python-environment",
    }
    # The program may load the environment's DLLs, but does not bring its programs along.
    assert apps["portable"].entries == ("start.exe",)
    assert "python_embeded/python311.dll" in [file.path for file in apps["portable"].files]


def test_unpacked_packages_are_an_environment(tmp_path: Path) -> None:
    touch(tmp_path / "wheel" / "pkg-1.0.dist-info" / "RECORD")
    program(tmp_path / "wheel" / "pkg" / "_core.pyd", dll=True)
    program(tmp_path / "wheel" / "pkg.libs" / "helper.dll", dll=True)
    assert found(tmp_path) == {"wheel": ("python-environment", ("pkg/_core.pyd",))}


@pytest.mark.parametrize("sign", ["_internal/x.dll", "base_library.zip", "nuitka"])
def test_frozen_programs(tmp_path: Path, sign: str) -> None:
    program(tmp_path / "frozen" / "app.exe")
    if sign == "nuitka":
        program(tmp_path / "frozen" / "python311.dll", dll=True)
        program(tmp_path / "frozen" / "_socket.pyd", dll=True)
    elif sign.endswith(".zip"):
        touch(tmp_path / "frozen" / sign)
    else:
        program(tmp_path / "frozen" / sign, dll=True)
    assert found(tmp_path)["frozen"][0] == "frozen"


def test_libraries_without_a_program_are_a_plugin_folder(tmp_path: Path) -> None:
    program(tmp_path / "plugins" / "a" / "one.dll", dll=True)
    program(tmp_path / "plugins" / "b" / "two.dll", dll=True)
    program(tmp_path / "App" / "app.exe")
    program(tmp_path / "App" / "lib" / "mine.dll", dll=True)
    assert found(tmp_path) == {"App": ("program", ("app.exe",)), "plugins": ("plugins", ("a/one.dll", "b/two.dll"))}


def test_a_helper_of_an_installer_is_no_application(tmp_path: Path) -> None:
    program(tmp_path / "App" / "app.exe")
    program(tmp_path / "App" / "unins000.exe")
    apps, skipped = find_applications(tmp_path)
    assert [app.entries for app in apps] == [("app.exe",)]
    assert [item.path for item in skipped] == ["App/unins000.exe"]


def test_very_many_programs_of_one_folder_are_judged_in_pieces(tmp_path: Path) -> None:
    for number in range(ENTRIES_TOGETHER * 2 + 1):
        program(tmp_path / "bin" / f"p{number:03}.exe")
    program(tmp_path / "bin" / "common.dll", dll=True)
    (application,) = find_applications(tmp_path)[0]
    pieces = bundles(tmp_path, application)
    assert [len(piece.entries) for piece in pieces] == [ENTRIES_TOGETHER, ENTRIES_TOGETHER, 1]
    assert sorted(entry for piece in pieces for entry in piece.entries) == list(application.entries)
    for piece in pieces:
        assert {file.path for file in piece.files} == {*piece.entries, "common.dll"}


def test_every_program_belongs_to_exactly_one_application(tmp_path: Path) -> None:
    share(tmp_path / "share", 7)
    program(tmp_path / "deep" / "a" / "b" / "c.exe", CONV)
    program(tmp_path / "deep" / "a" / "b" / "d" / "e.exe", CONV)
    program(tmp_path / "root.exe")
    apps = find_applications(tmp_path)[0]
    claimed = [f"{app.path}/{entry}".lstrip("/") for app in apps for entry in app.entries]
    there = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.exe")]
    assert sorted(claimed) == sorted(there)


def test_a_file_and_nothing_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a file"):
        find_applications(program(tmp_path / "app.exe"))
    with pytest.raises(InputError, match="no such folder"):
        find_applications(tmp_path / "nowhere")


def test_a_named_environment_is_one_application_as_it_is_below_a_folder(tmp_path: Path) -> None:
    env = tmp_path / "share" / "wheel"
    touch(env / "pkg-1.0.dist-info" / "RECORD")
    program(env / "tools" / "one.exe")
    program(env / "tools" / "two.exe")
    program(env / "tools" / "codec.dll", dll=True)
    program(env / "pkg" / "_core.pyd", dll=True)
    wanted = ("pkg/_core.pyd", "tools/codec.dll", "tools/one.exe", "tools/two.exe")
    assert found(env) == {"": ("python-environment", wanted)}
    assert found(tmp_path / "share") == {"wheel": ("python-environment", wanted)}


def test_folders_of_scripts_or_models_are_said_to_have_no_row(tmp_path: Path) -> None:
    program(tmp_path / "App" / "bin" / "app.exe")
    touch(tmp_path / "App" / "share" / "plugin.py")
    touch(tmp_path / "wheel" / "pkg-1.0.dist-info" / "RECORD")
    touch(tmp_path / "wheel" / "pkg" / "net.onnx")
    touch(tmp_path / "wheel" / "pkg" / "run.py")
    touch(tmp_path / "scripts" / "deep" / "train.py")
    touch(tmp_path / "models" / "net.safetensors")
    touch(tmp_path / "linux" / "tool-1.0.dist-info" / "RECORD")
    touch(tmp_path / "docs" / "readme.txt")
    touch(tmp_path / "loose.py")
    skipped = {item.path: item.reason for item in find_applications(tmp_path)[1]}
    assert sorted(skipped) == ["linux", "models", "scripts", "wheel"]
    assert "only Python scripts and models: check the python.exe" in skipped["wheel"]
    assert "only Python scripts: check the python.exe" in skipped["scripts"]
    assert "program that loads them" in skipped["models"]
    assert skipped["linux"] == "no Windows program or library"


def test_a_folder_with_scripts_alone_says_what_to_check(tmp_path: Path) -> None:
    touch(tmp_path / "pkg" / "run.py")
    for look in (find_applications, discover):
        with pytest.raises(UsageError, match=r"no Windows program .* only Python scripts: check the python\.exe"):
            look(tmp_path)
