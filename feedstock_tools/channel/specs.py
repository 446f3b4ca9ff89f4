"""Versions and match specifications as conda's solver reads them, as plain values and answers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from feedstock_tools.errors import InputError

if TYPE_CHECKING:
    from rattler import MatchSpec, Version


@dataclass(frozen=True, slots=True)
class Spec:
    """A match specification; None where it restricts nothing.

    Attributes:
        name: the package's name, normalized.
        build: a pattern of build strings.
        build_number: as written in the specification, with its operator.
    """

    name: str
    version: str | None
    build: str | None
    build_number: str | None


def match_spec(text: str) -> MatchSpec:
    """Rattler's value of a match specification.

    Raises:
        InputError: `text` is not one.
    """
    from rattler import MatchSpec
    from rattler.exceptions import InvalidMatchSpecError

    try:
        return MatchSpec(text)
    except InvalidMatchSpecError as error:
        raise InputError(f"'{text}' is not a match specification: {error}") from error


def name_of(spec: MatchSpec) -> str:
    return str(getattr(spec.name, "normalized", spec.name))


@lru_cache(maxsize=65536)
def read_spec(text: str) -> Spec:
    """Read `cudnn >=8`, `tensorflow=2.6=cuda112*` or any other match specification."""
    read = match_spec(text)
    return Spec(
        name=name_of(read),
        version=None if read.version is None else str(read.version),
        build=None if read.build is None else str(read.build),
        build_number=None if read.build_number is None else str(read.build_number),
    )


@lru_cache(maxsize=65536)
def admits(spec: str, version: str) -> bool:
    """Whether conda's version specification `spec` (`11.*`, `>=11.2,<12`, `*`) matches a version.

    Raises:
        InputError: `spec` or `version` is invalid.
    """
    from rattler import VersionSpec
    from rattler.exceptions import InvalidVersionSpecError

    try:
        return bool(VersionSpec(spec).matches(_version(version)))
    except InvalidVersionSpecError as error:
        raise InputError(f"'{spec}' is not a version specification: {error}") from error


@lru_cache(maxsize=65536)
def _version(text: str) -> Version:
    from rattler import Version
    from rattler.exceptions import InvalidVersionError

    try:
        return Version(text)
    except InvalidVersionError as error:
        raise InputError(f"'{text}' is not a version: {error}") from error
