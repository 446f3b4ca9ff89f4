"""What a recipe promises for one row: rendered by py-rattler-build, each row alone, and turned into plain values.

Rendering one row at a time is the guard against the engine's fault of pinning the wrong sibling (docs/engine.md): in
what comes back there is one output of each name, so nothing can be mistaken for another.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feedstock_tools.digests import digest_of_files, digest_of_values
from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.planned import PlannedOutput
from feedstock_tools.platforms import Platform
from feedstock_tools.rerender.configurations.rows import Row

if TYPE_CHECKING:
    from rattler_build import RenderedVariant, Stage0Recipe

__all__ = ["local_sources", "promise_row", "read_recipe", "render_row"]

#: Files of a recipe folder that are not part of a build: their meaning is in the rendered recipe already.
_RENDERED_FILES = frozenset({"recipe.yaml", "meta.yaml", "conda_build_config.yaml", "variants.yaml"})


def read_recipe(path: Path) -> Stage0Recipe:
    """Parse a `recipe.yaml`.

    Raises:
        InputError: it is missing or is no recipe.
    """
    from rattler_build import RattlerBuildError, Stage0Recipe

    from feedstock_tools.reading import read_text

    read_text(path)
    try:
        return Stage0Recipe.from_file(path)
    except (RattlerBuildError, ValueError) as error:
        line, column, message = _place_of(str(error))
        raise InputError(f"is not a recipe: {message}", path=path, line=line, column=column) from error


def render_row(recipe: Stage0Recipe, row: Row, target: Platform, builder: Platform) -> list[RenderedVariant]:
    """The outputs of one row, in the order in which they can be built.

    Raises:
        InputError: the recipe cannot be rendered with these values, or makes two packages of one name.
    """
    from rattler_build import PlatformConfig, RattlerBuildError, RenderConfig

    from feedstock_tools.recipe.v1_engine import engine_variants

    platforms = PlatformConfig(
        target_platform=target.subdir, build_platform=builder.subdir, host_platform=target.subdir
    )
    variant = engine_variants({key: [value] for key, value in row.values.items()}, ())
    try:
        if _is_skipped(recipe, variant, RenderConfig(platforms)):
            return []
        rendered = recipe.render(variant, RenderConfig(platforms))
    except (RattlerBuildError, ValueError) as error:
        line, column, message = _place_of(str(error))
        path = recipe.recipe_path
        raise InputError(
            f"cannot be rendered for {row.name}: {message}", path=path, line=line, column=column
        ) from error
    names = [variant.recipe.package.name for variant in rendered]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(
            f"{row.name} makes more than one package called {', '.join(twice)}",
            path=recipe.recipe_path,
            hint="Only one of them could be pinned by name; a key of the recipe has more values than the row gives it.",
        )
    return rendered


def _is_skipped(recipe: Stage0Recipe, variant: Any, config: Any) -> bool:
    """Whether a recipe without `outputs:` is skipped, which the engine does not look at (docs/engine.md).

    The question is put to it in the form that it does answer: a recipe whose one output has nothing but that `skip`.
    """
    from rattler_build import SingleOutputRecipe, Stage0Recipe

    if not isinstance(recipe, SingleOutputRecipe):
        return False
    content = recipe.to_dict()
    skip = (content.get("build") or {}).get("skip")
    if not skip:
        return False
    output = {"package": content["package"], "build": {"skip": skip}}
    probe = {"context": content.get("context") or {}, "outputs": [output]}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "recipe.yaml")
        path.write_text(json.dumps(probe))
        return not Stage0Recipe.from_file(path).render(variant, config)


Digest = Callable[[Sequence[Path]], str]


def promise_row(
    rendered: Iterable[RenderedVariant], recipe_folder: Path, engine: str, digest: Digest = digest_of_files
) -> tuple[PlannedOutput, ...]:
    """The promise of each output of a rendered row, with its identity.

    Args:
        rendered: what `render_row` gave.
        recipe_folder: its files (scripts, patches, tests) are part of every output's identity.
        engine: name and version of what builds, part of the identity too.
        digest: gives the hash of files and folders; for many rows, one that remembers.
    """
    files = digest(sorted(path for path in recipe_folder.iterdir() if path.name not in _RENDERED_FILES))
    outputs: dict[str, PlannedOutput] = {}
    pending = list(rendered)
    own = {variant.recipe.package.name for variant in pending}
    for variant in pending:
        sources = digest(_sources(variant.recipe.to_dict(), recipe_folder))
        output = _promise(variant, own, outputs, {"engine": engine, "files": files, "sources": sources})
        outputs[output.name] = output
    return tuple(outputs.values())


def _promise(
    variant: RenderedVariant,
    own: set[str],
    earlier: Mapping[str, PlannedOutput],
    common: Mapping[str, str],
) -> PlannedOutput:
    recipe = variant.recipe
    content = recipe.to_dict()
    name, version, build = recipe.package.name, recipe.package.version, str(recipe.build.string)
    needed = tuple(sorted(_names_in(content.get("requirements") or {}) & own - {name}))
    inputs = {
        "recipe": digest_of_values(content),
        "variant": digest_of_values(dict(variant.variant)),
        "siblings": digest_of_values({sibling: earlier[sibling].identity for sibling in needed if sibling in earlier}),
        **common,
    }
    pinned = _exact_pins((content.get("requirements") or {}).get("run") or [])
    pins = {pin: f"{earlier[pin].version} {earlier[pin].build}" for pin in sorted(pinned - {name}) if pin in earlier}
    down = int((content.get("build", {}).get("variant") or {}).get("down_prioritize_variant") or 0)
    return PlannedOutput(
        name=name,
        version=version,
        build=build,
        build_number=recipe.build.number or 0,
        subdir="noarch" if recipe.build.noarch else _target(variant),
        identity=digest_of_values(inputs),
        inputs=inputs,
        siblings=needed,
        pins=pins,
        track_features=_track_features(name, down),
        uses_python=_uses_python(content, needed, earlier),
        staging=tuple(staging["name"] for staging in content.get("staging_caches") or ()),
    )


def _target(variant: RenderedVariant) -> str:
    return variant.variant.get("target_platform", "noarch")


def _track_features(name: str, down_prioritize: int) -> tuple[str, ...]:
    """What the engine writes for `down_prioritize_variant: 2`: one feature for each step down."""
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
    """The package names in some sections of requirements: texts, and `pin_subpackage`-like mappings."""
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


def local_sources(rendered: Iterable[RenderedVariant], recipe_folder: Path) -> set[Path]:
    """The files and folders on this machine that rendered outputs name as their sources."""
    return {path for variant in rendered for path in _sources(variant.recipe.to_dict(), recipe_folder)}


def _sources(content: Mapping[str, Any], folder: Path) -> list[Path]:
    """The local sources of an output, and those of the staging outputs that it inherits from."""
    listed: list[Any] = []
    for part in (content, *(content.get("staging_caches") or ())):
        sources = part.get("source") or []
        listed += sources if isinstance(sources, list) else [sources]
    return [(folder / source["path"]).resolve() for source in listed if isinstance(source, dict) and "path" in source]


def _place_of(message: str) -> tuple[int | None, int | None, str]:
    """Line, column and text of one of the engine's messages, which has them as `5:3: …` or `line 5, column 3`."""
    text = " ".join(message.split())
    found = re.search(r"\b(\d+):(\d+): ", text) or re.search(r"\bline (\d+),? column (\d+)", text)
    place = (int(found[1]), int(found[2])) if found else (None, None)
    return *place, text
