"""Where the variants of a platform lost a value: lines that selectors remove, files and migrations that replace it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from feedstock_tools.reading import read_text
from feedstock_tools.rerender.forge import Rendering
from feedstock_tools.rerender.source import Source
from feedstock_tools.rerender.why.model import Loss, Place, Setting
from feedstock_tools.rerender.why.values import TracedVariants
from feedstock_tools.rerender.why.wishes import Wish
from feedstock_tools.variants.namespace import Namespace
from feedstock_tools.variants.selectors import evaluate, select_lines, split_lines

_KEY = re.compile(r"^([A-Za-z_][\w]*)\s*:")
_ITEM = re.compile(r"^\s*-\s+(\S.*?)\s*$")
_CUDA_SWITCH = "CF_CUDA_ENABLED"


def losses_of_value(source: Source, rendering: Rendering, traced: TracedVariants, wish: Wish) -> Iterator[Loss]:
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


def _replaced(settings: tuple[Setting, ...], wish: Wish) -> Iterator[Loss]:
    """Steps after which the value is gone."""
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
            yield Loss("missing migration", why, places)


def _lines_with(
    source: Source, rendering: Rendering, path: Path, wish: Wish
) -> tuple[frozenset[int], list[tuple[Place, str | None]]]:
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
            found.append((Place(path, number, " ".join(line.split())), selectors.get(number)))
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
