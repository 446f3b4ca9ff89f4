"""Paths: this checkout, and the folders that someone may keep beside it."""

from __future__ import annotations

import os
from pathlib import Path

#: The top of the checkout.
ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
#: Clones of feedstocks, as `<owner>+<name>/repo`; FEEDSTOCK_MIRROR names another folder.
MIRROR = Path(os.environ.get("FEEDSTOCK_MIRROR") or ROOT.parent / ".mirror")
#: Recorded rerenders of real feedstocks (`cases.jsonl` and folders); FEEDSTOCK_CORPUS names another folder.
CORPUS = Path(os.environ.get("FEEDSTOCK_CORPUS") or ROOT.parent / "shared" / "corpus")


def clone_of(name: str, owner: str = "conda-forge") -> Path:
    """The folder of a clone in `MIRROR`, whether it exists or not."""
    return MIRROR / f"{owner}+{name}" / "repo"
