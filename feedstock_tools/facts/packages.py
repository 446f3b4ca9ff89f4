"""The packages of the stand-in channel, from real recipes, and the tools among them that have contents.

The data is `variants/packages.yaml`: a table of sources (a feedstock at a commit) and a list of families of packages,
each a template with a list of rows: a package for each row and each of its subdirs. `variants/tools.yaml` has the
wheels behind tools, and the packages of tools that are not in the former. docs/stand-in-channel.md describes the
formats; `facts.models` has them as models.
"""

from __future__ import annotations

import datetime
import json
import re
import string
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha1, sha256
from pathlib import Path
from typing import Any

from feedstock_tools.data import data_folder
from feedstock_tools.errors import InputError, Mistake
from feedstock_tools.platforms import KNOWN_SUBDIRS
from feedstock_tools.reading import read_text
from feedstock_tools.versions import minor_of
from feedstock_tools.yaml_reading.nodes import parse_texts


@dataclass(frozen=True, slots=True)
class PackageSource:
    """The recipe of a package: a file of a feedstock at a commit, and the day of that commit."""

    feedstock: str
    commit: str
    path: str
    date: datetime.date

    def __str__(self) -> str:
        return f"conda-forge/{self.feedstock}-feedstock@{self.commit}:{self.path}"


@dataclass(frozen=True, slots=True)
class OwnSource:
    """The origin of a package whose metadata follows no recipe: `the wheel of cmake`, `make on PATH`."""

    text: str
    date: datetime.date

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class KnownPackage:
    """The metadata of one package, from its recipe.

    `role` is set if the stand-in channel builds more than metadata: a compiler, its tools, or Python.
    `hash_known` is False if the seven digits in the build string are made up.
    """

    name: str
    version: str
    build: str
    build_number: int
    subdir: str
    source: PackageSource | OwnSource
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
        return f"{self.name}-{self.version}-{self.build}"

    @property
    def timestamp(self) -> int:
        """Midnight (UTC) of the day of its source, in milliseconds since 1970."""
        return int(datetime.datetime.combine(self.source.date, datetime.time(), datetime.UTC).timestamp()) * 1000

    @property
    def recipe(self) -> PackageSource:
        """Its recipe; every package but some tools has one."""
        assert isinstance(self.source, PackageSource)  # noqa: S101  (the model of packages.yaml holds it)
        return self.source


Location = tuple[str | int, ...]
#: The location of a mistake, and its message.
Finding = tuple[Location, str]
_Source = PackageSource | OwnSource

_SUBDIRS = (*KNOWN_SUBDIRS, "noarch")
_RUN_EXPORTS = ("weak", "strong", "noarch", "weak_constrains", "strong_constrains")
_LISTS = ("depends", "constrains", "track_features", "exact", "exact_constrains")
_KEYS = {
    *("name", "version", "source", "subdirs", "noarch", "license", "build", "number", "hash", "run_exports", "role"),
    *_LISTS,
}
_HASH_LENGTH = 7


class _UnreadableError(ValueError):
    """The mistake in one row."""


@dataclass(frozen=True, slots=True)
class _Draft:
    """A package whose exact pins (a name, then optionally version and hash) are not yet filled in."""

    package: KnownPackage
    exact: tuple[str, ...]
    exact_constrains: tuple[str, ...]
    location: Location


def expanded(content: Mapping[str, Any], *, check: bool) -> tuple[tuple[KnownPackage, ...], list[Finding]]:
    """The packages of a file, and its mistakes.

    Args:
        content: of a file that conforms to `facts.models.PackagesFile`, every scalar a string.
        check: also report duplicate packages and missing dependencies.
    """
    findings: list[Finding] = []
    sources = {name: _source(entry) for name, entry in content["sources"].items()}
    drafts = [
        draft
        for at, family in enumerate(content["packages"])
        for draft in _drafts(family, ("packages", at, "rows"), sources, findings)
    ]
    siblings: dict[_Source, list[KnownPackage]] = {}
    for draft in drafts:
        siblings.setdefault(draft.package.source, []).append(draft.package)
    packages = tuple(_pinned(draft, siblings[draft.package.source], findings) for draft in drafts)
    if check:
        findings += _disagreements(packages, [draft.location for draft in drafts])
    return packages, findings


def _source(entry: Mapping[str, str]) -> _Source:
    date = datetime.date.fromisoformat(entry["date"])
    if "feedstock" not in entry:
        return OwnSource(entry["own"], date)
    return PackageSource(entry["feedstock"], entry["commit"], entry.get("path", "recipe/meta.yaml"), date)


def _drafts(
    family: Mapping[str, Any], rows: Location, sources: Mapping[str, _Source], findings: list[Finding]
) -> Iterator[_Draft]:
    common = {key: value for key, value in family.items() if key != "rows"}
    for at, row in enumerate(family["rows"]):
        merged = {**common, **row}
        location = (*rows, at)
        used = set(re.findall(r"\{(\w+)\}", json.dumps(merged)))
        for key in sorted(merged.keys() - _KEYS - used):
            findings.append((location, f"'{key}' is neither a key of a package nor used by one of its values"))
        subdirs = merged.get("subdirs", ["noarch"] if "noarch" in merged else [])
        if not subdirs:
            findings.append((location, "a package must have a list of subdirs, or be noarch"))
        for subdir in subdirs:
            try:
                yield _draft(merged, subdir, sources, location)
            except _UnreadableError as error:
                findings.append((location, f"{merged.get('name', 'a package')}: {error}"))


def _draft(row: Mapping[str, Any], subdir: str, sources: Mapping[str, _Source], location: Location) -> _Draft:
    if subdir not in _SUBDIRS:
        raise _UnreadableError(f"'{subdir}' is not a subdir")
    for key in ("name", "version", "source"):
        if key not in row:
            raise _UnreadableError(f"'{key}' is missing")
    if row["source"] not in sources:
        raise _UnreadableError(f"there is no source '{row['source']}'")
    words = _words(row, subdir)
    exports = row.get("run_exports") or {}
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
        run_exports={kind: specs for kind in _RUN_EXPORTS if (specs := _filled(exports.get(kind), subdir, words))},
        role=row.get("role"),
    )
    built = _with_build(package, row, words, lists["exact"])
    return _Draft(built, lists["exact"], lists["exact_constrains"], location)


def _with_build(
    package: KnownPackage, row: Mapping[str, Any], words: Mapping[str, str], exact: Iterable[str]
) -> KnownPackage:
    """Fill in the build string; a missing hash is computed from the package's metadata."""
    template = row.get("build", "h{hash}_{number}")
    recorded = row.get("hash")
    build_hash = recorded.get(words["platform"]) if isinstance(recorded, Mapping) else recorded
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
    digest = sha1(json.dumps(content).encode(), usedforsecurity=False).hexdigest()[:_HASH_LENGTH]
    build = _fill(template, {**words, "hash": build_hash or digest})
    return replace(package, build=build, hash_known=build_hash is not None or "{hash}" not in template)


def _words(row: Mapping[str, Any], subdir: str) -> dict[str, str]:
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


def _filled(value: Any, subdir: str, words: Mapping[str, str]) -> tuple[str, ...]:
    """A list of templates for one subdir: a list for all, or a mapping of `all`, a system or a subdir to lists."""
    if value is None:
        return ()
    if isinstance(value, list):
        return tuple(_fill(item, words) for item in value)
    groups = {"all", subdir, subdir.partition("-")[0]}
    return tuple(_fill(item, words) for key, items in value.items() if key in groups for item in items)


def _fill(template: str, words: Mapping[str, str]) -> str:
    try:
        names = [name for _, name, _, _ in string.Formatter().parse(template) if name is not None]
    except ValueError as error:
        raise _UnreadableError(f"'{template}': {error}") from error
    for name in names:
        if name not in words:
            raise _UnreadableError(f"'{template}' uses '{name}', which the row does not have")
    return re.sub(r"\{(\w+)\}", lambda match: words[match[1]], template)


def _pinned(draft: _Draft, siblings: Iterable[KnownPackage], findings: list[Finding]) -> KnownPackage:
    """The package with a dependency, or a constraint, on exactly one build for each of its exact pins."""
    package = draft.package
    if not draft.exact and not draft.exact_constrains:
        return package
    near = [sibling for sibling in siblings if sibling.subdir in (package.subdir, "noarch")]

    def pins(wanted: Iterable[str]) -> Iterator[str]:
        for exact in wanted:
            name, version, hash_ = (*exact.split(" "), "", "")[:3]
            version = version or package.version
            builds = [
                other for other in near if (other.name, other.version) == (name, version) and hash_ in other.build
            ]
            if builds:
                yield f"{name} {version} {builds[-1].build}"
            else:
                findings.append((draft.location, f"{package.name}: there is no {name} {version} to pin exactly"))

    return replace(
        package,
        depends=(*package.depends, *pins(draft.exact)),
        constrains=(*package.constrains, *pins(draft.exact_constrains)),
    )


def _disagreements(packages: Sequence[KnownPackage], locations: Sequence[Location]) -> Iterator[Finding]:
    places: dict[str, set[str]] = {}
    seen: set[tuple[str, str]] = set()
    for package, location in zip(packages, locations, strict=True):
        if (package.subdir, package.distribution) in seen:
            yield location, f"{package.subdir}/{package.distribution} is listed twice"
        seen.add((package.subdir, package.distribution))
        places.setdefault(package.name, set()).add(package.subdir)
    for package, location in zip(packages, locations, strict=True):
        for spec in package.depends:
            name = spec.split(" ")[0]
            where = places.get(name, set())
            reachable = where if package.subdir == "noarch" else where & {package.subdir, "noarch"}
            if not reachable and not name.startswith("__"):
                yield location, f"{package.subdir}/{package.distribution} needs '{spec}', which is not in the file"


def packages_file() -> Path:
    return data_folder("variants") / "packages.yaml"


@cache
def read_packages() -> tuple[KnownPackage, ...]:
    """All packages of the file that ships, for all subdirs, in the order of the file."""
    return _read(packages_file())[1]


def known_pythons() -> tuple[str, ...]:
    """The minor versions of Python with packages in the facts, oldest first."""
    versions = (package.version for package in read_packages() if package.name == "python")
    return tuple(dict.fromkeys(minor_of(version) for version in versions))


def checked_packages(path: Path) -> tuple[KnownPackage, ...]:
    """The packages of any file of that form.

    Raises:
        InputError: the file cannot be read or has mistakes; all of them.
    """
    from feedstock_tools.facts.models import PackagesFile
    from feedstock_tools.yaml_reading.checking import model_of
    from feedstock_tools.yaml_reading.nodes import parse_document

    document = parse_document(read_text(path, within=None), path)
    model_of(document, document.content, PackagesFile, "the file")
    packages, findings = expanded(document.content, check=True)
    if findings:
        places = ((document.place(location), message) for location, message in findings)
        mistakes = [Mistake(message, path, place.line, place.column) for place, message in places]
        raise InputError.of(sorted(mistakes, key=lambda mistake: mistake.line or 0))
    return packages


def _read(path: Path) -> tuple[Any, tuple[KnownPackage, ...]]:
    """The content of a file that ships, and its packages."""
    content = parse_texts(read_text(path, within=None), path)
    packages, findings = expanded(content, check=False)
    if findings:
        raise InputError.of([Mistake(message, path) for _, message in findings])
    return content, packages


#: The tool that no wheel has: the program of the machine.
MAKE = "make"
#: Increased when the same wheel yields another package, so that builds with the older one do not count as current.
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel that becomes the contents of a package.

    Attributes:
        package, version: of the conda package; `project` and `release` are those of the package index.
        subdir: the platform that it is for; `noarch` for all.
        python: the Python that it is for (`3.12`); None for all.
        file: its file name; `size` in bytes.
        take: files and folders in it, each with its place in the prefix; empty for a Python package.
    """

    package: str
    version: str
    project: str
    subdir: str
    python: str | None
    file: str
    size: int
    sha256: str
    take: tuple[tuple[str, str], ...] = ()

    @property
    def release(self) -> str:
        """The version in the package index: `3.0.7.post0`."""
        return self.file.split("-")[1]


@dataclass(frozen=True, slots=True)
class Tools:
    """All tools: the packages that are only here, the wheels, and the tools that each tool runs with."""

    packages: tuple[KnownPackage, ...]
    wheels: tuple[Wheel, ...]
    needs: Mapping[str, tuple[str, ...]]

    @property
    def names(self) -> frozenset[str]:
        return frozenset({MAKE, *self.needs})

    def wheels_of(self, name: str) -> tuple[Wheel, ...]:
        """The wheels of a tool, for all platforms and Pythons."""
        return tuple(wheel for wheel in self.wheels if wheel.package == name)

    def among(self, names: Collection[str]) -> dict[str, str]:
        """The tools among packages, and the tools that those run with: name → digest of all that it is made of."""
        wanted: dict[str, str] = {}
        pending = sorted(self.names.intersection(names))
        while pending:
            name = pending.pop()
            if name not in wanted:
                wanted[name] = self._digest(name)
                pending += self.needs.get(name, ())
        return dict(sorted(wanted.items()))

    def _digest(self, name: str) -> str:
        packages = [
            repr((package.distribution, package.depends, package.run_exports))
            for package in self.packages
            if package.name == name
        ]
        wheels = [repr((wheel.sha256, wheel.take)) for wheel in self.wheels_of(name)]
        return sha256("\n".join([str(_FORMAT), *packages, *wheels]).encode()).hexdigest()


def tools_file() -> Path:
    return data_folder("variants") / "tools.yaml"


@cache
def read_tools() -> Tools:
    content, packages = _read(tools_file())
    wheels = tuple(_wheel(entry, file) for entry in content["wheels"] for file in entry["files"])
    return Tools(packages, wheels, {entry["name"]: tuple(entry.get("needs", ())) for entry in content["wheels"]})


def _wheel(entry: Mapping[str, Any], file: Mapping[str, str]) -> Wheel:
    return Wheel(
        package=entry["name"],
        version=entry["version"],
        project=entry.get("project", entry["name"]),
        subdir=file["subdir"],
        python=file.get("python"),
        file=file["file"],
        size=int(file["size"]),
        sha256=file["sha256"],
        take=tuple(entry.get("take", {}).items()),
    )
