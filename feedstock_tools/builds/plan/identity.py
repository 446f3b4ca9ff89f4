"""The identity of a build, a hash of all its inputs, and the identities that an output may have in a ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from feedstock_tools.builds.stand_in.choice import DEFAULT_CHANNELS, STAND_IN, ChannelChoice
from feedstock_tools.channel.local import local_folder
from feedstock_tools.digests import digest_of_files, sha256_of
from feedstock_tools.feedstock.planned import PlannedConfiguration, PlannedOutput
from feedstock_tools.platforms import Platform

#: The form of the identities of new builds, which the ledger records with the parts. Form 1 had the path of a channel's
#: folder, and of the compilers behind the stand-in channel; form 2 has what is in them.
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


def identity_on(base: str, output: PlannedOutput) -> str:
    """The identity of an output's build in the ledger: from its plan, and the channels (`base`)."""
    return sha256(f"{output.identity}\n{_with_tools(base, output)}".encode()).hexdigest()


def inputs_on(base: str, output: PlannedOutput) -> dict[str, str]:
    """The parts of that identity, each with its digest, and the form of the identity."""
    return {**output.inputs, "channels": _with_tools(base, output), "form": FORM}


def _with_tools(base: str, output: PlannedOutput) -> str:
    """The channels' part of an output's identity: on the stand-in channel with the tools that it needs, no others."""
    if not output.tools or not base.startswith(f"{STAND_IN} "):
        return base
    listed = "\n".join(f"{name} {digest}" for name, digest in sorted(output.tools.items()))
    return f"{base} {sha256(listed.encode()).hexdigest()}"


def channels_identities(machine: Mapping[str, str], platform: str, choice: ChannelChoice) -> tuple[str, ...]:
    """The part of an identity for the channels that builds for a platform use, then its forms in old ledgers."""
    if not choice.is_stand_in:
        return identities_of_channels(choice.channels)
    from feedstock_tools.builds.stand_in.identity import stand_in_identities
    from feedstock_tools.builds.stand_in.toolkits import toolkits_folder

    target, toolkits = Platform.parse(platform), toolkits_folder(machine)
    found = stand_in_identities(target, path=machine.get("PATH"), toolkits=toolkits)
    return tuple(f"{STAND_IN} {identity}" for identity in found)


def identities_of_channels(channels: Sequence[str]) -> tuple[str, ...]:
    """The part of a build's identity for channels: for a folder the hash of its repodata, for others the URL.

    The contents of a remote channel change by the hour, which alone is not a reason to build again.

    Returns:
        the form for new builds; then, if a channel is a folder, that of ledgers that also recorded its path.
    """
    folders = {channel: folder for channel in channels if (folder := local_folder(channel)) is not None}
    urls = {
        channel: channel if "://" in channel else f"https://conda.anaconda.org/{channel}"
        for channel in channels
        if channel not in folders
    }
    parts = urls | {channel: _contents(folder) for channel, folder in folders.items()}
    before = urls | {channel: f"{folder} {digest_of_files(_repodata(folder))}" for channel, folder in folders.items()}
    forms = ("\n".join(form[channel] for channel in channels) for form in (parts, before))
    return tuple(dict.fromkeys(sha256(form.encode()).hexdigest() for form in forms))


def _contents(folder: Path) -> str:
    """What a channel's folder has in each subdir."""
    return " ".join(["folder", *(f"{file.parent.name} {sha256_of(file)}" for file in _repodata(folder))])


def _repodata(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/repodata.json"))


def possible_channels(requested: Sequence[str], configured: Sequence[str]) -> Iterator[ChannelChoice]:
    """The channels that builds of a configuration may have used, without querying any of them.

    Without channels given, those of the configuration and the stand-in channel both count.

    Args:
        requested: the channels from the command line.
        configured: the configuration's own channels.
    """
    names = tuple(requested) or tuple(configured) or DEFAULT_CHANNELS
    if STAND_IN not in names:
        yield ChannelChoice(names)
    if STAND_IN in names or not requested:
        yield ChannelChoice((STAND_IN,), "listed")


def candidates_of(
    configurations: Sequence[PlannedConfiguration], requested: Sequence[str], machine: Mapping[str, str]
) -> Candidates:
    """The identities under which the ledger may have the outputs of some configurations.

    Args:
        configurations: with their outputs.
        requested: the channels from the command line.
        machine: the environment of the machine.
    """
    bases_of = cache(lambda platform, choice: channels_identities(machine, platform, choice))
    candidates: dict[tuple[str, str], tuple[Candidate, ...]] = {}
    for configuration in configurations:
        choices = tuple(possible_channels(requested, configuration.channels))
        bases = [(base, choice) for choice in choices for base in bases_of(configuration.platform, choice)]
        for output in (output for row in configuration.rows for output in row.outputs if output.identity):
            candidates[configuration.name, output.identity] = tuple(
                Candidate(identity_on(base, output), inputs_on(base, output), choice.channels) for base, choice in bases
            )
    return candidates
