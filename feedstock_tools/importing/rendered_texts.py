"""What a rendered output has besides requirements: tests, script and description, as lines to compare."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from feedstock_tools.recipe.v0.meta import Meta

#: The parts whose lines are texts.
PARTS = ("tests", "script", "about")
#: A script may be named without its ending, which follows from the platform.
_ENDING = re.compile(r"\.(sh|bat)$")


def texts_of_meta(meta: Meta) -> dict[str, tuple[str, ...]]:
    """Tests, script and description of an output of a `meta.yaml`."""
    own = meta.output.get("test") if meta.is_output else (meta.output.get("test") or meta.data.get("test"))
    about = {**meta.section("about"), **(meta.output.get("about") or {})}
    script = meta.section("build").get("script") or meta.output.get("script")
    return {"tests": _sorted(own), "script": tuple(_script(script)), "about": _sorted(about)}


def texts_of_content(content: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Tests, script and description of an output of a rendered `recipe.yaml`."""
    build = content.get("build")
    script = build.get("script") if isinstance(build, Mapping) else None
    return {
        "tests": _sorted(content.get("tests")),
        "script": tuple(_script(script)),
        "about": _sorted(content.get("about")),
    }


def _script(value: Any) -> Iterator[str]:
    """The lines of a script in order, without blank ones; other keys than its content by their names."""
    if isinstance(value, Mapping):
        file = str(value.get("file") or "")
        yield from [_ENDING.sub("", file)] if file else _script(value.get("content"))
        usual = {"content", "file", *(["interpreter"] if _ENDING.search(file) else [])}
        yield from _lines({key: item for key, item in value.items() if key not in usual})
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            yield from _script(item)
    elif value is not None:
        yield from (_ENDING.sub("", line.rstrip()) for line in str(value).splitlines() if line.strip())


def _sorted(value: Any) -> tuple[str, ...]:
    return tuple(sorted(_lines(value)))


def _lines(value: Any, place: str = "") -> Iterator[str]:
    """Nested values as lines `place: text`; empty ones give no line."""
    if isinstance(value, Mapping):
        for key, child in value.items():
            yield from _lines(child, f"{place}.{key}" if place else str(key))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            yield from _lines(item, place)
    elif value not in (None, ""):
        for line in str(value).splitlines():
            if line.strip():
                yield f"{place}: {' '.join(line.split())}"
