"""Which lines of a recipe skip the variants that a job would need, and which lines use a key at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from feedstock_tools.recipe.v1.expressions import Scope
from feedstock_tools.recipe.v1.expressions import holds as holds_v1
from feedstock_tools.recipe.v1.shapes import read_sites
from feedstock_tools.rerender.forge import Rendering
from feedstock_tools.rerender.source import Source
from feedstock_tools.rerender.why.model import Loss, Place
from feedstock_tools.variants.model import Variant, VariantSpace
from feedstock_tools.variants.namespace import Namespace
from feedstock_tools.variants.selectors import holds, split_lines
from feedstock_tools.yaml_reading.nodes import Node, compose, items, members

_SKIP = re.compile(r"^\s*skip:\s*(?i:true|yes|on|1)\s*$")
_OUTPUT = re.compile(r"^\s+-\s+name:\s*(\S+)")
_PY = re.compile(r"py(?:\d\w*)?")
_WORD = re.compile(r"\w+")
#: Rows to try; a recipe of conda-forge skips by few keys.
_MOST_ROWS = 2_000

Holds = Callable[[str, Variant], bool | None]


@dataclass(frozen=True)
class _Skip:
    """A line that skips the recipe, or one output, where a condition holds."""

    place: Place
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
    skips = list(_skips_v1(source) if source.forge.is_v1 else _skips_v0(source))
    is_true = _holds_v1(source, rendering) if source.forge.is_v1 else _holds_v0(source, rendering)
    words = {word for skip in skips for word in _WORD.findall(skip.condition)} | set(_words_of_context(source))
    rows, all_rows = (
        list(islice(part.project([key for key in part.keys if _is_named(key, words)]), _MOST_ROWS))
        for part in (space, everything)
    )

    def skipped(output: str | None, among: Sequence[Variant]) -> list[list[_Skip]]:
        own = [skip for skip in skips if skip.output in (None, output)]
        return [[skip for skip in own if is_true(skip.condition, row)] for row in among]

    if all(found := skipped(None, rows)):
        return _as_losses(found, rows, "the recipe")
    losses: list[Loss] = []
    for name in dict.fromkeys(skip.output for skip in skips if skip.output is not None):
        found = skipped(name, rows)
        if all(found) and not (is_built and all(skipped(name, all_rows))):
            losses += _as_losses(found, rows, name)
    return losses


def _is_named(key: str, words: Collection[str]) -> bool:
    """Whether a key, or the name that selectors have for it, is among words."""
    return key in words or (key == "python" and any(_PY.fullmatch(word) for word in words))


def _as_losses(by_row: Sequence[Sequence[_Skip]], rows: Sequence[Variant], subject: str) -> list[Loss]:
    """As few lines as skip all rows, those that skip most first."""
    left = list(range(len(rows)))
    losses = []
    while left:
        counts: dict[_Skip, int] = {}
        for row in left:
            for skip in by_row[row]:
                counts[skip] = counts.get(skip, 0) + 1
        best = max(counts, key=lambda skip: counts[skip])
        of = "" if counts[best] == len(rows) else f" for {counts[best]} of {len(rows)} variants"
        losses.append(Loss("skip", f"{subject} is skipped{of}", (best.place,)))
        left = [row for row in left if best not in by_row[row]]
    return losses


def uses_of(source: Source, key: str) -> Iterator[Place]:
    """The lines of the recipe that name a key, or call the compiler that it belongs to."""
    language = re.fullmatch(r"(\w+)_(compiler|stdlib)(?:_version)?", key)
    call = rf"|\b{language[2]}\(\s*[\"']{language[1]}[\"']" if language else ""
    name = key.replace("_", "[-_]")
    pattern = re.compile(rf"(?<![\w.-]){name}(?![\w-]){call}")
    for number, line in enumerate(source.text.splitlines(), 1):
        if pattern.search(line.partition("#")[0] if line.lstrip().startswith("#") else line):
            yield Place(source.recipe, number, line.strip())


def _skips_v0(source: Source) -> Iterator[_Skip]:
    lines = source.text.splitlines()
    output: str | None = None
    inside = False
    for line in split_lines(source.text):
        if line.text.startswith("outputs:"):
            inside = True
        elif re.match(r"[A-Za-z]", line.text):
            inside, output = False, None
        named = _OUTPUT.match(line.text)
        if inside and named:
            output = named[1]
        if _SKIP.match(line.text):
            place = Place(source.recipe, line.number, " ".join(lines[line.number - 1].split()))
            yield _Skip(place, line.selector or "True", output)


def _holds_v0(source: Source, rendering: Rendering) -> Holds:
    subdir = rendering.platform.subdir

    return lambda condition, row: holds(
        condition, Namespace(subdir, subdir, row, rendering.environ, source.rules.conda_build)
    )


def _skips_v1(source: Source) -> Iterator[_Skip]:
    content = members(compose(source.text, source.recipe))
    yield from _in_build(source, content.get("build"), None)
    for output in items(content.get("outputs")):
        inside = members(output)
        name = members(inside.get("package")).get("name")
        yield from _in_build(source, inside.get("build"), str(name.value) if name is not None else "an output")


def _in_build(source: Source, build: Node | None, output: str | None) -> Iterator[_Skip]:
    skip = members(build).get("skip")
    lines = source.text.splitlines()
    for node, condition in _conditions(skip):
        number = node.start_mark.line + 1
        yield _Skip(Place(source.recipe, number, lines[number - 1].strip()), condition, output)


def _conditions(node: Node | None) -> Iterator[tuple[Node, str]]:
    """The conditions of a skip; one in a branch together with the condition of its branch."""
    if node is None:
        return
    if node.id == "scalar":
        yield node, str(node.value)
    for item in items(node):
        yield from _conditions(item)
    branch = members(node)
    if "if" in branch:
        outer = str(branch["if"].value)
        for inner, condition in _conditions(branch.get("then")):
            yield inner, f"({outer}) and ({condition})"
        for inner, condition in _conditions(branch.get("else")):
            yield inner, f"not ({outer}) and ({condition})"


def _holds_v1(source: Source, rendering: Rendering) -> Holds:
    context = read_sites(source.text).context
    subdir = rendering.platform.subdir
    fixed: Mapping[str, str] = {"target_platform": subdir, "build_platform": subdir, "host_platform": subdir}

    return lambda condition, row: holds_v1(condition, Scope(rendering.platform, context, {**row, **fixed}))


def _words_of_context(source: Source) -> Collection[str]:
    """The words that set variables of the recipe: `{% set %}` lines, or the context."""
    if source.forge.is_v1:
        context = read_sites(source.text).context
        return {word for value in context.values() if value for word in _WORD.findall(value.text)}
    return {word for line in re.findall(r"\{%-?\s*set(.*?)%\}", source.text) for word in _WORD.findall(line)}
