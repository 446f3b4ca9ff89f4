"""A recipe rendered for a configuration, with what its builds run: variables of the environment and commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from feedstock_tools.errors import FeedstockError
from feedstock_tools.recipe.model import RenderedOutput
from feedstock_tools.rerender.configurations.configuration import Configuration
from feedstock_tools.rerender.forge import read_forge
from feedstock_tools.rerender.outputs import contents_with_rattler_build, packages_with_conda_build
from feedstock_tools.rerender.rules import Rules

__all__ = ["Built", "rendered"]


@dataclass(frozen=True, slots=True)
class Built:
    """An output, with the variables that the recipe sets for its build, the commands in the recipe itself (empty where
    the build runs a file), and whether the output has `track_features`."""

    output: RenderedOutput
    environment: Mapping[str, str]
    commands: str
    track_features: bool


def rendered(feedstock: Path, configuration: Configuration) -> tuple[Built, ...]:
    """The outputs that a configuration builds; none of a recipe that cannot be rendered, which a rerender reports."""
    try:
        return tuple(built for built in _rendered(feedstock, configuration) if not built.output.skip)
    except FeedstockError:
        return ()


def _rendered(feedstock: Path, configuration: Configuration) -> Iterator[Built]:
    rules = Rules.newest()
    forge = read_forge(feedstock, rules)
    builder = forge.builder_of(configuration.platform)
    folder = feedstock / forge.recipe_dir
    if forge.is_v1:
        for content, output in contents_with_rattler_build(folder, configuration, builder, rules):
            yield _built_v1(content, output)
        return
    for meta, output in packages_with_conda_build(folder, configuration, builder, rules):
        build = meta.section("build")
        pairs = (text.partition("=") for text in _texts(build.get("script_env")) if "=" in text)
        environment = {name.strip(): value.strip() for name, _, value in pairs}
        yield Built(output, environment, "\n".join(_texts(build.get("script"))), bool(build.get("track_features")))


def _built_v1(content: Mapping[str, Any], output: RenderedOutput) -> Built:
    """The scripts of an output and of the caches that it may share with others (`staging`)."""
    environment: dict[str, str] = {}
    commands: list[str] = []
    own = content.get("build") or {}
    caches = [cache.get("build") or {} for cache in content.get("staging_caches") or ()]
    for build in (*caches, own):
        script = build.get("script")
        if isinstance(script, Mapping):
            environment |= {name: str(value) for name, value in (script.get("env") or {}).items()}
            script = script.get("content")
        commands += _texts(script)
    features = (own.get("variant") or {}).get("down_prioritize_variant") or own.get("track_features")
    return Built(output, environment, "\n".join(commands), bool(features))


def _texts(value: object) -> Sequence[str]:
    """A text or a list of texts, as a list."""
    items = value if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, str)]
