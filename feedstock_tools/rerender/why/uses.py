"""Which lines of a recipe and its scripts use a key, for each output of a platform.

The renderer decides what an output uses; this module only finds the lines behind that decision. In a meta.yaml they are
found with the renderer's own patterns (recipe/v0) and the same parts of the text; in a recipe.yaml in expressions,
conditions, bare requirements and `variant: use_keys`, in branches that are taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

from feedstock_tools.reading import LARGEST_SCRIPT, is_file, read_bytes
from feedstock_tools.recipe.model import RenderedOutput
from feedstock_tools.recipe.v0.meta import Meta
from feedstock_tools.recipe.v0.used import UsageFinder, usage_finder
from feedstock_tools.recipe.written.sites import Site, sites_of
from feedstock_tools.rerender.why.model import FileLine, Use
from feedstock_tools.variants.rules import CondaBuildRules
from feedstock_tools.variants.selectors import Namespace, holds
from feedstock_tools.yaml_reading.nodes import compose

#: Kind of use -> the pattern of a line that holds it, in the order in which they are tried.
_KINDS: tuple[tuple[str, str], ...] = (
    ("compiler", r"\{\{\s*compiler\("),
    ("stdlib", r"\{\{\s*stdlib\("),
    ("cdt", r"\{\{\s*cdt\("),
    ("pin", r"\{\{\s*pin_\w+\("),
    ("condition", r"\{%-?\s*(?:el)?if"),
    ("loop", r"\{%-?\s*for"),
    ("assignment", r"\{%-?\s*set"),
    ("template", r"\{\{"),
    ("requirement", r"^\s+-\s"),
)
_WHY = {
    "selector": "a selector uses it",
    "compiler": "compiler() takes the compiler's name and version from it",
    "stdlib": "stdlib() takes the C library's name and version from it",
    "cdt": "cdt() uses it",
    "pin": "it is pinned",
    "condition": "a condition uses it",
    "loop": "a loop runs over it",
    "assignment": "a variable is set from it",
    "template": "it is written out",
    "requirement": "it is a requirement without a version, which gets the variant's",
    "script": "the build script reads it",
    "force_use_keys": "the recipe says that it counts as used",
    "skip": "a condition for skipping uses it",
    "expression": "an expression uses it",
    "use_keys": "the recipe says that it counts as used",
}
_CALLS = {"compiler": ("{}_compiler", "{}_compiler_version"), "stdlib": ("{}_stdlib", "{}_stdlib_version")}
_EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}")
_BARE = re.compile(r"[A-Za-z_][\w.\-]*")
_SHELL = r"^[^$\n]*\$\{{?\s*({key})\s*[\s|}}]"
_BATCH = r"(?<=%)({key})(?=%)"

#: conda-build counts it as used wherever a compiler or the C library is.
_SYSROOT = "CONDA_BUILD_SYSROOT"

Line = tuple[int, str]


@dataclass(frozen=True)
class _Lines:
    """The numbered lines of an output's part of the recipe: as written, and as its variant sees them."""

    raw: tuple[Line, ...]
    selected: tuple[Line, ...]

    @cached_property
    def forces(self) -> bool:
        return any("force_use_keys" in text for _, text in self.selected)


@dataclass
class TextUses:
    """Collects the renderer's results for a recipe (it is a `Watch`), and finds the lines that use a key.

    `seen` holds the outputs with the package that each was made from.
    """

    path: Path
    rules: CondaBuildRules
    windows: bool
    seen: list[tuple[Meta, RenderedOutput]] = field(default_factory=list)
    _parts: dict[tuple[int, str, str], _Lines] = field(default_factory=dict)
    _scripts: dict[tuple[Path, str], tuple[FileLine, ...]] = field(default_factory=dict)

    def __call__(self, meta: Meta, output: RenderedOutput) -> None:
        self.seen.append((meta, output))

    def of(self, key: str, outputs: Iterable[RenderedOutput], *, at_top: bool) -> Iterator[Use]:
        """The uses of `key` that count for `outputs`.

        Args:
            at_top: the key counts at the top level for all outputs, so the lines of the top level are uses too.
        """
        wanted = {id(output) for output in outputs}
        outputs_of: dict[tuple[str, FileLine], dict[str, None]] = {}
        brought_by = {"c_compiler", "cxx_compiler", "c_stdlib"} if key == _SYSROOT else set()
        finder = usage_finder({key} | brought_by, self._raw, self.rules)
        for meta, output in self.seen:
            if id(output) not in wanted or not (key in output.used.own or at_top):
                continue
            for kind, place in self._uses(key, meta, output, finder, at_top):
                outputs_of.setdefault((kind, place), {})[output.name] = None
        for (kind, place), names in sorted(outputs_of.items(), key=lambda item: (item[0][1], item[0][0])):
            yield Use(kind, _why(kind, key, place.text), place, tuple(names))

    @property
    def _raw(self) -> str:
        return self.seen[0][0].view.recipe.raw if self.seen else ""

    def _uses(
        self, key: str, meta: Meta, output: RenderedOutput, finder: UsageFinder, at_top: bool
    ) -> Iterator[tuple[str, FileLine]]:
        parts = []
        if key in output.used.own or not meta.is_output:
            parts.append(self._block(meta))
        if at_top or not meta.is_output:
            parts.append(self._top(meta))
        for part in parts:
            for number, text in part.raw:
                if key in finder.in_selectors(text):
                    yield "cdt" if key.startswith("cdt_") and "cdt(" in text else "selector", self._place(number)
            forced = frozenset(_forced(key, part.selected)) if part.forces else frozenset()
            for number, text in part.selected:
                if number in forced:
                    yield "force_use_keys", self._place(number)
                elif key in finder.in_text(text):
                    yield _kind(text), self._place(number)
        yield from self._in_scripts(key, meta)

    def _place(self, number: int) -> FileLine:
        return FileLine(self.path, number, self._texts[number - 1].strip())

    @cached_property
    def _texts(self) -> list[str]:
        return self._raw.splitlines()

    def _block(self, meta: Meta) -> _Lines:
        raw, view = meta.view.recipe.raw, meta.view
        key = (id(view), meta.raw_block, meta.block)
        if key not in self._parts:
            self._parts[key] = _Lines(
                _part_of(raw, key[1], enumerate(self._texts, 1)), _part_of(view.template, key[2], view.numbered)
            )
        return self._parts[key]

    def _top(self, meta: Meta) -> _Lines:
        view = meta.view
        key = (id(view), "", "top level")
        if key not in self._parts:
            raw = tuple(enumerate(self._texts, 1))
            inner = {number for number, _ in _part_of(view.recipe.raw, view.recipe.sections.outputs, raw)}
            self._parts[key] = _Lines(
                tuple(line for line in raw if line[0] not in inner),
                tuple(line for line in view.numbered if line[0] not in inner),
            )
        return self._parts[key]

    def _in_scripts(self, key: str, meta: Meta) -> Iterator[tuple[str, FileLine]]:
        names = ["build.sh", *(["bld.bat"] if self.windows else [])]
        if "package:" not in meta.own_text:
            script = meta.output.get("script")
            names = [script] if isinstance(script, str) else []
        folder = self.path.parent
        for name in names:
            script_path = folder / name
            if script_path.resolve().is_relative_to(folder.resolve()):
                if (script_path, key) not in self._scripts:
                    self._scripts[script_path, key] = tuple(script_lines(script_path, key))
                yield from (("script", place) for place in self._scripts[script_path, key])


def _part_of(whole: str, part: str, numbered: Iterable[Line]) -> tuple[Line, ...]:
    """The numbered lines of `whole` that `part` covers; None if `part` does not begin a line of it."""
    at = whole.find(part.rstrip()) if "\n" in part.strip() or part[:1].isspace() else -1
    if at < 0 or not part.strip():
        return ()
    first = whole.count("\n", 0, at)
    return tuple(numbered)[first : first + part.rstrip().count("\n") + 1]


def _why(kind: str, key: str, text: str) -> str:
    if kind in ("condition", "assignment", "template") and not re.search(rf"(?<!\w){re.escape(key)}(?!\w)", text):
        return "the line has a longer name that contains it, which conda-build does not distinguish"
    return _WHY[kind]


def _kind(text: str) -> str:
    return next((kind for kind, pattern in _KINDS if re.search(pattern, text)), "template")


def _forced(key: str, lines: Iterable[Line]) -> Iterator[int]:
    """The items of `force_use_keys` that are the key: on the lines below, indented or as list items, or on the same
    line."""
    indent = None
    for number, text in lines:
        opening = re.match(r"(\s*)force_use_keys:(.*)", text)
        if opening:
            indent = len(opening.group(1))
            if re.search(rf"(?<!\w){re.escape(key)}(?!\w)", opening.group(2)):
                yield number
            continue
        if indent is not None and text.strip():
            item = re.match(r"(\s*)-\s*[\"']?([\w.\-]+)[\"']?\s*$", text)
            if item is None or len(item.group(1)) < indent:
                indent = None
            elif item.group(2) == key:
                yield number


def script_lines(path: Path, key: str) -> Iterator[FileLine]:
    """The lines of a build script that count as uses of a key, as the renderer finds them."""
    if path.suffix not in (".sh", ".bat") or not is_file(path):
        return
    text = read_bytes(path, LARGEST_SCRIPT, within=path.parent).decode(errors="replace").replace("\r\n", "\n")
    pattern = (_BATCH if path.suffix == ".bat" else _SHELL).format(key=re.escape(key))
    lines = text.splitlines()
    for match in re.finditer(pattern, text, re.MULTILINE):
        number = text.count("\n", 0, match.start(1)) + 1
        yield FileLine(path, number, lines[number - 1].strip())


# --- recipe.yaml: the engine reports which keys an output uses, but not where


@dataclass(frozen=True)
class _Mention:
    """A line that mentions keys, the output that it belongs to (None: all), and the conditions that apply to it."""

    kind: str
    line: int
    keys: frozenset[str]
    output: str | None
    conditions: tuple[tuple[str, bool], ...]


@dataclass(frozen=True)
class YamlUses:
    """Finds the lines of a recipe.yaml that mention a key.

    `all_branches`: branches that are not taken count, as with rattler-build until 0.57.
    """

    path: Path
    text: str
    subdir: str
    all_branches: bool = False
    _holds: dict[tuple[str, int], bool | None] = field(default_factory=dict)

    def of(self, key: str, outputs: Iterable[RenderedOutput]) -> Iterator[Use]:
        """The uses of `key` by the outputs that use it."""
        users = [output for output in outputs if key in output.used.own]
        texts = self.text.splitlines()
        for mention in self._mentions:
            if key not in mention.keys:
                continue
            names = {
                output.name
                for output in users
                if mention.output in (None, output.name) and self._is_reached(mention, output)
            }
            if names:
                place = FileLine(self.path, mention.line, texts[mention.line - 1].strip())
                yield Use(mention.kind, _WHY[mention.kind], place, tuple(sorted(names)))

    def _is_reached(self, mention: _Mention, output: RenderedOutput) -> bool:
        return self.all_branches or all(
            self._condition(text, output) in (None, wanted) for text, wanted in mention.conditions
        )

    def _condition(self, text: str, output: RenderedOutput) -> bool | None:
        """Whether a condition holds for an output; None if only the engine can tell."""
        key = (text, id(output))
        if key not in self._holds:
            namespace = Namespace(self.subdir, self.subdir, output.variant, {}, CondaBuildRules())
            is_known = all(name in namespace for name in _names(text))
            self._holds[key] = holds(text, namespace) if is_known else None
        return self._holds[key]

    @cached_property
    def _mentions(self) -> tuple[_Mention, ...]:
        lines = self.text.splitlines()
        sites = sites_of(compose(self.text, self.path))
        mentions = dict.fromkeys(mention for site in sites for mention in _mentions(site, lines))
        return tuple(sorted(mentions, key=lambda mention: (mention.line, mention.kind)))


def _mentions(site: Site, lines: Sequence[str]) -> Iterator[_Mention]:
    output = None if not site.output or "${{" in site.output else site.output
    mention = partial(_Mention, output=output, conditions=site.conditions)
    first, last = site.lines
    if site.kind == "condition":
        yield mention("condition", first, _names(site.text))
    if site.kind != "value":
        return
    if site.keys[-1:] == ("skip",) and "${{" not in site.text:
        yield mention("skip", first, _names(site.text))
    elif site.keys[-1:] == ("use_keys",):
        yield mention("use_keys", first, frozenset({site.text}))
    elif "requirements" in site.keys and site.keys[-1] in ("build", "host") and _BARE.fullmatch(site.text.strip()):
        yield mention("requirement", first, frozenset({site.text.strip().replace("-", "_")}))
    for number in range(first, min(last, len(lines)) + 1):
        for match in _EXPRESSION.finditer(lines[number - 1]):
            for kind, names in _in_expression(match.group(1)):
                yield mention(kind, number, names)


def _in_expression(text: str) -> Iterator[tuple[str, frozenset[str]]]:
    called: set[str] = set()
    for call, language in re.findall(r"\b(compiler|stdlib)\(\s*[\"']([\w\-]+)[\"']", text):
        names = frozenset(form.format(language.replace("-", "_")) for form in _CALLS[call])
        called |= names
        yield call, names
    if re.search(r"\bcdt\(", text):
        yield "cdt", frozenset({"cdt_name", "cdt_arch"})
    yield "expression", _names(text) - called


def _names(text: str) -> frozenset[str]:
    """The names of an expression: words that are neither quoted nor attributes nor keywords."""
    bare = re.sub(r"\"[^\"]*\"|'[^']*'", lambda quoted: " " * len(quoted.group()), text)
    words = frozenset(re.findall(r"(?<![\w.])[A-Za-z_]\w*", bare)) - {"and", "or", "not", "in", "is", "if", "else"}
    # pin_subpackage("libtorch") and pin_compatible("numpy") name the pinned package in quotes
    pinned = re.findall(r"\bpin_\w+\(\s*[\"']([\w.\-]+)[\"']", text)
    return words | frozenset(name.replace("-", "_") for name in pinned)
