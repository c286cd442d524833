"""``zcheck host``: what on this PC would keep CUDA programs from running, with the fix for each."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

if TYPE_CHECKING:
    from zcheck.model.host import Host
    from zcheck.render import RedactionNames


class HostFormat(str, Enum):
    """How the list is written."""

    text = "text"
    json = "json"
    markdown = "markdown"
    issue = "issue"


def host(
    file: Annotated[
        Optional[Path],  # noqa: UP045 (typer reads this at run time, on Python 3.10 too)
        typer.Argument(
            metavar="FILE", help="Show a saved list instead: JSON of zcheck host, or a gpu-report.json of a GPU scan."
        ),
    ] = None,
    root: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            metavar="HOSTROOT", help="A folder laid out like a system drive, with host.yaml; this PC if left out."
        ),
    ] = None,
    zluda_dir: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="DIR", help="The folder with ZLUDA's files (a Windows path on that PC)."),
    ] = None,
    hip_dir: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="DIR", help="The HIP SDK folder that holds bin, in place of HIP_PATH."),
    ] = None,
    form: Annotated[
        HostFormat, typer.Option("--format", "-f", metavar="FORMAT", help="text, json, markdown or issue.")
    ] = HostFormat.text,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 when any line is not PASS.")] = False,
    hipinfo: Annotated[
        bool,
        typer.Option("--hipinfo/--no-hipinfo", help="Run the SDK's hipInfo.exe, 5 s at most, for the device order."),
    ] = True,
    redact: Annotated[
        Optional[bool],  # noqa: UP045
        typer.Option("--redact/--no-redact", help="Take out user and machine names; on for markdown and issue."),
    ] = None,
) -> None:
    """Scan this PC: GPU, driver, HIP SDK, ZLUDA folder and what gets in their way. Files only, no network."""
    found = find_host(file, root=root, zluda_dir=zluda_dir, hip_dir=hip_dir, hipinfo=hipinfo)
    if redact if redact is not None else form in (HostFormat.markdown, HostFormat.issue):
        from zcheck.render import redact_product

        found = redact_product(found, redaction_names(root or (file if file is not None and file.is_dir() else None)))
    typer.echo(written(found, form), nl=False)
    if strict and any(check.level != "PASS" for check in found.checks):
        raise typer.Exit(1)


def find_host(
    file: Path | None = None,
    *,
    root: Path | None = None,
    zluda_dir: str | None = None,
    hip_dir: str | None = None,
    hipinfo: bool = False,
) -> Host:
    """The PC of a saved report, of a faked root, or this one. ``file`` may be either: a folder is taken as the root.

    Raises UsageError for options that contradict one another, InputError and DataError as read_host and load_host do.
    """
    from zcheck.cli.data import coverage
    from zcheck.cli.host_tables import host_tables, zluda_exports
    from zcheck.errors import UsageError
    from zcheck.host import HIPINFO_TIMEOUT, load_host, read_host
    from zcheck.parse.pe import read_pe

    if file is not None and (root is not None or zluda_dir or hip_dir):
        raise UsageError("a saved list is shown as it is: leave --root, --zluda-dir and --hip-dir out")
    if file is not None and file.is_dir():
        root, file = file, None
    if root is None and file is None:
        if sys.platform != "win32" and (zluda_dir or hip_dir):
            raise UsageError("--zluda-dir and --hip-dir are Windows paths: off Windows they go with --root")
        zluda_dir, hip_dir = (str(Path(name).absolute()) if name else None for name in (zluda_dir, hip_dir))
    tables = host_tables(coverage())
    if file is not None:
        return load_host(file, tables)
    return read_host(
        root,
        read_pe=read_pe,
        tables=tables,
        exports=lambda: zluda_exports(coverage()),
        zluda_dir=zluda_dir,
        hip_dir=hip_dir,
        hipinfo_timeout=HIPINFO_TIMEOUT if hipinfo else 0.0,
    )


def redaction_names(root: Path | None) -> RedactionNames:
    """The names to take out: of this machine and its user, and of the faked root's host.yaml."""
    from zcheck.cli.names import local_names
    from zcheck.host import people
    from zcheck.render import RedactionNames

    names = local_names()
    if root is None:
        return names
    user, computer = people(root)
    return RedactionNames(
        users=(*names.users, *([user] if user else [])),
        machines=(*names.machines, *([computer] if computer else [])),
        homes=(*names.homes, *([f"C:\\Users\\{user}"] if user else [])),
    )


def written(found: Host, form: HostFormat) -> str:
    """The list in one format, ending in a line break."""
    import msgspec

    from zcheck.cli import people
    from zcheck.cli.host_format import as_issue, as_markdown, as_text

    encoded = msgspec.json.format(msgspec.json.encode(found), indent=2).decode()
    if form is HostFormat.json:
        return encoded + "\n"
    if form is HostFormat.markdown:
        return as_markdown(found)
    if form is HostFormat.issue:
        return as_issue(found, encoded)
    text = as_text(found, people.width())
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except (LookupError, UnicodeEncodeError):
        from zcheck.render.safe import ascii_text

        return "\n".join(ascii_text(line) for line in text.split("\n"))
    return text
