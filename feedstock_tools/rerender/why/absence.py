"""Why there is no job for a platform or a value: what took it away, with its line.

The stations of a rerender are asked in turn: conda-forge.yml, the lines of variant files, migrations, zip groups, what
the recipe uses, what it skips. The first that lost the value answers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from feedstock_tools.bounds.limits import Bounds
from feedstock_tools.bounds.supervision import run_bounded
from feedstock_tools.platforms import KNOWN_SUBDIRS, Platform
from feedstock_tools.reading import FORGE_FILE, read_text
from feedstock_tools.rerender.forge import Rendering
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.rerender.source import Source, render_source, variants_of
from feedstock_tools.rerender.why.losses import losses_of_value, skips_of, uses_of
from feedstock_tools.rerender.why.model import Absence, FileLine, Loss, Wish, read_wish
from feedstock_tools.rerender.why.reasons import RerenderedSource, rerendered_source
from feedstock_tools.rerender.why.values import TracedVariants, places_of, trace_variants
from feedstock_tools.variants.algebra import explode
from feedstock_tools.variants.model import VariantSpace

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
            yield Absence(platform.name, (), (_not_rendered(about.source, platform),))


def _is_platform(wish: str) -> bool:
    return wish.replace("_", "-", 1) in KNOWN_SUBDIRS


def _not_rendered(source: Source, platform: Platform) -> Loss:
    """No provider builds the platform."""
    path = source.forge.folder / FORGE_FILE
    places = tuple(_forge_lines(path, re.compile(rf"\s*{platform.name}\s*:"))) if path.is_file() else ()
    building = ", ".join(dict.fromkeys(rendering.platform.name for rendering in source.forge.renderings)) or "none"
    why = f"conda-forge.yml gives {platform.name} to no provider, and there is no default for it (built: {building})"
    if places:
        why = f"conda-forge.yml gives {platform.name} to no provider that builds it (built: {building})"
    return Loss("platform", why, places)


def _forge_lines(path: Path, pattern: re.Pattern[str]) -> Iterator[FileLine]:
    for number, text in enumerate(read_text(path, within=path.parent).splitlines(), 1):
        if pattern.match(text):
            yield FileLine(path, number, text.strip())


@dataclass(frozen=True)
class _Platform:
    """One platform of a rerendered feedstock, and the wishes for it."""

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
        source, rendering = self.about.source, self.rendering
        traced = trace_variants(source, rendering)
        lost = [loss for wish in self.wishes for loss in losses_of_value(source, rendering, traced, wish)]
        if lost:
            return lost
        everything = space = explode(variants_of(source, rendering))
        for wish in self.wishes:
            narrower = _with(space, wish)
            if any(not axis.rows for axis in narrower.axes):
                return [_zipped_apart(traced, self.wishes, wish)]
            space = narrower
        skipped = skips_of(source, rendering, space, everything, is_built=is_built)
        if skipped:
            return skipped
        if not is_built and not rendering.keep_noarch:
            return [self._noarch()]
        unused = [wish for wish in self.wishes if wish.key not in used]
        if unused and is_built:
            return [self._unused(wish) for wish in unused]
        return [self._unknown()]

    def _noarch(self) -> Loss:
        path = self.about.source.forge.folder / FORGE_FILE
        places = tuple(_forge_lines(path, re.compile(r"\s*noarch_platforms\s*:"))) if path.is_file() else ()
        why = (
            "no output of this platform is left: noarch packages are built on noarch_platforms alone (default linux_64)"
        )
        return Loss("noarch", why, places)

    def _unused(self, wish: Wish) -> Loss:
        """The variants have the value, and nothing that is built reads the key."""
        source = self.about.source
        places = tuple(uses_of(source, wish.key))[:_MOST_PLACES]
        if places:
            why = f"nothing that is built on this platform takes its version from {wish.key}; these lines name it"
        else:
            why = f"the recipe does not use {wish.key}, so its values make no jobs"
        return Loss("unused", why, places)

    def _unknown(self) -> Loss:
        source = self.about.source
        places = tuple(place for wish in self.wishes for place in uses_of(source, wish.key))[:_MOST_PLACES]
        return Loss("unknown", "the variants have it, and no line was found that takes it away; these use it", places)


def _with(space: VariantSpace, wish: Wish) -> VariantSpace:
    if wish.key not in space:
        return space
    return space.where({wish.key: [value for value in space.values(wish.key) if wish.is_value(value)]})


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
