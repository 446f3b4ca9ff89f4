"""An output of a recipe, seen in many settings, as an output of a spec.

What a spec has no keys for is copied as lines of the recipe's own format, under conditions of that format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from feedstock_tools.conditions.spec import to_expression, to_selector, to_spec
from feedstock_tools.conditions.tree import Condition
from feedstock_tools.facts import load_cuda
from feedstock_tools.generate.texts import v0, v1
from feedstock_tools.generate.texts.lines import quoted
from feedstock_tools.generate.texts.rendering import block_lines
from feedstock_tools.importing.inference import NEVER, Entry, Merger, merged_order
from feedstock_tools.importing.samples import Sample
from feedstock_tools.importing.trees import CLOSE, OPEN, SECTIONS, OutputTree, as_placeholders, mark
from feedstock_tools.importing.written import Comments

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


#: Keys of `about` in either format → the spec's.
ABOUT = {
    **{key: key for key in ("homepage", "license", "license_file", "license_family", "summary", "description")},
    **{key: key for key in ("repository", "documentation", "license_url")},
    **{"home": "homepage", "dev_url": "repository", "doc_url": "documentation"},
}


@dataclass
class Place:
    """A place in a recipe, and what of it the spec cannot hold."""

    name: str
    writer: Writer
    comments: Comments
    verbatim: list[dict[str, str]] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def copy(self, section: str, lines: Sequence[str]) -> None:
        """Put lines into a verbatim block."""
        if lines:
            self.verbatim.append(self.writer.block(section, lines))

    def values(self, title: str, entries: Sequence[Entry], value_of: Callable[[Entry], Any]) -> list[Any]:
        """The spec's entries for those of the recipe; `lost` gets those that the spec cannot hold."""
        values = []
        for entry in entries:
            try:
                values.append(value_of(entry))
            except InexpressibleError as error:
                self.lost.append(f"{self.name}, {title}: {error}")
        return values


Trees = Mapping[int, OutputTree]


def output_content(
    name: str, samples: Sequence[Sample], trees: Trees, merger: Merger, place: Place, *, alone: bool
) -> dict[str, Any]:
    """The content of one output.

    Args:
        trees: the output in each setting that has it.
        merger: for all settings in which the recipe is built.
    """
    building = sum(1 << index for index, tree in trees.items() if not tree.skip)
    own = merger.within(building)
    trees = {index: tree for index, tree in trees.items() if own.among >> index & 1}
    content: dict[str, Any] = {"name": name, "kind": _kind(trees)}
    if why := place.comments.take_output(name):
        content["why"] = why
    version = next(iter(trees.values())).version
    if version != mark("version"):
        content["version"] = text_of(version)
    content |= _number(samples, trees)
    if strings := _strings(samples, trees, own, place):
        content["string"] = strings
    if any(tree.noarch for tree in trees.values()):
        content["noarch"] = next(tree.noarch for tree in trees.values() if tree.noarch)
    content |= _independent(trees, own)
    if script := script_of(samples, trees, own, place):
        content["script"] = script
    content |= _lists(trees, own, place)
    skipped = merger.condition(merger.among & ~building)
    if skipped is not None and not isinstance(skipped, str) and not alone:
        content["skip"] = [to_spec(skipped)]
    if test := _test(trees, own, place):
        content["test"] = test
    if about := about_of(trees[min(trees)].about, place):
        content["about"] = about
    place.copy("build", place.writer.mapping(own, {index: tree.more_build for index, tree in trees.items()}))
    place.copy("top", place.writer.mapping(own, {index: tree.more for index, tree in trees.items()}))
    if place.verbatim:
        content["verbatim"] = place.verbatim
    return content


def _kind(trees: Trees) -> str:
    tree = trees[min(trees)]
    if any(spec.split(" ")[0] == "python" for spec in tree.requirements["host"]):
        return "python"
    has_files = any(tree.script.file or tree.script.commands or tree.files for tree in trees.values())
    return "library" if has_files or any(tree.requirements["host"] for tree in trees.values()) else "metapackage"


def _number(samples: Sequence[Sample], trees: Trees) -> dict[str, Any]:
    differs = {tree.number for index, tree in trees.items() if tree.number not in (None, samples[index].tree.number)}
    own = {tree.number for tree in trees.values()}
    return {"number": str(own.pop())} if differs and len(own) == 1 else {}


def _strings(samples: Sequence[Sample], trees: Trees, merger: Merger, place: Place) -> Any:
    values: dict[int, str | None] = {}
    for index, tree in trees.items():
        text = tree.string
        number = str(samples[index].tree.number if tree.number is None else tree.number)
        if text and text.endswith(f"_{number}"):
            text = text[: -len(number)] + mark("build_number")
        values[index] = text
    strings = place.values(
        "build string", merger.choices(values), lambda entry: conditional("value", text_of(entry[0]), entry[1])
    )
    return strings[0] if len(strings) == 1 and isinstance(strings[0], str) else strings


def _independent(trees: Trees, merger: Merger) -> dict[str, str]:
    present = sum(1 << index for index, tree in trees.items() if tree.independent)
    condition = merger.condition(present)
    if condition == NEVER:
        return {}
    return {"version_independent": "unix or win" if condition is None else to_spec(condition)}  # type: ignore[arg-type]


def requirements_of(trees: Trees, merger: Merger, place: Place) -> dict[str, list[Any]]:
    """The requirements by section."""
    by_section = {}
    for section in SECTIONS:
        entries = merger.entries({index: tree.requirements[section] for index, tree in trees.items()})
        if items := place.values(section, entries, lambda entry: _explained(entry, place)):
            by_section[section] = items
    return by_section


def _explained(entry: Entry, place: Place) -> Any:
    spec_entry = requirement(entry)
    is_package = not isinstance(spec_entry, dict) or "package" in spec_entry
    return explained("package", spec_entry, place.comments.take(entry[0]) if is_package else None)


def ignored(trees: Trees, merger: Merger, place: Place) -> dict[str, list[Any]]:
    """The run exports that outputs ignore."""
    by_key = {}
    for key in ("packages", "exporters"):
        entries = merger.entries({index: tree.ignored[key] for index, tree in trees.items()})
        if items := place.values("ignored run exports", entries, requirement):
            by_key[key] = items
    return by_key


def _lists(trees: Trees, merger: Merger, place: Place) -> dict[str, Any]:
    content: dict[str, Any] = {}

    def globs(entry: Entry) -> Any:
        return conditional("path", text_of(entry[0]), entry[1])

    for key, attribute in (("files", "files"), ("exclude_files", "excluded")):
        entries = merger.entries({index: getattr(tree, attribute) for index, tree in trees.items()})
        content[key] = place.values(key, entries, globs)
    content["requirements"] = requirements_of(trees, merger, place)
    kinds = dict.fromkeys(kind for tree in trees.values() for kind in tree.exports)
    exports = {
        kind: place.values(
            "run exports",
            merger.entries({index: tree.exports.get(kind, ()) for index, tree in trees.items()}),
            requirement,
        )
        for kind in kinds
    }
    content["run_exports"] = exports["weak"] if set(exports) == {"weak"} else exports
    content["ignore_run_exports"] = ignored(trees, merger, place)
    features = merger.entries({index: tree.features for index, tree in trees.items()})
    content["track_features"] = place.values("track_features", features, requirement)
    for key in ("use_keys", "ignore_keys"):
        content[key] = list(merged_order([tree.keys[key] for tree in trees.values()]))
    points = merged_order([tree.entry_points for tree in trees.values()])
    content["entry_points"] = place.values(
        "entry points", [(point, None) for point in points], lambda entry: text_of(entry[0])
    )
    return {key: value for key, value in content.items() if value}


def script_of(samples: Sequence[Sample], trees: Trees, merger: Merger, place: Place) -> Any:
    """The script of an output; one that a spec cannot express goes into a verbatim block."""
    files: dict[str, str] = {}
    for index, tree in trees.items():
        if tree.script.file:
            windows = samples[index].setting.platform.os == "win"
            files["win" if windows else "unix"] = _with_suffix(tree.script.file, windows=windows)
    variables = {
        name: place.values(
            "script variables",
            merger.choices({index: tree.script.variables.get(name) for index, tree in trees.items()}),
            lambda entry: conditional("value", text_of(entry[0]), entry[1]),
        )
        for name in merged_order([list(tree.script.variables) for tree in trees.values()])
    }
    environment = {
        name: choices[0] if len(choices) == 1 and isinstance(choices[0], str) else choices
        for name, choices in variables.items()
    }
    passed = merger.entries({index: tree.script.passed for index, tree in trees.items()})
    if passed and place.writer.recipe_format == "v0":
        place.copy("build", place.writer.texts("script_env", passed))
    commands = merger.entries({index: tree.script.commands for index, tree in trees.items()})
    script: dict[str, Any] = {}
    if files:
        script = dict(files)
    elif commands:
        try:
            if any("\n" in text for text, _ in commands):
                raise InexpressibleError("several lines")
            script = {"commands": [conditional("command", text_of(text), when) for text, when in commands]}
        except InexpressibleError:
            place.copy("build", place.writer.texts("script", commands))
            return None
    if environment and script:
        script["environment"] = environment
    if list(script) == ["unix"]:
        return script["unix"]
    return script["commands"] if list(script) == ["commands"] else script


def _with_suffix(file: str, *, windows: bool) -> str:
    name = file.rpartition("/")[2]
    return file if "." in name else f"{file}.{'bat' if windows else 'sh'}"


def _test(trees: Trees, merger: Merger, place: Place) -> dict[str, Any]:
    content: dict[str, Any] = {}
    lists = {key: {index: tree.tests.get(key, ()) for index, tree in trees.items()} for key in _TEST_ENTRIES}
    for key, entry_of in _TEST_ENTRIES.items():
        entries = merger.entries(lists[key])
        try:
            if key == "commands" and any("\n" in text for text, _ in entries):
                raise InexpressibleError("several lines")
            values = [entry_of(entry) for entry in entries]
        except InexpressibleError:
            if place.writer.recipe_format == "v0":
                place.copy("test", place.writer.texts(key, entries))
            else:
                lines = place.writer.texts("script", entries)
                first, *rest = lines
                place.copy("test", [f"- {first}", *(f"  {line}" for line in rest)])
            continue
        if values:
            content[key] = values
    if any(tree.tests.get("pip_check") for tree in trees.values()):
        content["pip_check"] = "true"
    if place.writer.recipe_format == "v0":
        place.copy("test", place.writer.mapping(merger, {index: tree.more_test for index, tree in trees.items()}))
    else:
        more = {index: tree.more_test.get("tests", []) for index, tree in trees.items()}
        place.copy("test", place.writer.listed(merger, more))
    return content


_TEST_ENTRIES: Mapping[str, Callable[[Entry], Any]] = {
    "imports": lambda entry: conditional("module", text_of(entry[0]), entry[1]),
    "files": lambda entry: text_of(entry[0]),
    "source_files": lambda entry: text_of(entry[0]),
    "requires": requirement,
    "commands": lambda entry: conditional("command", text_of(entry[0]), entry[1]),
}


def about_of(about: Mapping[str, Any], place: Place, version: str = "") -> dict[str, Any]:
    """A description; what has no key in a spec goes into a verbatim block."""
    content: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for key, value in about.items():
        text = value[0] if isinstance(value, list) and len(value) == 1 else value
        name = ABOUT.get(key)
        try:
            if name == "license_file":
                content[name] = [text_of(str(item)) for item in (value if isinstance(value, list) else [value])]
            elif name and isinstance(text, str | int | float) and name not in content:
                content[name] = literal(str(text), version).strip()
            elif value not in (None, "", []):
                others[key] = value
        except InexpressibleError:
            others[key] = value
    block = place.writer.block("about", [line for key, value in others.items() for line in _plain(key, value, place)])
    if others:
        place.verbatim.append(block)
    return content


def _plain(key: str, value: Any, place: Place) -> list[str]:
    from feedstock_tools.generate.texts.rendering import block_lines

    return block_lines(
        {key: [place.writer.templated(str(item)) for item in value] if isinstance(value, list) else value}
    )
