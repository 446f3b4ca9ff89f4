"""The settings that the templates of a release see: its defaults, overridden by a feedstock's conda-forge.yml.

The conversion of older settings, and the values derived from settings, follow conda-smithy
(configure_feedstock.py: _read_forge_config, _load_forge_config); `TreeRules` has the differences between versions.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from feedstock_tools.errors import InputError
from feedstock_tools.rerender.ci_rules import CiRules
from feedstock_tools.rerender.forge import docker_run_args, providers_of
from feedstock_tools.rerender.rule_tables import Table
from feedstock_tools.rerender.rules import changes_up_to, numbers_of
from feedstock_tools.rerender.smithy.release import Release


@dataclass(frozen=True, slots=True)
class TreeRules:
    """How one version of conda-smithy writes a feedstock's files."""

    #: Whether platforms are named by system and architecture; before, by the keys of `provider`: `linux`.
    names_with_arch: bool = False
    #: Whether `default` means what `native` means, and else Azure, as `emulated` does.
    default_is_native: bool = False
    #: Where the scripts for jobs are: in a folder for each service, those for Linux in `.scripts`, or all of them.
    scripts: Literal["apart", "Linux shared", "shared"] = "apart"
    #: Whether jobs at Travis call scripts.
    travis_scripts: bool = False
    #: Whether the lines that prepare a machine are a text of one function for all services.
    shared_setup: bool = False
    #: What a service sees of the values that the services before it set: all, all but the lines that prepare a machine,
    #: which no configuration file of a service sees then, or none.
    leaks: Literal["all", "jobs", "none"] = "all"
    #: The number of values of a job, if templates see it as a list; 0: they see its values by name.
    listed_values: int = 2
    #: Whether Azure's settings are one text of YAML.
    azure_yaml: bool = False
    #: Whether all of `.azure-pipelines` is removed before it is written.
    clears_azure: bool = False
    #: Whether `skip_render` is known.
    knows_skip_render: bool = False
    #: How CODEOWNERS is written: not at all, a line for each maintainer, or all on one line.
    code_owners: Literal["none", "lines", "one line"] = "none"
    #: Whether CODEOWNERS is removed if there are no maintainers.
    removes_code_owners: bool = False
    #: Whether names of teams in CODEOWNERS are lower-case.
    lower_teams: bool = False
    #: The number of files that once were written and are removed.
    obsolete: int = 8
    #: Whether a rendered script ends with a line break even if its template does not.
    final_newline: bool = False
    #: Whether the files in `.azure-pipelines` are executable, and the scripts that Azure's workflow settings require.
    executable_azure: bool = True
    #: The copied files that are executable, even if they are not in the release.
    executable_copies: tuple[str, ...] = ("build-locally.py",)
    #: Whether maintainers are pairs of name and address in the README's template, and teams are known.
    maintainers_with_address: bool = False
    #: Whether a workflow that does nothing remains if GitHub Actions builds nothing.
    dummy_workflow: bool = False
    #: Whether templates get the name of the feedstock's repository instead of that of its folder.
    feedstock_named_by_repository: bool = False
    #: The version of Python that runs conda-build; None: the newest, without naming it.
    build_python: str | None = None
    #: Whether the texts `true` and `false` are written without quotes in Azure's settings.
    plain_booleans: bool = False
    #: The settings of Azure's systems that only templates read; the others are settings of jobs.
    settings_of_templates: tuple[str, ...] = ()
    #: The endings of GitHub Actions' scripts for artifacts on every system; none: the ending for the job's system.
    github_artifacts: tuple[str, ...] = (".sh",)
    #: Whether the README describes the recipe's packages on Linux without migrations, skipped or not.
    readme_of_plain_recipe: bool = True
    #: Whether the README describes the first package alone.
    describes_first_package: bool = True
    #: Whether templates see `remote_ci_setup` as a list, even if it is written as one text.
    lists_ci_setup: bool = False
    #: How `.ci_support/README` is written from a text in the code; None: it is one of the copied files.
    note: Literal["one line", "wrapped"] | None = "one line"
    #: Whether the README sorts the metadata by the packages' names.
    sorted_metadata: bool = False
    #: The workflows of services to write.
    service_workflows: tuple[str, ...] = ()
    #: The copied workflows that only `bot.automerge` keeps.
    automerge_workflows: tuple[str, ...] = ()
    #: The workflows of services to remove.
    removed_workflows: tuple[str, ...] = ()


_CHANGES: Table = (
    ("3.1.13", {"listed_values": 3}),
    ("3.2.0", {"listed_values": 2}),
    ("3.2.3", {"listed_values": 3}),
    ("3.3.3", {"travis_scripts": True}),
    ("3.3.5", {"shared_setup": True, "listed_values": 4}),
    ("3.3.7", {"code_owners": "lines", "obsolete": 9}),
    ("3.4.1", {"code_owners": "one line", "obsolete": 12}),
    ("3.4.2", {"knows_skip_render": True}),
    ("3.4.6", {"default_is_native": True}),
    ("3.5.0", {"removes_code_owners": True}),
    ("3.6.0", {"scripts": "Linux shared", "leaks": "jobs"}),
    ("3.6.2", {"leaks": "none", "listed_values": 0}),
    ("3.6.6", {"automerge_workflows": (".github/workflows/main.yml",)}),
    ("3.6.9", {"automerge_workflows": ()}),
    ("3.6.17", {"clears_azure": True}),
    ("3.7.0", {"scripts": "shared"}),
    ("3.7.1", {"azure_yaml": True}),
    ("3.7.2", {"obsolete": 13}),
    ("3.7.3", {"lower_teams": True}),
    ("3.7.5", {"names_with_arch": True}),
    ("3.13.0", {"service_workflows": ("automerge.yml", "webservices.yml")}),
    ("3.17.0", {"lists_ci_setup": True, "note": "wrapped"}),
    ("3.21.0", {"readme_of_plain_recipe": False}),
    ("3.23.0", {"describes_first_package": False}),
    ("3.25.1", {"settings_of_templates": ("swapfile_size",)}),
    ("3.30.3", {"note": None}),
    ("3.37.2", {"maintainers_with_address": True}),
    ("3.42.0", {"service_workflows": ("automerge.yml",)}),
    ("3.43.0", {"build_python": "3.12"}),
    ("3.44.0", {"service_workflows": (), "removed_workflows": ("automerge.yml", "webservices.yml")}),
    ("3.44.7", {"settings_of_templates": ("swapfile_size", "install_atl")}),
    ("3.47.2", {"sorted_metadata": True}),
    ("3.48.0", {"plain_booleans": True}),
    ("3.51.0", {"final_newline": True, "github_artifacts": (".sh", ".bat")}),
    ("3.56.0", {"feedstock_named_by_repository": True}),
    ("3.56.3", {"dummy_workflow": True}),
    ("3.61.0", {"github_artifacts": ()}),
    ("2026.8.5", {"executable_azure": False, "executable_copies": ("build-locally.py", ".scripts/logging_utils.sh")}),
)


@lru_cache
def tree_rules(version: str) -> TreeRules:
    """The rules of a version of conda-smithy; a version newer than all known ones follows the newest.

    >>> tree_rules("3.50.1").final_newline, tree_rules("3.62.0").final_newline
    (False, True)
    """
    return TreeRules(**changes_up_to(_CHANGES, numbers_of(version)))


#: The name of conda's solver package in the specs of the install tool.
_LIBMAMBA = "conda-libmamba-solver"
_SYSTEMS = ("linux", "osx", "win")


def template_settings(
    release: Release, settings: Mapping[str, Any], feedstock: Path, rules: TreeRules, ci: CiRules
) -> dict[str, Any]:
    """The settings that all templates see, without those of a single provider.

    Args:
        settings: the feedstock's conda-forge.yml as YAML reads it.
        feedstock: its folder; the folder's name is the default name of the repository.

    Raises:
        InputError: a setting has a form that conda-smithy does not accept.
    """
    # Until 3.7.0 mappings inside of mappings are replaced as a whole.
    config = _merged(release.defaults(), settings, 99 if rules.azure_yaml else 1)
    try:
        _fill_in(config, settings, feedstock, rules, ci)
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"a setting does not have the form that conda-smithy expects ({error})",
            path=feedstock / "conda-forge.yml",
            hint="Mappings such as azure, github or docker must have keys and values.",
        ) from error
    return config


def _fill_in(
    config: dict[str, Any], settings: Mapping[str, Any], feedstock: Path, rules: TreeRules, ci: CiRules
) -> None:
    _move_old_settings(config, settings)
    _fill_azure(config)
    validated = ["FEEDSTOCK_TOKEN", "STAGING_BINSTAR_TOKEN"] if config.get("conda_forge_output_validation") else []
    config["secrets"] = sorted({*config.get("secrets", []), *validated, "BINSTAR_TOKEN"})
    for platform in sorted(config.get("build_platform", ())):
        config[platform] = {"enabled": "True"}
    config["noarch_platforms"] = _as_list(config.get("noarch_platforms"))
    _fill_tools(config, rules)
    if config.get("test_on_native_only"):
        config["test"] = "native_and_emulated"
    if config.get("test") is None:
        config["test"] = "all"
    config["provider"] = _providers(config, rules, ci)
    _fill_ci_setup(config, feedstock, rules)
    actions = config.setdefault("github_actions", {})
    if not actions.get("triggers") and "triggers" in actions:
        actions["triggers"] = ["push"] if actions.get("self_hosted") else ["push", "pull_request"]
    name = feedstock.resolve().name
    config["package"] = name
    github = config.setdefault("github", {})
    if not github.get("repo_name"):
        github["repo_name"] = name if name.endswith("-feedstock") else f"{name}-feedstock"
    config["feedstock_name"] = github["repo_name"] if rules.feedstock_named_by_repository else name


def _providers(config: Mapping[str, Any], rules: TreeRules, ci: CiRules) -> dict[str, Any]:
    if rules.names_with_arch:
        return {name: list(named) for name, named in providers_of(config, ci, config["build_platform"]).items()}
    native = {"linux_aarch64": "drone", "linux_ppc64le": "travis"}
    emulated = dict.fromkeys(config["provider"], "azure") if rules.default_is_native else {}
    default = {**emulated, **native} if rules.default_is_native else {**native, "linux_aarch64": "azure"}
    words = {"native": native, "default": default, "emulated": emulated}
    return {name: words.get(str(service), {}).get(name, service) for name, service in config["provider"].items()}


def _merged(below: dict[str, Any], above: Mapping[str, Any], depth: int) -> dict[str, Any]:
    for key, value in above.items():
        if isinstance(value, Mapping) and depth:
            under = below.get(key)
            below[key] = _merged(under if isinstance(under, dict) else {}, value, depth - 1)
        else:
            below[key] = copy.deepcopy(value)
    return below


def _move_old_settings(config: dict[str, Any], settings: Mapping[str, Any]) -> None:
    """Move settings whose place has changed: the run arguments of docker, and variables of Windows jobs."""
    written = settings.get("workflow_settings") or {}
    docker = config.get("docker")
    if isinstance(docker, dict) and "run_args" in docker:
        docker["run_args"] = docker_run_args(settings)
        config["azure"]["settings_linux"].get("variables", {}).pop("CONDA_FORGE_DOCKER_RUN_ARGS", None)
    if "workflow_settings" in config:
        windows = config["azure"]["settings_win"].get("variables") or {}
        defaults = config["workflow_settings"]
        moved = {
            "tools_install_dir": ("MINIFORGE_HOME", True),
            "build_workspace_dir": ("CONDA_BLD_PATH", True),
            "pagefile_size": ("SET_PAGEFILE", "pagefile_size" in written),
        }
        for new, (old, goes) in moved.items():
            if new in defaults and goes and old in windows:
                del windows[old]
    if "build_with_mambabuild" in settings and "conda_build_tool" not in settings:
        config["conda_build_tool"] = "mambabuild" if config["build_with_mambabuild"] else "conda-build"


def _fill_azure(config: dict[str, Any]) -> None:
    azure = config.setdefault("azure", {})
    for system in _SYSTEMS:
        own = azure.get(f"settings_{system}", {})  # old releases have none
        if azure.get("timeout_minutes") is not None:
            own["timeoutInMinutes"] = azure["timeout_minutes"]
        if "name" in own.get("pool", {}):
            own["pool"].pop("vmImage", None)
    azure.setdefault("user_or_org", config["github"]["user_or_org"])


def _fill_tools(config: dict[str, Any], rules: TreeRules) -> None:
    python = f"python={rules.build_python} " if rules.build_python else ""
    tool = config.get("conda_build_tool")
    config["conda_build_tool_deps"] = {
        "mambabuild": f"{python}conda-build boa",
        "conda-build+conda-libmamba-solver": f"{python}conda-build {_LIBMAMBA}",
        "rattler-build": "rattler-build",
    }.get(str(tool), f"{python}conda-build")
    installer = config.get("conda_install_tool")
    if installer == "mamba":
        config["conda_install_tool_deps"] = "mamba"
    elif isinstance(installer, str) and installer in "conda":
        solver = f" {_LIBMAMBA}" if config.get("conda_solver") == "libmamba" else ""
        config["conda_install_tool_deps"] = f"conda{solver}"


def _fill_ci_setup(config: dict[str, Any], feedstock: Path, rules: TreeRules) -> None:
    wanted = [_quoted(str(spec)) for spec in _as_list(config.get("remote_ci_setup"))]
    if rules.lists_ci_setup:
        config["remote_ci_setup"] = wanted
    by_conda = config.get("conda_install_tool") == "conda"
    config["remote_ci_setup_update"] = [_name_of(spec) for spec in wanted] if by_conda else wanted
    config["remote_ci_setup_names"] = [_name_of(spec) for spec in wanted]
    recipe = feedstock / str(config["recipe_dir"])
    own = (recipe / "conda_forge_ci_setup" / "__init__.py", recipe / "setup.py")
    config["local_ci_setup"] = all(path.is_file() for path in own)
    merged: dict[str, list[str]] = {}
    for spec in [*config["conda_build_tool_deps"].split(), *wanted]:
        name, version = _split_spec(spec.strip("\"'"))
        merged.setdefault(name, [])
        if version:
            merged[name].append(version)
    if config["local_ci_setup"]:
        merged.setdefault("conda", [])
        merged.setdefault("pip", [])
    config["build_tool_deps_dict"] = {name: ",".join(sorted(set(versions))) or "*" for name, versions in merged.items()}


def _quoted(spec: str) -> str:
    return f'"{spec}"' if not spec.startswith(("'", '"')) and re.search(r"[<>|]", spec) else spec


def _name_of(spec: str) -> str:
    return _split_spec(spec.strip("\"'"))[0]


def _split_spec(spec: str) -> tuple[str, str]:
    """Name and version of a spec as conda writes them: `a=4` is `a`, `4.*`."""
    name = re.split(r"[\s=<>!~]", spec, maxsplit=1)[0]
    version = spec[len(name) :].strip()
    if version.startswith("==") or not version.startswith("="):
        return name, version
    return name, f"{version[1:]}.*"


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
