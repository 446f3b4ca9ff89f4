"""Compare a rerender with conda-smithy itself, if it is installed: it runs in a copy of the feedstock."""

from __future__ import annotations

import difflib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.reading import read_bytes
from feedstock_tools.rerender.configurations.configuration import CI_SUPPORT
from feedstock_tools.temporary import temporary_folder

__all__ = ["differences", "files_of_conda_smithy"]

#: The time limit of conda-smithy, in seconds: its longest rerenders take 25 minutes.
_SECONDS = 7200.0

_PINNING = "conda_build_config.yaml"
#: Folders that a rerender does not read, and that may be large.
_NOT_COPIED = shutil.ignore_patterns(".git", "build_artifacts", "miniforge3")


def files_of_conda_smithy(feedstock: Path, pinning: Path | None) -> dict[str, bytes]:
    """The files of `.ci_support`, by name, that the conda-smithy on PATH writes for a copy of a feedstock.

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
        return {path.name: read_bytes(path, within=copy) for path in (copy / CI_SUPPORT).glob("*.yaml")}


def differences(ours: Mapping[str, bytes], theirs: Mapping[str, bytes]) -> Iterator[str]:
    """The differences as a unified diff from conda-smithy's files to ours; empty if all are equal."""
    for name in sorted(ours.keys() | theirs.keys()):
        if ours.get(name) != theirs.get(name):
            their_lines, our_lines = (
                files.get(name, b"").decode(errors="replace").splitlines(keepends=True) for files in (theirs, ours)
            )
            yield from difflib.unified_diff(
                their_lines, our_lines, f"conda-smithy/{name}", f"feedstock-tools/{name}", n=1
            )


def _kept(log: bytes) -> Path:
    with tempfile.NamedTemporaryFile(prefix="conda-smithy-", suffix=".log", delete=False) as kept:
        kept.write(log)
    return Path(kept.name)
