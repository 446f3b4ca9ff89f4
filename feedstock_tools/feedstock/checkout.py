"""The files of a commit of a feedstock, in a temporary folder."""

from __future__ import annotations

import re
import stat
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.reading import is_below, is_inside

#: Seconds and bytes of `git archive`; no feedstock of conda-forge has 100 MB.
_SECONDS = 60
_LARGEST = 256 << 20
_REVISION = re.compile(r"[A-Za-z0-9_./@{}^~-]{1,250}")


#: The main branch of a feedstock, as the clones of maintainers know it.
_MAIN = tuple(f"{remote}{name}" for remote in ("upstream/", "origin/", "") for name in ("main", "master"))


def branch_base(feedstock: Path) -> str:
    """The commit in which the present branch left the main one.

    That of the maintainers' repository (`upstream/main`), of the clone (`origin/main`) or here, whichever is found
    first; on the main branch itself, the last commit.

    Raises:
        InputError: it is not a repository, or has no main branch.
        WorkError: git is missing or fails.
    """
    for name in _MAIN:
        if _git(feedstock, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"):
            base = _git(feedstock, "merge-base", "HEAD", name)
            if base:
                return base[:12]
    hint = "Name the commit or folder to compare with: feedstock-tools review BASE."
    raise InputError("there is no commit in which this branch left a main one", path=feedstock, hint=hint)


def _git(feedstock: Path, *words: str) -> str:
    """What git prints, without the line break; nothing if it fails."""
    git = ["git", "-c", "core.fsmonitor=false", "-C", str(feedstock)]
    try:
        done = subprocess.run([*git, *words], capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        raise WorkError(f"git cannot be run: {error}", path=feedstock) from error
    return done.stdout.strip() if done.returncode == 0 else ""


@contextmanager
def checked_out(feedstock: Path, revision: str) -> Iterator[Path]:
    """A folder with the files of a commit, branch or tag; removed afterwards. The repository stays as it is.

    Raises:
        InputError: the repository has no such revision, or it is not a repository; or a file of the commit would lead
            out of the folder.
        WorkError: git is missing or fails.
    """
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


def _pack(feedstock: Path, revision: str, packed: Path) -> None:
    """Write the files of a commit into a tar."""
    git = ["git", "-c", "core.fsmonitor=false", "-C", str(feedstock)]
    name = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"]
    try:
        found = subprocess.run([*git, *name], capture_output=True, text=True, timeout=_SECONDS, check=False)
        if found.returncode != 0:
            raise InputError(f"'{revision}' is neither a folder nor a commit", path=feedstock)
        command = [*git, "archive", "--format=tar", f"--output={packed}", found.stdout.strip(), "."]
        subprocess.run(command, capture_output=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise WorkError(f"git cannot read commit '{revision}': {error}", path=feedstock) from error
    if packed.stat().st_size > _LARGEST:
        raise InputError(f"commit '{revision}' has more than {_LARGEST >> 20} MiB", path=feedstock)
