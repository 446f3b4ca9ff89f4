"""The parts common to both recipe formats: placeholders, choices, limits, copied lines, preferences, skips."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from textwrap import wrap
from typing import Any

from feedstock_tools.conditions.spec import to_expression
from feedstock_tools.conditions.tree import And, Condition, Name, Not, Or, VersionTest, both, names_of, negated
from feedstock_tools.errors import InputError
from feedstock_tools.generate.spec.content import PLACEHOLDER, fill
from feedstock_tools.generate.spec.items import About, AboutOutput, Choice, Verbatim
from feedstock_tools.generate.spec.model import Spec
from feedstock_tools.generate.texts.resolved import CUDA, python_skips, skips_python_by_output
from feedstock_tools.platforms import Platform

_WIDTH = 100
#: Text that cannot begin or end a plain scalar (YAML 1.1, section 9.1.3), or that conda-build reads as a selector.
_NOT_PLAIN = re.compile(r"""^$|^[\s\-?:,\[\]{}#&*!|>'"%@`]|: |:$|\s#|\s$|\]$|\n""")


@dataclass(frozen=True, slots=True)
class Line:
    """One line, the selector that conditions it and the comment that explains it."""

    text: str
    selector: str | None = None
    why: str | None = None


def quoted(text: str) -> str:
    """The text as a YAML scalar, in quotes only if a plain one would be misread.

    >>> quoted("3.10"), quoted("numpy >=1.19"), quoted(">=1")
    ('"3.10"', 'numpy >=1.19', '">=1"')
    """
    if _NOT_PLAIN.search(text) or not _reads_as_text(text):
        return json.dumps(text, ensure_ascii=False)
    return text


@cache
def _reads_as_text(text: str) -> bool:
    """Whether YAML reads the plain scalar as a string, and not as a number, a date, a boolean or null."""
    from yaml import ScalarNode
    from yaml.resolver import Resolver

    resolver: Any = Resolver()
    return bool(resolver.resolve(ScalarNode, text, (True, False)) == "tag:yaml.org,2002:str")


def comment(text: str, indent: int) -> list[str]:
    """A comment, wrapped."""
    return [
        f"{' ' * indent}# {line}"
        for line in wrap(text, max(_WIDTH - indent, 40), break_long_words=False, break_on_hyphens=False)
    ]


def aligned(lines: Iterable[Line], indent: int) -> str:
    """The lines at an indentation, with aligned selectors; comments come above their line."""
    lines = tuple(lines)
    column = max((len(line.text) for line in lines if line.selector), default=0)
    written: list[str] = []
    for line in lines:
        if line.why:
            written += comment(line.why, indent)
        selector = f"{' ' * (column - len(line.text))}  # [{line.selector}]" if line.selector else ""
        written.append(f"{' ' * indent}{line.text}{selector}")
    return "\n".join(written)


#: The CUDA version as build strings have it, in either format: 112.
CUDA_DIGITS = 'cuda_compiler_version | replace(".", "")'
#: The amount added to a GPU build's number: 12900 for CUDA 12.9.
RAISED = f"100 * ({CUDA_DIGITS} | int)"
#: The amount added to a CPU build's number if CPU is preferred: more than a hundred times any CUDA version.
PREFERRED_CPU = 100_000
_NUMBER_WHY = (
    "The build number grows with the CUDA version, so that a solver takes the newest build that the driver runs: "
    "between equal numbers it would go by time stamps."
)
#: Platforms for which conda-smithy makes jobs by default.
ON_BY_DEFAULT = ("linux-64", "osx-64", "win-64")

Skips = tuple[tuple[Condition, str | None], ...]


def filled(text: str, opening: str, names: Mapping[str, str]) -> str:
    """The string with placeholders as expressions: `{version}` is `{{ version }}` after `opening` `{{`."""
    return fill(text, lambda name: f"{opening} {names.get(name, name)} }}}}")


def numbered(spec: Spec) -> bool:
    """Whether the build number depends on the accelerator."""
    return spec.automatic and spec.cuda is not None and spec.prefer.by in ("build_number", "both")


def number_why(spec: Spec) -> str:
    """Why the build number depends on the accelerator."""
    first = " CPU builds have the largest, so that they are preferred." if spec.prefer.accelerator == "cpu" else ""
    return _NUMBER_WHY + first


def skips(spec: Spec) -> Skips:
    """The builds that the recipe skips: default platforms, CUDA versions, and the spec's own skips."""
    if not spec.automatic:
        return tuple((item.when, item.why) for item in spec.skip)
    conditions: list[tuple[Condition, str | None]] = []
    unwanted = _unwanted_platforms(spec)
    if unwanted:
        conditions.append((unwanted[0] if len(unwanted) == 1 else Or(tuple(unwanted)), None))
    if spec.cuda and spec.pinning == "conda-forge":
        if spec.cuda.platforms:
            places = tuple(Name(subdir) for subdir in spec.cuda.platforms)
            conditions.append((And((CUDA, Not(places[0] if len(places) == 1 else Or(places)))), None))
        if not isinstance(spec.cuda.versions, str):
            versions = tuple(VersionTest("cuda", "==", version) for version in spec.cuda.versions)
            conditions.append((And((CUDA, Not(versions[0] if len(versions) == 1 else Or(versions)))), None))
    conditions += [] if skips_python_by_output(spec) else python_skips(spec)
    return (*conditions, *((item.when, item.why) for item in spec.skip if "python" not in names_of(item.when)))


def _unwanted_platforms(spec: Spec) -> list[Condition]:
    wanted = [Platform.parse(subdir) for subdir in spec.platforms]
    unwanted: list[Condition] = []
    for platform in map(Platform.parse, ON_BY_DEFAULT):
        if platform not in wanted:
            os_is_wanted = any(other.os == platform.os for other in wanted)
            unwanted.append(Name(platform.subdir if os_is_wanted else platform.os))
    return unwanted


def about(section: About | AboutOutput, names: Mapping[str, str], expand: Callable[[str], str]) -> tuple[Line, ...]:
    """The section `about`, in the order of a recipe.

    Args:
        names: the format's spellings of its keys.
        expand: makes the placeholders of an address, such as `{version}`, the format's.
    """
    lines: list[Line] = []
    for key in ("homepage", "license", "license_family", "license_file", "license_url", "summary"):
        value = getattr(section, key, None)
        if isinstance(value, tuple) and len(value) > 1:
            lines += [Line(f"{key}:"), *(Line(f"  - {quoted(name)}") for name in value)]
        elif value:
            text = value if isinstance(value, str) else value[0]
            written = expand(text) if key in {"homepage", "license_url"} else text
            lines.append(Line(f"{names.get(key, key)}: {quoted(written)}"))
    if section.description:
        paragraphs = section.description.strip().splitlines()
        lines += [Line("description: |"), *(Line(f"  {line}".rstrip()) for line in paragraphs)]
    for key in ("repository", "documentation"):
        if value := getattr(section, key):
            lines.append(Line(f"{names.get(key, key)}: {quoted(expand(value))}"))
    return tuple(lines)


def features_why(spec: Spec) -> str:
    """Why a build carries `track_features`."""
    preferred, other = ("GPU", "CPU") if spec.prefer.accelerator == "gpu" else ("CPU", "GPU")
    return f"Solvers avoid builds with features, so that they prefer the {preferred} build to the {other} build."


#: A limit of a pin that counts parts of the version, such as `x.x`.
LIMIT = re.compile(r"x(\.x)*")


def chosen_v1(choices: Sequence[Choice], names: Mapping[str, str]) -> str:
    """The choices as one value of a recipe.yaml: the first whose condition holds; the last stands for all others.

    >>> chosen_v1((Choice(value="cuda{cuda_digits}", when="cuda"), Choice(value="cpu")), {})
    '${{ ("cuda" ~ cuda_digits) if cuda_compiler_version != "None" else ("cpu") }}'
    """
    if len(choices) == 1 and choices[0].when is None:
        return quoted(filled(choices[0].value, "${{", names))
    *first, last = choices
    parts = [
        f"({_expression(choice.value, names)}) if {to_expression(choice.when)} else " for choice in first if choice.when
    ]
    nested = "(".join(parts) + f"({_expression(last.value, names)})" + ")" * (len(parts) - 1)
    return f"${{{{ {nested} }}}}"


def exclusive(choices: Sequence[Choice]) -> list[tuple[str, Condition | None]]:
    """The choices with conditions that exclude each other: each value without the builds of those before it."""
    found: list[tuple[str, Condition | None]] = []
    before: list[Condition] = []
    for choice in choices:
        others = None if not before else negated(before[0] if len(before) == 1 else Or(tuple(before)))
        found.append((choice.value, both(choice.when, others)))
        before += [choice.when] if choice.when else []
    return found


def _expression(text: str, names: Mapping[str, str]) -> str:
    """A text with placeholders as an expression."""
    pieces = PLACEHOLDER.split(text)
    parts = []
    for at, piece in enumerate(pieces):
        if at % 2:
            name = names.get(piece, piece)
            parts.append(name if re.fullmatch(r"\w+", name) else f"({name})")
        elif piece:
            parts.append(json.dumps(piece, ensure_ascii=False))
    return " ~ ".join(parts) or '""'


def limits(lower: str | None, upper: str | None, keys: Mapping[str, str]) -> list[str]:
    """The limits of a pin as arguments; `keys` are the names of the arguments for `lower`, `upper`, and, if they are
    versions, `lower version` and `upper version`."""
    found = []
    for side, limit in (("lower", lower), ("upper", upper)):
        if limit == "none":
            found.append(f"{keys[side]}=None")
        elif limit and (name := PLACEHOLDER.fullmatch(limit)):
            found.append(f"{keys[f'{side} version']}={name[1]}")
        elif limit:
            key = keys[side] if LIMIT.fullmatch(limit) else keys[f"{side} version"]
            found.append(f"{key}='{limit}'")
    return found


def verbatim_lines(blocks: Iterable[Verbatim], section: str, recipe_format: str) -> list[str]:
    """The lines of the blocks for a section.

    Raises:
        InputError: a block has no lines for this format.
    """
    lines: list[str] = []
    for block in blocks:
        text = block.v0 if recipe_format == "v0" else block.v1
        if block.section != section:
            continue
        if text is None:
            hint = f"Add the lines of a {recipe_format} recipe as `{recipe_format}:`; empty, if it needs none."
            raise InputError(f"a verbatim block for '{section}' has no lines for {recipe_format}", hint=hint)
        lines += [*(comment(block.why, 0) if block.why and text else ()), *text.splitlines()]
    return lines
