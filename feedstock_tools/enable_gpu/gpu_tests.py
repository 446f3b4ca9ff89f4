"""Tests that distinguish CPU and CUDA builds: for GPU code in a library, and the commands of the user."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from feedstock_tools.conditions.spec import to_expression, to_selector
from feedstock_tools.conditions.tree import And, Condition, Name
from feedstock_tools.edit.writing import added_entry
from feedstock_tools.enable_gpu.inputs import GpuParts, GpuWishes
from feedstock_tools.enable_gpu.insertion import Edits, added_to_list, in_one_style, placed, with_selectors
from feedstock_tools.generate.texts.resolved import CPU, CUDA
from feedstock_tools.generate.texts.wording import Line, quoted
from feedstock_tools.recipe.written.document import Document, Entry, Part, TextEdit
from feedstock_tools.recipe.written.owners import Owner

#: A shared library on Linux that a test looks for.
_LIBRARY = re.compile(r"\$\{?PREFIX\}?/(lib/lib[\w.+-]+?)(?:\.so|\$\{?SHLIB_EXT\}?|\{\{ *SHLIB_EXT *\}\})(?=[\s\"']|$)")
_COMPILER = re.compile(r"\{\{-?\s*compiler\(")
_LINUX = Name("linux")
#: The section of a library into which nvcc puts GPU code.
_SECTION = "nv_fatbin"


def edits_of_tests(parts: GpuParts, wishes: GpuWishes) -> Edits:
    """Tests of the packages with CUDA builds.

    The wishes name the files with GPU code. If they name none, it is the library that the tests of a package look for,
    provided that it is the only one.
    """
    edits = Edits()
    tested = [_tested(owner, parts) for owner in parts.packages]
    files = [wishes.gpu_files or _only_library(owner) for owner in tested]
    for index, (owner, gpu_files) in enumerate(zip(tested, files, strict=True)):
        chosen = gpu_files if index == 0 or not wishes.gpu_files else ()
        commands = [*_code_tests(chosen), *((test, CUDA) for test in (wishes.tests if index == 0 else ()))]
        if commands:
            edits.changes += _added(owner, commands)
        if chosen and not wishes.gpu_files:
            edits.remarks.append(
                f"tests whether {chosen[0]} of {owner.name} holds GPU code: drop it if that library only calls others"
            )
        edits.remarks += _compiling(owner)
        if not commands and index == 0:
            edits.remarks.append(
                f"no test tells CPU and CUDA builds of {owner.name} apart: name a library with --gpu-file"
            )
    return edits


def _compiling(owner: Owner) -> Iterator[str]:
    """Remarks on tests that compile something and may lack the CUDA compiler."""
    document = owner.document
    for entry in owner.part.entries:
        compiler = _COMPILER.search(document.text, entry.start, entry.end) if entry.key in {"test", "tests"} else None
        if compiler:
            place = f"{document.path.name}:{document.line_of(compiler.start())}"
            yield f"{place} a test compiles against {owner.name}: in CUDA builds it may require compiler('cuda') too"


def _tested(owner: Owner, parts: GpuParts) -> Owner:
    """The owner of the tests of a package: the package itself, or the recipe with the same name."""
    has_own = not {"test", "tests"}.isdisjoint(owner.part.members)
    return parts.recipe if owner.name == parts.recipe.name and not has_own else owner


def _only_library(owner: Owner) -> tuple[str, ...]:
    libraries = {f"{name}.so" for entry in owner.part.entries for name in _libraries(owner.document, entry)}
    return tuple(libraries) if len(libraries) == 1 and "{" not in "".join(libraries) else ()


def _libraries(document: Document, entry: Entry) -> Iterator[str]:
    if entry.key == "test":
        for commands in (member for member in entry.value.entries if member.key == "commands"):
            for item in commands.value.items:
                if "! -f" not in item.text and "! -e" not in item.text:
                    yield from _LIBRARY.findall(item.text)
    if entry.key == "tests":
        for test in entry.value.items:
            contents = test.members.get("package_contents")
            lib = contents.members.get("lib") if contents is not None else None
            if lib is not None and lib.entries:
                lib = lib.members.get("exists")
            yield from (f"lib/lib{leaf.text}" for leaf in (lib.leaves if lib is not None else ()))


def _code_tests(files: Iterable[str]) -> Iterator[tuple[str, Condition]]:
    """Commands that each succeed for one accelerator only, with its condition."""
    for name in files:
        path = f"${{PREFIX}}/{name}"
        yield f"grep -q {_SECTION} {path}", And((_LINUX, CUDA))
        yield f'test -z "$(grep -l {_SECTION} {path})"', And((_LINUX, CPU))


def _added(owner: Owner, commands: Sequence[tuple[str, Condition]]) -> list[TextEdit]:
    document = owner.document
    if not document.has_templates:
        return _with_script(owner, commands)
    lines = [Line(f"- {quoted(text)}", to_selector(condition, ())) for text, condition in commands]
    for entry in (section for section in owner.part.entries if section.key == "test" and section.value.entries):
        for member in entry.value.entries:
            if member.key == "commands" and member.value.items:
                return added_to_list(document, member.value, lines)
        written = with_selectors(lines, "  ", None)
        return added_entry(document, entry.value, "commands", written, _last(document, entry.value))
    written = with_selectors(lines, "    ", None)
    return _new_key(owner, "test", ["  commands:", *written])


def _last(document: Document, mapping: Part) -> Entry:
    free = [entry for entry in mapping.entries if not document.is_in_block(entry.end)]
    return (free or list(mapping.entries))[-1]


def _with_script(owner: Owner, commands: Sequence[tuple[str, Condition]]) -> list[TextEdit]:
    """One more test of a `recipe.yaml`."""
    document = owner.document
    lines = [Line("- script:")]
    for text, condition in commands:
        lines += [Line(f"    - if: {to_expression(condition)}"), Line(f"      then: {quoted(text)}")]
    for entry in (section for section in owner.part.entries if section.key == "tests"):
        if entry.value.items:
            return added_to_list(document, entry.value, lines)
    return _new_key(owner, "tests", [f"  {line.text}" for line in in_one_style(document, lines)])


def _new_key(owner: Owner, key: str, lines: Sequence[str]) -> list[TextEdit]:
    document = owner.document
    above = [entry for entry in owner.part.entries if entry.key not in {"about", "extra", "outputs"}]
    if owner.kind == "recipe":
        return placed(document, ["", f"{key}:", *lines], after=above[-1].end)
    return added_entry(document, owner.part, key, lines, above[-1])
