"""The sections of a `recipe.yaml` besides `build`: requirements, run exports, sources, tests and `about`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import combinations

from jinja2 import nodes

from feedstock_tools.generate.spec.review_checks import license_mistake
from feedstock_tools.recipe.requirements import SECTIONS
from feedstock_tools.to_v1.conditions import NEVER, When, exclude, joined, on_linux, unimplied, without
from feedstock_tools.to_v1.expressions import Names, expression_of, parsed
from feedstock_tools.to_v1.layout import Dict, Item, Key, List, Scalar, keyed
from feedstock_tools.to_v1.statements import Problem
from feedstock_tools.to_v1.tree import Leaf, Mapped, Node, Sequenced, choices, grouped, listed, scalar, template

_EXPORTS = {
    "weak": "weak",
    "strong": "strong",
    "noarch": "noarch",
    "weak_constrains": "weak_constraints",
    "strong_constrains": "strong_constraints",
}
#: A single star at the beginning of a name.
_STAR = re.compile(r"(?<![^/])\*(?!\*)")
_WORDS = re.compile(r"(?:\{\{.*?\}\}|[^\s{]|\{(?!\{))+", re.DOTALL)
_TEMPLATE = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_PARTS = re.compile(r"([,|])(?![^{]*\}\})")
_BARE = re.compile(r"[\w.+!-]+")
_GLUED = re.compile(r"^([A-Za-z0-9_.\-]+|\{\{.*\}\})(?=[<>=!~])")
_PIN = re.compile(r"^(pin_subpackage|pin_compatible)\(")


@dataclass(frozen=True)
class Given:
    """The known facts besides the recipe, the problems found on the way, and notes on what it words otherwise.

    `files` are those beside the recipe, `variables` those of its context with their expressions.
    """

    names: Names
    files: frozenset[str] = frozenset()
    variables: tuple[tuple[str, str], ...] = ()
    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)
    #: It makes one noarch package, which linux-64 builds: no other platform reads its requirements.
    is_noarch: bool = False

    def problem(self, line: int, reason: str) -> None:
        """Note something that cannot be converted."""
        self.problems.append(Problem(line, reason))

    def note(self, line: int, text: str) -> None:
        """Note something that is converted to what means the same."""
        self.notes.append(Problem(line, text))

    def plain(self, text: str) -> str:
        """A text with the variables in it that are literals."""
        return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda match: self.literal_of(match[1]) or match[0], text)

    def literal_of(self, name: str) -> str | None:
        """The text that a variable of the recipe holds, if it is a literal."""
        expression = dict(self.variables).get(name)
        node = None if expression is None else parsed(expression)
        return str(node.value) if isinstance(node, nodes.Const) else None


def items_of(nodes: Sequence[Node], outer: When) -> tuple[Item, ...]:
    """The scalars of lists as items of one list."""
    return tuple(
        Item(Scalar(template(leaf.text)), without(leaf.when, outer), leaf.comments, leaf.remark)
        for leaf in listed(nodes)
    )


def files_of(nodes: Sequence[Node], outer: When) -> List | Dict:
    """The `files` of an output.

    Unlike conda-build's, rattler-build's `*` also matches the separators of folders; so a name that begins with it
    needs an exclusion, except where the recipe takes deeper files too.

    >>> leaves = [Leaf("lib/*.so", (), 1), Leaf("include/a/*", (), 2), Leaf("include/a/b", (), 3)]
    >>> [[item.value.text for item in key.value.items] for key in files_of(leaves, ()).keys]
    [['lib/*.so', 'include/a/*', 'include/a/b'], ['lib/*/*.so']]
    """
    mapped = [node for node in nodes if isinstance(node, Mapped)]
    include = items_of([*(node for node in nodes if node not in mapped), *_each(mapped, "include")], outer)
    exclude = items_of(_each(mapped, "exclude"), outer)
    texts = [item.value.text for item in include if isinstance(item.value, Scalar)]
    for item, text in zip(include, texts, strict=True):
        deeper = _STAR.sub("*/*", text)
        if deeper != text and "**" not in text and not any(_takes(other, deeper) for other in texts if other != text):
            exclude = (*exclude, Item(Scalar(deeper), item.when))
    if not exclude:
        return List(include)
    above = {
        name: tuple(line for node in _each(mapped, name) for line in node.comments) for name in ("include", "exclude")
    }
    return Dict([Key("include", List(include), above["include"]), Key("exclude", List(exclude), above["exclude"])])


def _each(mapped: Sequence[Mapped], name: str) -> list[Node]:
    return [value for node in mapped for value in node.all(name)]


def _takes(pattern: str, deeper: str) -> bool:
    """Whether a pattern or folder may take files that an exclusion matches."""
    is_deep = "**" in pattern or "*" not in pattern
    return (is_deep and deeper.startswith(pattern.partition("*")[0])) or any(
        fnmatchcase(path, deeper) for path in (pattern, f"{pattern}/x")
    )


def value_of(nodes: Sequence[Node], outer: When = (), *, number: bool = False) -> Scalar | None:
    """The scalars among nodes as one value; None without any."""
    text = scalar(choices(nodes, outer))
    return None if text is None else Scalar(text, literal=number and text.isdecimal())


def requirement_sections(requirements: Sequence[Node], outer: When, given: Given) -> list[Key]:
    """The keys of `requirements`; a plain list applies to host and run, as conda-build has it."""
    keys: list[Key] = []
    plain = [node for node in requirements if not isinstance(node, Mapped)]
    mapped = [node for node in requirements if isinstance(node, Mapped)]
    if listed(plain):
        items = requirement_items(listed(plain), outer, given)
        keys += [Key("host", List(items)), Key("run", List(items))]
    for name, section in SECTIONS.items():
        nodes = [value for node in mapped for value in node.all(name)]
        items = requirement_items(listed(nodes), outer, given)
        if items:
            keys.append(Key(section, List(items), nodes[0].comments, nodes[0].remark))
    for node in mapped:
        for name, value in node.entries:
            if name not in SECTIONS and listed([value]):
                given.problem(value.line, f"conda-build does not read 'requirements: {name}'")
    return keys


def requirement_items(leaves: Iterable[Leaf], outer: When, given: Given) -> tuple[Item, ...]:
    items = []
    for leaf in leaves:
        written = _requirement(_folded(leaf.text), leaf.line, given)
        when = without(leaf.when, outer)
        if given.is_noarch and when:
            when = on_linux(when)
            if when == NEVER:
                given.note(leaf.line, f"no platform that builds this noarch package requires '{leaf.text}'")
                continue
        if written:
            items.append(Item(Scalar(written), when, leaf.comments, leaf.remark))
    return tuple(items)


def _folded(text: str) -> str:
    """A requirement whose only expression is a constant, as that constant."""
    if len(_WORDS.findall(text)) != 1 or not (text.startswith("{{") and text.endswith("}}")):
        return text
    node = parsed(expression_of(text))
    return str(node.value) if isinstance(node, nodes.Const) else text


def _requirement(text: str, line: int, given: Given) -> str:
    """A requirement as rattler-build reads it: an exact version has an operator, a looser one a star."""
    text = text.strip().strip("'\"").split(" #")[0].strip()
    words = _WORDS.findall(text)
    if not words:
        return ""
    if _PIN.match(expression_of(words[0])) and words[0].startswith("{{"):
        return _pin(words, line, given)
    if len(words) == 1:
        words = _unglued(words[0])
    if len(words) > 1 and words[1] in {"=", "==", ">=", "<=", "<", ">", "!=", "~="}:
        words = [words[0], "".join(words[1:3]), *words[3:]]
    if len(words) > 2 and words[1].endswith(","):
        words = [words[0], "".join(words[1:])]
    if len(words) > 2 and words[2].startswith(("<", ">", "=", "!")):
        words = [words[0], ",".join(words[1:])]
    if len(words) == 1:
        return template(words[0])
    name, version, *build = words
    if version == "x.x":  # NumPy as the variant has it
        return template(f"{name} {{{{ numpy }}}}.*") if "numpy" in given.names.always else template(name)
    plain = _TEMPLATE.sub("J", version)
    if not build and "," not in plain and "|" not in plain and "=" in plain.lstrip("=<>!~"):
        version, build = _with_build(version)
    return " ".join(template(word) for word in (name, _version(version, bool(build), given), *build))


def _unglued(word: str) -> list[str]:
    match = _GLUED.match(word)
    return [match[0], word[match.end() :]] if match else [word]


def _with_build(version: str) -> tuple[str, list[str]]:
    """`=1.2=h1*` as version and build."""
    start = len(version) - len(version.lstrip("=<>!~"))
    number, _, build = version[start:].partition("=")
    return version[:start] + number if number != "*" else "*", [build]


def _version(version: str, has_build: bool, given: Given) -> str:
    parts = [part for part in _PARTS.split(version) if part]
    exact = has_build or "|" in parts
    return "".join(part if part in {",", "|"} else _bound(part, exact, given) for part in parts)


def _bound(part: str, has_build: bool, given: Given) -> str:
    operator = part[: len(part) - len(part.lstrip("=<>!~"))]
    version = part[len(operator) :]
    if version.endswith("*") and operator in {"=", "==", ">=", ">"}:
        bare = version.rstrip("*").rstrip(".")
        return f"{bare}.*" if operator in {"=", "=="} else f"{operator}{bare}"
    if operator == "=" and has_build:
        return f"{version}.*"
    if operator or not _is_bare(version, given):
        return part
    return f"=={version}" if has_build else f"{version}.*"


def _is_bare(version: str, given: Given) -> bool:
    """Whether a version has no operator and no star; that of a variable by the values that it can have."""
    if version.endswith("*"):
        return False
    if "{{" not in version:
        return bool(_BARE.fullmatch(version))
    if version.startswith("{{") and version.endswith("}}") and version.count("{{") == 1:
        name = version[2:-2].strip()
        value = given.literal_of(name)
        if value is not None:
            return bool(_BARE.fullmatch(value))
        values = given.names.values.get(name)
        if values:
            return all(_BARE.fullmatch(text) for text in values)
        node = parsed(name)
        if isinstance(node, nodes.CondExpr) and isinstance(node.expr1, nodes.Const):
            return bool(_BARE.fullmatch(str(node.expr1.value)))
    return not re.search(r"[*<>=!~]", _TEMPLATE.sub("", version))


def _pin(words: Sequence[str], line: int, given: Given) -> str:
    """A pin; a build string after it is an argument of the function."""
    expression = expression_of(words[0])
    if len(words) == 2:
        build = expression_of(words[1].removeprefix("=*="))
        node = parsed(expression)
        assert isinstance(node, nodes.Call)  # noqa: S101 - the text begins with the function
        return f"${{{{ {expression[:-1]}, build={build}) }}}}"
    if len(words) > 2:
        given.problem(line, "a pin with a version and a build after it")
    return f"${{{{ {expression} }}}}"


def run_exports(nodes: Sequence[Node], outer: When, given: Given) -> List | Dict:
    """Run exports: a list of weak ones, or by kind."""
    mapped = [node for node in nodes if isinstance(node, Mapped)]
    plain = requirement_items(listed([node for node in nodes if node not in mapped]), outer, given)
    if not mapped:
        return List(plain)
    keys: list[Key] = []
    for name, kind in _EXPORTS.items():
        kind_nodes = [value for node in mapped for value in node.all(name)]
        items = requirement_items(listed(kind_nodes), outer, given)
        items = (*plain, *items) if kind == "weak" else items
        keys += keyed(kind, List(items), kind_nodes[0].comments if kind_nodes else ())
    for node in mapped:
        for name, value in node.entries:
            if name not in _EXPORTS:
                given.problem(value.line, f"run exports have no kind '{name}' in a recipe.yaml")
    return Dict(keys)


_ABOUT = {
    **{key: key for key in ("homepage", "license", "license_family", "license_file", "summary", "description")},
    **{"home": "homepage", "doc_url": "documentation", "dev_url": "repository"},
}


_JOINS = re.compile(r" (?:and|or|with) ", re.IGNORECASE)
#: Obsolete identifiers of GNU's licenses, which rattler-build refuses.
_GNU = re.compile(r"(?<![\w-])([AL]?GPL-\d\.\d)(\+)?(?![\w.-])")


def _upper(match: re.Match[str]) -> str:
    return match[0].upper()


def _license(text: str, line: int, given: Given) -> Scalar:
    """A license that rattler-build accepts: an SPDX expression, or a reference with the same words."""
    if "${{" in text:
        return Scalar(text)
    mistake = license_mistake(text)
    spelled = _GNU.sub(lambda match: f"{match[1]}-{'or-later' if match[2] else 'only'}", _JOINS.sub(_upper, text))
    if mistake is None and spelled == text:
        return Scalar(text)
    if license_mistake(spelled) is None:
        given.note(line, f"the license '{text}' is written '{spelled}' in SPDX, as rattler-build asks for")
        return Scalar(spelled)
    mistake = mistake or ("its identifiers are obsolete", "")
    reference = "LicenseRef-" + re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-")
    given.problem(line, f"the license: {mistake[0]}; rattler-build would refuse it: wrote {reference}")
    return Scalar(reference)


def about_of(about: Mapped, outer: When, given: Given) -> Dict:
    keys: list[Key] = []
    for name, values in grouped(about):
        if name not in _ABOUT:
            if listed(values) or any(isinstance(value, Mapped) for value in values):
                given.problem(values[0].line, f"'about: {name}' has no equivalent in a recipe.yaml")
            continue
        comments = tuple(line for value in values for line in value.comments)
        remark = "; ".join(dict.fromkeys(value.remark for value in values if value.remark))
        if name == "license_file" and any(isinstance(value, Sequenced) for value in values):
            keys.append(Key("license_file", List(items_of(values, outer)), comments))
            continue
        leaves = listed(values)
        if len(leaves) > 1 and all(leaf.when == leaves[0].when for leaf in leaves):
            given.problem(leaves[1].line, f"'about: {name}' takes one value in a recipe.yaml: kept the first")
            leaves = leaves[:1]
        value = value_of(leaves, outer)
        if value is not None and name == "license":
            value = _license(value.text, values[0].line, given)
        keys += keyed(_ABOUT[name], value, comments, remark)
    return Dict(keys)


_SOURCE = {
    **{key: key for key in ("url", "sha256", "md5", "path")},
    **{"git_url": "git", "git_depth": "depth", "fn": "file_name", "folder": "target_directory"},
}
_COMMIT = re.compile(r"[0-9a-f]{7,40}")
#: The most hashes of one source that become one expression.
_MOST_HASHES = 2


def sources_of(nodes: Sequence[Node], outer: When, given: Given) -> Dict | List:
    items: list[Item] = []
    is_list = False
    for node in nodes:
        if isinstance(node, Sequenced):
            is_list = True
            found_items = [item for item in node.items if isinstance(item, Mapped)]
            items += [_source(part, outer, given) for item in found_items for part in _apart(item)]
        elif isinstance(node, Mapped) and node.entries:
            items += [_source(part, outer, given) for part in _apart(node)]
    items = _with_patches([item for item in items if item.value])
    if len(items) == 1 and not is_list and not items[0].when and isinstance(items[0].value, Dict):
        return items[0].value
    return List(items)


def _apart(source: Mapped) -> Iterator[Mapped]:
    """One source for each kind that it is under conditions of its own, such as a release or a git repository.

    And one for each hash where there are too many for an expression that people can read; conda-forge has no source
    without one.
    """
    entries = [(name, value) for name, value in source.entries if value.when != NEVER]
    places = {name: value.when for name, value in entries if name in {"url", "git_url", "path"}}
    hashes = [value.when for name, value in entries if name in {"sha256", "md5"}]
    is_long = len(hashes) > _MOST_HASHES and all(exclude(*pair) for pair in combinations(hashes, 2))
    if len(places) < 2 and not is_long:
        yield source
        return
    for when in dict.fromkeys(hashes if is_long else [value.when for name, value in entries if name in places]):
        chosen = tuple(pair for pair in entries if not exclude(pair[1].when, when))
        yield replace(source, entries=chosen, when=joined(source.when, when))
        source = replace(source, comments=())


def _with_patches(items: Sequence[Item]) -> list[Item]:
    """The sources, with those that have only patches joined to the one before."""
    kept: list[Item] = []
    for item in items:
        assert isinstance(item.value, Dict)  # noqa: S101 - made so above
        if kept and {key.name for key in item.value.keys} == {"patches"} and item.when == kept[-1].when:
            last = kept.pop()
            assert isinstance(last.value, Dict)  # noqa: S101 - made so above
            item = Item(Dict((*last.value.keys, *item.value.keys)), last.when, last.comments)
        kept.append(item)
    return kept


def _source(source: Mapped, outer: When, given: Given) -> Item:
    when = without(source.when, outer)
    inner = (*outer, *when)
    keys: list[Key] = []
    for name, values in grouped(source):
        if name == "patches":
            keys += keyed("patches", List(items_of(values, inner)), values[0].comments, values[0].remark)
        elif name in {"git_rev", "git_tag", "git_branch"}:
            keys.append(_revision(name, values, inner))
        elif name in _SOURCE:
            keys += _source_key(name, values, inner)
        elif any(value.when != NEVER for value in values):
            given.problem(values[0].line, f"'source: {name}' has no equivalent in a recipe.yaml")
    return Item(Dict(keys), unimplied(when), source.comments)


def _source_key(name: str, values: Sequence[Node], outer: When) -> list[Key]:
    comments = tuple(line for value in values for line in value.comments)
    if any(isinstance(value, Sequenced) for value in values):
        return [Key(_SOURCE[name], List(items_of(values, outer)), comments)]
    value = value_of(values, outer)
    if value is not None and name == "git_depth":
        value = Scalar(value.text, literal=True)
    return keyed(_SOURCE[name], value, comments, values[0].remark)


def _revision(name: str, values: Sequence[Node], outer: When) -> Key:
    """A revision of a git repository: a commit, or a tag."""
    value = value_of(values, outer) or Scalar("")
    kind = {"git_tag": "tag", "git_branch": "branch"}.get(name, "rev" if _COMMIT.fullmatch(value.text) else "tag")
    return Key(kind, value, values[0].comments, values[0].remark)


_PIP_CHECKS = frozenset({"pip check", "python -m pip check", "${{ PYTHON }} -m pip check"})
#: Packages that the commands of tests run, and no module imports.
_TOOL = re.compile(
    r"\$\{\{ compiler\(|(pip|c?make|ninja|pkg-config|cmake-package-check|git|curl|pytest(-[\w-]+)?|coverage)(?![\w-])"
)
#: Python in the versions that a test of `python` can name.
_ONE_PYTHON = re.compile(r"python( (\d[\d.]*|\$\{\{ \w+ \}\})(\.\*)?)?")
_KNOWN_TESTS = frozenset({"imports", "commands", "requires", "files", "source_files", "downstreams", "script"})
_RUNS_ON: dict[str, When] = {"run_test.sh": ("unix",), "run_test.bat": ("win",)}
_RUNS = {"run_test.py": "python run_test.py", "run_test.sh": "bash ./run_test.sh", "run_test.bat": "call run_test.bat"}


def tests_of(nodes: Sequence[Node], outer: When, given: Given, *, files: bool = False) -> List:
    """The tests of an output.

    Args:
        files: whether to add tests in files such as `run_test.py`, which conda-build finds beside the recipe.
    """
    runs = [name for name in _RUNS if files and name in given.files]
    sections = [node for node in nodes if isinstance(node, Mapped)]
    whole = next((node for node in sections if not without(node.when, outer)), None)
    if whole is None and runs:
        sections.append(whole := Mapped((), outer, 0))
    items: list[Item] = []
    for section in sections:
        when = without(section.when, outer)
        items += _tests_in(section, (*outer, *when), when, given, runs if section is whole else ())
    return List(items)


def _tests_in(section: Mapped, outer: When, when: When, given: Given, runs: Sequence[str]) -> list[Item]:
    """The tests of a section, with the files `runs` that conda-build runs in the same environment.

    It has Python for these and for imports.
    """
    requires = [*requirement_items(listed(section.all("requires")), outer, given)]
    imports = items_of(section.all("imports"), outer)
    commands = items_of(section.all("commands"), outer)
    notes = {name: _comments(section, name) for name in _KNOWN_TESTS}
    for script_when, text in choices(section.all("script"), outer):
        commands = (*commands, Item(Scalar(template(_RUNS.get(text, text))), script_when))
    commands = (*commands, *(Item(Scalar(_RUNS[name]), _RUNS_ON.get(name, ())) for name in runs))
    has_python = any(isinstance(item.value, Scalar) and item.value.text.split()[0] == "python" for item in requires)
    python = next((text for text in map(_always, requires) if _ONE_PYTHON.fullmatch(text)), "")
    uses_commands = any(_may_be_imported(item, python) for item in requires)
    if not has_python and ("run_test.py" in runs or (imports and uses_commands)):
        requires.append(Item(Scalar("python")))
    items = []
    if imports and uses_commands:
        commands, imports = (*map(_import, imports), *commands), ()
    if imports:
        checks = [item for item in commands if _always(item) in _PIP_CHECKS]
        commands = tuple(item for item in commands if item not in checks)
        if not any("pip" in item.value.text for item in commands if isinstance(item.value, Scalar)):
            requires = [item for item in requires if _always(item) != "pip"]
        keys = [Key("imports", List(imports), notes["imports"])]
        keys += [] if checks else [Key("pip_check", Scalar("false", literal=True))]
        version = python.partition(" ")[2]
        keys += [Key("python_version", Scalar(version))] if version else []
        items.append(Item(Dict.of(python=Dict(keys)), when))
    if commands:
        own = [*items_of(section.all("files"), outer), *(Item(Scalar(name)) for name in runs)]
        folders = keyed("recipe", List(own), notes["files"])
        folders += keyed("source", List(items_of(section.all("source_files"), outer)), notes["source_files"])
        keys = [
            Key("script", List(commands), notes["commands"]),
            *keyed("requirements", Dict(keyed("run", List(requires), notes["requires"]))),
            *keyed("files", Dict(folders)),
        ]
        items.append(Item(Dict(keys), when))
    for item in items_of(section.all("downstreams"), outer):
        items.append(Item(Dict.of(downstream=item.value), (*when, *item.when), item.comments, item.remark))
    for name, value in section.entries:
        if name not in _KNOWN_TESTS and value.when != NEVER and (listed([value]) or isinstance(value, Mapped)):
            given.problem(value.line, f"'test: {name}' has no equivalent in a recipe.yaml")
    return items


def _comments(section: Mapped, name: str) -> tuple[str, ...]:
    """The comments above a key and after it."""
    nodes = section.all(name)
    return tuple(line for node in nodes for line in (*node.comments, *([f"# {node.remark}"] if node.remark else [])))


def _always(item: Item) -> str:
    """The text of an item without conditions and comments; '' of others."""
    bare = isinstance(item.value, Scalar) and not (item.when or item.comments or item.remark)
    return item.value.text if bare and isinstance(item.value, Scalar) else ""


def _may_be_imported(item: Item, python: str) -> bool:
    """Whether what a test requires may be there for its imports: it is neither Python nor a tool of the commands."""
    text = _always(item)
    return text not in {python} - {""} and not _TOOL.match(text)


def _import(item: Item) -> Item:
    """An import as a command: tests of `python` get no requirements of their own."""
    assert isinstance(item.value, Scalar)  # noqa: S101 - imports are texts
    return Item(Scalar(f'python -c "import {item.value.text}"'), item.when, item.comments, item.remark)
