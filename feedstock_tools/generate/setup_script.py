"""What a setup.py says of a project, read from its syntax tree: nothing of it is run.

What only running it would tell is None or left out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from feedstock_tools.errors import InputError
from feedstock_tools.reading import read_text

_LARGEST = 1024 * 1024
#: The classes and functions that make extensions, each with the languages that it compiles.
_EXTENSIONS = {
    "Extension": ("c",),
    "CppExtension": ("c", "cxx"),
    "CUDAExtension": ("c", "cxx", "cuda"),
    "Pybind11Extension": ("c", "cxx"),
    "cythonize": ("c",),
    "RustExtension": ("c", "rust"),
}
#: Those that compile against PyTorch.
_OF_TORCH = frozenset({"CppExtension", "CUDAExtension", "BuildExtension"})
#: Ways of a setup.py to ask whether the machine has a CUDA compiler: GPU builds must not depend on the answer.
_SWITCHES = ("FORCE_CUDA", "USE_CUDA", "WITH_CUDA", "BUILD_CUDA")


@dataclass(frozen=True, slots=True)
class SetupScript:
    """What a setup.py says.

    Attributes:
        arguments: those of `setup()` whose values are literals, or names of such.
        languages: those that its extensions compile.
        for_torch: whether its extensions are compiled against PyTorch.
        only_gpu: whether it compiles CUDA code under no condition.
        switches: the environment variables that turn CUDA on.
    """

    arguments: Mapping[str, Any] = field(default_factory=dict)
    languages: tuple[str, ...] = ()
    for_torch: bool = False
    only_gpu: bool = False
    switches: tuple[str, ...] = ()


def read_setup_script(path: Path) -> SetupScript:
    """The setup.py of a project.

    Raises:
        InputError: it cannot be read, or is not Python.
    """
    text = read_text(path, _LARGEST, within=path.parent)
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        hint = "Only Python 3 is read. A pyproject.toml with [project] is read instead of it."
        raise InputError(f"is not Python: {error.msg}", path=path, line=error.lineno, hint=hint) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise InputError("is not Python that can be read", path=path) from error
    known = dict(_assigned(tree))
    calls = [(_called(node), node) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    made = {name for name, _ in calls if name in _EXTENSIONS}
    named = made | {name for name in _mentioned(tree) if name in _EXTENSIONS or name in _OF_TORCH}
    looked_up = set(_looked_up(tree))
    languages = {language for name in named for language in _EXTENSIONS.get(name, ())}
    return SetupScript(
        arguments={
            key: value
            for name, call in calls
            if name == "setup"
            for key, value in _literals(call, known)
            if value is not None
        },
        languages=tuple(each for each in ("c", "cxx", "cuda", "rust") if each in languages),
        for_torch=not named.isdisjoint(_OF_TORCH),
        only_gpu="CUDAExtension" in named and not _is_conditional(tree),
        switches=tuple(name for name in _SWITCHES if name in looked_up),
    )


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _mentioned(tree: ast.AST) -> Iterator[str]:
    """The names that expressions use: `extension = CUDAExtension if … else CppExtension`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def _looked_up(tree: ast.AST) -> Iterator[object]:
    """What may name an environment variable: `getenv("A")`, `environ["A"]`, `"A" in environ`; not a macro's name."""
    for node in ast.walk(tree):
        found: ast.expr | None = None
        if isinstance(node, ast.Call) and node.args:
            found = node.args[0]
        elif isinstance(node, ast.Subscript):
            found = node.slice
        elif isinstance(node, ast.Compare):
            found = node.left
        if isinstance(found, ast.Constant):
            yield found.value


def _is_conditional(tree: ast.AST) -> bool:
    """Whether a `CUDAExtension` stands below a condition."""
    conditions = (node for node in ast.walk(tree) if isinstance(node, (ast.If, ast.IfExp, ast.Try)))
    return any("CUDAExtension" in set(_mentioned(condition)) for condition in conditions)


def _assigned(tree: ast.Module) -> Iterator[tuple[str, Any]]:
    """The names that the module gives a literal, the last value of each."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, _literal(node.value, {})


def _literals(call: ast.Call, known: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for keyword in call.keywords:
        if keyword.arg is not None:
            yield keyword.arg, _literal(keyword.value, known)


def _literal(node: ast.expr, known: Mapping[str, Any]) -> Any:
    """The value of a literal, or of a name that has one; None for anything else."""
    if isinstance(node, ast.Name):
        return known.get(node.id)
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
