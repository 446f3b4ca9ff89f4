"""The settings of conda-forge.yml for platforms, providers and selectors."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.rerender.forge import Forge, read_forge
from feedstock_tools.rerender.rules import Rules


def forge(folder: Path, settings: str, recipe: str = "package: {name: x}\n", rules: str = "2026.8.5") -> Forge:
    (folder / "recipe").mkdir(exist_ok=True)
    (folder / "recipe" / "meta.yaml").write_text(recipe)
    (folder / "recipe" / "recipe.yaml").write_text(recipe)
    (folder / "conda-forge.yml").write_text(settings)
    return read_forge(folder, Rules.parse(rules))


def placed(found: Forge) -> list[str]:
    return [f"{one.platform.name} on {one.build_platform.name} by {one.provider}" for one in found.renderings]


def test_a_feedstock_without_settings_builds_for_three_platforms(tmp_path: Path) -> None:
    found = forge(tmp_path, "")
    assert placed(found) == [
        "osx_64 on osx_64 by azure",
        "linux_64 on linux_64 by github_actions",
        "win_64 on win_64 by github_actions",
    ]
    (tmp_path / "conda-forge.yml").unlink()
    assert read_forge(tmp_path) == found


def test_a_platform_goes_to_the_provider_of_the_platform_that_builds_it(tmp_path: Path) -> None:
    found = forge(tmp_path, "build_platform: {linux_aarch64: linux_64, osx_arm64: osx_64}\nprovider: {win_64: null}\n")
    assert placed(found) == [
        "osx_64 on osx_64 by azure",
        "osx_arm64 on osx_64 by azure",
        "linux_64 on linux_64 by github_actions",
        "linux_aarch64 on linux_64 by github_actions",
    ]


@pytest.mark.parametrize(
    ("rules", "provider"),
    [("3.14.1", "drone"), ("3.15.0", "azure"), ("3.30.0", "travis"), ("3.58.0", "github_actions")],
)
def test_the_default_provider_of_a_platform_depends_on_the_version(tmp_path: Path, rules: str, provider: str) -> None:
    found = forge(tmp_path, "provider: {linux_aarch64: default}\n", rules=rules)
    assert f"linux_aarch64 on linux_aarch64 by {provider}" in placed(found)


def test_before_build_platforms_the_keys_of_provider_named_platforms(tmp_path: Path) -> None:
    found = forge(tmp_path, "provider: {linux_ppc64le: travis, win: null}\n", rules="3.6.2")
    assert [one.platform.subdir for one in found.renderings] == ["linux-64", "linux-ppc64le", "osx-64"]


def test_a_platform_whose_provider_is_false_is_not_rendered(tmp_path: Path) -> None:
    found = forge(tmp_path, "provider: {linux_aarch64: false, win_64: false}\n")
    assert placed(found) == ["osx_64 on osx_64 by azure", "linux_64 on linux_64 by github_actions"]


def test_a_platform_of_two_providers_is_rendered_for_both(tmp_path: Path) -> None:
    found = forge(tmp_path, "provider: {linux_64: [azure, github_actions], osx_64: null, win_64: null}\n")
    assert placed(found) == ["linux_64 on linux_64 by azure", "linux_64 on linux_64 by github_actions"]


def test_selectors_see_the_variables_of_conda_smithy_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CF_CUDA_ENABLED", "True")
    monkeypatch.setenv("SECRET", "seen")
    (linux, *_) = forge(tmp_path, "provider: {osx: null, osx_64: null}\nmax_py_ver: '39'\n").renderings
    assert linux.environ == {
        "CF_COMPILER_STACK": "comp7",
        "CF_MIN_PY_VER": "27",
        "CF_MAX_PY_VER": "39",
        "CF_MIN_R_VER": "34",
        "CF_MAX_R_VER": "34",
        "CONFIG_VERSION": "2",
        "BUILD_PLATFORM": "linux-64",
    }


@pytest.mark.parametrize(
    ("line", "enabled"),
    [
        ("    - {{ compiler('cuda') }}  # [linux]", True),
        ('    - {{ compiler("cuda") }}', True),
        ("    # - {{ compiler('cuda') }}", False),
        ("    - {{ compiler('cxx') }}", False),
    ],
)
def test_selectors_see_a_cuda_compiler_in_the_recipe(tmp_path: Path, line: str, enabled: bool) -> None:
    found = forge(tmp_path, "", recipe=f"package: {{name: x}}\nrequirements:\n  build:\n{line}\n")
    assert all(("CF_CUDA_ENABLED" in one.environ) == enabled for one in found.renderings)
    older = read_forge(tmp_path, Rules.parse("3.14.3"))
    assert not any("CF_CUDA_ENABLED" in one.environ for one in older.renderings)


def test_a_linux_version_is_seen_by_all_platforms_rendered_after_it(tmp_path: Path) -> None:
    settings = "os_version: {linux_64: alma9}\nprovider: {linux_64: azure, osx_64: azure, win_64: azure}\n"
    found = forge(tmp_path, settings + "build_platform: {linux_32: linux_64}\n")
    assert {one.platform.name: one.environ.get("DEFAULT_LINUX_VERSION") for one in found.renderings} == {
        "linux_32": None,
        "linux_64": "alma9",
        "osx_64": "alma9",
        "win_64": "alma9",
    }


def test_noarch_packages_are_built_where_the_settings_say(tmp_path: Path) -> None:
    settings = "noarch_platforms: osx_64\n"
    found = forge(tmp_path, settings)
    assert [one.platform.name for one in found.renderings if one.keep_noarch] == ["osx_64"]
    before = forge(tmp_path, settings, rules="3.18.0")
    assert [one.platform.name for one in before.renderings if one.keep_noarch] == ["linux_64"]


def test_which_recipe_is_read(tmp_path: Path) -> None:
    assert forge(tmp_path, "conda_build_tool: rattler-build\n").is_v1
    assert not forge(tmp_path, "conda_build_tool: rattler-build\n", rules="3.36.2").is_v1
    assert not forge(tmp_path, "conda_build_tool: mambabuild\n").is_v1
    assert forge(tmp_path, "{}").recipe_dir == "recipe"


@pytest.mark.parametrize(
    ("settings", "rules", "image"),
    [
        ("{}", "2026.8.5", "quay.io/condaforge/linux-anvil-comp7"),
        ("{}", "3.10.0", "condaforge/linux-anvil-comp7"),
        ("docker: {fallback_image: mine}", "2026.8.5", "mine"),
    ],
)
def test_the_default_image_without_one_in_the_variants(tmp_path: Path, settings: str, rules: str, image: str) -> None:
    assert forge(tmp_path, settings, rules=rules).fallback_image == image


def test_what_a_rerender_does_not_need_may_be_anything(tmp_path: Path) -> None:
    settings = "bot: {automerge: [1, {2: 3}]}\nunheard_of: !!set {a, b}\nprovider: {linux_64: elsewhere}\n"
    assert placed(forge(tmp_path, settings)) == ["osx_64 on osx_64 by azure", "win_64 on win_64 by github_actions"]


def test_the_first_document_counts(tmp_path: Path) -> None:
    assert forge(tmp_path, "---\nrecipe_dir: recipe\n---\nrecipe_dir: elsewhere\n").recipe_dir == "recipe"


def test_all_settings_of_a_wrong_form_are_named_with_their_lines(tmp_path: Path) -> None:
    settings = (
        "recipe_dir: ../outside\n"
        "build_platform:\n"
        "  linux_64: amiga\n"
        "provider: azure\n"
        "os_version:\n"
        "  linux_64: [alma8]\n"
        "docker:\n"
        "  image: mine\n"
    )
    with pytest.raises(InputError) as caught:
        forge(tmp_path, settings)
    places = {mistake.line: mistake.message for mistake in caught.value.mistakes}
    assert places == {
        1: "'recipe_dir' leads out of the feedstock: ../outside",
        3: "'amiga' is not a platform",
        4: "'provider' must be a mapping, not 'azure'",
        6: "'os_version.linux_64' must be a name, not a list",
        8: "'docker.image' is no longer a setting: set docker_image in conda_build_config.yaml",
    }


@pytest.mark.parametrize(
    "settings",
    [
        "- a list",
        "a: [",
        "a: !!python/object/apply:os.getcwd []",
        "a: &a [*a]",
        "\x00",
        "a: " + "[" * 5000,
        "#" * 300_000,
    ],
    ids=["list", "broken", "object", "cycle", "nul", "deep", "large"],
)
def test_what_is_no_plain_yaml_mapping_is_refused(tmp_path: Path, settings: str) -> None:
    with pytest.raises(InputError):
        forge(tmp_path, settings)


def test_a_recipe_yaml_without_its_build_tool_is_told_what_to_set(tmp_path: Path) -> None:
    (tmp_path / "recipe").mkdir()
    (tmp_path / "recipe" / "recipe.yaml").write_text("package:\n  name: demo\n  version: 1.0.0\n")
    with pytest.raises(InputError) as caught:
        read_forge(tmp_path, Rules.newest())
    assert "conda_build_tool: rattler-build" in str(caught.value)
