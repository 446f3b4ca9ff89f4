"""The packages that a recipe makes in a configuration, as it describes them before a build: alike for both formats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.model import RenderedOutput
from feedstock_tools.recipe.requirements import (
    SECTIONS,
    Pin,
    Requirement,
    as_list,
    ensure_valid_spec,
    pin_of_mapping,
    requirement_of_text,
    spec_name,
)
from feedstock_tools.recipe.v0.meta import Meta

#: The kinds of run exports, as conda-build names them.
EXPORTS = ("weak", "strong", "noarch", "weak_constrains", "strong_constrains")


@dataclass(frozen=True, slots=True)
class Package:
    """A package that a recipe makes, with its requirements and pins; and parts as they are written.

    `host` is None if the recipe has no such section. `run_exports` is by kind. Run exports are ignored from a
    package in `ignored_from`, and if they are requirements on one in `ignored`. `tested_with` are the requirements of
    each of its tests. `run_pins` are the bounds that conda-build adds to bare requirements at run time, by name.

    As written: `sections` and `exports` are the requirements and run exports by the names of conda-build, `scripts`
    those of the caches that the package shares with others (`staging`) and its own last, `script_env` the variables
    that a `meta.yaml` sets for its script.
    """

    platform: Platform
    output: RenderedOutput
    build: tuple[Requirement, ...] = ()
    host: tuple[Requirement, ...] | None = None
    run: tuple[Requirement, ...] = ()
    constrains: tuple[Requirement, ...] = ()
    run_exports: Mapping[str, tuple[Requirement, ...]] = field(default_factory=dict)
    ignored: frozenset[str] = frozenset()
    ignored_from: frozenset[str] = frozenset()
    tested_with: tuple[tuple[Requirement, ...], ...] = ()
    track_features: tuple[str, ...] = ()
    run_pins: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    sections: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    exports: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    source: Any = None
    scripts: tuple[Any, ...] = (None,)
    script_env: tuple[str, ...] = ()
    tests: Any = None

    @property
    def name(self) -> str:
        return self.output.name


def name_in(requirement: Requirement) -> str:
    """The name of the package that a requirement is about."""
    return requirement.name if isinstance(requirement, Pin) else spec_name(requirement)


def package_of_meta(
    meta: Meta, output: RenderedOutput, platform: Platform, run_pins: Mapping[str, Mapping[str, str]]
) -> Package:
    """The package that an output of a `meta.yaml` is, rendered with `keep_pins`.

    Args:
        run_pins: `pin_run_as_build` of the configuration.
    """
    build = meta.section("build")
    tests = meta.output.get("test") if meta.is_output else (meta.output.get("test") or meta.data.get("test"))
    exports = by_kind(build.get("run_exports"))
    features = build.get("track_features")
    specs = {env: _read(specs) for env, specs in output.requirements.items()}
    return Package(
        platform=platform,
        output=output,
        build=specs.get("build", ()),
        host=specs.get("host"),
        run=specs.get("run", ()),
        constrains=specs.get("run_constrained", ()),
        run_exports={kind: _read(exports.get(kind, ())) for kind in EXPORTS},
        ignored=frozenset(map(str, as_list(build.get("ignore_run_exports")))),
        ignored_from=frozenset(str(spec).split(" ")[0] for spec in as_list(build.get("ignore_run_exports_from"))),
        tested_with=(_read(as_list((tests if isinstance(tests, dict) else {}).get("requires"))),) if tests else (),
        track_features=tuple(features.split()) if isinstance(features, str) else tuple(map(str, as_list(features))),
        run_pins=run_pins,
        sections=output.requirements,
        exports=exports,
        about={**meta.section("about"), **mapping_in(meta.output.get("about"))},
        source=meta.data.get("source"),
        scripts=(build.get("script") or meta.output.get("script"),),
        script_env=texts_in(build.get("script_env")),
        tests=tests,
    )


def package_of_content(content: Mapping[str, Any], output: RenderedOutput, platform: Platform) -> Package:
    """The package that an output of a `recipe.yaml` is, from the content that it was rendered to."""
    parts = mapping_in(content.get("requirements"))
    caches = content.get("staging_caches") or ()
    shared = [mapping_in(cache.get("requirements")) for cache in caches]
    exports = by_kind(parts.get("run_exports"))
    ignore = parts.get("ignore_run_exports") or {}
    build = mapping_in(content.get("build"))
    down = int(mapping_in(build.get("variant")).get("down_prioritize_variant") or 0)

    def with_caches(section: str) -> tuple[Requirement, ...]:
        own = [item for part in (parts, *shared) for item in as_list(part.get(section))]
        return _of_variant(_typed(own), output)

    return Package(
        platform=platform,
        output=output,
        build=with_caches("build"),
        host=with_caches("host"),
        run=_typed(as_list(parts.get("run"))),
        constrains=_typed(as_list(parts.get("run_constraints"))),
        run_exports={kind: _typed(exports.get(kind, ())) for kind in EXPORTS},
        ignored=frozenset(map(str, as_list(ignore.get("by_name")))),
        ignored_from=frozenset(map(str, as_list(ignore.get("from_package")))),
        tested_with=tuple(
            environment
            for test in content.get("tests") or ()
            if isinstance(test, dict)
            for environment in _of_test(test, output)
        ),
        track_features=tuple(f"{output.name}-p-{step}" for step in range(down)),
        sections={name: as_list(parts.get(of_v1)) for name, of_v1 in SECTIONS.items()},
        exports=exports,
        about=mapping_in(content.get("about")),
        source=content.get("source"),
        scripts=(*(mapping_in(cache.get("build")).get("script") for cache in caches), build.get("script")),
        tests=content.get("tests"),
    )


def texts_in(value: object) -> tuple[str, ...]:
    """The texts of a text or a list."""
    return tuple(item for item in as_list(value) if isinstance(item, str))


def mapping_in(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def by_kind(exports: Any) -> dict[str, list[Any]]:
    """Run exports by kind; without kinds they are weak."""
    by_kind = exports if isinstance(exports, Mapping) else {"weak": exports}
    return {str(kind).replace("constraints", "constrains"): as_list(items) for kind, items in by_kind.items()}


def _read(specs: Iterable[Any]) -> tuple[Requirement, ...]:
    requirements = (requirement_of_text(str(spec)) for spec in specs if spec)
    return tuple(ensure_valid_spec(each) if isinstance(each, str) else each for each in requirements)


def _typed(items: Iterable[Any]) -> tuple[Requirement, ...]:
    return tuple(pin_of_mapping(item) if isinstance(item, dict) else str(item) for item in items)


def _of_variant(specs: tuple[Requirement, ...], output: RenderedOutput) -> tuple[Requirement, ...]:
    """Add the variant's version to bare names in build and host (rattler_build_core: resolved_dependencies.rs)."""
    skipped = "python" if output.noarch == "python" else ""
    return tuple(
        ensure_valid_spec(f"{spec} {output.variant[key]}")
        if isinstance(spec, str) and (key := spec.replace("-", "_")) in output.variant and key != skipped
        else spec
        for spec in specs
    )


def _of_test(test: Mapping[str, Any], output: RenderedOutput) -> Iterator[tuple[Requirement, ...]]:
    """The contents of a test environment besides the package (rattler_build_core: package_test/run_test.rs)."""
    python = test.get("python")
    if not isinstance(python, dict):
        yield _typed(as_list(mapping_in(test.get("requirements")).get("run")))
        return
    pip = ("pip",) if python.get("pip_check", True) else ()
    versions = as_list(python.get("python_version"))
    if not versions and "python" in output.used.own and output.noarch is None:
        versions = [output.variant["python"]]
    for version in versions or [""]:
        yield (ensure_valid_spec(f"python {version}".strip()), *pip)
