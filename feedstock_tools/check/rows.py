"""The rows of a configuration: its values for one CUDA version each, with what is known of that version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from feedstock_tools.check.findings import Complaint
from feedstock_tools.facts import CudaFacts, Toolkit
from feedstock_tools.pins.graph.model import PinGraph
from feedstock_tools.rerender.configurations.configuration import Configuration
from feedstock_tools.versions import parse_version

_NOT_CUDA = frozenset({"", "None", "none", "undefined"})


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a configuration: the values for one CUDA version."""

    facts: CudaFacts
    graph: PinGraph
    toolkit: Toolkit
    subdir: str
    values: Mapping[str, tuple[str, ...]]

    @property
    def is_tegra(self) -> bool | None:
        """Whether an ARM build is for Jetson's own system; None if the configuration does not say."""
        variant = self.values.get("arm_variant_type", ("",))[0]
        return {"tegra": True, "sbsa": False}.get(variant)

    def source(self, fact: str) -> str | None:
        """The page or file that a fact of the toolkit was read in."""
        names = self.toolkit.sources.get(fact, ())
        sources = [source.url or source.title for name in names if (source := self.facts.sources.get(name))]
        return sources[0] if sources else None


def rows_of(facts: CudaFacts, graph: PinGraph, configuration: Configuration) -> Iterator[Row]:
    """The rows with a CUDA version that has facts; others are unknown, and nothing is checked about them."""
    zipped = next((group for group in configuration.zip_keys if "cuda_compiler_version" in group), ())
    for number, cuda in enumerate(_cudas(configuration)):
        toolkit = facts.toolkits.get(_minor(cuda))
        if cuda not in _NOT_CUDA and toolkit is not None:
            own = {key: (configuration.values[key][number],) for key in zipped if key in configuration.values}
            values = {**configuration.values, "cuda_compiler_version": (cuda,), **own}
            yield Row(facts, graph, toolkit, configuration.platform.subdir, values)


def zips_out_of_step(configuration: Configuration) -> list[Complaint]:
    """Zipped keys with different numbers of values, which have no rows."""
    complaints = []
    for group in configuration.zip_keys:
        lengths = {key: len(configuration.values[key]) for key in group if key in configuration.values}
        if len(set(lengths.values())) > 1:
            words = ", ".join(f"{key} has {length}" for key, length in lengths.items())
            complaints.append(Complaint("zip_keys", f"zipped keys must have the same number of values: {words}"))
    return complaints


def never_released(facts: CudaFacts, configuration: Configuration) -> Iterator[Complaint]:
    """The CUDA versions of a configuration that NVIDIA never released.

    The facts have all from the oldest to the newest, so a version missing in between was never released.
    """
    versions = sorted(facts.toolkits, key=parse_version)
    for cuda in _cudas(configuration):
        version = _minor(cuda)
        if cuda in _NOT_CUDA or version in facts.toolkits or not version.replace(".", "").isdigit():
            continue
        if parse_version(versions[0]) < parse_version(version) < parse_version(versions[-1]):
            before = max(
                (other for other in versions if parse_version(other) < parse_version(version)), key=parse_version
            )
            after = min(
                (other for other in versions if parse_version(other) > parse_version(version)), key=parse_version
            )
            message = f"NVIDIA never released CUDA {version}: {after} followed {before}"
            yield Complaint("cuda_compiler_version", message)


def _cudas(configuration: Configuration) -> tuple[str, ...]:
    return configuration.values.get("cuda_compiler_version", ())


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
