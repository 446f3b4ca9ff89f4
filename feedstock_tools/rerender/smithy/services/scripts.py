"""The scripts of CI jobs: which a service has, and the lines that the code of a release fills into them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from feedstock_tools.errors import InputError
from feedstock_tools.reading import read_text
from feedstock_tools.rerender.smithy.services.workshop import Workshop
from feedstock_tools.rerender.smithy.tree_rules import TreeRules

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
PLACES: Mapping[str, str] = {
    "circle": ".circleci",
    "travis": ".travis",
    "azure": ".azure-pipelines",
    "drone": ".drone",
}
_OWN_SETUP = "run_conda_forge_build_setup_"
_SETUP = "run_conda_forge_build_setup"


def fixed_scripts(provider: str, system: str, rules: TreeRules) -> tuple[str, ...]:
    """The paths of the scripts that every job of a service calls on a system, whatever its settings.

    >>> from feedstock_tools.rerender.smithy.tree_rules import tree_rules
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


def yum_setup(workshop: Workshop) -> str:
    """The line that installs the packages in `yum_requirements.txt` of the recipe.

    Raises:
        InputError: the file lists nothing.
    """
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


def for_appveyor(setup: str, rules: TreeRules) -> str:
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
