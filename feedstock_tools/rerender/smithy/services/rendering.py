"""The files of CI services and the scripts that they call, rendered from the templates of a release.

One function per service, as in conda-smithy (configure_feedstock.py: _render_ci_provider and the setups of the
platforms). Each returns a mapping from a file's path to its contents.
"""

from __future__ import annotations

import copy
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any

from feedstock_tools.errors import InputError
from feedstock_tools.rerender.configurations.configuration import Configuration
from feedstock_tools.rerender.smithy.azure import dumped_settings
from feedstock_tools.rerender.smithy.jobs import azure_jobs, runner, short_name, target_platform
from feedstock_tools.rerender.smithy.services.scripts import (
    build_setup,
    fast_finish,
    fixed_scripts,
    for_appveyor,
    indented,
    yum_setup,
)
from feedstock_tools.rerender.smithy.services.workshop import Built, File, Workshop
from feedstock_tools.rerender.smithy.settings import Placement, docker_run_args, key_of, section, workflow_settings

#: Provider → its template and the file rendered from it.
PROVIDER_FILES: Mapping[str, tuple[str, str]] = {
    "circle": ("circle.yml.tmpl", ".circleci/config.yml"),
    "travis": ("travis.yml.tmpl", ".travis.yml"),
    "appveyor": ("appveyor.yml.tmpl", ".appveyor.yml"),
    "azure": ("azure-pipelines.yml.tmpl", "azure-pipelines.yml"),
    "drone": ("drone.yml.tmpl", ".drone.yml"),
    "woodpecker": ("woodpecker.yml.tmpl", ".woodpecker.yml"),
    "github_actions": ("github-actions.yml.tmpl", ".github/workflows/conda-build.yml"),
}
_CIRCLE_FINISH = ".circleci/fast_finish_ci_pr_build.sh"
_CIRCLE_CHECKOUT = ".circleci/checkout_merge_commit.sh"
_NAMES = "FANCY_PLATFORM_NAMES"
#: The names that templates use for a job's name if a service limits its length: today, and until 3.60.
_SHORT_NAMES = ("config_name_short", "short_config_name")
#: The systems as releases named them that knew platforms by system.
_SYSTEMS: Mapping[str, str] = {"linux": "Linux", "osx": "OSX", "win": "Windows"}


def render_provider(
    workshop: Workshop, config: dict[str, Any], provider: str, built: Sequence[Built]
) -> dict[str, File]:
    """The files of one service; if it builds nothing, only those that it always has.

    Args:
        config: the values that templates see; the provider's platforms are added to it, for the README.
        built: the configurations of each of its platforms; platforms without configurations are not enabled.

    Raises:
        InputError: a template fails, or two platforms need different versions of one script.
    """
    enabled = [each for each in built if each.configurations]
    config.setdefault(provider, {})["enabled"] = bool(enabled)
    template, target = PROVIDER_FILES[provider]
    files: dict[str, File] = {}
    seen: dict[str, Any] = config
    if enabled:
        _note_platforms(workshop, config, provider, enabled)
        seen = copy.deepcopy(config) if workshop.rules.leaks == "none" else config
        seen["configs"] = _jobs(workshop, enabled)
        seen["fast_finish"] = fast_finish(workshop, config, provider)
        seen["upload_script"] = _upload_script(workshop, provider)
        seen["upload_packages"] = section(config, provider).get("upload_packages", True)
        for system in dict.fromkeys(each.placement.build_os for each in enabled):
            _add(files, _of_system(workshop, seen, provider, system, enabled))
    if enabled or provider == "circle":
        files[target] = File(workshop.templates.render(template, seen).encode())
    return files


def _note_platforms(workshop: Workshop, config: dict[str, Any], provider: str, enabled: Sequence[Built]) -> None:
    names = workshop.release.constant(_NAMES) or {}
    platforms = [key_of(each.placement.platform, workshop.rules) for each in enabled]
    if not workshop.rules.names_with_arch:
        names = {platform: _SYSTEMS[platform.partition("_")[0]] for platform in platforms}
    config[provider]["platforms"] = ",".join(names.get(platform, platform) for platform in platforms)
    config[provider]["all_platforms"] = platforms
    for platform in platforms:
        config.setdefault(platform, {})["enabled"] = True


def _upload_script(workshop: Workshop, provider: str) -> str:
    """The recipe's own script that uploads packages, or the name of the usual one; only old templates call it."""
    name = "upload_or_check_non_existence"
    if not (workshop.recipe / f"{name}.py").exists():
        return name
    folder = workshop.forge.recipe_dir
    places = {"circle": "/home/conda/recipe_root/", "travis": f"{folder}/"}
    return places.get(provider, f"{folder}\\") + f"{name}.py"


def _jobs(workshop: Workshop, enabled: Sequence[Built]) -> list[Any]:
    """The jobs as templates see them: mappings, or in old releases tuples of their first values."""
    jobs = [
        {
            "config_name": configuration.name,
            "platform": target_platform(configuration).replace("_", "-", 1),
            "upload": each.placement.upload,
            "config": _values(configuration),
            **dict.fromkeys(_SHORT_NAMES, short_name(configuration.name, workshop.ci)),
            "build_platform": each.placement.build_subdir,
        }
        for each in enabled
        for configuration in each.configurations
    ]
    count = workshop.rules.listed_values
    return [tuple(job.values())[:count] for job in jobs] if count else jobs


def _values(configuration: Configuration) -> dict[str, Any]:
    return {key: list(values) for key, values in configuration.values.items()}


def _of_system(
    workshop: Workshop, seen: dict[str, Any], provider: str, system: str, enabled: Sequence[Built]
) -> dict[str, File]:
    """The scripts for the jobs of one system, and the provider's other files for it."""
    yum = yum_setup(workshop) if system == "linux" else ""
    if yum:
        seen["yum_build_setup"] = yum
    fixed = fixed_scripts(provider, system, workshop.rules)
    scripts = list(fixed)
    plain: list[str] = []
    setup = build_setup(workshop, provider, system)
    if provider == "appveyor":
        if workshop.rules.leaks != "jobs":
            seen["build_setup"] = for_appveyor(setup, workshop.rules)
        return {}
    own: MutableMapping[str, Any] = copy.deepcopy(seen) if workshop.rules.leaks == "jobs" else seen
    if provider in ("azure", "github_actions"):
        own = _of_jobs(workshop, seen, provider, system, enabled, scripts)
        if provider == "azure":
            plain.append(f".azure-pipelines/azure-pipelines-{system}.yml")
    late = provider == "travis" and workshop.rules.scripts == "apart"  # its scripts see the value of another service
    if not late:
        own["build_setup"] = setup
    files = {}
    if provider == "circle":
        scripts.insert(0, _CIRCLE_FINISH)
        files[_CIRCLE_CHECKOUT] = File(workshop.release.copied[_CIRCLE_CHECKOUT][0], True)
    for name in (*scripts, *plain):
        if not workshop.release.has_template(_template_of(name)):  # a script that only later releases have
            continue
        executable = provider != "azure" or workshop.rules.executable_azure or name in fixed
        files[name] = File(_script(workshop, name, own), executable)
    if late:
        own["build_setup"] = indented(setup)
    return files


def _of_jobs(
    workshop: Workshop,
    seen: dict[str, Any],
    provider: str,
    system: str,
    enabled: Sequence[Built],
    scripts: list[str],
) -> dict[str, Any]:
    """The values for the files of one system, with the settings of its jobs, which may need further scripts."""
    own = dict(seen)
    if workshop.rules.listed_values:
        own["docker"] = {**own["docker"], "interactive": False}
        return own
    if provider == "azure":  # what its jobs are set to is seen by the files of this system alone
        own["configs"] = [dict(job) for job in seen["configs"]]
    for settings in _settings_of_jobs(workshop, own["configs"], provider, system, enabled):
        scripts += [name for name in _scripts_of(workshop, provider, settings, system) if name not in scripts]
    if provider == "azure" and workshop.rules.azure_yaml:
        own["azure_yaml"] = _azure_settings(workshop, seen, system, enabled)
    return own


def _template_of(name: str) -> str:
    return f"{name.rpartition('/')[2]}.tmpl"


def _script(workshop: Workshop, name: str, context: Mapping[str, Any]) -> bytes:
    text = workshop.templates.render(_template_of(name), context)
    if workshop.rules.final_newline and not text.endswith("\n"):
        text += "\n"
    return text.encode()


def _add(files: dict[str, File], more: Mapping[str, File]) -> None:
    for name, file in more.items():
        if name in files and files[name] != file and not name.startswith(".azure"):
            raise InputError(f"two platforms need different versions of {name}")
        files[name] = file


def _settings_of_jobs(
    workshop: Workshop, jobs: Sequence[dict[str, Any]], provider: str, system: str, enabled: Sequence[Built]
) -> Iterator[Mapping[str, Any]]:
    """Add the workflow settings of a system to its jobs."""
    data = {job["config_name"]: job for job in jobs}
    for each in enabled:
        if each.placement.build_os != system:
            continue
        for configuration in each.configurations:
            job = data[configuration.name]
            settings = _job_settings(workshop, job, provider, each.placement, configuration)
            job.update(settings)
            yield settings


def _job_settings(
    workshop: Workshop, job: dict[str, Any], provider: str, placement: Placement, configuration: Configuration
) -> dict[str, Any]:
    target = target_platform(configuration)
    if provider == "azure":
        drive = "D:" if target == "win_64" else "C:"
        return workflow_settings(workshop.settings, workshop.ci, provider, target, drive)
    found = runner(configuration, placement, workshop.settings, workshop.ci)
    settings = workflow_settings(workshop.settings, workshop.ci, provider, target, "D:" if found.local else "C:")
    job["gha_os"] = found.system
    job["gha_runs_on"] = list(found.labels)
    job["gha_with_gpu"] = found.gpu
    if placement.build_os == "linux":
        job["docker_run_args"] = docker_run_args(workshop.settings) + (" --gpus all" if found.gpu else "")
    return settings


def _scripts_of(workshop: Workshop, provider: str, settings: Mapping[str, Any], system: str) -> Iterator[str]:
    """The scripts that workflow settings require."""
    ending = ".bat" if system == "win" else ".sh"
    if settings.get("store_build_artifacts"):
        fixed = workshop.rules.github_artifacts if provider == "github_actions" else ()
        yield from (f".scripts/create_conda_build_artifacts{each}" for each in fixed or (ending,))
    if settings.get("pagefile_size", 0) != 0 and system in ("linux", "win"):
        yield f".scripts/create_pagefile{ending}"
        if system == "win":
            yield ".scripts/SetPageFileSize.ps1"
    if settings.get("free_disk_space", "skip") != "skip":
        yield ".scripts/free_disk_space.sh"


def _azure_settings(workshop: Workshop, seen: Mapping[str, Any], system: str, enabled: Sequence[Built]) -> str:
    """The settings of Azure's jobs of one system as YAML, including the matrix of jobs."""
    settings = copy.deepcopy(dict(section(seen, "azure", f"settings_{system}")))
    for name in workshop.rules.settings_of_templates:
        settings.pop(name, None)
    strategy = settings.setdefault("strategy", {})
    strategy.setdefault("matrix", {})
    systems = Counter(job["build_platform"].split("-")[0] for job in seen["configs"])
    most = seen["azure"].get("max_parallel")  # old releases have no such setting
    if most is not None and len(seen["configs"]) > most:
        strategy["maxParallel"] = max(1, round(most * (systems[system] / len(seen["configs"]))))
    configurations = [configuration for each in enabled for configuration in each.configurations]
    for job in azure_jobs(configurations, workshop.settings, workshop.ci):
        if job.build_os == system:
            strategy["matrix"][job.name] = OrderedDict(job.fields)
    return dumped_settings(settings, plain_booleans=workshop.rules.plain_booleans)
