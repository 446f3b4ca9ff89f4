"""Why there is no job for a platform or a value: what took it away, with its line.

The stations of a rerender are asked in turn: conda-forge.yml, the lines of variant files, migrations, zip groups, what
the recipe skips, what it uses. Each that takes the value away answers; later ones as if those before it were mended.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path

from feedstock_tools.bounds.limits import Bounds
from feedstock_tools.bounds.supervision import run_bounded
from feedstock_tools.errors import InputError
from feedstock_tools.platforms import KNOWN_SUBDIRS, Platform
from feedstock_tools.reading import FORGE_FILE, read_text
from feedstock_tools.recipe.v1.expressions import Scope
from feedstock_tools.recipe.v1.expressions import holds as holds_v1
from feedstock_tools.recipe.written.document import Document
from feedstock_tools.recipe.written.owners import owners_of
from feedstock_tools.recipe.written.sites import context_of, sites_of
from feedstock_tools.recipe.written.variables import read_variables
from feedstock_tools.rerender.forge import Rendering, rendering_if_built
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.rerender.source import Source, render_source, variants_of
from feedstock_tools.rerender.why.model import Absence, FileLine, Loss, VariantStep, Wish, read_wish
from feedstock_tools.rerender.why.reasons import RerenderedSource, rerendered_source
from feedstock_tools.rerender.why.values import TracedVariants, places_of, trace_variants
from feedstock_tools.variants.model import Axis, Variant, VariantSpace, explode
from feedstock_tools.variants.selectors import Namespace, evaluate, holds, select_lines, split_lines
from feedstock_tools.yaml_reading.nodes import compose

_KEY = re.compile(r"^([A-Za-z_][\w]*)\s*:")
_ITEM = re.compile(r"^\s*-\s+(\S.*?)\s*$")
_CUDA_SWITCH = "CF_CUDA_ENABLED"
#: The values of `skip` that skip.
_TRUE = frozenset({"true", "yes", "on", "1"})
_PY = re.compile(r"py(?:\d\w*)?")
_WORD = re.compile(r"\w+")
#: Rows to try; a recipe of conda-forge skips by few keys.
_MOST_ROWS = 2_000
_MISSING = "missing migration"


def _losses_of_value(source: Source, rendering: Rendering, traced: TracedVariants, wish: Wish) -> Iterator[Loss]:
    """Why the variants of a platform lack a value; nothing if they have it."""
    values = traced.config.values.get(wish.key, ())
    if any(wish.is_value(value) for value in values):
        return
    replaced = list(_replaced(traced.settings.get(wish.key, ()), wish))
    yield from (
        replaced
        or list(_not_migrated(source, rendering, wish))
        or list(_deselected(source, rendering, wish))
        or [_nowhere(traced, wish)]
    )


def _replaced(settings: tuple[VariantStep, ...], wish: Wish) -> Iterator[Loss]:
    for setting in settings:
        wanted = [value for value in setting.replaced if wish.is_value(value)]
        if wanted and not any(wish.is_value(value) for value in setting.values):
            kind = "migration" if setting.source.startswith("the migration") else "file"
            now = ", ".join(dict.fromkeys(setting.values)) or "nothing"
            yield Loss(kind, f"{setting.source} replaces {', '.join(dict.fromkeys(wanted))} by {now}", setting.places)


def _deselected(source: Source, rendering: Rendering, wish: Wish) -> Iterator[Loss]:
    """Lines that have the value, and whose selector is false on the platform."""
    subdir = rendering.platform.subdir
    for path in (*source.files, *source.migrations.applied):
        kept, lines = _lines_with(source, rendering, path, wish)
        for place, selector in lines:
            if place.line not in kept:
                why = f"its selector is false on {subdir}"
                if selector and _lacks_compiler(selector, source, rendering):
                    why += ", since the recipe does not call compiler('cuda')"
                yield Loss("selector", why, (place,))
    if source.conditional is not None:
        for place, _ in _lines_with(source, rendering, source.conditional, wish)[1]:
            yield Loss("selector", f"its condition is false on {subdir}", (place,))


def _lacks_compiler(selector: str, source: Source, rendering: Rendering) -> bool:
    """Whether a selector would hold if the recipe called CUDA's compiler (conda-smithy then sets a variable)."""
    if _CUDA_SWITCH not in selector or _CUDA_SWITCH in rendering.environ:
        return False
    subdir, environ = rendering.platform.subdir, {**rendering.environ, _CUDA_SWITCH: "True"}
    return evaluate(selector, Namespace(subdir, subdir, {}, environ, source.rules.conda_build))


def _not_migrated(source: Source, rendering: Rendering, wish: Wish) -> Iterator[Loss]:
    """Migrations of the pinning that set the value on this platform, and that the feedstock does not have."""
    folder = source.pinning.migrations if source.pinning else None
    applied = {path.name for path in source.migrations.applied}
    for path in sorted(folder.glob("*.yaml")) if folder else ():
        if path.name in applied:
            continue
        kept, lines = _lines_with(source, rendering, path, wish)
        places = tuple(place for place, _ in lines if place.line in kept)
        if places:
            why = f"the feedstock does not have {path.name} in .ci_support/migrations, which sets it"
            yield Loss(_MISSING, why, places)


def _lines_with(
    source: Source, rendering: Rendering, path: Path, wish: Wish
) -> tuple[frozenset[int], list[tuple[FileLine, str | None]]]:
    """The lines that selectors leave on a platform; and the lines of the key that have the value, with selectors."""
    text, rules = read_text(path, within=source.within(path)), source.rules.conda_build
    if wish.key not in text:
        return frozenset(), []
    subdir = rendering.platform.subdir
    found, key = [], ""
    selectors = {line.number: line.selector for line in split_lines(text)}
    for number, line in enumerate(text.splitlines(), 1):
        opening = _KEY.match(line)
        if opening:
            key = opening[1]
        if key == wish.key and _names(line[opening.end() :] if opening else line, wish):
            found.append((FileLine(path, number, " ".join(line.split())), selectors.get(number)))
    kept = select_lines(text, Namespace(subdir, subdir, {}, rendering.environ, rules), rules, path)[1] if found else ()
    return frozenset(kept), found


def _nowhere(traced: TracedVariants, wish: Wish) -> Loss:
    values = traced.config.values.get(wish.key)
    if values is None:
        return Loss("file", f"no variant file sets {wish.key}")
    settings = traced.settings.get(wish.key, ())
    shown = ", ".join(dict.fromkeys(values))
    return Loss("file", f"no variant file has it: {wish.key} is {shown}", settings[-1].places if settings else ())


def _names(line: str, wish: Wish) -> bool:
    item = _ITEM.match(line)
    written = re.sub(r"\s*#.*$", "", item[1] if item else line).strip().strip("'\"")
    return bool(written) and wish.is_value(written)


@dataclass(frozen=True)
class _Skip:
    place: FileLine
    condition: str
    output: str | None


def skips_of(
    source: Source, rendering: Rendering, space: VariantSpace, everything: VariantSpace, *, is_built: bool
) -> list[Loss]:
    """The lines that skip all of the variants `space`; nothing if some variant remains.

    Args:
        everything: all variants of the platform. An output that is skipped for all of them says nothing about `space`,
            unless nothing is built.
        is_built: anything is built on the platform.
    """
    document = Document(source.recipe, source.text)
    skips = list(_skips_v1(document) if source.forge.is_v1 else _skips_v0(document))
    is_true = _evaluator(source, rendering)
    texts = [skip.condition for skip in skips] + [variable.expression for variable in read_variables(document)]
    words = {word for text in texts for word in _WORD.findall(text)}
    rows, all_rows = (
        list(islice(part.along([key for key in part.keys if _is_named(key, words)]), _MOST_ROWS))
        for part in (space, everything)
    )

    def skipped(owners: tuple[str | None, ...], among: Sequence[Variant]) -> list[list[_Skip]]:
        own = [skip for skip in skips if skip.output in owners]
        return [[skip for skip in own if is_true(skip.condition, row)] for row in among]

    whole = all(found := skipped((None,), rows))
    losses = _as_losses(found, rows, "the recipe") if whole else []
    for name in dict.fromkeys(skip.output for skip in skips if skip.output is not None):
        owners = (name,) if whole else (None, name)  # as if what skips the recipe were mended
        found = skipped(owners, rows)
        if all(found) and not (is_built and all(skipped(owners, all_rows))):
            losses += _as_losses(found, rows, name)
    return losses


def _is_named(key: str, words: Collection[str]) -> bool:
    """Whether a key, or the name that selectors have for it, is among words."""
    return key in words or (key == "python" and any(_PY.fullmatch(word) for word in words))


def _as_losses(by_row: Sequence[Sequence[_Skip]], rows: Sequence[Variant], subject: str) -> list[Loss]:
    """The lines that each skip all rows, in order; and as few others as do so together, those that skip most first."""
    whole = [skip for skip in dict.fromkeys(chain(*by_row)) if all(skip in skips for skips in by_row)]
    losses = [Loss("skip", f"{subject} is skipped", (skip.place,)) for skip in whole]
    others = [[skip for skip in skips if skip not in whole] for skips in by_row]
    left = list(range(len(rows))) if all(others) else []
    while left:
        counts = Counter(skip for row in left for skip in others[row])
        best = max(counts, key=lambda skip: counts[skip])
        losses.append(Loss("skip", f"{subject} is skipped for {counts[best]} of {len(rows)} variants", (best.place,)))
        left = [row for row in left if best not in others[row]]
    return losses


def _uses_of(source: Source, key: str) -> Iterator[FileLine]:
    """The lines of the recipe that name a key, or call the compiler that it belongs to."""
    language = re.fullmatch(r"(\w+)_(compiler|stdlib)(?:_version)?", key)
    call = rf"|\b{language[2]}\(\s*[\"']{language[1]}[\"']" if language else ""
    name = key.replace("_", "[-_]")
    pattern = re.compile(rf"(?<![\w.-]){name}(?![\w-]){call}")
    for number, line in enumerate(source.text.splitlines(), 1):
        if pattern.search(line.partition("#")[0] if line.lstrip().startswith("#") else line):
            yield FileLine(source.recipe, number, line.strip())


def _skips_v0(document: Document) -> Iterator[_Skip]:
    for owner in owners_of(document):
        for entry in owner.part.below("build", "skip"):
            if entry.value.text.lower() in _TRUE:
                condition = document.selector_of(entry) or "True"
                place = _place(document, document.line_of(entry.start))
                yield _Skip(place, condition, None if owner.kind == "recipe" else owner.name)


def _skips_v1(document: Document) -> Iterator[_Skip]:
    """The conditions of all skips; one in a branch together with the conditions of its branches."""
    for site in sites_of(compose(document.text, document.path)):
        if site.kind == "value" and site.keys in (("build", "skip"), ("outputs", "build", "skip")):
            condition = site.text
            for outer, wanted in reversed(site.conditions):
                condition = f"{'' if wanted else 'not '}({outer}) and ({condition})"
            place = _place(document, site.lines[0])
            yield _Skip(place, condition, None if site.keys[0] == "build" else site.output or "an output")


def _place(document: Document, line: int) -> FileLine:
    return FileLine(document.path, line, " ".join(document.text.splitlines()[line - 1].split()))


def _evaluator(source: Source, rendering: Rendering) -> Callable[[str, Variant], bool | None]:
    """Tells whether a condition of the recipe holds in a variant; None where that is not certain."""
    subdir = rendering.platform.subdir
    if source.forge.is_v1:
        context = context_of(compose(source.text))
        fixed = {"target_platform": subdir, "build_platform": subdir, "host_platform": subdir}
        return lambda condition, row: holds_v1(condition, Scope(rendering.platform, context, {**row, **fixed}))
    rules = source.rules.conda_build
    return lambda condition, row: holds(condition, Namespace(subdir, subdir, row, rendering.environ, rules))


_MOST_PLACES = 6


def why_not(
    feedstock: Path,
    wishes: Collection[str],
    *,
    pinning: Path | None = None,
    rules: Rules | None = None,
    bounds: Bounds | None = None,
) -> tuple[Absence, ...]:
    """Explain for each platform why a rerender makes no job that meets all wishes, or name the jobs that have.

    Args:
        wishes: `cuda12.9`, `cuda12`, `cuda`, `cpu`, `py3.13`, `KEY=VALUE`, or a platform such as `osx-64`; without a
            platform, all that conda-forge.yml renders are explained.
        pinning, rules: as for `rerender`.
        bounds: what the work may take, in a child process; None to do it in this process.

    Raises:
        InputError: a wish cannot be read, or the feedstock cannot be rerendered.

    >>> found = why_not(Path("solver-feedstock"), ["cuda12.9", "osx-64"], pinning=Path("pinning"))
    >>> [(one.platform, one.losses[0].kind, one.losses[0].places[0].line) for one in found]
    [('osx_64', 'selector', 9)]
    """
    if bounds is not None:
        return run_bounded(partial(why_not, feedstock, wishes, pinning=pinning, rules=rules), bounds)
    return tuple(absences(rerendered_source(feedstock, pinning=pinning, rules=rules), wishes))


def absences(about: RerenderedSource, wishes: Collection[str]) -> Iterator[Absence]:
    """As `why_not`, for a feedstock that was rerendered already."""
    platforms = [Platform.parse(wish) for wish in wishes if _is_platform(wish)]
    wanted = [read_wish(wish) for wish in wishes if not _is_platform(wish)]
    renderings = {rendering.platform: rendering for rendering in about.source.forge.renderings}
    for platform in platforms or renderings:
        if platform in renderings:
            yield _Platform(about, renderings[platform], wanted).absence()
        else:
            rendering = rendering_if_built(about.source.forge, platform, about.source.rules)
            further = _Platform(about, rendering, wanted).further_losses()
            yield Absence(platform.name, (), (_not_rendered(about.source, platform), *further))


def _is_platform(wish: str) -> bool:
    return wish.replace("_", "-", 1) in KNOWN_SUBDIRS


def _not_rendered(source: Source, platform: Platform) -> Loss:
    """No provider builds the platform."""
    places = _forge_lines(source, platform.name)
    building = ", ".join(dict.fromkeys(rendering.platform.name for rendering in source.forge.renderings)) or "none"
    why = f"conda-forge.yml gives {platform.name} to no provider, and there is no default for it (built: {building})"
    if places:
        why = f"conda-forge.yml gives {platform.name} to no provider that builds it (built: {building})"
    return Loss("platform", why, places)


def _forge_lines(source: Source, key: str) -> tuple[FileLine, ...]:
    """The lines of conda-forge.yml that begin with a key."""
    path = source.forge.folder / FORGE_FILE
    lines = read_text(path, within=path.parent).splitlines() if path.is_file() else ()
    return tuple(
        FileLine(path, number, text.strip()) for number, text in enumerate(lines, 1) if re.match(rf"\s*{key}\s*:", text)
    )


@dataclass(frozen=True)
class _Platform:
    about: RerenderedSource
    rendering: Rendering
    wishes: Sequence[Wish]

    def absence(self) -> Absence:
        """The jobs that meet all wishes, or what was lost where."""
        name = self.rendering.platform.name
        configurations = [
            configuration
            for configuration in self.about.configurations.values()
            if configuration.platform == self.rendering.platform
        ]
        jobs = tuple(
            configuration.name
            for configuration in configurations
            if all(wish.is_met(configuration.values.get(wish.key, ())) for wish in self.wishes)
        )
        if jobs and self._is_built():
            return Absence(name, jobs, ())
        used = frozenset(key for configuration in configurations for key in configuration.values)
        return Absence(name, (), tuple(self._losses(used, bool(configurations))))

    def further_losses(self) -> tuple[Loss, ...]:
        """What else would be lost if a provider built the platform."""
        outputs = render_source(
            self.about.source, variants_of(self.about.source, self.rendering), self.rendering
        ).outputs
        built = [output for output in outputs if not output.skip and (self.rendering.keep_noarch or not output.noarch)]
        used = frozenset(key for output in built for key in output.used.own)
        return tuple(loss for loss in self._losses(used, bool(built)) if loss.kind != "unknown")

    def _is_built(self) -> bool:
        """Whether outputs are built with each value; a file lists a value that only skipped outputs would use, too."""
        config = variants_of(self.about.source, self.rendering)
        outputs = render_source(self.about.source, config, self.rendering).outputs
        for wish in self.wishes:
            values = [output.variant[wish.key] for output in outputs if wish.key in output.used.own and not output.skip]
            if values and not wish.is_met(values):
                return False
        return True

    def _losses(self, used: Collection[str], is_built: bool) -> list[Loss]:
        """All that stands in the way, in the order in which it bites."""
        source, lost = self._with_migrations()
        traced = trace_variants(source, self.rendering)
        everything = space = explode(variants_of(source, self.rendering))
        for wish in self.wishes:
            narrower = _with(space, wish)
            if all(axis.rows for axis in narrower.axes):
                space = narrower
                continue
            if any(wish.is_value(value) for value in traced.config.values[wish.key]):
                lost.append(_zipped_apart(traced, self.wishes, wish))
            space = _as_if(space, wish)
        skipped = skips_of(source, self.rendering, space, everything, is_built=is_built)
        lost += skipped
        if not skipped and not is_built and not self.rendering.keep_noarch:
            lost.append(self._noarch())
        if not skipped and is_built:
            lost += [self._unused(wish) for wish in self.wishes if wish.key not in used]
        return lost or [self._unknown()]

    def _with_migrations(self) -> tuple[Source, list[Loss]]:
        """The inputs with the missing migrations that set the values, and what else takes these away."""
        source = passed = self.about.source
        lost: list[Loss] = []
        while True:
            try:
                traced = trace_variants(source, self.rendering)
            except InputError:
                if source is passed:
                    raise
                return passed, lost  # a missing migration cannot be applied
            found = [loss for wish in self.wishes for loss in _losses_of_value(source, self.rendering, traced, wish)]
            lost += [loss for loss in found if loss not in lost]
            missing = [loss.places[0].path for loss in found if loss.kind == _MISSING]
            if not missing:
                return source, lost
            passed, migrations = source, source.migrations
            applied = (*migrations.applied, *dict.fromkeys(missing))
            source = replace(source, migrations=replace(migrations, applied=applied))

    def _noarch(self) -> Loss:
        why = (
            "no output of this platform is left: noarch packages are built on noarch_platforms alone (default linux_64)"
        )
        return Loss("noarch", why, _forge_lines(self.about.source, "noarch_platforms"))

    def _unused(self, wish: Wish) -> Loss:
        """The variants have the value, and nothing that is built reads the key."""
        source = self.about.source
        places = tuple(_uses_of(source, wish.key))[:_MOST_PLACES]
        if places:
            why = f"nothing that is built on this platform takes its version from {wish.key}; these lines name it"
        else:
            why = f"the recipe does not use {wish.key}, so its values make no jobs"
        return Loss("unused", why, places)

    def _unknown(self) -> Loss:
        source = self.about.source
        places = tuple(place for wish in self.wishes for place in _uses_of(source, wish.key))[:_MOST_PLACES]
        return Loss("unknown", "the variants have it, and no line was found that takes it away; these use it", places)


def _with(space: VariantSpace, wish: Wish) -> VariantSpace:
    if wish.key not in space:
        return space
    return space.where({wish.key: [value for value in space.values(wish.key) if wish.is_value(value)]})


def _as_if(space: VariantSpace, wish: Wish) -> VariantSpace:
    """The variants if each had the value; as they are where the wish names no value."""
    value, axis = wish.value, space.axis(wish.key)
    if value is None:
        return space
    at = axis.keys.index(wish.key)
    rows = ((*row[:at], value, *row[at + 1 :]) for row in axis.rows)
    return space.with_axes({space.axes.index(axis): Axis(axis.keys, tuple(dict.fromkeys(rows)))})


def _zipped_apart(traced: TracedVariants, wishes: Sequence[Wish], wish: Wish) -> Loss:
    """Each value exists, but no row of a zip group has them together."""
    group = traced.config.group_of(wish.key)
    together = [member.key for member in wishes if member.key in group]
    rows = list(zip(*(traced.config.values[key] for key in together), strict=False))
    combinations = "; ".join(dict.fromkeys(", ".join(str(value) for value in row) for row in rows))
    places = tuple(
        dict.fromkeys(
            place for value in traced.config.values[wish.key] if wish.is_value(value) for place in places_of(value)
        )
    )
    return Loss("zip", f"{', '.join(together)} are zipped, and have these values together: {combinations}", places)
