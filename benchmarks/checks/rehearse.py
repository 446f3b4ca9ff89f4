"""Measure time and memory of a rehearsal of many large environments: `python -m benchmarks.checks.rehearse`.

Makes a channel of made-up packages (default 500,000 records), and outputs whose host environments hold some 200
packages each, all different. Then measures a separate process that uses this channel: wall time, processor time and
peak memory.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from feedstock_tools.check.rehearsal import RehearsalChannels, RehearsedRow, rehearse
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.model import RenderedOutput, UsedVariables
from feedstock_tools.recipe.packages import Package
from feedstock_tools.rerender.configuration import Configuration
from feedstock_tools.variants.model import VariantSpace

LINUX = Platform.parse("linux-64")
VERSIONS = 50
#: A package depends on a few earlier ones in its own layer of names, so that environments have similar sizes.
NEIGHBOURS = 3


def make_channel(folder: Path, records: int) -> None:
    """Write repodata of packages `p0`, `p1` … with fifty versions each, which depend on packages of lower numbers."""
    chance = random.Random(1)  # noqa: S311 - made-up data that are the same every time
    entries = {}
    for number in range(records // VERSIONS):
        for minor in range(VERSIONS):
            version = f"1.{minor}.0"
            needed = {number - chance.randint(1, 40) for _ in range(NEIGHBOURS)} if number % 1000 else set()
            depends = [
                f"p{other} >=1.{chance.randint(0, minor)}.0,<2.0a0"
                for other in sorted(needed)
                if other >= number - number % 1000
            ]
            entries[f"p{number}-{version}-h0_0.conda"] = {
                "name": f"p{number}",
                "version": version,
                "build": "h0_0",
                "build_number": 0,
                "subdir": "linux-64",
                "depends": depends,
                "timestamp": 1_700_000_000_000 + minor,
                "size": 100_000,
                "sha256": f"{chance.getrandbits(256):064x}",
                "run_exports": {},
            }
    for subdir, packages in (("linux-64", entries), ("noarch", {})):
        (folder / subdir).mkdir(parents=True, exist_ok=True)
        document = {"info": {"subdir": subdir}, "packages": {}, "packages.conda": packages, "repodata_version": 1}
        (folder / subdir / "repodata.json").write_text(json.dumps(document))


def measure(folder: Path, environments: int, names: int) -> None:
    """Solve the environments and print the measurements."""
    configuration = Configuration("linux_64_", LINUX, {"target_platform": ("linux-64",)})
    rows = []
    used = UsedVariables(*[frozenset[str]()] * 4)
    for number in range(environments):
        layer = (number % (names // 1000)) * 1000
        top = layer + 240 + number // (names // 1000)
        output = RenderedOutput(f"output-{number}", "1.0", 0, "h0_0", None, {}, {}, VariantSpace(()), used)
        package = Package(LINUX, output, host=(f"p{top}", f"p{top - 1}", f"p{top - 7}"))
        rows.append(RehearsedRow(f"linux_64_row{number}", configuration, LINUX, [package]))
    started = time.perf_counter()
    found = rehearse(rows, RehearsalChannels({"linux-64": [folder.as_uri()]}))
    wall = time.perf_counter() - started
    used = resource.getrusage(resource.RUSAGE_SELF)
    sizes = [one.packages for one in found.environments if one.kind == "host"]
    print(f"{len(sizes)} host environments of {min(sizes)} to {max(sizes)} packages, all solve: {found.holds}")
    print(f"{wall:.1f} s, {used.ru_utime + used.ru_stime:.1f} s of processor time, {used.ru_maxrss / 1024:.0f} MiB")


def main() -> None:
    """Make the channel if it is missing, and measure in a new process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--environments", type=int, default=200)
    parser.add_argument("--channel", type=Path, help="Keep the channel in this folder; default: a temporary one.")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        measure(given.channel, given.environments, given.records // VERSIONS)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = (given.channel or Path(temporary)).resolve()
        if not (folder / "noarch" / "repodata.json").is_file():
            make_channel(folder, given.records)
        size = (folder / "linux-64" / "repodata.json").stat().st_size
        print(f"{given.records} records, {size / 1e6:.0f} MB of repodata")
        options = [f"--records={given.records}", f"--environments={given.environments}", f"--channel={folder}"]
        subprocess.run([sys.executable, __file__, "--measure", *options], check=True)


if __name__ == "__main__":
    main()
