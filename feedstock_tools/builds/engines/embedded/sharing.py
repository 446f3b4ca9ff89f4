"""A staging output that runs once for all outputs and rows that inherit from it.

py-rattler-build finds what a staging output has left by its content and by the path of the build's folder.
`run_build()` names that folder after the package, `build_recipes()` after the recipe. So the shared build is that of
a package without contents called `UNIT`, and each heir is built from a recipe called `UNIT`, in private folders that
all have the same path (`fixed_place`).
"""

from __future__ import annotations

import json
import re
import shlex
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from feedstock_tools.builds.engines.contract import SOLVED, BuildRequest
from feedstock_tools.builds.engines.embedded.crossing import alone, staging_alone
from feedstock_tools.builds.engines.embedded.fixed_place import UNIT, shown_instead
from feedstock_tools.builds.engines.embedded.script_output import EngineLog, settings_of
from feedstock_tools.channel.packages.reading import read_documents
from feedstock_tools.channel.solving import virtual_packages
from feedstock_tools.errors import WorkError
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.v1_engine import Rendering, render_row, text_of, typed_value

_CACHE = "build_cache"
_COMPLETE = "metadata.json"
_CHANNELS = "channel_sources"
#: Keys that the engine adds by itself: the target of a noarch package is its own.
_ALWAYS_USED = frozenset({"target_platform", _CHANNELS})
_HASH_INPUT = "info/hash_input.json"
_RECIPE, _RENDERED, _VARIANT = (f"info/recipe/{name}.yaml" for name in ("recipe", "rendered_recipe", "variant_config"))
_CHANNELS_LINE = re.compile(rb"^( *)channel_sources: .*\n", re.MULTILINE)
_HASH_LINE = re.compile(rb"^(    hash: ).*$", re.MULTILINE)


def inherits(variant: Rendering, request: BuildRequest) -> bool:
    """Whether an output takes files from a shared build of the request."""
    inherited = variant.recipe.to_dict().get("inherits_from") or {}
    return inherited.get("cache_name") in request.shared


def build_shared(rendered: Sequence[Rendering], request: BuildRequest, events: EngineLog, place: Path) -> Path:
    """Run the staging output of a request for a shared build; returns the folder with what it has left.

    Args:
        rendered: the outputs of the row.
        place: the path of the private folder for the engine.

    Raises:
        RattlerBuildError, FeedstockError, OSError: it failed.
    """
    from rattler_build import ToolConfiguration

    heir = next(variant for variant in rendered if inherits(variant, request))
    used = _values_of(heir)
    parsed = staging_alone(heir, request.recipe, UNIT, used.keys() - _ALWAYS_USED)
    platforms = Platform.parse(request.target), Platform.parse(request.builder)
    (single,) = render_row(parsed, request.name, {**request.values, **used}, *platforms)
    (folder,) = request.shared.values()
    request.output.mkdir(parents=True, exist_ok=True)
    (request.output / _CACHE).symlink_to(folder)
    single.run_build(
        ToolConfiguration(test_strategy="skip", channel_priority="strict"),
        output_dir=place / request.output.name,
        channels=list(request.channels),
        progress_callback=events,
        no_build_id=True,
    )
    (entry,) = folder.iterdir()
    solved = json.loads((entry / _COMPLETE).read_text(encoding="utf-8"))["finalized_dependencies"]
    (folder / SOLVED).write_text(json.dumps({"finalized_dependencies": solved}), encoding="utf-8")
    return folder


def build_heir(
    variant: Rendering,
    row: Sequence[Rendering],
    request: BuildRequest,
    events: EngineLog,
    place: Path,
    test: str,
    cuda: str | None,
) -> Path:
    """Build an output that inherits from a shared build; returns its package.

    `build_recipes()` takes channels from the variant alone if that names some, so it is given ours there: the hash of
    the original variant is written out in the recipe, and set for scripts.

    Args:
        row: the outputs of the row.
        events: gets the questions of its environments: the engine has no log then.
        place: the path of the private folder for the engine.
        test: the strategy of tests.
        cuda: the version of the virtual package `__cuda`, for the questions.

    Raises:
        RattlerBuildError, FeedstockError, OSError: it failed.
    """
    from rattler_build.cli_api import build_recipes

    used = _values_of(variant)
    _link_shared(request)
    variants = _write_variants(request, used)
    own = alone(variant, row, request.recipe, used.keys() - _ALWAYS_USED, UNIT)
    for line in _questions(own.text, request, used["target_platform"], cuda):
        events.say(line, "solve")
    target = request.builder if request.target == "noarch" else request.target
    with (
        _scripts_see(_settings(variant, used), request),
        shown_instead(own.text, request.recipe_of_heir, request.recipe),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", DeprecationWarning)
        build_recipes(
            [request.recipe],
            variant_config=[str(variants)],
            ignore_recipe_variants=True,
            target_platform=target,
            host_platform=target,
            build_platform=request.builder,
            channel_priority="strict",
            test=test,
            output_dir=place / request.output.name,
            no_build_id=True,
            package_format="conda:1",
        )
    if again := [entry.name for entry in (request.output / _CACHE).iterdir() if not entry.is_symlink()]:
        events.say(f"WARNING: the engine did not find what was shared, and made {', '.join(again)}", "", "warn")
    return _made(variant, request.output, target)


def _made(variant: Rendering, folder: Path, target: str) -> Path:
    content = variant.recipe
    name = f"{content.package.name}-{content.package.version}-{content.build.string}.conda"
    paths = (folder / subdir / name for subdir in ("noarch", target))
    if (package := next((path for path in paths if path.is_file()), None)) is None:
        raise WorkError(f"the engine has not made {name}")
    return package


def _values_of(variant: Rendering) -> dict[str, str]:
    return {key: text_of(value) for key, value in dict(variant.variant).items()}


def _write_variants(request: BuildRequest, used: Mapping[str, str]) -> Path:
    """The variant file of an heir: the values that it uses, with our channels."""
    ours = {key: value for key, value in used.items() if key not in _ALWAYS_USED}
    ours[_CHANNELS] = ",".join(request.channels)
    file = request.folder / "variants.json"
    file.write_text(json.dumps({key: [typed_value(value)] for key, value in ours.items()}), encoding="utf-8")
    return file


def _link_shared(request: BuildRequest) -> None:
    """Let the engine find what the shared builds have left."""
    cache = request.output / _CACHE
    cache.mkdir(exist_ok=True)
    for folder in request.shared.values():
        for entry in folder.glob(f"staging_*/{_COMPLETE}"):
            link = cache / entry.parent.name
            if not link.is_symlink():
                link.symlink_to(entry.parent)


@contextmanager
def _scripts_see(settings: str, request: BuildRequest) -> Iterator[None]:
    """Give settings to the scripts that the engine runs meanwhile."""
    file = settings_of(request.folder)
    file.write_text(settings, encoding="utf-8")
    try:
        yield
    finally:
        file.write_text("", encoding="utf-8")


def _questions(recipe: str, request: BuildRequest, target: str, cuda: str | None) -> Iterator[str]:
    """The environments of an heir in the form of the engine's log, which this engine does not show.

    An environment that has no solution is explained from them (`builds.runs.unsolved`).
    """
    requirements = json.loads(recipe)["outputs"][-1].get("requirements") or {}
    for environment, subdir in (("build", request.builder), ("host", target)):
        if specs := [spec for spec in requirements.get(environment) or () if isinstance(spec, str)]:
            platform = Platform.parse(request.target if subdir == "noarch" else subdir)
            yield f"  Platform: {platform.subdir} [{', '.join(virtual_packages(platform, cuda=cuda))}]"
            for title, items in (("Channels", [request.output.as_uri(), *request.channels]), ("Specs", specs)):
                yield f"  {title}:"
                yield from (f"   - {item}" for item in items)


def _settings(variant: Rendering, used: Mapping[str, str]) -> str:
    """What the variant of an heir is for its scripts, in place of what the engine says that it is."""
    lines = [f"export {_CHANNELS}={shlex.quote(used[_CHANNELS])}" if _CHANNELS in used else f"unset {_CHANNELS}"]
    if variant.hash_info is not None:
        lines.append(f"export PKG_HASH={variant.hash_info.prefix}h{variant.hash_info.hash}")
    return "\n".join([*lines, ""])


def original_documents(package: Path, variant: Rendering, recipe: bytes) -> dict[str, bytes]:
    """The documents of an heir's package as its own recipe and variant have them, which the engine was not given.

    Args:
        recipe: the text of its recipe.
    """
    import yaml

    original = {key: value for key, value in _values_of(variant).items() if key == _CHANNELS}
    line = yaml.safe_dump(original, width=1 << 20).encode() if original else b""
    found = {
        name: content or b"" for name, content in read_documents(package, (_HASH_INPUT, _VARIANT, _RENDERED)).items()
    }
    contents = {key: value for key, value in json.loads(found[_HASH_INPUT] or b"{}").items() if key != _CHANNELS}
    variants = _CHANNELS_LINE.sub(b"", found[_VARIANT]) + line
    rendered = _CHANNELS_LINE.sub((lambda match: match[1] + line) if line else b"", found[_RENDERED], count=1)
    if variant.hash_info is not None:
        own = yaml.safe_dump(variant.hash_info.hash).splitlines()[0]  # in quotes if it would be a number without them
        rendered = _HASH_LINE.sub(rb"\g<1>" + own.encode(), rendered, count=1)
    return {
        _HASH_INPUT: json.dumps({**contents, **original}, sort_keys=True).encode(),
        _VARIANT: b"".join(sorted(variants.splitlines(keepends=True))),
        _RENDERED: rendered,
        _RECIPE: recipe,
    }
