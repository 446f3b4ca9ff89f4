"""The tools of the stand-in channel that have contents: which ones a build needs, and fetching their wheels.

A wheel is fetched with pip when a build first needs it, in exactly the version and with the hash of
`variants/tools.yaml`, and stays in the user's cache.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from feedstock_tools.channel.web.pip import Download, Fetching, Watch, download_wheels, unwatched
from feedstock_tools.errors import WorkError
from feedstock_tools.facts.tools import MAKE, Wheel, read_tools
from feedstock_tools.files.locks import locked
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.platforms import Platform


def tools_folder(cache: Path) -> Path:
    """The folder of wheels, in this program's folder of the user's cache."""
    return cache / "tools"


def found_tools(folder: Path | None) -> frozenset[str]:
    """The names of the fetched wheels."""
    return frozenset(path.name for path in folder.glob("*.whl")) if folder is not None else frozenset()


def wheels_for(name: str, platform: Platform, python: str | None) -> tuple[Wheel, ...]:
    """The wheels of a tool that builds for a platform need: of that platform, of this machine, and of the row's Python.

    Args:
        python: the Python of the row (`3.12`), if it has one.
    """
    subdirs = {"noarch", platform.subdir, Platform.here().subdir}
    return tuple(
        wheel
        for wheel in read_tools().wheels_of(name)
        if wheel.subdir in subdirs and (wheel.python is None or wheel.python == python)
    )


def why_no_tools(names: Iterable[str], platform: Platform, python: str | None, path: str | None) -> str | None:
    """Why the stand-in channel cannot have some tools on this machine; None if it can, once they are fetched.

    Args:
        path: the folders of the machine's programs.
    """
    for name in names:
        if name == MAKE:
            if shutil.which(MAKE, path=path) is None:
                return "there is no make on PATH (Debian: make), which the stand-in channel's make calls"
        elif not wheels_for(name, platform, python):
            all_of_it = read_tools().wheels_of(name)
            pythons = list(dict.fromkeys(wheel.python for wheel in all_of_it if wheel.python))
            if pythons and python not in pythons:
                return f"the stand-in channel has {name} for Python {_listed(pythons)}, not for {python}"
            platforms = list(dict.fromkeys(wheel.subdir for wheel in all_of_it))
            return f"the stand-in channel has {name} for {_listed(platforms)}, not for {Platform.here().subdir}"
    return None


def fetch_tools(
    wheels: Sequence[Wheel], folder: Path, machine: Mapping[str, str], watch: Watch = unwatched, why: str = ""
) -> None:
    """Fetch wheels with pip, those that are missing; afterwards no network is needed.

    Args:
        folder: `tools_folder`'s.
        machine: the environment for pip.
        why: they are needed, for `watch`.

    Raises:
        WorkError: pip cannot fetch one, its hash is wrong, or the folder cannot be written.
    """
    if all((folder / wheel.file).is_file() for wheel in wheels):
        return
    try:
        with locked(folder):
            missing = {wheel.file: wheel for wheel in wheels if not (folder / wheel.file).is_file()}
            for group in _groups(list(missing.values())):
                _fetch(group, folder, machine, watch, why)
    except OSError as error:
        raise WorkError(f"cannot store wheels: {error.strerror or error}", path=folder) from error


def _fetch(wheels: Sequence[Wheel], folder: Path, machine: Mapping[str, str], watch: Watch, why: str) -> None:
    named = [f"{wheel.project} {wheel.release}" for wheel in wheels]
    title = _listed(named if len(named) < 4 else [*named[:2], f"{len(named) - 2} other wheels"])
    size, began = sum(wheel.size for wheel in wheels), time.monotonic()
    requirements = [f"{wheel.project}=={wheel.release} --hash=sha256:{wheel.sha256}" for wheel in wheels]
    download = Download(requirements, title, size, why, options=_options(wheels[0]))
    with temporary_folder(folder) as temporary:
        for path in download_wheels(download, temporary / "wheels", machine, watch):
            path.rename(folder / path.name)
    absent = [wheel.file for wheel in wheels if not (folder / wheel.file).is_file()]
    if absent:
        raise WorkError(f"pip fetched other files than {_listed(absent)}")
    watch(Fetching(title, "ready", time.monotonic() - began, size, size))


def _groups(wheels: Sequence[Wheel]) -> list[list[Wheel]]:
    """The wheels by the options of pip that find them."""
    groups: dict[tuple[str, ...], list[Wheel]] = {}
    for wheel in wheels:
        groups.setdefault(_options(wheel), []).append(wheel)
    return list(groups.values())


def _options(wheel: Wheel) -> tuple[str, ...]:
    """The options with which pip finds a wheel for another platform or Python; none for this one."""
    _, _, python, abi, platforms = wheel.file.removesuffix(".whl").split("-")
    running = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    is_for_this_machine = wheel.subdir in ("noarch", Platform.here().subdir)
    if is_for_this_machine and (wheel.python is None or python == running):
        return ()
    version = (f"--python-version={wheel.python}", "--implementation=cp") if wheel.python else ()
    return (*version, f"--abi={abi}", *(f"--platform={platform}" for platform in platforms.split(".")))


def _listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)
