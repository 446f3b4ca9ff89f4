"""Compare a rerender with conda-smithy itself, if it is installed: it runs in a copy of the feedstock."""

from __future__ import annotations

import difflib
import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from feedstock_tools.bounds.limits import released
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.files.changes import Changes
from feedstock_tools.files.locks import named_wait
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.reading import LARGEST_SCRIPT, read_bytes
from feedstock_tools.rerender.smithy import File

#: The time limit of conda-smithy, in seconds: its longest rerenders take 25 minutes.
_SECONDS = 7200.0

_PINNING = "conda_build_config.yaml"
_README = "README.md"
#: Folders that a rerender does not read, and that may be large.
_NOT_READ = (".git", "build_artifacts", "miniforge3")
_NOT_COPIED = shutil.ignore_patterns(*_NOT_READ)
_NUMBER = re.compile(rb"definitionId=\d+\b")


def files_of_conda_smithy(feedstock: Path, pinning: Path | None) -> dict[str, File]:
    """The files of a copy of a feedstock, by path, after the conda-smithy on PATH rerendered it.

    Args:
        pinning: a folder laid out as the conda-forge-pinning package, or its file; None for an empty one.

    Raises:
        InputError: there is no conda-smithy on PATH.
        WorkError: conda-smithy failed; its log is kept.
    """
    program = shutil.which("conda-smithy")
    if program is None:
        raise InputError(
            "conda-smithy is not on PATH, so --verify cannot run",
            hint="Install it from conda-forge, for example with environment.yml.",
        )
    with temporary_folder() as scratch:
        copy = scratch / feedstock.resolve().name
        shutil.copytree(feedstock, copy, ignore=_NOT_COPIED, symlinks=True)
        config = scratch / _PINNING
        if pinning is None:
            config.write_text("{}\n")
        else:
            config = (pinning / _PINNING if pinning.is_dir() else pinning).resolve()
        command = [program, "rerender", "--no-check-uptodate", "--feedstock_directory", str(copy)]
        try:
            with released(), named_wait("conda-smithy to end", _SECONDS):
                run = subprocess.run(
                    [*command, "--exclusive-config-file", str(config)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    check=False,
                    timeout=_SECONDS,
                )
        except subprocess.TimeoutExpired as error:
            raise WorkError(
                f"conda-smithy has not ended within {_SECONDS:g} s", path=_kept(error.output or b"")
            ) from error
        if run.returncode:
            raise WorkError(f"conda-smithy exited with {run.returncode}", path=_kept(run.stdout))
        return dict(_files(copy))


def files_after(changes: Changes) -> dict[str, File]:
    """The files of a feedstock, by path, as they would be after some changes."""
    feedstock = changes.folder
    files = dict(_files(feedstock))
    for path, content in changes.files.items():
        name = path.relative_to(feedstock).as_posix()
        if content is None:
            files = {other: file for other, file in files.items() if other != name and not other.startswith(f"{name}/")}
        else:
            files[name] = File(content, files[name].executable if name in files else False)
    for path, executable in changes.executable.items():
        name = path.relative_to(feedstock).as_posix()
        files[name] = File(files[name].content, executable)
    return files


def lacks_number(files: Mapping[str, File]) -> bool:
    """Whether the README lacks the feedstock's number at Azure, as after a failed look-up."""
    return _README in files and b"definitionId=None" in files[_README].content


def without_number(files: Mapping[str, File]) -> dict[str, File]:
    """The same files without the feedstock's number at Azure, which conda-smithy looks up in the network."""
    readme = files.get(_README)
    if readme is None:
        return dict(files)
    return {**files, _README: File(_NUMBER.sub(b"definitionId=None", readme.content), readme.executable)}


def differences(ours: Mapping[str, File], theirs: Mapping[str, File]) -> Iterator[str]:
    """The differences as a unified diff from conda-smithy's files to ours; empty if all are equal."""
    for name in sorted(ours.keys() | theirs.keys()):
        our, their = ours.get(name), theirs.get(name)
        if our == their:
            continue
        yield from difflib.unified_diff(
            _lines(their), _lines(our), f"conda-smithy/{name}", f"feedstock-tools/{name}", n=1
        )
        if our and their and our.executable != their.executable:
            yield f"{name}: mode {_mode(their)} of conda-smithy's is {_mode(our)} here\n"
        elif not our or not their:
            yield f"{name}: only {'here' if our else 'of conda-smithy'}\n"


def _mode(file: File) -> str:
    return "+x" if file.executable else "-x"


def _lines(file: File | None) -> list[str]:
    return file.content.decode(errors="replace").splitlines(keepends=True) if file else []


def _files(folder: Path) -> Iterator[tuple[str, File]]:
    """The regular files of a feedstock; a rerender neither reads nor writes larger ones."""
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _NOT_READ]
        for name in names:
            path = Path(place, name)
            state = path.lstat()
            if stat.S_ISREG(state.st_mode) and state.st_size <= LARGEST_SCRIPT:
                content = read_bytes(path, LARGEST_SCRIPT, within=None)
                yield path.relative_to(folder).as_posix(), File(content, bool(state.st_mode & 0o100))


def _kept(log: bytes) -> Path:
    with tempfile.NamedTemporaryFile(prefix="conda-smithy-", suffix=".log", delete=False) as kept:
        kept.write(log)
    return Path(kept.name)
