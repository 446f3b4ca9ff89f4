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
from feedstock_tools.rerender.ci_rules import CiRules
from feedstock_tools.rerender.configuration import Configuration
from feedstock_tools.rerender.forge import Forge, Placement, docker_run_args, section, workflow_settings
from feedstock_tools.rerender.smithy.config import TreeRules
from feedstock_tools.rerender.smithy.job_lists import dumped_settings
from feedstock_tools.rerender.smithy.jobs import azure_jobs, runner, short_name, target_platform
from feedstock_tools.rerender.smithy.release import Release
from feedstock_tools.rerender.smithy.templates import Templates


@dataclass(frozen=True, slots=True)
class File:
    """The content of a file of a feedstock, and whether it is executable; None: as before, since conda-smithy opens the
    file in place (a new file is not executable)."""

    content: bytes
    executable: bool | None = False


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
        return self.forge.folder

    @property
    def settings(self) -> Mapping[str, Any]:
        return self.forge.settings

    @property
    def recipe(self) -> Path:
        """The recipe's folder."""
        return self.forge.folder / self.forge.recipe_dir


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
            _add(files, _files_for_system(workshop, seen, provider, system, enabled))
    if enabled or provider == "circle":
        anew = provider == "github_actions" or not enabled  # removed first
        files[target] = File(workshop.templates.render(template, seen).encode(), False if anew else None)
    return files


def _note_platforms(workshop: Workshop, config: dict[str, Any], provider: str, enabled: Sequence[Built]) -> None:
    names = workshop.release.constant(_NAMES) or {}
    platforms = [_key_of(each.placement.platform, workshop.rules) for each in enabled]
    if not workshop.rules.names_with_arch:
        names = {platform: _SYSTEMS[platform.partition("_")[0]] for platform in platforms}
    config[provider]["platforms"] = ",".join(names.get(platform, platform) for platform in platforms)
    config[provider]["all_platforms"] = platforms
    for platform in platforms:
        config.setdefault(platform, {})["enabled"] = True


def _key_of(platform: str, rules: TreeRules) -> str:
    """The name of a platform in the settings of a release: `linux_64`, or `linux` until 3.7.4."""
    return platform if rules.names_with_arch else platform.removesuffix("_64")


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
            "config": {key: list(values) for key, values in configuration.values.items()},
            **dict.fromkeys(_SHORT_NAMES, short_name(configuration.name, workshop.ci)),
            "build_platform": each.placement.build_subdir,
        }
        for each in enabled
        for configuration in each.configurations
    ]
    count = workshop.rules.listed_values
    return [tuple(job.values())[:count] for job in jobs] if count else jobs


def _files_for_system(
    workshop: Workshop, seen: dict[str, Any], provider: str, system: str, enabled: Sequence[Built]
) -> dict[str, File]:
    """The scripts for the jobs of one system, and the provider's other files for it."""
    yum = _yum_setup(workshop) if system == "linux" else ""
    if yum:
        seen["yum_build_setup"] = yum
    fixed = fixed_scripts(provider, system, workshop.rules)
    scripts = list(fixed)
    plain: list[str] = []
    setup = build_setup(workshop, provider, system)
    if provider == "appveyor":
        if workshop.rules.leaks != "jobs":
            seen["build_setup"] = _for_appveyor(setup, workshop.rules)
        return {}
    own: MutableMapping[str, Any] = copy.deepcopy(seen) if workshop.rules.leaks == "jobs" else seen
    if provider in ("azure", "github_actions"):
        own = _values_for_files(workshop, seen, provider, system, enabled, scripts)
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


def _values_for_files(
    workshop: Workshop, seen: dict[str, Any], provider: str, system: str, enabled: Sequence[Built], scripts: list[str]
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


_DOCKER = ("run_docker_build.sh", "build_steps.sh")
_MAC = ("run_osx_build.sh",)
_WINDOWS = ("run_win_build.bat",)
#: Provider -> system that builds -> the scripts that its jobs call.
_SCRIPTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "circle": {"linux": _DOCKER, "osx": _MAC},
    "travis": {"linux": _DOCKER, "osx": _MAC},
    "appveyor": {},
    "azure": {"linux": _DOCKER, "osx": _MAC, "win": _WINDOWS},
    "drone": {"linux": ("build_steps.sh",)},
    "woodpecker": {"linux": ("build_steps.sh",)},
    "github_actions": {"linux": _DOCKER, "osx": _MAC, "win": _WINDOWS},
}
_SHARED = ".scripts"
#: Provider -> the folder of its own scripts, of releases that do not share them.
PLACES: Mapping[str, str] = {"circle": ".circleci", "travis": ".travis", "azure": ".azure-pipelines", "drone": ".drone"}
_OWN_SETUP = "run_conda_forge_build_setup_"
_SETUP = "run_conda_forge_build_setup"


def fixed_scripts(provider: str, system: str, rules: TreeRules) -> tuple[str, ...]:
    """The paths of the scripts that every job of a service calls on a system, whatever its settings.

    >>> from feedstock_tools.rerender.smithy.config import tree_rules
    >>> fixed_scripts("circle", "osx", tree_rules("3.6.0")), fixed_scripts("circle", "osx", tree_rules("3.7.0"))
    (('.circleci/run_osx_build.sh',), ('.scripts/run_osx_build.sh',))
    """
    names = _SCRIPTS[provider].get(system, ())
    if rules.scripts != "shared" and provider == "azure" and system == "osx":
        return ()
    if provider == "travis" and not rules.travis_scripts:
        return ()
    shared = rules.scripts == "shared" or (rules.scripts == "Linux shared" and system == "linux")
    folder = _SHARED if shared else PLACES.get(provider, _SHARED)
    return tuple(f"{folder}/{name}" for name in names)


def build_setup(workshop: Workshop, provider: str, system: str) -> str:
    """The lines that prepare a machine for a build: the recipe's own script, if it has one."""
    if not workshop.rules.shared_setup or (provider == "drone" and workshop.rules.scripts == "apart"):
        return _apart_setup(workshop, provider, system)
    texts = workshop.release.texts_in("_get_build_setup_line")
    text = _chosen_setup(workshop, texts, system)
    if provider == "travis" and system == "osx" and workshop.rules.scripts == "Linux shared":
        return indented(text)
    return text


def _apart_setup(workshop: Workshop, provider: str, system: str) -> str:
    """Of releases with a text in the function of each service; Azure's is not dedented."""
    function = f"_{provider}_specific_setup"
    texts = workshop.release.texts_in(function)
    plain = [text for text in workshop.release.strings_in(function) if text.strip() == _SETUP]
    if not texts:
        return plain[0] if plain else ""
    text = _chosen_setup(workshop, [text for text in texts if "yum" not in text], system)
    yum = [text for text in texts if "yum" in text]
    if yum and system == "linux":
        packages = _yum_packages(workshop)
        text += yum[0].replace("{}", " ".join(packages)) if packages else ""
    return text


def indented(text: str) -> str:
    """Lines as those of a script in Travis' file."""
    return text.strip().replace("\n", "\n      ")


def _chosen_setup(workshop: Workshop, texts: Sequence[str], system: str) -> str:
    own = _OWN_SETUP + system
    file = f"{own}.bat" if system == "win" else own
    if (workshop.recipe / file).exists():
        found = [text for text in texts if own in text]
        return found[0].replace("{recipe_dir}", workshop.forge.recipe_dir) if found else ""
    plain = [text for text in texts if _OWN_SETUP not in text]
    sourced = [text for text in plain if text.lstrip().startswith("source")]
    chosen = [text for text in plain if text not in sourced] if system == "win" else sourced
    return chosen[0] if chosen else ""


def _yum_setup(workshop: Workshop) -> str:
    """The line that installs the packages in `yum_requirements.txt` of the recipe."""
    texts = workshop.release.texts_in("generate_yum_requirements")
    wanted = _yum_packages(workshop) if texts else []
    return texts[0].replace("{}", " ".join(wanted)) if wanted else ""


def _yum_packages(workshop: Workshop) -> list[str]:
    path = workshop.recipe / "yum_requirements.txt"
    if not path.exists():
        return []
    lines = [line.strip() for line in read_text(path, within=workshop.recipe).splitlines()]
    wanted = [line for line in lines if line and not line.startswith("#")]
    if not wanted:
        raise InputError("names no package", path=path, hint="Remove the file or name packages in it.")
    return wanted


def _for_appveyor(setup: str, rules: TreeRules) -> str:
    """The lines that prepare a machine as AppVeyor's commands."""
    if not rules.shared_setup:
        return setup.rstrip().replace("\n", "\n    - cmd: ").lstrip()
    lines = [f"    {line}" if line.startswith("#") else f"    - cmd: {line}" for line in setup.rstrip().split("\n")]
    return "\n".join(lines).strip()


def fast_finish(workshop: Workshop, config: Mapping[str, Any], provider: str) -> str:
    """The command with which a job of CircleCI, Travis or AppVeyor ends itself if there is a newer commit."""
    texts = workshop.release.texts_in(f"render_{provider}") if provider in ("circle", "travis", "appveyor") else ()
    if not texts:
        return ""
    text = texts[0]
    recipe_dir = str(config["recipe_dir"])
    own = (workshop.recipe / "ff_ci_pr_build.py").exists()
    scripts = workshop.release.strings_in("_get_fast_finish_script")
    fixed = next((text for text in scripts if text in ("master", "branch2.0")), "main")
    branch = str(config.get("github", {}).get("tooling_branch_name", fixed))
    fetch = next((line for line in scripts if line.startswith("powershell" if provider == "appveyor" else "curl")), "")
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
