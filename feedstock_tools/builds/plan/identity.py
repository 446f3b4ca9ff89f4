"""The identity of a build, a hash of all its inputs, and the identities that an output may have in a ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from feedstock_tools.builds.channels import ChannelIdentities, ChannelsIdentity, possible_channels
from feedstock_tools.channel.properties import properties_of
from feedstock_tools.feedstock.planned import PlannedConfiguration, PlannedOutput

#: The form of identities, which the ledger records with the parts. It changes when the same inputs give another one.
FORM = "2"
#: The parts of what goes into a build, in words.
PARTS = {
    "recipe": "the recipe",
    "variant": "the variant",
    "files": "files of the recipe folder",
    "sources": "local sources",
    "siblings": "an output that it needs",
    "engine": "the engine",
    "channels": "the channels",
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """An identity, the digests of its parts, and the names of its channels."""

    identity: str
    inputs: Mapping[str, str]
    channels: tuple[str, ...] = ()


#: Name of a configuration and identity of one of its outputs → the candidates, one for each relevant
#: choice of channels; an output that no engine here can render has none.
Candidates = Mapping[tuple[str, str], tuple[Candidate, ...]]


def identity_on(base: ChannelsIdentity, output: PlannedOutput) -> str:
    """The identity of an output's build in the ledger: from its plan, and the channels (`base`)."""
    return sha256(f"{output.identity}\n{_with_tools(base, output)}".encode()).hexdigest()


def inputs_on(base: ChannelsIdentity, output: PlannedOutput) -> dict[str, str]:
    """The parts of that identity, each with its digest, and the form of the identity."""
    return {**output.inputs, "channels": _with_tools(base, output), "form": FORM}


def _with_tools(base: ChannelsIdentity, output: PlannedOutput) -> str:
    """The channels' part of an output's identity; for channels made on the spot with the tools that it needs."""
    own = base.places if output.is_shared else base.contents
    if not output.tools or not properties_of(own.partition(" ")[0]).made_here:
        return own
    listed = "\n".join(f"{name} {digest}" for name, digest in sorted(output.tools.items()))
    return f"{own} {sha256(listed.encode()).hexdigest()}"


def candidates_of(
    configurations: Sequence[PlannedConfiguration], requested: Sequence[str], machine: Mapping[str, str]
) -> Candidates:
    """The identities under which the ledger may have the outputs of some configurations.

    Args:
        configurations: with their outputs.
        requested: the channels from the command line.
        machine: the environment of the machine.
    """
    base_of = ChannelIdentities(machine).of
    candidates: dict[tuple[str, str], tuple[Candidate, ...]] = {}
    for configuration in configurations:
        possible = tuple(possible_channels(requested, configuration.channels))
        cudas = configuration.cuda_majors
        bases = [(base_of(channels, configuration.platform, cudas), channels) for channels in possible]
        outputs = (output for row in configuration.rows for output in (*row.outputs, *row.shared))
        for output in (output for output in outputs if output.identity):
            candidates[configuration.name, output.identity] = tuple(
                Candidate(identity_on(base, output), inputs_on(base, output), channels.names)
                for base, channels in bases
            )
    return candidates
