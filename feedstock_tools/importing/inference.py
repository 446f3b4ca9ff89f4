"""Many settings merged into one, under conditions inferred from the settings in which something holds.

A set of settings is a number with a bit for each. Conditions that the recipe itself has come first, then single words
and comparisons, then pairs of these, and last a tree of them, which always exists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Literal, TypeVar

from feedstock_tools.conditions.spec import equal, holds
from feedstock_tools.conditions.tree import And, Compare, Condition, Constant, Name, Not, Or, VersionTest, both, negated
from feedstock_tools.errors import InputError
from feedstock_tools.importing.samples import Sample
from feedstock_tools.importing.written import WrittenConditions
from feedstock_tools.versions import parse_version

#: The answer for something that holds in none of the settings.
NEVER: Literal["never"] = "never"
#: Pairs consist of conditions among this many of the simplest ones.
_MOST_PAIRED = 120


def mask_of(settings: Iterable[int]) -> int:
    """A set of settings as a number."""
    return sum(1 << index for index in settings)


class Conditions:
    """The conditions that distinguish some settings, each with the settings in which it holds."""

    def __init__(self, samples: Sequence[Sample], written: Iterable[Condition], path: Path) -> None:
        self._samples, self._path = tuple(samples), path
        self.everywhere = (1 << len(self._samples)) - 1
        self._known: dict[int, Condition] = {}
        self._order: list[tuple[int, Condition]] = []
        own = [condition for base in written for condition in (base, negated(base))]
        atoms = [condition for atom in _atoms(self._samples) for condition in (atom, negated(atom))]
        weighed = [(leaves(condition), 0, condition) for condition in own]
        weighed += [(leaves(condition), 1, condition) for condition in atoms]
        for _, _, condition in sorted(weighed, key=lambda entry: entry[:2]):
            self._add(condition)
        self._answers: dict[tuple[int, int], Condition | None] = {}

    def _add(self, condition: Condition) -> None:
        mask = self.mask(condition)
        if mask not in self._known and mask not in (0, self.everywhere):
            self._known[mask] = condition
            self._order.append((mask, condition))

    def mask(self, condition: Condition | None) -> int:
        """The settings in which a condition holds."""
        return mask_of(index for index, sample in enumerate(self._samples) if holds(condition, sample.setting))

    def of(self, present: int, among: int, near: Sequence[Condition] = ()) -> Condition | Literal["never"] | None:
        """The condition that holds in the settings `present` and in no others of `among`; None if in all of these.

        Args:
            near: conditions that the recipe has near this place; the first that fits is used.
        """
        present &= among
        if present == among:
            return None
        if not present:
            return NEVER
        for condition in near:
            if self.mask(condition) & among == present:
                return condition
        key = (present, among)
        if key not in self._answers:
            self._answers[key] = self._found(present, among)
        return self._answers[key]

    def _found(self, present: int, among: int) -> Condition | None:
        for mask, condition in self._order:
            if mask & among == present:
                return condition
        for condition in self._pairs(present, among):
            return condition
        return self._tree(present, among)

    def _pairs(self, present: int, among: int) -> Iterator[Condition]:
        simplest = [(mask & among, condition) for mask, condition in self._order[:_MOST_PAIRED]]
        wider = [(mask, condition) for mask, condition in simplest if mask & present == present]
        for (first, left), (second, right) in combinations(wider, 2):
            if first & second == present and (joined := both(left, right)) is not None:
                yield joined
        narrower = [(mask, condition) for mask, condition in simplest if mask and mask & ~present == 0]
        for (first, left), (second, right) in combinations(narrower, 2):
            if first | second == present:
                yield Or((left, right))

    def _tree(self, present: int, among: int, depth: int = 0) -> Condition | None:
        """A tree of questions, each the one that leaves the fewest settings undecided.

        Raises:
            InputError: no question tells some of the settings apart.
        """

        def undecided(mask: int) -> int:
            parts = (among & mask, among & ~mask)
            return sum(part.bit_count() for part in parts if part & present not in (0, part))

        options = [
            (undecided(mask), index) for index, (mask, _) in enumerate(self._order) if among & mask not in (0, among)
        ]
        if not options or depth > 12:
            raise self._alike(present, among)
        mask, question = self._order[min(options)[1]]
        answers: list[Condition] = []
        for side, condition in ((mask, question), (~mask, negated(question))):
            part = among & side
            inner = present & part
            if inner == part:
                answers.append(condition)
            elif inner:
                nested = self._tree(inner, part, depth + 1)
                joined = both(condition, nested)
                answers += [joined] if joined is not None else []
        return answers[0] if len(answers) == 1 else Or(tuple(answers))

    def _alike(self, present: int, among: int) -> InputError:
        one, other = (
            next(sample for index, sample in enumerate(self._samples) if mask >> index & 1)
            for mask in (present, among & ~present)
        )
        hint = "Expected a difference that follows from the platform, CUDA, Python, or the value of another key."
        if unset := sorted(key for key in one.looping if (key in one.variant) != (key in other.variant)):
            hint = f"Expected a value of {', '.join(unset)} in each: set it in the variant file, or give a --pinning."
        return InputError(
            f"the recipe differs between settings that no condition of a spec distinguishes: {one}, and {other}",
            path=self._path,
            hint=hint,
        )


def leaves(condition: Condition) -> int:
    """The weight of a condition: of its words and comparisons; a negation counts a little."""
    match condition:
        case Not(part):
            return leaves(part) + 1
        case And(parts) | Or(parts):
            return 2 * sum(map(leaves, parts))
        case _:
            return 2


def _atoms(samples: Sequence[Sample]) -> Iterator[Condition]:
    """Single words and comparisons, the most usual first."""
    platforms = {sample.setting.platform for sample in samples}
    yield from map(Name, ("linux", "osx", "win", "unix", "cuda"))
    yield from (Name(platform.subdir) for platform in sorted(platforms, key=str))
    yield from map(Name, ("x86_64", "aarch64", "arm64", "ppc64le", "cross"))
    looping = frozenset().union(*(sample.looping for sample in samples))
    cudas = {sample.setting.cuda for sample in samples} - {None} if "cuda_compiler_version" in looping else set()
    yield from _comparisons("cuda", {str(version) for version in cudas})
    if "python" in looping:
        yield from _comparisons("python", {str(sample.setting.python) for sample in samples if sample.setting.python})
    for key in sorted(looping - {"cuda_compiler_version", "python"}):
        for value in sorted({sample.variant[key] for sample in samples if key in sample.variant}):
            if '"' not in value:
                yield equal(key, value)


def _comparisons(subject: str, versions: set[str]) -> Iterator[Condition]:
    plain = [version for version in versions if all(part.isdigit() for part in version.split("."))]
    ordered = sorted(plain, key=parse_version)
    for version in dict.fromkeys(version.split(".")[0] for version in ordered):
        yield VersionTest(subject, "==", version)
        yield VersionTest(subject, ">=", version)
    for version in ordered:
        yield from (
            VersionTest(subject, sign, version) for sign in ((">=", "==") if subject == "python" else ("==", ">="))
        )


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
        return Merger(self.conditions, self.among & among, self.written)

    def entries(self, lists: Mapping[int, Sequence[str]]) -> list[Entry]:
        """The entries of lists, by setting."""
        numbered = {index: _numbered(items) for index, items in lists.items() if self.among >> index & 1}
        merged: list[Entry] = []
        for text, number in merged_order(list(numbered.values())):
            present = mask_of(index for index, items in numbered.items() if (text, number) in items)
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
            present = mask_of(index for index, other in known.items() if other == value)
            condition = self.condition(present, value)
            if not isinstance(condition, str):
                candidates.append((_length(condition), value, condition))
        candidates.sort(key=lambda candidate: candidate[0])
        entries: list[Entry] = [(value, condition) for _, value, condition in candidates]
        if len(entries) > 1 and None not in known.values():
            entries[-1] = (entries[-1][0], None)
        return entries

    def condition(self, present: int, text: str = "") -> Condition | str | None:
        """The condition that holds in the settings `present`; `inference.NEVER` if there are none."""
        return self.conditions.of(present, self.among, self.written.near(text) if text else ())


def _length(condition: Condition | None) -> int:
    """How long a condition is to read; a version counts for more than the value of a key, and a word for least."""
    match condition:
        case None:
            return 0
        case Name(name):
            return 13 + len(name)
        case VersionTest(subject, sign, version):
            return 44 + len(subject + sign + version)
        case Compare(Name(key), _, Constant(value)):
            return 23 + len(f"{key}{value}")
        case Not(part):
            return 10 + _length(part)
        case And(parts) | Or(parts):
            return (11 if isinstance(condition, And) else 10) + sum(2 + _length(part) for part in parts)
    raise TypeError(f"no condition of a spec: {condition}")


def _numbered(items: Sequence[str]) -> list[tuple[str, int]]:
    """Each item with the number of times that it occurred before."""
    counts: dict[str, int] = {}
    numbered = []
    for item in items:
        numbered.append((item, counts.get(item, 0)))
        counts[item] = counts.get(item, 0) + 1
    return numbered
