"""The lists of GPU architectures that a feedstock's build scripts and recipe set for one configuration."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from feedstock_tools.check.architecture_lists import ARCHITECTURE_KEYS
from feedstock_tools.check.scripts.batch import read_batch
from feedstock_tools.check.scripts.shell import read_shell
from feedstock_tools.check.scripts.tree import Assigned, Node, run
from feedstock_tools.gpu_code.architecture import Architecture
from feedstock_tools.reading import LARGEST_SCRIPT, read_bytes, read_text

__all__ = ["ScriptList", "lists_in_scripts"]

#: Names that hold lists in scripts, in addition to those of configurations.
_NAMES = frozenset({*ARCHITECTURE_KEYS, "HERMETIC_CUDA_COMPUTE_CAPABILITIES", "CMAKE_CUDA_ARCHS"})
_GENCODE = re.compile(r"-gencode[= ]+arch=compute_\w+,code=(?P<codes>\[[^\]]*\]|[\w,]+)")
#: `env:` of a v1 recipe and `script_env` of a v0 one: `TORCH_CUDA_ARCH_LIST: "8.0"`, `- TORCH_CUDA_ARCH_LIST=8.0`.
_IN_RECIPE = re.compile(
    rf"^\s*+(?:-\s*+)?(?:export |set )?\"?(?P<name>{'|'.join(sorted(_NAMES))})"
    r"\s*+[:=]\s*+[\"']?(?P<value>[^\"'#$\[\]{}]++)[\"']?\s*+$"
)
#: bash's name of the system, by the first part of a subdir.
_OSTYPES = {"linux": "linux-gnu", "osx": "darwin"}
_BRANCH = re.compile(r"\s*+(?:-\s*+)?(?:if|then|else)\s*+:")
_LIST = re.compile(r"^(?=\D*\d)[\w.,;+\s-]*$")


@dataclass(frozen=True, slots=True)
class ScriptList:
    """A list of architectures in a file: the file's path in the feedstock, the line, variable and text.

    If a variable has a list only in some cases that cannot be distinguished, there is also one with an empty text.
    """

    path: str
    line: int
    name: str
    text: str

    def gencodes(self) -> tuple[Architecture, ...]:
        """The architectures in nvcc's own options; empty for any other kind of list."""
        return tuple(
            Architecture.parse(code)
            for match in _GENCODE.finditer(self.text)
            for code in match["codes"].strip("[]").replace("'", "").split(",")
            if re.fullmatch(r"(sm|compute)_\d{2,3}[af]?", code)
        )


def lists_in_scripts(folder: Path, feedstock: Path, values: Mapping[str, tuple[str, ...]]) -> Iterator[ScriptList]:
    """The lists that the scripts and the recipe in a folder set with the values of one row of a configuration.

    Scripts are read but not run: a value that depends on the output of a command is skipped.
    """
    platform = values.get("target_platform", ("",))[0]
    # A configuration that is not for ARM does not set this key, and scripts find it empty.
    given = {"arm_variant_type": ("",), "OSTYPE": (_OSTYPES.get(platform.partition("-")[0], ""),), **values}
    known = {key: frozenset({Assigned(texts[0], 0)}) for key, texts in given.items() if len(texts) == 1}
    for path in sorted(folder.glob("*")):
        name = path.relative_to(feedstock).as_posix()
        wanted = {".sh": _not_windows, ".bat": _windows}.get(path.suffix)
        if wanted is not None and wanted(platform):
            yield from _in_script(path, name, known)
        elif path.name in ("meta.yaml", "recipe.yaml"):
            yield from _in_recipe(path, name)


def _windows(platform: str) -> bool:
    return platform.startswith("win-")


def _not_windows(platform: str) -> bool:
    return not _windows(platform)


def _in_script(path: Path, name: str, known: Mapping[str, frozenset[Assigned]]) -> Iterator[ScriptList]:
    after = run(_tree(path, path.stat().st_mtime_ns), known)
    for variable, values in sorted((after or {}).items()):
        possible = sorted(values - known.get(variable, frozenset()), key=lambda value: (value.line, str(value.text)))
        if any(_is_list(variable, value.text or "") for value in possible):
            yield from (ScriptList(name, value.line, variable, value.text or "") for value in possible)


def _is_list(variable: str, text: str) -> bool:
    return (variable in _NAMES and _LIST.match(text) is not None) or _GENCODE.search(text) is not None


@lru_cache(maxsize=64)
def _tree(path: Path, changed: int) -> tuple[Node, ...]:
    """The tree of a script; `changed` distinguishes versions of the file."""
    text = read_bytes(path, LARGEST_SCRIPT, within=path.parent).decode(errors="replace").replace("\r\n", "\n")
    return read_shell(text) if path.suffix == ".sh" else read_batch(text)


def _in_recipe(path: Path, name: str) -> Iterator[ScriptList]:
    """Lists that apply to every configuration: a line with a selector or under an `if` is skipped."""
    # The parents of a line, by indentation, and whether one of them is an `if`.
    above: list[tuple[int, bool]] = []
    for number, line in enumerate(read_text(path, within=path.parent).splitlines(), 1):
        if not line.strip():
            continue
        depth = len(line) - len(line.lstrip())
        while above and above[-1][0] >= depth:
            above.pop()
        conditional = bool(above) and above[-1][1]
        match = _IN_RECIPE.match(line)
        if match and _LIST.match(match["value"]) and not conditional:
            yield ScriptList(name, number, match["name"], match["value"].rstrip())
        above.append((depth, conditional or _BRANCH.match(line) is not None))
