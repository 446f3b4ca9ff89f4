"""The parts common to both recipe formats: placeholders, preferences, and platforms without builds."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from feedstock_tools.conditions.tree import And, Condition, Name, Not, Or, VersionTest, names_of
from feedstock_tools.generate.spec.items.written import AboutOutput
from feedstock_tools.generate.spec.model import About, Spec
from feedstock_tools.generate.spec.placeholders import fill
from feedstock_tools.generate.texts.lines import Line, quoted
from feedstock_tools.generate.texts.needs import CUDA
from feedstock_tools.generate.texts.resolved import python_skips, skips_python_by_output
from feedstock_tools.platforms import Platform

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
#: Platforms that conda-forge's tools build for by default.
_ON_BY_DEFAULT = ("linux-64", "osx-64", "win-64")

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
    for platform in map(Platform.parse, _ON_BY_DEFAULT):
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
