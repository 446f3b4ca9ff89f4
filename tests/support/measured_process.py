"""What each Python of a measured run does at its start: a file in its site-packages has this text and calls `begin`.

In a fork, coverage would begin anew, and at the end of each process it would write a database: 30 ms of processor time
for each of thousands of commands. Here, a fork goes on with what it has inherited, and a process leaves what it has
executed as a file that `tests.support.measured_data` adds to the database of the run.
"""

import marshal
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn


def begin(run: int, config: str, variable: str, not_here: str, others: tuple[str, ...]) -> None:
    """Measure this process.

    Args:
        run: the process of the run of tests; nothing is measured if a killed one left the file behind.
        config: coverage's, for all processes.
        variable: has that configuration in processes that inherit their environment.
        not_here: a variable of processes that are not measured.
        others: beginnings of the names of programs that are not measured.
    """
    try:
        os.kill(run, 0)
    except OSError:
        return
    if any(os.path.basename(word).startswith(others) for word in sys.orig_argv[1:4]):  # noqa: PTH119
        os.environ.pop(variable, None)  # for coverage's own file
    elif not os.getenv(not_here):
        _measure(config, variable)


def _measure(config: str, variable: str) -> None:
    import coverage
    import coverage.collector

    # Coverage notes for its own debugging which lines start to measure, and visits all imported modules for that.
    coverage.collector.short_stack = lambda *_: ""  # type: ignore[attr-defined]
    inherited = variable in os.environ
    os.environ.setdefault(variable, config)
    measured: Any = coverage.process_startup()
    if not inherited:
        del os.environ[variable]
    if measured is None:  # it has begun: some Pythons read the file twice
        return
    collected = measured._collector.data
    folder = os.path.dirname(measured.config.data_file)  # noqa: PTH120

    def save() -> None:
        path = f"{folder}/executed.{os.getpid()}.{os.urandom(6).hex()}"
        with suppress(OSError):  # a test may have limited what this process can open or write
            with open(f"{path}.part", "wb") as file:  # noqa: PTH123
                marshal.dump({name: tuple(found.copy()) for name, found in collected.copy().items() if found}, file)
            os.rename(f"{path}.part", path)  # noqa: PTH104

    def begin_in_fork() -> None:
        for found in collected.values():
            found.clear()

    def saved_before(execute: Callable[..., NoReturn]) -> Callable[..., NoReturn]:
        def saved(*arguments: Any) -> NoReturn:
            if coverage.Coverage.current() is measured:
                save()
            execute(*arguments)

        return saved

    measured.save = save  # as coverage calls it at the end of a process, and at SIGTERM
    os.register_at_fork(after_in_child=begin_in_fork)
    os._exit, os.execv, os.execve = saved_before(os._exit), saved_before(os.execv), saved_before(os.execve)
