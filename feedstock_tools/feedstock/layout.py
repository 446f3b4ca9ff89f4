"""The artifacts folder of a feedstock, by default `build_artifacts` in the feedstock.

linux-64/, noarch/      the channel of built packages (also of conda-smithy's local builds)
built-on-stand-in/      the channel of packages built on the stand-in channel, never mixed with the other
ledger.sqlite           the record of builds
logs/                   a file for each build
compared/               packages of second builds that differ from the first
quarantine/             what hosts of a fleet sent, until it is checked; what failed, with the reason
pkg_cache/, src_cache/  packages and sources fetched by engines
.work/, .cache/         private folders of running and failed builds, what shared builds have left; caches
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from feedstock_tools.channel.properties import KINDS, ChannelProperties
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.files.changes import write_whole
from feedstock_tools.files.temporary import own_mark, owner_lives, remove
from feedstock_tools.reading import read_bytes

#: The name of the ledger's file: a folder that has one is a folder of artifacts.
LEDGER = "ledger.sqlite"

#: The file in the folder of a shared build that makes it complete (`builds/runs/shared.py`).
SEAL = "sealed.json"

#: The file in a private folder that names its row and its owner, as long as a build uses it.
_OWNED = ".row.json"

#: The file in it that keeps git from committing any of it.
_IGNORE = ".gitignore"

#: Bytes of a cached value, several times a plan with 1,000 configurations.
_LARGEST = 256 << 20


def channel_folder(built_on: ChannelProperties) -> str:
    """The folder of the output channel for packages that are built on some channels, within the artifacts folder."""
    return f"built-on-{built_on.origin}" if built_on.made_here else "."


def kept_name(identity: str) -> str:
    """The name of the folder of a shared build, by its identity in the ledger."""
    return identity[:12]


#: The folders of output channels, and those of them that are not the artifacts folder itself.
CHANNEL_FOLDERS = tuple(channel_folder(channels) for channels in KINDS)
CHANNELS_APART = tuple(folder for folder in CHANNEL_FOLDERS if folder != ".")


@dataclass(frozen=True, slots=True)
class Artifacts:
    """The folder of build artifacts and its contents."""

    root: Path

    @property
    def ledger(self) -> Path:
        return self.root / LEDGER

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    def channel(self, built_on: ChannelProperties) -> Path:
        """The folder of the output channel for packages that are built on some channels."""
        return self.root / channel_folder(built_on)

    @property
    def cache(self) -> Path:
        return self.root / ".cache"

    def package_cache(self, channels: ChannelProperties) -> Path:
        """The folder in which engines unpack packages; packages made here have the names of real ones."""
        return self.cache / f"{channels.origin}-packages" if channels.made_here else self.root / "pkg_cache"

    @property
    def quarantine(self) -> Path:
        """The folder of what hosts of a fleet sent."""
        return self.root / "quarantine"

    @property
    def compared(self) -> Path:
        """The folder of packages of second builds that differ from the first."""
        return self.root / "compared"

    @property
    def again(self) -> Path:
        """The folder in which rows are built a second time."""
        return self.root / ".work" / "again"

    @property
    def sources(self) -> Path:
        return self.root / "src_cache"

    def apart(self, root: Path) -> Artifacts:
        """An empty artifacts folder in another place, with links to the caches of packages and sources of this one.

        Raises:
            OSError: it cannot be made.
        """
        made = Artifacts(root)
        if made.root.exists():
            remove(made.root)
        for place, cache in zip(made._caches(), self._caches(), strict=True):
            cache.mkdir(parents=True, exist_ok=True)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(cache)
        return made

    def _caches(self) -> tuple[Path, ...]:
        return (*(self.package_cache(channels) for channels in KINDS), self.sources)

    def private(self, row: str) -> Path:
        """The private folder of a row's build; its name is short, since build prefixes have a limit on their length."""
        return self.root / ".work" / sha256(row.encode()).hexdigest()[:12]

    def shared(self, identity: str) -> Path:
        """The folder of a shared build, by its identity in the ledger."""
        return self.shared_builds / kept_name(identity)

    @property
    def kept(self) -> frozenset[str]:
        """The names of the shared builds that are complete."""
        return frozenset(file.parent.name for file in self.shared_builds.glob(f"*/{SEAL}"))

    @property
    def shared_builds(self) -> Path:
        return self.root / ".work" / "shared"

    @property
    def locks(self) -> Path:
        return self.root / ".work" / "locks"

    def recall(self, name: str) -> Any:
        """The value that `remember` stored under a name; None if there is nothing usable."""
        try:
            return json.loads(read_bytes(self.cache / f"{name}.json", _LARGEST, within=self.root))
        except (InputError, ValueError, RecursionError):
            return None

    def remember(self, name: str, content: Any) -> None:
        """Cache a value for another run, if possible."""
        with suppress(WorkError):  # commands that only read, such as --list, also work in a read-only folder
            self._keep_from_git()
            write_whole(self.cache / f"{name}.json", json.dumps(content))

    def _keep_from_git(self) -> None:
        """Have git pass the folder over, wherever it is: packages and caches do not belong into a commit."""
        if not (self.root / _IGNORE).exists():
            write_whole(self.root / _IGNORE, "*\n")

    def fresh_private(self, row: str) -> Path:
        """An empty private folder for a row whose lock is held.

        Raises:
            WorkError: it cannot be created.
        """
        folder = self.private(row)
        self._keep_from_git()
        try:
            remove(folder)
            (folder / "tmp").mkdir(parents=True)
            (folder / _OWNED).write_text(json.dumps({"row": row, "owner": own_mark()}))
        except OSError as error:
            raise WorkError(f"cannot create a folder for the build: {error.strerror or error}", path=folder) from error
        return folder

    def keep_private(self, row: str) -> None:
        """Leave the private folder of a build for people to look at: it has no owner any more."""
        with suppress(OSError):
            (self.private(row) / _OWNED).unlink(missing_ok=True)

    def dead_private(self) -> tuple[tuple[str, Path], ...]:
        """The private folders of builds whose process was killed, each with its row."""
        dead = []
        for path in sorted((self.root / ".work").glob(f"*/{_OWNED}")):
            try:
                content = json.loads(read_bytes(path, within=self.root))
                row, owner = str(content["row"]), str(content["owner"])
            except (InputError, ValueError, LookupError, TypeError, RecursionError):
                continue
            if self.private(row) == path.parent and owner_lives(owner) is False:
                dead.append((row, path.parent))
        return tuple(dead)

    def remove_dead_private(self) -> None:
        """Remove those folders, except one whose row is being built again."""
        from feedstock_tools.files.locks import Locks

        for row, folder in self.dead_private():
            locks = Locks.take(self.locks, [f"row {row}"])
            if locks is not None:
                with locks:
                    if (row, folder) in self.dead_private():
                        remove(folder)
