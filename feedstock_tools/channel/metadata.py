"""The metadata of a conda package: values that are written into packages and read from packages and repodata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from feedstock_tools.bounds.limits import most

#: Items of a list such as `depends`, many times those of any package.
_MOST_TEXTS = 10_000
#: The exceptions for invalid documents: wrong JSON, keys, types or numbers.
DAMAGED = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)


@dataclass(frozen=True, slots=True)
class RunExports:
    """What a package adds to the requirements of packages built with it (info/run_exports.json)."""

    weak: tuple[str, ...] = ()
    strong: tuple[str, ...] = ()
    noarch: tuple[str, ...] = ()
    weak_constrains: tuple[str, ...] = ()
    strong_constrains: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.to_json())

    def to_json(self) -> dict[str, list[str]]:
        """The document as conda-build writes it, without empty kinds."""
        kinds = ("weak", "strong", "noarch", "weak_constrains", "strong_constrains")
        return {kind: list(getattr(self, kind)) for kind in kinds if getattr(self, kind)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> RunExports:
        """Read the document; unknown kinds are left out."""
        return cls(
            weak=_texts(document.get("weak")),
            strong=_texts(document.get("strong")),
            noarch=_texts(document.get("noarch")),
            weak_constrains=_texts(document.get("weak_constrains")),
            strong_constrains=_texts(document.get("strong_constrains")),
        )


@dataclass(frozen=True, slots=True)
class PackageMetadata:
    """The metadata of one package file.

    `timestamp` counts milliseconds since 1970. `noarch` is None, "generic" or "python". `entry_points` are the programs
    that installing a noarch Python package makes. `extra` becomes the section of that name in info/about.json.
    """

    name: str
    version: str
    build: str
    build_number: int
    subdir: str
    depends: tuple[str, ...] = ()
    constrains: tuple[str, ...] = ()
    track_features: tuple[str, ...] = ()
    noarch: str | None = None
    license: str | None = None
    run_exports: RunExports = RunExports()
    timestamp: int = 0
    summary: str | None = None
    python_site_packages_path: str | None = None
    entry_points: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def file_name(self) -> str:
        """The name of the package's file: `cuda-version-11.2-hb11dac2_3.conda`."""
        return f"{self.name}-{self.version}-{self.build}.conda"

    def index_json(self) -> dict[str, Any]:
        """info/index.json, which is also the package's entry in repodata."""
        platform, _, arch = self.subdir.partition("-")
        document: dict[str, Any] = {
            "arch": {"64": "x86_64", "32": "x86"}.get(arch, arch) or None,
            "build": self.build,
            "build_number": self.build_number,
            "constrains": list(self.constrains),
            "depends": list(self.depends),
            "license": self.license,
            "name": self.name,
            "noarch": self.noarch,
            "platform": None if platform == "noarch" else platform,
            "python_site_packages_path": self.python_site_packages_path,
            "subdir": self.subdir,
            "timestamp": self.timestamp,
            "track_features": " ".join(self.track_features),
            "version": self.version,
        }
        optional = (
            "arch",
            "constrains",
            "license",
            "noarch",
            "platform",
            "python_site_packages_path",
            "track_features",
        )
        return {key: value for key, value in document.items() if value or key not in optional}

    def about_json(self) -> dict[str, Any]:
        document = {"extra": dict(self.extra), "license": self.license, "summary": self.summary}
        return {key: value for key, value in document.items() if value}

    @classmethod
    def from_json(
        cls, index: Mapping[str, Any], about: Mapping[str, Any], run_exports: Mapping[str, Any]
    ) -> PackageMetadata:
        """From the three documents in `info/`; raises one of `DAMAGED` if they are invalid."""
        return cls(
            name=_word(index["name"]),
            version=_word(str(index["version"])),
            build=_word(index["build"]),
            build_number=_build_number(index["build_number"]),
            subdir=_word(index.get("subdir") or "noarch"),
            depends=_texts(index.get("depends")),
            constrains=_texts(index.get("constrains")),
            track_features=_words(index.get("track_features")),
            noarch=_noarch(index.get("noarch")),
            license=index.get("license"),
            run_exports=RunExports.from_json(run_exports),
            timestamp=int(index.get("timestamp") or 0),
            summary=about.get("summary"),
            python_site_packages_path=index.get("python_site_packages_path"),
            extra=about.get("extra") or {},
        )


@dataclass(frozen=True, slots=True)
class PackageFile:
    """One file of a package: its path in the prefix, and its content as bytes, as a file to copy, or as a link.

    `prefix` is a folder in the text of the file that installation replaces by the prefix.
    """

    path: str
    content: bytes = b""
    source: Path | None = None
    link: str | None = None
    executable: bool = False
    prefix: str | None = None

    def read(self) -> bytes:
        return self.content if self.source is None else self.source.read_bytes()


@dataclass(frozen=True, slots=True)
class Record:
    """One package of a channel: its entry in repodata, and its place."""

    name: str
    version: str
    build: str
    build_number: int
    subdir: str
    depends: tuple[str, ...]
    constrains: tuple[str, ...]
    track_features: tuple[str, ...]
    noarch: str | None
    timestamp: int
    sha256: str
    size: int
    file_name: str
    channel: str
    url: str

    @property
    def distribution(self) -> str:
        return f"{self.name}-{self.version}-{self.build}"

    @classmethod
    def from_repodata(cls, file_name: str, entry: Mapping[str, Any], *, channel: str, subdir: str) -> Record:
        """Read one entry of `packages` or `packages.conda`; raises one of `DAMAGED` if it is invalid."""
        return cls(
            name=_word(entry["name"]),
            version=_word(str(entry["version"])),
            build=_word(entry["build"]),
            build_number=int(entry["build_number"]),
            subdir=_word(entry.get("subdir") or subdir),
            depends=_texts(entry.get("depends")),
            constrains=_texts(entry.get("constrains")),
            track_features=_words(entry.get("track_features")),
            noarch=_noarch(entry.get("noarch")),
            timestamp=int(entry.get("timestamp") or 0),
            sha256=_text(entry.get("sha256") or ""),
            size=int(entry.get("size") or 0),
            file_name=_word(file_name),
            channel=channel,
            url=f"{channel.rstrip('/')}/{subdir}/{file_name}",
        )

    def to_repodata(self) -> dict[str, Any]:
        """The entry of repodata that `from_repodata` reads."""
        names = ("name", "version", "build", "build_number", "subdir", "noarch", "timestamp", "size")
        document = {name: getattr(self, name) for name in names}
        if self.track_features:  # rattler reads an empty string as one feature, which ranks a build below others
            document["track_features"] = " ".join(self.track_features)
        document |= {"depends": list(self.depends), "constrains": list(self.constrains)}
        if self.sha256:
            document["sha256"] = self.sha256
        return {key: value for key, value in document.items() if value is not None}


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{str(value)[:80]} is not a string")
    if not value.isascii():
        value.encode()  # JSON can contain halves of characters, which cannot be printed
    return value


def _build_number(value: object) -> int:
    if type(value) is not int or not 0 <= value < 1 << 63:  # what an index can hold
        raise ValueError(f"{str(value)[:80]!r} is not a build number")
    return value


def _word(value: object) -> str:
    """A name, version or build, which must not contain terminal codes."""
    text = _text(value)
    if not text.isprintable():
        raise ValueError(f"{text[:80]!r} contains control characters")
    return text


def _texts(value: object) -> tuple[str, ...]:
    if not value:
        return ()
    if not isinstance(value, list | tuple):
        raise TypeError(f"{str(value)[:80]} is not a list")
    if len(value) > most(_MOST_TEXTS):
        raise ValueError(f"a list has more than {_MOST_TEXTS} items")
    return tuple(map(_text, value))


def _words(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(value.replace(",", " ").split())
    return tuple(str(word) for word in value) if isinstance(value, list | tuple) else ()


def _noarch(value: object) -> str | None:
    # Very old repodata has `noarch: true` for today's "generic".
    return "generic" if value is True else str(value) if value else None
