"""The process of one attempt on a host, forked for the host's worker: it performs an order and nothing else.

A supervisor is forked off first. It ends the build with all its processes when the lease runs out, when the client
asks for it, and when the worker ends, however that happens: only the worker keeps its standard input open.
"""

from __future__ import annotations

import json
import signal
from pathlib import Path

from feedstock_tools.builds.engines.process.supervision import supervise
from feedstock_tools.builds.fleet.host.lease import Lease
from feedstock_tools.builds.fleet.host.spool import ORDER, STOP, append
from feedstock_tools.builds.fleet.results.events import Finished


def main(attempt: str, root: str) -> int:
    """Perform the order in the folder of an attempt.

    Args:
        root: the folder of the host's worker.
    """
    folder = Path(attempt)
    lease, stop = Lease(folder), folder / STOP
    status = supervise(lambda: _performed(folder, Path(root)), 0, lambda: lease.is_over() or stop.exists())
    if status:
        append(folder, _end(status, is_asked=stop.exists(), is_over=lease.is_over()))
    return status


def _end(status: int, *, is_asked: bool, is_over: bool) -> Finished:
    """Why an attempt ended that has not reported its end itself."""
    if is_asked:
        return Finished("stopped", "it was stopped on request")
    if is_over:
        return Finished("lease", "its lease ran out, since the host was cut off from the fleet")
    if status == 128 + signal.SIGTERM:
        return Finished("stopped", "the worker of the host ended")
    return Finished("broken", f"the process of the attempt ended with status {status}")


def _performed(folder: Path, root: Path) -> int:
    """Build the row; 0 if the end is among the events."""
    from feedstock_tools.builds.fleet.host.performing import perform
    from feedstock_tools.builds.fleet.orders.order import Order
    from feedstock_tools.builds.fleet.trust.signing import Refused
    from feedstock_tools.errors import FeedstockError

    try:
        perform(folder, root, Order.from_json(json.loads((folder / ORDER).read_bytes())))
    except (FeedstockError, Refused) as error:
        append(folder, Finished("broken", str(error)))
    return 0
