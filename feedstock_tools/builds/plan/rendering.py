"""The outputs of configurations, rendered row by row from the recipe, with the identity of each.

The result of a script under conda-build is unknown before it has run, so the identity of an output of a `meta.yaml`
contains the text of the recipe itself, and its package is compared in name, version, build and subdir only.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from feedstock_tools.digests import digest_of_files, digest_of_values, files_below, stamp_of_files
from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.planned import SHARED, PlannedConfiguration, PlannedOutput, PlannedRow
from feedstock_tools.platforms import Platform
from feedstock_tools.reading import read_text

if TYPE_CHECKING:
    from feedstock_tools.recipe.model import RenderedOutput
    from feedstock_tools.recipe.v0.text import RecipeText
    from feedstock_tools.recipe.v1_engine import RenderedV1, Rendering
    from feedstock_tools.variants.model import VariantConfig


#: Files of a recipe folder that are not part of a build: their content is already in the rendered recipe.
_RENDERED_FILES = frozenset({"recipe.yaml", "meta.yaml", "conda_build_config.yaml", "variants.yaml"})
#: A source that is a file or folder on this machine.
_PATH = re.compile(r"^\s*(?:-\s+)?path:\s*[\"']?([^\s\"'#{}]+)", re.MULTILINE)
#: The end of the name of the shared build of a `meta.yaml`.
_TOP_LEVEL = "top-level"
#: The end of the name of a call for rows that share an output.
_ROWS = "rows"
#: Nanoseconds by which times of files are behind the clock.
_CLOCK = 20_000_000
Digest = Callable[[Sequence[Path]], str]


def render_outputs(
    configurations: Sequence[PlannedConfiguration], recipe: Path, engines: Mapping[str, str]
) -> tuple[tuple[PlannedConfiguration, ...], set[Path]]:
    """Render every row of some configurations; return them with their outputs and local sources.

    A configuration that cannot be rendered has no outputs, but a refusal with the reason.

    Args:
        recipe: the `recipe.yaml`; if there is no such file, the `meta.yaml` beside it is rendered.
        engines: platform → name and version of the engine that builds for it, part of each output's identity.
    """
    from feedstock_tools.builds.engines.embedded.crossing import used_by_staging
    from feedstock_tools.recipe.v1_engine import plain, read_v1, render_row

    if not recipe.is_file() and (recipe.parent / "meta.yaml").is_file():
        return with_meta_outputs(configurations, recipe.parent, engines)
    parsed = read_v1(recipe)
    builder = Platform.here()
    sources: set[Path] = set()
    remembered = cache(digest_of_files)

    def digest(roots: Sequence[Path]) -> str:
        return remembered(tuple(roots))

    def with_outputs(row: PlannedRow, platform: Platform) -> PlannedRow:
        renderings = render_row(parsed, row.name, row.values, platform, builder)
        rendered = [plain(output) for output in renderings]
        own = local_sources(rendered, recipe.parent)
        sources.update(own)
        if lost := next((path for path in sorted(own) if not path.exists()), None):
            raise InputError(f"there is no {lost}, which is one of its sources", path=recipe)
        engine = engines.get(platform.subdir, "")
        image = _image_of(row, engine)
        outputs = promise_row(rendered, recipe.parent, engine, digest, image)
        used: dict[str, Mapping[str, Any]] = {}
        for name, heir in _heirs(zip(outputs, renderings, strict=True)).items():
            if _is_scripted(engine):
                used[name] = image
            with suppress(InputError):  # then it runs for each of its heirs, but in a call of a script
                used[name] = {**used_by_staging(heir, recipe, row.name, row.values, platform, builder), **image}
        return replace(
            row, outputs=outputs, shared=tuple(_shared_builds(rendered, used, outputs, recipe.parent, digest, row.cuda))
        )

    def complete(configuration: PlannedConfiguration) -> PlannedConfiguration:
        platform = Platform.parse(configuration.platform)
        try:
            rows = tuple(with_outputs(row, platform) for row in configuration.rows)
        except InputError as error:
            return replace(configuration, refusal=str(error), rendered=True)
        if _is_scripted(engines.get(configuration.platform, "")):
            rows = _in_calls(rows)
        return replace(configuration, rows=rows, refusal=None, rendered=True)

    return tuple(complete(configuration) for configuration in configurations), sources


def _is_scripted(engine: str) -> bool:
    """Whether an engine is the feedstock's own script, by its name and version."""
    return engine.startswith("container .scripts ")


def _in_calls(rows: Sequence[PlannedRow]) -> tuple[PlannedRow, ...]:
    """The rows of a configuration, those with a shared build or an output in common as heirs of one call of a script.

    A call builds all combinations of the values that it is given. So a row whose values all occur in other rows of a
    call belongs to it.
    """
    calls: list[tuple[set[str], list[PlannedRow]]] = []
    for row in rows:
        own, together = {build.identity for build in (*row.shared, *row.outputs)}, [row]
        apart = []
        for call in calls:
            if own.isdisjoint(call[0]):
                apart.append(call)
            else:
                own, together = own | call[0], [*call[1], *together]
        calls = [*apart, (own, together)]
    groups = [together for _, together in calls]
    for group in groups:
        while len(group) > 1 and (others := next(filter(partial(_brings, group), groups), None)):
            group.extend(others)
            others.clear()
    call_of = {row.name: call for group in groups if len(group) > 1 for call in [_call(group)] for row in group}
    return tuple(_in_call(row, call_of.get(row.name)) for row in rows)


def _brings(group: Sequence[PlannedRow], others: Sequence[PlannedRow]) -> bool:
    """Whether a call for a group of rows would build one of another group too."""
    if others is group:
        return False
    values: dict[str, set[str]] = {}
    for row in group:
        for key, value in row.values.items():
            values.setdefault(key, set()).add(value)
    return any(all(value in values.get(key, ()) for key, value in row.values.items()) for row in others)


def _call(rows: Sequence[PlannedRow]) -> PlannedOutput:
    """The shared build that is one call of a feedstock's script for some rows."""
    outputs = [output for row in rows for output in row.outputs]
    builds = [*(build for row in rows for build in row.shared), *outputs]
    times = Counter(build.identity for build in builds)
    first = next(build for build in builds if times[build.identity] > 1)
    made = {row.name: _digest_of_outputs(row) for row in rows}
    inputs = {
        **outputs[0].inputs,
        "recipe": digest_of_values(made),
        "variant": digest_of_values([row.values for row in rows]),
        "siblings": digest_of_values({}),
    }
    return _not_packaged(
        first.name if first.is_shared else f"{first.name}-{_ROWS}",
        inputs,
        tools={tool: digest for output in builds for tool, digest in output.tools.items()},
        needs=tuple(sorted({need for build in builds for need in build.needs})),
        uses_cuda=True,
        rows=made,
    )


def _not_packaged(name: str, inputs: Mapping[str, str], **more: Any) -> PlannedOutput:
    """A build that makes no package of its own, with its identity."""
    identity = digest_of_values(inputs)
    return PlannedOutput(
        name=name,
        version=SHARED,
        build=identity[:8],
        build_number=0,
        subdir=SHARED,
        identity=identity,
        inputs=inputs,
        whole=False,
        **more,
    )


def _in_call(row: PlannedRow, call: PlannedOutput | None) -> PlannedRow:
    if call is None:
        return replace(row, shared=())
    return replace(row, outputs=tuple(replace(output, staging=(call.name,)) for output in row.outputs), shared=(call,))


def _digest_of_outputs(row: PlannedRow) -> str:
    return digest_of_values([output.identity for output in row.outputs])


def _image_of(row: PlannedRow, engine: str) -> dict[str, str]:
    """The value of a row that is part of whatever an engine builds in containers, in the form of the row's values."""
    in_container = engine.startswith("container ")
    return {key: value for key, value in row.values.items() if in_container and key == "docker_image"}


def promise_row(
    rendered: Iterable[RenderedV1],
    recipe_folder: Path,
    engine: str,
    digest: Digest = digest_of_files,
    image: Mapping[str, str] = MappingProxyType({}),
) -> tuple[PlannedOutput, ...]:
    """The planned outputs of a rendered row, with their identities.

    Args:
        rendered: its outputs, in build order.
        recipe_folder: its files (scripts, patches, tests) are part of every output's identity.
        engine: name and version of the engine, part of the identity too.
        digest: returns the hash of files and folders; for many rows, a cached one.
        image: the container's image, by the key of variants; it is part of the identity too.
    """
    files = digest(sorted(path for path in recipe_folder.iterdir() if path.name not in _RENDERED_FILES))
    outputs: dict[str, PlannedOutput] = {}
    pending = list(rendered)
    own = {output.name for output in pending}
    for rendered_output in pending:
        sources = digest(_sources(rendered_output.content, recipe_folder))
        common = {"engine": engine, "files": files, "sources": sources}
        output = _promise(rendered_output, own, outputs, common, image)
        outputs[output.name] = output
    return tuple(outputs.values())


def _heirs(pairs: Iterable[tuple[PlannedOutput, Rendering]]) -> dict[str, Rendering]:
    """Staging output → the first output that inherits from it."""
    heirs: dict[str, Rendering] = {}
    for output, rendering in pairs:
        for staging in output.staging:
            heirs.setdefault(staging, rendering)
    return heirs


def _shared_builds(
    rendered: Sequence[RenderedV1],
    used: Mapping[str, Mapping[str, Any]],
    outputs: Sequence[PlannedOutput],
    recipe_folder: Path,
    digest: Digest,
    cuda: str | None,
) -> Iterator[PlannedOutput]:
    """The staging outputs of a row that can run before its outputs: those that need none of them.

    A script runs each in its place.

    Args:
        rendered: its outputs; `outputs` are the planned ones.
        used: staging output → the values that it uses.
        cuda: the CUDA version of the row.
    """
    contents = {each["name"]: each for output in rendered for each in output.content.get("staging_caches") or ()}
    for name, content in contents.items():
        needs_own = _names_in(content.get("requirements") or {}) & {output.name for output in outputs}
        if name not in used or (needs_own and not _is_scripted(outputs[0].inputs["engine"])):
            continue
        inputs = {
            **outputs[0].inputs,
            "recipe": digest_of_values(content),
            "variant": digest_of_values(used[name]),
            "siblings": digest_of_values({}),
            "sources": digest(_sources(content, recipe_folder)),
        }
        needs = content.get("requirements") or {}
        yield _shared_build(name, inputs, _tools(content, (), {}), needs, used[name], cuda)


def _shared_build(
    name: str,
    inputs: Mapping[str, str],
    tools: Mapping[str, str],
    requirements: Mapping[str, Sequence[Any]],
    keys: Iterable[str],
    cuda: str | None,
) -> PlannedOutput:
    """A shared build.

    Args:
        requirements: its specs by section.
        keys: the variant keys that it uses.
        cuda: the CUDA version of the row.
    """
    specs = {
        each: [spec for spec in requirements.get(each) or () if isinstance(spec, str)] for each in ("build", "host")
    }
    uses_cuda = any("cuda" in text for texts in (keys, *specs.values()) for text in texts)
    if uses_cuda:
        inputs = {**inputs, "variant": digest_of_values([inputs["variant"], cuda])}
    return _not_packaged(
        name,
        inputs,
        tools=tools,
        environments=specs,
        needs=_specs(("build", "host"), {"requirements": requirements}),
        uses_cuda=uses_cuda,
    )


def _promise(
    rendered: RenderedV1,
    own: set[str],
    earlier: Mapping[str, PlannedOutput],
    common: Mapping[str, str],
    image: Mapping[str, str],
) -> PlannedOutput:
    content, name = rendered.content, rendered.name
    needed = tuple(sorted(_names_in(content.get("requirements") or {}) & own - {name}))
    inputs = {
        "recipe": digest_of_values(content),
        "variant": digest_of_values({**rendered.variant, **image}),
        "siblings": digest_of_values({sibling: earlier[sibling].identity for sibling in needed if sibling in earlier}),
        **common,
    }
    pinned = _exact_pins((content.get("requirements") or {}).get("run") or [])
    pins = {pin: f"{earlier[pin].version} {earlier[pin].build}" for pin in sorted(pinned - {name}) if pin in earlier}
    down = int((content.get("build", {}).get("variant") or {}).get("down_prioritize_variant") or 0)
    return PlannedOutput(
        name=name,
        version=rendered.version,
        build=rendered.build,
        build_number=rendered.build_number,
        subdir="noarch" if rendered.noarch else rendered.variant.get("target_platform", "noarch"),
        identity=digest_of_values(inputs),
        inputs=inputs,
        siblings=needed,
        pins=pins,
        track_features=_track_features(name, down),
        uses_python=_uses_python(content, needed, earlier),
        has_files=_has_files(content),
        staging=tuple(staging["name"] for staging in content.get("staging_caches") or ()),
        tools=_tools(content, needed, earlier),
        needs=_of_variant(_specs(("build", "host"), content, *(content.get("staging_caches") or ())), rendered.variant),
        runs=_specs(("run", "build"), {"requirements": {"run": _requirements(content).get("run")}}, *_tests(content)),
    )


def _has_files(content: Mapping[str, Any]) -> bool:
    """As of a `RenderedOutput`, or it inherits some."""
    build, needs = content.get("build") or {}, _requirements(content)
    builds = bool(build.get("script")) and any(needs.get(section) for section in ("build", "host"))
    return bool(builds or build.get("files") or content.get("inherits_from"))


def _tools_among(names: Collection[str]) -> dict[str, str]:
    from feedstock_tools.facts.packages import read_tools  # a run that has nothing to build renders nothing

    return read_tools().among(names)


def _tools(content: Mapping[str, Any], siblings: Iterable[str], earlier: Mapping[str, PlannedOutput]) -> dict[str, str]:
    """The tools that building and testing an output installs, each with its digest."""
    parts = (content, *(content.get("staging_caches") or ()), *_tests(content))
    names = {name for part in parts for name in _names_in(_requirements(part))}
    found = [earlier[name].tools for name in siblings if name in earlier]
    return {name: digest for tools in (_tools_among(names), *found) for name, digest in tools.items()}


def _track_features(name: str, down_prioritize: int) -> tuple[str, ...]:
    """The engine's features for `down_prioritize_variant: 2`: one for each step down."""
    return tuple(f"{name}-p-{step}" for step in range(down_prioritize))


def _uses_python(content: Mapping[str, Any], siblings: tuple[str, ...], earlier: Mapping[str, PlannedOutput]) -> bool:
    run = (content.get("requirements") or {}).get("run") or []
    tests = content.get("tests") or []
    return (
        "python" in _names_in({"run": run})
        or any("python" in test for test in tests if isinstance(test, dict))
        or any(earlier[sibling].uses_python for sibling in siblings if sibling in earlier)
    )


def _requirements(part: Mapping[str, Any]) -> Mapping[str, Any]:
    return part.get("requirements") or {}


def _tests(content: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [test for test in content.get("tests") or [] if isinstance(test, dict)]


def _names_in(requirements: Mapping[str, Any]) -> set[str]:
    """The package names in some sections of requirements: strings, and `pin_subpackage`-like mappings."""
    return {spec.partition(" ")[0] for spec in _specs(requirements, {"requirements": requirements})}


def _specs(sections: Iterable[str], *parts: Mapping[str, Any]) -> tuple[str, ...]:
    """The specs in some sections of requirements, each with a name in front; of a pin its name."""
    specs: set[str] = set()
    for section in (_requirements(part).get(name) for part in parts for name in sections):
        for item in section if isinstance(section, list) else ():
            if isinstance(item, str):
                spec = item.rpartition("::")[2].strip()
                name = re.split(r"[\s=<>!~\[]", spec, maxsplit=1)[0]
                specs.add(f"{name.lower()} {spec[len(name) :].strip()}".strip())
            elif isinstance(item, dict):
                specs.update(str(pin["name"]) for pin in item.values() if isinstance(pin, dict) and "name" in pin)
    return tuple(sorted(specs))


def _of_variant(specs: Iterable[str], variant: Mapping[str, Any]) -> tuple[str, ...]:
    """The specs, names alone with the version that their key has in the variant, as the engine solves them.

    >>> _of_variant(("numpy", "pip", "zlib >=1"), {"numpy": "1.26", "zlib": "1", "python": "3.12.* *_cpython"})
    ('numpy 1.26.*', 'pip', 'zlib >=1')
    """
    found = ((spec, variant.get(spec.replace("-", "_"))) for spec in specs)
    plain = ((spec, value if isinstance(value, str) else "") for spec, value in found)
    return tuple(sorted(f"{spec} {value}.*" if re.fullmatch(r"[0-9.]+", value) else spec for spec, value in plain))


def _exact_pins(requirements: Iterable[Any]) -> set[str]:
    """The names that `pin_subpackage(…, exact=True)` pins."""
    pins = (item.get("pin_subpackage") for item in requirements if isinstance(item, dict))
    return {str(pin["name"]) for pin in pins if isinstance(pin, dict) and pin.get("exact")}


def local_sources(rendered: Iterable[RenderedV1], recipe_folder: Path) -> set[Path]:
    """The files and folders on this machine that rendered outputs name as their sources."""
    return {path for output in rendered for path in _sources(output.content, recipe_folder)}


def _sources(content: Mapping[str, Any], folder: Path) -> list[Path]:
    """The local sources of an output, and those of the staging outputs that it inherits from."""
    listed: list[Any] = []
    for part in (content, *(content.get("staging_caches") or ())):
        sources = part.get("source") or []
        listed += sources if isinstance(sources, list) else [sources]
    return [(folder / source["path"]).resolve() for source in listed if isinstance(source, dict) and "path" in source]


def with_meta_outputs(
    configurations: Sequence[PlannedConfiguration], folder: Path, engines: Mapping[str, str]
) -> tuple[tuple[PlannedConfiguration, ...], set[Path]]:
    """Configurations with the outputs that conda-build would make, and their local sources.

    Args:
        engines: platform → name and version of the engine that builds for it.
    """
    from feedstock_tools.recipe.v0.recipe import read_recipe

    recipe = read_recipe(folder)
    sources = _meta_sources(folder)
    parts = {
        "files": digest_of_files(sorted(path for path in folder.iterdir() if path.name != "conda_build_config.yaml")),
        "sources": digest_of_files(sorted(sources)),
    }
    complete = (
        _complete(configuration, recipe, {**parts, "engine": engines.get(configuration.platform, "")})
        for configuration in configurations
    )
    return tuple(complete), sources


def _complete(
    configuration: PlannedConfiguration, recipe: RecipeText, parts: Mapping[str, str]
) -> PlannedConfiguration:
    platform = Platform.parse(configuration.platform)
    try:
        rows = tuple(_complete_row(recipe, row, platform, parts) for row in configuration.rows)
    except InputError as error:
        return replace(configuration, refusal=str(error), rendered=True)
    if _is_scripted(parts["engine"]):
        rows = _in_calls(rows)
    return replace(configuration, rows=rows, refusal=None, rendered=True)


def outputs_of_meta(recipe: RecipeText, row: PlannedRow, builder: Platform) -> dict[str, RenderedOutput]:
    """The outputs, by name, that conda-build makes for a row on the machine that builds it.

    Raises:
        InputError: the recipe cannot be rendered.
    """
    from feedstock_tools.recipe.v0.recipe import render_recipe

    rendered = render_recipe(recipe, _variants_of(row, builder), builder)
    return {output.name: output for output in rendered.outputs if not output.skip}


def _variants_of(row: PlannedRow, builder: Platform) -> VariantConfig:
    from feedstock_tools.variants.files import defaults
    from feedstock_tools.variants.model import VariantConfig, combine

    return combine([defaults(builder), VariantConfig({key: (value,) for key, value in row.values.items()})])


def _complete_row(recipe: RecipeText, row: PlannedRow, platform: Platform, parts: Mapping[str, str]) -> PlannedRow:
    from feedstock_tools.recipe.v0.recipe import TopLevel, shared_top_level

    built = outputs_of_meta(recipe, row, platform)
    top = shared_top_level(recipe, _variants_of(row, platform), platform) or TopLevel("", frozenset(), {})
    image = _image_of(row, parts["engine"]).keys()

    def inputs_of(content: Any, used: AbstractSet[str]) -> dict[str, str]:
        values = {key: value for key, value in row.values.items() if key in used | image}
        return {**parts, "recipe": digest_of_values(content), "variant": digest_of_values([platform.subdir, values])}

    outputs: list[PlannedOutput] = []
    for output in built.values():
        names = {str(need).split()[0] for needs in output.requirements.values() for need in needs}
        siblings = {each: built[each].build_string for each in sorted(names & built.keys())}
        used = output.used.own | output.used.top_level | top.keys
        inputs = {**inputs_of([output.name, output.requirements], used), "siblings": digest_of_values(siblings)}
        outputs.append(
            PlannedOutput(
                name=output.name,
                version=output.version,
                build=output.build_string,
                build_number=output.build_number,
                subdir="noarch" if output.noarch else platform.subdir,
                identity=digest_of_values(inputs),
                inputs=inputs,
                uses_python="python" in output.variant and output.noarch is None,
                has_files=output.has_files,
                staging=(f"{top.name}-{_TOP_LEVEL}",) if top.name else (),
                whole=False,
                tools=_tools_among(names),
                needs=_specs(("build", "host"), {"requirements": output.requirements}),
            )
        )
    needs = top.requirements
    shared = _shared_build(
        *(f"{top.name}-{_TOP_LEVEL}", inputs_of(top.name, top.keys), _tools_among(_names_in(needs))),
        *(needs, top.keys, row.cuda),
    )
    return replace(row, outputs=tuple(outputs), shared=(shared,) if top.name else ())


def _meta_sources(folder: Path) -> set[Path]:
    text = read_text(folder / "meta.yaml", within=folder)
    places = {(folder / place).resolve() for place in _PATH.findall(text)}
    return {place for place in places if place.exists()}


@dataclass(frozen=True, slots=True)
class PlannedInputs:
    """The files behind a plan, in their state at that time.

    Files that appear later do not count: some scripts collect licenses into `$RECIPE_DIR`, and unreferenced files
    are not part of a build.

    Attributes:
        recipe: the `recipe.yaml` to build.
        files: the files of the recipe folders and local sources.
        stamp: of those files (`stamp_of_files`); empty if it is unknown.
    """

    recipe: Path
    files: tuple[Path, ...]
    stamp: str

    @classmethod
    def of(cls, recipe: Path, roots: Iterable[Path], since: int | None = None) -> PlannedInputs:
        """The files below the recipe's folder and some other files and folders, in their current state.

        Args:
            since: the time, in nanoseconds, at which planning began. If a file has changed since, the stamp may be that
                of another state than the plan's, so there is none.
        """
        files = tuple(Path(file) for root in dict.fromkeys([recipe.parent, *roots]) for file in files_below(root))
        stamp = stamp_of_files(files)
        is_late = since is not None and any(os.lstat(file).st_ctime_ns > since - _CLOCK for file in files)
        return cls(recipe, files, "" if is_late else stamp)

    def differ(self, platform: str, row: PlannedRow, output: PlannedOutput) -> bool:
        """Whether an output of a row would now be planned differently; a file that was only touched changes nothing.

        Args:
            platform: the target subdir of the row.
        """
        if stamp_of_files(self.files) == self.stamp:
            return False
        alone = PlannedConfiguration(row.name, platform, (replace(row, outputs=()),))
        try:
            (now,), _ = render_outputs([alone], self.recipe, {platform: output.inputs.get("engine", "")})
        except InputError:
            return True
        if output.rows:
            return any(_digest_of_outputs(rendered) not in output.rows.values() for rendered in now.rows)
        planned = (each for rendered in now.rows for each in (*rendered.outputs, *rendered.shared))
        return output.identity not in {each.identity for each in planned}
