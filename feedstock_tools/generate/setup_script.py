"""What a setup.py says of a project, read from its syntax tree: nothing of it is run.

What only running it would tell is None or left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from feedstock_tools.errors import InputError
from feedstock_tools.reading import is_file, read_text

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
_SWITCH = re.compile(r"([A-Z0-9]+_)*(FORCE|USE|WITH|BUILD)_CUDA")
#: Variables with CUDA in their names that say where it is, and not whether to build with it.
_NO_SWITCH = re.compile(r"CUDA_(HOME|PATH|ROOT|INCLUDE\w*|LIB\w*|VISIBLE_DEVICES|VERSION)|\w*ARCH\w*|.*[^A-Z0-9_].*")
#: Variables without which some take a wheel that their project built: `FLASH_ATTENTION_FORCE_BUILD`.
_FORCE_BUILD = re.compile(r"[A-Z0-9_]{1,60}_FORCE_BUILD")
#: What tells that a setup.py packs libraries which it makes in a way of its own.
_PACKED, _PLATFORM_WHEEL = re.compile(r"[\w*{}.-]*\.so"), frozenset({"has_ext_modules", "root_is_pure"})
#: What fetches files as it builds.
_FETCHES = frozenset({"urlopen", "urlretrieve", "git clone"})
#: Modules that serve builds → their projects.
_MODULES = {
    **{name: name for name in ("cffi", "jinja2", "mako", "nanobind", "numpy", "packaging", "pkgconfig", "pybind11")},
    **{"Cython": "cython", "setuptools_rust": "setuptools-rust", "setuptools_scm": "setuptools-scm"},
    **{"skbuild": "scikit-build", "torch": "torch", "wheel": "wheel"},
}
#: Programs that tell where a library is: `curl-config`.
_CONFIG = re.compile(r"[a-z][\w.]{0,40}-config|(?:pg|mysql|net)_config")
#: Libraries of every system.
_OF_SYSTEMS = frozenset({"c", "dl", "m", "pthread", "rt", "stdc++", "util"})


@dataclass(frozen=True, slots=True)
class SetupScript:
    """What a setup.py says.

    Attributes:
        arguments: those of `setup()` whose values are literals, or names of such.
        languages: those that its extensions compile.
        for_torch: whether its extensions are compiled against PyTorch.
        only_gpu: whether it compiles CUDA code under no condition.
        switches: the environment variables that turn CUDA on with the value 1.
        asked: others with CUDA in their names, which may do so.
        force_build: those without which it takes a wheel that its project built.
        runs_cmake: whether it calls CMake.
        packs_libraries: whether it packs libraries and names no extension.
        fetches: whether it may fetch something as it builds.
        projects: those of the modules that it imports and needs.
        links: libraries that it names, and those whose `…-config` it asks.
    """

    arguments: Mapping[str, Any] = field(default_factory=dict)
    languages: tuple[str, ...] = ()
    for_torch: bool = False
    only_gpu: bool = False
    switches: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    force_build: tuple[str, ...] = ()
    runs_cmake: bool = False
    packs_libraries: bool = False
    fetches: bool = False
    projects: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


def read_setup_script(path: Path) -> SetupScript:
    """The setup.py of a project, with the modules beside it that it imports.

    Raises:
        InputError: it cannot be read, or is not Python.
    """
    tree = _parsed(path)
    known = dict(_assigned(tree))
    _leave_out(tree, _turned_off(tree))
    used = set(_mentioned(tree))
    trees = [tree, *(ast.Module(list(_used(module, used)), []) for module in _modules_beside(path, tree))]
    calls = [node for each in trees for node in ast.walk(each) if isinstance(node, ast.Call)]
    made = {name for call in calls if (name := _called(call)) in _EXTENSIONS}
    mentioned = {name for each in trees for name in _mentioned(each)}
    named = made | {name for name in mentioned if name in _EXTENSIONS.keys() - {"RustExtension"} or name in _OF_TORCH}
    looked_up = {name for each in trees for name in _looked_up(each) if isinstance(name, str)}
    texts = {text for each in trees for text in _texts(each)}
    others = {name for each in trees for name, value in _compared(each) if value != "1"}
    cuda = [each for each in sorted(looked_up) if "CUDA" in each and not _NO_SWITCH.fullmatch(each)]
    switches = [each for each in cuda if _SWITCH.fullmatch(each) and each not in others]
    languages = {language for name in named for language in _EXTENSIONS.get(name, ())}
    languages |= {"cxx" for call in calls if _argument(call, "language") == "c++"}
    packs = not named and (bool(mentioned & _PLATFORM_WHEEL) or any(map(_PACKED.fullmatch, texts)))
    return SetupScript(
        arguments={
            key: value
            for call in ast.walk(tree)
            if isinstance(call, ast.Call) and _called(call) == "setup"
            for key, value in _literals(call, known)
            if value is not None
        },
        languages=tuple(each for each in ("c", "cxx", "cuda", "rust") if each in languages),
        for_torch=not named.isdisjoint(_OF_TORCH),
        only_gpu="CUDAExtension" in named and not any(map(_is_conditional, trees)),
        switches=tuple(switches),
        asked=tuple(each for each in cuda if each not in switches),
        force_build=tuple(sorted(filter(_FORCE_BUILD.fullmatch, looked_up))),
        runs_cmake="cmake" in texts,
        packs_libraries=packs,
        fetches=bool(_FETCHES & (mentioned | texts)) or any(text.startswith("git clone ") for text in texts),
        projects=tuple(dict.fromkeys(_MODULES[name] for name in _imported(tree) if name in _MODULES)),
        links=tuple(sorted({*filter(_CONFIG.fullmatch, texts), *_linked(calls)} - {"python-config", "pkg-config"})),
    )


#: Modules beside a setup.py that are read.
_MOST_MODULES = 20


def _modules_beside(path: Path, tree: ast.AST) -> Iterator[ast.Module]:
    """The modules in the folder of a setup.py that it imports and that can be read."""
    files = [path.with_name(f"{name}.py") for name in dict.fromkeys(_imported(tree)) if name.isidentifier()]
    for file in list(filter(is_file, files))[:_MOST_MODULES]:
        with suppress(InputError):
            yield _parsed(file)


def _turned_off(tree: ast.Module) -> set[str]:
    """The names that are false unless the command line says otherwise: `if "--rust" in sys.argv: RUST = True`."""
    asked = (node for node in ast.walk(tree) if isinstance(node, ast.If) and "argv" in set(_mentioned(node.test)))
    by_hand = {id(node) for condition in asked for node in ast.walk(condition)}
    values: dict[str, set[Any]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and id(node) not in by_hand:
            is_false = isinstance(node.value, ast.Constant) and node.value.value is False
            for target in node.targets:
                values.setdefault(getattr(target, "id", ""), set()).add(is_false)
    return {name for name, found in values.items() if found == {True}}


def _leave_out(tree: ast.Module, names: set[str]) -> None:
    """Remove what stands below `if NAME:`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id in names:
            node.body = [ast.Pass()]


def _used(module: ast.Module, names: set[str]) -> Iterator[ast.stmt]:
    """The statements of a module without the functions and classes that nothing of these names uses."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    waiting = [node for node in module.body if isinstance(node, kinds)]
    found: list[ast.stmt] = [node for node in module.body if not isinstance(node, kinds)]
    while found:
        yield from found
        names = names.union(*map(_mentioned, found))
        found = [node for node in waiting if node.name in names]
        waiting = [node for node in waiting if node.name not in names]


def _parsed(path: Path) -> ast.Module:
    text = read_text(path, _LARGEST, within=path.parent)
    try:
        return ast.parse(text)
    except SyntaxError as error:
        hint = "Only Python 3 is read. A pyproject.toml with [project] is read instead of it."
        raise InputError(f"is not Python: {error.msg}", path=path, line=error.lineno, hint=hint) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise InputError("is not Python that can be read", path=path) from error


def _imported(tree: ast.AST) -> Iterator[str]:
    """The modules at the top that are imported, but for those that it tries to have."""
    waiting = [tree]
    while waiting:
        for node in ast.iter_child_nodes(waiting.pop()):
            if isinstance(node, ast.Import):
                yield from (each.name.partition(".")[0] for each in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module.partition(".")[0]
            elif isinstance(node, ast.stmt) and not isinstance(node, ast.Try):
                waiting.append(node)


def _texts(tree: ast.AST) -> Iterator[str]:
    return (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))


def _argument(call: ast.Call, name: str) -> Any:
    return next((_literal(each.value, {}) for each in call.keywords if each.arg == name), None)


def _linked(calls: Sequence[ast.Call]) -> Iterator[str]:
    """The libraries that extensions are linked with, where they are literals."""
    for call in calls:
        found = _argument(call, "libraries")
        yield from (
            name
            for name in (found if isinstance(found, list) else ())
            if isinstance(name, str) and re.fullmatch(r"[\w.+-]{1,40}", name) and name not in _OF_SYSTEMS
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


def _compared(tree: ast.AST) -> Iterator[tuple[object, object]]:
    """What may name an environment variable, and the text that a condition compares its value with."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.comparators[0], ast.Constant):
            yield from ((name, node.comparators[0].value) for name in _looked_up(node.left))


def _is_conditional(tree: ast.AST) -> bool:
    """Whether a `CUDAExtension` stands below a condition; `if not SKIP_CUDA_BUILD:` holds unless someone asks."""
    conditions = (node for node in ast.walk(tree) if isinstance(node, (ast.If, ast.IfExp, ast.Try)))
    return any(
        "CUDAExtension" in set(_mentioned(condition))
        for condition in conditions
        if isinstance(condition, ast.Try) or not ast.unparse(condition.test).startswith("not SKIP_")
    )


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
