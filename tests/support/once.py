"""Expensive read-only data, made once in a run of the tests by the first worker that needs it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from feedstock_tools.files.locks import Locks


def of_this_run(factory: pytest.TempPathFactory) -> Path:
    """The temporary folder that all workers of a run share."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """The folder with a name, filled by `make` at the first call; other callers wait for it.

    If `make` fails, the next caller tries again in an empty folder.
    """
    shared = of_this_run(factory)
    folder, done = shared / name, shared / f"{name}.made"
    locks = Locks.wait_for(shared / "locks", [name])
    try:
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            done.touch()
    finally:
        locks.close()
    return folder
