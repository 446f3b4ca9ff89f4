"""The functions and names available to templates of a `meta.yaml` (conda_build/jinja_context.py, environ.py).

Nothing here depends on the machine: prefixes are placeholders, and the caller provides the environment.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from feedstock_tools.reading import is_below, is_file, read_bytes
from feedstock_tools.recipe.requirements import ensure_valid_spec
from feedstock_tools.variants.model import Variant
from feedstock_tools.variants.selectors import DEFAULT_VARIANT, Namespace
from feedstock_tools.yaml_reading.nodes import parse_first

_NATIVE = {
    "linux": {"c": "gcc", "cxx": "gxx", "fortran": "gfortran"},
    "osx": {"c": "clang", "cxx": "clangxx", "fortran": "gfortran"},
    "win": {"c": "vs2017", "cxx": "vs2017", "fortran": "gfortran"},
}
#: A recipe that uses the time would render differently every time, so the time is not available.
_TIME = SimpleNamespace(strftime=lambda _form="", *_: "", time=lambda: 0)
_LARGEST_DATA = 1_000_000
_SHOWN = 80


@dataclass(frozen=True, slots=True)
class PackageNames:
    """The package's values from an earlier pass, for `PKG_NAME` and the like."""

    name: str = ""
    version: str = ""
    build_number: int = 0


@dataclass(frozen=True, slots=True)
class Functions:
    """The functions of templates, for one variant and platform."""

    variant: Variant
    subdir: str
    recipe: Path
    keep_pins: bool = False

    def _target(self, language: str, component: str) -> str:
        system = self.subdir.partition("-")[0]
        native = _NATIVE.get(system, {}).get(language, language) if component == "compiler" else language
        package = self.variant.get(f"{language}_{component}", native)
        version = self.variant.get(f"{language}_{component}_version")
        name = f"{package}_{self.variant.get('target_platform', self.subdir)}"
        return ensure_valid_spec(f"{name} {version}") if version else name

    def compiler(self, language: str, *_: Any, **__: Any) -> str:
        """The package that compiles `language` for the target."""
        return self._target(str(language), "compiler")

    def stdlib(self, language: str, *_: Any, **__: Any) -> str:
        """The package with the standard library of `language` for the target."""
        return self._target(str(language), "stdlib")

    def cdt(self, package: str, *_: Any, **__: Any) -> str:
        """A package of the core dependency tree."""
        arch = self.variant.get("target_platform", self.subdir).partition("-")[2]
        default = {"64": ("x86_64", "cos6"), "32": ("i686", "cos6")}.get(arch, (arch, "cos7"))
        suffix = f"-{self.variant.get('cdt_name', default[1])}-{self.variant.get('cdt_arch', default[0])}"
        name, blank, rest = str(package).partition(" ")
        return f"{name}{suffix}{blank}{rest}"

    def pin_compatible(self, package: str, *args: Any, **bounds: Any) -> str:
        """Without solved environments conda-build returns the bare name, followed by the blank that separates it from a
        pin."""
        names = ("lower_bound", "upper_bound", "min_pin", "max_pin", "exact")
        return self._pin("compatible", package, names, args, bounds) if self.keep_pins else f"{package} "

    def pin_subpackage(self, package: str, *args: Any, **bounds: Any) -> str:
        """Before outputs are known conda-build returns the bare name."""
        names = ("min_pin", "max_pin", "exact")
        return self._pin("subpackage", package, names, args, bounds) if self.keep_pins else str(package)

    def _pin(
        self, kind: str, package: str, names: tuple[str, ...], args: tuple[Any, ...], bounds: Mapping[str, Any]
    ) -> str:
        """A pin in the form that `recipe.pins` reads; it contains nothing special to YAML or selectors."""
        if not str(package).strip():  # an undefined name, in a part of the recipe that does not count
            return ""
        values = {**dict(zip(names, args, strict=False)), **bounds}
        parts = [f"{name}={values[name]}" for name in names if name in values]
        return ";".join((f"{package} @{kind}", *parts))

    def load_file_data(self, filename: str, fmt: str | None = None, from_recipe_dir: bool = False, **_: Any) -> Any:
        """Data of a file beside the recipe; the source tree is unknown when a recipe is rendered."""
        text = self._text_of(filename) if from_recipe_dir else None
        return {} if text is None else load_str_data(text, fmt or Path(str(filename)).suffix.lstrip("."))

    def load_file_regex(
        self, load_file: str, regex_pattern: str, from_recipe_dir: bool = False, **_: Any
    ) -> re.Match[str] | None:
        """A pattern's match in a file beside the recipe; the system bounds the time that it takes."""
        text = self._text_of(load_file) if from_recipe_dir else None
        try:
            return None if text is None else re.search(str(regex_pattern), text)
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"'{str(regex_pattern)[:_SHOWN]}' is not a regular expression: {error}") from error

    def _text_of(self, filename: str) -> str | None:
        folder = self.recipe.parent
        path = folder / str(filename)
        if not is_below(path, folder):
            return None
        if not is_file(path):
            raise ValueError(f"there is no file '{str(filename)[:_SHOWN]}' beside the recipe")
        return read_bytes(path, _LARGEST_DATA, within=folder).decode(errors="replace")


def load_str_data(string: str, fmt: str, **_: Any) -> Any:
    """Parse a text as JSON, YAML or TOML."""
    import json
    import tomllib

    parsers = {"json": json.loads, "yaml": parse_first, "yml": parse_first, "toml": tomllib.loads}
    parser: Callable[[str], Any] | None = parsers.get(str(fmt).lower())  # type: ignore[assignment]
    if parser is None or len(string) > _LARGEST_DATA:
        raise ValueError(f"cannot read data as '{fmt}'")
    return parser(string)


def _nothing(*_: Any, **__: Any) -> dict[str, Any]:
    return {}


#: What recipes may use of the module.
DATETIME = SimpleNamespace(datetime=datetime.datetime, date=datetime.date, timedelta=datetime.timedelta)


@lru_cache(maxsize=1)
def _constants() -> Mapping[str, Any]:
    return {
        "load_setup_py_data": _nothing,
        "load_setuptools": _nothing,
        "load_npm": _nothing,
        "load_str_data": load_str_data,
        "resolved_packages": lambda *_args, **_kwargs: [],
        "ccache": lambda *_args, **_kwargs: "ccache",
        "installed": {},
        "time": _TIME,
        "datetime": DATETIME,
        "CONDA_BUILD": "1",
        "CONDA_BUILD_STATE": "RENDER",
        "PYTHONNOUSERSITE": "1",
        "PREFIX": "$PREFIX",
        "BUILD_PREFIX": "$BUILD_PREFIX",
        "SRC_DIR": "$SRC_DIR",
        "SP_DIR": "$SP_DIR",
        "STDLIB_DIR": "$STDLIB_DIR",
        "RECIPE_DIR": "$RECIPE_DIR",
        "PYTHON": "$PYTHON",
        "PERL": "$PERL",
        "R": "$R",
        "LUA": "$LUA",
        "CPU_COUNT": "2",
        "SHLIB_EXT": ".so",
        "PATH": "$PATH",
        "HOME": "$HOME",
        "PIP_IGNORE_INSTALLED": "True",
        "PKG_BUILD_STRING": "placeholder",
        "PKG_HASH": "1234567",
    }


def template_context(
    namespace: Namespace, functions: Functions, environ: Mapping[str, str], package: PackageNames
) -> dict[str, Any]:
    """Every name that a template can use; variant values as strings, on top of the names known to selectors.

    Args:
        functions: the functions for the variant and platform that are rendered.
        environ: the variables of the environment, on top of conda-build's own.
        package: the names of the package, as far as known.
    """
    variant = functions.variant
    own = {
        "PKG_NAME": package.name,
        "PKG_VERSION": package.version,
        "PKG_BUILDNUM": str(package.build_number),
        **_platform_and_versions(variant, functions.subdir),
    }
    return {
        **namespace.fixed,
        **_constants(),
        **own,
        **variant,
        "compiler": functions.compiler,
        "stdlib": functions.stdlib,
        "cdt": functions.cdt,
        "pin_compatible": functions.pin_compatible,
        "pin_subpackage": functions.pin_subpackage,
        "load_file_data": functions.load_file_data,
        "load_file_regex": functions.load_file_regex,
        "environ": {**_constants(), **variant, **own, **environ},
    }


def _platform_and_versions(variant: Variant, subdir: str) -> dict[str, str]:
    """The target platform and the versions of languages under the names that conda-build gives them."""
    python = variant.get("python", DEFAULT_VARIANT["python"]).split(" ")[0].split(".")
    numpy = variant.get("numpy", DEFAULT_VARIANT["numpy"]).split(".")
    return {
        "ARCH": subdir.partition("-")[2],
        "SUBDIR": subdir,
        "PY_VER": ".".join(python[:2]),
        "CONDA_PY": "".join(python[:2]),
        "PY3K": str(int(python[0] == "3")),
        "NPY_VER": ".".join(numpy[:2]),
        "CONDA_NPY": "".join(numpy[:2]),
        "PERL_VER": variant.get("perl", DEFAULT_VARIANT["perl"]),
        "R_VER": variant.get("r_base", DEFAULT_VARIANT["r_base"]),
        "LUA_VER": variant.get("lua", DEFAULT_VARIANT["lua"]),
    }
