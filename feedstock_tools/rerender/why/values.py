"""Where the values of a platform's variants come from: the steps of a rerender, repeated with values that know it.

Each value is read as a string that carries its line. The steps (combining files, applying migrations) pass
the strings through, so that at the end each value knows its line; steps that create strings of their own are
followed by comparing their input with their output.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from feedstock_tools.reading import read_text
from feedstock_tools.rerender.forge import Rendering
from feedstock_tools.rerender.source import Source
from feedstock_tools.rerender.why.model import FileLine, VariantStep
from feedstock_tools.variants.files import config_of, defaults, load_conditional, trim_empty
from feedstock_tools.variants.migration import OWN_KEYS, Migration, load_migration, migrate
from feedstock_tools.variants.model import VariantConfig, WholeNumber, combine
from feedstock_tools.variants.selectors import Namespace, select_lines
from feedstock_tools.yaml_reading.nodes import parse_scalars

Values = tuple[str, ...]


class _Traced(str):
    places: tuple[FileLine, ...]

    def __new__(cls, text: str, places: Iterable[FileLine] = ()) -> _Traced:
        traced = super().__new__(cls, text)
        traced.places = tuple(dict.fromkeys(places))
        return traced


class _TracedNumber(WholeNumber):
    places: tuple[FileLine, ...]


def _traced(text: str, places: Iterable[FileLine]) -> str:
    if not isinstance(text, WholeNumber):
        return _Traced(text, places)
    traced = _TracedNumber(text)
    traced.places = tuple(dict.fromkeys(places))
    return traced


def places_of(value: str) -> tuple[FileLine, ...]:
    """The places of a traced value; none for built-in ones."""
    return value.places if isinstance(value, _Traced | _TracedNumber) else ()


@dataclass(frozen=True)
class TracedVariants:
    """The variants of a platform, with values that know their places, and the steps that set each key."""

    config: VariantConfig
    settings: Mapping[str, tuple[VariantStep, ...]]


def trace_variants(source: Source, rendering: Rendering) -> TracedVariants:
    """The same variants as `source.variants_of`, traced."""
    platform, environ, rules = rendering.platform, rendering.environ, source.rules
    behaviour = rules.conda_build
    base = defaults(platform, behaviour)
    files = [config_of(*_content(path, rendering, source)) for path in source.files]
    conditional = source.conditional
    if conditional is not None:
        typed = load_conditional(
            conditional, platform, environ=environ, rules=behaviour, within=source.within(conditional)
        )
        files.append(_trace_conditional(typed, conditional))
    history: dict[str, list[VariantStep]] = {}
    config = VariantConfig({})
    for count, layer in enumerate([base, *files]):
        before, config = config, combine([base, *files][: count + 1])
        _note(history, before, config, layer, "conda-build's defaults" if not count else "")
    steps = [_load_migration(path, rendering, source) for path in source.migrations.applied]
    if not rules.migrations_by_time:
        steps = [replace(step, timestamp=0.0) for step in steps]
    for step in sorted(steps, key=lambda step: (step.timestamp, str(step.path))):
        before, config = config, migrate(config, [step], rules.migrations)
        config = _retraced(before, step.config, config)
        _note(history, before, config, step.config, f"the migration {step.path.name}" if step.path else "a migration")
    again = [config for path, config in zip(source.files, files, strict=False) if path == source.applied_again]
    for layer in again:
        before, config = config, combine([base, config, layer])
        _note(history, before, config, layer, "")
    return TracedVariants(combine([base, config]), {key: tuple(steps) for key, steps in history.items()})


def _content(path: Path, rendering: Rendering, source: Source) -> tuple[Mapping[str, Any], Path, Mapping[str, int]]:
    """The mapping of a file for the platform, with traced strings, and the line of each key."""
    text, rules = read_text(path, within=source.within(path)), source.rules.conda_build
    subdir = rendering.platform.subdir
    selected, numbers = select_lines(text, Namespace(subdir, subdir, {}, rendering.environ, rules), rules, path)
    texts = text.splitlines()

    def place(line: int) -> FileLine:
        number = numbers[min(line, len(numbers) - 1)]
        return FileLine(path, number, texts[number - 1].strip() if number <= len(texts) else "")

    content = parse_scalars(selected, path, lambda node: _Traced(node.value, [place(node.start_mark.line)])) or {}
    lines = {key: key.places[0].line for key in content}
    trim_empty(content)
    return content, path, lines


def _load_migration(path: Path, rendering: Rendering, source: Source) -> Migration:
    migration = load_migration(
        path, rendering.platform, environ=rendering.environ, rules=source.rules.conda_build, within=source.within(path)
    )
    content, _, lines = _content(path, rendering, source)
    rest = {key: value for key, value in content.items() if key not in OWN_KEYS}
    return replace(migration, config=config_of(rest, path, lines))


def _trace_conditional(config: VariantConfig, path: Path) -> VariantConfig:
    """The values of a variants.yaml with their lines below the key, in whichever branch."""
    texts = read_text(path, within=path.parent).splitlines()
    starts = sorted(origin.line for origins in config.origins.values() for origin in origins if origin.line)
    values: dict[str, Values] = {}
    for key, old in config.values.items():
        first = next((origin.line for origin in config.origins.get(key, ()) if origin.line), 1)
        after = bisect_right(starts, first)
        end = starts[after] if after < len(starts) else len(texts) + 1
        places = {value: _mentions(value, texts, first, end, path) for value in dict.fromkeys(old)}
        values[key] = tuple(_traced(value, places[value]) for value in old)
    return replace(config, values=values)


def _mentions(value: str, texts: Sequence[str], first: int, end: int, path: Path) -> list[FileLine]:
    import re

    word = re.compile(rf"(?<![\w.]){re.escape(value)}(?![\w.])")
    places = [FileLine(path, n, texts[n - 1].strip()) for n in range(first, end) if word.search(texts[n - 1])]
    return places or [FileLine(path, first, texts[first - 1].strip())]


def _retraced(before: VariantConfig, new: VariantConfig, after: VariantConfig) -> VariantConfig:
    """The values after a migration, with the places of equal values before it and in it.

    Zipped values are compared row by row if the rows were kept whole, else value by value.
    """
    changed: dict[str, Values] = {}
    for key, values in after.values.items():
        if key not in new.values and before.values.get(key) == values:
            continue
        group = after.group_of(key)
        sides = [_by_row(side, key, group) for side in (before, new)]
        rows = list(zip(*(after.values.get(member, ()) for member in group), strict=False))
        traced = []
        for place, value in enumerate(values):
            row = rows[place] if place < len(rows) else None
            equal = [text for side in sides for text in side.get(row, ())]
            if not equal:
                equal = [text for side in (before, new) for text in side.values.get(key, ()) if text == value]
            traced.append(_traced(value, [spot for text in equal for spot in places_of(text)]))
        changed[key] = tuple(traced)
    return after.with_values(changed)


def _by_row(config: VariantConfig, key: str, group: Values) -> dict[Values | None, list[str]]:
    if not all(member in config.values for member in group):
        return {}
    by_row: dict[Values | None, list[str]] = {}
    for row in zip(*(config.values[member] for member in group), strict=False):
        by_row.setdefault(row, []).append(row[group.index(key)])
    return by_row


def _note(
    history: dict[str, list[VariantStep]], before: VariantConfig, after: VariantConfig, layer: VariantConfig, name: str
) -> None:
    for key in dict.fromkeys((*layer.values, *after.values)):
        old, new = before.values.get(key, ()), after.values.get(key, ())
        if key not in layer.values and old == new:
            continue
        origins = layer.origins.get(key, ())
        source = name or next((origin.source for origin in origins), "a variant file")
        places = tuple(dict.fromkeys(spot for value in layer.values.get(key, ()) for spot in places_of(value)))
        effect = _effect(old, new, layer.values.get(key, ()))
        history.setdefault(key, []).append(VariantStep(source, effect, new, old, places))


def _effect(old: Values, new: Values, set_values: Values) -> str:
    if not old:
        return "sets"
    if old == new:
        return "repeats" if all(value in old for value in set_values) and len(set_values) == len(old) else "is ignored"
    return "replaces" if new == set_values else "changes"
