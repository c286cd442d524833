"""Reports to the terminal and to files."""

from __future__ import annotations

import codecs
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Sequence
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
        wants_file(pair, Path(name))
    named_once(path for _, path in found)
    return found


def wants_file(pair: str, path: Path) -> None:
    """Raises UsageError where the output is a folder."""
    if not path.name or os.path.isdir(path):  # noqa: PTH112 (Path.is_dir raises where a folder is closed)
        raise UsageError(f"--output {pair!r}: {path} is a folder, and FORMAT=FILE wants a file")


def named_once(paths: Iterable[Path]) -> None:
    """Raises UsageError where two outputs are one file."""
    names = [os.path.realpath(path) for path in paths]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"--output names {Path(name).name} twice, and the one would overwrite the other")


def spare_inputs(outputs: Sequence[tuple[str, Path]], *inputs: Path | None) -> None:
    """Raises UsageError where an output would overwrite a file that is read."""
    for _, path in outputs:
        for source in inputs:
            if source is not None and os.path.realpath(source) == os.path.realpath(path):
                raise UsageError(f"--output would overwrite {path.name}, which is read")


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
    write(render(product, fmt, how), fmt)


def write(text: str | Iterable[str], fmt: str = "text") -> None:
    """Text, whole or in pieces, to stdout; what the terminal's encoding lacks is escaped instead of raising: as JSON
    does it in the formats that are JSON."""
    stream = sys.stdout
    encoding = stream.encoding or "utf-8"
    errors = _JSON_ESCAPES if fmt in _JSON_FORMATS else "backslashreplace"
    for part in _pieces(text):
        stream.write(part.encode(encoding, errors).decode(encoding))


_JSON_FORMATS = ("json", "sarif", "cyclonedx")
_JSON_ESCAPES = "zcheck.json"


def _json_escapes(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2)), error.end


codecs.register_error(_JSON_ESCAPES, _json_escapes)


def _pieces(text: str | Iterable[str]) -> Iterable[str]:
    return (text,) if isinstance(text, str) else text


def save(product: Report | Applications, outputs: Sequence[tuple[str, Path]], how: RenderOptions) -> None:
    """Write a report to files, each whole or not at all; raises InputError where one cannot be written."""
    import msgspec

    plain = msgspec.structs.replace(how, color=False, ascii_only=False, width=100)
    for fmt, path in outputs:
        write_file(path, render(product, fmt, plain))


def write_file(path: Path, text: str | Iterable[str]) -> None:
    """Write text, whole or in pieces, to a file, all or nothing; raises InputError where it cannot be written."""
    try:
        _write_whole(path, (part.encode("utf-8", "backslashreplace") for part in _pieces(text)))
    except OSError as error:
        raise InputError(f"{path.name} cannot be written: {error.strerror or error}") from None


def _write_whole(path: Path, data: Iterable[bytes]) -> None:
    """Write beside ``path`` and move into place. A link keeps pointing at what it points at, and a device or pipe
    (/dev/stdout, NUL) is written to, not replaced by a file."""
    target = Path(os.path.realpath(path))
    if os.path.exists(path) and not os.path.isfile(path):  # noqa: PTH110, PTH113 (never raises)
        with path.open("wb") as stream:
            stream.writelines(data)
        return
    handle, name = tempfile.mkstemp(prefix=".zcheck-", suffix=".part", dir=target.parent)
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.writelines(data)
        if os.name == "posix":
            part.chmod(stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~_umask())
        part.replace(target)
    except BaseException:  # an interrupt leaves nothing half-written either
        part.unlink(missing_ok=True)
        raise


def _umask() -> int:
    """This process's umask, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
