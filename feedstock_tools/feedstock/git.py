"""What git knows of a feedstock: its commit, where its branch left the main one, and the files of a commit; and changes
that are committed as conda-smithy does it (feedstock_io.py; configure_feedstock.py: commit_changes)."""

from __future__ import annotations

import re
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from feedstock_tools.bounds.limits import released
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.files.locks import named_wait
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.reading import CI_SUPPORT, is_below, is_inside

if TYPE_CHECKING:
    import subprocess
    import tarfile

    from feedstock_tools.files.changes import Changes

#: The time limit of git, in seconds; on a slow disk the status of a large repository takes some of it.
_SECONDS = 60
#: The same for changes, since hooks may run.
_LONGEST_COMMIT = 3600.0
#: Bytes of `git archive`; no feedstock of conda-forge has 100 MB.
_LARGEST = 256 << 20
_REVISION = re.compile(r"[A-Za-z0-9_./@{}^~-]{1,250}")
#: The main branch of a feedstock, as the clones of maintainers know it.
_MAIN = tuple(f"{remote}{name}" for remote in ("upstream/", "origin/", "") for name in ("main", "master"))


def commit_of(folder: Path) -> str:
    """The commit of the git repository that a folder is in, with `+` if the folder differs; empty without one."""
    try:
        commit = _git(folder, "rev-parse", "HEAD")
        changed = _git(folder, "status", "--porcelain", "--", ".", ":(exclude)build_artifacts")
    except WorkError:
        return ""
    if commit.returncode or changed.returncode:
        return ""
    return commit.stdout.strip() + ("+" if changed.stdout else "")


def epoch_of(folder: Path, machine: Mapping[str, str]) -> int | None:
    """The time that packages of a feedstock hold, in seconds since 1970: that of its commit; None without one.

    Args:
        folder: the feedstock.
        machine: the environment, whose `SOURCE_DATE_EPOCH` comes first (reproducible-builds.org).
    """
    epoch = machine.get("SOURCE_DATE_EPOCH", "")
    if epoch.isascii() and epoch.isdigit():
        return int(epoch)
    try:
        shown = _git(folder, "show", "--no-patch", "--format=%ct", "HEAD")
        return None if shown.returncode else int(shown.stdout)
    except (WorkError, ValueError):
        return None


def branch_base(feedstock: Path) -> str:
    """The commit in which the present branch left the main one.

    That of the maintainers' repository (`upstream/main`), of the clone (`origin/main`) or here, whichever is found
    first; on the main branch itself, the last commit.

    Raises:
        InputError: it is not a repository, or has no main branch.
        WorkError: git is missing or fails.
    """
    for name in _MAIN:
        if _commit(feedstock, name):
            base = _git(feedstock, "merge-base", "HEAD", name)
            if base.returncode == 0 and base.stdout.strip():
                return base.stdout[:12].strip()
    hint = "Name the commit or folder to compare with: feedstock-tools review BASE."
    raise InputError("there is no commit in which this branch left a main one", path=feedstock, hint=hint)


def left_out(folder: Path, paths: Iterable[Path]) -> tuple[str, ...]:
    """Those of a folder's files that a `.gitignore` keeps out of its repository, by their path in it.

    conda-smithy's `.gitignore` admits only `recipe`, `.ci_support` and `conda-forge.yml`. Files that are in the
    repository already stay there. Where git does not answer, there are none.
    """
    names = [path.relative_to(folder).as_posix() for path in paths]
    try:
        found = _git(folder, "-c", "core.quotePath=false", "check-ignore", "--", *names)
    except WorkError:
        return ()
    return tuple(found.stdout.splitlines()) if found.returncode == 0 else ()


@contextmanager
def checked_out(feedstock: Path, revision: str) -> Iterator[Path]:
    """A folder with the files of a commit, branch or tag; removed afterwards. The repository stays as it is.

    Raises:
        InputError: the repository has no such revision, or it is not a repository; or a file of the commit would lead
            out of the folder.
        WorkError: git is missing or fails.
    """
    import tarfile

    if not _REVISION.fullmatch(revision) or revision.startswith("-"):
        raise InputError(f"'{revision}' is neither a folder nor a commit")
    with temporary_folder() as place:
        packed, folder = place / "commit.tar", place / "feedstock"
        folder.mkdir()
        _pack(feedstock, revision, packed)
        with tarfile.open(packed) as archive:
            for member in archive:
                if not _unpacked(archive, member, folder):
                    message = f"the files of commit '{revision}' are refused: {member.name} leads out of it"
                    raise InputError(message, path=feedstock)
        yield folder


def _pack(feedstock: Path, revision: str, packed: Path) -> None:
    commit = _commit(feedstock, revision)
    if not commit:
        raise InputError(f"'{revision}' is neither a folder nor a commit", path=feedstock)
    done = _git(feedstock, "archive", "--format=tar", f"--output={packed}", commit, ".")
    if done.returncode:
        raise WorkError(f"git cannot read commit '{revision}': {done.stderr.strip()}", path=feedstock)
    if packed.stat().st_size > _LARGEST:
        raise InputError(f"commit '{revision}' has more than {_LARGEST >> 20} MiB", path=feedstock)


def _commit(feedstock: Path, revision: str) -> str:
    """The hash of a commit; empty if there is none of that name."""
    found = _git(feedstock, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    return found.stdout.strip() if found.returncode == 0 else ""


def _git(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run git in a folder. Programs from the repository's own settings must not run."""
    import subprocess

    command = ["git", "-c", "core.fsmonitor=false", "-C", str(folder), *words]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        raise WorkError(f"git cannot be run: {error}", path=folder) from error


def _unpacked(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> bool:
    """Unpack a folder, a file or a link; whether it stays in the folder. Python's own filters came with 3.11.4."""
    path = folder / member.name
    if not is_below(path, folder) or not is_inside(path.parent, folder):
        return False
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
    elif member.issym():
        if not is_below(path.parent / member.linkname, folder):
            return False
        path.symlink_to(member.linkname)
    elif (content := archive.extractfile(member)) is not None:
        path.write_bytes(content.read())
        if member.mode & stat.S_IXUSR:
            path.chmod(0o755)
    return True


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
        import subprocess

        command, variables = [self.git, "-C", str(self.feedstock), *words], dict(self.environment)
        with released():
            if not quiet:  # the user's editor needs the terminal
                run = subprocess.run(command, env=variables, stdout=None, stderr=None, check=False)
            else:
                try:
                    with named_wait(f"git {words[0]} to end", _LONGEST_COMMIT):
                        run = subprocess.run(
                            command,
                            env=variables,
                            input=stdin,
                            capture_output=True,
                            check=False,
                            timeout=_LONGEST_COMMIT,
                        )
                except subprocess.TimeoutExpired as error:
                    message = f"git {words[0]} has not ended within {_LONGEST_COMMIT:g} s"
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
