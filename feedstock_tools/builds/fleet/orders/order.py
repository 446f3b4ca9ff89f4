"""An order: one attempt at one row for one host, as plain JSON. It names files by their hashes, and no program."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from feedstock_tools.builds.ledger import BuildRecord
from feedstock_tools.builds.plan.hosts import Share
from feedstock_tools.builds.plan.needs import Needs
from feedstock_tools.builds.plan.row import Row, Running, Wanted
from feedstock_tools.digests import digest_of_values
from feedstock_tools.feedstock.planned import PlannedConfiguration


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


@dataclass(frozen=True, slots=True)
class Order:
    """One attempt.

    Attributes:
        attempt: its unique name, 32 hexadecimal digits; `number` counts the attempts at the row from 1.
        owner: of the result: the same for all runs that fill one artifacts folder.
        version: of feedstock-tools; a host of another version refuses.
        engine: its name; `engine_version` is part of the identities, so a host with another one refuses.
        bundle: the identity of the files; `feedstock` is the feedstock's folder in it, `recipe` the recipe's path.
        row: the configuration with only this row, as `PlannedConfiguration.to_json` gives it.
        identities: output → its identity in the ledger; `inputs` → the parts of that.
        wanted: the names of the outputs to build; `made` are the others.
        channels: as chosen by the client; `origin` is theirs.
        share: of the host.
        seconds: the time limit; None for none. `log_limit`: bytes of the log.
        epoch: the time in the packages, in seconds since 1970.
    """

    attempt: str
    owner: str
    number: int
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
    channels: tuple[Channel, ...]
    origin: str
    share: Share
    seconds: float | None
    log_limit: int
    epoch: int

    @property
    def name(self) -> str:
        """The name of the row."""
        name: str = self.row["rows"][0]["name"]
        return name

    @property
    def key(self) -> str:
        """The same for all attempts at a row with the same inputs: a client takes its own over."""
        return key_of(self.owner, self.name, self.identities)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Order:
        """The inverse.

        Raises:
            LookupError, TypeError, ValueError, AttributeError: it is another document.
        """
        share = content["share"]
        order = cls(
            **{
                **content,
                "identities": dict(content["identities"]),
                "pythons": tuple(content["pythons"]),
                "wanted": tuple(content["wanted"]),
                "made": tuple(Made(**each) for each in content["made"]),
                "channels": tuple(Channel(**each) for each in content["channels"]),
                "share": Share(tuple(share["cores"]), share["memory"], share["jobs"]),
            }
        )
        if not isinstance(order.name, str):
            raise TypeError("the row has no name")
        return order


def key_of(owner: str, row: str, identities: Mapping[str, str]) -> str:
    """The key of an order for a row; see `Order.key`."""
    return digest_of_values([owner, row, dict(identities)])


def row_of(order: Order, made: Mapping[str, BuildRecord]) -> Row:
    """The row of an order as the host that builds it sees it.

    Args:
        made: the records of the outputs that are built, in the host's own ledger.
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
        needs=Needs(len(order.share.cores), order.share.memory, platform=configuration.platform),
    )
    running = Running("", order.share, order.number, order.seconds, order.log_limit)
    return Row(configuration.name, row, wanted, running)


def row_json(row: Row) -> dict[str, Any]:
    """A row as an order has it."""
    configuration = replace(_EMPTY, name=row.configuration, platform=row.platform, rows=(row.planned,))
    content: dict[str, Any] = json.loads(json.dumps(configuration.to_json()))
    return content


_EMPTY = PlannedConfiguration("", "", (), rendered=True)
