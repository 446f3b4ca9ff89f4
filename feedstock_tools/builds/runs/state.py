"""The state of a run: which rows wait, run and have ended. It knows neither threads nor clocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from feedstock_tools.builds.plan.hosts import Host
from feedstock_tools.builds.plan.row import Ended, Row
from feedstock_tools.builds.runs.decide import Waiting, decide
from feedstock_tools.builds.runs.occupancy import Occupancy
from feedstock_tools.feedstock.planned import PackageId


class RunState:
    """The rows of one run, on this machine, in a fleet, or simulated.

    Attributes:
        ended: the rows that have ended, by name.
    """

    def __init__(self, rows: Sequence[Row], *, fail_fast: bool) -> None:
        """Let some rows wait, the most urgent first.

        Args:
            fail_fast: after a failure nothing begins any more.
        """
        self._fail_fast = fail_fast
        self._broken: set[PackageId] = set()
        self._pending = Waiting(rows)
        self._occupancy = Occupancy()
        self.ended: dict[str, Row] = {}

    @property
    def pending(self) -> list[Row]:
        """The rows that wait, the most urgent first."""
        return list(self._pending)

    @property
    def running(self) -> Mapping[str, Row]:
        return self._occupancy.rows

    @property
    def failed(self) -> int:
        return sum(row.failed is not None for row in self.ended.values())

    def begin(self, hosts: Sequence[Host], now: float) -> list[Row]:
        rows = decide(self._pending, self._occupancy, hosts, now)
        for row in rows:
            self.take_over(row)
        return rows

    def take_over(self, row: Row) -> None:
        """Note that a waiting row has begun, or is under way since an earlier run."""
        self._pending.remove(row.name)
        self._occupancy.add(row)

    def is_over(self, now: float) -> bool:
        """Whether nothing runs and no waiting row can ever begin."""
        return not self.running and not any(row.wanted.not_before > now for row in self._pending)

    def made(self, row: str, output: str) -> frozenset[PackageId]:
        """Note that a running row has made an output, so that no other row waits for it; returns its packages."""
        packages = _packages(self.running[row], output)
        self._occupancy.note_made(packages)
        return packages

    def postpone(self, row: str, not_before: float) -> None:
        """Put a row back in front, because another run builds a part of it, or its host is gone."""
        gone = self._occupancy.remove(row)
        first = replace(gone, running=None, wanted=replace(gone.wanted, not_before=not_before))
        self._pending = Waiting([first, *self._pending])
        self._give_up_broken()

    @property
    def inheriting(self) -> list[Row]:
        """The waiting rows whose shared builds have been run."""
        heirs = [row for row in self._pending if row.wanted.after]
        to_run = {package for row in self._pending if row.is_shared for package in row.wanted.packages} if heirs else ()
        to_run = {*to_run, *self._occupancy.packages}
        return [row for row in heirs if to_run.isdisjoint(row.wanted.after)]

    def again(self, shared: Row) -> None:
        """Let a shared build run again, of this run or an earlier one, that no host keeps any more."""
        self.ended.pop(shared.name, None)
        self._occupancy.made -= shared.wanted.packages
        self._pending = Waiting([shared, *self._pending])

    def end(self, row: str, ended: Ended) -> Row:
        """Note that a row has ended; rows that need an output that failed do not begin. Returns the row."""
        gone = self._occupancy.remove(row)
        self.ended[row] = done = replace(gone, ended=ended)
        if ended.failed is None:
            self._occupancy.note_made(gone.wanted.packages)
        else:
            self._broken |= _packages(done, ended.failed.output)
            if self._fail_fast:
                self._pending = Waiting()
            self._give_up_broken()
        return done

    def _give_up_broken(self) -> None:
        """Let no row wait for an output that failed."""
        if self._broken:
            self._pending = Waiting(
                row for row in self._pending if self._broken.isdisjoint(row.wanted.packages | row.wanted.after)
            )


def _packages(row: Row, output: str) -> frozenset[PackageId]:
    return frozenset(missing.package_id for missing in row.wanted.missing if missing.name == output)
