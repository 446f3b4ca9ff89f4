"""Orders for the rows of a run: what they share, and what a host must have before it can perform one."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os.path import commonpath
from pathlib import Path
from uuid import uuid4

from feedstock_tools import __version__
from feedstock_tools.builds.engines.comparable import DEFAULT_EPOCH
from feedstock_tools.builds.engines.contract import Engine
from feedstock_tools.builds.fleet.carrying.link import Link
from feedstock_tools.builds.fleet.orders.bundle import Packed, pack, refuse_credentials
from feedstock_tools.builds.fleet.orders.order import Channel, Made, Order, row_json
from feedstock_tools.builds.ledger import BuildRecord
from feedstock_tools.builds.plan.agenda import Agenda
from feedstock_tools.builds.plan.row import Row
from feedstock_tools.builds.plan.workspace import Workspace
from feedstock_tools.channel.properties import Channels, local_folder
from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.git import epoch_of
from feedstock_tools.redaction import redacted

#: What engines read of a feedstock besides the recipe: the spec, its settings, configurations and scripts.
_OWN = ("feedstock.yaml", "conda-forge.yml", ".ci_support", ".scripts")
#: Bytes of a file that travel at once.
_PART = 1 << 20
#: A host lacks documents of bundles first, and files of them then.
_ROUNDS = 2


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
    owner: str,
    parcels: Parcels,
    row: Row,
    engine: Engine,
    choice: Channels,
    wanted: Sequence[str],
    done: Sequence[BuildRecord],
) -> Order:
    """An order for one attempt at a running row.

    Args:
        owner: see `Order`.
        wanted: the names of the outputs to build; `done` are the records of the others.
    """
    return Order(
        attempt=uuid4().hex,
        owner=owner,
        number=row.at.attempt,
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
        channels=tuple(
            Channel("", parcels.channels[name].bundle.identity) if name in parcels.channels else Channel(name)
            for name in choice.names
        ),
        origin=choice.properties.origin,
        share=row.at.share,
        seconds=row.at.seconds,
        log_limit=row.at.log_limit,
        epoch=parcels.epoch,
    )


class Delivery:
    """Sends hosts what they lack: each file once, whatever number of rows and runs needs it."""

    def __init__(self, link: Link, parcels: Parcels, artifacts: Path) -> None:
        self._link = link
        self._artifacts = artifacts
        self._documents: dict[str, bytes] = {}
        self._files: dict[str, Path] = {}
        for packed in (parcels.files, *parcels.channels.values()):
            self._documents[packed.bundle.identity] = packed.bundle.document
            self._files.update(packed.files)
        self._turns: dict[str, threading.Lock] = {}
        self._turn = threading.Lock()

    def provide(self, host: str, order: Order) -> None:
        """Send a host all that an order needs and the host lacks.

        Raises:
            Away: the host cannot be reached.
            Refused: it does not take a file.
            InputError: a file has disappeared.
        """
        bundles = [order.bundle, *(channel.bundle for channel in order.channels if channel.bundle)]
        made = {each.sha256: self._artifacts / each.channel / each.file for each in order.made}
        with self._turn:
            turn = self._turns.setdefault(host, threading.Lock())
        with turn:
            for _ in range(_ROUNDS):
                for content in self._lacks(host, bundles, list(made)):
                    self._send(host, content, made)

    def _lacks(self, host: str, bundles: Sequence[str], files: Sequence[str]) -> list[str]:
        known = {*self._documents, *self._files, *files}
        answer = self._link.ask(host, "lacks", {"bundles": bundles, "files": files}).get("lacks")
        return [content for content in answer if content in known] if isinstance(answer, list) else []

    def _send(self, host: str, content: str, made: Mapping[str, Path]) -> None:
        if content in self._documents:
            document = self._documents[content]
            for offset in range(0, len(document), _PART):
                self._put(host, content, offset, document[offset : offset + _PART], len(document))
            return
        path = made.get(content) or self._files[content]
        size = path.stat().st_size
        with path.open("rb") as stream:
            offset = 0
            while offset < size or not offset:
                data = stream.read(_PART)
                self._put(host, content, offset, data, size)
                offset += len(data)
                if not data:
                    return

    def _put(self, host: str, content: str, offset: int, data: bytes, size: int) -> None:
        self._link.ask(host, "put", {"content": content, "offset": offset, "size": size}, data)
