"""The comments of a recipe, each with the line that it explains."""

from __future__ import annotations

import re
from collections import Counter

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
