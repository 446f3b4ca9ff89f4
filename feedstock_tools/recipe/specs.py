"""Requirements as conda-build writes them: names, versions, and the star that it adds to bare versions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from feedstock_tools.variants.model import Variant

__all__ = ["as_list", "ensure_valid_spec", "insert_variant_versions", "requirement_lists", "spec_name"]

_NEEDS_STAR = re.compile(r"([\w\d\.\-\_]+)\s+((?<![><=])[\w\d\.\-\_]+?(?!\*))(\s+[\w\d\.\_]+)?$")
_BARE_NAME = re.compile(r"^([\w.\-]+)\s*$")
_X_X = re.compile(r"([0-9a-zA-Z.\-_]+)\s+x\.x")
_NAME_END = re.compile(r"[\s=<>!~\[;]")


@lru_cache(maxsize=8192)
def ensure_valid_spec(spec: str) -> str:
    """`gcc_linux-64 12` is to mean 12 and what refines it: `gcc_linux-64 12.*` (conda_build/utils.py).

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
    """A list as it is, nothing as an empty one, anything else as a list of it."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def requirement_lists(section: Any) -> dict[str, list[str]]:
    """The requirements of an output by environment; a plain list is meant for host and run."""
    if isinstance(section, Mapping):
        return {str(env): [str(spec) for spec in as_list(specs) if spec is not None] for env, specs in section.items()}
    plain = [str(spec) for spec in as_list(section) if spec is not None]
    return {"host": plain, "run": list(plain)} if plain else {}


def insert_variant_versions(requirements: dict[str, list[str]], variant: Variant) -> None:
    """Give bare names in build and host the versions of the variant, in place (conda_build/utils.py)."""
    for env in ("build", "host", "run"):
        pinned = {*requirements.get("build", ()), *requirements.get("host", ())}
        specs = requirements.get(env, [])
        for place, spec in enumerate(specs):
            name = _bare_name(spec)
            if name and (env != "run" or name in pinned):
                value = variant.get(name.replace("-", "_"))
                if value is not None:
                    specs[place] = ensure_valid_spec(f"{name} {value}")
            old = _X_X.match(specs[place]) if "x.x" in specs[place] else None
            if old and variant.get(old.group(1)):
                specs[place] = ensure_valid_spec(f"{old.group(1)} {variant[old.group(1)]}")


@lru_cache(maxsize=8192)
def _bare_name(spec: str) -> str:
    """The name that is all of a requirement; else nothing."""
    match = _BARE_NAME.match(spec)
    return match.group(1) if match else ""
