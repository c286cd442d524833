"""Reports to the terminal and to files."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from zcheck.cli.names import local_names
from zcheck.errors import InputError, UsageError
from zcheck.model.report import Applications, Report
from zcheck.render import FORMATS, RenderOptions, render, terminal_options


def outputs_of(pairs: Sequence[str]) -> list[tuple[str, Path]]:
    """``FORMAT=FILE`` as pairs; raises UsageError for an unknown format or a missing file name."""
    found = []
    for pair in pairs:
        fmt, separator, name = pair.partition("=")
        if not separator or not name:
            raise UsageError(f"--output takes FORMAT=FILE, not {pair!r}")
        if fmt not in FORMATS:
            raise UsageError(f"--output {pair!r}: there is no format {fmt!r}; choose one of {', '.join(FORMATS)}")
        found.append((fmt, Path(name)))
    return found


def check_format(fmt: str) -> None:
    """Raises UsageError for a format that does not exist."""
    if fmt not in FORMATS:
        raise UsageError(f"format {fmt!r} does not exist; choose one of {', '.join(FORMATS)}")


def options(redact: bool | None, tree: bool = False, verbose: bool = False, color: bool | None = None) -> RenderOptions:
    """Options that suit stdout."""
    import msgspec

    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    suited = terminal_options(sys.stdout, os.environ, columns, color)
    return msgspec.structs.replace(suited, tree=tree, verbose=verbose, redact=redact, names=local_names())


def show(product: Report | Applications, fmt: str, how: RenderOptions) -> None:
    """Write a report to stdout."""
    write(render(product, fmt, how))


def write(text: str) -> None:
    """Text to stdout; what the terminal's encoding lacks is escaped instead of raising."""
    stream = sys.stdout
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))


def save(product: Report | Applications, outputs: Sequence[tuple[str, Path]], how: RenderOptions) -> None:
    """Write a report to files, each whole or not at all; raises InputError where one cannot be written."""
    import msgspec

    plain = msgspec.structs.replace(how, color=False, ascii_only=False, width=100)
    for fmt, path in outputs:
        text = render(product, fmt, plain)
        part = path.with_name(f"{path.name}.part")
        try:
            part.write_text(text, encoding="utf-8", newline="\n")
            part.replace(path)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise InputError(f"{path.name} cannot be written: {error.strerror or error}") from None
