"""What a rendered package consists of, as lines to compare: the same words for both recipe formats."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from feedstock_tools.check.rehearsal.demands import Demands
from feedstock_tools.recipe.model import RenderedOutput
from feedstock_tools.recipe.requirements import Pin, Requirement, as_list
from feedstock_tools.recipe.v0.meta import Meta

#: The lines of each part of a package, such as `run`.
Parts = Mapping[str, tuple[str, ...]]
#: The parts that are compared only between states of one format, or only between those of two.
ONE_FORMAT, TWO_FORMATS = frozenset({"tests", "script"}), frozenset({"imports of tests", "commands of tests"})
#: The parts that no environment depends on.
NO_ENVIRONMENT = frozenset({"license", "source", "script"})
_HASH = re.compile(r"h[0-9a-f]{7}")
_CALLS = ("pin_subpackage", "pin_compatible")
_STATES = {True: "yes", False: "no"}
#: A version and a build: the version is exact with and without `==`.
_EXACT = re.compile(r"^(\S+) ==?(\S+) (\S+)$")
_PIP_CHECK = re.compile(r"(?:\S*python\S* -m )?pip check")
#: Commands that only look whether a file exists, which the new format writes as `package_contents`.
_EXISTENCE = re.compile(r"(?:test|\[) !? ?-[edfLsx] |if (?:not )?exist |\$?\w*:? ?ls ")


def parts_of_meta(meta: Meta, output: RenderedOutput, demands: Demands) -> Parts:
    """The parts of a package of a `meta.yaml`."""
    own = meta.output.get("test") if meta.is_output else (meta.output.get("test") or meta.data.get("test"))
    test = own if isinstance(own, Mapping) else {}
    commands = [str(line) for line in as_list(test.get("commands"))]
    about = {**meta.section("about"), **_mapping(meta.output.get("about"))}
    return {
        **_common(output, demands),
        "license": _texts(about.get("license")),
        "source": tuple(_sources(meta.data.get("source"))),
        "script": _texts(meta.section("build").get("script")) or _texts(meta.output.get("script")),
        "tests": tuple(_lines(test)),
        "imports of tests": _texts(test.get("imports")),
        "commands of tests": tuple(_commands(commands)),
    }


def parts_of_content(content: Mapping[str, Any], output: RenderedOutput, demands: Demands) -> Parts:
    """The parts of a package of a `recipe.yaml`, from the content that it was rendered to."""
    tests = [test for test in content.get("tests") or () if isinstance(test, Mapping)]
    commands = [line for test in tests for line in _script_lines(test.get("script"))]
    python = [_mapping(test.get("python")) for test in tests]
    checks = ["pip check"] if any(test and test.get("pip_check", True) for test in python) else []
    script = (content.get("build") or {}).get("script")
    return {
        **_common(output, demands),
        "license": _texts((content.get("about") or {}).get("license")),
        "source": tuple(_sources(content.get("source"))),
        "script": tuple(_lines(script)) if isinstance(script, Mapping) else _texts(script),
        "tests": tuple(_lines(content.get("tests") or [])),
        "imports of tests": tuple(name for test in python for name in _texts(test.get("imports"))),
        "commands of tests": tuple(_commands([*commands, *checks])),
    }


def _common(output: RenderedOutput, demands: Demands) -> dict[str, tuple[str, ...]]:
    """The parts that both formats have alike.

    A requirement that conda-build pinned to the variant (`python 3.12.*`) is its name alone, as rattler-build has it.
    """
    variant = {key.replace("_", "-"): value for key, value in output.variant.items()}
    sections = {
        "build": demands.build,
        "host": demands.host or (),
        "run": demands.run,
        "run_constrained": demands.constrains,
    }
    ignored = [*demands.ignored, *(f"from {name}" for name in demands.ignored_from)]
    exports = [
        f"{kind}: {_requirement(spec, variant)}" for kind, specs in demands.run_exports.items() for spec in specs
    ]
    return {
        "version": (output.version,),
        "build number": (str(output.build_number),),
        "build string": (_HASH.sub("h…", output.build_string),),
        "noarch": (output.noarch or "no",),
        **{name: tuple(_requirement(spec, variant) for spec in specs) for name, specs in sections.items()},
        "run_exports": tuple(sorted(exports)),
        "ignored run exports": tuple(sorted(ignored)),
        "track_features": (str(len(demands.track_features)),),
    }


def _requirement(requirement: Requirement, variant: Mapping[str, str]) -> str:
    """A requirement without what the formats write differently: spaces, versions of the variant, hashes in pins."""
    if not isinstance(requirement, Pin):
        text = _EXACT.sub(r"\1 \2 \3", re.sub(r"\s+", " ", requirement.strip()))
        name, _, version = text.partition(" ")
        return name if version and variant.get(name.replace("_", "-")) == version else _HASH.sub("h…", text)
    call = _CALLS[requirement.compatible]
    if requirement.exact:
        return f"{requirement.name} {call}(exact)"
    return f"{requirement.name} {call}({requirement.lower or ''} to {requirement.upper or ''})"


def _sources(value: Any) -> Iterator[str]:
    """URL, hash, commit and patches of each source."""
    for source in value if isinstance(value, list) else [value]:
        fields = _mapping(source)
        for word, keys in _OF_SOURCES.items():
            texts = [text for key in keys for text in _texts(fields.get(key))]
            yield from (f"{word}: {text}" for text in texts)


_OF_SOURCES = {
    "url": ("url",),
    "sha256": ("sha256",),
    "git": ("git_url", "git"),
    "revision": ("git_rev", "tag", "rev", "branch"),
    "path": ("path",),
    "patch": ("patches",),
}


def _script_lines(script: Any) -> Iterator[str]:
    if isinstance(script, Mapping):
        script = script.get("content") or script.get("file")
    for text in _texts(script):
        yield from text.splitlines()


def _commands(lines: Sequence[str]) -> Iterator[str]:
    """Commands of tests without those that only look for files, each form of `pip check` alike."""
    for line in lines:
        text = " ".join(line.split())
        if _PIP_CHECK.fullmatch(text):
            yield "pip check"
        elif text and not _EXISTENCE.match(text):
            yield _HASH.sub("h…", text)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _texts(value: Any) -> tuple[str, ...]:
    """A text or a list of texts, as texts."""
    return tuple(str(item) for item in (value if isinstance(value, list | tuple) else [value]) if item is not None)


def _lines(value: Any, place: str = "") -> Iterator[str]:
    """Nested values as lines `place: text`, in order."""
    if isinstance(value, Mapping):
        call = next((name for name in _CALLS if name in value), None)
        if call is not None:
            yield f"{place}: {call}({json.dumps(value[call], sort_keys=True, default=str)})"
            return
        for key in sorted(value, key=str):
            yield from _lines(value[key], f"{place}.{key}" if place else str(key))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            yield from _lines(item, place)
    elif value is not None:
        yield _HASH.sub("h…", f"{place}: {_STATES.get(value, value) if isinstance(value, bool) else value}")
