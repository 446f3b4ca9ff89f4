"""Why the files in `.ci_support` look as they do: where each value comes from, and what uses each key.

None of this slows down a rerender: on request the steps are repeated with values that know the
lines they come from, and the renderer's own patterns find the lines that use a key.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from feedstock_tools.bounds.limits import Bounds
from feedstock_tools.bounds.supervision import run_bounded
from feedstock_tools.errors import InputError
from feedstock_tools.platforms import Platform
from feedstock_tools.reading import FORGE_FILE, read_text
from feedstock_tools.recipe.model import RenderedOutput
from feedstock_tools.rerender.configuration import Configuration
from feedstock_tools.rerender.forge import Rendering
from feedstock_tools.rerender.rerendering import PYTHON_MIN, rerender
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.rerender.source import Source, kept_labels, read_source, render_source, variants_of
from feedstock_tools.rerender.why.model import Explanation, FileLine, Use, ValueOrigin, VariantStep
from feedstock_tools.rerender.why.uses import TextUses, YamlUses
from feedstock_tools.rerender.why.values import TracedVariants, places_of, trace_variants

_STDLIB, _TARGET, _SDK = "c_stdlib_version", "MACOSX_DEPLOYMENT_TARGET", "MACOSX_SDK_VERSION"
_ZIPS, _PINS = "zip_keys", "pin_run_as_build"


@dataclass(frozen=True, slots=True)
class RerenderedSource:
    """What a rerender reads, and the configurations that it gives by name: what can be asked about."""

    source: Source
    configurations: Mapping[str, Configuration]

    @property
    def keys(self) -> frozenset[str]:
        """The keys that any configuration has."""
        return frozenset(key for configuration in self.configurations.values() for key in _keys(configuration))


def rerendered_source(feedstock: Path, *, pinning: Path | None = None, rules: Rules | None = None) -> RerenderedSource:
    """Rerender a feedstock to ask about it; `pinning` and `rules` as of `rerender`."""
    chosen = rules or Rules.newest()
    source = read_source(feedstock, pinning, chosen)
    configurations = rerender(feedstock, pinning=pinning, rules=chosen).configurations
    return RerenderedSource(source, {configuration.name: configuration for configuration in configurations})


def explain(
    feedstock: Path,
    name: str,
    *,
    pinning: Path | None = None,
    rules: Rules | None = None,
    configurations: Collection[str] = (),
    bounds: Bounds | None = None,
) -> tuple[Explanation, ...]:
    """Explain a key in every configuration that has it, or all keys of a configuration.

    Args:
        name: a key, or the name of a configuration (with or without `.yaml`).
        pinning, rules: as for `rerender`; the explanation is for a rerender with them.
        configurations: with a key, explain it only in these configurations.
        bounds: what the work may take, in a child process; None to do it in this process.

    Raises:
        InputError: the feedstock cannot be rerendered, or there is neither such a key nor such a configuration.

    >>> answer = explain(Path("solver-feedstock"), "cuda_compiler_version", pinning=Path("pinning"))[0]
    >>> [(value.value, value.places[0].line) for value in answer.values]
    [('12.9', 9)]
    """
    if bounds is not None:
        work = partial(explain, feedstock, name, pinning=pinning, rules=rules, configurations=configurations)
        return run_bounded(work, bounds)
    about = rerendered_source(feedstock, pinning=pinning, rules=rules)
    by_name = about.configurations
    for wanted in configurations:
        if wanted.removesuffix(".yaml") not in by_name:
            raise InputError(f"there is no configuration '{wanted}'", hint=_nearest(wanted, by_name))
    if name in about.keys:
        return explain_key(about, name, [name.removesuffix(".yaml") for name in configurations])
    if name.removesuffix(".yaml") in by_name:
        return explain_configurations(about, [name.removesuffix(".yaml")])
    raise unknown(about, name)


def explain_key(about: RerenderedSource, key: str, configurations: Collection[str] = ()) -> tuple[Explanation, ...]:
    """Explain a key in the configurations of these names, or in every one that has it."""
    by_name = about.configurations
    names = list(configurations) or list(by_name)
    questions = [(by_name[name], key) for name in names if key in _keys(by_name[name])]
    if not questions:
        raise InputError(f"the key '{key}' is not in {', '.join(names)}")
    return tuple(_answers(about.source, questions))


def explain_configurations(about: RerenderedSource, names: Collection[str]) -> tuple[Explanation, ...]:
    """Explain all keys of the configurations of these names."""
    chosen = [about.configurations[name] for name in names]
    return tuple(
        _answers(about.source, [(configuration, key) for configuration in chosen for key in _keys(configuration)])
    )


def _keys(configuration: Configuration) -> list[str]:
    extra = [_ZIPS] if configuration.zip_keys else []
    if configuration.pin_run_as_build:
        extra.append(_PINS)
    return sorted((*configuration.values, *extra))


def _nearest(name: str, candidates: Collection[str]) -> str | None:
    near = difflib.get_close_matches(name, sorted(candidates), n=3, cutoff=0.5)
    return f"The nearest are: {', '.join(near)}." if near else None


def unknown(about: RerenderedSource, name: str) -> InputError:
    """The error for a key that the variants have and no file, as nothing uses it, and for a name that nothing has."""
    source, candidates = about.source, {*about.keys, *about.configurations}
    for rendering in source.forge.renderings:
        setting = trace_variants(source, rendering).settings.get(name)
        if setting:
            last = setting[-1]
            place = next(iter(last.places), None)
            return InputError(
                f"'{name}' is {', '.join(last.values)} in the variants, and no configuration has it: nothing uses it",
                path=place.path if place else None,
                line=place.line if place else None,
            )
    return InputError(f"'{name}' is neither a key nor a configuration", hint=_nearest(name, candidates))


def _answers(source: Source, questions: Sequence[tuple[Configuration, str]]) -> Iterator[Explanation]:
    platforms = {configuration.platform: None for configuration, _ in questions}
    explainers = {platform: _explainer(source, platform) for platform in platforms}
    for configuration, key in questions:
        yield explainers[configuration.platform].explain(configuration, key)


def _explainer(source: Source, platform: Platform) -> _Explainer:
    """Render a platform again, watched; with several providers for the last one, whose files stay."""
    renderings = [rendering for rendering in source.forge.renderings if rendering.platform == platform]
    rendering = renderings[-1]
    watch = TextUses(source.recipe, source.rules.conda_build, platform.os == "win")
    rendered = render_source(source, variants_of(source, rendering), rendering, watch)
    kept = frozenset(label for rendering in renderings for label in kept_labels(rendering, source))
    return _Explainer(
        source,
        rendering,
        trace_variants(source, rendering),
        tuple(output for output in rendered.outputs if rendering.keep_noarch or not output.noarch),
        watch,
        YamlUses(source.recipe, source.text, platform.subdir, source.rules.counts_untaken_branches),
        kept,
    )


@dataclass(frozen=True)
class _Explainer:
    source: Source
    rendering: Rendering
    traced: TracedVariants
    outputs: tuple[RenderedOutput, ...]
    text_uses: TextUses
    yaml_uses: YamlUses
    labels: frozenset[str]

    def explain(self, configuration: Configuration, key: str) -> Explanation:
        if key == _ZIPS:
            return self._zip_keys(configuration)
        if key == _PINS:
            return self._pins(configuration)
        zipped = next((group for group in configuration.zip_keys if key in group), ())
        values = enumerate(configuration.values[key])
        origins = (self._origin(configuration, key, value, place) for place, value in values)
        return Explanation(
            configuration.name,
            key,
            tuple(dict.fromkeys(origins)),
            self.traced.settings.get(key, ()),
            tuple(self.uses(key)),
            self._is_common(key, loops=True),
            tuple(member for member in zipped if member != key),
        )

    # --- values

    def _origin(self, configuration: Configuration, key: str, value: str, place: int) -> ValueOrigin:
        rules, platform = self.source.rules, self.rendering.platform
        if key in (_STDLIB, _TARGET, _SDK) and platform.os == "osx" and rules.merges_deployment_target:
            return self._macos_version(key, value)
        column = self.traced.config.values.get(key, ())
        if key == "target_platform":
            return ValueOrigin(value, self._forge_lines("build_platform", "provider"), "the platform that is rendered")
        if key == "docker_image" and value not in column:
            return ValueOrigin(value, self._forge_lines("docker"), "the fallback image, since the variants name none")
        spots = self._row_places(configuration, key, place)
        if not spots:
            spots = [spot for text in column if text == value for spot in places_of(text)]
        return ValueOrigin(value, tuple(dict.fromkeys(spots)), "" if spots else "conda-build's defaults")

    def _row_places(self, configuration: Configuration, key: str, place: int) -> list[FileLine]:
        """The places of the value in the rows of its zip group that agree with the configuration's row."""
        values = self.traced.config.values
        group = [member for member in self.traced.config.group_of(key) if member in configuration.values]
        if not all(place < len(configuration.values[member]) for member in group):
            return []
        wanted = tuple(configuration.values[member][place] for member in group)
        rows = zip(*(values.get(member, ()) for member in group), strict=False)
        at = group.index(key) if key in group else 0
        return [spot for row in rows if row == wanted for spot in places_of(row[at])]

    def _macos_version(self, key: str, value: str) -> ValueOrigin:
        """The deployment target and the C library's version are the higher of both; the SDK is at least that."""
        columns = (_STDLIB, _TARGET) if key in (_STDLIB, _TARGET) else (_SDK, _STDLIB, _TARGET)
        spots_of = {
            column: [
                spot for text in self.traced.config.values.get(column, ()) if text == value for spot in places_of(text)
            ]
            for column in columns
        }
        places = tuple(dict.fromkeys(spot for spots in spots_of.values() for spot in spots))
        others = [column for column in columns if column != key and spots_of[column]]
        rule = f"on macOS it is at least as high as {' and '.join(others)}" if others and not spots_of.get(key) else ""
        return ValueOrigin(value, places, rule)

    def _forge_lines(self, *sections: str) -> tuple[FileLine, ...]:
        """The lines of conda-forge.yml about the platform (for docker: about its fallback image)."""
        path = self.source.recipe.parent.parent / FORGE_FILE
        if len(Path(self.source.forge.recipe_dir).parts) != 1 or not path.is_file():
            return ()
        section, places = "", []
        wanted = "fallback_image" if sections == ("docker",) else self.rendering.platform.name
        for number, text in enumerate(read_text(path, within=path.parent).splitlines(), 1):
            opening = re.match(r"(\w+)\s*:", text)
            section = opening.group(1) if opening else section
            if section in sections and re.search(rf"(?<!\w){wanted}\s*:", text):
                places.append(FileLine(path, number, text.strip()))
        return tuple(places)

    # --- uses

    def uses(self, key: str) -> Iterator[Use]:
        """Everything that puts a key into the files."""
        rules = self.source.rules
        all_noarch = all(output.noarch for output in self.outputs)
        if key == "target_platform" and rules.keeps_target_platform and not all_noarch:
            yield from self._platform_uses()
            return
        yield from self._written_uses(key)
        used = frozenset().union(*(output.used.own for output in self.outputs))
        if key in rules.used_with_mpi and "mpi" in used:
            for use in self._written_uses("mpi"):
                yield replace(use, kind="mpi", why="it is kept wherever mpi is used")
        if key == "python_min" and rules.finds_python_min:
            for number, text in enumerate(self.source.text.splitlines(), 1):
                if PYTHON_MIN.match(text):
                    place = FileLine(self.source.recipe, number, text.strip())
                    yield Use("template", "conda-smithy keeps it for recipes with {{ python_min }}", place)
        if key in rules.always_kept | self.labels:
            yield from self._kept(key)
        if key in (_TARGET, _SDK) and key not in self.traced.config.values:
            yield Use("macOS", f"it is added beside {_STDLIB}")

    def _platform_uses(self) -> Iterator[Use]:
        """Every file states its platform; the lines that enable the platform are those to change."""
        why = "every file states its platform, unless all outputs are noarch"
        places = self._forge_lines("build_platform", "provider")
        yield from [Use("platform", why, place) for place in places] or [Use("platform", why)]

    def _written_uses(self, key: str) -> Iterator[Use]:
        if self.source.recipe.name == "recipe.yaml":
            yield from self.yaml_uses.of(key, self.outputs)
        else:
            yield from self.text_uses.of(key, self.outputs, at_top=self._is_common(key))

    def _kept(self, key: str) -> Iterator[Use]:
        """A key that is always kept is there because something sets it."""
        spots = dict.fromkeys(spot for text in self.traced.config.values.get(key, ()) for spot in places_of(text))
        why = "conda-smithy keeps it in every file if the variants have it"
        if key == "docker_image" and not spots:
            yield Use("always kept", "every job on Linux has an image")
        for spot in spots:
            yield Use("always kept", why, spot)

    def _is_common(self, key: str, *, loops: bool = False) -> bool:
        """Whether the top level of the recipe passes the key to all outputs (before 3.47.2: to one)."""
        passed = [key in (output.used.top_level_loop if loops else output.used.top_level) for output in self.outputs]
        return bool(passed) and (all(passed) if self.source.rules.splits_by_common_keys else any(passed))

    # --- zip_keys and pin_run_as_build

    def _zip_keys(self, configuration: Configuration) -> Explanation:
        groups = [", ".join(group) for group in configuration.zip_keys]
        uses = [Use("zip", f"{group} go together in the variants, and all are in the file") for group in groups]
        return self._section(configuration, _ZIPS, groups, uses)

    def _pins(self, configuration: Configuration) -> Explanation:
        pins = configuration.pin_run_as_build.items()
        values = [f"{name}: {', '.join(f'{key}: {text}' for key, text in pin.items())}" for name, pin in pins]
        uses = [Use("pin", f"{name.replace('-', '_')} is in the file") for name, _ in pins]
        return self._section(configuration, _PINS, values, uses)

    def _section(
        self, configuration: Configuration, key: str, values: Sequence[str], uses: Sequence[Use]
    ) -> Explanation:
        """A section of a configuration, with the lines of variant files that have such a section."""
        steps = []
        for origin in self.traced.config.origins.get(key, ()):
            places = (FileLine(origin.path, origin.line, f"{key}:"),) if origin.path and origin.line else ()
            steps.append(VariantStep(origin.source, "sets", (), (), places))
        spots = tuple(spot for step in steps for spot in step.places)
        origins = tuple(ValueOrigin(value, spots) for value in values)
        return Explanation(configuration.name, key, origins, tuple(steps), tuple(uses))
