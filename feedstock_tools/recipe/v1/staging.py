"""What a rerender keeps of the staging outputs of a `recipe.yaml`.

conda-smithy renders through rattler-build-conda-compat, which first gives the requirements of each staging output to
the outputs that inherit from it, and its sources to those that have none, and then removes it (`outputs.py`,
`flatten_staging_inheritance`). So variables that only its script, environment or other keys use do not count.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import zip_longest
from pathlib import Path

from feedstock_tools.yaml_reading.nodes import Node, compose, is_mapping, items, members, pairs

_KEPT = frozenset({"staging", "requirements", "source"})
_REQUIREMENTS = frozenset({"build", "host"})


def without_staging_builds(text: str, path: Path) -> str:
    """The recipe with blank lines in place of what an inheriting output does not get from a staging output.

    All other lines stay where they are, so that messages name the right ones. A staging output in YAML's flow style
    (`{staging: …}`) is left alone.

    Args:
        path: the recipe, for messages.
    """
    if "staging" not in text:
        return text
    outputs = items(members(compose(text, path)).get("outputs"))
    keys = [members(output) for output in outputs]
    lines = text.split("\n")
    for output, known in zip(outputs, keys, strict=True):
        if "staging" in known and "package" not in known:
            has_heir = _has_heir_without_source(keys, known["staging"])
            _blank(lines, output, _KEPT if has_heir else _KEPT - {"source"})
            if "requirements" in known:
                _blank(lines, known["requirements"], _REQUIREMENTS)
    return "\n".join(lines)


def _has_heir_without_source(outputs: Collection[dict[str, Node]], staging: Node) -> bool:
    """Whether an output that inherits from a staging output has no source of its own."""
    name = members(staging).get("name")
    return any(
        name is not None and "source" not in output and _inherited(output["inherit"]) == name.value
        for output in outputs
        if "inherit" in output
    )


def _inherited(inherit: Node) -> object:
    """The name of the staging output that `inherit: NAME` or `inherit: {from: NAME}` means."""
    given = members(inherit).get("from") if is_mapping(inherit) else inherit
    return None if given is None else given.value


def _blank(lines: list[str], mapping: Node, kept: Collection[str]) -> None:
    """Replace all keys of a mapping in block style but those in `kept`, with their values, by blank lines."""
    if getattr(mapping, "flow_style", False):
        return
    for (key, value), following in zip_longest(pairs(mapping), pairs(mapping)[1:]):
        if key.value in kept:
            continue
        first = key.start_mark.line
        end = following[0].start_mark.line if following else _line_after(value)
        lines[first] = lines[first][: key.start_mark.column].rstrip()
        lines[first + 1 : end] = [""] * (end - first - 1)


def _line_after(value: Node) -> int:
    """The number of lines before the first that does not belong to a node."""
    is_block = value.style in ("|", ">") if value.id == "scalar" else not getattr(value, "flow_style", False)
    line: int = value.end_mark.line
    return line if is_block else line + 1
