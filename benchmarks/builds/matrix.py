"""Measure the speed-up of building two rows in parallel, and the overhead of each build.

Makes a feedstock of its own in a temporary folder: some configurations, each with one package whose script keeps one
core busy for some seconds of processor time. Builds them with `--jobs 1` and `--jobs 2`, each into an empty folder, and
once more with nothing to do.

    python -m benchmarks.builds.matrix [--builds 6] [--seconds 10] [--runs 1]

Other work on the machine slows both runs, and the second one more; the load is printed with the figures.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from feedstock_tools.channel.folder import index_channel
from feedstock_tools.platforms import Platform
from tests.support import command

RECIPE = """schema_version: 1
package:
  name: busy
  version: "1.0"
build:
  number: 0
  string: ${{ flavour }}_0
  script: busy.sh
about:
  license: BSD-3-Clause
  summary: Keeps a core busy
"""
SCRIPT = """{python} -c 'import time
while time.process_time() < {seconds}: pass'
mkdir -p "$PREFIX" && echo busy > "$PREFIX/busy.txt"
"""


def make_feedstock(folder: Path, builds: int, seconds: float) -> tuple[Path, Path]:
    """Make a feedstock with this number of configurations, and an empty channel."""
    here = Platform.here()
    feedstock, channel = folder / "busy-feedstock", folder / "channel"
    (feedstock / "recipe").mkdir(parents=True)
    (feedstock / ".ci_support").mkdir()
    (feedstock / "recipe" / "recipe.yaml").write_text(RECIPE)
    (feedstock / "recipe" / "busy.sh").write_text(SCRIPT.format(python=sys.executable, seconds=seconds))
    for number in range(builds):
        text = f"flavour:\n- f{number}\ntarget_platform:\n- {here.subdir}\nchannel_sources:\n- conda-forge\n"
        (feedstock / ".ci_support" / f"{here.name}_flavourf{number}.yaml").write_text(text)
    channel.mkdir()
    index_channel(channel)
    return feedstock, channel


def run(feedstock: Path, channel: Path, output: Path, jobs: int) -> command.Measured:
    """Build everything."""
    words = ("--jobs", str(jobs), "--cores", str(jobs), "--channel", str(channel), "--output-dir", str(output))
    done = command.measured(command.tool("build", "--all", *words), feedstock)
    if done.returncode:
        sys.exit(done.stdout[-2000:] + done.stderr)
    return done


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--builds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--runs", type=int, default=1)
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    runs: dict[int, list[command.Measured]] = {1: [], 2: []}
    with tempfile.TemporaryDirectory() as temporary:
        feedstock, channel = make_feedstock(Path(temporary), arguments.builds, arguments.seconds)
        for number in range(arguments.runs):
            for jobs, ended in runs.items():
                output = Path(temporary) / f"out-{jobs}-{number}"
                ended.append(run(feedstock, channel, output, jobs))
        nothing = run(feedstock, channel, output, 2).wall
    one, two = (min(each.wall for each in ended) for ended in runs.values())
    processor = min(each.seconds for each in runs[1])
    overhead, own = (total / arguments.builds - arguments.seconds for total in (one, processor))
    print(f"{arguments.builds} builds of {arguments.seconds:g} s of one core; {os.cpu_count()} cores, load {load:.1f}")
    print(f"--jobs 1: {one:.1f} s, {overhead:.2f} s for each build besides its own {arguments.seconds:g} s")
    print(f"  processor time: {own:.2f} s for each build besides its own")
    print(f"--jobs 2: {two:.1f} s, {one / two:.2f} times as fast")
    print(f"nothing to do: {nothing:.2f} s")


if __name__ == "__main__":
    main()
