"""The command line: which verbs there are, and how errors end the process."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Sequence

import typer
from typer.core import TyperGroup

from zcheck import __version__
from zcheck.cli import ab, audit, cache, check, db, diff, explain, host, kernels, rules, schema, trace, undo
from zcheck.cli import run as run_verb
from zcheck.errors import EXIT_INTERNAL, EXIT_USAGE, UsageError, ZcheckError


class _Group(TyperGroup):
    """``zcheck APP`` means ``zcheck check APP``."""

    def resolve_command(self, ctx, args):  # type: ignore[no-untyped-def]
        if args and not args[0]:
            raise UsageError("the name of the program is empty")  # a script's unset variable, not the folder one is in
        if args and args[0] not in self.commands:
            args = ["check", *args]
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx, args):  # type: ignore[no-untyped-def]
        # An option of check may come first: zcheck --zluda v5 app.exe.
        if args and args[0].startswith("-") and args[0] not in ("--help", "--version", "-V", *_COMPLETION):
            args = ["check", *args]
        return super().parse_args(ctx, args)


_COMPLETION = ("--install-completion", "--show-completion")


def _version(value: bool) -> None:
    if value:
        typer.echo(f"zcheck {__version__}")
        raise typer.Exit


_HELP = (
    "Will this Windows CUDA program run on an AMD GPU through ZLUDA and the HIP SDK, what stops it, what to do next?"
)

app = typer.Typer(
    name="zcheck",
    cls=_Group,
    help=_HELP,
    epilog="zcheck APP is short for zcheck check APP. A check executes nothing; nothing is ever sent over a network.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(help=_HELP)
def _root(
    version: bool = typer.Option(
        False, "--version", "-V", callback=_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Options of the program as a whole."""


app.command("check")(check.check)
app.command("audit")(audit.audit)
app.command("host")(host.host)
app.command("run")(run_verb.run)
app.command("undo")(undo.undo)
app.command("trace")(trace.trace)
app.command("ab")(ab.ab)
app.command("explain")(explain.explain)
app.add_typer(db.app, name="db")
app.add_typer(cache.app, name="cache")
app.add_typer(rules.app, name="rules")
app.command("kernels")(kernels.kernels)
app.command("diff")(diff.diff)
app.command("schema")(schema.schema)


def run(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code. Errors are one sentence on stderr."""
    _streams()
    command = typer.main.get_command(app)
    try:
        result = command.main(args=list(arguments), prog_name="zcheck", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except ZcheckError as error:
        _say(error.message)
        return error.exit_code
    except Exception as error:
        if type(error).__name__ in ("Exit", "Abort"):
            return int(getattr(error, "exit_code", 1))
        # typer brings a copy of click along, whose exceptions are not click's.
        show = getattr(error, "show", None)
        if show is not None and hasattr(error, "format_message"):
            show()
            return int(getattr(error, "exit_code", EXIT_USAGE))
        if isinstance(error, BrokenPipeError):
            # The reader (head, less) has enough; Python would complain once more at exit.
            _no_more_output()
            return 0
        if isinstance(error, OSError) and error.filename is None and error.errno in (errno.ENOSPC, errno.EIO):
            _no_more_output()
            _say(f"the output cannot be written: {error.strerror}")
            return EXIT_USAGE
        if os.environ.get("ZCHECK_DEBUG"):
            raise
        _say(
            f"internal error: {type(error).__name__}: {error} (this is a fault of zcheck; ZCHECK_DEBUG=1 shows where, "
            "please report it)"
        )
        return EXIT_INTERNAL
    except KeyboardInterrupt:
        _say("interrupted")
        return 130


def _streams() -> None:
    """A stream that was closed before the start (``>&-``) is None: what is said goes nowhere then."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 (open until the process ends)


def _no_more_output() -> None:
    """Python would try to write what is left once more at exit, and complain."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(message: str) -> None:
    line = " ".join(message.split())
    # A file name may hold what the terminal cannot show, or would obey.
    safe = "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in line)
    encoding = sys.stderr.encoding or "utf-8"
    sys.stderr.write(f"zcheck: {safe}\n".encode(encoding, "backslashreplace").decode(encoding))
