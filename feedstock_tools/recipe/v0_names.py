"""Build strings and hashes as conda-build makes them.

(conda_build/metadata.py: build_id, get_hash_contents, build_string_from_metadata.)
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from functools import lru_cache

from feedstock_tools.recipe.specs import as_list, spec_name
from feedstock_tools.recipe.v0_meta import Meta
from feedstock_tools.recipe.v0_text import package_and_build_in, requirements_section
from feedstock_tools.variants.rules import CondaBuildRules

__all__ = ["build_string", "hash_contents", "pins_numpy"]

_HASH_LENGTH = 7
_HASH_PLACEHOLDER = re.compile(rf"h[0-9a-f]{{{_HASH_LENGTH}}}")
_USES_HASH = re.compile(r"h\{\{\s*PKG_HASH\s*\}\}")
_NUMPY_X_X = re.compile(r"(numpy\s*x\.x)|pin_compatible\([\'\"]numpy.*max_pin=[\'\"]x\.x[\'\"]")
_NUMPY_PIN = re.compile(r"pin_\w+\([\'\"]numpy[\'\"]")
_NUMPY_PIN_PLACES = re.compile(r"pin_\w+\([\'\"]numpy[\'\"].*((?<=x_pin=[\'\"])[x\.]*(?=[\'\"]))")
_SORTED = json.JSONEncoder(sort_keys=True).encode
_ALWAYS_IN_STRING = ("python", "r_base", "perl", "lua")
#: Prefix in the build string, packages that bring it, and how many places of the version it takes.
_PREFIXES: tuple[tuple[str, tuple[str, ...], int], ...] = (
    ("np", ("numpy",), 2),
    ("py", ("python",), 2),
    ("pl", ("perl",), 3),
    ("lua", ("lua",), 2),
    ("r", ("r", "r-base"), 2),
    ("mro", ("mro-base",), 3),
    ("mro", ("mro-base_impl",), 3),
)


def hash_contents(
    meta: Meta, used: Collection[str], ignore_version: Collection[str], rules: CondaBuildRules
) -> Mapping[str, str]:
    """The variant values that a package's hash is made of; empty where it gets none."""
    text = requirements_section(meta.own_text)
    pattern = _left_out(tuple(ignore_version), "numpy" in used and _pins_numpy_places(text))
    keys = [key for key in used if key in meta.variant and (not pattern.match(key) or " " in meta.variant[key])]
    contents = {} if keys == ["target_platform"] else {key: meta.variant[key] for key in keys}
    if rules.hash_virtual_packages:
        for spec in meta.requirements.get("run", []):
            if spec.startswith("__"):
                contents[spec.split(" ")[0]] = spec
    return contents


@lru_cache(maxsize=64)
def _left_out(ignored: tuple[str, ...], numpy: bool) -> re.Pattern[str]:
    """The keys whose versions are not part of a hash."""
    names = (*_ALWAYS_IN_STRING, *ignored, *(("numpy",) if numpy else ()))
    return re.compile("|".join(rf"{re.escape(name)}[\s$]?.*" for name in names))


@lru_cache(maxsize=1024)
def _pins_numpy_places(text: str) -> bool:
    """Whether requirements pin two places of NumPy's version."""
    places = _NUMPY_PIN_PLACES.search(text) if _NUMPY_PIN.search(text) else None
    return bool(_NUMPY_X_X.search(text)) or (places is not None and places.group(1).count("x") == 2)


def pins_numpy(meta: Meta) -> bool:
    """Whether the requirements pin NumPy the old way, `numpy x.x`."""
    return "numpy" in meta.variant and bool(_NUMPY_X_X.search(requirements_section(meta.own_text)))


def _hash(contents: Mapping[str, str]) -> str:
    if not contents:
        return ""
    digest = hashlib.sha1(_SORTED(contents).encode(), usedforsecurity=False).hexdigest()
    return f"h{digest}"[: _HASH_LENGTH + 1]


def _default_string(meta: Meta) -> str:
    manual = meta.value("build", "string")
    if manual:
        return str(manual)
    requirements = meta.requirements
    base = requirements.get("host" if "host" in requirements else "build", [])
    base_names = {spec_name(spec) for spec in base}
    shared = [name for name in map(spec_name, requirements.get("run", [])) if name in base_names]
    parts: list[str] = []
    for prefix, names, places in _PREFIXES if shared else ():
        for name in shared:
            if name in names:
                if name == "numpy" and not _NUMPY_X_X.search(requirements_section(meta.own_text)):
                    continue
                if meta.noarch == name:
                    parts.append(prefix)
                    continue
                entry = prefix + "".join(_version_of(meta, base, names).split(".")[:places])
                if entry not in parts:
                    parts.append(entry)
    if parts:
        parts.append("_")
    features = [str(feature) for feature in as_list(meta.value("build", "features"))]
    if features:
        parts.extend(("_".join(features), "_"))
    return "".join((*parts, str(meta.build_number)))


def _version_of(meta: Meta, base: list[str], names: tuple[str, ...]) -> str:
    for name in (*names, *(name.replace("-", "_") for name in names if "-" in name)):
        pinned = next((spec.split()[1] for spec in base if len(spec.split()) > 1 and spec.split()[0] == name), "")
        version = pinned or meta.variant.get(name.replace("-", "_"), "")
        if version:
            return version
    return ""


def build_string(
    meta: Meta, used: Collection[str], ignore_version: Collection[str], rules: CondaBuildRules, *, final: bool
) -> str:
    """The build string of a package; with its hash if `final`, as for packages that are built."""
    manual = meta.value("build", "string")
    text = package_and_build_in(meta.own_text)
    if manual and not ("string:" in text and _USES_HASH.search(text)):
        return str(manual)
    made = _default_string(meta)
    if not final:
        return made
    hash_ = _hash(hash_contents(meta, used, ignore_version, rules))
    if _HASH_PLACEHOLDER.search(made):
        return _HASH_PLACEHOLDER.sub(hash_, made)
    start, *rest = made.rsplit("_", 1)
    if start.lstrip("-").isdigit():
        start = f"{hash_}_{start}" if hash_ else start
    else:
        start += hash_
    return "_".join((start, *rest))
