"""JSON whose values are not what its readers expect."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping

_PLAIN = (
    *("", "a", "\x1b[31m", "\ud800", "a\nb", "1.2.3", "../x", "x" * 500),
    *(None, True, -1, 2**70, 1e308, float("nan")),
)


def hostile_value(chance: random.Random, depth: int = 2) -> object:
    """A JSON value that the readers of metadata do not expect."""
    if depth <= 0 or chance.random() < 0.5:
        return chance.choice(_PLAIN)
    if chance.random() < 0.5:
        count = chance.choice((0, 1, 3, 20_000))
        return [hostile_value(chance, depth - 1 if count < 9 else 0) for _ in range(count)]
    return {str(chance.choice(_PLAIN)): hostile_value(chance, depth - 1) for _ in range(3)}


def spoiled(known: Mapping[str, object], chance: random.Random, most: int = 2) -> dict[str, object]:
    """A mapping with some values, or some keys, that are not what its reader expects."""
    made = dict(known)
    for key in chance.sample(sorted(made), min(len(made), chance.randrange(most + 1))):
        if chance.random() < 0.2:
            del made[key]
        else:
            made[key] = hostile_value(chance)
    if chance.random() < 0.1:
        made["another"] = hostile_value(chance)
    return made


def as_json(value: object, chance: random.Random) -> bytes:
    """A value as JSON, sometimes nested, cut or with a huge number in it."""
    text = json.dumps(value).encode("utf-8", "surrogatepass")
    kind = chance.randrange(10)
    if kind == 0:
        return b"[" * chance.choice((10, 100_000)) + text
    if kind == 1:
        return text[: chance.randrange(len(text) + 1)]
    if kind == 2:
        return text.replace(b": 0", b": " + b"9" * chance.choice((50, 5000, 500_000)))
    return text
