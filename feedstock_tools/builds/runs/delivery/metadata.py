"""The metadata of a built package, compared with its rendered recipe.

The engine has published packages that depend on a sibling of another variant, without an error (docs/engine.md), so no
package enters a channel before its own metadata has been read and compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from feedstock_tools.builds.engines.comparable import names_of, with_paths
from feedstock_tools.builds.ledger import EnvironmentRecord, SolvedPackage
from feedstock_tools.builds.stand_in.resolved import ResolvedChannels
from feedstock_tools.channel.archive import read_package_and
from feedstock_tools.channel.metadata import PackageMetadata
from feedstock_tools.errors import WorkError
from feedstock_tools.feedstock.planned import PlannedOutput
from feedstock_tools.redaction import redacted, without_credentials
from feedstock_tools.yaml_reading.values import parse_json_types

_RENDERED = "info/recipe/rendered_recipe.yaml"


@dataclass(frozen=True, slots=True)
class SolvedIn:
    """The allowed origins of packages in a build's environments: the URL of its private channel, and the others."""

    private: str
    channels: ResolvedChannels

    @property
    def names(self) -> Mapping[str, str]:
        """The URLs of those that are folders, each with its name in packages."""
        return names_of(self.channels.urls, self.private, stand_in=self.channels.stand_in is not None)


@dataclass(frozen=True, slots=True)
class Artifact:
    """A package that is as planned: its metadata, and its environments as far as the engine reports them."""

    metadata: PackageMetadata
    environments: tuple[EnvironmentRecord, ...]


def check_artifact(
    package: Path, promise: PlannedOutput, siblings: Mapping[str, PlannedOutput], solved_in: SolvedIn | None
) -> Artifact:
    """Compare a package with its plan.

    Args:
        package: the file that the engine made.
        siblings: all outputs of the same row, by name.
        solved_in: the allowed origins of packages in its environments; None if unknown.

    Raises:
        WorkError: they differ; every difference is named.
    """
    metadata, documents = read_package_and(package, (_RENDERED,))
    rendered = documents[_RENDERED]
    wrong = list(broken_promises(metadata, promise, siblings))
    environments: tuple[EnvironmentRecord, ...] = ()
    if rendered is not None:
        rendered = with_paths(rendered, solved_in.names) if solved_in else rendered
        content = parse_json_types(rendered.decode("utf-8", "replace"), package)
        wrong += wrong_channels(list(solved_channels(content)), solved_in, frozenset(siblings)) if solved_in else ()
        environments = tuple(solved_environments(content))
    if wrong:
        lines = "\n".join(f"  - {line}" for line in wrong)
        raise WorkError(f"{package.name} differs from its recipe:\n{lines}")
    return Artifact(metadata, environments)


def solved_environments(rendered: Any) -> Iterator[EnvironmentRecord]:
    """The build and host environments in a rendered recipe, as solved."""
    for environment in ("build", "host"):
        records = _resolved(rendered, environment)
        if records:
            yield EnvironmentRecord(environment, tuple(_solved_package(record) for record in records))


def _solved_package(record: Mapping[str, Any]) -> SolvedPackage:
    texts = {key: str(record.get(key) or "") for key in ("name", "version", "build", "subdir", "sha256")}
    return SolvedPackage(**texts, channel=redacted(_channel_of(record)))


def _channel_of(record: Mapping[str, Any]) -> str:
    return str(record.get("channel") or record.get("url") or "").rstrip("/")


def _resolved(rendered: Any, environment: str) -> list[Any]:
    dependencies = rendered.get("finalized_dependencies") or {}
    return (dependencies.get(environment) or {}).get("resolved") or []


def broken_promises(
    package: PackageMetadata, promise: PlannedOutput, siblings: Mapping[str, PlannedOutput]
) -> Iterator[str]:
    """Each difference between a package's metadata and its plan, in a sentence."""
    for field in ("name", "version", "build", "build_number", "subdir"):
        actual, planned = getattr(package, field), getattr(promise, field)
        if actual != planned:
            yield f"{field.replace('_', ' ')} is '{actual}' instead of '{planned}'"
    if promise.whole and set(package.track_features) != set(promise.track_features):
        yield (
            f"track_features is '{' '.join(package.track_features)}' instead of '{' '.join(promise.track_features)}'"
        )
    for name, pin in promise.pins.items():
        if not any(_pin_of(spec) == (name, pin) for spec in package.depends):
            found = [spec for spec in package.depends if spec.split()[0] == name]
            yield f"it must depend on '{name} =={pin}', but has {found[0] if found else 'no such dependency'}"
    exported = [spec for kind in package.run_exports.to_json().values() for spec in kind]
    for spec in (*package.depends, *package.constrains, *exported):
        exact = _pin_of(spec)
        if exact and exact[0] in siblings and exact[0] not in promise.pins:
            sibling = siblings[exact[0]]
            if exact[1] != f"{sibling.version} {sibling.build}":
                yield f"'{spec}' is not the {sibling.name} of the same variant, which is {sibling.stem}"


def _pin_of(spec: str) -> tuple[str, str] | None:
    """Name and `version build` of an exact spec, `name ==1.0 build` or `name 1.0 build`; None for any other."""
    words = spec.split()
    if len(words) != 3 or any(char in words[2] for char in "*|,"):
        return None
    return words[0], f"{words[1].removeprefix('==')} {words[2]}"


def solved_channels(rendered: Any) -> Iterator[tuple[str, str]]:
    """Name and channel of each package in the build and host environments of a rendered recipe."""
    for environment in ("build", "host"):
        for record in _resolved(rendered, environment):
            yield record["name"], _channel_of(record)


def wrong_channels(solved: Sequence[tuple[str, str]], solved_in: SolvedIn, own: frozenset[str]) -> Iterator[str]:
    """Each package of an environment that came from a wrong channel, in a sentence.

    The engine is called with strict channel priority, but ignores it for root specs (docs/engine.md).

    Args:
        solved: name and channel of each package.
        own: the names of the recipe's outputs, which come from the private channel.
    """
    channels = solved_in.channels.urls
    plain = [without_credentials(url) for url in channels]  # the engine hides credentials
    for name, channel in solved:
        if name in own:
            if channel != solved_in.private:
                yield f"{name} is an output of this recipe but was taken from {channel}"
        elif without_credentials(channel) not in plain:
            yield f"{name} was taken from {channel}, which is not one of the channels given"
        else:
            before = channels[: plain.index(without_credentials(channel))]
            better = next((first for first in before if solved_in.channels.has(first, name)), None)
            if better:
                yield f"{name} was taken from {channel}, although {better} has it and has priority"
