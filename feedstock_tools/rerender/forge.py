"""conda-forge.yml: a feedstock's settings for platforms, providers and the environment that selectors see.

Settings that a rerender does not read are ignored, whatever their value; those that it reads must
have the form that conda-smithy needs. (conda_smithy/configure_feedstock.py: _read_forge_config, _load_forge_config,
_get_platforms_of_provider, _render_ci_provider.)
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.platforms import KNOWN_SUBDIRS, Platform
from feedstock_tools.reading import FORGE_FILE, LARGEST_SETTINGS, is_inside, read_text
from feedstock_tools.rerender.ci_rules import CiRules, ci_rules
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.yaml_reading.nodes import compose, pairs, parse_first, place_of

#: conda-smithy renders the providers one after the other; a later one overwrites the files of an earlier one.
PROVIDERS = ("circle", "travis", "appveyor", "azure", "drone", "woodpecker", "github_actions")
#: Platforms by the keys that `provider` had before conda-smithy 3.7.5, in its order.
_OLD_PLATFORMS = {
    "linux": "linux_64",
    "linux_aarch64": "linux_aarch64",
    "linux_ppc64le": "linux_ppc64le",
    "linux_armv7l": "linux_armv7l",
    "osx": "osx_64",
    "win": "win_64",
}
_CUDA_COMPILER = re.compile(r"""^[^#\n]*compiler\(("cuda"|'cuda')\)""", re.MULTILINE)
# Setting -> the environment variable that selectors see, and its default.
_VARIABLES = {
    "min_py_ver": ("CF_MIN_PY_VER", "27"),
    "min_r_ver": ("CF_MIN_R_VER", "34"),
    "max_r_ver": ("CF_MAX_R_VER", "34"),
}
# The forms of the settings that are read: text, flag, texts (one or a list), mapping of names to one of these.
_FORMS: Mapping[str, str] = {
    "recipe_dir": "text",
    "conda_build_tool": "text",
    "config_version": "text",
    **dict.fromkeys((*_VARIABLES, "compiler_stack", "max_py_ver"), "text"),
    "noarch_platforms": "texts",
    "build_platform": "mapping of texts",
    "os_version": "mapping of texts",
    "provider": "mapping of lists",
    **dict.fromkeys(("docker", *PROVIDERS), "mapping"),
}


@dataclass(frozen=True, slots=True)
class Rendering:
    """A platform that is rendered for a provider, which builds it on `build_platform`.

    `environ` is the environment that selectors see. `keep_noarch`: noarch outputs are built here.
    """

    platform: Platform
    build_platform: Platform
    provider: str
    keep_noarch: bool
    environ: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Forge:
    """A feedstock's conda-forge.yml as a version of conda-smithy reads it, with defaults, and its recipe.

    `recipe` is the recipe's file and `recipe_text` its text, since some defaults depend on it.
    `renderings` are in conda-smithy's order; a platform with several providers appears several times. `is_v1`:
    `recipe.yaml` is rendered and not `meta.yaml`. `fallback_image` is the image of jobs whose variants name none.
    `settings` are as YAML reads them, without defaults.
    """

    folder: Path
    recipe_dir: str
    recipe: Path
    recipe_text: str = field(repr=False)
    is_v1: bool
    fallback_image: str
    renderings: tuple[Rendering, ...]
    self_hosted: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)

    def builder_of(self, platform: Platform) -> Platform:
        """The platform of the machines that build for another one: that itself, unless it is crossed."""
        builders = (each.build_platform for each in reversed(self.renderings) if each.platform == platform)
        return next(builders, platform)


def read_forge(feedstock: Path, rules: Rules | None = None) -> Forge:
    """Read the conda-forge.yml of a feedstock (a missing one counts as empty), and its recipe.

    Raises:
        InputError: it cannot be read, is not YAML, settings that a rerender needs have the wrong form (all of them are
            named), conda does not know a platform, or the recipe is missing.
    """
    if not feedstock.is_dir():
        raise InputError("there is no such feedstock", path=feedstock)
    chosen = rules or Rules.newest()
    settings = read_settings(feedstock)
    recipe_dir = str(settings.get("recipe_dir") or "recipe")
    is_v1 = chosen.knows_recipe_yaml and settings.get("conda_build_tool") == "rattler-build"
    recipe = feedstock / recipe_dir / ("recipe.yaml" if is_v1 else "meta.yaml")
    if not recipe.exists():
        raise _no_recipe(feedstock, recipe)
    if not is_inside(recipe.parent, feedstock):
        raise InputError("the folder of the recipe is outside of the feedstock", path=recipe.parent)
    text = read_text(recipe, within=recipe.parent)
    return Forge(
        folder=feedstock,
        recipe_dir=recipe_dir,
        recipe=recipe,
        recipe_text=text,
        is_v1=is_v1,
        fallback_image=str(section(settings, "docker").get("fallback_image") or chosen.fallback_image),
        renderings=tuple(_renderings(settings, text, chosen)),
        self_hosted=bool(section(settings, "github_actions").get("self_hosted")),
        settings=settings,
    )


def _no_recipe(feedstock: Path, recipe: Path) -> InputError:
    message = "there is no such file"
    hint = "A feedstock has recipe/recipe.yaml or recipe/meta.yaml, or a feedstock.yaml to make them from."
    if recipe.name == "meta.yaml" and recipe.with_name("recipe.yaml").is_file():
        message += ", but a recipe.yaml"
        hint = (
            "Set `conda_build_tool: rattler-build` in conda-forge.yml, which conda-smithy requires for a recipe.yaml."
        )
    elif recipe.name == "recipe.yaml" and recipe.with_name("meta.yaml").is_file():
        message += ", but a meta.yaml"
        hint = "conda-forge.yml sets `conda_build_tool: rattler-build`, which requires a recipe.yaml."
    elif (feedstock / "feedstock.yaml").is_file():
        hint = "`feedstock-tools generate` writes it from feedstock.yaml."
    return InputError(message, path=recipe, hint=hint)


def read_settings(feedstock: Path) -> Mapping[str, Any]:
    """The settings of a feedstock without defaults; empty if it has no conda-forge.yml.

    Raises:
        InputError: it cannot be read, is not YAML, or settings that a rerender needs have the wrong form.
    """
    path = feedstock / FORGE_FILE
    if not os.path.lexists(path):
        return {}
    settings, places = parse_settings(read_text(path, LARGEST_SETTINGS, within=path.parent), path)
    mistakes = [
        Mistake(message, path, *places.get(keys, places.get(keys[:1], (None, None))))
        for keys, message in _wrong(settings)
    ]
    if mistakes:
        raise InputError.of(mistakes)
    return settings


def _renderings(settings: Mapping[str, Any], recipe_text: str, rules: Rules) -> Iterator[Rendering]:
    environ = _environ(settings, recipe_text, rules)
    for name, built_on, provider in _platforms_with_providers(settings, rules):
        platform, build_platform = Platform.parse(name), Platform.parse(built_on)
        if rules.sets_build_platform:
            environ["BUILD_PLATFORM"] = build_platform.subdir
        version = section(settings, "os_version").get(name)
        if rules.sets_linux_version and platform.os == "linux" and version:
            # It stays set: later platforms see it as well, as with conda-smithy.
            environ["DEFAULT_LINUX_VERSION"] = str(version)
        yield Rendering(platform, build_platform, provider, name in _noarch_platforms(settings, rules), dict(environ))


def rendering_if_built(forge: Forge, platform: Platform, rules: Rules) -> Rendering:
    """How a platform that no provider builds would be rendered if Azure built it."""
    provider = {**section(forge.settings, "provider"), platform.name: "azure"}
    renderings = _renderings({**forge.settings, "provider": provider}, forge.recipe_text, rules)
    return next(rendering for rendering in renderings if rendering.platform == platform)


def _environ(settings: Mapping[str, Any], recipe_text: str, rules: Rules) -> dict[str, str]:
    environ = {variable: str(settings.get(name) or default) for name, (variable, default) in _VARIABLES.items()}
    environ["CF_COMPILER_STACK"] = str(settings.get("compiler_stack") or rules.compiler_stack)
    environ["CF_MAX_PY_VER"] = str(settings.get("max_py_ver") or rules.max_py_ver)
    if rules.sets_build_platform:
        environ["CONFIG_VERSION"] = str(settings.get("config_version") or "2")
    if rules.sets_cuda_enabled and _CUDA_COMPILER.search(recipe_text):
        environ["CF_CUDA_ENABLED"] = "True"
    return environ


def _platforms_with_providers(settings: Mapping[str, Any], rules: Rules) -> Iterator[tuple[str, str, str]]:
    """Platform, the platform that it is built on, and the provider."""
    if not rules.has_build_platforms:
        providers = section(settings, "provider")
        for key, name in _OLD_PLATFORMS.items():
            provider = providers.get(key, None if "_" in key else "azure")
            if provider:
                yield name, name, str(provider)
        return
    ci = ci_rules(rules.smithy)
    for provider in PROVIDERS:
        for place in placements(settings, ci, provider):
            yield place.platform, place.build_platform, provider


def _noarch_platforms(settings: Mapping[str, Any], rules: Rules) -> tuple[str, ...]:
    configured = settings.get("noarch_platforms") if rules.has_noarch_platforms else None
    if not configured:
        return ("linux_64",)
    return tuple(str(name) for name in configured) if isinstance(configured, list) else (str(configured),)


def _wrong(settings: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    for name, form in _FORMS.items():
        value = settings.get(name)
        if value is None:
            continue
        kind, _, of = form.partition(" of ")
        if kind == "mapping" and not isinstance(value, Mapping):
            yield (name,), f"'{name}' must be a mapping, not {_kind_of(value)}"
        elif kind == "mapping" and of:
            checked = ((key, item) for key, item in value.items() if item is not None)
            for key, item in checked:
                if not (_is_text(item) or (of == "lists" and (_is_texts(item) or item is False))):
                    wanted = "a name, a list of names or false" if of == "lists" else "a name"
                    yield (name, str(key)), f"'{name}.{key}' must be {wanted}, not {_kind_of(item)}"
                elif name == "build_platform" and not _is_platform(str(item)):
                    yield (name, str(key)), f"'{item}' is not a platform"
            unknown = (key for key in value if name == "build_platform" and not _is_platform(str(key)))
            yield from (((name, str(key)), f"'{key}' is not a platform") for key in unknown)
        elif kind == "text" and not _is_text(value):
            yield (name,), f"'{name}' must be a string, not {_kind_of(value)}"
        elif kind == "texts" and not (_is_text(value) or _is_texts(value)):
            yield (name,), f"'{name}' must be a string or a list of strings, not {_kind_of(value)}"
    docker = settings.get("docker")
    if isinstance(docker, Mapping) and docker.get("image"):
        yield ("docker", "image"), "'docker.image' is no longer a setting: set docker_image in conda_build_config.yaml"
    folder = settings.get("recipe_dir")
    if isinstance(folder, str) and (".." in PurePosixPath(folder).parts or PurePosixPath(folder).is_absolute()):
        yield ("recipe_dir",), f"'recipe_dir' leads out of the feedstock: {folder}"


def _is_platform(name: str) -> bool:
    return name.replace("_", "-", 1) in KNOWN_SUBDIRS


def _is_text(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(_is_text(item) for item in value)


def _kind_of(value: Any) -> str:
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if isinstance(value, list) else repr(value)


Keys = tuple[str, ...]
Places = dict[Keys, tuple[int | None, int | None]]
#: Settings are read down to two levels.
_DEPTH = 2


def parse_settings(text: str, path: Path) -> tuple[Mapping[str, Any], Places]:
    """The settings of the first document (conda-smithy ignores the rest), and the line and column of each.

    Raises:
        InputError: not YAML, not a mapping, tags for anything but plain data, or aliases that grow without limit.
    """
    settings = parse_first(text, path)
    if settings is None:
        return {}, {}
    if not isinstance(settings, dict):
        raise InputError("must be a mapping of settings", path=path)
    return {str(key): value for key, value in settings.items()}, dict(_places(compose(text, path, first=True)))


def _places(node: Any, keys: Keys = ()) -> Iterator[tuple[Keys, tuple[int | None, int | None]]]:
    for key, value in pairs(node) if len(keys) < _DEPTH else ():
        place = place_of(key)
        here = (*keys, str(key.value))
        yield here, (place.line, place.column)
        yield from _places(value, here)


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
