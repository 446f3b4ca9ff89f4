"""Write a configuration as PyYAML's `dump(…, default_flow_style=False)` does, without its cost per scalar."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

from feedstock_tools.variants.model import WholeNumber

#: How the strings `true` and `false` are written: without quotes, both as `true` (a fault of one version), or quoted.
Booleans = Literal["quoted", "all true", "plain"]

_WIDTH = 80


@lru_cache(maxsize=16384)
def _scalar(text: str, booleans: Booleans) -> str:
    import yaml

    if booleans != "quoted" and text in ("true", "false"):
        return "true" if booleans == "all true" else text
    rendered = yaml.dump(text, default_flow_style=True, width=float("inf"), allow_unicode=None)
    return rendered.removesuffix("\n").removesuffix("\n...")


def _needs_yaml(value: Any) -> bool:
    """Only the form of a string that PyYAML may fold or write over several lines depends on its column."""
    if isinstance(value, str):
        return len(value) > _WIDTH - 30 or "\n" in value or not value.isascii()
    if isinstance(value, Mapping):
        return any(_needs_yaml(k) or _needs_yaml(v) for k, v in value.items())
    return any(_needs_yaml(item) for item in value)


def dump_mapping(content: Mapping[str, Any], *, booleans: Booleans) -> bytes:
    """The YAML text of lists of strings, of `zip_keys` (lists of lists) and `pin_run_as_build` (mappings of mappings).

    Keys are sorted except in `pin_run_as_build`, which keeps the caller's order. `booleans` determines how the
    strings `true` and `false` are written.
    """
    if _needs_yaml(content):
        return _dump_with_yaml(content, booleans)
    lines: list[str] = []
    for key in sorted(content):
        value = content[key]
        lines.append(f"{_scalar(key, 'quoted')}:")
        if isinstance(value, Mapping):
            for name, pin in value.items():
                lines.append(f"  {_scalar(name, 'quoted')}:")
                lines.extend(f"    {_scalar(k, 'quoted')}: {_scalar(v, 'quoted')}" for k, v in pin.items())
            continue
        for item in value:
            if isinstance(item, str):
                lines.append(f"- {item if isinstance(item, WholeNumber) else _scalar(item, booleans)}")
            else:
                marks = ["- -", *["  -"] * (len(item) - 1)]
                lines.extend(f"{mark} {_scalar(member, 'quoted')}" for mark, member in zip(marks, item, strict=True))
    return ("\n".join(lines) + "\n").encode() if lines else b"{}\n"


def _dump_with_yaml(content: Mapping[str, Any], booleans: Booleans) -> bytes:
    import yaml

    class Dumper(yaml.Dumper):
        """PyYAML's dumper, with mappings in the given order and without anchors for shared lists."""

        def ignore_aliases(self, data: object) -> bool:
            return True

    def typed(value: Any) -> Any:
        if isinstance(value, WholeNumber):
            return int(value)
        if isinstance(value, str):
            plain = booleans != "quoted" and value in ("true", "false")
            return (value == "true" or booleans == "all true") if plain else value
        return [typed(item) for item in value] if not isinstance(value, Mapping) else dict(value)

    ordered = {key: typed(content[key]) for key in sorted(content)}
    return yaml.dump(ordered, Dumper=Dumper, default_flow_style=False, sort_keys=False).encode()
