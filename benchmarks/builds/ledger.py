"""Measure what a ledger of years costs: `status`, `plan`, `build --list`, and a `build` with nothing to do.

Makes the tiny feedstock of the tests in a temporary folder, builds all of it, and puts tens of thousands of earlier
builds, with packages, environments and tests, before them. Prints the time, the processor time and the peak memory of
each command, the least of some runs, with the small ledger and with the large one.

    python -m benchmarks.builds.ledger [--records 50000] [--runs 3]
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import sys
import tempfile
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.support import command
from tests.support.channels import make_tiny_channel
from tests.support.feedstocks import TinyFeedstock, copy_of_tiny

#: Shift of the numbers of the real builds, so that the earlier ones come before them.
_LATER = 10_000_000
_COMMANDS = (("status",), ("plan",), ("build", "--list"), ("build", "--all"), ("build", "--all", "--jobs", "2"))


def fill(path: Path, records: int, solved_packages: int = 40) -> None:
    """Put earlier builds into a ledger: copies of its own, of other inputs, one in ten failed.

    Args:
        solved_packages: the number of packages in the environment of each.
    """
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA defer_foreign_keys = ON")
        for table, column in (("builds", "id"), ("packages", "build"), ("environments", "build")):
            database.execute(f"UPDATE {table} SET {column} = {column} + {_LATER}")  # noqa: S608
        columns = [row[1] for row in database.execute("PRAGMA table_info(builds)")]
        builds = [dict(zip(columns, row, strict=True)) for row in database.execute("SELECT * FROM builds ORDER BY id")]
        packages = {row[0]: row[1:] for row in database.execute("SELECT * FROM packages ORDER BY build")}
        place = {"version": "1.0", "build": "0", "subdir": "linux-64", "channel": "conda-forge", "sha256": "0" * 64}
        solved = json.dumps([{"name": f"package-{number}", **place} for number in range(solved_packages)])
        begun = datetime(2020, 1, 1, tzinfo=UTC)
        earlier, theirs, environments, tests = [], [], [], []
        for number in range(1, records + 1):
            build = builds[number % len(builds)]
            moment = begun + timedelta(minutes=number)
            started, identity = moment.isoformat(), f"{number:064x}"
            failed = number % 10 == 0
            own = {
                "id": number,
                "identity": identity,
                "result": "failed" if failed else "done",
                "reason": "the script ended with status 1" if failed else "",
                "started": started,
                "ended": (moment + timedelta(seconds=30)).isoformat(),
            }
            earlier.append(tuple((build | own).values()))
            if not failed:
                package = packages[build["id"]]
                theirs.append((number, package[0], package[1], package[2], identity, package[4]))
                environments.append((number, solved))
                tests.append((identity, package[0], package[1], started))
        marks = ", ".join("?" * len(columns))
        database.executemany(f"INSERT INTO builds VALUES ({marks})", earlier)  # noqa: S608
        database.executemany("INSERT INTO packages VALUES (?, ?, ?, ?, ?, ?)", theirs)
        database.executemany("INSERT INTO environments VALUES (?, 'host', ?)", environments)
        database.executemany(
            "INSERT INTO tests (sha256, channel, file, started, result, log, machine)"
            " VALUES (?, ?, ?, ?, 'passed', 'logs/test.log', 'here')",
            tests,
        )


def least(words: tuple[str, ...], tiny: TinyFeedstock, runs: int) -> str:
    """The least time and processor time of some runs of a command, and the greatest memory."""
    ended = [command.measured(command.tool(*words, "--channel", str(tiny.channel)), tiny.folder) for _ in range(runs)]
    if any(each.returncode for each in ended):
        sys.exit(f"{' '.join(words)}: {ended[0].stderr}")
    times = f"{min(each.wall for each in ended):6.2f} s, {min(each.seconds for each in ended):6.2f} s of processor time"
    return f"  {' '.join(words):22} {times}, {max(each.memory for each in ended) >> 20} MiB"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        os.environ["XDG_CACHE_HOME"] = str(place / "cache")
        make_tiny_channel(place / "channel")
        tiny = TinyFeedstock(copy_of_tiny(place / "tiny-feedstock"), place / "channel")
        run = tiny.build("--all")
        if run.returncode:
            sys.exit(run.stdout + run.stderr)
        for records in (0, arguments.records):
            if records:
                fill(tiny.artifacts / "ledger.sqlite", records)
            size = (tiny.artifacts / "ledger.sqlite").stat().st_size >> 20
            print(f"{records} earlier builds, {size} MiB; load {os.getloadavg()[0]:.1f}")
            for words in _COMMANDS:
                print(least(words, tiny, arguments.runs))
        (tiny.folder / "recipe" / "build-library.sh").open("a").write("# changed\n")
        print("after a change of all inputs", least(("plan",), tiny, 1), sep="\n")


if __name__ == "__main__":
    main()
