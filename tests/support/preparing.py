"""Workers of pytest-xdist as forks of a process that has imported the tests, which takes each worker seconds.

    python -m tests.support.preparing LIFE LISTENING [pytest arguments]

The other end of LIFE closes at the end of who started it; at LISTENING, `prepared_worker.py` asks for a worker.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
import types
import warnings
from pathlib import Path
from typing import NoReturn

import pytest
from _pytest.config import _prepareconfig
from _pytest.pathlib import import_path

from tests.support.forking import opened, request_in_a_fork
from tests.support.huge_pages import collapse_memory


def _import_tests(arguments: list[str]) -> None:
    """Import the tests that pytest collects with these arguments, and do what collecting costs most.

    A worker reports those that cannot be imported.
    """
    config = _prepareconfig([*arguments, "--capture=no"])
    for path in _files(config):
        known = set(sys.modules)
        try:
            with warnings.catch_warnings(action="error"):
                import_path(path, mode="importlib", root=config.rootpath, consider_namespace_packages=False)
        except BaseException:  # a skip, too
            for name in set(sys.modules) - known:
                if getattr(sys.modules[name], "__file__", None) == str(path):
                    del sys.modules[name]  # pytest leaves what it has of the module there
    if "hypothesis" in sys.modules:  # which parses all modules of this checkout after collecting, for their constants
        from hypothesis.internal.conjecture.providers import _get_local_constants

        with warnings.catch_warnings(action="ignore"):  # of taking time so early
            _get_local_constants()


def _files(config: pytest.Config) -> list[Path]:
    given = [Path(config.invocation_params.dir, argument.partition("::")[0]) for argument in config.args]
    found = [sorted(path.rglob("test_*.py")) if path.is_dir() else [path] for path in given]
    return [path for paths in found for path in paths if path.suffix == ".py" and path.is_file()]


def _work() -> NoReturn:
    """Be the Python that pytest-xdist has started: run the statement that it sends."""
    import posix  # whose _exit nothing has replaced

    sys.stdin, sys.stdout = opened(sys.stdin, "r"), opened(sys.stdout, "w")
    sys.stderr = opened(sys.stderr, "w", buffering=1)
    sys.argv = ["-c"]
    sys.modules["__main__"] = main = types.ModuleType("__main__")
    exec(eval(sys.stdin.readline()), vars(main))  # noqa: S102, S307 - the beginning of execnet
    # What Python does at its end, but for giving back the memory of each object, which are many.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    posix._exit(0)


if __name__ == "__main__":
    gc.disable()
    _import_tests(sys.argv[3:])
    gc.freeze()
    collapse_memory()
    request = request_in_a_fork(int(sys.argv[1]), int(sys.argv[2]))
    if request is not None:
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["variables"])
        _work()
