"""Whether the local sources of a spec are there, with the folders that templates build.

This is asked when recipes are generated, and not when a spec is read: a copy of a feedstock on another machine need not
have its sources.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path, PurePosixPath

from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.generate.spec.finding import Finding
from feedstock_tools.generate.spec.model import Script, Source, Spec
from feedstock_tools.reading import read_text
from feedstock_tools.yaml_reading.positions import Location, parse_document

#: Endings of archives, which a release may make after the recipe.
_ARCHIVES = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst", ".tar", ".zip", ".7z", ".whl", ".conda")
_MOST_NAMES = 6


def require_local_sources(spec: Spec, file: Path) -> None:
    """Check the sources on disk of a spec.

    Args:
        file: the spec's, `feedstock.yaml`; its sources are relative to the folder `recipe` beside it.

    Raises:
        InputError: a folder of sources, or one that a template builds, is missing, is a file, or leaves the sources.
    """
    found = list(_findings(spec, file.parent / "recipe"))
    if not found:
        return
    document = parse_document(read_text(file, within=file.parent), file)
    places = [(finding, document.place(finding.location)) for finding in found]
    raise InputError.of(
        [Mistake(finding.message, file, place.line, place.column, finding.hint) for finding, place in places]
    )


def _findings(spec: Spec, recipe: Path) -> Iterator[Finding]:
    local = {at: _path(source, spec, recipe) for at, source in enumerate(spec.sources) if source.path}
    for at, path in local.items():
        if not path.exists() and not path.name.endswith(_ARCHIVES):
            hint = f"Paths are relative to the folder recipe: {path} does not exist."
            yield Finding(("sources", at, "path"), f"there is no folder {spec.sources[at].path}", hint)
    if len(local) < len(spec.sources) or not all(path.is_dir() for path in local.values()):
        return  # what the others hold is known only after fetching them
    for location, script in _templates(spec):
        problem = _problem([(spec.sources[at], path) for at, path in local.items()], PurePosixPath(script.folder))
        if problem is not None:
            yield Finding(location, *problem)


def _path(source: Source, spec: Spec, recipe: Path) -> Path:
    """Its folder or archive, also before the first recipe is written."""
    return Path(os.path.normpath(recipe.resolve() / (source.path or "").replace("{version}", spec.version)))


def _templates(spec: Spec) -> Iterator[tuple[Location, Script]]:
    """The scripts that build a folder of the sources, with the places of these folders in the spec."""
    owners: list[tuple[Location, Script | None]] = [(("build",), spec.build.script)]
    owners += [(("outputs", at), output.script) for at, output in enumerate(spec.outputs)]
    for location, script in owners:
        if script is not None and script.template is not None and script.folder != ".":
            yield (*location, "script", "folder"), script


def _problem(sources: list[tuple[Source, Path]], folder: PurePosixPath) -> tuple[str, str] | None:
    """What is wrong with a folder of the work folder, with a hint; None if a source has it."""
    reasons = []
    for source, root in sources:
        unpacked = PurePosixPath(source.folder or ".")
        if unpacked.is_relative_to(folder):
            return None
        if not folder.is_relative_to(unpacked):
            continue
        path = root / folder.relative_to(unpacked)
        if not path.is_dir():
            reasons.append(_missing(path, root, folder, unpacked))
        elif not path.resolve().is_relative_to(root.resolve()):
            link = f"{path} is a link to {path.resolve()}."
            reasons.append((f"'{folder}' leaves the source {source.path}", link))
        else:
            return None
    return reasons[0] if reasons else (f"no source has a folder '{folder}'", "Name a folder below that of a source.")


def _missing(path: Path, root: Path, folder: PurePosixPath, unpacked: PurePosixPath) -> tuple[str, str]:
    if path.is_file():
        return f"'{folder}' is a file, not a folder of the sources", "Name the folder with the project."
    names = sorted(str(unpacked / each.name) for each in root.iterdir() if each.is_dir() and each.name[0] != ".")
    near = get_close_matches(str(folder), names, n=1)
    listed = f"It has {', '.join(names[:_MOST_NAMES])}." if names else "It has no folders."
    hint = f"Did you mean '{near[0]}'?" if near else listed
    return f"there is no folder '{folder}' in {root}", hint
