"""Write a configuration as PyYAML's `dump(…, default_flow_style=False)` does, without its cost per scalar."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

__all__ = ["dump_mapping"]

_WIDTH = 80


@lru_cache(maxsize=16384)
def _scalar(text: str, plain_booleans: bool) -> str:
    import yaml

    if plain_booleans and text in ("true", "false"):
        return text
    rendered = yaml.dump(text, default_flow_style=True, width=float("inf"), allow_unicode=None)
    return rendered.removesuffix("\n").removesuffix("\n...")


def _needs_yaml(value: Any) -> bool:
    """Only a text that PyYAML may fold or write over several lines depends on the column where it stands."""
    if isinstance(value, str):
        return len(value) > _WIDTH - 30 or "\n" in value or not value.isascii()
    if isinstance(value, Mapping):
        return any(_needs_yaml(k) or _needs_yaml(v) for k, v in value.items())
    return any(_needs_yaml(item) for item in value)


def dump_mapping(content: Mapping[str, Any], *, plain_booleans: bool) -> bytes:
    """The YAML text of lists of strings, of `zip_keys` (lists of lists) and `pin_run_as_build` (mappings of mappings).

    Keys are sorted but within `pin_run_as_build`, whose order the caller chose. `plain_booleans` writes the strings
    `true` and `false` without quotes.
    """
    if _needs_yaml(content):
        return _dump_with_yaml(content, plain_booleans)
    lines: list[str] = []
    for key in sorted(content):
        value = content[key]
        lines.append(f"{_scalar(key, False)}:")
        if isinstance(value, Mapping):
            for name, pin in value.items():
                lines.append(f"  {_scalar(name, False)}:")
                lines.extend(f"    {_scalar(k, False)}: {_scalar(v, False)}" for k, v in pin.items())
            continue
        for item in value:
            if isinstance(item, str):
                lines.append(f"- {_scalar(item, plain_booleans)}")
            else:
                marks = ["- -", *["  -"] * (len(item) - 1)]
                lines.extend(f"{mark} {_scalar(member, False)}" for mark, member in zip(marks, item, strict=True))
    return ("\n".join(lines) + "\n").encode() if lines else b"{}\n"


def _dump_with_yaml(content: Mapping[str, Any], plain_booleans: bool) -> bytes:
    import yaml

    class Dumper(yaml.Dumper):
        """PyYAML's own, with mappings in the order given and lists never shared by anchors."""

        def ignore_aliases(self, data: object) -> bool:
            return True

    def typed(value: Any) -> Any:
        if isinstance(value, str):
            return value == "true" if plain_booleans and value in ("true", "false") else value
        return [typed(item) for item in value] if not isinstance(value, Mapping) else dict(value)

    ordered = {key: typed(content[key]) for key in sorted(content)}
    return yaml.dump(ordered, Dumper=Dumper, default_flow_style=False, sort_keys=False).encode()
