"""What a CMakeLists.txt says about its project: name, version, languages, what it installs and looks for.

Its commands are read with their arguments (cmake-language(7)) and never run, in time in proportion to the text,
whatever a stranger wrote.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from feedstock_tools.errors import InputError
from feedstock_tools.reading import read_text

_LARGEST = 1024 * 1024
#: Words of project() that one value follows; languages follow the name or LANGUAGES.
_WITH_VALUE = frozenset({"VERSION", "COMPAT_VERSION", "SPDX_LICENSE", "DESCRIPTION", "HOMEPAGE_URL"})
#: The languages that have compilers in recipes, in the order in which recipes name them.
_LANGUAGES = ("c", "cxx", "fortran", "cuda")
#: Words after the name in add_library() for which no shared library is installed.
_NOT_SHARED = frozenset({"STATIC", "OBJECT", "INTERFACE", "ALIAS", "IMPORTED", "MODULE"})
_OFF, _ON = frozenset({"OFF", "NO", "FALSE", "0"}), frozenset({"ON", "YES", "TRUE", "1"})
#: Commands that declare what CMake fetches.
_FETCHES = frozenset({"fetchcontent_declare", "externalproject_add", "cpmaddpackage"})
#: Limits: conditions around a command, and words of one.
_DEEPEST, _LONGEST_CONDITION = 20, 20
#: Packages that compilers and `python` bring, and those of tests.
_NOT_NAMED = frozenset(
    ("CUDA", "CUDAToolkit", "OpenMP", "Python", "Python3", "PythonInterp", "PythonLibs", "Threads", "Catch2", "GTest")
)


@dataclass(frozen=True, slots=True)
class CMakeLists:
    """A CMakeLists.txt as far as it tells without being run.

    `name` is None if project() names a variable without a literal value; `written_name` is what project() has,
    in its `line`. `required` are those of `packages` without which it does not build. The other fields are those of
    `Project`.
    """

    path: Path
    line: int
    written_name: str
    name: str | None
    version: str | None
    summary: str | None
    homepage: str | None
    languages: tuple[str, ...]
    only_gpu: bool
    kernels: bool
    libraries: tuple[str, ...]
    programs: tuple[str, ...]
    cuda_switches: tuple[str, ...]
    packages: tuple[str, ...]
    required: tuple[str, ...]
    headers_alone: bool
    fetches: bool


def read_cmake_lists(folder: Path, defined: Collection[str] = ()) -> CMakeLists:
    """The CMakeLists.txt of a folder.

    Args:
        defined: variables that are set from outside.

    Raises:
        InputError: it cannot be read, or has no project().
    """
    path = folder / "CMakeLists.txt"
    commands = tuple(_commands_of(read_text(path, _LARGEST, within=folder)))
    project = next((one for one in commands if one.name == "project" and one.arguments), None)
    if project is None:
        hint = "Add it: project(name VERSION 1.0.0 LANGUAGES CXX)"
        raise InputError("there is no project(…)", path=path, hint=hint)
    values = _literal_variables(commands[: commands.index(project)])
    stated, languages = _values_of_project(project, values)
    reached, behind = _by_default(commands, defined)
    version = re.match(r"[0-9][0-9.]*", stated.get("VERSION", ""))
    return CMakeLists(
        path=path,
        line=project.line,
        written_name=project.arguments[0],
        name=_with_variables(project.arguments[0], values),
        version=version[0] if version else None,
        summary=stated.get("DESCRIPTION"),
        homepage=stated.get("HOMEPAGE_URL"),
        languages=_languages(commands, reached, languages),
        only_gpu="cuda" in languages,
        kernels="cuda" in languages | _enabled_languages(commands),
        libraries=_installed(commands, _libraries(commands)),
        programs=_installed(commands, [name for name, *_ in _arguments(commands, "add_executable")]),
        cuda_switches=tuple(dict.fromkeys(behind or _cuda_switches(commands))),
        packages=tuple(sorted(set(_packages(reached)) - _NOT_NAMED)),
        required=tuple(
            sorted({name for name, *words in _arguments(reached, "find_package") if "REQUIRED" in words} - _NOT_NAMED)
        ),
        headers_alone=_has_headers_alone(commands),
        fetches=any(command.name in _FETCHES for command in reached),
    )


def _arguments(commands: Sequence[Command], *names: str) -> Iterator[tuple[str, ...]]:
    """The arguments of the commands of these names, each with at least one."""
    return (command.arguments for command in commands if command.name in names and command.arguments)


def _values_of_project(project: Command, values: Mapping[str, str]) -> tuple[dict[str, str], set[str]]:
    """The values that project() has by their words, without those of unknown variables, and its languages."""
    stated: dict[str, str] = {}
    languages: set[str] = set()
    words = iter(project.arguments[1:])
    for word in words:
        if word not in _WITH_VALUE:
            languages |= {one.lower() for one in (_with_variables(word, values) or "").split(";")}
        elif value := _with_variables(next(words, ""), values):
            stated[word] = value
    return stated, languages.intersection(_LANGUAGES)


def _languages(commands: Sequence[Command], reached: Sequence[Command], of_project: set[str]) -> tuple[str, ...]:
    """The languages of a CMakeLists.txt; CMake takes C and C++ where project() names none.

    CUDA counts where an option that is off enables it, since GPU builds can set that; other languages do not.
    """
    named = (of_project or {"c", "cxx"}) | _enabled_languages(reached)
    if "CUDAToolkit" in _packages(commands) or "cuda" in _enabled_languages(commands):
        named.add("cuda")
    return tuple(language for language in _LANGUAGES if language in named)


def _by_default(commands: Sequence[Command], defined: Collection[str]) -> tuple[list[Command], list[str]]:
    """The commands without those that options of the file leave out, and the options behind which CUDA stands."""
    set_again = {name for name, *_ in _arguments(commands, "set")}.union(defined)
    options = {
        name: len(rest) > 1 and rest[1].upper() not in _OFF
        for name, *rest in _arguments(commands, "option")
        if name not in set_again and (len(rest) < 2 or rest[1].upper() in _OFF | _ON)
    }
    reached: list[Command] = []
    conditions: list[tuple[str, ...]] = []
    behind: list[str] = []
    for command in commands:
        if command.name == "if":
            conditions.append(command.arguments)
        elif command.name in ("else", "elseif") and conditions:
            conditions[-1] = ()
        elif command.name == "endif" and conditions:
            conditions.pop()
        elif not any(_is_off(words, options) for words in conditions[-_DEEPEST:]):
            reached.append(command)
        if "cuda" in _enabled_languages([command]) or "CUDAToolkit" in _packages([command]):
            pairs = (pair for words in conditions[-_DEEPEST:] for pair in pairwise(("", *words[:_LONGEST_CONDITION])))
            behind += [word for before, word in pairs if before != "NOT" and options.get(word) is False]
    return reached, behind


def _is_off(words: Sequence[str], options: Mapping[str, bool]) -> bool:
    """Whether a condition of options alone, such as `A OR NOT B`, is false by default."""
    alternatives = " ".join(words).split(" OR ") if len(words) <= _LONGEST_CONDITION else [""]
    return all(any(_is_off_alone(part, options) for part in each.split(" AND ")) for each in alternatives)


def _is_off_alone(part: str, options: Mapping[str, bool]) -> bool:
    name = part.removeprefix("NOT ")
    return options.get(name) is (name != part)


def _enabled_languages(commands: Sequence[Command]) -> set[str]:
    """The languages that a CMakeLists.txt enables after project(), perhaps on a condition."""
    return {word.lower() for words in _arguments(commands, "enable_language", "check_language") for word in words}


def _packages(commands: Sequence[Command]) -> list[str]:
    named = (name for name, *_ in _arguments(commands, "find_package", "find_dependency"))
    return [name for name in named if re.fullmatch(r"\w+", name)]


def _cuda_switches(commands: Sequence[Command]) -> Iterator[str]:
    """The options with CUDA in their names that are off, as those without a value are."""
    for name, *rest in _arguments(commands, "option"):
        is_off = len(rest) < 2 or rest[1].upper() in _OFF
        if is_off and re.fullmatch(r"\w*CUDA\w*", name, re.IGNORECASE):
            yield name


def _has_headers_alone(commands: Sequence[Command]) -> bool:
    """Whether all that it installs of its targets are libraries of headers."""
    kinds = {name: rest[:1] for name, *rest in _arguments(commands, "add_library")}
    installed = _installed(commands, [*kinds, *(name for name, *_ in _arguments(commands, "add_executable"))])
    return bool(installed) and all(kinds.get(name) == ["INTERFACE"] for name in installed)


def _libraries(commands: Sequence[Command]) -> list[str]:
    return [name for name, *rest in _arguments(commands, "add_library") if not _NOT_SHARED.intersection(rest[:1])]


def _installed(commands: Sequence[Command], targets: Sequence[str]) -> tuple[str, ...]:
    """Those of the targets that the file itself installs and does not rename."""
    installed = {name for kind, *names in _arguments(commands, "install") if kind == "TARGETS" for name in names}
    renamed: set[str] = set()
    for words in _arguments(commands, "set_target_properties"):
        if "OUTPUT_NAME" in words:
            renamed.update(words[: words.index("PROPERTIES")] if "PROPERTIES" in words else words[:1])
    plain = (name for name in targets if re.fullmatch(r"[\w.+-]+", name))
    return tuple(name for name in plain if name in installed - renamed)


#: One token with the spaces before it.
_TOKEN = re.compile(
    r"""
    \s*+ (?:
      (?P<bare> (?! \[=*+\[ ) (?: [^\s()\#"\\]++ | \\. )++)
    | (?P<opening> \()
    | (?P<closing> \))
    | "(?P<quoted> [^"\\]*+ (?: \\. [^"\\]*+ )*+)"
    | (?P<bracket> \#?\[(?P<level>=*+)\[)
    | (?P<comment> \#[^\n]*+)
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_REFERENCE = re.compile(r"\$\w*\{")
#: Characters of a value, and of a text with variables: each `set()` can double a value.
_LONGEST_VALUE = 200


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its name in lower case, its arguments without quotes, and its line, counted from 1.

    Lists are their elements: `C;CXX` without quotes is two arguments.
    """

    name: str
    arguments: tuple[str, ...]
    line: int


def _commands_of(text: str) -> Iterator[Command]:
    """The commands in their order, also those in conditions and definitions; none after a quote or bracket without end.

    >>> [command.arguments for command in _commands_of('project(foo DESCRIPTION "A (fast) library")  # project(bar)')]
    [('foo', 'DESCRIPTION', 'A (fast) library')]
    """
    at, depth, line, counted, begin = 0, 0, 1, 0, 0
    name, arguments = "", list[str]()
    while found := _TOKEN.match(text, at):
        at = found.end()
        kind = found.lastgroup
        if kind == "bare":
            word = found["bare"]
            if not depth:
                name, begin = word, found.start("bare")
            elif ";" in word or "\\" in word:
                arguments.extend(_unescaped(part) for part in word.split(";") if part)
            else:
                arguments.append(word)
        elif kind == "opening":
            arguments = arguments if depth else []
            depth += 1
        elif kind == "closing" and depth:
            depth -= 1
            if name and not depth:
                line += text.count("\n", counted, begin)
                counted = begin
                yield Command(name.lower(), tuple(arguments), line)
                name = ""
        elif kind == "quoted":
            arguments.append(_unescaped(found["quoted"]))
        elif kind == "bracket":
            end = text.find(f"]{found['level']}]", at)
            if end < 0:
                return
            if text[found.start("bracket")] != "#":
                arguments.append(text[at:end].removeprefix("\n"))
            at = end + len(found["level"]) + 2


def _literal_variables(commands: Iterable[Command]) -> dict[str, str]:
    """The variables that `set()` gives one value, made of literals and of such variables."""
    values: dict[str, str | None] = {}
    for command in commands:
        if command.name == "set" and command.arguments:
            variable, *words = command.arguments
            ends = [words.index(word) for word in ("CACHE", "PARENT_SCOPE") if word in words]
            value = _with_variables(";".join(words[: min(ends, default=None)]), values)
            known = value is not None and len(value) <= _LONGEST_VALUE and values.get(variable, value) == value
            values[variable] = value if known else None
    return {variable: value for variable, value in values.items() if value is not None}


def _with_variables(text: str, values: Mapping[str, str | None] | Mapping[str, str]) -> str | None:
    """The text with the values of its variables; None if one has no value, or the text is long.

    >>> _with_variables("lib${N}", {"N": "foo"}), _with_variables("${M}", {})
    ('libfoo', None)
    """
    if not _REFERENCE.search(text):
        return text
    if len(text) > _LONGEST_VALUE or any(values.get(variable) is None for variable in _VARIABLE.findall(text)):
        return None
    filled = _VARIABLE.sub(lambda found: str(values[found[1]]), text)
    return None if _REFERENCE.search(filled) else filled


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL) if "\\" in text else text
