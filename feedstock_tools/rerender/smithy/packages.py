"""The packages in the README of a feedstock: names, `about` and maintainers, taken from the rendering."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feedstock_tools.bounds.held import step
from feedstock_tools.bounds.limits import BoundError, most
from feedstock_tools.errors import InputError
from feedstock_tools.recipe.model import RenderedOutput
from feedstock_tools.yaml_reading.nodes import Schema, compose

if TYPE_CHECKING:
    from jinja2 import Undefined

    from feedstock_tools.recipe.v0.meta import Meta

__all__ = ["Package", "PackageWatch", "about_of_text"]

_PYTHON_MIN = re.compile(r"""^\s*\{% set python_min\s*=\s*["'].*$""")
#: Characters, many times those of any `about` of conda-forge.
_LONGEST_ABOUT = 64 * 1024
_KEY = re.compile(r"^[A-Za-z_]")


@dataclass(frozen=True, slots=True)
class Package:
    """A package of one variant as the README sees it.

    `file_stem` is name, version and build string. `feedstock` is the name that the recipe gives the feedstock, or that
    of the recipe. `is_part`: conda-build treats it as a part of another recipe, so the feedstock's `about` comes from
    the recipe's text and not from here.
    """

    name: str
    file_stem: str
    noarch: bool
    feedstock: str
    about: Mapping[str, Any] = field(default_factory=dict)
    maintainers: tuple[str, ...] = ()
    is_part: bool = False


class PackageWatch:
    """Collects the packages of one platform while its recipe is rendered, each name and build string once."""

    def __init__(self, *, skipped: bool = False) -> None:
        """Start without packages; with `skipped`, skipped packages count too."""
        self._skipped = skipped
        self._found: dict[tuple[str, bool], Package] = {}

    def __call__(self, made_from: Meta | Mapping[str, Any], output: RenderedOutput) -> None:
        """Add an output with the `Meta` of a meta.yaml, or the rendered recipe.yaml, that it was made from."""
        if output.skip and not self._skipped:
            return
        key = (output.file_stem, bool(output.noarch))
        if key not in self._found:
            if isinstance(made_from, Mapping):
                self._found[key] = _of_engine(made_from, output)
            else:
                self._found[key] = _of_meta(made_from, output)

    @property
    def packages(self) -> tuple[Package, ...]:
        """The packages in the order in which they were added."""
        return tuple(self._found.values())


def _of_meta(meta: Meta, output: RenderedOutput) -> Package:
    extra = meta.section("extra")
    about = meta.output.get("about") if meta.is_output and "about" in meta.output else meta.data.get("about")
    return Package(
        name=output.name,
        file_stem=output.file_stem,
        noarch=output.noarch is not None,
        feedstock=str(extra.get("feedstock-name") or meta.top_name or output.name),
        about=_mapping(about),
        maintainers=_maintainers(extra),
        is_part=meta.is_output or _comes_after_another(meta),
    )


def _comes_after_another(meta: Meta) -> bool:
    """Whether conda-build made an output of another name before this one, and so changed the data that both share."""
    names = [name for name, _ in meta.output_keys]
    before = names[: names.index(meta.name)] if meta.name in names else names
    return any(name != meta.name for name in before)


def _of_engine(content: Mapping[str, Any], output: RenderedOutput) -> Package:
    extra = _mapping(content.get("extra"))
    return Package(
        name=output.name,
        file_stem=output.file_stem,
        noarch=output.noarch is not None,
        feedstock=str(extra.get("feedstock-name") or output.name),
        about=_mapping(content.get("about")),
        maintainers=_maintainers(extra),
    )


def _mapping(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        value = value[0] if value else {}
    return dict(value) if isinstance(value, Mapping) else {}


def _maintainers(extra: Mapping[str, Any]) -> tuple[str, ...]:
    named = extra.get("recipe-maintainers") or ()
    return tuple(str(name) for name in ([named] if isinstance(named, str) else named))


def about_of_text(text: str, path: Path) -> dict[str, Any]:
    """The section `about` in the text of a meta.yaml: selectors are comments, and the first of equal keys counts.

    (conda-smithy, utils.py: get_feedstock_about_from_meta, render_meta_yaml.)

    Raises:
        InputError: the text cannot be rendered, or its `about` is not a mapping.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    block = _block(_rendered_with_stubs(text, path), "about")
    if len(block) > most(_LONGEST_ABOUT):
        raise BoundError(f"has an 'about' of more than {_LONGEST_ABOUT} characters", path=path)
    compose(block, path, Schema.TYPES)  # refuses what would nest or grow without limit
    reader = YAML(typ="rt")
    reader.allow_duplicate_keys = True
    try:
        with step(path):
            found = reader.load(block)
    except (YAMLError, ValueError, RecursionError) as error:
        raise InputError("has an 'about' that is not YAML without its selectors", path=path) from error
    about = found.get("about") if isinstance(found, dict) else None
    return _mapping(about)


def _block(text: str, key: str) -> str:
    """The lines of a key at the top level of a YAML text."""
    lines = text.splitlines(keepends=True)
    start = next((number for number, line in enumerate(lines) if line.startswith(f"{key}:")), None)
    if start is None:
        return ""
    end = next((number for number in range(start + 1, len(lines)) if _KEY.match(lines[number])), len(lines))
    return "".join(lines[start:end])


@cache
def _named() -> type[Undefined]:
    import jinja2

    class Named(jinja2.Undefined):
        """An undefined value, which renders as its name."""

        def __str__(self) -> str:
            return str(self._undefined_name)

        def __getattr__(self, name: str) -> Any:
            return f"{self}.{name}"

        def __getitem__(self, name: Any) -> str:  # type: ignore[override]
            return f'{self}["{name}"]'

    return Named


def _rendered_with_stubs(text: str, path: Path) -> str:
    import time
    from collections import defaultdict
    from datetime import datetime

    from feedstock_tools.recipe.v0.jinja import render

    def nothing(*_args: Any, **_kwargs: Any) -> Any:
        return defaultdict(str)

    machine = _Machine()
    context = dict[str, Any](
        compiler=lambda name: f"{name}_compiler_stub",
        stdlib=lambda name: f"{name}_stdlib_stub",
        pin_subpackage=lambda name, *_args, **_kwargs: f"subpackage_pin {name}",
        pin_compatible=lambda name, *_args, **_kwargs: f"compatible_pin {name}",
        cdt=lambda name: f"{name.replace('-', '_')}_cdt_stub",
        **dict.fromkeys(("load_file_regex", "load_file_data", "load_setup_py_data", "load_str_data"), nothing),
        datetime=datetime,
        time=time,
        target_platform="linux-64",
        build_platform="linux-64",
        mpi="mpi",
        python_min="9999",
        os=machine,
        environ=machine.environ,
        PY_VER="3.7",
    )
    lines = [
        "{% set python_min = '9999' %}\n" if _PYTHON_MIN.match(line) else line
        for line in text.splitlines(keepends=True)
    ]
    return render(path, None, "".join(lines), context, _named())


class _Machine(dict[str, str]):
    """Stands for the module `os`: an environment in which every variable is empty."""

    def __init__(self) -> None:
        from collections import defaultdict

        super().__init__()
        self.environ: Mapping[str, str] = defaultdict(str)
        self.sep = "/"


def feedstock_about(packages: Sequence[Package], text: str, path: Path) -> dict[str, Any]:
    """The `about` of the feedstock as a whole: that of its first package, or of the recipe's text."""
    first = packages[0]
    return about_of_text(text, path) if first.is_part else dict(first.about)
