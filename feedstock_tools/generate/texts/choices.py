"""Texts that depend on the build, and blocks of lines that are copied, in the words of either recipe format."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from feedstock_tools.conditions.spec import to_expression
from feedstock_tools.conditions.tree import Condition, Or, both, negated
from feedstock_tools.errors import InputError
from feedstock_tools.generate.spec.items.written import Choice, Verbatim
from feedstock_tools.generate.spec.placeholders import PLACEHOLDER
from feedstock_tools.generate.texts.lines import comment, quoted
from feedstock_tools.generate.texts.wording import filled

#: A limit of a pin that counts parts of the version, such as `x.x`.
LIMIT = re.compile(r"x(\.x)*")


def chosen_v1(choices: Sequence[Choice], names: Mapping[str, str]) -> str:
    """The choices as one value of a recipe.yaml: the first whose condition holds; the last stands for all others.

    >>> chosen_v1((Choice(value="cuda{cuda_digits}", when="cuda"), Choice(value="cpu")), {})
    '${{ ("cuda" ~ cuda_digits) if cuda_compiler_version != "None" else ("cpu") }}'
    """
    if len(choices) == 1 and choices[0].when is None:
        return quoted(filled(choices[0].value, "${{", names))
    *first, last = choices
    parts = [
        f"({_expression(choice.value, names)}) if {to_expression(choice.when)} else " for choice in first if choice.when
    ]
    nested = "(".join(parts) + f"({_expression(last.value, names)})" + ")" * (len(parts) - 1)
    return f"${{{{ {nested} }}}}"


def exclusive(choices: Sequence[Choice]) -> list[tuple[str, Condition | None]]:
    """The choices with conditions that exclude each other: each value without the builds of those before it."""
    found: list[tuple[str, Condition | None]] = []
    before: list[Condition] = []
    for choice in choices:
        others = None if not before else negated(before[0] if len(before) == 1 else Or(tuple(before)))
        found.append((choice.value, both(choice.when, others)))
        before += [choice.when] if choice.when else []
    return found


def _expression(text: str, names: Mapping[str, str]) -> str:
    """A text with placeholders as an expression."""
    pieces = PLACEHOLDER.split(text)
    parts = []
    for at, piece in enumerate(pieces):
        if at % 2:
            name = names.get(piece, piece)
            parts.append(name if re.fullmatch(r"\w+", name) else f"({name})")
        elif piece:
            parts.append(json.dumps(piece, ensure_ascii=False))
    return " ~ ".join(parts) or '""'


def limits(lower: str | None, upper: str | None, keys: Mapping[str, str]) -> list[str]:
    """The limits of a pin as arguments; `keys` are the names of the arguments for `lower`, `upper`, and, if they are
    versions, `lower version` and `upper version`."""
    found = []
    for side, limit in (("lower", lower), ("upper", upper)):
        if limit == "none":
            found.append(f"{keys[side]}=None")
        elif limit and (name := PLACEHOLDER.fullmatch(limit)):
            found.append(f"{keys[f'{side} version']}={name[1]}")
        elif limit:
            key = keys[side] if LIMIT.fullmatch(limit) else keys[f"{side} version"]
            found.append(f"{key}='{limit}'")
    return found


def verbatim_lines(blocks: Iterable[Verbatim], section: str, recipe_format: str) -> list[str]:
    """The lines of the blocks for a section.

    Raises:
        InputError: a block has no lines for this format.
    """
    lines: list[str] = []
    for block in blocks:
        text = block.v0 if recipe_format == "v0" else block.v1
        if block.section != section:
            continue
        if text is None:
            hint = f"Add the lines of a {recipe_format} recipe as `{recipe_format}:`; empty, if it needs none."
            raise InputError(f"a verbatim block for '{section}' has no lines for {recipe_format}", hint=hint)
        lines += [*(comment(block.why, 0) if block.why and text else ()), *text.splitlines()]
    return lines
