"""The tests of a `recipe.yaml`."""

from __future__ import annotations

from collections.abc import Sequence

from feedstock_tools.to_v1.layout import Dict, Item, Key, List, Scalar
from feedstock_tools.to_v1.requirements import Given, items_of, requirement_items
from feedstock_tools.to_v1.template.conditions import NEVER, When, without
from feedstock_tools.to_v1.template.statements import Problem
from feedstock_tools.to_v1.tree import Mapped, Node
from feedstock_tools.to_v1.values import choices, listed, template

_KNOWN_TESTS = frozenset({"imports", "commands", "requires", "files", "source_files", "downstreams", "script"})
_RUNS = {"run_test.py": "python run_test.py", "run_test.sh": "bash ./run_test.sh", "run_test.bat": "call run_test.bat"}


def tests_of(
    nodes: Sequence[Node], outer: When, given: Given, problems: list[Problem], *, files: bool = False
) -> List | None:
    """The tests of an output.

    Args:
        files: whether to add tests in files such as `run_test.py`, which conda-build finds beside the recipe.
    """
    sections = [node for node in nodes if isinstance(node, Mapped)]
    items: list[Item] = []
    for section in sections:
        when = without(section.when, outer)
        items += _tests_in(section, (*outer, *when), when, given, problems)
    if files:
        items += _run_tests(given)
    return List(tuple(items)) if items else None


def _tests_in(section: Mapped, outer: When, when: When, given: Given, problems: list[Problem]) -> list[Item]:
    requires = requirement_items(listed(section.all("requires")), outer, given, problems)
    imports = items_of(section.all("imports"), outer)
    commands = items_of(section.all("commands"), outer)
    notes = {name: _comments(section, name) for name in _KNOWN_TESTS}
    for script_when, text in choices(section.all("script"), outer):
        commands = (*commands, Item(Scalar(template(_RUNS.get(text, text))), script_when))
    needs = [item for item in requires if item.when or item.value != Scalar("pip")]
    items = []
    if imports and needs:
        written = tuple(_import(item) for item in imports)
        commands, imports = (*written, *commands), ()
    if imports:
        python = Dict(
            (Key("imports", List(imports), notes["imports"]), Key("pip_check", Scalar("false", literal=True)))
        )
        items.append(Item(Dict((Key("python", python),)), when))
    if commands:
        keys = [Key("script", List(commands), notes["commands"])]
        if requires:
            keys.append(Key("requirements", Dict((Key("run", List(requires), notes["requires"]),))))
        folders = [Key("recipe", List(items_of(section.all("files"), outer)), notes["files"])]
        folders += [Key("source", List(items_of(section.all("source_files"), outer)), notes["source_files"])]
        folders = [key for key in folders if isinstance(key.value, List) and key.value.items]
        if folders:
            keys.append(Key("files", Dict(tuple(folders))))
        items.append(Item(Dict(tuple(keys)), when))
    for item in items_of(section.all("downstreams"), outer):
        items.append(Item(Dict((Key("downstream", item.value),)), (*when, *item.when), item.comments, item.remark))
    for name, value in section.entries:
        if name not in _KNOWN_TESTS and value.when != NEVER and (listed([value]) or isinstance(value, Mapped)):
            problems.append(Problem(value.line, f"'test: {name}' has no equivalent in a recipe.yaml"))
    return items


def _comments(section: Mapped, name: str) -> tuple[str, ...]:
    return tuple(line for node in section.all(name) for line in node.comments)


def _import(item: Item) -> Item:
    """An import as a command: tests of `python` get no requirements of their own."""
    assert isinstance(item.value, Scalar)  # noqa: S101 - imports are texts
    return Item(Scalar(f'python -c "import {item.value.text}"'), item.when, item.comments, item.remark)


def _run_tests(given: Given) -> list[Item]:
    """The tests in files that conda-build runs by default."""
    items = []
    for name, command in _RUNS.items():
        if name in given.files:
            when = {"run_test.sh": ("unix",), "run_test.bat": ("win",)}.get(name, ())
            files = Dict((Key("recipe", List((Item(Scalar(name)),))),))
            items.append(Item(Dict((Key("script", List((Item(Scalar(command)),))), Key("files", files))), when))
    return items
