"""`<name>-gpu` and `<name>-cpu`: packages without files, each of which pins the builds of one accelerator."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from feedstock_tools.enable_gpu.inputs import GpuParts, GpuWishes
from feedstock_tools.enable_gpu.insertion import placed, shifted, with_selectors
from feedstock_tools.enable_gpu.needs import spec_of
from feedstock_tools.generate.texts.v0 import v0_view
from feedstock_tools.generate.texts.v1 import v1_view
from feedstock_tools.generate.texts.wording import Line
from feedstock_tools.recipe.written.document import Document, Entry, Part, TextEdit
from feedstock_tools.recipe.written.owners import Owner, outputs_of

#: Keys of `build` that hold for all outputs of a `recipe.yaml`.
_SHARED = frozenset({"number", "skip"})
#: Sections of a `recipe.yaml` with one package that belong to its output, if there are several.
_OWN = ("build", "requirements", "tests")


def with_metapackages(document: Document, parts: GpuParts, wishes: GpuWishes) -> Document:
    """The recipe with two more outputs; a recipe with a single package first lists it as an output."""
    owner = next((package for package in parts.packages if package.name == parts.recipe.name), parts.packages[0])
    number = _own_number(document, owner)
    if document.has_templates:
        lines = _outputs_v0(owner, wishes, number)
    else:
        lines = _outputs_v1(document, owner, wishes, number)
    if parts.has_outputs:
        return document.changed(_in_list(document, lines))
    if document.has_templates:
        listed = ["outputs:", f"  - name: {_source_of_name(document)}", *shifted(lines, 2), ""]
        return document.changed(_before_about(document, listed))
    return _as_outputs(document, lines)


def _own_number(document: Document, owner: Owner) -> str | None:
    """The build number that an output sets itself."""
    for other in outputs_of(document) if owner.kind == "output" else ():
        build = other.part.members.get("build")
        if build is not None and other.is_called(owner.name):
            number = build.members.get("number")
            return number.source if number is not None else None
    return None


def _outputs_v0(owner: Owner, wishes: GpuWishes, number: str | None) -> list[str]:
    """The outputs for a `meta.yaml`, as the generator lays them out."""
    view = v0_view(spec_of(wishes, owner.name, None, python=owner.is_python), ())
    lines: list[str] = []
    for output in view["outputs"][1:]:
        build = [line.removeprefix("  ") for line in output["build"].splitlines()]  # as deep as in a whole recipe
        lines += [f"- name: {output['name']}", "  build:", *([f"    number: {number}"] if number else []), *build]
        lines.append("  requirements:")
        for section, needs in output["requirements"]:
            requirements = [Line(need.text, need.selector) for need in needs]
            lines += [f"    {section}:", *with_selectors(requirements, "      ", None)]
    if number:  # PKG_BUILDNUM is the number of the recipe
        lines = [line.replace("{{ PKG_BUILDNUM }}", number) for line in lines]
    return lines


def _outputs_v1(document: Document, owner: Owner, wishes: GpuWishes, number: str | None) -> list[str]:
    """The outputs for a `recipe.yaml`, where an output without a script runs none."""
    view: dict[str, Any] = v1_view(spec_of(wishes, owner.name, None, python=owner.is_python))
    skipped = [leaf.source for entry in document.entries("build", "skip") for leaf in entry.value.leaves]
    lines: list[str] = []
    for output in view["outputs"][1:]:
        build = list(output["build"])
        if skipped and "skip:" in build:
            position = build.index("skip:") + 1
            build[position:position] = [f"  - {text}" for text in skipped]
        lines += ["- package:", f"    name: {output['name']}", "  build:"]
        lines += shifted([f"number: {number}"] if number else [], 4)
        lines += shifted(build, 4)
        lines.append("  requirements:")
        for key, requirements in output["requirements"]:
            lines += [f"    {key}:", *shifted(requirements, 6)]
    return lines


def _in_list(document: Document, lines: Sequence[str]) -> list[TextEdit]:
    outputs = next(entry for entry in document.entries("outputs"))
    if outputs.value.is_flow:
        raise document.mistake("a list of outputs in brackets cannot get more outputs", outputs, "Write them in lines.")
    lead = document.column_of(outputs.value.start)
    return placed(document, ["", *shifted(lines, lead)], after=outputs.value.end)


def _before_about(document: Document, lines: Sequence[str]) -> list[TextEdit]:
    root = document.root
    entries = root.entries if root is not None else ()
    following = next((entry for entry in entries if entry.key in {"about", "extra"}), None)
    if following is None:
        return placed(document, ["", *lines[:-1]], after=entries[-1].end)
    offset = document.line_start(following.start)
    return [TextEdit(offset, offset, document.newline.join([*lines, ""]))]


def _source_of_name(document: Document) -> str:
    return next(entry for entry in document.entries("package", "name")).value.source


def _as_outputs(document: Document, lines: Sequence[str]) -> Document:
    """A `recipe.yaml` with one package as one with outputs: the package's own sections move to its output."""
    root = document.root
    assert root is not None  # noqa: S101 - it has been edited
    chunks = _chunks(document, root, len(document.text))
    own: list[str] = []
    written: list[str] = []
    place = 0
    for entry, chunk in chunks:
        if entry.key == "package":
            chunk = ["recipe:" + chunk[0].removeprefix("package:"), *chunk[1:]]
        if entry.key not in _OWN:
            written += chunk
            continue
        shared, moved = (chunk, []) if entry.key != "build" else _split_build(document, entry, chunk)
        if entry.key == "build":
            written += shared
            own += moved
        else:
            own += _trimmed(chunk)
        place = len(written)
    name = _source_of_name(document)
    output = ["outputs:", "  - package:", f"      name: {name}", *shifted(own, 4), *shifted(lines, 2), ""]
    head = document.text[: document.line_start(root.entries[0].start)]
    text = head + document.newline.join([*written[:place], *output, *written[place:]])
    return Document(document.path, text.rstrip("\r\n") + document.newline)


def _split_build(document: Document, entry: Entry, chunk: list[str]) -> tuple[list[str], list[str]]:
    """The section `build` for all outputs, and the one for the package's own output."""
    end = entry.start + len(document.newline.join(chunk))
    parts = _chunks(document, entry.value, end)
    shared_lines = [line for member, lines in parts if member.key in _SHARED for line in _trimmed(lines)]
    own_lines = [line for member, lines in parts if member.key not in _SHARED for line in _trimmed(lines)]
    own_lines += _default_script(document, entry)
    return (["build:", *shared_lines, ""] if shared_lines else []), (["build:", *own_lines] if own_lines else [])


def _default_script(document: Document, build: Entry) -> list[str]:
    """The script that rattler-build runs by default for a recipe with one package, but not for an output."""
    files = [path for name in ("build.sh", "build.bat") if (path := document.path.parent / name).is_file()]
    if not files or "script" in build.value.members:
        return []
    indent = " " * document.column_of(build.value.entries[0].start)
    return [f"{indent}script:", f"{indent}  file: build"]


def _chunks(document: Document, mapping: Part, end: int) -> list[tuple[Entry, list[str]]]:
    """The lines of each entry with the comments right above it, up to the next entry's."""
    starts = []
    for entry in mapping.entries:
        at = document.line_start(entry.start)
        while at and re.fullmatch(r"\s*#.*", document.text[document.line_start(at - 1) : at].rstrip("\r\n")):
            at = document.line_start(at - 1)
        starts.append(at)
    stops = [*starts[1:], end]
    return [
        (entry, document.text[start:stop].splitlines())
        for entry, start, stop in zip(mapping.entries, starts, stops, strict=True)
    ]


def _trimmed(lines: Sequence[str]) -> list[str]:
    """The lines of a section without the blank ones below it."""
    kept = list(lines)
    while kept and not kept[-1].strip():
        kept.pop()
    return kept
