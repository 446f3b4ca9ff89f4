"""The whole tree of a feedstock except its recipe and conda-forge.yml, as a release of conda-smithy writes it.

(conda-smithy, configure_feedstock.py: main and the functions that it calls, in its order.)
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from feedstock_tools.reading import CI_SUPPORT, read_bytes
from feedstock_tools.rerender.ci_rules import ci_rules
from feedstock_tools.rerender.configuration import Configuration
from feedstock_tools.rerender.forge import Forge, old_placements, placements, section
from feedstock_tools.rerender.smithy.config import TreeRules, template_settings, tree_rules
from feedstock_tools.rerender.smithy.readme import CODE_OWNERS, README, Package, readme_files
from feedstock_tools.rerender.smithy.release import Release
from feedstock_tools.rerender.smithy.services import (
    PROVIDER_FILES,
    Built,
    File,
    Workshop,
    fixed_scripts,
    render_provider,
)
from feedstock_tools.rerender.smithy.templates import Templates

#: Files that conda-smithy once wrote, by their paths.
_OBSOLETE = (
    "disabled_appveyor.yml",
    "ci_support/upload_or_check_non_existence.py",
    "circle.yml",
    "appveyor.yml",
    "ci_support/checkout_merge_commit.sh",
    "ci_support/fast_finish_ci_pr_build.sh",
    "ci_support/run_docker_build.sh",
    "LICENSE",
    "__pycache__",
    ".github/CONTRIBUTING.md",
    ".github/ISSUE_TEMPLATE.md",
    ".github/PULL_REQUEST_TEMPLATE.md",
    ".github/workflows/main.yml",
)
_SCRIPT_FOLDERS = (".azure-pipelines", ".circleci", ".drone", ".travis", ".scripts")
_SCRIPTS = (
    "run_docker_build.sh",
    "build_steps.sh",
    "run_osx_build.sh",
    "run_win_build.bat",
    "create_conda_build_artifacts.bat",
    "create_conda_build_artifacts.sh",
    "create_pagefile.bat",
    "create_pagefile.sh",
    "SetPageFileSize.ps1",
    "free_disk_space.sh",
)
_CIRCLE = (".circleci/checkout_merge_commit.sh", ".circleci/fast_finish_ci_pr_build.sh")
_WORKFLOWS = ".github/workflows"
_GITHUB = PROVIDER_FILES["github_actions"][1]
_PIXI = "pixi.toml"
_BUILD_SCRIPT = "build-locally.py"
_AZURE_FOLDER = ".azure-pipelines"
#: These are never copied: one describes the folder itself, Python leaves the other behind.
_NOT_COPIED = ("README", "__pycache__")
_SYSTEMS: Mapping[str, tuple[str, ...]] = {
    "win": ("win-64", "win-arm64"),
    "linux": ("linux-64", "linux-aarch64", "linux-ppc64le"),
    "osx": ("osx-64", "osx-arm64"),
}


@dataclass(frozen=True, slots=True)
class RenderedPlatform:
    """The result of a rerender for one platform: its name (`linux_64`), configurations, and packages in order."""

    platform: str
    configurations: tuple[Configuration, ...]
    packages: tuple[Package, ...]


@dataclass(frozen=True, slots=True)
class Tree:
    """The files that a release writes, by path, the paths that it removes, and notes for people.

    `absent`: the paths that it would remove, too, if they were there.
    """

    files: Mapping[str, File]
    removed: tuple[str, ...]
    notes: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


def whole_tree(
    release: Release,
    version: str,
    forge: Forge,
    platforms: Sequence[RenderedPlatform],
    *,
    unbuilt: Sequence[Package] = (),
    azure_number: int | None = None,
) -> Tree:
    """The files around `.ci_support`.

    Args:
        version: the version of conda-smithy to follow.
        forge: the feedstock's conda-forge.yml and recipe.
        platforms: the rendered platforms, including those without configurations.
        unbuilt: the packages that the README describes instead of those that the platforms build.
        azure_number: the feedstock's number at Azure, if it was looked up.
    """
    rules, ci = tree_rules(version), ci_rules(version)
    workshop = Workshop(release, Templates(release, forge.folder), forge, rules, ci)
    config = template_settings(release, forge.settings, forge.folder, rules, ci)
    skipped = frozenset(str(name) for name in (config.get("skip_render") or ()) if rules.knows_skip_render)
    unasked = () if section(config, "bot").get("automerge") else rules.automerge_workflows
    copied = dict(_copied(workshop, skipped.union(unasked)))
    files = {**copied, **_note_on_configurations(workshop, platforms)}
    by_name = {platform.platform: platform for platform in platforms}
    packages: dict[str, list[Package]] = {}
    for provider in PROVIDER_FILES:
        where = placements(forge.settings, ci, provider) if rules.names_with_arch else old_placements(config, provider)
        built = [Built(place, by_name[place.platform].configurations) for place in where if place.platform in by_name]
        files.update(_service(workshop, config, provider, built))
        packages[provider] = [
            package for each in built if each.configurations for package in by_name[each.placement.platform].packages
        ]
    configurations = [configuration for platform in by_name.values() for configuration in platform.configurations]
    files.update(_service_workflows(workshop, config, skipped))
    files.update(_pixi(workshop, config, version, configurations))
    listed = list(unbuilt) or _listed(packages)
    if listed and README not in skipped:
        files.update(readme_files(workshop, config, listed, configurations, azure_number))
    unwanted = [*unasked, *_unwanted(workshop, files, skipped)]
    removed = tuple(name for name in unwanted if _exists(forge.folder / name))
    absent = tuple(name for name in unwanted if name not in removed)
    return Tree(files, removed, tuple(_notes(files, forge.folder)), absent)


def describes_plain_recipe(version: str) -> bool:
    """Whether the README of a version shows the packages of a recipe that skips nothing, not those that are built."""
    return tree_rules(version).readme_of_plain_recipe


def _notes(files: Mapping[str, File], feedstock: Path) -> Iterator[str]:
    script = feedstock / _BUILD_SCRIPT
    if _BUILD_SCRIPT in files and script.is_file() and b"feedstock_tools" in read_bytes(script, within=feedstock):
        yield f"conda-smithy replaces {_BUILD_SCRIPT}; skip_render: [{_BUILD_SCRIPT}] in conda-forge.yml keeps it"


def _copied(workshop: Workshop, skipped: frozenset[str]) -> Iterator[tuple[str, File]]:
    left_out = {*_NOT_COPIED, *skipped}
    for name, (content, executable) in workshop.release.copied.items():
        if left_out.isdisjoint(_with_parents(name)) and name != _GITHUB and name not in _CIRCLE:
            yield name, File(content, executable or name in workshop.rules.executable_copies)


def _note_on_configurations(workshop: Workshop, platforms: Sequence[RenderedPlatform]) -> dict[str, File]:
    """The note in the folder of configurations, of releases that have its text in their code."""
    if workshop.rules.note is None:
        return {}
    if not any(each.configurations for each in platforms) and not (workshop.feedstock / CI_SUPPORT).is_dir():
        return {}
    text = next((text for text in workshop.release.strings_in("main") if "conda_build_config.yaml" in text), "")
    if workshop.rules.note == "wrapped":
        text = "".join(f"{line}\n" for line in textwrap.wrap(text))
    return {f"{CI_SUPPORT}/README": File(text.encode(), None)} if text else {}


def _service(workshop: Workshop, config: dict[str, Any], provider: str, built: Sequence[Built]) -> Mapping[str, File]:
    files = render_provider(workshop, config, provider, built)
    if provider == "github_actions" and not files and workshop.rules.dummy_workflow:
        return {_GITHUB: File(workshop.release.copied[_GITHUB][0])}
    return files


def _service_workflows(workshop: Workshop, config: Mapping[str, Any], skipped: frozenset[str]) -> dict[str, File]:
    return {
        path: File(workshop.templates.render(f"{name}.tmpl", config).encode(), None)
        for name in workshop.rules.service_workflows
        if skipped.isdisjoint(_with_parents(path := f"{_WORKFLOWS}/{name}"))
    }


def _with_parents(name: str) -> tuple[str, ...]:
    return (name, *map(str, PurePosixPath(name).parents))


def _pixi(
    workshop: Workshop, config: Mapping[str, Any], version: str, configurations: Sequence[Configuration]
) -> dict[str, File]:
    if config.get("conda_install_tool") != "pixi":
        return {}
    platforms: set[str] = set()
    for name, providers in config["provider"].items():
        if providers:
            platforms.update(_SYSTEMS.get(name, (name.replace("_", "-"),)))
    context = {
        **config,
        "smithy_version": version,
        "pixi_version": workshop.release.constant("CONDA_FORGE_PIXI_VERSION"),
        "platforms": sorted(platforms),
        "shellcheck_platforms": workshop.release.constant("CONDA_FORGE_SHELLCHECK_PLATFORMS"),
        "variants": sorted(configuration.name for configuration in configurations),
    }
    text = workshop.templates.render("pixi.toml.tmpl", context)
    return {_PIXI: File(f"{text.rstrip()}\n".encode())}


def _listed(packages: Mapping[str, Sequence[Package]]) -> list[Package]:
    """The packages of all services in the README's order: Azure's take the place of CircleCI's."""
    order = list(PROVIDER_FILES)
    azure = order.index("azure")
    order[0], order[azure] = order[azure], order[0]
    return [package for provider in order for package in packages[provider]]


def _cleared_scripts(release: Release, rules: TreeRules) -> Iterator[str]:
    """The scripts that a release removes before it writes them, as its code lists them."""
    if rules.scripts == "apart":  # releases that removed none
        return iter(())
    texts = release.strings_in("clear_scripts")
    folders = [text for text in texts if text in _SCRIPT_FOLDERS] or _SCRIPT_FOLDERS
    scripts = [text for text in texts if text in _SCRIPTS] or _SCRIPTS
    return (f"{folder}/{script}" for folder in folders for script in scripts)


def _of_circle(rules: TreeRules) -> tuple[str, ...]:
    """CircleCI's scripts, of releases that removed them where it builds nothing."""
    if rules.scripts == "shared":
        return ()
    return tuple(name for system in ("linux", "osx") for name in fixed_scripts("circle", system, rules))


def _unwanted(workshop: Workshop, files: Mapping[str, File], skipped: frozenset[str]) -> Iterator[str]:
    """The paths that a feedstock must not have: obsolete files, and files that this version would have written."""
    rules = workshop.rules
    candidates = [
        *(name for name in _OBSOLETE[: rules.obsolete] if name not in skipped),
        *_cleared_scripts(workshop.release, rules),
        *_of_circle(rules),
        *(target for _, target in PROVIDER_FILES.values()),
        *_CIRCLE,
        *(f"{_WORKFLOWS}/{name}" for name in workshop.rules.removed_workflows),
        *(f"{_AZURE_FOLDER}/azure-pipelines-{system}.yml" for system in _SYSTEMS if rules.clears_azure),
        _PIXI,
    ]
    if README not in skipped and README in files and rules.removes_code_owners:
        candidates.append(CODE_OWNERS)
    feedstock = workshop.feedstock
    folder = feedstock / _AZURE_FOLDER
    if rules.clears_azure and folder.is_dir() and not folder.is_symlink():
        candidates += [path.relative_to(feedstock).as_posix() for path in folder.rglob("*") if not path.is_dir()]
    return (name for name in dict.fromkeys(candidates) if name not in files)


def _exists(path: Path) -> bool:
    return path.is_symlink() or path.exists()
