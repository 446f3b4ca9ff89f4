"""The stand-in channel: packages made on the spot with the metadata of real ones.

This is its door: its identity, the channel itself, what builds need of it, and why one fails on it. All that is behind
it is loaded when it is used: most commands ask for the identity alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from feedstock_tools.builds.stand_in.channel import StandInChannel
    from feedstock_tools.builds.stand_in.toolkits import CudaToolkit
    from feedstock_tools.channel.pip import Watch
    from feedstock_tools.channel.properties import ChannelDemand
    from feedstock_tools.platforms import Platform

#: The major version of CUDA from which on the wheels hold nvcc, which calls a host compiler.
_WHOLE_NVCC = 13
#: What nvcc says to a host compiler that it does not take, an option of its own; and what tells one of device code.
_HOST_COMPILER = "-allow-unsupported-compiler"
_DEVICE_CODE = ("CUDA compiler identification is unknown", "nvcc (NVRTC and ptxas")


def channel_identities(machine: Mapping[str, str]) -> Callable[[Platform, Collection[str]], str]:
    """The hash over all inputs of builds from this machine's channel, except Pythons and tools, as it is now.

    The function that is returned takes the platform and the versions of CUDA that the builds use, and looks at the
    machine once.
    """
    from feedstock_tools.builds.stand_in.identity import toolkit_identities, with_toolkits, without_toolkits
    from feedstock_tools.builds.stand_in.toolkits import toolkits_folder

    toolkits = toolkit_identities(toolkits_folder(machine))
    parts = cache(partial(without_toolkits, path=machine.get("PATH")))
    return lambda platform, cudas: with_toolkits(parts(platform), toolkits, cudas)


def open_channel(
    machine: Mapping[str, str], platform: Platform, pythons: Iterable[str], fallback: Path
) -> StandInChannel:
    """This machine's channel for a platform, in its user's cache folder; created if it is missing.

    Args:
        pythons: the versions that must run, as far as this machine has them.
        fallback: the cache folder if the user has none.
    """
    from feedstock_tools.builds.stand_in.channel import stand_in_channel_of

    return stand_in_channel_of(machine, platform, pythons, fallback)


def prepare(
    demands: Sequence[ChannelDemand], machine: Mapping[str, str], fallback: Path, watch: Watch
) -> dict[str, str]:
    """Fetch the compilers and tools that rows need; returns the configurations that lack one: name → reason."""
    from feedstock_tools.builds.stand_in import preparing
    from feedstock_tools.feedstock.folder import user_cache

    return preparing.prepare(demands, user_cache(machine, fallback), machine, watch)


def foresee(demands: Sequence[ChannelDemand], machine: Mapping[str, str]) -> dict[str, str]:
    """The configurations that lack a package, as far as that is known without a network: name → reason."""
    from feedstock_tools.builds.stand_in import preparing

    return preparing.foresee(demands, machine)


def compiler_notes(demands: Sequence[ChannelDemand], machine: Mapping[str, str]) -> list[str]:
    """Which compilers rows use, and what is known of them before they are built."""
    from feedstock_tools.builds.stand_in import preparing

    return preparing.compiler_notes(demands, machine)


def note_on_script(
    log: Collection[str], required: Collection[str], cuda: str | None, machine: Mapping[str, str]
) -> str | None:
    """What a build script that failed may have lacked of a compiler of CUDA; None if it did not.

    Args:
        log: the lines that it printed.
        required: the names of the packages in its environments.
        cuda: the CUDA version of the row.
    """
    from feedstock_tools.builds.stand_in.toolkits import NVCC, found_toolkits, toolkits_folder

    if cuda is None or not any(name.startswith(NVCC) for name in required):
        return None
    for toolkit in found_toolkits(toolkits_folder(machine)):
        if toolkit.version == cuda:
            told = (_HOST_COMPILER,) if toolkit.whole else _DEVICE_CODE
            return toolkit.limit if any(text in line for line in log for text in told) else None
    whole = int(cuda.partition(".")[0]) >= _WHOLE_NVCC
    of_device = "the CUDA runtime and a compiler of device code, which serves neither CMake nor PyTorch"
    brought = "a CUDA compiler, which needs a g++" if whole else of_device
    return f"without conda-forge, `feedstock-tools cuda fetch {cuda}` brings {brought}"


def fetched_toolkits(machine: Mapping[str, str]) -> tuple[CudaToolkit, ...]:
    from feedstock_tools.builds.stand_in.toolkits import found_toolkits, toolkits_folder

    return found_toolkits(toolkits_folder(machine))


def fetch_toolkit(version: str, machine: Mapping[str, str], watch: Watch) -> CudaToolkit:
    """Fetch the CUDA compiler of a version (`12.9`) if it is missing."""
    from feedstock_tools.builds.stand_in import toolkits

    return toolkits.fetch_toolkit(version, toolkits.toolkits_folder(machine), machine, watch)
