"""An output of a recipe, seen in many settings, as an output of a spec.

What a spec has no keys for is copied as lines of the recipe's own format, under conditions of that format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from feedstock_tools.conditions.spec import to_expression, to_selector, to_spec
from feedstock_tools.conditions.tree import Condition
from feedstock_tools.digests import is_by_hash
from feedstock_tools.facts.cuda import load_cuda
from feedstock_tools.generate.texts import v0, v1
from feedstock_tools.generate.texts.rendering import block_lines
from feedstock_tools.generate.texts.wording import quoted
from feedstock_tools.importing.comments import Comments
from feedstock_tools.importing.inference import NEVER, Entry, Merger, mask_of, merged_order
from feedstock_tools.importing.samples import Sample
from feedstock_tools.importing.trees import CLOSE, OPEN, OutputTree, as_placeholders, mark
from feedstock_tools.recipe.requirements import SECTIONS

_Read = TypeVar("_Read")
_MARK = re.compile(f"{OPEN}([^{OPEN}{CLOSE}]*){CLOSE}")


@dataclass(frozen=True)
class Writer:
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
            first, *rest = self.mapping(merger.within(mask_of(chosen)), chosen)
            lines += self._under([f"- {first}", *(f"  {line}" for line in rest)], condition)
        return lines

    def texts(self, key: str, entries: Sequence[Entry]) -> list[str]:
        """A key with a list of texts."""
        return [f"{key}:", *(line for text, when in entries for line in self._text(text, when))]

    def _key(self, key: str, values: Mapping[int, Any], merger: Merger) -> list[str]:
        present = mask_of(values)
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
            where = mask_of(index for index, other in dumped.items() if other == text)
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
        syntax = v0.SYNTAX if self.recipe_format == "v0" else v1.SYNTAX

        def filled(placeholder: re.Match[str]) -> str:
            function, _, argument = placeholder[1].partition(" ")
            if argument and function in ("compiler", "stdlib", "cdt"):
                return f"{syntax.opening} {function}('{argument}') }}}}"
            return f"{syntax.opening} {syntax.names.get(placeholder[1], placeholder[1])} }}}}"

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
    """A text with a spec's placeholders."""
    converted = as_placeholders(text)
    if converted is None:
        raise InexpressibleError(text)
    return converted


def literal(text: str, version: str) -> str:
    """A text with placeholders, also for the version where it is written out."""
    value = text_of(text)
    if len(version) < 3 or is_by_hash(value):
        return value
    return re.sub(rf"(?<![\w.]){re.escape(version)}(?![\w])", "{version}", value)


def requirement(entry: Entry) -> Any:
    """A requirement and its condition: a text, or a mapping."""
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
    """An entry of a list with the comment above it, which follows one that it has."""
    if not why:
        return entry
    content = entry if isinstance(entry, dict) else {key: entry}
    return {**content, "why": "\n".join(filter(None, [why, content.get("why")]))}


#: Keys of `about` in either format → the spec's.
ABOUT = {
    **{key: key for key in ("homepage", "license", "license_file", "license_family", "summary", "description")},
    **{key: key for key in ("repository", "documentation", "license_url")},
    **{"home": "homepage", "dev_url": "repository", "doc_url": "documentation"},
}


#: The key of a mapping under which free comments stand, at the place where they are written.
COMMENT = "#"


@dataclass
class Remainder:
    """What the spec cannot hold of the recipe or of one of its outputs: blocks to copy, and what is lost.

    `output` is the output whose comments it has; '' is the recipe, and its only output.
    """

    name: str
    writer: Writer
    comments: Comments
    output: str = ""
    verbatim: list[dict[str, str]] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def copy(self, section: str, lines: Sequence[str]) -> None:
        """Put lines into a verbatim block."""
        if lines:
            self.verbatim.append(self.writer.block(section, lines))

    def values(self, title: str, entries: Sequence[Entry], value_of: Callable[[Entry], Any]) -> list[Any]:
        """The spec's entries for those of the recipe; `lost` gets those that the spec cannot hold."""
        return [value for _, value in self.held(title, entries, value_of)]

    def held(
        self, title: str, entries: Sequence[Entry], value_of: Callable[[Entry], Any]
    ) -> Iterator[tuple[Entry, Any]]:
        """The same beside the recipe's entries."""
        for entry in entries:
            try:
                yield entry, value_of(entry)
            except InexpressibleError as error:
                self.lost.append(f"{self.name}, {title}: {error}")

    def explained(self, section: str, key: str, values: Iterable[tuple[Entry, Any]]) -> list[Any]:
        """Entries of the spec with the comments of the recipe's; a plain text is that `key` of an entry."""
        commented = [
            explained(key, value, self.comments.take(self.output, section, entry[0])) for entry, value in values
        ]
        return self.headed(section, key, commented)

    def headed(self, section: str, key: str, values: list[Any]) -> list[Any]:
        """A list with its comments that belong to none of its entries above the first."""
        if not values:
            return values
        return [explained(key, values[0], self.comments.take_list(self.output, section)), *values[1:]]


@dataclass(frozen=True)
class Seen:
    """An output, or what runs before the outputs, in each setting that has it.

    `merger` merges what it is in those settings; `remainder` takes what the spec cannot hold.
    """

    samples: Sequence[Sample]
    trees: Mapping[int, OutputTree]
    merger: Merger
    remainder: Remainder

    def each(self, read: Callable[[OutputTree], _Read]) -> dict[int, _Read]:
        """One thing of it, by setting."""
        return {index: read(tree) for index, tree in self.trees.items()}

    def entries(self, read: Callable[[OutputTree], Sequence[str]]) -> list[Entry]:
        """The entries of a list, with their conditions."""
        return self.merger.entries(self.each(read))

    def values(
        self, title: str, read: Callable[[OutputTree], Sequence[str]], value_of: Callable[[Entry], Any]
    ) -> list[Any]:
        """The spec's entries for a list."""
        return self.remainder.values(title, self.entries(read), value_of)

    def explained(self, section: str, read: Callable[[OutputTree], Sequence[str]]) -> list[Any]:
        """The spec's requirements for a list of them, with its comments."""
        held = self.remainder.held(section, self.entries(read), requirement)
        return self.remainder.explained(section, "package", held)

    def copy(self, section: str, read: Callable[[OutputTree], Mapping[str, Any]]) -> None:
        """Put keys without a place in a spec into a verbatim block."""
        self.remainder.copy(section, self.remainder.writer.mapping(self.merger, self.each(read)))


def output_content(
    name: str,
    samples: Sequence[Sample],
    trees: Mapping[int, OutputTree],
    merger: Merger,
    remainder: Remainder,
    *,
    alone: bool,
) -> dict[str, Any]:
    """The content of one output.

    Args:
        trees: the output in each setting that has it.
        merger: for all settings in which the recipe is built.
    """
    building = mask_of(index for index, tree in trees.items() if not tree.skip)
    own = merger.within(building)
    trees = {index: tree for index, tree in trees.items() if own.among >> index & 1}
    seen = Seen(samples, trees, own, remainder)
    content: dict[str, Any] = {"name": name, "kind": _kind(trees)}
    if why := None if alone else remainder.comments.take_output(remainder.output):
        content["why"] = why
    version = next(iter(trees.values())).version
    if version != mark("version"):
        content["version"] = text_of(version)
    content |= _number(seen)
    if strings := _strings(seen):
        content["string"] = strings
    if noarch := next((tree.noarch for tree in trees.values() if tree.noarch), None):
        content["noarch"] = noarch
    content |= _independent(seen)
    if script := script_of(seen):
        content["script"] = script
    content |= _lists(seen)
    skipped = merger.condition(merger.among & ~building)
    if skipped is not None and not isinstance(skipped, str) and not alone:
        content["skip"] = remainder.headed("skip", "when", [to_spec(skipped)])
    if test := _test(seen):
        content["test"] = test
    if about := about_of(trees[min(trees)].about, remainder):
        content["about"] = about
    seen.copy("build", lambda tree: tree.more_build)
    seen.copy("top", lambda tree: tree.more)
    if remainder.verbatim:
        content["verbatim"] = remainder.verbatim
    free = [] if alone else remainder.comments.take_rest(remainder.output)
    return {"name": name, **({COMMENT: free} if free else {}), **content}


def _kind(trees: Mapping[int, OutputTree]) -> str:
    tree = trees[min(trees)]
    if any(spec.split(" ")[0] == "python" for spec in tree.requirements["host"]):
        return "python"
    has_files = any(tree.script.file or tree.script.commands or tree.files for tree in trees.values())
    return "library" if has_files or any(tree.requirements["host"] for tree in trees.values()) else "metapackage"


def _number(seen: Seen) -> dict[str, Any]:
    numbers = seen.each(lambda tree: tree.number)
    differs = any(number not in (None, seen.samples[index].tree.number) for index, number in numbers.items())
    own = set(numbers.values())
    return {"number": str(own.pop())} if differs and len(own) == 1 else {}


def _strings(seen: Seen) -> Any:
    values: dict[int, str | None] = {}
    for index, tree in seen.trees.items():
        text = tree.string
        number = str(seen.samples[index].tree.number if tree.number is None else tree.number)
        if text and text.endswith(f"_{number}"):
            text = text[: -len(number)] + mark("build_number")
        values[index] = text
    return _alone(seen.remainder.values("build string", seen.merger.choices(values), _keyed("value")))


def _alone(values: list[Any]) -> Any:
    """A single value without a condition, instead of a list with nothing else."""
    return values[0] if len(values) == 1 and isinstance(values[0], str) else values


def _independent(seen: Seen) -> dict[str, str]:
    condition = seen.merger.condition(mask_of(index for index, tree in seen.trees.items() if tree.independent))
    if condition is None or isinstance(condition, str):
        return {} if condition == NEVER else {"version_independent": "unix or win"}
    return {"version_independent": to_spec(condition)}


def requirements_of(seen: Seen) -> dict[str, list[Any]]:
    by_section = {
        section: seen.explained(section, _under(section, lambda tree: tree.requirements)) for section in SECTIONS
    }
    return {section: items for section, items in by_section.items() if items}


def ignored(seen: Seen) -> dict[str, list[Any]]:
    by_key = {key: seen.explained(key, _under(key, lambda tree: tree.ignored)) for key in ("packages", "exporters")}
    return {key: items for key, items in by_key.items() if items}


def _lists(seen: Seen) -> dict[str, Any]:
    trees = seen.trees.values()
    content: dict[str, Any] = {
        "files": seen.values("files", lambda tree: tree.files, _keyed("path")),
        "exclude_files": seen.values("exclude_files", lambda tree: tree.excluded, _keyed("path")),
        "requirements": requirements_of(seen),
    }
    exports = {
        kind: seen.explained(kind, _under(kind, lambda tree: tree.exports))
        for kind in dict.fromkeys(kind for tree in trees for kind in tree.exports)
    }
    content["run_exports"] = exports["weak"] if set(exports) == {"weak"} else exports
    content["ignore_run_exports"] = ignored(seen)
    content["track_features"] = seen.explained("track_features", lambda tree: tree.features)
    for key in ("use_keys", "ignore_keys"):
        content[key] = merged_order([tree.keys[key] for tree in trees])
    points = merged_order([tree.entry_points for tree in trees])
    content["entry_points"] = seen.remainder.values("entry points", [(point, None) for point in points], _text_of_entry)
    return {key: value for key, value in content.items() if value}


def script_of(seen: Seen) -> Any:
    """The script of an output; one that a spec cannot express goes into a verbatim block."""
    remainder = seen.remainder
    files: dict[str, str] = {}
    for index, tree in seen.trees.items():
        if tree.script.file:
            windows = seen.samples[index].setting.platform.os == "win"
            files["win" if windows else "unix"] = _with_suffix(tree.script.file, windows=windows)
    environment = {
        name: _alone(
            remainder.values(
                "script variables",
                seen.merger.choices({index: tree.script.variables.get(name) for index, tree in seen.trees.items()}),
                _keyed("value"),
            )
        )
        for name in merged_order([list(tree.script.variables) for tree in seen.trees.values()])
    }
    passed = seen.entries(lambda tree: tree.script.passed)
    if passed and remainder.writer.recipe_format == "v0":
        remainder.copy("build", remainder.writer.texts("script_env", passed))
    commands = seen.entries(lambda tree: tree.script.commands)
    script: dict[str, Any] = {}
    if files:
        script = dict(files)
    elif commands:
        try:
            written = [(entry, _command(entry)) for entry in commands]
        except InexpressibleError:
            remainder.copy("build", remainder.writer.texts("script", commands))
            return None
        script = {"commands": remainder.explained("script", "command", written)}
    if environment and script:
        script["environment"] = environment
    if list(script) == ["unix"]:
        return script["unix"]
    return script["commands"] if list(script) == ["commands"] else script


def _with_suffix(file: str, *, windows: bool) -> str:
    name = file.rpartition("/")[2]
    return file if "." in name else f"{file}.{'bat' if windows else 'sh'}"


def _under(
    key: str, read: Callable[[OutputTree], Mapping[str, Sequence[str]]]
) -> Callable[[OutputTree], Sequence[str]]:
    return lambda tree: read(tree).get(key, ())


def _keyed(key: str) -> Callable[[Entry], Any]:
    return lambda entry: conditional(key, text_of(entry[0]), entry[1])


def _text_of_entry(entry: Entry) -> str:
    return text_of(entry[0])


def _command(entry: Entry) -> Any:
    if "\n" in entry[0]:
        raise InexpressibleError("several lines")
    return conditional("command", text_of(entry[0]), entry[1])


def _test(seen: Seen) -> dict[str, Any]:
    remainder = seen.remainder
    content: dict[str, Any] = {}
    for key, entry_of in _TEST_ENTRIES.items():
        if not (entries := seen.entries(_under(key, lambda tree: tree.tests))):
            continue
        try:
            written = [(entry, entry_of(entry)) for entry in entries]
        except InexpressibleError:
            if remainder.writer.recipe_format == "v0":
                remainder.copy("test", remainder.writer.texts(key, entries))
            else:
                first, *rest = remainder.writer.texts("script", entries)
                remainder.copy("test", [f"- {first}", *(f"  {line}" for line in rest)])
            continue
        if key in _EXPLAINED:
            content[key] = remainder.explained(f"test {key}", _EXPLAINED[key], written)
        else:
            content[key] = [value for _, value in written]
    if any(tree.tests.get("pip_check") for tree in seen.trees.values()):
        content["pip_check"] = "true"
    if remainder.writer.recipe_format == "v0":
        seen.copy("test", lambda tree: tree.more_test)
    else:
        more = seen.each(lambda tree: tree.more_test.get("tests", []))
        remainder.copy("test", remainder.writer.listed(seen.merger, more))
    return content


#: Lists of a test whose entries have comments, and the key of an entry that a plain text is.
_EXPLAINED = {"requires": "package", "commands": "command"}
_TEST_ENTRIES: Mapping[str, Callable[[Entry], Any]] = {
    "imports": _keyed("module"),
    "files": _text_of_entry,
    "source_files": _text_of_entry,
    "requires": requirement,
    "commands": _command,
}


def about_of(about: Mapping[str, Any], remainder: Remainder, version: str = "") -> dict[str, Any]:
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
    block = remainder.writer.block(
        "about", [line for key, value in others.items() for line in _plain(key, value, remainder)]
    )
    if others:
        remainder.verbatim.append(block)
    return content


def _plain(key: str, value: Any, remainder: Remainder) -> list[str]:
    from feedstock_tools.generate.texts.rendering import block_lines

    return block_lines(
        {key: [remainder.writer.templated(str(item)) for item in value] if isinstance(value, list) else value}
    )
