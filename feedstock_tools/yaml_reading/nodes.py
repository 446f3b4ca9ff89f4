"""YAML texts as PyYAML's nodes, which know their line and column: the one place that composes YAML to read it.

Code that needs places walks the nodes with `members`, `items` and `place_of`, or takes a `Document`; code that only
needs values takes them from `parse_texts` (only strings, for variant files) or `parse_types`. All readers share the
limits that this module checks before anything is built from the nodes: the nesting depth, the number of values with
aliases followed, and the number of keys through merges (`<<`). Of duplicate keys in a mapping the last one counts, as
in PyYAML; `parse_document` reports them, and the first counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any, Protocol

from feedstock_tools.bounds.limits import step
from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.reading import read_text

#: The limit on nested brackets and on characters that indent a line, far above any file of conda-forge.
_DEEPEST = 400
#: Values in one file with its aliases followed; conda-forge's pinning has a few thousand.
_LARGEST_EXPANSION = 500_000
#: Keys through all merges of one file. A merge copies them, so their sum is limited and not each alone.
_MOST_MERGED = 10_000
_MERGE = "tag:yaml.org,2002:merge"


class Node(Protocol):
    """A node as PyYAML makes it; `id` is `scalar`, `sequence` or `mapping`."""

    id: str
    tag: str
    value: Any
    style: str | None
    start_mark: Any
    end_mark: Any


class Schema(Enum):
    """The tags of the scalars of a text."""

    #: Every scalar is a string (YAML's failsafe schema): `3.10` stays as written.
    TEXTS = "texts"
    #: YAML's usual types: numbers, booleans, dates and null besides strings.
    TYPES = "types"
    #: The same, but numbers are strings (conda_build/metadata.py: StringifyNumbersLoader).
    TEXT_NUMBERS = "text numbers"


@dataclass(frozen=True, slots=True)
class Place:
    """A line and a column, counted from 1."""

    line: int
    column: int


def compose(text: str, path: Path | None = None, schema: Schema = Schema.TEXTS, *, first: bool = False) -> Node | None:
    """The node of a text's only document; None for an empty text.

    Args:
        path: for messages.
        first: read the first document and ignore the others.

    Raises:
        InputError: not YAML, nested too deep, more than one document, an alias that contains itself, or aliases or
            merge keys that grow without limit.
    """
    import yaml

    node: Node | None = None
    try:
        with step(path):
            _check_depth(text, path, _loader(schema)(text))
            loader = _loader(schema)(text)
            try:
                if loader.check_node():
                    node = loader.get_node()
                if not first and loader.check_node():
                    raise InputError("contains more than one document", path=path)
            finally:
                loader.dispose()
            if node is not None and "*" in text:  # nothing grows without an alias
                _Sizes(path).of(node)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _as_input_error(error, path) from error
    return node


@lru_cache(maxsize=len(Schema))
def _loader(schema: Schema) -> Any:
    """PyYAML's loader for a schema, in C if available."""
    import yaml

    if schema is Schema.TEXTS:
        return getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    if schema is Schema.TYPES:
        return base
    numbers = ("tag:yaml.org,2002:float", "tag:yaml.org,2002:int")
    resolvers = {
        first: [(tag, pattern) for tag, pattern in rules if tag not in numbers]
        for first, rules in base.yaml_implicit_resolvers.items()
    }
    return type("TextNumbersLoader", (base,), {"yaml_implicit_resolvers": resolvers})


def _as_input_error(error: Exception, path: Path | None) -> InputError:
    """PyYAML's exception as an InputError with its place."""
    if isinstance(error, RecursionError):
        return InputError("is nested too deep", path=path)
    problem = getattr(error, "problem", None) or getattr(error, "context", None)
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line, column = (None, None) if mark is None else (mark.line + 1, mark.column + 1)
    if problem == "exceeded maximum nesting depth":  # libyaml 0.2.6 has a limit of its own
        return InputError("is nested too deep", path=path, line=line, column=column)
    return InputError(f"is not YAML: {problem or error}", path=path, line=line, column=column)


def _check_depth(text: str, path: Path | None, loader: Any) -> None:
    """Refuse text that nests deeper than any file of a feedstock, since libyaml's composer would crash the process.

    Brackets and marks are counted first, wherever they are: fast, and never too few. If there are many, which a
    script full of brackets may be too, YAML's events are counted.
    """
    deepest = depth = 0
    for bracket in re.findall(r"[\[\]{}]", text):
        depth = depth + 1 if bracket in "[{" else max(0, depth - 1)
        deepest = max(deepest, depth)
    deepest = max(deepest, max(map(len, re.findall(r"^[ \t?:-]+", text, re.MULTILINE)), default=0))
    if deepest > _DEEPEST and _is_deep(loader):
        raise InputError("is nested too deep", path=path)


def _is_deep(loader: Any) -> bool:
    """Whether the events of a text exceed the depth limit; without recursion."""
    depth = 0
    while depth <= _DEEPEST and loader.check_event():
        kind = type(loader.get_event()).__name__
        depth += kind.endswith(("MappingStartEvent", "SequenceStartEvent"))
        depth -= kind.endswith(("MappingEndEvent", "SequenceEndEvent"))
    return depth > _DEEPEST


class _Sizes:
    """Measures a document with its aliases and merges followed; each node once, however often it is referenced."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.sizes: dict[int, int] = {}
        self.keys: dict[int, int] = {}
        self.merged = 0

    def of(self, node: Any) -> int:
        """The number of nodes that `node` expands to."""
        if node.id == "scalar":
            return 1
        counted = self.sizes.get(id(node))
        if counted == 0:
            raise self._error(node, "an alias refers to a list or mapping that contains it")
        if counted is not None:
            return counted
        self.sizes[id(node)] = 0
        size = 1
        for child in node.value:
            for part in child if isinstance(child, tuple) else (child,):
                size += self.of(part)
        if size > _LARGEST_EXPANSION:
            raise self._error(node, "its aliases expand to too many values")
        if node.id == "mapping":
            self.keys[id(node)] = self._keys(node)
        self.sizes[id(node)] = size
        return size

    def _keys(self, node: Any) -> int:
        """The keys of a mapping, those that its merges copy into it included."""
        sources = [value for key, value in node.value if key.tag == _MERGE]
        copied = sum(self.keys.get(id(node), 0) for value in sources for node in (value, *items(value)))
        self.merged += copied
        if self.merged > _MOST_MERGED:
            raise self._error(node, "its merge keys combine too many values")
        return len(node.value) + copied

    def _error(self, node: Any, message: str) -> InputError:
        return InputError(message, path=self.path, line=place_of(node).line)


def is_mapping(node: Node | None) -> bool:
    return node is not None and node.id == "mapping"


def pairs(node: Node | None) -> Sequence[tuple[Node, Node]]:
    """The keys of a mapping and their values, in order; none for any other node."""
    return node.value if node is not None and node.id == "mapping" else ()


def members(node: Node | None) -> dict[str, Node]:
    """The values of a mapping's plain keys; empty for any other node."""
    return {key.value: value for key, value in pairs(node) if key.id == "scalar"}


def items(node: Node | None) -> Sequence[Node]:
    """The items of a list; none for any other node."""
    return node.value if node is not None and node.id == "sequence" else ()


def place_of(node: Node) -> Place:
    """Where a node begins."""
    return Place(node.start_mark.line + 1, node.start_mark.column + 1)


#: The unquoted scalars that rattler-build reads as numbers.
_WHOLE = re.compile(r"[-+]?[0-9]{1,18}")
#: The tags of scalars that JSON's types keep as text: strings, dates, and the key `<<`.
_TEXTS = frozenset({"tag:yaml.org,2002:str", "tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:merge"})
_value_of = attrgetter("value")


def parse_texts(text: str, path: Path | None = None) -> Any:
    """Mappings, lists and strings: every scalar as written. Errors as for `compose`."""
    return parse_scalars(text, path, _value_of)


def parse_with_numbers(text: str, path: Path | None, number: Callable[[str], str]) -> Any:
    """Like `parse_texts`, but `number` converts unquoted whole numbers."""

    def scalar(node: Any) -> str:
        value: str = node.value
        return number(value) if not node.style and _WHOLE.fullmatch(value) else value

    return parse_scalars(text, path, scalar)


def parse_types(text: str, path: Path | None = None, schema: Schema = Schema.TYPES, *, first: bool = False) -> Any:
    """Values of YAML's usual types.

    Args:
        schema: `TYPES`, or `TEXT_NUMBERS` to keep numbers as written.
        first: read the first document and ignore the others.

    Raises:
        InputError: as for `compose`; also a tag that names something other than plain data.
    """
    node = compose(text, path, schema, first=first)
    if node is None:
        return None
    import yaml

    try:
        return yaml.constructor.SafeConstructor().construct_document(node)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _as_input_error(error, path) from error


def parse_json_types(text: str, path: Path | None = None) -> Any:
    """Values of JSON's types: numbers, booleans and null; dates are strings, and `<<` is a plain key."""
    return parse_scalars(text, path, _json_scalar, Schema.TYPES)


def _json_scalar(node: Any) -> Any:
    if node.tag in _TEXTS:
        return node.value
    import yaml

    return yaml.constructor.SafeConstructor().construct_object(node)


def parse_first(text: str, path: Path | None = None) -> Any:
    """The first document of a file of settings, with YAML's usual types; any others are ignored."""
    return parse_types(text, path, first=True)


def read_texts(path: Path, *, within: Path | None) -> Any:
    """The content of a file by `parse_texts`; `within` and errors also as for `reading.read_text`."""
    return parse_texts(read_text(path, within=within), path)


def parse_scalars(text: str, path: Path | None, scalar: Callable[[Any], Any], schema: Schema = Schema.TEXTS) -> Any:
    """Mappings, lists, and what `scalar` makes of the node of each scalar. Errors as for `compose`."""
    node = compose(text, path, schema)
    if node is None:
        return None
    import yaml

    try:
        return _Plain(path, scalar).value(node)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _as_input_error(error, path) from error


class _Plain:
    """Converts nodes to values; aliases of a node share one object, as in PyYAML."""

    def __init__(self, path: Path | None, scalar: Callable[[Any], Any]) -> None:
        self.path = path
        self.scalar = scalar
        self._converted: dict[int, Any] = {}

    def value(self, node: Any) -> Any:
        if node.id == "scalar":
            return self.scalar(node)
        if id(node) not in self._converted:
            if node.id == "sequence":
                self._converted[id(node)] = [self.value(item) for item in node.value]
            else:
                self._converted[id(node)] = {self._key(key): self.value(value) for key, value in node.value}
        return self._converted[id(node)]

    def _key(self, node: Any) -> Any:
        if node.id != "scalar":
            place = place_of(node)
            message = "a key must be a single value, not a list or a mapping"
            raise InputError(message, path=self.path, line=place.line, column=place.column)
        return self.scalar(node)


Location = tuple[str | int, ...]

#: A spec has some hundred lines; these limits are far above what a person writes.
_LARGEST_TREE = 20_000
_DEEPEST_TREE = 40
_LONGEST_TEXT = 10_000
_PLAIN_TAGS = frozenset(f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map"))
_NOTHING = frozenset({"", "~", "null"})
_QUOTING = frozenset("'\"|>")


@dataclass(frozen=True, slots=True)
class Document:
    """The values of a file, and their places: of keys (`keys`) and of values (`values`)."""

    path: Path | None
    content: Any
    values: dict[Location, Place] = field(default_factory=dict)
    keys: dict[Location, Place] = field(default_factory=dict)
    mistakes: tuple[Mistake, ...] = ()

    def place(self, location: Location, *, of_key: bool = False) -> Place:
        """The place of `location`, or of the innermost part around it that the file has."""
        first, second = (self.keys, self.values) if of_key else (self.values, self.keys)
        for end in range(len(location), -1, -1):
            place = first.get(location[:end]) or second.get(location[:end])
            if place is not None:
                return place
        return Place(1, 1)

    def mistake(self, location: Location, message: str, hint: str | None = None, *, of_key: bool = False) -> Mistake:
        place = self.place(location, of_key=of_key)
        return Mistake(message, self.path, place.line, place.column, hint)


def parse_document(text: str, path: Path | None = None) -> Document:
    """Read a YAML text.

    Duplicate keys in a mapping are in `mistakes` and the first one counts, so that the rest can be checked too.

    Raises:
        InputError: not YAML, empty, nested too deep, too large with aliases followed, or an alias that contains itself.
    """
    node = compose(text, path)
    if node is None:
        raise InputError("is empty", path=path)
    reader = _Reader(path)
    content = reader.value(node, ())
    return Document(path, content, reader.values, reader.keys, tuple(reader.mistakes))


class _Reader:
    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.values: dict[Location, Place] = {}
        self.keys: dict[Location, Place] = {}
        self.mistakes: list[Mistake] = []
        self.seen = 0

    def value(self, node: Any, location: Location) -> Any:
        self.seen += 1
        place = place_of(node)
        if self.seen > _LARGEST_TREE:
            raise InputError("its aliases expand to too many values", path=self.path, line=place.line)
        if len(location) > _DEEPEST_TREE:
            raise InputError("is nested too deep", path=self.path, line=place.line)
        self.values[location] = place
        if node.id == "scalar" and len(node.value) > _LONGEST_TEXT:
            raise InputError(f"a string is longer than {_LONGEST_TEXT} characters", path=self.path, line=place.line)
        if node.tag not in _PLAIN_TAGS:
            self._mistake(node, f"the tag {node.tag} is not allowed", "Write the value without a tag.")
        if node.id == "mapping":
            return self._mapping(node, location)
        if node.id == "sequence":
            return [self.value(item, (*location, at)) for at, item in enumerate(node.value)]
        return None if node.style not in _QUOTING and node.value in _NOTHING else node.value

    def _mapping(self, node: Any, location: Location) -> dict[str, Any]:
        content: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.id != "scalar":
                self._mistake(key_node, "a key must be a word", "Write `key: value`.")
                continue
            key = str(key_node.value)
            if key in content:
                first = self.keys[(*location, key)].line
                self._mistake(key_node, f"'{key}' is a duplicate key", f"The first one is in line {first}.")
                continue
            self.keys[(*location, key)] = place_of(key_node)
            content[key] = self.value(value_node, (*location, key))
        return content

    def _mistake(self, node: Any, message: str, hint: str) -> None:
        place = place_of(node)
        self.mistakes.append(Mistake(message, self.path, place.line, place.column, hint))
