"""A release of conda-smithy on disk, read as data: templates, the files that it copies, defaults and a few constants;
and which release a rerender uses.

None of its code is imported or run. A release is a source tree as in its git repository, an unpacked conda package, or
an installation.
"""

from __future__ import annotations

import ast
import copy
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, wraps
from pathlib import Path
from textwrap import dedent
from typing import Any, Concatenate, ParamSpec, TypeVar

from feedstock_tools.errors import InputError
from feedstock_tools.rerender.rules import NEWEST_SMITHY, Rules
from feedstock_tools.versions import parse_version
from feedstock_tools.yaml_reading.nodes import parse_types

Question = ParamSpec("Question")
Answer = TypeVar("Answer")

_CODE = "configure_feedstock.py"
_TEMPLATES = "templates"
_COPIED = "feedstock_content"
#: Its code, the largest file that is read, has 150 KB.
_LARGEST = 2 * 1024 * 1024
_HINT = "Give the folder of a source tree, of an unpacked conda package or of an installation of conda-smithy."


def _once(find: Callable[Concatenate[Release, Question], Answer]) -> Callable[Concatenate[Release, Question], Answer]:
    """Keep what a method found: a release is read once, also for many feedstocks."""

    @wraps(find)
    def found(release: Release, /, *args: Question.args, **kwargs: Question.kwargs) -> Answer:
        question = (find.__name__, *args)
        if question not in release._answers:
            release._answers[question] = find(release, *args, **kwargs)
        answer: Answer = release._answers[question]
        return answer

    return found


@dataclass(frozen=True)
class Release:
    """A release of conda-smithy: the folder of its package, and its version if the folder records it.

    `cache`: a private folder that keeps its compiled templates, by their content; None to keep none.
    """

    folder: Path
    version: str | None
    cache: Path | None = None

    @property
    def templates(self) -> Path:
        return self.folder / _TEMPLATES

    @_once
    def template(self, name: str) -> str:
        """The text of a template."""
        return self._text(self.templates / name)

    @_once
    def has_template(self, name: str) -> bool:
        return (self.templates / name).is_file()

    @cached_property
    def copied(self) -> Mapping[str, tuple[bytes, bool]]:
        """The files that are copied unchanged into every feedstock: path there → content and executable bit."""
        root = self.folder / _COPIED
        files = {}
        for path in sorted(root.rglob("*")):
            if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts:
                content = _read(path)
                with suppress(UnicodeDecodeError):  # texts get the line ends of Unix, other files stay as they are
                    content = content.decode().replace("\r\n", "\n").encode()
                files[path.relative_to(root).as_posix()] = (content, bool(path.stat().st_mode & 0o100))
        return files

    def defaults(self) -> dict[str, Any]:
        """The settings of an empty conda-forge.yml, as new values that the caller may change.

        Until 3.31 they are a literal in the code.
        """
        return copy.deepcopy(self._defaults())

    @_once
    def _defaults(self) -> dict[str, Any]:
        path = self.folder / "data" / "conda-forge.yml"
        defaults = parse_types(self._text(path), path) if path.is_file() else self._literal_defaults()
        if not isinstance(defaults, dict):
            raise InputError("has no default settings", path=path, hint=_HINT)
        return defaults

    @_once
    def constant(self, name: str) -> Any:
        """A constant of its code that is a plain literal; None if there is none of that name."""
        start = re.search(rf"^{name} = ", self._code, re.MULTILINE)
        if start is None:
            return None
        return _first_literal(self._code[start.start() :])

    @_once
    def texts_in(self, function: str) -> tuple[str, ...]:
        """The texts that a function of its code passes to `textwrap.dedent`, dedented, in order."""
        texts = []
        for node in ast.walk(self._function(function)):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "dedent"
                and node.args
            ):
                text = node.args[0]
                if isinstance(text, ast.Call) and isinstance(text.func, ast.Attribute):  # "…".format(…)
                    text = text.func.value
                if isinstance(text, ast.Constant) and isinstance(text.value, str):
                    texts.append((text.lineno, dedent(text.value)))
        return tuple(text for _, text in sorted(texts))

    @_once
    def strings_in(self, function: str) -> tuple[str, ...]:
        """All literal texts in a function of its code, in order, including its docstring."""
        nodes = [
            node
            for node in ast.walk(self._function(function))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        return tuple(str(node.value) for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset)))

    @cached_property
    def _answers(self) -> dict[tuple[object, ...], Any]:
        return {}

    @cached_property
    def _code(self) -> str:
        return self._text(self.folder / _CODE)

    def _function(self, name: str) -> ast.AST:
        start = re.search(rf"^def {name}\(", self._code, re.MULTILINE)
        if start is None:
            return ast.Module([], [])
        body = self._code[start.start() :]
        end = re.search(r"^(?:def |class |@|[A-Za-z_]+ = |if )", body[4:], re.MULTILINE)
        try:
            return ast.parse(body[: end.start() + 4] if end else body)
        except SyntaxError as error:
            raise InputError(f"'{name}' is not Python: {error.msg}", path=self.folder / _CODE, hint=_HINT) from error

    def _literal_defaults(self) -> dict[str, Any]:
        for node in ast.walk(self._function("_load_forge_config")):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict) and len(node.value.keys) > 10:
                literal = _plain(node.value)
                if isinstance(literal, dict):
                    return literal
        raise InputError("has no default settings", path=self.folder / _CODE, hint=_HINT)

    def _text(self, path: Path) -> str:
        try:
            return _read(path).decode()
        except UnicodeDecodeError as error:
            raise InputError("is not UTF-8", path=path, hint=_HINT) from error


def find_release(folder: Path, *, cache: Path | None = None) -> Release:
    """The release of conda-smithy in a folder: a source tree, an unpacked conda package, or an environment.

    Args:
        cache: a private folder that keeps compiled templates, so that the next process need not compile them.

    Raises:
        InputError: the folder is not a release.

    >>> find_release(Path("smithy")).version
    '2026.8.5'
    """
    for package in _candidates(folder):
        if (package / _CODE).is_file() and (package / _TEMPLATES).is_dir() and (package / _COPIED).is_dir():
            return Release(package, _version_of(folder, package), cache)
    raise InputError("is not a release of conda-smithy", path=folder, hint=_HINT)


def chosen_rules(rules: str | None, release: Release | None) -> Rules:
    """The requested rules, else those of the release, else the newest.

    Raises:
        InputError: the release has another version than requested, or a version cannot be read.
    """
    version = release.version if release else None
    if rules is None:
        return Rules.parse(version) if version else Rules.newest()
    wanted = Rules.parse(rules)
    if release and version and parse_version(version) != parse_version(wanted.smithy):
        hint = "Leave out --rules, or give the release that it names."
        raise InputError(
            f"is conda-smithy {version}, and --rules asks for {wanted.smithy}", path=release.folder, hint=hint
        )
    return wanted


def _candidates(folder: Path) -> Iterator[Path]:
    yield from (folder / "conda_smithy", folder, folder / "site-packages" / "conda_smithy")
    yield from sorted(folder.glob("lib/python*/site-packages/conda_smithy"))
    yield folder / "Lib" / "site-packages" / "conda_smithy"


def _version_of(folder: Path, package: Path) -> str | None:
    """The version in the metadata of a conda package or of an installation; None for a plain source tree."""
    index = folder / "info" / "index.json"
    if index.is_file():
        try:
            return str(json.loads(_read(index))["version"])
        except (ValueError, KeyError, TypeError) as error:
            raise InputError("has no version", path=index, hint=_HINT) from error
    for metadata in sorted(package.parent.glob("conda_smithy-*.dist-info/METADATA")):
        line = re.search(rb"^Version: ([0-9.]+)$", _read(metadata), re.MULTILINE)
        if line:
            return line[1].decode()
    return None


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            content = stream.read(_LARGEST + 1)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", path=path, hint=_HINT) from error
    if len(content) > _LARGEST:
        raise InputError(f"is larger than {_LARGEST // 1024} KiB", path=path, hint=_HINT)
    return content


def _first_literal(text: str) -> Any:
    """The value of the assignment that a text begins with; None if it is not a literal."""
    lines = text.splitlines(keepends=True)
    for count in range(1, min(len(lines), 200) + 1):
        try:
            tree = ast.parse("".join(lines[:count]))
        except SyntaxError:
            continue
        statement = tree.body[0]
        if not isinstance(statement, ast.Assign):
            return None
        try:
            return ast.literal_eval(statement.value)
        except ValueError:
            return None
    return None


def _plain(node: ast.expr) -> Any:
    """The value of a literal; entries of mappings that are not literals are left out."""
    if isinstance(node, ast.Dict):
        return {
            ast.literal_eval(key): _plain(value)
            for key, value in zip(node.keys, node.values, strict=True)
            if isinstance(key, ast.Constant)
        }
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


#: The word for no release: `.ci_support` and job lists alone.
NO_RELEASE = "none"


@dataclass(frozen=True, slots=True)
class ReleaseChoice:
    """A release, or None, and one line for people: where it comes from, or what is missing and how to get it."""

    release: Release | None
    remark: str


def choose_release(
    requested: str | None, rules: str | None, fetched: Mapping[str, Path], installed: Release | None
) -> ReleaseChoice:
    """The release for a rerender.

    Args:
        requested: a folder, a version, or `none`; None: the release that `rules` names, else the newest fetched
            release, else the installed one.
        rules: the requested rules, `SMITHY` or `SMITHY+CONDA_BUILD`.
        fetched: version → folder of the fetched releases, the newest last.
        installed: the installed release, if there is one.
    """
    if requested == NO_RELEASE:
        return ReleaseChoice(None, "conda-smithy: no release; only .ci_support and job lists are written")
    if requested is not None:
        return _requested(requested, fetched, installed)
    if rules is None:
        if fetched:
            return _fetched(list(fetched)[-1], fetched)
        return _installed(installed) if installed else _missing(Rules.newest().smithy)
    version = Rules.parse(rules).smithy
    return _of_version(version, fetched, installed) or _missing(version)


def installed_release(places: Iterable[Path]) -> Release | None:
    """The first release with a known version in some environments or folders of packages; nothing is imported."""
    for place in places:
        with suppress(InputError):
            release = find_release(place)
            if release.version is not None:
                return release
    return None


def _requested(requested: str, fetched: Mapping[str, Path], installed: Release | None) -> ReleaseChoice:
    if not _is_version(requested):  # a folder with the name of a version may be a stranger's: it is ./VERSION
        folder = Path(requested)
        release = find_release(folder)
        return ReleaseChoice(release, f"conda-smithy: {release.version or 'a release of unknown version'} in {folder}")
    found = _of_version(requested, fetched, installed)
    if found is None:
        have = ", ".join(list(fetched)[-3:]) or "none"
        raise InputError(
            f"conda-smithy {requested} has not been fetched",
            hint=f"Fetch it with 'feedstock-tools smithy fetch {requested}'. Fetched releases: {have}.",
        )
    return found


def _of_version(version: str, fetched: Mapping[str, Path], installed: Release | None) -> ReleaseChoice | None:
    wanted = parse_version(version)
    for kept in fetched:
        if parse_version(kept) == wanted:
            return _fetched(kept, fetched)
    if installed and installed.version and parse_version(installed.version) == wanted:
        return _installed(installed)
    return None


def _fetched(version: str, fetched: Mapping[str, Path]) -> ReleaseChoice:
    try:
        release = find_release(fetched[version])
    except InputError as error:
        hint = f"Delete this folder, and run 'feedstock-tools smithy fetch {version}'."
        raise InputError(f"the fetched release {version} is damaged", path=fetched[version], hint=hint) from error
    return ReleaseChoice(release, f"conda-smithy: {version}, fetched{_age(version)}")


def _installed(release: Release) -> ReleaseChoice:
    version = release.version or ""
    return ReleaseChoice(release, f"conda-smithy: {version}, installed in {release.folder.parent}{_age(version)}")


def _age(version: str) -> str:
    return f" (older than {NEWEST_SMITHY})" if parse_version(version) < parse_version(NEWEST_SMITHY) else ""


def _missing(version: str) -> ReleaseChoice:
    return ReleaseChoice(
        None,
        f"conda-smithy: {version} is missing, so only .ci_support and job lists are written; "
        f"get it with 'feedstock-tools smithy fetch {version}', or give a release with --smithy DIR",
    )


def _is_version(text: str) -> bool:
    parts = text.split(".")
    return len(parts) > 1 and all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts)
