"""The properties of the channels that a build solves in, and which channels are folders of this machine.

Most channels are alike; those whose packages are made on the spot are not. Nobody asks which channels a build uses, but
for the property that matters. The values are plain data: they can be sent to another machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class ChannelProperties:
    """Where the packages of channels come from, what they have, and what may be done with packages built on them.

    Attributes:
        origin: empty for channels of servers and folders. Any other is their name, and marks what is built on them: in
            a package's metadata, in the ledger, and in the names of folders and locks.
        mark: the text of the mark in a package's metadata, whose key is `origin`.
        made_here: the machine that builds makes their packages, under the names of other packages; nobody else can
            read them.
        may_leave_machine: packages built on them may be published to other machines.
        is_complete: a package that they lack does not exist. If not, whether it exists is unknown.
        limit: what they lack, in words, for a build that meets it; `remedy` is what to do about it.
        pythons: the versions (`3.12`) of Python that run; None if all do. The others are metadata only.
        empty: the packages that are needed for their files and have none.
    """

    origin: str = ""
    mark: str = ""
    made_here: bool = False
    may_leave_machine: bool = True
    is_complete: bool = True
    limit: str = ""
    remedy: str = ""
    pythons: frozenset[str] | None = None
    empty: frozenset[str] = frozenset()

    @property
    def marks(self) -> dict[str, str]:
        """The mark in the metadata of packages that are built on them; empty without one."""
        return {self.origin: self.mark} if self.origin else {}

    @property
    def ledger_marks(self) -> dict[str, str]:
        """The mark in the ledger of builds on them; empty without one."""
        return {"channel": self.origin} if self.origin else {}

    def runs_python(self, version: str) -> bool:
        """Whether their Python of a version, such as `3.12`, `3.12.1` or `3.12.* *_cp312`, runs.

        If it does not, packages are built against its metadata, and tests that would run it must be left out.
        """
        return self.pythons is None or ".".join(version.split(" ")[0].split(".")[:2]) in self.pythons


REAL = ChannelProperties()
#: Of the stand-in channel before it is opened on a machine, which adds what that machine has.
STAND_IN = ChannelProperties(
    origin="stand-in",
    mark="built on the stand-in channel of feedstock-tools",
    made_here=True,
    may_leave_machine=False,
    is_complete=False,
    limit="The stand-in channel has compilers, Python, packages of CUDA and some build tools only.",
    remedy="Build this on conda-forge (--channel conda-forge).",
    pythons=frozenset(),
)


#: The folder of fetched wheels and their large libraries in the user's cache.
WHEELS = "tools"
#: The channels that there are, by their properties.
KINDS = (REAL, STAND_IN)
_BY_ORIGIN = {each.origin: each for each in KINDS}


def properties_of(origin: str) -> ChannelProperties:
    """The properties of channels by their origin, which is also the name of channels that have one.

    >>> properties_of("stand-in").may_leave_machine
    False
    >>> properties_of("conda-forge") == REAL
    True
    """
    return _BY_ORIGIN.get(origin, REAL)


def properties_by_marks(keys: Iterable[str]) -> ChannelProperties:
    """The properties of the channels that a package comes from or was built on.

    Args:
        keys: of `extra` in its metadata.
    """
    return next((properties_of(key) for key in keys if key and key in _BY_ORIGIN), REAL)


@dataclass(frozen=True, slots=True)
class Channels:
    """The channels of a build, as names or URLs; the first has priority.

    `why` is the reason for these channels, in words, if others were expected.
    """

    names: tuple[str, ...]
    properties: ChannelProperties = REAL
    why: str = ""


@dataclass(frozen=True, slots=True)
class ChannelDemand:
    """What a row needs of its channels beside packages that any channel has.

    Attributes:
        configuration: its name; `platform` is its target subdir.
        needs: the specs of its build and host environments, without packages that the feedstock makes; `runs` those
            that running and testing its packages installs.
        python: the Python that its builds run (`3.12.* *_cpython`), if they run one.
        tools: the names of its build tools.
    """

    channels: Channels
    configuration: str
    platform: str
    needs: tuple[str, ...]
    runs: tuple[str, ...]
    python: str | None
    tools: tuple[str, ...]


def cache_behind(channel: str) -> Path | None:
    """The user's cache that a stand-in channel is in, if this is one: its packages call programs and link there."""
    folder = local_folder(channel)
    return folder.parents[2] if folder is not None and folder.name == STAND_IN.origin else None


def local_folder(channel: str) -> Path | None:
    """The folder of a channel given as a path or a file URL, else None.

    A path is absolute, or begins with a dot or `~`; anything else is the name of a channel.
    """
    if channel.startswith("file:"):
        from urllib.request import url2pathname

        return Path(url2pathname(urlsplit(channel).path))
    is_path = "://" not in channel and (channel.startswith((".", "~")) or Path(channel).is_absolute())
    return Path(channel).expanduser().resolve() if is_path else None


def why_no_channel(folder: Path) -> str | None:
    """Why a folder is not a channel, in a few words; None if it is one."""
    return None if (folder / "noarch" / "repodata.json").is_file() else "there is no noarch/repodata.json in it"
