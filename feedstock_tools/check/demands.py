"""The requirements of each output on its environments, in one row of a configuration, and the record that repodata will
have of it; the same for both formats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feedstock_tools.channel.many_solves import PROMISED
from feedstock_tools.channel.metadata import Record, RunExports
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.model import RenderedOutput
from feedstock_tools.recipe.requirements import (
    Requirement,
    as_list,
    ensure_valid_spec,
    pin_of_mapping,
    requirement_of_text,
)
from feedstock_tools.rerender.configuration import Configuration
from feedstock_tools.rerender.outputs import contents_with_rattler_build, packages_with_conda_build
from feedstock_tools.rerender.rules import Rules

if TYPE_CHECKING:
    from feedstock_tools.recipe.v0.meta import Meta

_KINDS = ("weak", "strong", "noarch", "weak_constrains", "strong_constrains")


@dataclass(frozen=True, slots=True)
class Row:
    """One variant of a configuration.

    `configuration` has one value for each key and the usual name; `builder` is the platform that it is
    built on; `cuda` the version it compiles for, None for a CPU build.
    """

    name: str
    configuration: Configuration
    builder: Platform
    cuda: str | None

    @property
    def platform(self) -> Platform:
        return self.configuration.platform


@dataclass(frozen=True, slots=True)
class Demands:
    """One output: its planned package, and its requirements.

    `host` is None if the recipe has no such section. `run_exports` is by kind. Run exports are ignored from a
    package in `ignored_from`, and if they are requirements on one in `ignored`. `tests` are the requirements of each
    of its tests. `run_pins` are the bounds that conda-build adds to bare requirements at run
    time, by name.
    """

    name: str
    version: str
    build_string: str
    build_number: int
    noarch: str | None
    build: tuple[Requirement, ...] = ()
    host: tuple[Requirement, ...] | None = None
    run: tuple[Requirement, ...] = ()
    constrains: tuple[Requirement, ...] = ()
    run_exports: Mapping[str, tuple[Requirement, ...]] = field(default_factory=dict)
    ignored: frozenset[str] = frozenset()
    ignored_from: frozenset[str] = frozenset()
    tests: tuple[tuple[Requirement, ...], ...] = ()
    track_features: tuple[str, ...] = ()
    run_pins: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def demands_of(folder: Path, row: Row, rules: Rules, *, v1: bool) -> tuple[Demands, ...]:
    """The outputs of a recipe in one row, in build order.

    Args:
        folder: the folder of the recipe.
        v1: the recipe is a `recipe.yaml`.

    Raises:
        InputError: the recipe cannot be read or rendered.
    """
    configuration, builder = row.configuration, row.builder
    if v1:
        contents = contents_with_rattler_build(folder, configuration, builder, rules)
        demands = [demands_of_content(output, content) for content, output in contents]
    else:
        packages = packages_with_conda_build(folder, configuration, builder, rules, keep_pins=True)
        demands = [demands_of_meta(output, meta, configuration) for meta, output in packages]
    return tuple({(each.name, each.version, each.build_string): each for each in demands}.values())


def demands_of_content(output: RenderedOutput, content: Mapping[str, Any]) -> Demands:
    """The requirements of an output of a `recipe.yaml`, from the content that it was rendered to."""
    parts = content.get("requirements") or {}
    above = [staging.get("requirements") or {} for staging in content.get("staging_caches") or ()]
    exports = parts.get("run_exports") or {}
    ignore = parts.get("ignore_run_exports") or {}
    down = int(((content.get("build") or {}).get("variant") or {}).get("down_prioritize_variant") or 0)
    return Demands(
        name=output.name,
        version=output.version,
        build_string=output.build_string,
        build_number=output.build_number,
        noarch=output.noarch,
        build=_of_variant(_typed([*(parts.get("build") or ()), *_sections(above, "build")]), output),
        host=_of_variant(_typed([*(parts.get("host") or ()), *_sections(above, "host")]), output),
        run=_typed(parts.get("run") or ()),
        constrains=_typed(parts.get("run_constraints") or ()),
        run_exports={
            kind: _typed(exports.get(kind.replace("constrains", "constraints")) or exports.get(kind) or ())
            for kind in _KINDS
        },
        ignored=frozenset(map(str, as_list(ignore.get("by_name")))),
        ignored_from=frozenset(map(str, as_list(ignore.get("from_package")))),
        tests=tuple(
            environment
            for test in content.get("tests") or ()
            if isinstance(test, dict)
            for environment in _of_test(test, output)
        ),
        track_features=tuple(f"{output.name}-p-{step}" for step in range(down)),
    )


def _sections(parts: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    return [item for part in parts for item in part.get(name) or ()]


def _of_variant(specs: tuple[Requirement, ...], output: RenderedOutput) -> tuple[Requirement, ...]:
    """Add the variant's version to bare names in build and host (rattler_build_core: resolved_dependencies.rs)."""
    return tuple(
        ensure_valid_spec(f"{spec} {output.variant[key]}")
        if isinstance(spec, str) and (key := spec.replace("-", "_")) in output.variant and _counts(key, output)
        else spec
        for spec in specs
    )


def _counts(key: str, output: RenderedOutput) -> bool:
    return key != "python" or output.noarch != "python"


def _of_test(test: Mapping[str, Any], output: RenderedOutput) -> Iterator[tuple[Requirement, ...]]:
    """The contents of a test environment besides the package (rattler_build_core: package_test/run_test.rs)."""
    python = test.get("python")
    if not isinstance(python, dict):
        yield _typed((test.get("requirements") or {}).get("run") or ())
        return
    pip = ("pip",) if python.get("pip_check", True) else ()
    versions = as_list(python.get("python_version"))
    if not versions and "python" in output.used.own and output.noarch is None:
        versions = [output.variant["python"]]
    for version in versions or [""]:
        yield (ensure_valid_spec(f"python {version}".strip()), *pip)


def _typed(items: Any) -> tuple[Requirement, ...]:
    return tuple(pin_of_mapping(item) if isinstance(item, dict) else str(item) for item in items)


def demands_of_meta(output: RenderedOutput, meta: Meta, configuration: Configuration) -> Demands:
    """The requirements of an output of a `meta.yaml`, from the package that it was made from."""
    build = meta.section("build")
    test = meta.output.get("test") if meta.is_output else (meta.output.get("test") or meta.data.get("test"))
    requires = as_list((test if isinstance(test, dict) else {}).get("requires"))
    exports = build.get("run_exports")
    by_kind = exports if isinstance(exports, dict) else {"weak": exports}
    features = build.get("track_features")
    specs = {env: _read(specs) for env, specs in output.requirements.items()}
    return Demands(
        name=output.name,
        version=output.version,
        build_string=output.build_string,
        build_number=output.build_number,
        noarch=output.noarch,
        build=specs.get("build", ()),
        host=specs.get("host"),
        run=specs.get("run", ()),
        constrains=specs.get("run_constrained", ()),
        run_exports={kind: _read(as_list(by_kind.get(kind))) for kind in _KINDS},
        ignored=frozenset(map(str, as_list(build.get("ignore_run_exports")))),
        ignored_from=frozenset(str(spec).split(" ")[0] for spec in as_list(build.get("ignore_run_exports_from"))),
        tests=(_read(requires),) if test else (),
        track_features=tuple(features.split()) if isinstance(features, str) else tuple(map(str, as_list(features))),
        run_pins=configuration.pin_run_as_build,
    )


def _read(specs: Any) -> tuple[Requirement, ...]:
    requirements = (requirement_of_text(str(spec)) for spec in specs if spec)
    return tuple(
        ensure_valid_spec(requirement) if isinstance(requirement, str) else requirement for requirement in requirements
    )


@dataclass(frozen=True, slots=True)
class Promised:
    """The record and the run exports of an output that is not built yet."""

    record: Record
    run_exports: RunExports

    @property
    def spec(self) -> str:
        """The requirement that only this build satisfies."""
        return f"{self.record.name} =={self.record.version} {self.record.build}"


def promise(
    demands: Demands, platform: Platform, depends: Iterable[str], constrains: Iterable[str], exports: RunExports
) -> Promised:
    """The package that an output will be, with requirements and run exports whose pins are applied."""
    subdir = "noarch" if demands.noarch else platform.subdir
    file_name = f"{demands.name}-{demands.version}-{demands.build_string}.conda"
    record = Record(
        name=demands.name.lower(),
        version=demands.version,
        build=demands.build_string,
        build_number=demands.build_number,
        subdir=subdir,
        depends=tuple(dict.fromkeys(depends)),
        constrains=tuple(dict.fromkeys(constrains)),
        track_features=demands.track_features,
        noarch=demands.noarch,
        timestamp=0,
        sha256="",
        size=0,
        file_name=file_name,
        channel=PROMISED,
        url=f"{PROMISED}/{subdir}/{file_name}",
    )
    return Promised(record, exports)
