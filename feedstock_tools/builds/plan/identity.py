"""Under which identities the ledger may have an output's build, where no channel is asked which of them it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from feedstock_tools.builds.plan.workspace import Setting
from feedstock_tools.builds.stand_in.choice import channels_identity, identity_on
from feedstock_tools.feedstock.planned import PlannedConfiguration, PlannedOutput

__all__ = ["Candidate", "CandidatesOf", "candidates_in"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """An identity, the digests of the parts that make it, and the names of the channels that it stands for."""

    identity: str
    inputs: Mapping[str, str]
    channels: tuple[str, ...] = ()


#: Gives the candidates of an output, one for each choice of channels that counts.
CandidatesOf = Callable[[PlannedConfiguration, PlannedOutput], tuple[Candidate, ...]]


def candidates_in(setting: Setting) -> CandidatesOf:
    """What gives the candidates of the outputs of a feedstock; none of one that no engine here can render."""
    base = cache(lambda platform, choice: channels_identity(setting.machine, platform, choice))

    def candidates(configuration: PlannedConfiguration, output: PlannedOutput) -> tuple[Candidate, ...]:
        if not output.identity:
            return ()
        bases = [(base(configuration.platform, each), each) for each in setting.possible_channels(configuration)]
        return tuple(
            Candidate(identity_on(known, output), {**output.inputs, "channels": known}, choice.channels)
            for known, choice in bases
        )

    return candidates
