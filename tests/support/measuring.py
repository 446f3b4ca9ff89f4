"""Coverage of the processes that builds run in: they get an environment of their own, and nothing of ours.

`coverage run -m pytest` measures a child that inherits COVERAGE_PROCESS_CONFIG. The workers of a build do not, so for
the time of such a run a file in this Python's site-packages starts the measuring of each process of it.
"""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

__all__ = ["begin_measuring", "end_measuring"]

_CONFIG = "COVERAGE_PROCESS_CONFIG"
_STARTER = Path(sysconfig.get_path("purelib"), "zz_measured_tests.pth")
#: One line, as such files want it; a file that a killed run left behind does nothing.
_PROGRAM = """\
import os, sys
if not os.getenv("{name}"):
    try:
        os.kill({pid}, 0)
    except OSError:
        pass
    else:
        import coverage
        os.environ["{name}"] = {config!r}
        coverage.process_startup()
        os.environ.pop("{name}", None)
"""


def begin_measuring() -> bool:
    """Measure every process of this Python from now on, if this one is measured; whether it is."""
    config = os.environ.get(_CONFIG)
    if config is None:
        return False
    program = _PROGRAM.format(name=_CONFIG, pid=os.getpid(), config=config)
    _STARTER.write_text(f"import sys; exec({program!r})\n", encoding="utf-8")
    return True


def end_measuring() -> None:
    """Leave this Python as it was."""
    _STARTER.unlink(missing_ok=True)
