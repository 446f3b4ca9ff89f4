"""What the client keeps of a fleet's jobs in its private folder: their kinds, and what each job gets."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4

from feedstock_tools.builds.fleet.certificates import write_private
from feedstock_tools.builds.fleet.cluster.script import JobKind
from feedstock_tools.builds.fleet.folder import FleetFolder, add_host
from feedstock_tools.errors import InputError
from feedstock_tools.files.temporary import remove
from feedstock_tools.reading import read_text

_KINDS, JOBS = "slurm.json", "jobs"
#: The digits of a job's name: as many as keep two jobs of a fleet apart.
_DIGITS = 8


def write_kinds(fleet: FleetFolder, kinds: Iterable[JobKind]) -> None:
    """Keep the kinds of job of a fleet.

    Raises:
        WorkError: the folder cannot be written.
    """
    write_private(fleet.path / _KINDS, json.dumps([kind.to_json() for kind in kinds], indent=1).encode())


def remove_kinds(fleet: FleetFolder) -> None:
    """Forget the kinds of job of a fleet."""
    remove(fleet.path / _KINDS)


def job_kinds(fleet: FleetFolder) -> tuple[JobKind, ...]:
    """The kinds of job of a fleet; empty for one without a cluster.

    Raises:
        InputError: the file is damaged.
    """
    path = fleet.path / _KINDS
    if not path.is_file():
        return ()
    try:
        return tuple(JobKind.from_json(each) for each in json.loads(read_text(path, within=fleet.path)))
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            "the file is damaged", path=path, hint="`feedstock-tools fleet slurm up` writes it."
        ) from error


def add_job(fleet: FleetFolder, kind: JobKind) -> tuple[str, Path]:
    """Make what a new job gets: a name and a certificate that no other job has; returns the name and the folder.

    Raises:
        WorkError: the folder cannot be written.
    """
    name = f"{kind.name}-{uuid4().hex[:_DIGITS]}"
    return name, add_host(fleet, name, kind.worker_settings(name), fleet.path / JOBS / name)


def remove_jobs(fleet: FleetFolder, living: Iterable[str]) -> None:
    """Remove what ended jobs had."""
    kept = set(living)
    folder = fleet.path / JOBS
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.name not in kept:
            remove(path)
