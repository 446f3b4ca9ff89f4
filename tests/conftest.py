"""Fixtures of all tests: a cache of their own, and the tiny feedstock with nothing built and with one row built."""

from __future__ import annotations

import gc
import itertools
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from pytest_rerunfailures import ClientStatusDB, StatusDB

from tests.support.channels import make_tiny_channel
from tests.support.collected import COLLECTED
from tests.support.compilers import c_compiler_in, lend_stand_in, share_stand_in
from tests.support.compiling import compile_modules
from tests.support.feedstocks import GPU, TinyFeedstock, copy_of_tiny
from tests.support.in_memory import folder_in_memory
from tests.support.limits import commands_limited, limited
from tests.support.measuring import Measuring, begin_measuring, end_measuring, measured_here
from tests.support.once import made_once, of_this_run
from tests.support.order import dealt
from tests.support.passing import RECORD, Passing
from tests.support.paths import ROOT
from tests.support.warm import NEW_WORKERS, RARELY, Server, python_of_workers, share, start_server

# How long an example takes depends on what else the machine does.
settings.register_profile("patient", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

#: The path of the socket at which workers have commands forked.
_COMMANDS = pytest.StashKey[str]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--fast` for developers, and `--held` and `--record` for continuous integration."""
    parser.addoption("--fast", action="store_true", help="leave out the tests that are marked slow")
    parser.addoption("--held", action="store_true", help="fail where fewer pass than tests/passing.toml says")
    parser.addoption("--record", action="store_true", help="write tests/passing.toml")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Note the collected files, leave out tests that are marked slow under `--fast`, and order the rest for workers."""
    files = {item.path for item in items}
    config.stash[COLLECTED] = {path.relative_to(ROOT).as_posix() for path in files if path.is_relative_to(ROOT)}
    if config.getoption("fast"):
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("slow")])
        items[:] = [item for item in items if not item.get_closest_marker("slow")]
    if hasattr(config, "workerinput"):
        items[:] = dealt(items, config.workerinput["workercount"])


def pytest_collection_finish() -> None:
    """Take what was collected out of the sight of the garbage collector, which would visit it again and again.

    It was off since the start, and is called rarely from now on: it took a twelfth of the time of the tests.
    """
    gc.freeze()
    gc.set_threshold(*RARELY)
    gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    """Accept Ctrl-C as in a terminal: a process that a shell starts in the background ignores it, as do its children.

    The process that collects the workers' reports compares the run with the record, has child processes measured, and
    puts temporary folders into memory; if there are workers, it compiles what they import, and starts the process that
    forks the commands of all of them, and what these processes and the workers start themselves of feedstock-tools.
    """
    gc.disable()  # until all is collected; the process that collects the workers' reports keeps all of them anyway
    if not hasattr(config, "workerinput"):
        if (folder := folder_in_memory()) is not None:
            os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(folder))
        if config.getoption("held") or config.getoption("record"):
            config.pluginmanager.register(Passing(RECORD, record=config.getoption("record")))
        if begin_measuring():
            config.add_cleanup(end_measuring)
        if config.getoption("numprocesses", None):
            compile_modules(config)
            if hasattr(os, "fork"):
                config.stash[_COMMANDS] = start_server()
    elif "commands" in config.workerinput:
        share(measured_here(), config.workerinput["commands"])
        from tests.support.forked import fork_workers  # whose modules the process that collects reports does not need

        fork_workers()
    if measured_here():
        config.pluginmanager.register(Measuring())
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: list[Any]) -> None:
    """Have the workers forked by a process that imports the tests once for all of them."""
    if _COMMANDS in config.stash:
        python = python_of_workers(Server("tests.support.preparing", config.invocation_params.args).place)
        for spec in specs:
            if spec.popen and spec.python is None:
                spec.python = python


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Let a worker know where commands are forked."""
    if _COMMANDS in node.config.stash:
        node.workerinput["commands"] = node.config.stash[_COMMANDS]


def pytest_sessionstart(session: pytest.Session) -> None:
    """Let a worker keep for itself how often its tests failed.

    pytest-rerunfailures would send it to the other process, letter by letter, in case that a test ends the worker.
    """
    if isinstance(shared := getattr(session.config, "failures_db", None), ClientStatusDB):
        shared.sock.close()
        session.config.failures_db = StatusDB()  # type: ignore[attr-defined]


class _Caches:
    """Folders for caches; `tmp_path` would take milliseconds for each, and most tests need no folder at all."""

    def __init__(self, folder: Path) -> None:
        self._folders = (folder / str(number) for number in itertools.count())
        self._last = next(self._folders)
        self._lent: list[str] = []

    def unused(self) -> Path:
        """A folder where nothing lies but the stand-in channels of this run: the last one, if its test left it so."""
        if not self._lent or _names_below(self._last) != self._lent:
            self._last = next(self._folders)
            lend_stand_in(self._last)
            self._lent = _names_below(self._last)
        return self._last


def _names_below(folder: Path) -> list[str]:
    """What lies in a folder and in the folders in it, those without links."""
    with suppress(OSError), os.scandir(folder) as entries:
        return [name for entry in entries for name in (entry.name, *sorted(os.listdir(entry)))]  # noqa: PTH208
    return []


@pytest.fixture(scope="session")
def _caches(tmp_path_factory: pytest.TempPathFactory) -> _Caches:
    share_stand_in(of_this_run(tmp_path_factory) / "stand-in")
    return _Caches(tmp_path_factory.mktemp("caches"))


@pytest.fixture(autouse=True)
def _own_cache(_caches: _Caches, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep tests out of the cache of the user who runs them.

    Stand-in channels are made once in a run, and a compiler is fetched once for all runs.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(_caches.unused()))
    monkeypatch.setenv("FEEDSTOCK_TOOLS_PROGRESS", "never")  # how long a command is silent depends on the machine


@pytest.fixture(scope="session")
def tiny_channel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A channel with two Pythons and a compiler."""
    return made_once(tmp_path_factory, "tiny-channel", make_tiny_channel)


@pytest.fixture
def feedstock(tmp_path: Path, tiny_channel: Path) -> TinyFeedstock:
    """The tiny feedstock with nothing built."""
    return TinyFeedstock(copy_of_tiny(tmp_path / "tiny-feedstock"), tiny_channel)


@pytest.fixture(scope="session")
def _built_once(tmp_path_factory: pytest.TempPathFactory, tiny_channel: Path) -> Path:
    def make(folder: Path) -> None:
        made = TinyFeedstock(copy_of_tiny(folder / "tiny-feedstock"), tiny_channel)
        run = made.build(f"{GPU}_py3.11", environment={"XDG_CACHE_HOME": str(folder / "user-cache")})
        assert run.returncode == 0, run.stdout + run.stderr
        (made.folder / "output.txt").write_text(run.stdout)

    return made_once(tmp_path_factory, "built", make) / "tiny-feedstock"


@pytest.fixture
def gpu_feedstock(tmp_path: Path, tiny_channel: Path, _built_once: Path) -> TinyFeedstock:
    """The tiny feedstock with `linux_64_cuda11.2_py3.11` built; `output.txt` in it has the output of that build."""
    shutil.copytree(_built_once, tmp_path / "tiny-feedstock", symlinks=True)
    return TinyFeedstock(tmp_path / "tiny-feedstock", tiny_channel)


@pytest.fixture(scope="session")
def _all_built_once(tmp_path_factory: pytest.TempPathFactory, tiny_channel: Path) -> Path:
    def make(folder: Path) -> None:
        made = TinyFeedstock(copy_of_tiny(folder / "tiny-feedstock"), tiny_channel)
        run = made.build("--all", "--jobs", "2", environment={"XDG_CACHE_HOME": str(folder / "user-cache")})
        assert run.returncode == 0, run.stdout + run.stderr
        (made.folder / "output.txt").write_text(run.stdout)

    return made_once(tmp_path_factory, "all-built", make) / "tiny-feedstock"


@pytest.fixture
def whole_feedstock(tmp_path: Path, tiny_channel: Path, _all_built_once: Path) -> TinyFeedstock:
    """The tiny feedstock with all of its rows built; `output.txt` in it has the output of `build --all --jobs 2`."""
    shutil.copytree(_all_built_once, tmp_path / "tiny-feedstock", symlinks=True)
    return TinyFeedstock(tmp_path / "tiny-feedstock", tiny_channel)


@pytest.fixture
def new_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have this process and commands start workers as users do, where forks are not the same: in a new Python."""
    monkeypatch.setenv(NEW_WORKERS, "yes")


@pytest.fixture
def within_limits() -> Iterator[None]:
    """Fail a test that hangs, or takes more processor time or memory than hostile input may; its commands count too."""
    with limited(), commands_limited():
        yield


@pytest.fixture(scope="session")
def c_compiler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A compiler of C for this machine."""
    return c_compiler_in(tmp_path_factory.mktemp("compiler"))
