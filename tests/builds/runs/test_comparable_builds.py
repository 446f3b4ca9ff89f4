"""The same inputs give the same packages, byte for byte, wherever, whenever and as whom they are built."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from feedstock_tools.builds.engines.embedded.fixed_place import PLACE, at_fixed_place
from feedstock_tools.channel.packages.archive import compare_packages
from feedstock_tools.channel.packages.reading import read_documents
from feedstock_tools.digests import sha256_of
from tests.support import command
from tests.support.compilers import lend_stand_in
from tests.support.feedstocks import HERE, TinyFeedstock, copy_of_example
from tests.support.gpuprobe import PYTHON, built_gpuprobe, crossed_gpuprobe
from tests.support.needs import lacks, needs

pytestmark = pytest.mark.usefixtures("unmeasured")

#: The packages that a row of gpuprobe makes.
PACKAGES = 4
GPU = "linux_64_cuda11.2_py3.11"
SCRIPT = """\
mkdir -p "$PREFIX/lib/tiny"
echo "$PREFIX $SRC_DIR $SOURCE_DATE_EPOCH $HOME $USER" > "$PREFIX/lib/tiny/made.txt"
date > /dev/null
"""


def in_a_process(work: object, folder: Path) -> bool:
    """Whether a function is true of a folder, in a process of its own."""
    assert callable(work)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if work(folder) else 1
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


def is_shown(folder: Path) -> bool:
    """Whether a process sees a private folder at its fixed place, and can link what is cached into it."""
    private, cache = folder / ".work" / "row", folder / "pkg_cache"
    place, cache_there = at_fixed_place(private, cache)
    if place != PLACE / ".work" / "row":
        return False
    os.link(cache_there / "file", place / "linked")
    return (private / "linked").samefile(cache / "file")


def is_shown_without_its_cache(folder: Path) -> bool:
    private, cache = folder / ".work" / "row", folder.parent
    place, cache_there = at_fixed_place(private, cache)
    return place == PLACE / ".work" / "row" and cache_there == cache and place.samefile(private)


def artifacts(folder: Path) -> Path:
    """An artifacts folder with a private folder and something cached."""
    (folder / ".work" / "row").mkdir(parents=True)
    (folder / "pkg_cache").mkdir()
    (folder / "pkg_cache" / "file").touch()
    return folder


@pytest.fixture
def mounts(tmp_path: Path) -> None:
    if not in_a_process(is_shown_without_its_cache, artifacts(tmp_path / "tried")):
        lacks("system", "one that allows a process mounts of its own")


def hashes(folder: Path) -> dict[str, str]:
    """The packages in a folder of artifacts."""
    return {path.name: sha256_of(path) for path in sorted(folder.glob("*/*.conda"))}


@needs("system", os.name == "posix", "mounts are those of Linux")
def test_builds_in_other_folders_at_other_times_give_the_same_bytes(
    feedstock: TinyFeedstock, mounts: None, tmp_path: Path
) -> None:
    feedstock.keep_outputs(2)
    script = next((feedstock.folder / "recipe").glob("*.sh"))
    script.write_text(script.read_text() + SCRIPT)
    first, second = tmp_path / "first", tmp_path / "a" / "deeper" / "second"
    moved = tmp_path / "moved-channel"
    shutil.copytree(feedstock.channel, moved)
    done = feedstock.build(GPU, "--output-dir", str(first))
    assert done.returncode == 0, done.stdout
    time.sleep(1.1)
    others = {"HOME": str(tmp_path), "USER": "other", "LOGNAME": "other", "TZ": "Asia/Tokyo"}
    again = TinyFeedstock(feedstock.folder, moved).build(GPU, "--output-dir", str(second), environment=others)
    assert again.returncode == 0, again.stdout
    found = hashes(first)
    assert len(found) > 1
    differing = [name for name, digest in hashes(second).items() if digest != found[name]]
    for name in differing:
        (one,), (other,) = first.glob(f"*/{name}"), second.glob(f"*/{name}")
        assert compare_packages(one, other).differences == ()
    assert differing == []


@pytest.mark.slow
@needs("system", HERE.subdir == "linux-64", "these configurations are built on linux-64")
@pytest.mark.parametrize(
    ("configuration", "built_once"),
    [("linux_64_cpu", built_gpuprobe), ("linux_aarch64_cuda11.2", crossed_gpuprobe)],
    ids=["native", "crossed"],
)
def test_the_example_built_again_elsewhere_by_others_has_the_same_bytes(
    configuration: str,
    built_once: Callable[[pytest.TempPathFactory], Path],
    mounts: None,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    first = hashes(built_once(tmp_path_factory) / "built-on-stand-in")
    cache, home = tmp_path / "cache", tmp_path / "deeper" / "home"
    lend_stand_in(cache)
    home.mkdir(parents=True)
    words = command.tool("build", f"{configuration}_py{PYTHON}", "--channel", "stand-in")
    others = command.environment(XDG_CACHE_HOME=str(cache), HOME=str(home), USER="another")
    feedstock = copy_of_example("gpuprobe", tmp_path / "deeper")
    done = command.run(words, feedstock, others)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    again = hashes(feedstock / "build_artifacts" / "built-on-stand-in")
    assert len(again) == PACKAGES
    assert again.items() <= first.items()


def test_the_time_in_packages_is_that_of_the_environment_if_it_has_one(feedstock: TinyFeedstock) -> None:
    feedstock.keep_outputs(2)
    done = feedstock.build(GPU, environment={"SOURCE_DATE_EPOCH": "1700000000"})
    assert done.returncode == 0, done.stdout
    for package in feedstock.artifacts.glob("*/*.conda"):
        (index,) = read_documents(package, ["info/index.json"]).values()
        assert index is not None
        assert json.loads(index)["timestamp"] == 1_700_000_000_000


def test_nobody_else_sees_a_folder_at_its_fixed_place(tmp_path: Path, mounts: None) -> None:
    assert in_a_process(is_shown, artifacts(tmp_path / "artifacts"))
    assert not (PLACE / "pkg_cache").exists()
