"""Where a feedstock's builds leave things: one folder, `build_artifacts` in the feedstock unless another is given.

linux-64/, noarch/      the channel of what was built (conda-smithy's local builds put it here too)
built-on-stand-in/      the channel of what was built on the stand-in channel, never mixed with the other
ledger.sqlite           what is done
logs/                   a file for each build
pkg_cache/, src_cache/  what engines have fetched
.work/, .cache/         private folders of running and failed builds; what can be made again
"""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from feedstock_tools.errors import WorkError
from feedstock_tools.writing import write_whole

__all__ = ["LEDGER", "STAND_IN_CHANNEL", "Artifacts"]

#: The name of the ledger's file: a folder that has one is a folder of artifacts.
LEDGER = "ledger.sqlite"

#: The folder of the channel for builds that used the stand-in channel.
STAND_IN_CHANNEL = "built-on-stand-in"


@dataclass(frozen=True, slots=True)
class Artifacts:
    """The folder of build artifacts and the places in it."""

    root: Path

    @property
    def ledger(self) -> Path:
        """The ledger's file."""
        return self.root / LEDGER

    @property
    def logs(self) -> Path:
        """The folder of log files."""
        return self.root / "logs"

    def channel(self, *, stand_in: bool) -> Path:
        """The folder of the output channel."""
        return self.root / STAND_IN_CHANNEL if stand_in else self.root

    def package_cache(self, *, stand_in: bool) -> Path:
        """Where engines unpack packages; those of the stand-in channel bear the names of real ones."""
        return self.root / ".cache" / "stand-in-packages" if stand_in else self.root / "pkg_cache"

    @property
    def sources(self) -> Path:
        """Where engines keep fetched sources."""
        return self.root / "src_cache"

    def private(self, row: str) -> Path:
        """The private folder of a row's build; its name is short, since build prefixes have a limit on their length."""
        return self.root / ".work" / sha256(row.encode()).hexdigest()[:12]

    @property
    def locks(self) -> Path:
        """Where the locks of rows and outputs lie."""
        return self.root / ".work" / "locks"

    def recall(self, name: str) -> Any:
        """What `remember` kept under a name; None where there is nothing usable."""
        try:
            return json.loads((self.root / ".cache" / f"{name}.json").read_bytes())
        except (OSError, ValueError, RecursionError):
            return None

    def remember(self, name: str, content: Any) -> None:
        """Keep something that can be made again, for another run, if there is a place for it."""
        with suppress(WorkError):  # who only reads, as --list does, may do so in a folder that cannot be written
            write_whole(self.root / ".cache" / f"{name}.json", json.dumps(content))

    def fresh_private(self, row: str) -> Path:
        """An empty private folder for a row whose lock is held.

        Raises:
            WorkError: it cannot be made.
        """
        folder = self.private(row)
        try:
            shutil.rmtree(folder, ignore_errors=True)
            (folder / "tmp").mkdir(parents=True)
        except OSError as error:
            raise WorkError(f"cannot make a folder for the build: {error.strerror or error}", path=folder) from error
        return folder
