"""The ledger: the record of builds, their inputs, times and results; the only source of truth on what is done.

An SQLite file among a feedstock's build artifacts. A package counts as done when a build of the same identity is
recorded as done and the channel folder still holds the very file that it recorded.
"""

from feedstock_tools.builds.ledger.database import FORM, Ledger
from feedstock_tools.builds.ledger.records import (
    BuildRecord,
    ComparisonRecord,
    EnvironmentRecord,
    PackageRecord,
    SolvedPackage,
    TestRecord,
    now,
)

__all__ = [
    "FORM",
    "BuildRecord",
    "ComparisonRecord",
    "EnvironmentRecord",
    "Ledger",
    "PackageRecord",
    "SolvedPackage",
    "TestRecord",
    "now",
]
