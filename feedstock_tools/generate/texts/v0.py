"""The view of a spec that `templates/meta.yaml.j2` lays out: a recipe of conda-build with selectors and Jinja."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from feedstock_tools.conditions.spec import to_selector
from feedstock_tools.conditions.tree import Condition, any_of, both, negated
from feedstock_tools.generate.spec.items import Choice, IgnoredExports
from feedstock_tools.generate.spec.model import Script, Source, Spec
from feedstock_tools.generate.texts import resolved
from feedstock_tools.generate.texts.wording import (
    CUDA_DIGITS,
    PREFERRED_CPU,
    RAISED,
    Line,
    Syntax,
    aligned,
    calls,
    comment,
    features_why,
    numbered,
    quoted,
    skips,
)
from feedstock_tools.recipe.requirements import SECTIONS

SYNTAX = Syntax(
    recipe_format="v0",
    opening="{{",
    names={
        "cuda": "cuda_compiler_version",
        "cuda_major": '(cuda_compiler_version or "None").split(".")[0]',
        "cuda_digits": CUDA_DIGITS,
        "python_digits": "CONDA_PY",
        "numpy_digits": "CONDA_NPY",
        "hash": "PKG_HASH",
        "build_number": "PKG_BUILDNUM",
    },
    limits={"lower": "min_pin", "upper": "max_pin", "lower version": "lower_bound", "upper version": "upper_bound"},
    keys={
        "git": "git_url",
        "rev": "git_rev",
        "file_name": "fn",
        "homepage": "home",
        "repository": "dev_url",
        "documentation": "doc_url",
    },
)
#: conda-build's default scripts.
_DEFAULT_SCRIPTS = ("build.sh", "bld.bat")
_WHY_USED = "Nothing else here tells conda-build that there is one for each Python."
#: The Python in a build string, which the hash does not contain.
PYTHON_PREFIX = "py{{ CONDA_PY }}"


@dataclass(frozen=True)
class _Wording:
    """Translates parts of a spec for conda-build; `cuda_versions` are those listed for comparisons."""

    spec: Spec
    cuda_versions: Sequence[str]

    def selector(self, condition: Condition | None) -> str | None:
        return None if condition is None else to_selector(condition, self.cuda_versions)

    def line(self, text: str, condition: Condition | None = None, why: str | None = None) -> Line:
        return Line(text, self.selector(condition), why)

    def needs(self, needs: Iterable[resolved.Need]) -> tuple[Line, ...]:
        return tuple(requirement_line(need, self.cuda_versions) for need in needs)


def v0_view(spec: Spec, cuda_versions: Sequence[str]) -> dict[str, Any]:
    wording = _Wording(spec, cuda_versions)
    outputs = [_output(output, spec, wording) for output in resolved.resolve_outputs(spec)]
    alone = resolved.is_alone(spec)
    return {
        **SYNTAX.view(spec),
        "used_lines": [wording.line(f"{{% set used_key = {used.key} %}}", used.when) for used in spec.build.use_keys],
        "own_values": [(name, json.dumps(value)) for name, value in spec.values.items()],
        "alone": outputs[0] if alone else None,
        "version": "{{ version }}" if quoted(spec.version) == spec.version else '"{{ version }}"',
        "number_lines": _number_lines(spec, wording),
        "sources": [_source(source, wording) for source in spec.sources],
        "build_lines": _build_lines(spec, wording),
        "requirements": outputs[0]["requirements"] if alone else _requirements(resolved.top_level_needs(spec), wording),
        "outputs": [] if alone else outputs,
    }


def requirement_line(need: resolved.Need, cuda_versions: Sequence[str]) -> Line:
    """A requirement as an item of a list; `cuda_versions` are those that its selector may have to list."""
    selector = None if need.condition is None else to_selector(need.condition, cuda_versions)
    return Line(f"- {SYNTAX.requirement(need)}", selector, need.why)


def build_strings(prefix: str, number: str = "{{ PKG_BUILDNUM }}") -> dict[Condition, str]:
    """The build strings that distinguish CUDA and CPU builds, by condition.

    Args:
        prefix: the versions of Python and other languages, which the hash does not contain, such as `PYTHON_PREFIX`.
        number: what the strings end with.
    """
    tail = f"{prefix}h{{{{ PKG_HASH }}}}_{number}"
    return {resolved.CUDA: f"cuda{{{{ {CUDA_DIGITS} }}}}{tail}", resolved.CPU: f"cpu_{tail}"}


def _number_lines(spec: Spec, wording: _Wording) -> tuple[Line, ...]:
    """The Jinja for the build number, if it depends on the accelerator."""
    if spec.build.offsets:
        first = Line(f"{{% set build = {spec.build.number} %}}")
        offsets = (wording.line(f"{{% set build = build + {o.by} %}}", o.when, o.why) for o in spec.build.offsets)
        return (first, *offsets)
    if not numbered(spec):
        return ()
    raised = f"{{% set build = build + {RAISED} %}}"
    lines = [Line(f"{{% set build = {spec.build.number} %}}"), wording.line(raised, resolved.CUDA)]
    if spec.prefer.accelerator == "cpu":
        lines.append(wording.line(f"{{% set build = build + {PREFERRED_CPU} %}}", resolved.CPU))
    return tuple(lines)


def _build_lines(spec: Spec, wording: _Wording) -> tuple[Line, ...]:
    number = "{{ build }}" if numbered(spec) or spec.build.offsets else str(spec.build.number)
    lines = [Line(f"number: {number}")]
    lines += [wording.line("skip: true", condition, why) for condition, why in skips(spec)]
    alone = resolved.is_alone(spec)
    script = resolved.named_script(spec.outputs[0].script if alone else spec.build.script, None, spec.format)
    if script and script.commands and not alone:
        lines += [Line("script:"), *_indented(_commands(script, wording))]
    elif script and (script.unix or script.win) and not _is_default(script):
        lines += _script_lines(calls(script), wording)
    if not alone and (variables := _environment(script, wording)):
        lines += [Line("script_env:"), *_indented(variables)]
    for key, needs in _ignored(spec.build.ignore_run_exports, spec, wording):
        lines += [Line(f"{key}:"), *_indented(needs)]
    return tuple(lines)


def _ignored(ignored: IgnoredExports, spec: Spec, wording: _Wording) -> list[tuple[str, tuple[Line, ...]]]:
    lists = {"ignore_run_exports": ignored.packages, "ignore_run_exports_from": ignored.exporters}
    return [(key, wording.needs(resolved.flatten(items, spec))) for key, items in lists.items() if items]


def _commands(script: Script, wording: _Wording) -> list[Line]:
    return [wording.line(f"- {SYNTAX.scalar(item.command)}", item.when, item.why) for item in script.commands]


def _environment(script: Script | None, wording: _Wording) -> tuple[Line, ...]:
    """The variables of a script; several values of one are distinguished by their conditions."""
    return tuple(
        wording.line(f"- {quoted(name + '=' + SYNTAX.filled(value))}", condition)
        for name, choices in (script.environment if script else {}).items()
        for value, condition in _exclusive(choices)
    )


def _exclusive(choices: Sequence[Choice]) -> list[tuple[str, Condition | None]]:
    """The choices with conditions that exclude each other: each value without the builds of those before it."""
    found: list[tuple[str, Condition | None]] = []
    before: list[Condition] = []
    for choice in choices:
        others = None if not before else negated(any_of(before))
        found.append((choice.value, both(choice.when, others)))
        before += [choice.when] if choice.when else []
    return found


def _is_default(script: Script) -> bool:
    return all(
        name in (None, default) for name, default in zip((script.unix, script.win), _DEFAULT_SCRIPTS, strict=True)
    )


def _script_lines(scripts: Mapping[str, str | None], wording: _Wording) -> list[Line]:
    """The scripts by system: files of an output, or commands of the recipe, which conda-build takes no file as."""
    built = {"win" if subdir.startswith("win") else "unix" for subdir in wording.spec.platforms}
    return [
        Line(f"script: {quoted(script)}", system if len(built) > 1 else None)
        for system, script in scripts.items()
        if script and system in built
    ]


def _source(source: Source, wording: _Wording) -> tuple[Line, ...]:
    """The lines of a source, the first of which begins its list item."""
    selector = wording.selector(source.when)
    lines = [Line(text, selector) for text in SYNTAX.source(source)]
    if source.patches:
        lines += [
            Line("patches:", selector),
            *(wording.line(f"  - {quoted(patch.file)}", patch.when, patch.why) for patch in source.patches),
        ]
    first, *rest = lines
    return (Line(f"- {first.text}", first.selector), *(Line(f"  {x.text}", x.selector, x.why) for x in rest))


def _requirements(needs: dict[str, tuple[resolved.Need, ...]], wording: _Wording) -> list[tuple[str, tuple[Line, ...]]]:
    return [(section, wording.needs(needs[section])) for section in SECTIONS if needs[section]]


def _output(output: resolved.ResolvedOutput, spec: Spec, wording: _Wording) -> dict[str, Any]:
    written, script = output.written, output.script
    return {
        "name": output.name,
        "version": SYNTAX.scalar(written.version) if written.version else None,
        "why": output.why,
        "script_lines": _script_lines({"unix": script.unix, "win": script.win}, wording) if script else (),
        "files": _files(output, wording),
        "build": _build_text(output, spec, wording),
        "requirements": _requirements(output.needs, wording),
        "test": _test(output, wording),
        "test_lines": SYNTAX.verbatim(written.verbatim, "test"),
        "about": SYNTAX.about(written.about),
        "about_lines": SYNTAX.verbatim(written.verbatim, "about"),
        "top_lines": SYNTAX.verbatim(written.verbatim, "top"),
    }


def _build_text(output: resolved.ResolvedOutput, spec: Spec, wording: _Wording) -> str:
    """The lines of an output's `build`, each comment of a key above the key."""
    indent = 2 if resolved.is_alone(spec) else 6
    texts: list[str] = []
    for key, lines in _build_of_output(output, spec, wording):
        if key == "track_features" and output.features is not None:
            texts += comment(features_why(spec), indent)
        if key == "force_use_keys" and not output.written.use_keys:
            texts += comment(_WHY_USED, indent)
        texts += [f"{' ' * indent}{key}:", aligned(lines, indent + 2)] if key else [aligned(lines, indent)]
    texts += [f"{' ' * indent}{line}" for line in SYNTAX.verbatim(output.written.verbatim, "build")]
    return "\n".join(texts)


def _files(output: resolved.ResolvedOutput, wording: _Wording) -> list[Line]:
    included = [wording.line(f"- {SYNTAX.scalar(glob.path)}", glob.when) for glob in output.files]
    excluded = [wording.line(f"- {quoted(glob.path)}", glob.when) for glob in output.written.exclude_files]
    if not excluded:
        return included
    both = [Line("include:"), *_indented(included)] if included else []
    return [*both, Line("exclude:"), *_indented(excluded)]


def _build_of_output(
    output: resolved.ResolvedOutput, spec: Spec, wording: _Wording
) -> list[tuple[str, tuple[Line, ...]]]:
    """The `build` of an output as blocks: a key with lines under it, or lines alone."""
    blocks: list[tuple[str, tuple[Line, ...]]] = []
    own = () if resolved.is_alone(spec) else output.skip
    skipped = tuple(wording.line("skip: true", condition, why) for condition, why in own)
    blocks += [("", lines) for lines in (skipped, _own_lines(output, wording)) if lines]
    blocks += [("", lines) for lines in (_string_lines(output, spec, wording),) if lines]
    keys = {"force_use_keys": output.written.use_keys, "force_ignore_keys": output.written.ignore_keys}
    blocks += [
        (key, tuple(wording.line(f"- {name.key}", name.when) for name in names)) for key, names in keys.items() if names
    ]
    blocks += _ignored(output.written.ignore_run_exports, spec, wording)
    if _split_by_python_alone(output, spec):
        blocks.append(("force_use_keys", (Line("- python"),)))
    if output.features is not None:
        accelerator = "cpu" if output.features == resolved.CPU else "gpu"
        line = wording.line(f"- {spec.name}-{accelerator}", output.features)
        blocks.append(("track_features", (line,)))
    if features := wording.needs(resolved.flatten(output.written.track_features, spec)):
        blocks.append(("track_features", features))
    if output.script and output.script.commands:
        blocks.append(("script", tuple(_commands(output.script, wording))))
    if variables := _environment(output.script, wording):
        blocks.append(("script_env", variables))
    if output.entry_points:
        blocks.append(("entry_points", tuple(Line(f"- {quoted(entry)}") for entry in output.entry_points)))
    exports = {key: wording.needs(needs) for key, needs in output.exports.items() if needs}
    if set(exports) == {"weak"}:
        blocks.append(("run_exports", exports["weak"]))
    elif exports:
        parts = ((Line(f"{key}:"), *_indented(lines)) for key, lines in exports.items())
        blocks.append(("run_exports", tuple(line for part in parts for line in part)))
    return blocks


def _own_lines(output: resolved.ResolvedOutput, wording: _Wording) -> tuple[Line, ...]:
    """What an output says instead of the recipe: its number, and that it is one package for several platforms."""
    written = output.written
    lines = [Line(f"number: {written.number}")] if written.number is not None else []
    lines += [Line(f"noarch: {written.noarch}")] if written.noarch else []
    if written.version_independent is not None:
        lines.append(wording.line("python_version_independent: true", written.version_independent))
    return tuple(lines)


def _split_by_python_alone(output: resolved.ResolvedOutput, spec: Spec) -> bool:
    """Whether an output is built for each Python without conda-build noticing it.

    conda-build makes one package of all variants that agree in the keys used in an output's text, and a metapackage
    that pins outputs with Python need not name it. If the build that runs once names it, each Python has a job of its
    own.
    """
    if not spec.automatic:
        return False
    named = (*output.needs["host"], *(need for needs in resolved.top_level_needs(spec).values() for need in needs))
    return output.python and not any(need.package == "python" for need in named)


def _indented(lines: Iterable[Line]) -> list[Line]:
    return [Line(f"  {line.text}", line.selector, line.why) for line in lines]


def _string_lines(output: resolved.ResolvedOutput, spec: Spec, wording: _Wording) -> tuple[Line, ...]:
    if spec.cuda is None or not spec.automatic:
        own = _exclusive(output.written.string)
        return tuple(wording.line(f"string: {SYNTAX.scalar(value)}", condition) for value, condition in own)
    texts = {
        condition: f"string: {text}"
        for condition, text in build_strings(PYTHON_PREFIX if output.python else "").items()
    }
    skipped = {condition for condition, _ in output.skip}
    left = {condition: text for condition, text in texts.items() if condition not in skipped}
    if len(left) == 1:  # the output exists for one accelerator only
        return tuple(Line(text) for text in left.values())
    return tuple(wording.line(text, condition) for condition, text in left.items())


def _test(output: resolved.ResolvedOutput, wording: _Wording) -> list[tuple[str, tuple[Line, ...]]]:
    test = output.test
    requires = list(wording.needs(output.test_needs))
    commands = [wording.line(f"- {SYNTAX.scalar(item.command)}", item.when, item.why) for item in test.commands]
    if test.pip_check:
        requires.append(Line("- pip"))
        commands.append(Line("- pip check"))
    blocks = {
        "files": tuple(Line(f"- {quoted(name)}") for name in test.files),
        "source_files": tuple(Line(f"- {quoted(name)}") for name in test.source_files),
        "requires": tuple(requires),
        "imports": tuple(wording.line(f"- {quoted(item.module)}", item.when) for item in test.imports),
        "commands": tuple(commands),
    }
    return [(key, lines) for key, lines in blocks.items() if lines]
