"""The hosts of a fleet as the crew of a run: orders go out, attempts are followed, and the lost are built elsewhere."""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from feedstock_tools import __version__
from feedstock_tools.builds.engines.process.guard import Stopped
from feedstock_tools.builds.fleet.carrying.link import MARGIN, Away, HostState, Link
from feedstock_tools.builds.fleet.host.settings import LEASE, host_of
from feedstock_tools.builds.fleet.orders.compiling import Delivery, Parcels, compile_order
from feedstock_tools.builds.fleet.orders.order import key_of
from feedstock_tools.builds.fleet.results.events import Damaged, HostEvent, events_of
from feedstock_tools.builds.fleet.results.following import Followed, Following, Place
from feedstock_tools.builds.fleet.results.late import LateResults
from feedstock_tools.builds.fleet.results.quarantine import Rejected
from feedstock_tools.builds.fleet.trust.signing import Busy, Refused
from feedstock_tools.builds.plan.agenda import Agenda
from feedstock_tools.builds.plan.hosts import Capacity, Host, Share, others_in, with_others
from feedstock_tools.builds.plan.row import Ended, Row, Running
from feedstock_tools.builds.plan.workspace import Workspace
from feedstock_tools.builds.runs.crew import Elsewhere, Watch
from feedstock_tools.builds.runs.logs import LogFile
from feedstock_tools.builds.runs.row_build import Claim, claim
from feedstock_tools.digests import digest_of_values
from feedstock_tools.files.changes import replacing
from feedstock_tools.processes import this_machine

#: How long a run waits for a hub or for hosts that are away before it gives up, in seconds.
_PATIENCE = 600.0
_PAUSE = 0.3
#: How often a row may lose its host before it counts as failed: it may be the row that brings them down.
_MOST_LOSSES = 4
#: Bytes of events at once, at most; a line of them is shorter.
_LARGEST_LINE = 4 << 20


@dataclass(frozen=True, slots=True)
class _UnderWay:
    """An attempt that a host has begun: its name, the lease of the host, and when it began, monotonic.

    `is_new`: in this run, not in an earlier one.
    """

    name: str
    host: str
    lease: float
    begun: float
    is_new: bool = True


class _TooOften(Exception):  # noqa: N818 - an event of a run
    """A row has lost its host so often that it counts as failed."""


class FleetCrew:
    """Builds rows on the hosts of a fleet; see `Crew`."""

    outlives_run = True

    def __init__(
        self,
        workspace: Workspace,
        agenda: Agenda,
        link: Link,
        parcels: Parcels,
        places: Mapping[str, Place],
        say: Callable[[str], object],
    ) -> None:
        """Prepare a crew.

        Args:
            places: configuration → where its packages go.
            say: called with what the user should know, from any thread.
        """
        self._workspace = workspace
        self._agenda = agenda
        self._link = link
        self._parcels = parcels
        self._places = places
        self._say = say
        self._delivery = Delivery(link, parcels, workspace.artifacts.root)
        rows = (*agenda.todo, *agenda.done)
        self._owner = digest_of_values([this_machine(), str(workspace.artifacts.root)])
        self._rows = {key_of(self._owner, row.name, row.wanted.identities): row for row in rows}
        #: The attempts of this run by name. None before one begins, and after its end: its host may still report it.
        self._followed: dict[str, _UnderWay | None] = {}
        self._taken_over: dict[str, str] = {}
        self._losses: dict[str, int] = {}
        self._others = others_in(row.wanted.needs for row in agenda.todo)
        self._excluded: dict[str, str] = {}
        self._late = LateResults(link, workspace.artifacts, say)
        self._turn = threading.RLock()
        self._idle_since: float | None = None

    def hosts(self) -> Sequence[Host]:
        """See `Crew`."""
        found = []
        for state in self._present():
            try:
                host = host_of(state.name, state.report)
            except (KeyError, TypeError, ValueError) as error:
                self._exclude(state.name, f"its report is damaged: {error!r}")
                continue
            if state.report.get("version") != __version__:
                version = str(state.report.get("version"))[:40]
                self._exclude(state.name, f"it has feedstock-tools {version}, and this is {__version__}")
                continue
            found.append(with_others(self._without_others(host, state), self._others))
        return found

    def returned(self, waiting: Collection[str]) -> Sequence[Row]:
        """See `Crew`; attempts at rows that are built meanwhile are settled."""
        starts = []
        begun: set[str] = set()
        present = {state.name for state in self._present()}
        for state in self._link.listing.hosts.values() if self._link.is_up else ():
            for each in state.attempts:
                name, row = str(each.get("attempt")), self._rows.get(str(each.get("key")))
                if row is None or name in self._followed or not self._may_go_on(state, name, present):
                    continue
                if row.name in waiting and row.name not in begun:
                    begun.add(row.name)
                    self._followed[name] = None
                    self._taken_over[row.name] = name
                    starts.append(replace(row, running=Running(state.name, _share_of(each))))
                elif row.name not in waiting and state.name in present:
                    self._followed[name] = None
                    self._late.settle(state.name, name, row, self._places.get(row.configuration))
        return starts

    def _may_go_on(self, state: HostState, attempt: str, present: Collection[str]) -> bool:
        """Whether a host has an attempt, or goes on with it while it is away."""
        lost = self._link.listing.why_lost(state.name, attempt, time.monotonic(), state.lease)
        return state.name in present or (state.name not in self._excluded and lost is None)

    def is_waiting(self) -> bool:
        """See `Crew`: for the hub, for hosts that went away a short while ago, or for those that others use."""
        if any(self._of_others(state) for state in self._present()):
            self._idle_since = None
            return True
        usable = [state for state in self._link.listing.hosts.values() if state.name not in self._excluded]
        away = not self._link.is_up or any(not state.is_present for state in usable)
        if not away:
            self._idle_since = None
            return False
        since = self._idle_since = self._idle_since or time.monotonic()
        longest = max((state.lease for state in usable), default=LEASE)
        return time.monotonic() - since < min(_PATIENCE, 2 * longest + MARGIN)

    def signs(self) -> Iterable[tuple[str, str]]:
        """See `Crew`: no host writes into the ledger, so the run does for the attempts that it follows."""
        return [(each.host, each.name) for each in list(self._followed.values()) if each is not None]

    def build(self, row: Row, stop: int, watch: Watch) -> Ended | None:
        """See `Crew`."""
        self._idle_since = None
        place, host = self._places[row.configuration], row.at.host
        taken_over = self._taken_over.pop(row.name, None)
        claimed = claim(place.artifacts, place.ledger, row, place.built_on)
        if claimed is None:
            self._followed.pop(taken_over or "", None)
            return None
        with claimed.locks:
            if not claimed.wanted:
                if taken_over:
                    self._forget(host, taken_over)
                return Ended(claimed.done, ())
            number = row.at.attempt + self._losses.get(row.name, 0)
            row = replace(row, running=replace(row.at, attempt=number))
            under_way = self._begun(row, stop, claimed, taken_over)
            return self._follow(row, under_way, stop, claimed, watch)

    def finish(self) -> None:
        """Wait until the late results of other attempts are settled."""
        self._late.finish()

    def _begun(self, row: Row, stop: int, claimed: Claim, taken_over: str | None) -> _UnderWay:
        """The attempt on the host: one that was under way, or a new one."""
        host = row.at.host
        state = self._link.listing.hosts.get(host)
        lease = state.lease if state else LEASE
        if taken_over:
            return self._noted(_UnderWay(taken_over, host, lease, time.monotonic(), is_new=False))
        engine = self._workspace.engines.engine_for(row.configuration, row.platform)
        missing = [output.name for output in claimed.wanted]
        choice = self._agenda.channels[row.configuration]
        order = compile_order(self._owner, self._parcels, row, engine, choice, missing, claimed.done)
        self._followed[order.attempt] = None
        try:
            self._delivery.provide(host, order)
            self._link.ask(host, "start", {"order": order.to_json()}, is_over=lambda: _is_readable(stop))
        except Away as error:
            if _is_readable(stop):
                raise Stopped from None
            self._let_go(order.attempt)
            raise Elsewhere(f"{host} did not take {row.name}: {error}") from None
        except Refused as error:
            if not isinstance(error, Busy):
                self._exclude(host, str(error))
            self._let_go(order.attempt)
            raise Elsewhere(f"{host} refused {row.name}: {error}") from None
        return self._noted(_UnderWay(order.attempt, host, lease, time.monotonic()))

    def _let_go(self, attempt: str) -> None:
        """Pause, then no longer follow an attempt whose start was not confirmed, just before its row waits again.

        Its host may have begun it: `returned` takes it over if the row waits, and would end it if the row did not.
        """
        time.sleep(_PAUSE)
        self._followed.pop(attempt, None)

    def _noted(self, under_way: _UnderWay) -> _UnderWay:
        self._followed[under_way.name] = under_way
        return under_way

    def _follow(self, row: Row, under_way: _UnderWay, stop: int, claimed: Claim, watch: Watch) -> Ended:
        """Follow an attempt to its end.

        Raises:
            Elsewhere: its host is lost, or sends what cannot be true.
            Stopped: the run is over.
        """
        place = self._places[row.configuration]
        followed = Followed(row, claimed, under_way.name, stop)
        with LogFile(place.artifacts.logs, row.name, row.at.log_limit) as log:
            following = Following(
                place, self._link, followed, log, watch, lambda: self._why_lost(under_way) is not None
            )
            try:
                self._read(following, under_way)
                self._replace_log(following)
            except _TooOften as error:
                following.fail(str(error))
            except Elsewhere as error:
                following.give_up(str(error))
                raise
            finally:
                if not following.followed.is_over():
                    following.quarantine.clear()
                if under_way.name in self._followed:
                    self._followed[under_way.name] = None
        self._forget(under_way.host, under_way.name)
        return following.result()

    def _read(self, following: Following, under_way: _UnderWay) -> None:
        """Take the events of an attempt as they come, up to its end.

        Raises:
            Elsewhere: it has ended without a result.
        """
        try:
            self._take_all(following, under_way)
        except (Rejected, Damaged) as error:
            self._exclude(under_way.host, str(error))
            kept = following.quarantine.keep("a package" if isinstance(error, Rejected) else "events", str(error))
            self._forget(under_way.host, under_way.name)
            self._lose(under_way, following, f"what {under_way.host} sent stays in {kept}: {error}")
        self._conclude(following, under_way)

    def _take_all(self, following: Following, under_way: _UnderWay) -> None:
        offset, unfinished = 0, b""
        while following.finished is None:
            answer = self._ask_for_events(following, under_way, offset)
            content = answer.get("data")
            if not isinstance(content, bytes):
                raise Damaged("events are bytes")
            offset += len(content)
            lines, _, unfinished = (unfinished + content).rpartition(b"\n")
            if len(unfinished) > _LARGEST_LINE:
                raise Damaged("an event is too long")
            for event in events_of(lines):
                self._take(following, under_way, event)
            if not content and not answer.get("goes_on") and following.finished is None:
                self._lose(under_way, following, f"its process on {under_way.host} ended without a result")

    def _ask_for_events(self, following: Following, under_way: _UnderWay, offset: int) -> Mapping[str, Any]:
        """The events from an offset on, asked for again and again while their host is away."""
        while True:
            if following.followed.is_over():
                raise Stopped
            try:
                request = {"attempt": under_way.name, "offset": offset}
                return self._link.ask(under_way.host, "events", request, is_over=following.is_over)
            except Away:
                self._lose_if_lost(following, under_way)
                time.sleep(_PAUSE)
            except Refused as error:
                self._lose(under_way, following, f"{under_way.host} does not know the attempt: {error}")

    def _take(self, following: Following, under_way: _UnderWay, event: HostEvent) -> None:
        """Take an event, again and again while its host is away."""
        while True:
            try:
                following.take(event)
                return
            except Away:
                if following.followed.is_over():
                    raise Stopped from None
                self._lose_if_lost(following, under_way)
                time.sleep(_PAUSE)
            except Refused as error:
                raise Rejected(f"its host does not hand it over: {error}") from error

    def _conclude(self, following: Following, under_way: _UnderWay) -> None:
        """What the end of an attempt means for its row."""
        assert following.finished is not None  # noqa: S101  (the loop before ended with it)
        outcome, reason = following.finished.how, following.finished.reason
        if outcome == "built":
            if following.wanted and following.failed is None:
                following.fail("the host reports an end without all outputs")
            return
        if outcome == "broken":
            following.fail(reason or "the host could not perform the order")
            return
        self._forget(under_way.host, under_way.name)
        self._lose(under_way, following, f"{under_way.host}: {reason}")

    def _lose_if_lost(self, following: Following, under_way: _UnderWay) -> None:
        """End the following of an attempt that does not go on."""
        why = self._why_lost(under_way)
        if why is not None:
            with self._turn:
                self._followed.pop(under_way.name, None)  # if it comes back, its result is late
            self._lose(under_way, following, f"{under_way.host}: {why}")

    def _why_lost(self, under_way: _UnderWay) -> str | None:
        """Why an attempt does not go on; None if it does, or while the hub is away."""
        if not self._link.is_up:
            return None
        return self._link.listing.why_lost(under_way.host, under_way.name, under_way.begun, under_way.lease)

    def _lose(self, under_way: _UnderWay, following: Following, reason: str) -> NoReturn:
        """The attempt is over without a result: the row begins again elsewhere, or has failed too often."""
        row = following.followed.row.name
        self._losses[row] = self._losses.get(row, 0) + under_way.is_new
        if self._losses[row] >= _MOST_LOSSES:
            raise _TooOften(f"it was begun {self._losses[row]} times and never ended; the last time: {reason}")
        raise Elsewhere(reason)

    def _replace_log(self, following: Following) -> None:
        """The host's whole log in place of what was read of it, if the host is still there."""
        end = following.finished
        if end is None or not end.log:
            return
        limit = following.followed.row.at.log_limit + (1 << 20)
        with suppress(Away, Refused, Rejected):
            fetched = following.quarantine.fetch(self._link, end.log, end.log_size, limit, following.is_over)
            with replacing(following.log.path) as part:
                part.write_bytes(fetched.read_bytes())
            fetched.unlink()

    def _forget(self, host: str, name: str) -> None:
        with suppress(Away, Refused):
            self._link.ask(host, "forget", {"attempt": name})

    def _present(self) -> list[HostState]:
        if not self._link.is_up:
            return []
        states = self._link.listing.hosts.values()
        return [state for state in states if state.is_present and state.name not in self._excluded]

    def _exclude(self, host: str, reason: str) -> None:
        with self._turn:
            if host in self._excluded:
                return
            self._excluded[host] = reason
        self._say(f"{host} gets nothing more in this run: {reason}")

    def _without_others(self, host: Host, state: HostState) -> Host:
        """A host without the resources of attempts that this run does not follow."""
        others = self._of_others(state)
        if not others:
            return host
        shares = [_share_of(each) for each in others]
        taken = {core for share in shares for core in share.cores}
        cores = tuple(core for core in host.capacity.cores if core not in taken)
        memory = max(0, host.capacity.memory - sum(share.memory for share in shares))
        return replace(host, capacity=Capacity(cores, memory), jobs=max(0, host.jobs - len(others)))

    def _of_others(self, state: HostState) -> list[Mapping[str, Any]]:
        """The attempts that go on at a host, and that this run does not follow."""
        return [each for each in state.attempts if each.get("runs") and str(each.get("attempt")) not in self._followed]


def _share_of(attempt: Mapping[str, Any]) -> Share:
    """The share of an attempt in a report."""
    listed = attempt.get("cores")
    cores = tuple(core for core in listed if isinstance(core, int)) if isinstance(listed, list) else ()
    memory = attempt.get("memory")
    return Share(cores, memory if isinstance(memory, int) else 0, max(1, len(cores)))


def _is_readable(descriptor: int | None) -> bool:
    return descriptor is not None and bool(select.select([descriptor], [], [], 0)[0])
