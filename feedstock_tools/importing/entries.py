"""Requirements and texts of a recipe, with marks, as entries of a spec."""

from __future__ import annotations

import re
from typing import Any

from feedstock_tools.conditions.spec import to_spec
from feedstock_tools.importing.merging import Entry
from feedstock_tools.importing.reading.marks import CLOSE, OPEN, as_placeholders

_CALL = re.compile(f"{OPEN}(compiler|stdlib|cdt) ([^{OPEN}{CLOSE}]+){CLOSE}")
_PIN = re.compile(f"{OPEN}pin (subpackage|compatible) ([^;{OPEN}{CLOSE}]+)([^{OPEN}{CLOSE}]*){CLOSE}")
_BOUNDS = {"min_pin": "min", "lower_bound": "min", "max_pin": "max", "upper_bound": "max"}


class InexpressibleError(ValueError):
    """A spec cannot express a text: it has braces or templates of its own."""


def text_of(text: str) -> str:
    """A text with a spec's placeholders.

    Raises:
        InexpressibleError: a spec would read it as something else.
    """
    converted = as_placeholders(text)
    if converted is None:
        raise InexpressibleError(text)
    return converted


def literal(text: str, version: str) -> str:
    """A text with placeholders, also for the version where it is written out.

    Raises:
        InexpressibleError: as for `text_of`.
    """
    value = text_of(text)
    return value if len(version) < 3 else re.sub(rf"(?<![\w.]){re.escape(version)}(?![\w])", "{version}", value)


def requirement(entry: Entry) -> Any:
    """A requirement and its condition: a text, or a mapping.

    Raises:
        InexpressibleError: a spec cannot express it.
    """
    text, condition = " ".join(entry[0].split()), entry[1]
    call = _CALL.fullmatch(text)
    pin = _PIN.fullmatch(text)
    if call:
        return conditional(call[1], call[2], condition, short=False)
    if not pin:
        return conditional("package", text_of(text), condition)
    item: dict[str, Any] = {"pin" if pin[1] == "subpackage" else "compatible": pin[2].strip()}
    bounds = dict(part.split("=", 1) for part in pin[3].split(";") if "=" in part)
    if bounds.pop("exact", "False").lower() != "true":
        for name, bound in bounds.items():
            item[_BOUNDS[name]] = "none" if bound in ("None", "") else bound
        if len(item) == 1 and pin[1] == "subpackage":
            item["exact"] = "false"
    return item | ({"when": to_spec(condition)} if condition is not None else {})


def conditional(key: str, value: str, condition: Any, *, short: bool = True) -> Any:
    """An entry of a list: the value alone, or a mapping with its condition."""
    if condition is not None:
        return {key: value, "when": to_spec(condition)}
    return value if short else {key: value}


def explained(key: str, entry: Any, why: str | None) -> Any:
    """An entry of a list with the comment above it."""
    if not why:
        return entry
    return {**(entry if isinstance(entry, dict) else {key: entry}), "why": why}
