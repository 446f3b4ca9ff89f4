"""The parts common to both recipe formats: placeholders, choices, limits, copied lines, preferences, skips."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from textwrap import wrap
from typing import Any

from feedstock_tools.conditions.tree import And, Condition, Name, Not, VersionTest, any_of, names_of
from feedstock_tools.errors import InputError
from feedstock_tools.generate.spec.content import PLACEHOLDER, fill
from feedstock_tools.generate.spec.items import About, AboutOutput, Verbatim
from feedstock_tools.generate.spec.model import Script, Source, Spec
from feedstock_tools.generate.texts.resolved import (
    CUDA,
    Need,
    is_alone,
    python_skips,
    resolve_outputs,
    skips_python_by_output,
)
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


def calls(script: Script) -> dict[str, str]:
    """The commands that run the files of a script, by system."""
    files = {"unix": ('bash -e "${RECIPE_DIR}/%s"', script.unix), "win": ('call "%%RECIPE_DIR%%\\%s"', script.win)}
    return {system: command % file for system, (command, file) in files.items() if file}


def comment(text: str, indent: int) -> list[str]:
    """A comment, each of its lines wrapped."""
    width = max(_WIDTH - indent, 40)
    return [
        f"{' ' * indent}# {line}"
        for whole in text.splitlines()
        for line in wrap(whole, width, break_long_words=False, break_on_hyphens=False)
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


def numbered(spec: Spec) -> bool:
    """Whether the build number depends on the accelerator."""
    return spec.automatic and spec.cuda is not None and spec.prefer.by in ("build_number", "both")


def number_why(spec: Spec) -> str:
    """Why the build number depends on the accelerator."""
    first = " CPU builds have the largest, so that they are preferred." if spec.prefer.accelerator == "cpu" else ""
    return _NUMBER_WHY + first


def skips(spec: Spec) -> Skips:
    """The builds that the recipe skips: default platforms, CUDA versions, the spec's skips and its only output's."""
    only = resolve_outputs(spec)[0].skip if is_alone(spec) else ()
    if not spec.automatic:
        return (*((item.when, item.why) for item in spec.skip), *only)
    conditions: list[tuple[Condition, str | None]] = []
    unwanted = _unwanted_platforms(spec)
    if unwanted:
        conditions.append((any_of(unwanted), None))
    if spec.cuda and spec.pinning == "conda-forge":
        if spec.cuda.platforms:
            places = [Name(subdir) for subdir in spec.cuda.platforms]
            conditions.append((And((CUDA, Not(any_of(places)))), None))
        if not isinstance(spec.cuda.versions, str):
            versions = [VersionTest("cuda", "==", version) for version in spec.cuda.versions]
            conditions.append((And((CUDA, Not(any_of(versions)))), None))
    conditions += [] if skips_python_by_output(spec) else python_skips(spec)
    own = ((item.when, item.why) for item in spec.skip if "python" not in names_of(item.when))
    return tuple(dict.fromkeys((*conditions, *own, *only)))


def _unwanted_platforms(spec: Spec) -> list[Condition]:
    if all(output.noarch for output in spec.outputs):
        return []  # a platform that `noarch_platforms` names builds them, and no other
    wanted = [Platform.parse(subdir) for subdir in spec.platforms]
    unwanted: list[Condition] = []
    for platform in map(Platform.parse, ON_BY_DEFAULT):
        if platform not in wanted:
            os_is_wanted = any(other.os == platform.os for other in wanted)
            unwanted.append(Name(platform.subdir if os_is_wanted else platform.os))
    return unwanted


def features_why(spec: Spec) -> str:
    """Why a build carries `track_features`."""
    preferred, other = ("GPU", "CPU") if spec.prefer.accelerator == "gpu" else ("CPU", "GPU")
    return f"Solvers avoid builds with features, so that they prefer the {preferred} build to the {other} build."


#: A limit of a pin that counts parts of the version, such as `x.x`.
_LIMIT = re.compile(r"x(\.x)*")
#: A requirement whose version has neither operator nor star. The value of `python` in a pinning has a star itself.
_BARE_VERSION = re.compile(r"^([\w.-]+) (?!\{python\})((?:[\w.!+]|\{\w+\})+)(?: (\S+))?$")
#: Key of a view → the section of the recipe that its verbatim lines are for.
_VERBATIM = {
    "top_lines": "top",
    "source_lines": "source",
    "more_build_lines": "build",
    "more_about_lines": "about",
    "extra_lines": "extra",
}


def _with_operator(bare: re.Match[str]) -> str:
    """A version without an operator as conda reads it: 1.2 and what refines it, or that very version of a build."""
    name, version, build = bare.groups()
    return f"{name} =={version} {build}" if build else f"{name} {version}.*"


@dataclass(frozen=True)
class Syntax:
    """How a recipe format writes what a spec says.

    Attributes:
        recipe_format: `v0` or `v1`.
        opening: what opens an expression.
        names: placeholder → its expression; others are names of variables.
        limits: the arguments for the `lower` and the `upper` limit of a pin, and if those are versions, for `lower
            version` and `upper version`.
        keys: key of `sources` or `about` → its name in the recipe, where that is another.
    """

    recipe_format: str
    opening: str
    names: Mapping[str, str]
    limits: Mapping[str, str]
    keys: Mapping[str, str]

    def filled(self, text: str) -> str:
        """The string with placeholders as expressions: `{version}` is `{{ version }}` in conda-build's."""
        return fill(text, lambda name: f"{self.opening} {self.names.get(name, name)} }}}}")

    def scalar(self, text: str) -> str:
        """The same as a YAML scalar."""
        return quoted(self.filled(text))

    def package(self, need: Need) -> str:
        """The name, version and build of a required package."""
        is_v1 = self.recipe_format == "v1"  # rattler-build takes no bare versions
        return self.filled(_BARE_VERSION.sub(_with_operator, need.value) if is_v1 else need.value)

    def requirement(self, need: Need) -> str:
        """A requirement as a YAML scalar."""
        if need.kind == "package":
            text = self.package(need)
            return text if text.startswith(self.opening) else quoted(text)
        if need.kind in ("compiler", "stdlib", "cdt"):
            return f"{self.opening} {need.kind}('{need.value}') }}}}"
        function = "pin_subpackage" if need.kind == "pin" else "pin_compatible"
        bounds = ["exact=True"] if need.kind == "pin" and need.exact else self._bounds(need)
        return f"{self.opening} {function}({', '.join([repr(need.value), *bounds])}) }}}}"

    def _bounds(self, need: Need) -> list[str]:
        found = []
        for side, limit in (("lower", need.lower), ("upper", need.upper)):
            if limit == "none":
                found.append(f"{self.limits[side]}=None")
            elif limit and (name := PLACEHOLDER.fullmatch(limit)):
                found.append(f"{self.limits[f'{side} version']}={name[1]}")
            elif limit:
                key = self.limits[side] if _LIMIT.fullmatch(limit) else self.limits[f"{side} version"]
                found.append(f"{key}='{limit}'")
        return found

    def source(self, source: Source) -> list[str]:
        """The lines of a source, without its patches."""
        lines = [f"url: {self.scalar(url)}" for url in source.url]
        if len(source.url) > 1:
            lines = ["url:", *(f"  - {self.scalar(url)}" for url in source.url)]
        written = {
            "git": source.git and quoted(source.git),
            "rev": source.git and self.scalar(source.rev or ""),
            "path": source.path and self.scalar(source.path),
            "file_name": source.file_name and self.scalar(source.file_name),
            "sha256": source.sha256,
            "folder": source.folder and quoted(source.folder),
        }
        return [*lines, *(f"{self.keys.get(key, key)}: {value}" for key, value in written.items() if value)]

    def about(self, section: About | AboutOutput) -> tuple[Line, ...]:
        """The section `about`, in the order of a recipe."""
        lines: list[Line] = []
        for key in ("homepage", "license", "license_family", "license_file", "license_url", "summary"):
            value = getattr(section, key, None)
            if isinstance(value, tuple) and len(value) > 1:
                lines += [Line(f"{key}:"), *(Line(f"  - {quoted(name)}") for name in value)]
            elif value:
                text = value if isinstance(value, str) else value[0]
                written = self.filled(text) if key in {"homepage", "license_url"} else text
                lines.append(Line(f"{self.keys.get(key, key)}: {quoted(written)}"))
        if section.description:
            paragraphs = section.description.strip().splitlines()
            lines += [Line("description: |"), *(Line(f"  {line}".rstrip()) for line in paragraphs)]
        for key in ("repository", "documentation"):
            if value := getattr(section, key):
                lines.append(Line(f"{self.keys.get(key, key)}: {self.scalar(value)}"))
        return tuple(lines)

    def verbatim(self, blocks: Iterable[Verbatim], section: str) -> list[str]:
        """The lines of the blocks for a section. A description may lack lines for this format: no build needs them.

        Raises:
            InputError: another block has no lines for this format.
        """
        lines: list[str] = []
        own = self.recipe_format
        for block in blocks:
            text: str | None = getattr(block, own)
            if block.section != section or (text is None and section == "about"):
                continue
            if text is None:
                hint = f"Add the lines of a {own} recipe as `{own}:`; empty, if it needs none."
                raise InputError(f"a verbatim block for '{section}' has no lines for {own}", hint=hint)
            lines += [*(comment(block.why, 0) if block.why and text else ()), *text.splitlines()]
        return lines

    def view(self, spec: Spec) -> dict[str, Any]:
        """The values that the templates of both formats show alike."""
        view: dict[str, Any] = {
            "spec": spec,
            "package_name": spec.recipe_name or f"{spec.name}-split",
            "about_lines": self.about(spec.about),
            **{key: self.verbatim(spec.verbatim, section) for key, section in _VERBATIM.items()},
        }
        if is_alone(spec):
            (only,) = spec.outputs
            about = spec.about.model_copy(update=only.about.model_dump(exclude_defaults=True))
            more = [*view["more_about_lines"], *self.verbatim(only.verbatim, "about")]
            view |= {"package_name": only.name, "about_lines": self.about(about), "more_about_lines": more}
        return view
