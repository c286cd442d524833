"""``zcheck`` and ``python -m zcheck``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"]):
        # Before anything else is imported: asking for the version must cost nothing.
        from zcheck import __version__

        print(f"zcheck {__version__}")
        return
    if getattr(sys, "frozen", False):
        import multiprocessing

        multiprocessing.freeze_support()  # a process of zcheck audit in a one-file program starts here
    if sys.platform == "win32":
        from zcheck.cli.dropped import main as dropped

        code = dropped(arguments)
        if code is not None:
            sys.exit(code)
    from zcheck.cli.app import run

    sys.exit(run(arguments))


if __name__ == "__main__":
    main()
