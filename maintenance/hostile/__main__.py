"""Feed hostile templates, YAML, archives, repodata and ledgers to their readers, and keep the cases that get through.

    python -m maintenance.hostile [--minutes 60] [--seed 1] [--keep FOLDER] [--kind KIND] [--case NUMBER]

A case is one feedstock, package or ledger, made at random from its number. Each reader works on it under the bounds of
a command, in a child process, and must succeed or raise an error of ours: without a traceback, within five seconds of
processor time and one to start (a step of four that the system measures in whole seconds), within 600 MB, and without
a file outside of the case's folder. A case that does not hold is kept as a folder with a file `what`; `--case` repeats
one. Run it in the root of the repository.
"""

from __future__ import annotations

import argparse
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
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType

from feedstock_tools.bounds.limits import READING, BoundError
from feedstock_tools.bounds.supervision import run_bounded
from feedstock_tools.errors import FeedstockError
from maintenance.hostile.readers import KINDS, make_case, prepare

#: Of processor time for one reader, of waiting for one, and of memory.
SECONDS, WAITING, MEMORY = 6.0, 60.0, 600 * 1024 * 1024
#: Cases of one process, whose children's largest memory the system reports as one figure.
CASES_A_PROCESS = 50


class _HangsError(BaseException):
    """A reader waits for something; no reader can catch this by mistake."""


def _hangs(_signal: int, _frame: FrameType | None) -> None:
    raise _HangsError


def one_case(number: int, seed: int, kind: str | None, scratch: Path) -> tuple[str, list[str], Counter[str]]:
    """Make a case and try its readers.

    Returns:
        Its kind, what did not hold, and how often its readers succeeded, refused, and met a bound of the system.
    """
    chance = random.Random(f"{seed}:{number}")  # noqa: S311 - repeatable on purpose
    kind = kind or chance.choice([*KINDS])
    shutil.rmtree(scratch, ignore_errors=True)
    inside = scratch / "inside"
    inside.mkdir(parents=True)
    (scratch / "outside").mkdir()
    before = _outside(scratch)
    ends: Counter[str] = Counter()
    wrong = []
    for name, reader in make_case(kind, inside, chance).items():
        used = _seconds()
        end, said = _ended(reader)
        ends[end] += 1
        wrong += [f"{name}: {said}"] if said else []
        if _seconds() - used > SECONDS:
            wrong.append(f"{name}: takes {_seconds() - used:.1f} s")
        if _outside(scratch) != before:
            wrong.append(f"{name}: writes outside, {sorted(_outside(scratch) - before)[:3]}")
            before = _outside(scratch)
    return kind, wrong, ends


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


def _cases(numbers: Iterator[int], args: argparse.Namespace, folder: Path, end: float) -> None:
    """Some cases in this process; writes a line for each that does not hold, and the counts at its end."""
    signal.signal(signal.SIGALRM, _hangs)
    scratch = folder / "work" / "case"
    counts: Counter[str] = Counter()
    peak = 0
    for number in numbers:
        if time.monotonic() > end:
            break
        (folder / "current").write_text(str(number))
        kind, wrong, ends = one_case(number, args.seed, args.kind, scratch)
        counts.update({"cases": 1, kind: 1, **ends})
        now = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        if now > max(MEMORY, peak):
            wrong.append(f"needs {now >> 20} MiB")
        peak = max(peak, now)
        if wrong:
            _keep(scratch, args, number, kind, wrong)
    (folder / "counts").write_text(json.dumps([counts, peak >> 20]))


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
    prepare()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "work").mkdir()
        if args.case is not None:
            signal.signal(signal.SIGALRM, _hangs)
            print(*one_case(args.case, args.seed, args.kind, folder / "work" / "case"), sep="\n")
            return 0
        total, peak = _run(args, folder)
    print(", ".join(f"{key} {count}" for key, count in sorted(total.items())), f"peak {peak} MiB", sep="; ")
    return int(args.keep.is_dir())


def _run(args: argparse.Namespace, folder: Path) -> tuple[Counter[str], int]:
    """All cases, some in each process; their counts, and the largest memory in MiB."""
    started, number, peak = time.monotonic(), 0, 0
    end = started + args.minutes * 60
    total: Counter[str] = Counter()
    while time.monotonic() < end:
        child = os.fork()
        if child == 0:
            _cases(iter(range(number, number + CASES_A_PROCESS)), args, folder, end)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        number += CASES_A_PROCESS
        if status:
            number = int((folder / "current").read_text()) + 1
            print(f"case {number - 1}: ended the generator's process, {os.waitstatus_to_exitcode(status)}", flush=True)
            continue
        counts, largest = json.loads((folder / "counts").read_text())
        total.update(counts)
        peak = max(peak, largest)
        print(f"{time.monotonic() - started:.0f} s: {total['cases']} cases, peak {peak} MiB", flush=True)
    return total, peak


if __name__ == "__main__":
    sys.exit(main())
