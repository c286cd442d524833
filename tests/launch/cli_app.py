"""The launcher's verbs as a command line of their own, for Linux' and Windows' Python alike."""

from __future__ import annotations

import sys

import typer

from zcheck.cli.ab import ab
from zcheck.cli.run import run
from zcheck.cli.trace import trace
from zcheck.cli.undo import undo
from zcheck.errors import ZcheckError

app = typer.Typer(pretty_exceptions_enable=False)
app.command("run")(run)
app.command("undo")(undo)
app.command("trace")(trace)
app.command("ab")(ab)


def main(arguments: list[str]) -> int:
    """Runs one command line and returns its exit code."""
    command = typer.main.get_command(app)
    try:
        result = command.main(args=arguments, prog_name="zcheck", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except ZcheckError as error:
        sys.stderr.write(f"zcheck: {error.message}\n")
        return error.exit_code
    except Exception as error:
        if type(error).__name__ in ("Exit", "Abort"):
            return int(getattr(error, "exit_code", 1))
        if hasattr(error, "format_message"):
            sys.stderr.write(f"{error.format_message()}\n")
            return 2
        raise


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
