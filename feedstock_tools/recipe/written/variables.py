"""The variables that a recipe computes itself: `{% set … %}` in a `meta.yaml`, `context` in a `recipe.yaml`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from feedstock_tools.conditions.recipes import parse
from feedstock_tools.conditions.tree import And, Condition
from feedstock_tools.errors import InputError
from feedstock_tools.recipe.written.document import Document, Part, selector_in
from feedstock_tools.variants.selectors import DEFAULT_VARIANT

_SET = re.compile(r"\{%[-+]?\s*set\s+(\w+)\s*=\s*(.*?)\s*[-+]?%\}", re.DOTALL)
_LITERAL = re.compile(r"""'[^'\\]*'|"[^"\\]*"|-?\d+(?:\.\d+)*""")
_WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})")
_TEMPLATE = re.compile(r"\$?\{\{(.*?)\}\}", re.DOTALL)
_TEXT = re.compile(r"""'[^'\\]*'|"[^"\\]*\"""")
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
#: rattler-build has filters for what Jinja has methods for.
_SPLIT = re.compile(r"([\w.]+)\s*\|\s*split\(")


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a recipe: one statement or entry, of which there may be several for a name.

    `start` and `end` are the characters of its expression; `part` is the value in a `recipe.yaml`. `selector` is the
    condition for the line, '' without one; `is_in_block` tells whether it is in an `if` or a loop of Jinja.
    """

    name: str
    expression: str
    start: int
    end: int
    selector: str = ""
    part: Part | None = None
    is_in_block: bool = False

    @property
    def literal(self) -> str | None:
        """Its text if it is a literal, else None."""
        if self.part is not None:
            return None if self.part.kind != "scalar" or "{{" in self.part.text else self.part.text
        return self.expression.strip("'\"") if _LITERAL.fullmatch(self.expression) else None

    @property
    def names(self) -> frozenset[str]:
        """The names that its expression mentions."""
        return names_in(self.expression if self.part is not None else f"{{{{{self.expression}}}}}")


@lru_cache(maxsize=8)
def read_variables(document: Document) -> tuple[Variable, ...]:
    """The variables of a recipe, in order."""
    if document.has_templates:
        return tuple(_statements(document))
    context = [entry.value for entry in document.entries("context")]
    return tuple(
        Variable(entry.key, entry.value.source, entry.value.start, entry.value.end, part=entry.value)
        for part in context
        for entry in part.entries
    )


def _statements(document: Document) -> list[Variable]:
    statements = []
    for match in _SET.finditer(document.text):
        start = document.line_start(match.start())
        if document.text[start : match.start()].lstrip().startswith("#"):
            continue  # conda-build removes such lines before it renders
        tail = document.text[match.end() : document.line_end(match.end())].rstrip()
        inside = document.is_in_block(match.start())
        statements.append(Variable(match[1], match[2], *match.span(2), selector_in(tail), is_in_block=inside))
    return statements


def names_in(text: str) -> frozenset[str]:
    """The names that the templates in a text mention."""
    inside = " ".join(_TEXT.sub(" ", template) for template in _TEMPLATE.findall(text))
    return frozenset(_NAME.findall(inside))


def expand(
    document: Document,
    text: str,
    values: Mapping[str, str],
    selector: str = "",
    keys: Mapping[str, str] = MappingProxyType({}),
) -> str | None:
    """A text with its templates expanded from the recipe's variables; None if they cannot be.

    Args:
        values: variables with other values than the recipe gives them.
        selector: the statements of a name that hold where this selector does count, else the first.
        keys: the values of names that the recipe does not set.
    """
    # They load Jinja, which edits without templates need not wait for.
    from feedstock_tools.recipe.v0.functions import DATETIME
    from feedstock_tools.recipe.v0.jinja import render

    lines: list[str] = []
    variables = read_variables(document)
    needed = names_behind(text, variables)
    for variable in _effective([variable for variable in variables if variable.name in needed], selector):
        if variable.name in values and variable.literal is not None:
            lines.append(f"{{% set {variable.name} = {values[variable.name]!r} %}}")
        elif variable.part is None:
            lines.append(f"{{% set {variable.name} = {variable.expression} %}}")
        elif (literal := variable.literal) is not None:
            is_number = _WHOLE.fullmatch(variable.part.source)  # without quotes, so rattler-build compares it as one
            lines.append(f"{{% set {variable.name} = {literal if is_number else repr(literal)} %}}")
        elif variable.part.kind == "scalar":
            lines.append(f"{{% set {variable.name} %}}{variable.part.text}{{% endset %}}")
    template = _SPLIT.sub(r"(\1).split(", "".join([*lines, text]).replace("${{", "{{"))
    try:
        names = {"cran_mirror": DEFAULT_VARIANT["cran_mirror"], **keys, "datetime": DATETIME}
        return render(document.path, None, template, names).strip()
    except InputError:
        return None


def follows_from_recipe(document: Document, text: str, selector: str = "") -> bool:
    """Whether a text is the same in all variants and environments.

    >>> recipe = Document(Path("meta.yaml"), '{% set v = "1" %}{% set cuda = cuda | default("None") %}')
    >>> follows_from_recipe(recipe, "a-{{ v }}"), follows_from_recipe(recipe, "a-{{ v }}-cuda{{ cuda }}")
    (True, False)
    """
    names = names_behind(text, read_variables(document)) - {"cran_mirror"}
    others = dict.fromkeys(names, "98.76")
    if names & {"environ", "env", "os"}:
        return False
    return expand(document, text, {}, selector) == expand(document, text, {}, selector, others)


def names_behind(text: str, variables: Sequence[Variable]) -> frozenset[str]:
    """The names that a text depends on, those that its variables are computed from included."""
    known: set[str] = set()
    todo = set(names_in(text))
    while todo:
        name = todo.pop()
        known.add(name)
        for variable in variables:
            if variable.name == name:
                todo |= variable.names - known
    return frozenset(known)


def holds_with(selector: str, given: str) -> bool:
    """Whether a selector holds wherever `given` does, as far as their texts tell: each of its terms is one of those.

    >>> holds_with("linux64", "linux64 and cuda"), holds_with("", "win"), holds_with("win", "")
    (True, True, False)
    """
    return _terms(selector) <= _terms(given)


def _terms(selector: str) -> frozenset[Condition | str]:
    """What `and` connects."""
    tree = parse(selector, "selector") or selector
    return frozenset(tree.parts if isinstance(tree, And) else filter(None, [tree]))


def is_undecided(text: str, variables: Sequence[Variable], selector: str) -> bool:
    """Whether a variable behind a text has statements with selectors only, none of which holds with `selector`."""
    for name in names_behind(text, variables):
        statements = [variable for variable in variables if variable.name == name]
        if statements and not any(holds_with(variable.selector, selector) for variable in statements):
            return True
    return False


def _effective(variables: Sequence[Variable], selector: str) -> list[Variable]:
    """The statements that count where `selector` holds: for each name those that hold with it, else the first."""
    chosen: list[Variable] = []
    for name in dict.fromkeys(variable.name for variable in variables):
        statements = [variable for variable in variables if variable.name == name]
        outside = [statement for statement in statements if not statement.is_in_block] or statements
        chosen += [statement for statement in outside if holds_with(statement.selector, selector)] or outside[:1]
    return sorted(chosen, key=lambda variable: variable.start)
