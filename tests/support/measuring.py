"""Coverage of child processes, of those too that get an environment of their own, as the workers of builds do.

`coverage run -m pytest` measures a child that inherits COVERAGE_PROCESS_CONFIG. For the others, a file in this Python's
site-packages starts the measuring of each process while such a run lasts.
"""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

from tests.support.paths import ROOT

__all__ = ["begin_measuring", "end_measuring"]

_CONFIG = "COVERAGE_PROCESS_CONFIG"
_STARTER = Path(sysconfig.get_path("purelib"), "zz_measured_tests.pth")
#: Such a file takes one line, and does nothing if a killed run left it behind. In a forked process, coverage's own
#: patch of `os._exit` would save what the parent had measured as well, once for each generation.
_PROGRAM = """\
import os
def start():
    import coverage
    if not os.getenv("{name}"):
        os.environ["{name}"] = {config!r}
        coverage.process_startup()
        del os.environ["{name}"]
    system_exit = os._exit
    def measured_exit(status):
        measured = coverage.Coverage.current()
        if measured is not None:
            measured.stop()
            measured.save()
        system_exit(status)
    os._exit = measured_exit
try:
    os.kill({pid}, 0)
except OSError:
    pass
else:
    start()
"""


def begin_measuring() -> bool:
    """Measure every process of this Python from now on if this one is measured; returns whether it is."""
    config = os.environ.get(_CONFIG)
    if config is None:
        return False
    os.environ[_CONFIG] = config = _of_children(config)
    program = _PROGRAM.format(name=_CONFIG, pid=os.getpid(), config=config)
    _STARTER.write_text(f"import sys; exec({program!r}, {{}})\n", encoding="utf-8")
    return True


def _of_children(config: str) -> str:
    """Coverage's configuration for children.

    They list only the files that they run, which takes half the time at the end of each. This process lists all files.
    """
    from coverage.config import CoverageConfig

    settings = CoverageConfig.deserialize(config)
    settings.source = None
    settings.run_include = [str(ROOT / "feedstock_tools" / "*")]
    settings.patch = [name for name in settings.patch if name != "_exit"]
    return settings.serialize()


def end_measuring() -> None:
    """Leave this Python as it was."""
    _STARTER.unlink(missing_ok=True)
