"""The view of a spec that `templates/recipe.yaml.j2` lays out: a recipe of rattler-build with `if:` and expressions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from feedstock_tools.conditions.spec import to_expression
from feedstock_tools.conditions.tree import Condition, Name
from feedstock_tools.generate.spec.content import PLACEHOLDER
from feedstock_tools.generate.spec.items import Choice, Glob
from feedstock_tools.generate.spec.model import Script, Source, Spec
from feedstock_tools.generate.texts import resolved, wording
from feedstock_tools.recipe.requirements import SECTIONS

SYNTAX = wording.Syntax(
    recipe_format="v1",
    opening="${{",
    names={
        "cuda": "cuda_compiler_version",
        "cuda_major": '(cuda_compiler_version | default("None") | split("."))[0]',
        "python_digits": "python | version_to_buildstring",
        "numpy_digits": "numpy | version_to_buildstring",
        "build_number": "number",
    },
    limits={
        "lower": "lower_bound",
        "upper": "upper_bound",
        "lower version": "lower_bound",
        "upper version": "upper_bound",
    },
    keys={"folder": "target_directory"},
)
_EXPORTS = {"weak_constrains": "weak_constraints", "strong_constrains": "strong_constraints"}
#: The first part of a build string, as a variable of the context: `cuda129` or `cpu_`.
ACCELERATOR = f'${{{{ "cuda" ~ ({wording.CUDA_DIGITS}) if cuda_compiler_version != "None" else "cpu_" }}}}'

#: What conda-build packs of an output with a script is what the script adds to the files that it found in the prefix.
_FOUND = 'find "${PREFIX}" ! -type d | LC_ALL=C sort'
BEFORE = f'{_FOUND} > "${{SRC_DIR}}.before"'
AFTER = (
    f'{_FOUND} | LC_ALL=C comm -13 "${{SRC_DIR}}.before" - > "${{RATTLER_BUILD_PACKAGE_FILES}}"',
    'test -s "${RATTLER_BUILD_PACKAGE_FILES}" || { echo "The script has installed no files." >&2; exit 1; }',
)
#: A conditional entry of a list: its text, its condition, its comment.
Entry = tuple[str, Condition | None, str | None]


def v1_view(spec: Spec) -> dict[str, Any]:
    staged = spec.build.script is not None
    outputs = [_output(output, spec) for output in resolved.resolve_outputs(spec)]
    alone = resolved.is_alone(spec)
    return {
        **SYNTAX.view(spec),
        "alone": outputs[0] if alone else None,
        "context": _context(spec),
        "sources": [_source(source) for source in spec.sources],
        "number": "${{ number }}" if wording.numbered(spec) or not spec.automatic else str(spec.build.number),
        "skip": _conditions(wording.skips(spec)),
        "stage": _stage(spec) if staged else None,
        "outputs": [] if alone else outputs,
    }


def _context(spec: Spec) -> list[str]:
    lines = [f'version: "{spec.version}"', *(f"{name}: {json.dumps(value)}" for name, value in spec.values.items())]
    if "{cuda_digits}" in repr(spec.outputs):
        # As a variable, since the filter would multiply the bound on the size of what uses it.
        lines.append(f"cuda_digits: ${{{{ {wording.CUDA_DIGITS} }}}}")
    if not spec.automatic:
        offsets = [f" + ({offset.by} if {to_expression(offset.when)} else 0)" for offset in spec.build.offsets]
        number = f"${{{{ {spec.build.number}{''.join(offsets)} }}}}" if offsets else str(spec.build.number)
        return [*lines, f"number: {number}"]
    if wording.numbered(spec):
        raised = f"build + {wording.RAISED}"
        cpu = f"build + {wording.PREFERRED_CPU}" if spec.prefer.accelerator == "cpu" else "build"
        lines.append(f"build: {spec.build.number}")
        lines.append(f'number: ${{{{ {raised} if cuda_compiler_version != "None" else {cpu} }}}}')
    if spec.cuda is not None:
        lines.append(f"accelerator: {ACCELERATOR}")
    return lines


def _listed(entries: Iterable[Entry]) -> list[str]:
    """The lines of a list; neighbours with the same condition share an `if:`."""
    lines: list[str] = []
    for condition, together in groupby(entries, key=lambda entry: entry[1]):
        group = list(together)
        if condition is None:
            lines += _plain_items(group, 0)
        elif len(group) == 1:
            lines += wording.comment(group[0][2], 0) if group[0][2] else ()
            lines += [f"- if: {wording.quoted(to_expression(condition))}", f"  then: {group[0][0]}"]
        else:
            lines += [f"- if: {wording.quoted(to_expression(condition))}", "  then:", *_plain_items(group, 4)]
    return lines


def _plain_items(group: list[Entry], indent: int) -> list[str]:
    lines: list[str] = []
    for text, _, why in group:
        lines += [*(wording.comment(why, indent) if why else ()), f"{' ' * indent}- {text}"]
    return lines


def _block(key: str, lines: Sequence[str]) -> list[str]:
    """A key with the lines of its value below it; nothing without lines."""
    return [f"{key}:", *(f"  {line}" for line in lines)] if lines else []


def _item(lines: Sequence[str]) -> list[str]:
    """Lines as an item of a list."""
    return [f"{'  ' if at else '- '}{line}" for at, line in enumerate(lines)]


def _under(condition: Condition, item: Sequence[str]) -> list[str]:
    return [f"- if: {wording.quoted(to_expression(condition))}", "  then:", *(f"    {line}" for line in item)]


def build_string(accelerator: str, *, python: bool) -> str:
    """The build string of an output; `accelerator` names the variable that holds `ACCELERATOR`."""
    tail = "py${{ python | version_to_buildstring }}" if python else ""
    return f"${{{{ {accelerator} }}}}{tail}h${{{{ hash }}}}_${{{{ build_number }}}}"


def requirement_lines(needs: Iterable[resolved.Need]) -> list[str]:
    """The lines of a list of requirements; neighbours with the same condition share an `if:`."""
    return _listed((SYNTAX.requirement(need), need.condition, need.why) for need in needs)


def _conditions(conditions: Iterable[tuple[Condition, str | None]]) -> list[str]:
    lines: list[str] = []
    for condition, why in conditions:
        lines += [*(wording.comment(why, 0) if why else ()), f"- {wording.quoted(to_expression(condition))}"]
    return lines


def _source(source: Source) -> list[str]:
    """The lines of a source, the first of which begins its list item."""
    lines = SYNTAX.source(source)
    lines += _block("patches", _listed((wording.quoted(patch.file), patch.when, patch.why) for patch in source.patches))
    return _item(lines) if source.when is None else _under(source.when, lines)


def _listing_script(script: Script, spec: Spec) -> list[str]:
    """The script of an output that inherits files, which it must not pack: it lists what it adds to them."""
    unix, on_windows = Name("unix"), any(subdir.startswith("win") for subdir in spec.platforms)
    commands: list[Entry] = [(SYNTAX.scalar(item.command), item.when, item.why) for item in script.commands]
    for system, command in wording.calls(script).items():
        if system == "unix" or on_windows:
            commands.append((wording.quoted(command), Name(system), None))
    after: list[Entry] = [(wording.quoted(line), unix, None) for line in AFTER]
    content = _listed([(wording.quoted(BEFORE), unix, None), *commands, *after])
    env = _environment(script)
    return _block("script", [*env, *_block("content", content)] if env else content)


def _environment(script: Script) -> list[str]:
    """The variables of a script, each with one value: empty where none of its conditions holds."""
    values = {
        name: _chosen(choices if choices[-1].when is None else (*choices, Choice(value="")))
        for name, choices in script.environment.items()
        if choices
    }
    return _block("env", [f"{name}: {value}" for name, value in values.items()])


def _script(script: Script, spec: Spec) -> list[str]:
    env = _environment(script)
    if script.commands:
        commands = _listed((SYNTAX.scalar(item.command), item.when, item.why) for item in script.commands)
        return _block("script", [*env, *_block("content", commands)] if env else commands)
    systems = {"win" if subdir.startswith("win") else "unix" for subdir in spec.platforms}
    name = wording.quoted((script.win if systems == {"win"} else script.unix or script.win) or "")
    if script.unix and script.win and len(systems) == 2:
        # Under `file:`, since rattler-build reads a templated string as a command, not as a file name.
        name = f'${{{{ "{script.unix}" if unix else "{script.win}" }}}}'
    elif not env:
        return [f"script: {name}"]
    return _block("script", [*env, f"file: {name}"])


def _chosen(choices: Sequence[Choice]) -> str:
    """The choices as one value of a recipe.yaml: the first whose condition holds; the last stands for all others.

    >>> _chosen((Choice(value="cuda{cuda_digits}", when="cuda"), Choice(value="cpu")))
    '${{ ("cuda" ~ cuda_digits) if cuda_compiler_version != "None" else ("cpu") }}'
    """
    if len(choices) == 1 and choices[0].when is None:
        return SYNTAX.scalar(choices[0].value)
    *first, last = choices
    parts = [f"({_expression(choice.value)}) if {to_expression(choice.when)} else " for choice in first if choice.when]
    nested = "(".join(parts) + f"({_expression(last.value)})" + ")" * (len(parts) - 1)
    return f"${{{{ {nested} }}}}"


def _expression(text: str) -> str:
    pieces = PLACEHOLDER.split(text)
    parts = []
    for at, piece in enumerate(pieces):
        if at % 2:
            name = SYNTAX.names.get(piece, piece)
            parts.append(name if re.fullmatch(r"\w+", name) else f"({name})")
        elif piece:
            parts.append(json.dumps(piece, ensure_ascii=False))
    return " ~ ".join(parts) or '""'


def _stage(spec: Spec) -> dict[str, Any]:
    needs = resolved.top_level_needs(spec)
    script = resolved.named_script(spec.build.script, None, spec.format)
    return {
        "name": f"{spec.name}-build",
        "script": _script(script, spec) if script else [],
        "requirements": [
            (key, requirement_lines(needs[section])) for section, key in SECTIONS.items() if needs[section]
        ],
    }


def _output(output: resolved.ResolvedOutput, spec: Spec) -> dict[str, Any]:
    staged = spec.build.script is not None and output.kind != "metapackage"
    requirements = [
        (key, requirement_lines(output.needs[section])) for section, key in SECTIONS.items() if output.needs[section]
    ]
    exports = _run_exports(output)
    if exports:
        requirements.append(("run_exports", exports))
    if ignored := _ignored(output, spec):
        requirements.append(("ignore_run_exports", ignored))
    written = output.written
    return {
        "name": output.name,
        "why": output.why,
        "stage": f"{spec.name}-build" if staged else None,
        "build": _build_of_output(output, spec),
        "requirements": requirements,
        "tests": [*_tests(output, spec), *SYNTAX.verbatim(written.verbatim, "test")],
        "version": SYNTAX.scalar(written.version) if written.version else None,
        "about": SYNTAX.about(written.about),
        "about_lines": SYNTAX.verbatim(written.verbatim, "about"),
        "top_lines": SYNTAX.verbatim(written.verbatim, "top"),
    }


def _ignored(output: resolved.ResolvedOutput, spec: Spec) -> list[str]:
    ignored = output.written.ignore_run_exports
    lists = {"by_name": ignored.packages, "from_package": ignored.exporters}
    return [
        line
        for key, items in lists.items()
        if items
        for line in (f"{key}:", *(f"  {entry}" for entry in requirement_lines(resolved.flatten(items, spec))))
    ]


def _run_exports(output: resolved.ResolvedOutput) -> list[str]:
    exports = {key: needs for key, needs in output.exports.items() if needs}
    if set(exports) <= {"weak"}:
        return requirement_lines(exports.get("weak", ()))
    blocks = (_block(_EXPORTS.get(key, key), requirement_lines(needs)) for key, needs in exports.items())
    return [line for block in blocks for line in block]


def _build_of_output(output: resolved.ResolvedOutput, spec: Spec) -> list[str]:
    lines = [] if resolved.is_alone(spec) else _block("skip", _conditions(output.skip))
    written = output.written
    lines += [f"number: {written.number}"] if written.number is not None else []
    if not spec.automatic:
        lines += [f"string: {_chosen(written.string)}"] if written.string else []
    elif spec.cuda is not None:
        lines.append(f"string: {build_string('accelerator', python=output.python)}")
    lines += [f"noarch: {written.noarch}"] if written.noarch else []
    lines += wording.comment(wording.features_why(spec), 0) if output.features is not None else ()
    lines += _block("variant", _variant(output, spec))
    # A recipe.yaml that people wrote packs what it inherits.
    inherits = spec.build.script is not None and (spec.automatic or spec.format == "v0")
    write_script = _listing_script if inherits and not output.files else _script
    lines += write_script(output.script, spec) if output.script else ()
    lines += _files(output)
    newer = written.version_independent
    of_python = [] if newer is None else [f"version_independent: ${{{{ {to_expression(newer)} }}}}"]
    of_python += _block("entry_points", [f"- {wording.quoted(entry)}" for entry in output.entry_points])
    return [*lines, *_block("python", of_python), *SYNTAX.verbatim(written.verbatim, "build")]


def _files(output: resolved.ResolvedOutput) -> list[str]:
    def globs(items: Iterable[Glob]) -> list[str]:
        return _listed((SYNTAX.scalar(glob.path), glob.when, None) for glob in items)

    included, excluded = globs(output.files), _block("exclude", globs(output.written.exclude_files))
    return _block("files", [*_block("include", included), *excluded] if excluded else included)


def _variant(output: resolved.ResolvedOutput, spec: Spec) -> list[str]:
    """The keys that split an output, and the steps by which solvers avoid it."""
    written = output.written
    keys = {"use_keys": (*spec.build.use_keys, *written.use_keys), "ignore_keys": written.ignore_keys}
    lines: list[str] = []
    for key, names in keys.items():
        listed = _listed((name.key, name.when, None) for name in dict.fromkeys(names))
        lines += _block(key, listed)
    steps = [need.condition for need in resolved.flatten(written.track_features, spec)]
    if output.features is not None:
        steps.insert(0, output.features)
    terms = [f"(1 if {to_expression(condition)} else 0)" if condition else "1" for condition in steps]
    if output.features is not None and len(terms) == 1:
        terms = [terms[0][1:-1]]
    return [*lines, *([f"down_prioritize_variant: ${{{{ {' + '.join(terms)} }}}}"] if terms else [])]


def _tests(output: resolved.ResolvedOutput, spec: Spec) -> list[str]:
    test = output.test
    lines: list[str] = []
    pythons = _pythons_of_imports(output, spec)
    if any(item.when for item in test.imports):
        for condition, items in groupby(test.imports, key=lambda item: item.when):
            block = _imports([item.module for item in items], pythons, pip_check=test.pip_check and condition is None)
            lines += block if condition is None else _under(condition, block)
    elif test.imports:
        lines += _imports([item.module for item in test.imports], pythons, pip_check=test.pip_check)
    commands: list[Entry] = [(SYNTAX.scalar(c.command), c.when, c.why) for c in test.commands]
    needs = list(output.test_needs)
    if test.pip_check and not any(item.when is None for item in test.imports):
        commands.append(("pip check", None, None))
        needs.append(resolved.Need("package", "pip"))
    if commands:
        recipe, source = ([f"- {wording.quoted(name)}" for name in names] for names in (test.files, test.source_files))
        script = _block("script", _listed(commands))
        script += _block("requirements", _block("run", requirement_lines(needs)))
        lines += _item([*script, *_block("files", [*_block("recipe", recipe), *_block("source", source)])])
    return lines


def _pythons_of_imports(output: resolved.ResolvedOutput, spec: Spec) -> list[str]:
    """The Pythons that test a noarch package: the one that it or its test names, and the newest."""
    if output.written.noarch != "python":
        return []
    needs = (*output.test_needs, *(output.needs["host"] if spec.automatic else ()))
    versions = (SYNTAX.package(need).partition(" ")[2] for need in needs if need.package == "python")
    return [*list(filter(None, versions))[:1], *(["*"] if spec.automatic else [])]


def _imports(modules: list[str], pythons: list[str], *, pip_check: bool) -> list[str]:
    imports = _block("imports", [f"- {wording.quoted(name)}" for name in modules])
    versions = _block("python_version", [f"- {wording.quoted(version)}" for version in pythons])
    return _item(_block("python", [*imports, f"pip_check: {str(pip_check).lower()}", *versions]))
