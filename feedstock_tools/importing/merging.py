"""Many settings merged into one: lists whose entries, and texts whose values, have the condition of their settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from feedstock_tools.conditions.tree import Condition
from feedstock_tools.importing.inference import Conditions
from feedstock_tools.importing.reading.written_conditions import WrittenConditions

_Item = TypeVar("_Item")
#: An entry and the condition under which it is there; None: always.
Entry = tuple[str, Condition | None]


def merged_order(lists: Sequence[Sequence[_Item]]) -> list[_Item]:
    """All items of several lists, each once, in an order that keeps that of the lists as far as they agree.

    >>> merged_order([["a", "c"], ["b", "c"], ["a", "b"]])
    ['a', 'b', 'c']
    """
    merged: list[_Item] = []
    for items in sorted(dict.fromkeys(map(tuple, lists)), key=len, reverse=True):
        position = 0
        for item in items:
            if item in merged:
                position = max(position, merged.index(item) + 1)
            else:
                merged.insert(position, item)
                position += 1
    return merged


@dataclass(frozen=True)
class Merger:
    """Merges what the settings `among` have; `written` are the conditions that the recipe has."""

    conditions: Conditions
    among: int
    written: WrittenConditions

    def within(self, among: int) -> Merger:
        """The merger for fewer settings."""
        return Merger(self.conditions, self.among & among, self.written)

    def entries(self, lists: Mapping[int, Sequence[str]]) -> list[Entry]:
        """The entries of lists, by setting."""
        numbered = {index: _numbered(items) for index, items in lists.items() if self.among >> index & 1}
        merged: list[Entry] = []
        for text, number in merged_order(list(numbered.values())):
            present = sum(1 << index for index, items in numbered.items() if (text, number) in items)
            condition = self.condition(present, text)
            if not isinstance(condition, str):
                merged.append((text, condition))
        return merged

    def choices(self, values: Mapping[int, str | None]) -> list[Entry]:
        """The values that a text has, by setting; the last stands for all other settings, if there is one in each."""
        known = {index: value for index, value in values.items() if self.among >> index & 1}
        candidates: list[tuple[int, str, Condition | None]] = []
        for value in dict.fromkeys(known.values()):
            if value is None:
                continue
            present = sum(1 << index for index, other in known.items() if other == value)
            condition = self.condition(present, value)
            if not isinstance(condition, str):
                candidates.append((len(repr(condition)) if condition else 0, value, condition))
        candidates.sort(key=lambda candidate: candidate[0])
        entries: list[Entry] = [(value, condition) for _, value, condition in candidates]
        if len(entries) > 1 and None not in known.values():
            entries[-1] = (entries[-1][0], None)
        return entries

    def condition(self, present: int, text: str = "") -> Condition | str | None:
        """The condition that holds in the settings `present`; `inference.NEVER` if there are none."""
        return self.conditions.of(present, self.among, self.written.near(text) if text else ())


def _numbered(items: Sequence[str]) -> list[tuple[str, int]]:
    """Each item with the number of times that it occurred before."""
    counts: dict[str, int] = {}
    numbered = []
    for item in items:
        numbered.append((item, counts.get(item, 0)))
        counts[item] = counts.get(item, 0) + 1
    return numbered
