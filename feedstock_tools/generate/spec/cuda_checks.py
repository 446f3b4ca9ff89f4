"""The section `cuda` of a spec against the facts: versions that exist, and architectures that their nvcc knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from feedstock_tools.facts import CudaFacts, load_cuda
from feedstock_tools.generate.spec.finding import Finding
from feedstock_tools.generate.spec.words import ARCHITECTURE
from feedstock_tools.yaml_reading.positions import Location


def check_cuda(content: Mapping[str, Any]) -> Iterator[Finding]:
    """All conflicts between the facts and the content of a spec."""
    cuda = content.get("cuda")
    if not isinstance(cuda, dict):
        return
    facts = load_cuda()
    yield from _check_versions(cuda, facts, self_contained=content.get("pinning") == "self-contained")
    for name, by_version in _mapping(cuda.get("presets")).items():
        yield from _check_mapping(_mapping(by_version), ("cuda", "presets", name), facts)
    yield from _check_choice(cuda, facts)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _check_versions(cuda: Mapping[str, Any], facts: CudaFacts, *, self_contained: bool) -> Iterator[Finding]:
    versions = cuda.get("versions", "pinning")
    if self_contained and versions == "pinning":
        yield Finding(
            ("cuda", "versions"), "a self-contained spec must list its CUDA versions", "Or set `versions: all`."
        )
    for at, version in enumerate(versions if isinstance(versions, list) else ()):
        if isinstance(version, str) and version not in facts.toolkits:
            yield Finding(("cuda", "versions", at), f"unknown CUDA version {version}", _version_hint(version, facts))


def _check_choice(cuda: Mapping[str, Any], facts: CudaFacts) -> Iterator[Finding]:
    chosen = cuda.get("architectures")
    location: Location = ("cuda", "architectures")
    versions = cuda.get("versions")
    listed = (
        [str(version) for version in versions if str(version) in facts.toolkits] if isinstance(versions, list) else []
    )
    presets = _mapping(cuda.get("presets"))
    if isinstance(chosen, dict):
        yield from _check_mapping(chosen, location, facts)
        yield from _check_complete(chosen, listed, location)
    elif isinstance(chosen, list):
        for at, name in enumerate(chosen):
            yield from _check_name(name, listed, (*location, at), facts)
    elif isinstance(chosen, str) and chosen in presets:
        yield from _check_complete(_mapping(presets[chosen]), listed, location)
    elif isinstance(chosen, str) and chosen in facts.presets:
        preset = facts.presets[chosen]
        if not preset.candidates:
            yield from _check_complete(preset.lists, listed, location)
    elif isinstance(chosen, str):
        names = [*presets, *facts.presets]
        near = get_close_matches(chosen, names, n=1, cutoff=0.5)
        hint = f"Did you mean '{near[0]}'?" if near else f"There are {', '.join(names)}."
        yield Finding(location, f"there is no preset '{chosen}' of architectures", hint)


def _check_mapping(by_version: Mapping[str, Any], location: Location, facts: CudaFacts) -> Iterator[Finding]:
    for version, names in by_version.items():
        if version not in facts.toolkits:
            yield Finding((*location, version), f"unknown CUDA version {version}", _version_hint(version, facts))
            continue
        for at, name in enumerate(names if isinstance(names, list) else ()):
            yield from _check_name(name, [version], (*location, version, at), facts)


def _check_name(name: Any, versions: list[str], location: Location, facts: CudaFacts) -> Iterator[Finding]:
    """One mistake for an architecture, naming the first version that does not know it."""
    for version in versions:
        toolkit = facts.toolkits[version]
        prefix = str(name).partition("_")[0]
        if ARCHITECTURE.fullmatch(str(name)) and not toolkit.accepts(name):
            compilable = ", ".join(f"{prefix}_{number}" for number in toolkit.architectures)
            yield Finding(location, f"nvcc of CUDA {version} does not know {name}", f"It knows {compilable}.")
            return


def _check_complete(by_version: Mapping[str, Any], versions: list[str], location: Location) -> Iterator[Finding]:
    missing = [version for version in versions if version not in by_version]
    if missing:
        hint = f"There are lists for {', '.join(by_version)}."
        yield Finding(location, f"there are no architectures for CUDA {', '.join(missing)}", hint)


def _version_hint(version: str, facts: CudaFacts) -> str:
    near = get_close_matches(version, facts.toolkits, n=1)
    return f"Did you mean '{near[0]}'?" if near else f"Known CUDA versions: {', '.join(facts.toolkits)}."
