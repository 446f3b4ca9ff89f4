"""The process of an attempt on a host, forked for the host's worker: it performs an order and nothing else.

A supervisor is forked off first. It ends the build with all its processes when the client asks for it, and when the
worker ends, however that happens: only the worker keeps the other end of a pipe open.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from multiprocessing.connection import Connection
from pathlib import Path

from feedstock_tools.builds.engines.process.supervision import supervise
from feedstock_tools.builds.fleet.host.performing import perform
from feedstock_tools.builds.fleet.host.settings import why_unfit
from feedstock_tools.builds.fleet.host.spool import MESSAGES, ORDER, STOP, append
from feedstock_tools.builds.fleet.orders.order import Order, Refused
from feedstock_tools.builds.fleet.results.events import Finished
from feedstock_tools.builds.plan.hosts import Share
from feedstock_tools.errors import FeedstockError

#: The variables of the worker that its attempts see; builds see fewer.
_PASSED_ON = frozenset(
    {
        *("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER", "XDG_CACHE_HOME"),
        *("CUDA_VISIBLE_DEVICES", "DOCKER_EXECUTABLE", "DOCKER_HOST", "XDG_RUNTIME_DIR"),
    }
)


def main(folder: str, root: str, share: Share, held: Connection) -> None:
    """Perform the order in the folder of an attempt.

    Args:
        root: the folder of the host's worker.
        share: the row's share of the host.
        held: ends with the worker.
    """
    os.setsid()
    os.chdir(folder)
    for name in set(os.environ) - _PASSED_ON:
        del os.environ[name]
    with (Path(folder) / MESSAGES).open("wb") as messages:
        for number in (1, 2):
            os.dup2(messages.fileno(), number)
    stop = Path(folder) / STOP
    status = supervise(lambda: _performed(Path(folder), Path(root), share), held.fileno(), stop.exists)
    if status:
        append(Path(folder), _end(status, is_asked=stop.exists()))
    sys.exit(status)


def _end(status: int, *, is_asked: bool) -> Finished:
    """Why an attempt ended that has not reported its end itself."""
    if is_asked:
        return Finished("stopped", "it was stopped on request")
    if status == 128 + signal.SIGTERM:
        return Finished("stopped", "the worker of the host ended")
    return Finished("broken", f"the process of the attempt ended with status {status}")


def _performed(folder: Path, root: Path, share: Share) -> int:
    """Build the row; 0 if the end is among the events."""
    try:
        perform(folder, root, Order.from_json(json.loads((folder / ORDER).read_bytes())), share)
    except (FeedstockError, Refused) as error:
        unfit = why_unfit(root)
        append(folder, Finished("unfit", unfit) if unfit else Finished("broken", str(error)))
    return 0
