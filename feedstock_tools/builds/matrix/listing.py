"""The list of configurations: the outputs of each, and the channels on which they are already built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from feedstock_tools.builds.plan.workspace import Workspace
from feedstock_tools.feedstock.planned import PlannedConfiguration, PlannedOutput


@dataclass(frozen=True, slots=True)
class ListedOutput:
    """An output, the Python of its row if it uses one, and the channels that it was built on: None if it was not
    built."""

    output: PlannedOutput
    python: str | None
    built_on: str | None


@dataclass(frozen=True, slots=True)
class Listed:
    """A configuration and its outputs, each once."""

    configuration: PlannedConfiguration
    outputs: tuple[ListedOutput, ...]

    @property
    def is_built(self) -> bool:
        return bool(self.outputs) and all(output.built_on for output in self.outputs)


def listing(workspace: Workspace, chosen: Sequence[PlannedConfiguration]) -> tuple[Listed, ...]:
    """Configurations with their built outputs.

    Without channels given, those of a configuration and the stand-in channel both count, since this does not ask a
    channel to determine which of them a build would use.

    Args:
        chosen: with their outputs.
    """
    built = _built(workspace, chosen) if workspace.artifacts.ledger.is_file() else {}
    return tuple(_listed(configuration, built) for configuration in chosen)


def _built(workspace: Workspace, chosen: Sequence[PlannedConfiguration]) -> dict[tuple[str, str], str]:
    """Name of a configuration and identity of its output → the channels that the output was built on."""
    from feedstock_tools.builds.ledger import Ledger
    from feedstock_tools.builds.plan.identity import candidates_of

    built = {}
    with Ledger(workspace.artifacts.ledger) as ledger:
        possible = candidates_of(chosen, workspace.channels, workspace.machine)
        done = ledger.identities_done(
            candidate.identity for candidates in possible.values() for candidate in candidates
        )
        for key, candidates in possible.items():
            for candidate in candidates:
                if candidate.identity in done and ledger.done(candidate.identity):
                    built[key] = ", ".join(candidate.channels)
                    break
    return built


def _listed(configuration: PlannedConfiguration, built: dict[tuple[str, str], str]) -> Listed:
    outputs = {
        output.stem: ListedOutput(
            output=output,
            python=row.python if output.uses_python else None,
            built_on=built.get((configuration.name, output.identity)),
        )
        for row in configuration.rows
        for output in row.outputs
    }
    return Listed(configuration, tuple(outputs.values()))
