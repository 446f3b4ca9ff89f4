"""The feedstock's own script, with a stand-in for docker that records its arguments and acts as the container.

The comparison with conda-smithy's `build-locally.py` needs clones of feedstocks in the folder that FEEDSTOCK_MIRROR
names (default `../.mirror`): `<owner>+<name>/repo`, as bare clones.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from feedstock_tools.builds.engines import feedstock_script
from feedstock_tools.builds.engines.choice import Engines
from feedstock_tools.builds.engines.container import find_runtime
from feedstock_tools.builds.engines.contract import BuildRequest, Built, Failed
from feedstock_tools.builds.engines.feedstock_script import FeedstockScript, script_for
from feedstock_tools.builds.engines.variables import RowSetting, build_environment
from feedstock_tools.channel.metadata import PackageMetadata
from feedstock_tools.channel.packages.archive import write_package
from feedstock_tools.feedstock.configurations import outline
from tests.support.command import run, tool
from tests.support.feedstocks import HERE
from tests.support.needs import needs, the_clone
from tests.support.paths import ROOT

pytestmark = needs("system", HERE.subdir == "linux-64", "the scripts tested are those for linux-64")
SCRIPTED = Path(__file__).parent / "scripted-feedstock"

#: Records its arguments and the value of each variable that it passes on, then makes what a build would make.
DOCKER = """#!{python}
import json, os, shutil, sys
from pathlib import Path
words = sys.argv[1:]
passed = [words[at + 1] for at, word in enumerate(words) if word == "-e"]
with open({record!r}, "a") as record:
    record.write(json.dumps([words, {{name: os.environ.get(name) for name in passed}}]) + "\\n")
if words[0] == "run":
    mounts = [words[at + 1].split(":") for at, word in enumerate(words) if word == "-v"]
    root = Path(next(mount[0] for mount in mounts if mount[1] == "/home/conda/feedstock_root"))
    print("a terminal" if os.isatty(0) and os.isatty(1) else "no terminal")
    (root / "build_artifacts/noarch").mkdir(parents=True, exist_ok=True)
    for name in ("conda-forge-build-done-", "done-"):
        (root / "build_artifacts" / (name + os.environ["CONFIG"])).touch()
    if {status}:
        sys.exit("TESTS FAILED: scripted")
    shutil.copy({package!r}, root / "build_artifacts/noarch")
"""


def stand_in(folder: Path, *, status: int = 0, build: str = "plain_3") -> Path:
    """A folder with a `docker` for PATH, which records its calls in `record.jsonl` there."""
    folder.mkdir()
    package = package_of(folder, build)
    text = DOCKER.format(
        python=sys.executable, record=str(folder / "record.jsonl"), status=status, package=str(package)
    )
    (folder / "docker").write_text(text)
    (folder / "docker").chmod(0o755)
    return folder


def package_of(folder: Path, build: str) -> Path:
    """The package of the feedstock, with this build string."""
    return write_package(folder / "made", PackageMetadata("scripted", "1.2", build, 3, "noarch", noarch="generic"))


def recorded(folder: Path) -> list[tuple[list[str], dict[str, str | None]]]:
    """The calls of a stand-in, except those that only check whether it answers and has an image."""
    calls = [json.loads(line) for line in (folder / "record.jsonl").read_text().splitlines()]
    return [(words, passed) for words, passed in calls if words[0] not in {"info", "image"}]


def machine(docker: Path, **more: str) -> dict[str, str]:
    """An environment with the stand-in on PATH, and a proxy, behind which channels are taken to be there."""
    own = {"PYTHONPATH": str(ROOT), "HOME": os.environ.get("HOME", "/"), "HTTPS_PROXY": "http://127.0.0.1:9"}
    return {**own, "PATH": f"{docker}:{os.environ['PATH']}", **more}


def build(folder: Path, environment: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    variables = {"PYTHONPATH": str(ROOT), **environment, "XDG_CACHE_HOME": os.environ["XDG_CACHE_HOME"]}
    return run(tool("build", "linux_64_", "--feedstock", str(folder), *words), variables=variables)


@pytest.fixture
def scripted(tmp_path: Path) -> Path:
    import shutil

    return Path(shutil.copytree(SCRIPTED, tmp_path / "scripted-feedstock"))


def planned_build(folder: Path) -> str:
    """The build string that the plan promises."""
    from feedstock_tools.builds.plan.rendering import render_outputs

    (configuration,), _ = render_outputs(outline(folder), folder / "recipe" / "recipe.yaml", {})
    return configuration.rows[0].outputs[0].build


def test_a_meta_yaml_with_scripts_is_built_by_them_and_recorded(scripted: Path, tmp_path: Path) -> None:
    docker = stand_in(tmp_path / "bin", build=planned_build(scripted))
    ran = build(scripted, machine(docker, SPECIAL_SETTING="on"))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Building for linux-64 with container (.scripts " in ran.stdout
    assert "the feedstock has .scripts/run_docker_build.sh" in ran.stdout
    assert "STAND-IN" not in ran.stdout  # the scripts fetch on their own, wherever they run
    assert (scripted / "build_artifacts/noarch").joinpath(f"scripted-1.2-{planned_build(scripted)}.conda").is_file()
    ((words, passed),) = recorded(docker)
    assert words[1] == "-it"
    assert "a terminal\n" in ran.stdout
    assert words[-3:] == ["example.org/builder:1", "bash", "/home/conda/feedstock_root/.scripts/build_steps.sh"]
    assert passed["CONFIG"] == "linux_64_"
    assert passed["SPECIAL_SETTING"] == "on"
    assert (passed["UPLOAD_PACKAGES"], passed["IS_PR_BUILD"]) == ("False", "True")
    again = build(scripted, machine(docker))
    assert "Nothing to do" in again.stdout


def test_docker_arguments_limit_a_build_to_its_share(scripted: Path, tmp_path: Path) -> None:
    docker = stand_in(tmp_path / "bin", build=planned_build(scripted))
    ran = build(scripted, machine(docker), "--cores", "1", "--memory", "1 GiB")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    ((words, passed),) = recorded(docker)
    assert words[words.index("--cpus") + 1] == "1"
    assert passed["CPU_COUNT"] == "1"


@pytest.mark.parametrize(
    ("named", "shown"), [({}, "example.org/builder:1"), ({"DOCKER_IMAGE": "example.org/own:2"}, "example.org/own:2")]
)
def test_a_plan_shows_the_image_that_runs(scripted: Path, tmp_path: Path, named: Mapping[str, str], shown: str) -> None:
    variables = machine(stand_in(tmp_path / "bin"), **named)
    planned = run(tool("plan", "--feedstock", str(scripted), "--json"), variables=variables)
    assert [row["image"] for row in json.loads(planned.stdout)["todo"]] == [shown]


def test_a_script_that_fails_says_where_it_ended(scripted: Path, tmp_path: Path) -> None:
    docker = stand_in(tmp_path / "bin", status=1)
    ran = build(scripted, machine(docker), "--retries", "0")
    assert ran.returncode == 1
    assert "its tests failed (run_docker_build.sh: status 1)" in ran.stdout + ran.stderr
    assert not list((scripted / "build_artifacts").glob("noarch/*.conda"))


def test_a_package_that_is_not_what_was_promised_does_not_get_into_the_channel(scripted: Path, tmp_path: Path) -> None:
    docker = stand_in(tmp_path / "bin", build="other_3")
    ran = build(scripted, machine(docker), "--retries", "0")
    assert ran.returncode == 1
    assert "build is 'other_3'" in ran.stdout + ran.stderr
    assert not list((scripted / "build_artifacts").glob("noarch/*.conda"))


def test_channels_are_not_given_to_scripts_that_have_their_own(
    scripted: Path, tiny_channel: Path, tmp_path: Path
) -> None:
    ran = build(scripted, machine(stand_in(tmp_path / "bin")), "--channel", str(tiny_channel))
    assert ran.returncode == 2
    assert "the feedstock's own scripts do not accept channels" in ran.stderr


def test_without_docker_and_conda_build_their_engines_say_why_not(scripted: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for engine, reason in (
        ("conda-build", "there is no conda-build on PATH"),
        ("container", "there is neither docker nor podman on PATH"),
    ):
        ran = build(scripted, {"PATH": str(empty)}, "--engine", engine)
        assert ran.returncode == 2
        assert reason in ran.stderr


@pytest.mark.parametrize("docker", ["missing", "without its daemon", "without its channel"])
def test_a_container_that_lacks_something_is_passed_over_with_the_reason(
    scripted: Path, tmp_path: Path, docker: str
) -> None:
    """The next engine is the same whatever it lacks: a conda-build on PATH, else a conversion that loses nothing."""
    folder = stand_in(tmp_path / "bin")
    reason = {
        "missing": "there is neither docker nor podman on PATH",
        "without its daemon": "docker does not answer: no daemon",
        "without its channel": "127.0.0.1:9 cannot be reached",
    }[docker]
    if docker == "missing":
        (folder / "docker").unlink()
        (folder / "python").symlink_to(sys.executable)
    elif docker == "without its daemon":
        (folder / "docker").write_text("#!/bin/sh\necho no daemon >&2\nexit 1\n")
    support = scripted / ".ci_support" / "linux_64_.yaml"
    support.write_text(support.read_text().replace("- conda-forge", "- http://127.0.0.1:9/channel"))
    text = support.read_text().replace("linux-64", "linux-aarch64")
    support.with_name("linux_aarch64_.yaml").write_text(text)
    environment = {**machine(folder, HTTPS_PROXY=""), "PATH": str(folder)}  # not the machine's, which may have podman
    both = run(tool("plan", "--feedstock", str(scripted)), variables=environment)
    assert both.stderr.count("Not with conda-build: ") == 1, both.stderr
    planned = run(tool("plan", "linux_64_", "--feedstock", str(scripted)), variables=environment)
    assert planned.returncode == 0, planned.stderr
    assert f"Not with container: {reason}" in planned.stderr
    assert "Not with conda-build: there is no conda-build on PATH" in planned.stderr
    assert "Converted the meta.yaml to a recipe.yaml for the embedded engine" in planned.stderr
    (folder / "conda-build").write_text("#!/bin/sh\necho conda-build 26.7.1\n")
    (folder / "conda-build").chmod(0o755)
    planned = run(tool("plan", "linux_64_", "--feedstock", str(scripted)), variables=environment)
    assert f"Not with container: {reason}" in planned.stderr
    assert "Building for linux-64 with conda-build (26.7.1): the recipe is a meta.yaml" in planned.stderr
    asked = run(
        tool("plan", "linux_64_", "--feedstock", str(scripted), "--engine", "rattler-build"), variables=environment
    )
    assert "Building for linux-64 with rattler-build" in asked.stderr


def test_platforms_take_the_scripts_that_conda_smithy_takes() -> None:
    assert script_for("linux-aarch64", "linux-64") == ".scripts/run_docker_build.sh"
    assert script_for("osx-64", "linux-64") == ".scripts/run_docker_build.sh"
    assert script_for("osx-arm64", "osx-64") == ".scripts/run_osx_build.sh"
    assert script_for("win-64", "win-64") == ".scripts/run_win_build.bat"
    assert script_for("win-64", "linux-64") is None


@pytest.mark.parametrize(("image", "elsewhere"), [("docker_image:\n- example.org/builder:1\n", False), ("", True)])
def test_a_configuration_for_macos_is_built_on_linux_where_its_ci_does_so(
    scripted: Path, tmp_path: Path, image: str, elsewhere: bool
) -> None:
    (scripted / ".ci_support" / "osx_64_.yaml").write_text(f"{image}target_platform:\n- osx-64\n")
    environment = machine(stand_in(tmp_path / "bin"))
    engines = Engines(scripted, scripted / "recipe" / "recipe.yaml", environment)
    (linux, osx) = outline(scripted)
    assert engines.why_elsewhere(linux) is None
    assert ("need macOS" in (engines.why_elsewhere(osx) or "")) == elsewhere
    assert replace(engines, given="container").why_elsewhere(osx) is None


@pytest.mark.parametrize("docker", ["missing", "without its daemon"])
def test_podman_is_no_runtime_for_a_script_that_runs_docker_by_name(
    scripted: Path, tmp_path: Path, docker: str
) -> None:
    """Those of conda-smithy before DOCKER_EXECUTABLE do, whatever the variable says."""
    script = scripted / ".scripts" / "run_docker_build.sh"
    folder = stand_in(tmp_path / "bin")
    (folder / "docker").rename(folder / "podman")
    if docker != "missing":
        (folder / "docker").write_text("#!/bin/sh\nexit 1\n")
        (folder / "docker").chmod(0o755)
    environment = {**machine(folder), "PATH": f"{folder}:{Path(sys.executable).parent}"}
    runtime = find_runtime(environment, answering=True)
    assert runtime and runtime.is_podman
    assert FeedstockScript(scripted, environment, runtime).why_not("linux-64", "linux-64") is None
    script.write_text(script.read_text().replace("${DOCKER_EXECUTABLE:-docker}", "docker"))
    why = FeedstockScript(scripted, environment, runtime).why_not("linux-64", "linux-64")
    assert "does not read DOCKER_EXECUTABLE: it runs docker" in (why or "")
    planned = run(tool("plan", "linux_64_", "--feedstock", str(scripted)), variables=environment)
    assert f"Not with container: {why}" in planned.stderr


def test_macos_asks_for_the_consent_to_the_license_of_its_sdk(scripted: Path) -> None:
    (scripted / ".scripts" / "run_osx_build.sh").touch()
    engine = FeedstockScript(scripted, {}, None)
    assert "OSX_SDK_DIR" in (engine.why_not("osx-64", "osx-64") or "")
    assert FeedstockScript(scripted, {"OSX_SDK_DIR": "/sdk"}, None).why_not("osx-64", "osx-64") is None


def request(feedstock: Path, folder: Path, environment: Mapping[str, str], at: int) -> BuildRequest:
    """The first row of a configuration of a feedstock, as a run builds it."""
    configuration = [each for each in outline(feedstock) if each.platform == "linux-64"][at]
    row = configuration.rows[0]
    return BuildRequest(
        name=row.name,
        recipe=feedstock / "recipe" / "recipe.yaml",
        values=row.values,
        target="linux-64",
        builder="linux-64",
        channels=("conda-forge",),
        folder=folder,
        wanted=("any",),
        environment=build_environment(
            environment,
            RowSetting(feedstock, configuration.name, row.cuda, folder, folder.parent / "pkg_cache", jobs=2),
        ),
        configuration=configuration.name,
        feedstock=feedstock,
        cores=2,
        memory=1 << 30,
    )


def test_one_value_is_left_for_each_key_of_a_row(scripted: Path, tmp_path: Path) -> None:
    configuration = scripted / ".ci_support" / "linux_64_.yaml"
    configuration.write_text(configuration.read_text().replace("- plain", "- plain\n- fancy"))
    (tmp_path / "private").mkdir()
    docker = stand_in(tmp_path / "bin")
    runtime = find_runtime(machine(docker))
    command = FeedstockScript(scripted, machine(docker), runtime).command(
        request(scripted, tmp_path / "private", machine(docker), 0)
    )
    narrowed = (command.folder / ".ci_support" / "linux_64_.yaml").read_text()
    assert "plain" in narrowed
    assert "fancy" not in narrowed
    assert "fancy" in configuration.read_text()


SPLIT = """\
package:
  name: scripted-split
  version: 1.2
outputs:
  - name: scripted
    files:
      - lib
    build:
      noarch: generic
      string: {{ flavour }}_3
"""


def test_one_call_builds_all_rows_that_share_a_top_level_and_they_take_its_packages(
    scripted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (scripted / "recipe" / "meta.yaml").write_text(SPLIT)
    (scripted / "recipe" / "build.sh").write_text("echo ${size}\n")
    configuration = scripted / ".ci_support" / "linux_64_.yaml"
    configuration.write_text(configuration.read_text().replace("- plain", "- plain\n- fancy\nsize:\n- '1'\n- '2'"))
    environment = machine(stand_in(tmp_path / "bin"))
    made = PackageMetadata("scripted", "1.2", "plain_3", 3, "noarch", noarch="generic")
    package = write_package(tmp_path / "bin" / "made", made)
    monkeypatch.setattr(feedstock_script, "read_hash_input", lambda _: {"flavour": "plain"})
    engine = FeedstockScript(scripted, environment, find_runtime(environment))
    kept, shared, row = tmp_path / "kept", tmp_path / "shared", tmp_path / "row"
    for folder in (kept, shared, row):
        folder.mkdir()
    asked = request(scripted, shared, environment, 0)
    call = replace(asked, wanted=("scripted-split-top-level",), shared={"scripted-split-top-level": kept})
    rows = tuple(f"linux_64__flavour{flavour}_size1" for flavour in ("plain", "fancy"))
    with engine.build(replace(call, only_shared=True, rows=rows)) as events:
        assert [event for event in events if isinstance(event, Built | Failed)][-1:] == [
            Built("scripted-split-top-level", kept, ANY)
        ]
    narrowed = (shared / scripted.name / ".ci_support" / "linux_64_.yaml").read_text()
    assert ("fancy" in narrowed, "'1'" in narrowed, "'2'" in narrowed) == (True, True, False)
    with engine.build(replace(call, folder=row, wanted=("scripted",))) as events:
        assert [event for event in events if isinstance(event, Built)] == [
            Built("scripted", row / "output" / "noarch" / package.name, 0.0)
        ]
    with engine.build(replace(call, wanted=("scripted",), values={**asked.values, "flavour": "fancy"})) as events:
        assert isinstance([*events][-1], Failed)


@pytest.mark.parametrize(("rows", "kept"), [(["4", "5"], [4, 5]), (["5"], [5])])
def test_a_call_has_all_values_of_its_rows_and_a_file_without_others_stays_as_it_is(
    scripted: Path, tmp_path: Path, rows: list[str], kept: list[int]
) -> None:
    import yaml

    (scripted / "recipe" / "meta.yaml").unlink()
    recipe = "package: {name: any, version: '1'}\nbuild: {string: '${{ abi }}_${{ width }}'}\n"
    (scripted / "recipe" / "recipe.yaml").write_text(recipe)
    (scripted / "recipe" / "variants.yaml").write_text("width: [32]\n")
    configuration = scripted / ".ci_support" / "linux_64_.yaml"
    configuration.write_text(f"# mine\n{configuration.read_text()}abi: [4, 5]\n")
    (tmp_path / "shared").mkdir()
    environment = machine(stand_in(tmp_path / "bin"))
    asked = replace(request(scripted, tmp_path / "shared", environment, 0), only_shared=True)
    call = replace(asked, shared={"rows": tmp_path}, rows=tuple(f"linux_64__abi{abi}" for abi in rows))
    command = FeedstockScript(scripted, environment, find_runtime(environment)).command(call)
    text = (command.folder / ".ci_support" / "linux_64_.yaml").read_text()
    assert yaml.safe_load(text)["abi"] == kept
    assert text.startswith("# mine") == (len(kept) == 2)


def test_numbers_and_own_values_of_a_row_are_left_as_rattler_build_would_read_them(
    scripted: Path, tmp_path: Path
) -> None:
    import yaml

    recipe = "package: {name: any, version: '1'}\nbuild: {string: '${{ abi }}_${{ width }}'}\n"
    (scripted / "recipe" / "recipe.yaml").write_text(recipe)
    (scripted / "recipe" / "variants.yaml").write_text("abi: [9]\nwidth: [32, 64]\n")
    with (scripted / ".ci_support" / "linux_64_.yaml").open("a") as file:
        file.write("abi:\n- 4\n- '5'\n")
    (tmp_path / "private").mkdir()
    docker = stand_in(tmp_path / "bin")
    asked = request(scripted, tmp_path / "private", machine(docker), 0)
    command = FeedstockScript(scripted, machine(docker), find_runtime(machine(docker))).command(asked)
    narrowed = yaml.safe_load((command.folder / ".ci_support" / "linux_64_.yaml").read_text())
    assert (narrowed["abi"], narrowed["width"]) == ([4], [32])


@pytest.mark.parametrize(("name", "at"), [("cupy", 0), ("xgboost", 1), ("torchvision", 2), ("nccl", 0)])
def test_docker_is_given_what_the_script_of_conda_smithy_gives_it(name: str, at: int, tmp_path: Path) -> None:
    clone = the_clone(f"{name}-feedstock")
    feedstock = tmp_path / f"{name}-feedstock"
    subprocess.run(["git", "clone", "-q", "--local", str(clone), str(feedstock)], check=True)
    docker = stand_in(tmp_path / "bin")
    environment = {**machine(docker, CPU_COUNT="2", flow_run_id="17", GIT_BRANCH="main"), "BINSTAR_TOKEN": "none"}
    (tmp_path / "private").mkdir()
    ours = FeedstockScript(feedstock, environment, find_runtime(environment))
    asked = request(feedstock, tmp_path / "private", environment, at)
    command = ours.command(asked)
    subprocess.run(command.words, cwd=command.folder, env=dict(command.environment), check=True, capture_output=True)
    (docker / "record.jsonl").rename(tmp_path / "ours.jsonl")
    arguments = command.environment["CONDA_FORGE_DOCKER_RUN_ARGS"]
    subprocess.run(
        [sys.executable, "build-locally.py", asked.configuration],
        cwd=feedstock,
        env={**environment, "CONDA_FORGE_DOCKER_RUN_ARGS": arguments},
        check=True,
        capture_output=True,
    )
    theirs = (docker / "record.jsonl").read_text()
    at_our_place = (tmp_path / "ours.jsonl").read_text()
    assert [json.loads(line)[0][0] for line in theirs.splitlines()] == ["info", "pull", "run"]
    assert _lines(at_our_place.replace(str(command.folder), str(feedstock))) == _lines(theirs)


def _lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]
