"""The lists of GPU architectures that a feedstock's build scripts and recipe set for one configuration."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from feedstock_tools.errors import InputError
from feedstock_tools.gpu_code import architecture_lists
from feedstock_tools.gpu_code.architecture import Architecture
from feedstock_tools.gpu_code.build_scripts import Assigned, Node, Values, run, script_text, tree_of
from feedstock_tools.reading import read_text
from feedstock_tools.recipe.packages import Package, texts_in
from feedstock_tools.recipe.v1.expressions import Scope, UndecidedError, value_of
from feedstock_tools.rerender.configuration import Configuration

_TEMPLATE = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_ARGUMENT = architecture_lists.argument_pattern(r"[^\s\"')]+")
#: bash's name of the system, by the first part of a subdir.
_OSTYPES = {"linux": "linux-gnu", "osx": "darwin"}
#: More than any list: what is longer is not read as one.
_LONGEST = 10_000


@dataclass(frozen=True, slots=True)
class ScriptList:
    """A list of architectures in a file: the file's path in the feedstock, the line, variable and text.

    If a variable has a list only in some cases that cannot be distinguished, there is also one with an empty text.
    """

    path: str
    line: int
    name: str
    text: str

    @property
    def is_command(self) -> bool:
        """Whether it is a call of nvcc, which need not be the only one."""
        return self.name.startswith("nvcc@")

    @property
    def title(self) -> str:
        """The variable, or `nvcc`."""
        return "nvcc" if self.is_command else self.name

    @property
    def is_native(self) -> bool:
        """Whether it means the GPU of the machine that builds."""
        return architecture_lists.is_native(self.text) or (
            self.name not in architecture_lists.VARIABLES and architecture_lists.options_in(self.text)[1]
        )

    def architectures(self) -> tuple[Architecture, ...]:
        """The architectures; empty where there is no list, or names that stand for those of the toolkit."""
        if of_kokkos := architecture_lists.kokkos_architecture(self.name, self.text):
            return of_kokkos
        if self.name not in architecture_lists.VARIABLES:
            return architecture_lists.options_in(self.text)[0]
        try:
            return architecture_lists.read_list(self.text, architecture_lists.form_of(self.name))
        except InputError:
            return architecture_lists.options_in(self.text)[0]


def lists_in_scripts(
    folder: Path, feedstock: Path, values: Mapping[str, tuple[str, ...]], outputs: Iterable[Package] = ()
) -> Iterator[ScriptList]:
    """The lists that the scripts and the recipe in a folder set with the values of one row of a configuration.

    Scripts are read but not run: a value that depends on the output of a command is skipped.

    Args:
        outputs: what the recipe says of its builds in this configuration.
    """
    outputs = list(outputs)
    initial = initial_values(values, outputs)
    built = [commands_of(package) for package in outputs]
    on_windows = values.get("target_platform", ("",))[0].startswith("win-")
    for path in sorted(folder.glob("*.bat" if on_windows else "*.sh")):
        yield from _in_tree(
            tree_of(script_text(path, folder), is_batch=on_windows), path.relative_to(feedstock).as_posix(), initial
        )
    for path in (folder / "recipe.yaml", folder / "meta.yaml"):
        if built and path.is_file():
            name, text = path.relative_to(feedstock).as_posix(), read_text(path, within=folder)
            yield from dict.fromkeys(_in_recipe(text, name, initial, built, is_batch=on_windows))
            return


def cuda_rows(configuration: Configuration) -> Iterator[Mapping[str, tuple[str, ...]]]:
    """The values of each row of a configuration that says a CUDA version, or `None` for the CPU."""
    zipped = next((group for group in configuration.zip_keys if "cuda_compiler_version" in group), ())
    for number, cuda in enumerate(configuration.values.get("cuda_compiler_version", ())):
        own = {key: configuration.values[key][number : number + 1] for key in zipped if key in configuration.values}
        yield {**configuration.values, "cuda_compiler_version": (cuda,), **own}


def script_values(values: Mapping[str, tuple[str, ...]], subdir: str) -> Mapping[str, tuple[str, ...]]:
    """The values of a row as scripts find them."""
    return {**values, **dict.fromkeys(("target_platform", "host_platform"), (subdir,))}


def initial_values(values: Mapping[str, tuple[str, ...]], outputs: Iterable[Package]) -> Values:
    """The variables that scripts find with the values of one row of a configuration, and what the recipe sets for the
    builds of some outputs."""
    platform = values.get("target_platform", ("",))[0]
    # A configuration that is not for ARM does not set this key, and scripts find it empty.
    settings = {"arm_variant_type": ("",), "OSTYPE": (_OSTYPES.get(platform.partition("-")[0], ""),), **values}
    initial = {key: frozenset({Assigned(texts[0], 0)}) for key, texts in settings.items() if len(texts) == 1}
    return {**initial, **_environments(commands_of(package)[0] for package in outputs)}


def commands_of(package: Package) -> tuple[dict[str, str], str]:
    """The variables that the recipe sets for a build, and the commands in the recipe itself (empty where the build runs
    a file), with the values of templates, which rattler-build leaves to the build."""
    scope = Scope(package.platform, {}, package.output.variant)
    pairs = (text.partition("=") for text in package.script_env)
    environment = {name.strip(): value.strip() for name, sign, value in pairs if sign}
    commands: list[str] = []
    for script in package.scripts:
        if isinstance(script, Mapping):
            environment |= {name: _expanded(str(value), scope) for name, value in (script.get("env") or {}).items()}
            script = script.get("content")
        commands += [_expanded(command, scope) for command in texts_in(script)]
    return environment, "\n".join(commands)


def _expanded(text: str, scope: Scope) -> str:
    """A text with the values of its templates; those without a certain value stay."""

    def value(match: re.Match[str]) -> str:
        try:
            found = value_of(match[1], scope)
        except UndecidedError:
            return match[0]
        return str(found) if isinstance(found, str | int) else match[0]

    return _TEMPLATE.sub(value, text)


def _environments(environments: Iterable[Mapping[str, str]]) -> Values:
    """The variables that the recipe sets for scripts; of those that outputs set differently, every value."""
    values: dict[str, set[Assigned]] = {}
    for environment in environments:
        for name, text in environment.items():
            values.setdefault(name, set()).add(Assigned(text, 0))
    return {name: frozenset(texts) for name, texts in values.items()}


def _in_tree(tree: Iterable[Node], path: str, initial: Values) -> Iterator[ScriptList]:
    """The lists in the values that variables have after a script, but for those that they had before."""
    after = run(tree, initial)
    for variable, values in sorted(after.items()):
        possible = sorted(values - initial.get(variable, frozenset()), key=lambda value: (value.line, str(value.text)))
        found = [(value.line, _lists_of(variable, value.text or "")) for value in possible if "@call@" not in variable]
        for name in dict.fromkeys(name for _, lists in found for name in lists):
            if name == variable or name not in after:
                yield from dict.fromkeys(ScriptList(path, line, name, lists.get(name, "")) for line, lists in found)


def _lists_of(variable: str, text: str) -> dict[str, str]:
    """The lists in the value of a variable, by the variable or argument that they are for."""
    if len(text) > _LONGEST:
        return {}
    if ScriptList("", 0, variable, text).architectures() or (
        variable in architecture_lists.VARIABLES and architecture_lists.is_native(text)
    ):
        return {variable: text}
    arguments = {match["defined"] or match["plain"]: match["value"] for match in _ARGUMENT.finditer(text)}
    lists = {
        name: value
        for name, value in arguments.items()
        if ScriptList("", 0, name, value).architectures() or architecture_lists.is_native(value)
    }
    return lists or ({variable: text} if any(architecture_lists.options_in(text)) else {})


def _in_recipe(
    text: str, path: str, initial: Values, built: Iterable[tuple[Mapping[str, str], str]], *, is_batch: bool
) -> Iterator[ScriptList]:
    """The lists in the variables and commands that a recipe has for its outputs, at their lines in its text."""
    lines = _Lines(text)
    for environment, commands in built:
        for variable, value in environment.items():
            for name, listed in _lists_of(variable, value).items():
                yield ScriptList(path, lines.of(name, listed), name, listed)
        for found in _in_tree(tree_of(commands, is_batch=is_batch), path, initial):
            yield ScriptList(path, lines.of(found.name, found.text), found.name, found.text)


class _Lines:
    """The lines of a recipe by the variables that they name."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        self._naming: dict[str, list[tuple[int, str]]] = {}

    def of(self, name: str, value: str) -> int:
        """The line that sets a variable to a value, else the first that names it, else the first of all."""
        plain = name.partition("@")[0]
        if plain not in self._naming:
            naming = re.compile(rf"(?:(?<!\w)|(?<=-D)){re.escape(plain)}(?!\w)")
            found = [(number, line) for number, line in enumerate(self._lines, 1) if naming.search(line)]
            self._naming[plain] = found or [(1, "")]
        lines = self._naming[plain]
        return next((number for number, line in lines if value in line), lines[0][0])
