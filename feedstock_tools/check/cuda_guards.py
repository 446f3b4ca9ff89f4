"""Whether a build's requirement on `__cuda` keeps it off machines whose driver is too old for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from feedstock_tools.channel.specs import admits
from feedstock_tools.errors import FeedstockError
from feedstock_tools.facts import CudaFacts
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.model import RenderedOutput
from feedstock_tools.rerender.configurations.configuration import Configuration
from feedstock_tools.rerender.forge import read_forge
from feedstock_tools.rerender.outputs import render_with_conda_build, render_with_rattler_build
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.versions import parse_version

__all__ = ["low_guards"]


def low_guards(feedstock: Path, configuration: Configuration, facts: CudaFacts) -> Iterator[str]:
    """The mistakes in the guards of one configuration's outputs, one sentence each.

    A guard without a version is fine: `cuda-version` and `cudatoolkit`, which such builds depend on,
    require the driver. A recipe that cannot be rendered is skipped, since a rerender reports it.
    """
    try:
        outputs = _rendered(feedstock, configuration)
    except FeedstockError:
        return
    mistakes: dict[str, None] = {}
    for output in outputs:
        toolkit = facts.toolkits.get(".".join(output.variant.get("cuda_compiler_version", "").split(".")[:2]))
        if toolkit is None or output.skip:
            continue
        major = parse_version(toolkit.version).major
        least = f"{major}.0" if major >= 11 else toolkit.version
        for spec in (*output.requirements.get("run", ()), *output.requirements.get("run_constrained", ())):
            name, _, wanted = spec.strip().partition(" ")
            below = _below(least, facts)
            if name == "__cuda" and wanted.strip() and any(admits(wanted.strip().split(" ")[0], old) for old in below):
                message = f"{output.name} is built with CUDA {toolkit.version}, which needs a driver for CUDA {least}"
                mistakes[f"{message}, but its '{spec.strip()}' allows older ones"] = None
    yield from mistakes


def _rendered(feedstock: Path, configuration: Configuration) -> list[RenderedOutput]:
    rules = Rules.newest()
    forge = read_forge(feedstock, rules)
    builders = {rendering.platform: rendering.build_platform for rendering in forge.renderings}
    builder: Platform = builders.get(configuration.platform, configuration.platform)
    render = render_with_rattler_build if forge.is_v1 else render_with_conda_build
    return list(render(feedstock / forge.recipe_dir, configuration, builder, rules))


def _below(least: str, facts: CudaFacts) -> list[str]:
    """CUDA versions of drivers that are too old; a guard must exclude the newest of them."""
    return [version for version in facts.toolkits if parse_version(version) < parse_version(least)]
