"""Requirements of a recipe, by section and output, with selectors or branches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from feedstock_tools.edit.writing import added_entry, added_item, quoted_like, removed_entry, removed_items, replaced
from feedstock_tools.errors import InputError
from feedstock_tools.recipe.written.document import Document, Entry, Part, TextEdit
from feedstock_tools.recipe.written.owners import SECTIONS, Owner, name_of, outputs_of, owners_of

#: Keys that stand above the requirements.
_ABOVE = frozenset({"name", "version", "package", "source", "build", "script"})


@dataclass(frozen=True, slots=True)
class Where:
    """Which requirements: those of a section, of an output, and under a condition; None stands for any.

    `condition` is a selector of a `meta.yaml`, or the `if` of a `recipe.yaml`.
    """

    section: str | None = None
    output: str | None = None
    condition: str | None = None


def add_requirement(document: Document, requirement: str, where: Where) -> Document:
    """Add a `requirement` to a section, which `where` must name, of one output or of the recipe of `document` itself.

    Raises:
        InputError: there is no such section or output, or it has this requirement already.

    >>> recipe = Document(Path("meta.yaml"), "requirements: {run: [python]}")
    >>> add_requirement(recipe, "numpy >=2", Where("run")).text
    'requirements: {run: [python, numpy >=2]}'
    """
    if where.section is None:
        raise InputError("a requirement is added to one section", hint=f"Expected one of {', '.join(SECTIONS)}.")
    owners = _owners(document, where.output)
    if not owners:
        raise _no_output(document, f"the recipe has no output '{where.output}'")
    if where.output is None and len(owners) > 1 and not any(owners[0].sections()):
        raise _no_output(document, "only the outputs of the recipe have requirements")
    owner = owners[0] if where.output is None else owners[-1]  # the recipe may have the name of its output
    lists = [entry.value for entry in owner.sections(where.section) if entry.value.items]
    if any(_has(document, list_, requirement, where.condition) for list_ in lists):
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
    removed: dict[Entry, list[Part]] = {}
    for entry, item in _named(document, name_of(requirement), where):
        removed.setdefault(entry, []).append(item)
    if not removed:
        raise _missing(document, requirement)
    changes: list[TextEdit] = []
    for entry, items in removed.items():
        is_whole = len(items) == len(entry.value.items)
        changes += removed_entry(document, entry) if is_whole else removed_items(document, entry.value, items)
    return document.changed(changes)


def pin_requirement(document: Document, requirement: str, where: Where) -> Document:
    """Give the requirements of a package the version constraint of `requirement`; none removes it.

    Raises:
        InputError: no requirement of `document` that `where` includes names the package, or functions such as
            pin_subpackage make all of them.

    >>> pin_requirement(Document(Path("meta.yaml"), "requirements: {run: [numpy >=2]}"), "numpy >=3", Where()).text
    'requirements: {run: [numpy >=3]}'
    """
    constraint = requirement.partition(" ")[2]
    name = name_of(requirement)
    leaves = [leaf for _, item in _named(document, name, where) for leaf in item.leaves if name_of(leaf.text) == name]
    plain = [leaf for leaf in leaves if not leaf.text.startswith(("{{", "${{"))]
    if not plain:
        raise _missing(document, name)
    changes = []
    for item in plain:
        words = item.text.split(" ")
        changes += replaced(document, item, " ".join([words[0], constraint]).strip())
    return document.changed(changes)


def limit_requirement(document: Document, requirement: str, where: Where) -> Document:
    """Limit the requirements of the package that `requirement` names to the condition of `where`, besides any that they
    have already: with a selector in a `meta.yaml`, with a branch in a `recipe.yaml`.

    Raises:
        InputError: `where` has no condition, no requirement of `document` that it includes names the package, or one is
            in a list in brackets.

    >>> text = "requirements:\\n  run:\\n    - numba  # [linux]\\n"
    >>> limit_requirement(Document(Path("meta.yaml"), text), "numba", Where(condition="py<39")).text.splitlines()[-1]
    '    - numba  # [linux and py<39]'
    """
    if where.condition is None:
        raise InputError("a requirement is limited to a condition", hint="Expected --if CONDITION.")
    name, anywhere = name_of(requirement), replace(where, condition=None)
    named = list(_named(document, name, anywhere))
    single_branches = list(_single_branches(document, name, anywhere))
    if not named and not single_branches:
        raise _missing(document, name)
    changes: list[TextEdit] = []
    for entry, item in named:
        if entry.value.is_flow:
            raise document.mistake("a list in brackets has no place for a condition", item)
        changes += _limited(document, entry.value, item, where.condition)
    for branch in single_branches:
        lead = f"{document.newline}{' ' * (document.column_of(branch.start) + 2)}"
        text = f"{lead}- if: {quoted_like(None, where.condition)}{lead}  then: "
        start = branch.value.start
        changes.append(TextEdit(start - (document.text[start - 1] == " "), start, text))
    return document.changed(changes)


def _single_branches(document: Document, name: str, where: Where) -> Iterator[Entry]:
    """The branches that are a requirement of the package, without a list, beside another branch."""
    for owner in _owners(document, where.output):
        for entry in owner.sections(where.section):
            branched = [item for item in entry.value.items if {"then", "else"} <= item.members.keys()]
            yield from (
                branch
                for item in branched
                for branch in item.entries
                if branch.key in {"then", "else"}
                and branch.value.kind == "scalar"
                and name_of(branch.value.text) == name
            )


def _limited(document: Document, list_: Part, item: Part, condition: str) -> list[TextEdit]:
    """Limit one item of a list, or the only one of a branch, to a condition."""
    if not document.has_templates:
        branch = item.members.get("if")
        if branch is not None:
            return replaced(document, branch, _both(branch.text, condition))
        lead = document.newline + " " * document.column_of(item.start)
        return [TextEdit(item.start, item.start, f"if: {quoted_like(None, condition)}{lead}then: ")]
    selector = document.selector_of(item)
    if selector:
        start = document.text.index(selector, item.end)
        return [TextEdit(start, start + len(selector), _both(selector, condition))]
    comment = document.comment_after(item)
    if comment:
        start = document.text.index(comment, item.end)
        return [TextEdit(start, start + 1, f"# [{condition}]")]
    columns = {
        document.column_of(document.text.index("#", other.end)) for other in list_.items if document.selector_of(other)
    }
    space = max(2, (columns.pop() if len(columns) == 1 else 0) - document.column_of(item.end))
    return [TextEdit(item.end, item.end, f"{' ' * space}# [{condition}]")]


def _both(first: str, second: str) -> str:
    return " and ".join(f"({part})" if re.search(r"\bor\b", part) else part for part in (first, second))


def _named(document: Document, name: str, where: Where) -> Iterator[tuple[Entry, Part]]:
    """The requirements of a package, each with its section or branch; a branch that holds nothing else is one."""
    for owner in _owners(document, where.output):
        for entry in owner.sections(where.section):
            if entry.value.kind != "sequence":
                continue
            yield from _named_in(document, entry, name.lower(), where.condition)


def _named_in(document: Document, entry: Entry, name: str, condition: str | None) -> Iterator[tuple[Entry, Part]]:
    for item in entry.value.items:
        fits = condition is None or document.selector_of(item) == condition
        if item.kind == "scalar" and name_of(item.text) == name and fits:
            yield entry, item
        branches = {branch.key: branch for branch in item.entries}
        if "then" not in branches or (condition is not None and branches["if"].value.text != condition):
            continue
        then = branches["then"].value
        if "else" not in branches and all(name_of(part.text) == name for part in then.items or (then,)):
            yield entry, item
            continue
        for branch in (branches[key] for key in branches if key in {"then", "else"}):
            yield from _named_in(document, branch, name, None)


def _owners(document: Document, output: str | None) -> list[Owner]:
    """The recipe itself, and its outputs; if `output` is given, only those with this name."""
    owners = [owner for owner in owners_of(document) if owner.kind != "stage" or output is None]
    return owners if output is None else [owner for owner in owners if owner.is_called(output)]


def _has(document: Document, list_: Part, requirement: str, condition: str | None) -> bool:
    """Whether a list has a requirement under a condition; without one, in any of its branches or lines."""
    for item in list_.items:
        own = item.members["if"].text if "if" in item.members else document.selector_of(item)
        if condition in {None, own} and any(leaf.text == requirement for leaf in item.leaves):
            return True
    return False


def _added(document: Document, list_: Part, requirement: str, condition: str | None) -> list[TextEdit]:
    text = quoted_like(None, requirement) if not requirement.startswith("{{") else requirement
    if condition is None:
        return added_item(document, list_, text)
    if document.has_templates:
        return added_item(document, list_, text, f"# [{condition}]")
    column = document.column_of(list_.items[0].start)
    return added_item(document, list_, f"if: {condition}{document.newline}{' ' * column}then: {text}")


def _new_section(document: Document, owner: Owner, where: Where, requirement: str) -> list[TextEdit]:
    """A section with one requirement, below the others or in a new mapping of requirements."""
    section = where.section or "run"
    item = f"- {requirement}" + (f"  # [{where.condition}]" if where.condition and document.has_templates else "")
    lines = [f"  {item}"]
    if where.condition and not document.has_templates:
        lines = [f"  - if: {where.condition}", f"    then: {requirement}"]
    for entry in owner.part.entries:
        if entry.key == "requirements" and entry.value.entries:
            earlier = [sibling for sibling in entry.value.entries if section_rank(sibling.key) < section_rank(section)]
            return added_entry(document, entry.value, section, lines, earlier[-1] if earlier else None)
    above = [entry for entry in owner.part.entries if entry.key in _ABOVE]
    if not above:
        names = ", ".join(sorted(_ABOVE))
        raise document.mistake("nothing here has a place for requirements", owner.part, f"Expected one of {names}.")
    return added_entry(
        document, owner.part, "requirements", [f"  {section}:", *(f"  {line}" for line in lines)], above[-1]
    )


def section_rank(section: str) -> int:
    """The place of a section among the others of requirements."""
    return SECTIONS.index(section) if section in SECTIONS else len(SECTIONS)


def _missing(document: Document, name: str) -> InputError:
    return document.mistake(f"no matching requirement names '{name}'")


def _no_output(document: Document, message: str) -> InputError:
    outputs = [output for output in outputs_of(document) if output.kind == "output"]
    names = sorted({output.written_names[0] for output in outputs if output.written_names} - {""})
    return document.mistake(message, hint=f"Name one with --of: {', '.join(names)}." if names else None)
