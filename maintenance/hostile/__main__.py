"""Feed hostile and damaged files to their readers, and keep the cases that get through: templates, YAML, feedstocks
with random changes, archives, repodata, ledgers.

    python -m maintenance.hostile [--minutes 60] [--seed 1] [--keep FOLDER] [--kind KIND] [--case NUMBER]

A case is one feedstock, package or ledger, made at random from its number. Each reader works on it under the bounds of
a command, in a child process, and must succeed or raise an error of ours: without a traceback, within five seconds of
processor time and 600 MB, and without a file outside of the case's folder. A case that does not hold is kept as a
folder with a file `what`; `--case` repeats one. At the end a table shows, for each kind, how its readers ended, the
most processor time and wall time of a reader, and the largest memory. Run it in the root of the repository.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType

from feedstock_tools.bounds.limits import READING, BoundError
from feedstock_tools.bounds.supervision import run_bounded
from feedstock_tools.errors import FeedstockError
from maintenance.hostile.cases import KINDS, make_case

#: Of processor time for one reader, of waiting for one, and of memory.
SECONDS, WAITING, MEMORY = 5.0, 60.0, 600 * 1024 * 1024
#: Cases of one process, all of one kind: the system reports the largest memory of its children as one figure.
CASES_A_PROCESS = 20


@dataclass(slots=True)
class Tally:
    """What the cases of a kind took: how their readers ended, the slowest one in seconds, and the largest memory."""

    cases: int = 0
    finds: int = 0
    ends: dict[str, int] = field(default_factory=dict)
    processor: float = 0.0
    wall: float = 0.0
    slowest: str = ""
    mebibytes: int = 0

    def add(self, other: Tally) -> None:
        """Take over what other cases took."""
        if other.processor > self.processor:
            self.processor, self.slowest = other.processor, other.slowest
        self.cases, self.finds = self.cases + other.cases, self.finds + other.finds
        self.ends = dict(Counter(self.ends) + Counter(other.ends))
        self.wall, self.mebibytes = max(self.wall, other.wall), max(self.mebibytes, other.mebibytes)

    def __str__(self) -> str:
        ends = ", ".join(f"{count} {end}" for end, count in sorted(self.ends.items()))
        times = f"{self.processor:.1f} s ({self.slowest}), wall {self.wall:.1f} s"
        return f"{self.cases} cases, {ends}; {times}; {self.mebibytes} MiB; {self.finds} finds"


class _HangsError(BaseException):
    """A reader waits for something; no reader can catch this by mistake."""


def _hangs(_signal: int, _frame: FrameType | None) -> None:
    raise _HangsError


def one_case(number: int, seed: int, kind: str, scratch: Path) -> tuple[list[str], Tally]:
    """Make a case and try its readers.

    Returns:
        What did not hold, and what the readers took.
    """
    chance = random.Random(f"{seed}:{number}")  # noqa: S311 - repeatable on purpose
    shutil.rmtree(scratch, ignore_errors=True)
    inside = scratch / "inside"
    inside.mkdir(parents=True)
    (scratch / "outside").mkdir()
    before = _outside(scratch)
    tally = Tally(cases=1)
    wrong = []
    for name, reader in make_case(kind, inside, chance).items():
        used, began = _seconds(), time.monotonic()
        end, said = _ended(reader)
        used, wall = _seconds() - used, time.monotonic() - began
        tally.add(Tally(ends={end: 1}, processor=used, wall=wall, slowest=f"{name} of case {number}"))
        wrong += [f"{name}: {said}"] if said else []
        if used > SECONDS:
            wrong.append(f"{name}: takes {used:.1f} s")
        if _outside(scratch) != before:
            wrong.append(f"{name}: writes outside, {sorted(_outside(scratch) - before)[:3]}")
            before = _outside(scratch)
    return wrong, tally


def kind_of(number: int) -> str:
    """The kind of a case: the same for all cases of a process."""
    return [*KINDS][number // CASES_A_PROCESS % len(KINDS)]


def _ended(reader: Callable[[], object]) -> tuple[str, str]:
    """How a reader ended, and what is wrong with that."""
    signal.setitimer(signal.ITIMER_REAL, WAITING)
    try:
        run_bounded(partial(_without_result, reader), READING)
    except BoundError:
        return "bound", ""
    except FeedstockError:
        return "refused", ""
    except _HangsError:
        return "hangs", f"waits for more than {WAITING:g} s"
    except BaseException:  # any exception that is not an error of ours
        return "fails", traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return "succeeds", ""


def _without_result(reader: Callable[[], object]) -> None:
    try:
        reader()
    except (FeedstockError, MemoryError):
        raise
    except Exception as error:  # with the traceback, which does not travel
        raise RuntimeError(traceback.format_exc()) from error


def _seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _outside(scratch: Path) -> set[str]:
    """The files in and around the scratch folder, without those of the case."""
    near = {str(path) for path in scratch.rglob("*") if "inside" not in path.relative_to(scratch).parts[:1]}
    return near | {str(path) for path in scratch.parent.iterdir()}


def _cases(numbers: range, args: argparse.Namespace, folder: Path, end: float) -> None:
    """Some cases in this process; writes a line for each that does not hold, and at its end what they took."""
    signal.signal(signal.SIGALRM, _hangs)
    scratch = folder / "work" / "case"
    total = Tally()
    kind = args.kind or kind_of(numbers[0])
    for number in numbers:
        if time.monotonic() > end:
            break
        (folder / "current").write_text(str(number))
        wrong, tally = one_case(number, args.seed, kind, scratch)
        tally.mebibytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
        if tally.mebibytes << 20 > MEMORY >= total.mebibytes << 20:
            wrong.append(f"needs {tally.mebibytes} MiB")
        tally.finds = bool(wrong)
        total.add(tally)
        if wrong:
            _keep(scratch, args, number, kind, wrong)
    (folder / "tally").write_text(json.dumps([kind, asdict(total)]))


def _keep(scratch: Path, args: argparse.Namespace, number: int, kind: str, wrong: list[str]) -> None:
    place = args.keep / f"{args.seed}-{number}"
    shutil.copytree(scratch, place, dirs_exist_ok=True, symlinks=True, ignore_dangling_symlinks=True)
    (place / "what").write_text("\n".join(wrong))
    print(f"case {number}, {kind}: {wrong[0].strip().splitlines()[-1][:200]}", flush=True)


def main() -> int:
    """Run until the time is over; return 1 if any case was kept."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "hostile-findings")
    parser.add_argument("--kind", choices=[*KINDS])
    parser.add_argument("--case", type=int, help="repeat this case alone")
    args = parser.parse_args()
    for engine in ("rattler", "rattler.package_streaming", "rattler.index", "rattler_build"):
        importlib.import_module(engine)  # which the forks of the readers then share
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "work").mkdir()
        if args.case is not None:
            signal.signal(signal.SIGALRM, _hangs)
            print(*one_case(args.case, args.seed, args.kind or kind_of(args.case), folder / "work" / "case"), sep="\n")
            return 0
        tallies = _run(args, folder)
    for kind, tally in tallies.items():
        print(f"{kind}: {tally}")
    return int(any(tally.finds for tally in tallies.values()))


def _run(args: argparse.Namespace, folder: Path) -> dict[str, Tally]:
    """All cases, some in each process; what those of each kind took."""
    started, number = time.monotonic(), 0
    end = started + args.minutes * 60
    tallies = {kind: Tally() for kind in KINDS}
    while time.monotonic() < end:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                _cases(range(number, number + CASES_A_PROCESS), args, folder, end)
                status = 0
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        number += CASES_A_PROCESS
        if status:
            at = (folder / "current").read_text()
            print(f"case {at}: ended the generator's process, {os.waitstatus_to_exitcode(status)}", flush=True)
            tallies[args.kind or kind_of(int(at))].add(Tally(cases=1, finds=1))
            continue
        kind, values = json.loads((folder / "tally").read_text())
        tally = Tally(**values)
        tallies[kind].add(tally)
        print(f"{time.monotonic() - started:.0f} s, {kind}: {tally}", flush=True)
    return tallies


if __name__ == "__main__":
    sys.exit(main())
