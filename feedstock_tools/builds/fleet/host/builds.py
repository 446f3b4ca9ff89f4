"""The builds of a host: one process for each, which ends with the worker, and what they made, kept by its identity.

Dask's worker comes and goes with the scheduler: its tasks only wait for these builds. A task for an order that is being
performed already waits for that build, and one for an order that was performed gets what was made.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import uuid4

from feedstock_tools import __version__
from feedstock_tools.builds.engines.contract import Failed
from feedstock_tools.builds.fleet.host.settings import HostSettings, why_unfit
from feedstock_tools.builds.fleet.host.spool import (
    AFTER_BUILD,
    EVENTS,
    FILES,
    MESSAGES,
    ORDER,
    START,
    STOP,
    append,
    caches_of,
)
from feedstock_tools.builds.fleet.host.store import Store, is_hash
from feedstock_tools.builds.fleet.orders.order import Order, Refused
from feedstock_tools.builds.fleet.results.events import Damaged, Delivered, Finished, events_of
from feedstock_tools.builds.plan.hosts import NO_SHARE, Share, jobs_of, portion_on
from feedstock_tools.feedstock.layout import kept_name
from feedstock_tools.files.temporary import remove

#: What the process of an attempt imports, once for all of them.
_NEEDED = "feedstock_tools.builds.fleet.host.attempt"
_NAME = re.compile("[0-9a-f]{32}")
#: How long a client may take to bring the files of an order that has begun, and how often that is checked, in seconds.
_FILES_WITHIN, _PAUSE = 600.0, 0.1
#: How long a request for more events waits for them, in seconds, how often it looks, and the most bytes of an answer.
_PATIENCE, _LOOK = 2.0, 0.03
_MOST_BYTES = 512 << 10
#: Of how many feedstocks rows may fail one after the other, until the host takes no rows for a while.
_MOST_FAILING = 3
#: What was made is kept for so long, in seconds; where the disk is nearly full, for so long only.
_KEPT, _KEPT_AT_LEAST = 7 * 24 * 3600.0, 3600.0


@dataclass
class _Running:
    """An order that is being performed; `share` is None until it has one, and `end` its end."""

    order: Order
    end: asyncio.Future[Finished]
    share: Share | None = None
    start: str = field(default_factory=lambda: uuid4().hex)
    since: float = field(default_factory=time.monotonic)


class Builds:
    """The builds of a host, for the event loop of its worker.

    Attributes:
        store: its files.
        tell: called with a message to the clients of the fleet when a build begins.
        set_aside: called with the reason when the host, not a row, was at fault.
    """

    def __init__(self, settings: HostSettings) -> None:
        self._settings = settings
        self._folder = settings.root / "attempts"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._shared = caches_of(settings.root)
        self._shared.shared_builds.mkdir(parents=True, exist_ok=True)
        self.store = Store(settings.root / "store")
        self.store.remove_unused()
        self.tell: Callable[[Mapping[str, Any]], object] = lambda message: None
        self.set_aside: Callable[[str], Awaitable[None]]
        self._running: dict[str, _Running] = {}
        self._turns: dict[str, asyncio.Lock] = {}
        self._failing: set[str] = set()
        self._room = asyncio.Condition()
        self._held: set[Connection] = set()
        self._processes = get_context("forkserver")
        self._processes.set_forkserver_preload([_NEEDED])
        for path in self._folder.iterdir():
            if _end_in(path) is None:
                remove(path)
        self._prune()

    async def run(self, order: Order) -> Finished:
        """Perform an order, or give back what was made of it."""
        if order.version != __version__:
            return Finished(
                "broken", f"this host has feedstock-tools {__version__}, but the order is of {order.version}"
            )
        running = self._running.get(order.key)
        if running is None:
            kept = self._kept(order)
            if kept is not None:
                self._tell(order, NO_SHARE, (self._folder / order.key / START).read_text())
                return kept
            end = asyncio.ensure_future(self._perform(order))
            running = self._running[order.key] = _Running(order, end)
        elif running.share is not None:
            self._tell(order, running.share, running.start)
        return await asyncio.shield(running.end)

    def report(self) -> dict[str, Any]:
        """The orders that are being performed, by key."""
        return {
            key: {
                "row": running.order.name,
                "cores": len(running.share.cores) if running.share else 0,
                "memory": running.share.memory if running.share else 0,
                "seconds": time.monotonic() - running.since,
            }
            for key, running in self._running.items()
        }

    @property
    def kept(self) -> frozenset[str]:
        """The names of the shared builds that rows can inherit from here."""
        return self._shared.kept

    def keys(self) -> list[str]:
        """The keys of all orders that are being performed or whose results are kept."""
        kept = [path.name for path in self._folder.iterdir() if _NAME.fullmatch(path.name) and _end_in(path)]
        return list(dict.fromkeys([*self._running, *kept]))

    def begun(self, key: str) -> Mapping[str, Any] | None:
        """Say for a client that comes back how an order has begun here, and whether it goes on."""
        running = self._running.get(key)
        if running is not None:
            return {**self._message(key, running.share, running.start), "goes_on": True} if running.share else None
        if not _NAME.fullmatch(key) or _end_in(self._folder / key) is None:
            return None
        return {**self._message(key, NO_SHARE, (self._folder / key / START).read_text()), "goes_on": False}

    async def events(self, key: str, start: str, offset: int) -> dict[str, Any]:
        """The events of an attempt from an offset on, as soon as there are any, and whether more may come.

        Raises:
            Refused: there is no such attempt.
        """
        end = time.monotonic() + _PATIENCE
        while True:
            goes_on = key in self._running
            if self.part(key, START, 0, 100).decode() != start:
                raise Refused("this host has another attempt")
            content = self.part(key, EVENTS, offset, _MOST_BYTES)
            if content or not goes_on or time.monotonic() > end:
                return {"data": content, "goes_on": goes_on}
            await asyncio.sleep(_LOOK)

    def part(self, key: str, name: str, offset: int, size: int) -> bytes:
        """Some bytes of a file of an attempt, by its name; or of one that it made, by its hash.

        Raises:
            Refused: there is no such attempt, or the file cannot be read.
        """
        folder = self._folder / key
        is_ours = is_hash(name) or name in (START, EVENTS, MESSAGES)
        if not (is_ours and _NAME.fullmatch(key) and folder.is_dir()):
            raise Refused("this host has no such attempt")
        try:
            with (folder / (Path(FILES, name) if is_hash(name) else name)).open("rb") as stream:
                stream.seek(offset)
                return stream.read(size)
        except FileNotFoundError:
            return b""
        except (OSError, ValueError, OverflowError) as error:
            raise Refused(f"it cannot be read: {error}") from None

    def stop(self, keys: Iterable[str]) -> int:
        """Ask attempts to end; returns how many are asked."""
        running = [key for key in keys if key in self._running]
        for key in running:
            with suppress(OSError):
                (self._folder / key / STOP).touch()
        return len(running)

    def forget(self, key: str) -> None:
        """Remove what an attempt that has ended left."""
        if _NAME.fullmatch(key) and key not in self._running:
            remove(self._folder / key)

    def unshare(self, names: Iterable[str]) -> None:
        """Remove shared builds that no row inherits from any more."""
        orders = [running.order for running in self._running.values()]
        used = {name for order in orders for name in (*order.makes_kept, *map(kept_name, order.shared.values()))}
        removable = set(names) - used
        for path in self._shared.shared_builds.iterdir():
            if path.name in removable:
                remove(path)

    async def end_all(self) -> None:
        """End all builds, and wait until they have ended."""
        for held in self._held:
            held.close()
        await asyncio.gather(*(running.end for running in self._running.values()), return_exceptions=True)

    def _tell(self, order: Order, share: Share, start: str) -> None:
        self.tell(self._message(order.key, share, start))

    def _message(self, key: str, share: Share, start: str) -> Mapping[str, Any]:
        message = {"key": key, "start": start, "host": self._settings.host.name}
        return {**message, "cores": list(share.cores), "memory": share.memory, "jobs": share.jobs}

    async def _perform(self, order: Order) -> Finished:
        running_of = self._running
        try:
            async with self._turns.setdefault(order.name, asyncio.Lock()):  # a row has one folder
                running = running_of[order.key]
                running.share = await self._share(order)
                return await self._performed(order, running.share, running.start)
        except OSError as error:
            return Finished("unfit", f"the host cannot do it: {error.strerror or error}")
        finally:
            del running_of[order.key]
            async with self._room:
                self._room.notify_all()

    async def _performed(self, order: Order, share: Share, start: str) -> Finished:
        folder = self._folder / order.key
        remove(folder)
        folder.mkdir()
        (folder / ORDER).write_text(json.dumps(order.to_json()))
        if self._settings.after_build:
            (folder / AFTER_BUILD).touch()
        (folder / START).write_text(start)
        for identity in order.shared.values():  # they are used
            with suppress(OSError):
                os.utime(self._shared.shared(identity))
        self._tell(order, share, start)
        end = await self._without_files(order, folder)
        if end is None:
            await self._process(folder, share)
            unfit = why_unfit(self._settings.root)
            killed = (
                Finished("unfit", unfit) if unfit else Finished("stopped", "its process was killed, or the host was")
            )
            end = _end_in(folder) or killed
        if _end_in(folder) is None:
            with suppress(OSError):  # of a full disk
                append(folder, end)
        self._prune()
        await self._note_failures(order, folder)
        return end

    async def _note_failures(self, order: Order, folder: Path) -> None:
        """Take no rows for a while, after rows of several feedstocks in a row have failed."""
        with suppress(OSError, Damaged):
            failed = any(isinstance(event, Failed) for event in events_of((folder / EVENTS).read_bytes()))
            self._failing = {*self._failing, order.feedstock} if failed else set()
        if len(self._failing) >= _MOST_FAILING:
            names = ", ".join(sorted(PurePosixPath(name).name for name in self._failing))
            self._failing = set()
            await self.set_aside(f"rows of {names} have failed here one after the other")

    async def _without_files(self, order: Order, folder: Path) -> Finished | None:
        """Wait for the files that an order needs; its end if they do not come."""
        deadline = time.monotonic() + _FILES_WITHIN
        while self.lacks(order.bundles, [made.sha256 for made in order.made]):
            if (folder / STOP).exists():
                return Finished("stopped", "it was stopped on request")
            if time.monotonic() > deadline:
                return Finished("stopped", "no client has brought its files")
            await asyncio.sleep(_PAUSE)
        return None

    def lacks(self, bundles: Iterable[str], files: Iterable[str]) -> list[str]:
        """The hashes that must come before an order can be performed: of documents of bundles, then of files."""
        bundles = list(bundles)
        if documents := self.store.missing(bundles):
            return documents
        laid_out = [self.store.bundle(identity) for identity in bundles]
        contents = [entry.sha256 for bundle in laid_out if bundle for entry in bundle.entries if not entry.link]
        return self.store.missing([*contents, *files])

    async def _share(self, order: Order) -> Share:
        """The cores and the memory of an order, as soon as they are free."""
        capacity, portion = self._settings.host.capacity, portion_on(order.needs, self._settings.host)
        wanted, memory = min(portion.cores, len(capacity.cores)), min(portion.memory, capacity.memory)
        async with self._room:
            while True:
                shares = [running.share for running in self._running.values() if running.share]
                taken = {core for share in shares for core in share.cores}
                free = [core for core in capacity.cores if core not in taken]
                enough = capacity.memory - sum(share.memory for share in shares) >= memory
                if not shares or (len(free) >= wanted and enough):
                    break
                await self._room.wait()
        jobs = jobs_of(wanted, memory, order.memory_per_job)
        return Share(tuple(free[:wanted]), memory, min(jobs, order.jobs or jobs))

    async def _process(self, folder: Path, share: Share) -> None:
        """Perform the order in a process that ends with this one, and wait for its end."""
        ends_with_us, held = self._processes.Pipe(duplex=False)
        arguments = (str(folder), str(self._settings.root), share, ends_with_us)
        process = self._processes.Process(target=_attempt, args=arguments)
        await asyncio.to_thread(process.start)
        ends_with_us.close()
        self._held.add(held)
        ended, loop = asyncio.Event(), asyncio.get_running_loop()
        loop.add_reader(process.sentinel, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(process.sentinel)
            self._held.discard(held)
            held.close()
            await asyncio.to_thread(process.join)

    def _kept(self, order: Order) -> Finished | None:
        """The end of an order that was performed, if all that is wanted now was made and is still there."""
        folder = self._folder / order.key
        end = _end_in(folder)
        if end is None or end.how != "built":
            return None
        try:
            events = list(events_of((folder / EVENTS).read_bytes()))
        except (OSError, Damaged):
            return None
        made = [event for event in events if isinstance(event, Delivered)]
        if shared := order.makes_kept:
            whole = shared <= self.kept
        else:
            whole = all((folder / FILES / event.sha256).is_file() for event in made)
        return end if whole and {event.output for event in made}.issuperset(order.wanted) else None

    def _prune(self) -> None:
        """Remove what has been kept for long, or for a while if the disk is nearly full."""
        kept = _KEPT if why_unfit(self._settings.root) is None else _KEPT_AT_LEAST

        def old(folder: Path) -> Iterator[Path]:
            for path in folder.iterdir():
                with suppress(OSError):
                    if time.time() - path.stat().st_mtime > kept:
                        yield path

        for path in old(self._folder):
            if path.name not in self._running:
                remove(path)
        self.unshare(path.name for path in old(self._shared.shared_builds))


def _attempt(folder: str, root: str, share: Share, held: Connection) -> None:
    """The process of an attempt; the worker itself does not import what it needs."""
    from feedstock_tools.builds.fleet.host.attempt import main

    main(folder, root, share, held)


def _end_in(attempt: Path) -> Finished | None:
    """The end of an attempt, which is its last event; None if it is missing or damaged."""
    try:
        with (attempt / EVENTS).open("rb") as stream:
            stream.seek(max(0, (attempt / EVENTS).stat().st_size - (1 << 16)))
            last = stream.read().rpartition(b"\n")[0].rpartition(b"\n")[2]
        ends = [event for event in events_of(last) if isinstance(event, Finished)]
    except (OSError, Damaged):
        return None
    return ends[0] if ends else None
