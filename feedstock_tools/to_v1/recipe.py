"""A `meta.yaml` as the text of a `recipe.yaml`, each output with the parts of the top level that conda-build gives it.

(conda_build/metadata.py: get_output_dicts_from_metadata, combine_top_level_metadata_with_output, get_output_metadata.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from jinja2 import nodes

from feedstock_tools.errors import InputError
from feedstock_tools.generate.texts.v1 import AFTER, BEFORE
from feedstock_tools.to_v1.build import (
    Build,
    build_of,
    put_string,
    running,
    script_of,
    skips_of,
    with_hoisted_platforms,
)
from feedstock_tools.to_v1.conditions import NEVER, all_of, negated
from feedstock_tools.to_v1.expressions import Names, UntranslatableError, expression_of, names_in, parsed, text_parts
from feedstock_tools.to_v1.judging import smithy_objections
from feedstock_tools.to_v1.layout import Dict, Item, Key, List, Scalar, Value, keyed, laid_out, with_texts
from feedstock_tools.to_v1.sections import (
    Given,
    about_of,
    files_of,
    requirement_sections,
    sources_of,
    tests_of,
    value_of,
)
from feedstock_tools.to_v1.statements import FlatLine, FlatRecipe, Problem, flattened
from feedstock_tools.to_v1.tree import Leaf, Mapped, Node, Sequenced, choices, listed, template, tree_of
from feedstock_tools.to_v1.variables import Entry, context_of, renamed, tags_in
from feedstock_tools.to_v1.writing import with_defaults

_SECTIONS = frozenset({"package", "source", "build", "requirements", "test", "about", "extra", "outputs"})
_NUMBER = re.compile(r"number:\s*\{\{\s*(\w+)\s*\}\}")
_NUMBER_LINE = re.compile(r"(\s+number:\s*)([^#]*)")
_IN_BUILD = re.compile(r"\s*(?:string|number):")
_SKIP_LINE = re.compile(r"\s*skip:")
#: Several times the largest recipe of conda-forge with its loops written out.
_LARGEST = 2_000_000
_SCRIPTS = ("build.sh", "bld.bat", "build.bat")
_DEFAULT_SCRIPT = Dict.of(file=Scalar("build"))
#: Keys of an output that stand for keys of its section `build`.
_OF_BUILD = ("number", "string", "run_exports", "track_features", "entry_points", "noarch", "noarch_python")
_NOT_INHERITED = frozenset({"entry_points", "run_exports", "script", "noarch", "noarch_python"})
_KNOWN = frozenset(
    {"name", "version", "build", "requirements", "test", "about", "script", "files", "type", "source", "extra"}
    | {"script_interpreter", *_OF_BUILD}
)


@dataclass(frozen=True, slots=True)
class Converted:
    """The text of a `recipe.yaml`, the parts of the `meta.yaml` that it lacks, and what it words otherwise.

    `repeated` counts the lines that loops and macros of the `meta.yaml` repeat.
    """

    text: str
    problems: tuple[Problem, ...]
    notes: tuple[Problem, ...] = ()
    repeated: int = 0


def recipe_text(text: str, path: Path, names: Names, files: frozenset[str]) -> Converted:
    """Convert a `meta.yaml`.

    Args:
        names: the keys of its variants.
        files: the names of the files beside it.
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
    has_outputs = any(line.text.startswith("outputs:") for line in flat.lines)
    entries, final = context_of(flat.variables.versions, names, used, _numbers(flat.lines), shared=has_outputs)
    lines = [_renamed(line, final) for line in flat.lines]
    if sum(len(line.text) + sum(map(len, line.when)) for line in lines) > _LARGEST:
        raise UntranslatableError(f"it has more than {_LARGEST} characters with its expressions written out")
    lines, numbered = _numbered(lines, entries)
    root = tree_of(_with_words(lines, numbered), path)
    flat.problems += _names_of_outputs(lines, numbered) if has_outputs else ()
    numbered = [*_of_package(lines, numbered, root), *numbered]
    variables = tuple((entry.name, entry.expression) for entry in numbered)
    given = Given(names, files, variables, list(flat.problems), is_noarch=not has_outputs and _is_noarch(root, names))
    _ensure_shared(root, given, path)
    keys, platforms = with_hoisted_platforms(_keys(root, given))
    version = Key("schema_version", Scalar("1", literal=True))
    problems, notes = (
        tuple(dict.fromkeys(sorted(found, key=lambda problem: problem.line)))
        for found in (given.problems, (*flat.notes, *given.notes))
    )
    filled = [line.number for line in flat.lines if line.text.strip()]
    converted = Converted("", problems, notes, len(filled) - len(set(filled)))
    attempts = []
    for is_loadable in (False, True):
        context = keyed("context", Dict([*_context(numbered, quoted=is_loadable), *platforms]))
        recipe: Value = Dict([version, *context, *keys])
        if is_loadable:
            recipe = with_texts(recipe, partial(with_defaults, {entry.name for entry in numbered}))
        assert isinstance(recipe, Dict)  # noqa: S101 - a mapping stays one
        written = [*flat.head, *laid_out(recipe, spaced=True), *_last_comments(flat)]
        attempts.append("".join(f"{line}\n" for line in written))
        if not smithy_objections(attempts[-1], path):
            return replace(converted, text=attempts[-1])
    return replace(converted, text=attempts[0])


def _is_noarch(root: Mapped, names: Names) -> bool:
    """Whether a recipe makes a noarch package, which only linux-64 builds."""
    values = [when for when, text in choices(root.mapping("build").all("noarch"), ()) if text]
    return values == [()] and names.values.get("target_platform") == frozenset({"linux-64"})


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


def _of_package(lines: Sequence[FlatLine], entries: Sequence[Entry], root: Mapped) -> Iterator[Entry]:
    """The name and version of the package as variables, where templates name conda-build's: rattler-build has none."""
    named = {name for line in lines for name in _free_names(line.text)} - {entry.name for entry in entries}
    for key in ("name", "version"):
        for _, text in choices(root.mapping("package").all(key), ())[:1] if key in named else ():
            yield Entry(key, expression_of(text), ())


def _names_of_outputs(lines: Sequence[FlatLine], entries: Sequence[Entry]) -> Iterator[Problem]:
    """Lines with conda-build's name of a package, which is another one in each output."""
    if all(entry.name != "name" for entry in entries):
        for line in lines:
            if "name" in _free_names(line.text):
                yield Problem(line.number, "'PKG_NAME' is the name of each output: write the name in its place")


def _free_names(text: str) -> set[str]:
    """The names in the templates of a text."""
    return {name.name for is_template, piece in text_parts(text) if is_template for name in names_in(parsed(piece))}


def _with_words(lines: Sequence[FlatLine], entries: Sequence[Entry]) -> list[FlatLine]:
    """The lines with the words that conda-build writes for truth values in texts; rattler-build's are lowercase."""
    switches = "|".join(re.escape(entry.name) for entry in entries if entry.expression.lower() in {"true", "false"})
    if not switches:
        return [*lines]
    shown = re.compile(rf"\{{\{{\s*({switches})\s*\}}\}}")
    words = r'{{ "True" if \1 else "False" }}'
    return [line if _SKIP_LINE.match(line.text) else replace(line, text=shown.sub(words, line.text)) for line in lines]


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


def _context(entries: Sequence[Entry], *, quoted: bool) -> list[Key]:
    """The entries of the context; `quoted` are texts that conda-smithy would take for numbers without quotes."""
    keys = []
    for entry in entries:
        node = parsed(entry.expression)
        if isinstance(node, nodes.Const):
            is_text = not isinstance(node.value, int)
            text = str(node.value).lower() if isinstance(node.value, bool) else str(node.value)
            value: Value = Scalar(text, literal=not is_text, quoted=is_text and entry.name == "version")
        elif isinstance(node, nodes.List) and all(isinstance(item, nodes.Const) for item in node.items):
            texts = [str(item.value) for item in node.items if isinstance(item, nodes.Const)]
            value = List([Item(Scalar(text)) for text in texts])
        else:
            is_part = isinstance(node, nodes.Getitem | nodes.Filter) and "| int" not in entry.expression
            is_part = is_part and not (isinstance(node, nodes.Filter) and node.name == "split")  # a list of them
            value = Scalar(f"${{{{ {entry.expression} }}}}", quoted=quoted and is_part)
        keys.append(Key(entry.name, value, entry.comments, entry.remark))
    return keys


@dataclass(frozen=True)
class Top:
    """The top level of a recipe.

    `scripts` are the files that conda-build runs for it if it names none; `stage` is the name of the output that runs
    them for all others, '' if there is nothing to run.
    """

    root: Mapped
    scripts: tuple[str, ...]
    given: Given
    stage: str = ""

    @property
    def name(self) -> str:
        """The name of the package of the top level, with templates."""
        return self.name_of(self.root.mapping("package"))

    def name_of(self, package: Mapped) -> str:
        """The name that an output or the section `package` states first."""
        return next((self.given.plain(text) for _, text in choices(package.all("name"), package.when)), "")

    @property
    def named(self) -> tuple[Mapped, ...]:
        """The outputs that have the name of the top level, in some variants at least: its requirements are theirs."""
        return tuple(
            output
            for output in self.outputs
            if self.name in {self.given.plain(text) for _, text in choices(output.all("name"), output.when)}
        )

    @property
    def outputs(self) -> tuple[Mapped, ...]:
        nodes = self.root.all("outputs")
        items = [item for node in nodes if isinstance(node, Sequenced) for item in node.items]
        items += [node for node in nodes if isinstance(node, Mapped)]
        return tuple(item for item in items if isinstance(item, Mapped) and item.when != NEVER)


def _keys(root: Mapped, given: Given) -> list[Key]:
    top = _top(root, given)
    package = root.mapping("package")
    names = [
        key for name in ("name", "version") for key in keyed(name, value_of(package.all(name)), *_notes(package, name))
    ]
    keys = [Key("recipe" if top.outputs else "package", Dict(names), *_notes(root, "package"))]
    keys += keyed("source", sources_of(root.all("source"), (), given), *_notes(root, "source"))
    keys += _several(top) if top.outputs else _single(top)
    keys += keyed("about", about_of(root.mapping("about"), (), given), *_notes(root, "about"))
    keys += keyed("extra", _copied(root.mapping("extra")), *_notes(root, "extra"))
    for name, value in root.entries:
        if name not in _SECTIONS:
            given.problem(value.line, f"the section '{name}' has no equivalent in a recipe.yaml")
    return keys


def _notes(root: Mapped, name: str) -> tuple[tuple[str, ...], str]:
    nodes = root.all(name)
    return (nodes[0].comments, nodes[0].remark) if nodes else ((), "")


def _top(root: Mapped, given: Given) -> Top:
    """The top level, with an output that runs its script if other outputs need what that builds."""
    top = Top(root, tuple(name for name in _SCRIPTS if name in given.files), given)
    has_script = bool(top.scripts) or root.mapping("build").has("script")
    is_shared = has_script and any(map(_is_filled, top.outputs))
    return replace(top, stage=template(f"{top.name}-build") if is_shared else "")


def _is_filled(output: Mapped) -> bool:
    """Whether an output has files of the top level's build, or a script, which finds its files and its work folder."""
    return output.has("script") or output.has("files") or output.mapping("build").has("script")


def _ensure_shared(root: Mapped, given: Given, path: Path) -> None:
    """Refuse what runs the script of the top level in an output of its own in some variants only."""
    top = _top(root, given)
    named = top.named if top.stage else ()
    for output in named:
        if output.when or len(named) > 1 or len(choices(output.all("name"), output.when)) > 1:
            raise InputError(
                f"cannot be converted: the outputs share what the script of '{top.name}' builds, and only some variants"
                " have this output, whose name it has",
                path=path,
                line=output.line,
            )


def _single(top: Top) -> list[Key]:
    root, given = top.root, top.given
    section = root.mapping("build")
    build = build_of(section, (), given)
    script = script_of(section.all("script"), section.all("script_env"), (), given, top.scripts)
    build.put(("script",), script, *_notes(section, "script"))
    requirements = [*requirement_sections(root.all("requirements"), (), given), *build.exports]
    tests = tests_of(root.all("test"), (), given, files=True)
    put_string(build, section, (), requirements, requirements, [tests])
    return [
        *keyed("build", build.section(), *_notes(root, "build")),
        *keyed("requirements", Dict(requirements), *_notes(root, "requirements")),
        *keyed("tests", tests, *_notes(root, "test")),
    ]


def _several(top: Top) -> list[Key]:
    section = top.root.mapping("build")
    shared = keyed("number", value_of(section.all("number"), number=True), *_notes(section, "number"))
    shared += keyed("skip", List(skips_of(section.all("skip"), ())))
    outputs = List([*_stage_of(top), *_outputs_of(top)], spaced=True)
    return [
        *keyed("build", Dict(shared), *_notes(top.root, "build")),
        Key("outputs", outputs, *_notes(top.root, "outputs")),
    ]


def _copied(node: Node) -> Value:
    """A part with the same meaning in both formats."""
    match node:
        case Leaf():
            return Scalar(template(node.text), literal=node.style is None and node.text.lower() in {"true", "false"})
        case Sequenced():
            return List([Item(_copied(item), (), item.comments, item.remark) for item in node.items])
        case Mapped():
            return Dict([Key(name, _copied(value), value.comments, value.remark) for name, value in node.entries])


def _outputs_of(top: Top) -> list[Item]:
    """The outputs of the recipe, including one for the top level where conda-build makes one of it."""
    outputs = list(top.outputs)
    if _needs_outputs(top) and top.name not in map(top.name_of, outputs):
        outputs.append(Mapped((("name", Leaf(top.name, (), top.root.line)),), (), top.root.line))
    return [_output(output, top) for output in outputs]


def _needs_outputs(top: Top) -> bool:
    """Whether the top level requires its outputs, so that conda-build makes it an output of its own."""
    requirements = top.root.mapping("requirements")
    run = [leaf.text for leaf in listed(requirements.all("run"))]
    names = set(map(top.name_of, top.outputs))
    texts = [leaf.text for _, value in requirements.entries for leaf in listed([value])]
    return any(text.split() and top.given.plain(text.split()[0]) in names for text in run) or any(
        text.startswith("{{ pin_subpackage(") for text in texts
    )


def _stage_of(top: Top) -> list[Item]:
    """The output that runs the script of the top level, whose files the others divide among themselves."""
    if not top.stage:
        return []
    build, package = top.root.mapping("build"), top.root.mapping("package")
    script = script_of(build.all("script"), build.all("script_env"), (), top.given, top.scripts or ("build.sh",))
    # rattler-build does not set these for an output that makes no package.
    variables = {
        "PKG_NAME": Scalar(template(top.name)),
        "PKG_VERSION": value_of(package.all("version")),
        "PKG_BUILDNUM": value_of(build.all("number")),
    }
    env = [Key(name, value) for name, value in variables.items() if value]
    nodes = _with_top(top.named[0], top) if top.named else top.root.all("requirements")
    sections = requirement_sections(nodes, (), top.given)
    keys = [
        Key("staging", Dict.of(name=Scalar(top.stage))),
        Key("build", Dict.of(script=_with_env(script or _DEFAULT_SCRIPT, env))),
        *keyed("requirements", Dict([key for key in sections if key.name in {"build", "host"}])),
    ]
    return [Item(Dict(keys))]


def _with_env(script: Value, env: Sequence[Key]) -> Dict:
    """A script with more variables, which do not replace its own."""
    keys = {key.name: key for key in script.keys} if isinstance(script, Dict) else {}
    own = keys.pop("env").value if "env" in keys else Dict(())
    assert isinstance(own, Dict)  # noqa: S101 - made so
    rest = [*keys.values()] if isinstance(script, Dict) else [Key("content", script)]
    return Dict([Key("env", Dict([*{key.name: key for key in (*env, *own.keys)}.values()])), *rest])


def _output(output: Mapped, top: Top) -> Item:
    outer, given = output.when, top.given
    is_top = top.name_of(output) == top.name
    names = output.all("name")
    notes = (names[0].comments, names[0].remark) if len(names) == 1 else ((), "")
    name = Key("name", value_of(names, outer) or Scalar(""), *notes)
    version = keyed("version", value_of(output.all("version"), outer), *_notes(output, "version"))
    keys = [Key("package", Dict([name, *version]))]
    own, script, env = _own_build(output, top, is_top=is_top)
    inherits = bool(top.stage and (is_top or script or output.has("files")))
    if inherits:
        inherit = [Key("from", Scalar(top.stage)), Key("run_exports", Scalar("false", literal=True))]
        keys.append(Key("inherit", Dict(inherit)))
    keys += keyed("source", sources_of(output.all("source"), outer, given))
    build = build_of(own, outer, given)
    default = top.scripts if is_top and not top.stage and not output.has("files") else ()
    run = script_of(script, env, outer, given, default) or (_DEFAULT_SCRIPT if default else None)
    if run and inherits and not output.has("files"):
        run = _listing_own_files(run)
    build.put(("script",), run)
    build.put(("files",), files_of(output.all("files"), outer) or None, _comments(output, "files"))
    _skip_absent(build, output, top)
    requirements, others = _other_sections(output, top, build.exports, is_top=is_top)
    staged = requirement_sections(top.root.all("requirements"), (), replace(given, problems=[])) if inherits else []
    tests = [part.value for part in others if part.name == "tests"]
    put_string(build, own, outer, [*requirements, *staged], [*requirements, *staged], tests)
    keys += [*keyed("build", build.section(), output.mapping("build").comments), *others]
    _report_unknown(output, given, is_top=is_top)
    return Item(Dict(keys), (), output.comments)


def _comments(section: Mapped, name: str) -> tuple[str, ...]:
    return _notes(section, name)[0]


def _report_unknown(output: Mapped, given: Given, *, is_top: bool) -> None:
    for key, value in output.entries:
        if value.when == NEVER:
            continue
        if output.has("build") and not is_top and key in _OF_BUILD and key not in {"number", "entry_points"}:
            given.problem(value.line, f"'{key}' beside 'build', which conda-build ignores: left out")
        if key not in _KNOWN:
            given.problem(value.line, f"an output has no '{key}' in a recipe.yaml")
    for _, kind in choices(output.all("type"), output.when):
        if kind not in {"conda", "conda_v2"}:
            given.problem(output.line, f"an output of the type '{kind}' has no equivalent in a recipe.yaml")


def _skip_absent(build: Build, output: Mapped, top: Top) -> None:
    """Skip an output that exists only under conditions in all other cases: outputs have no `if:`."""
    absent = [Item(Scalar(all_of(negated(output.when))))] if output.when else []
    own = [item for key in build.keys if key.name == "skip" and isinstance(key.value, List) for item in key.value.items]
    if absent or own:
        above = (Item(skip.value) for skip in skips_of(top.root.mapping("build").all("skip"), ()))
        texts: dict[str, Item] = {}
        for item in [*above, *absent, *own]:
            if isinstance(item.value, Scalar):
                texts.setdefault(item.value.text, item)
        build.put(("skip",), List(list(texts.values())))


def _own_build(output: Mapped, top: Top, *, is_top: bool) -> tuple[Mapped, tuple[Node, ...], tuple[Node, ...]]:
    """The effective section `build` of an output, its script, and the variables of the script."""
    above = top.root.mapping("build")
    mine = output.mapping("build")
    own_keys = [(key, value) for key, value in output.entries if key in _OF_BUILD]
    script = (*output.all("script"), *mine.all("script"))
    env = mine.all("script_env")
    if is_top:
        names = {key for key, _ in (*mine.entries, *own_keys)}
        inherited = [(key, value) for key, value in above.entries if key not in names and key != "skip"]
        script = script or (above.all("script") if not top.stage else ())
        env = env or above.all("script_env")
        entries = [*inherited, *own_keys, *mine.entries]
    elif output.has("build"):
        number = [] if mine.has("number") else [pair for pair in own_keys if pair[0] == "number"]
        entries = [*number, *mine.entries]
    else:
        names = {key for key, _ in own_keys}
        inherited = [
            (key, value)
            for key, value in above.entries
            if key not in names and key not in _NOT_INHERITED and key not in {"skip", "number", "script_env"}
        ]
        entries = [*inherited, *own_keys]
    if is_top:
        entries = [pair for pair in entries if pair[0] != "number" or pair[1] not in above.all("number")]
    kept = tuple(pair for pair in entries if pair[0] not in {"script", "script_env"})
    return replace(mine, entries=kept), script, env


def _other_sections(
    output: Mapped, top: Top, exports: Sequence[Key], *, is_top: bool
) -> tuple[Sequence[Key], list[Key]]:
    """The requirements of an output, and its sections besides `build`."""
    given = top.given
    nodes: tuple[Node, ...] = output.all("requirements")
    if is_top:
        nodes = _with_top(output, top)
    requirements = [*requirement_sections(nodes, output.when, given), *exports]
    tests = output.all("test") or (top.root.all("test") if is_top else ())
    tested = tests_of(tests, output.when, given, files=is_top)
    about, above = output.mapping("about"), top.root.mapping("about")
    if about.entries and {name for name, _ in above.entries} - {name for name, _ in about.entries}:
        given.note(
            above.line, "an output with an 'about' of its own has what it lacks from here; conda-build leaves it out"
        )
    return requirements, [
        *keyed("requirements", Dict(requirements), _comments(output, "requirements")),
        *keyed("tests", tested, tests[0].comments if tests else ()),
        *keyed("about", about_of(about, output.when, given), _comments(output, "about")),
    ]


def _with_top(output: Mapped, top: Top) -> tuple[Node, ...]:
    """The requirements of the output that is the top level: its own sections, and those above that it lacks."""
    own, above = output.all("requirements"), top.root.all("requirements")
    if not own:
        return above
    mapped = [node for node in own if isinstance(node, Mapped)]
    names = {key for node in mapped for key, _ in node.entries}
    if not mapped:
        return own
    inherited = [
        replace(node, entries=tuple(pair for pair in node.entries if pair[0] not in names))
        for node in above
        if isinstance(node, Mapped)
    ]
    return (*own, *inherited)


def _listing_own_files(script: Value) -> Value:
    """The script of an output that inherits files, which it must not pack: it lists what it adds to them."""
    unix, keys = ("unix",), list(script.keys) if isinstance(script, Dict) else []
    body = next((key.value for key in keys if key.name in {"file", "content"}), script)
    if any(key.name == "file" for key in keys) and isinstance(body, Scalar):
        commands = running(body.text)
    else:
        commands = [*body.items] if isinstance(body, List) else [Item(body)]
    listed = [Item(Scalar(BEFORE), unix), *commands, *(Item(Scalar(text), unix) for text in AFTER)]
    env = [key for key in keys if key.name == "env"]
    return Dict([*env, Key("content", List(listed))]) if env else List(listed)
