"""New lines among old ones: several requirements or keys at once, in the style of their neighbours."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from feedstock_tools.edit.writing import added_line
from feedstock_tools.generate.texts.lines import Line
from feedstock_tools.recipe.written.document import Document, Entry, Part, TextEdit

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

    Raises:
        InputError: the list is in brackets, or all of it is in a block of Jinja.
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
