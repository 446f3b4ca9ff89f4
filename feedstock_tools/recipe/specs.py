"""Requirements as conda-build writes them: names, versions, and the star that it adds to bare versions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from feedstock_tools.variants.model import Variant

_NEEDS_STAR = re.compile(r"([\w\d\.\-\_]+)\s+((?<![><=])[\w\d\.\-\_]+?(?!\*))(\s+[\w\d\.\_]+)?$")
_BARE_NAME = re.compile(r"^([\w.\-]+)\s*$")
_X_X = re.compile(r"([0-9a-zA-Z.\-_]+)\s+x\.x")
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
