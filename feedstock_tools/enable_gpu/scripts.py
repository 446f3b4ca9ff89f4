"""The scripts that build something, the build system that each calls, and how it learns GPU architectures.

Each CUDA version gets the architectures that its nvcc knows, in CUDA builds only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from feedstock_tools.conditions.spec import to_expression, to_selector
from feedstock_tools.conditions.tree import And, Name
from feedstock_tools.edit.draft import Draft
from feedstock_tools.enable_gpu.inputs import CudaVersions, GpuWishes
from feedstock_tools.enable_gpu.insertion import Edits, added_to_list, free_name, in_one_style, shifted
from feedstock_tools.errors import InputError
from feedstock_tools.facts.cuda import load_cuda
from feedstock_tools.generate.texts.rendering import architectures_in_style, shell_cases
from feedstock_tools.generate.texts.resolved import CUDA
from feedstock_tools.generate.texts.wording import Line, quoted
from feedstock_tools.recipe.written.document import Document, Entry, Part, TextEdit, read_document
from feedstock_tools.recipe.written.owners import Owner

_WORD = re.compile(r"[\w.-]+")
_SUFFIXES = (".sh", ".bat")
#: The scripts that are run if a recipe names none.
_DEFAULT = MappingProxyType({"meta.yaml": ("build.sh", "bld.bat"), "recipe.yaml": ("build.sh", "build.bat")})


@dataclass(frozen=True, slots=True)
class _BuildSystem:
    """How a build system learns GPU architectures: from a variable of the environment, in a style of the generator.

    `option` is the argument that holds the list; `appended` means that the variable may have other content too.
    """

    name: str
    variable: str
    style: str
    option: str = "{}"
    appended: bool = False


_CMAKE = _BuildSystem("CMake", "CUDAARCHS", "cmake")
_CMAKE_ARGS = _BuildSystem("CMake", "CMAKE_ARGS", "cmake", "-DCMAKE_CUDA_ARCHITECTURES={}", appended=True)
_TORCH = _BuildSystem("PyTorch", "TORCH_CUDA_ARCH_LIST", "torch")
_BAZEL = _BuildSystem("Bazel", "HERMETIC_CUDA_COMPUTE_CAPABILITIES", "list")
_MESON = _BuildSystem("Meson", "CUDAFLAGS", "gencode", appended=True)
_NVCC = _BuildSystem("make", "NVCC_APPEND_FLAGS", "gencode", appended=True)

#: Build systems by what a script calls, first match first.
_BY_CALL: Mapping[str, _BuildSystem] = MappingProxyType(
    {
        r"\bbazel\b|gen-bazel-toolchain": _BAZEL,
        r"\bcmake\b(?!\s*<)": _CMAKE,
        r"\bmeson\b": _MESON,
        r"\./configure\b|\bconfigure\b.*--prefix|\b(?:n|g)?make\b|\bnvcc\b": _NVCC,
    }
)
#: Build systems by what a recipe requires, for scripts that call a Python front end.
_BY_REQUIREMENT: Mapping[str, _BuildSystem] = MappingProxyType(
    {
        **dict.fromkeys(("bazel", "bazel-toolchain"), _BAZEL),
        **dict.fromkeys(("pytorch", "libtorch", "pytorch-cpu"), _TORCH),
        **dict.fromkeys(("scikit-build-core", "scikit-build"), _CMAKE_ARGS),
        **dict.fromkeys(("meson-python", "meson"), _MESON),
        "cmake": _CMAKE,
    }
)
_PYTHON = re.compile(r"\bpip\s+install\b|\bsetup\.py\b|\bpython\s+-m\s+build\b|\bPYTHON\b")
#: A script that sets CMAKE_ARGS without its old value loses that value.
_RESET = re.compile(r"(?m)^\s*(?:export\s+|set\s+\"?)?CMAKE_ARGS=(?!.*CMAKE_ARGS)")
_USED = re.compile(r"\$\{?CMAKE_ARGS|%CMAKE_ARGS%")


@dataclass(frozen=True, slots=True)
class Script:
    """A script: a file, or commands in the recipe, of which `entry` is the key and `commands` the text or list."""

    owner: Owner
    document: Document
    entry: Entry | None = None
    commands: Part | None = None

    @property
    def is_file(self) -> bool:
        return self.commands is None

    @property
    def is_batch(self) -> bool:
        return self.is_file and self.document.path.suffix == ".bat"

    @property
    def text(self) -> str:
        if self.commands is None:
            return self.document.text
        return self.document.text[self.commands.start : self.commands.end]


def scripts_of(draft: Draft, owners: Iterable[Owner]) -> list[Script]:
    """The scripts of owners, each file once."""
    by_place: dict[Path | int, Script] = {}
    for owner in owners:
        for script in _scripts_of(draft, owner):
            by_place.setdefault(script.document.path if script.is_file else (script.entry or owner.part).start, script)
    return list(by_place.values())


def _scripts_of(draft: Draft, owner: Owner) -> list[Script]:
    folder = draft.recipe_path.parent
    entries = [entry for entry in (*owner.part.entries, *owner.settings) if entry.key == "script"]
    scripts = []
    for entry in entries:
        value = entry.value
        files = _files_in(draft.recipe.text[value.start : value.end], folder)
        scripts += [Script(owner, _read(draft, path)) for path in files]
        commands = value.members.get("content") if value.kind == "mapping" else value
        if not files and commands is not None and (commands is not value or value.source or value.items):
            scripts.append(Script(owner, draft.recipe, entry, commands))
    if not entries and owner.kind != "output":
        paths = [folder / name for name in _DEFAULT[draft.recipe_path.name]]
        scripts += [Script(owner, _read(draft, path)) for path in paths if path.is_file()]
    return scripts


def _files_in(text: str, folder: Path) -> list[Path]:
    """The scripts of the recipe that a text names; `file: build-one` stands for one of each kind."""
    words = _WORD.findall(text)
    names = [f"{word}{end}" for word in words for end in ([""] if word.endswith(_SUFFIXES) else _SUFFIXES)]
    return list(dict.fromkeys(folder / name for name in names if (folder / name).is_file()))


def _read(draft: Draft, path: Path) -> Document:
    known = draft.document(path)
    return known if known is not None else read_document(path, within=draft.folder)


def _system_of(script: Script) -> _BuildSystem | None:
    """The build system that a script calls; None if this is unclear."""
    text = script.text
    required = script.owner.names("host") | script.owner.names("build")
    if "rust" in script.owner.compilers and not re.search(r"\bcmake\b", text):
        return None
    by_cmake = re.search(r"\bcmake\b", text) and not _PYTHON.search(text)  # a program that links libtorch
    if not by_cmake and any(_BY_REQUIREMENT.get(name) is _TORCH for name in required):
        return _TORCH
    system = next((candidate for pattern, candidate in _BY_CALL.items() if re.search(pattern, text)), None)
    if system is None and _PYTHON.search(text):
        system = next((candidate for name, candidate in _BY_REQUIREMENT.items() if name in required), _NVCC)
    if system in (_CMAKE, _CMAKE_ARGS) and script.is_file:
        reads = _USED.search(text) or system is _CMAKE_ARGS
        return _CMAKE_ARGS if reads and not _RESET.search(text) else _CMAKE
    return _CMAKE if system is _CMAKE_ARGS else system


#: Lines at the head of a script that settings belong below, and comments and blank lines between them.
_HEAD = re.compile(r"#!.*|set\s+[-+].*|@?echo\s+(?:on|off)\s*|setlocal.*", re.IGNORECASE)
_BETWEEN = re.compile(r"\s*|#.*|@?rem\b.*|::.*", re.IGNORECASE)
_WHY = "GPU architectures for the CUDA version of this build"


def architectures(wishes: GpuWishes, versions: CudaVersions) -> Mapping[str, tuple[str, ...]]:
    """The architectures for each CUDA version, as `sm_86` and `compute_86`."""
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


def script_edits(scripts: Sequence[Script], wishes: GpuWishes, versions: CudaVersions) -> Edits:
    """The edits that pass architectures, and the options that turn CUDA on, to what the scripts call."""
    lists = architectures(wishes, versions)
    edits = Edits()
    variables: dict[str, Line] = {}
    platforms = wishes.platforms or ("linux-64", "win-64")
    systems = {"win" if platform.startswith("win") else "unix" for platform in platforms}
    if not lists:
        known = ", ".join(versions.built)
        edits.remarks.append(f"the facts do not know nvcc of CUDA {known}: choose GPU architectures by hand")
        return edits
    for script in scripts:
        if script.is_file and ("win" if script.is_batch else "unix") not in systems:
            continue
        system = _system_of(script)
        edits.remarks += _remarks(script, system, wishes)
        if system is None:
            continue
        words = {version: architectures_in_style(names, system.style) for version, names in lists.items()}
        if script.is_file:
            document, undone = _without_undone(script, system, wishes)
            lines = (_batch if script.is_batch else _shell)(script, system, words, wishes, undone)
            edits.scripts.append(_with_lines(document, lines))
        elif script.document.has_templates:
            script_env = next((entry for entry in script.owner.settings if entry.key == "script_env"), None)
            name = free_name(script.document, "cuda_archs")
            table = ", ".join(f'"{version}": "{word}"' for version, word in words.items())
            variables[name] = Line(f"{{% set {name} = {{{table}}} %}}")
            item = Line(f"- {system.variable}={{{{ {name}.get(cuda_compiler_version) }}}}", to_selector(CUDA, ()))
            if script_env is not None and script_env.value.items:
                edits.changes += added_to_list(script.document, script_env.value, [item])
            else:
                edits.set(script.owner, Line("script_env:"), Line(f"  {item.text}", item.selector))
        else:
            edits.changes += _recipe_edits(script, system, words, systems)
    edits.variables += variables.values()
    return edits


def _remarks(script: Script, system: _BuildSystem | None, wishes: GpuWishes) -> list[str]:
    """What the user must do by hand in a script."""
    document = script.document
    place = document.path.name if script.entry is None else document.place_of(script.entry.start)
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


def _takes_options(script: Script, system: _BuildSystem) -> bool:
    return script.is_file and system.variable == "CMAKE_ARGS"


#: An argument of CMake that sets a variable, with the white space and the continued line that it leaves.
_SETS = re.compile(
    r"(?P<before>^[ \t]*|[ \t]+)-D(?P<name>\w+)(?::\w+)?=(?P<value>\"[^\"]*\"|[^\s\"]*)(?P<after>[ \t]*[\\^]?\n)?",
    re.MULTILINE,
)
_COMMENT = re.compile(r"^\s*(?:#|rem\b|::).*$", re.IGNORECASE | re.MULTILINE)


def _without_undone(script: Script, system: _BuildSystem, wishes: GpuWishes) -> tuple[Document, tuple[str, ...]]:
    """A script without its own values of the options that turn CUDA on, which stand behind CMAKE_ARGS and win; and
    these values, which its CPU builds keep.

    Raises:
        InputError: a script sets such an option in other places than behind each CMAKE_ARGS.
    """
    document = script.document
    names = {option.partition("=")[0].removeprefix("-D").partition(":")[0] for option in wishes.configure}
    if not _takes_options(script, system) or not names:
        return document, ()
    comments = [range(*match.span()) for match in _COMMENT.finditer(document.text)]
    found = [
        match
        for match in _SETS.finditer(document.text)
        if match["name"] in names and not any(match.start("name") in comment for comment in comments)
    ]
    uses = len(_USED.findall(document.text))
    options: dict[str, str] = {}
    removed = []
    for match in found:
        same = [other for other in found if other["name"] == match["name"]]
        option = f"-D{match['name']}={match['value']}"
        if len(same) != uses or len({other["value"] for other in same}) > 1 or re.search(r"[$%!]", match["value"]):
            raise InputError(
                f"{option} would undo --configure: CUDA builds would be for CPUs",
                path=document.path,
                line=document.line_of(match.start("name")),
                hint="Let the script set it by cuda_compiler_version, and leave it out of --configure.",
            )
        options[match["name"]] = option
        # A line that has nothing else goes if the next one continues the command; else its line break ends it.
        alone = document.line_start(match.start()) == match.start() and (match["after"] or "").strip()
        end = match.end() if alone or match["after"] is None else match.start("after")
        removed.append(TextEdit(match.start(), end, ""))
    return document.changed(removed), tuple(options.values())


def _shell(
    script: Script, system: _BuildSystem, words: Mapping[str, str], wishes: GpuWishes, undone: Sequence[str]
) -> list[str]:
    """The lines for a shell script, with the kind of brackets that it uses itself.

    Args:
        undone: the options that CPU builds keep.
    """
    text = script.text
    brackets = ("[[", "]]") if "[[" in text or "bash" in text.partition("\n")[0] else ("[", "]")
    lines = [
        f"# {_WHY}",
        f'if {brackets[0]} "${{cuda_compiler_version:-None}}" != "None" {brackets[1]}; then',
        '    case "${cuda_compiler_version}" in',
    ]
    lines += [f'        {versions}) cuda_archs="{word}" ;;' for versions, word in shell_cases(words).items()]
    lines += ['        *) echo "no GPU architectures for CUDA ${cuda_compiler_version}" >&2; exit 1 ;;', "    esac"]
    value = system.option.format("${cuda_archs}")
    if system.appended:
        value = f"${{{system.variable}:-}} {value}"
    if _takes_options(script, system):
        value = " ".join([value, *(re.sub(r'(["`\\])', r"\\\1", option) for option in wishes.configure)])
    lines.append(f'    export {system.variable}="{value}"')
    if undone:
        lines += ["else", f'    export {system.variable}="${{{system.variable}:-}} {" ".join(undone)}"']
    return [*lines, "fi"]


def _batch(
    script: Script, system: _BuildSystem, words: Mapping[str, str], wishes: GpuWishes, undone: Sequence[str]
) -> list[str]:
    """The lines for a batch file; for a CUDA version without a list, the build system chooses."""
    lines = [f"rem {_WHY}"]
    for version, word in words.items():
        value = system.option.format(word)
        if system.appended:
            value = f"%{system.variable}% {value}"
        if _takes_options(script, system):
            value = " ".join([value, *wishes.configure])
        lines.append(f'if "%cuda_compiler_version%"=="{version}" set "{system.variable}={value}"')
    if undone:
        value = f"%{system.variable}% {' '.join(undone)}"
        lines.append(f'if "%cuda_compiler_version%"=="None" set "{system.variable}={value}"')
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


def _chosen(words: Mapping[str, str]) -> str:
    """The list for the CUDA version as an expression of a `recipe.yaml`; newer versions get the list of the newest."""
    if len(set(words.values())) == 1:
        return next(iter(words.values()))
    *older, newest = words
    choices = "".join(f"'{words[version]}' if cuda_compiler_version == '{version}' else " for version in older)
    return f"${{{{ {choices}'{words[newest]}' }}}}"


def _recipe_edits(
    script: Script, system: _BuildSystem, words: Mapping[str, str], systems: Collection[str]
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
