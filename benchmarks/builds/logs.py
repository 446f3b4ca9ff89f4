"""Measure what the log of a build costs: a script that prints gigabytes, against the same script printing to a file.

    python -m benchmarks.builds.logs [--gigabytes 2] [--repeat 3]

A recipe with nothing but that script is built, alternately with its output into a file, through `cat` into a file, and
into the log. The script measures itself. `cat` shows what any reader costs. The least time of each counts, so that
other work on the machine disturbs the figures little. `cost` is the processor time of feedstock-tools alone for each
megabyte: a core that the script leaves free keeps up with its inverse. The memory is the peak of feedstock-tools and
of each process that it starts.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from feedstock_tools.channel.folder import index_channel
from feedstock_tools.platforms import Platform

ROOT = Path(__file__).resolve().parents[2]
#: What is printed → the command that prints some bytes of it: lines of a compiler, short lines, one line, no text.
#: The numbers come from one process, which leaves a second core to the log, and through another, which does not.
KINDS = {
    "lines of a compiler": "yes '[ 45%] Building CXX object src/CMakeFiles/demo.dir/kernels.cpp.o' | head -c {size}",
    "numbers": "seq 100000001 $(( 100000000 + {size} / 10 ))",
    "numbers, two cores": "seq 1000000000 | head -c {size}",
    "one line": "head -c {size} /dev/zero | tr '\\0' x",
    "50 MB a second": (
        "for n in $(seq $(( {size} / 5000000 ))); do"
        " yes 'the same line again and again' | head -c 5000000; sleep 0.1; done"
    ),
    "random bytes": "head -c {size} /dev/urandom",
}
#: Where the output goes → what follows the command.
WAYS = {"file": "> {} 2>&1", "cat": "2>&1 | cat > {}", "log": ""}
RECIPE = "package: {name: flood, version: '1'}\nbuild: {number: 0, script: build.sh}\n"
SCRIPT = """\
set +x -o pipefail
began=$(date +%s%N)
{{ {command} || true; }} {target}
ended=$(date +%s%N)
echo $(( ended - began )) > {times}
times >> {times}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--limit", default="1 GiB", help="the log limit of the builds")
    parser.add_argument("--kind", choices=KINDS, action="append", help="what is printed (default: all)")
    asked = parser.parse_args()
    size = int(asked.gigabytes * 1e9)
    print(f"{'printed':20} {'to a file':>10} {'to cat':>10} {'to the log':>10} {'ratio':>6} {'cost':>11} {'log':>9}")
    for kind, command in ((kind, KINDS[kind]) for kind in asked.kind or KINDS):
        seconds: dict[str, list[float]] = {way: [] for way in WAYS}
        kept, costs = 0, []
        for _ in range(asked.repeat):
            for way in WAYS:
                with tempfile.TemporaryDirectory() as name:
                    taken, cost, kept = built(Path(name), command.format(size=size), asked.limit, way)
                    seconds[way].append(taken)
                    costs += [cost / size * 1e9] if way == "log" else []
        least = {way: min(times) for way, times in seconds.items()}
        rates = " ".join(f"{size / each / 1e6:5.0f} MB/s" for each in least.values())
        cells = f"{rates} {least['log'] / least['file']:6.2f} {min(costs):5.1f} ms/MB {kept >> 20:5} MiB"
        print(f"{kind:20} {cells}", flush=True)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
    print(f"peak memory of the largest process: {peak} MiB")


def built(folder: Path, command: str, limit: str, way: str) -> tuple[float, float, int]:
    """Build once; return the seconds that the script measured, the processor time of the rest, and the log's bytes."""
    feedstock, platform = folder / "flood-feedstock", Platform.here()
    (feedstock / "recipe").mkdir(parents=True)
    (feedstock / ".ci_support").mkdir()
    (feedstock / ".ci_support" / f"{platform.name}_.yaml").write_text(f"target_platform:\n- {platform.subdir}\n")
    (feedstock / "recipe" / "recipe.yaml").write_text(RECIPE)
    times = folder / "times"
    target = WAYS[way].format(folder / "printed")
    (feedstock / "recipe" / "build.sh").write_text(SCRIPT.format(command=command, target=target, times=times))
    index_channel(folder / "channel")
    before = processor_seconds()
    run(["build", "--channel", str(folder / "channel"), "--log-limit", limit], feedstock, {"TMPDIR": str(folder)})
    (log,) = (feedstock / "build_artifacts" / "logs").glob("*.log")
    taken, *own = times.read_text().splitlines()
    return (
        int(taken) / 1e9,
        processor_seconds() - before - sum(map(seconds_of, " ".join(own).split())),
        log.stat().st_size,
    )


def processor_seconds() -> float:
    """The processor time of all ended processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def seconds_of(text: str) -> float:
    """Bash's `1m2.345s` in seconds."""
    minutes, _, seconds = text.rstrip("s").partition("m")
    return int(minutes) * 60 + float(seconds)


def run(arguments: list[str], folder: Path, more: Mapping[str, str]) -> None:
    """Run feedstock-tools, whose output nobody needs."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **more}
    command = [sys.executable, "-m", "feedstock_tools", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    if done.returncode:
        sys.exit(f"the build failed:\n{done.stderr}")


if __name__ == "__main__":
    main()
