"""Faults of the pinned py-rattler-build: each test shows one, so that it fails when a newer release mends the fault.

docs/engine.md describes our guard against each. If a test fails after an update, the guard that it names can go.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from feedstock_tools.builds.engines.contract import BuildRequest
from feedstock_tools.builds.engines.embedded.crossing import crossing, without_host_platform
from feedstock_tools.builds.engines.embedded.fixed_place import is_possible
from feedstock_tools.builds.plan.rendering import promise_row, render_outputs
from feedstock_tools.channel.folder import index_channel
from feedstock_tools.channel.metadata import PackageMetadata
from feedstock_tools.channel.packages.archive import write_package
from feedstock_tools.channel.packages.reading import read_documents, read_package
from feedstock_tools.channel.repodata import read_records
from feedstock_tools.feedstock.configurations import outline
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.v1_engine import plain, read_v1, render_row
from tests.support import command
from tests.support.feedstocks import HERE, TinyFeedstock

TWO_OUTPUTS = """
recipe: {name: pair, version: "1"}
build: {number: 0}
outputs:
  - package: {name: pair-lib}
    build: {string: "${{ kind }}_0"}
  - package: {name: pair}
    build: {string: "${{ kind }}_0"}
    requirements:
      run: ["${{ pin_subpackage('pair-lib', exact=true) }}"]
"""

SKIPPED = """
package: {name: single, version: "1"}
build:
  number: 0
  skip: [kind == "cpu"]
"""


def recipe_file(folder: Path, text: str) -> Path:
    """A recipe in a folder of its own."""
    path = folder / "recipe" / "recipe.yaml"
    path.parent.mkdir()
    path.write_text(text)
    return path


def test_g1_an_exact_pin_goes_to_the_last_variant_rendered(tmp_path: Path) -> None:
    from rattler_build import PlatformConfig, RenderConfig, Stage0Recipe, VariantConfig

    recipe = Stage0Recipe.from_file(recipe_file(tmp_path, TWO_OUTPUTS))
    config = RenderConfig(PlatformConfig(target_platform=HERE.subdir))
    rendered = recipe.render(VariantConfig({"kind": ["cuda", "cpu"]}), config)
    pinned = {}
    for variant in rendered:
        result = variant.run_build(output_dir=tmp_path / "out", channels=[])
        if variant.recipe.package.name == "pair":
            pinned[result.build_string] = read_package(Path(result.packages[0])).depends
    wrong = [build for build, depends in pinned.items() if depends != (f"pair-lib ==1 {build}",)]
    assert len(wrong) == 1, "mended: rows need not be rendered alone any more"


def test_g1_guard_a_row_that_is_rendered_alone_has_its_own_pins(tmp_path: Path) -> None:
    recipe = read_v1(recipe_file(tmp_path, TWO_OUTPUTS))
    for kind in ("cuda", "cpu"):
        rendered = render_row(recipe, kind, {"kind": kind}, HERE, HERE)
        (result,) = [
            variant.run_build(output_dir=tmp_path / kind, channels=[])
            for variant in rendered
            if variant.recipe.package.name == "pair"
        ]
        assert read_package(Path(result.packages[0])).depends == (f"pair-lib ==1 {kind}_0",)


def test_g2_skip_is_ignored_in_a_recipe_without_outputs(tmp_path: Path) -> None:
    from rattler_build import PlatformConfig, RenderConfig, Stage0Recipe, VariantConfig

    recipe = Stage0Recipe.from_file(recipe_file(tmp_path, SKIPPED))
    config = RenderConfig(PlatformConfig(target_platform=HERE.subdir))
    assert len(recipe.render(VariantConfig({"kind": ["cpu"]}), config)) == 1, "mended: the probe can go"


def test_g2_guard_such_a_skip_is_evaluated(tmp_path: Path) -> None:
    recipe = read_v1(recipe_file(tmp_path, SKIPPED))
    assert render_row(recipe, "cpu", {"kind": "cpu"}, HERE, HERE) == []
    assert len(render_row(recipe, "cuda", {"kind": "cuda"}, HERE, HERE)) == 1


def test_false_in_a_configuration_is_false_in_a_recipe(tmp_path: Path) -> None:
    recipe = "package: {name: flagged, version: '1'}\nbuild: {string: \"${{ 'free' if free else 'gil' }}\"}\n"
    (rendered,) = render_row(read_v1(recipe_file(tmp_path, recipe)), "gil", {"free": "false"}, HERE, HERE)
    assert rendered.recipe.build.string == "gil"


NEEDS_LIBRARY = """
recipe: {name: user, version: "1"}
outputs:
  - package: {name: user}
    build: {number: 0, script: [echo]}
    requirements:
      host: ["shared >=2"]
"""


@pytest.fixture
def two_channels(tmp_path: Path) -> tuple[Path, Path]:
    """A preferred channel with an old version of a package, and another with a new one."""
    folders = tmp_path / "preferred", tmp_path / "other"
    for folder, version in zip(folders, ("1.0", "2.0"), strict=True):
        write_package(folder, PackageMetadata("shared", version, "0", 0, HERE.subdir))
        index_channel(folder)
    return folders


def test_g3_strict_priority_does_not_hold_for_what_a_recipe_asks_for(
    tmp_path: Path, two_channels: tuple[Path, Path]
) -> None:
    recipe = read_v1(recipe_file(tmp_path, NEEDS_LIBRARY))
    (variant,) = render_row(recipe, "only", {}, HERE, HERE)
    result = variant.run_build(output_dir=tmp_path / "out", channels=[folder.as_uri() for folder in two_channels])
    assert result.name == "user", "mended: the check of channels can go"


def test_g3_guard_such_a_package_does_not_enter_the_channel(
    feedstock: TinyFeedstock, two_channels: tuple[Path, Path]
) -> None:
    feedstock.edit("recipe/recipe.yaml", "- tiny-compiler", "- tiny-compiler\n        - shared >=2")
    channels = [part for folder in two_channels for part in ("--channel", str(folder))]
    run = feedstock.build(f"{HERE.name}_cpu_py3.11", *channels)
    assert run.returncode == 1
    assert f"shared was taken from {two_channels[1].as_uri()}, although {two_channels[0].as_uri()} has it" in run.stdout
    assert feedstock.packages() == []


def test_a_templated_script_is_run_as_a_command(tmp_path: Path) -> None:
    from rattler_build import RattlerBuildError

    path = recipe_file(tmp_path, NEEDS_LIBRARY.replace("[echo]", "'${{ \"made.sh\" }}'").replace('"shared >=2"', ""))
    path.with_name("made.sh").write_text("exit 0\n")
    (variant,) = render_row(read_v1(path), "only", {}, HERE, HERE)
    with pytest.raises(RattlerBuildError, match="Script failed"):
        variant.run_build(output_dir=tmp_path / "out", channels=[])


OTHER = Platform.parse("linux-aarch64" if HERE.subdir == "linux-64" else "linux-64")


@pytest.fixture
def cross_request(tmp_path: Path) -> BuildRequest:
    """A cross build of a recipe whose host environment needs a package that only the target has."""
    channel = tmp_path / "channel"
    write_package(channel, PackageMetadata("shared", "2.0", "0", 0, OTHER.subdir))
    index_channel(channel)
    recipe = recipe_file(tmp_path, NEEDS_LIBRARY)
    folder = tmp_path / "private"
    folder.mkdir()
    channels = (channel.as_uri(),)
    return BuildRequest("row", recipe, {}, OTHER.subdir, HERE.subdir, channels, folder, wanted=("user",))


def test_the_host_environment_of_a_cross_build_is_solved_for_the_machine_that_builds(
    cross_request: BuildRequest,
) -> None:
    from rattler_build import RattlerBuildError

    (variant,) = render_row(read_v1(cross_request.recipe), "row", {}, OTHER, HERE)
    try:
        variant.run_build(output_dir=cross_request.output, channels=list(cross_request.channels))
    except RattlerBuildError as error:
        assert "Failed to resolve dependencies" in str(error)
    else:
        pytest.fail("mended: engines/crossing.py and the change of hash_input.json can go")


def test_the_host_platform_comes_from_a_variant_key_that_is_then_listed_in_the_hash_input(
    cross_request: BuildRequest,
) -> None:
    rendered = render_row(read_v1(cross_request.recipe), "row", {}, OTHER, HERE)
    result = crossing(rendered[0], rendered, cross_request).run_build(
        output_dir=cross_request.output, channels=list(cross_request.channels)
    )
    package = Path(result.packages[0])
    assert result.build_string == rendered[0].recipe.build.string
    assert b"host_platform" in (read_documents(package, ["info/hash_input.json"])["info/hash_input.json"] or b"")
    without_host_platform(package, cross_request)
    assert json.loads(read_documents(package, ["info/hash_input.json"])["info/hash_input.json"] or b"") == dict(
        rendered[0].variant
    )


def test_a_staging_output_is_built_for_the_target_of_a_cross_build(cross_request: BuildRequest) -> None:
    needs = "    build:\n      script:\n        - echo run"
    text = STAGED.replace(needs, f"    requirements: {{host: [shared]}}\n{needs}")
    recipe, _ = staged_recipe(cross_request.folder, text)
    rendered = render_row(read_v1(recipe), "row", {}, OTHER, HERE)
    for variant in rendered:
        crossed = crossing(variant, rendered, replace(cross_request, recipe=recipe))
        result = crossed.run_build(output_dir=cross_request.output, channels=list(cross_request.channels))
        made = read_package(Path(result.packages[0]))
        assert (made.subdir, made.build) == (OTHER.subdir, variant.recipe.build.string)


def test_a_noarch_output_of_a_cross_build_stays_one(cross_request: BuildRequest) -> None:
    cross_request.recipe.write_text(NEEDS_LIBRARY.replace("number: 0,", "number: 0, noarch: generic,"))
    rendered = render_row(read_v1(cross_request.recipe), "row", {"target_platform": OTHER.subdir}, OTHER, HERE)
    request = replace(cross_request, values={"target_platform": OTHER.subdir})
    result = crossing(rendered[0], rendered, request).run_build(
        output_dir=request.output, channels=list(request.channels)
    )
    assert read_package(Path(result.packages[0])).subdir == "noarch"


def test_a_debug_session_does_not_know_siblings(tmp_path: Path) -> None:
    from rattler_build import DebugSession, RattlerBuildError

    text = TWO_OUTPUTS.replace("run:", "host:")
    rendered = render_row(read_v1(recipe_file(tmp_path, text)), "cpu", {"kind": "cpu"}, HERE, HERE)
    with pytest.raises(RattlerBuildError, match="subpackage is not available"):
        DebugSession.create(rendered[1], output_dir=tmp_path / "out", channels=[])


def test_a_package_of_the_same_name_is_not_indexed_again(tmp_path: Path) -> None:
    """By py-rattler's indexer, unless it has to read everything again."""
    for depends in ((), ("zlib",)):
        write_package(tmp_path, PackageMetadata("a", "1", "0", 0, HERE.subdir, depends=depends))
        index_channel(tmp_path)
    (record,) = read_records(tmp_path.as_uri(), [HERE.subdir])
    assert record.depends == (), "mended: folder.add_packages need not ask for it"
    index_channel(tmp_path, replaced=True)
    (record,) = read_records(tmp_path.as_uri(), [HERE.subdir])
    assert record.depends == ("zlib",)


def test_a_recipe_that_cannot_be_rendered_is_a_refusal_and_not_an_end(feedstock: TinyFeedstock) -> None:
    feedstock.edit("recipe/recipe.yaml", "number: ${{ number }}", "number: ${{ nothing_of_that_name }}")
    plan, _ = render_outputs(
        outline(feedstock.folder), feedstock.folder / "recipe" / "recipe.yaml", {HERE.subdir: "engine 1"}
    )
    assert all("cannot be rendered" in (configuration.refusal or "") for configuration in plan)
    assert json.loads(json.dumps([each.to_json() for each in plan]))


STAGED = """
recipe: {name: staged, version: "1"}
build: {number: 0}
outputs:
  - staging: {name: staged-build}
    source: {path: ../src}
    build:
      script:
        - echo run >> RUNS
        - mkdir -p $PREFIX/lib $PREFIX/share
        - cp part.txt $PREFIX/lib/
        - cp part.txt $PREFIX/share/
  - package: {name: libstaged}
    inherit: staged-build
    build: {files: [lib/**]}
  - package: {name: staged}
    inherit: staged-build
    build: {files: [share/**]}
"""


def staged_recipe(feedstock: Path, text: str = STAGED) -> tuple[Path, Path]:
    """A recipe with a staging output, and the file to which its script adds a line each time that it runs."""
    recipe, source, runs = feedstock / "recipe" / "recipe.yaml", feedstock / "src" / "part.txt", feedstock / "runs.txt"
    for path, content in ((recipe, text.replace("RUNS", str(runs))), (source, "a part\n")):
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    return recipe, runs


def test_a_staging_output_is_built_for_each_heir(tmp_path: Path) -> None:
    path, runs = staged_recipe(tmp_path)
    for variant in render_row(read_v1(path), "only", {}, HERE, HERE):
        variant.run_build(output_dir=tmp_path / "out", channels=[], no_build_id=True)
    assert len(runs.read_text().split()) == 2, "mended: embedded/sharing.py can go"


def test_the_command_line_of_the_engine_shares_it_but_takes_no_channels(tmp_path: Path) -> None:
    from rattler_build import RattlerBuildError
    from rattler_build.cli_api import build_recipes

    path, runs = staged_recipe(tmp_path)
    out = tmp_path / "out"
    with pytest.warns(DeprecationWarning):
        build_recipes([path], output_dir=out, channel=[], test="skip")
    assert len(runs.read_text().split()) == 1
    assert sorted(each.name.split("-1-")[0] for each in out.glob("*/*.conda")) == ["libstaged", "staged"]
    sources = {"channel_sources": ["conda-forge"]}
    with pytest.warns(DeprecationWarning), pytest.raises(RattlerBuildError, match="cannot both be set"):
        build_recipes([path], output_dir=out, channel=[out.as_uri()], variant_overrides=sources)


def test_a_staging_output_that_runs_again_is_reported_before_the_build(feedstock: TinyFeedstock) -> None:
    """Where the system cannot show all rows their folders at one path."""
    _, runs = staged_recipe(feedstock.folder)
    alone = "from feedstock_tools.builds.engines.embedded.engine import RattlerBuild\nRattlerBuild.keeps_shared = False"
    run = command.run(feedstock.patched_build(alone, f"{HERE.name}_cpu_py3.11"), feedstock.folder)
    assert run.returncode == 0, run.stdout + run.stderr
    warning = "the script of the staging output staged-build will run 2 times, once for each of libstaged, staged"
    assert warning in run.stdout
    assert run.stdout.index(warning) < run.stdout.index("-- building libstaged")
    assert len(runs.read_text().split()) == 2
    (log,) = (feedstock.artifacts / "logs").iterdir()
    assert warning in log.read_text()


def test_a_staging_output_runs_once_where_the_system_allows_it(feedstock: TinyFeedstock) -> None:
    _, runs = staged_recipe(feedstock.folder)
    run = feedstock.build(f"{HERE.name}_cpu_py3.11")
    assert run.returncode == 0, run.stdout + run.stderr
    if is_possible():
        assert "WARNING" not in run.stdout
        assert len(runs.read_text().split()) == 1


def test_one_heir_alone_needs_no_warning(feedstock: TinyFeedstock) -> None:
    staged_recipe(feedstock.folder, STAGED.replace("    inherit: staged-build\n    build: {files: [lib/**]}\n", "", 1))
    run = feedstock.build(f"{HERE.name}_cpu_py3.11")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "staging output" not in run.stdout


def test_a_source_of_a_staging_output_is_part_of_what_its_heirs_are(tmp_path: Path) -> None:
    path, _ = staged_recipe(tmp_path)
    rendered = render_row(read_v1(path), "only", {}, HERE, HERE)
    before = [output.identity for output in promise_row(map(plain, rendered), path.parent, "engine 1")]
    (tmp_path / "src" / "part.txt").write_text("another part\n")
    after = [output.identity for output in promise_row(map(plain, rendered), path.parent, "engine 1")]
    assert not set(before) & set(after)
