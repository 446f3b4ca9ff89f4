"""The text of a `recipe.yaml`: values with comments, and items of lists under `if:`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from feedstock_tools.errors import InputError
from feedstock_tools.to_v1.conditions import When, all_of, are_exhaustive, exclude, folded
from feedstock_tools.yaml_reading.nodes import compose, parse_types


@dataclass(frozen=True, slots=True)
class Scalar:
    """A text: if `literal`, a number or a truth value, written without quotes; if `quoted`, always in quotes."""

    text: str
    literal: bool = False
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    value: Value
    when: When = ()
    comments: tuple[str, ...] = ()
    remark: str = ""


@dataclass(frozen=True, slots=True)
class List:
    """A list; if it is `spaced`, with an empty line between items."""

    items: Sequence[Item]
    spaced: bool = False

    def __bool__(self) -> bool:
        return bool(self.items)


@dataclass(frozen=True, slots=True)
class Key:
    name: str
    value: Value
    comments: tuple[str, ...] = ()
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Dict:
    keys: Sequence[Key]

    @classmethod
    def of(cls, **values: Value) -> Dict:
        """A mapping of keys without comments."""
        return cls([Key(name, value) for name, value in values.items()])

    def __bool__(self) -> bool:
        return bool(self.keys)


Value = Scalar | List | Dict


def keyed(name: str, value: Value | None, comments: tuple[str, ...] = (), remark: str = "") -> list[Key]:
    """A key with its value; none for an empty list or mapping."""
    return [Key(name, value, comments, remark)] if value else []


def with_texts(value: Value, change: Callable[[str, str], str], place: str = "") -> Value:
    """A value with each text changed, which gets its place, such as `.outputs[].build.string`, and the text."""
    match value:
        case Scalar():
            return replace(value, text=change(place, value.text))
        case List():
            changed = (replace(item, value=with_texts(item.value, change, f"{place}[]")) for item in value.items)
            return replace(value, items=list(changed))
        case Dict():
            return Dict(
                [replace(key, value=with_texts(key.value, change, f"{place}.{key.name}")) for key in value.keys]
            )


def laid_out(value: Dict, indent: int = 0, *, spaced: bool = False) -> Iterator[str]:
    """The lines of a mapping; `spaced` puts an empty line before each key but the first."""
    lead = " " * indent
    for index, key in enumerate(value.keys):
        if spaced and index:
            yield ""
        yield from (lead + comment for comment in key.comments)
        yield from _valued(f"{lead}{key.name}:", key.value, indent, key.remark)


def _valued(start: str, value: Value, indent: int, remark: str = "") -> Iterator[str]:
    """A key, or a dash, with its value after or below it."""
    tail = f"  # {remark}" if remark else ""
    match value:
        case Scalar():
            first, *rest = _scalar(value, indent + 2)
            yield f"{start} {first}{tail if not rest else ''}"
            yield from rest
        case List():
            yield start + tail
            for index, item in enumerate(value.items) if value.spaced else ():
                yield from [""] * bool(index)
                yield from _items([item], indent + 2)
            if not value.spaced:
                yield from _items(value.items, indent + 2)
        case Dict():
            yield start + tail
            yield from laid_out(value, indent + 2)


def _items(items: Sequence[Item], indent: int) -> Iterator[str]:
    """The items of a list; neighbours with the same or opposite conditions are one `if:`, never one in another.

    conda-smithy's linter cannot read conditions within conditions.
    """
    groups = _gathered(items)
    while groups:
        when, group = groups.pop(0)
        if not when:
            for item in group:
                yield from _item(item, indent)
            continue
        others: list[Item] = []
        while groups and (groups[0][0] == when or are_exhaustive(when, groups[0][0])):
            (group if groups[0][0] == when else others).extend(groups[0][1])
            del groups[0]
        yield from _conditional(group, others, indent)


def _gathered(items: Sequence[Item]) -> list[tuple[When, list[Item]]]:
    """Neighbours with the same conditions; items between them, whose conditions exclude these, come after them."""
    groups: list[tuple[When, list[Item]]] = []
    for item in items:
        at = len(groups)
        while at and exclude(groups[at - 1][0], item.when):
            at -= 1
        if at and groups[at - 1][0] == item.when:
            groups[at - 1][1].append(item)
        else:
            groups.append((item.when, [item]))
    return groups


def _conditional(group: Sequence[Item], others: Sequence[Item], indent: int) -> Iterator[str]:
    lead = " " * indent
    group, others = [*map(_folded, group)], [*map(_folded, others)]
    if len(group) == 1 and not others:
        yield from (lead + comment for comment in group[0].comments)
        group = [replace(group[0], comments=())]
    yield f"{lead}- if: {in_yaml(all_of(group[0].when))}"
    yield from _branch("then", group, indent + 2)
    if others:
        yield from _branch("else", others, indent + 2)


def _folded(item: Item) -> Item:
    return replace(item, value=with_texts(item.value, lambda _, text: folded(text, item.when)))


def _branch(name: str, items: Sequence[Item], indent: int) -> Iterator[str]:
    lead = " " * indent
    if len(items) == 1 and not isinstance(items[0].value, List) and not items[0].comments:
        yield from _valued(f"{lead}{name}:", items[0].value, indent, items[0].remark)
        return
    yield f"{lead}{name}:"
    for item in items:
        yield from _item(item, indent + 2)


def _item(item: Item, indent: int) -> Iterator[str]:
    lead = " " * indent
    yield from (lead + comment for comment in item.comments)
    if isinstance(item.value, Dict):
        for number, line in enumerate(laid_out(item.value, indent + 2)):
            yield f"{lead}- {line[indent + 2 :]}" if number == _first_key(item.value) else line
        return
    yield from _valued(f"{lead}-", item.value, indent, item.remark)


def _first_key(value: Dict) -> int:
    return len(value.keys[0].comments) if value.keys else 0


def _scalar(value: Scalar, indent: int) -> list[str]:
    """A scalar as YAML: its first line, and further ones of a block."""
    if value.literal:
        return [value.text]
    if "\n" in value.text:
        lead = " " * indent
        ending = "" if value.text.endswith("\n") else "-"
        return [f"|{ending}", *(f"{lead}{line}".rstrip() for line in value.text.rstrip("\n").split("\n"))]
    return [_in_quotes(value.text) if value.quoted else in_yaml(value.text)]


def in_yaml(text: str) -> str:
    """A text as a scalar of one line, in quotes where it needs them.

    >>> in_yaml("${{ version }}"), in_yaml("1.10"), in_yaml("a: b")
    ('${{ version }}', '"1.10"', '"a: b"')
    """
    return text if _reads_back(text) else _in_quotes(text)


def _in_quotes(text: str) -> str:
    if "\\" not in text and '"' not in text:
        return f'"{text}"'
    return "'" + text.replace("'", "''") + "'"


def _reads_back(text: str) -> bool:
    if not text or text != text.strip() or " #" in text:
        return False
    try:
        node = compose(f"- {text}")
    except InputError:
        return False
    if node is None or node.value[0].id != "scalar" or node.value[0].value != text or node.value[0].style:
        return False
    return isinstance(parse_types(text), str)
