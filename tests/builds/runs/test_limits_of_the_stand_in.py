"""A build that meets a limit of the stand-in channel names the package, and what to do."""

from __future__ import annotations

import json
import os
from pathlib import Path
from textwrap import dedent

from feedstock_tools.api import Capacity, open_workspace, plan, read_matrix
from feedstock_tools.builds.runs.unsolved import named_in
from tests.support import command
from tests.support.compilers import lend_tools
from tests.support.feedstocks import HERE
from tests.support.needs import needs

SPEC = dedent("""\
    name: demo
    version: 1.0.0
    pinning: self-contained
    platforms: {linux-64: }
    outputs:
      - name: demo
        kind: library
        script: [test -f $PREFIX/include/cudnn.h]
        requirements: {host: [REQUIRED]}
    about: {homepage: https://example.org, license: MIT, summary: A demonstration}
    maintainers: [someone]
""")


def test_the_names_that_environments_are_asked_for_are_read_in_a_log() -> None:
    log = ["Specs:", "   - gcc_linux-64 15.*", "  - numpy>=2", "", "- no spec", " Specs:", " - cmake", "Done"]
    assert named_in(log) == {"gcc_linux-64", "numpy", "cmake"}


@needs("system", HERE.subdir == "linux-64", "the stand-in channel has CUDA's packages for linux-64")
def test_a_build_without_a_cuda_compiler_names_the_command_that_fetches_one(tmp_path: Path) -> None:
    spec = SPEC.replace("host: [REQUIRED]", "build: [compiler: c, compiler: cuda]").replace("test -f", "false")
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "feedstock.yaml").write_text(f"{spec}cuda: {{versions: [12.9], architectures: common}}\n")
    lend_tools(tmp_path / "cache")
    environment = command.environment(XDG_CACHE_HOME=str(tmp_path / "cache"))
    for words in (("generate", "demo"), ("rerender", "demo", "--smithy", "none")):
        assert command.run(command.tool(*words), tmp_path, environment).returncode == 0
    build = command.tool("build", "--feedstock", "demo", "linux_64_cuda12.9", "--channel", "stand-in")
    run = command.run(build, tmp_path, environment)
    assert run.returncode == 1
    assert "`feedstock-tools cuda fetch 12.9` brings the CUDA runtime and a compiler of device code" in run.stdout


@needs("system", HERE.subdir == "linux-64", "the stand-in channel has CUDA's packages for linux-64")
def test_what_has_no_files_is_named_as_the_limit_of_the_channel(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "feedstock.yaml").write_text(SPEC.replace("REQUIRED", "cudnn"))
    lend_tools(tmp_path / "cache")
    environment = command.environment(XDG_CACHE_HOME=str(tmp_path / "cache"))
    for words in (("generate", "demo"), ("rerender", "demo", "--smithy", "none")):
        assert command.run(command.tool(*words), tmp_path, environment).returncode == 0

    run = command.run(command.tool("build", "--feedstock", "demo", "--channel", "stand-in"), tmp_path, environment)

    assert run.returncode == 1
    assert "Note: on the stand-in channel cudnn has no files." in run.stdout
    assert "Build this on conda-forge" in run.stdout


@needs("system", HERE.subdir == "linux-64", "the stand-in channel has CUDA's packages for linux-64")
def test_a_version_that_no_wheel_has_is_named_before_the_build(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "feedstock.yaml").write_text(SPEC.replace("REQUIRED", "pybind11 >=99"))
    own = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}
    environment = command.environment(**own, PIP_CONFIG_FILE=os.devnull)
    for words in (("generate", "demo"), ("rerender", "demo", "--smithy", "none")):
        assert command.run(command.tool(*words), tmp_path, environment).returncode == 0

    run = command.run(command.tool("build", "--feedstock", "demo", "--channel", "stand-in"), tmp_path, environment)

    assert run.returncode == 2
    assert "pip finds no wheels for what the recipe requires (pybind11 >=99)" in run.stderr


@needs("system", HERE.subdir == "linux-64", "the stand-in channel has CUDA's packages for linux-64")
def test_a_package_that_the_channel_lacks_is_named_before_the_build(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "feedstock.yaml").write_text(SPEC.replace("REQUIRED", "zlib"))
    environment = command.environment(XDG_CACHE_HOME=str(tmp_path / "cache"))
    for words in (("generate", "demo"), ("rerender", "demo", "--smithy", "none")):
        assert command.run(command.tool(*words), tmp_path, environment).returncode == 0
    run = command.run(command.tool("build", "--feedstock", "demo", "--channel", "stand-in"), tmp_path, environment)
    assert run.returncode == 2
    assert "linux_64_cpu cannot be built here: the stand-in channel has no zlib" in run.stderr
    planned = command.run(command.tool("plan", "--feedstock", "demo", "--channel", "stand-in"), tmp_path, environment)
    assert "0 rows to build, 0 up to date, 1 configuration refused" in planned.stdout
    assert "the stand-in channel has no zlib" in planned.stdout


@needs("system", HERE.subdir == "linux-64", "the stand-in channel has CUDA's packages for linux-64")
def test_what_the_channel_lacks_is_the_same_reason_wherever_states_are_shown(tmp_path: Path) -> None:
    spec = SPEC.replace("[REQUIRED]", "[{package: libpng, when: linux-aarch64}]").replace(
        "-64: }", "-64: , linux-aarch64: }"
    )
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "feedstock.yaml").write_text(spec.replace("test -f $PREFIX/include/cudnn.h", "true"))
    lend_tools(tmp_path / "cache")
    environment = command.environment(XDG_CACHE_HOME=str(tmp_path / "cache"))

    def ran(*words: str) -> str:
        run = command.run(command.tool(*words), tmp_path, environment)
        assert run.returncode == 0, run.stderr
        return run.stdout

    on = ("--feedstock", "demo", "--channel", "stand-in")
    for words in (("generate", "demo"), ("rerender", "demo", "--smithy", "none"), ("build", *on, "linux_64_cpu")):
        ran(*words)
    (arm,) = json.loads(ran("plan", *on, "--json"))["refused"].items()
    assert arm == ("linux_aarch64_", "the stand-in channel has no libpng")
    states = {each["name"]: each for each in json.loads(ran("status", *on, "--json"))["configurations"]}
    assert {name: each["state"] for name, each in states.items()} == {"linux_64_": "done", "linux_aarch64_": "refused"}
    workspace = open_workspace(tmp_path / "demo", None, ("stand-in",), environment)
    assert plan(workspace, workspace.chosen(), Capacity.of_machine()).refused == dict([arm])
    assert [each.reason for each in read_matrix(workspace, workspace.chosen()).configurations] == ["", arm[1]]
    unknown = open_workspace(tmp_path / "demo", None, (str(tmp_path / "no channel"),), environment)
    states_of = read_matrix(unknown, unknown.chosen()).configurations
    assert states_of[1].state == "missing", "the packages of a channel that does not answer are unknown"
