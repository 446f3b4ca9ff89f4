"""The worlds in which `kill_commands` runs commands: feedstocks, channels, wheels, inventories, in an empty folder."""

from __future__ import annotations

import json
import random
import shutil
from importlib.metadata import requires, version
from pathlib import Path

from packaging.requirements import Requirement

from feedstock_tools.channel.archive import write_package
from feedstock_tools.channel.folder import index_channel
from feedstock_tools.channel.metadata import PackageFile, PackageMetadata
from tests.support.channels import make_tiny_channel
from tests.support.feedstocks import copy_of_tiny
from tests.support.library import make_library_folder
from tests.support.paths import EXAMPLES, ROOT
from tests.support.smithy_release import write_package_of_release
from tests.support.wheels import write_wheel


def tiny(world: Path) -> None:
    make_tiny_channel(world / "channel")
    copy_of_tiny(world / "tiny-feedstock")


def spec(world: Path) -> None:
    make_library_folder(world)


def pinnings(world: Path) -> None:
    files = [
        PackageFile(f"share/conda-forge/migrations/m{number}.yaml", b"python: [3.14]\n" * 2000) for number in range(60)
    ]
    for dated in ("2025.01.02.03.04.05", "2026.01.02.03.04.05"):
        metadata = PackageMetadata("conda-forge-pinning", dated, "hd8ed1ab_0", 0, "noarch", noarch="generic")
        write_package(
            world / "pinnings", metadata, [PackageFile("conda_build_config.yaml", b"python: [3.13]\n"), *files]
        )
    index_channel(world / "pinnings")


def wheels(world: Path) -> None:
    """Wheels laid out as NVIDIA's, of two megabytes each, for pip to find in a folder."""
    contents = {
        "nvidia-cuda-runtime-cu12": ("nvidia/cuda_runtime/lib/libcudart.so.12",),
        "nvidia-cuda-nvrtc-cu12": ("nvidia/cuda_nvrtc/lib/libnvrtc.so.12",),
        "nvidia-cuda-nvcc-cu12": (
            "nvidia/cuda_nvcc/bin/ptxas",
            *(f"nvidia/cuda_nvcc/include/{n}.h" for n in range(200)),
        ),
    }
    for name, files in contents.items():
        each = 2_000_000 // len(files)
        content = {file: random.Random(file).randbytes(each) for file in files}  # noqa: S311
        write_wheel(world / "wheels", name, "12.9.86", content)


def releases(world: Path) -> None:
    write_package_of_release(world / "releases", "2026.8.5")
    index_channel(world / "releases")


def cpu_only(world: Path) -> None:
    """A library's sources, its feedstock without CUDA, and a pinning."""
    shutil.copytree(ROOT / "tests" / "support" / "wavekit", world, dirs_exist_ok=True)


def project(world: Path) -> None:
    shutil.copytree(EXAMPLES / "hello" / "src", world / "src")


def nothing(world: Path) -> None:
    del world


def simulated(world: Path) -> None:
    """A feedstock, and the hosts of a simulated fleet."""
    tiny(world)
    (world / "hosts.yaml").write_text("hosts: {one: {cores: 4, memory: 8 GiB}}\n")


def two(world: Path) -> None:
    """Two states of a feedstock."""
    cpu_only(world)
    shutil.copytree(world / "wavekit-feedstock", world / "before")


def unsolved(world: Path) -> None:
    """A feedstock, and a channel without packages."""
    spec(world)
    repodata = world / "channel" / "noarch" / "repodata.json"
    repodata.parent.mkdir(parents=True)
    repodata.write_text('{"packages": {}, "packages.conda": {}}')


def hosts(world: Path) -> None:
    """An inventory with a host that SSH does not reach, and wheels with nothing in them of all that hosts install."""
    variables = {"fleet_hub": "localhost:8786", "fleet_name": "killed", "ansible_ssh_executable": "/bin/false"}
    inventory = {"all": {"vars": variables, "hosts": {"one": {"ansible_host": "127.0.0.1"}}}}
    (world / "inventory.yml").write_text(json.dumps(inventory))
    needed = (Requirement(text) for text in requires("feedstock-tools") or ())
    named = {each.name for each in needed if each.marker is None or each.marker.evaluate({"extra": "host"})}
    for name in sorted({*named, "pip"}):
        write_wheel(world / "wheels", name, version(name), {})
