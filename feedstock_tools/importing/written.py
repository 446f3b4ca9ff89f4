"""What a recipe's text says beside its values: the conditions that it has, and its comments."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from feedstock_tools.conditions.recipes import parse
from feedstock_tools.conditions.spec import WORDS, equal, of_match
from feedstock_tools.conditions.tree import (
    And,
    Compare,
    Condition,
    Constant,
    Match,
    Name,
    Not,
    Operand,
    Or,
    Other,
    VersionTest,
    negated,
)
from feedstock_tools.importing.trees import CLOSE, OPEN

#: The maximum number of lines between a condition and a line of its branch.
_FARTHEST = 40
_SELECTOR = re.compile(r"\[([^\[\]]+)\]\s*$")
_IF = re.compile(r"^\s*-?\s*if:\s*(.+?)\s*$")
_SKIP = re.compile(r"^\s*(?:-|skip:)\s+(.+?)\s*$")
_STATEMENT = re.compile(r"\{%-?\s*(?:el)?if\s+(.+?)\s*-?%\}")
_PLATFORM_KEYS = frozenset({"build_platform", "target_platform", "host_platform"})
_PLATFORMS = {"linux64": "linux-64", "win64": "win-64"}
_SIGNS = ("<", "<=", ">", ">=", "==", "!=")
_SUBJECTS = {"cuda_compiler_version": "cuda", "python": "python"}
#: The beginning of a version of CUDA.
_START = re.compile(r"(.+)\.startswith\(\s*[\"'](\d+)\.*[\"']\s*\)", re.DOTALL)


class _InexpressibleError(ValueError):
    pass


def condition_of(text: str) -> Condition | None:
    """An expression of a recipe as a condition of a spec; None if a spec cannot express it.

    >>> condition_of('unix and (cuda_compiler_version or "").startswith("12")')
    And(parts=(Name(name='unix'), VersionTest(subject='cuda', operator='==', version='12')))
    """
    inner = re.fullmatch(r"\$\{\{(.*)\}\}", text.strip(), re.DOTALL)
    tree = parse((inner[1] if inner else text).strip(), "selector")
    try:
        return None if tree is None else _condition(tree)
    except _InexpressibleError:
        return None


def _bare(text: str) -> str:
    """An expression without its comment and quotes."""
    bare = re.sub(r"\s#\s.*", "", text).strip()
    return bare[1:-1] if bare[:1] == bare[-1:] and bare[:1] in "\"'" and bare.count(bare[:1]) == 2 else bare


class WrittenConditions:
    """The conditions of a recipe that a spec can express: all of them, and those beside a text."""

    def __init__(self, text: str, *, is_v1: bool) -> None:
        self._lines = text.splitlines()
        self._is_v1 = is_v1
        self._by_line: dict[int, list[Condition]] = {}
        for number, line in enumerate(self._lines):
            self._by_line.setdefault(number, []).extend(_on_line(line, is_v1=is_v1))
        self._known: dict[str, list[Condition]] = {}

    @property
    def all(self) -> list[Condition]:
        """Each condition once."""
        return list(dict.fromkeys(condition for conditions in self._by_line.values() for condition in conditions))

    def near(self, text: str) -> list[Condition]:
        """The conditions on lines with the first word of a text, such as a requirement's name.

        In a recipe.yaml those of the nearest `if:` above count, too.
        """
        bare = text.strip(f"{OPEN}{CLOSE}")
        word = bare.split(" ")[-1 if text.startswith(OPEN) else 0] if bare else ""
        if word not in self._known:
            numbers = [number for number, line in enumerate(self._lines) if word and word in line]
            conditions = [condition for number in numbers for condition in self._at(number)]
            self._known[word] = list(dict.fromkeys(conditions))
        return self._known[word]

    def _at(self, number: int) -> list[Condition]:
        conditions = self._by_line[number]
        if not self._is_v1:
            return conditions
        indent = _indent(self._lines[number])
        for above in range(number, max(number - _FARTHEST, -1), -1):
            if self._by_line[above] and _indent(self._lines[above]) < indent:
                return [*conditions, *self._by_line[above]]
        return conditions


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _on_line(line: str, *, is_v1: bool) -> Iterator[Condition]:
    for pattern in (_IF, _SKIP) if is_v1 else (_SELECTOR, _STATEMENT):
        match = pattern.search(line.rstrip())
        if match and (condition := condition_of(_bare(match[1]) if is_v1 else match[1])) is not None:
            yield condition


def _condition(tree: Condition) -> Condition:
    match tree:
        case And(parts):
            return And(tuple(map(_condition, parts)))
        case Or(parts):
            return Or(tuple(map(_condition, parts)))
        case Not(part):
            return negated(_condition(part))
        case Name(name) if name in WORDS or name in _PLATFORMS:
            return Name(_PLATFORMS.get(name, name))
        case Name(key) if re.fullmatch(r"is_\w+", key):
            return equal(key, "true")
        case Compare(left, sign, right) if sign in _SIGNS:
            return _compared(left, sign, right)
        case Match(key) if key in _SUBJECTS and (tests := of_match(tree, _SUBJECTS[key])) is not None:
            return tests
        case Other(text):
            call = _START.fullmatch(text)
            if call and _is_cuda(parse(call[1], "selector")):
                return VersionTest("cuda", "==", call[2])
    raise _InexpressibleError


def _is_cuda(part: Condition | Operand | None) -> bool:
    """Whether a value is the version of CUDA, with a default or without."""
    if isinstance(part, Other):
        part = parse(part.text, "selector")
    if isinstance(part, Or):
        return _is_cuda(part.parts[0])
    return part == Name("cuda_compiler_version")


def _compared(left: Operand, sign: str, right: Operand) -> Condition:
    if isinstance(left, Constant) and isinstance(right, Name) and sign in ("==", "!="):
        left, right = right, left
    if _is_cuda(left):
        left = Name("cuda_compiler_version")
    match left, right:
        case Name(first), Name(second) if {first, second} <= _PLATFORM_KEYS:
            if first == second or "build_platform" not in (first, second) or sign not in ("==", "!="):
                raise _InexpressibleError
            return Name("cross") if sign == "!=" else Not(Name("cross"))
        case Name("target_platform" | "host_platform"), Constant(str(subdir)) if sign in ("==", "!="):
            if subdir not in WORDS:
                raise _InexpressibleError
            return Name(subdir) if sign == "==" else Not(Name(subdir))
        case Name("py"), Constant(int(number)) if 27 <= number < 400:
            return VersionTest("python", sign, f"{str(number)[0]}.{str(number)[1:]}")
        case Name("cuda_compiler_version"), Constant(str(value)) if sign in ("==", "!="):
            same = Not(Name("cuda")) if value in ("None", "") else VersionTest("cuda", "==", value)
            return same if sign == "==" else negated(same)
        case Name(key), Constant(str() | int() as value) if sign in ("==", "!="):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if key in WORDS or key == "python" or '"' in text:
                raise _InexpressibleError
            return equal(key, text) if sign == "==" else Not(equal(key, text))
    raise _InexpressibleError


_ITEM = re.compile(r"^\s*-\s+(?:if:|then:)?\s*(.*?)\s*(?:#.*)?$")
_NAME = re.compile(r"[A-Za-z_][\w./-]*")
#: Characters with which a comment could mean something to a template or a selector.
_MEANING = re.compile(r"[{}\[\]]")


class Comments:
    """Comments above list items whose first word occurs in no other item; others have no certain place in a spec."""

    def __init__(self, text: str) -> None:
        lines = text.splitlines()
        items = [_word(line) for line in lines]
        counts = Counter(word for word in items if word)
        self.lines = sum(1 for line in lines if _is_comment(line))
        self._above: dict[str, list[str]] = {}
        for number, word in enumerate(items):
            above = _above(lines, number)
            if word and counts[word] == 1 and above and not any(map(_MEANING.search, above)):
                self._above[word] = above
        self.taken = 0

    def take(self, text: str) -> str | None:
        """The comment above the item that begins with the first word of a text."""
        name = _NAME.search(text)
        return self._taken(name[0]) if name else None

    def take_output(self, name: str) -> str | None:
        """The comment above an output."""
        return self._taken(f"name: {name}")

    def _taken(self, word: str) -> str | None:
        above = self._above.pop(word, None)
        if above is None:
            return None
        self.taken += len(above)
        return " ".join(above)


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#") and bool(line.strip("# \t"))


def _word(line: str) -> str:
    item = _ITEM.match(line)
    text = item[1] if item else ""
    name = _NAME.match(text.removeprefix("name:").strip("\"' "))
    return "" if not name else f"name: {name[0]}" if text.startswith("name:") else name[0]


def _above(lines: list[str], number: int) -> list[str]:
    """The lines of comment directly above a line, at its indentation."""
    indent = len(lines[number]) - len(lines[number].lstrip())
    comments: list[str] = []
    for line in reversed(lines[:number]):
        if not _is_comment(line) or len(line) - len(line.lstrip()) != indent:
            break
        comments.insert(0, line.strip("# \t"))
    return comments
