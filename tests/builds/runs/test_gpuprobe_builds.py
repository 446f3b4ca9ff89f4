"""The example, built on the stand-in channel: which build a solver takes, whatever the order of building."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from feedstock_tools.builds.stand_in import open_channel
from feedstock_tools.channel.folder import index_channel
from feedstock_tools.channel.metadata import Record
from feedstock_tools.channel.packages.reading import read_package
from feedstock_tools.channel.repodata import read_records
from feedstock_tools.channel.solving import install, solve, virtual_packages
from tests.support import command
from tests.support.feedstocks import HERE
from tests.support.gpuprobe import CUDA, NEWER, PYTHON, built_gpuprobe
from tests.support.needs import needs
from tests.support.timestamps import decided_by_time

pytestmark = [
    pytest.mark.usefixtures("unmeasured"),
    pytest.mark.slow,
    needs("system", HERE.subdir == "linux-64", "these GPU configurations are for linux-64"),
]
NEWEST = max(PYTHON, NEWER, key=lambda version: int(version.partition(".")[2]))
#: CUDA version of the driver (None: no GPU), and the build of gpuprobe that it should get.
EXPECTED = [
    (None, "cpu_"),
    ("11.0", "cpu_"),
    ("11.2", "cuda112"),
    ("11.7", "cuda112"),
    ("12.8", "cuda112"),
    ("12.9", "cuda129"),
    ("13.2", "cuda129"),
]


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The artifacts of a build of several configurations, the newest CUDA version first."""
    return built_gpuprobe(tmp_path_factory)


@pytest.fixture(scope="module")
def channels(artifacts: Path) -> tuple[str, str]:
    """The channel of what was built, and the stand-in channel that it was built on."""
    cache = artifacts.parent.parent / "cache"
    stand_in = open_channel(command.environment(XDG_CACHE_HOME=str(cache)), HERE, [PYTHON], cache)
    return (artifacts / "built-on-stand-in").as_uri(), stand_in.url


def answer(specs: Sequence[str], channels: Sequence[str], cuda: str | None) -> dict[str, Record]:
    """The environment that a machine with a driver for `cuda` gets."""
    records = solve([*specs, f"python {PYTHON}.*"], channels, HERE, virtual=virtual_packages(HERE, cuda=cuda))
    return {record.name: record for record in records}


@pytest.mark.parametrize(("cuda", "build"), EXPECTED)
def test_a_machine_gets_the_newest_build_that_its_driver_runs(
    channels: tuple[str, str], cuda: str | None, build: str
) -> None:
    environment = answer(["gpuprobe"], channels, cuda)
    for name in ("libgpuprobe", "gpuprobe-base", "gpuprobe"):
        assert environment[name].build.startswith(build)


@pytest.mark.parametrize("cuda", [None, "11.2", "12.9"])
def test_the_cpu_build_can_be_requested_on_any_machine(channels: tuple[str, str], cuda: str | None) -> None:
    assert answer(["gpuprobe-cpu"], channels, cuda)["libgpuprobe"].build.startswith("cpu_")


def test_the_gpu_build_is_pinned_to_exactly_one(channels: tuple[str, str]) -> None:
    environment = answer(["gpuprobe-gpu"], channels, "11.2")
    gpuprobe = environment["gpuprobe"]
    assert f"gpuprobe =={gpuprobe.version} {gpuprobe.build}" in environment["gpuprobe-gpu"].depends
    assert gpuprobe.build.startswith("cuda112")


def test_the_order_of_building_decides_nothing(channels: tuple[str, str], tmp_path: Path) -> None:
    """Every machine gets the same build under permuted time stamps and index orders."""
    content = json.loads(Path(channels[0].removeprefix("file://"), HERE.subdir, "repodata.json").read_text())
    shuffled = tmp_path / HERE.subdir / "repodata.json"
    shuffled.parent.mkdir()
    (tmp_path / "noarch").mkdir()
    empty = {"info": {"subdir": "noarch"}, "packages": {}, "packages.conda": {}, "repodata_version": 1}
    (tmp_path / "noarch" / "repodata.json").write_text(json.dumps(empty))
    names = list(content["packages.conda"])
    for seed in range(6):
        order = random.Random(seed).sample(names, len(names))  # noqa: S311 - an order, no secret
        packages = {
            name: {**content["packages.conda"][name], "timestamp": 1_600_000_000_000 + 1000 * place}
            for place, name in enumerate(order)
        }
        shuffled.write_text(json.dumps({**content, "packages.conda": packages}))
        for cuda, build in EXPECTED:
            assert answer(["gpuprobe"], (tmp_path.as_uri(), channels[1]), cuda)["gpuprobe"].build.startswith(build)
        for cuda in (None, "12.9"):
            virtual = virtual_packages(HERE, cuda=cuda)
            records = solve(["gpuprobe"], (tmp_path.as_uri(), channels[1]), HERE, virtual=virtual)
            (gpuprobe,) = (record for record in records if record.name == "gpuprobe")
            assert f"py{NEWEST.replace('.', '')}h" in gpuprobe.build


@pytest.mark.parametrize("cuda", [None, "11.2", "12.9"])
@pytest.mark.parametrize("specs", [["gpuprobe"], ["gpuprobe", f"python {PYTHON}.*"]])
def test_no_choice_among_our_packages_is_left_to_time(
    channels: tuple[str, str], specs: list[str], cuda: str | None
) -> None:
    pairs = decided_by_time(specs, channels, HERE, virtual=virtual_packages(HERE, cuda=cuda))
    assert [one.distribution for one, _ in pairs if "gpuprobe" in one.name] == []


def test_the_installed_command_and_binding_run(channels: tuple[str, str], artifacts: Path, tmp_path: Path) -> None:
    records = list(answer(["gpuprobe-gpu"], channels, "11.2").values())
    prefix = tmp_path / "environment"
    install(records, prefix, HERE, cache=tmp_path / "cache")
    installed = subprocess.run([str(prefix / "bin" / "gpuprobe")], capture_output=True, text=True, check=False)
    assert "11.2" in installed.stdout
    python = [str(prefix / "bin" / "python"), "-c", "import gpuprobe; print(gpuprobe.__file__)"]
    binding = subprocess.run(python, capture_output=True, text=True, check=True, cwd=tmp_path, env={"PATH": "/usr/bin"})
    assert binding.stdout.startswith(str(prefix))


def test_every_package_is_marked_as_built_on_the_stand_in_channel(artifacts: Path) -> None:
    packages = sorted((artifacts / "built-on-stand-in").glob("*/*.conda"))
    assert len(packages) == 4 * (len(CUDA) + 1) + 2 * 3  # the two of the other Python share their library
    assert all("stand-in" in read_package(package).extra for package in packages)


def test_what_was_built_meets_what_the_index_says(artifacts: Path, channels: tuple[str, str]) -> None:
    index_channel(artifacts / "built-on-stand-in", replaced=True)
    for record in read_records(channels[0], [HERE.subdir]):
        package = read_package(artifacts / "built-on-stand-in" / record.subdir / record.file_name)
        assert (package.depends, package.build_number) == (record.depends, record.build_number)
