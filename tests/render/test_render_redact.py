"""Names of people and machines do not survive; the application's own paths do."""

from __future__ import annotations

import json
import re
import unicodedata

import msgspec
import pytest
import sample_reports
from hypothesis import given
from hypothesis import strategies as st

from zcheck.cli.names import local_names
from zcheck.render import FORMATS, RedactionNames, RenderOptions, redact, redact_product, render
from zcheck.render.redact import COMMON

ANN = RedactionNames(users=("Ann Lee",), machines=("GAMING-PC",), homes=("C:\\Users\\Ann Lee",))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (r"C:\Users\Ann Lee\tools\app.exe", r"%USERPROFILE%\tools\app.exe"),
        (r"c:/users/ann lee/tools", "%USERPROFILE%/tools"),
        (r"C:\\Users\\Ann Lee\\tools", r"%USERPROFILE%\\tools"),
        (r"D:\Users\Bob\x.dll", r"D:\Users\<user>\x.dll"),
        (r"\\?\C:\Users\Bob\x.dll", r"\\?\C:\Users\<user>\x.dll"),
        (r"file:///C:/Users/Bob/x.dll", r"file:///C:/Users/<user>/x.dll"),
        ("/home/bob/x", "/home/<user>/x"),
        ("/Users/bob", "/Users/<user>"),
        ("/mnt/c/Users/Bob Smith/x", "/mnt/c/Users/<user>/x"),
        (r"C:\Documents and Settings\Bob\x", r"C:\Documents and Settings\<user>\x"),
        (r"at C:\Users\Bob\a.dll and D:\Users\Eve\b.dll", r"at C:\Users\<user>\a.dll and D:\Users\<user>\b.dll"),
        (r'"C:\Users\Bob" is no file', r'"C:\Users\<user>" is no file'),
        (r"D:\work\Ann Lee\x", r"D:\work\<user>\x"),
        (r"D:\backup\GAMING-PC\x", r"D:\backup\<machine>\x"),
        ("run on gaming-pc yesterday", "run on <machine> yesterday"),
        (r"\\FILESERVER\share\app.exe", r"\\<host>\share\app.exe"),
        ("//fileserver.example.org/share/app.exe", "//<host>/share/app.exe"),
        (r"\\?\UNC\FILESERVER\share", r"\\?\UNC\<host>\share"),
        ("mail ann.lee@example.com now", "mail <e-mail> now"),
        (r"D:\work\Ann Lee is no folder", r"D:\work\<user> is no folder"),
        ("/mnt/backup/c/Users/Bob/x", "/mnt/backup/c/Users/<user>/x"),
        ("Users\\Bob\\x", "Users\\<user>\\x"),
        # and what must stay
        (r"C:\Users\Public\app.exe", r"C:\Users\Public\app.exe"),
        (r"C:\Windows\System32\nvcuda.dll", r"C:\Windows\System32\nvcuda.dll"),
        ("bin/app.exe", "bin/app.exe"),
        ("lib/users/models/x.onnx", "lib/users/models/x.onnx"),
        ("https://github.com/vosen/ZLUDA/releases", "https://github.com/vosen/ZLUDA/releases"),
        ("see https://example.org/home/page.html", "see https://example.org/home/page.html"),
        ("C:/opt/a/b/c/d/home/page.html", "C:/opt/a/b/c/d/home/page.html"),
        ("cublas64_12.dll!cublasGemmEx", "cublas64_12.dll!cublasGemmEx"),
        ("?run@Engine@@QEAAXXZ", "?run@Engine@@QEAAXXZ"),
        ("plugin@4.dll", "plugin@4.dll"),
        ("%USERPROFILE%\\x and C:\\Users\\<user>\\x", "%USERPROFILE%\\x and C:\\Users\\<user>\\x"),
    ],
)
def test_examples(before: str, after: str) -> None:
    assert redact(before, ANN) == after
    assert redact(after, ANN) == after, "a second time changes nothing"


def test_a_user_called_windows_keeps_the_system_readable() -> None:
    names = RedactionNames(users=("Windows",), homes=("C:\\Users\\Windows",))
    assert redact(r"C:\Users\Windows\app.exe", names) == r"%USERPROFILE%\app.exe"
    assert redact(r"D:\Users\Windows\app.exe", names) == r"D:\Users\<user>\app.exe"
    assert redact(r"C:\Windows\System32\x.dll", names) == r"C:\Windows\System32\x.dll"


def test_names_that_say_nothing_take_nothing_out() -> None:
    names = RedactionNames(users=("", " "), machines=("",), homes=("/", "C:\\", ""))
    assert redact(r"C:\x\y /z", names) == r"C:\x\y /z"


# Names as people have them and as nobody expects them: blanks, other scripts, characters with a meaning in patterns.
NAMES = st.one_of(
    st.sampled_from(
        [
            "Windows",
            "O'Brien",
            "ann.lee",
            "a+b",
            "x(y)",
            "[z]",
            "$u",
            "Zoë Quinn",
            "Дмитрий",
            "田中 太郎",
            "ß",
            "^",
            "İpek",
        ]
    ),
    st.text(
        st.characters(blacklist_categories=("C", "Zl", "Zp"), blacklist_characters='\\/:*?"<>|\x85'),
        min_size=1,
        max_size=12,
    ),
).filter(
    lambda name: (
        name == name.strip() and name.strip(".") and name.casefold() not in ("public", "default", "guest", "shared")
    )
)
PLACES = st.sampled_from(
    [
        "C:\\Users\\{}\\app\\app.exe",
        "C:\\Users\\{}",
        "d:/users/{}/x.dll",
        "/home/{}/x",
        "/Users/{}/Library",
        "\\\\?\\C:\\Users\\{}\\x",
        "entry app.exe imports a.dll!f; at C:\\Users\\{}\\app.exe",
        '"C:\\Users\\{}\\x y.dll" not read',
        "/mnt/c/Users/{}/x",
        "C:\\\\Users\\\\{}\\\\x",
        "C:\\Documents and Settings\\{}\\x",
        "file:///C:/Users/{}/x",
    ]
)


def components(text: str) -> set[str]:
    """Path components of a text, compared as file systems do."""
    return {unicodedata.normalize("NFC", part).casefold() for part in re.split(r'[\\/":;<>|*?]+', text)}


@given(NAMES, PLACES, st.booleans())
def test_no_name_survives_as_a_component(name: str, place: str, known: bool) -> None:
    names = RedactionNames(users=(name,), homes=(f"C:\\Users\\{name}", f"/home/{name}")) if known else RedactionNames()
    text = place.format(name)
    told = redact(text, names)
    folded = unicodedata.normalize("NFC", name).casefold()
    fixed = components(place.replace("{}", "\\")) | components("%USERPROFILE%\\<user>\\~")
    assert folded in fixed or folded not in components(told), told
    assert redact(told, names) == told


@given(NAMES, st.sampled_from(["D:\\work\\{}\\x.dll", "/srv/{}/x", "E:/{}/y"]))
def test_a_known_name_goes_from_any_absolute_path(name: str, place: str) -> None:
    told = redact(place.format(name), RedactionNames(users=(name,)))
    folded = unicodedata.normalize("NFC", name).casefold()
    fixed = components(place.replace("{}", "\\")) | {"user"} | COMMON
    assert folded in fixed or folded not in components(told), told


@given(st.text(max_size=80), NAMES)
def test_any_text_is_taken(text: str, name: str) -> None:
    assert isinstance(redact(text, RedactionNames(users=(name,), machines=(name,), homes=(name,))), str)


@pytest.mark.parametrize(
    "piece",
    ["/", "\\", "/a", "C:\\", "//a b", "a@", "a.b@c.", "a-", "\\\\?", "/users", "users/", "/ a", ":/", "C:/x\n", "@a"],
)
def test_long_strange_texts_cost_no_more_than_their_length(piece: str) -> None:
    """A pattern that goes back over what it read needs minutes for these and meets the time limit of the test run."""
    names = RedactionNames(users=("Ann Lee",), machines=("GAMING-PC",), homes=("C:\\Users\\Ann Lee", "/home/ann"))
    assert isinstance(redact(piece * (200_000 // len(piece)), names), str)


def secret_report() -> object:
    """A report with a name in each kind of place, nested ones included."""
    report = sample_reports.likely_gemm()
    where = "C:\\Users\\Ann Lee\\infer\\infer.exe"
    finding = msgspec.structs.replace(
        report.stacks[0].findings[0],
        message=f"read {where}",
        fix=(f"move {where}",),
        evidence=(f"at {where} on GAMING-PC",),
        title=where,
    )
    stack = msgspec.structs.replace(report.stacks[0], findings=(finding,), headline=where, actions=(f"open {where}",))
    host = {"user": "Ann Lee", "computer": "GAMING-PC", "path": [where, {"deep": [where]}], where: 1}
    return msgspec.structs.replace(
        report, target=where, entries=(where,), stacks=(stack,), host=host, assumptions=(where,)
    )


@pytest.mark.parametrize("fmt", sorted(set(FORMATS) - {"text", "json"}))
def test_shared_formats_hold_no_name(fmt: str) -> None:
    text = render(secret_report(), fmt, RenderOptions(names=ANN))  # type: ignore[arg-type]
    assert not re.search("ann.{0,3}lee|gaming-pc", text, re.IGNORECASE)


def test_local_formats_redact_on_demand() -> None:
    report = secret_report()
    assert "Ann Lee" in render(report, "text", RenderOptions(width=200, names=ANN))  # type: ignore[arg-type]
    for fmt in ("text", "json"):
        text = render(report, fmt, RenderOptions(width=200, names=ANN, redact=True))  # type: ignore[arg-type]
        assert not re.search("ann.{0,3}lee|gaming-pc", text, re.IGNORECASE)
    assert "Ann Lee" in render(report, "markdown", RenderOptions(names=ANN, redact=False))  # type: ignore[arg-type]


def test_ids_and_relative_paths_stay() -> None:
    names = RedactionNames(users=("app", "v6"), machines=("gpu-rig",), homes=("/home/app",))
    report = sample_reports.blocked_conv()
    assert json.loads(msgspec.json.encode(redact_product(report, names))) == json.loads(msgspec.json.encode(report))


def test_local_names_come_from_the_environment() -> None:
    names = local_names(
        {"USERPROFILE": "C:\\Users\\ann.CORP", "USERNAME": "ann", "COMPUTERNAME": "PC1", "HOSTNAME": "pc1.lan"}
    )
    assert names.users == ("ann", "ann.CORP")
    assert names.machines == ("PC1", "pc1", "pc1.lan")
    assert names.homes == ("C:\\Users\\ann.CORP",)
    assert redact("C:\\Users\\ann.CORP\\x", names) == "%USERPROFILE%\\x"


def test_local_names_of_this_machine_can_be_read() -> None:
    names = local_names()
    assert names.machines and all(isinstance(home, str) for home in names.homes)
