"""Draw the rooms of the package from its imports, into docs/architecture.md.

    python -m maintenance.architecture    write the pictures and tables between their marks

Every import counts: at the top of a module, inside a function, and for type checkers only. Starting a module by
name, as a separate process, is not an import.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

import networkx as nx

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "feedstock_tools"
PAGE = ROOT / "docs" / "architecture.md"
#: The modules at the top of the package that are not ground, and the rooms that they count as.
TOP_MODULES = {"__main__": "cli", "__init__": "ground", "api": "api"}
GROUND = "Small modules that every room may use"
API = "Each step of the data flow as one function"

#: Parts of a tree that are statements, or hold some.
_WITH_STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)
#: Module -> the modules that it imports, each with whether an import at its top does so.
Imports = Mapping[str, Mapping[str, bool]]


def imports_of(package: Path) -> Imports:
    """The imports between the modules of a package.

    Args:
        package: the folder of the package. Modules are named from there: `rerender.rules`, and `rerender` for
            `rerender/__init__.py`.
    """
    known = {_name(path.relative_to(package)): path for path in sorted(package.rglob("*.py"))}
    return {name: _imports(path, package.name, known) for name, path in known.items()}


def _name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def _imports(path: Path, package: str, known: Mapping[str, Path]) -> dict[str, bool]:
    """The modules that a file imports; true where one of its imports runs when the file is imported."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found: dict[str, bool] = {}
    for node, at_top in _statements(tree, at_top=True):
        for dotted in _imported_names(node):
            name = _known(dotted, package, known)
            if name:
                found[name] = found.get(name, False) or at_top
    return found


def _statements(node: ast.AST, at_top: bool) -> Iterator[tuple[ast.AST, bool]]:
    """Every statement of a tree, with whether it runs when the module is imported."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _WITH_STATEMENTS):  # expressions are most of a tree, and import nothing
            later = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) or _is_type_checking(child)
            yield child, at_top
            yield from _statements(child, at_top and not later)


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def _imported_names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        if node.level:
            raise ValueError(f"a relative import: {ast.unparse(node)}")
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _known(dotted: str, package: str, known: Mapping[str, Path]) -> str | None:
    """The module of the package that a dotted name means: itself, or the one that defines it."""
    top, _, name = dotted.partition(".")
    if top != package:
        return None
    for candidate in (name, name.rpartition(".")[0]):
        if candidate in known:
            return candidate
    return "__init__"


def rooms_of(imports: Imports, within: str = "") -> nx.DiGraph[str]:
    """The rooms of the package, or of one of its rooms, as a graph: an edge from each to those that it imports.

    Args:
        imports: as returned by `imports_of`.
        within: the room whose inner rooms to return, such as `builds`; empty for those of the package.

    The attribute `at_top` of an edge says whether any of its imports runs when a module is imported.
    """
    graph: nx.DiGraph[str] = nx.DiGraph()
    for name, targets in imports.items():
        room = _room(name, within)
        if room is None:
            continue
        graph.add_node(room)
        for target, at_top in targets.items():
            other = _room(target, within)
            if other is not None and other != room:
                before = graph.has_edge(room, other) and graph[room][other]["at_top"]
                graph.add_edge(room, other, at_top=before or at_top)
    return graph


def _room(module: str, within: str) -> str | None:
    if within:
        inside = module.removeprefix(f"{within}.")
        return inside.partition(".")[0] if inside != module else None
    top, dot, _ = module.partition(".")
    if dot or (PACKAGE / top).is_dir():
        return top
    return TOP_MODULES.get(module, "ground")


def drawn(graph: nx.DiGraph[str]) -> nx.DiGraph[str]:
    """The edges that a picture needs, without those that follow from others.

    Raises:
        ValueError: rooms import each other in a circle.
    """
    _from_the_top(graph)
    return nx.transitive_reduction(graph)


def _from_the_top(graph: nx.DiGraph[str]) -> list[str]:
    """The rooms, each before those that it imports; by name where nothing else decides."""
    if not nx.is_directed_acyclic_graph(graph):
        raise ValueError("rooms import each other: " + " → ".join(edge[0] for edge in nx.find_cycle(graph)))
    return list(nx.lexicographical_topological_sort(graph))


def products(within: str = "") -> set[str]:
    """The rooms with one door, as the import contract has them; within a room, or those of the package."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    protected = (each.get("protected_modules", [""])[0] for each in settings["tool"]["importlinter"]["contracts"])
    doors = (name.removesuffix(".*").split(".")[1:] for name in protected if name.endswith(".*"))
    return {room for *above, room in doors if ".".join(above) == within}


def mermaid(graph: nx.DiGraph[str], with_one_door: AbstractSet[str] = frozenset()) -> str:
    """The rooms as a Mermaid flowchart, from the highest to the lowest; those with one door have two side walls."""
    lines = ["```mermaid", "flowchart TB"]
    order = _from_the_top(graph)
    names = {room: f'"{room}"' if room in ("ground", "api") else f'"{room}/"' for room in order}
    lines += [
        f"    {room}[[{names[room]}]]" if room in with_one_door else f"    {room}[{names[room]}]" for room in order
    ]
    for room, other in sorted(drawn(graph).edges, key=lambda edge: (order.index(edge[0]), order.index(edge[1]))):
        arrow = "-->" if graph[room][other]["at_top"] else "-.->"
        lines.append(f"    {room} {arrow} {other}")
    return "\n".join([*lines, "```"])


def table(graph: nx.DiGraph[str], purposes: Mapping[str, str]) -> str:
    """A row for each room: what lives there, and every room that it imports."""
    order = _from_the_top(graph)
    lines = ["| room | what lives there | imports |", "|---|---|---|"]
    for room in order:
        imported = ", ".join(other for other in order if graph.has_edge(room, other))
        lines.append(f"| `{room}` | {purposes[room]} | {imported} |")
    return "\n".join(lines)


def purposes_of(package: Path, rooms: Sequence[str]) -> dict[str, str]:
    """What each room is for: the first line of its docstring, of a package or of a single module."""
    found = {"ground": GROUND, "api": API}
    for room in rooms:
        if room not in found:
            path = package / room / "__init__.py" if (package / room).is_dir() else package / f"{room}.py"
            text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            found[room] = text.partition("\n")[0].rstrip(".:;")
    return found


def updated(page: str, package: Path = PACKAGE) -> str:
    """The page with redrawn pictures and tables; text outside their marks is unchanged.

    Raises:
        ValueError: a mark is missing, or rooms import each other in a circle.
    """
    imports = imports_of(package)
    for mark, within in (("rooms", ""), ("wing", "builds")):
        graph = rooms_of(imports, within)
        purposes = purposes_of(package / within, list(graph))
        found = re.search(rf"<!-- {mark}: .*? -->\n(.*?)<!-- end of {mark} -->", page, re.DOTALL)
        if found is None:
            raise ValueError(f"docs/architecture.md has no marks for {mark}")
        picture = mermaid(graph, products(within))
        page = f"{page[: found.start(1)]}\n{picture}\n\n{table(graph, purposes)}\n\n{page[found.end(1) :]}"
    return page


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
