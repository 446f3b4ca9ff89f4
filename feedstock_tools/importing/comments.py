"""The free comments of a recipe, with the place of each: what it stands above, or below at the end of a list."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from feedstock_tools.errors import InputError
from feedstock_tools.generate.spec.content import text_mistake
from feedstock_tools.importing.trees import OPEN
from feedstock_tools.importing.written import condition_of
from feedstock_tools.recipe.requirements import SECTIONS
from feedstock_tools.recipe.written.document import Document, Entry, Part

_WORD = re.compile(r"[\w./-]+")
#: A call, whose first argument tells it from others.
_CALL = re.compile(rf"^(?:\$?\{{\{{\s*|{OPEN})(compiler|stdlib|cdt|pin_subpackage|pin_compatible|pin \w+)\b")
_VARIABLE = re.compile(r"\$?\{\{\s*(\w+)\s*\}\}")
#: Keys of either format → the spec's.
_SECTIONS = {
    **{of_v1: section for section, of_v1 in SECTIONS.items()},
    **{"run_exports": "weak", "weak_constraints": "weak_constrains", "strong_constraints": "strong_constrains"},
    **{"ignore_run_exports": "packages", "by_name": "packages"},
    **{"ignore_run_exports_from": "exporters", "from_package": "exporters"},
}
_OF_TESTS = {"script": "commands", "run": "requires", "recipe": "files", "source": "source_files"}


@dataclass(frozen=True, slots=True)
class _Place:
    """The output (none: the recipe), the key of the recipe, and the list or value that has a comment; for an item its
    words, and whether no other item of the list begins with the same one."""

    output: str = ""
    root: str = ""
    section: str = ""
    words: tuple[str, ...] = ()
    is_only: bool = True


@dataclass
class _Places:
    """The place of each line on which something begins, and the lines of texts, which have no comments."""

    recipe: Document
    by_line: dict[int, _Place] = field(default_factory=dict)
    texts: set[int] = field(default_factory=set)

    def add(self, part: Part, place: _Place, path: tuple[str, ...] = ()) -> None:
        """Add what is in a part."""
        if part.is_block_text:
            last = self.recipe.line_of(max(part.start, part.end - 1))
            self.texts.update(range(self.recipe.line_of(part.start) + 1, last + 1))
        words = [_words_of(item, path) for item in part.items]
        counts = Counter(each[:1] for each in words)
        for item, item_words in zip(part.items, words, strict=True):
            output = _output(item) if path == ("outputs",) else None
            inner = replace(place, words=item_words, is_only=counts[item_words[:1]] == 1)
            inner = inner if output is None else _Place(output, "outputs")
            self._set(item, inner)
            self.add(item, replace(inner, words=(), is_only=True), path if output is None else ("",))
        for entry in part.entries:
            if entry.key in ("if", "then", "else") and path:
                self.add(entry.value, place, path)
                continue
            below = (*path, entry.key)
            words_of_skip = _condition_words(self.recipe.selector_of(entry)) if entry.key == "skip" else ()
            own = replace(place, root=below[0] if not place.output else "outputs", section=_section(below))
            self._set(entry, replace(own, words=words_of_skip))
            self.add(entry.value, own, below)

    def _set(self, part: Part | Entry, place: _Place) -> None:
        self.by_line.setdefault(self.recipe.line_of(part.start), place)


def _section(path: tuple[str, ...]) -> str:
    if path[-1] in ("package", "name"):
        return ""
    if set(path) & {"test", "tests"}:
        return f"test {_OF_TESTS.get(path[-1], path[-1])}"
    return _SECTIONS.get(path[-1], path[-1])


def _output(item: Part) -> str | None:
    """The name of an output; the build that runs once belongs to the recipe."""
    members = item.members
    named = members["package"].members.get("name") if "package" in members else members.get("name")
    return None if named is None else named.text


def _words_of(item: Part, path: tuple[str, ...]) -> tuple[str, ...]:
    leaf = next(item.leaves, None)
    if leaf is None:
        return ()
    return _condition_words(leaf.text) if path[-1:] == ("skip",) else _words(leaf.text)


def _condition_words(text: str) -> tuple[str, ...]:
    return (str(condition_of(text)),) if text else ()


def _words(text: str) -> tuple[str, ...]:
    """The words of an item; a call counts as one with its first argument."""
    call = _CALL.match(text)
    words = _WORD.findall(text[call.end() :] if call else text)
    return (f"{call[1].replace(' ', '_')} {words[0]}",) if call and words else tuple(words)


class Comments:
    """The free comments of a recipe, each taken once: for an entry of the spec, for a list, or as what remains."""

    def __init__(self, recipe: Document) -> None:
        self._left = list(_found(recipe))

    @property
    def left(self) -> int:
        """The number of comment lines that are not taken."""
        return sum(len(lines) for _, lines in self._left)

    def take(self, output: str, section: str, text: str) -> str | None:
        """The comments at an item of a list: the one with that text, or the only one with its first word."""
        return self._item(output, section, _words(text))

    def take_condition(self, output: str, section: str, condition: object) -> str | None:
        """The comments at an item of a list of conditions."""
        return self._item(output, section, (str(condition),))

    def _item(self, output: str, section: str, words: tuple[str, ...]) -> str | None:
        listed = [place for place, _ in self._left if (place.output, place.section) == (output, section)]
        same = [place for place in listed if place.words == words]
        alike = [place for place in listed if place.is_only and place.words[:1] == words[:1]]
        return self._taken([*same, *alike][:1])

    def take_list(self, output: str, section: str) -> str | None:
        """The other comments of a list."""
        return self._taken([place for place, _ in self._left if (place.output, place.section) == (output, section)])

    def take_output(self, name: str) -> str | None:
        """The comments above an output."""
        return self.take_list(name, "")

    def take_rest(self, output: str | None, *roots: str) -> list[str]:
        """The lines of the other comments of an output, of the recipe (below some of its keys), or (None) of all."""
        chosen = [
            (place, lines)
            for place, lines in self._left
            if output is None or (place.output == output and (not roots or place.root in roots))
        ]
        self._left = [entry for entry in self._left if entry not in chosen]
        return [line for _, lines in chosen for line in lines]

    def _taken(self, places: list[_Place]) -> str | None:
        """The comments at some places, with a spec's placeholders; they stay where a recipe would misread them."""
        lines = [_VARIABLE.sub(r"{\1}", line) for place, own in self._left if place in places for line in own]
        if not lines or any(map(text_mistake, (*lines, *(f"# {line}" for line in lines)))):
            return None
        self._left = [entry for entry in self._left if entry[0] not in places]
        return "\n".join(lines)


def _found(recipe: Document) -> Iterator[tuple[_Place, tuple[str, ...]]]:
    """The comments in order, each with its place."""
    places = _Places(recipe)
    try:
        if recipe.root is not None:
            places.add(recipe.root, _Place())
    except InputError:  # conda-build renders it first, and only then is it YAML
        pass
    above: list[tuple[int, str]] = []
    last = _Place()
    for number, line in enumerate(recipe.text.splitlines(), 1):
        bare = line.lstrip()
        indent = len(line) - len(bare)
        if number in places.texts:
            continue
        if bare.startswith("#"):
            text = re.sub(r"^#+ ?|\s+$", "", bare)
            above += [(indent, text)] if text.strip("# \t") else []
        elif number in places.by_line:
            place = places.by_line[number]
            yield from _settled(above, indent, last, place)
            above, last = [], place
    yield from _settled(above, -1, last, last)


def _settled(
    above: list[tuple[int, str]], indent: int, last: _Place, following: _Place
) -> Iterator[tuple[_Place, tuple[str, ...]]]:
    """Comments between two places: those that are further in than the second end the list of the first."""
    ending = tuple(text for column, text in above if column > indent)
    own = tuple(text for column, text in above if column <= indent)
    if ending:
        yield replace(last, words=(), is_only=False), ending
    if own:
        yield following, own
