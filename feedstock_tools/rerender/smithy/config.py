"""The settings that the templates of a release see: its defaults, overridden by a feedstock's conda-forge.yml.

The conversion of older settings, and the values derived from settings, follow conda-smithy
(configure_feedstock.py: _read_forge_config, _load_forge_config); `TreeRules` has the differences between versions.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from feedstock_tools.errors import InputError
from feedstock_tools.rerender.ci_rules import CiRules
from feedstock_tools.rerender.ci_settings import docker_run_args, providers_of
from feedstock_tools.rerender.smithy.release import Release
from feedstock_tools.rerender.smithy.tree_rules import TreeRules

#: The name of conda's solver package in the specs of the install tool.
_LIBMAMBA = "conda-libmamba-solver"
_SYSTEMS = ("linux", "osx", "win")


def merged_settings(release: Release, settings: Mapping[str, Any], rules: TreeRules) -> dict[str, Any]:
    """The defaults of a release, overridden by a feedstock's settings: mappings key by key, other values whole.

    Until 3.7.0 mappings inside of mappings are replaced as a whole.
    """
    return _merged(release.defaults(), settings, 99 if rules.azure_yaml else 1)


def template_settings(
    release: Release,
    settings: Mapping[str, Any],
    feedstock: Path,
    rules: TreeRules,
    ci: CiRules,
) -> dict[str, Any]:
    """The settings that all templates see, without those of a single provider.

    Args:
        settings: the feedstock's conda-forge.yml as YAML reads it.
        feedstock: its folder; the folder's name is the default name of the repository.

    Raises:
        InputError: a setting has a form that conda-smithy does not accept.
    """
    config = merged_settings(release, settings, rules)
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
    """The packages to install for a build, by build tool and install tool."""
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
    config["local_ci_setup"] = _has_own_ci_setup(feedstock / str(config["recipe_dir"]))
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


def _has_own_ci_setup(recipe: Path) -> bool:
    """Whether a recipe builds the package conda-forge-ci-setup itself."""
    return (recipe / "conda_forge_ci_setup" / "__init__.py").is_file() and (recipe / "setup.py").is_file()


def _quoted(spec: str) -> str:
    """A spec, quoted for a shell."""
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
