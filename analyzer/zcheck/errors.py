"""The errors that a user can meet: one sentence naming the file and the cause, and the exit code it ends with."""

from __future__ import annotations

# Exit codes of design section 6; the first that holds over all stacks is returned.
EXIT_OK = 0
EXIT_FINDINGS = 1
EXIT_USAGE = 2
EXIT_UNJUDGED = 3
EXIT_INTERNAL = 4
EXIT_RUN_REFUSED = 125


class ZcheckError(Exception):
    """A failure told to the user in one sentence; ``exit_code`` says how the process ends."""

    exit_code = EXIT_INTERNAL

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class UsageError(ZcheckError):
    """Wrong use: an unknown option value, a release that no table knows, a folder without a program."""

    exit_code = EXIT_USAGE


class InputError(ZcheckError):
    """The named file cannot be read, or is not what it has to be."""

    exit_code = EXIT_USAGE


class DataError(ZcheckError):
    """A rule file, a coverage table or a saved report is malformed; names the file and the line or key."""

    exit_code = EXIT_USAGE
