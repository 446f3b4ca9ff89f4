"""The attempts of a host: started, listed, read, and forgotten once the client has taken what they made."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from feedstock_tools import __version__
from feedstock_tools.builds.fleet.host.forks import Fork, Forks
from feedstock_tools.builds.fleet.host.lease import renew
from feedstock_tools.builds.fleet.host.spool import AFTER_BUILD, EVENTS, FILES, ORDER, STOP, append
from feedstock_tools.builds.fleet.host.store import is_hash
from feedstock_tools.builds.fleet.orders.order import Order
from feedstock_tools.builds.fleet.results.events import Damaged, Finished, HostEvent, events_of
from feedstock_tools.builds.fleet.trust.signing import Busy, Refused
from feedstock_tools.builds.plan.hosts import Host
from feedstock_tools.files.temporary import remove

#: The module whose process performs an order.
MODULE = "feedstock_tools.builds.fleet.host.attempt"
#: What such a process needs, imported once for all of them.
_NEEDED = "feedstock_tools.builds.fleet.host.performing"
_NAME = re.compile("[0-9a-f]{32}")
#: What reading an order of another form raises.
_OTHER_FORM = (LookupError, TypeError, ValueError, AttributeError)
#: Forgotten attempts whose names are remembered, so that their orders cannot be repeated.
_REMEMBERED = "forgotten"
#: The variables of the worker that its attempts see; builds see fewer.
PASSED_ON = frozenset(
    {
        *("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER", "XDG_CACHE_HOME"),
        *("CUDA_VISIBLE_DEVICES", "DOCKER_EXECUTABLE", "DOCKER_HOST", "XDG_RUNTIME_DIR"),
    }
)


@dataclass
class _Running:
    """An attempt whose process runs, or ran until just now."""

    order: Order
    process: Fork


class Attempts:
    """The attempts of a host, in the folder of its worker."""

    def __init__(self, root: Path, host: Host, *, after_build: bool = False) -> None:
        """Settle what an earlier worker left: its builds have ended with it, and what it cannot report is removed.

        Args:
            after_build: each build is followed by the package's hello-world and benchmark.
        """
        self._after_build = after_build
        self._root = root
        self._folder = root / "attempts"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._host = host
        self._running: dict[str, _Running] = {}
        self._leaving: set[str] = set()
        variables = {name: value for name, value in os.environ.items() if name in PASSED_ON}
        self._forks = Forks([MODULE, _NEEDED], variables)
        self._known: dict[str, Order] = {}
        for path in [path for path in self._folder.iterdir() if _NAME.fullmatch(path.name)]:
            order = _order_in(path)
            if order is None:
                self._remove(path.name)
            else:
                self._known[path.name] = order
                self._settle(path.name)

    def report(self) -> list[dict[str, Any]]:
        """Every attempt that the client has not taken: what it is, and whether it runs."""
        self.look()
        return [
            {
                "attempt": name,
                "row": order.name,
                "key": order.key,
                "runs": name in self._running,
                "cores": list(order.share.cores),
                "memory": order.share.memory,
            }
            for name, order in self._known.items()
        ]

    def start(self, content: Mapping[str, Any], until: float) -> None:
        """Begin an attempt.

        Args:
            content: the order's JSON; `until` is the end of its lease, as `clock` counts.

        Raises:
            Refused: this host cannot perform it, or has performed it; `Busy` if it can do so later.
        """
        try:
            order = Order.from_json(content)
        except _OTHER_FORM as error:
            raise Refused(f"the order has another form: {error!r}") from None
        self._refuse(order)
        folder = self._folder / order.attempt
        folder.mkdir()
        (folder / ORDER).write_text(json.dumps(order.to_json()))
        if self._after_build:
            (folder / AFTER_BUILD).touch()
        renew(folder, until)
        with (folder / "messages").open("wb") as messages:
            process = self._forks.start(folder, messages.fileno(), str(folder), str(self._root))
        self._known[order.attempt] = order
        self._running[order.attempt] = _Running(order, process)

    def renew(self, until: float) -> None:
        """Renew the leases of all running attempts."""
        for name in self._running:
            with suppress(OSError):
                renew(self._folder / name, until)

    def look(self) -> None:
        """Note the attempts whose processes have ended."""
        for name, running in list(self._running.items()):
            if running.process.has_ended():
                del self._running[name]
                self._settle(name)
                if name in self._leaving:
                    self.forget(name)

    def read(self, attempt: str, offset: int, size: int) -> tuple[bytes, bool]:
        """Some bytes of the events of an attempt, and whether more may come.

        Raises:
            Refused: there is no such attempt.
        """
        folder = self._place(attempt)
        self.look()
        goes_on = attempt in self._running
        return _part(folder / EVENTS, offset, size), goes_on

    def file(self, attempt: str, content: str, offset: int, size: int) -> bytes:
        """Some bytes of a file that an attempt made, by its hash.

        Raises:
            Refused: there is no such attempt, or no such file.
        """
        if not is_hash(content):
            raise Refused("a hash is 64 hexadecimal digits")
        return _part(self._place(attempt) / FILES / content, offset, size)

    def stop(self, attempt: str) -> None:
        """Ask an attempt to end.

        Raises:
            Refused: there is no such attempt.
        """
        (self._place(attempt) / STOP).touch()

    def forget(self, attempt: str) -> None:
        """Remove what an attempt made, if it runs as soon as it has ended, which it is asked to."""
        if attempt not in self._known:
            return
        if attempt in self._running:
            self._leaving.add(attempt)
            if not self._has_ended(attempt):
                self.stop(attempt)
            return
        self._leaving.discard(attempt)
        del self._known[attempt]
        self._remove(attempt)

    def end_all(self) -> None:
        """End all running attempts, and wait until they have ended; none can be started after that."""
        for running in self._running.values():
            running.process.let_go()
        for running in self._running.values():
            running.process.wait()
        self._forks.end()

    def _refuse(self, order: Order) -> None:
        if not isinstance(order.attempt, str) or not _NAME.fullmatch(order.attempt):
            raise Refused("the name of an attempt is 32 hexadecimal digits")
        remembered = self._root / _REMEMBERED
        if order.attempt in self._known or (remembered.exists() and order.attempt in remembered.read_text().split()):
            raise Refused("this attempt was ordered before")
        if order.version != __version__:
            raise Refused(f"this host has feedstock-tools {__version__}, but the order is of {order.version}")
        self.look()
        busy = [running.order for name, running in self._running.items() if not self._has_ended(name)]
        if any(other.name == order.name for other in busy):
            raise Busy(f"this host builds {order.name} already")
        memory = sum(other.share.memory for other in busy) + order.share.memory
        taken = {core for other in busy for core in other.share.cores}
        free = set(self._host.capacity.cores) - taken
        if (
            len(busy) >= self._host.jobs
            or memory > self._host.capacity.memory
            or not free.issuperset(order.share.cores)
        ):
            raise Busy("this host has no room for it now")

    def _remove(self, attempt: str) -> None:
        """Remove the folder of an attempt; its order cannot be repeated."""
        with (self._root / _REMEMBERED).open("a") as file:
            file.write(f"{attempt}\n")
        remove(self._folder / attempt)

    def _place(self, attempt: object) -> Path:
        if not isinstance(attempt, str) or attempt not in self._known:
            raise Refused("this host has no such attempt")
        return self._folder / attempt

    def _settle(self, name: str) -> None:
        """Record the end of an attempt whose process has ended without doing so."""
        if not self._has_ended(name):
            append(self._folder / name, Finished("broken", "its process was killed, or the host was"))

    def _has_ended(self, name: str) -> bool:
        """Whether the end of an attempt is recorded, though its process may be about to exit."""
        return any(isinstance(event, Finished) for event in _last_events(self._folder / name / EVENTS))


def _order_in(folder: Path) -> Order | None:
    """The order of an attempt; None if it is missing, damaged or of another version."""
    try:
        return Order.from_json(json.loads((folder / ORDER).read_bytes()))
    except (OSError, *_OTHER_FORM):
        return None


def _last_events(file: Path) -> Iterator[HostEvent]:
    """The last events of a file; a line that is cut off or damaged is none."""
    try:
        size = file.stat().st_size
        content = _part(file, max(0, size - (1 << 16)), 1 << 16)
    except OSError:
        return
    with suppress(Damaged):
        yield from events_of(content.rpartition(b"\n")[0].rpartition(b"\n")[2])


def _part(file: Path, offset: int, size: int) -> bytes:
    try:
        with file.open("rb") as stream:
            stream.seek(offset)
            return stream.read(size)
    except FileNotFoundError:
        return b""
    except (OSError, ValueError, OverflowError) as error:
        raise Refused(f"it cannot be read: {error}") from None
