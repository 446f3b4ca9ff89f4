"""The sources of a `recipe.yaml`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from feedstock_tools.to_v1.layout import Dict, Item, Key, List, Scalar
from feedstock_tools.to_v1.requirements import items_of
from feedstock_tools.to_v1.template.conditions import NEVER, When, exclude, without
from feedstock_tools.to_v1.template.statements import Problem
from feedstock_tools.to_v1.tree import Mapped, Node, Sequenced
from feedstock_tools.to_v1.values import choices, grouped, scalar

_SOURCE = {
    "url": "url",
    "sha256": "sha256",
    "md5": "md5",
    "path": "path",
    "git_url": "git",
    "git_depth": "depth",
    "fn": "file_name",
    "folder": "target_directory",
}
_COMMIT = re.compile(r"[0-9a-f]{7,40}")


def sources_of(nodes: Sequence[Node], outer: When, problems: list[Problem]) -> Dict | List | None:
    """The sources of a recipe or output."""
    items: list[Item] = []
    is_list = False
    for node in nodes:
        if isinstance(node, Sequenced):
            is_list = True
            found_items = [item for item in node.items if isinstance(item, Mapped)]
            items += [_source(part, outer, problems) for item in found_items for part in _apart(item)]
        elif isinstance(node, Mapped) and node.entries:
            items += [_source(part, outer, problems) for part in _apart(node)]
    items = _with_patches([item for item in items if item.value])
    if len(items) == 1 and not is_list and not items[0].when and isinstance(items[0].value, Dict):
        return items[0].value
    return List(tuple(items)) if items else None


def _apart(source: Mapped) -> Iterator[Mapped]:
    """One source for each kind that it is under conditions of its own, such as a release or a git repository."""
    places = [(name, value.when) for name, value in source.entries if name in {"url", "git_url", "path"}]
    if len({name for name, _ in places}) < 2:
        yield source
        return
    for when in dict.fromkeys(when for _, when in places):
        entries = tuple(pair for pair in source.entries if not exclude(pair[1].when, when))
        yield replace(source, entries=entries, when=when)


def _with_patches(items: Sequence[Item]) -> list[Item]:
    """The sources, with those that have only patches joined to the one before."""
    kept: list[Item] = []
    for item in items:
        assert isinstance(item.value, Dict)  # noqa: S101 - made so above
        if kept and {key.name for key in item.value.keys} == {"patches"} and item.when == kept[-1].when:
            last = kept.pop()
            assert isinstance(last.value, Dict)  # noqa: S101 - made so above
            item = Item(Dict((*last.value.keys, *item.value.keys)), last.when, last.comments)
        kept.append(item)
    return kept


def _source(source: Mapped, outer: When, problems: list[Problem]) -> Item:
    when = without(source.when, outer)
    inner = (*outer, *when)
    keys: list[Key] = []
    for name, values in grouped(source):
        if name == "patches":
            items = items_of(values, inner)
            if items:
                keys.append(Key("patches", List(items), values[0].comments, values[0].remark))
        elif name in {"git_rev", "git_tag", "git_branch"}:
            keys.append(_revision(name, values, inner))
        elif name in _SOURCE:
            keys += _source_key(name, values, inner)
        elif any(value.when != NEVER for value in values):
            problems.append(Problem(values[0].line, f"'source: {name}' has no equivalent in a recipe.yaml"))
    return Item(Dict(tuple(keys)), when, source.comments)


def _source_key(name: str, values: Sequence[Node], outer: When) -> list[Key]:
    comments = tuple(line for value in values for line in value.comments)
    if any(isinstance(value, Sequenced) for value in values):
        return [Key(_SOURCE[name], List(items_of(values, outer)), comments)]
    text = scalar(choices(values, outer))
    if text is None:
        return []
    return [Key(_SOURCE[name], Scalar(text, literal=name == "git_depth"), comments, values[0].remark)]


def _revision(name: str, values: Sequence[Node], outer: When) -> Key:
    """A revision of a git repository: a commit, or a tag."""
    text = scalar(choices(values, outer)) or ""
    kind = {"git_tag": "tag", "git_branch": "branch"}.get(name, "rev" if _COMMIT.fullmatch(text) else "tag")
    return Key(kind, Scalar(text), values[0].comments, values[0].remark)
