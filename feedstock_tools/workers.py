"""Modules of this program as programs: the command that calls the `main` of one in a process of its own.

The process is to run the code that runs here, from wherever that was imported, in whatever folder it starts, and to
find the packages that this process has, which may come from a `PYTHONPATH` that it is not given.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from feedstock_tools.data import PACKAGE

__all__ = ["PACKAGES", "worker_command", "worker_words"]

#: The folder that this program's own package lies in.
PACKAGES = PACKAGE.parent
#: Its arguments: the folders of packages, with colons between them; the module; what its `main` is called with.
_START = (
    "import sys; from importlib import import_module; sys.path[:0] = sys.argv[1].split(':');"
    "sys.exit(import_module(sys.argv[2]).main(*sys.argv[3:]))"
)


def worker_command(module: str, *arguments: str) -> list[str]:
    """The command that calls `main` of a module of this program with some texts, as this Python does.

    Its exit status is what `main` returns.
    """
    places = [str(PACKAGES), *(place for place in sys.path if place and ":" not in place)]
    return [sys.executable, "-P", "-c", *worker_words(places, module, *arguments)]


def worker_words(places: Sequence[str], module: str, *arguments: str) -> list[str]:
    """What follows `python -P -c` to do the same with packages that lie in other folders."""
    return [_START, ":".join(places), module, *arguments]
