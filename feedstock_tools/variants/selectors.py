"""Selectors of conda-build's files: `text  # [linux and cuda_compiler_version != "None"]`.

A line with a selector stays if its condition holds and loses the bracket; whole-line comments are removed. Conditions
are Python expressions of conda-build's small dialect; they are checked against a list of allowed syntax, compiled once
and evaluated without builtins. (conda_build/metadata.py: sel_pat, select_lines, eval_selector.)
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from types import CodeType
from typing import Any

from feedstock_tools.errors import InputError
from feedstock_tools.platforms import KNOWN_SUBDIRS
from feedstock_tools.variants.model import Variant
from feedstock_tools.variants.rules import CondaBuildRules

#: conda-build's own defaults (variants.py, DEFAULT_VARIANTS); there `python` and `numpy` follow the interpreter.
DEFAULT_VARIANT: Variant = {
    "python": "3.12",
    "numpy": "1.26",
    "perl": "5.26.2",
    "lua": "5",
    "r_base": "3.5",
    "cpu_optimization_target": "nocona",
    "cran_mirror": "https://cran.r-project.org",
}
_COMPILERS = {
    "linux": {"c_compiler": "gcc", "cxx_compiler": "gxx", "fortran_compiler": "gfortran"},
    "osx": {"c_compiler": "clang", "cxx_compiler": "clangxx", "fortran_compiler": "gfortran"},
    "win": {"c_compiler": "vs2017", "cxx_compiler": "vs2017", "fortran_compiler": "gfortran", "vc": "14"},
}
_ARCHITECTURES = {"32": "x86", "64": "x86_64"}
#: The selectors before every system and architecture of conda was one (conda's NON_X86_LINUX_MACHINES).
_OLD_SUBDIRS = (
    *("linux-64", "linux-32", "osx-64", "win-64", "linux-aarch64", "linux-arm64", "linux-armv6l", "linux-armv7l"),
    *("linux-ppc64", "linux-ppc64le", "linux-riscv64", "linux-s390x"),
)
_PYTHONS = (26, 27, 33, 34, 35, 36)


def default_variant(subdir: str) -> Variant:
    """conda-build's defaults for keys that no file sets."""
    return {**DEFAULT_VARIANT, **_COMPILERS.get(subdir.partition("-")[0], {}), "target_platform": subdir}


@lru_cache(maxsize=64)
def _platform_names(subdir: str, rules: CondaBuildRules) -> Mapping[str, Any]:
    names: dict[str, Any] = {
        "linux32": subdir == "linux-32",
        "linux64": subdir == "linux-64",
        "win32": subdir == "win-32",
        "win64": subdir == "win-64",
        "arm": subdir.startswith("linux-arm"),
        "unix": subdir.startswith(
            ("linux-", "osx-", "emscripten-") if rules.all_platforms_select else ("linux-", "osx-")
        ),
        "nomkl": False,
    }
    for selectable in (*KNOWN_SUBDIRS, subdir) if rules.all_platforms_select else _OLD_SUBDIRS:
        system, dash, arch = selectable.partition("-")
        if dash:
            anywhere = rules.architectures_everywhere or arch in _ARCHITECTURES
            names[system] = subdir.startswith(f"{system}-")
            names[_ARCHITECTURES.get(arch, arch)] = (
                subdir.endswith(f"-{arch}") if anywhere else subdir == f"linux-{arch}"
            )
    names["x86"] = subdir.endswith(("-32", "-64"))
    return names


class _Os:
    """The part of the module `os` that selectors may use, with the given environment."""

    pathsep = ":"
    sep = "/"

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ

    def getenv(self, name: str, default: str | None = None) -> str | None:
        """As `os.getenv`."""
        return self.environ.get(name, default)


def _typed(value: str) -> Any:
    try:
        return int(value)
    except ValueError:
        lowered = value.lower()
        return lowered == "true" if lowered in ("true", "false") else value


class Namespace(Mapping[str, Any]):
    """Looks names up in conda-build's order: platform, Python and the like, environment, then variant keys.

    `subdir` is the target platform (`noarch` for such an output), `rendered` the one being rendered;
    `variant` is empty for variant files, the variant itself in a recipe. Variant values that look like whole numbers
    or booleans are converted.
    """

    def __init__(
        self, subdir: str, rendered: str, variant: Variant, environ: Mapping[str, str], rules: CondaBuildRules
    ) -> None:
        self.variant = variant
        default = DEFAULT_VARIANT
        python = variant.get("python", default["python"]).split(" ")[0].split(".")
        version = int("".join(python[:2])) if all(part.isdigit() for part in python[:2]) else 0
        lua = variant.get("lua", default["lua"])
        self.fixed: dict[str, Any] = {
            **_platform_names(subdir, rules),
            "os": _Os(environ),
            "environ": environ,
            **({"build_platform": rendered} if rules.build_platform_selector else {}),
            "py": version,
            "py3k": python[0] == "3",
            "py2k": python[0] == "2",
            **{f"py{minor}": version == minor for minor in _PYTHONS},
            "np": _typed("".join((variant.get("numpy") or default["numpy"]).split(".")[:2])),
            "pl": variant.get("perl", default["perl"]),
            "lua": lua,
            "luajit": lua[:1] == "2",
            **environ,
        }

    def __getitem__(self, name: str) -> Any:
        if name in self.fixed:
            return self.fixed[name]
        return _typed(self.variant[name])

    def __iter__(self) -> Iterator[str]:
        yield from self.fixed
        yield from (name for name in self.variant if name not in self.fixed)

    def __len__(self) -> int:
        return len(self.fixed) + sum(name not in self.fixed for name in self.variant)


_SELECTOR = re.compile(r"(.+?)\s*(#.*)?\[([^\[\]]+)\](?(2)[^()]*)$")
#: Limits far above any recipe, so that matching and evaluating cannot take long.
_LONGEST_LINE = 10_000
_MOST_LINES = 50_000
_LONGEST_SELECTOR = 1_000
_MOST_GROWING_CALLS = 2

_NODES: tuple[type[ast.AST], ...] = (
    *(ast.Expression, ast.Name, ast.Load, ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.Set),
    *(ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.UAdd, ast.Invert),
    *(ast.BinOp, ast.Add, ast.Sub, ast.BitAnd, ast.BitOr, ast.BitXor, ast.Compare, ast.cmpop, ast.IfExp),
    *(ast.Call, ast.keyword, ast.Attribute, ast.Subscript, ast.Slice),
)
_FUNCTIONS: dict[str, Any] = {
    function.__name__: function for function in (int, float, len, str, list, dict, tuple, any, all, bool, min, max)
}
_GROWING = frozenset({"join", "replace"})
_ATTRIBUTES = frozenset(
    {"endswith", "index", "lower", "rsplit", "split", "startswith", "strip", "lstrip", "rstrip", "upper", "isdigit"}
    | {"get", "items", "keys", "values", "environ", "getenv", "pathsep", "sep", "join", "replace"}
)


#: What the evaluation of an invalid condition may raise.
INVALID: tuple[type[Exception], ...] = (
    *(ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, SyntaxError, TypeError, ValueError),
)


@dataclass(frozen=True, slots=True)
class SelectorLine:
    """A line without its selector, the selector (None: unconditional) and the number of the line in its file."""

    text: str
    selector: str | None
    number: int


@lru_cache(maxsize=512)
def split_lines(text: str, blank_comments: bool = True, path: Path | None = None) -> tuple[SelectorLine, ...]:
    """Split a file's text into lines and their selectors.

    `blank_comments`: comment lines become empty lines (newer conda-build), else they are removed. `path` is for errors.

    Raises:
        InputError: there are too many lines, or too long ones; matching takes
            time that grows with its square.
    """
    lines = text.splitlines()
    if len(lines) > _MOST_LINES:
        raise InputError(f"has more than {_MOST_LINES} lines", path=path)
    return tuple(_split(lines, blank_comments, path))


def _split(lines: Sequence[str], blank_comments: bool, path: Path | None) -> Iterator[SelectorLine]:
    for number, raw in enumerate(lines, 1):
        line = raw.rstrip()
        if len(line) > _LONGEST_LINE:
            raise InputError(f"the line is longer than {_LONGEST_LINE} characters", path=path, line=number)
        if line.lstrip().startswith("#"):
            if blank_comments:
                yield SelectorLine("", None, number)
            continue
        if "]" not in line or "[" not in line:
            yield SelectorLine(line, None, number)
            continue
        match = _SELECTOR.match(line)
        if match is None:
            yield SelectorLine(line, None, number)
            continue
        quote = line[-1] if line[-1] in "'\"" else ""
        yield SelectorLine((match.group(1) + quote).rstrip(), match.group(3), number)


def has_selectors(text: str) -> bool:
    """Whether a line of `text` looks as if it had a selector; fast if none has."""
    if "]" not in text:
        return False
    for line in text.splitlines():
        bracketed = "]" in line and "[" in line and not line.lstrip().startswith("#")
        if bracketed and _SELECTOR.match(line.rstrip()[:_LONGEST_LINE]):
            return True
    return False


@lru_cache(maxsize=4096)
def _compile(selector: str) -> CodeType:
    if len(selector) > _LONGEST_SELECTOR:
        raise ValueError(f"longer than {_LONGEST_SELECTOR} characters")
    with warnings.catch_warnings():
        # Python's warnings about selectors such as `1or 2` are not shown.
        warnings.simplefilter("ignore", SyntaxWarning)
        return _checked(selector.strip())


def _checked(selector: str) -> CodeType:
    tree = ast.parse(selector, mode="eval")
    growing = 0
    for node in ast.walk(tree):
        if not isinstance(node, _NODES):
            raise ValueError(f"{type(node).__name__} is not allowed in a selector")
        if isinstance(node, ast.Attribute):
            if node.attr not in _ATTRIBUTES:
                raise ValueError(f".{node.attr} is not allowed in a selector")
            growing += node.attr in _GROWING
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in _FUNCTIONS:
            raise ValueError(f"{node.func.id}() cannot be called in a selector")
        if isinstance(node, ast.Call) and not isinstance(node.func, ast.Name | ast.Attribute):
            raise ValueError("only functions and methods can be called in a selector")
    if growing > _MOST_GROWING_CALLS:
        raise ValueError("it has too many joins or replacements")
    return compile(tree, "<selector>", "eval")


def evaluate(selector: str, namespace: Mapping[str, Any]) -> bool:
    """Whether the condition holds; names that the namespace lacks are false, replaced as text as conda-build does.

    Raises:
        Exception: one of `INVALID`; the condition is not in the dialect or cannot be evaluated.

    >>> evaluate("linux and not unheard_of", {"linux": True})
    True
    """
    for _ in range(_LONGEST_SELECTOR):
        try:
            return bool(eval(_compile(selector), {"__builtins__": _FUNCTIONS}, namespace))  # noqa: S307 - checked nodes only
        except NameError as error:
            selector = selector.replace(error.name or "", "False")
    raise ValueError("it names too many unknown variables")


def holds(selector: str, namespace: Mapping[str, Any]) -> bool | None:
    """As `evaluate`; None if the condition cannot be evaluated."""
    try:
        return evaluate(selector, namespace)
    except INVALID:
        return None


def select_lines(
    text: str,
    namespace: Mapping[str, Any],
    rules: CondaBuildRules,
    path: Path | None = None,
    truths: dict[str, bool] | None = None,
) -> tuple[str, tuple[int, ...]]:
    """The selected text under `namespace`, and for each of its lines the line number in `text`.

    `truths` caches the values of selectors, for callers that select from several texts in one namespace.
    """
    truths = {} if truths is None else truths
    lines = split_lines(text, rules.blank_comment_lines, path)
    for line in lines:
        if line.selector is not None and line.selector not in truths:
            truths[line.selector] = _evaluated(line, namespace, path)
    kept = [line for line in lines if line.selector is None or truths[line.selector]]
    return "\n".join([line.text for line in kept]) + "\n", tuple([line.number for line in kept])


def selected_text(text: str, rules: CondaBuildRules, truths: Mapping[str, bool]) -> str | None:
    """As the text of `select_lines`, if the values of all selectors are known; else None."""
    try:
        parts = [
            part for selector, part in _parts(text, rules.blank_comment_lines) if selector is None or truths[selector]
        ]
    except KeyError:
        return None
    return "".join(parts) or "\n"


@lru_cache(maxsize=512)
def _parts(text: str, blank_comments: bool) -> tuple[tuple[str | None, str], ...]:
    """Adjacent lines with the same selector, or none, as one text."""
    groups = groupby(split_lines(text, blank_comments), key=attrgetter("selector"))
    return tuple((selector, "".join([f"{line.text}\n" for line in group])) for selector, group in groups)


def _evaluated(line: SelectorLine, namespace: Mapping[str, Any], path: Path | None) -> bool:
    selector = line.selector or ""
    try:
        return evaluate(selector, namespace)
    except INVALID as error:
        reason = getattr(error, "msg", None) or error
        message = f"the selector [{selector[:200]}] cannot be evaluated: {reason}"
        raise InputError(message, path=path, line=line.number) from error
