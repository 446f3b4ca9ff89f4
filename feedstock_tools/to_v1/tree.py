"""The flattened lines of a recipe as a tree: each value knows the conditions under which it exists.

conda-build removes lines, not values, so a list item can begin with one of several lines that exclude each other; such
items are one here, with keys that occur several times. `scalar` makes one value of several under conditions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from jinja2 import nodes

from feedstock_tools.errors import InputError
from feedstock_tools.recipe.written.document import Document, Entry, Part
from feedstock_tools.to_v1.conditions import NEVER, When, all_of, are_exhaustive, exclude, joined, negated, without
from feedstock_tools.to_v1.expressions import expression_of, parsed, text_parts
from feedstock_tools.to_v1.statements import FlatLine


@dataclass(frozen=True, slots=True)
class Leaf:
    """A scalar: its text with templates, and whether it was written in quotes or as a block."""

    text: str
    when: When
    line: int
    comments: tuple[str, ...] = ()
    remark: str = ""
    style: str | None = None


@dataclass(frozen=True, slots=True)
class Sequenced:
    items: tuple[Node, ...]
    when: When
    line: int
    comments: tuple[str, ...] = ()
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Mapped:
    """A mapping, in which a key can occur several times under different conditions."""

    entries: tuple[tuple[str, Node], ...]
    when: When
    line: int
    comments: tuple[str, ...] = ()
    remark: str = ""

    def all(self, key: str) -> tuple[Node, ...]:
        return tuple(value for name, value in self.entries if name == key)

    def has(self, key: str) -> bool:
        return any(name == key for name, _ in self.entries)

    def mapping(self, key: str) -> Mapped:
        """The values of a key that are mappings, as one; empty without any."""
        mappings = [value for value in self.all(key) if isinstance(value, Mapped)]
        entries = tuple(entry for value in mappings for entry in value.entries)
        first = mappings[0] if mappings else self
        return Mapped(
            entries, first.when, first.line, first.comments if mappings else (), first.remark if mappings else ""
        )


Node = Leaf | Sequenced | Mapped


def tree_of(lines: Sequence[FlatLine], path: Path) -> Mapped:
    """The tree of a recipe."""
    text = "".join(f"{line.text}\n" for line in lines)
    document = Document(path, text)
    try:
        root = document.root
    except InputError as error:
        mistakes = [replace(mistake, line=_original(lines, mistake.line), column=None) for mistake in error.mistakes]
        raise InputError.of(mistakes) from error
    if root is None or root.kind != "mapping":
        raise InputError("expected a mapping with 'package' and other sections", path=path, line=1)
    root_node = _Grower(document, lines).node(root, ())
    assert isinstance(root_node, Mapped)  # noqa: S101 - the root is a mapping
    return root_node


def _original(lines: Sequence[FlatLine], number: int | None) -> int | None:
    return None if number is None or not lines else lines[min(number, len(lines)) - 1].number


@dataclass
class _Grower:
    document: Document
    lines: Sequence[FlatLine]
    used: set[int] = field(default_factory=set)

    def line(self, offset: int) -> int:
        """The place of a character's line among the lines."""
        return min(self.document.line_of(offset), len(self.lines)) - 1

    def node(self, part: Part, outer: When, key: Entry | None = None) -> Node:
        """The node of a part, whose entry in a mapping is `key`."""
        index = self.line(part.start if key is None else key.start)
        flat = self.lines[index]
        when = joined(outer, flat.when)
        comments, remark = ((), "") if key is None else (self._above(index), self._after(part, key))
        if part.kind == "mapping":
            entries = tuple(pair for entry in part.entries for pair in self._entry(entry, when))
            return Mapped(entries, when, flat.number, comments, remark)
        if part.kind == "sequence":
            items = tuple(self._item(item, when) for item in part.items)
            return Sequenced(tuple(_merged(items)), when, flat.number, comments, remark)
        text, when = self._text(part, when, index)
        return Leaf(text, when, flat.number, comments, remark, part.style)

    def _entry(self, entry: Entry, outer: When) -> Iterator[tuple[str, Node]]:
        """A key with its value; a folded text of which one line remains counts as one value for each line."""
        node = self.node(entry.value, outer, entry)
        body = self._body(entry.value) if isinstance(node, Leaf) and entry.value.source.startswith(">") else []
        if len(body) > 1 and all(without(line.when, node.when) for line in body):
            for line in body:
                when = joined(node.when, line.when)
                yield entry.key, Leaf(line.text.strip(), when, line.number, line.comments, line.remark)
            return
        yield entry.key, node

    def _body(self, part: Part) -> list[FlatLine]:
        """The lines of a block of text that are not empty."""
        first, last = self.line(part.start), self.line(max(part.start, part.end - 1))
        return [line for line in self.lines[first + 1 : last + 1] if line.text.strip()]

    def _item(self, part: Part, outer: When) -> Node:
        index = self.line(part.start)
        comments = self._above(index)
        if part.kind == "mapping":
            entries = tuple(pair for entry in part.entries for pair in self._entry(entry, outer))
            return Mapped(entries, joined(outer, self.lines[index].when), self.lines[index].number, comments)
        remark = self._after(part, None) if part.kind == "scalar" else ""
        return replace(self.node(part, outer), comments=comments, remark=remark)

    def _above(self, index: int) -> tuple[str, ...]:
        """The comments above a line, once."""
        if index in self.used:
            return ()
        self.used.add(index)
        return self.lines[index].comments

    def _after(self, part: Part, key: Entry | None) -> str:
        """The text of the comment at the end of a line."""
        is_short = part.kind == "scalar" and not part.is_block_text
        end = part.end if is_short or key is None else key.start + len(key.key) + 1
        tail = self.document.text[end : self.document.line_end(end)].strip()
        index = self.line(end if not is_short else max(part.start, end - 1))
        return " ".join(filter(None, (self.lines[index].remark, tail[1:].strip() if tail.startswith("#") else "")))

    def _text(self, part: Part, when: When, index: int) -> tuple[str, When]:
        """The text of a scalar; of a block its lines, each under its own conditions."""
        if part.kind == "alias":
            return "", when
        if not part.is_block_text:
            return " ".join(part.text.split("\n")) if "\n" in part.text else part.text, when
        last = self.line(max(part.start, part.end - 1))
        body = self.lines[index + 1 : last + 1]
        shared = [line for line in body if line.text.strip()]
        margin = min((len(line.text) - len(line.text.lstrip()) for line in shared), default=0)
        texts = [_under(line.text[margin:], without(line.when, when)) for line in body]
        folded = part.source.startswith(">")
        return (" ".join(" ".join(texts).split()) if folded else "\n".join(texts).rstrip()), when


def _under(text: str, when: When) -> str:
    """A line of a block that exists under conditions, as a template."""
    return f'{{{{ {expression_of(text)} if {all_of(when)} else "" }}}}' if when else text


def _merged(items: Sequence[Node]) -> Iterator[Node]:
    """The items of a list; those of which conda-build keeps one first line and the lines of the last become one."""
    pending: list[Node] = []
    for item in items:
        if pending and _continues(item) and all(exclude(item.when, other.when) for other in pending):
            entries = [entry for other in (*pending, item) if isinstance(other, Mapped) for entry in other.entries]
            shared = tuple(part for part in item.when if all(part in other.when for other in pending))
            pending = []
            comments = tuple(line for other in items for line in other.comments if other is item)
            yield Mapped(tuple(entries), shared, item.line, comments)
            continue
        if isinstance(item, Mapped) and item.when and not _continues(item):
            if pending and not all(exclude(item.when, other.when) for other in pending):
                yield from pending
                pending = []
            pending.append(item)
            continue
        yield from pending
        pending = []
        yield item
    yield from pending


def _continues(item: Node) -> bool:
    """Whether an item has lines that stay where conda-build removes its first line."""
    return isinstance(item, Mapped) and any(without(item.when, value.when) for _, value in item.entries)


#: A value, and the conditions under which it counts.
Option = tuple[When, str]

#: A template, a word, or a character between words.
_PIECE = re.compile(r"\{\{.*?\}\}|[^\W_]+|.", re.DOTALL)


def template(text: str) -> str:
    """A text of a `meta.yaml`, its expressions already written for rattler-build, as a text of a `recipe.yaml`.

    >>> template("lib{{ name }} >=2")
    'lib${{ name }} >=2'
    """
    parts = text_parts(text)
    return "".join(f"${{{{ {piece} }}}}" if is_template else piece for is_template, piece in parts)


def choices(nodes: Sequence[Node], outer: When) -> list[Option]:
    """The scalars among nodes, each with its conditions within `outer`."""
    leaves = [node for node in nodes if isinstance(node, Leaf) and node.when != NEVER]
    return [(without(leaf.when, outer), leaf.text) for leaf in leaves if leaf.text]


def scalar(options: Sequence[Option], default: str | None = None, *, whole: bool = False) -> str | None:
    """One text for several under conditions, of which the last whose conditions hold counts; None without any.

    Args:
        default: the text where none holds; without it the key is absent there.
        whole: do not move a common beginning or end out of the expression.

    >>> scalar([(("unix",), "h{{ hash }}_0"), (("win",), "w{{ hash }}_0")])
    '${{ "h" if unix else "w" }}${{ hash }}_0'
    """
    if not options:
        return None if default is None else template(default)
    last = max((index for index, (when, _) in enumerate(options) if not when), default=-1)
    if last >= 0:
        default = options[last][1]
    chain = [*options[last + 1 :]]
    if not chain:
        return template(default or "")
    if not _are_apart(chain):
        chain.reverse()
    if last < 0 and len(chain) > 1 and _covers(chain):
        default = chain.pop()[1]
    if default is None:
        return f"${{{{ {_chained(chain, None)} }}}}"
    texts = [*(text for _, text in chain), default]
    before, middles, after = ("", texts, "") if whole else _shared(texts)
    inner = _chained([(when, text) for (when, _), text in zip(chain, middles, strict=False)], middles[-1])
    return f"{template(before)}${{{{ {inner} }}}}{template(after)}"


def _are_apart(chain: Sequence[Option]) -> bool:
    return all(exclude(first[0], second[0]) for index, first in enumerate(chain) for second in chain[index + 1 :])


def _chained(chain: Sequence[Option], default: str | None) -> str:
    """`a if x else b if y else c`."""
    text = "" if default is None else f" else {_branch(default)}"
    for index, (when, value) in reversed(list(enumerate(chain))):
        text = f"{' else ' if index else ''}{_branch(value)} if {all_of(when)}{text}"
    return text


def _shared(texts: Sequence[str]) -> tuple[str, list[str], str]:
    """The common beginning and end of texts with templates, and the parts between them."""
    pieces = [_PIECE.findall(text) for text in texts]
    shortest = min(map(len, pieces))
    start = next((index for index in range(shortest) if len({words[index] for words in pieces}) > 1), shortest)
    longest = shortest - start
    end = next((index for index in range(longest) if len({words[-1 - index] for words in pieces}) > 1), longest)
    middles = ["".join(words[start : len(words) - end]) for words in pieces]
    return "".join(pieces[0][:start]), middles, "".join(pieces[0][len(pieces[0]) - end :])


def _branch(text: str) -> str:
    expression = expression_of(text)
    return f"({expression})" if isinstance(parsed(expression), nodes.CondExpr) else expression


def _covers(chain: Sequence[Option]) -> bool:
    """Whether one of several values that exclude each other always applies."""
    if len(chain) == 2:
        return are_exhaustive(chain[0][0], chain[1][0])
    texts = {when[0] for when, _ in chain if len(when) == 1}
    return {"linux", "osx", "win"} <= texts or chain[-1][0] == negated(tuple(when[0] for when, _ in chain[:-1]))


def listed(nodes: Sequence[Node]) -> list[Leaf]:
    """The scalars in lists, or that stand where a list may."""
    leaves: list[Leaf] = []
    for node in nodes:
        match node:
            case Leaf():
                if node.text and node.when != NEVER:
                    leaves.append(node)
            case Sequenced():
                leaves += listed(node.items)
            case Mapped():
                continue
    return leaves


def grouped(section: Mapped) -> list[tuple[str, tuple[Node, ...]]]:
    return [(name, section.all(name)) for name in dict.fromkeys(name for name, _ in section.entries)]
