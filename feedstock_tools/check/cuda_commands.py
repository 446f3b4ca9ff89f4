"""Whether the commands of a build would compile for CUDA: the options that scripts give, and undo, in one row.

Nothing is run, and the project is not known: the last option counts that is named for CUDA, as `-DUSE_CUDA=ON`,
`-DGPU_BACKEND=CUDA`, `--with-cuda`, `FORCE_CUDA=1`; else a call of nvcc. Without one, the answer is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from feedstock_tools.check.script_lists import commands_of, initial_values
from feedstock_tools.gpu_code.build_scripts import HOLE, Assigned, Values, calls_in, run, script_text, tree_of
from feedstock_tools.recipe.packages import Package, name_in

#: The compiler of CUDA among the requirements: a package with it is one that the recipe calls a CUDA build.
_NVCC = re.compile(r"(?:cuda-)?nvcc(?:_[\w-]+)?")
#: Names that switch CUDA on or off as a whole, not a part of it such as its tests; and those that mean the contrary.
_SWITCH = re.compile(
    r"(?:.*[_-])?(?:cuda|cudalib|gpu|(?:gpu|cuda)[_-](?:support|backend)|nvidia[_-]gpu)", re.IGNORECASE
)
_CONTRARY = re.compile(r"(?:^|[_-])(?:no|disable|without|skip)(?:[_-]|$)", re.IGNORECASE)
#: A word of a command, with the option before it that it belongs to.
_WORD = re.compile(r"(?:(?:-D|-C|--config-settings?)\s+)?\S+")
_OPTION = re.compile(
    r"(?:(?:-D\s*|(?:-C\s*|--config-settings?[=\s]\s*)(?:cmake\.define\.|setup-args=-D))?(?P<name>[A-Za-z_][\w.-]*)"
    r"(?::\w+)?=(?P<value>\S*)|--(?P<sign>with|enable|without|disable)-(?P<plain>[\w-]+)(?:=(?P<given>\S*))?"
    r"|--(?P<use>use[_-]\w+))"
)
_OFF = frozenset({"off", "0", "false", "no", "n", "none", "disabled", "cpu", "ignore", ""})
_ON = frozenset({"on", "1", "true", "yes", "y", "enabled", "cuda"})
_SCRIPT = re.compile(r"[\w.-]+\.(?:sh|bat)\b")
_SOURCE = re.compile(r"\.cu\b")
_EXPORTED = re.compile(r"(?m)^\s*export\s+([A-Za-z_]\w*)|^\s*@?set\s+\"?([A-Za-z_]\w*)=", re.IGNORECASE)
#: Programs that read the environment besides their arguments.
_READ_ENVIRONMENT = frozenset({"pip", "setup.py", "bazel", "make", "gmake", "configure"})
#: What the packages of conda-forge's compilers and the builder set, none of it about CUDA.
_SET_BY_BUILDS = {
    **dict.fromkeys(("CMAKE_ARGS", "MESON_ARGS", "CMAKE_PLATFORM_FLAGS"), ""),
    **{
        name: f"/{name}"
        for name in ("PREFIX", "BUILD_PREFIX", "LIBRARY_PREFIX", "SRC_DIR", "RECIPE_DIR", "PWD", "PYTHON", "CPU_COUNT")
    },
}


@dataclass(frozen=True, slots=True)
class Told:
    """What a command says about CUDA: yes, no, or not clear (None); and where: the file and line, and the option; no
    without an option is a script that always fails."""

    cuda: bool | None
    place: str = ""
    option: str = ""


def is_cuda_build(package: Package) -> bool:
    """Whether a package is built with the compiler of CUDA, as its recipe says."""
    return any(_NVCC.fullmatch(name_in(requirement)) for requirement in package.build)


def told_to(package: Package, folder: Path, values: Mapping[str, tuple[str, ...]]) -> Told:
    """What the commands of a package's build say about CUDA: yes if one says so, no if one does and none is unclear.

    Args:
        folder: that of the recipe.
        values: of one row of the package's configuration.
    """
    set_before = {name: frozenset({Assigned(text, 0)}) for name, text in _SET_BY_BUILDS.items()}
    initial = {**set_before, **initial_values(values, [package])}
    on_windows, by_recipe = package.platform.subdir.startswith("win-"), commands_of(package)[0]
    found = [
        told
        for name, text in _texts_of(package, folder).items()
        for told in _of_script(folder / name, text, initial, by_recipe, on_windows)
    ]
    return _decisive(found) or Told(None)


def wrong_target(
    package: Package, folder: Path, values: Mapping[str, tuple[str, ...]], *, of_jetson: bool
) -> tuple[str, str] | None:
    """The place of a variable that names the folder of CUDA for other ARM machines, and this folder; None without one.

    CUDA 12 for Jetson's own system is in `targets/aarch64-linux`, that for servers, and all of CUDA 13, in
    `targets/sbsa-linux`.

    Args:
        of_jetson: the build is for Jetson's own system.
    """
    other = "sbsa-linux" if of_jetson else "aarch64-linux"
    named = re.compile(rf"(?:^|targets/){other}(?![\w-])")
    initial = initial_values(values, [package])
    for name, text in _texts_of(package, folder).items():
        after = run(tree_of(text, is_batch=False), initial)
        wrong = [
            max(value.line for value in possible)
            for possible in after.values()
            if all(value.line and named.search(value.written) for value in possible)
        ]
        if wrong:
            return f"{name or 'recipe'}:{min(wrong)}", other
    return None


def _texts_of(package: Package, folder: Path) -> dict[str, str]:
    """The scripts that build a package and those that they name, by the names of their files; commands by the name of
    the recipe."""
    on_windows = package.platform.subdir.startswith("win-")
    _, commands = commands_of(package)
    texts = {"": commands} if commands else {}
    files = [str(script.get("file")) for script in package.scripts if isinstance(script, Mapping)]
    pending = [name for file in files for name in (file, f"{file}{'.bat' if on_windows else '.sh'}")]
    if package.scripts[-1] is None or (folder / "meta.yaml").is_file():  # that of the whole recipe runs before outputs'
        pending += ["bld.bat", "build.bat"] if on_windows else ["build.sh"]
    pending += _SCRIPT.findall(commands)
    while pending:
        name = pending.pop()
        path = folder / name
        if name not in texts and path.parent == folder and path.is_file():
            texts[name] = script_text(path, folder)
            pending += _SCRIPT.findall(texts[name])
    return texts


def _of_script(path: Path, text: str, initial: Values, by_recipe: Collection[str], on_windows: bool) -> Iterator[Told]:
    """What each call in a script says, where it says something; `by_recipe` are the variables that the recipe sets."""
    after = run(tree_of(text, is_batch=on_windows and path.suffix != ".sh"), initial)
    if not after:
        yield Told(False, path.name)  # it always fails
    exported = {*by_recipe, *(name for match in _EXPORTED.finditer(text) for name in match.groups() if name)}
    environment = [f"{name}={_only(after, name)}" for name in sorted(exported) if _SWITCH.fullmatch(name)]
    arguments = _only(after, "CMAKE_ARGS") if "CMAKE_ARGS" in exported else ""
    for program, line, texts in calls_in(after):
        if program in _READ_ENVIRONMENT:
            by_python = arguments if program in {"pip", "setup.py"} else ""
            texts = frozenset(text if text == HOLE else " ".join([text, by_python, *environment]) for text in texts)
        answers = {_of_call(program, each) for each in texts}
        told = [answer for answer in answers if answer is not None]
        if told:
            alike = len({None if answer is None else answer.cuda for answer in answers}) == 1
            option = max(answer.option for answer in told)
            yield Told(told[0].cuda if alike else None, f"{path.name}:{line}", option)


def _only(values: Values, name: str) -> str:
    """The value of a variable; `HOLE` if it may have several."""
    possible = {value.written for value in values.get(name, ())}
    return possible.pop() if len(possible) == 1 else HOLE


def _of_call(program: str, command: str) -> Told | None:
    """What a command says, the last value of each option counting; None without any option for CUDA."""
    if command == HOLE:
        return Told(None)  # it may not be called
    last: dict[str, Told] = {}
    chose_cuda = set()
    for word in _WORD.finditer(command):
        option = _OPTION.fullmatch(word[0])
        if option is None:
            if word[0].startswith(HOLE) and word[0][1:2] != "/":  # what is unknown may give, or undo, any option
                last = {name: replace(told, cuda=None) for name, told in last.items()}
            continue
        name, value = _read(option)
        if value.lower() == "cuda":
            chose_cuda.add(name)
        if name in chose_cuda or _SWITCH.fullmatch(name):
            last[name] = Told(_switched(name, value), option=word[0])
    if program == "nvcc" and _SOURCE.search(command):
        last[""] = Told(True, option="nvcc")
    return _decisive(last.values())


def _decisive(said: Collection[Told]) -> Told | None:
    """What counts of all that was said: a yes before what is unclear, and that before a no."""
    return next((told for cuda in (True, None, False) for told in said if told.cuda is cuda), None)


def _read(option: re.Match[str]) -> tuple[str, str]:
    """The name and value of an option; those of configure are on or off."""
    if option["name"]:
        return option["name"], option["value"].strip("'\"")
    if option["use"]:
        return option["use"], "on"
    value = option["given"]
    if option["sign"] in {"without", "disable"} or (value is not None and value.lower() in _OFF):
        return option["plain"], "off"
    return option["plain"], "on"


def _switched(name: str, value: str) -> bool | None:
    """Whether a switch with a value turns CUDA on; None if that is unclear, as for `-DGPU=HIP`."""
    answer = True if value.lower() in _ON else False if value.lower() in _OFF else None
    return answer if answer is None or not _CONTRARY.search(name) else not answer
