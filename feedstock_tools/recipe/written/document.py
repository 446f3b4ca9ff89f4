"""The files of a feedstock that people write, as text with positions.

An edit replaces some characters and leaves all others as they are.

YAML (`recipe.yaml`, `variants.yaml`, `conda-forge.yml`, migrations) is parsed as it is, `meta.yaml` and
`conda_build_config.yaml` with their templates masked (`masked`). Both give the same tree of parts, each of which
knows the characters it comes from. A key may occur several times, with a selector each.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from feedstock_tools.errors import InputError
from feedstock_tools.reading import CI_SUPPORT, LARGEST_FILE, read_bytes
from feedstock_tools.yaml_reading.nodes import Node, compose, items, pairs

#: Files with selectors, and with templates of Jinja outside of YAML's strings.
_WITH_TEMPLATES = frozenset({"meta.yaml", "conda_build_config.yaml"})
_SELECTOR = re.compile(r"#.*?\[([^\[\]]+)\][^()]*$")
_BLOCK = re.compile(r"\{%[-+]?\s*(if|for|endif|endfor)\b")
_BREAK = re.compile(r"\r\n|\r|\n")
#: Anchors and tags before a value.
_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)*")


class TextEdit(NamedTuple):
    """New text for the characters from `start` up to `end`, counted from 0."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Part:
    """A value in a document: a scalar, a list or a mapping.

    `start` and `end` are the characters it comes from; those of a list or mapping in block style begin at its first
    item or key and end with its last value. `source` is its text with quotes, for a scalar only.
    """

    kind: str
    start: int
    end: int
    source: str = ""
    style: str | None = None
    entries: tuple[Entry, ...] = ()
    items: tuple[Part, ...] = ()

    @property
    def members(self) -> dict[str, Part]:
        """The values of a mapping by key, the last one of a repeated key; empty for any other part."""
        return {entry.key: entry.value for entry in self.entries}

    def below(self, *keys: str) -> Iterator[Entry]:
        """The entries below `keys`, some keys several times; `*` stands for each item of a list."""
        first, rest = keys[0], keys[1:]
        if first == "*":
            for item in self.items:
                yield from item.below(*rest)
            return
        for entry in self.entries:
            if entry.key == first:
                if rest:
                    yield from entry.value.below(*rest)
                else:
                    yield entry

    @property
    def leaves(self) -> Iterator[Part]:
        """The scalars of an item or value: itself, or those of its items and of its branches."""
        if self.kind == "scalar":
            yield self
        for entry in self.entries:
            if entry.key in {"then", "else"}:
                yield from entry.value.leaves
        for item in self.items:
            yield from item.leaves

    @property
    def is_flow(self) -> bool:
        """Whether a list or mapping is written in brackets."""
        return self.style == "flow"

    @property
    def is_block_text(self) -> bool:
        """Whether a scalar is written below a `|` or `>`."""
        return self.style in {"|", ">"}

    @property
    def text(self) -> str:
        """A scalar's text without quotes, templates as written."""
        if self.style not in {"'", '"'}:
            return self.source
        inner = self.source[1:-1]
        if self.style == "'":
            return inner.replace("''", "'")
        return _unescaped(self.source) if "\\" in inner or "\n" in inner else inner


@dataclass(frozen=True, slots=True)
class Entry:
    """A key of a mapping with its value."""

    key: str
    start: int
    value: Part

    @property
    def end(self) -> int:
        """The character after its value."""
        return self.value.end


@dataclass(frozen=True)
class Document:
    """The text of a file, line ends as they are, and the tree of its parts."""

    path: Path
    text: str

    @cached_property
    def root(self) -> Part | None:
        """The tree; None for a file without content."""
        node = compose(masked(self.text) if self.has_templates else self.text, self.path)
        return None if node is None else _Tree(self.text).part(node)

    @property
    def has_templates(self) -> bool:
        """Whether the file is a template with selectors rather than YAML."""
        return self.path.name in _WITH_TEMPLATES

    @cached_property
    def newline(self) -> str:
        """The line ending of the file: that of its first line."""
        match = _BREAK.search(self.text)
        return match[0] if match else "\n"

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in _BREAK.finditer(self.text))]

    def line_of(self, offset: int) -> int:
        """The line of a character, counted from 1."""
        return bisect_right(self._line_starts, offset)

    def place_of(self, offset: int) -> str:
        """The name of the file with the line of a character, for messages."""
        return f"{self.path.name}:{self.line_of(offset)}"

    def line_start(self, offset: int) -> int:
        """The first character of the line that a character is in."""
        return self._line_starts[self.line_of(offset) - 1]

    def start_of(self, line: int) -> int:
        """The first character of a line, counted from 1; that of the last line if there are fewer."""
        return self._line_starts[min(line, len(self._line_starts)) - 1]

    def line_end(self, offset: int) -> int:
        """The character after the line that a character is in, its line break included."""
        line = self.line_of(offset)
        return self._line_starts[line] if line < len(self._line_starts) else len(self.text)

    def column_of(self, offset: int) -> int:
        """The number of characters before a character in its line."""
        return offset - self.line_start(offset)

    def comment_after(self, part: Part | Entry) -> str:
        """The comment at the end of a value's line (of the key's line for a list or mapping); '' without one."""
        offset = part.end if not isinstance(part, Entry) or part.value.kind == "scalar" else part.start
        tail = self.text[offset : self.line_end(offset)].rstrip("\r\n")
        match = re.search(r"(?:^|\s)(#.*)$", tail)
        return match[1] if match else ""

    def selector_of(self, part: Part | Entry) -> str:
        """The condition of the selector that a line ends with; '' without one."""
        return selector_in(self.comment_after(part)) if self.has_templates else ""

    def entries(self, *keys: str) -> Iterator[Entry]:
        """The entries below `keys`, from the root on (`Part.below`)."""
        return iter(()) if self.root is None else self.root.below(*keys)

    def is_in_block(self, offset: int) -> bool:
        """Whether a character is between `{% if … %}` and `{% endif %}`, or in a loop."""
        words = _BLOCK.findall(self.text, 0, offset) if self.has_templates else []
        return sum(-1 if word.startswith("end") else 1 for word in words) > 0

    def has_blocks(self, part: Part) -> bool:
        """Whether statements of Jinja choose among the items of a part, so that two of them may exclude each other."""
        return self.has_templates and _BLOCK.search(self.text, part.start, part.end) is not None

    def changed(self, changes: Iterable[TextEdit]) -> Document:
        """The document with `changes`, which must not overlap."""
        pieces, position = [], 0
        for change in sorted(set(changes)):
            if change.start < position:
                raise ValueError("changes overlap")
            pieces += [self.text[position : change.start], change.text]
            position = change.end
        return replace(self, text="".join(pieces) + self.text[position:])

    def mistake(self, message: str, at: Part | Entry | None = None, hint: str | None = None) -> InputError:
        """An error at a part of this document."""
        if at is None:
            return InputError(message, path=self.path, hint=hint)
        place = {"line": self.line_of(at.start), "column": self.column_of(at.start) + 1}
        return InputError(message, path=self.path, hint=hint, **place)


def read_document(path: Path, *, within: Path | None) -> Document:
    """Read a file that people wrote, line ends as they are.

    Raises:
        InputError: it is missing, not text in UTF-8, or leads out of the folder `within`.
    """
    content = read_bytes(path, LARGEST_FILE, within=within)
    try:
        return Document(path, content.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError("is not a text file in UTF-8", path=path, line=line) from error


def selector_in(comment: str) -> str:
    """The condition in a comment such as `# [linux]  on Linux only`; '' without one."""
    match = _SELECTOR.search(comment)
    return match[1].strip() if match else ""


class _Tree:
    """Makes parts from nodes. A node that occurs again is an alias, which becomes a part without characters."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.seen: set[int] = set()

    def part(self, node: Node, after: int = 0) -> Part:
        """The part of a node that follows the character before `after`."""
        if id(node) in self.seen:
            return Part("alias", after, after)
        self.seen.add(id(node))
        start, end = node.start_mark.index, node.end_mark.index
        if self.text[start : start + 1] in {"&", "!"}:
            start += len(_PROPERTIES.match(self.text[start:end])[0])  # type: ignore[index]
        if node.id == "scalar":
            return self._scalar(node, start, end)
        opening = self.text[start : start + 1]
        if node.id == "mapping":
            entries = tuple(self._entry(key, value) for key, value in pairs(node))
            style = "flow" if opening == "{" else None
            return Part("mapping", start, end if style else _block_end(entries, end), style=style, entries=entries)
        parts = tuple(self.part(item, start) for item in items(node))
        style = "flow" if opening == "[" else None
        return Part("sequence", start, end if style else _block_end(parts, end), style=style, items=parts)

    def _scalar(self, node: Node, start: int, end: int) -> Part:
        source = self.text[start:end].rstrip() if node.style in {"|", ">"} else self.text[start:end]
        return Part("scalar", start, start + len(source), source, node.style)

    def _entry(self, key: Node, value: Node) -> Entry:
        name = self.part(key)
        return Entry(name.text or name.source, name.start, self.part(value, key.end_mark.index))


def _block_end(children: tuple[Entry, ...] | tuple[Part, ...], end: int) -> int:
    """Where a list or mapping in block style ends: PyYAML's mark is after the space that follows its last child."""
    return children[-1].end if children else end


def _unescaped(source: str) -> str:
    """The text of a scalar in double quotes; as written if quotes in a template end it for YAML."""
    try:
        node = compose(source)
    except InputError:
        return source[1:-1]
    return source[1:-1] if node is None else str(node.value)


_MACRO = re.compile(r"\{%-?\s*macro\b.*?\bendmacro\s*-?%\}", re.DOTALL)
_STATEMENT = re.compile(r"\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_EXPRESSION = re.compile(r"\{\{.*?\}\}", re.DOTALL)
#: A line that is nothing but an expression: what it renders to is not part of the structure that the text shows.
_ONLY_EXPRESSIONS = re.compile(r"^[ \t]*(?:\{\{(?:(?!\}\}).)*\}\}[ \t]*)+(?=#|\r?$)", re.MULTILINE)
#: A line with text after a statement: its indentation is known only after rendering.
_AFTER_STATEMENT = re.compile(r"^[ \t]*\{%(?:(?!%\}).)*%\}[ \t]*[^\s#{].*$", re.MULTILINE)
#: The value of a key that continues with lines of its own: what it renders to stands before them.
_BEFORE_LINES = re.compile(r"(?<=: )\{\{-.*?\}\}", re.DOTALL)
#: An expression as the value of a key, above list items with more indentation: what it renders to begins their list.
_BEFORE_ITEMS = re.compile(
    r"^([ \t]*(?:- )*)([\w-]+:[ \t]+)(\{\{(?:(?!\}\}).)*\}\})"
    r"([ \t]*(?:#.*)?\r?\n(?:[ \t]*(?:#.*)?\r?\n)*)([ \t]*)(?=- )",
    re.MULTILINE,
)
#: Statements in the first lines of a block of text: spaces there would count as its indentation.
_FIRST_IN_BLOCK = re.compile(
    r"(^[^#\n]*[:-] [|>][-+0-9]*[ \t]*(?:#.*)?\r?\n)((?:[ \t]+\{%(?:(?!%\}).)*%\}[ \t]*\r?\n)+)", re.MULTILINE
)
_NOT_A_BREAK = re.compile(r"[^\r\n]")


def masked(text: str) -> str:
    """The text of a template with each part of Jinja replaced by as many characters that are plain YAML.

    Statements and comments become spaces, expressions become letters. Lines keep their selectors, since those are
    comments to YAML, so a key may occur several times, and both branches of an `if` occur.
    """
    text = _FIRST_IN_BLOCK.sub(lambda match: match[1] + _STATEMENT.sub(_letters, match[2]), text)
    for pattern in (_MACRO, _AFTER_STATEMENT, _STATEMENT, _ONLY_EXPRESSIONS, _BEFORE_LINES):
        text = pattern.sub(_blank, text)
    text = _BEFORE_ITEMS.sub(_without_value, text)
    return _EXPRESSION.sub(_letters, text)


def _blank(match: re.Match[str]) -> str:
    return _NOT_A_BREAK.sub(" ", match[0])


def _without_value(match: re.Match[str]) -> str:
    if len(match[5]) <= len(match[1]):
        return match[0]  # the items are of another key
    return f"{match[1]}{match[2]}{' ' * len(match[3])}{match[4]}{match[5]}"


def _letters(match: re.Match[str]) -> str:
    return "J" * len(match[0])


_RECIPES = ("meta.yaml", "recipe.yaml")
#: The variant files of a recipe.
VARIANT_FILES = ("recipe/conda_build_config.yaml", "recipe/variants.yaml")


@dataclass(frozen=True)
class WrittenFiles:
    """The files in the folder of a feedstock as they were read."""

    folder: Path
    recipe_path: Path
    original: Mapping[Path, Document]

    @property
    def recipe(self) -> Document:
        """The recipe."""
        recipe = self.document(self.recipe_path)
        assert recipe is not None  # noqa: S101 - there is one, and no edit deletes it
        return recipe

    @property
    def paths(self) -> Iterable[Path]:
        """The paths of all files."""
        return self.original.keys()

    def document(self, path: Path) -> Document | None:
        """The file at a path; None if there is none."""
        return self.original.get(path)

    def file(self, name: str) -> Document | None:
        """The file with a path relative to the feedstock, such as `recipe/conda_build_config.yaml`."""
        return self.document(self.folder / name)

    @property
    def migrations(self) -> tuple[Document, ...]:
        """The migrations in `.ci_support/migrations`, by name."""
        folder = self.folder / CI_SUPPORT / "migrations"
        paths = sorted(path for path in self.paths if path.parent == folder)
        return tuple(document for path in paths if (document := self.document(path)) is not None)


def read_files(folder: Path) -> WrittenFiles:
    """Read what people wrote in a feedstock.

    Raises:
        InputError: the feedstock lacks a recipe or has two, or a file cannot be read.
    """
    folder = folder.resolve()
    recipes = [path for name in _RECIPES if (path := folder / "recipe" / name).is_file()]
    if len(recipes) != 1:
        recipe_state = (
            "has a meta.yaml and a recipe.yaml" if recipes else "has no recipe/meta.yaml or recipe/recipe.yaml"
        )
        raise InputError(f"the feedstock {recipe_state}", path=folder, hint="Expected one recipe.")
    migrations = sorted((folder / CI_SUPPORT / "migrations").glob("*.y*ml"))
    paths = [*recipes, *(folder / name for name in (*VARIANT_FILES, "conda-forge.yml")), *migrations]
    original = {path: read_document(path, within=folder) for path in paths if path.is_file()}
    return WrittenFiles(folder, recipes[0], original)
