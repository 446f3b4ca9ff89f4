"""The view of a spec that `templates/recipe.yaml.j2` lays out: a recipe of rattler-build with `if:` and expressions."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from feedstock_tools.generate.spec.conditions import Condition, to_v1
from feedstock_tools.generate.spec.model import Script, Source, Spec
from feedstock_tools.generate.texts.build_scripts import named_script
from feedstock_tools.generate.texts.lines import comment, quoted
from feedstock_tools.generate.texts.needs import Need
from feedstock_tools.generate.texts.resolved import (
    ResolvedOutput,
    resolve_outputs,
    top_level_needs,
)
from feedstock_tools.generate.texts.wording import CUDA_DIGITS, PREFERRED_CPU, about, filled, numbered, skips

__all__ = ["v1_view"]

_NAMES = {"cuda": "cuda_compiler_version", "cuda_major": '(cuda_compiler_version | default("None") | split("."))[0]'}
_SECTIONS = {"build": "build", "host": "host", "run": "run", "run_constrained": "run_constraints"}

#: A conditional entry of a list: its text, its condition, its comment.
Entry = tuple[str, Condition | None, str | None]


def v1_view(spec: Spec) -> dict[str, Any]:
    """The values for the template of recipe.yaml."""
    staged = spec.build.script is not None
    return {
        "spec": spec,
        "context": _context(spec),
        "sources": [_source(source) for source in spec.sources],
        "number": "${{ number }}" if numbered(spec) else str(spec.build.number),
        "skip": _conditions(skips(spec)),
        "stage": _stage(spec) if staged else None,
        "outputs": [_output(output, spec) for output in resolve_outputs(spec)],
        "about_lines": about(spec.about, {}),
    }


def _context(spec: Spec) -> list[str]:
    lines = [f'version: "{spec.version}"']
    if numbered(spec):
        raised = f"build + 100 * ({CUDA_DIGITS} | int)"
        cpu = f"build + {PREFERRED_CPU}" if spec.prefer.accelerator == "cpu" else "build"
        lines.append(f"build: {spec.build.number}")
        lines.append(f'number: ${{{{ {raised} if cuda_compiler_version != "None" else {cpu} }}}}')
    if spec.cuda is not None:
        lines.append(f'accelerator: ${{{{ "cuda" ~ ({CUDA_DIGITS}) if cuda_compiler_version != "None" else "cpu_" }}}}')
    return lines


def _expression(need: Need) -> str:
    if need.kind == "package":
        text = filled(need.value, "${{", _NAMES)
        return text if text.startswith("${{") else quoted(text)
    if need.kind in ("compiler", "stdlib"):
        return f"${{{{ {need.kind}('{need.value}') }}}}"
    function = "pin_subpackage" if need.kind == "pin" else "pin_compatible"
    limits = [f"lower_bound='{need.lower}'"] if need.lower else []
    limits += [f"upper_bound='{need.upper}'"] if need.upper else []
    if need.kind == "pin" and need.exact:
        limits = ["exact=True"]
    return f"${{{{ {function}({', '.join([repr(need.value), *limits])}) }}}}"


def _listed(entries: Iterable[Entry]) -> list[str]:
    """The lines of a list; neighbours with the same condition share an `if:`."""
    lines: list[str] = []
    for condition, together in groupby(entries, key=lambda entry: entry[1]):
        group = list(together)
        if condition is None:
            lines += _plain_items(group, 0)
        elif len(group) == 1 and not group[0][2]:
            lines += [f"- if: {quoted(to_v1(condition))}", f"  then: {group[0][0]}"]
        elif len(group) == 1:
            lines += comment(group[0][2] or "", 0)
            lines += [f"- if: {quoted(to_v1(condition))}", f"  then: {group[0][0]}"]
        else:
            lines += [f"- if: {quoted(to_v1(condition))}", "  then:", *_plain_items(group, 4)]
    return lines


def _plain_items(group: list[Entry], indent: int) -> list[str]:
    lines: list[str] = []
    for text, _, why in group:
        lines += [*(comment(why, indent) if why else ()), f"{' ' * indent}- {text}"]
    return lines


def _needs(needs: Iterable[Need]) -> list[str]:
    return _listed((_expression(need), need.condition, need.why) for need in needs)


def _conditions(conditions: Iterable[tuple[Condition, str | None]]) -> list[str]:
    lines: list[str] = []
    for condition, why in conditions:
        lines += [*(comment(why, 0) if why else ()), f"- {quoted(to_v1(condition))}"]
    return lines


def _source(source: Source) -> list[str]:
    """The lines of a source, the first of which begins its list item."""
    lines: list[str] = []
    if len(source.url) > 1:
        lines += ["url:", *(f"  - {quoted(filled(url, '${{', _NAMES))}" for url in source.url)]
    elif source.url:
        lines.append(f"url: {quoted(filled(source.url[0], '${{', _NAMES))}")
    if source.git:
        lines += [f"git: {quoted(source.git)}", f"rev: {quoted(filled(source.rev or '', '${{', _NAMES))}"]
    if source.path:
        lines.append(f"path: {quoted(source.path)}")
    if source.sha256:
        lines.append(f"sha256: {source.sha256}")
    if source.folder:
        lines.append(f"target_directory: {quoted(source.folder)}")
    if source.patches:
        patches = _listed((quoted(patch.file), patch.when, patch.why) for patch in source.patches)
        lines += ["patches:", *(f"  {line}" for line in patches)]
    if source.when is None:
        return [f"{'- ' if at == 0 else '  '}{line}" for at, line in enumerate(lines)]
    return [f"- if: {quoted(to_v1(source.when))}", "  then:", *(f"    {line}" for line in lines)]


def _script(script: Script, spec: Spec) -> list[str]:
    if script.commands:
        return ["script:", *(f"  - {quoted(command)}" for command in script.commands)]
    systems = {"win" if subdir.startswith("win") else "unix" for subdir in spec.platforms}
    if script.unix and script.win and len(systems) == 2:
        # Under `file:`, since rattler-build reads a templated string as a command, not as a file name.
        return ["script:", f'  file: ${{{{ "{script.unix}" if unix else "{script.win}" }}}}']
    name = script.win if systems == {"win"} else script.unix or script.win
    return [f"script: {quoted(name or '')}"]


def _stage(spec: Spec) -> dict[str, Any]:
    needs = top_level_needs(spec)
    script = named_script(spec.build.script, None)
    return {
        "name": f"{spec.name}-build",
        "script": _script(script, spec) if script else [],
        "requirements": [(key, _needs(needs[section])) for section, key in _SECTIONS.items() if needs[section]],
    }


def _output(output: ResolvedOutput, spec: Spec) -> dict[str, Any]:
    staged = spec.build.script is not None and output.kind != "metapackage"
    requirements = [(key, _needs(output.needs[section])) for section, key in _SECTIONS.items() if output.needs[section]]
    exports = _run_exports(output)
    return {
        "name": output.name,
        "why": output.why,
        "stage": f"{spec.name}-build" if staged else None,
        "build": _build_of_output(output, spec),
        "requirements": [*requirements, ("run_exports", exports)] if exports else requirements,
        "tests": _tests(output),
    }


def _run_exports(output: ResolvedOutput) -> list[str]:
    if not output.strong_exports:
        return _needs(output.weak_exports)
    lines = ["strong:", *(f"  {line}" for line in _needs(output.strong_exports))]
    return lines + (["weak:", *(f"  {line}" for line in _needs(output.weak_exports))] if output.weak_exports else [])


def _build_of_output(output: ResolvedOutput, spec: Spec) -> list[str]:
    lines: list[str] = []
    if output.skip:
        lines += ["skip:", *(f"  {line}" for line in _conditions(output.skip))]
    if spec.cuda is not None:
        python = "py${{ python | version_to_buildstring }}" if output.python else ""
        lines.append(f"string: ${{{{ accelerator }}}}{python}h${{{{ hash }}}}_${{{{ build_number }}}}")
    if output.features is not None:
        test = to_v1(output.features)
        lines += comment(features_why(spec), 0)
        lines += ["variant:", f"  down_prioritize_variant: ${{{{ 1 if {test} else 0 }}}}"]
    if output.script:
        lines += _script(output.script, spec)
    if output.files:
        lines += ["files:", *(f"  - {quoted(name)}" for name in output.files)]
    if output.entry_points:
        lines += ["python:", "  entry_points:", *(f"    - {quoted(entry)}" for entry in output.entry_points)]
    return lines


def features_why(spec: Spec) -> str:
    """Why a build carries `track_features`."""
    preferred, other = ("GPU", "CPU") if spec.prefer.accelerator == "gpu" else ("CPU", "GPU")
    return f"Solvers avoid builds with features, so that they prefer the {preferred} build to the {other} build."


def _tests(output: ResolvedOutput) -> list[str]:
    test = output.test
    lines: list[str] = []
    if test.imports:
        lines += ["- python:", "    imports:", *(f"      - {quoted(name)}" for name in test.imports)]
        lines.append(f"    pip_check: {str(test.pip_check).lower()}")
    commands: list[Entry] = [(quoted(filled(c.command, "${{", _NAMES)), c.when, None) for c in test.commands]
    needs = list(output.test_needs)
    if test.pip_check and not test.imports:
        commands.append(("pip check", None, None))
        needs.append(Need("package", "pip"))
    if commands:
        lines += ["- script:", *(f"    {line}" for line in _listed(commands))]
        if needs:
            lines += ["  requirements:", "    run:", *(f"      {line}" for line in _needs(needs))]
        if test.files:
            lines += ["  files:", "    recipe:", *(f"      - {quoted(name)}" for name in test.files)]
    return lines
