"""Hold a rerender against conda-smithy itself, where it is installed: it runs in a copy, and the files are compared."""

from __future__ import annotations

import difflib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.rerender.configurations.configuration import CI_SUPPORT

__all__ = ["differences", "files_of_conda_smithy"]

_PINNING = "conda_build_config.yaml"
#: What a rerender does not read, and what may be large.
_NOT_COPIED = shutil.ignore_patterns(".git", "build_artifacts", "miniforge3")


def files_of_conda_smithy(feedstock: Path, pinning: Path | None) -> dict[str, bytes]:
    """The files of `.ci_support`, by name, that the conda-smithy on PATH writes for a copy of a feedstock.

    Args:
        pinning: a folder laid out as the conda-forge-pinning package is, or its file; None for an empty one.

    Raises:
        InputError: there is no conda-smithy on PATH.
        WorkError: it failed; its log is kept.
    """
    program = shutil.which("conda-smithy")
    if program is None:
        raise InputError(
            "conda-smithy is not on PATH, so there is nothing to verify with",
            hint="It comes from conda-forge: environment.yml names it.",
        )
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / feedstock.resolve().name
        shutil.copytree(feedstock, copy, ignore=_NOT_COPIED, symlinks=True)
        config = Path(scratch) / _PINNING
        if pinning is None:
            config.write_text("{}\n")
        else:
            config = (pinning / _PINNING if pinning.is_dir() else pinning).resolve()
        command = [program, "rerender", "--no-check-uptodate", "--feedstock_directory", str(copy)]
        run = subprocess.run(
            [*command, "--exclusive-config-file", str(config)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        if run.returncode:
            raise WorkError(f"conda-smithy exited with {run.returncode}", path=_kept(run.stdout))
        return {path.name: path.read_bytes() for path in (copy / CI_SUPPORT).glob("*.yaml")}


def differences(ours: Mapping[str, bytes], theirs: Mapping[str, bytes]) -> Iterator[str]:
    """Lines that tell the files apart, as a unified diff from conda-smithy's to ours; none where all are equal."""
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
