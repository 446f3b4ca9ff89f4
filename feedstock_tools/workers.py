"""Modules of this program as worker programs: the command that calls a module's `main` in a process of its own.

The process must run the same code, from wherever it was imported, in whatever folder it starts, and
find the packages of this process, which may come from a `PYTHONPATH` that it does not inherit.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from feedstock_tools.data import PACKAGE

#: The folder that contains this program's own package.
PACKAGES = PACKAGE.parent
#: Its arguments: the folders of packages, with colons between them; the module; the arguments of its `main`. By
#: default, collecting garbage would take a tenth of its time.
_START = (
    "import gc, sys; from importlib import import_module; sys.path[:0] = sys.argv[1].split(':');"
    "gc.set_threshold(50_000, 20, 20);"
    "sys.exit(import_module(sys.argv[2]).main(*sys.argv[3:]))"
)


def worker_command(module: str, *arguments: str) -> list[str]:
    """The command that calls `main` of a module of this program with some strings, in this Python.

    Its exit status is the result of `main`.
    """
    places = [str(PACKAGES), *(place for place in sys.path if place and ":" not in place)]
    return [sys.executable, "-P", "-c", *worker_words(places, module, *arguments)]


def worker_words(places: Sequence[str], module: str, *arguments: str) -> list[str]:
    """The arguments after `python -P -c` to do the same with packages in other folders."""
    return [_START, ":".join(places), module, *arguments]
