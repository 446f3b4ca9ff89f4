"""From a spec to the texts of a feedstock: one function that reads no files but the templates.

Here too is what fits no recipe: conda-forge.yml, the stubs of migrations, and benchmarks, which the build copies from
`extra` into each package's `info/about.json`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from feedstock_tools.data import text_templates
from feedstock_tools.errors import InputError
from feedstock_tools.generate.spec.checks import output_names
from feedstock_tools.generate.spec.content import ARCHITECTURE
from feedstock_tools.generate.spec.model import Script, Spec
from feedstock_tools.generate.spec.reading import ARCHIVES
from feedstock_tools.generate.texts.resolved import (
    architectures_by_version,
    architectures_to_come,
    is_alone,
    known_cuda_versions,
    named_script,
)
from feedstock_tools.generate.texts.v0 import v0_view
from feedstock_tools.generate.texts.v1 import v1_view
from feedstock_tools.generate.texts.variant_files import variant_blocks
from feedstock_tools.generate.texts.wording import ON_BY_DEFAULT, aligned, comment, number_why, quoted
from feedstock_tools.platforms import Platform

if TYPE_CHECKING:
    from jinja2 import Environment

#: Recipe format → the file of the recipe.
RECIPE_FILES = {"v0": PurePosixPath("recipe/meta.yaml"), "v1": PurePosixPath("recipe/recipe.yaml")}


class Kept(str):
    """The text of a file that people wrote, with values of the spec in it: it has no record, and is never removed."""


def render(spec: Spec, recipe_format: str | None = None) -> Mapping[PurePosixPath, str]:
    """The files that a spec describes, by their path in the feedstock.

    `recipe_format` is `v0` or `v1`; the spec's own when None. The texts depend only on the spec and the facts.

    >>> sorted(map(str, render(spec)))  # doctest: +SKIP
    ['conda-forge.yml', 'recipe/conda_build_config.yaml', 'recipe/recipe.yaml']
    """
    chosen = recipe_format or spec.format
    view = v0_view(spec, known_cuda_versions(spec)) if chosen == "v0" else v1_view(spec)
    recipe = RECIPE_FILES[chosen]
    texts = {
        recipe: _rendered(
            f"{recipe.name}.j2", view | {"number_why": number_why(spec), "benchmark_lines": benchmark_lines(spec)}
        )
    }
    blocks = variant_blocks(spec)
    if blocks:
        texts[PurePosixPath("recipe/conda_build_config.yaml")] = _rendered(
            "conda_build_config.yaml.j2", {"blocks": blocks}
        )
    settings = _conda_forge_settings(spec, chosen)
    texts[PurePosixPath("conda-forge.yml")] = _rendered("conda-forge.yml.j2", {"settings": settings})
    texts |= _migration_texts(spec)
    for path, script in _architecture_script(spec).items():
        texts[path] = _rendered(f"cuda_architectures{path.suffix}.j2", script)
    texts |= _edited_script(spec)
    for path, (template, values) in build_scripts(spec).items():
        texts[path] = _rendered(template, values)
    return texts


def _rendered(template: str, view: Mapping[str, Any]) -> str:
    return _environment().get_template(template).render(view).rstrip("\n") + "\n"


@cache
def _environment() -> Environment:
    """Jinja with delimiters that neither recipe format uses."""
    environment = text_templates("<", ">")
    environment.filters["quoted"] = quoted
    environment.filters["aligned"] = aligned
    environment.filters["comment"] = lambda text, indent: "\n".join(comment(text, indent))
    environment.filters["indented"] = lambda lines, indent: "\n".join(
        f"{' ' * indent}{line}".rstrip() for line in lines
    )
    return environment


_BY_DEFAULT = {"github": {"branch_name": "main", "tooling_branch_name": "main"}}


def _conda_forge_settings(spec: Spec, recipe_format: str) -> list[str]:
    """The lines of conda-forge.yml: the settings that follow from the spec, overridden by its own.

    conda-smithy and its linter refuse a feedstock without this file, and an empty one: without settings, it has those
    that conda-smithy takes anyway.
    """
    settings: dict[str, Any] = {}
    builders = {
        subdir: platform.build_on for subdir, platform in spec.platforms.items() if platform and platform.build_on
    }
    if builders:
        settings["build_platform"] = {
            Platform.parse(target).name: Platform.parse(builder).name for target, builder in builders.items()
        }
    asked_for = [Platform.parse(s).name for s in spec.platforms if s not in ON_BY_DEFAULT and s not in builders]
    if asked_for:
        settings["provider"] = dict.fromkeys(asked_for, "default")
    if all(output.noarch for output in spec.outputs) and "linux-64" not in spec.platforms:
        settings["noarch_platforms"] = [Platform.parse(next(iter(spec.platforms))).name]
    if recipe_format == "v1":
        settings["conda_build_tool"] = "rattler-build"
    return block_lines(_merged(settings, spec.conda_forge) or _BY_DEFAULT)


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def block_lines(value: Any, indent: int = 0) -> list[str]:
    """Block YAML of strings, lists and mappings; strings are copied unchanged, so `true` stays a boolean."""
    blank = " " * indent
    lines: list[str] = []
    for key, content in value.items():
        if isinstance(content, dict) and content:
            lines += [f"{blank}{quoted(str(key))}:", *block_lines(content, indent + 2)]
        elif isinstance(content, list) and content:
            lines += [f"{blank}{quoted(str(key))}:", *_items(content, indent + 2)]
        else:
            lines.append(f"{blank}{quoted(str(key))}: {_scalar(content)}")
    return lines


def _items(items: list[Any], indent: int) -> list[str]:
    lines: list[str] = []
    for item in items:
        if isinstance(item, dict) and item:
            first, *rest = block_lines(item, indent + 2)
            lines += [f"{' ' * indent}- {first.strip()}", *rest]
        else:
            lines.append(f"{' ' * indent}- {_scalar(item)}")
    return lines


def _scalar(value: Any) -> str:
    if isinstance(value, dict | list):
        return "{}" if isinstance(value, dict) else "[]"
    if value is None:
        return "null"
    text = str(value)
    return text if text.lower() in ("true", "false") or text.isdigit() else quoted(text)


def _migration_texts(spec: Spec) -> dict[PurePosixPath, str]:
    """The files of `.ci_support/migrations`: the feedstock's own migrations, and stubs that select conda-forge's."""
    unknown = [name for name, migration in spec.migrations.items() if not (migration.timestamp or migration.verbatim)]
    if unknown:
        hint = "Run `feedstock-tools generate` with a pinning, which has them."
        raise InputError(f"there are no time stamps of the migrations {', '.join(unknown)}", hint=hint)
    return {
        PurePosixPath(f".ci_support/migrations/{name}.yaml"): migration.verbatim.removesuffix("\n") + "\n"
        if migration.verbatim
        else _rendered("migration.yaml.j2", {"timestamp": migration.timestamp, "number": migration.number})
        for name, migration in spec.migrations.items()
    }


#: The key of `extra`: name of a package → its commands and the packages that they need.
BENCHMARKS = "benchmarks"


def benchmark_lines(spec: Spec) -> list[str]:
    """The lines of that key; none if no output has a benchmark."""
    benchmarks: dict[str, Any] = {}
    for output in spec.outputs:
        if output.benchmark is not None:
            content: dict[str, Any] = {"commands": list(output.benchmark.commands)}
            if output.benchmark.requires:
                content["requires"] = list(output.benchmark.requires)
            benchmarks |= dict.fromkeys(output_names(output.name), content)
    return block_lines({BENCHMARKS: benchmarks}) if benchmarks else []


#: The templates of build systems that need none of their own.
_TEMPLATES = {"setuptools": "pip"}


def build_scripts(spec: Spec) -> Mapping[PurePosixPath, tuple[str, dict[str, Any]]]:
    """The scripts to generate: path → its template and the template's values."""
    outputs = [(None if is_alone(spec) else output.name, output.script) for output in spec.outputs]
    scripts = [(None, spec.build.script), *outputs]
    systems = {"win" if subdir.startswith("win") else "unix" for subdir in spec.platforms}
    templates: dict[PurePosixPath, tuple[str, dict[str, Any]]] = {}
    for output, script in scripts:
        if script is None or script.template is None:
            continue
        named = named_script(script, output, spec.format)
        files = {"unix": named.unix, "win": named.win} if named else {}
        for system in sorted(systems):
            suffix = "sh" if system == "unix" else "bat"
            template = f"build-{_TEMPLATES.get(script.template, script.template)}.{suffix}.j2"
            templates[PurePosixPath("recipe") / str(files[system])] = (template, _view(spec, script))
    return templates


def _view(spec: Spec, script: Script) -> dict[str, Any]:
    asks = spec.cuda.script if spec.cuda and spec.cuda.script and not spec.cuda.script.edits else None
    return {
        "cuda": spec.cuda is not None,
        "optional": [name for name, choices in script.environment.items() if choices and choices[-1].when],
        "options": [shlex.quote(option) for option in script.options],
        "options_bat": [f'"{option}"' for option in script.options],
        "cmake_options": shlex.quote(f"-Ccmake.args={';'.join(script.options)}"),
        "cmake_options_bat": f'"-Ccmake.args={";".join(script.options)}"',
        "cuda_options": " ".join(script.cuda_options) if spec.cuda else "",
        "in_place": any(source.path and not source.path.endswith(ARCHIVES) for source in spec.sources),
        "folder": script.folder,
        "folder_bat": script.folder.replace("/", "\\"),
        "architectures": asks.file if asks else None,
        "architectures_bat": str(PurePosixPath(asks.file).with_suffix(".bat")) if asks else None,
        "variable": asks.variable if asks else None,
        "for_cmake": asks is not None and asks.style == "cmake",
    }


def _cmake(name: str) -> str:
    kind, _, number = name.partition("_")
    return f"{number}-{'real' if kind == 'sm' else 'virtual'}"


def _gencode(name: str) -> str:
    number = name.partition("_")[2]
    return f"-gencode arch=compute_{number},code={name}"


def _torch(names: tuple[str, ...]) -> str:
    """PyTorch writes a capability as `8.6`, and as `8.6+PTX` to include its PTX."""
    wanted: dict[str, str] = {}
    for name in names:
        kind, _, number = name.partition("_")
        digits, letter = re.fullmatch(r"(\d+)([af]?)", number).groups()  # type: ignore[union-attr]  # checked in the spec
        capability = f"{digits[:-1]}.{digits[-1]}{letter}"
        wanted[capability] = f"{capability}+PTX" if kind == "compute" else wanted.get(capability, capability)
    return ";".join(wanted.values())


#: The form for each build system.
_STYLES: Mapping[str, Callable[[tuple[str, ...]], str]] = {
    "list": ",".join,
    "cmake": lambda names: ";".join(map(_cmake, names)),
    "torch": _torch,
    "gencode": lambda names: " ".join(map(_gencode, names)),
}


def architectures_in_style(names: tuple[str, ...], style: str) -> str:
    """Architectures in the syntax of a build system: `list`, `cmake`, `torch` or `gencode`.

    >>> architectures_in_style(("sm_75", "sm_86", "compute_86"), "torch")
    '7.5;8.6+PTX'
    """
    return _STYLES[style](names)


def shell_cases(texts: Mapping[str, str]) -> dict[str, str]:
    """The texts of CUDA versions by the patterns of a shell's `case`: one for all versions with the same text.

    >>> shell_cases({"12.8": "80", "12.9": "80", "13.0": "90"})
    {'12.8|12.9': '80', '13.0': '90'}
    """
    versions: dict[str, list[str]] = {}
    for version, text in texts.items():
        versions.setdefault(text, []).append(version)
    return {"|".join(same): text for text, same in versions.items()}


def architectures_from(text: str) -> tuple[str, tuple[str, ...]] | None:
    """The style that writes a list of architectures in just this way, and the list; None if none does."""
    names: list[str] = []
    for item in re.split("[,;]", text):
        if match := re.fullmatch(r"(\d{2,3}[af]?)-(real|virtual)", item):
            names.append(f"{'sm' if match[2] == 'real' else 'compute'}_{match[1]}")
        elif match := re.fullmatch(r"(\d{1,2})\.(\d[af]?)(\+PTX)?", item):
            names += [f"{kind}_{match[1]}{match[2]}" for kind in (("sm", "compute") if match[3] else ("sm",))]
        elif ARCHITECTURE.fullmatch(item):
            names.append(item)
        else:
            return None
    styles = (style for style in _STYLES if architectures_in_style(tuple(names), style) == text)
    return next(((style, tuple(names)) for style in styles), None)


def _architecture_script(spec: Spec) -> Mapping[PurePosixPath, dict[str, Any]]:
    """The scripts that a spec asks for, by path, with the values for their templates."""
    if spec.cuda is None or spec.cuda.script is None or spec.cuda.script.edits:
        return {}
    script = spec.cuda.script
    chosen = architectures_to_come(spec)
    texts = {version: architectures_in_style(names, script.style) for version, names in chosen.items()}
    view = {"variable": script.variable, "versions": texts, "cases": shell_cases(texts)}
    path = PurePosixPath("recipe") / script.file
    paths = [path, path.with_suffix(".bat")]
    systems = {subdir.partition("-")[0] for subdir in (spec.cuda.platforms or spec.platforms)}
    wanted = {".sh": systems - {"win"}, ".bat": systems & {"win"}}
    return {path: view for path in paths if wanted[path.suffix]}


def assignments_of(variable: str, text: str) -> Iterator[re.Match[str]]:
    """The assignments of literal texts to a variable in a shell script, each on a line of its own: the groups `quote`
    and `list`."""
    value = r"(?P<quote>[\"']?)(?P<list>(?<=[\"'])[\w.,;+=\- ]*|[\w.,+\-]*)(?P=quote)"
    yield from re.finditer(rf"^[ \t]*(?:export[ \t]+)?{variable}={value}(?=[ \t]*(?:[;#&|]|$))", text, re.MULTILINE)


def _edited_script(spec: Spec) -> Mapping[PurePosixPath, str]:
    """The script that people wrote, with the architectures of the spec in place of its lists."""
    script = spec.cuda.script if spec.cuda else None
    if spec.cuda is None or script is None or not script.text or script.edits is None:
        return {}
    chosen = spec.cuda.architectures
    lists = {chosen} if isinstance(chosen, tuple) else {*architectures_by_version(spec).values()}
    if len(lists) != 1:
        hint = "Write one list, or have a script generated for each CUDA version: cuda: {script: {file: …}}"
        raise InputError(f"recipe/{script.edits} takes one list of architectures; the spec has {len(lists)}", hint=hint)
    text, written = script.text, architectures_in_style(lists.pop(), script.style)
    found = list(assignments_of(script.variable, text))
    everywhere = re.findall(rf"^[^#\n]*(?<![\w-]){script.variable}\+?=.*", text, re.MULTILINE)
    if not found or len(everywhere) > len(found):
        hint = f'Each must be a line such as: export {script.variable}="{written}"'
        number = f"{len(found)} of {len(everywhere)} assignments"
        raise InputError(f"recipe/{script.edits}: {number} of {script.variable} are lists alone", hint=hint)
    for match in reversed(found):
        quote = match["quote"] or ("" if re.fullmatch(r"[\w.,+-]+", written) else '"')
        text = f"{text[: match.start('quote')]}{quote}{written}{quote}{text[match.end('list') + len(match['quote']) :]}"
    return {PurePosixPath("recipe") / script.edits: Kept(text)}
