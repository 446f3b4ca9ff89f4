"""The door to py-rattler-build's rendering: no other module parses or renders a `recipe.yaml`.

It takes texts and plain values; each recipe passes the bounds on its templates before the engine sees it. It returns
the engine's own renderings, which a build needs, or `RenderedV1`, the plain values of a rendering.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from feedstock_tools.bounds.limits import BoundError, is_held, most, step
from feedstock_tools.errors import FeedstockError, InputError
from feedstock_tools.files.temporary import temporary_folder
from feedstock_tools.platforms import Platform
from feedstock_tools.reading import read_text
from feedstock_tools.recipe.v1.templates import asks_environment, check_templates
from feedstock_tools.variants.model import WholeNumber
from feedstock_tools.yaml_reading.nodes import Schema, compose, members, parse_texts

if TYPE_CHECKING:
    from rattler_build import RenderConfig, RenderedVariant, Stage0Recipe, VariantConfig

#: An output as the engine rendered it, and as it builds it.
Rendering: TypeAlias = "RenderedVariant"

#: A text that a message quotes from the recipe, long enough to be in one place.
_QUOTED = re.compile(r"'([^']{4,})'|\(template: (.*?)\)[\"',]")
_PLACE = re.compile(r"(?<![\d.:])(\d{1,6}):(\d{1,6}):|line (\d{1,6}),? column (\d{1,6})|and (\d{1,6}):(\d{1,6})$")
_LONGEST_MESSAGE = 1_000
#: What the engine says about forms that older releases took → what to write instead.
_OTHER_RELEASES = {
    "unknown field 'cache'": "Older releases had `cache`: write an output `- staging:`, and `inherit: NAME` in others.",
    "'*' is incompatible with '=='": "Older releases took `==1.2.*`: write `1.2.*`.",
    "missing range specifier": "Older releases took a bare version: write `==1.2` or `1.2.*`.",
}
_PROBE = "outputs:\n- package: {name: probe, version: '0'}\n  build: {skip: []}\n"
#: Held while the environment is hidden.
_HIDING = threading.Lock()
#: Several times as many as the longest of conda-forge has; the engine takes seconds for more.
_MOST_LINES = 5_000


@dataclass(frozen=True)
class ParsedV1:
    """A `recipe.yaml` as the engine parsed it.

    For a recipe without outputs, whose `skip` the engine ignores, `probe` is a recipe with outputs and the same `skip`.
    `asks_environment`: a template may call `env.get`, which the engine answers from `environ` alone.
    """

    path: Path
    text: str
    stage0: Stage0Recipe
    probe: Stage0Recipe | None
    asks_environment: bool = False
    environ: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RenderedV1:
    """An output for one variant, as plain values.

    Attributes:
        noarch: `python` or `generic`, None for a package of one platform.
        variant: the values that the rendering used, with the engine's types.
        content: the rendered recipe of the output.
    """

    name: str
    version: str
    build: str
    build_number: int
    noarch: str | None
    variant: Mapping[str, Any]
    content: Mapping[str, Any]


def read_v1(path: Path) -> ParsedV1:
    """Read and parse a `recipe.yaml`."""
    return parse_v1(read_text(path, within=path.parent), path)


def parse_v1(text: str, path: Path) -> ParsedV1:
    """Parse the text of a recipe that belongs at `path`: the engine finds scripts and sources beside it.

    Raises:
        InputError: it exceeds a bound, or the engine refuses it; with line and column if known.
    """
    if text.count("\n") > most(_MOST_LINES):
        raise BoundError(f"has more than {_MOST_LINES} lines", path=path)
    content = parse_texts(text, path)
    check_templates(content, path, text)
    probe = _skip_probe(text, path) if _may_be_skipped_as_a_whole(content) else None
    parsed = _parsed(text, path, text)
    return ParsedV1(path, text, parsed, _parsed(probe, path, text) if probe else None, asks_environment(content))


def render(
    recipe: ParsedV1,
    values: Mapping[str, Sequence[str]],
    zip_keys: Sequence[Sequence[str]],
    target: Platform,
    builder: Platform,
) -> list[Rendering]:
    """All outputs for all variants, in the order in which the engine would build them."""
    return _rendered(recipe.stage0, recipe, _variants(values, zip_keys), _config(target, builder))


def is_built(recipe: ParsedV1, values: Mapping[str, Sequence[str]], target: Platform, builder: Platform) -> bool:
    """Whether the `skip` of a recipe without outputs allows one variant; always true for a recipe with outputs."""
    if recipe.probe is None:
        return True
    return bool(_rendered(recipe.probe, recipe, _variants(values, ()), _config(target, builder)))


def render_row(
    recipe: ParsedV1, name: str, values: Mapping[str, str], target: Platform, builder: Platform
) -> list[Rendering]:
    """The outputs of one row, in the order in which they can be built.

    Rendering one row at a time guards against the engine's fault of pinning the wrong sibling (docs/engine.md): the
    result has one output of each name, so the engine cannot mistake one for another.

    Args:
        name: the name of the row, for messages.

    Raises:
        InputError: the recipe cannot be rendered with these values, or makes two packages of one name.
    """
    inputs = {key: (value,) for key, value in values.items()}
    try:
        if not is_built(recipe, inputs, target, builder):
            return []
        rendered = render(recipe, inputs, (), target, builder)
    except InputError as error:
        mistakes = [
            replace(mistake, message=f"cannot be rendered for {name}: {mistake.message}") for mistake in error.mistakes
        ]
        raise InputError.of(mistakes) from error
    names = [output.recipe.package.name for output in rendered]
    twice = sorted({package for package in names if names.count(package) > 1})
    if twice:
        raise InputError(
            f"{name} makes more than one package called {', '.join(twice)}",
            path=recipe.path,
            hint="Only one of them could be pinned by name; a key of the recipe has more values than the row gives it.",
        )
    return rendered


def plain(rendering: Rendering) -> RenderedV1:
    """The values of a rendering, without the engine."""
    recipe = rendering.recipe
    return RenderedV1(
        name=recipe.package.name,
        version=str(recipe.package.version),
        build=str(recipe.build.string),
        build_number=recipe.build.number or 0,
        noarch=str(recipe.build.noarch) if recipe.build.noarch else None,
        variant=dict(rendering.variant),
        content=recipe.to_dict(),
    )


def typed_value(value: str) -> str | bool | int:
    """A value of a variant with the type that the engine receives it in.

    `08` without quotes is the text "08": PyYAML writes it so, since YAML 1.1 knows no number of that form.
    """
    if isinstance(value, WholeNumber) and value == str(int(value)):
        return int(value)
    return value == "true" if value in ("true", "false") else value


def text_of(value: Any) -> str:
    """A value from the engine in the form of a variant's values: the inverse of how they are passed to it."""
    if isinstance(value, bool):
        return str(value).lower()
    return WholeNumber(value) if isinstance(value, int) else str(value)


def as_reported(value: str) -> str:
    """A value of a variant as it comes back from the engine when a rendering used it."""
    return text_of(typed_value(value))


def _parsed(text: str, path: Path, shown: str) -> Stage0Recipe:
    """Parse `text`; places in messages refer to the text `shown`, the file at `path`."""
    from rattler_build import Stage0Recipe

    with temporary_folder() as folder, _engine_step(path, shown):
        parsed = Stage0Recipe.from_yaml(text, recipe_dir=folder)
    # The engine looks for scripts and sources beside the recipe, and puts this file into packages.
    parsed._recipe_path = path.resolve()
    return parsed


def _rendered(stage0: Stage0Recipe, recipe: ParsedV1, variants: VariantConfig, config: RenderConfig) -> list[Rendering]:
    hidden = _only(recipe.environ) if recipe.asks_environment else nullcontext()
    with hidden, _engine_step(recipe.path, recipe.text):
        return stage0.render(variants, config)


@contextmanager
def _engine_step(path: Path, text: str) -> Iterator[None]:
    """A bounded step of the engine: convert its errors to ours, and hide its output (it aborts without memory)."""
    try:
        with step(path), _silent() if is_held() else nullcontext():
            yield
    except (FeedstockError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the engine's errors have no common base class, and its panics are not `Exception`s
        raise _refusal(error, path, text) from error


@contextmanager
def _only(environ: Mapping[str, str]) -> Iterator[None]:
    """Hide all other variables of this process from the engine, which reads them in `env.get` and `env.exists`."""
    with _HIDING:
        kept = dict(os.environ)
        os.environ.clear()
        os.environ.update(environ)
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(kept)


@contextmanager
def _silent() -> Iterator[None]:
    """Discard the engine's own output on standard error."""
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _config(target: Platform, builder: Platform) -> RenderConfig:
    from rattler_build import PlatformConfig, RenderConfig

    platforms = PlatformConfig(
        target_platform=target.subdir, build_platform=builder.subdir, host_platform=target.subdir
    )
    return RenderConfig(platform=platforms)


def _variants(values: Mapping[str, Sequence[str]], zip_keys: Sequence[Sequence[str]]) -> VariantConfig:
    """Variants for the engine; the texts `true` and `false` become booleans, as conda-smithy passes them."""
    from rattler_build import VariantConfig

    typed = {key: [typed_value(value) for value in items] for key, items in values.items()}
    return VariantConfig(typed, [list(group) for group in zip_keys])


def _refusal(error: BaseException, path: Path, text: str) -> InputError:
    """The engine's error as one of ours, with the place in the recipe if the message names it."""
    message = " ".join(str(error).split())
    place = _PLACE.search(message)
    line, column = (int(number) for number in place.groups() if number) if place else (None, None)
    if line is not None and line > text.count("\n") + 1:
        line = column = None
    if line is None:
        named = (text.find(quoted or template) for quoted, template in _QUOTED.findall(message))
        line = next((text.count("\n", 0, start) + 1 for start in named if start >= 0), None)
    short = message if len(message) <= _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE]}…"
    return InputError(
        f"rattler-build refuses the recipe: {short}", path=path, line=line, column=column, hint=_hint(message)
    )


def _hint(message: str) -> str:
    """What to write instead of a form that other releases of rattler-build took, and which release reads recipes."""
    from importlib.metadata import version

    release = version("py-rattler-build")
    support = f"py-rattler-build {release} reads the recipe; it is the oldest and the newest release known to work."
    return " ".join((*(hint for sign, hint in _OTHER_RELEASES.items() if sign in message), support))


def _may_be_skipped_as_a_whole(content: Any) -> bool:
    build = content.get("build") if isinstance(content, Mapping) and "outputs" not in content else None
    return isinstance(build, Mapping) and "skip" in build


def _skip_probe(text: str, path: Path) -> str | None:
    """For a recipe with `skip` and without outputs: a recipe with one output that is skipped in the same cases.

    For a recipe without outputs, the engine's `render` returns every row, skipped or not; for a recipe with outputs
    only the rows that are built.
    """
    import yaml

    top = members(compose(text, path, Schema.TYPES))
    skip = members(top.get("build")).get("skip")
    if "outputs" in top or skip is None:
        return None
    probe: Any = compose(_PROBE, schema=Schema.TYPES)
    members(probe.value[0][1].value[0])["build"].value = [(yaml.ScalarNode("tag:yaml.org,2002:str", "skip"), skip)]
    if "context" in top:
        probe.value.insert(0, (yaml.ScalarNode("tag:yaml.org,2002:str", "context"), top["context"]))
    return str(yaml.serialize(probe))
