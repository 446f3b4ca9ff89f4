"""Rerender made-up feedstocks of 500 to 4,000 configurations and print how time and peak memory grow with them.

    python benchmarks/rerenders/scaling.py [--outputs 20] [--runs 3] [--written-out]

Every output uses all three variables that split jobs, so each configuration makes its own packages of all outputs: no
part of the matrix repeats. With `--written-out`, templates write the variables' values into every output, so that no
two renderings of the recipe have the same text either. Measures whole processes (`benchmarks.rerenders.rerender.run`)
and prints the median of the runs.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rerender import OURS, run

CONFIGURATIONS = (500, 1000, 2000, 4000)
#: Values of two of the variables; the third has as many as are needed.
_BETAS, _GAMMAS = 10, 5
_VARIABLES = ("alpha", "beta", "gamma")

_OUTPUT = """\
  - name: made-{number}
    requirements:
      build:
        - {{{{ compiler('c') }}}}
      host:
        - alpha{alpha}
        - beta{beta}
        - gamma{gamma}
{run}"""
_RUN = """\
      run:
        - {{{{ pin_subpackage('made-{before}', exact=True) }}}}
"""


def make_feedstock(folder: Path, configurations: int, outputs: int, *, written_out: bool = False) -> Path:
    """Write a feedstock for linux-64 alone, its variants in the recipe's own file; the pinning is empty."""
    recipe = folder / "feedstock" / "recipe"
    recipe.mkdir(parents=True)
    (folder / "pinning").mkdir()
    (folder / "pinning" / "conda_build_config.yaml").write_text("c_compiler:\n  - gcc\n")
    (folder / "feedstock" / "conda-forge.yml").write_text("provider: {linux_64: azure, osx_64: None, win_64: None}\n")
    counts = dict(zip(_VARIABLES, (configurations // (_BETAS * _GAMMAS), _BETAS, _GAMMAS), strict=True))
    (recipe / "conda_build_config.yaml").write_text(
        "".join(f"{key}:\n" + "".join(f"  - '{value}'\n" for value in range(count)) for key, count in counts.items())
    )
    values = {key: f" {{{{ {key} }}}}" if written_out else "" for key in _VARIABLES}
    parts = [_OUTPUT.format(number=at, run=_RUN.format(before=at - 1) if at else "", **values) for at in range(outputs)]
    (recipe / "meta.yaml").write_text(
        f"package:\n  name: made\n  version: '1.0'\n\nbuild:\n  number: 0\n\noutputs:\n{''.join(parts)}"
        "\nabout:\n  license: MIT\n"
    )
    return folder


def main(arguments: Sequence[str]) -> int:
    """Print the table, each line as soon as it is known."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--outputs", type=int, default=20)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--written-out", action="store_true", help="write the variables' values into every output")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:  # makes the bytecode
        folder = make_feedstock(Path(scratch), _BETAS * _GAMMAS, 1)
        run(OURS, folder / "feedstock", folder / "pinning")
    print(
        "{:>14} {:>8} {:>8} {:>8} {:>8} {:>22}".format(
            "configurations", "files", "s", "cpu s", "MiB", "cpu ms/configuration"
        )
    )
    for configurations in CONFIGURATIONS:
        with tempfile.TemporaryDirectory() as scratch:
            folder = make_feedstock(Path(scratch), configurations, options.outputs, written_out=options.written_out)
            runs = [run(OURS, folder / "feedstock", folder / "pinning") for _ in range(options.runs)]
        seconds = statistics.median(each.seconds for each in runs)
        memory = max(each.memory for each in runs)
        processor = statistics.median(each.processor for each in runs)
        each_takes = processor / configurations * 1000
        files = len(runs[0].files)
        print(
            f"{configurations:14} {files:8} {seconds:8.2f} {processor:8.2f} {memory:8.0f} {each_takes:22.2f}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
