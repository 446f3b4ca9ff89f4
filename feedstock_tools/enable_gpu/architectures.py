"""GPU architectures in build scripts: for each CUDA version the list that its nvcc knows, in CUDA builds only."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from feedstock_tools.conditions.spec import to_expression, to_selector
from feedstock_tools.conditions.tree import And, Name
from feedstock_tools.enable_gpu.insertion import added_to_list, in_one_style, shifted
from feedstock_tools.enable_gpu.scripts import BuildSystem, Script, system_of
from feedstock_tools.enable_gpu.settings import Edits, Setting, free_name
from feedstock_tools.enable_gpu.versions import CudaVersions
from feedstock_tools.enable_gpu.wishes import GpuWishes
from feedstock_tools.errors import InputError
from feedstock_tools.facts import load_cuda
from feedstock_tools.generate.texts.cuda.architectures import worded
from feedstock_tools.generate.texts.lines import Line, quoted
from feedstock_tools.generate.texts.needs import CUDA
from feedstock_tools.recipe.written.document import Document, TextEdit

#: Lines at the head of a script that settings belong below, and comments and blank lines between them.
_HEAD = re.compile(r"#!.*|set\s+[-+].*|@?echo\s+(?:on|off)\s*|setlocal.*", re.IGNORECASE)
_BETWEEN = re.compile(r"\s*|#.*|@?rem\b.*|::.*", re.IGNORECASE)
_WHY = "GPU architectures for the CUDA version of this build"


@dataclass(frozen=True, slots=True)
class ScriptEdits:
    """The changes for scripts: the changed files, and edits of the recipe where it holds the commands."""

    files: tuple[Document, ...]
    edits: Edits


def architectures(wishes: GpuWishes, versions: CudaVersions) -> Mapping[str, tuple[str, ...]]:
    """The architectures for each CUDA version, as `sm_86` and `compute_86`.

    Raises:
        InputError: nvcc of a version does not know a listed architecture, or the preset lacks a version.
    """
    facts = load_cuda()
    listed = wishes.listed_architectures
    by_version = {}
    for version in versions.known:
        for name in listed or ():
            if not facts.toolkits[version].accepts(name):
                known = ", ".join(f"sm_{number}" for number in facts.toolkits[version].architectures)
                raise InputError(f"nvcc of CUDA {version} does not know {name}", hint=f"It knows {known}.")
        by_version[version] = listed or facts.preset(wishes.architectures, version)
    return by_version


def script_edits(scripts: Sequence[Script], wishes: GpuWishes, versions: CudaVersions) -> ScriptEdits:
    """The edits that pass architectures, and the options that turn CUDA on, to what the scripts call."""
    lists = architectures(wishes, versions)
    files: list[Document] = []
    changes: list[TextEdit] = []
    settings: list[Setting] = []
    variables: dict[str, Line] = {}
    remarks: list[str] = []
    systems = _systems(wishes)
    if not lists:
        unknown = f"the facts do not know nvcc of CUDA {', '.join(versions.built)}: choose GPU architectures by hand"
        return ScriptEdits((), Edits(remarks=(unknown,)))
    for script in scripts:
        if script.is_file and ("win" if script.is_batch else "unix") not in systems:
            continue
        system = system_of(script)
        remarks += _remarks(script, system, _place(script), wishes)
        if system is None:
            continue
        words = {version: worded(names, system.style) for version, names in lists.items()}
        if script.is_file:
            lines = (_batch if script.is_batch else _shell)(script, system, words, wishes)
            files.append(_with_lines(script.document, lines))
        elif script.document.has_templates:
            script_env = next((entry for entry in script.owner.settings if entry.key == "script_env"), None)
            name = free_name(script.document, "cuda_archs")
            variables[name] = _table(name, words)
            item = Line(f"- {system.variable}={{{{ {name}.get(cuda_compiler_version) }}}}", to_selector(CUDA, ()))
            if script_env is not None and script_env.value.items:
                changes += added_to_list(script.document, script_env.value, [item])
            else:
                indented = Line(f"  {item.text}", item.selector)
                settings.append(Setting(script.owner, (Line("script_env:"), indented)))
        else:
            changes += _commands(script, system, words, systems)
    edits = Edits(tuple(changes), tuple(settings), tuple(variables.values()), tuple(remarks))
    return ScriptEdits(tuple(files), edits)


def _systems(wishes: GpuWishes) -> set[str]:
    """The kinds of machines with CUDA builds: `unix`, `win`."""
    platforms = wishes.platforms or ("linux-64", "win-64")
    return {"win" if platform.startswith("win") else "unix" for platform in platforms}


def _place(script: Script) -> str:
    if script.entry is None:
        return script.document.path.name
    return f"{script.document.path.name}:{script.document.line_of(script.entry.start)}"


def _remarks(script: Script, system: BuildSystem | None, place: str, wishes: GpuWishes) -> list[str]:
    """What the user must do by hand in a script."""
    if system is None:
        return [f"{place} calls no build system that this tool knows: pass GPU architectures to nvcc by hand"]
    remarks = []
    if system.style == "list":
        remarks.append(
            f"{place}: let Bazel see the variable: --action_env={system.variable} --repo_env={system.variable}"
        )
    if not wishes.configure:
        remarks.append(f"{place}: nothing tells {system.name} to use CUDA; if the project has an option, add it there")
    elif not _takes_options(script, system):
        options = " ".join(wishes.configure)
        remarks.append(f"{place}: add {options} where {system.name} is called in CUDA builds")
    return remarks


def _takes_options(script: Script, system: BuildSystem) -> bool:
    return script.is_file and system.variable == "CMAKE_ARGS"


def _shell(script: Script, system: BuildSystem, words: Mapping[str, str], wishes: GpuWishes) -> list[str]:
    """The lines for a shell script, with the kind of brackets that it uses itself."""
    text = script.text
    brackets = ("[[", "]]") if "[[" in text or "bash" in text.partition("\n")[0] else ("[", "]")
    lines = [
        f"# {_WHY}",
        f'if {brackets[0]} "${{cuda_compiler_version:-None}}" != "None" {brackets[1]}; then',
        '    case "${cuda_compiler_version}" in',
    ]
    lines += [f'        {version}) cuda_archs="{word}" ;;' for version, word in words.items()]
    lines += [
        '        *) echo "no GPU architectures for CUDA ${cuda_compiler_version}" >&2; exit 1 ;;',
        "    esac",
    ]
    value = system.option.format("${cuda_archs}")
    if system.appended:
        value = f"${{{system.variable}:-}} {value}"
    if _takes_options(script, system):
        value = " ".join([value, *(re.sub(r'(["`\\])', r"\\\1", option) for option in wishes.configure)])
    return [*lines, f'    export {system.variable}="{value}"', "fi"]


def _batch(script: Script, system: BuildSystem, words: Mapping[str, str], wishes: GpuWishes) -> list[str]:
    """The lines for a batch file; for a CUDA version without a list, the build system chooses."""
    lines = [f"rem {_WHY}"]
    for version, word in words.items():
        value = system.option.format(word)
        if system.appended:
            value = f"%{system.variable}% {value}"
        if _takes_options(script, system):
            value = " ".join([value, *wishes.configure])
        lines.append(f'if "%cuda_compiler_version%"=="{version}" set "{system.variable}={value}"')
    return lines


def _with_lines(document: Document, lines: Sequence[str]) -> Document:
    """A script with lines below its head: the interpreter, shell options, and commands that switch echoing."""
    head = position = 0
    for line in document.text.splitlines(keepends=True):
        position += len(line)
        if _HEAD.fullmatch(line.rstrip("\r\n")):
            head = position
        elif not _BETWEEN.fullmatch(line.rstrip("\r\n")):
            break
    block = document.newline.join([*lines, ""])
    before = document.text[:head]
    lead = document.newline if before and not before.endswith(document.newline * 2) else ""
    if before and not before.endswith(("\n", "\r")):
        lead = document.newline * 2
    body = document.text[head:]
    tail = "" if body.startswith(("\n", "\r")) or not body else document.newline
    return document.changed([TextEdit(head, head, lead + block + tail)])


def _table(name: str, words: Mapping[str, str]) -> Line:
    """A variable of a `meta.yaml` with the list for each CUDA version, for the environment of commands."""
    entries = ", ".join(f'"{version}": "{word}"' for version, word in words.items())
    return Line(f"{{% set {name} = {{{entries}}} %}}")


def _chosen(words: Mapping[str, str]) -> str:
    """The list for the CUDA version as an expression of a `recipe.yaml`; newer versions get the list of the newest."""
    if len(set(words.values())) == 1:
        return next(iter(words.values()))
    *older, newest = words
    choices = "".join(f"'{words[version]}' if cuda_compiler_version == '{version}' else " for version in older)
    return f"${{{{ {choices}'{words[newest]}' }}}}"


def _commands(
    script: Script, system: BuildSystem, words: Mapping[str, str], systems: Collection[str]
) -> list[TextEdit]:
    """The commands that set the variable in a script of a `recipe.yaml`; one command becomes a list."""
    document, commands = script.document, script.commands
    assert commands is not None  # noqa: S101 - only files have none
    lines: list[Line] = []
    forms = {"unix": 'export {}="{}"', "win": 'set "{}={}"'}
    for os, form in forms.items():
        if os in systems:
            value = _chosen(words)
            value = f"${{{system.variable}:-}} {value}" if system.appended and os == "unix" else value
            lines.append(Line(f"- if: {to_expression(And((Name(os), CUDA)))}"))
            lines.append(Line(f"  then: {quoted(form.format(system.variable, value))}"))
    lines = in_one_style(document, lines)
    if commands.items:
        if commands.is_flow:
            raise document.mistake("a list in brackets cannot hold conditions", commands, "Write it in lines.")
        lead = " " * document.column_of(commands.start)
        offset = document.line_start(commands.start)
        return [TextEdit(offset, offset, "".join(f"{lead}{line.text}{document.newline}" for line in lines))]
    line = document.text[document.line_start(commands.start) : commands.start]
    lead = " " * (len(line) - len(line.lstrip()) + 2)
    first, *rest = commands.source.splitlines()
    existing = [f"{lead}- {first}", *shifted(rest, 2)]
    written = document.newline.join(["", *(lead + line.text for line in lines), *existing])
    start = commands.start - (len(line) - len(line.rstrip(" ")))
    return [TextEdit(start, commands.end, written)]
