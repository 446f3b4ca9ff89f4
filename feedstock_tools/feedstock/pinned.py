"""What a spec asks of conda-forge's pinning, and what the pinning has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.reading import read_text
from feedstock_tools.yaml_reading.nodes import read_texts

if TYPE_CHECKING:
    from feedstock_tools.rerender.configuration import Configuration
    from feedstock_tools.rerender.rerendering import Rerender
    from feedstock_tools.yaml_reading.nodes import Document, Location

_SPEC = "feedstock.yaml"
_STDLIB = re.compile(r"^c_stdlib:", re.MULTILINE)


def follows_pinning(feedstock: Path) -> bool:
    """Whether a feedstock has a spec that takes its versions from conda-forge's pinning."""
    if not (feedstock / _SPEC).is_file():
        return False
    content = read_texts(feedstock / _SPEC, within=feedstock)
    return isinstance(content, dict) and content.get("pinning", "conda-forge") == "conda-forge"


def require_what_is_asked(feedstock: Path, result: Rerender, pinning: Path | None = None) -> None:
    """Nothing, if a rerender has every CUDA version, Python and migration that the spec lists, and the spec what the
    pinning asks for.

    Args:
        pinning: the pinning's conda_build_config.yaml.

    Raises:
        InputError: the pinning lacks some of them, or has `c_stdlib` and the spec compiles without `stdlib: c`; all
            mistakes, each with its place in the spec.
    """
    if result.platforms is not None or not follows_pinning(feedstock):
        return
    from feedstock_tools.yaml_reading.nodes import parse_document

    path = feedstock / _SPEC
    document = parse_document(read_text(path, within=feedstock), path)
    missing = [
        *_missing_versions(document, result.configurations),
        *_missing_pythons(document, result.configurations),
        *_missing_migrations(document, result.finished_migrations),
        *_missing_stdlib(document, pinning),
    ]
    if missing:
        raise InputError.of(missing)


def _missing_versions(document: Document, configurations: tuple[Configuration, ...]) -> Iterator[Mistake]:
    cuda = document.content.get("cuda")
    versions = cuda.get("versions") if isinstance(cuda, dict) else None
    rendered = {
        value for configuration in configurations for value in configuration.values.get("cuda_compiler_version", ())
    }
    at_hand = ", ".join(sorted(rendered - {"None"})) or "none of them"
    for at, version in enumerate(versions if isinstance(versions, list) else ()):
        if version not in rendered:
            hint = f"The rerender has {at_hand}. Add its migration (migrations: [cuda{version.replace('.', '')}], say)."
            yield document.mistake(("cuda", "versions", at), f"the pinning has no CUDA {version}", hint)


def _missing_pythons(document: Document, configurations: tuple[Configuration, ...]) -> Iterator[Mistake]:
    pythons = document.content.get("python")
    values = {value for configuration in configurations for value in configuration.values.get("python", ())}
    rendered = {value.split(" ")[0].removesuffix(".*") for value in values}
    for at, python in enumerate(pythons if rendered and isinstance(pythons, list) else ()):
        if python not in rendered:
            hint = f"The rerender has {', '.join(sorted(rendered))}."
            yield document.mistake(("python", at), f"the pinning has no Python {python}", hint)


def _missing_migrations(document: Document, finished: tuple[Path, ...]) -> Iterator[Mistake]:
    migrations = document.content.get("migrations")
    names = list(migrations) if isinstance(migrations, dict | list) else []
    gone = {path.stem for path in finished}
    for at, name in enumerate(names):
        if name in gone:
            location: Location = ("migrations", at if isinstance(migrations, list) else name)
            hint = "Remove it, or take its name and time stamp from the pinning: migrations: [name]."
            yield document.mistake(location, f"the pinning has no migration '{name}' of this time stamp", hint)


def _missing_stdlib(document: Document, pinning: Path | None) -> Iterator[Mistake]:
    """The compilers without a standard library, if the pinning has one: it has had it since 2024."""
    if pinning is None or not _STDLIB.search(read_text(pinning, within=None)):
        return
    from feedstock_tools.generate.spec.review_checks import check_stdlib

    for finding in check_stdlib(document.content):
        yield document.mistake(finding.location, finding.message, finding.hint)
