"""What a CMakeLists.txt says about its project: name, version, languages, what it installs and looks for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from feedstock_tools.errors import InputError
from feedstock_tools.generate.cmake_commands import Command, commands_of, literal_variables, with_variables
from feedstock_tools.reading import read_text

_LARGEST = 1024 * 1024
#: Words of project() that one value follows; languages follow the name or LANGUAGES.
_WITH_VALUE = frozenset({"VERSION", "COMPAT_VERSION", "SPDX_LICENSE", "DESCRIPTION", "HOMEPAGE_URL"})
#: The languages that have compilers in recipes, in the order in which recipes name them.
_LANGUAGES = ("c", "cxx", "fortran", "cuda")
#: Words after the name in add_library() for which no shared library is installed.
_NOT_SHARED = frozenset({"STATIC", "OBJECT", "INTERFACE", "ALIAS", "IMPORTED", "MODULE"})
_OFF = frozenset({"OFF", "NO", "FALSE", "0"})
#: Packages that compilers and `python` bring.
_OF_COMPILERS = frozenset({"CUDA", "CUDAToolkit", "Python", "Python3", "PythonInterp", "PythonLibs", "Threads"})


@dataclass(frozen=True, slots=True)
class CMakeLists:
    """A CMakeLists.txt as far as it tells without being run.

    `name` is None if project() names a variable without a literal value; `written_name` is what project() has,
    in its `line`. The other fields are those of `Project`.
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


def read_cmake_lists(folder: Path) -> CMakeLists:
    """The CMakeLists.txt of a folder.

    Raises:
        InputError: it cannot be read, or has no project().
    """
    path = folder / "CMakeLists.txt"
    commands = tuple(commands_of(read_text(path, _LARGEST, within=folder)))
    project = next((one for one in commands if one.name == "project" and one.arguments), None)
    if project is None:
        hint = "Add it: project(name VERSION 1.0.0 LANGUAGES CXX)"
        raise InputError("there is no project(…)", path=path, hint=hint)
    values = literal_variables(commands[: commands.index(project)])
    stated, languages = _stated(project, values)
    version = re.match(r"[0-9][0-9.]*", stated.get("VERSION", ""))
    return CMakeLists(
        path=path,
        line=project.line,
        written_name=project.arguments[0],
        name=with_variables(project.arguments[0], values),
        version=version[0] if version else None,
        summary=stated.get("DESCRIPTION"),
        homepage=stated.get("HOMEPAGE_URL"),
        languages=_languages(commands, languages),
        only_gpu="cuda" in languages,
        kernels="cuda" in languages | _enabled_languages(commands),
        libraries=_installed(commands, _libraries(commands)),
        programs=_installed(commands, [name for name, *_ in _arguments(commands, "add_executable")]),
        cuda_switches=tuple(dict.fromkeys(_cuda_switches(commands))),
        packages=tuple(sorted(set(_packages(commands)) - _OF_COMPILERS)),
    )


def _arguments(commands: Sequence[Command], *names: str) -> Iterator[tuple[str, ...]]:
    """The arguments of the commands of these names, each with at least one."""
    return (command.arguments for command in commands if command.name in names and command.arguments)


def _stated(project: Command, values: Mapping[str, str]) -> tuple[dict[str, str], set[str]]:
    """The values that project() has by their words, without those of unknown variables, and its languages."""
    stated: dict[str, str] = {}
    languages: set[str] = set()
    words = iter(project.arguments[1:])
    for word in words:
        if word not in _WITH_VALUE:
            languages |= {one.lower() for one in (with_variables(word, values) or "").split(";")}
        elif value := with_variables(next(words, ""), values):
            stated[word] = value
    return stated, languages.intersection(_LANGUAGES)


def _languages(commands: Sequence[Command], of_project: set[str]) -> tuple[str, ...]:
    """The languages of a CMakeLists.txt; CMake takes C and C++ where project() names none."""
    named = (of_project or {"c", "cxx"}) | _enabled_languages(commands)
    if "CUDAToolkit" in _packages(commands):
        named.add("cuda")
    return tuple(language for language in _LANGUAGES if language in named)


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
