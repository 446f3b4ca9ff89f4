"""Split the variants of a `recipe.yaml` into parts, each rendered on its own.

The engine's time grows with the square of the number of variants it renders at once: a recipe of 20 outputs that loops
over 48 variants takes it minutes, and two seconds one by one. Parts have the same order as the engine's own loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from pathlib import Path

from feedstock_tools.bounds.limits import BoundError, most
from feedstock_tools.errors import InputError

_WORD = re.compile(r"\w+")
#: Fewer variants render faster at once, and more parts than this take longer to hand over than to render.
_WORTH_CUTTING = 8
_MOST_BATCHES = 512
#: The same limit as for a meta.yaml; the engine needs gigabytes for more.
MOST_VARIANTS = 20_000


def batches(
    text: str, values: Mapping[str, Sequence[str]], groups: Sequence[Sequence[str]], path: Path | None = None
) -> Iterator[dict[str, Sequence[str]]]:
    """The values of each part; together, all variants of `values` and the zip `groups`.

    Only keys that the recipe's `text` mentions are split: the engine loops over no others, except compilers.

    Raises:
        InputError: zipped keys have different numbers of values.
        BoundError: there are more than the limit.
    """
    words = set(_WORD.findall(text.replace("-", "_")))
    zipped = {key for group in groups for key in group}
    axes = [tuple(group) for group in groups] + [(key,) for key in values if key not in zipped]
    for group in groups:
        if len({len(values.get(key, ())) for key in group}) > 1:
            raise InputError(f"the zipped keys {', '.join(group)} have different numbers of values", path=path)
    named = sorted(axis for axis in axes if len(values.get(axis[0], ())) > 1 and words.intersection(axis))
    if prod(len(values[axis[0]]) for axis in named) > most(MOST_VARIANTS):
        raise BoundError(f"the recipe loops over more than {MOST_VARIANTS} variants", path=path)
    cut: list[tuple[str, ...]] = []
    count = 1
    for axis in named:
        if count * len(values[axis[0]]) <= _MOST_BATCHES:
            cut.append(axis)
            count *= len(values[axis[0]])
    if count <= _WORTH_CUTTING:
        yield dict(values)
        return
    for rows in product(*(range(len(values[axis[0]])) for axis in cut)):
        chosen = {key: (values[key][row],) for axis, row in zip(cut, rows, strict=True) for key in axis}
        yield {**values, **chosen}
