"""Packages from hosts: fetched into a folder of their own, and checked against the plan before they enter a channel.

What fails a check stays there with the reason. Nothing that a host says about a package is believed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from feedstock_tools.builds.fleet.carrying.link import Link
from feedstock_tools.builds.fleet.host.store import is_hash
from feedstock_tools.builds.fleet.results.events import Delivered
from feedstock_tools.builds.plan.row import Row
from feedstock_tools.builds.runs.delivery import check_artifact, check_gpu_code, with_final_name
from feedstock_tools.channel.packages.reading import verify_package
from feedstock_tools.channel.properties import ChannelProperties, properties_by_marks
from feedstock_tools.digests import sha256_of
from feedstock_tools.errors import FeedstockError, WorkError
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.feedstock.planned import PlannedOutput
from feedstock_tools.files.temporary import remove

#: Bytes of a package, several times the largest of conda-forge.
LARGEST = 16 << 30


class Rejected(Exception):  # noqa: N818 - a peer's fault
    """What a host sent is not what it was to make; the message gives the reason."""


class Quarantine:
    """The quarantine of one attempt at a row."""

    def __init__(self, artifacts: Artifacts, attempt: str, host: str, row: Row) -> None:
        """Prepare it; no folder is made yet.

        Args:
            attempt: its name, 32 hexadecimal digits.
        """
        self._folder = artifacts.quarantine / f"{attempt}-{host}"
        self._attempt = attempt
        self._host = host
        self._row = row

    def fetch(self, link: Link, content: str, size: int, limit: int, is_over: Callable[[], bool]) -> Path:
        """Fetch a file of the attempt by its hash.

        Args:
            limit: the most bytes that it may have.

        Raises:
            Away: the host cannot be reached; what has come is kept for the next time.
            Refused: the host does not have it.
            Rejected: its size or its contents are others than the host said.
            WorkError: it cannot be written.
        """
        if not is_hash(content) or not 0 <= size <= limit:
            raise Rejected(f"its hash or its size ({size} bytes) cannot be one")
        path = self._folder / content
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            link.fetch(self._host, self._attempt, content, size, path, is_over)
            if sha256_of(path) != content:
                raise Rejected("its bytes are others than those that its host gave the sha256 of")
        except OSError as error:
            raise WorkError(f"cannot write what a host made: {error.strerror or error}", path=path) from error
        return path

    def expected(self, event: Delivered, wanted: Mapping[str, PlannedOutput]) -> PlannedOutput:
        """The output that a package must be, before it is fetched.

        Raises:
            Rejected: it was not ordered, under this identity or with this path.
        """
        planned = wanted.get(event.output)
        if planned is None:
            raise Rejected(f"{event.output!r} was not ordered")
        if event.identity != self._row.wanted.identities[planned.name]:
            raise Rejected(f"{planned.name} was built under another identity than the one that was ordered")
        if planned.is_shared:  # it stays on its host
            return planned
        subdir, _, name = event.file.partition("/")
        stem = f"{planned.name}-{planned.version}-"
        plain = name.startswith(stem) and name.endswith(".conda") and not set(name) & set("/\\:\0")
        if subdir != planned.subdir or not plain:
            raise Rejected(f"the path of {planned.name} is not one that it can have: {event.file[:200]!r}")
        return planned

    def package(
        self,
        fetched: Path,
        event: Delivered,
        planned: PlannedOutput,
        siblings: Mapping[str, PlannedOutput],
        feedstock: Path,
        built_on: ChannelProperties,
    ) -> tuple[Path, PlannedOutput]:
        """A fetched package under its name, after the checks that every package passes, and its output as built.

        Args:
            siblings: all outputs of the row, by name.
            feedstock: its folder.
            built_on: the channels of the plan.

        Raises:
            Rejected: it fails a check.
        """
        path = fetched.with_name(event.file.rpartition("/")[2])
        fetched.rename(path)
        try:
            verify_package(path)
            promise = with_final_name(path, planned)
            if event.file != f"{promise.subdir}/{promise.file_name}":
                raise Rejected(f"its name is not {promise.file_name}, as the plan has it")
            artifact = check_artifact(path, promise, {**siblings, promise.name: promise}, None)
            check_gpu_code(path, feedstock, promise.name, self._row.planned.cuda)
            if properties_by_marks(artifact.metadata.extra).origin != built_on.origin:
                raise Rejected("it was built on other channels than those of the plan")
        except FeedstockError as error:
            raise Rejected(str(error)) from error
        except (ValueError, OSError) as error:
            raise Rejected(f"it cannot be read: {error}") from error
        return path, promise

    def keep(self, what: str, reason: str) -> Path:
        """Write down why something stays in quarantine; returns the folder."""
        content = {"attempt": self._attempt, "host": self._host, "row": self._row.name, "what": what, "reason": reason}
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            (self._folder / "reason.json").write_text(json.dumps(content, indent=1))
        return self._folder

    def clear(self) -> None:
        """Remove the folder, unless something stays there."""
        if not (self._folder / "reason.json").exists():
            remove(self._folder)
