"""The CUDA versions of a spec, and the architectures that nvcc compiles for in each."""

from __future__ import annotations

from collections.abc import Mapping

from feedstock_tools.facts import CudaFacts, load_cuda
from feedstock_tools.generate.spec.model import Cuda, Spec
from feedstock_tools.platforms import Platform
from feedstock_tools.versions import parse_version


def known_cuda_versions(spec: Spec, facts: CudaFacts | None = None) -> tuple[str, ...]:
    """The CUDA versions that builds of the spec can have, oldest first.

    If conda-forge's pinning decides, this is every version that the spec chooses architectures for, one by one, or else
    every version of the facts.
    """
    if spec.cuda is None:
        return ()
    if spec.pinning == "self-contained":
        facts = facts or load_cuda()
        named = {version for subdir in spec.platforms for version in versions_on(spec, Platform.parse(subdir), facts)}
        return tuple(sorted(named, key=parse_version))
    if isinstance(spec.cuda.versions, str):
        chosen = _own_architectures(spec.cuda)
        toolkits = chosen if isinstance(chosen, Mapping) else (facts or load_cuda()).toolkits
        return tuple(sorted(toolkits.keys(), key=parse_version))
    return tuple(sorted(spec.cuda.versions, key=parse_version))


def versions_on(spec: Spec, platform: Platform, facts: CudaFacts) -> tuple[str, ...]:
    """The CUDA versions that a self-contained spec builds for on a platform, oldest first."""
    if spec.cuda is None or (spec.cuda.platforms and platform.subdir not in spec.cuda.platforms):
        return ()
    possible = facts.versions(platform)
    if isinstance(spec.cuda.versions, str):
        return possible
    return tuple(version for version in possible if version in spec.cuda.versions)


def architectures_by_version(spec: Spec, facts: CudaFacts | None = None) -> Mapping[str, tuple[str, ...]]:
    """The architectures that nvcc compiles for in each CUDA version of the spec, as `sm_86` and `compute_86`.

    If the pinning determines the versions, those of the spec's own preset.

    Raises:
        InputError: a preset does not exist or lacks a version (`read_spec` refuses both).
    """
    if spec.cuda is None:
        return {}
    chosen = _own_architectures(spec.cuda)
    if chosen is None:
        return {}
    versions = known_cuda_versions(spec, facts)
    if isinstance(chosen, str):
        presets = facts or load_cuda()
        return {version: presets.preset(chosen, version) for version in versions if _has(presets, chosen, version)}
    if isinstance(chosen, tuple):
        return dict.fromkeys(versions, chosen)
    return {version: chosen[version] for version in sorted(chosen, key=parse_version)}


def _own_architectures(cuda: Cuda) -> str | tuple[str, ...] | Mapping[str, tuple[str, ...]] | None:
    """The choice of architectures, with a preset of the spec in place of its name."""
    chosen = cuda.architectures
    return cuda.presets.get(chosen, chosen) if isinstance(chosen, str) else chosen


def _has(facts: CudaFacts, preset: str, version: str) -> bool:
    chosen = facts.presets[preset]
    return bool(chosen.candidates) or version in chosen.lists
