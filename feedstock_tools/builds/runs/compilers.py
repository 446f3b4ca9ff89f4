"""The compilers that a run on the stand-in channel needs: seen to before its first row is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from feedstock_tools.builds.plan.refusals import refused_on_stand_in
from feedstock_tools.builds.plan.workspace import Setting
from feedstock_tools.builds.stand_in.choice import ChannelChoice
from feedstock_tools.builds.stand_in.limits import provide_compiler
from feedstock_tools.builds.stand_in.wheels import Fetching, Watch
from feedstock_tools.builds.stand_in.zig import zig_folder
from feedstock_tools.feedstock.folder import user_cache
from feedstock_tools.feedstock.planned import PlannedConfiguration

__all__ = ["fetching_in_lines", "provide_compilers"]

#: Seconds between two lines of progress.
_PAUSE = 2.0


def provide_compilers(
    setting: Setting,
    missing: Sequence[PlannedConfiguration],
    choices: Mapping[str, ChannelChoice],
    say: Callable[[str], None],
) -> dict[str, str]:
    """See to the compilers of the configurations that have something to build, fetching zig where PATH has none.

    Args:
        choices: the channels of each configuration.
        say: is given lines that tell of the progress.

    Returns:
        The configurations that cannot be built here all the same: name → reason.
    """
    folder = zig_folder(user_cache(setting.machine, setting.artifacts.root / ".cache"))
    watch = fetching_in_lines(say)
    return refused_on_stand_in(
        missing,
        lambda name: choices[name].is_stand_in,
        lambda platform: provide_compiler(platform, folder, setting.machine, watch),
    )


def fetching_in_lines(say: Callable[[str], None]) -> Watch:
    """A `Watch` that tells of a download in lines: at its start, every few seconds, and at its end."""
    told: dict[str, float] = {}

    def watch(progress: Fetching) -> None:
        last = told.get(progress.what)
        if progress.stage != "ready" and last is not None and progress.seconds - last < _PAUSE:
            return
        told[progress.what] = progress.seconds
        say(_line(progress, first=last is None))

    return watch


def _line(progress: Fetching, *, first: bool) -> str:
    size = f"{progress.size / 1e6:.0f} MB" if progress.size is not None else ""
    after = f"after {progress.seconds:.0f} s"
    if progress.stage == "ready":
        return f"{progress.what} is ready {after}; later builds use it as it is."
    if progress.stage == "unpacking":
        return f"Unpacking {progress.what} {after}"
    if first:
        return f"Fetching {progress.what}{f' ({size})' if size else ''}, which compiles where PATH has no compiler"
    fetched = f"{progress.done / 1e6:.0f} MB"
    return f"Fetching {progress.what}: {f'{fetched} of {size}' if size else fetched} {after}"
