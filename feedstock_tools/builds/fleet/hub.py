"""The scheduler of a fleet: Dask's, in a process of its own without any credentials but its certificate.

    python -m feedstock_tools.builds.fleet.hub FOLDER HOST:PORT

It remembers nothing on disk: workers join it again with the builds that go on, and clients give their rows again. So
it begins anew when the certificates that it trusts change.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import time
from contextlib import nullcontext, suppress
from importlib.util import find_spec
from pathlib import Path

from feedstock_tools.builds.fleet.certificates import AUTHORITY, security
from feedstock_tools.builds.fleet.cluster.adapting import with_jobs
from feedstock_tools.builds.fleet.cluster.kinds import job_kinds
from feedstock_tools.errors import FeedstockError

#: Where the dashboard listens: reached by `ssh -L`, since whoever reaches it needs no certificate.
DASHBOARD = "127.0.0.1:8787"
#: How long a host may be silent before its rows begin elsewhere, if the environment of the process sets nothing else.
_SILENT = "30s"
#: How often it tries to listen, once a second: a connection of another program may have its port for a moment.
_TRIES = 30
#: How often it checks whom to trust, in seconds.
_LOOKS_EVERY = 2.0
_SETTINGS = {
    "scheduler": {
        "worker-ttl": _SILENT,
        "work-stealing-interval": "500ms",
        "unknown-task-duration": "60s",
        "allowed-failures": 1_000_000,  # clients count them: Dask's errors are pickles, which they do not read
    },
    "admin": {"low-level-log-length": 100},
}


async def _serve(folder: Path, address: str) -> bool:
    """Serve until a signal asks for the end, or the trusted certificates change; returns whether to serve again."""
    import dask
    from distributed import Scheduler

    logging.getLogger("distributed").setLevel(logging.ERROR)
    dask.config.update_defaults({"distributed": _SETTINGS})
    host, _, port = address.rpartition(":")
    has_dashboard = find_spec("bokeh") is not None
    kinds = job_kinds(folder)
    scheduler = Scheduler(
        host=host.strip("[]"),
        port=int(port),
        protocol="tls",
        security=security(folder, "hub"),
        dashboard=has_dashboard,
        dashboard_address=DASHBOARD if has_dashboard else "127.0.0.1:0",
    )
    async with scheduler, with_jobs(scheduler, folder, kinds) if kinds else nullcontext():
        print(f"the scheduler listens at {address}", flush=True)  # noqa: T201 - the program's only output
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        trusted = (folder / AUTHORITY).read_bytes()
        while not stop.is_set() and (folder / AUTHORITY).read_bytes() == trusted:
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), _LOOKS_EVERY)
        return not stop.is_set()


def main(folder: str, address: str) -> int:
    """Serve until a signal asks it to end."""
    logging.basicConfig(level=logging.ERROR)
    for left in reversed(range(_TRIES)):
        try:
            while asyncio.run(_serve(Path(folder), address)):
                pass
            return 0
        except (FeedstockError, OSError, ValueError) as error:
            sys.stderr.write(f"{error}\n")
            return 1
        except RuntimeError as error:  # Dask's, around the system's reason
            sys.stderr.write(f"{error.__cause__ or error}\n")
            time.sleep(1.0 if left else 0.0)
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
