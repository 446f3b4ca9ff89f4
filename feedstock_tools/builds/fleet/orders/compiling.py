"""Orders for the rows of a run: what they share, and the files that a host may lack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os.path import commonpath
from pathlib import Path

from feedstock_tools import __version__
from feedstock_tools.builds.engines.comparable import DEFAULT_EPOCH
from feedstock_tools.builds.engines.contract import Engine
from feedstock_tools.builds.fleet.orders.bundle import Packed, pack, refuse_credentials
from feedstock_tools.builds.fleet.orders.order import Channel, Made, Order, row_json
from feedstock_tools.builds.ledger import BuildRecord
from feedstock_tools.builds.plan.agenda import Agenda
from feedstock_tools.builds.plan.row import Row, Running
from feedstock_tools.builds.plan.workspace import Workspace
from feedstock_tools.channel.properties import Channels, local_folder
from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.git import epoch_of
from feedstock_tools.redaction import redacted

#: What engines read of a feedstock besides the recipe: the spec, its settings, configurations and scripts.
_OWN = ("feedstock.yaml", "conda-forge.yml", ".ci_support", ".scripts")


@dataclass(frozen=True, slots=True)
class Parcels:
    """What the orders of a run share.

    Attributes:
        files: the bundle of the feedstock; `feedstock` is its folder in it, and `recipe` the recipe's path.
        channels: the bundles of folders that are channels, by their names on the command line.
        pythons: configuration → the Pythons of all its rows.
        epoch: the time in packages, in seconds since 1970.
    """

    files: Packed
    feedstock: str
    recipe: str
    channels: Mapping[str, Packed]
    pythons: Mapping[str, tuple[str, ...]]
    epoch: int


def parcels_of(workspace: Workspace, agenda: Agenda) -> Parcels:
    """The bundles for a run.

    Raises:
        InputError: a file cannot be read, or contains a credential.
    """
    folder = workspace.feedstock.folder
    outside = [source for source in workspace.plan.sources if not source.is_relative_to(folder)]
    base = Path(commonpath([folder.parent, *outside]))  # builds see the name of the feedstock's folder
    place = folder.relative_to(base)
    roots = {
        **{(place / name).as_posix(): folder / name for name in _OWN if (folder / name).exists()},
        **{source.relative_to(base).as_posix(): source for source in workspace.plan.sources if source.exists()},
        (place / "recipe").as_posix(): workspace.recipe.parent,
    }
    files = pack(roots)
    refuse_credentials(files.files.values(), workspace.machine)
    names = {name for choice in agenda.channels.values() for name in choice.names if not choice.properties.made_here}
    for name in sorted(names):
        if redacted(name) != name:
            hint = "Let the hosts read it without credentials, or build on this machine."
            raise InputError(
                f"the channel {redacted(name)} needs a password or a token, and none goes to a host", hint=hint
            )
    channels = {name: pack({"": local}) for name in sorted(names) if (local := local_folder(name)) is not None}
    return Parcels(
        files=files,
        feedstock=place.as_posix(),
        recipe=(place / "recipe" / workspace.recipe.name).as_posix(),
        channels=channels,
        pythons={name: agenda.pythons(name) for name in agenda.channels},
        epoch=epoch_of(folder, workspace.machine) or DEFAULT_EPOCH,
    )


def compile_order(
    parcels: Parcels,
    row: Row,
    running: Running,
    engine: Engine,
    choice: Channels,
    wanted: Sequence[str],
    done: Sequence[BuildRecord],
    again: str = "",
) -> Order:
    """An order for one attempt at a row.

    Args:
        running: the number of the attempt and its limits; a share without cores sets none.
        wanted: the names of the outputs to build; `done` are the records of the others.
        again: see `Order`.
    """
    needs = row.wanted.needs
    return Order(
        number=running.attempt,
        again=again,
        version=__version__,
        engine=engine.name,
        engine_version=engine.version,
        bundle=parcels.files.bundle.identity,
        feedstock=parcels.feedstock,
        recipe=parcels.recipe,
        row=row_json(row),
        pythons=parcels.pythons.get(row.configuration, ()),
        identities=dict(row.wanted.identities),
        inputs={name: dict(parts) for name, parts in row.wanted.inputs.items()},
        wanted=tuple(wanted),
        made=tuple(
            Made(record.output, record.identity, package.channel, package.file, package.size, package.sha256)
            for record in done
            for package in record.packages
        ),
        shared=dict(row.wanted.shared),
        channels=tuple(
            Channel("", parcels.channels[name].bundle.identity) if name in parcels.channels else Channel(name)
            for name in choice.names
        ),
        origin=choice.properties.origin,
        cores=needs.cores,
        memory=needs.memory,
        memory_per_job=needs.memory_per_job,
        remembered=needs.remembered,
        jobs=running.share.jobs if running.attempt > 1 else None,
        seconds=running.seconds,
        log_limit=running.log_limit,
        epoch=parcels.epoch,
    )


class Files:
    """What hosts may lack, by hash: documents of bundles as bytes, and the places of files on this machine."""

    def __init__(self, parcels: Parcels, artifacts: Path) -> None:
        self._artifacts = artifacts
        self._sources: dict[str, bytes | Path] = {}
        for packed in (parcels.files, *parcels.channels.values()):
            self._sources[packed.bundle.identity] = packed.bundle.document
            self._sources.update(packed.files)

    def source(self, content: str, order: Order) -> bytes | Path | None:
        """The contents of a hash that an order needs, or the file that has them; None for any other hash."""
        made = {each.sha256: self._artifacts / each.channel / each.file for each in order.made}
        return made.get(content) or self._sources.get(content)
