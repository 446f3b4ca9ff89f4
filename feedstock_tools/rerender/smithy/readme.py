"""README.md and CODEOWNERS of a feedstock, from the packages that were rendered and the recipe's `about`.

(conda-smithy, configure_feedstock.py: render_readme, azure_build_id_from_public.)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feedstock_tools.bounds.limits import BoundError, most, step
from feedstock_tools.errors import InputError
from feedstock_tools.platforms import Platform
from feedstock_tools.reading import read_text
from feedstock_tools.recipe.model import RenderedOutput
from feedstock_tools.rerender.ci_rules import ci_rules
from feedstock_tools.rerender.configuration import Configuration
from feedstock_tools.rerender.forge import read_forge
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.rerender.smithy.config import template_settings, tree_rules
from feedstock_tools.rerender.smithy.release import Release
from feedstock_tools.rerender.smithy.services import File, Workshop
from feedstock_tools.yaml_reading.nodes import Schema, compose, items, pairs
from feedstock_tools.yaml_reading.quick import may_have_anchors

if TYPE_CHECKING:
    from jinja2 import Undefined

    from feedstock_tools.recipe.v0.meta import Meta


README = "README.md"
CODE_OWNERS = ".github/CODEOWNERS"
_TEMPLATE = "README.md.tmpl"
_CHANNEL = "conda-forge main"
#: What stands in a rendered meta.yaml for folders of its build, such as that of R's licenses.
_FOLDERS = ("$PREFIX", "$BUILD_PREFIX", "$SRC_DIR", "$SP_DIR", "$STDLIB_DIR")


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
    """
    forge = workshop.forge
    before = _Before.of(forge.folder / README)
    if not workshop.rules.sorted_metadata:
        packages = before.in_order(packages)
    first_alone = workshop.rules.describes_first_package
    first = packages[0]
    of_text = first.is_part and not first_alone
    about = _mapping(about_of_text(forge.recipe_text, forge.recipe)) if of_text else dict(first.about)
    last = {package.name: package for package in packages}
    parts = [(packages[0].feedstock, about)]
    parts += [
        (name, dict(package.about))
        for name, package in last.items()
        if package.about != about or package.folder != first.folder
    ]
    maintainers = sorted({name for package in packages for name in package.maintainers})
    numbers = (config["azure"].get("build_id"), azure_number, before.build_id)
    context = {
        **config,
        "noarch_python": all(package.noarch for package in packages),
        "package_about": about if first_alone else [(name, _with_old_keys(each)) for name, each in parts],
        "package_name": packages[0].feedstock,
        "package": {"meta": {"about": packages[0].about}},
        "variants": sorted(configuration.name for configuration in configurations),
        "outputs": sorted(name for name, package in last.items() if not package.is_whole_recipe),
        "channel_targets": _channel_targets(configurations, before),
        "maintainers": _maintainers_with_pages(workshop, maintainers),
        "azure": {**config["azure"], "build_id": next((each for each in numbers if each is not None), None)},
    }
    files = {README: File(workshop.templates.render(_TEMPLATE, context).encode(), None)}
    rules = workshop.rules
    owners = [f"@{name.lower() if '/' in name and rules.lower_teams else name}" for name in maintainers]
    if rules.code_owners == "lines":
        files[CODE_OWNERS] = File("".join(f"* {owner}\n" for owner in owners).encode(), None)
    elif owners and rules.code_owners == "one line":
        files[CODE_OWNERS] = File(f"* {' '.join(owners)}".encode(), None)
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
        """The README of a feedstock; an empty one if there is no file."""
        if not path.is_file() or path.is_symlink():
            return cls()
        return cls(read_text(path, within=path.parent))

    @property
    def build_id(self) -> int | None:
        found = re.search(r"definitionId=(\d{1,12})\b", self.text)
        return int(found[1]) if found else None

    @property
    def channel(self) -> str | None:
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


def _maintainers_with_pages(workshop: Workshop, maintainers: Sequence[str]) -> list[Any]:
    """Maintainers with their pages; teams have an organisation before the slash."""
    if not workshop.rules.maintainers_with_address:
        return list(maintainers)
    base = "https://github.com"
    named = []
    for name in maintainers:
        organisation, _, team = name.partition("/")
        named.append((name, f"{base}/orgs/{organisation}/teams/{team}/" if team else f"{base}/{name}/"))
    return named


@dataclass(frozen=True, slots=True)
class AzureProject:
    """A repository as Azure knows it."""

    organisation: str
    project: str
    repository: str


def azure_project(feedstock: Path, release: Release, rules: Rules) -> AzureProject | None:
    """Where to look up the number of a feedstock; None if its conda-forge.yml gives the number."""
    settings = read_forge(feedstock, rules).settings
    config = template_settings(release, settings, feedstock, tree_rules(rules.smithy), ci_rules(rules.smithy))
    azure = config["azure"]
    if azure.get("build_id") is not None:
        return None
    return AzureProject(str(azure["user_or_org"]), str(azure["project_name"]), str(config["github"]["repo_name"]))


@dataclass(frozen=True, slots=True)
class Package:
    """A package of one variant as the README sees it.

    `file_stem` is name, version and build string. `feedstock` is the name that the recipe gives the feedstock, or that
    of the recipe. `is_part`: conda-build treats it as a part of another recipe, so the feedstock's `about` comes from
    the recipe's text and not from here. `is_whole_recipe`: this is a recipe of several outputs that were not rendered.
    `folder` is the platform if the `about` names a folder of the build, which conda-build makes anew for each platform.
    """

    name: str
    file_stem: str
    noarch: bool
    feedstock: str
    about: Mapping[str, Any] = field(default_factory=dict)
    maintainers: tuple[str, ...] = ()
    is_part: bool = False
    is_whole_recipe: bool = False
    folder: str = ""


class PackageWatch:
    """Collects the packages of one platform while its recipe is rendered, each name and build string once."""

    def __init__(self, platform: Platform, *, skipped: bool = False) -> None:
        """Start without packages; with `skipped`, skipped packages count too."""
        self._platform, self._skipped = platform, skipped
        self._found: dict[tuple[str, bool], Package] = {}

    def __call__(self, made_from: Meta | Mapping[str, Any], output: RenderedOutput) -> None:
        """Add an output with the `Meta` of a meta.yaml, or the rendered recipe.yaml, that it was made from."""
        if output.skip and not self._skipped:
            return
        key = (output.file_stem, bool(output.noarch))
        if key not in self._found:
            self._found[key] = _package(made_from, output, self._platform)

    @property
    def packages(self) -> tuple[Package, ...]:
        """The packages in the order in which they were added."""
        return tuple(self._found.values())


def _package(made_from: Meta | Mapping[str, Any], output: RenderedOutput, platform: Platform) -> Package:
    if isinstance(made_from, Mapping):
        extra, about = _mapping(made_from.get("extra")), made_from.get("about")
        name, is_part = output.name, False
    else:
        own = made_from.is_output and "about" in made_from.output
        extra, about = made_from.section("extra"), (made_from.output if own else made_from.data).get("about")
        name = made_from.top_name or output.name
        is_part = made_from.is_output or _comes_after_another(made_from)
    return Package(
        name=output.name,
        file_stem=output.file_stem,
        noarch=output.noarch is not None,
        feedstock=str(extra.get("feedstock-name") or name),
        about=_mapping(about),
        maintainers=_maintainers(extra),
        is_part=is_part,
        is_whole_recipe=isinstance(made_from, Mapping) and "name" in _mapping(made_from.get("recipe")),
        folder=platform.name if any(name in str(about) for name in _FOLDERS) else "",
    )


def _comes_after_another(meta: Meta) -> bool:
    """Whether conda-build made an output of another name before this one, and so changed the data that both share."""
    names = [name for name, _ in meta.output_keys]
    before = names[: names.index(meta.name)] if meta.name in names else names
    return any(name != meta.name for name in before)


def _mapping(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        value = value[0] if value else {}
    return dict(value) if isinstance(value, Mapping) else {}


def _maintainers(extra: Mapping[str, Any]) -> tuple[str, ...]:
    named = extra.get("recipe-maintainers") or ()
    return tuple(str(name) for name in ([named] if isinstance(named, str) else named))


_PYTHON_MIN = re.compile(r"""^\s*\{% set python_min\s*=\s*["'].*$""")
#: Characters, many times those of any `about` of conda-forge.
_LONGEST_ABOUT = 64 * 1024
_KEY = re.compile(r"^[A-Za-z_]")


def about_of_text(text: str, path: Path) -> Any:
    """The value of `about` in the text of a meta.yaml: selectors are comments, and the first of equal keys counts.

    (conda-smithy, utils.py: get_feedstock_about_from_meta, render_meta_yaml.)

    Raises:
        InputError: the text cannot be rendered, or its `about` is not YAML.
    """
    block = _block(_rendered_with_stubs(text, path), "about")
    if len(block) > most(_LONGEST_ABOUT):
        raise BoundError(f"has an 'about' of more than {_LONGEST_ABOUT} characters", path=path)
    node = compose(block, path, Schema.TYPES)  # refuses what would nest or grow without limit
    try:
        if not block.replace("\n", "").isprintable() or may_have_anchors(block):  # a tab, say, or another line break
            raise _DiffersError
        content = _common_value(node)
    except _DiffersError:
        content = _read_by_ruamel(block, path)
    return content.get("about") if isinstance(content, dict) else None


# --- reading YAML: conda-smithy's reader follows YAML 1.2, libyaml 1.1

#: Unquoted scalars that are strings in both: anything with a letter at its beginning, but for these words.
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


class _DiffersError(Exception):
    """The value of a text may differ between YAML 1.1 and 1.2."""


def _common_value(node: Any) -> Any:
    """The value of a node if it is certain to be the same in YAML 1.1 and 1.2: strings, and blocks of them.

    It is that of nearly every recipe's `about`, and saves the import of ruamel.
    """
    if node is None or getattr(node, "flow_style", False):
        raise _DiffersError
    if node.id == "scalar":
        return _common_scalar(node)
    if node.id == "sequence":
        return [_common_value(item) for item in items(node)]
    values = {_common_value(key): _common_value(value) for key, value in pairs(node) if key.id == "scalar"}
    if len(values) < len(pairs(node)):
        raise _DiffersError
    return values


def _common_scalar(node: Any) -> str | None:
    value: str = node.value
    if node.tag == "tag:yaml.org,2002:null" and not value and not node.style:
        return None
    if node.tag != "tag:yaml.org,2002:str":
        raise _DiffersError
    if not node.style and not (value[:1].isalpha() and value.lower() not in _WORDS):
        raise _DiffersError
    return value


def _read_by_ruamel(block: str, path: Path) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    reader = YAML(typ="rt")
    reader.allow_duplicate_keys = True
    try:
        with step(path):
            return reader.load(block)
    except (YAMLError, ValueError, RecursionError) as error:
        raise InputError("has an 'about' that is not YAML without its selectors", path=path) from error


def _block(text: str, key: str) -> str:
    """The lines of a key at the top level of a YAML text."""
    lines = text.splitlines(keepends=True)
    start = next((number for number, line in enumerate(lines) if line.startswith(f"{key}:")), None)
    if start is None:
        return ""
    end = next((number for number in range(start + 1, len(lines)) if _KEY.match(lines[number])), len(lines))
    return "".join(lines[start:end])


@cache
def _named_undefined() -> type[Undefined]:
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
    wanted = lines_for_about(lines)
    if wanted is not lines:
        with suppress(InputError):  # else its place is one in the whole text
            return render(path, None, "".join(wanted), context, _named_undefined())
    return render(path, None, "".join(lines), context, _named_undefined())


#: A line that is indented, or a comment, and can change nothing outside itself: text with names and calls of stubs.
_STUB = r"(?:compiler|stdlib|pin_subpackage|pin_compatible|cdt)\([\w .,='\"<>*-]*\)"
_NAME = r"[A-Za-z_]\w*(?: *\| *(?:lower|upper|replace\([^(){}]*\)))?"
_INERT = re.compile(rf"[ #](?:[^{{}}]|\{{\{{ *(?:{_STUB}|{_NAME}) *\}}\}}|\{{(?![{{%#])|(?<![}}%#])\}}(?!\}}))*")
_TAG = re.compile(r"\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)
#: The tags of a template in which a line can be left out without changing any other.
_LINEWISE = re.compile(r"\{%\s*(?:(?:if|elif|else|endif|for|endfor)\b|set\s[^={}%]*=)")
_MARKS = ("{%", "%}", "{{", "}}", "{#")
_STRIPPING_MARKS = ("{{-", "-}}", "{%-", "-%}")


def lines_for_about(lines: list[str]) -> list[str]:
    """The lines of a recipe that its `about` can depend on; all of them where that is not certain.

    Compiling templates takes most of the time here, and most lines have one that cannot matter.
    """
    text = "".join(lines)
    tags = list(_TAG.finditer(text))
    rest = _TAG.sub("", text)
    if len(lines) != text.count("\n") + (not text.endswith("\n")):
        return lines
    if any(mark in rest for mark in _MARKS) or any(mark in text for mark in _STRIPPING_MARKS):
        return lines
    if not all(tag[0].startswith("{{") or _LINEWISE.match(tag[0]) for tag in tags):
        return lines
    spanned: set[int] = set()
    for tag in tags:
        if "\n" in tag[0]:
            first = text.count("\n", 0, tag.start())
            spanned.update(range(first, first + tag[0].count("\n") + 1))
    wanted = []
    in_about = False
    for number, line in enumerate(lines):
        if _KEY.match(line):
            in_about = line.startswith("about:")
        if in_about or number in spanned or not _INERT.fullmatch(line.rstrip("\r\n")):
            wanted.append(line)
    return wanted


class _Machine(dict[str, str]):
    """Stands for the module `os`: an environment in which every variable is empty."""

    def __init__(self) -> None:
        from collections import defaultdict

        super().__init__()
        self.environ: Mapping[str, str] = defaultdict(str)
        self.sep = "/"
