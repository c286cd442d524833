"""Arguments for Windows programs: the C runtime's rules, and what each release's launcher makes of them.

Up to v6-preview.27 the launcher quotes the program's arguments itself (vosen/ZLUDA, tag v6-preview.27,
zluda_inject/src/bin.rs:257, ``construct_command_line``). From v6-preview.28 to v7-preview.9 it joins them with bare
spaces (tag v7-preview.9, zluda_inject/src/args.rs:21, ``command_line_zero_terminated``), so each has to arrive quoted.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from zcheck.model.launch import Quoting


def quote(argument: str) -> str:
    """One argument as the C runtime reads it back (Microsoft, "Parsing C command-line arguments")."""
    return subprocess.list2cmdline([argument])


def command_line(arguments: Sequence[str]) -> str:
    """The command line for CreateProcess."""
    return subprocess.list2cmdline(arguments)


def needs_quotes(argument: str) -> bool:
    """Whether a bare join would change the argument."""
    return quote(argument) != argument


def for_launcher(program: str, arguments: Sequence[str], quoting: Quoting) -> tuple[str, ...] | None:
    """Program and arguments as they have to be handed to a launcher that joins them its own way.

    ``None``: the launcher's way is not known and would matter.
    """
    tokens = (program, *arguments)
    if quoting == "quoted" or (quoting == "unknown" and not any(map(needs_quotes, tokens))):
        return tokens
    return tuple(map(quote, tokens)) if quoting == "raw" else None
