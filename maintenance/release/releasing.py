"""The steps of a release, from a clean checkout to a tag.

The release commit and its archives are made in a git worktree of their own. The checkout gets the commit and the tag
only after every check has passed, so that a release that fails leaves nothing behind.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.generate.generating import apply
from feedstock_tools.generate.spec.reading import read_spec
from feedstock_tools.generate.texts.rendering import render
from maintenance.release import changelog, contents

VERSION_FILE = Path("feedstock_tools/__init__.py")
#: Exact versions of what makes the archives, so that the same commit gives the same bytes on another day.
CONSTRAINTS = Path("maintenance/release/constraints.txt")
#: The dependencies of the program and of its extras for users, in exact versions with hashes.
LOCK = Path("requirements.lock")
#: The second build differs in these from the first, besides its folder: modes of files, and their times.
_OTHER_UMASK, _OTHER_TIME = 0o077, 1_000_000_000
#: Findings of check-wheel-contents that are meant: each example is a whole feedstock, with its own license and tests.
_MEANT = "W002,W004"
#: The feedstock that makes the conda package of the archives.
OWN_FEEDSTOCK = Path("examples/feedstock-tools")
_SPEC_LINE = re.compile(r"^version: .*$", re.MULTILINE)
_VERSION_LINE = re.compile(r'^__version__ = "(.*)"$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Release:
    """A release that passed its checks."""

    version: str
    commit: str
    #: The changelog's section.
    notes: str
    #: Wheel and source archive.
    archives: tuple[Path, ...]
    #: The bill of materials.
    sbom: Path

    def digests(self) -> Iterator[str]:
        """A line for each archive, as sha256sum writes it."""
        for path in (*self.archives, self.sbom):
            yield f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path}"


def release(repository: Path, version: str, day: date, target: Path, *, dry_run: bool) -> Release:
    """Release a version: commit its number and changelog, build and check its archives, tag it.

    Args:
        repository: the top of a clean checkout, on a branch.
        version: such as `0.2.0`: the one in the code or a later one, without a tag.
        day: the date that the changelog gets.
        target: the folder that gets the archives.
        dry_run: leave out the last step: the checkout gets neither commit nor tag.

    Raises:
        InputError: the checkout is not ready, or the version or the changelog does not fit.
        WorkError: an archive could not be built, or a check of it failed.
    """
    check_ready(repository, version)
    with _worktree(repository, "HEAD") as folder:
        write_version(folder, version)
        log = folder / changelog.FILE
        log.write_text(changelog.with_release(log.read_text(encoding="utf-8"), version, day), encoding="utf-8")
        # The hooks check changed code; a version and a date are not.
        _git(folder, "commit", "--quiet", "--all", "--no-verify", "--message", f"Release {version}")
        made = _made(folder, version, target)
    if not dry_run:
        _git(repository, "merge", "--quiet", "--ff-only", made.commit)
        message = f"feedstock-tools {version}\n\n{made.notes}"
        # Verbatim: git would take the headings of the notes for comments.
        _git(repository, "tag", "--annotate", "--cleanup=verbatim", "--message", message, f"v{version}", made.commit)
    return made


def rebuild(repository: Path, version: str, target: Path) -> Release:
    """Build and check the archives of a version that has its tag; nothing is committed or tagged.

    Raises:
        InputError: there is no such tag.
        WorkError: an archive could not be built, or a check of it failed.
    """
    if not _git(repository, "tag", "--list", f"v{version}"):
        raise InputError(f"there is no tag v{version}", hint="Fetch the tags: git fetch --tags.")
    with _worktree(repository, f"v{version}") as folder:
        return _made(folder, version, target)


def check_ready(repository: Path, version: str) -> None:
    """Check that a version can be released from a checkout.

    Raises:
        InputError: files were changed or are untracked, HEAD is on no branch, the version is malformed, older than
            the code's, or has a tag, or nothing in the changelog is unreleased.
    """
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise InputError(f"'{version}' is not a version", hint="Give three numbers: 0.2.0.")
    if changed := _git(repository, "status", "--porcelain"):
        raise InputError(f"the checkout is not clean:\n{changed}", hint="Commit or remove these files.")
    if not _git(repository, "branch", "--show-current"):
        raise InputError("HEAD is on no branch", hint="Check out the branch that the release is made from.")
    newest = max((_numbers(tag[1:]) for tag in _git(repository, "tag", "--list", "v*.*.*").split()), default=())
    current = _version_in(repository)
    if _numbers(version) <= newest or _numbers(version) < _numbers(current):
        least = ".".join(map(str, newest)) if newest else current
        raise InputError(f"version {version} is not later than {least}", hint="Give a later version.")
    changelog.notes_of((repository / changelog.FILE).read_text(encoding="utf-8"), changelog.UNRELEASED)


def _made(folder: Path, version: str, target: Path) -> Release:
    """Build the archives of a checkout twice, check them, and put them into `target`."""
    if _version_in(folder) != version:
        raise InputError(f"{VERSION_FILE} does not name version {version}")
    notes = changelog.notes_of((folder / changelog.FILE).read_text(encoding="utf-8"), version)
    with tempfile.TemporaryDirectory() as scratch:
        first = _built(folder, Path(scratch, "first"))
        with _worktree(folder, "HEAD", umask=_OTHER_UMASK) as other:
            for path in other.rglob("*"):
                os.utime(path, (_OTHER_TIME, _OTHER_TIME), follow_symlinks=False)
            second = _built(other, Path(scratch, "second"), umask=_OTHER_UMASK)
        for one, again in zip(first, second, strict=True):
            if one.read_bytes() != again.read_bytes():
                raise WorkError(f"{one.name} is not reproducible: two builds of the same commit differ")
        _check(folder, first, version)
        listed = Path(scratch, f"feedstock_tools-{version}.cdx.json")
        _install(folder, first[1], version, listed)
        target.mkdir(parents=True, exist_ok=True)
        *archives, sbom = (Path(shutil.copy2(path, target)) for path in (*first, listed))
    return Release(version, _git(folder, "rev-parse", "HEAD"), notes, tuple(archives), sbom)


def _built(folder: Path, target: Path, *, umask: int = -1) -> tuple[Path, ...]:
    """The source archive, and the wheel made from it, with the time of the commit as the time of their files."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(_epoch(folder)), "PIP_CONSTRAINT": str(folder / CONSTRAINTS)}
    _run([sys.executable, "-m", "build", "--outdir", str(target), str(folder)], environment, umask)
    (wheel,), (sdist,) = target.glob("*.whl"), target.glob("*.tar.gz")
    return sdist, wheel


def _check(folder: Path, archives: Sequence[Path], version: str) -> None:
    """Check for an index: metadata that twine accepts, a sound wheel, and all files."""
    sdist, wheel = archives
    tracked = _git(folder, "ls-files").splitlines()
    contents.check_sdist(sdist, tracked, version)
    contents.check_wheel(wheel, tracked, version)
    _run([sys.executable, "-m", "twine", "check", "--strict", *map(str, archives)])
    program = str(Path(sys.executable).with_name("check-wheel-contents"))
    _run([program, "--no-config", "--toplevel=feedstock_tools", f"--ignore={_MEANT}", str(wheel)])


def _install(folder: Path, wheel: Path, version: str, sbom: Path) -> None:
    """Install the wheel with the locked dependencies, start the program, and write what is installed then to `sbom`."""
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        _run([sys.executable, "-m", "venv", "--without-pip", str(scratch / "environment")])
        python = str(scratch / "environment" / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
        quiet = ("--quiet", "--disable-pip-version-check")
        pip = [sys.executable, "-m", "pip", *quiet, f"--python={python}", "install", "--no-deps"]
        _run([*pip, "--require-hashes", "--only-binary=:all:", "--requirement", str(folder / LOCK)])
        _run([*pip, str(wheel)])
        start = [python, "-P", "-m", "feedstock_tools"]
        if version not in _run([*start, "--version"]):
            raise WorkError(f"{wheel.name}: the program does not start as version {version}")
        _run([*start, "cuda", "variants"])
        project = (folder / "pyproject.toml").read_text(encoding="utf-8")
        named = scratch / "pyproject.toml"
        named.write_text(project.replace('dynamic = ["version"]', f'version = "{version}"'), encoding="utf-8")
        options = (
            "--output-reproducible",
            "--short-PURLs",
            "--spec-version=1.6",
            "--validate",
            f"--output-file={sbom}",
        )
        _run(
            [sys.executable, "-m", "cyclonedx_py", "environment", f"--pyproject={named}", *options, python],
            {**os.environ, "SOURCE_DATE_EPOCH": str(_epoch(folder))},
        )


def _epoch(folder: Path) -> int:
    """The time of the commit, in seconds."""
    return int(_git(folder, "show", "--no-patch", "--format=%ct", "HEAD"))


def _version_in(folder: Path) -> str:
    match = _VERSION_LINE.search((folder / VERSION_FILE).read_text(encoding="utf-8"))
    if not match:
        raise InputError('there is no line __version__ = "…"', path=VERSION_FILE)
    return match[1]


def write_version(folder: Path, version: str) -> None:
    """Write a version into the code, and into the spec and the recipe of the program's own feedstock."""
    path = folder / VERSION_FILE
    path.write_text(_VERSION_LINE.sub(f'__version__ = "{version}"', path.read_text(encoding="utf-8")), encoding="utf-8")
    spec = folder / OWN_FEEDSTOCK / "feedstock.yaml"
    spec.write_text(_SPEC_LINE.sub(f"version: {version}", spec.read_text(encoding="utf-8")), encoding="utf-8")
    apply(spec.parent, render(read_spec(spec.parent)))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


@contextmanager
def _worktree(repository: Path, commit: str, *, umask: int = -1) -> Iterator[Path]:
    """A detached worktree of a commit, gone at the end; it holds tracked files alone."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "feedstock-tools")
        _git(repository, "worktree", "add", "--quiet", "--detach", str(folder), commit, umask=umask)
        try:
            yield folder
        finally:
            _git(repository, "worktree", "remove", "--force", str(folder))


def _git(folder: Path, *arguments: str, umask: int = -1) -> str:
    return _run(["git", "-C", str(folder), *arguments], umask=umask)


def _run(command: Sequence[str], environment: Mapping[str, str] | None = None, umask: int = -1) -> str:
    """What a program prints, without blanks around it; its files get the modes that `umask` leaves (-1: as here).

    Raises:
        WorkError: the program is missing or fails; the message ends with what it wrote.
    """
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, umask=umask)
    except OSError as error:
        raise WorkError(f"{command[0]} cannot be started: {error}") from error
    if done.returncode:
        written = (done.stdout + done.stderr).strip().splitlines()[-20:]
        raise WorkError("\n".join([f"this failed: {' '.join(command)}", *(f"  {line}" for line in written)]))
    return done.stdout.strip()
