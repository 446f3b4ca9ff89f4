"""Build strings and hashes as conda-build makes them.

(conda_build/metadata.py: build_id, get_hash_contents, build_string_from_metadata.)
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

from feedstock_tools.digests import HASH_LENGTH, package_hash
from feedstock_tools.recipe.requirements import as_list, spec_name, with_version
from feedstock_tools.recipe.v0.meta import Meta
from feedstock_tools.recipe.v0.text import package_and_build_in, requirements_section
from feedstock_tools.variants.model import Variant, values_of
from feedstock_tools.variants.rules import CondaBuildRules

_HASH_PLACEHOLDER = re.compile(rf"h[0-9a-f]{{{HASH_LENGTH}}}")
_USES_HASH = re.compile(r"h\{\{\s*PKG_HASH\s*\}\}")
_NUMPY_X_X = re.compile(r"(numpy\s*x\.x)|pin_compatible\([\'\"]numpy.*max_pin=[\'\"]x\.x[\'\"]")
_NUMPY_PIN = re.compile(r"pin_\w+\([\'\"]numpy[\'\"]")
_NUMPY_PIN_PLACES = re.compile(r"pin_\w+\([\'\"]numpy[\'\"].*((?<=x_pin=[\'\"])[x\.]*(?=[\'\"]))")
_ALWAYS_IN_STRING = ("python", "r_base", "perl", "lua")
#: Prefix in the build string, the packages that add it, and how many components of the version it contains.
_PREFIXES: tuple[tuple[str, tuple[str, ...], int], ...] = (
    ("np", ("numpy",), 2),
    ("py", ("python",), 2),
    ("pl", ("perl",), 3),
    ("lua", ("lua",), 2),
    ("r", ("r", "r-base"), 2),
    ("mro", ("mro-base",), 3),
    ("mro", ("mro-base_impl",), 3),
)


#: The keys that the prefixes of build strings follow.
_PREFIX_KEYS = frozenset(key for _, names, _ in _PREFIXES for name in names for key in (name, name.replace("-", "_")))

#: A hash, and its contents.
Hash = tuple[str, Mapping[str, str]]
#: Hashes by the values that they contain, for each combination of keys, omitted keys, and further contents.
Hashes = dict[tuple[object, ...], dict[tuple[str, ...], Hash]]


class BuildStrings:
    """The build strings of a package, for all variants for which it renders to the same text.

    Results are computed once for equal values; `hashes` keeps them for packages that use the same keys.
    """

    def __init__(
        self, meta: Meta, used: Collection[str], ignore_version: Collection[str], rules: CondaBuildRules, hashes: Hashes
    ) -> None:
        self._meta = meta
        self._whole = _whole_string(meta)
        text = requirements_section(meta.own_text)
        pattern = _left_out(tuple(ignore_version), "numpy" in used and _pins_numpy_places(text))
        self._keys = tuple(sorted(key for key in used if key in meta.variant))
        self._left_out = frozenset(key for key in self._keys if pattern.match(key))
        run = meta.requirements.get("run", []) if rules.hash_virtual_packages else []
        self._virtual = {spec.split(" ")[0]: spec for spec in run if spec.startswith("__")}
        self._hashes = hashes.setdefault((self._keys, self._left_out, *self._virtual.items()), {})
        self._values = values_of(self._keys)
        self._prefix_values = values_of([key for key in _PREFIX_KEYS if key in meta.variant])
        self._plain: dict[tuple[str, ...], str] = {}

    def of(self, variant: Variant) -> tuple[str, Mapping[str, str]]:
        """The build string in a variant, with its hash, as in built packages; and the contents of the hash."""
        if self._whole is not None:
            return self._whole, {}
        values = self._prefix_values(variant)
        plain = self._plain.get(values)
        if plain is None:
            plain = self._plain[values] = _default_string(self._meta, variant)
        values = self._values(variant)
        hashed = self._hashes.get(values)
        if hashed is None:
            contents = self._contents(values)
            hashed = self._hashes[values] = (package_hash(contents) if contents else "", contents)
        return _with_hash(plain, hashed[0]), hashed[1]

    def _contents(self, values: Sequence[str]) -> Mapping[str, str]:
        """The contents of a hash; empty if there is none."""
        used = zip(self._keys, values, strict=True)
        contents = {key: value for key, value in used if key not in self._left_out or " " in value}
        return {**(contents if list(contents) != ["target_platform"] else {}), **self._virtual}


def _with_hash(plain: str, hash_: str) -> str:
    """A build string with its hash: in the place that it has for one, else before the build number."""
    if _HASH_PLACEHOLDER.search(plain):
        return _HASH_PLACEHOLDER.sub(hash_, plain)
    start, *rest = plain.rsplit("_", 1)
    if start.lstrip("-").isdigit():
        start = f"{hash_}_{start}" if hash_ else start
    else:
        start += hash_
    return "_".join((start, *rest))


@lru_cache(maxsize=64)
def _left_out(ignored: tuple[str, ...], numpy: bool) -> re.Pattern[str]:
    """The keys whose versions are not part of a hash."""
    names = (*_ALWAYS_IN_STRING, *ignored, *(("numpy",) if numpy else ()))
    return re.compile("|".join(rf"{re.escape(name)}[\s$]?.*" for name in names))


@lru_cache(maxsize=1024)
def _pins_numpy_places(text: str) -> bool:
    """Whether requirements pin two components of NumPy's version."""
    places = _NUMPY_PIN_PLACES.search(text) if _NUMPY_PIN.search(text) else None
    return bool(_NUMPY_X_X.search(text)) or (places is not None and places.group(1).count("x") == 2)


def pins_numpy(meta: Meta) -> bool:
    """Whether the requirements pin NumPy the old way, `numpy x.x`."""
    return "numpy" in meta.variant and bool(_NUMPY_X_X.search(requirements_section(meta.own_text)))


def _default_string(meta: Meta, variant: Variant) -> str:
    manual = meta.value("build", "string")
    if manual:
        return str(manual)
    requirements = meta.requirements
    env = "host" if "host" in requirements else "build"
    base = [with_version(spec, env, variant) for spec in requirements.get(env, [])]
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
                entry = prefix + "".join(_version_of(variant, base, names).split(".")[:places])
                if entry not in parts:
                    parts.append(entry)
    if parts:
        parts.append("_")
    features = [str(feature) for feature in as_list(meta.value("build", "features"))]
    if features:
        parts.extend(("_".join(features), "_"))
    return "".join((*parts, str(meta.build_number)))


def _version_of(variant: Variant, base: list[str], names: tuple[str, ...]) -> str:
    for name in (*names, *(name.replace("-", "_") for name in names if "-" in name)):
        pinned = next((spec.split()[1] for spec in base if len(spec.split()) > 1 and spec.split()[0] == name), "")
        version = pinned or variant.get(name.replace("-", "_"), "")
        if version:
            return version
    return ""


def _whole_string(meta: Meta) -> str | None:
    """The build string that a recipe sets itself, with or without a hash; else None."""
    manual = meta.value("build", "string")
    if not manual:
        return None
    text = package_and_build_in(meta.own_text)
    return None if "string:" in text and _USES_HASH.search(text) else str(manual)


def build_string_without_hash(meta: Meta) -> str:
    """The build string of a package before its used keys are known, in the variant that it was rendered for."""
    whole = _whole_string(meta)
    return _default_string(meta, meta.variant) if whole is None else whole
