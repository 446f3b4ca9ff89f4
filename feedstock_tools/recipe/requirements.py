"""Requirements of packages: names, versions, the star that conda-build adds to bare versions; and pins.

Pins on packages are completed when environments are solved: `pin_compatible` and `pin_subpackage`
(conda_build/utils.py: apply_pin_expressions; rattler_build_types/src/pin.rs).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from feedstock_tools.variants.model import Variant

#: The sections of requirements: the name in a `meta.yaml` → the name in a `recipe.yaml`.
SECTIONS: Mapping[str, str] = {"build": "build", "host": "host", "run": "run", "run_constrained": "run_constraints"}
_NEEDS_STAR = re.compile(r"([\w\d\.\-\_]+)\s+((?<![><=])[\w\d\.\-\_]+?(?!\*))(\s+[\w\d\.\_]+)?$")
_BARE_NAME = re.compile(r"^([\w.\-]+)\s*$")
_X_X = re.compile(r"([0-9a-zA-Z.\-_]+)\s+x\.x")
_EXPRESSION = re.compile(r"x(\.x)*$")
_PART = re.compile(r"(\d+|[a-z]+|[^\da-z]+)")
_NAME_END = re.compile(r"[\s=<>!~\[;]")


@lru_cache(maxsize=8192)
def ensure_valid_spec(spec: str) -> str:
    """Make `gcc_linux-64 12` match 12 and versions that refine it: `gcc_linux-64 12.*` (conda_build/utils.py).

    >>> ensure_valid_spec("cuda-version 11.2"), ensure_valid_spec("python 3.9.* *_cpython")
    ('cuda-version 11.2.*', 'python 3.9.* *_cpython')
    """
    match = _NEEDS_STAR.match(spec)
    if match is None or match.group(3):
        return spec
    if match.group(1) in ("python", "numpy") and match.group(2) == "x.x":
        return _NEEDS_STAR.sub(r"\1 \2", spec)
    return spec if "*" in spec else _NEEDS_STAR.sub(r"\1 \2.*", spec)


#: Operators in a row or in a version, nothing beside a comma or after an operator, one where a build string stands;
#: no name, and characters that neither a name nor a version has (a version that begins with ^ is an expression).
_BROKEN = re.compile(
    r"[<>]{2}|[<>=][\w.*]+[<>]|[,|]\s*[,|]|\s.*[<>=!,|]\s*$|^\S+\s+[<>=!]*\s*[\w.*]+\s+[<>=!]"
    r"|^\s*[<>=!.-]|^[^\s<>=!~^]*[{}&%@;?$`\"'\\]|^\S+\s+[<>=!~]*\s*[^\s^]*[{}&%@;?$`\"'\\/]"
    r"|^\S+\s+[^\s^]*\.(?:[.,|\s]|$)|(?<!\d)[!~](?!=)"
)


@lru_cache(maxsize=8192)
def is_broken(spec: str) -> bool:
    """Whether conda reads a text as no requirement, as far as that is plain; py-rattler takes `foo >1 <2` for one.

    >>> is_broken("foo >1 <2"), is_broken("foo >>> 1"), is_broken("foo >=1, <2"), is_broken("foo >= 1 h_0")
    (True, True, False, False)
    """
    return "[" not in spec and "://" not in spec and _BROKEN.search(spec.partition("#")[0]) is not None


@lru_cache(maxsize=8192)
def spec_name(spec: str) -> str:
    """The package that a requirement names.

    >>> spec_name("conda-forge::numpy >=1.20")
    'numpy'
    """
    return _NAME_END.split(spec.strip().rpartition("::")[2], maxsplit=1)[0].lower()


def as_list(value: Any) -> list[Any]:
    """Return a list unchanged, None as an empty list, and anything else as a list with one entry."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def requirement_lists(section: Any) -> dict[str, list[str]]:
    """The requirements of an output by environment; a plain list applies to host and run."""
    if isinstance(section, Mapping):
        return {str(env): [str(spec) for spec in as_list(specs) if spec is not None] for env, specs in section.items()}
    plain = [str(spec) for spec in as_list(section) if spec is not None]
    return {"host": plain, "run": list(plain)} if plain else {}


class VariantRequirements(Mapping[str, tuple[str, ...]]):
    """Requirements by environment in a variant; computed on access.

    >>> dict(VariantRequirements({"host": ["zlib", "blas"], "run": ["zlib"]}, {"zlib": "1.2"}))
    {'host': ('zlib 1.2.*', 'blas'), 'run': ('zlib',)}
    """

    __slots__ = ("_lists", "_variant")

    def __init__(self, lists: Mapping[str, list[str]], variant: Variant) -> None:
        self._lists = lists
        self._variant = variant

    def __getitem__(self, env: str) -> tuple[str, ...]:
        return tuple(with_version(spec, env, self._variant) for spec in self._lists[env])

    def __iter__(self) -> Iterator[str]:
        return iter(self._lists)

    def __len__(self) -> int:
        return len(self._lists)

    def __repr__(self) -> str:
        return repr(dict(self))


def with_version(spec: str, env: str, variant: Variant) -> str:
    """Add the variant's version to a bare name in build or host, and replace `x.x` anywhere (conda_build/utils.py)."""
    name = _bare_name(spec) if env in ("build", "host") else ""
    value = variant.get(name.replace("-", "_")) if name else None
    if value is not None:
        spec = ensure_valid_spec(f"{name} {value}")
    old = _X_X.match(spec) if "x.x" in spec and env in ("build", "host", "run") else None
    if old and variant.get(old.group(1)):
        return ensure_valid_spec(f"{old.group(1)} {variant[old.group(1)]}")
    return spec


@lru_cache(maxsize=8192)
def _bare_name(spec: str) -> str:
    """The name of a requirement without a version; else None."""
    match = _BARE_NAME.match(spec)
    return match.group(1) if match else ""


@dataclass(frozen=True, slots=True)
class Pin:
    """A requirement that follows the version of a package.

    `compatible` is a pin on the package as it is in the host environment, otherwise on an output of the same recipe.
    `lower` and `upper` are expressions (`x.x`), versions, or None for no bound; `exact` requires that very build.
    """

    name: str
    compatible: bool
    lower: str | None = "x.x.x.x.x.x"
    upper: str | None = "x"
    exact: bool = False

    def applied(self, version: str, build: str) -> str:
        """The requirement for a package of this version and build.

        >>> Pin("numpy", True, upper="x.x").applied("1.21.6", "py39_0")
        'numpy >=1.21.6,<1.22.0a0'
        >>> Pin("libfoo", False, exact=True).applied("1.0", "h1234567_0")
        'libfoo ==1.0 h1234567_0'
        """
        if self.exact:
            return f"{self.name} =={version} {build}"
        bounds = []
        if self.lower:
            bounds.append(f">={_first(version, self.lower)}")
        if self.upper:
            bounds.append(f"<{_next(version, self.upper)}")
        return f"{self.name} {','.join(bounds)}" if bounds else self.name


#: A requirement as text, or one that is completed after solving.
Requirement = str | Pin


def requirement_of_text(text: str) -> Requirement:
    """Parse a requirement of a `meta.yaml` rendered with `keep_pins`.

    >>> requirement_of_text("numpy @compatible;max_pin=x.x")
    Pin(name='numpy', compatible=True, lower='x.x.x.x.x.x', upper='x.x', exact=False)
    """
    name, mark, rest = text.partition(" @")
    if not mark:
        return text.strip()
    kind, *parts = rest.split(" ")[0].split(";")
    bounds = dict(part.split("=", 1) for part in parts if "=" in part)
    return Pin(
        name=name.strip().lower(),
        compatible=kind == "compatible",
        lower=_bound(bounds, "lower_bound") or _bound(bounds, "min_pin", "x.x.x.x.x.x"),
        upper=_bound(bounds, "upper_bound") or _bound(bounds, "max_pin", "x"),
        exact=bounds.get("exact") == "True",
    )


def pin_of_mapping(item: Mapping[str, Any]) -> Pin:
    """A pin as rattler-build writes it in a rendered recipe: `{pin_subpackage: {name: …, exact: …}}`."""
    kind, pin = next(iter(item.items()))
    return Pin(
        name=str(pin["name"]),
        compatible=kind == "pin_compatible",
        lower=pin.get("lower_bound"),
        upper=pin.get("upper_bound"),
        exact=bool(pin.get("exact")),
    )


def _bound(bounds: Mapping[str, str], name: str, default: str | None = None) -> str | None:
    value = bounds.get(name, default)
    return None if value in ("None", "") else value


def _first(version: str, bound: str) -> str:
    """The first parts of a version, as many as the expression has; a bound that is a version is returned unchanged."""
    if not _EXPRESSION.match(bound):
        return bound
    return ".".join(version.split(".")[: bound.count("x")])


def _next(version: str, bound: str) -> str:
    """The first version after all those that agree in as many parts as the expression has."""
    if not _EXPRESSION.match(bound):
        return bound
    parts = version.split("+")[0].split(".")[: bound.count("x")]
    pieces = _PART.findall(parts[-1])
    numbers = [place for place, piece in enumerate(pieces) if piece.isdigit()]
    if not numbers:
        return ".".join((*parts[:-1], f"{parts[-1]}a"))
    grown = "".join(pieces[: numbers[0]]) + str(int(pieces[numbers[0]]) + 1)
    return ".".join((*parts[:-1], grown, "0a0"))
