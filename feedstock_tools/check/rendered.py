"""A recipe rendered for a configuration, with what its builds run: variables of the environment and commands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from feedstock_tools.check.renderings import Renderings
from feedstock_tools.errors import FeedstockError
from feedstock_tools.recipe.model import RenderedOutput
from feedstock_tools.recipe.pins import Pin, requirement_of_text
from feedstock_tools.recipe.v0.meta import Meta
from feedstock_tools.rerender.configurations.configuration import Configuration

__all__ = ["Built", "rendered"]


@dataclass(frozen=True, slots=True)
class Built:
    """An output, with the variables that the recipe sets for its build, the commands in the recipe itself (empty where
    the build runs a file), and whether the output has `track_features`."""

    output: RenderedOutput
    environment: Mapping[str, str]
    commands: str
    track_features: bool


def rendered(renderings: Renderings, configuration: Configuration) -> tuple[Built, ...]:
    """The outputs that a configuration builds; none of a recipe that cannot be rendered, which a rerender reports."""
    try:
        packages = renderings.packages(configuration)
    except FeedstockError:
        return ()
    built = (
        _built(source, output) if isinstance(source, Meta) else _built_v1(source, output) for source, output in packages
    )
    return tuple(each for each in built if not each.output.skip)


def _built(meta: Meta, output: RenderedOutput) -> Built:
    build = meta.section("build")
    pairs = (text.partition("=") for text in _texts(build.get("script_env")) if "=" in text)
    environment = {name.strip(): value.strip() for name, _, value in pairs}
    named = replace(output, requirements={kind: _names(texts) for kind, texts in output.requirements.items()})
    return Built(named, environment, "\n".join(_texts(build.get("script"))), bool(build.get("track_features")))


def _names(requirements: Iterable[str]) -> tuple[str, ...]:
    """The requirements of a section, with the bare names of those that are pins."""
    read = (requirement_of_text(text) for text in requirements)
    return tuple(each.name if isinstance(each, Pin) else each for each in read)


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
