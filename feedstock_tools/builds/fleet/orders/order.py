"""An order: one attempt at one row for any host, as plain JSON. It names files by their hashes, and no program."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from pydantic import TypeAdapter

from feedstock_tools.builds.ledger import BuildRecord
from feedstock_tools.builds.plan.hosts import Share
from feedstock_tools.builds.plan.needs import Needs
from feedstock_tools.builds.plan.row import Row, Running, Wanted
from feedstock_tools.digests import digest_of_values
from feedstock_tools.feedstock.layout import kept_name
from feedstock_tools.feedstock.planned import SHARED, PlannedConfiguration


class Refused(Exception):  # noqa: N818 - not an error of the program
    """A host does not do what it was sent; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel of a build: its name or URL; or the bundle of a folder, which has no name elsewhere."""

    name: str
    bundle: str = ""


@dataclass(frozen=True, slots=True)
class Made:
    """An output of the row that is built already: its identity, and its package by place and hash."""

    output: str
    identity: str
    channel: str
    file: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Order:
    """One attempt.

    Attributes:
        number: of the attempt at the row, from 1.
        again: makes it another order than those before, for a row that is built once more; else empty.
        version: of feedstock-tools; a host of another version refuses.
        engine: its name; `engine_version` is part of the identities, so a host with another one refuses.
        bundle: the identity of the files; `feedstock` is the feedstock's folder in it, `recipe` the recipe's path.
        row: the configuration with only this row, as `PlannedConfiguration.to_json` gives it.
        identities: output → its identity in the ledger; `inputs` → the parts of that.
        wanted: the names of the outputs to build; `made` are the others.
        shared: the shared builds that the outputs inherit from: name → identity.
        channels: as chosen by the client; `origin` is theirs.
        cores: what the row needs; None for an equal part of its host. `memory`, `memory_per_job` and `remembered`
            likewise; see `Needs`.
        jobs: the most jobs for its tools; None for as many as its part of the host has cores and memory for.
        seconds: the time limit; None for none. `log_limit`: bytes of the log.
        epoch: the time in the packages, in seconds since 1970.
    """

    number: int
    again: str
    version: str
    engine: str
    engine_version: str
    bundle: str
    feedstock: str
    recipe: str
    row: Mapping[str, Any]
    pythons: tuple[str, ...]
    identities: Mapping[str, str]
    inputs: Mapping[str, Mapping[str, str]]
    wanted: tuple[str, ...]
    made: tuple[Made, ...]
    shared: Mapping[str, str]
    channels: tuple[Channel, ...]
    origin: str
    cores: int | None
    memory: int | None
    memory_per_job: int | None
    remembered: int | None
    jobs: int | None
    seconds: float | None
    log_limit: int
    epoch: int

    @property
    def name(self) -> str:
        """The name of the row."""
        name: str = self.row["rows"][0]["name"]
        return name

    @property
    def makes_kept(self) -> frozenset[str]:
        """The names of the shared builds that it makes."""
        shared = {output["name"] for output in self.row["rows"][0]["outputs"] if output["subdir"] == SHARED}
        return frozenset(kept_name(self.identities[name]) for name in shared)

    @property
    def needs(self) -> Needs:
        """What it takes of a host."""
        return Needs(self.cores, self.memory, memory_per_job=self.memory_per_job, remembered=self.remembered)

    @cached_property
    def key(self) -> str:
        """Its identity: the same for all orders of one row with the same inputs, whoever gives them and when.

        They are one task of the scheduler, and a host gives back what it has built of it.
        """
        identity = [self.version, self.engine, self.name, dict(self.identities), self.number, self.again]
        return digest_of_values(identity)[:32]

    @property
    def bundles(self) -> list[str]:
        """The identities of all bundles that it needs."""
        return [self.bundle, *(channel.bundle for channel in self.channels if channel.bundle)]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Order:
        """The inverse.

        Raises:
            LookupError, TypeError, ValueError, AttributeError: it is another document.
        """
        order = TypeAdapter(cls).validate_python(content)
        if not isinstance(order.name, str):
            raise TypeError("the row has no name")
        return order


def row_of(order: Order, made: Mapping[str, BuildRecord], share: Share) -> Row:
    """The row of an order as the host that builds it sees it.

    Args:
        made: the records of the outputs that are built, in the host's own ledger.
        share: its share of the host.
    """
    configuration = PlannedConfiguration.from_json(order.row)
    (row,) = configuration.rows
    missing = tuple(output for output in row.outputs if output.name in order.wanted)
    wanted = Wanted(
        identities=order.identities,
        inputs=order.inputs,
        done=made,
        missing=missing,
        makes=missing,
        needs=Needs(len(share.cores), share.memory, platform=configuration.platform),
        shared=order.shared,
    )
    running = Running("", share, order.number, order.seconds, order.log_limit)
    return Row(configuration.name, row, wanted, running)


def row_json(row: Row) -> dict[str, Any]:
    """A row as an order has it."""
    configuration = replace(_EMPTY, name=row.configuration, platform=row.platform, rows=(row.planned,))
    content: dict[str, Any] = json.loads(json.dumps(configuration.to_json()))
    return content


_EMPTY = PlannedConfiguration("", "", (), rendered=True)
