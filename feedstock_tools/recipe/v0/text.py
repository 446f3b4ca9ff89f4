"""The text of a `meta.yaml`, and the parts of it that conda-build searches for used variables.

conda-build takes recipes apart with regular expressions over the text, before or after selectors, so that templates
need not be rendered. The parts here are the same (conda_build/metadata.py: output_re, extract_*_text).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from feedstock_tools.bounds.limits import BoundError, most
from feedstock_tools.errors import InputError
from feedstock_tools.reading import read_text
from feedstock_tools.variants.rules import CondaBuildRules
from feedstock_tools.variants.selectors import Namespace, evaluate, select_lines, selected_text, split_lines

#: Longer than any recipe's lines; the regular expressions below take time that grows with the square of a line.
_LONGEST_LINE = 10_000
#: About ten times the lines of conda-forge's longest recipe, and the selectors of the one with the most.
_MOST_LINES = 10_000
_MOST_SELECTORS = 500

_FLAGS = re.MULTILINE | re.DOTALL
#: conda-build's output_re, a line at a time.
_OUTPUT = re.compile(r"^ +- +(?:name|type):(?!\Z).*(?:\n(?!\w| +- +(?:name|type)).*)*\n?", re.MULTILINE)
_OUTPUTS_SECTION = re.compile(r"(^outputs:.*?)(?=^test:|^extra:|^about:|\Z)", _FLAGS)
_PACKAGE_AND_BUILD = re.compile(r"(^.*?)(?=^requirements:|^test:|^extra:|^about:|^outputs:|\Z)", _FLAGS)
_REQUIREMENTS_OF_TOP = re.compile(r"(^requirements:.*?)(?=^test:|^extra:|^about:|^outputs:|\Z)", _FLAGS)
_REQUIREMENTS_OF_OUTPUT = re.compile(
    r"(^\s*requirements:.*?)(?=^\s*test:|^\s*extra:|^\s*about:|^\s*-\s+name:|^outputs:|\Z)", _FLAGS
)
_REQUIREMENTS = re.compile(r"requirements:.+?(?=^\w|\Z|^\s+-\s(?=name|type))", _FLAGS)

#: Name and type of an output, as conda-build finds its block of text.
OutputKey = tuple[str, str]


#: Constructs that span lines, so that a line cannot be removed on its own: comments, raw blocks, whitespace control.
_NOT_LINEWISE = re.compile(r"\{#|\{%-|-%\}|\{\{-|-\}\}|\{%\s*raw")
_TEMPLATE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
#: Names through which templates can reach variables that they do not name.
_REACHING = frozenset({"environ", "os", "include", "import", "extends"})
_SET = re.compile(r"[^{%]*\{%\s*set\s[^={%]*=(?:(?!%\}).)*%\}\s*$")


def _is_whole(line: str) -> bool:
    """Whether the templates in a line begin and end in it."""
    if "{%" in line or "%}" in line:
        return bool(_SET.match(line))
    return line.count("{{") == line.count("}}")


@dataclass(frozen=True)
class _Sections:
    """A recipe's text and its section `outputs`, both without trailing blanks."""

    full: str
    outputs: str

    @cached_property
    def top_level(self) -> str:
        """All but the outputs."""
        return self.full.replace(self.outputs.strip(), "")

    @cached_property
    def blocks(self) -> tuple[str, ...]:
        """The blocks of text of the outputs."""
        return tuple(_OUTPUT.findall(self.outputs))


def _part(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return (match.group(1) or "") if match else ""


def recipe_text(raw: str, path: Path, rules: CondaBuildRules | None = None) -> RecipeText:
    """The text of the `meta.yaml` at `path`."""
    lines = raw.splitlines()
    if len(lines) > most(_MOST_LINES):
        raise BoundError(f"has more than {_MOST_LINES} lines", path=path)
    for number, line in enumerate(lines, 1):
        if len(line) > most(_LONGEST_LINE):
            raise BoundError(f"the line is longer than {_LONGEST_LINE} characters", path=path, line=number)
    return _shared(raw, path, rules or CondaBuildRules())


@lru_cache(maxsize=8)
def _shared(raw: str, path: Path, rules: CondaBuildRules) -> RecipeText:
    """Results for a text on one platform are shared by all."""
    return RecipeText(raw, path, rules)


@dataclass(frozen=True)
class RecipeText:
    """A recipe's text before selectors."""

    raw: str
    path: Path
    rules: CondaBuildRules

    def view(self, namespace: Namespace) -> View:
        """The recipe as seen in `namespace`."""
        truths: dict[str, bool] = {}
        for selector in self.selectors:
            try:
                truths[selector] = evaluate(selector, namespace)
            except Exception:
                select_lines(self.raw, namespace, self.rules, self.path)
                raise
        holding = tuple(truths.values())
        view = self._views.get(holding)
        if view is None:
            view = self._views[holding] = View(self, holding)
        return view

    @cached_property
    def _views(self) -> dict[tuple[bool, ...], View]:
        return {}

    @cached_property
    def selectors(self) -> tuple[str, ...]:
        """The different selectors."""
        lines = split_lines(self.raw, self.rules.blank_comment_lines)
        selectors = tuple(dict.fromkeys(line.selector for line in lines if line.selector is not None))
        if len(selectors) > most(_MOST_SELECTORS):
            raise BoundError(f"has more than {_MOST_SELECTORS} different selectors", path=self.path)
        return selectors

    @cached_property
    def template(self) -> str | None:
        """The recipe as one template for all variants: lines with selectors are wrapped in conditions `_k0`, `_k1`, ….

        None if a line cannot be wrapped on its own, such as one half of a `{% if %}`.
        """
        if _NOT_LINEWISE.search(self.raw):
            return None
        names = {selector: f"_k{number}" for number, selector in enumerate(self.selectors)}
        parts = []
        lines = split_lines(self.raw, self.rules.blank_comment_lines)
        for selector, group in groupby(lines, key=attrgetter("selector")):
            texts = [f"{line.text}\n" for line in group]
            if selector is None:
                parts.extend(texts)
            elif all(map(_is_whole, texts)):
                parts.append(f"{{% if {names[selector]} %}}{''.join(texts)}{{% endif %}}")
            else:
                return None
        return "".join(parts)

    @cached_property
    def sections(self) -> _Sections:
        return _Sections(self.raw.rstrip(), _part(_OUTPUTS_SECTION, self.raw).rstrip())

    @cached_property
    def tokens(self) -> frozenset[str]:
        """The words that determine how a variant renders the text: those of templates and selectors, `-` read as `_`.

        All words of the recipe if templates can reach variables that they do not name.
        """
        templates = " ".join(_TEMPLATE.findall(self.raw))
        words = frozenset(re.findall(r"\w+", templates.replace("-", "_")))
        if not words.isdisjoint(_REACHING):
            templates = self.raw
        bracketed = (line for line in self.raw.splitlines() if "[" in line)
        return frozenset(re.findall(r"\w+", " ".join((templates, *bracketed)).replace("-", "_")))


class View:
    """A recipe's text as seen by variants for which the same selectors hold; they share it (`RecipeText.view`)."""

    def __init__(self, recipe: RecipeText, holding: tuple[bool, ...]) -> None:
        self.recipe = recipe
        self._selectors = dict(zip(recipe.selectors, holding, strict=True))
        self._known: dict[str, str] = {}
        self._alone: dict[str, str] = {}

    def select(self, text: str) -> str:
        """The lines of a part of the recipe that are left."""
        selected = self._known.get(text)
        if selected is None:
            selected = selected_text(text, self.recipe.rules, self._selectors)
            if selected is None:
                selected, _ = select_lines(text, {}, self.recipe.rules, self.recipe.path, self._selectors)
            self._known[text] = selected
        return selected

    def alone(self, block: str) -> str:
        """The lines of an output's block that are left, without trailing blanks."""
        text = self._alone.get(block)
        if text is None:
            text = self._alone[block] = self.select(block).rstrip()
        return text

    @cached_property
    def full(self) -> str:
        """The whole recipe."""
        return self.select(self.recipe.raw).rstrip()

    @cached_property
    def template(self) -> str:
        """The whole recipe as it is rendered."""
        return self.select(self.recipe.raw)

    @cached_property
    def numbered(self) -> tuple[tuple[int, str], ...]:
        """The lines that are left, each with its number in the file."""
        text, numbers = select_lines(self.recipe.raw, {}, self.recipe.rules, self.recipe.path, self._selectors)
        return tuple(zip(numbers, text.splitlines(), strict=False))

    @cached_property
    def holds(self) -> dict[str, bool]:
        """Which of the recipe's selectors hold, by the names that its template gives them."""
        return {f"_k{number}": value for number, value in enumerate(self._selectors.values())}

    @cached_property
    def sections(self) -> _Sections:
        return _Sections(self.full, self.select(self.recipe.sections.outputs).rstrip())

    def block(self, key: OutputKey, keys: Sequence[OutputKey], *, selected: bool = True) -> str:
        """The block of text of an output: the one at its position among the rendered outputs, `keys`.

        Empty if the text has no blocks; the name itself if no output has it, as in conda-build.
        """
        blocks = (self.sections if selected else self.recipe.sections).blocks
        try:
            place = keys.index(key) if keys else 0
        except ValueError:
            return key[0]
        if not blocks:
            return ""
        if place >= len(blocks):
            raise InputError(
                f"the output '{key[0]}' has no block of its own in the text",
                path=self.recipe.path,
                line=self._line_of_loop(),
                hint="Write each output as `- name: …`; conda-build finds outputs by their text.",
            )
        return blocks[place]

    def _line_of_loop(self) -> int | None:
        """The line of the first loop over outputs, else of `outputs:`."""
        outputs = written_line(self.recipe.path, "outputs:")
        return written_line(self.recipe.path, "{% for", "{%- for", after=outputs or 1) or outputs

    def top_level_with(self, block: str, *, selected: bool) -> str:
        """The top level (all but the outputs) and one output's block, as conda-build concatenates them."""
        return (self.sections if selected else self.recipe.sections).top_level + block


def written_line(recipe: Path, *starts: str, after: int = 1) -> int | None:
    """The first line of a recipe, from a number on, that begins with a text as it was selected or rendered."""
    try:
        written = [line.strip() for line in read_text(recipe, within=recipe.parent).splitlines()]
    except InputError:
        return None
    lines = enumerate(written, 1)
    return next((number for number, line in lines if number >= after and line and line.startswith(starts)), None)


@lru_cache(maxsize=2048)
def requirements_in(text: str) -> str:
    """The part of `text` from the first `requirements:` on."""
    match = _REQUIREMENTS.search(text)
    return match.group() if match else ""


@lru_cache(maxsize=2048)
def requirements_section(text: str) -> str:
    """The requirements in the form in which conda-build searches them for NumPy pins and subpackages."""
    return _part(_REQUIREMENTS_OF_TOP if "package:" in text else _REQUIREMENTS_OF_OUTPUT, text)


@lru_cache(maxsize=2048)
def package_and_build_in(text: str) -> str:
    """The part of `text` before the requirements."""
    return _part(_PACKAGE_AND_BUILD, text)
