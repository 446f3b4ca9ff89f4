"""What a test may need that a fresh machine does not have: the only reasons to skip one.

Each reason begins with its kind, by which `.ci/run` counts it and holds it against tests/passing.toml. What PyPI has
belongs to the `test` extra and is no reason.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NoReturn

import pytest

from tests.support.paths import MIRROR, clone_of

__all__ = ["BROWSER", "KINDS", "kind_of", "lacks", "needs", "the_clone"]

#: Kind → what it stands for.
KINDS = {
    "device": "a GPU, or NVIDIA's toolkit",
    "container": "a container runtime and an image",
    "system": "another operating system, its emulator, or rights that this user lacks",
    "fetched": "clones, recorded rerenders or toolkits that someone fetched",
    "browser": "Chromium",
}
#: The browser on PATH that pages are looked at with; None where there is none.
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def needs(kind: str, met: object, what: str) -> pytest.MarkDecorator:
    """The mark of tests that are skipped unless something is there.

    Args:
        kind: one of `KINDS`.
        met: whether it is there.
        what: names it; the reason reads `needs <kind>: <what>`.
    """
    return pytest.mark.skipif(not met, reason=_reason(kind, what))


def lacks(kind: str, what: str) -> NoReturn:
    """Skip the test that runs, which found only now that something is not there."""
    pytest.skip(_reason(kind, what))


def the_clone(name: str) -> Path:
    """The folder of a fetched clone of conda-forge's; the test is skipped where it is not there."""
    folder = clone_of(name)
    if not folder.is_dir():
        lacks("fetched", f"a clone of {name} in {MIRROR}")
    return folder


def _reason(kind: str, what: str) -> str:
    assert kind in KINDS, f"{kind} is no reason to skip a test: {', '.join(KINDS)}"
    return f"needs {kind}: {what}"


def kind_of(reason: str) -> str | None:
    """The kind in a reason that `needs` or `lacks` gave; None for any other."""
    kind = reason.removeprefix("needs ").partition(":")[0]
    return kind if reason.startswith("needs ") and kind in KINDS else None
