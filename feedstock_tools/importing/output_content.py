"""An output of a recipe, seen in many settings, as an output of a spec."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from feedstock_tools.conditions.spec import to_spec
from feedstock_tools.importing.entries import (
    InexpressibleError,
    conditional,
    explained,
    literal,
    requirement,
    text_of,
)
from feedstock_tools.importing.inference import NEVER
from feedstock_tools.importing.merging import Entry, Merger, merged_order
from feedstock_tools.importing.reading.comments import Comments
from feedstock_tools.importing.reading.marks import mark
from feedstock_tools.importing.reading.samples import Sample
from feedstock_tools.importing.reading.trees import SECTIONS, OutputTree
from feedstock_tools.importing.verbatim import Writer

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
    from feedstock_tools.generate.texts.forge import block_lines

    return block_lines(
        {key: [place.writer.templated(str(item)) for item in value] if isinstance(value, list) else value}
    )
