"""The marks with which CI services fold parts of a log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fold:
    """The mark before the title of a part, and the line after its end; empty if nothing folds."""

    begin: str = ""
    end: str = ""


UNFOLDED = Fold()
#: The variable that a service sets in its jobs → its marks.
_SERVICES = {
    "GITHUB_ACTIONS": Fold("::group::", "::endgroup::"),
    "TF_BUILD": Fold("##[group]", "##[endgroup]"),  # Azure Pipelines
}


def fold_of(machine: Mapping[str, str]) -> Fold:
    """The marks of the current service, according to the environment of the machine."""
    return next((fold for name, fold in _SERVICES.items() if machine.get(name, "").lower() == "true"), UNFOLDED)
