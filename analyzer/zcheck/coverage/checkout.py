"""Reads files of a Git checkout at any revision, through one ``git cat-file`` process."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import TracebackType

from zcheck.errors import InputError

_MOST = 64 * 1024 * 1024
"""bytes of the largest file that is read"""


class Checkout:
    """A Git repository on this computer (with or without a work tree). Use it in a ``with`` statement.

    Raises InputError when the folder is none, or git is not installed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._git("rev-parse", "--git-dir")
        self._batch = subprocess.Popen(
            ["git", "-C", str(folder), "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def __enter__(self) -> Checkout:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._batch.stdin:
            self._batch.stdin.close()
        self._batch.wait()
        if self._batch.stdout:
            self._batch.stdout.close()

    def _git(self, *arguments: str) -> str:
        try:
            done = subprocess.run(
                ["git", "-C", str(self.folder), *arguments],
                capture_output=True,
                text=True,
                encoding="utf-8",
                check=False,
            )
        except OSError as error:
            raise InputError(f"{self.folder} cannot be read: git does not start ({error.strerror})") from error
        if done.returncode:
            raise InputError(f"{self.folder} is no Git checkout that can be read: {done.stderr.strip()}")
        return done.stdout

    def tags(self) -> dict[str, tuple[str, str]]:
        """tag → (commit, its date in ISO 8601), oldest commit first."""
        form = "%(refname:short)%09%(if)%(*objectname)%(then)%(*objectname)%(else)%(objectname)%(end)"
        tags = [line.split("\t") for line in self._git("for-each-ref", f"--format={form}", "refs/tags").splitlines()]
        dates = {}
        for tag, commit in tags:
            dates[tag] = (commit, self._git("show", "-s", "--format=%cI", commit).strip())
        return dict(sorted(dates.items(), key=lambda item: item[1][1]))

    def commit_of(self, revision: str) -> tuple[str, str]:
        """(commit, its date in ISO 8601) of a tag, branch or commit."""
        commit, date = self._git("show", "-s", "--format=%H%n%cI", f"{revision}^{{commit}}").split()
        return commit, date

    def files(self, revision: str, folder: str) -> list[str]:
        """Paths of the files under ``folder`` at a revision, none when it has no such folder."""
        return self._git("ls-tree", "-r", "--name-only", revision, "--", folder).splitlines()

    def read(self, revision: str, path: str) -> str | None:
        """Text of one file at a revision; None when it is not there, InputError when it is too large."""
        stdin, stdout = self._batch.stdin, self._batch.stdout
        if stdin is None or stdout is None or "\n" in path:
            return None
        stdin.write(f"{revision}:{path}\n".encode())
        stdin.flush()
        header = stdout.readline().split()
        if len(header) != 3 or header[1] != b"blob":
            if len(header) == 3:  # a folder: skip what is sent of it
                stdout.read(int(header[2]) + 1)
            return None
        size = int(header[2])
        if size > _MOST:
            raise InputError(f"{self.folder}: {path} at {revision} has {size:,} bytes, more than are read")
        data = stdout.read(size)
        stdout.read(1)
        return data.decode("utf-8", "replace")
