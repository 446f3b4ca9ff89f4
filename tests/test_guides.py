"""The guides of the documentation and the tour: their commands, run in order from nothing, succeed."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from feedstock_tools.channel.folder import index_channel
from feedstock_tools.channel.metadata import PackageFile, PackageMetadata
from feedstock_tools.channel.packages.archive import write_package
from feedstock_tools.platforms import Platform
from tests.support import command
from tests.support.compilers import lend_tools
from tests.support.feedstocks import copy_of_example
from tests.support.needs import needs
from tests.support.paths import ROOT
from tests.support.smithy_release import write_package_of_release

_CONSOLE = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
#: Commands that need what not every machine has, by their beginnings, and what that is.
_LEFT_OUT = {
    "feedstock-tools init PROJECT": "a project of your own",
    "feedstock-tools test linux_64_cuda12.9_py3.11 --gpu": "a GPU",
}
#: The recipe of a feedstock for bots, the pinning, and the author of commits.
DEMO = """\
package:
  name: demo
  version: "1.0"
build:
  number: 0
  skip: true  # [win]
requirements:
  host:
    - zlib
test:
  commands:
    - demo
about:
  home: https://demo.dev
  summary: A demo
  license: MIT
  license_file: LICENSE
extra:
  recipe-maintainers:
    - somebody
"""
PINNING = "zlib:\n- '1.3'\n"
AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@localhost")
PYTHON = f"py{sys.version_info.major}.{sys.version_info.minor}"

pytestmark = [
    pytest.mark.usefixtures("unmeasured"),
    pytest.mark.slow,
    needs("system", Platform.here().subdir == "linux-64", "the guides build on linux-64"),
]


def page(name: str) -> str:
    """The text of a page of the documentation."""
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


def calls(name: str) -> list[str]:
    """The commands of a page that run anywhere."""
    found = [line.removeprefix("$ ") for block in _CONSOLE.findall(page(name)) for line in block.splitlines()]
    return [call for call in found if call not in _LEFT_OUT]


def calls_of_the_tour(first: str) -> list[str]:
    """The tour's commands from a line on to the end of its block, without those that need a CUDA compiler."""
    text = page("five-minutes")
    block = text[text.index(f"$ {first}") :].partition("```")[0]
    lines = [line.partition("#")[0].removeprefix("$ ").strip() for line in block.splitlines()]
    return [line for line in lines if line.startswith("feedstock-tools ") and not re.search("cuda fetch|cuda13", line)]


def run_all(lines: list[str], folder: Path, cache: Path | None = None) -> None:
    """Run commands one after the other from a folder, with the Python that runs the tests; each must succeed."""
    cache = cache or folder / "cache"
    lend_tools(cache)
    environment = command.environment(XDG_CACHE_HOME=str(cache))
    for line in lines:
        program, *words = shlex.split(line.replace("py3.11", PYTHON))
        if program == "cd":
            folder = folder / words[0]
        elif program == "cp":
            assert words[0] == "-r"
            shutil.copytree(folder / words[1], folder / words[2])
        else:
            assert program == "feedstock-tools"
            run = command.run(command.tool(*words), folder, environment)
            assert run.returncode == 0, f"{line}\n{run.stdout[-4000:]}{run.stderr[-2000:]}"


@needs("system", PYTHON in ("py3.11", "py3.12", "py3.13"), "the spec of the tour has Python 3.11 to 3.13")
def test_the_commands_of_the_first_guide_and_of_the_tour_build_and_test_hello(tmp_path: Path) -> None:
    copy_of_example("hello", tmp_path / "examples")
    guide, tour = calls("guide-start"), calls_of_the_tour("cp -r examples/hello .")
    assert len(tour) == 5
    run_all([*guide, *(line for line in tour if line not in guide)], tmp_path)
    artifacts = tmp_path / "hello" / "build_artifacts"
    built = {path.name.partition("-1.0.0")[0] for path in artifacts.glob("built-*/linux-64/*.conda")}
    assert built == {"libhello", "hello-base", "hello", "hello-cpu"}
    (log,) = artifacts.glob("logs/*.log")
    assert log.read_text(encoding="utf-8").count("Hello from the CPU\n") == 2


def test_the_commands_and_the_program_of_the_guide_for_bots_succeed(tmp_path: Path) -> None:
    channel, feedstock = tmp_path / "channel", tmp_path / "feedstocks" / "demo-feedstock"
    pinning = PackageMetadata("conda-forge-pinning", "2026.01.02.03.04.05", "0", 0, "noarch", noarch="generic")
    write_package(channel, pinning, [PackageFile("conda_build_config.yaml", PINNING.encode())])
    write_package_of_release(channel, "2026.8.5")
    index_channel(channel)
    (feedstock / "recipe").mkdir(parents=True)
    (feedstock / "recipe" / "meta.yaml").write_text(DEMO)
    (feedstock / "recipe" / "LICENSE").touch()
    (feedstock / "conda-forge.yml").write_text("{}\n")

    *many, review, lint = calls("guide-bots")
    assert len(many) == 3
    fetches = [f"{line} -c {channel}" if " fetch" in line else line for line in many]
    run_all([line.replace("feedstocks/*-feedstock", "feedstocks/demo-feedstock") for line in fetches], tmp_path)
    assert (feedstock / ".ci_support" / "linux_64_.yaml").is_file()
    for words in (["init", "-qb", "main"], ["add", "-A"], [*AUTHOR, "commit", "-qm", "first"]):
        subprocess.run(["git", "-C", str(feedstock), *words], check=True)
    subprocess.run(["git", "-C", str(feedstock), "update-ref", "refs/remotes/origin/main", "HEAD"], check=True)
    run_all([f"{review} --no-rehearse", lint], feedstock, tmp_path / "cache")

    program = re.search(r"^```python\n(.*?)^```", page("guide-bots"), re.DOTALL | re.MULTILINE)
    assert program is not None
    feedstock.rename(tmp_path / "feedstock")
    clone = tmp_path / "conda-forge-pinning-feedstock" / "recipe"
    clone.mkdir(parents=True)
    (clone / "conda_build_config.yaml").write_text(PINNING)
    (tmp_path / "feedstock" / "conda-forge.yml").write_text("provider: {osx_64: null}\n")
    environment = command.environment(XDG_CACHE_HOME=str(tmp_path / "cache"))
    run = command.run([sys.executable, "-c", program[1]], tmp_path, environment)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "delete .ci_support/osx_64_.yaml\n"


def test_the_commands_of_the_guide_to_gpus_and_of_the_tour_on_the_same_feedstock_succeed(tmp_path: Path) -> None:
    copy_of_example("gpuprobe", tmp_path / "examples")
    before = sorted(tmp_path.joinpath("examples").rglob("*"))
    run_all(
        [*calls("guide-gpu"), "feedstock-tools rehearse", *calls_of_the_tour("feedstock-tools build --list")], tmp_path
    )
    assert (tmp_path / "gpuprobe" / "matrix.html").is_file()
    assert list((tmp_path / "gpuprobe" / "channel").rglob("*.conda"))
    assert sorted(tmp_path.joinpath("examples").rglob("*")) == before
