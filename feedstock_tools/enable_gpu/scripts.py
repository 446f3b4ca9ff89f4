"""The scripts that build something, and the build system that each calls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from feedstock_tools.edit.draft import Draft
from feedstock_tools.recipe.written.document import Document, Entry, Part, read_document
from feedstock_tools.recipe.written.owners import Owner

_WORD = re.compile(r"[\w.-]+")
_SUFFIXES = (".sh", ".bat")
#: The scripts that are run if a recipe names none.
_DEFAULT = MappingProxyType({"meta.yaml": ("build.sh", "bld.bat"), "recipe.yaml": ("build.sh", "build.bat")})


@dataclass(frozen=True, slots=True)
class BuildSystem:
    """How a build system learns GPU architectures: from a variable of the environment, in a style of the generator.

    `option` is the argument that holds the list; `appended` means that the variable may have other content too.
    """

    name: str
    variable: str
    style: str
    option: str = "{}"
    appended: bool = False


_CMAKE = BuildSystem("CMake", "CUDAARCHS", "cmake")
_CMAKE_ARGS = BuildSystem("CMake", "CMAKE_ARGS", "cmake", "-DCMAKE_CUDA_ARCHITECTURES={}", appended=True)
_TORCH = BuildSystem("PyTorch", "TORCH_CUDA_ARCH_LIST", "torch")
_BAZEL = BuildSystem("Bazel", "HERMETIC_CUDA_COMPUTE_CAPABILITIES", "list")
_MESON = BuildSystem("Meson", "CUDAFLAGS", "gencode", appended=True)
_NVCC = BuildSystem("make", "NVCC_APPEND_FLAGS", "gencode", appended=True)

#: Build systems by what a script calls, first match first.
_BY_CALL: Mapping[str, BuildSystem] = MappingProxyType(
    {
        r"\bbazel\b|gen-bazel-toolchain": _BAZEL,
        r"\bcmake\b(?!\s*<)": _CMAKE,
        r"\bmeson\b": _MESON,
        r"\./configure\b|\bconfigure\b.*--prefix|\b(?:n|g)?make\b|\bnvcc\b": _NVCC,
    }
)
#: Build systems by what a recipe requires, for scripts that call a Python front end.
_BY_REQUIREMENT: Mapping[str, BuildSystem] = MappingProxyType(
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
        """Whether it is a file of the recipe."""
        return self.commands is None

    @property
    def is_batch(self) -> bool:
        """Whether it is a file for Windows."""
        return self.is_file and self.document.path.suffix == ".bat"

    @property
    def text(self) -> str:
        """Its text."""
        if self.commands is None:
            return self.document.text
        return self.document.text[self.commands.start : self.commands.end]


def scripts_of(draft: Draft, owners: Iterable[Owner]) -> list[Script]:
    """The scripts of owners, each file once.

    Raises:
        InputError: a script is not text in UTF-8.
    """
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
        text = draft.recipe.text[entry.value.start : entry.value.end]
        files = _files_in(text, folder)
        scripts += [Script(owner, _read(draft, path)) for path in files]
        commands = _commands(entry.value)
        if not files and commands is not None:
            scripts.append(Script(owner, draft.recipe, entry, commands))
    if not entries and owner.kind != "output":
        paths = [folder / name for name in _DEFAULT[draft.recipe_path.name]]
        scripts += [Script(owner, _read(draft, path)) for path in paths if path.is_file()]
    return scripts


def _files_in(text: str, folder: Path) -> list[Path]:
    """The scripts of the recipe that a text names; `file: build-one` stands for one of each kind."""
    paths: dict[Path, None] = {}
    for word in _WORD.findall(text):
        names = [word] if word.endswith(_SUFFIXES) else [word + suffix for suffix in _SUFFIXES]
        for name in names:
            if (folder / name).is_file():
                paths[folder / name] = None
    return list(paths)


def _commands(value: Part) -> Part | None:
    """The commands of a script in the recipe: a text, a list, or the `content` of a mapping."""
    if value.kind == "mapping":
        return value.members.get("content")
    return value if value.source or value.items else None


def _read(draft: Draft, path: Path) -> Document:
    known = draft.document(path)
    return known if known is not None else read_document(path, within=draft.folder)


def system_of(script: Script) -> BuildSystem | None:
    """The build system that a script calls; None if this is unclear."""
    text = script.text
    required = script.owner.names("host") | script.owner.names("build")
    if "rust" in script.owner.compilers and not re.search(r"\bcmake\b", text):
        return None
    torch = next((name for name in required if _BY_REQUIREMENT.get(name) is _TORCH), None)
    if torch is not None:
        return _TORCH
    system = next((candidate for pattern, candidate in _BY_CALL.items() if re.search(pattern, text)), None)
    if system is None and _PYTHON.search(text):
        system = next((candidate for name, candidate in _BY_REQUIREMENT.items() if name in required), _NVCC)
    if system in (_CMAKE, _CMAKE_ARGS) and script.is_file:
        reads = _USED.search(text) or system is _CMAKE_ARGS
        return _CMAKE_ARGS if reads and not _RESET.search(text) else _CMAKE
    return _CMAKE if system is _CMAKE_ARGS else system
