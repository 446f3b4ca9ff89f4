"""Things that a fresh machine may lack and a test may need: the only reasons to skip a test.

Each reason begins with its kind, by which `.ci/run` counts the skips and compares them with tests/passing.toml.
Packages on PyPI belong to the `test` extra, and do not justify a skip, but for those of an extra that only a few tests
need and that would make everybody's environment much larger: `EXTRAS`.
"""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import pytest

from tests.support.paths import MIRROR, clone_of

#: Kind → its meaning.
KINDS = {
    "device": "a GPU, or NVIDIA's toolkit",
    "container": "a container runtime and an image",
    "system": "another operating system, its emulator, or rights that this user lacks",
    "fetched": "clones, recorded rerenders or toolkits that someone fetched",
    "browser": "Chromium",
    "extra": "the packages of an extra of pyproject.toml",
}
#: Extra → a module of it.
EXTRAS = {"site": "material"}
#: The browser on PATH that the tests open pages with; None if there is none.
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def needs(kind: str, met: object, what: str) -> pytest.MarkDecorator:
    """The mark of tests that are skipped unless something is there.

    Args:
        kind: one of `KINDS`.
        met: whether it is available.
        what: its name; the reason reads `needs <kind>: <what>`.
    """
    return pytest.mark.skipif(not met, reason=_reason(kind, what))


def require_extra(name: str) -> None:
    """Skip the running test unless an extra is installed."""
    if find_spec(EXTRAS[name]) is None:
        lacks("extra", f"feedstock-tools[{name}]")


def lacks(kind: str, what: str) -> NoReturn:
    """Skip the running test, which found out only now that something is missing."""
    pytest.skip(_reason(kind, what))


def the_clone(name: str) -> Path:
    """The folder of a fetched clone of conda-forge's; the test is skipped without it."""
    folder = clone_of(name)
    if not folder.is_dir():
        lacks("fetched", f"a clone of {name} in {MIRROR}")
    return folder


def _reason(kind: str, what: str) -> str:
    assert kind in KINDS, f"{kind} is not a reason to skip a test: {', '.join(KINDS)}"
    return f"needs {kind}: {what}"


def kind_of(reason: str) -> str | None:
    """The kind in a reason that `needs` or `lacks` gave; None for any other."""
    kind = reason.removeprefix("needs ").partition(":")[0]
    return kind if reason.startswith("needs ") and kind in KINDS else None
