"""zig and tools of the stand-in channel: fetched once for a user, and lent to each test's own cache."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from pathlib import Path

from feedstock_tools.builds.stand_in.limits import lacking_compiler
from feedstock_tools.builds.stand_in.tools import tools_folder
from feedstock_tools.builds.stand_in.zig import Zig, fetch_zig, zig_folder
from feedstock_tools.feedstock.folder import user_cache
from feedstock_tools.platforms import Platform

__all__ = ["c_compiler_in", "lend_tools", "lend_zig", "zig_without_compiler"]

#: The folder of the user who runs the tests; read before a test's own cache takes its place.
_SHARED = zig_folder(user_cache(os.environ, Path(tempfile.gettempdir(), "feedstock-tools")))
_SHARED_TOOLS = tools_folder(user_cache(os.environ, Path(tempfile.gettempdir(), "feedstock-tools")))


def lend_zig(cache: Path) -> None:
    """Let builds whose `XDG_CACHE_HOME` is this folder use the shared zig; the first that needs it fetches it."""
    _SHARED.mkdir(parents=True, exist_ok=True)
    borrowed = zig_folder(user_cache({"XDG_CACHE_HOME": str(cache)}, cache))
    if not borrowed.exists():
        borrowed.symlink_to(_SHARED, target_is_directory=True)


def lend_tools(cache: Path) -> None:
    """Let builds whose `XDG_CACHE_HOME` is this folder use zig and the shared wheels, fetched by the first of them."""
    lend_zig(cache)
    _SHARED_TOOLS.mkdir(parents=True, exist_ok=True)
    borrowed = tools_folder(user_cache({"XDG_CACHE_HOME": str(cache)}, cache))
    if not borrowed.exists():
        borrowed.symlink_to(_SHARED_TOOLS, target_is_directory=True)


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
