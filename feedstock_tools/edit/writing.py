"""Edits of single places, written in the style of their neighbours: each function gives the changes of a document."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import groupby

from feedstock_tools.errors import InputError
from feedstock_tools.recipe.written.document import Document, Entry, Part, TextEdit
from feedstock_tools.recipe.written.variables import Variable
from feedstock_tools.yaml_reading.nodes import compose, parse_types

_TEMPLATE = re.compile(r"\$?\{\{.*?\}\}", re.DOTALL)


def replaced(document: Document, place: Part | Variable, text: str) -> list[TextEdit]:
    """Change the text of a scalar or of a variable's literal, in quotes like those it has.

    There are no changes if it has that text already.

    Raises:
        InputError: the value is a list, a mapping, an alias or a block of text.
    """
    if isinstance(place, Variable):
        return _replaced_literal(place, text)
    if place.kind != "scalar" or place.is_block_text:
        raise document.mistake("expected a value in one line here", place)
    if place.text == text:
        return []
    source = quoted_like(place, text)
    before = "" if place.source or document.text[place.start - 1 : place.start] == " " else " "
    return [TextEdit(place.start, place.end, before + source)]


def _replaced_literal(variable: Variable, text: str) -> list[TextEdit]:
    if variable.literal == text:
        return []
    if variable.part is not None:
        return [TextEdit(variable.start, variable.end, quoted_like(variable.part, text))]
    quote = variable.expression[:1] if variable.expression[:1] in {"'", '"'} else ""
    if not quote and not text.isdecimal():
        quote = '"'
    return [TextEdit(variable.start, variable.end, f"{quote}{text}{quote}")]


def quoted_like(scalar: Part | None, text: str) -> str:
    """`text` as a scalar with the quotes of another; in quotes anyway if YAML would read it as something else."""
    style = scalar.style if scalar is not None else None
    if style == "'":
        return "'" + text.replace("'", "''") + "'"
    if style == '"' or not _reads_back(text, scalar):
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return text


def _reads_back(text: str, like: Part | None) -> bool:
    """Whether `text` may stand without quotes: it stays one scalar, and a number only in place of a number.

    `1.10` is a number to YAML and loses its zero, so even where a number is replaced it needs quotes.
    """
    plain = _TEMPLATE.sub("J", text)
    try:
        node = compose(f"- {plain}")
    except InputError:
        return False
    if node is None or node.value[0].id != "scalar" or node.value[0].value != plain:
        return False
    value = parse_types(plain)
    if isinstance(value, str):
        return True
    old = parse_types(_TEMPLATE.sub("J", like.source)) if like is not None and like.source else None
    return not isinstance(old, str) and (str(value) == text or isinstance(value, bool) == isinstance(old, bool) is True)


def added_item(document: Document, list_: Part, text: str, comment: str = "", *, sort: bool = True) -> list[TextEdit]:
    """Add an item to a list with items: at its place if the list is sorted, else at its end.

    Args:
        text: the item, written as in YAML.
        comment: a comment for the end of its line; not possible in brackets.
        sort: False to add it at the end in any case.
    """
    before = _follower(list_, text) if sort else None
    if list_.is_flow:
        if before is not None:
            return [TextEdit(before.start, before.start, f"{text}, ")]
        end = list_.items[-1].end if list_.items else list_.start + 1
        return [TextEdit(end, end, f", {text}" if list_.items else text)]
    lead = " " * document.column_of(list_.start) + document.text[list_.start : list_.items[0].start]
    lead = lead if not lead.strip(" -") else " " * document.column_of(list_.start) + "- "
    line = f"{lead}{text}{'  ' + comment if comment else ''}"
    return added_line(document, line, before=before.start if before else None, after=list_.end)


def _follower(list_: Part, text: str) -> Part | None:
    """The item of a sorted list before which `text` belongs; None: at the end."""
    names = [item.text.lower() for item in list_.items]
    if len(names) < 2 or names != sorted(names) or not all(item.kind == "scalar" for item in list_.items):
        return None
    return next((item for item, name in zip(list_.items, names, strict=True) if name > text.strip("\"'").lower()), None)


def added_line(document: Document, line: str, *, before: int | None = None, after: int = 0) -> list[TextEdit]:
    """Add a line before the line of the character `before`, or after that of the character `after`."""
    if before is not None:
        offset = document.line_start(before)
        return [TextEdit(offset, offset, line + document.newline)]
    offset = document.line_end(after)
    if document.text[:offset].endswith(("\n", "\r")) or not document.text:
        return [TextEdit(offset, offset, line + document.newline)]
    return [TextEdit(offset, offset, document.newline + line)]


def added_entry(
    document: Document,
    mapping: Part,
    key: str,
    lines: Sequence[str],
    after: Entry | None = None,
    before: Entry | None = None,
) -> list[TextEdit]:
    """Add a key to a mapping in block style: after an entry, else before one, else at its end.

    Args:
        lines: the value: one line for a scalar; else the lines below the key, indented from its column on.
    """
    indent = " " * document.column_of(mapping.entries[0].start)
    written = document.newline.join([f"{indent}{key}:", *(indent + line for line in lines)])
    if len(lines) == 1 and not lines[0].startswith((" ", "- ")):
        written = f"{indent}{key}: {lines[0]}"
    if after is None and before is not None:
        return added_line(document, written, before=before.start)
    return added_line(document, written, after=(after or mapping.entries[-1]).end)


def removed_items(document: Document, list_: Part, items: Collection[Part | Entry]) -> list[TextEdit]:
    """Remove some items of a list, or keys: their lines with the comments in them, or in brackets texts and commas."""
    if not list_.is_flow:
        return [_without_lines(document, item.start, item.end) for item in items]
    changes: list[TextEdit] = []
    kept_end = None  # where the item before a run of removed ones ends
    children: Sequence[Part | Entry] = list_.items or list_.entries
    for is_gone, run in groupby(children, key=lambda item: item in items):
        members = list(run)
        if not is_gone:
            kept_end = members[-1].end
            continue
        following = next((item.start for item in children if item.start > members[-1].start), None)
        if following is not None:
            changes.append(TextEdit(members[0].start, following, ""))
        else:
            changes.append(TextEdit(members[0].start if kept_end is None else kept_end, members[-1].end, ""))
    return changes


def removed_entry(document: Document, entry: Entry) -> list[TextEdit]:
    """Remove a key with its value, and the comments at the ends of its lines."""
    if document.text[document.line_start(entry.start) : entry.start].strip():
        raise document.mistake("the key shares its line with a dash, so it cannot go alone", entry)
    return [_without_lines(document, entry.start, entry.end)]


def _without_lines(document: Document, start: int, end: int) -> TextEdit:
    lead = document.text[document.line_start(start) : start]
    if lead.strip(" -") or lead.count("-") > 1:
        raise document.mistake(f"line {document.line_of(start)} holds more than what must be removed", None)
    first, last = document.line_start(start), document.line_end(max(start, end - 1))
    if first and last == len(document.text) and not document.text.endswith(("\n", "\r")):
        first -= len(document.newline)  # the line before becomes the last, without a line break as this was
    return TextEdit(first, last, "")
