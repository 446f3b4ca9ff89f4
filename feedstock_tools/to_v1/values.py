"""Texts with templates as texts and expressions of a `recipe.yaml`, and one value of several under conditions."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jinja2 import nodes

from feedstock_tools.to_v1.template.conditions import (
    NEVER,
    When,
    all_of,
    are_exhaustive,
    exclude,
    negated,
    without,
)
from feedstock_tools.to_v1.template.expressions import expression_of, parsed, text_parts
from feedstock_tools.to_v1.tree import Leaf, Mapped, Node, Sequenced

#: A value, and the conditions under which it counts.
Choice = tuple[When, str]

#: A template, a word, or a character between words.
_PIECE = re.compile(r"\{\{.*?\}\}|[^\W_]+|.", re.DOTALL)


def template(text: str) -> str:
    """A text of a `meta.yaml`, its expressions already written for rattler-build, as a text of a `recipe.yaml`.

    >>> template("lib{{ name }} >=2")
    'lib${{ name }} >=2'
    """
    parts = text_parts(text)
    return "".join(f"${{{{ {piece} }}}}" if is_template else piece for is_template, piece in parts)


def choices(nodes: Sequence[Node], outer: When) -> list[Choice]:
    """The scalars among nodes, each with its conditions within `outer`."""
    leaves = [node for node in nodes if isinstance(node, Leaf) and node.when != NEVER]
    return [(without(leaf.when, outer), leaf.text) for leaf in leaves if leaf.text]


def scalar(options: Sequence[Choice], default: str | None = None, *, whole: bool = False) -> str | None:
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


def _are_apart(chain: Sequence[Choice]) -> bool:
    return all(exclude(first[0], second[0]) for index, first in enumerate(chain) for second in chain[index + 1 :])


def _chained(chain: Sequence[Choice], default: str | None) -> str:
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


def _covers(chain: Sequence[Choice]) -> bool:
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
    """The keys of a section, each with all its values."""
    return [(name, section.all(name)) for name in dict.fromkeys(name for name, _ in section.entries)]
