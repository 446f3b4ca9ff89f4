"""From the outputs of all variants to the configurations of one platform: which keys stay, which variables split
jobs, and the name of each.

(conda_smithy/configure_feedstock.py: _collapse_subpackage_variants, break_up_top_level_values, finalize_config,
package_key, dump_subspace_config_files.)
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from feedstock_tools.errors import InputError
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.model import OutlinedOutput, RenderedOutput
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.variants.model import Axis, VariantConfig, VariantSpace
from feedstock_tools.versions import parse_version

_STDLIB, _TARGET, _SDK = "c_stdlib_version", "MACOSX_DEPLOYMENT_TARGET", "MACOSX_SDK_VERSION"
_COMPILERS = ("c_compiler", "cxx_compiler", "fortran_compiler")
#: Which value a job without compilers gets before 3.3.5, the last or the first, and the default.
_OF_TWO_COMPILERS = {
    "docker_image": (-1, "condaforge/linux-anvil"),
    "channel_sources": (0, "conda-forge,defaults"),
    "channel_targets": (0, "conda-forge main"),
    "build_number_decrement": (-1, "0"),
}
_NUMPY_PIN = {"numpy": {"min_pin": "x.x", "max_pin": "x.x"}}


@dataclass(frozen=True)
class Job:
    """One configuration: its values, and the first values of the variables that split jobs, which name it."""

    values: Mapping[str, tuple[str, ...]]
    zip_keys: tuple[tuple[str, ...], ...]
    pin_run_as_build: Mapping[str, Mapping[str, str]]
    loop_values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class JobSettings:
    """What determines the jobs of a platform besides recipe and variants.

    Attributes:
        platform: the platform that the jobs build for.
        kept: further keys that stay in every file.
        uses_python_min: whether the recipe's text has `{{ python_min }}`.
        ordered: whether the outputs are in the order in which conda-smithy gets them, as those of rattler-build are.
        fallback_image: the Docker image if the variants name none, for platforms that are built on Linux.
    """

    platform: Platform
    rules: Rules
    kept: Collection[str] = ()
    uses_python_min: bool = False
    ordered: bool = False
    fallback_image: str | None = None


@dataclass(frozen=True)
class _Used:
    """The keys that stay in files: all of them, those that split jobs, and those that only the top level uses."""

    keys: frozenset[str]
    loops: frozenset[str]
    only_at_top: frozenset[str]


Rows = list[tuple[str, ...]]
Output = RenderedOutput | OutlinedOutput


def collapse(
    outputs: Sequence[Output], config: VariantConfig, space: VariantSpace, settings: JobSettings
) -> tuple[Job, ...]:
    """The configurations for the outputs (at least one) of a platform.

    Args:
        config: the variants that the outputs were rendered with.
        space: the input variants (`explode(config)`, without those for which a noarch recipe is not rendered).
    """
    rules = settings.rules
    spaces = tuple({id(output.variants): output.variants for output in outputs}.values())
    if rules.merges_deployment_target and settings.platform.os == "osx":
        spaces, space = (
            tuple(_merge_macos_versions(output_space, rules) for output_space in spaces),
            _merge_macos_versions(space, rules),
        )
    used = _used(outputs, settings)
    axes = _used_axes(config, space, spaces, used, rules)
    keys = frozenset(key for axis in axes for key in axis.keys)
    return _jobs(outputs, config, axes, used.loops & keys, settings)


def _used(outputs: Sequence[Output], settings: JobSettings) -> _Used:
    rules = settings.rules
    used = frozenset().union(*(output.used.own for output in outputs))
    if "mpi" in used:
        used |= frozenset(rules.used_with_mpi)
    if rules.finds_python_min and settings.uses_python_min:
        used |= {"python_min"}
    top_used, loops = _top_level(outputs, rules, settings.ordered)
    loops |= frozenset(key for key in (*rules.splits_also_by, "target_platform") if key in used)
    keys = used | top_used | rules.always_kept | frozenset(settings.kept)
    if rules.keeps_target_platform and not all(output.noarch for output in outputs):
        keys |= {"target_platform"}
    return _Used(keys, loops, loops - used)


def _jobs(
    outputs: Sequence[Output], config: VariantConfig, axes: Sequence[Axis], loops: frozenset[str], settings: JobSettings
) -> tuple[Job, ...]:
    rules = settings.rules
    keys = frozenset(key for axis in axes for key in axis.keys)
    pins = _used_pins(config, outputs, keys)
    zip_keys = _used_groups(config, keys, rules)
    built = {tuple(output.variant.get(key) for key in loops) for output in outputs}
    jobs = []
    for rows in product(*(_split(axis, loops) for axis in axes)):
        values = {key: column for columns in rows for key, column in columns.items()}
        job_loops = {key: values[key] for key in loops}
        if rules.drops_skipped_configurations and not _is_built(job_loops, built):
            continue
        _finalize(values, zip_keys, settings)
        jobs.append(Job(values, zip_keys, pins, {key: column[0] for key, column in job_loops.items()}))
    return tuple(jobs)


def _top_level(outputs: Sequence[Output], rules: Rules, ordered: bool) -> tuple[frozenset[str], frozenset[str]]:
    """The variables that every output uses with the top level of the recipe, and those of them that have several
    values.

    Older versions used those of the first output in the first variant, and which variant came first was random (the
    iteration order of a set of strings); here jobs are split by what most variants use; in a tie, by what the first of
    the input uses.
    """
    if rules.splits_by_common_keys:
        used = frozenset.intersection(*(output.used.top_level for output in outputs))
        return used, frozenset.intersection(*(output.used.top_level_loop for output in outputs))
    if ordered:
        return outputs[0].used.top_level, outputs[0].used.top_level_loop
    firsts = {id(output.variants): output.name for output in reversed(outputs)}
    used_by_first = [output.used for output in outputs if firsts[id(output.variants)] == output.name]
    votes = Counter(used.top_level_loop for used in used_by_first)
    loops = max(votes, key=lambda loop: votes[loop])
    alike = Counter(used.top_level for used in used_by_first if used.top_level_loop == loops)
    return max(alike, key=lambda used: alike[used]), loops


def _used_axes(
    config: VariantConfig, space: VariantSpace, spaces: Sequence[VariantSpace], used: _Used, rules: Rules
) -> list[Axis]:
    """The used keys as sorted axes: zip groups with their used keys, and every other key alone."""
    axes = []
    zipped: set[str] = set()
    for group in sorted({frozenset(group): group for group in config.zip_keys}.values()):
        zipped.update(group)
        members = tuple(key for key in group if key in used.keys and key in space)
        if not members:
            continue
        allowed = {row for output_space in spaces for row in _rows(output_space, group)}
        rows = {tuple(row[group.index(key)] for key in members) for row in _rows(space, group) if row in allowed}
        if not rules.unused_loops_leave_zips and len(rows) == 1:
            inputs = dict(zip(group, zip(*dict.fromkeys(_rows(space, group)), strict=True), strict=True))
            rows = {_with_common_values(row, members, used.only_at_top, inputs) for row in rows}
        axes.append(Axis(members, tuple(sorted(rows))))
    for key in used.keys - zipped:
        if key not in space:
            continue
        sources = (space,) if key in used.only_at_top else spaces
        axes.append(
            Axis((key,), tuple((value,) for value in sorted({v for source in sources for v in source.values(key)})))
        )
    return sorted(axes, key=lambda axis: axis.keys)


def _with_common_values(
    row: tuple[str, ...], members: tuple[str, ...], only_at_top: frozenset[str], inputs: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """The only used row of a zip group as older versions leave it.

    They take a key that only splits jobs from a column of the input rows, whose order is random; here it gets the
    commonest value of that column, its own if it is one of these.
    """
    values = dict(zip(members, row, strict=True))
    for key in only_at_top.intersection(members):
        column = inputs[key]
        values[key] = max(column, key=lambda value: (column.count(value), value == values[key]))
    return tuple(values.values())


def _used_groups(config: VariantConfig, keys: frozenset[str], rules: Rules) -> tuple[tuple[str, ...], ...]:
    """The remaining zip groups; the same group in two orders appears twice, as conda-smithy writes it."""
    groups = (tuple(key for key in group if key in keys) for group in config.zip_keys)
    left = [group for group in groups if len(group) > 1]
    return tuple(sorted(left if rules.repeats_zip_groups else set(left)))


def _rows(space: VariantSpace, group: tuple[str, ...]) -> Rows:
    """The rows of a zip group, whichever axis it is on."""
    axis = space.axis(group[0])
    columns = [axis.keys.index(key) for key in group]
    return [tuple(row[column] for column in columns) for row in axis.rows]


def _used_pins(
    config: VariantConfig, outputs: Sequence[Output], keys: frozenset[str]
) -> Mapping[str, Mapping[str, str]]:
    pins = dict(config.pin_run_as_build)
    if any(output.pins_numpy for output in outputs):
        pins = {**_NUMPY_PIN, **pins}
    return {
        name: {key: pins[name][key] for key in sorted(pins[name], reverse=True)}
        for name in sorted(pins)
        if name.replace("-", "_") in keys
    }


def _split(axis: Axis, loops: frozenset[str]) -> list[dict[str, tuple[str, ...]]]:
    """The columns of an axis, once for each row of the variables on it that split jobs."""
    places = [place for place, key in enumerate(axis.keys) if key in loops]
    parts: dict[tuple[str, ...], Rows] = {}
    for row in axis.rows:
        parts.setdefault(tuple(row[place] for place in places), []).append(row)
    return [dict(zip(axis.keys, zip(*rows, strict=True), strict=True)) for rows in parts.values()]


def _is_built(loop_values: Mapping[str, tuple[str, ...]], built: Collection[tuple[str | None, ...]]) -> bool:
    """Whether an output was made with the given values (one for each) of the variables that split jobs."""
    return tuple(values[0] for values in loop_values.values()) in built and all(
        len(set(values)) == 1 for values in loop_values.values()
    )


def _finalize(values: dict[str, tuple[str, ...]], zip_keys: Sequence[tuple[str, ...]], settings: JobSettings) -> None:
    """On Linux a job has one Docker image, and the keys zipped with it have one value."""
    rules = settings.rules
    if rules.docker_image == "two compilers":
        if settings.platform.os in ("linux", "osx") and not any(key in values for key in _COMPILERS):
            for key, (place, default) in _OF_TWO_COMPILERS.items():
                values[key] = values.get(key, (default,))[place:][:1]
    elif rules.docker_image != "unchanged" and settings.fallback_image is not None:
        _choose_image(values, zip_keys, settings.fallback_image, rules)


def _choose_image(
    values: dict[str, tuple[str, ...]], zip_keys: Sequence[tuple[str, ...]], fallback_image: str, rules: Rules
) -> None:
    if "docker_image" not in values:
        values["docker_image"] = (fallback_image,)
        return
    if rules.docker_image == "fallback":
        return
    groups = zip_keys if rules.docker_image == "first row" else ()
    for group in (("docker_image",), *(group for group in groups if "docker_image" in group)):
        for key in group:
            values[key] = values[key][:1]


def _merge_macos_versions(space: VariantSpace, rules: Rules) -> VariantSpace:
    """Set deployment target and C standard library to the newer of both, and the SDK to at least that."""
    if _STDLIB not in space:
        return space
    changed = (_STDLIB, _TARGET, _SDK) if rules.raises_macos_sdk or _SDK in space else (_STDLIB, _TARGET)
    joined = space.along(changed).axes
    places = {id(axis) for axis in joined}
    others = tuple(axis for axis in space.axes if id(axis) not in places)
    keys = (*(key for axis in joined for key in axis.keys if key not in changed), *changed)
    rows = []
    for variant in VariantSpace(joined):
        if variant.get("target_platform", "osx").startswith("osx"):
            variant = {**variant, **_macos_versions(variant, rules)}
        rows.append(tuple(variant.get(key, variant[_STDLIB]) for key in keys))
    return VariantSpace((*others, Axis(keys, tuple(dict.fromkeys(rows)))))


def _macos_versions(variant: Mapping[str, str], rules: Rules) -> dict[str, str]:
    stdlib = variant[_STDLIB]
    target, sdk = variant.get(_TARGET, stdlib), variant.get(_SDK, stdlib)
    try:
        newer = target if parse_version(stdlib) < parse_version(target) else stdlib
        raised = newer if rules.raises_macos_sdk and parse_version(sdk) < parse_version(newer) else sdk
        return {_STDLIB: newer, _TARGET: newer, _SDK: raised}
    except ValueError as error:
        raise InputError(f"{_STDLIB}, {_TARGET} and {_SDK} must be single versions: {error}") from error


#: Never allowed in a file's name, whatever the version: characters that lead out of the folder, and control characters.
_UNSAFE = re.compile(r"[/\\\x00-\x1f\x7f]")
_LONGEST_PATH = 259
_WORKSPACE = "C:/Users/runnerx/_work/{repository}/{repository}/.ci_support/"
#: Without `.yaml`; under the limit of file systems. No version of conda-smithy wrote longer names.
_LONGEST_FILE = 240


def configuration_name(
    platform: Platform, loop_values: Mapping[str, str], repository: str, rules: Rules | None = None
) -> str:
    """The name of a configuration (its file without `.yaml`).

    Args:
        loop_values: the variables that split jobs, with the configuration's first value.
        repository: the feedstock's name on GitHub, part of the path whose length is limited.

    >>> configuration_name(Platform("linux", "64"), {"python": "3.9.* *_cpython"}, "x-feedstock")
    'linux_64_python3.9.____cpython'
    """
    chosen = rules or Rules.newest()
    key = "".join(
        f"{name}{value}" for name, value in sorted(loop_values.items()) if _named(name, value, platform, chosen)
    )
    if chosen.underlines_names:
        key = key.replace("*", "_").replace(" ", "_")
    front = platform.name if chosen.arch_in_names or platform.arch != "64" else platform.os
    name = f"{front}_{key}"
    for character in chosen.forbidden_in_names:
        name = name.replace(character, "")
    name = _UNSAFE.sub("", name)
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    if chosen.names_fit_windows:
        outer = len(_WORKSPACE.format(repository=repository))
        if outer + len(f"{name}.yaml") > _LONGEST_PATH:
            name = f"{name[: max(_LONGEST_PATH - outer - 15, len(front) + 1)]}_h{digest}"
    elif chosen.longest_name is not None and len(name) >= chosen.longest_name[0]:
        name = f"{name[: chosen.longest_name[1]]}_h{digest}" if chosen.longest_name[1] else short_name(name, chosen)
    return name if len(name) <= _LONGEST_FILE else f"{name[: _LONGEST_FILE - 10]}_h{digest}"


def _named(name: str, value: str, platform: Platform, rules: Rules) -> bool:
    if name != "target_platform" or rules.target_in_names == "as a key":
        return True
    return rules.target_in_names == "where other" and value != platform.subdir


def short_name(name: str, rules: Rules | None = None) -> str:
    """The name of a CI job: truncated, with a hash, if it is long."""
    longest, keep, digits = (rules or Rules.newest()).short_name
    if len(name) < longest:
        return name
    return f"{name[:keep]}_h{hashlib.sha256(name.encode()).hexdigest()[:digits]}"
