"""The outputs of a recipe, each with the parts of the top level that conda-build gives it.

(conda_build/metadata.py: get_output_dicts_from_metadata, combine_top_level_metadata_with_output, get_output_metadata.)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from feedstock_tools.to_v1.about import about_of
from feedstock_tools.to_v1.build import Build, build_of, put_string, script_of, skips_of
from feedstock_tools.to_v1.layout import Dict, Item, Key, List, Scalar
from feedstock_tools.to_v1.requirements import Given, items_of, requirement_sections
from feedstock_tools.to_v1.sources import sources_of
from feedstock_tools.to_v1.template.conditions import NEVER, all_of, negated
from feedstock_tools.to_v1.template.statements import Problem
from feedstock_tools.to_v1.tests import tests_of
from feedstock_tools.to_v1.tree import Leaf, Mapped, Node, Sequenced
from feedstock_tools.to_v1.values import choices, listed, scalar

#: Keys of an output that stand for keys of its section `build`.
_OF_BUILD = ("number", "string", "run_exports", "track_features", "entry_points", "noarch", "noarch_python")
_NOT_INHERITED = frozenset({"entry_points", "run_exports", "script", "noarch", "noarch_python"})
_KNOWN = frozenset(
    {"name", "version", "build", "requirements", "test", "about", "script", "files", "type", "source", "extra"}
    | {"script_interpreter", *_OF_BUILD}
)
_NAME = re.compile(r"[\w.\-{}| ()\"'~]+")


@dataclass(frozen=True)
class Top:
    """The top level of a recipe with outputs.

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
        return next((self.given.plain(text) for _, text in choices(self.root.mapping("package").all("name"), ())), "")

    @property
    def outputs(self) -> tuple[Mapped, ...]:
        """The outputs that the recipe lists."""
        nodes = self.root.all("outputs")
        items = [item for node in nodes if isinstance(node, Sequenced) for item in node.items]
        items += [node for node in nodes if isinstance(node, Mapped)]
        return tuple(item for item in items if isinstance(item, Mapped) and item.when != NEVER)


def outputs_of(top: Top, given: Given, problems: list[Problem]) -> tuple[Item, ...]:
    """The outputs of the recipe, including one for the top level where conda-build makes one of it."""
    outputs = list(top.outputs)
    if _needs_outputs(top) and top.name not in {_name(output, given) for output in outputs}:
        name = Leaf(top.name, (), top.root.line)
        outputs.append(Mapped((("name", name),), (), top.root.line))
    return tuple(_output(output, top, given, problems) for output in outputs)


def _name(output: Mapped, given: Given) -> str:
    return next((given.plain(text) for _, text in choices(output.all("name"), output.when)), "")


def _needs_outputs(top: Top) -> bool:
    """Whether the top level requires its outputs, so that conda-build makes it an output of its own."""
    requirements = top.root.mapping("requirements")
    run = [leaf.text for leaf in listed(requirements.all("run"))]
    names = {_name(output, top.given) for output in top.outputs}
    texts = [leaf.text for _, value in requirements.entries for leaf in listed([value])]
    return any(text.split() and top.given.plain(text.split()[0]) in names for text in run) or any(
        text.startswith("{{ pin_subpackage(") for text in texts
    )


def stage_of(top: Top, given: Given, problems: list[Problem]) -> Item | None:
    """The output that runs the script of the top level, whose files the others divide among themselves."""
    if not top.stage:
        return None
    build = top.root.mapping("build")
    script = script_of(build.all("script"), build.all("script_env"), (), given, top.scripts or ("build.sh",))
    sections = requirement_sections(top.root.all("requirements"), (), given, problems)
    sections = [key for key in sections if key.name in {"build", "host"}]
    keys = [Key("staging", Dict((Key("name", Scalar(top.stage)),)))]
    if script is None:
        script = Dict((Key("file", Scalar("build")),))
    keys.append(Key("build", Dict((Key("script", script),))))
    if sections:
        keys.append(Key("requirements", Dict(tuple(sections))))
    return Item(Dict(tuple(keys)))


def _output(output: Mapped, top: Top, given: Given, problems: list[Problem]) -> Item:
    outer = output.when
    is_top = _name(output, given) == top.name
    name = scalar(choices(output.all("name"), output.when)) or ""
    version = scalar(choices(output.all("version"), outer))
    package = [Key("name", Scalar(name), *_first_notes(output))]
    if version is not None:
        package.append(Key("version", Scalar(version)))
    keys = [Key("package", Dict(tuple(package)))]
    own, script, env = _own_build(output, top, is_top=is_top)
    if output.has("build") and not is_top:
        for key, value in output.entries:
            if key in _OF_BUILD and key not in {"number", "entry_points"} and value.when != NEVER:
                problems.append(Problem(value.line, f"'{key}' beside 'build', which conda-build ignores: left out"))
    inherits = bool(top.stage and (is_top or script or output.has("files")))
    if inherits:
        inherit = Dict((Key("from", Scalar(top.stage)), Key("run_exports", Scalar("false", literal=True))))
        keys.append(Key("inherit", inherit))
    source = sources_of(output.all("source"), outer, problems)
    if source is not None:
        keys.append(Key("source", source))
    build = build_of(own, outer, given, problems)
    default = top.scripts if is_top and not top.stage and not output.has("files") else ()
    converted_script = script_of(script, env, outer, given, default)
    if converted_script is None and default:
        converted_script = Dict((Key("file", Scalar("build")),))
    if converted_script is not None:
        build.put(("script",), converted_script)
    files = items_of(output.all("files"), outer)
    if files:
        build.put(("files",), List(files), output.all("files")[0].comments)
    _skip_absent(build, output, top)
    others = _other_sections(output, top, build.exports, given, problems, is_top=is_top)
    sections = [
        key
        for part in others
        if isinstance(part.value, Dict) and part.name == "requirements"
        for key in part.value.keys
    ]
    staged = requirement_sections(top.root.all("requirements"), (), given, []) if inherits else []
    tests = [part.value for part in others if part.name == "tests"]
    put_string(build, own, outer, [*sections, *staged], [*sections, *staged], tests)
    section = build.section()
    if section:
        keys.append(Key("build", section, output.mapping("build").comments if output.has("build") else ()))
    keys += others
    for key, value in output.entries:
        if key not in _KNOWN and value.when != NEVER:
            problems.append(Problem(value.line, f"an output has no '{key}' in a recipe.yaml"))
    for _, kind in choices(output.all("type"), outer):
        if kind not in {"conda", "conda_v2"}:
            problems.append(Problem(output.line, f"an output of the type '{kind}' has no equivalent in a recipe.yaml"))
    return Item(Dict(tuple(keys)), (), output.comments)


def _first_notes(output: Mapped) -> tuple[tuple[str, ...], str]:
    names = output.all("name")
    return (names[0].comments, names[0].remark) if len(names) == 1 else ((), "")


def _skip_absent(build: Build, output: Mapped, top: Top) -> None:
    """Skip an output that exists only under conditions in all other cases: outputs have no `if:`."""
    absent = [Item(Scalar(all_of(negated(output.when))))] if output.when else []
    above = list(skips_of(top.root.mapping("build").all("skip"), ()))
    skips = [key.value for key in build.keys if key.name == "skip" and isinstance(key.value, List)]
    own = [item for value in skips for item in value.items]
    if absent or own:
        texts: dict[str, Item] = {}
        for item in [*(Item(skip.value) for skip in above), *absent, *own]:
            if isinstance(item.value, Scalar):
                texts.setdefault(item.value.text, item)
        build.put(("skip",), List(tuple(texts.values())))


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
    output: Mapped, top: Top, exports: Sequence[Key], given: Given, problems: list[Problem], *, is_top: bool
) -> list[Key]:
    keys = []
    requirements: tuple[Node, ...] = output.all("requirements")
    above = top.root.all("requirements")
    if is_top and not top.stage:
        requirements = tuple(_with_top(requirements, above)) if requirements else above
    sections = [*requirement_sections(requirements, output.when, given, problems), *exports]
    if sections:
        comments = output.all("requirements")[0].comments if output.has("requirements") else ()
        keys.append(Key("requirements", Dict(tuple(sections)), comments))
    tests = output.all("test")
    if is_top and not tests:
        tests = top.root.all("test")
    tested = tests_of(tests, output.when, given, problems, files=is_top)
    if tested is not None:
        keys.append(Key("tests", tested, tests[0].comments if tests else ()))
    about = about_of(output.mapping("about"), output.when, problems) if output.has("about") else Dict(())
    if about:
        keys.append(Key("about", about, output.all("about")[0].comments))
    return keys


def _with_top(own: Sequence[Node], above: Sequence[Node]) -> list[Node]:
    """The requirements of the output that is the top level: its own sections, and those above that it lacks."""
    mapped = [node for node in own if isinstance(node, Mapped)]
    names = {key for node in mapped for key, _ in node.entries}
    if not mapped:
        return list(own)
    inherited = [
        replace(node, entries=tuple(pair for pair in node.entries if pair[0] not in names))
        for node in above
        if isinstance(node, Mapped)
    ]
    return [*own, *inherited]
