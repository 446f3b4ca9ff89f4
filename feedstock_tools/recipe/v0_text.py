"""The text of a `meta.yaml`, and the parts of it that conda-build looks at when it searches for used variables.

conda-build takes recipes apart with regular expressions over the text, before or after selectors, so that templates
need not be rendered. The parts here are the same (conda_build/metadata.py: output_re, extract_*_text).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from feedstock_tools.errors import InputError
from feedstock_tools.variants.namespace import Namespace
from feedstock_tools.variants.read import read_text
from feedstock_tools.variants.rules import CondaBuildRules
from feedstock_tools.variants.selectors import select_lines

__all__ = [
    "OutputKey",
    "RecipeText",
    "View",
    "package_and_build_in",
    "read_recipe_text",
    "requirements_in",
    "requirements_section",
]

#: No recipe has longer lines; the regular expressions below take time that grows with the square of a line.
_LONGEST_LINE = 10_000

_FLAGS = re.MULTILINE | re.DOTALL
_OUTPUT = re.compile(r"^\ +-\ +(?:name|type):.+?(?=^\w|\Z|^\ +-\ +(?:name|type))", _FLAGS)
_OUTPUTS_SECTION = re.compile(r"(^outputs:.*?)(?=^test:|^extra:|^about:|\Z)", _FLAGS)
_PACKAGE_AND_BUILD = re.compile(r"(^.*?)(?=^requirements:|^test:|^extra:|^about:|^outputs:|\Z)", _FLAGS)
_REQUIREMENTS_OF_TOP = re.compile(r"(^requirements:.*?)(?=^test:|^extra:|^about:|^outputs:|\Z)", _FLAGS)
_REQUIREMENTS_OF_OUTPUT = re.compile(
    r"(^\s*requirements:.*?)(?=^\s*test:|^\s*extra:|^\s*about:|^\s*-\s+name:|^outputs:|\Z)", _FLAGS
)
_REQUIREMENTS = re.compile(r"requirements:.+?(?=^\w|\Z|^\s+-\s(?=name|type))", _FLAGS)

#: Name and type of an output, as conda-build finds its block of text.
OutputKey = tuple[str, str]


def _part(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return (match.group(1) or "") if match else ""


def read_recipe_text(path: Path, rules: CondaBuildRules) -> RecipeText:
    """The text of `meta.yaml`.

    Raises:
        InputError: it cannot be read, or a line is longer than any recipe's.
    """
    raw = read_text(path)
    for number, line in enumerate(raw.splitlines(), 1):
        if len(line) > _LONGEST_LINE:
            raise InputError(f"the line is longer than {_LONGEST_LINE} characters", path=path, line=number)
    return RecipeText(raw, path, rules)


@dataclass(frozen=True)
class RecipeText:
    """A recipe's text before selectors."""

    raw: str
    path: Path
    rules: CondaBuildRules

    @cached_property
    def outputs(self) -> str:
        """The section `outputs`."""
        return _part(_OUTPUTS_SECTION, self.raw)

    @cached_property
    def package_and_build(self) -> str:
        """What stands before the requirements."""
        return _part(_PACKAGE_AND_BUILD, self.raw)

    @cached_property
    def tokens(self) -> frozenset[str]:
        """The words of the recipe, with `-` read as `_`."""
        return frozenset(re.findall(r"\w+", self.raw.replace("-", "_")))


class View:
    """A recipe's text as one variant sees it: lines whose selectors hold.

    Two variants that agree in the keys a recipe mentions have equal views; callers share them.
    """

    def __init__(self, recipe: RecipeText, namespace: Namespace) -> None:
        self.recipe = recipe
        self.namespace = namespace
        self._known: dict[str, str] = {}

    def select(self, text: str) -> str:
        """The lines of a part of the recipe that are left.

        Raises:
            InputError: a selector cannot be evaluated.
        """
        selected = self._known.get(text)
        if selected is None:
            selected, _ = select_lines(text, self.namespace, self.recipe.rules, self.recipe.path)
            self._known[text] = selected
        return selected

    @cached_property
    def full(self) -> str:
        """The whole recipe."""
        return self.select(self.recipe.raw).rstrip()

    @cached_property
    def template(self) -> str:
        """The whole recipe as it is rendered."""
        return self.select(self.recipe.raw)

    @cached_property
    def outputs(self) -> str:
        """The section `outputs`."""
        return self.select(self.recipe.outputs).rstrip()

    @cached_property
    def top_level_package_and_build(self) -> str:
        """What stands before the requirements of the top level."""
        return self.select(self.recipe.package_and_build).rstrip()

    def block(
        self, key: OutputKey, outputs: Sequence[Mapping[str, Any]], top_name: str, *, selected: bool = True
    ) -> str:
        """The block of text of an output: the one with its place among the rendered outputs.

        Where the text has no blocks it is empty; where no output has the name, it is the name, as in conda-build.
        """
        blocks = _OUTPUT.findall(self.outputs if selected else self.recipe.outputs.rstrip())
        keys = [(str(out.get("name", top_name)), str(out.get("type", "conda"))) for out in outputs]
        if not keys:
            keys = [(key[0], "conda")]
        if key not in keys:
            return key[0]
        place = keys.index(key)
        if not blocks:
            return ""
        if place >= len(blocks):
            raise InputError(
                f"the output '{key[0]}' has no block of its own in the text",
                path=self.recipe.path,
                hint="Write each output as `- name: …`; conda-build finds outputs by their text.",
            )
        return str(blocks[place])

    def top_level_with(self, block: str, *, selected: bool) -> str:
        """The top level (all but the outputs) and one output's block, as conda-build concatenates them."""
        text, outputs = (self.full, self.outputs) if selected else (self.recipe.raw.rstrip(), self.recipe.outputs)
        return text.replace(outputs.strip(), "") + block


def requirements_in(text: str) -> str:
    """The part of `text` from the first `requirements:` on."""
    match = _REQUIREMENTS.search(text)
    return match.group() if match else ""


def requirements_section(text: str) -> str:
    """The requirements as conda-build looks for NumPy pins and subpackages in them."""
    return _part(_REQUIREMENTS_OF_TOP if "package:" in text else _REQUIREMENTS_OF_OUTPUT, text)


def package_and_build_in(text: str) -> str:
    """What stands before the requirements in `text`."""
    return _part(_PACKAGE_AND_BUILD, text)
