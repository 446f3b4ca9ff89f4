"""The pictures in docs/architecture.md match the imports, and modules that the documentation names exist."""

import functools
import re
import tomllib
from pathlib import Path

import pytest

from maintenance import architecture
from tests.support.paths import ROOT

PACKAGE = ROOT / "feedstock_tools"
IMPORTS = functools.cache(architecture.imports_of)
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]


def test_the_pictures_are_drawn_from_the_imports_of_today(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(architecture, "imports_of", IMPORTS)
    page = architecture.PAGE.read_text(encoding="utf-8")
    assert architecture.updated(page) == page, "run: python -m maintenance.architecture"


def test_every_room_imports_only_rooms_below_it_in_the_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(each["layers"] for each in contracts if "feedstock_tools.cli" in each.get("layers", ()))
    depth = {
        room.strip().removeprefix("feedstock_tools."): at
        for at, layer in enumerate(layers)
        for room in layer.split("|")
    }
    graph = architecture.rooms_of(IMPORTS(PACKAGE))
    assert graph.number_of_edges() > 40
    assert [edge for edge in graph.edges if depth.get(edge[0], -1) > depth.get(edge[1], len(layers))] == []


#: Rooms with one door.
PRODUCTS = architecture.products()


def test_products_are_loaded_by_the_commands_that_need_them_alone() -> None:
    assert {"enable_gpu", "importing", "to_v1"} == PRODUCTS
    assert architecture.products("builds") == {"fleet", "stand_in"}
    eager = {
        name
        for name, targets in IMPORTS(PACKAGE).items()
        if name.partition(".")[0] not in PRODUCTS
        for target, at_top in targets.items()
        if at_top and target.partition(".")[0] in PRODUCTS
    }
    assert not eager


def package(folder: Path, **modules: str) -> Path:
    """A package named feedstock_tools with these modules; `__` in a name stands for a folder."""
    top = folder / "feedstock_tools"
    for name, text in modules.items():
        path = top.joinpath(*name.split("__")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        (path.parent / "__init__.py").touch()
    (top / "__init__.py").touch()
    return top


def test_imports_count_wherever_they_stand(tmp_path: Path) -> None:
    text = """
from typing import TYPE_CHECKING
import feedstock_tools.ground
from feedstock_tools.low import first
if TYPE_CHECKING:
    from feedstock_tools.low.second import Second
def later():
    from feedstock_tools import lazy
    import feedstock_tools.low.third as third
LATER = "feedstock_tools.low.fourth"  # the name of a process
"""
    modules = dict.fromkeys(("low__first", "low__second", "low__third", "low__fourth", "lazy__one", "ground"), "")
    found = architecture.imports_of(package(tmp_path, high__top=text, **modules))
    assert found["high.top"] == {
        "ground": True,
        "low.first": True,
        "low.second": False,
        "lazy": False,
        "low.third": False,
    }


def test_a_picture_leaves_out_what_follows_and_dots_what_comes_later(tmp_path: Path) -> None:
    lazy = "def later():\n    import feedstock_tools.b.one\n"
    made = package(
        tmp_path, a__one="import feedstock_tools.b.one, feedstock_tools.c.one", b__one="import feedstock_tools.c.one",
        c__one="", d__one=lazy,
    )  # fmt: skip
    graph = architecture.rooms_of({name: found for name, found in architecture.imports_of(made).items() if "." in name})
    assert {line.strip() for line in architecture.mermaid(graph).splitlines() if ">" in line} == {
        "a --> b",
        "b --> c",
        "d -.-> b",
    }
    assert "| `a` | first | b, c |" in architecture.table(graph, {"a": "first", "b": "", "c": "", "d": ""})


def test_a_circle_of_rooms_cannot_be_drawn(tmp_path: Path) -> None:
    made = package(tmp_path, a__one="import feedstock_tools.b.one", b__one="def f():\n    import feedstock_tools.a.one")
    graph = architecture.rooms_of({name: found for name, found in architecture.imports_of(made).items() if "." in name})
    with pytest.raises(ValueError, match=r"rooms import each other: (a → b|b → a)"):
        architecture.drawn(graph)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_modules_that_the_documentation_names_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    missing = []
    for name in re.findall(r"`([\w/.-]+/[\w.-]*\.py|[a-z_]+/[a-z_0-9/]*)`", text):
        if name.endswith(".py") or (PACKAGE / name.split("/")[0]).is_dir():
            tries = [ROOT / name, PACKAGE / name]
            missing += [] if any(path.exists() for path in tries) else [name]
    for name in re.findall(r"\bfeedstock_tools(?:\.[a-z_0-9]+)+", text):
        parts = name.split(".")[1:]
        places = [PACKAGE.joinpath(*parts[:end]) for end in (len(parts), len(parts) - 1)]
        missing += [] if any(path.is_dir() or path.with_suffix(".py").exists() for path in places) else [name]
    assert missing == []
