"""conda-build in an environment of our own, for a machine without one on PATH: py-rattler makes it from a channel.

What is in it is solved once and then used for a month. The solution is kept with its day in the cache, so that
plans know the version without fetching packages; the first build fetches them.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from feedstock_tools.errors import FeedstockError, WorkError
from feedstock_tools.files.changes import write_whole
from feedstock_tools.files.locks import locked, say_aside
from feedstock_tools.files.temporary import remove
from feedstock_tools.platforms import Platform

if TYPE_CHECKING:
    from feedstock_tools.channel.metadata import Record

_SPECS = ("conda-build", "conda")
#: How long a solution is used, in seconds.
_LASTS = 30 * 24 * 3600.0
_SOLUTION, _COMPLETE = "solution.json", "complete"


@dataclass(frozen=True, slots=True)
class CondaEnvironment:
    """An environment with conda-build.

    Attributes:
        folder: of all such environments, in the user's cache.
        channel: the name, URL or folder of the channel that it comes from.
    """

    folder: Path
    channel: str = "conda-forge"

    def why_not(self) -> str | None:
        """Why there is none and none can be made; None if there is one, or its packages are known."""
        return _why_not(self)

    @property
    def version(self) -> str:
        """The version of its conda-build."""
        return next(record.version for record in _solution(self)[1] if record.name == "conda-build")

    def program(self) -> Path:
        """Its conda-build, after fetching what is missing.

        Raises:
            FeedstockError: it cannot be made.
        """
        from feedstock_tools.channel.solving import install

        day, records = _solution(self)
        prefix = self.folder / day
        program = prefix / "bin" / "conda-build"
        with locked(self.folder):
            if not (prefix / _COMPLETE).is_file():
                say_aside(f"conda-build {self.version} is fetched from {self.channel} into {prefix}")
                remove(prefix)
                install(records, prefix, Platform.here(), cache=self.folder / "packages")
                if not program.is_file():
                    raise WorkError("the packages of conda-build have no program of that name", path=prefix)
                write_whole(prefix / _COMPLETE, day)
        return program


@cache
def _why_not(environment: CondaEnvironment) -> str | None:
    try:
        _solution(environment)
    except FeedstockError as error:
        return "there is no conda-build on PATH, and none can be fetched: " + str(error).splitlines()[0]
    return None


@cache
def _solution(environment: CondaEnvironment) -> tuple[str, tuple[Record, ...]]:
    """The day of its solution, and its packages: the one that is kept, unless it is old and there can be a new one."""
    from feedstock_tools.channel.metadata import Record

    file = environment.folder / _SOLUTION
    try:
        content = json.loads(file.read_bytes())
        tuples = ("depends", "constrains", "track_features")
        records = tuple(
            Record(**{**each, **{name: tuple(each[name]) for name in tuples}}) for each in content["records"]
        )
        kept = (str(content["day"]), records) if content["channel"] == environment.channel else None
        is_new = kept is not None and time.time() - float(content["solved"]) < _LASTS
    except (OSError, ValueError, LookupError, TypeError):
        kept, is_new = None, False
    if kept is not None and is_new:
        return kept
    try:
        return _solved(environment, file)
    except FeedstockError:
        if kept is None:
            raise
        return kept


def _solved(environment: CondaEnvironment, file: Path) -> tuple[str, tuple[Record, ...]]:
    from feedstock_tools.builds.engines.container import why_no_connection
    from feedstock_tools.channel.solving import solve, virtual_packages

    if reason := why_no_connection(environment.channel):
        raise WorkError(reason)
    platform = Platform.here()
    records = solve(_SPECS, [environment.channel], platform, virtual=virtual_packages(platform))
    day = time.strftime("%Y-%m-%d", time.gmtime())
    content = {"channel": environment.channel, "day": day, "solved": time.time(), "records": [*map(asdict, records)]}
    write_whole(file, json.dumps(content))
    return day, records
