"""The pages of the site that are made from the code: commands, library, keys of the spec, the CUDA table and its graph.

mkdocs calls the functions named `on_…` (hooks in mkdocs.yml). Flowcharts of Mermaid become pictures: without a network,
a browser has nothing that draws them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import click
import networkx as nx
from click.testing import CliRunner
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from feedstock_tools import api
from feedstock_tools.cli import program
from feedstock_tools.facts.cuda import load_cuda
from feedstock_tools.pins.graph.answers import pin_graph as pin_graph_of
from feedstock_tools.report.pins.picture import Row, table_rows
from feedstock_tools.report.pins.show import runs_page

#: A link to a file beside the folder of pages: of a site it would lead nowhere.
_OUTSIDE = re.compile(r"\[([^\]]*)\]\(\.\./[^)]*\)")
_MERMAID = re.compile(r"^```mermaid\n(flowchart TB\n.*?)^```$", re.MULTILINE | re.DOTALL)
_PART = re.compile(r"^##", re.MULTILINE)
_CODE = re.compile(r"`[^`]+`")
#: The beginning of a list's item.
_ITEM = re.compile(r"(?:[-*]|\d+\.) ")
_GRAPH = "pin-graph.html"
_RUNS = "what-runs-on-my-gpu.html"
#: The title of the options that all commands take, in the help of a command.
_GENERAL = "\n\nOptions of all commands:"
#: Code within a text, a word of it, and the length up to which a word stays on one line.
_INLINE = re.compile(r"<code>([^<\n]+)</code>")
_WORD = re.compile(r"\S+")
#: A picture with a dark form, as GitHub takes it: the dark form, other attributes, the light form.
_PICTURE = re.compile(
    r'<picture>\s*<source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)">\s*'
    r'<img([^>]*)src="([^"]+)">\s*</picture>'
)
_WHOLE = 18
#: The beginning of an option, and where a long name may break.
_DASHES = re.compile(r"^-{1,2}\w+")
_JOINT = re.compile(r"(?<=[_/|=,])(?=[^_/|=,])")

#: Of a flowchart: its lines, and the height, gaps and width of a letter in pixels.
_NODE = re.compile(r'^\s*(\w+)\[+"([^"]+)"\]+', re.MULTILINE)
_EDGE = re.compile(r"^\s*(\w+) (-->|-\.->) (\w+)", re.MULTILINE)
_HEIGHT, _GAP, _RISE, _LETTER = 32, 24, 76, 8.2


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made from the code."""
    made = {
        "commands.md": "".join(commands()),
        "spec-keys.md": "".join(spec_keys()),
        "cuda-table.md": cuda_table(),
        "library-reference.md": "".join(library_reference()),
        _GRAPH: pin_graph(),
        _RUNS: _with_the_way_back(runs_page(), "index.html", "feedstock-tools"),
    }
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The text of a page without links to files that are not part of the site, and with flowcharts as pictures.

    A page without parts needs no list of them, and has its place for the text.
    """
    if not _PART.search(markdown):
        page.meta.setdefault("hide", ["toc"])
    flowcharts = _MERMAID.sub(lambda found: f"{drawn(found[1], page.title or '')}\n", markdown)
    return _OUTSIDE.sub(r"\1", "\n".join(_apart(flowcharts.split("\n"))))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """A page whose options and names break where a reader would break them: browsers break after any hyphen.

    A picture that has a dark form follows the colours of the site, which a reader can switch.
    """
    html = _PICTURE.sub(r'<img\2src="\3#only-light"><img\2src="\1#only-dark">', html)
    return _INLINE.sub(lambda code: f"<code>{_WORD.sub(_breakable, code[1])}</code>", html)


def _breakable(word: re.Match[str]) -> str:
    """A word of code: short ones whole, long ones with the places where they may break."""
    if len(word[0]) <= _WHOLE:
        return f'<span class="word">{word[0]}</span>'
    dashes = _DASHES.match(word[0])
    begin = dashes[0] if dashes else ""
    rest = _JOINT.sub("<wbr>", word[0].removeprefix(begin))
    return f'<span class="word">{begin}</span>{rest}' if begin else rest


def _apart(lines: Sequence[str]) -> Iterator[str]:
    """Lines as Python-Markdown, which makes the site, must have them to read what GitHub reads in the page's.

    It needs an empty line before a list or table that follows a text, and shows the backslash of a `|` in code.
    """
    before, fenced = "", False
    for line in lines:
        fenced ^= line.lstrip().startswith("```")
        begins = _ITEM.match(line) and not _ITEM.match(before.lstrip()) and not before.startswith("  ")
        if not fenced and before.strip() and (begins or (line.startswith("|") and not before.startswith("|"))):
            yield ""
        yield _CODE.sub(lambda code: code[0].replace("\\|", "|"), line) if line.startswith("|") else line
        before = line


def printed(*words: str) -> str:
    """What a command prints."""
    result = CliRunner().invoke(program._group, words, standalone_mode=False)
    if result.exception:
        raise result.exception
    return result.output


def commands() -> Iterator[str]:
    """Every command with its help, without the options that all of them take, which stand once at the top."""
    root = click.Context(program._group, info_name="feedstock-tools")
    general = program._group.get_help(root).partition(_GENERAL)[2].partition("\n\n")[0]
    yield "# Every command\n\nAs `feedstock-tools COMMAND --help` prints it.\n"
    yield f"\n```text\n{_GENERAL.strip()}{general}\n```\n"
    for title, names in program.MENU.items():
        yield f"\n## {title}\n"
        for name in names:
            command = program._group.get_command(click.Context(program._group), name)
            if command is not None:
                yield from _command(command, name)


def _command(command: click.Command, name: str) -> Iterator[str]:
    program_itself = click.Context(program._group, info_name="feedstock-tools", help_option_names=["-h", "--help"])
    context = click.Context(command, program_itself, name, max_content_width=100)
    text = re.sub(rf"{_GENERAL}.*?(?=\n\n|\Z)", "", command.get_help(context), flags=re.DOTALL)
    yield f"\n### {name}\n\n```text\n{text.strip()}\n```\n"
    if isinstance(command, click.Group):
        for own in command.list_commands(context):
            part = command.get_command(context, own)
            if part is not None:
                yield from _command(part, f"{name} {own}")


def library_reference() -> Iterator[str]:
    """Every name of the library: its signature and its docstring."""
    yield "# Every name of the library\n\nAs `help(feedstock_tools.api.NAME)` shows it.\n"
    for name in sorted(api.__all__):
        value = getattr(api, name)
        begin, _, rest = (inspect.getdoc(value) or "").partition("\n\n")
        yield f"\n## {name}\n\n```python\n{name}{_signature(value)}\n```\n\n{begin}\n"
        if rest:
            yield f"\n```text\n{rest}\n```\n"


def _signature(value: object) -> str:
    """The parameters of a function or a constructor; nothing for a value or a protocol."""
    if not callable(value):
        return f": {type(value).__name__}"
    try:
        return re.sub(r"feedstock_tools\.[\w.]*\.", "", str(inspect.signature(value)))
    except (TypeError, ValueError):
        return ""


def spec_keys() -> Iterator[str]:
    """Every key of `feedstock.yaml`, from its JSON Schema."""
    from feedstock_tools.generate.spec.model import json_schema

    schema = json_schema()
    yield "# Every key of the spec\n\nFrom its JSON Schema (`generate --schema`); [the spec](spec.md) says more.\n"
    yield from _keys("feedstock.yaml", schema)
    for name, definition in sorted(schema["$defs"].items()):
        if "properties" in definition:
            yield from _keys(name, definition)


def _keys(name: str, definition: dict[str, Any]) -> Iterator[str]:
    yield f"\n## {name}\n\n{definition.get('description', '')}\n\n| key | form | meaning |\n|---|---|---|\n"
    for key, value in definition.get("properties", {}).items():
        meaning = value.get("description", "").replace("|", "\\|").replace("\n", " ")
        required = " (required)" if key in definition.get("required", ()) else ""
        yield f"| `{key}` | {_form(value)} | {meaning}{required} |\n"


def _form(value: dict[str, Any]) -> str:
    """The form of a value in a few words; a definition by its name."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "allOf" in value:
        return _form(value["allOf"][0])
    if "anyOf" in value or "oneOf" in value:
        forms = dict.fromkeys(_form(each) for each in value.get("anyOf") or value["oneOf"])
        return " or ".join(form for form in forms if form != "null")
    if "enum" in value:
        return " or ".join(f"`{each}`" for each in value["enum"])
    if value.get("type") == "array":
        return f"list of {_form(value.get('items', {}))}"
    types = value.get("type", "any")
    return types if isinstance(types, str) else " or ".join(types)


def cuda_table() -> str:
    """Which compilers, libraries, drivers and architectures each CUDA version goes with."""
    text = (
        "---\nhide: [navigation, toc]\n---\n\n# CUDA today\n\n"
        f"**[What goes with my GPU, my driver, my CUDA, my package?]({_GRAPH})** The page of that name answers, "
        f"with a picture. **[What runs on my GPU?]({_RUNS})** has the line that installs a framework for it.\n\n"
        "This is what each CUDA version goes with, from the [facts](facts.md) of this version: the newest gcc and "
        "clang that nvcc accepts, and the minimum driver on Linux. "
        "`feedstock-tools cuda show` prints it, and with `--channel` what a channel has.\n\n"
    )
    graph = pin_graph_of(load_cuda())
    return text + _cards(*table_rows(graph, graph.versions["cuda"]))


def _cards(headings: Sequence[str], rows: Sequence[Row]) -> str:
    """A table that becomes a list of cards on a phone: roles keep it a table for a screen reader."""
    head = "".join(f'<th role="columnheader" scope="col">{escape(heading)}</th>' for heading in headings)
    body = "".join(
        f'<tr role="row"><th role="rowheader" scope="row">{escape(row.cuda)}</th>'
        + "".join(
            f'<td role="cell" data-label="{escape(heading)}">{escape(cell)}</td>'
            for heading, cell in zip(headings[1:], row.cells, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return (
        '<table class="cards" role="table" aria-label="CUDA versions and what goes with them">'
        f'<thead role="rowgroup"><tr role="row">{head}</tr></thead><tbody role="rowgroup">{body}</tbody></table>\n'
    )


def pin_graph() -> str:
    """The page of the pin graph, with the way back to the site."""
    return _with_the_way_back(printed("cuda", "show", "--format", "html"), "cuda-table.html", "feedstock-tools: CUDA")


def _with_the_way_back(page: str, target: str, title: str) -> str:
    return page.replace("<header>", f'<header>\n<p><a href="{target}">{title}</a></p>', 1)


def drawn(flowchart: str, name: str) -> str:
    """A flowchart from top to bottom as an svg element; what nothing below needs stands as high as it can.

    Args:
        flowchart: lines `a["label"]` or `a[["label"]]`, `a --> b` and `a -.-> b` (dashed).
        name: what it shows, for a screen reader.
    """
    labels = dict(_NODE.findall(flowchart))
    edges = {(first, second): arrow for first, arrow, second in _EDGE.findall(flowchart)}
    rows = _rows(labels, list(edges))
    widths = {node: len(label) * _LETTER + 24 for node, label in labels.items()}
    broad = max(sum(widths[node] + _GAP for node in row) - _GAP for row in rows) + 8
    places: dict[str, tuple[float, float]] = {}
    for number, row in enumerate(rows):
        x = (broad - sum(widths[node] + _GAP for node in row) + _GAP) / 2
        for node in row:
            places[node] = (x + widths[node] / 2, 20 + number * _RISE)
            x += widths[node] + _GAP
    high = 40 + (len(rows) - 1) * _RISE
    parts = [_edge(places[first], places[second], arrow) for (first, second), arrow in edges.items()]
    parts += [_box(label, *places[node], widths[node]) for node, label in labels.items()]
    said = "; ".join(f"{labels[first]} uses {labels[second]}" for first, second in edges)
    return (
        f'<svg class="flowchart" viewBox="0 0 {broad:.0f} {high}" role="img" aria-label="{escape(f"{name}: {said}")}" '
        f'style="max-width: {broad:.0f}px">{"".join(parts)}</svg>'
    )


def _rows(labels: dict[str, str], edges: list[tuple[str, str]]) -> list[list[str]]:
    """The nodes by the longest way down from a node that nothing uses; in a row near those above that use them."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(labels)
    graph.add_edges_from(edges)
    rows = [list(generation) for generation in nx.topological_generations(graph)]
    at = {node: float(place) for row in rows for place, node in enumerate(row)}
    for row in rows[1:]:
        above = {node: [at[user] for user in graph.predecessors(node)] for node in row}
        row.sort(key=lambda node: sum(above[node]) / len(above[node]))
        at |= {node: float(place) for place, node in enumerate(row)}
    return rows


def _box(label: str, x: float, y: float, width: float) -> str:
    return (
        f'<rect x="{x - width / 2:.0f}" y="{y - _HEIGHT / 2:.0f}" width="{width:.0f}" height="{_HEIGHT}" rx="5"/>'
        f'<text x="{x:.0f}" y="{y + 5:.0f}" text-anchor="middle">{escape(label)}</text>'
    )


def _edge(begin: tuple[float, float], end: tuple[float, float], arrow: str) -> str:
    (x1, y1), (x2, y2) = begin, end
    y1, y2 = y1 + _HEIGHT / 2, y2 - _HEIGHT / 2
    bend = min(30.0, (y2 - y1) / 2)
    dashed = ' class="dashed"' if arrow == "-.->" else ""
    return (
        f'<path{dashed} d="M{x1:.0f},{y1:.0f} C{x1:.0f},{y1 + bend:.0f} {x2:.0f},{y2 - bend:.0f} {x2:.0f},{y2:.0f}"/>'
        f'<path class="tip" d="M{x2 - 4:.0f},{y2 - 7:.0f} L{x2:.0f},{y2:.0f} L{x2 + 4:.0f},{y2 - 7:.0f}"/>'
    )
