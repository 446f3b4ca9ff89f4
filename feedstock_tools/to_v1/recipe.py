"""A `meta.yaml` as the text of a `recipe.yaml`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from jinja2 import nodes

from feedstock_tools.errors import InputError
from feedstock_tools.to_v1.about import about_of
from feedstock_tools.to_v1.build import build_of, put_string, script_of, skips_of
from feedstock_tools.to_v1.layout import Dict, Item, Key, List, Scalar, Value, laid_out
from feedstock_tools.to_v1.outputs import Top, outputs_of, stage_of
from feedstock_tools.to_v1.requirements import Given, requirement_sections
from feedstock_tools.to_v1.sources import sources_of
from feedstock_tools.to_v1.string_conditions import with_hoisted_platforms
from feedstock_tools.to_v1.template.context import Entry, context_of, renamed, tags_in
from feedstock_tools.to_v1.template.expressions import UntranslatableError, parsed, text_parts
from feedstock_tools.to_v1.template.flattening import FlatLine, FlatRecipe, flattened
from feedstock_tools.to_v1.template.names import Names
from feedstock_tools.to_v1.template.statements import Problem
from feedstock_tools.to_v1.tests import tests_of
from feedstock_tools.to_v1.tree import Leaf, Mapped, Node, Sequenced, tree_of
from feedstock_tools.to_v1.values import choices, listed, scalar, template

_SECTIONS = frozenset({"package", "source", "build", "requirements", "test", "about", "extra", "outputs"})
_NUMBER = re.compile(r"number:\s*\{\{\s*(\w+)\s*\}\}")
_NUMBER_LINE = re.compile(r"(\s+number:\s*)([^#]*)")
_IN_BUILD = re.compile(r"\s*(?:string|number):")
_SKIP_LINE = re.compile(r"\s*skip:")
#: Several times the largest recipe of conda-forge with its loops written out.
_LARGEST = 2_000_000
_SCRIPTS = ("build.sh", "bld.bat", "build.bat")


@dataclass(frozen=True, slots=True)
class Converted:
    """The text of a `recipe.yaml`, and the parts of the `meta.yaml` that it lacks."""

    text: str
    problems: tuple[Problem, ...]


def recipe_text(text: str, path: Path, names: Names, files: frozenset[str]) -> Converted:
    """Convert a `meta.yaml`.

    Args:
        text: the recipe.
        path: where it is, for messages.
        names: the keys of its variants.
        files: the names of the files beside it.

    Raises:
        InputError: it is an invalid recipe, with the line; or it is too large.
    """
    try:
        return _converted(text, path, names, files)
    except UntranslatableError as error:
        raise InputError(f"cannot be converted: {error}", path=path) from error
    except RecursionError as error:
        raise InputError("cannot be converted: it is nested too deeply", path=path) from error


def _converted(text: str, path: Path, names: Names, files: frozenset[str]) -> Converted:
    flat = flattened(text, path, names)
    used = frozenset(tag for line in flat.lines for part in (line.text, *line.when) for tag in tags_in(part))
    entries, final = context_of(
        flat.variables.versions, names, used, _numbers(flat.lines), shared=_has_outputs(flat.lines)
    )
    lines = [_renamed(line, final) for line in flat.lines]
    if sum(len(line.text) + sum(map(len, line.when)) for line in lines) > _LARGEST:
        raise UntranslatableError(f"it has more than {_LARGEST} characters with its expressions written out")
    lines, numbered = _numbered(lines, entries)
    root = tree_of(_with_words(lines, numbered), path)
    variables = tuple((entry.name, entry.expression) for entry in numbered)
    problems = list(flat.problems)
    given = Given(names, files, variables)
    keys = _keys(root, given, problems)
    keys, platforms = with_hoisted_platforms(keys)
    context = Dict((*_context(numbered).keys, *platforms))
    if context:
        keys.insert(0, Key("context", context))
    written = [*flat.head, *laid_out(Dict((Key("schema_version", Scalar("1", literal=True)), *keys)), spaced=True)]
    written += _last_comments(flat)
    unique = tuple(dict.fromkeys(sorted(problems, key=lambda problem: problem.line)))
    return Converted("".join(f"{line}\n" for line in written), unique)


def _numbered(lines: list[FlatLine], entries: Sequence[Entry]) -> tuple[list[FlatLine], Sequence[Entry]]:
    """The build number as a variable if requirements or tests name it: otherwise only build strings know it."""
    named = [line for line in lines if not _IN_BUILD.match(line.text)]
    if not any(re.search(r"\bbuild_number\b", expression_in(line.text)) for line in named):
        return lines, entries
    places = [index for index, line in enumerate(lines) if _NUMBER_LINE.match(line.text) and not line.when]
    if not places or any(entry.name == "build_number" for entry in entries):
        return lines, entries
    match = _NUMBER_LINE.match(lines[places[0]].text)
    assert match is not None  # noqa: S101 - it matched before
    number = match[2].strip()
    expression = expression_in(number) if "{{" in number else number
    changed = [*lines]
    changed[places[0]] = replace(lines[places[0]], text=f"{match[1]}{{{{ build_number }}}}", comments=())
    return changed, [*entries, Entry("build_number", expression, lines[places[0]].comments)]


def _with_words(lines: Sequence[FlatLine], entries: Sequence[Entry]) -> list[FlatLine]:
    """The lines with the words that conda-build writes for truth values in texts; rattler-build's are lowercase."""
    switches = "|".join(re.escape(entry.name) for entry in entries if entry.expression.lower() in {"true", "false"})
    if not switches:
        return [*lines]
    shown = re.compile(rf"\{{\{{\s*({switches})\s*\}}\}}")
    words = r'{{ "True" if \1 else "False" }}'
    return [line if _SKIP_LINE.match(line.text) else replace(line, text=shown.sub(words, line.text)) for line in lines]


def _has_outputs(lines: Sequence[FlatLine]) -> bool:
    return any(line.text.startswith("outputs:") for line in lines)


def _numbers(lines: Sequence[FlatLine]) -> frozenset[str]:
    """The variables that alone make a build number; and '' if expressions need the name `build_number`."""
    whole = {match[1] for line in lines if (match := _NUMBER.fullmatch(line.text.strip()))}
    needed = any(re.search(r"\bbuild_number\b", expression_in(line.text)) for line in lines)
    return frozenset(whole if len(whole) == 1 or not needed else set()) | ({""} if needed else set())


def expression_in(text: str) -> str:
    """The templates of a text."""
    return " ".join(piece for is_template, piece in text_parts(text) if is_template)


def _renamed(line: FlatLine, final: dict[str, str]) -> FlatLine:
    return replace(line, text=renamed(line.text, final), when=tuple(renamed(part, final) for part in line.when))


def _last_comments(flat: FlatRecipe) -> list[str]:
    """Comments after the last value."""
    last = flat.lines[-1] if flat.lines else None
    return ["", *last.comments] if last is not None and not last.text and last.comments else []


def _context(entries: Sequence[Entry]) -> Dict:
    keys = []
    for entry in entries:
        node = parsed(entry.expression)
        if isinstance(node, nodes.Const):
            is_text = not isinstance(node.value, int)
            text = str(node.value).lower() if isinstance(node.value, bool) else str(node.value)
            value: Value = Scalar(text, literal=not is_text)
        elif isinstance(node, nodes.List) and all(isinstance(item, nodes.Const) for item in node.items):
            texts = [str(item.value) for item in node.items if isinstance(item, nodes.Const)]
            value = List(tuple(Item(Scalar(text)) for text in texts))
        else:
            value = Scalar(f"${{{{ {entry.expression} }}}}")
        keys.append(Key(entry.name, value, entry.comments, entry.remark))
    return Dict(tuple(keys))


def _keys(root: Mapped, given: Given, problems: list[Problem]) -> list[Key]:
    top = _top(root, given)
    has_outputs = bool(top.outputs)
    keys = [_package(root, has_outputs=has_outputs)]
    source = sources_of(root.all("source"), (), problems)
    if source is not None:
        keys.append(Key("source", source, *_notes(root, "source")))
    keys += _several(top, given, problems) if has_outputs else _single(root, given, problems, top.scripts)
    if root.has("about"):
        about = about_of(root.mapping("about"), (), problems)
        if about:
            keys.append(Key("about", about, *_notes(root, "about")))
    if root.has("extra"):
        extra = _copied(root.mapping("extra"))
        if isinstance(extra, Dict) and extra:
            keys.append(Key("extra", extra, *_notes(root, "extra")))
    for name, value in root.entries:
        if name not in _SECTIONS:
            problems.append(Problem(value.line, f"the section '{name}' has no equivalent in a recipe.yaml"))
    return keys


def _notes(root: Mapped, name: str) -> tuple[tuple[str, ...], str]:
    nodes = root.all(name)
    return (nodes[0].comments, nodes[0].remark) if nodes else ((), "")


def _top(root: Mapped, given: Given) -> Top:
    """The top level, with an output that runs its script if none of the recipe's outputs does."""
    scripts = tuple(name for name in _SCRIPTS if name in given.files)
    top = Top(root, scripts, given)
    names = {given.plain(text) for output in top.outputs for _, text in choices(output.all("name"), output.when)}
    own = root.mapping("build").all("script")
    needs_stage = bool(top.outputs) and top.name not in names and bool(scripts or listed(own) or own)
    fills_outputs = any(
        output.has("script") or output.has("files") or output.mapping("build").has("script") for output in top.outputs
    )
    stage = template(f"{top.name}-build") if needs_stage and fills_outputs else ""
    return replace(top, stage=stage)


def _package(root: Mapped, *, has_outputs: bool) -> Key:
    package = root.mapping("package")
    keys = []
    for name in ("name", "version"):
        text = scalar(choices(package.all(name), ()))
        if text is not None:
            keys.append(Key(name, Scalar(text), *_notes(package, name)))
    return Key("recipe" if has_outputs else "package", Dict(tuple(keys)), *_notes(root, "package"))


def _single(root: Mapped, given: Given, problems: list[Problem], scripts: tuple[str, ...]) -> list[Key]:
    section = root.mapping("build")
    build = build_of(section, (), given, problems)
    script = script_of(section.all("script"), section.all("script_env"), (), given, scripts)
    if script is not None:
        build.put(("script",), script, *_notes(section, "script"))
    sections = [*requirement_sections(root.all("requirements"), (), given, problems), *build.exports]
    tests = tests_of(root.all("test"), (), given, problems, files=True)
    put_string(build, section, (), sections, sections, [tests] if tests is not None else [])
    keys = [Key("build", build.section(), *_notes(root, "build"))] if build.keys else []
    if sections:
        keys.append(Key("requirements", Dict(tuple(sections)), *_notes(root, "requirements")))
    if tests is not None:
        keys.append(Key("tests", tests, *_notes(root, "test")))
    return keys


def _several(top: Top, given: Given, problems: list[Problem]) -> list[Key]:
    section = top.root.mapping("build")
    keys = []
    number = scalar(choices(section.all("number"), ()))
    if number is not None:
        keys.append(Key("number", Scalar(number, literal=number.isdecimal()), *_notes(section, "number")))
    skips = skips_of(section.all("skip"), ())
    if skips:
        keys.append(Key("skip", List(skips)))
    shared = [Key("build", Dict(tuple(keys)), *_notes(top.root, "build"))] if keys else []
    stage = stage_of(top, given, problems)
    outputs = outputs_of(top, given, problems)
    items = (stage, *outputs) if stage is not None else outputs
    return [*shared, Key("outputs", List(items, spaced=True), *_notes(top.root, "outputs"))]


def _copied(node: Node) -> Value:
    """A part with the same meaning in both formats."""
    match node:
        case Leaf():
            return Scalar(template(node.text), literal=node.style is None and node.text.lower() in {"true", "false"})
        case Sequenced():
            return List(tuple(Item(_copied(item), (), item.comments, item.remark) for item in node.items))
        case Mapped():
            return Dict(tuple(Key(name, _copied(value), value.comments, value.remark) for name, value in node.entries))
