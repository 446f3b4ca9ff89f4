"""The packages in the README of a feedstock: names, `about` and maintainers, taken from the rendering."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feedstock_tools.recipe.model import RenderedOutput

if TYPE_CHECKING:
    from feedstock_tools.recipe.v0.meta import Meta


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


def feedstock_about(packages: Sequence[Package], text: str, path: Path) -> dict[str, Any]:
    """The `about` of the feedstock as a whole: that of its first package, or of the recipe's text."""
    first = packages[0]
    if not first.is_part:
        return dict(first.about)
    from feedstock_tools.rerender.smithy.about import about_of_text

    return _mapping(about_of_text(text, path))
