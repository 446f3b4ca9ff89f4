"""YAML that grows, nests or deceives is read or refused in little time and memory, in every schema."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from feedstock_tools.platforms import Platform
from feedstock_tools.rerender.configuration import Configuration
from feedstock_tools.rerender.forge import parse_settings
from feedstock_tools.variants.files import load, load_conditional
from feedstock_tools.yaml_reading.nodes import (
    Schema,
    compose,
    parse_document,
    parse_first,
    parse_json_types,
    parse_texts,
    parse_types,
)
from tests.support.limits import limited, refusal_of


def _doubling(opening: str, closing: str, count: int = 40) -> str:
    lines = (f"g{n}: &g{n} {opening}*g{n - 1}, *g{n - 1}{closing}\n" for n in range(1, count))
    return "g0: &g0 [a, a]\n" + "".join(lines)


KEYS = ", ".join(f"k{n}: v" for n in range(4_900))
#: Texts that must be refused.
REFUSED = {
    "aliases of aliases": _doubling("[", "]"),
    "aliases as keys": "g0: &g0 {a: b}\n" + "".join(f"g{n}: &g{n} {{? *g{n - 1} : *g{n - 1}}}\n" for n in range(1, 40)),
    "merges of one mapping": f"a: &a {{{KEYS}}}\n" + "b: {<<: [*a, *a]}\n" * 1_000,
    "merges of merges": "g0: &g0 {a: 1}\n"
    + "".join(f"g{n}: &g{n} {{<<: [*g{n - 1}, *g{n - 1}], k{n}: 1}}\n" for n in range(1, 40)),
    "a list in itself": "a: &a [*a]\n",
    "a mapping in itself": "a: &a {b: *a}\n",
    "a mapping merged into itself": "a: &a {<<: *a}\n",
    "brackets": "a: " + "[" * 50_000,
    "braces": "a: " + "{a: " * 5_000 + "}" * 5_000,
    "indentation": "".join(f"{' ' * n}a:\n" for n in range(700)),
    "dashes": "- " * 5_000 + "a",
    "question marks": "? " * 5_000 + "a",
    "two documents": "a: 1\n---\nb: 2\n",
    "an unknown alias": "a: *b\n",
    "a tab": "a:\n\t- b\n",
    "a directive": "%YAML 9.9\n---\na: 1\n",
    "an open string": "a: 'b" + "c" * 400_000,
    "control characters": "a: \x07\n",
}
SCHEMAS = tuple(Schema)


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("schema", SCHEMAS, ids=[schema.value for schema in SCHEMAS])
def test_text_that_grows_or_is_not_yaml_is_refused(text: str, schema: Schema) -> None:
    assert refusal_of(lambda: compose(text, Path("a.yaml"), schema))


READERS: dict[str, Callable[[str, Path], object]] = {
    "texts": parse_texts,
    "types": parse_types,
    "json": parse_json_types,
    "first": parse_first,
    "settings": parse_settings,
    "document": parse_document,
    "variants": lambda text, path: load(_written(path, text), Platform.parse("linux-64")),
    "conditional": lambda text, path: load_conditional(_written(path, text), Platform.parse("linux-64")),
    "configuration": lambda text, path: Configuration.from_file(_written(path.with_name("linux_64_.yaml"), text)),
}
#: Texts that some readers accept; none of them may take long, or raise an error that is not ours.
DECEIVING = {
    "many lines": "a:\n" + "- b\n" * 5_000,
    "many keys": "".join(f"k{n}: v\n" for n in range(2_500)),
    "equal keys": "a: 1\n" * 2_500,
    "a long key": f"{'a' * 200_000}: 1\n",
    "a long number": f"a: {'9' * 200_000}\n",
    "a number in base 60": f"a: {':'.join(['59'] * 2_000)}\n",
    "an infinite number": "a: 1e999999999\nb: .inf\nc: .nan\n",
    "dates that do not exist": "a: 2020-99-99\nb: 0000-01-01\nc: 2020-01-01T00:00:00+99:99\n",
    "a Python object": "a: !!python/object/apply:os.system ['touch /tmp/pwned']\n",
    "binary": "a: !!binary '%%%'\n",
    "sets and pairs": "a: !!set {b, c}\nd: !!omap [e: f]\n",
    "unhashable keys": "? [a, b]\n: c\n? {d: e}\n: f\n",
    "null keys": "~: 1\n'': 2\n",
    "halves of characters": 'a: "\\ud800"\n',
    "escape sequences": 'a: "\\x1b[2J"\n"\\x1b]0;x\\x07": b\n',
    "other line breaks": "a: 1\x85b: 2\u2028c: 3\u2029d: 4\n",
    "a byte order mark in the middle": "a: 1\n\ufeffb: 2\n",
    "blocks": "a: |9\n         b\nc: >-\n  d\n" * 1_000,
    "comments": "#" * 200_000 + "\na: 1  # [linux]\n",
    "selectors": "a:\n" + "  - b  # [linux and not (win or osx)]\n" * 4_000,
}


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize("text", [*DECEIVING.values(), *REFUSED.values()], ids=[*DECEIVING, *REFUSED])
def test_every_reader_reads_or_refuses_at_once(tmp_path: Path, text: str) -> None:
    with limited(seconds=3):
        for reader in READERS.values():
            refusal_of(lambda reader=reader: reader(text, tmp_path / "a.yaml"))  # type: ignore[misc]
