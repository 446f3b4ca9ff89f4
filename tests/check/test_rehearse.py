"""Rehearsing feedstocks of both formats in a made-up channel: what solves, why not, and which builds users get."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from feedstock_tools.builds.channels import channels_to_rehearse
from feedstock_tools.check.findings import Verdict
from feedstock_tools.check.rehearsal import (
    Environment,
    Rehearsal,
    RehearsalChannels,
    rehearse,
    rehearse_feedstock,
    rows_to_rehearse,
)
from feedstock_tools.cli.checks import rehearse as command
from feedstock_tools.feedstock.configurations import configurations_of
from feedstock_tools.feedstock.folder import Feedstock
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.report.checks.rehearsal import rehearsal_text
from feedstock_tools.rerender.configuration import read_configurations
from feedstock_tools.rerender.outputs import output_files
from feedstock_tools.rerender.rules import Rules

RECIPE = """\
schema_version: 1
recipe: {name: demo-split, version: 1.2.3}
build:
  number: NUMBER
outputs:
  - package: {name: libdemo}
    build:
      string: ${{ "cuda" ~ cuda_compiler_version | replace(".", "") if cuda_compiler_version != "None" else "cpu" }}_0
    requirements:
      build: ["${{ compiler('c') }}"]
      host: [zlib]
      run:
        - if: cuda_compiler_version != "None"
          then: GUARD
      run_exports: ["${{ pin_subpackage('libdemo', upper_bound='x.x') }}"]
  - package: {name: demo}
    build:
      string: ${{ "cuda" ~ cuda_compiler_version | replace(".", "") if cuda_compiler_version != "None" else "cpu" }}_0
    requirements:
      host: ["${{ pin_subpackage('libdemo', exact=True) }}"]
      run: ["${{ pin_subpackage('libdemo', exact=True) }}"]
    tests:
      - script: ["true"]
        requirements: {run: [tester]}
"""
GUARD = "__cuda >=${{ cuda_compiler_version }}"
GROWING = '${{ cuda_compiler_version | replace(".", "") | int if cuda_compiler_version != "None" else 0 }}'


META = """\
package: {name: demo, version: 1.2.3}
build:
  number: 0
  string: cuda{{ cuda_compiler_version | replace('.', '') }}_0  # [cuda_compiler_version != "None"]
  string: cpu_0  # [cuda_compiler_version == "None"]
requirements:
  build:
    - {{ compiler('c') }}
  host:
    - zlib
  run:
    - {{ pin_compatible('zlib', max_pin='x.x') }}
    - __cuda >={{ cuda_compiler_version }}  # [cuda_compiler_version != "None"]
test:
  requires:
    - tester
outputs:
  - name: demo
  - name: demo-extra
    requirements:
      run:
        - {{ pin_subpackage('demo', exact=True) }}
    test:
      requires:
        - nowhere
"""


def package(name: str, version: str = "1.0", **more: Any) -> dict[str, Any]:
    entry = {"name": name, "version": version, "build": "h0_0", "build_number": 0, "depends": [], "run_exports": {}}
    return {**entry, "subdir": "linux-64", **more}


PACKAGES = (
    package("gcc_linux-64", "12.4.0", run_exports={"strong": ["libgcc >=12"]}),
    package("libgcc", "14.1.0"),
    package("zlib", "1.3.1", run_exports={"weak": ["libzlib >=1.3.1,<2.0a0"]}),
    package("libzlib", "1.3.1"),
    package("tester"),
    package("tester", "2.0", depends=["libzlib >=2"]),
    *(package("cudatoolkit", version, constrains=["__cuda >=11"]) for version in ("11.0.3", "11.1.1", "11.2.2")),
)


def make_channel(folder: Path, packages: Sequence[Mapping[str, Any]] = PACKAGES) -> Path:
    for subdir in ("linux-64", "noarch"):
        entries = {
            f"{one['name']}-{one['version']}-{one['build']}.conda": one for one in packages if one["subdir"] == subdir
        }
        (folder / subdir).mkdir(parents=True, exist_ok=True)
        document = {"info": {"subdir": subdir}, "packages": {}, "packages.conda": entries}
        (folder / subdir / "repodata.json").write_text(json.dumps(document))
    return folder


def make_feedstock(
    folder: Path, recipe: str, cudas: Sequence[str] = ("None", "11.1", "11.2"), *, v1: bool = True, keys: str = ""
) -> Path:
    for place in ("recipe", ".ci_support"):
        (folder / place).mkdir(parents=True)
    (folder / "recipe" / ("recipe.yaml" if v1 else "meta.yaml")).write_text(recipe)
    (folder / "conda-forge.yml").write_text("conda_build_tool: rattler-build\n" if v1 else "{}\n")
    for cuda in cudas:
        (folder / ".ci_support" / f"linux_64_cuda_compiler_version{cuda}.yaml").write_text(
            f"c_compiler: [gcc]\nc_compiler_version: ['12']\ncuda_compiler_version: ['{cuda}']\n"
            f"target_platform: [linux-64]\nzlib: ['1']\n{keys}"
        )
    return folder


@pytest.fixture
def channel(tmp_path: Path) -> Path:
    return make_channel(tmp_path / "channel")


def recipe(guard: str = GUARD, number: str = GROWING) -> str:
    return RECIPE.replace("GUARD", guard).replace("NUMBER", number)


def rehearsed(feedstock: Path, channel: Path, *names: str, **more: Any) -> Rehearsal:
    meant = Feedstock(feedstock)
    artifacts = Artifacts(meant.artifacts)
    configurations = configurations_of(feedstock, names)
    channels = channels_to_rehearse(meant, artifacts, configurations, [str(channel)], {})
    return rehearse_feedstock(meant, artifacts, configurations, channels, **more)


def of(found: Rehearsal, output: str, kind: str) -> Environment:
    return next(one for one in found.environments if one.output == output and one.kind == kind)


def picked(found: Rehearsal, name: str) -> dict[str | None, str | None]:
    return {pick.driver: pick.build for pick in found.picks if pick.name == name}


def test_every_environment_of_a_feedstock_is_solved_with_its_own_outputs(tmp_path: Path, channel: Path) -> None:
    found = rehearsed(make_feedstock(tmp_path / "demo", recipe()), channel)

    assert found.verdict is Verdict.RIGHT
    assert {one.state for one in found.environments} == {"solved"}
    # libdemo, and what it requires at run time because it was built with gcc and zlib
    assert of(found, "libdemo", "run").packages == 3
    # libdemo exports itself to demo; tester 2 needs a zlib that libdemo does not go with
    assert of(found, "demo", "test").packages == 5


def test_users_get_the_build_that_is_meant(tmp_path: Path, channel: Path) -> None:
    found = rehearsed(make_feedstock(tmp_path / "demo", recipe()), channel)

    builds = picked(found, "demo")
    assert builds[None] == builds["10.2"] == "1.2.3 cpu_0"
    assert builds["11.1"] == "1.2.3 cuda111_0"
    assert builds["11.2"] == builds["11.4"] == builds["12.2"] == builds["12.9"] == "1.2.3 cuda112_0"
    assert not any(pick.mistake for pick in found.picks)


@pytest.mark.parametrize(
    ("guard", "drivers"),
    [
        (GUARD, {"11.2", "12.9"}),
        # cudatoolkit 11.x needs a driver for 11, no newer one; builds accept any toolkit that is not older than theirs
        ("cudatoolkit >=${{ cuda_compiler_version }},<12", {"11.0", "11.2", "12.9"}),
    ],
)
def test_a_choice_that_only_time_stamps_decide_is_a_mistake(
    tmp_path: Path, channel: Path, guard: str, drivers: set[str]
) -> None:
    found = rehearsed(make_feedstock(tmp_path / "demo", recipe(guard, "0")), channel)

    by_time = {pick.driver for pick in found.picks if pick.name == "demo" and pick.by_time}
    assert found.verdict is Verdict.WRONG
    assert drivers <= by_time
    arguments = ["--feedstock", str(tmp_path / "demo"), "--channel", str(channel)]
    shown = CliRunner().invoke(command, arguments, standalone_mode=False)
    assert shown.return_value == 1
    assert "only time stamps decide" in shown.output


def test_a_cpu_build_that_is_marked_down_leaves_nothing_to_time_stamps(tmp_path: Path, channel: Path) -> None:
    marked = (
        "    build:\n      variant: {down_prioritize_variant: \"${{ 1 if cuda_compiler_version == 'None' else 0 }}\"}\n"
    )
    feedstock = make_feedstock(tmp_path / "demo", recipe(GUARD, "0").replace("    build:\n", marked), ("None", "11.2"))
    found = rehearsed(feedstock, channel)

    assert found.verdict is Verdict.RIGHT
    assert picked(found, "demo")["11.2"] == "1.2.3 cuda112_0"
    assert picked(found, "demo")[None] == "1.2.3 cpu_0"


def test_what_only_time_stamps_chose_of_other_packages_is_noted_and_no_mistake(tmp_path: Path) -> None:
    twins = [package("zlib", "1.3.1", build="h1_0"), package("tester", "1.0", build="h1_0", depends=["nowhere"])]
    channel = make_channel(tmp_path / "channel", [*PACKAGES, *twins])
    feedstock = make_feedstock(tmp_path / "demo", recipe())

    found = rehearsed(feedstock, channel, "linux_64_cuda11.2")
    assert found.verdict is Verdict.RIGHT
    told = {(one.output, one.kind): one.by_time for one in found.environments if one.by_time}
    assert told.keys() == {("libdemo", "host")}
    assert set(told["libdemo", "host"].split(" or ")) == {"zlib 1.3.1 h0_0", "zlib 1.3.1 h1_0"}
    text = rehearsal_text(Rehearsal.from_json(json.loads(json.dumps(found.to_json()))))
    assert "note (linux-64): host of libdemo\n  zlib 1.3.1 h" in text


def test_a_gpu_build_without_a_guard_is_not_what_is_meant_without_a_gpu(tmp_path: Path, channel: Path) -> None:
    found = rehearsed(make_feedstock(tmp_path / "demo", recipe("zlib")), channel)

    mistakes = {pick.driver: pick.mistake for pick in found.picks if pick.name == "demo"}
    assert mistakes[None] == "it is for CUDA 11.2 instead of CPU"
    assert mistakes["11.2"] is None


def test_a_package_that_no_channel_has_is_named_once(tmp_path: Path) -> None:
    channel = make_channel(tmp_path / "channel", [one for one in PACKAGES if one["name"] != "gcc_linux-64"])
    feedstock = make_feedstock(tmp_path / "demo", recipe())

    shown = CliRunner().invoke(command, [str(feedstock), "--channel", str(channel)], standalone_mode=False)

    assert shown.return_value == 1
    assert shown.output.count("no channel has gcc_linux-64") == 1
    assert "does not solve (linux-64): build of libdemo" in shown.output
    states = {one.output + " " + one.kind: one.state for one in rehearsed(feedstock, channel).environments}
    assert states["libdemo build"] == "failed"
    assert states["libdemo run"] == states["demo run"] == "waiting"


def test_a_conflict_is_reported_in_a_few_words(tmp_path: Path, channel: Path) -> None:
    feedstock = make_feedstock(tmp_path / "demo", recipe().replace("host: [zlib]", "host: [zlib, tester 2.*]"))

    failed = of(rehearsed(feedstock, channel), "libdemo", "host")

    assert failed.state == "failed"
    assert "tester 2.0 requires libzlib >=2, which no channel has" in (failed.reason or "")


def test_an_invalid_requirement_is_reported_like_a_conflict(tmp_path: Path, channel: Path) -> None:
    meta = META.replace("    - zlib\n", "    - zlib >=1.3,,<\n")

    failed = of(rehearsed(make_feedstock(tmp_path / "demo", meta, v1=False), channel), "demo", "host")

    assert failed.state == "failed"
    assert "'zlib >=1.3,,<' is not a match specification" in (failed.reason or "")


def test_names_choose_configurations(tmp_path: Path, channel: Path) -> None:
    found = rehearsed(make_feedstock(tmp_path / "demo", recipe()), channel, "linux_64_cuda11.2")

    assert {one.configuration for one in found.environments} == {"linux_64_cuda_compiler_version11.2"}


def test_nothing_is_solved_again_while_nothing_has_changed(tmp_path: Path, channel: Path) -> None:
    feedstock = make_feedstock(tmp_path / "demo", recipe())
    solved: list[int] = []

    first = rehearsed(feedstock, channel, progress=solved.append)
    assert solved
    solved.clear()
    assert rehearsed(feedstock, channel, progress=solved.append) == first
    assert not solved
    make_channel(channel, [*PACKAGES, package("zlib", "1.3.2")])
    rehearsed(feedstock, channel, progress=solved.append)
    assert solved


def test_json_tells_all(tmp_path: Path, channel: Path) -> None:
    feedstock = make_feedstock(tmp_path / "demo", recipe())

    shown = CliRunner().invoke(command, [str(feedstock), "--channel", str(channel), "--json"], standalone_mode=False)

    document = json.loads(shown.output)
    assert document["verdict"] == "right"
    assert Rehearsal.from_json(document) == rehearsed(feedstock, channel)


def test_a_meta_yaml_is_rehearsed_like_a_recipe_yaml(tmp_path: Path, channel: Path) -> None:
    found = rehearsed(make_feedstock(tmp_path / "demo", META, v1=False), channel)

    assert of(found, "demo", "build").packages == 1
    assert of(found, "demo", "host").packages == 2  # zlib, and libgcc that the compiler exports
    assert of(found, "demo", "run").state == of(found, "demo-extra", "run").state == "solved"
    assert of(found, "demo-extra", "test").reason == "no channel has nowhere"
    assert {pick.mistake for pick in found.picks if pick.driver in ("11.2", "12.9")} == {
        "only time stamps decide which build users get"
    }


def test_a_meta_yaml_promises_the_names_in_outputs(tmp_path: Path) -> None:
    feedstock = make_feedstock(tmp_path / "demo", META, v1=False)
    configurations = read_configurations(feedstock)

    rows = rows_to_rehearse(feedstock, configurations, Rules.newest())

    promised = {package.output.file_stem for row in rows for package in row.packages}
    assert promised == {file.file_name.removesuffix(".conda") for file in output_files(feedstock, configurations)}


PER_PYTHON = """\
package: {name: demo-split, version: 1.2.3}
build: {number: 0}
outputs:
  - name: demo-gpu
    requirements:
      run:
        - demo 1.2.3
  - name: demo
    requirements:
      host:
        - python
      run:
        - python
"""


def test_an_output_may_require_one_that_another_row_of_its_job_builds(tmp_path: Path) -> None:
    """A metapackage does not depend on Python, and the package that it requires is built for each."""
    packages = [package("python", version) for version in ("3.11.0", "3.12.0")]
    channel = make_channel(tmp_path / "channel", packages)
    folder = make_feedstock(tmp_path / "demo", PER_PYTHON, ("None",), v1=False, keys="python: ['3.11', '3.12']\n")
    found = rehearsed(folder, channel)
    assert {one.state for one in found.environments} == {"solved"}, found
    assert {one.row for one in found.environments if one.output == "demo"} != {of(found, "demo-gpu", "run").row}


def test_what_a_stand_in_channel_lacks_is_unknown_and_not_wrong(tmp_path: Path, channel: Path) -> None:
    text = recipe().replace("host: [zlib]", "host: [zlib, cudnn]").replace("run: [tester]", "run: [tester, absent]")
    feedstock = make_feedstock(tmp_path / "demo", text)
    rows = rows_to_rehearse(feedstock, read_configurations(feedstock), Rules.newest())

    found = rehearse(rows, RehearsalChannels({"linux-64": [str(channel)]}, "no channel can be reached"))

    assert found.verdict is Verdict.UNKNOWN
    assert {check.reason for check in found.checks} == {"12 of 18 environments lack packages in incomplete channels"}
    assert rehearsal_text(found).startswith(
        "2 of 2 checks could not be completed: environments, choices for users (12 "
    )
    assert of(found, "libdemo", "host").state == of(found, "demo", "run").state == "unknown"
    # what runs or tests need is named, though it waits for what a build lacks
    assert "unknown for linux-64, since the stand-in channel lacks\n  absent, cudnn\n" in rehearsal_text(found)


def test_a_cross_build_has_its_compiler_from_the_builder_and_its_host_from_the_target(
    tmp_path: Path, channel: Path
) -> None:
    feedstock = make_feedstock(tmp_path / "demo", recipe(), ["None"])
    place = feedstock / ".ci_support"
    text = (place / "linux_64_cuda_compiler_versionNone.yaml").read_text().replace("linux-64", "linux-aarch64")
    (place / "linux_aarch64_.yaml").write_text(text)
    (feedstock / "conda-forge.yml").write_text(
        "conda_build_tool: rattler-build\nbuild_platform: {linux_aarch64: linux_64}\n"
        "provider: {linux_aarch64: default}\n"
    )

    found = rehearsed(feedstock, channel, "linux_aarch64_")

    assert of(found, "libdemo", "build").platform == "linux-64"
    assert of(found, "libdemo", "build").reason == "no channel has gcc_linux-aarch64"
    assert of(found, "libdemo", "host").platform == "linux-aarch64"
