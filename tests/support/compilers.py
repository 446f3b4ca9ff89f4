"""What builds on the stand-in channel need, lent to each test's own cache.

zig and wheels of tools are fetched once for a checkout; the channel itself is made once in a run of the tests, for each
content that it has.
"""

from __future__ import annotations

import functools
import os
import shlex
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from feedstock_tools.builds.stand_in.compilers import Zig, fetch_zig, zig_folder
from feedstock_tools.builds.stand_in.preparing import lacking_compiler
from feedstock_tools.builds.stand_in.tools import tools_folder
from feedstock_tools.channel.properties import STAND_IN
from feedstock_tools.feedstock.folder import user_cache
from feedstock_tools.feedstock.up_to_date import COMPARED
from feedstock_tools.platforms import Platform
from tests.support.paths import ROOT

#: What tests fetch and the libraries that zig compiles stay with the environments of this checkout, for later runs.
_FETCHED = (ROOT if os.access(ROOT, os.W_OK) else Path(tempfile.gettempdir())) / ".environments" / "fetched"
_SHARED = zig_folder(_FETCHED)
_SHARED_TOOLS = tools_folder(_FETCHED)
#: The folder of the stand-in channels of this run, once there is one.
_OF_THIS_RUN: list[Path] = []


def share_stand_in(folder: Path) -> None:
    """Keep the stand-in channels of this process's tests in a folder that all workers share."""
    folder.mkdir(exist_ok=True)
    _OF_THIS_RUN.append(folder)


def lend_stand_in(cache: Path) -> None:
    """Let builds whose `XDG_CACHE_HOME` is this folder use the shared stand-in channels and zig.

    The first build that needs one of them makes or fetches it. They also share for which inputs of a feedstock the
    generated files have been compared.
    """
    folder = _of_user(cache)
    _lend(_SHARED, zig_folder(folder))
    for shared in _OF_THIS_RUN:
        _lend(shared.with_name(COMPARED), folder / COMPARED)
        _lend(shared, folder / STAND_IN.origin)


def lend_channels(cache: Path) -> None:
    """Let builds whose `XDG_CACHE_HOME` is this folder use the shared stand-in channels, but not zig."""
    for shared in _OF_THIS_RUN:
        _lend(shared, _of_user(cache) / STAND_IN.origin)


def lend_tools(cache: Path) -> None:
    """The same, and the shared wheels, fetched by the first build that needs them."""
    lend_stand_in(cache)
    _lend(_SHARED_TOOLS, tools_folder(_of_user(cache)))


def lend_own_requirements(cache: Path) -> None:
    """The wheels of what feedstock-tools requires, in a folder of their own: no channel of another test needs them."""
    _lend(_SHARED_TOOLS.parent / "own-requirements", tools_folder(_of_user(cache)))


def _of_user(cache: Path) -> Path:
    return user_cache({"XDG_CACHE_HOME": str(cache)}, cache)


def _lend(shared: Path, borrowed: Path) -> None:
    with suppress(FileExistsError):
        borrowed.symlink_to(_made(shared), target_is_directory=True)


@functools.cache
def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def zig_without_compiler() -> Zig | None:
    """zig where PATH has no compiler for this machine, which is where the stand-in channel needs it."""
    return fetch_zig(_SHARED, os.environ) if lacking_compiler(Platform.here()) else None


def c_compiler_in(folder: Path) -> Path:
    """A program that compiles C for this machine: the one on PATH, else a script in the folder that calls zig."""
    for name in filter(None, (os.environ.get("CC"), "cc", "gcc", "clang")):
        if (found := shutil.which(name)) is not None:
            return Path(found)
    program = folder / "cc"
    zig = fetch_zig(_SHARED, os.environ)
    cache = shlex.quote(str(zig.cache))
    program.write_text(f'#!/bin/sh\nZIG_GLOBAL_CACHE_DIR={cache} exec {shlex.join(zig.command("cc"))} "$@"\n')
    program.chmod(0o755)
    return program
