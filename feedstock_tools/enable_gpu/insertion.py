"""New lines among old ones, in the style of their neighbours: requirements, keys of `build`, and variables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from feedstock_tools.edit.writing import added_line
from feedstock_tools.generate.texts.wording import Line
from feedstock_tools.recipe.written.document import Document, Entry, Part, TextEdit
from feedstock_tools.recipe.written.owners import Owner
from feedstock_tools.recipe.written.variables import read_variables

_SINGLE_BRANCH = re.compile(r"(\s*)(then|else): (?=\S)(.*)", re.DOTALL)


def together(changes: Iterable[TextEdit]) -> list[TextEdit]:
    """Changes of one document, in which several texts added at one place become one, in the order given."""
    added: dict[int, str] = {}
    others: dict[TextEdit, None] = {}
    for change in changes:
        if change.start == change.end:
            added[change.start] = added.get(change.start, "") + change.text
        else:
            others[change] = None
    return [*others, *(TextEdit(offset, offset, text) for offset, text in added.items())]


def added_to_list(document: Document, list_: Part, lines: Sequence[Line], after: Part | None = None) -> list[TextEdit]:
    """Add items to a list in block style: after one of its items, or at its end, but outside of blocks of Jinja.

    Args:
        lines: each begins with `- `, or with spaces where it continues an item.
    """
    if list_.is_flow:
        hint = "Write one item in each line first."
        raise document.mistake("a list in brackets cannot hold lines with conditions", list_, hint)
    free = [item for item in list_.items if not document.is_in_block(item.start)]
    if not free:
        hint = "Move an item out of it first, or edit by hand."
        raise document.mistake("the whole list stands in a block of Jinja", list_, hint)
    if after is None or after not in free:
        after = free[-1]
    lead = " " * document.column_of(list_.start)
    dash = document.text[list_.start : list_.items[0].start]
    dash = dash if not dash.strip(" -") else "- "
    plain = [Line(re.sub(r"^- ", dash, line.text), line.selector) for line in in_one_style(document, lines)]
    column = _selector_column(document, list_)
    return placed(document, with_selectors(plain, lead, column), after=after.end)


def placed(document: Document, lines: Sequence[str], *, after: int) -> list[TextEdit]:
    """Add lines below the line of a character."""
    return added_line(document, document.newline.join(lines), after=after)


def below_key(document: Document, entry: Entry, lines: Sequence[Line]) -> list[TextEdit]:
    """Add the items of a list to a key without a value, such as `host:`."""
    lead = " " * (document.column_of(entry.start) + 2)
    return placed(document, with_selectors(in_one_style(document, lines), lead, None), after=entry.start)


def with_selectors(lines: Sequence[Line], lead: str, column: int | None) -> list[str]:
    """Lines with their selectors in one column: a given one if it fits them all, else the first that does.

    With a negative `column` each selector follows its text.
    """
    widest = max((len(lead) + len(line.text) for line in lines if line.selector), default=0)
    if column is None or column >= 0:
        column = max(column or 0, widest + 2)
    written = []
    for line in lines:
        text = f"{lead}{line.text}"
        written.append(f"{text:<{max(column, len(text) + 2)}}# [{line.selector}]" if line.selector else text)
    return written


def _selector_column(document: Document, list_: Part) -> int | None:
    """The column in which most selectors of a list stand, -1 if they follow their texts; None if it has none."""
    columns: Counter[int] = Counter()
    ragged = 0
    for item in list_.items:
        if item.kind == "scalar" and document.selector_of(item):
            offset = document.text.index("#", item.end)
            columns[document.column_of(offset)] += 1
            ragged += offset - item.end == 2
    if not columns:
        return None
    return -1 if ragged == columns.total() else columns.most_common(1)[0][0]


def in_one_style(document: Document, lines: Sequence[Line]) -> list[Line]:
    """Lines with the quotes of the recipe's own calls, and a list below `then:` where the recipe writes it so."""
    text = document.text
    double = text.count('compiler("') > text.count("compiler('")
    lists = len(re.findall(r"(?m)^\s*then:[ \t]*$", text)) > len(re.findall(r"(?m)^\s*then:[ \t]*[^\s#]", text))
    written: list[Line] = []
    for line in lines:
        content = line.text
        if double and re.search(r"\{\{ \w+\('", content):
            content = content.replace("'", '"')
        branch = _SINGLE_BRANCH.fullmatch(content)
        if lists and branch and not document.has_templates:
            written += [Line(f"{branch[1]}{branch[2]}:"), Line(f"{branch[1]}  - {branch[3]}")]
        else:
            written.append(Line(content, line.selector))
    return written


def shifted(lines: Iterable[str], by: int) -> list[str]:
    """Lines further to the right."""
    return [" " * by + line if line else line for line in lines]


_STATEMENT = re.compile(r"\{%.*?%\}", re.DOTALL)
#: Keys below which a new section `build` stands.
_ABOVE = ("name", "package", "recipe", "version", "script", "source", "inherit", "staging")
#: Keys of `build` below which new ones stand.
_FIRST = ("number", "skip", "noarch")
#: Keys of a recipe's `build` that its outputs have of their own, or not at all.
_OF_RECIPE = frozenset({"number", "string", "skip", "noarch", "script", "script_env", "entry_points", "run_exports"})


@dataclass
class Edits:
    """What a step changes: the recipe's text, settings and variables that it gets, and scripts; and its remarks.

    A setting is an owner with lines for its section `build`, such as `string: …` with a selector, or a key with lines
    below.
    """

    changes: list[TextEdit] = field(default_factory=list)
    settings: list[tuple[Owner, tuple[Line, ...]]] = field(default_factory=list)
    variables: list[Line] = field(default_factory=list)
    scripts: list[Document] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def replace(self, entry: Entry, text: str) -> None:
        """Write another value for a key."""
        self.changes.append(TextEdit(entry.value.start, entry.value.end, text))

    def set(self, owner: Owner, *lines: Line) -> None:
        """Add lines to the section `build` of an owner."""
        self.settings.append((owner, lines))


def set_in(settings: Iterable[tuple[Owner, tuple[Line, ...]]], recipe: Owner) -> list[TextEdit]:
    """The changes that add all settings, those of one owner in one place.

    An output of a `meta.yaml` without a section `build` inherits the recipe's. If it gets a section, that also gets
    the recipe's settings for linking and run exports.
    """
    by_owner: dict[Owner, list[tuple[Line, ...]]] = {}
    for owner, lines in settings:
        by_owner.setdefault(owner, []).append(lines)
    changes: list[TextEdit] = []
    for owner, groups in by_owner.items():
        inherits = owner.document.has_templates and owner.build is None and owner.name != recipe.name
        changes += _below_build(owner, [*groups, *_inherited(recipe)] if inherits else groups)
    return changes


def _inherited(recipe: Owner) -> Iterator[tuple[Line, ...]]:
    """The settings of a recipe that an output without any inherits, except those that it replaces or for scripts.

    (conda_build/metadata.py: get_output_metadata.)
    """
    document = recipe.document
    for entry in recipe.settings:
        if entry.key not in _OF_RECIPE and not document.is_in_block(entry.start):
            column = document.column_of(entry.start)
            lines = document.text[document.line_start(entry.start) : document.line_end(entry.end - 1)].splitlines()
            yield tuple(Line(line[column:]) for line in lines if line.strip())


def _below_build(owner: Owner, groups: Sequence[Sequence[Line]]) -> list[TextEdit]:
    document, build = owner.document, owner.build
    if build is not None and build.value.is_flow:
        raise document.mistake("a section in brackets cannot hold lines with conditions", build, "Write it in lines.")
    if build is not None:
        entries = build.value.entries
        column = document.column_of(entries[0].start) if entries else document.column_of(build.start) + 2
        first = [entry for entry in entries if entry.key in _FIRST and not document.is_in_block(entry.start)]
        return placed(document, _written(groups, " " * column), after=first[-1].end if first else build.start)
    above = [entry for entry in owner.part.entries if entry.key in _ABOVE]
    after = above[-1] if above else owner.part.entries[0]
    indent = " " * document.column_of(owner.part.entries[0].start)
    blank = [""] if owner.kind == "recipe" else []
    return placed(document, [*blank, f"{indent}build:", *_written(groups, f"{indent}  ")], after=after.end)


def _written(groups: Sequence[Sequence[Line]], lead: str) -> list[str]:
    return [text for lines in groups for text in with_selectors(lines, lead, None)]


def free_name(document: Document, *names: str) -> str:
    """The first of several names that no variable of a recipe has."""
    taken = {variable.name for variable in read_variables(document)}
    return next((name for name in names if name not in taken), f"{names[-1]}_of_cuda")


def defined(document: Document, lines: Sequence[Line]) -> list[TextEdit]:
    """The changes that define variables: statements of Jinja above the recipe, or entries of its context."""
    if not lines:
        return []
    if document.has_templates:
        return _statements(document, lines)
    for entry in document.entries("context"):
        if entry.value.entries:
            lead = " " * document.column_of(entry.value.entries[0].start)
            return placed(document, [lead + line.text for line in lines], after=entry.value.end)
    root = document.root
    schema = [entry for entry in (root.entries if root else ()) if entry.key == "schema_version"]
    written = ["context:", *(f"  {line.text}" for line in lines), ""]
    if schema:
        return placed(document, ["", *written[:-1]], after=schema[-1].end)
    at = document.line_start(root.entries[0].start) if root else 0
    return [TextEdit(at, at, document.newline.join([*written, ""]))]


def _statements(document: Document, lines: Sequence[Line]) -> list[TextEdit]:
    root = document.root
    start = root.entries[0].start if root else 0
    written = with_selectors(lines, "", -1)
    statements = list(_STATEMENT.finditer(document.text, 0, start))
    if statements:
        return placed(document, written, after=statements[-1].end() - 1)
    return added_line(document, document.newline.join([*written, ""]), before=start)
