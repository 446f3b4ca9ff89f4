"""Changes of a feedstock's files that were applied, staged and committed with git as conda-smithy does it.

(conda-smithy, feedstock_io.py and configure_feedstock.py: commit_changes.)
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from feedstock_tools.bounds.held import released
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.files.changes import Changes
from feedstock_tools.files.locks import named_wait
from feedstock_tools.reading import CI_SUPPORT

#: The time limit of a command of git with its hooks, in seconds.
_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Repository:
    """A feedstock that is the top of a git repository, and the program that changes it.

    `environment`: the variables that git sees.
    """

    feedstock: Path
    git: str
    environment: Mapping[str, str]

    def commit(self, changes: Changes, message: str, *, edit: bool = False) -> bool:
        """Stage changes that were applied, and commit the index; whether there was anything to commit.

        Like conda-smithy, this commits everything that is staged, and stages ignored files too.

        Args:
            edit: open the message in the user's editor first.

        Raises:
            WorkError: git fails; the changed files stay, staged or not.
        """
        self._stage(changes)
        if self._run("diff", "--cached", "--quiet", "--exit-code", accepted=(0, 1)).returncode == 0:
            return False
        editing = ("--edit", "--status", "--verbose") if edit else ()
        self._run("commit", "--message", message, *editing, quiet=not edit)
        return True

    def _stage(self, changes: Changes) -> None:
        written = [path for path in changes.seen.keys() | changes.files.keys() if path.is_file()]
        tracked = self._run("ls-files", "-z", "--deleted", "--", CI_SUPPORT).stdout.split(b"\0")
        gone = {path for path in changes.seen.keys() | changes.files.keys() if not path.exists()}
        gone |= {self.feedstock / name.decode(errors="surrogateescape") for name in tracked if name}
        self._update((), [*written])
        self._update(("--force-remove",), self._tracked(gone))
        for way, executable in (("--chmod=+x", True), ("--chmod=-x", False)):
            self._update((way,), [path for path in written if bool(path.stat().st_mode & 0o100) is executable])

    def _tracked(self, gone: Iterable[Path]) -> list[Path]:
        """The files in the index at or below some paths."""
        names = [path.relative_to(self.feedstock).as_posix() for path in gone]
        if not names:
            return []
        found = self._run("--literal-pathspecs", "ls-files", "-z", "--", *sorted(names)).stdout.split(b"\0")
        return [self.feedstock / name.decode(errors="surrogateescape") for name in found if name]

    def _update(self, words: tuple[str, ...], paths: Iterable[Path]) -> None:
        names = sorted(path.relative_to(self.feedstock).as_posix() for path in paths)
        if names:
            listed = b"".join(name.encode(errors="surrogateescape") + b"\0" for name in names)
            self._run("update-index", "--add", *words, "-z", "--stdin", stdin=listed)

    def _run(
        self, *words: str, stdin: bytes = b"", accepted: tuple[int, ...] = (0,), quiet: bool = True
    ) -> subprocess.CompletedProcess[bytes]:
        command, variables = [self.git, "-C", str(self.feedstock), *words], dict(self.environment)
        with released():
            if not quiet:  # the user's editor needs the terminal
                run = subprocess.run(command, env=variables, stdout=None, stderr=None, check=False)
            else:
                try:
                    with named_wait(f"git {words[0]} to end", _SECONDS):
                        run = subprocess.run(
                            command, env=variables, input=stdin, capture_output=True, check=False, timeout=_SECONDS
                        )
                except subprocess.TimeoutExpired as error:
                    message = f"git {words[0]} has not ended within {_SECONDS:g} s"
                    raise WorkError(message, path=self.feedstock) from error
        if run.returncode not in accepted:
            reason = (run.stderr or b"").decode(errors="replace").strip() or f"exit status {run.returncode}"
            raise WorkError(f"git {words[0]} failed: {reason}", path=self.feedstock)
        return run


def find_repository(feedstock: Path, environment: Mapping[str, str]) -> Repository:
    """The repository of a feedstock; ask for it before anything is written.

    Args:
        environment: variables of the process; those that lead git to another repository are ignored.

    Raises:
        InputError: git is not installed, or the feedstock is not the top of a repository.
    """
    git = shutil.which("git", path=environment.get("PATH"))
    if git is None:
        raise InputError("git is not on PATH, so --commit cannot commit", hint="Install git, or leave out --commit.")
    if not (feedstock / ".git").exists():
        raise InputError(
            "is not the top of a git repository, so --commit cannot commit",
            path=feedstock,
            hint="Run 'git init' there, or leave out --commit.",
        )
    leading = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")
    return Repository(feedstock, git, {key: value for key, value in environment.items() if key not in leading})
