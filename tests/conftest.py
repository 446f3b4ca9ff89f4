"""Fixtures of all tests: a cache of their own, and the tiny feedstock with nothing built and with one row built."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from tests.support.channels import make_tiny_channel
from tests.support.feedstocks import GPU, TinyFeedstock, copy_of_tiny


def pytest_configure() -> None:
    """Take Ctrl-C as in a terminal: what a shell runs in its background ignores it, and so would all children."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of a test goes to the cache of the user who runs it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user-cache"))


@pytest.fixture(scope="session")
def tiny_channel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A channel with two Pythons and a compiler."""
    folder = tmp_path_factory.mktemp("tiny-channel")
    make_tiny_channel(folder)
    return folder


@pytest.fixture
def feedstock(tmp_path: Path, tiny_channel: Path) -> TinyFeedstock:
    """The tiny feedstock with nothing built."""
    return TinyFeedstock(copy_of_tiny(tmp_path / "tiny-feedstock"), tiny_channel)


@pytest.fixture(scope="session")
def _built_once(tmp_path_factory: pytest.TempPathFactory, tiny_channel: Path) -> Path:
    made = TinyFeedstock(copy_of_tiny(tmp_path_factory.mktemp("built") / "tiny-feedstock"), tiny_channel)
    run = made.build(f"{GPU}_py3.11")
    assert run.returncode == 0, run.stdout + run.stderr
    (made.folder / "output.txt").write_text(run.stdout)
    return made.folder


@pytest.fixture
def gpu_feedstock(tmp_path: Path, tiny_channel: Path, _built_once: Path) -> TinyFeedstock:
    """The tiny feedstock with `linux_64_cuda11.2_py3.11` built; `output.txt` in it is what that printed."""
    shutil.copytree(_built_once, tmp_path / "tiny-feedstock", symlinks=True)
    return TinyFeedstock(tmp_path / "tiny-feedstock", tiny_channel)
