"""The files of CI services and the scripts that they call, rendered from the templates of a release.

One function per service, as in conda-smithy (configure_feedstock.py: _render_ci_provider and the setups of the
platforms). Each returns a mapping from a file's path to its contents.
"""

from __future__ import annotations

import copy
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from feedstock_tools.errors import InputError
from feedstock_tools.reading import read_text
from feedstock_tools.rerender.configurations.configuration import Configuration
from feedstock_tools.rerender.forge import Forge
from feedstock_tools.rerender.smithy.azure import dumped_settings
from feedstock_tools.rerender.smithy.jobs import azure_jobs, runner, short_name, target_platform
from feedstock_tools.rerender.smithy.releases.release import Release
from feedstock_tools.rerender.smithy.releases.templates import Templates
from feedstock_tools.rerender.smithy.rules import CiRules
from feedstock_tools.rerender.smithy.settings import Placement, docker_run_args, workflow_settings
from feedstock_tools.rerender.smithy.tree_rules import TreeRules

__all__ = ["PROVIDER_FILES", "Built", "File", "Workshop", "render_provider"]

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
_DOCKER_SCRIPTS = (".scripts/run_docker_build.sh", ".scripts/build_steps.sh")
#: Provider → system that builds → the scripts that its jobs call.
_SCRIPTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "circle": {"linux": _DOCKER_SCRIPTS, "osx": (".scripts/run_osx_build.sh",)},
    "travis": {"linux": _DOCKER_SCRIPTS, "osx": (".scripts/run_osx_build.sh",)},
    "appveyor": {},
    "azure": {
        "linux": _DOCKER_SCRIPTS,
        "osx": (".scripts/run_osx_build.sh",),
        "win": (".scripts/run_win_build.bat",),
    },
    "drone": {"linux": (".scripts/build_steps.sh",)},
    "woodpecker": {"linux": (".scripts/build_steps.sh",)},
    "github_actions": {
        "linux": _DOCKER_SCRIPTS,
        "osx": (".scripts/run_osx_build.sh",),
        "win": (".scripts/run_win_build.bat",),
    },
}
_CIRCLE_FINISH = ".circleci/fast_finish_ci_pr_build.sh"
_CIRCLE_CHECKOUT = ".circleci/checkout_merge_commit.sh"
_NAMES = "FANCY_PLATFORM_NAMES"
#: The names that templates use for a job's name if a service limits its length: today, and until 3.60.
_SHORT_NAMES = ("config_name_short", "short_config_name")


@dataclass(frozen=True, slots=True)
class File:
    """The content of a file of a feedstock, and whether it is executable."""

    content: bytes
    executable: bool = False


@dataclass(frozen=True, slots=True)
class Built:
    """The configurations of one platform that one provider builds, sorted by name."""

    placement: Placement
    configurations: tuple[Configuration, ...]


@dataclass(frozen=True)
class Workshop:
    """The inputs that all services share."""

    release: Release
    templates: Templates
    forge: Forge
    rules: TreeRules
    ci: CiRules

    @property
    def feedstock(self) -> Path:
        """The feedstock's folder."""
        return self.forge.folder

    @property
    def settings(self) -> Mapping[str, Any]:
        """Its conda-forge.yml as YAML reads it."""
        return self.forge.settings

    @property
    def recipe(self) -> Path:
        """The recipe's folder."""
        return self.forge.folder / self.forge.recipe_dir


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
        seen = copy.deepcopy(config)
        seen["configs"] = _jobs(workshop, provider, enabled)
        seen["fast_finish"] = _fast_finish(workshop, config, provider)
        for system in dict.fromkeys(each.placement.build_os for each in enabled):
            _add(files, _of_system(workshop, seen, provider, system, enabled))
    if enabled or provider == "circle":
        files[target] = File(workshop.templates.render(template, seen).encode())
    return files


def _note_platforms(workshop: Workshop, config: dict[str, Any], provider: str, enabled: Sequence[Built]) -> None:
    names = workshop.release.constant(_NAMES) or {}
    platforms = [each.placement.platform for each in enabled]
    config[provider]["platforms"] = ",".join(names.get(platform, platform) for platform in platforms)
    config[provider]["all_platforms"] = platforms
    for platform in platforms:
        config.setdefault(platform, {})["enabled"] = True


def _jobs(workshop: Workshop, provider: str, enabled: Sequence[Built]) -> list[dict[str, Any]]:
    """The jobs as templates see them."""
    return [
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


def _values(configuration: Configuration) -> dict[str, Any]:
    return {key: list(values) for key, values in configuration.values.items()}


def _of_system(
    workshop: Workshop, seen: dict[str, Any], provider: str, system: str, enabled: Sequence[Built]
) -> dict[str, File]:
    """The scripts for the jobs of one system, and the provider's other files for it."""
    yum = _yum_setup(workshop) if system == "linux" else ""
    if yum:
        seen["yum_build_setup"] = yum
    fixed = _SCRIPTS[provider].get(system, ())
    scripts = list(fixed)
    plain: list[str] = []
    setup = _build_setup(workshop, system)
    own: MutableMapping[str, Any] = seen
    if provider == "appveyor":
        seen["build_setup"] = _for_appveyor(setup)
        return {}
    if provider in ("azure", "github_actions"):
        own = dict(seen)
        if provider == "azure":  # what its jobs are set to is seen by the files of this system alone
            own["configs"] = [dict(job) for job in seen["configs"]]
        for settings in _settings_of_jobs(workshop, own["configs"], provider, system, enabled):
            scripts += [name for name in _scripts_of(workshop, provider, settings, system) if name not in scripts]
        if provider == "azure":
            own["azure_yaml"] = _azure_settings(workshop, seen, system, enabled)
            plain.append(f".azure-pipelines/azure-pipelines-{system}.yml")
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
    return files


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
    settings = copy.deepcopy(seen["azure"][f"settings_{system}"])
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


def _build_setup(workshop: Workshop, system: str) -> str:
    """The lines that prepare a machine for a build: the recipe's own script, if it has one."""
    own = "run_conda_forge_build_setup_" + system
    file = f"{own}.bat" if system == "win" else own
    texts = workshop.release.texts_in("_get_build_setup_line")
    if (workshop.recipe / file).exists():
        found = [text for text in texts if own in text]
        return found[0].replace("{recipe_dir}", workshop.forge.recipe_dir) if found else ""
    plain = [text for text in texts if "run_conda_forge_build_setup_" not in text]
    sourced = [text for text in plain if text.lstrip().startswith("source")]
    chosen = [text for text in plain if text not in sourced] if system == "win" else sourced
    return chosen[0] if chosen else ""


def _yum_setup(workshop: Workshop) -> str:
    """The line that installs the packages in `yum_requirements.txt` of the recipe.

    Raises:
        InputError: the file lists nothing.
    """
    path = workshop.recipe / "yum_requirements.txt"
    if not path.exists():
        return ""
    lines = [line.strip() for line in read_text(path, within=workshop.recipe).splitlines()]
    wanted = [line for line in lines if line and not line.startswith("#")]
    if not wanted:
        raise InputError("names no package", path=path, hint="Remove the file or name packages in it.")
    texts = workshop.release.texts_in("generate_yum_requirements")
    return texts[0].replace("{}", " ".join(wanted)) if texts else ""


def _for_appveyor(setup: str) -> str:
    lines = [f"    {line}" if line.startswith("#") else f"    - cmd: {line}" for line in setup.rstrip().split("\n")]
    return "\n".join(lines).strip()


def _fast_finish(workshop: Workshop, config: Mapping[str, Any], provider: str) -> str:
    """The command with which a job of CircleCI or AppVeyor ends itself if there is a newer commit."""
    texts = workshop.release.texts_in(f"render_{provider}") if provider in ("circle", "appveyor") else ()
    if not texts:
        return ""
    text = texts[0]
    recipe_dir = str(config["recipe_dir"])
    own = (workshop.recipe / "ff_ci_pr_build.py").exists()
    known = workshop.release.strings_in("_get_fast_finish_script")
    branch = str(config.get("github", {}).get("tooling_branch_name", "main"))
    fetch = next((line for line in known if line.startswith("powershell" if provider == "appveyor" else "curl")), "")
    fetch = fetch.replace("{branch}", branch)
    script = ""
    if provider == "appveyor":
        script = f"{recipe_dir}\\ff_ci_pr_build" if own else "ff_ci_pr_build"
        if own:
            fetch = ""
        else:
            text += "del {fast_finish_script}.py"
    elif own:
        fetch = f"cat {recipe_dir}/ff_ci_pr_build.py"
    filled = text.replace("{get_fast_finish_script}", fetch).replace("{fast_finish_script}", script)
    filled = filled.replace("{{", "{").replace("}}", "}").strip()
    return filled.replace("\n", "\n        ") if provider == "appveyor" else filled
