"""The ledger: what was built, from what, when and how it ended; the sole truth of what is done.

An SQLite file among a feedstock's build artifacts. A package counts as done when a build of the same identity is
recorded as done and the channel folder still holds the very file that it recorded.
"""

from feedstock_tools.build.ledger.database import Ledger
from feedstock_tools.build.ledger.forms import SCHEMA_VERSION
from feedstock_tools.build.ledger.machine import process_lives, this_machine, this_process
from feedstock_tools.build.ledger.records import (
    BuildRecord,
    EnvironmentRecord,
    PackageRecord,
    SolvedPackage,
    TestRecord,
    now,
)

__all__ = [
    "SCHEMA_VERSION",
    "BuildRecord",
    "EnvironmentRecord",
    "Ledger",
    "PackageRecord",
    "SolvedPackage",
    "TestRecord",
    "now",
    "process_lives",
    "this_machine",
    "this_process",
]
