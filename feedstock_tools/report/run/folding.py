"""How the services that run builds fold parts of a log, so that its reader finds the part that matters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["UNFOLDED", "Fold", "fold_of"]


@dataclass(frozen=True, slots=True)
class Fold:
    """What is written before the title of a part, and as a line after its end; empty where nothing folds."""

    begin: str = ""
    end: str = ""


UNFOLDED = Fold()
#: The variable that a service sets in its jobs → its marks.
_SERVICES = {
    "GITHUB_ACTIONS": Fold("::group::", "::endgroup::"),
    "TF_BUILD": Fold("##[group]", "##[endgroup]"),  # Azure Pipelines
}


def fold_of(machine: Mapping[str, str]) -> Fold:
    """The marks of the service that this runs on, by the environment of the machine."""
    return next((fold for name, fold in _SERVICES.items() if machine.get(name, "").lower() == "true"), UNFOLDED)
