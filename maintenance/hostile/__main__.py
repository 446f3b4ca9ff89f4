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
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from feedstock_tools.bounds.limits import READING, BoundError
from feedstock_tools.bounds.supervision import run_bounded
from feedstock_tools.errors import FeedstockError
from maintenance.hostile.cases import KINDS

#: Of processor time for one reader, of waiting for one, and of memory.
SECONDS, WAITING, MEMORY = 5.0, 60.0, 600 * 1024 * 1024
#: Cases of one process, all of one kind: the system reports the largest memory of its children as one figure.
CASES_A_PROCESS = 20
#: The end of a case that does not hold.
_FIND = "find"


class Result(NamedTuple):
    """How a reader of a case ended, its processor and wall time in seconds, and the largest memory so far in MiB."""

    case: int
    reader: str
    end: str
    processor: float
    wall: float
    mebibytes: int = 0


def summary(results: Sequence[Result]) -> str:
    """How readers ended, the slowest one, and the largest memory."""
    ends = ", ".join(f"{number} {end}" for end, number in sorted(Counter(each.end for each in results).items()))
    slowest = max(results, key=lambda each: each.processor)
    times = f"{slowest.processor:.1f} s ({slowest.reader} of case {slowest.case})"
    wall, memory = max(each.wall for each in results), max(each.mebibytes for each in results)
    return f"{len({each.case for each in results})} cases, {ends}; {times}, wall {wall:.1f} s; {memory} MiB"


class _HangsError(BaseException):
    """A reader waits for something; no reader can catch this by mistake."""


def _hangs(_signal: int, _frame: FrameType | None) -> None:
    raise _HangsError


def one_case(number: int, seed: int, kind: str, scratch: Path) -> tuple[list[str], list[Result]]:
    """Make a case and try its readers.

    Returns:
        What did not hold, and what the readers took.
    """
    signal.signal(signal.SIGALRM, _hangs)
    chance = random.Random(f"{seed}:{number}")  # noqa: S311 - repeatable on purpose
    shutil.rmtree(scratch, ignore_errors=True)
    inside = scratch / "inside"
    inside.mkdir(parents=True)
    (scratch / "outside").mkdir()
    before = _outside(scratch)
    results, wrong = [], []
    for name, reader in KINDS[kind](inside, chance).items():
        used, began = _seconds(), time.monotonic()
        end, said = _ended(reader)
        results.append(Result(number, name, end, _seconds() - used, time.monotonic() - began))
        wrong += [f"{name}: {said}"] if said else []
        if results[-1].processor > SECONDS:
            wrong.append(f"{name}: takes {results[-1].processor:.1f} s")
        if _outside(scratch) != before:
            wrong.append(f"{name}: writes outside, {sorted(_outside(scratch) - before)[:3]}")
            before = _outside(scratch)
    return wrong, results


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
    """Some cases in this process; prints a line for each that does not hold, and writes what all took to a file."""
    kind = args.kind or kind_of(numbers[0])
    scratch, memory = folder / "work" / "case", 0
    with (folder / "results").open("w") as file:
        for number in numbers:
            if time.monotonic() > end:
                break
            (folder / "current").write_text(str(number))
            wrong, results = one_case(number, args.seed, kind, scratch)
            before, memory = memory, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
            if memory << 20 > MEMORY >= before << 20:
                wrong.append(f"needs {memory} MiB")
            if wrong:
                results.append(Result(number, "all", _FIND, 0.0, 0.0))
                place = args.keep / f"{args.seed}-{number}"
                shutil.copytree(scratch, place, dirs_exist_ok=True, symlinks=True, ignore_dangling_symlinks=True)
                (place / "what").write_text("\n".join(wrong))
                print(f"case {number}, {kind}: {wrong[0].strip().splitlines()[-1][:200]}", flush=True)
            file.writelines(f"{json.dumps(each._replace(mebibytes=memory))}\n" for each in results)


def main() -> int:
    """Run until the time is over; return 1 if any case was kept, or ended the process."""
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
        if args.case is None:
            return _run(args, folder)
        wrong, results = one_case(args.case, args.seed, args.kind or kind_of(args.case), folder / "work" / "case")
        print(*wrong, summary(results), sep="\n")
        return 0


def _run(args: argparse.Namespace, folder: Path) -> int:
    """All cases, some in each process; prints what those of each kind took."""
    started = time.monotonic()
    end = started + args.minutes * 60
    results: dict[str, list[Result]] = {}
    broken = 0
    for number in count(0, CASES_A_PROCESS):
        if time.monotonic() > end:
            break
        child = os.fork()
        if child == 0:
            status = 1
            try:
                _cases(range(number, number + CASES_A_PROCESS), args, folder, end)
                status = 0
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        if status:
            broken += 1
            at = (folder / "current").read_text()
            print(f"case {at}: ended the generator's process, {os.waitstatus_to_exitcode(status)}", flush=True)
        kind = args.kind or kind_of(number)
        lines = (folder / "results").read_text().splitlines()
        results.setdefault(kind, []).extend(Result(*json.loads(line)) for line in lines)
        print(f"{time.monotonic() - started:.0f} s, {kind}: {summary(results[kind])}", flush=True)
    for kind, found in results.items():
        print(f"{kind}: {summary(found)}")
    return int(broken > 0 or any(each.end == _FIND for found in results.values() for each in found))


if __name__ == "__main__":
    sys.exit(main())
