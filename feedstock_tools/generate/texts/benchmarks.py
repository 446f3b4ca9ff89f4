"""The benchmarks of a spec in the recipe's `extra`, from where the build copies them into each package's
`info/about.json`."""

from __future__ import annotations

from typing import Any

from feedstock_tools.generate.spec.cross_checks import output_names
from feedstock_tools.generate.spec.model import Spec
from feedstock_tools.generate.texts.forge import block_lines

#: The key of `extra`: name of a package → its commands and the packages that they need.
BENCHMARKS = "benchmarks"


def benchmark_lines(spec: Spec) -> list[str]:
    """The lines of that key; none if no output has a benchmark."""
    benchmarks: dict[str, Any] = {}
    for output in spec.outputs:
        if output.benchmark is not None:
            content: dict[str, Any] = {"commands": list(output.benchmark.commands)}
            if output.benchmark.requires:
                content["requires"] = list(output.benchmark.requires)
            benchmarks |= dict.fromkeys(output_names(output.name), content)
    return block_lines({BENCHMARKS: benchmarks}) if benchmarks else []
