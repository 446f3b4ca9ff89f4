"""The folder of an attempt on a host: its order, what has happened, and what it made. It is named for the order's key.

order.json   the order
start        a name for this attempt, other than that of any before
events       what happened, a line of JSON each
files/       packages and the log, by hash
messages     what its process printed
stop         asks the attempt to end
after-build  asks for the package's hello-world and benchmark after the build
"""

from __future__ import annotations

import os
from pathlib import Path

from feedstock_tools.builds.fleet.results.events import HostEvent, line_of
from feedstock_tools.digests import digest_of_values
from feedstock_tools.feedstock.layout import Artifacts

ORDER, START, EVENTS, FILES, MESSAGES = "order.json", "start", "events", "files", "messages"
STOP = "stop"
AFTER_BUILD = "after-build"


def append(attempt: Path, event: HostEvent) -> None:
    """Record an event of an attempt."""
    file = os.open(attempt / EVENTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        content = memoryview(line_of(event))
        while content:
            content = content[os.write(file, content) :]
    finally:
        os.close(file)


def keep(attempt: Path, file: Path, digest: str) -> None:
    """Keep a file under its hash."""
    kept = attempt / FILES / digest
    kept.parent.mkdir(exist_ok=True)
    if not kept.exists():
        kept.hardlink_to(file)


def caches_of(root: Path) -> Artifacts:
    """What the rows that a host builds have in common: fetched packages and sources, and shared builds."""
    return Artifacts(root / "caches")


def slot_of(root: Path, row: str) -> Path:
    """The folder in which a host builds a row: the same on all hosts with the same root."""
    return root / "rows" / digest_of_values(row)[:10]
