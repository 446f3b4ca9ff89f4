"""conda-forge.yml's settings for CI jobs: the provider and machine for each platform, and the workflow settings of a
job."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import Any

from feedstock_tools.errors import InputError
from feedstock_tools.reading import LARGEST_SETTINGS, read_text
from feedstock_tools.rerender.ci_rules import CiRules
from feedstock_tools.yaml_reading.nodes import parse_first


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the configurations of a platform are built: `linux_aarch64` on `linux_64`, by `azure`, and uploaded."""

    platform: str
    build_platform: str
    provider: str
    upload: bool

    @property
    def build_subdir(self) -> str:
        """The build platform as conda writes it: `linux-64`."""
        return self.build_platform.replace("_", "-", 1)

    @property
    def build_os(self) -> str:
        """The system that builds: `linux`, `osx`, `win`."""
        return self.build_platform.partition("_")[0]


def section(forge: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """A mapping inside conda-forge.yml, empty if it is not set: `section(forge, "azure", "settings_win")`.

    Raises:
        InputError: the value there is not a mapping.
    """
    part: Any = forge
    for depth, name in enumerate(names, 1):
        part = part.get(name)
        if part is None:
            return {}
        if not isinstance(part, Mapping):
            raise InputError(f"'{'.'.join(names[:depth])}' in conda-forge.yml must be a mapping")
    return part  # type: ignore[no-any-return]


def read_conda_forge_yml(feedstock: Path) -> Mapping[str, Any]:
    """The settings of a feedstock without defaults; empty if it has no conda-forge.yml.

    Raises:
        InputError: the file is not YAML or not a mapping.
    """
    path = feedstock / "conda-forge.yml"
    if not path.exists():
        return {}
    settings = parse_first(read_text(path, LARGEST_SETTINGS, within=feedstock), path) or {}
    if not isinstance(settings, dict):
        raise InputError("conda-forge.yml must be a mapping", path=path)
    return settings


def placements(forge: Mapping[str, Any], rules: CiRules, provider: str) -> tuple[Placement, ...]:
    """The platforms that a provider (`azure`, `github_actions`) builds, in conda-smithy's order.

    A platform goes to the provider of the platform that it is built on, and for `linux_64`, `osx_64` and `win_64` the
    plain keys `linux`, `osx` and `win` have priority (conda-smithy, `_get_platforms_of_provider`).
    """
    build = {name: name for name in rules.platforms}
    build.update({str(key): str(value) for key, value in section(forge, "build_platform").items()})
    providers = providers_of(forge, rules, build)
    uploads = section(forge, provider).get("upload_packages", True)
    forced = provider == "azure" and bool(section(forge, "azure").get("force"))
    placements = []
    for platform, machine in build.items():
        system, _, arch = machine.partition("_")
        named = providers.get(system) if arch == "64" else None
        allowed = named or providers.get(machine)
        if allowed is None:
            continue
        if provider in allowed:
            placements.append(Placement(platform, machine, provider, bool(uploads)))
        elif forced and platform.endswith("_64"):
            placements.append(Placement(platform, machine, provider, False))
    return tuple(placements)


def old_placements(config: Mapping[str, Any], provider: str) -> tuple[Placement, ...]:
    """The platforms that a provider builds, of releases that know platforms by the keys of `provider` (until 3.7.4).

    Args:
        config: conda-forge.yml, over the defaults of the release.
    """
    placements = []
    for system in ("linux", "osx", "win"):
        for arch in ("64", "aarch64", "ppc64le", "armv7l"):
            key = system if arch == "64" else f"{system}_{arch}"
            if key not in config["provider"]:
                continue
            name = f"{system}_{arch}"
            if config["provider"][key] == provider:
                placements.append(Placement(name, name, provider, True))
            elif provider == "azure" and section(config, "azure").get("force") and arch == "64":
                placements.append(Placement(name, name, provider, False))
    return tuple(placements)


def providers_of(forge: Mapping[str, Any], rules: CiRules, build: Iterable[str] = ()) -> dict[str, tuple[str, ...]]:
    """Platform → the providers that build it, for every platform that conda-smithy or conda-forge.yml names.

    Args:
        build: further platforms, which nobody builds where they are not among the others.
    """
    providers = {**(rules.providers or {}), **section(forge, "provider")}
    resolved: dict[str, tuple[str, ...]] = {}
    for platform in dict.fromkeys((*providers, *build)):
        value = providers.get(platform)
        named = value if isinstance(value, list) else [_provider_of_word(value, platform, rules)]
        if rules.words_in_lists:
            named = [rules.default_provider if name in ("default", "emulated") else name for name in named]
        resolved[platform] = tuple(str(name) for name in named if name)
    return resolved


def _provider_of_word(value: Any, platform: str, rules: CiRules) -> Any:
    if value == "default" or (value == "emulated" and rules.emulated_as_default):
        return (rules.default_providers or {}).get(platform, rules.default_provider or value)
    if value == "emulated":
        return rules.default_provider or value
    return (rules.native_providers or {}).get(platform, value) if value == "native" else value


def docker_run_args(forge: Mapping[str, Any]) -> str:
    """`docker.run_args`, which used to be a variable of Azure's Linux jobs."""
    run_args = section(forge, "docker").get("run_args")
    if run_args is None:
        run_args = section(forge, "azure", "settings_linux", "variables").get("CONDA_FORGE_DOCKER_RUN_ARGS", "")
    return str(run_args)


def workflow_settings(
    forge: Mapping[str, Any], rules: CiRules, provider: str, platform: str, drive: str
) -> dict[str, Any]:
    """The workflow settings of the jobs of one platform with one provider, with defaults.

    Args:
        platform: the target platform, `win_64`.
        drive: the default drive for the work of Windows jobs, `C:` or `D:`.

    Raises:
        InputError: a setting is neither a value nor a list of values with conditions.
    """
    if not rules.workflow_settings:
        old = section(forge, provider).get("store_build_artifacts", False)
        return {"store_build_artifacts": old}
    system = platform.partition("_")[0]
    where = {"os": system, "platform": platform, "provider": provider}
    workflow = section(forge, "workflow_settings")
    names = dict.fromkeys((*rules.workflow_settings, *(str(name) for name in workflow)))
    stated = {name: workflow[name] if name in workflow else list(_old_values(name, forge)) for name in names}
    settings = {name: _chosen(name, value, where) for name, value in stated.items()}
    for name, value in _defaults(settings, system, drive).items():
        if name in rules.workflow_settings and settings[name] is None:
            settings[name] = value
    return settings


def _chosen(name: str, value: Any, where: Mapping[str, str]) -> Any:
    """The last of the values whose conditions hold (conda-smithy, `filter_conditional_values`)."""
    if not isinstance(value, list):
        return value
    chosen = None
    for item in value:
        if not isinstance(item, Mapping) or "value" not in item:
            raise InputError(
                f"'workflow_settings.{name}' in conda-forge.yml must be a value, or a list of mappings with 'value'"
            )
        conditions = ((here, item[key]) for key, here in where.items() if key in item)
        if all(here in allowed if isinstance(allowed, list) else here == allowed for here, allowed in conditions):
            chosen = item["value"]
    return chosen


def _old_values(name: str, forge: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A workflow setting as older conda-forge.yml files spelled it (conda-smithy, `_read_forge_config`)."""
    windows = section(forge, "azure", "settings_win", "variables")
    if name == "store_build_artifacts":
        for provider in ("azure", "github_actions"):
            yield {"provider": provider, "value": section(forge, provider).get(name, False)}
    elif name == "free_disk_space":
        for provider in ("azure", "github_actions"):
            old = section(forge, provider).get(name, False)
            everything = isinstance(old, list) and "docker" in old
            yield {"provider": provider, "value": "max" if everything else "quick" if old else "skip"}
    elif name == "tools_install_dir" and "MINIFORGE_HOME" in windows:
        yield {"provider": "azure", "os": "win", "value": windows["MINIFORGE_HOME"]}
    elif name == "build_workspace_dir" and "CONDA_BLD_PATH" in windows:
        yield {"provider": "azure", "os": "win", "value": windows["CONDA_BLD_PATH"]}
    elif name == "pagefile_size":
        size = re.fullmatch(r"(\d{1,9})GiB", str(section(forge, "azure", "settings_linux").get("swapfile_size", "")))
        if size:
            yield {"provider": "azure", "os": "linux", "value": int(size[1])}
        if "SET_PAGEFILE" in windows:
            yield {"provider": "azure", "os": "win", "value": 16 if windows["SET_PAGEFILE"] else 0}
    elif name == "resize_partitions":
        old = section(forge, "github_actions").get("resize_win_partitions")
        if old is not None:
            yield {"provider": "github_actions", "os": "win", "value": old}


def _defaults(settings: Mapping[str, Any], system: str, drive: str) -> dict[str, Any]:
    tools = settings.get("tools_install_dir")
    if tools is None:
        tools = rf"{drive}\Miniforge" if system == "win" else "~/miniforge3"
    workspace = {
        "linux": "build_artifacts",
        "osx": f"{tools}/conda-bld",
        # The backslashes are doubled because conda-smithy doubles them.
        "win": rf"{PureWindowsPath(str(tools)).drive}\\bld\\",
    }
    return {
        "tools_install_dir": tools,
        "build_workspace_dir": workspace.get(system),
        "pagefile_size": 0,
        "free_disk_space": "skip",
        "resize_partitions": False,
    }
