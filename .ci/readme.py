"""Reads README.md for CI: its commands, so that they cannot drift from what is run, and its help text.

``readme.py command bash|powershell NAME`` prints the one line of the block marked ``<!-- command: NAME -->``;
``readme.py help --check`` fails when a block marked ``<!-- help: VERB -->`` differs from ``zcheck VERB --help``, or
with no verb from ``zcheck --help``; ``readme.py help --write`` brings them up to date. Standard library only, apart
from zcheck for ``help``.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"
HELP = re.compile(r"(?<=<!-- help:)( [a-z]+)?( -->\n```text\n)(.*?)(?=```\n<!-- /help -->)", re.DOTALL)


def command(text: str, shell: str, name: str) -> str:
    """The line of the ``shell`` block under ``<!-- command: NAME -->``; raises SystemExit unless it is just one."""
    section = re.search(rf"<!-- command: {re.escape(name)} -->\n(.*?)<!-- /command -->", text, re.DOTALL)
    block = re.search(rf"```{shell}\n(.*?)```", section.group(1), re.DOTALL) if section else None
    lines = block.group(1).splitlines() if block else []
    if len(lines) != 1:
        raise SystemExit(f"README.md: the {shell} command '{name}' has to be one line, found {len(lines)}")
    return lines[0]


def program_help(*verb: str) -> str:
    """What ``zcheck VERB --help`` prints, 100 columns wide, without colour and blanks at line ends."""
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "PYTHONIOENCODING": "utf-8"}
    environment["PYTHONPATH"] = str(README.parent / "analyzer")
    for name in ("FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS"):  # they make rich write escape sequences into a pipe
        environment.pop(name, None)
    command = [sys.executable, "-m", "zcheck", *verb, "--help"]
    done = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", check=True)
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    return "\n".join(lines).strip("\n") + "\n"


def with_help(text: str) -> str:
    """The README with every help text as the program prints it now; raises SystemExit when it has no such block."""

    def fresh(block: re.Match[str]) -> str:
        verb = block[1] or ""
        return verb + block[2] + program_help(*verb.split())

    text, count = HELP.subn(fresh, text)
    if not count:
        raise SystemExit("README.md has no block between <!-- help: VERB --> and <!-- /help -->")
    return text


def main() -> int:
    """Exit code 0, or 1 when the help text of the README is stale."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("command")
    one.add_argument("shell", choices=("bash", "powershell"))
    one.add_argument("name")
    text = verbs.add_parser("help")
    mode = text.add_mutually_exclusive_group(required=True)
    mode.add_argument("--check", action="store_true")
    mode.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    readme = README.read_text(encoding="utf-8")
    if arguments.verb == "command":
        print(command(readme, arguments.shell, arguments.name))
        return 0
    now = with_help(readme)
    if arguments.write:
        README.write_text(now, encoding="utf-8", newline="\n")
    elif now != readme:
        sys.stderr.writelines(difflib.unified_diff(readme.splitlines(True), now.splitlines(True), "README", "zcheck"))
        print("the help text in README.md is stale: python .ci/readme.py help --write", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
