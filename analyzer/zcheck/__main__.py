"""``zcheck`` and ``python -m zcheck``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    arguments = sys.argv[1:]
    try:
        if arguments in (["--version"], ["-V"]) and _version():
            return
        if getattr(sys, "frozen", False):
            import multiprocessing

            multiprocessing.freeze_support()  # a process of zcheck audit in a one-file program starts here
        code = _dropped(arguments)
        if code is None:
            from zcheck.cli.app import run

            code = run(arguments)
    except KeyboardInterrupt:  # while modules are still being imported
        code = 130
    sys.exit(code)


def _dropped(arguments: list[str]) -> int | None:
    """The exit code where Explorer started the program with a dropped file, None everywhere else."""
    if sys.platform != "win32":
        return None
    from zcheck.cli.dropped import main as dropped

    return dropped(arguments)


def _version() -> bool:
    """Print the version before anything else is imported: asking for it must cost nothing. False where it cannot be
    written, which the command line tells properly."""
    from zcheck import __version__

    try:
        print(f"zcheck {__version__}", flush=True)
    except (OSError, AttributeError):
        return False
    return True


if __name__ == "__main__":
    main()
