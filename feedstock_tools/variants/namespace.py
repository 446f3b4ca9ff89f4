"""The names that selectors know: platforms, Python's version, the environment conda-smithy sets, and variant keys.

(conda_build/metadata.py: get_selectors.) Nothing is read from the environment of this process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from feedstock_tools.platforms import KNOWN_SUBDIRS
from feedstock_tools.variants.model import Variant
from feedstock_tools.variants.rules import CondaBuildRules

#: conda-build's own defaults (variants.py, DEFAULT_VARIANTS); there `python` and `numpy` follow the interpreter.
DEFAULT_VARIANT: Variant = {
    "python": "3.12",
    "numpy": "1.26",
    "perl": "5.26.2",
    "lua": "5",
    "r_base": "3.5",
    "cpu_optimization_target": "nocona",
    "cran_mirror": "https://cran.r-project.org",
}
_COMPILERS = {
    "linux": {"c_compiler": "gcc", "cxx_compiler": "gxx", "fortran_compiler": "gfortran"},
    "osx": {"c_compiler": "clang", "cxx_compiler": "clangxx", "fortran_compiler": "gfortran"},
    "win": {"c_compiler": "vs2017", "cxx_compiler": "vs2017", "fortran_compiler": "gfortran", "vc": "14"},
}
_ARCHITECTURES = {"32": "x86", "64": "x86_64"}
#: The selectors before every system and architecture of conda was one (conda's NON_X86_LINUX_MACHINES).
_OLD_SUBDIRS = (
    *("linux-64", "linux-32", "osx-64", "win-64", "linux-aarch64", "linux-arm64", "linux-armv6l", "linux-armv7l"),
    *("linux-ppc64", "linux-ppc64le", "linux-riscv64", "linux-s390x"),
)
_PYTHONS = (26, 27, 33, 34, 35, 36)


def default_variant(subdir: str) -> Variant:
    """conda-build's defaults for keys that no file sets."""
    return {**DEFAULT_VARIANT, **_COMPILERS.get(subdir.partition("-")[0], {}), "target_platform": subdir}


@lru_cache(maxsize=64)
def _platform_names(subdir: str, rules: CondaBuildRules) -> Mapping[str, Any]:
    names: dict[str, Any] = {
        "linux32": subdir == "linux-32",
        "linux64": subdir == "linux-64",
        "win32": subdir == "win-32",
        "win64": subdir == "win-64",
        "arm": subdir.startswith("linux-arm"),
        "unix": subdir.startswith(
            ("linux-", "osx-", "emscripten-") if rules.all_platforms_select else ("linux-", "osx-")
        ),
        "nomkl": False,
    }
    for selectable in (*KNOWN_SUBDIRS, subdir) if rules.all_platforms_select else _OLD_SUBDIRS:
        system, dash, arch = selectable.partition("-")
        if dash:
            anywhere = rules.architectures_everywhere or arch in _ARCHITECTURES
            names[system] = subdir.startswith(f"{system}-")
            names[_ARCHITECTURES.get(arch, arch)] = (
                subdir.endswith(f"-{arch}") if anywhere else subdir == f"linux-{arch}"
            )
    names["x86"] = subdir.endswith(("-32", "-64"))
    return names


class _Os:
    """The part of the module `os` that selectors may use, with the given environment."""

    pathsep = ":"
    sep = "/"

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ

    def getenv(self, name: str, default: str | None = None) -> str | None:
        """As `os.getenv`."""
        return self.environ.get(name, default)


def _typed(value: str) -> Any:
    try:
        return int(value)
    except ValueError:
        lowered = value.lower()
        return lowered == "true" if lowered in ("true", "false") else value


class Namespace(Mapping[str, Any]):
    """Looks names up in conda-build's order: platform, Python and the like, environment, then variant keys.

    `subdir` is the target platform (`noarch` for such an output), `rendered` the one being rendered;
    `variant` is empty for variant files, the variant itself in a recipe. Variant values that look like whole numbers
    or booleans are converted.
    """

    def __init__(
        self, subdir: str, rendered: str, variant: Variant, environ: Mapping[str, str], rules: CondaBuildRules
    ) -> None:
        self.variant = variant
        default = DEFAULT_VARIANT
        python = variant.get("python", default["python"]).split(" ")[0].split(".")
        version = int("".join(python[:2])) if all(part.isdigit() for part in python[:2]) else 0
        lua = variant.get("lua", default["lua"])
        self.fixed: dict[str, Any] = {
            **_platform_names(subdir, rules),
            "os": _Os(environ),
            "environ": environ,
            **({"build_platform": rendered} if rules.build_platform_selector else {}),
            "py": version,
            "py3k": python[0] == "3",
            "py2k": python[0] == "2",
            **{f"py{minor}": version == minor for minor in _PYTHONS},
            "np": _typed("".join((variant.get("numpy") or default["numpy"]).split(".")[:2])),
            "pl": variant.get("perl", default["perl"]),
            "lua": lua,
            "luajit": lua[:1] == "2",
            **environ,
        }

    def __getitem__(self, name: str) -> Any:
        if name in self.fixed:
            return self.fixed[name]
        return _typed(self.variant[name])

    def __iter__(self) -> Iterator[str]:
        yield from self.fixed
        yield from (name for name in self.variant if name not in self.fixed)

    def __len__(self) -> int:
        return len(self.fixed) + sum(name not in self.fixed for name in self.variant)
