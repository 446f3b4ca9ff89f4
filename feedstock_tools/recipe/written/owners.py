"""The owners of keys in a recipe as people wrote it: the recipe itself, its outputs and stages; what each requires,
and its sources."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from feedstock_tools.recipe import requirements
from feedstock_tools.recipe.written.document import Document, Entry, Part
from feedstock_tools.recipe.written.variables import expand

#: The sections of requirements in both formats.
SECTIONS = tuple(dict.fromkeys([*requirements.SECTIONS, *requirements.SECTIONS.values()]))
_NAMES = (("package", "name"), ("recipe", "name"), ("staging", "name"), ("name",))
_CALL = re.compile(r"""\$?\{\{-?\s*(\w+)\(\s*['"]([^'"]+)['"].*\}\}""")
_COMPILER = re.compile(r"""\$?\{\{-?\s*(?:compiler|stdlib)\(\s*['"]([^'"]+)['"]""")
_EXACT_PIN = re.compile(r"""\{\{-?\s*pin_subpackage\(\s*(.+?)\s*,.*\bexact\s*=\s*[Tt]rue""")
#: The keys that say which content a source has, besides its hash: conda-build's, then rattler-build's.
_ADDRESSES = ("url", "git_rev", "git_tag", "svn_rev", "hg_tag", "tag", "rev")
#: Keys of an owner, or of its section `build`, that put files into its package.
_FILLING = frozenset({"files", "script", "inherit", "cache"})


@dataclass(frozen=True)
class Owner:
    """A part of a recipe with keys of its own: the recipe, an output, or a stage that outputs take files from."""

    document: Document
    part: Part
    kind: Literal["recipe", "output", "stage"]

    @cached_property
    def written_names(self) -> tuple[str, ...]:
        """Its name with templates; of a name that is written several times, with selectors, the last comes first."""
        entries = [entry for keys in _NAMES for entry in reversed([*self.part.below(*keys)])]
        return tuple(entry.value.text for entry in entries if entry.value.kind == "scalar")

    @cached_property
    def name(self) -> str:
        """Its name with the variables of the recipe filled in, as far as they alone tell it; '' without one."""
        return self._filled(self.written_names[0]) if self.written_names else ""

    def is_called(self, name: str) -> bool:
        """Whether it has a name, as it is written or with the variables of the recipe filled in."""
        return any(name in {written, self._filled(written)} for written in self.written_names)

    def _filled(self, text: str) -> str:
        return (expand(self.document, text, {}) if "{{" in text else None) or text

    @cached_property
    def build(self) -> Entry | None:
        """Its section `build`; of several, the first that is not empty."""
        entries = [entry for entry in self.part.entries if entry.key == "build"]
        return next((entry for entry in entries if entry.value.entries), entries[0] if entries else None)

    @property
    def settings(self) -> tuple[Entry, ...]:
        """The entries of its section `build`."""
        return self.build.value.entries if self.build is not None else ()

    def sections(self, section: str | None = None) -> Iterator[Entry]:
        """The sections of its requirements, or one of them; a plain list of requirements is its section `run`."""
        wanted = SECTIONS if section is None else (section,)
        for entry in self.part.entries:
            if entry.key == "requirements":
                if entry.value.kind == "sequence" and "run" in wanted:
                    yield entry
                yield from (own for own in entry.value.entries if own.key in wanted)

    def section(self, name: str) -> Entry | None:
        """A section of its requirements that is written as one."""
        return next((entry for entry in self.sections(name) if entry.key == name), None)

    def requirements(self, section: str) -> Iterator[tuple[Part, Part]]:
        """The requirements of a section, each with the item of the list that it stands in."""
        entry = self.section(section)
        for item in entry.value.items if entry is not None else ():
            yield from ((leaf, item) for leaf in item.leaves)

    def names(self, section: str) -> set[str]:
        """The packages that a section requires."""
        return {name_of(leaf.text) for leaf, _ in self.requirements(section)}

    @cached_property
    def compilers(self) -> dict[str, Part]:
        """Its compilers by language, `stdlib` among them, each with the item of the list that it stands in."""
        by_language: dict[str, Part] = {}
        for leaf, item in self.requirements("build"):
            match = _COMPILER.match(leaf.text)
            if match:
                by_language["stdlib" if "stdlib(" in match[0] else match[1]] = item
        return by_language

    @property
    def compiles(self) -> bool:
        """Whether it has a compiler of the languages that call CUDA."""
        return any(language.removeprefix("m2w64_") in {"c", "cxx", "fortran", "rust"} for language in self.compilers)

    @property
    def is_noarch(self) -> bool:
        """Whether its package is for all platforms."""
        return any(entry.key == "noarch" for entry in self.settings)

    @property
    def is_python(self) -> bool:
        """Whether there is a build for each Python, rather than one for several through the stable ABI."""
        one_for_several = any(entry.key == "python_version_independent" for entry in self.settings) or any(
            "version_independent" in entry.value.members for entry in self.settings if entry.key == "python"
        )
        return not self.is_noarch and not one_for_several and "python" in self.names("host")

    @property
    def fills_its_package(self) -> bool:
        """Whether something puts files into its package: a script, a list of files, a build shared with others."""
        return any(entry.key in _FILLING for entry in (*self.part.entries, *self.settings))

    @cached_property
    def exact_pins(self) -> set[str]:
        """The outputs of which it requires exactly the build made with it."""
        return {name for section in ("host", "run") for name in self._pins(section, conditional=True)}

    @property
    def pins_everywhere(self) -> set[str]:
        """The outputs that it pins so in `run` on every platform."""
        return self._pins("run", conditional=False)

    def _pins(self, section: str, *, conditional: bool) -> set[str]:
        names = set()
        for leaf, item in self.requirements(section):
            match = _EXACT_PIN.search(leaf.text)
            always = leaf is item and not self.document.selector_of(leaf)
            if match and (conditional or always):
                names.add(expand(self.document, f"{{{{ {match[1]} }}}}", {}) or match[1])
        return names


def recipe_of(document: Document) -> Owner | None:
    """The recipe itself; None for a file without content."""
    return None if document.root is None else Owner(document, document.root, "recipe")


def outputs_of(document: Document) -> list[Owner]:
    """The outputs and stages of a recipe that lists some; an item `if` with outputs in its branches is one of them."""
    return [
        Owner(document, item, "stage" if "staging" in item.members else "output")
        for entry in document.entries("outputs")
        for item in entry.value.items
    ]


def owners_of(document: Document) -> list[Owner]:
    """The recipe itself, its outputs and its stages."""
    recipe = recipe_of(document)
    return [] if recipe is None else [recipe, *outputs_of(document)]


def requirement_lists(document: Document) -> Iterator[Part]:
    """The lists of requirements of the recipe and its outputs."""
    for owner in owners_of(document):
        yield from (entry.value for entry in owner.sections() if entry.value.kind == "sequence")


def name_of(requirement: str) -> str:
    """The package that a requirement names: `numpy` of `numpy >=2`, `cuda` of `{{ compiler('cuda') }}`.

    >>> name_of("{{ pin_subpackage('libfoo', exact=True) }}")
    'libfoo'
    """
    match = _CALL.match(requirement)
    return match[2] if match else requirement.split(" ")[0].split("::")[-1].lower()


def written_sources(document: Document) -> list[Part]:
    """The sources of a recipe as mappings, in the order of the recipe, but for folders beside it."""

    def within(part: Part) -> Iterator[Part]:
        if addresses_of(part):
            yield part
        for inner in (*part.items, *(entry.value for entry in part.entries if entry.key in {"then", "else"})):
            yield from within(inner)

    keys = (("source",), ("outputs", "*", "source"))
    return [source for own in keys for entry in document.entries(*own) for source in within(entry.value)]


def addresses_of(source: Part) -> list[Entry]:
    """The entries of a source that say which content it has, besides its hash."""
    return [entry for entry in source.entries if entry.key in _ADDRESSES]
