"""The hosts of a fleet as the crew of a run: rows are tasks of Dask's scheduler, and their builds are followed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from shutil import copyfile
from typing import Any, TypeVar
from uuid import uuid4

from feedstock_tools import __version__
from feedstock_tools.builds.engines.contract import Built, Event, Started
from feedstock_tools.builds.engines.process.guard import Stopped
from feedstock_tools.builds.fleet.carrying.link import GONE_AFTER, Away, Link, Task
from feedstock_tools.builds.fleet.cluster.kinds import JobKind
from feedstock_tools.builds.fleet.host.settings import host_of
from feedstock_tools.builds.fleet.orders.compiling import Files, Parcels, compile_order
from feedstock_tools.builds.fleet.orders.order import Order, Refused
from feedstock_tools.builds.fleet.placing import resources_for
from feedstock_tools.builds.fleet.results.events import Arriving, Damaged, HostEvent
from feedstock_tools.builds.fleet.results.following import Followed, Following, Place, is_over
from feedstock_tools.builds.fleet.results.quarantine import Rejected
from feedstock_tools.builds.plan.agenda import Agenda
from feedstock_tools.builds.plan.hosts import NO_SHARE, Host, Limits, other_than, others_in, with_others
from feedstock_tools.builds.plan.row import Ended, Row, Running
from feedstock_tools.builds.plan.workspace import Workspace
from feedstock_tools.builds.runs.crew import Elsewhere, Watch
from feedstock_tools.builds.runs.decide import without_host
from feedstock_tools.builds.runs.logs import LogFile
from feedstock_tools.builds.runs.observer import NextAttempt
from feedstock_tools.builds.runs.row_build import Claim, claim
from feedstock_tools.errors import WorkError
from feedstock_tools.feedstock.layout import kept_name
from feedstock_tools.feedstock.planned import PackageId
from feedstock_tools.files.changes import replacing
from feedstock_tools.wording import duration

T = TypeVar("T")
#: How long a run waits for a scheduler or for hosts that are away before it gives up, in seconds.
_PATIENCE = 120.0
_PAUSE = 0.2
#: How long a client takes to hear that another command has stopped its run, in seconds.
_CANCELLED_WITHIN = 3.0
_AGAIN = "The same command begins it again."
#: The rows that Dask has at a time, for each that the hosts build at a time; and the least number.
_AHEAD, _AT_LEAST = 4, 32

#: How often in a row a host that is there may fail to answer. The scheduler, too, fails in its place, while the host is
#: about to be gone.
_MOST_FAILURES = 50
#: How often a row may lose its host before it counts as failed: it may be the row that brings them down.
_MOST_LOSSES = 4
#: How often the time limit of a row, and how many seconds more, an attempt may go on after it began an output. Its host
#: has the same limit, so this is for one that says for ever that it goes on; tests after the build come on top.
_TIMES, _MORE = 2, 3600.0


@dataclass(frozen=True, slots=True)
class _UnderWay:
    """An attempt that a host has begun."""

    order: Order
    host: str
    start: str

    @property
    def name(self) -> str:
        return self.order.key


class _Lost(Exception):  # noqa: N818 - an event of a run
    """An attempt is over without a result; Dask has begun its row again or will, unless it does not go on."""

    def __init__(self, reason: str, *, dask_goes_on: bool = True) -> None:
        super().__init__(reason)
        self.dask_goes_on = dask_goes_on


class FleetCrew:
    """Builds rows on the hosts of a fleet; see `Crew`."""

    places_rows = True

    def __init__(
        self,
        workspace: Workspace,
        agenda: Agenda,
        link: Link,
        parcels: Parcels,
        places: Mapping[str, Place],
        limits: Limits,
        say: Callable[[str], object],
        kinds: Sequence[JobKind] = (),
    ) -> None:
        """Prepare a crew.

        Args:
            places: configuration → where its packages go.
            kinds: of jobs that may become hosts.
            say: called with what the user should know, from any thread.
        """
        self._workspace = workspace
        self._agenda = agenda
        self._link = link
        self._parcels = parcels
        self._places = places
        #: A row that has not begun.
        self._nowhere = Running("", NO_SHARE, seconds=limits.seconds, log_limit=limits.log_limit)
        self._say = say
        self._kinds = {kind.name: kind for kind in kinds}
        self._problems: dict[str, str] = {}
        self._files = Files(parcels, workspace.artifacts.root)
        #: The shared builds by the names under which hosts keep them; what rows inherit, and when a host last kept it.
        self._shared = {name: row for row in (*agenda.kept, *agenda.todo) for name in row.wanted.makes_kept}
        self._inherited = {row.wanted.needs.shared for row in agenda.todo if row.wanted.needs.shared}
        self._kept_at: dict[frozenset[str], float] = {}
        self._rank = {row.name: -rank for rank, row in enumerate((*agenda.kept, *agenda.todo))}
        self._rows = {row.name: row for row in (*agenda.kept, *agenda.todo)}
        #: Row → the order that Dask has; the packages that these rows make; those of them that are followed; and the
        #: rows that another run has built.
        self._given: dict[str, Order] = {}
        self._making: dict[str, frozenset[PackageId]] = {}
        self._followed: dict[str, _UnderWay] = {}
        self._built: set[str] = set()
        self._others = others_in(row.wanted.needs for row in agenda.todo)
        self._excluded: dict[str, str] = {}
        self._losses: Counter[str] = Counter()
        self._again = uuid4().hex
        self._alone_since: float | None = None

    @property
    def dashboard(self) -> int | None:
        """See `Crew`."""
        return self._link.dashboard

    def present_hosts(self) -> Sequence[Host]:
        """See `Crew`."""
        found = []
        for name, report in self._link.hosts.items():
            if name in self._excluded:
                continue
            if report and (report["version"] != __version__ or "damaged" in report):
                self._exclude(name, report["unfit"])
            elif report and report["unfit"] is None:
                found.append(host_of(name, report))
        return found

    def returned(self, waiting: Collection[str]) -> Sequence[Row]:
        """See `Crew`: gives Dask the next rows that wait, and returns those that it has begun.

        Raises:
            WorkError: the run was stopped by another command.
        """
        self._give([self._rows[name] for name in waiting if name not in self._given])
        begun = []
        for name in waiting:
            order = self._given.get(name)
            task = self._link.tasks.get(order.key) if order else None
            if task is None:
                continue
            if task.ended == "cancelled":
                raise WorkError(f"the run {self._link.run} was stopped", hint=_AGAIN)
            if task.host in self._excluded:
                self._let_go(name, cancel=True)
            elif task.host:
                begun.append(replace(self._rows[name], running=Running(task.host, task.share)))
        return [*begun, *(replace(self._rows[name], running=self._nowhere) for name in waiting if name in self._built)]

    def lost(self, heirs: Sequence[Row]) -> Sequence[Row]:
        """See `Crew`: a host that is away for a moment still keeps them.

        Raises:
            WorkError: one is lost again and again.
        """
        hosts, now, again = self.present_hosts(), time.monotonic(), dict[str, Row]()
        kept = {name for host in hosts for name in host.keeps}
        for names in self._inherited:
            if not self._link.is_up or any(names <= host.keeps for host in hosts):
                self._kept_at[names] = now
        for heir in heirs:
            names = heir.wanted.needs.shared
            if now - self._kept_at.setdefault(names, now) > GONE_AFTER:
                ours = [name for name in self._shared if name in names]
                gone = [name for name in ours if name not in kept] or ours[-1:]  # each is kept, but no host has all
                again |= {name: self._shared[name] for name in gone}
        for row in again.values():
            self._kept_at.clear()
            self._losses[row.name] += 1
            if self._losses[row.name] >= _MOST_LOSSES:
                raise WorkError(f"{row.name} was built {self._losses[row.name]} times, and its hosts did not keep it")
            self._say(f"{row.title} is built again: no host keeps it any more")
        for heir in heirs:
            if not heir.wanted.needs.shared.isdisjoint(again):
                self._let_go(heir.name, cancel=True)
        return list(again.values())

    def forget_shared(self, done: Callable[[str], object]) -> None:
        """Let hosts remove the shared builds whose heirs are all done.

        Args:
            done: says so of an identity.
        """
        units = self._agenda.units.items()
        names = {kept_name(identity) for identity, unit in units if all(map(done, unit.heirs))}
        for host in self.present_hosts():
            if over := sorted(names & host.keeps):
                with suppress(Away, Refused, Damaged):
                    self._link.ask(host.name, "unshare", {"names": over})

    def is_waiting(self) -> bool:
        """See `Crew`: Dask has rows, or will have, and hosts that may build them are there or may come back."""
        hosts, given = self._possible(), [self._rows[name] for name in self._given]
        if self._link.is_up and hosts and len(without_host(given, hosts)) < max(1, len(given)):
            self._alone_since = None
            return True
        if not hosts and (self._kinds or (self._excluded and self._excluded.keys() >= self._link.hosts.keys())):
            return False
        since = self._alone_since = self._alone_since or time.monotonic()
        return time.monotonic() - since < _PATIENCE

    def signs(self) -> Iterable[tuple[str, str]]:
        """See `Crew`: no host writes into the ledger, so the run does for the attempts that it follows."""
        return [(each.host, each.name) for each in list(self._followed.values())]

    def build(self, row: Row, stop: int, watch: Watch) -> Ended | None:
        """See `Crew`."""
        claimed = self._claimed(row)
        if claimed is None:
            return None
        with claimed.locks:
            if not claimed.wanted:
                self._built.discard(row.name)
                self._let_go(row.name)
                return Ended(claimed.done, ())
            under_way, row = self._begun(row, claimed, stop)
            self._followed[row.name] = under_way
            try:
                return self._follow(under_way, Followed(row, claimed, under_way.name, stop), watch)
            finally:
                del self._followed[row.name]

    def _claimed(self, row: Row) -> Claim | None:
        place = self._places[row.configuration]
        claimed = claim(place.artifacts, place.ledger, row, place.built_on)
        if claimed is None or not row.is_shared:
            return claimed
        return replace(claimed, done=(), wanted=row.planned.outputs)  # what this machine keeps is on no host

    def _possible(self) -> list[Host]:
        """The hosts, and one for each kind of job that may become a host."""
        coming = []
        for name, kind in self._kinds.items():
            state = self._link.jobs.get(name, {})
            if (problem := str(state.get("problem", ""))) and problem != self._problems.get(name):
                self._say(f"The cluster, jobs {name}: {problem}")
            self._problems[name] = problem
            if not state.get("hopeless"):
                coming.append(kind.host)
        return [with_others(host, self._others) for host in (*self.present_hosts(), *coming)]

    def _give(self, rows: Sequence[Row]) -> None:
        """Give Dask rows, the most urgent first: some more than its hosts can begin, and none that makes the same."""
        hosts = self._possible() if rows else []
        at_a_time = sum(host.jobs for host in hosts) + sum(kind.most * kind.rows for kind in self._kinds.values())
        room = max(_AT_LEAST, _AHEAD * at_a_time) - len(self._given)
        making = {package for packages in self._making.values() for package in packages} if rows else set()
        for row in rows:
            if room <= 0 or not hosts:
                return
            if row.name in self._built or not making.isdisjoint(row.wanted.packages):
                continue
            if not any(row.wanted.needs.shared <= host.keeps for host in hosts):
                continue
            claimed = self._claimed(row)
            if claimed is None:
                continue
            with claimed.locks:
                if not claimed.wanted:
                    self._built.add(row.name)
                    continue
                self._submit(row, self._nowhere, claimed)
            making |= self._making[row.name]
            room -= 1

    def _submit(self, row: Row, running: Running, claimed: Claim) -> Order:
        engine = self._workspace.engines.engine_for(row.configuration, row.platform)
        choice = self._agenda.channels[row.configuration]
        names = [output.name for output in claimed.wanted]
        other = [host for host in self._link.hosts if other_than(host) in row.wanted.needs.labels]
        again = self._again if other else ""
        order = compile_order(self._parcels, row, running, engine, choice, names, claimed.done, again)
        self._given[row.name] = order
        self._making[row.name] = frozenset(output.package_id for output in claimed.wanted)
        resources = resources_for(row, self._possible())
        self._link.submit(Task(order, resources, self._rank[row.name], (*other, *self._excluded)))
        return order

    def _begun(self, row: Row, claimed: Claim, stop: int) -> tuple[_UnderWay, Row]:
        """The attempt at a row that Dask has begun, or begins now for a later one; and the row where it is built.

        Raises:
            Stopped: the run is over.
        """
        order = self._given[row.name]
        if row.at.attempt != order.number:
            self._link.release(order.key, cancel=True)
            order = self._submit(row, row.at, claimed)
        task = self._link.tasks[order.key]
        while not task.host:
            if is_over(stop):
                raise Stopped
            time.sleep(_PAUSE)
        running = replace(row.at, host=task.host, share=task.share)
        return _UnderWay(order, task.host, task.start), replace(row, running=running)

    def _follow(self, under_way: _UnderWay, followed: Followed, watch: Watch) -> Ended:
        """Follow an attempt to its end.

        Raises:
            Elsewhere: its host is lost, or sends what cannot be true.
            Stopped: the run is over.
        """
        row = followed.row
        place = self._places[row.configuration]
        with LogFile(place.artifacts.logs, row.name, row.at.log_limit) as log:

            def made(event: Event | NextAttempt) -> None:
                if isinstance(event, Built):  # rows that need it may begin
                    packages = {output.package_id for output in row.wanted.missing if output.name == event.output}
                    self._making[row.name] = self._making.get(row.name, frozenset()) - packages
                watch(event)

            following = Following(place, self._link, followed, log, made, lambda: self._is_lost(under_way))
            try:
                self._provide(following, under_way)
                self._take_all(following, under_way)
                self._conclude(following, under_way)
                self._replace_log(following)
            except (Rejected, Damaged) as error:
                self._lose(following, under_way, self._rejected(following, under_way, error))
            except _Lost as error:
                self._lose(following, under_way, error)
            finally:
                if not followed.is_over():
                    following.quarantine.clear()
        result = following.result()
        failed = result.failed is not None
        self._let_go(row.name, failed_on=under_way.host if failed else "", cancel=failed)
        return result

    def _lose(self, following: Following, under_way: _UnderWay, lost: _Lost) -> None:
        """An attempt is over without a result: its row has failed, if that happens too often.

        Raises:
            Elsewhere: it begins again.
        """
        row, reason = following.followed.row.name, f"{under_way.host}: {lost}"
        self._losses[row] += 1
        if self._losses[row] >= _MOST_LOSSES:
            following.fail(f"it was begun {self._losses[row]} times and never ended; the last time: {reason}")
            return
        following.give_up(reason)
        task = self._link.tasks.get(under_way.name)
        if not lost.dask_goes_on or following.followed.row.wanted.needs.shared:  # Dask has no other host for an heir
            self._let_go(row, failed_on=under_way.host, cancel=True)
        elif task is not None and task.start == under_way.start:
            task.host = task.start = ""  # until Dask has begun it again
        raise Elsewhere(reason)

    def _provide(self, following: Following, under_way: _UnderWay) -> None:
        """Send the host what it lacks for an order: documents of bundles first, files then."""
        order, sent, rounds = under_way.order, None, 0
        request = {"bundles": order.bundles, "files": [made.sha256 for made in order.made]}
        while sent is None or sent:
            found = self._asked(following, under_way, "lacks", request).get("lacks")
            sent = [content for content in found if isinstance(content, str)] if isinstance(found, list) else []
            rounds += 1
            if rounds > _MOST_FAILURES:
                raise Damaged("it asks for the same files again and again")
            for content in sent:
                source = self._files.source(content, order)
                if source is None:
                    raise Damaged("it asks for files that are no part of its order")
                try:
                    self._link.put(under_way.host, content, source, following.is_over)
                except Away:  # it is asked again
                    continue
                except Refused as error:
                    raise _Lost(f"it does not take a file: {error}", dask_goes_on=False) from None

    def _take_all(self, following: Following, under_way: _UnderWay) -> None:
        arriving, attempt = Arriving(), {"key": under_way.name, "start": under_way.start}
        limit, begun = under_way.order.seconds, time.monotonic()
        while following.finished is None:
            answer = self._asked(following, under_way, "events", {**attempt, "offset": arriving.offset})
            for event in arriving.take(answer):
                begun = time.monotonic() if isinstance(event, Started) else begun
                self._take(following, under_way, event)
            if not answer["data"] and not answer.get("goes_on") and following.finished is None:
                raise _Lost("its process ended without a result", dask_goes_on=False)
            passed = time.monotonic() - begun
            if limit is not None and answer.get("goes_on") and passed > _TIMES * limit + _MORE:
                raise Damaged(f"it goes on after {duration(passed)}, for a time limit of {duration(limit)}")

    def _asked(
        self, following: Following, under_way: _UnderWay, operation: str, arguments: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """The answer of a host, asked for again and again while it is away."""
        try:
            return self._until_back(
                following, under_way, lambda: self._link.ask(under_way.host, operation, arguments, following.is_over)
            )
        except Refused as error:
            raise _Lost(f"it does not know the attempt: {error}") from None

    def _take(self, following: Following, under_way: _UnderWay, event: HostEvent) -> None:
        """Take an event, again and again while its host is away."""
        try:
            self._until_back(following, under_way, lambda: following.take(event))
        except Refused as error:
            raise Rejected(f"its host does not hand it over: {error}") from error

    def _until_back(self, following: Following, under_way: _UnderWay, call: Callable[[], T]) -> T:
        """What a call returns, made again and again while the host is away.

        Raises:
            _Lost: the attempt does not go on.
            Stopped: the run is over.
            Damaged: the host is there, and does not answer.
        """
        failures = 0
        while True:
            if following.followed.is_over():
                raise Stopped
            try:
                return call()
            except Away as error:
                failures = failures + 1 if self._link.is_up and under_way.host in self._link.hosts else 0
                if failures >= _MOST_FAILURES:
                    raise Damaged(f"it is there and failed to answer {failures} times: {error}") from error
            if self._is_lost(under_way):
                raise _Lost("the worker of its host ended, or is cut off")
            time.sleep(_PAUSE)

    def _is_lost(self, under_way: _UnderWay) -> bool:
        """Whether an attempt does not go on."""
        task = self._link.tasks.get(under_way.name)
        return task is None or task.start != under_way.start or self._link.is_gone(under_way.host)

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
        task, end = self._link.tasks.get(under_way.name), time.monotonic() + _CANCELLED_WITHIN
        while outcome == "stopped" and task is not None and time.monotonic() < end:
            if task.ended == "cancelled":
                raise WorkError(f"the run {self._link.run} was stopped", hint=_AGAIN)
            time.sleep(_PAUSE)
        raise _Lost(reason, dask_goes_on=outcome == "unfit")

    def _rejected(self, following: Following, under_way: _UnderWay, error: Exception) -> _Lost:
        """A host sends what cannot be true: it gets nothing more in this run."""
        self._exclude(under_way.host, str(error))
        kept = following.quarantine.keep("a package" if isinstance(error, Rejected) else "events", str(error))
        return _Lost(f"what it sent stays in {kept}: {error}", dask_goes_on=False)

    def _replace_log(self, following: Following) -> None:
        """The host's whole log in place of what was read of it, if the host is still there."""
        end = following.finished
        if end is None or not end.log:
            return
        limit = following.followed.row.at.log_limit + (1 << 20)
        with suppress(Away, Refused, Rejected, Damaged):
            fetched = following.quarantine.fetch(self._link, end.log, end.log_size, limit, following.is_over)
            with replacing(following.log.path) as part:
                copyfile(fetched, part)
            fetched.unlink()

    def _let_go(self, row: str, failed_on: str = "", *, cancel: bool = False) -> None:
        """Let Dask forget a row, and a host what it cannot give back.

        Args:
            cancel: it must not go on, for any client.
        """
        order = self._given.pop(row, None)
        self._making.pop(row, None)
        if order is None:
            return
        self._link.release(order.key, cancel=cancel)
        if failed_on:
            with suppress(Away, Refused, Damaged):
                self._link.ask(failed_on, "forget", {"key": order.key})

    def _exclude(self, host: str, reason: str) -> None:
        if host not in self._excluded:
            self._excluded[host] = reason
            self._say(f"{host} gets nothing more in this run: {reason}")
