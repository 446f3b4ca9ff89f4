"""A built package's way into the channel: its checks, its name, the ledger's record before and after.

The engine has published packages that depend on a sibling of another variant, without an error (docs/engine.md), so no
package enters a channel before its own metadata has been read and compared.

The hash in conda-build's package names covers the virtual packages that a package runs on, including those that run
exports add when environments are solved, such as `__glibc` of `stdlib('c')` (conda_build/metadata.py,
get_hash_contents). A plan solves nothing, so for a `meta.yaml` it knows the hash without them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

from feedstock_tools.builds.channels import OpenChannels
from feedstock_tools.builds.engines.comparable import hide_credentials, names_of, with_paths
from feedstock_tools.builds.engines.contract import BuildRequest, Built, Log
from feedstock_tools.builds.engines.process.supervision import signals_held_back
from feedstock_tools.builds.ledger import BuildRecord, EnvironmentRecord, PackageRecord, SolvedPackage, now
from feedstock_tools.builds.ledger.records import LIBRARIES
from feedstock_tools.builds.runs.linking import without_bringer
from feedstock_tools.builds.runs.row_build import RowBuild, lock_name
from feedstock_tools.channel.folder import add_packages
from feedstock_tools.channel.metadata import PackageMetadata
from feedstock_tools.channel.packages.reading import read_hash_input, read_package, read_package_and
from feedstock_tools.digests import package_hash, sha256_of
from feedstock_tools.errors import WorkError
from feedstock_tools.feedstock.planned import PlannedOutput
from feedstock_tools.gpu_code.architecture import Architecture, parse_architectures
from feedstock_tools.gpu_code.code import architecture_names, gpu_code, lacking
from feedstock_tools.redaction import redacted, without_credentials
from feedstock_tools.versions import normalized
from feedstock_tools.yaml_reading.nodes import parse_json_types

_RENDERED = "info/recipe/rendered_recipe.yaml"
_PATHS = "info/paths.json"
_DISTRIBUTION = re.compile(
    r"(?:.*/)?site-packages/(([^-/]+)-([^-/]+?)(?:-py3[^/]*)?\.(?:dist|egg)-info)(?:/METADATA|/PKG-INFO)?"
)


def deliver(build: RowBuild, event: Built, request: BuildRequest) -> None:
    """Check a package, add it to the output channel, and record it as done.

    Raises:
        WorkError: a check fails, or the channel or the ledger cannot be written.
    """
    build.refuse_changed(event.output)
    hide_credentials(event.package, request.channels)
    planned = build.outputs[event.output]
    promise = with_final_name(event.package, planned)
    artifact = _checked(build, event.package, promise, request)
    channel = build.site.artifacts.channel(build.station.channels.properties)
    package = PackageRecord(
        channel=channel.relative_to(build.site.artifacts.root).as_posix(),
        file=f"{promise.subdir}/{event.package.name}",
        size=event.package.stat().st_size,
        sha256=sha256_of(event.package),
        mtime_ns=event.package.stat().st_mtime_ns,
    )
    _note_doubts(build, artifact)
    metadata = {event.package: artifact.metadata}
    entered(build, event, package, artifact.environments, lambda: add_packages(channel, [event.package], metadata)[0])
    build.promises[promise.name] = promise
    build.locks.release(lock_name(planned, build.station.channels.properties))


def _note_doubts(build: RowBuild, artifact: Artifact) -> None:
    """Write to log and record what may be wrong in the package, and what it needs and no requirement brings."""
    assert build.running is not None  # noqa: S101  (an engine starts an output before it is built)
    host = [package.name for each in artifact.environments if each.environment == "host" for package in each.packages]
    run = [spec.split()[0] for spec in artifact.metadata.depends]
    has_contents = not build.station.channels.properties.made_here
    found = [*artifact.doubts, *without_bringer(build.needed, run, host, has_contents=has_contents)]
    for text in found:
        build.log.write(Log(f"WARNING: {text}", "feedstock-tools", "warn"))
    if found:
        build.running = replace(build.running, marks={**build.running.marks, LIBRARIES: "\n".join(found)})


def _checked(build: RowBuild, package: Path, promise: PlannedOutput, request: BuildRequest) -> Artifact:
    """A package after all checks.

    An engine with channels of its own solves under names that its script and container choose.
    """
    siblings = {**build.outputs, **build.promises, promise.name: promise}
    solved_in = None if build.station.engine.own_channels else SolvedIn(request.output.as_uri(), build.station.channels)
    artifact = check_artifact(package, promise, siblings, solved_in)
    check_gpu_code(package, build.site.feedstock, promise.name, build.row.planned.cuda)
    return artifact


def entered(
    build: RowBuild,
    event: Built,
    package: PackageRecord,
    environments: Sequence[EnvironmentRecord],
    enter: Callable[[], Path],
) -> None:
    """Put a package into its place, between the ledger's promise and its final record.

    Args:
        enter: does so, and returns the file.
    """
    assert build.running is not None  # noqa: S101  (an engine starts an output before it is built)
    ledger, peak = build.station.ledger, build.guard.peak or None
    promised = replace(build.running, seconds=event.seconds, peak_memory=peak, packages=(package,))
    with signals_held_back():
        ledger.promise(promised, environments)
        done = replace(package, mtime_ns=enter().stat().st_mtime_ns)
        record = replace(promised, result="done", ended=now(), packages=(done,))
        ledger.finish(record)
        build.records.append(record)
        build.running = None


@dataclass(frozen=True, slots=True)
class SolvedIn:
    """The allowed origins of packages in a build's environments: the URL of its private channel, and the others."""

    private: str
    channels: OpenChannels

    @property
    def names(self) -> Mapping[str, str]:
        """The URLs of those that are folders, each with its name in packages."""
        return names_of(self.channels.urls, self.private, self.channels.properties)


@dataclass(frozen=True, slots=True)
class Artifact:
    """A package that is as planned: its metadata, and its environments as far as the engine reports them.

    `doubts` are sentences on what may be wrong in it all the same.
    """

    metadata: PackageMetadata
    environments: tuple[EnvironmentRecord, ...]
    doubts: tuple[str, ...] = ()


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
    metadata, documents = read_package_and(package, (_RENDERED, _PATHS))
    try:
        wrong, environments = _compared(package, metadata, documents, promise, siblings, solved_in)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise WorkError(f"the metadata in {package.name} is invalid: {error}") from error
    if wrong:
        lines = "\n".join(f"  - {line}" for line in wrong)
        raise WorkError(f"{package.name} differs from its recipe:\n{lines}")
    return Artifact(metadata, environments, tuple(_other_versions(metadata, documents[_PATHS] or b"")))


def _other_versions(metadata: PackageMetadata, paths: bytes) -> Iterator[str]:
    """Distributions of Python in a package that have its name and another version than it.

    A recipe may leave out what a version has after its number proper, such as the `.post1` of wheels made again.
    """
    for found in map(_DISTRIBUTION.fullmatch, re.findall(r'"_path": ?"([^"]+)"', paths.decode(errors="replace"))):
        its_own = found is not None and normalized(found[2]) == normalized(metadata.name)
        if found and its_own and _plain_version(found[3]) != _plain_version(metadata.version):
            yield f"pip sees version {found[3]} in the package of version {metadata.version}: {found[1]}"


def _plain_version(version: str) -> str:
    return re.sub(r"[-_]|(\.0)*(\.post\d+)?(\+.*)?$", "", version.lower())


def _compared(
    package: Path,
    metadata: PackageMetadata,
    documents: Mapping[str, bytes | None],
    promise: PlannedOutput,
    siblings: Mapping[str, PlannedOutput],
    solved_in: SolvedIn | None,
) -> tuple[list[str], tuple[EnvironmentRecord, ...]]:
    """What differs, in sentences, and its environments."""
    wrong = list(broken_promises(metadata, promise, siblings))
    if not json.loads(documents[_PATHS] or b'{"paths": [0]}')["paths"] and promise.has_files:
        wrong.append("it is empty, although the recipe gives it a script or files")
    rendered = documents[_RENDERED]
    if rendered is None:
        return wrong, ()
    rendered = with_paths(rendered, solved_in.names) if solved_in else rendered
    content = parse_json_types(rendered.decode("utf-8", "replace"), package)
    wrong += wrong_channels(list(solved_channels(content)), solved_in, frozenset(siblings)) if solved_in else ()
    return wrong, tuple(solved_environments(content))


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


def with_final_name(package: Path, promise: PlannedOutput) -> PlannedOutput:
    """The planned output with the build string of a package file, if they differ only by virtual packages."""
    build = promise.build if promise.whole else read_package(package).build
    if build == promise.build:
        return promise
    return replace(promise, build=build) if is_final(build, promise.build, read_hash_input(package)) else promise


def is_final(build: str, planned: str, contents: object) -> bool:
    """Whether a build string is the planned one except for virtual packages in its hash.

    Args:
        contents: the contents of the package's hash. Without some of its virtual packages they must give the planned
            hash, and with all of them the package's own.
    """
    if not isinstance(contents, dict):
        return False
    final = package_hash(contents)
    return any(build == planned.replace(package_hash(fewer), final) for fewer in _without_virtual(contents))


def as_built(promise: PlannedOutput, record: BuildRecord) -> PlannedOutput:
    """A finished output of the plan, with the build string of its package."""
    start = f"{promise.name}-{promise.version}-"
    names = (package.file.rpartition("/")[2].removesuffix(".conda") for package in record.packages)
    return next((replace(promise, build=name.removeprefix(start)) for name in names if name.startswith(start)), promise)


def _without_virtual(contents: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """The contents of a hash without each subset of its virtual packages."""
    virtual = [key for key in contents if key.startswith("__")]
    for count in range(1, len(virtual) + 1):
        for left_out in combinations(virtual, count):
            yield {key: value for key, value in contents.items() if key not in left_out}


def check_gpu_code(package: Path, feedstock: Path, output: str, cuda: str | None) -> None:
    """Read the architectures out of the binaries of a package, and compare them with `cuda: architectures` of the spec.

    An output whose spec has `kernels: true` must have every one of them; one with `false` is not checked; any other
    only if it has GPU code at all. Feedstocks without a spec and CPU builds are not checked.

    Args:
        feedstock: its folder.
        output: the name of the package.
        cuda: the CUDA version that it was built with; None for a CPU build.

    Raises:
        WorkError: an architecture is missing; with all missing and all present ones.
    """
    spec = feedstock / "feedstock.yaml"
    if cuda is None or not spec.is_file():
        return
    architectures, kernels = _promises(spec, spec.stat().st_mtime_ns)
    promised = architectures.get(cuda, ())
    wanted = kernels.get(output)
    if not promised or wanted is False:
        return
    codes_of_files = gpu_code(package)
    missing = lacking(promised, codes_of_files)
    if missing and (codes_of_files or wanted):
        present = architecture_names(code for codes in codes_of_files.values() for code in codes)
        what = "the build script passes on all of them" if codes_of_files else "the project was told to use CUDA"
        raise WorkError(
            f"{package.name} has no GPU code for {', '.join(map(str, missing))}, which the spec promises",
            hint=f"In it, for CUDA {cuda}: {', '.join(present) or 'no GPU code at all'}."
            f" Check that {what}. `kernels: false` leaves an output unchecked.",
        )


@cache
def _promises(spec: Path, changed: int) -> tuple[Mapping[str, tuple[Architecture, ...]], Mapping[str, bool | None]]:
    """Architectures by CUDA version, and `kernels` by output; `changed` is the time that the file was changed."""
    from feedstock_tools.generate.spec.checks import output_names
    from feedstock_tools.generate.spec.reading import read_spec
    from feedstock_tools.generate.texts.resolved import architectures_by_version

    content = read_spec(spec)
    chosen = architectures_by_version(content)
    kernels = {name: output.kernels for output in content.outputs for name in output_names(output.name)}
    return {version: parse_architectures(names) for version, names in chosen.items()}, kernels
