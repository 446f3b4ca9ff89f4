"""Requirements and run exports of a `recipe.yaml`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jinja2 import nodes

from feedstock_tools.to_v1.layout import Dict, Item, Key, List, Scalar
from feedstock_tools.to_v1.template.conditions import When, without
from feedstock_tools.to_v1.template.expressions import expression_of, parsed, quoted
from feedstock_tools.to_v1.template.names import Names
from feedstock_tools.to_v1.template.statements import Problem
from feedstock_tools.to_v1.tree import Leaf, Mapped, Node
from feedstock_tools.to_v1.values import listed, template

_SECTIONS = {"build": "build", "host": "host", "run": "run", "run_constrained": "run_constraints"}
_EXPORTS = {
    "weak": "weak",
    "strong": "strong",
    "noarch": "noarch",
    "weak_constrains": "weak_constraints",
    "strong_constrains": "strong_constraints",
}
_WORDS = re.compile(r"(?:\{\{.*?\}\}|[^\s{]|\{(?!\{))+", re.DOTALL)
_TEMPLATE = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_PARTS = re.compile(r"([,|])(?![^{]*\}\})")
_BARE = re.compile(r"[\w.+!-]+")
_GLUED = re.compile(r"^([A-Za-z0-9_.\-]+|\{\{.*\}\})(?=[<>=!~])")
_PIN = re.compile(r"^(pin_subpackage|pin_compatible)\(")


@dataclass(frozen=True)
class Given:
    """The known facts besides the recipe: variants, variables with their expressions, and files beside the recipe."""

    names: Names
    files: frozenset[str] = frozenset()
    variables: tuple[tuple[str, str], ...] = ()

    def plain(self, text: str) -> str:
        """A text with the variables in it that are literals."""
        return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda match: self.value_of(match[1]) or match[0], text)

    def value_of(self, name: str) -> str | None:
        """The text that a variable of the recipe holds, if it is a literal."""
        expression = dict(self.variables).get(name)
        node = None if expression is None else parsed(expression)
        return str(node.value) if isinstance(node, nodes.Const) else None


def items_of(nodes: Sequence[Node], outer: When) -> tuple[Item, ...]:
    """The scalars of lists as items of one list."""
    return tuple(
        Item(Scalar(template(leaf.text)), without(leaf.when, outer), leaf.comments, leaf.remark)
        for leaf in listed(nodes)
    )


def requirement_sections(requirements: Sequence[Node], outer: When, given: Given, problems: list[Problem]) -> list[Key]:
    """The keys of `requirements`; a plain list applies to host and run, as conda-build has it."""
    keys: list[Key] = []
    plain = [node for node in requirements if not isinstance(node, Mapped)]
    mapped = [node for node in requirements if isinstance(node, Mapped)]
    if listed(plain):
        items = requirement_items(listed(plain), outer, given, problems)
        keys += [Key("host", List(items)), Key("run", List(items))]
    for name, section in _SECTIONS.items():
        nodes = [value for node in mapped for value in node.all(name)]
        items = requirement_items(listed(nodes), outer, given, problems)
        if items:
            keys.append(Key(section, List(items), nodes[0].comments, nodes[0].remark))
    for node in mapped:
        for name, value in node.entries:
            if name not in _SECTIONS and listed([value]):
                problems.append(Problem(value.line, f"conda-build does not read 'requirements: {name}'"))
    return keys


def requirement_items(leaves: Iterable[Leaf], outer: When, given: Given, problems: list[Problem]) -> tuple[Item, ...]:
    """Requirements as items of a list."""
    items = []
    for leaf in leaves:
        written = _requirement(_folded(leaf.text), given, leaf.line, problems)
        if written:
            items.append(Item(Scalar(written), without(leaf.when, outer), leaf.comments, leaf.remark))
    return tuple(items)


def _folded(text: str) -> str:
    """A requirement whose only expression is a constant, as that constant."""
    if len(_WORDS.findall(text)) != 1 or not (text.startswith("{{") and text.endswith("}}")):
        return text
    node = parsed(expression_of(text))
    return str(node.value) if isinstance(node, nodes.Const) else text


def _requirement(text: str, given: Given, line: int, problems: list[Problem]) -> str:
    """A requirement as rattler-build reads it: an exact version has an operator, a looser one a star."""
    text = text.strip().strip("'\"").split(" #")[0].strip()
    words = _WORDS.findall(text)
    if not words:
        return ""
    if _PIN.match(expression_of(words[0])) and words[0].startswith("{{"):
        return _pin(words, line, problems)
    if len(words) == 1:
        words = _unglued(words[0])
    if len(words) > 1 and words[1] in {"=", "==", ">=", "<=", "<", ">", "!=", "~="}:
        words = [words[0], "".join(words[1:3]), *words[3:]]
    if len(words) > 2 and words[1].endswith(","):
        words = [words[0], "".join(words[1:])]
    if len(words) > 2 and words[2].startswith(("<", ">", "=", "!")):
        words = [words[0], ",".join(words[1:])]
    if len(words) == 1:
        return template(words[0])
    name, version, *build = words
    if version == "x.x":
        return _numpy(name)
    plain = _TEMPLATE.sub("J", version)
    if not build and "," not in plain and "|" not in plain and "=" in plain.lstrip("=<>!~"):
        version, build = _with_build(version)
    return " ".join(template(word) for word in (name, _version(version, bool(build), given), *build))


def _unglued(word: str) -> list[str]:
    match = _GLUED.match(word)
    return [match[0], word[match.end() :]] if match else [word]


def _with_build(version: str) -> tuple[str, list[str]]:
    """`=1.2=h1*` as version and build."""
    start = len(version) - len(version.lstrip("=<>!~"))
    number, _, build = version[start:].partition("=")
    return version[:start] + number if number != "*" else "*", [build]


def _numpy(name: str) -> str:
    return f'${{{{ pin_compatible({quoted(template(name))}, upper_bound="x.x") }}}}'


def _version(version: str, has_build: bool, given: Given) -> str:
    parts = [part for part in _PARTS.split(version) if part]
    exact = has_build or "|" in parts
    return "".join(part if part in {",", "|"} else _bound(part, exact, given) for part in parts)


def _bound(part: str, has_build: bool, given: Given) -> str:
    """One bound of a version."""
    operator = part[: len(part) - len(part.lstrip("=<>!~"))]
    version = part[len(operator) :]
    if version.endswith("*") and operator in {"=", "==", ">=", ">"}:
        bare = version.rstrip("*").rstrip(".")
        return f"{bare}.*" if operator in {"=", "=="} else f"{operator}{bare}"
    if operator == "=" and has_build:
        return f"{version}.*"
    if operator or not _is_bare(version, given):
        return part
    return f"=={version}" if has_build else f"{version}.*"


def _is_bare(version: str, given: Given) -> bool:
    """Whether a version has no operator and no star; that of a variable by the values that it can have."""
    if version.endswith("*"):
        return False
    if "{{" not in version:
        return bool(_BARE.fullmatch(version))
    if version.startswith("{{") and version.endswith("}}") and version.count("{{") == 1:
        name = version[2:-2].strip()
        value = given.value_of(name)
        if value is not None:
            return bool(_BARE.fullmatch(value))
        values = given.names.values.get(name)
        if values:
            return all(_BARE.fullmatch(text) for text in values)
        node = parsed(name)
        if isinstance(node, nodes.CondExpr) and isinstance(node.expr1, nodes.Const):
            return bool(_BARE.fullmatch(str(node.expr1.value)))
    return not re.search(r"[*<>=!~]", _TEMPLATE.sub("", version))


def _pin(words: Sequence[str], line: int, problems: list[Problem]) -> str:
    """A pin; a build string after it is an argument of the function."""
    expression = expression_of(words[0])
    if len(words) == 2:
        build = expression_of(words[1].removeprefix("=*="))
        node = parsed(expression)
        assert isinstance(node, nodes.Call)  # noqa: S101 - the text begins with the function
        return f"${{{{ {expression[:-1]}, build={build}) }}}}"
    if len(words) > 2:
        problems.append(Problem(line, "a pin with a version and a build after it"))
    return f"${{{{ {expression} }}}}"


def run_exports(nodes: Sequence[Node], outer: When, given: Given, problems: list[Problem]) -> List | Dict | None:
    """Run exports: a list of weak ones, or by kind."""
    mapped = [node for node in nodes if isinstance(node, Mapped)]
    plain = requirement_items(listed([node for node in nodes if node not in mapped]), outer, given, problems)
    if not mapped:
        return List(plain) if plain else None
    keys = []
    for name, kind in _EXPORTS.items():
        kind_nodes = [value for node in mapped for value in node.all(name)]
        items = requirement_items(listed(kind_nodes), outer, given, problems)
        items = (*plain, *items) if kind == "weak" else items
        if items:
            keys.append(Key(kind, List(items), kind_nodes[0].comments if kind_nodes else ()))
    for node in mapped:
        for name, value in node.entries:
            if name not in _EXPORTS:
                problems.append(Problem(value.line, f"run exports have no kind '{name}' in a recipe.yaml"))
    return Dict(tuple(keys)) if keys else None
