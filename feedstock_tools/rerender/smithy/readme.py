"""README.md and CODEOWNERS of a feedstock (conda-smithy, configure_feedstock.py: render_readme)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from feedstock_tools.reading import read_text
from feedstock_tools.rerender.configurations.configuration import Configuration
from feedstock_tools.rerender.smithy.packages import Package, feedstock_about
from feedstock_tools.rerender.smithy.services.workshop import File, Workshop

README = "README.md"
CODE_OWNERS = ".github/CODEOWNERS"
_TEMPLATE = "README.md.tmpl"
_CHANNEL = "conda-forge main"


def readme_files(
    workshop: Workshop,
    config: dict[str, Any],
    packages: Sequence[Package],
    configurations: Sequence[Configuration],
    azure_number: int | None = None,
) -> dict[str, File]:
    """The README, and CODEOWNERS if the recipe names maintainers.

    Args:
        config: the values that templates see, with the platforms that the services build.
        packages: the packages of all built platforms, in the order of the services (Azure first).
        azure_number: the feedstock's number at Azure, if it was looked up; else that of conda-forge.yml or the README.

    Raises:
        InputError: the template or the recipe's `about` cannot be rendered.
    """
    forge = workshop.forge
    before = _Before.of(forge.folder / README)
    if not workshop.rules.sorted_metadata:
        packages = before.in_order(packages)
    first_alone = workshop.rules.describes_first_package
    about = dict(packages[0].about) if first_alone else feedstock_about(packages, forge.recipe_text, forge.recipe)
    last = {package.name: package for package in packages}
    parts = [(packages[0].feedstock, about)]
    parts += [(name, dict(package.about)) for name, package in last.items() if package.about != about]
    maintainers = sorted({name for package in packages for name in package.maintainers})
    number = _first_given(config["azure"].get("build_id"), azure_number, before.build_id)
    context = {
        **config,
        "noarch_python": all(package.noarch for package in packages),
        "package_about": about if first_alone else [(name, _with_old_keys(each)) for name, each in parts],
        "package_name": packages[0].feedstock,
        "package": {"meta": {"about": packages[0].about}},
        "variants": sorted(configuration.name for configuration in configurations),
        "outputs": sorted(last),
        "channel_targets": _channel_targets(configurations, before),
        "maintainers": _named(workshop, maintainers),
        "azure": {**config["azure"], "build_id": number},
    }
    files = {README: File(workshop.templates.render(_TEMPLATE, context).encode())}
    rules = workshop.rules
    owners = [f"@{name.lower() if '/' in name and rules.lower_teams else name}" for name in maintainers]
    if rules.code_owners == "lines":
        files[CODE_OWNERS] = File("".join(f"* {owner}\n" for owner in owners).encode())
    elif owners and rules.code_owners == "one line":
        files[CODE_OWNERS] = File(f"* {' '.join(owners)}".encode())
    return files


def _with_old_keys(about: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a recipe.yaml, also under the names that they have in a meta.yaml."""
    renamed = {"repository": "dev_url", "homepage": "home", "documentation": "doc_url"}
    return {**about, **{old: about[new] for new, old in renamed.items() if new in about}}


@dataclass(frozen=True, slots=True)
class _Before:
    """Values read from a feedstock's README that conda-smithy leaves to chance, or fetches from the network.

    Chance decides the order of files in a folder, from which conda-smithy takes the channel, and until 3.47.1 the order
    of packages. conda-smithy fetches the feedstock's number at Azure from the network.
    """

    text: str = ""

    @classmethod
    def of(cls, path: Path) -> _Before:
        """The README of a feedstock; an empty one if there is no file.

        Raises:
            InputError: it cannot be read.
        """
        if not path.is_file() or path.is_symlink():
            return cls()
        return cls(read_text(path, within=path.parent))

    @property
    def build_id(self) -> int | None:
        """The number of the feedstock at Azure."""
        found = re.search(r"definitionId=(\d{1,12})\b", self.text)
        return int(found[1]) if found else None

    @property
    def channel(self) -> str | None:
        """The channel that packages are installed from."""
        found = re.search(r"^conda config --add channels (\S+)$", self.text, re.MULTILINE)
        return found[1] if found else None

    def in_order(self, packages: Sequence[Package]) -> Sequence[Package]:
        """Packages in the order of their sections; packages without one come last."""
        headings = re.findall(r"^About (\S+)\n-+$", self.text, re.MULTILINE)
        place = {name: number for number, name in reversed(list(enumerate(headings)))}
        return sorted(packages, key=lambda package: place.get(package.name, len(place)))


def _channel_targets(configurations: Sequence[Configuration], before: _Before) -> list[str]:
    """The channels to publish to: the README's first, else the one that most configurations have, as is most likely."""
    targets = [configuration.values.get("channel_targets", (_CHANNEL,))[0] for configuration in configurations]
    counts = Counter(targets)
    return sorted(targets, key=lambda target: (_as_shown(target) != before.channel, -counts[target])) or [_CHANNEL]


def _as_shown(target: str) -> str:
    """A channel and its label in conda's notation: `conda-forge main` is `conda-forge`."""
    channel, _, label = target.partition(" ")
    return channel if label in ("", "main") else f"{channel}/label/{label}"


def _first_given(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _named(workshop: Workshop, maintainers: Sequence[str]) -> list[Any]:
    """Maintainers with their pages; teams have an organisation before the slash."""
    if not workshop.rules.maintainers_with_address:
        return list(maintainers)
    base = "https://github.com"
    named = []
    for name in maintainers:
        organisation, _, team = name.partition("/")
        named.append((name, f"{base}/orgs/{organisation}/teams/{team}/" if team else f"{base}/{name}/"))
    return named
