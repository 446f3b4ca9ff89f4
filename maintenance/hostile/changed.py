"""Texts of feedstocks after a few random changes."""

from __future__ import annotations

import random
from collections.abc import Callable

TOKENS = (
    *("{{ ", " }}", "{% for x in range(9) %}", "{% endfor %}", "{% if ", "{% set a = a ~ a %}", "{{ a|join(a) }}"),
    *("${{ ", "[linux]", "  # [", "]", "[py<3 and (", "[not ", "'''", '"', "'", "`", "\\", "|\n", ">\n", "- - - "),
    *("? ", ": ", ":", "&a ", "*a", "<<: *a", "!!python/object:os.system ", "!!binary ", "!!set ", "---\n"),
    *("...\n", "%YAML 1.1\n", "~", "null", "true", "1e999", "-1", "0x10", "9" * 400, "1_000", "2020-01-01", ".inf"),
    *("None", "__class__", "os.environ", "../../x", "/etc/passwd", "..", "a/b", "zip_keys:\n"),
    *("  - [python, numpy]\n", "migrator_ts: 1\n", "operation: key_add\n", "primary_key: python\n", "ordering:\n"),
    *("pin_run_as_build:\n", "extend_keys: [python]\n", "python:\n  - 3.12\n", "skip: true\n", "noarch: python\n"),
    *("outputs:\n", "{{ compiler('cuda') }}", "{{ pin_subpackage('a', exact=True) }}"),
    *("{{ pin_compatible('numpy') }}", "if: ", "then: ", "else: ", "match(python, '<3')", "\x00", "\r", "\r\n"),
    *("\t", "\x0c", "\u2028", "\x85", "\ufeff", "\U0001f600", "\u0130", "[" * 60, "{" * 60, "(" * 200, "a" * 5000),
    *("*" * 40, "#"),
)


def changed(text: str, other: str, chance: random.Random) -> str:
    """`text` after one to four changes; some take a piece of `other`."""
    for _ in range(chance.choice((1, 1, 1, 2, 2, 4))):
        text = chance.choice(CHANGES)(text, other, chance)
    return text


def _span(text: str, chance: random.Random, longest: int = 60) -> tuple[int, int]:
    start = chance.randrange(len(text) + 1)
    return start, min(len(text), start + chance.randrange(longest))


def _insert(text: str, _other: str, chance: random.Random) -> str:
    start, _ = _span(text, chance)
    return text[:start] + chance.choice(TOKENS) + text[start:]


def _replace(text: str, _other: str, chance: random.Random) -> str:
    start, end = _span(text, chance, 12)
    return text[:start] + chance.choice(TOKENS) + text[end:]


def _delete(text: str, _other: str, chance: random.Random) -> str:
    start, end = _span(text, chance)
    return text[:start] + text[end:]


def _repeat(text: str, _other: str, chance: random.Random) -> str:
    start, end = _span(text, chance, 200)
    return text[:start] + text[start:end] * chance.choice((2, 3, 50, 2000)) + text[end:]


def _flip(text: str, _other: str, chance: random.Random) -> str:
    start, _ = _span(text, chance)
    return text[:start] + chr(chance.randrange(256)) + text[start + 1 :]


def _lines(text: str, other: str, chance: random.Random) -> str:
    """Take lines of another file, or of this one from elsewhere, or drop or indent some lines."""
    lines, others = text.splitlines(True), other.splitlines(True)
    at = chance.randrange(len(lines) + 1)
    source = chance.choice((lines, others))
    start = chance.randrange(len(source) + 1)
    piece = source[start : start + chance.randrange(12)]
    indent = " " * chance.randrange(5)
    return "".join([*lines[:at], *(indent + line for line in piece), *lines[at + chance.randrange(4) :]])


def _value(text: str, _other: str, chance: random.Random) -> str:
    """Give a line `key: value` another value."""
    lines = text.splitlines(True)
    places = [at for at, line in enumerate(lines) if ":" in line]
    if places:
        at = chance.choice(places)
        lines[at] = f"{lines[at].split(':')[0]}: {chance.choice(TOKENS)}\n"
    return "".join(lines)


CHANGES: tuple[Callable[[str, str, random.Random], str], ...] = (
    *(_insert, _replace, _delete, _repeat, _flip, _lines, _lines, _value, _value),
)
