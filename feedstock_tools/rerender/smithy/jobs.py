"""One CI job for each configuration, with conda-smithy's fields."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from feedstock_tools.errors import InputError
from feedstock_tools.rerender.ci_rules import CiRules
from feedstock_tools.rerender.configuration import Configuration
from feedstock_tools.rerender.forge import Placement, docker_run_args, placements, section, workflow_settings

_FALLBACK_IMAGE = "quay.io/condaforge/linux-anvil-comp7"
_MAC_IMAGES = {"osx-64": "macOS-15", "osx-arm64": "macOS-15-arm64"}
_GITHUB_OS = {"linux": "ubuntu", "osx": "macos", "win": "windows"}
_WINDOWS_OF_GITHUB = {"windows-latest", "windows-2022", "windows-2025"}
_LINE_ENDS = frozenset("\0\n\r\x85\u2028\u2029")
_SHORTENED = re.compile(r"_h[0-9a-f]{8}$")


@dataclass(frozen=True, slots=True)
class Job:
    """One entry of a job list: its configuration, the system that builds it, and its fields in order."""

    name: str
    build_os: str
    fields: Mapping[str, Any]


def azure_jobs(configurations: Sequence[Configuration], forge: Mapping[str, Any], rules: CiRules) -> tuple[Job, ...]:
    """The jobs of Azure Pipelines, with YAML values."""
    return tuple(
        _azure_job(configuration, placement, forge, rules)
        for configuration, placement in _with_placements(configurations, placements(forge, rules, "azure"))
    )


def github_jobs(configurations: Sequence[Configuration], forge: Mapping[str, Any], rules: CiRules) -> tuple[Job, ...]:
    """The jobs of GitHub Actions, with values as strings exactly as written in the workflow.

    Raises:
        InputError: as `azure_jobs`; also if GitHub has no runner for the build platform.
    """
    if not rules.github_fields:
        return ()
    return tuple(
        _github_job(configuration, placement, forge, rules)
        for configuration, placement in _with_placements(configurations, placements(forge, rules, "github_actions"))
    )


def short_name(name: str, rules: CiRules) -> str:
    """The name of a configuration for services that limit its length, from the name of its file.

    The hash is that of the whole name. A file whose name was cut already has it.

    >>> short_name("linux_64_" + 20 * "python", CiRules())
    'linux_64_pythonpythonpythonpythonpy_h5b27090a54'
    """
    kept, digits = rules.short_name
    if len(name) < 49:
        return name
    digest = (
        name[-digits:] if _SHORTENED.search(name) and len(name) > 120 else sha256(name.encode()).hexdigest()[:digits]
    )
    return f"{name[:kept]}_h{digest}"


def _with_placements(
    configurations: Sequence[Configuration], where: Sequence[Placement]
) -> list[tuple[Configuration, Placement]]:
    """The configurations of each platform, platforms in conda-smithy's order, configurations by name."""
    return [
        (configuration, placement)
        for placement in where
        for configuration in sorted(configurations, key=lambda configuration: configuration.name)
        if configuration.platform.name == placement.platform
    ]


def _azure_job(configuration: Configuration, placement: Placement, forge: Mapping[str, Any], rules: CiRules) -> Job:
    target = target_platform(configuration)
    settings = workflow_settings(forge, rules, "azure", target, "D:" if target == "win_64" else "C:")
    short = short_name(configuration.name, rules) if settings["store_build_artifacts"] else None
    on = placement.build_os
    values: dict[str, Any] = {
        "CONFIG": configuration.name,
        "CONDA_BLD_PATH": r"D:\\bld\\" if on == "win" else None,
        "UPLOAD_PACKAGES": str(placement.upload),
        "DOCKER_IMAGE": _image(configuration, forge) if on == "linux" else None,
        "build_platform": placement.build_subdir if on == "win" else None,
        "VMIMAGE": _mac_image(placement) if on == "osx" and "VMIMAGE" in rules.azure_fields else None,
        "docker_run_args": docker_run_args(forge) if on == "linux" else None,
        **dict.fromkeys(("SHORT_CONFIG_NAME", "SHORT_CONFIG", "CONFIG_SHORT"), short),
    }
    fields: dict[str, Any] = {}
    for name in rules.azure_fields:
        if name == "*":
            fields |= settings
        elif values[name] is not None:
            fields[name] = values[name]
    return Job(configuration.name, on, fields)


def _github_job(configuration: Configuration, placement: Placement, forge: Mapping[str, Any], rules: CiRules) -> Job:
    machine = runner(configuration, placement, forge, rules)
    labels, gpu = list(machine.labels), machine.gpu
    drive = "D:" if machine.local else "C:"
    settings = workflow_settings(forge, rules, "github_actions", target_platform(configuration), drive)
    on = placement.build_os
    linux = on == "linux"
    run_args = docker_run_args(forge) + (" --gpus all" if gpu else "") if linux else ""
    short = short_name(configuration.name, rules) if settings["store_build_artifacts"] else None
    old_labels = list((rules.self_hosted_labels or {}).get(placement.build_subdir, ()))
    values: dict[str, Any] = {
        **settings,
        "CONFIG": configuration.name,
        "CONFIG_SHORT": short,
        "SHORT_CONFIG": short,
        "DOCKER_IMAGE": _image(configuration, forge) if linux else None,
        "STORE_BUILD_ARTIFACTS": settings["store_build_artifacts"] is True,
        "UPLOAD_PACKAGES": placement.upload,
        "CONDA_FORGE_DOCKER_RUN_ARGS": '"--gpus all"' if linux and gpu else None,
        "build_platform": placement.build_subdir if on == "win" else None,
        "docker_run_args": run_args,
        "labels": old_labels if old_labels and section(forge, "github_actions").get("self_hosted") else None,
        "os": machine.system,
        "runs_on": labels,
    }
    fields = {name: _one_line(name, values[name]) for name in rules.github_fields if values[name] is not None}
    return Job(configuration.name, on, fields)


def _one_line(name: str, value: Any) -> str:
    """Values are not quoted in a workflow, so a second line would not be part of the value."""
    text = str(value)
    if not _LINE_ENDS.isdisjoint(text):
        raise InputError(f"the field {name} of a job of GitHub Actions must be one line, not {text!r}")
    return text


@dataclass(frozen=True, slots=True)
class Runner:
    """The machine that a job of GitHub Actions asks for: its system as GitHub names it, and the labels of the runner.

    `local`: Windows jobs work on its drive `D:`. `gpu`: one of its labels asks for a GPU.
    """

    system: str | None
    labels: tuple[str, ...] = ()
    gpu: bool = False
    local: bool = False


def runner(configuration: Configuration, placement: Placement, forge: Mapping[str, Any], rules: CiRules) -> Runner:
    """The machine for a job of GitHub Actions; without labels where the version of conda-smithy knows none.

    Raises:
        InputError: GitHub has no runner for the platform that builds.
    """
    system = _GITHUB_OS.get(placement.build_os)
    if "runs_on" not in rules.github_fields:
        return Runner(system)
    hosted = (rules.hosted_labels or {}).get(placement.build_subdir)
    if hosted is None:
        raise InputError(
            f"GitHub Actions has no runner for {placement.build_subdir}",
            hint="Give the platform another provider or another build_platform in conda-forge.yml.",
        )
    own = [*(rules.self_hosted_labels or {}).get(placement.build_subdir, ()), "self-hosted"]
    requested = configuration.values.get("github_actions_labels", ())
    labels = (
        _all_labels(requested, hosted, own) if rules.all_labels else _first_label(requested, hosted, own, forge, rules)
    )
    short = short_name(configuration.name, rules)
    runs_on = tuple(_label(label, short, rules) for label in labels)
    local = bool(_WINDOWS_OF_GITHUB.intersection(runs_on)) or any(map(_of_namespace, runs_on))
    return Runner(system, runs_on, any("gpu" in label.lower() for label in runs_on), local)


def _label(label: str, short: str, rules: CiRules) -> str:
    if label.startswith("cirun-"):
        return label + "--${{ github.run_id }}-" + short
    if rules.namespace_privileged and _of_namespace(label) and "-on-linux-" in label:
        return label + ";container.privileged=true;container.mount-scratch=true"
    return label


def _all_labels(requested: Sequence[str], hosted: str, own: Sequence[str]) -> list[str]:
    if list(requested) in ([], ["hosted"], ["default"]):
        return [hosted]
    if any(label.startswith("self-hosted@") for label in requested):
        return list(dict.fromkeys([*(label.replace("self-hosted@", "") for label in requested), *own]))
    return list(requested)


def _first_label(
    requested: Sequence[str], hosted: str, own: Sequence[str], forge: Mapping[str, Any], rules: CiRules
) -> list[str]:
    if not section(forge, "github_actions").get("self_hosted"):
        return [hosted]
    label = requested[0] if requested else rules.default_labels[0]
    if label == "hosted":
        return [hosted]
    # conda-smithy checks whether the label is a substring, so `self` and `` count too.
    return list(own) if label in "self-hosted" else [label, *own]


def _of_namespace(label: str) -> bool:
    return label.startswith("namespace-profile-")


def _mac_image(placement: Placement) -> str:
    try:
        return _MAC_IMAGES[placement.build_subdir]
    except KeyError:
        raise InputError(f"Azure Pipelines has no image for {placement.build_subdir}") from None


def _image(configuration: Configuration, forge: Mapping[str, Any]) -> str:
    images = configuration.values.get("docker_image")
    return images[-1] if images else str(section(forge, "docker").get("fallback_image") or _FALLBACK_IMAGE)


def target_platform(configuration: Configuration) -> str:
    """The platform that a configuration makes packages for, as conda-forge.yml writes it: `win_64`."""
    named = configuration.values.get("target_platform", (configuration.platform.subdir,))
    return named[0].replace("-", "_", 1)
