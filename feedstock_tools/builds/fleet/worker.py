"""The worker of a host: a worker of Dask that builds rows, each in a process of its own.

    python -m feedstock_tools.builds.fleet.worker FOLDER [ROOT]

Its builds end with it, but not with the scheduler: when that comes back, the worker joins it again with the builds that
go on. As a job of a cluster it ends when nothing has been built for a while.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feedstock_tools import __version__
from feedstock_tools.builds.fleet.certificates import security
from feedstock_tools.builds.fleet.host.builds import Builds
from feedstock_tools.builds.fleet.host.settings import HostSettings, read_settings, why_unfit
from feedstock_tools.builds.fleet.host.tasks import TOPIC, Served
from feedstock_tools.errors import FeedstockError
from feedstock_tools.files.temporary import remove

if TYPE_CHECKING:
    from distributed import Worker

#: The pause between two attempts to reach the scheduler, and how long each may take, in seconds.
_AGAIN, _JOINS_WITHIN = 1.0, 30.0
#: How often a worker checks its host, and how long it takes no rows after it was at fault, in seconds.
_EVERY, _ASIDE = 5.0, 120.0


class _Host:
    """A host: what it reports, and its worker of Dask, made again whenever the scheduler was away."""

    def __init__(self, folder: Path, settings: HostSettings) -> None:
        self._security = security(folder, "host")
        self._settings = settings
        self._began = self._busy = time.monotonic()
        self._unfit = why_unfit(settings.root)
        self._aside_until = 0.0
        self._offered: dict[str, float] = {}
        self.builds = Served.builds = Builds(settings)

    async def serve(self) -> None:
        """Join the scheduler, again and again; never returns."""
        from distributed import Worker

        logging.getLogger("distributed").setLevel(logging.WARNING)
        while True:
            with suppress(OSError, TimeoutError, ValueError, RuntimeError):
                worker = await Worker(
                    f"tls://{self._settings.hub}",
                    name=self._settings.host.name,
                    nthreads=self._settings.host.jobs,
                    resources=self._offer(),
                    security=self._security,
                    metrics={TOPIC: self._report},
                    local_directory=str(self._settings.root / "dask"),
                    death_timeout=_JOINS_WITHIN,
                    memory_limit=0,
                    dashboard=False,
                    dashboard_address="127.0.0.1:0",
                )
                self.builds.tell = partial(worker.log_event, TOPIC)
                self.builds.set_aside = partial(self._set_aside, worker)
                try:
                    await self._keep(worker)
                finally:
                    await worker.close()
            await asyncio.sleep(_AGAIN)

    async def wait_until_idle(self) -> None:
        """Wait until nothing has been built for as long as the worker may stay."""
        idle = self._settings.idle
        while idle is None or time.monotonic() < self._busy + idle:
            await asyncio.sleep(1.0 if idle is None else min(1.0, idle))
            if self.builds.report():
                self._busy = time.monotonic()

    async def _keep(self, worker: Worker) -> None:
        """Keep what a worker offers up to date, until it ends."""
        finished = asyncio.ensure_future(worker.finished())
        while not (await asyncio.wait([finished], timeout=_EVERY))[0]:
            if time.monotonic() > self._aside_until:
                self._unfit = why_unfit(self._settings.root)
            if self._offered != self._offer():
                await worker.set_resources(**self._offered)

    async def _set_aside(self, worker: Worker, reason: str) -> None:
        """Take no rows for a while."""
        self._unfit, self._aside_until = reason, time.monotonic() + _ASIDE
        await worker.set_resources(**self._offer())

    @property
    def _left(self) -> float | None:
        allocation = self._settings.host.left
        return None if allocation is None else max(0.0, allocation - (time.monotonic() - self._began))

    def _offer(self) -> dict[str, float]:
        """What the host offers now."""
        nothing = dict.fromkeys(self._settings.resources(None), 0.0)
        self._offered = {**nothing, **self._settings.resources(self._left), **({"rows": 0.0} if self._unfit else {})}
        return self._offered

    async def _report(self, worker: Worker) -> Mapping[str, Any]:
        """What the host is and does now: Dask's scheduler shows it to clients."""
        state = {"version": __version__, "left": self._left, "unfit": self._unfit}
        return {**self._settings.report, **state, "keeps": sorted(self.builds.kept), "builds": self.builds.report()}


async def _serve(folder: Path, settings: HostSettings) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):  # before there is anything to remove
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    settings.root.mkdir(parents=True, exist_ok=True)
    host = _Host(folder, settings)
    serving = asyncio.create_task(host.serve())
    ends = [asyncio.create_task(stop.wait()), asyncio.create_task(host.wait_until_idle())]
    await asyncio.wait([serving, *ends], return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        serving.result()
    await host.builds.end_all()
    for task in (serving, *ends):
        task.cancel()
    await asyncio.gather(serving, *ends, return_exceptions=True)
    if settings.temporary:
        remove(settings.root)


def main(folder: str, root: str | None = None, name: str | None = None) -> int:
    """Serve until a signal asks it to end.

    Args:
        folder: the host's certificate, and its settings.
        root: the folder for all that it does, in place of that in the settings; `name` of the host, likewise.
    """
    logging.basicConfig(level=logging.WARNING)
    try:
        settings = read_settings(Path(folder))
        if root is not None:
            settings = replace(settings, root=Path(root))
        if name is not None:
            settings = replace(settings, host=replace(settings.host, name=name))
        asyncio.run(_serve(Path(folder), settings))
    except (FeedstockError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
