"""The section `build` of an output, its keys that stand elsewhere in a `recipe.yaml`, and build strings.

Where a recipe leaves the build string to its build tool, the two tools name packages differently: conda-build begins
with `py312` if Python is required in host and run, rattler-build if the output uses the key `python` of its variant,
and with `np2` if it uses `numpy`. rattler-build evaluates `osx` and the like in a build string for the machine that
renders, elsewhere for the target, so such conditions move to the context.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from jinja2 import nodes

from feedstock_tools.to_v1.conditions import NEVER, When, all_of, joined, negated, without
from feedstock_tools.to_v1.expressions import PLATFORMS, expression_of, parsed, quoted
from feedstock_tools.to_v1.layout import Dict, Item, Key, List, Scalar, Value, keyed, with_texts
from feedstock_tools.to_v1.sections import Given, items_of, requirement_items, run_exports, value_of
from feedstock_tools.to_v1.tree import Leaf, Mapped, Node, Option, Sequenced, choices, listed, scalar, template

_WORDS = PLATFORMS - {"target_platform", "build_platform"}
_TEMPLATE = re.compile(r"\$\{\{.*?\}\}", re.DOTALL)
_TOKEN = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\b\w+\b")


def with_hoisted_platforms(keys: Sequence[Key]) -> tuple[Sequence[Key], Sequence[Key]]:
    """The keys of a recipe with other names for platforms in build strings, and the entries of the context for these.

    >>> build = Dict((Key("string", Scalar("${{ 'a' if osx else 'b' }}")),))
    >>> [section], [entry] = with_hoisted_platforms([Key("build", build)])
    >>> section.value.keys[0].value.text, entry.name, entry.value.text
    ("${{ 'a' if on_osx else 'b' }}", 'on_osx', '${{ osx }}')
    """
    words: dict[str, None] = {}

    def hoisted(name: str, text: str) -> str:
        is_string = name.removeprefix(".outputs[]") == ".build.string"
        return _TEMPLATE.sub(lambda match: _TOKEN.sub(partial(_named, words), match[0]), text) if is_string else text

    found = with_texts(Dict(keys), hoisted)
    assert isinstance(found, Dict)  # noqa: S101 - a mapping stays one
    return found.keys, [Key(f"on_{word}", Scalar(f"${{{{ {word} }}}}")) for word in words]


def _named(words: dict[str, None], token: re.Match[str]) -> str:
    if token[0] not in _WORDS:
        return token[0]
    words[token[0]] = None
    return f"on_{token[0]}"


_PYTHON = re.compile(r"\bpython\b(?!_)")
_WHY_STRING = ("# conda-build's default, which rattler-build's would not begin with",)
_DIGITS = re.compile(r"(\d+)\.(\d+)[.\d]*(?:\.?\*)?")


def _prefix(sections: Sequence[Key], noarch: str | None) -> str:
    """What precedes the hash in the build string that conda-build gives an output with these requirements."""
    base = _items(sections, "host") or _items(sections, "build")
    python = [text for text, _ in base if text.split()[0] == "python"]
    if not python or not any(text.split()[0] == "python" for text, _ in _items(sections, "run")):
        return ""
    if noarch == "python":
        return "py"
    version = python[0].partition(" ")[2]
    if match := _DIGITS.fullmatch(version):
        return f"py{match[1]}{match[2]}"
    named = re.fullmatch(r"=?\$\{\{ (\w+) \}\}(?:\$\{\{ \w+ \}\})?(?:\.\*)?", version)
    return f"py{{{{ {named[1] if named else 'python'} | version_to_buildstring }}}}"


def build_only(sections: Sequence[Key], others: Sequence[Value]) -> tuple[str, ...]:
    """The languages that an output requires in build alone, as for cross builds.

    conda-build does not build such an output once for each of their versions (`ignore_build_only_deps`); rattler-build
    does, unless the recipe ignores the key.
    """
    mentioned = [text for value in others for text in _conditions(value)]
    names = []
    for name in ("python", "numpy"):
        elsewhere = [text for section in ("host", "run") for text, _ in _items(sections, section)]
        required = any(text.strip() == name for text, _ in _items(sections, "build"))
        used = any(re.search(rf"\b{name}\b(?!_)", text) for text in mentioned)
        if required and not used and not any(text.split()[0] == name for text in elsewhere):
            names.append(name)
    return tuple(names)


def unnamed_where(strings: Sequence[tuple[When, str]], sections: Sequence[Key], others: Sequence[Value]) -> When | None:
    """The condition where an output uses no Python although its build string names it elsewhere; None if there is none.

    rattler-build considers a key used if any build string names it, and builds the output once for each Python.
    """
    naming = [when for when, text in strings if _PYTHON.search(text)]
    not_naming = [when for when, text in strings if not _PYTHON.search(text)]
    required = [text for key in sections for text, _ in _items(sections, key.name)]
    mentioned = [text for value in others for text in _conditions(value)]
    if not naming or not not_naming or any(_PYTHON.search(text) for text in (*required, *mentioned)):
        return None
    shared = [term for term in not_naming[0] if all(term in when for when in not_naming)]
    apart = [term for term in shared if all(negated((term,))[0] in when for when in naming)]
    return (apart[0],) if apart else None


def is_named_alike(sections: Sequence[Key], others: Sequence[Value], noarch: str | None) -> bool:
    """Whether rattler-build names an output as conda-build does.

    Args:
        sections: the requirements of the output, those of the output that it inherits from included.
        others: the other parts of the output, whose conditions and templates can use variants.
    """
    if noarch:
        return _prefix(sections, noarch) == ("py" if noarch == "python" else "")
    used = [item for name in ("build", "host") for item in _items(sections, name)]
    if any(text.strip() in {"numpy", "numpy ${{ numpy }}.*"} for text, _ in used):
        return False
    bare = [when for text, when in used if text.strip() == "python"]
    prefix = _prefix(sections, noarch)
    mentioned = any(_PYTHON.search(text) for value in others for text in _conditions(value))
    always = any(not when for when in bare)
    if prefix:
        return always and "python |" in prefix
    return not bare and not mentioned


def _items(sections: Sequence[Key], name: str) -> list[tuple[str, tuple[str, ...]]]:
    return [
        (item.value.text, item.when)
        for key in sections
        if key.name == name and isinstance(key.value, List)
        for item in key.value.items
        if isinstance(item.value, Scalar) and item.value.text.split()
    ]


def _conditions(value: Value) -> Iterator[str]:
    """The conditions and templates in a part of a recipe."""
    match value:
        case Scalar():
            yield from re.findall(r"\$\{\{(.*?)\}\}", value.text)
        case List():
            for item in value.items:
                yield from item.when
                yield from _conditions(item.value)
        case Dict():
            for key in value.keys:
                if key.name == "skip" and isinstance(key.value, List):
                    yield from (item.value.text for item in key.value.items if isinstance(item.value, Scalar))
                elif key.name != "tests":
                    yield from _conditions(key.value)


_TRUE = frozenset({"true", "yes", "on", "y"})
_FALSE = frozenset({"false", "no", "off", "n"})
#: Lists: the key in conda-build, and the place in rattler-build's `build`.
_LISTS = {
    "missing_dso_whitelist": ("dynamic_linking", "missing_dso_allowlist"),
    "missing_dso_allowlist": ("dynamic_linking", "missing_dso_allowlist"),
    "runpath_whitelist": ("dynamic_linking", "rpath_allowlist"),
    "runpath_allowlist": ("dynamic_linking", "rpath_allowlist"),
    "rpaths": ("dynamic_linking", "rpaths"),
    "ignore_prefix_files": ("prefix_detection", "ignore"),
    "always_include_files": ("always_include_files",),
    "no_link": ("always_copy_files",),
    "skip_compile_pyc": ("python", "skip_pyc_compilation"),
    "entry_points": ("python", "entry_points"),
    "force_use_keys": ("variant", "use_keys"),
    "force_ignore_keys": ("variant", "ignore_keys"),
    "has_prefix_files": ("prefix_detection", "force_file_type", "text"),
    "binary_has_prefix_files": ("prefix_detection", "force_file_type", "binary"),
}
_SWITCHES = {
    "binary_relocation": (("dynamic_linking", "binary_relocation"), False),
    "merge_build_host": (("merge_build_and_host_envs",), False),
    "merge_build_and_host_envs": (("merge_build_and_host_envs",), False),
    "detect_binary_files_with_prefix": (("prefix_detection", "ignore_binary_files"), True),
    "python_version_independent": (("python", "version_independent"), False),
    "osx_is_app": (("python", "use_python_app_entrypoint"), False),
}
_BEHAVIOURS = {
    "error_overlinking": ("dynamic_linking", "overlinking_behavior"),
    "error_overdepending": ("dynamic_linking", "overdepending_behavior"),
}
#: Keys that are converted elsewhere.
_ELSEWHERE = frozenset(
    {"number", "string", "skip", "script", "script_env", "noarch", "noarch_python", "run_exports", "track_features"}
    | {"ignore_run_exports", "ignore_run_exports_from", "python_site_packages_path"}
)
#: Values that state what rattler-build does by default.
_DEFAULTS = frozenset({("activate_in_script", "true"), ("disable_pip", "false"), ("preferred_env", "")})
_ORDER = ("number", "string", "skip", "noarch", "script", "python", "variant")
_INTERPRETERS = {".py": "python", ".pl": "perl"}
_FOLDERS = re.compile(r"\$\{\{ (?:PYTHON|PREFIX|BUILD_PREFIX|RECIPE_DIR|SRC_DIR|SP_DIR)\b")
_ENVIRONMENT = re.compile(r"([A-Za-z_]\w*)\s*=(.*)", re.DOTALL)


@dataclass
class Build:
    """The keys of `build`, and those that go to `requirements`."""

    keys: list[Key] = field(default_factory=list)
    exports: list[Key] = field(default_factory=list)

    def put(self, place: Sequence[str], value: Value | None, comments: tuple[str, ...] = (), remark: str = "") -> None:
        """Set a key if there is a value, in mappings of their own where `place` has several names."""
        if value is not None:
            self.keys = _put(self.keys, place, value, comments, remark)

    def section(self) -> Dict:
        """The section, in the order of rattler-build's documentation."""
        ranks = {name: rank for rank, name in enumerate(_ORDER)}
        return Dict(tuple(sorted(self.keys, key=lambda key: ranks.get(key.name, len(ranks)))))


def _put(keys: list[Key], place: Sequence[str], value: Value, comments: tuple[str, ...], remark: str) -> list[Key]:
    name, *rest = place
    if not rest:
        return [*(key for key in keys if key.name != name), Key(name, value, comments, remark)]
    inner = next((list(key.value.keys) for key in keys if key.name == name and isinstance(key.value, Dict)), [])
    changed = Key(name, Dict(_put(inner, rest, value, comments, remark)))
    return [changed if key.name == name else key for key in keys] if inner else [*keys, changed]


def build_of(build: Mapped, outer: When, given: Given) -> Build:
    """The converted section `build` of an output, without its script."""
    converted = Build()
    _plain(converted, build, outer)
    converted.put(("skip",), List(skips_of(build.all("skip"), outer)) or None)
    for name, place in _LISTS.items():
        if nodes := build.all(name):
            items = _outside_scripts(items_of(nodes, outer), name, nodes, given)
            remark = nodes[0].remark if len(nodes) == 1 else ""
            converted.put(place, List(items) or None, nodes[0].comments, remark)
    for name, (place, is_opposite) in _SWITCHES.items():
        _switch(converted, build, name, place, outer, is_opposite=is_opposite)
    for name, place in _BEHAVIOURS.items():
        if build.has(name):
            wrong = any(value.lower() in _TRUE for _, value in choices(build.all(name), outer))
            converted.put(place, Scalar("error" if wrong else "ignore"))
    _features(converted, build, outer, given)
    _exports(converted, build, outer, given)
    for name, value in build.entries:
        known = name in _ELSEWHERE or name in _LISTS or name in _SWITCHES or name in _BEHAVIOURS
        text = value.text.lower() if isinstance(value, Leaf) else ""
        if not known and value.when != NEVER and (name, text) not in _DEFAULTS:
            given.problem(value.line, f"'build: {name}' has no equivalent in a recipe.yaml")
    return converted


def _plain(converted: Build, build: Mapped, outer: When) -> None:
    converted.put(("number",), value_of(build.all("number"), outer, number=True), *_notes(build, "number"))
    noarch = scalar(choices(build.all("noarch"), outer))
    if any(text.lower() in _TRUE for _, text in choices(build.all("noarch_python"), outer)):
        noarch = "python"
    if noarch is not None and noarch.lower() not in _FALSE:
        converted.put(("noarch",), Scalar("generic" if noarch.lower() in _TRUE else noarch), *_notes(build, "noarch"))
    converted.put(("python", "site_packages_path"), value_of(build.all("python_site_packages_path"), outer))


def _outside_scripts(items: tuple[Item, ...], name: str, nodes: Sequence[Node], given: Given) -> tuple[Item, ...]:
    """The items that name no folder which rattler-build knows in scripts only."""
    kept = tuple(item for item in items if not (isinstance(item.value, Scalar) and _FOLDERS.search(item.value.text)))
    if len(kept) < len(items):
        given.problem(nodes[0].line, f"'build: {name}': folders such as SP_DIR are known in scripts only")
    return kept


def put_string(
    converted: Build, build: Mapped, outer: When, sections: Sequence[Key], others: Sequence[Key], tests: Sequence[Value]
) -> None:
    """Set the build string: the recipe's own, or the one that conda-build would make where rattler-build differs.

    Args:
        sections: the requirements of the output, with those of the output that it inherits from.
    """
    noarch = next(
        (key.value.text for key in converted.keys if key.name == "noarch" and isinstance(key.value, Scalar)), None
    )
    strings = choices(build.all("string"), outer)
    default = f"{_prefix(sections, noarch)}h{{{{ hash }}}}_{{{{ build_number }}}}"
    text = scalar(strings, default) if strings else None
    values = [Dict(converted.keys), *(key.value for key in others)]
    ignored = build_only(sections, [*values, *tests])
    if ignored and not any(key.name == "variant" for key in converted.keys):
        converted.put(("variant", "ignore_keys"), List([Item(Scalar(name)) for name in ignored]))
        sections = [key for key in sections if key.name != "build"]
    unnamed = unnamed_where(strings, sections, [*values, *tests])
    if unnamed is not None and not ignored:
        converted.put(("variant", "ignore_keys"), List([Item(Scalar("python"), unnamed)]))
    comments, remark = _notes(build, "string")
    if not strings and not is_named_alike(sections, values, noarch):
        text, comments = scalar([((), default)]), _WHY_STRING
    if text is not None:
        converted.put(("string",), Scalar(text), comments, remark)


def _notes(build: Mapped, name: str) -> tuple[tuple[str, ...], str]:
    nodes = build.all(name)
    comments = tuple(line for node in nodes for line in node.comments)
    return comments, "; ".join(dict.fromkeys(node.remark for node in nodes if node.remark))


def skips_of(nodes: Sequence[Node], outer: When) -> tuple[Item, ...]:
    """The conditions under which an output is not built, one for each line with a skip."""
    items = []
    for node in nodes:
        if not isinstance(node, Leaf) or node.when == NEVER or node.text.lower() in _FALSE or not node.text:
            continue
        when = without(node.when, outer)
        if node.text.lower() not in _TRUE:
            when = (*when, expression_of(node.text))
        text = all_of(when) if when else "true"
        items.append(Item(Scalar(text, literal=text in {"true", "false"}), (), node.comments, node.remark))
    return tuple(items)


def _switch(
    converted: Build, build: Mapped, name: str, place: tuple[str, ...], outer: When, *, is_opposite: bool
) -> None:
    nodes = build.all(name)
    if any(isinstance(node, Sequenced) for node in nodes):
        converted.put(place, List(items_of(nodes, outer)))
        return
    values = [(when, (text.lower() in _TRUE) != is_opposite) for when, text in choices(nodes, outer)]
    if not values:
        return
    *_, (last, value) = values
    if name == "detect_binary_files_with_prefix" and not value and not last:
        return
    shown = str(not values[0][1]).lower()
    for when, value in values:  # the last whose conditions hold counts
        word = str(value).lower()
        shown = f"{word} if {all_of(when)} else {shown}" if when else word
    scalar = Scalar(f"${{{{ {shown} }}}}") if last else Scalar(shown, literal=True)
    converted.put(place, scalar, nodes[-1].comments, nodes[-1].remark)


def _features(converted: Build, build: Mapped, outer: When, given: Given) -> None:
    """Features that lower the priority of an output, as the number that rattler-build has for this."""
    leaves = listed(build.all("track_features"))
    if not leaves:
        return
    conditions = [without(leaf.when, outer) for leaf in leaves]
    terms = [f"1 if {all_of(when)} else 0" if when else "1" for when in conditions]
    text = terms[0] if len(terms) == 1 else " + ".join(f"({term})" if term != "1" else term for term in terms)
    value = Scalar(text, literal=True) if text == "1" else Scalar(f"${{{{ {text} }}}}")
    comments = (*build.all("track_features")[0].comments, *(line for leaf in leaves for line in leaf.comments))
    remark = "; ".join(dict.fromkeys(leaf.remark for leaf in leaves if leaf.remark))
    given.note(leaves[0].line, "'track_features' becomes down_prioritize_variant: a number, without the feature's name")
    converted.put(("variant", "down_prioritize_variant"), value, comments, remark)


def _exports(converted: Build, build: Mapped, outer: When, given: Given) -> None:
    exports = run_exports(build.all("run_exports"), outer, given)
    if exports:
        converted.exports.append(Key("run_exports", exports, build.all("run_exports")[0].comments))
    ignored: list[Key] = []
    for key, name in (("by_name", "ignore_run_exports"), ("from_package", "ignore_run_exports_from")):
        items = requirement_items(_names_of(build.all(name)), outer, given)
        ignored += keyed(key, List(items), *_notes(build, name))
    converted.exports += keyed("ignore_run_exports", Dict(ignored))


def _names_of(nodes: Sequence[Node]) -> list[Leaf]:
    """Names of packages in a list; conda-build reads only the first word of each."""
    return [
        leaf if "{{" in leaf.text else Leaf(leaf.text.split()[0], leaf.when, leaf.line, leaf.comments, leaf.remark)
        for leaf in listed(nodes)
    ]


def script_of(
    nodes: Sequence[Node], env: Sequence[Node], outer: When, given: Given, default: tuple[str, ...]
) -> Value | None:
    """A script: commands, or a file beside the recipe, with the variables that it gets.

    Args:
        nodes: the values that the recipe has for it.
        env: the variables in its `script_env`.
        default: the files that conda-build runs if the recipe says nothing, for Unix and Windows.
    """
    variables = _environment(env, outer)
    files = _files(nodes, outer, given)
    file = scalar(files, whole=True)
    if file is None and not nodes and default:
        file = _default_file(default)
        if file == "" and not variables:
            return None
    keys = keyed("env", Dict(variables))
    if file and not _lacks_else(file):
        return Dict([*keys, Key("file", Scalar(file))])
    # rattler-build fails without a name of a file: such a script runs it under the condition.
    commands = (replace(item, when=joined(when, item.when)) for when, name in files for item in running(template(name)))
    items = tuple(item for item in commands if item.when != NEVER) or items_of(nodes, outer)
    if not items:
        return Dict(keys) if keys and (nodes or default) else None
    if keys:
        return Dict([*keys, Key("content", List(items))])
    return items[0].value if items == (Item(items[0].value),) else List(items)


def _files(nodes: Sequence[Node], outer: When, given: Given) -> list[Option]:
    """The files that a script names, with their conditions; none if it is commands."""
    values = choices(nodes, outer)
    is_list = any(isinstance(node, Sequenced) for node in nodes)
    return [] if is_list or not all(_is_file(text, given) for _, text in values) else values


def _lacks_else(file: str) -> bool:
    """Whether an expression names no file in some variants."""
    node: nodes.Expr | None = parsed(file[3:-2]) if file.startswith("${{") and file.count("${{") == 1 else None
    while isinstance(node, nodes.CondExpr):
        if node.expr2 is None:
            return True
        node = node.expr2
    return False


def running(file: str) -> list[Item]:
    """The commands that run a file beside the recipe."""
    program = _INTERPRETERS.get(Path(file).suffix, "bash -e")
    unix = Item(Scalar(f'{program} "${{RECIPE_DIR}}/{file}"'), ("unix",))
    win = Item(Scalar(f'call "%RECIPE_DIR%\\{file}"'), ("win",))
    return [win] if file.endswith(".bat") else [unix, win] if ".bat" in file else [unix]


def _is_file(text: str, given: Given) -> bool:
    name = text.strip()
    if name in given.files:
        return True
    return " " not in re.sub(r"\{\{.*?\}\}", "J", name) and name.endswith((".sh", ".bat", ".py", ".pl", ".ps1", "}}"))


def _default_file(default: tuple[str, ...]) -> str:
    """The files that conda-build runs by default, as an expression; '' if rattler-build finds them itself."""
    unix, win = (next((name for name in default if name.endswith(suffix)), "") for suffix in (".sh", ".bat"))
    if win in {"", "build.bat"}:
        return ""
    return f"${{{{ {quoted(unix)} if unix else {quoted(win)} }}}}" if unix else win


def _environment(env: Sequence[Node], outer: When) -> list[Key]:
    keys: dict[str, list[tuple[When, str]]] = {}
    notes: dict[str, tuple[str, ...]] = {}
    for leaf in listed(env):
        match = _ENVIRONMENT.fullmatch(leaf.text.strip())
        name = match[1] if match else leaf.text.strip()
        value = match[2].strip() if match else f'{{{{ env.get({quoted(name)}, default="") }}}}'
        keys.setdefault(name, []).append((without(leaf.when, outer), value))
        notes[name] = (*notes.get(name, ()), *leaf.comments)
    return [Key(name, Scalar(scalar(values) or template("")), notes[name]) for name, values in keys.items()]
