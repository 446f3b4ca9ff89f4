"""The names in a recipe's templates and selectors: keys of its variants, and whether all configurations set them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

#: conda-build's names for platforms that rattler-build has too.
PLATFORMS = frozenset(
    {"linux", "osx", "win", "unix", "linux64", "linux32", "win64", "win32"}
    | {"x86_64", "aarch64", "arm64", "ppc64le", "s390x", "riscv64", "target_platform", "build_platform"}
)
#: Names of conda-build and what they are in rattler-build.
RENAMED = {
    "PKG_HASH": "hash",
    "PKG_BUILDNUM": "build_number",
    "PKG_VERSION": "version",
    "PKG_NAME": "name",
    "CONDA_PY": "python | version_to_buildstring",
    "PY_VER": '(python | split("."))[:2] | join(".")',
    "CONDA_NPY": '(numpy | split("."))[:2] | join("")',
    "NPY_VER": '(numpy | split("."))[:2] | join(".")',
    "x86": "x86_64",
    "py3k": 'match(python, ">=3")',
    "py2k": 'match(python, "<3")',
    "ARCH": '(target_platform | split("-"))[1]',
    "SUBDIR": "target_platform",
}
#: Names that are defined while scripts and tests run.
OF_SCRIPTS = frozenset({"PYTHON", "PREFIX", "BUILD_PREFIX", "RECIPE_DIR", "SRC_DIR", "SP_DIR", "SHLIB_EXT", "R"})


@dataclass(frozen=True)
class Names:
    """The keys of a feedstock's variants with all their values.

    `always` are those that every configuration sets: only these can be read without a default, since rattler-build
    refuses what is undefined. `looping` have several values in one configuration: whatever reads such a key is built
    once for each value.
    """

    values: Mapping[str, frozenset[str]] = field(default_factory=dict)
    always: frozenset[str] = frozenset()
    looping: frozenset[str] = frozenset({"python", "numpy"})

    def truth_of(self, key: str) -> frozenset[str]:
        """The values of a key that conda-build takes for false although they are text."""
        return frozenset(value for value in self.values.get(key, ()) if value.lower() in {"false", "0"})

    def are_numbers(self, key: str) -> bool:
        """Whether all known values of a key are whole numbers."""
        values = self.values.get(key)
        return bool(values) and all(value.isdecimal() for value in values or ())


def names_of(configurations: Iterable[Mapping[str, tuple[str, ...]]]) -> Names:
    """The keys in the values of some configurations.

    >>> sorted(names_of([{"mpi": ("nompi",)}, {"mpi": ("openmpi",), "python": ("3.12",)}]).always)
    ['mpi']
    """
    values: dict[str, set[str]] = {}
    always: set[str] | None = None
    looping = {"python", "numpy"}
    for configuration in configurations:
        for key, texts in configuration.items():
            values.setdefault(key, set()).update(texts)
        looping |= {key for key, texts in configuration.items() if len(set(texts)) > 1}
        always = set(configuration) if always is None else always & set(configuration)
    return Names({key: frozenset(texts) for key, texts in values.items()}, frozenset(always or ()), frozenset(looping))
