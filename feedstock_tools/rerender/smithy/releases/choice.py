"""The release of conda-smithy that a rerender uses: the requested one, else a fetched one, else an installed one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from feedstock_tools.errors import InputError
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.rerender.smithy.releases.release import Release, find_release
from feedstock_tools.rerender.smithy.tree_rules import NEWEST
from feedstock_tools.versions import parse_version

#: The word for no release: `.ci_support` and job lists alone.
NO_RELEASE = "none"


@dataclass(frozen=True, slots=True)
class ReleaseChoice:
    """A release, or None, and one line for people: where it comes from, or what is missing and how to get it."""

    release: Release | None
    remark: str


def choose_release(
    requested: str | None, rules: str | None, fetched: Mapping[str, Path], installed: Release | None
) -> ReleaseChoice:
    """The release for a rerender.

    Args:
        requested: a folder, a version, or `none`; None: the release that `rules` names, else the newest fetched
            release, else the installed one.
        rules: the requested rules, `SMITHY` or `SMITHY+CONDA_BUILD`.
        fetched: version → folder of the fetched releases, the newest last.
        installed: the installed release, if there is one.

    Raises:
        InputError: there is no such release, or it is damaged.
    """
    if requested == NO_RELEASE:
        return ReleaseChoice(None, "conda-smithy: no release; only .ci_support and job lists are written")
    if requested is not None:
        return _requested(requested, fetched, installed)
    if rules is None:
        if fetched:
            return _fetched(list(fetched)[-1], fetched)
        return _installed(installed) if installed else _missing(Rules.newest().smithy)
    version = Rules.parse(rules).smithy
    return _of_version(version, fetched, installed) or _missing(version)


def installed_release(places: Iterable[Path]) -> Release | None:
    """The first release with a known version in some environments or folders of packages; nothing is imported."""
    for place in places:
        with suppress(InputError):
            release = find_release(place)
            if release.version is not None:
                return release
    return None


def _requested(requested: str, fetched: Mapping[str, Path], installed: Release | None) -> ReleaseChoice:
    folder = Path(requested)
    if folder.is_dir() or not _is_version(requested):
        release = find_release(folder)
        return ReleaseChoice(release, f"conda-smithy: {release.version or 'a release of unknown version'} in {folder}")
    found = _of_version(requested, fetched, installed)
    if found is None:
        have = ", ".join(list(fetched)[-3:]) or "none"
        raise InputError(
            f"conda-smithy {requested} has not been fetched",
            hint=f"Fetch it with 'feedstock-tools smithy fetch {requested}'. Fetched releases: {have}.",
        )
    return found


def _of_version(version: str, fetched: Mapping[str, Path], installed: Release | None) -> ReleaseChoice | None:
    wanted = parse_version(version)
    for kept in fetched:
        if parse_version(kept) == wanted:
            return _fetched(kept, fetched)
    if installed and installed.version and parse_version(installed.version) == wanted:
        return _installed(installed)
    return None


def _fetched(version: str, fetched: Mapping[str, Path]) -> ReleaseChoice:
    try:
        release = find_release(fetched[version])
    except InputError as error:
        hint = f"Delete this folder, and run 'feedstock-tools smithy fetch {version}'."
        raise InputError(f"the fetched release {version} is damaged", path=fetched[version], hint=hint) from error
    return ReleaseChoice(release, f"conda-smithy: {version}, fetched{_age(version)}")


def _installed(release: Release) -> ReleaseChoice:
    version = release.version or ""
    return ReleaseChoice(release, f"conda-smithy: {version}, installed in {release.folder.parent}{_age(version)}")


def _age(version: str) -> str:
    return f" (older than {NEWEST})" if parse_version(version) < parse_version(NEWEST) else ""


def _missing(version: str) -> ReleaseChoice:
    return ReleaseChoice(
        None,
        f"conda-smithy: {version} is missing, so only .ci_support and job lists are written; "
        f"get it with 'feedstock-tools smithy fetch {version}', or give a release with --smithy DIR",
    )


def _is_version(text: str) -> bool:
    parts = text.split(".")
    return len(parts) > 1 and all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts)
