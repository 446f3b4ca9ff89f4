"""A download that a run waits for, in lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from feedstock_tools.builds.stand_in.wheels import Fetching, Watch

#: Seconds between two lines of progress.
_PAUSE = 2.0


def fetching_in_lines(say: Callable[[str], None]) -> Watch:
    """A `Watch` that reports a download in lines: at its start, every few seconds, and at its end."""
    reported: dict[str, float] = {}

    def watch(progress: Fetching) -> None:
        last = reported.get(progress.what)
        if progress.stage != "ready" and last is not None and progress.seconds - last < _PAUSE:
            return
        reported[progress.what] = progress.seconds
        say(_line(progress, first=last is None))

    return watch


def _line(progress: Fetching, *, first: bool) -> str:
    size = f"{progress.size / 1e6:.0f} MB" if progress.size is not None else ""
    after = f"after {progress.seconds:.0f} s"
    if progress.stage == "ready":
        return f"{progress.what}: ready {after}, and kept for later builds{f'; {progress.why}' if progress.why else ''}"
    if progress.stage == "unpacking":
        return f"Unpacking {progress.what} {after}"
    if first:
        return f"Fetching {progress.what}{f' ({size})' if size else ''}{f': {progress.why}' if progress.why else ''}"
    fetched = f"{progress.done / 1e6:.0f} MB"
    return f"Fetching {progress.what}: {f'{fetched} of {size}' if size else fetched} {after}"
