"""Build strings that a recipe leaves to its build tool: where the two tools name packages differently.

conda-build begins them with `py312` if Python is required in host and run, rattler-build if the output uses the key
`python` of its variant, and with `np2` if it uses `numpy`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from feedstock_tools.to_v1.layout import Dict, Key, List, Scalar, Value
from feedstock_tools.to_v1.template.conditions import When, negated

_PYTHON = re.compile(r"\bpython\b(?!_)")
_DIGITS = re.compile(r"(\d+)\.(\d+)[.\d]*(?:\.?\*)?")


def default_string(sections: Sequence[Key], noarch: str | None) -> str:
    """The build string that conda-build gives an output with these requirements, as a template."""
    return f"{_prefix(sections, noarch)}h{{{{ hash }}}}_{{{{ build_number }}}}"


def _prefix(sections: Sequence[Key], noarch: str | None) -> str:
    base = _items(sections, "host") or _items(sections, "build")
    python = [text for text, _ in base if text.split()[0] == "python"]
    if not python or not any(text.split()[0] == "python" for text, _ in _items(sections, "run")):
        return ""
    if noarch == "python":
        return "py"
    version = python[0].partition(" ")[2]
    if match := _DIGITS.fullmatch(version):
        return f"py{match[1]}{match[2]}"
    named = re.fullmatch(r"=?\$\{\{ (\w+) \}\}(?:\$\{\{ \w+ \}\})?(?:\.\*)?", version)
    return f"py{{{{ {named[1] if named else 'python'} | version_to_buildstring }}}}"


def build_only(sections: Sequence[Key], others: Sequence[Value]) -> tuple[str, ...]:
    """The languages that an output requires in build alone, as for cross builds.

    conda-build does not build such an output once for each of their versions (`ignore_build_only_deps`); rattler-build
    does, unless the recipe ignores the key.
    """
    mentioned = [text for value in others for text in _conditions(value)]
    names = []
    for name in ("python", "numpy"):
        elsewhere = [text for section in ("host", "run") for text, _ in _items(sections, section)]
        required = any(text.strip() == name for text, _ in _items(sections, "build"))
        used = any(re.search(rf"\b{name}\b(?!_)", text) for text in mentioned)
        if required and not used and not any(text.split()[0] == name for text in elsewhere):
            names.append(name)
    return tuple(names)


def unnamed_where(strings: Sequence[tuple[When, str]], sections: Sequence[Key], others: Sequence[Value]) -> When | None:
    """The condition where an output uses no Python although its build string names it elsewhere; None if there is none.

    rattler-build considers a key used if any build string names it, and builds the output once for each Python.

    Args:
        strings: the build strings with their conditions.
        sections: the requirements of the output.
        others: its other parts.
    """
    naming = [when for when, text in strings if _PYTHON.search(text)]
    not_naming = [when for when, text in strings if not _PYTHON.search(text)]
    required = [text for key in sections for text, _ in _items(sections, key.name)]
    mentioned = [text for value in others for text in _conditions(value)]
    if not naming or not not_naming or any(_PYTHON.search(text) for text in (*required, *mentioned)):
        return None
    shared = [term for term in not_naming[0] if all(term in when for when in not_naming)]
    apart = [term for term in shared if all(negated((term,))[0] in when for when in naming)]
    return (apart[0],) if apart else None


def is_named_alike(sections: Sequence[Key], others: Sequence[Value], noarch: str | None) -> bool:
    """Whether rattler-build names an output as conda-build does.

    Args:
        sections: the requirements of the output, those of the output that it inherits from included.
        others: the other parts of the output, whose conditions and templates can use variants.
    """
    if noarch:
        return noarch == "python" or not _prefix(sections, noarch)
    used = [item for name in ("build", "host") for item in _items(sections, name)]
    if any(text.split()[0] == "numpy" and text.strip() == "numpy" for text, _ in used):
        return False
    bare = [when for text, when in used if text.strip() == "python"]
    prefix = _prefix(sections, noarch)
    mentioned = any(_PYTHON.search(text) for value in others for text in _conditions(value))
    always = any(not when for when in bare)
    if prefix:
        return always and "python |" in prefix
    return not bare and not mentioned


def _items(sections: Sequence[Key], name: str) -> list[tuple[str, tuple[str, ...]]]:
    return [
        (item.value.text, item.when)
        for key in sections
        if key.name == name and isinstance(key.value, List)
        for item in key.value.items
        if isinstance(item.value, Scalar) and item.value.text.split()
    ]


def _conditions(value: Value) -> Iterator[str]:
    """The conditions and templates in a part of a recipe."""
    match value:
        case Scalar():
            yield from re.findall(r"\$\{\{(.*?)\}\}", value.text)
        case List():
            for item in value.items:
                yield from item.when
                yield from _conditions(item.value)
        case Dict():
            for key in value.keys:
                if key.name == "skip" and isinstance(key.value, List):
                    yield from (item.value.text for item in key.value.items if isinstance(item.value, Scalar))
                elif key.name != "tests":
                    yield from _conditions(key.value)
