"""Requirements of a recipe, by section and output, with selectors or branches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from feedstock_tools.edit.document import Change, Document, Entry, Part
from feedstock_tools.edit.writing import added_entry, added_item, quoted_like, removed_entry, removed_item, replaced
from feedstock_tools.errors import InputError

__all__ = ["Where", "add_requirement", "drop_requirement", "name_of", "pin_requirement"]

#: What stands above the requirements.
_ABOVE = frozenset({"name", "version", "package", "source", "build", "script"})
_SECTIONS = ("build", "host", "run", "run_constrained", "run_constraints")
#: The entry of a section or branch, its list, and an item of it.
Found = tuple[Entry, Part, Part]
_CALL = re.compile(r"""\$?\{\{-?\s*(\w+)\(\s*['"]([^'"]+)['"].*\}\}""")


@dataclass(frozen=True, slots=True)
class Where:
    """Which requirements: of a section, an output, and under a condition; None: of any.

    `condition` is a selector of a `meta.yaml`, or the `if` of a `recipe.yaml`.
    """

    section: str | None = None
    output: str | None = None
    condition: str | None = None


def name_of(requirement: str) -> str:
    """The package that a requirement names: `numpy` of `numpy >=2`, `cuda` of `{{ compiler('cuda') }}`.

    >>> name_of("{{ pin_subpackage('libfoo', exact=True) }}")
    'libfoo'
    """
    match = _CALL.match(requirement)
    return match[2] if match else requirement.split(" ")[0].split("::")[-1].lower()


def add_requirement(document: Document, requirement: str, where: Where) -> Document:
    """Add a `requirement` to a section, which `where` must name, of one output or of the recipe of `document` itself.

    Raises:
        InputError: there is no such section or output, or it has this requirement already.

    >>> recipe = Document(Path("meta.yaml"), "requirements: {run: [python]}")
    >>> add_requirement(recipe, "numpy >=2", Where("run")).text
    'requirements: {run: [python, numpy >=2]}'
    """
    if where.section is None:
        raise InputError("a requirement is added to one section", hint=f"Expected one of {', '.join(_SECTIONS)}.")
    owners = list(_owners(document, where.output))
    if not owners:
        raise _no_output(document, f"the recipe has no output '{where.output}'")
    if where.output is None and len(owners) > 1 and not any(_sections(owners[0], None)):
        raise _no_output(document, "only the outputs of the recipe have requirements")
    owner = owners[0]
    lists = list(_lists(owner, where.section))
    if any(item.text == requirement for list_ in lists for item, _ in _leaves(list_) if item.kind == "scalar"):
        raise document.mistake(f"{where.section} has '{requirement}' already", lists[0])
    if lists:
        return document.changed(_added(document, lists[0], requirement, where.condition))
    return document.changed(_new_section(document, owner, where, requirement))


def drop_requirement(document: Document, requirement: str, where: Where) -> Document:
    """Remove the requirements of the package that `requirement` names; a section that becomes empty goes too.

    Raises:
        InputError: no requirement of `document` that `where` includes names it.

    >>> drop_requirement(Document(Path("meta.yaml"), "requirements: {run: [python, numpy >=2]}"), "numpy", Where()).text
    'requirements: {run: [python]}'
    """
    found = list(_named(document, name_of(requirement), where))
    if not found:
        raise _missing(document, requirement)
    changes: list[Change] = []
    for entry, list_, _ in found:
        gone = [item for _, of, item in found if of is list_]
        if len(gone) == len(list_.items):
            changes += removed_entry(document, entry)
        else:
            changes += [change for item in gone for change in removed_item(document, list_, item)]
    return document.changed(changes)


def pin_requirement(document: Document, requirement: str, where: Where) -> Document:
    """Give the requirements of a package the version constraint of `requirement`; none removes it.

    Raises:
        InputError: no requirement of `document` that `where` includes names the package, or all are made by functions
            such as pin_subpackage.

    >>> pin_requirement(Document(Path("meta.yaml"), "requirements: {run: [numpy >=2]}"), "numpy >=3", Where()).text
    'requirements: {run: [numpy >=3]}'
    """
    name, _, constraint = requirement.partition(" ")
    items = [part for _, _, item in _named(document, name_of(requirement), where) for part in _texts(item)]
    plain = [item for item in items if not _CALL.match(item.text)]
    if not plain:
        raise _missing(document, name)
    changes = []
    for item in plain:
        words = item.text.split(" ")
        changes += replaced(document, item, " ".join([words[0], constraint]).strip())
    return document.changed(changes)


def _named(document: Document, name: str, where: Where) -> Iterator[Found]:
    """The entries, lists and items of a package's requirements; an item may be a branch that holds it alone."""
    for owner in _owners(document, where.output):
        for entry in _sections(owner, where.section):
            if entry.value.kind != "sequence":
                continue
            yield from _named_in(document, entry, name.lower(), where.condition)


def _named_in(document: Document, entry: Entry, name: str, condition: str | None) -> Iterator[Found]:
    list_ = entry.value
    for item in list_.items:
        fits = condition is None or document.selector_of(item) == condition
        if item.kind == "scalar" and name_of(item.text) == name and fits:
            yield entry, list_, item
        branches = {each.key: each for each in item.entries}
        if "then" not in branches or (condition is not None and branches["if"].value.text != condition):
            continue
        for branch in (branches["then"], branches.get("else")):
            if branch is None:
                continue
            if branch.value.kind == "scalar" and name_of(branch.value.text) == name and "else" not in branches:
                yield entry, list_, item
            elif branch.value.kind == "sequence":
                yield from _named_in(document, branch, name, None)


def _owners(document: Document, output: str | None) -> Iterator[Part]:
    """The recipe itself, and its outputs; those with a name if one is given."""
    root = document.root
    if root is None:
        return
    names = [
        entry.value.text for keys in (("package", "name"), ("recipe", "name")) for entry in document.entries(*keys)
    ]
    if output is None or output in names:
        yield root
    for entry in document.entries("outputs"):
        for item in entry.value.items:
            own = {each.key: each.value for each in item.entries}
            package = {each.key: each.value for each in own["package"].entries} if "package" in own else own
            if output is None or ("name" in package and package["name"].text == output):
                yield item


def _sections(owner: Part, section: str | None) -> Iterator[Entry]:
    wanted = _SECTIONS if section is None else (section,)
    for entry in owner.entries:
        if entry.key == "requirements":
            if entry.value.kind == "sequence" and "run" in wanted:
                yield entry
            yield from (each for each in entry.value.entries if each.key in wanted)


def _lists(owner: Part, section: str) -> Iterator[Part]:
    return (entry.value for entry in _sections(owner, section) if entry.value.items)


def _leaves(list_: Part) -> Iterator[tuple[Part, Part]]:
    for item in list_.items:
        yield item, list_
        for entry in item.entries:
            if entry.key in {"then", "else"}:
                yield from _leaves(entry.value) if entry.value.kind == "sequence" else iter(((entry.value, item),))


def _added(document: Document, list_: Part, requirement: str, condition: str | None) -> list[Change]:
    text = quoted_like(None, requirement) if not requirement.startswith("{{") else requirement
    if condition is None:
        return added_item(document, list_, text)
    if document.has_templates:
        return added_item(document, list_, text, f"# [{condition}]")
    column = document.column_of(list_.items[0].start)
    return added_item(document, list_, f"if: {condition}{document.newline}{' ' * column}then: {text}")


def _texts(item: Part) -> list[Part]:
    """The requirement that an item is, or that its branch holds."""
    return [item] if item.kind == "scalar" else [entry.value for entry in item.entries if entry.key == "then"]


def _new_section(document: Document, owner: Part, where: Where, requirement: str) -> list[Change]:
    """A section with one requirement, below the others or in a new mapping of requirements."""
    section = where.section or "run"
    item = f"- {requirement}" + (f"  # [{where.condition}]" if where.condition and document.has_templates else "")
    lines = [f"  {item}"]
    if where.condition and not document.has_templates:
        lines = [f"  - if: {where.condition}", f"    then: {requirement}"]
    for entry in owner.entries:
        if entry.key == "requirements" and entry.value.entries:
            before = [each for each in entry.value.entries if _rank(each.key) < _rank(section)]
            after = before[-1] if before else entry.value.entries[-1]
            return added_entry(document, entry.value, section, lines, after)
    above = [entry for entry in owner.entries if entry.key in _ABOVE]
    return added_entry(document, owner, "requirements", [f"  {section}:", *(f"  {line}" for line in lines)], above[-1])


def _rank(section: str) -> int:
    return _SECTIONS.index(section) if section in _SECTIONS else len(_SECTIONS)


def _missing(document: Document, name: str) -> InputError:
    return document.mistake(f"no requirement that fits names '{name}'")


def _no_output(document: Document, message: str) -> InputError:
    paths = (("outputs", "*", "name"), ("outputs", "*", "package", "name"))
    names = sorted({entry.value.text for keys in paths for entry in document.entries(*keys)})
    return document.mistake(message, hint=f"Name one with --of: {', '.join(names)}." if names else None)
