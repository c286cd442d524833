"""``zcheck host`` as a command: formats, exit codes, redaction."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pcs
import pytest
import typer
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from zcheck.cli.host import find_host, host
from zcheck.cli.host_format import as_issue, as_markdown, as_text
from zcheck.errors import UsageError, ZcheckError
from zcheck.render import RedactionNames, redact_product
from zcheck.render.safe import markdown_text

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(host)


def run(*arguments: str | Path) -> tuple[int, str]:
    """Exit code and output."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return pcs.build(tmp_path / "pc", {"gpus": ["raphael", "rx9060xt"], "zluda": [{"remove": ["nvml.dll"]}]})


def test_worst_first_with_its_fix(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")  # a line a check, whatever the width that the tests run at
    code, text = run("--root", root)
    lines = text.splitlines()
    assert code == 0
    assert lines[0].endswith("on this PC")
    levels = [line[:4].strip() for line in lines[2:] if not line.startswith(" ")]
    assert levels == sorted(levels, key=("MISS", "WARN", "PASS").index)
    assert lines[2].startswith("MISS")
    assert lines[3].startswith("      fix: ")


def test_strict_fails_when_anything_is_not_pass(root: Path) -> None:
    assert run("--root", root, "--strict")[0] == 1


def test_json_can_be_read_back_and_shown(root: Path, tmp_path: Path) -> None:
    _, text = run("--root", root, "--format", "json")
    saved = tmp_path / "host.json"
    saved.write_text(text, encoding="utf-8")
    assert run(saved) == run("--root", root)
    assert find_host(saved) == find_host(root)
    assert {"schema", "adapters", "hip", "zluda", "checks", "os_build"} <= set(json.loads(text))


def test_every_line_is_in_every_format(root: Path) -> None:
    found = find_host(root)
    forms = [as_text(found), as_markdown(found), as_issue(found, "{}")]
    for check in found.checks:
        for form in forms[: 3 if check.level != "PASS" else 2]:
            assert markdown_text(check.text) in form or check.text in form, check.text


def test_folded_lines_keep_all_words(root: Path) -> None:
    found = find_host(root)
    folded = as_text(found, 60)
    assert folded.split() == as_text(found).split()
    assert all(len(line) <= 60 or " " not in line.strip() for line in folded.splitlines())


def test_issue_has_what_maintainers_ask_for(root: Path) -> None:
    _, text = run("--root", root, "--format", "issue")
    for field in ("GPU", "gfx", "HIP version", "Driver", "ZLUDA version", "Operating system", "First finding"):
        assert f"**{field}**: " in text
    assert "<details>" in text
    assert len(text) < 60_000


def test_markdown_cells_hold(tmp_path: Path) -> None:
    """A GPU called like a table row or a tag must not break out of its cell."""
    pc = {"gpus": [{"rx9060xt": {"name": "AMD | <b>Radeon</b> RX 9060 XT\n| x"}}]}
    text = as_markdown(find_host(pcs.build(tmp_path / "pc", pc)))
    rows = text.splitlines()[2:]
    assert all(row.startswith("|") and row.endswith("|") for row in rows)
    assert "<b>" not in text


def test_a_saved_list_takes_no_other_options(root: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        run(tmp_path / "x.json", "--root", root)


def test_folders_of_a_windows_pc_need_a_windows_pc() -> None:
    with pytest.raises(UsageError, match="--root"):
        run("--zluda-dir", r"C:\zluda")


def test_a_root_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ZcheckError, match="nowhere"):
        run("--root", tmp_path / "nowhere")


def test_this_machine_can_be_asked() -> None:
    code, text = run("--no-hipinfo")
    assert code == 0
    assert text


@pytest.mark.parametrize("form", ["text", "markdown", "issue"])
def test_another_system_is_told_what_to_name_instead(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    text = run("-f", form)[1]
    assert "Windows PCs only" in text and "--root" in text.replace("\\", "") and "--host" in text.replace("\\", "")
    assert "no AMD GPU" not in text


NAMES = st.one_of(
    st.sampled_from(
        ["ada", "Ada Lovelace", "Jürgen Groß", "Windows", "a.b+c", "李雷", "O'Neil (PC)", "zluda", "x$y^z"]
    ),
    st.text(
        st.characters(codec="utf-8", exclude_characters='\\/:*?"<>|.', exclude_categories=("C", "Z")),
        min_size=3,
        max_size=12,
    ),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(user=NAMES)
def test_no_user_name_survives_what_is_shared(tmp_path_factory: pytest.TempPathFactory, user: str) -> None:
    """The folder of a user shows as %USERPROFILE% in everything that is shared, whatever the user is called."""
    root = tmp_path_factory.mktemp("pc")
    folder = rf"C:\Users\{user}\zluda"
    pcs.place(root, rf"{folder}\nvcuda.dll", pcs.runtime("amdhip64_6.dll", "6.4"))
    pcs.place(root, r"C:\Windows\System32\vcruntime140.dll")
    env = {"HIP_PATH": rf"C:\Users\{user}\hip", "PATH": [folder]}
    (root / "host.yaml").write_text(yaml.safe_dump({"env": env, "user": user}, allow_unicode=True), encoding="utf-8")
    found = find_host(root)
    assert any(user in check.text for check in found.checks)
    names = RedactionNames(users=(user,), homes=(rf"C:\Users\{user}",))
    shared = redact_product(found, names)
    encoded = json.dumps(json.loads(msgspec.json.encode(shared)), ensure_ascii=False)
    for text in (as_markdown(shared), as_issue(shared, encoded), encoded):
        assert f"Users\\{user}" not in text.replace("\\\\", "\\")
        assert "%USERPROFILE%" in text or "\\<user>" in text.replace("\\\\", "\\") or "&lt;user&gt;" in text


def test_components_with_one_fix_are_one_line(tmp_path: Path) -> None:
    from zcheck.cli.host_format import told

    bin_ = tmp_path / "Program Files" / "AMD" / "ROCm" / "6.4" / "bin"
    bin_.mkdir(parents=True)
    (bin_ / "rocblas.dll").write_bytes(b"x")
    (tmp_path / "host.yaml").write_text("env: {HIP_PATH: 'C:\\Program Files\\AMD\\ROCm\\6.4'}\nadapters: []\n")
    found = find_host(root=tmp_path)
    missing = [check for check in found.checks if check.key == "component-missing" and check.level == "WARN"]
    lines = [check for check in told(found) if check.key == "component-missing" and check.level == "WARN"]
    assert len(missing) > 3 and len(lines) < len(missing)
    assert all(check.value in " ".join(line.text for line in lines) for check in missing)


def test_a_named_folder_without_zluda_is_a_finding(tmp_path: Path) -> None:
    from zcheck.host import host_evidence
    from zcheck.model.stack import Stack

    (tmp_path / "zluda").mkdir()
    (tmp_path / "host.yaml").write_text("env: {}\nadapters: []\n")
    keys = {fact.key for fact in host_evidence(find_host(root=tmp_path, zluda_dir="C:\\zluda"), Stack())}
    assert "zluda-missing" in keys
    assert "zluda-missing" not in {fact.key for fact in host_evidence(find_host(root=tmp_path), Stack())}
