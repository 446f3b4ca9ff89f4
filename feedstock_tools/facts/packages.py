"""What real recipes say of the packages that the stand-in channel holds: `variants/packages.yaml`, read and checked.

The file has a table of sources (a feedstock at a commit) and a list of families of packages. A family is a template
with a list of rows; every row gives one package for each of its subdirs. docs/stand-in-channel.md has the format.
"""

from __future__ import annotations

import datetime
import json
import re
import string
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha1
from pathlib import Path
from typing import Any

from feedstock_tools.data import data_folder
from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.platforms import KNOWN_SUBDIRS
from feedstock_tools.reading import read_text
from feedstock_tools.yaml_reading.nodes import compose, is_mapping, items, pairs, place_of

__all__ = ["KnownPackage", "PackageSource", "packages_file", "read_packages"]

_SUBDIRS = (*KNOWN_SUBDIRS, "noarch")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_RUN_EXPORTS = ("weak", "strong", "noarch", "weak_constrains", "strong_constrains")
_LISTS = ("depends", "constrains", "track_features", "exact", "exact_constrains")
_ROLES = ("binutils", "c_compiler", "cxx_compiler", "python", "nvcc", "nvcc_activation")
_KEYS = {
    "name",
    "version",
    "source",
    "subdirs",
    "noarch",
    "license",
    "build",
    "number",
    "hash",
    "run_exports",
    "role",
    *_LISTS,
}
_HASH_LENGTH = 7
#: Bytes; the file that ships has a fifth of it.
_LARGEST = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class PackageSource:
    """The recipe that says what a package is: a file of a feedstock at a commit, and the day of that commit."""

    feedstock: str
    commit: str
    path: str
    date: datetime.date

    def __str__(self) -> str:
        return f"conda-forge/{self.feedstock}-feedstock@{self.commit}:{self.path}"

    @property
    def timestamp(self) -> int:
        """Midnight (UTC) of the day, in milliseconds since 1970."""
        midnight = datetime.datetime.combine(self.date, datetime.time(), datetime.UTC)
        return int(midnight.timestamp()) * 1000


@dataclass(frozen=True, slots=True)
class KnownPackage:
    """The metadata of one package as its recipe gives it.

    `role` says what the stand-in channel makes of it, if more than metadata: a compiler, its tools, or Python.
    `hash_known` is False where the seven digits in the build string are of our own making.
    """

    name: str
    version: str
    build: str
    build_number: int
    subdir: str
    source: PackageSource
    noarch: str | None = None
    license: str | None = None
    depends: tuple[str, ...] = ()
    constrains: tuple[str, ...] = ()
    track_features: tuple[str, ...] = ()
    run_exports: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    role: str | None = None
    hash_known: bool = True

    @property
    def distribution(self) -> str:
        """Name, version and build as conda writes them in one word."""
        return f"{self.name}-{self.version}-{self.build}"


def packages_file() -> Path:
    """The file that comes with this tool."""
    return data_folder("variants") / "packages.yaml"


def read_packages(path: Path | None = None) -> tuple[KnownPackage, ...]:
    """All packages of the file, for all subdirs, in the order of the file.

    Args:
        path: another file than the one that comes with this tool.

    Raises:
        InputError: the file cannot be read, or says something that cannot be; all mistakes are named.
    """
    path = path or packages_file()
    document = _load(path)
    mistakes = _Mistakes(path)
    sources = _sources(document, mistakes)
    drafts = [
        draft
        for family in _tables(document, "packages", mistakes)
        for draft in _drafts_of_family(family, sources, mistakes)
    ]
    siblings: dict[PackageSource, list[KnownPackage]] = {}
    for draft in drafts:
        siblings.setdefault(draft.package.source, []).append(draft.package)
    packages = tuple(_pinned(draft, siblings[draft.package.source], mistakes) for draft in drafts)
    _check_together(packages, mistakes)
    mistakes.refuse()
    return packages


class _Mistakes:
    """What is wrong in the file, collected while it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._found: list[Mistake] = []

    def add(self, message: str, line: int | None = None) -> None:
        self._found.append(Mistake(message, self.path, line))

    def refuse(self) -> None:
        if self._found:
            raise InputError.of(self._found)


class _Table(dict[str, Any]):
    """A mapping of the file that knows its line."""

    line: int | None = None


@dataclass(frozen=True, slots=True)
class _Draft:
    """A package whose exact pins (a name, then where needed version and hash) are not yet filled in."""

    package: KnownPackage
    exact: tuple[str, ...]
    exact_constrains: tuple[str, ...]
    line: int | None


def _load(path: Path) -> _Table:
    """The document, all its scalars as text (`2.30` is a version here), its mappings with their lines."""
    node = compose(read_text(path, _LARGEST), path)
    document = _plain(node)
    if not isinstance(document, _Table):
        raise InputError("a mapping with the keys 'sources' and 'packages' was expected", path=path)
    return document


def _plain(node: Any) -> Any:
    if is_mapping(node):
        table = _Table((key.value, _plain(value)) for key, value in pairs(node))
        table.line = place_of(node).line
        return table
    if node is None or node.id == "scalar":
        return None if node is None else node.value
    return [_plain(item) for item in items(node)]


def _tables(document: Mapping[str, Any], key: str, mistakes: _Mistakes) -> list[_Table]:
    items = document.get(key)
    if not isinstance(items, list) or not all(isinstance(item, _Table) for item in items):
        mistakes.add(f"'{key}' should be a list of mappings", getattr(document, "line", None))
        return []
    return items


def _sources(document: _Table, mistakes: _Mistakes) -> dict[str, PackageSource]:
    table = document.get("sources")
    if not isinstance(table, _Table):
        mistakes.add("'sources' should be a mapping")
        return {}
    found = {}
    for name, entry in table.items():
        if not isinstance(entry, _Table) or set(entry) - {"path"} != {"feedstock", "commit", "date"}:
            mistakes.add(
                f"the source '{name}' needs a feedstock, a commit and a date", getattr(entry, "line", table.line)
            )
            continue
        if not _COMMIT.fullmatch(entry["commit"]):
            mistakes.add(f"the source '{name}' needs its commit in full (40 digits)", entry.line)
        try:
            date = datetime.date.fromisoformat(entry["date"])
        except ValueError:
            mistakes.add(f"'{entry['date']}' is not a date (2024-02-29)", entry.line)
            continue
        path = entry.get("path", "recipe/meta.yaml")
        found[name] = PackageSource(entry["feedstock"], entry["commit"], path, date)
    return found


def _drafts_of_family(family: _Table, sources: Mapping[str, PackageSource], mistakes: _Mistakes) -> Iterator[_Draft]:
    for row in _tables(family, "rows", mistakes):
        merged = _Table({key: value for key, value in family.items() if key != "rows"} | row)
        merged.line = row.line
        used = set(re.findall(r"\{(\w+)\}", json.dumps(merged)))
        for key in sorted(merged.keys() - _KEYS - used):
            mistakes.add(f"'{key}' is neither a key of a package nor named by one of its texts", row.line)
        subdirs = merged.get("subdirs", ["noarch"] if "noarch" in merged else [])
        if not subdirs or not isinstance(subdirs, list):
            mistakes.add("a package needs a list of subdirs, or to be noarch", row.line)
            continue
        for subdir in subdirs:
            try:
                yield _draft(merged, subdir, sources)
            except _UnreadableError as error:
                mistakes.add(f"{merged.get('name', 'a package')}: {error}", row.line)


class _UnreadableError(ValueError):
    """What is wrong with one row."""


def _draft(row: _Table, subdir: str, sources: Mapping[str, PackageSource]) -> _Draft:
    if subdir not in _SUBDIRS:
        raise _UnreadableError(f"'{subdir}' is not a subdir")
    for key in ("name", "version", "source"):
        if not isinstance(row.get(key), str):
            raise _UnreadableError(f"it needs a {key}")
    if row["source"] not in sources:
        raise _UnreadableError(f"there is no source '{row['source']}'")
    if row.get("role", _ROLES[0]) not in _ROLES:
        raise _UnreadableError(f"'{row['role']}' is not a role ({', '.join(_ROLES)})")
    if not row.get("number", "0").isdigit():
        raise _UnreadableError(f"'{row['number']}' is not a build number")
    words = _words(row, subdir)
    exports = row.get("run_exports") or {}
    if not isinstance(exports, Mapping) or set(exports) - set(_RUN_EXPORTS):
        raise _UnreadableError(f"run exports are a mapping with the keys {', '.join(_RUN_EXPORTS)}")
    lists = {key: _filled(row.get(key), subdir, words) for key in _LISTS}
    package = KnownPackage(
        name=_fill(row["name"], words),
        version=row["version"],
        build="",
        build_number=int(row.get("number", "0")),
        subdir="noarch" if "noarch" in row else subdir,
        source=sources[row["source"]],
        noarch=row.get("noarch"),
        license=row.get("license"),
        depends=lists["depends"],
        constrains=lists["constrains"],
        track_features=lists["track_features"],
        run_exports={kind: found for kind in _RUN_EXPORTS if (found := _filled(exports.get(kind), subdir, words))},
        role=row.get("role"),
    )
    built = _with_build(package, row, words, lists["exact"])
    return _Draft(built, lists["exact"], lists["exact_constrains"], row.line)


def _with_build(
    package: KnownPackage, row: Mapping[str, Any], words: Mapping[str, str], exact: Iterable[str]
) -> KnownPackage:
    """Fill in the build string; a hash that the file does not give is made from what the package says."""
    template = row.get("build", "h{hash}_{number}")
    given = row.get("hash")
    known = given.get(words["platform"]) if isinstance(given, Mapping) else given
    content = [
        package.name,
        package.version,
        package.subdir,
        package.depends,
        package.constrains,
        sorted(package.run_exports.items()),
        sorted(exact),
        str(package.source),
    ]
    made = sha1(json.dumps(content).encode(), usedforsecurity=False).hexdigest()[:_HASH_LENGTH]
    build = _fill(template, {**words, "hash": known or made})
    return replace(package, build=build, hash_known=known is not None or "{hash}" not in template)


def _words(row: Mapping[str, Any], subdir: str) -> dict[str, str]:
    """What templates may name: the platform, parts of the version, and every text that the row has."""
    parts = str(row["version"]).split(".")
    major = parts[0]
    return {
        "platform": subdir,
        "triplet": _TRIPLETS.get(subdir, ""),
        "major": major,
        "next_major": str(int(major) + 1) if major.isdigit() else "",
        "minor": ".".join(parts[:2]),
        "number": "0",
        **{key: value for key, value in row.items() if isinstance(value, str) and key not in ("name", "build", "hash")},
    }


_TRIPLETS = {
    "linux-64": "x86_64-conda-linux-gnu",
    "linux-aarch64": "aarch64-conda-linux-gnu",
    "osx-64": "x86_64-apple-darwin13.4.0",
    "osx-arm64": "arm64-apple-darwin20.0.0",
}


def _filled(value: object, subdir: str, words: Mapping[str, str]) -> tuple[str, ...]:
    """A list of templates for one subdir: a list for all, or a mapping of `all`, a system or a subdir to lists."""
    if value is None:
        return ()
    if isinstance(value, list):
        return tuple(_fill(item, words) for item in value)
    if isinstance(value, Mapping):
        groups = {"all", subdir, subdir.partition("-")[0]}
        unknown = [key for key in value if key not in ("all", "linux", "osx", "win", *_SUBDIRS)]
        if unknown:
            raise _UnreadableError(f"'{unknown[0]}' is neither 'all' nor a system nor a subdir")
        return tuple(_fill(item, words) for key, items in value.items() if key in groups for item in items)
    raise _UnreadableError(f"a list was expected instead of '{value}'")


def _fill(template: object, words: Mapping[str, str]) -> str:
    if not isinstance(template, str):
        raise _UnreadableError(f"a text was expected instead of {template!r}")
    try:
        names = [name for _, name, _, _ in string.Formatter().parse(template) if name is not None]
    except ValueError as error:
        raise _UnreadableError(f"'{template}': {error}") from error
    for name in names:
        if name not in words:
            raise _UnreadableError(f"'{template}' names '{name}', which the row does not have")
    return re.sub(r"\{(\w+)\}", lambda match: words[match[1]], template)


def _pinned(draft: _Draft, siblings: Iterable[KnownPackage], mistakes: _Mistakes) -> KnownPackage:
    """The package with a dependency, or a constraint, on exactly one build for each of its exact pins."""
    package = draft.package
    near = [sibling for sibling in siblings if sibling.subdir in (package.subdir, "noarch")]

    def pins(wanted: Iterable[str]) -> Iterator[str]:
        for exact in wanted:
            name, version, hash_ = (*exact.split(" "), "", "")[:3]
            version = version or package.version
            found = [other for other in near if (other.name, other.version) == (name, version) and hash_ in other.build]
            if found:
                yield f"{name} {version} {found[-1].build}"
            else:
                mistakes.add(f"{package.name}: there is no {name} {version} to pin exactly", draft.line)

    return replace(
        package,
        depends=(*package.depends, *pins(draft.exact)),
        constrains=(*package.constrains, *pins(draft.exact_constrains)),
    )


def _check_together(packages: Iterable[KnownPackage], mistakes: _Mistakes) -> None:
    """No package twice, and nothing needed that is not there."""
    packages = list(packages)
    places: dict[str, set[str]] = {}
    seen: set[tuple[str, str]] = set()
    for package in packages:
        if (package.subdir, package.distribution) in seen:
            mistakes.add(f"{package.subdir}/{package.distribution} is there twice")
        seen.add((package.subdir, package.distribution))
        places.setdefault(package.name, set()).add(package.subdir)
    for package in packages:
        for spec in package.depends:
            name = spec.split(" ")[0]
            where = places.get(name, set())
            reachable = where if package.subdir == "noarch" else where & {package.subdir, "noarch"}
            if not reachable and not name.startswith("__"):
                mistakes.add(f"{package.subdir}/{package.distribution} needs '{spec}', which is not in the file")
