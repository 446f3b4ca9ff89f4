"""Garbage that is collected rarely, in this process and in every Python that the tests start from this environment.

By default, collecting takes a tenth of the time of commands, and a quarter of the time in which Ansible starts.
"""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

__all__ = ["RARELY", "collect_rarely"]

#: Thresholds of the garbage collector for a process that keeps little.
RARELY = (50_000, 20, 20)
#: Set while a run of the tests has it so: runs within this one leave the file alone.
_RUNS = "FEEDSTOCK_TOOLS_TESTS_RARELY"
#: It does nothing if a killed run left it behind.
_PROGRAM = """\
import gc, os
try:
    os.kill({pid}, 0)
except OSError:
    pass
else:
    gc.set_threshold(*{thresholds})
"""


def collect_rarely(packages: Path | None = None) -> Callable[[], None]:
    """Have it so in new processes from now on, by a file in this Python's site-packages; returns what ends that.

    Args:
        packages: its site-packages, where None.
    """
    if _RUNS in os.environ:
        return lambda: None
    os.environ[_RUNS] = "1"
    starter = (packages or Path(sysconfig.get_path("purelib"))) / "a1_rarely_tests.pth"
    program = _PROGRAM.format(pid=os.getpid(), thresholds=RARELY)
    with suppress(OSError):  # an environment of somebody else's
        starter.write_text(f"import sys; exec({program!r}, {{}})\n", encoding="utf-8")

    def end() -> None:
        os.environ.pop(_RUNS, None)
        with suppress(OSError):
            starter.unlink()

    return end
