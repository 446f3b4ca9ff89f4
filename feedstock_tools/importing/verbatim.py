"""What a spec has no keys for, as lines of the recipe's own format under conditions of that format."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from feedstock_tools.conditions.spec import to_expression, to_selector
from feedstock_tools.conditions.tree import Condition
from feedstock_tools.facts import load_cuda
from feedstock_tools.generate.texts import v0, v1
from feedstock_tools.generate.texts.forge import block_lines
from feedstock_tools.generate.texts.lines import quoted
from feedstock_tools.importing.inference import NEVER
from feedstock_tools.importing.merging import Entry, Merger, merged_order
from feedstock_tools.importing.reading.marks import CLOSE, OPEN

_MARK = re.compile(f"{OPEN}([^{OPEN}{CLOSE}]*){CLOSE}")


@dataclass(frozen=True)
class Writer:
    """Writes lines of one format."""

    recipe_format: Literal["v0", "v1"]

    def block(self, section: str, lines: Sequence[str]) -> dict[str, str]:
        """An entry of `verbatim`."""
        return {"section": section, self.recipe_format: "\n".join(lines)}

    def mapping(self, merger: Merger, values: Mapping[int, Mapping[str, Any]]) -> list[str]:
        """The lines of a mapping: each key with its value, by setting."""
        known = {
            index: {key: item for key, item in value.items() if item not in (None, "", [], {})}
            for index, value in values.items()
            if merger.among >> index & 1
        }
        lines: list[str] = []
        for key in merged_order([list(value) for value in known.values()]):
            lines += self._key(key, {index: value[key] for index, value in known.items() if key in value}, merger)
        return lines

    def listed(self, merger: Merger, values: Mapping[int, Sequence[Any]]) -> list[str]:
        """The lines of a list of mappings, by setting."""
        signatures = {index: [json.dumps(sorted(item)) for item in items] for index, items in values.items()}
        lines: list[str] = []
        counts: dict[str, int] = {}
        for signature, condition in merger.entries(signatures):
            number = counts[signature] = counts.get(signature, -1) + 1
            alike = {
                index: [
                    item
                    for item, item_signature in zip(values[index], signatures[index], strict=True)
                    if item_signature == signature
                ]
                for index in values
            }
            chosen = {index: items[number] for index, items in alike.items() if number < len(items)}
            first, *rest = self.mapping(merger.within(sum(1 << index for index in chosen)), chosen)
            lines += self._under([f"- {first}", *(f"  {line}" for line in rest)], condition)
        return lines

    def texts(self, key: str, entries: Sequence[Entry]) -> list[str]:
        """A key with a list of texts."""
        return [f"{key}:", *(line for text, when in entries for line in self._text(text, when))]

    def _key(self, key: str, values: Mapping[int, Any], merger: Merger) -> list[str]:
        present = sum(1 << index for index in values)
        if not any(values.values()) and all(isinstance(value, list | Mapping) for value in values.values()):
            return []
        if all(isinstance(value, list) and all(isinstance(item, str) for item in value) for value in values.values()):
            return self.texts(key, merger.entries(values))
        if all(isinstance(value, Mapping) and value for value in values.values()):
            inner = self.mapping(merger.within(present), values)
            return [f"{key}:", *(f"  {line}" for line in inner)] if inner else []
        dumped = {index: json.dumps(value, default=str) for index, value in values.items()}
        lines: list[str] = []
        for text in dict.fromkeys(dumped.values()):
            where = sum(1 << index for index, other in dumped.items() if other == text)
            condition = merger.condition(where)
            if condition == NEVER:
                continue
            block = self._block({key: json.loads(text)})
            if condition is None or self.recipe_format == "v0":
                lines += self._selected(block, condition)  # type: ignore[arg-type]
            else:
                narrowed = merger.within(present)
                expression = self._inline(
                    narrowed.choices({index: json.loads(other) for index, other in dumped.items()})
                )
                return [f"{key}: {expression}"]
        return lines

    def _inline(self, choices: Sequence[Entry]) -> str:
        """One text of several as an expression of rattler-build."""
        parts = [
            f"{json.dumps(str(text))} if {to_expression(when)} else " for text, when in choices if when is not None
        ]
        last = next((json.dumps(str(text)) for text, when in choices if when is None), '""')
        return f"${{{{ {''.join(parts)}{last} }}}}"

    def _block(self, value: Any) -> list[str]:
        return [line.rstrip() for line in block_lines(self._with_templates(value))]

    def _with_templates(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: self._with_templates(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._with_templates(item) for item in value]
        return self.templated(value) if isinstance(value, str) else value

    def templated(self, text: str) -> str:
        """A text with the format's templates in place of marks."""
        opening, names = ("{{", v0.NAMES) if self.recipe_format == "v0" else ("${{", v1.NAMES)

        def filled(placeholder: re.Match[str]) -> str:
            function, _, argument = placeholder[1].partition(" ")
            if argument and function in ("compiler", "stdlib", "cdt"):
                return f"{opening} {function}('{argument}') }}}}"
            return f"{opening} {names.get(placeholder[1], placeholder[1])} }}}}"

        return _MARK.sub(filled, text)

    def _text(self, text: str, when: Condition | None) -> list[str]:
        written = self.templated(text)
        if "\n" in written:
            item = ["- |", *(f"    {line}".rstrip() for line in written.splitlines())]
        else:
            item = [f"- {quoted(written)}"]
        return [f"  {line}" for line in self._under(item, when)]

    def _under(self, item: Sequence[str], when: Condition | None) -> list[str]:
        if when is None or self.recipe_format == "v0":
            return self._selected(item, when)
        return [f"- if: {quoted(to_expression(when))}", "  then:", *(f"    {line}" for line in item)]

    def _selected(self, lines: Sequence[str], when: Condition | None) -> list[str]:
        if when is None:
            return list(lines)
        versions = tuple(load_cuda().toolkits)
        return [f"{line}  # [{to_selector(when, versions)}]" for line in lines]
