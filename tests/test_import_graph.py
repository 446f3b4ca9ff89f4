"""The modules of the package import each other without a circle, and folders stay small enough to read."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import networkx as nx

import feedstock_tools

PACKAGE = Path(feedstock_tools.__file__).parent
#: A statement that may import a module of the package: to parse these takes a tenth of the time of parsing all.
_IMPORT = re.compile(
    r"^[ \t]*((?:from[ ]+(?:feedstock_tools|\.)[\w.]*[ ]+import[ ]+(?:\([^)]*\)|.*))|import[ ]+feedstock_tools.*)$",
    re.MULTILINE,
)


def _modules() -> dict[str, Path]:
    paths = sorted(PACKAGE.rglob("*.py"))
    return {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path for path in paths}


def _imported(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """The modules of the package that a file imports anywhere: at the top, in functions, and for types alone."""
    for statement in _IMPORT.findall(path.read_text(encoding="utf-8")):
        (node,) = ast.parse(statement).body
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            yield from (_module(f"{node.module}.{alias.name}", known) or "" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (_module(alias.name, known) or "" for alias in node.names)


def _module(name: str, known: dict[str, Path]) -> str | None:
    """The module that a dotted name means: itself, the one that defines it, or a package's `__init__`."""
    for candidate in (name, name.rpartition(".")[0]):
        if candidate in known:
            return candidate
        if f"{candidate}.__init__" in known:
            return f"{candidate}.__init__"
    return None


def test_no_modules_import_each_other_in_a_circle() -> None:
    known = _modules()
    graph: nx.DiGraph[str] = nx.DiGraph()
    for name, path in known.items():
        graph.add_edges_from((name, other) for other in _imported(path, known) if other and other != name)
    assert graph.number_of_edges() > len(known)
    assert [sorted(circle) for circle in nx.strongly_connected_components(graph) if len(circle) > 1] == []


def test_gpu_code_knows_only_the_ground_bounds_conditions_and_channels() -> None:
    known = _modules()
    rooms = {f"feedstock_tools.{room}" for room in ("gpu_code", "channel", "conditions", "bounds", "files")}
    for name, path in known.items():
        if name.startswith("feedstock_tools.gpu_code."):
            folders = {".".join(other.split(".")[:2]) for other in _imported(path, known) if other.count(".") > 1}
            assert folders <= rooms, name


def test_no_folder_has_more_than_sixteen_modules() -> None:
    """The command line has a module for each of its subjects and is left aside."""
    counts = Counter(path.parent for path in _modules().values() if path.stem not in ("__init__", "__main__"))
    large = {str(folder.relative_to(PACKAGE)): count for folder, count in counts.items() if count > 16}
    large.pop("cli", None)
    assert large == {}


#: Calls of PyYAML that read; its `dump`, `safe_dump` and `serialize` write.
_READING = {"compose", "compose_all", "load", "load_all", "safe_load", "safe_load_all", "parse", "scan"}
#: conda-smithy reads the section `about` with ruamel.yaml (YAML 1.2, the first of equal keys), and READMEs show it;
#: a spec, once it is checked, is changed and written back with its comments.
_WITH_RUAMEL = {"feedstock_tools.importing.updating", "feedstock_tools.rerender.smithy.readme"}


def test_yaml_is_composed_in_one_room() -> None:
    """Bounds and places are the same for every file, because there is one reader."""
    for name, path in _modules().items():
        text = path.read_text(encoding="utf-8")
        if not re.search(r"\byaml\.|\bruamel\b", text):
            continue
        tree = ast.parse(text)
        readers = {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "yaml"
            and (node.attr in _READING or node.attr.endswith("Loader"))
        }
        imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        if not name.startswith(("feedstock_tools.yaml_reading.", "feedstock_tools.edit.")):
            assert not readers, f"{name} reads YAML past feedstock_tools.yaml_reading"
            assert name in _WITH_RUAMEL or not any(module.split(".")[0] == "ruamel" for module in imported), (
                f"{name} imports ruamel"
            )
