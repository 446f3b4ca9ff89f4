"""Fixtures of all tests: a cache of their own, and the tiny feedstock with nothing built and with one row built."""

from __future__ import annotations

import itertools
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.channels import make_tiny_channel
from tests.support.compilers import c_compiler_in, lend_stand_in, share_stand_in
from tests.support.feedstocks import GPU, TinyFeedstock, copy_of_tiny
from tests.support.limits import commands_limited, limited
from tests.support.once import made_once, of_this_run
from tests.support.passing import RECORD, Passing

# How long an example takes depends on what else the machine does.
settings.register_profile("patient", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--fast` for developers, and `--held` and `--record` for continuous integration."""
    parser.addoption("--fast", action="store_true", help="leave out the tests that are marked slow")
    parser.addoption("--held", action="store_true", help="fail where fewer pass than tests/passing.toml says")
    parser.addoption("--record", action="store_true", help="write tests/passing.toml")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests that are marked slow under `--fast`."""
    if config.getoption("fast"):
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("slow")])
        items[:] = [item for item in items if not item.get_closest_marker("slow")]


def pytest_configure(config: pytest.Config) -> None:
    """Accept Ctrl-C as in a terminal: a process that a shell starts in the background ignores it, as do its children.

    The process that collects the workers' reports compares the run with the record.
    """
    if not hasattr(config, "workerinput") and (config.getoption("held") or config.getoption("record")):
        config.pluginmanager.register(Passing(RECORD, record=config.getoption("record")))
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def _caches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """New folders for caches; `tmp_path` would take milliseconds for each, and most tests need no folder at all."""
    share_stand_in(of_this_run(tmp_path_factory) / "stand-in")
    folder = tmp_path_factory.mktemp("caches")
    return (folder / str(number) for number in itertools.count())


@pytest.fixture(scope="session", autouse=True)
def _state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The state folder of the user of this run, with one key: what one worker has built counts for all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(of_this_run(tmp_path_factory) / "state"))
        yield


@pytest.fixture(autouse=True)
def _own_cache(_caches: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep tests out of the cache of the user who runs them.

    Stand-in channels are made once in a run, and a compiler is fetched once for all runs.
    """
    cache = next(_caches)
    lend_stand_in(cache)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
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
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the commands of a test out of coverage: bombs, whole ways from a spec to packages, Ctrl-C at any moment.

    While coverage holds the lock of its data, the next line after Ctrl-C would wait for that lock forever.
    """
    monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)


@pytest.fixture
def within_limits() -> Iterator[None]:
    """Fail a test that hangs, or takes more processor time or memory than hostile input may; its commands count too."""
    with limited(), commands_limited():
        yield


@pytest.fixture(scope="session")
def c_compiler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A compiler of C for this machine."""
    return c_compiler_in(tmp_path_factory.mktemp("compiler"))
