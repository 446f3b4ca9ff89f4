"""Adds to coverage's data what the processes of a run have executed, as `measured_process` has each leave it.

python -m tests.support.measured_data FOLDER
"""

from __future__ import annotations

import marshal
import sys
from collections import defaultdict
from pathlib import Path

from coverage import CoverageData

#: Two numbers of lines in one: coverage's tracer in C keeps the step from one line to the next that way.
_LINE = (1 << 28) - 1
_NEGATIVE_FIRST, _NEGATIVE_SECOND = 1 << 56, 1 << 57


def add_executed(folder: Path) -> None:
    """Make one file of data from those that processes have left in a folder, and remove those.

    A process that was killed while it wrote has left nothing but a part, which is removed.
    """
    steps: dict[str, set[int | tuple[int, int]]] = defaultdict(set)
    for path in folder.glob("executed.*"):
        if path.suffix != ".part":
            for name, found in marshal.loads(path.read_bytes()).items():  # noqa: S302 - written by our own processes
                steps[name].update(found)
        path.unlink()
    data = CoverageData(str(folder / "data"), suffix="processes")
    data.add_arcs({str(Path(name).resolve()): [_step(each) for each in found] for name, found in steps.items()})
    data.write()
    data.close()


def _step(step: int | tuple[int, int]) -> tuple[int, int]:
    if isinstance(step, tuple):
        return step
    first, second = step & _LINE, step >> 28 & _LINE
    return -first if step & _NEGATIVE_FIRST else first, -second if step & _NEGATIVE_SECOND else second


if __name__ == "__main__":
    add_executed(Path(sys.argv[1]))
