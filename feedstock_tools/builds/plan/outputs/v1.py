"""The planned outputs of a `recipe.yaml` for one row, with their identities."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from feedstock_tools.builds.stand_in.tools import tools_among
from feedstock_tools.digests import digest_of_files, digest_of_values
from feedstock_tools.feedstock.planned import PlannedOutput
from feedstock_tools.recipe.v1_engine import RenderedV1

#: Files of a recipe folder that are not part of a build: their content is already in the rendered recipe.
_RENDERED_FILES = frozenset({"recipe.yaml", "meta.yaml", "conda_build_config.yaml", "variants.yaml"})


Digest = Callable[[Sequence[Path]], str]


def promise_row(
    rendered: Iterable[RenderedV1], recipe_folder: Path, engine: str, digest: Digest = digest_of_files
) -> tuple[PlannedOutput, ...]:
    """The planned outputs of a rendered row, with their identities.

    Args:
        rendered: its outputs, in build order.
        recipe_folder: its files (scripts, patches, tests) are part of every output's identity.
        engine: name and version of the engine, part of the identity too.
        digest: returns the hash of files and folders; for many rows, a cached one.
    """
    files = digest(sorted(path for path in recipe_folder.iterdir() if path.name not in _RENDERED_FILES))
    outputs: dict[str, PlannedOutput] = {}
    pending = list(rendered)
    own = {output.name for output in pending}
    for rendered_output in pending:
        sources = digest(_sources(rendered_output.content, recipe_folder))
        output = _promise(rendered_output, own, outputs, {"engine": engine, "files": files, "sources": sources})
        outputs[output.name] = output
    return tuple(outputs.values())


def _promise(
    rendered: RenderedV1,
    own: set[str],
    earlier: Mapping[str, PlannedOutput],
    common: Mapping[str, str],
) -> PlannedOutput:
    content, name = rendered.content, rendered.name
    needed = tuple(sorted(_names_in(content.get("requirements") or {}) & own - {name}))
    inputs = {
        "recipe": digest_of_values(content),
        "variant": digest_of_values(dict(rendered.variant)),
        "siblings": digest_of_values({sibling: earlier[sibling].identity for sibling in needed if sibling in earlier}),
        **common,
    }
    pinned = _exact_pins((content.get("requirements") or {}).get("run") or [])
    pins = {pin: f"{earlier[pin].version} {earlier[pin].build}" for pin in sorted(pinned - {name}) if pin in earlier}
    down = int((content.get("build", {}).get("variant") or {}).get("down_prioritize_variant") or 0)
    return PlannedOutput(
        name=name,
        version=rendered.version,
        build=rendered.build,
        build_number=rendered.build_number,
        subdir="noarch" if rendered.noarch else rendered.variant.get("target_platform", "noarch"),
        identity=digest_of_values(inputs),
        inputs=inputs,
        siblings=needed,
        pins=pins,
        track_features=_track_features(name, down),
        uses_python=_uses_python(content, needed, earlier),
        staging=tuple(staging["name"] for staging in content.get("staging_caches") or ()),
        tools=_tools(content, needed, earlier),
    )


def _tools(content: Mapping[str, Any], siblings: Iterable[str], earlier: Mapping[str, PlannedOutput]) -> dict[str, str]:
    """The tools that building and testing an output installs, each with its digest."""
    tests = [test for test in content.get("tests") or [] if isinstance(test, dict)]
    parts = (content, *(content.get("staging_caches") or ()), *tests)
    names = {name for part in parts for name in _names_in(part.get("requirements") or {})}
    found = [earlier[name].tools for name in siblings if name in earlier]
    return {name: digest for tools in (tools_among(names), *found) for name, digest in tools.items()}


def _track_features(name: str, down_prioritize: int) -> tuple[str, ...]:
    """The engine's features for `down_prioritize_variant: 2`: one for each step down."""
    return tuple(f"{name}-p-{step}" for step in range(down_prioritize))


def _uses_python(content: Mapping[str, Any], siblings: tuple[str, ...], earlier: Mapping[str, PlannedOutput]) -> bool:
    run = (content.get("requirements") or {}).get("run") or []
    tests = content.get("tests") or []
    return (
        "python" in _names_in({"run": run})
        or any("python" in test for test in tests if isinstance(test, dict))
        or any(earlier[sibling].uses_python for sibling in siblings if sibling in earlier)
    )


def _names_in(requirements: Mapping[str, Any]) -> set[str]:
    """The package names in some sections of requirements: strings, and `pin_subpackage`-like mappings."""
    names: set[str] = set()
    for section in requirements.values():
        for item in section if isinstance(section, list) else ():
            if isinstance(item, str):
                names.add(re.split(r"[\s=<>!~\[]", item.rpartition("::")[2], maxsplit=1)[0].lower())
            elif isinstance(item, dict):
                names.update(str(pin["name"]) for pin in item.values() if isinstance(pin, dict) and "name" in pin)
    return names


def _exact_pins(requirements: Iterable[Any]) -> set[str]:
    """The names that `pin_subpackage(…, exact=True)` pins."""
    pins = (item.get("pin_subpackage") for item in requirements if isinstance(item, dict))
    return {str(pin["name"]) for pin in pins if isinstance(pin, dict) and pin.get("exact")}


def local_sources(rendered: Iterable[RenderedV1], recipe_folder: Path) -> set[Path]:
    """The files and folders on this machine that rendered outputs name as their sources."""
    return {path for output in rendered for path in _sources(output.content, recipe_folder)}


def _sources(content: Mapping[str, Any], folder: Path) -> list[Path]:
    """The local sources of an output, and those of the staging outputs that it inherits from."""
    listed: list[Any] = []
    for part in (content, *(content.get("staging_caches") or ())):
        sources = part.get("source") or []
        listed += sources if isinstance(sources, list) else [sources]
    return [(folder / source["path"]).resolve() for source in listed if isinstance(source, dict) and "path" in source]
