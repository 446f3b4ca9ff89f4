"""The section `about` in the text of a `meta.yaml`, as conda-smithy reads it for the README."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feedstock_tools.bounds.held import step
from feedstock_tools.bounds.limits import BoundError, most
from feedstock_tools.errors import InputError
from feedstock_tools.yaml_reading.nodes import Schema, compose, items, pairs
from feedstock_tools.yaml_reading.quick import may_have_anchors

if TYPE_CHECKING:
    from jinja2 import Undefined

_PYTHON_MIN = re.compile(r"""^\s*\{% set python_min\s*=\s*["'].*$""")
#: Characters, many times those of any `about` of conda-forge.
_LONGEST_ABOUT = 64 * 1024
_KEY = re.compile(r"^[A-Za-z_]")


def about_of_text(text: str, path: Path) -> Any:
    """The value of `about` in the text of a meta.yaml: selectors are comments, and the first of equal keys counts.

    (conda-smithy, utils.py: get_feedstock_about_from_meta, render_meta_yaml.)

    Raises:
        InputError: the text cannot be rendered, or its `about` is not YAML.
    """
    block = _block(_rendered_with_stubs(text, path), "about")
    if len(block) > most(_LONGEST_ABOUT):
        raise BoundError(f"has an 'about' of more than {_LONGEST_ABOUT} characters", path=path)
    node = compose(block, path, Schema.TYPES)  # refuses what would nest or grow without limit
    try:
        if not block.replace("\n", "").isprintable() or may_have_anchors(block):  # a tab, say, or another line break
            raise _DiffersError
        content = _common_value(node)
    except _DiffersError:
        content = _read_by_ruamel(block, path)
    return content.get("about") if isinstance(content, dict) else None


# --- reading YAML: conda-smithy's reader follows YAML 1.2, libyaml 1.1

#: Unquoted scalars that are strings in both: anything with a letter at its beginning, but for these words.
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


class _DiffersError(Exception):
    """The value of a text may differ between YAML 1.1 and 1.2."""


def _common_value(node: Any) -> Any:
    """The value of a node if it is certain to be the same in YAML 1.1 and 1.2: strings, and blocks of them.

    It is that of nearly every recipe's `about`, and saves the import of ruamel.

    Raises:
        _DiffersError: it is not certain.
    """
    if node is None or getattr(node, "flow_style", False):
        raise _DiffersError
    if node.id == "scalar":
        return _common_scalar(node)
    if node.id == "sequence":
        return [_common_value(item) for item in items(node)]
    values = {_common_value(key): _common_value(value) for key, value in pairs(node) if key.id == "scalar"}
    if len(values) < len(pairs(node)):
        raise _DiffersError
    return values


def _common_scalar(node: Any) -> str | None:
    value: str = node.value
    if node.tag == "tag:yaml.org,2002:null" and not value and not node.style:
        return None
    if node.tag != "tag:yaml.org,2002:str":
        raise _DiffersError
    if not node.style and not (value[:1].isalpha() and value.lower() not in _WORDS):
        raise _DiffersError
    return value


def _read_by_ruamel(block: str, path: Path) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    reader = YAML(typ="rt")
    reader.allow_duplicate_keys = True
    try:
        with step(path):
            return reader.load(block)
    except (YAMLError, ValueError, RecursionError) as error:
        raise InputError("has an 'about' that is not YAML without its selectors", path=path) from error


def _block(text: str, key: str) -> str:
    """The lines of a key at the top level of a YAML text."""
    lines = text.splitlines(keepends=True)
    start = next((number for number, line in enumerate(lines) if line.startswith(f"{key}:")), None)
    if start is None:
        return ""
    end = next((number for number in range(start + 1, len(lines)) if _KEY.match(lines[number])), len(lines))
    return "".join(lines[start:end])


@cache
def _named() -> type[Undefined]:
    import jinja2

    class Named(jinja2.Undefined):
        """An undefined value, which renders as its name."""

        def __str__(self) -> str:
            return str(self._undefined_name)

        def __getattr__(self, name: str) -> Any:
            return f"{self}.{name}"

        def __getitem__(self, name: Any) -> str:  # type: ignore[override]
            return f'{self}["{name}"]'

    return Named


def _rendered_with_stubs(text: str, path: Path) -> str:
    import time
    from collections import defaultdict
    from datetime import datetime

    from feedstock_tools.recipe.v0.jinja import render

    def nothing(*_args: Any, **_kwargs: Any) -> Any:
        return defaultdict(str)

    machine = _Machine()
    context = dict[str, Any](
        compiler=lambda name: f"{name}_compiler_stub",
        stdlib=lambda name: f"{name}_stdlib_stub",
        pin_subpackage=lambda name, *_args, **_kwargs: f"subpackage_pin {name}",
        pin_compatible=lambda name, *_args, **_kwargs: f"compatible_pin {name}",
        cdt=lambda name: f"{name.replace('-', '_')}_cdt_stub",
        **dict.fromkeys(("load_file_regex", "load_file_data", "load_setup_py_data", "load_str_data"), nothing),
        datetime=datetime,
        time=time,
        target_platform="linux-64",
        build_platform="linux-64",
        mpi="mpi",
        python_min="9999",
        os=machine,
        environ=machine.environ,
        PY_VER="3.7",
    )
    lines = [
        "{% set python_min = '9999' %}\n" if _PYTHON_MIN.match(line) else line
        for line in text.splitlines(keepends=True)
    ]
    wanted = lines_for_about(lines)
    if wanted is not lines:
        with suppress(InputError):  # else its place is one in the whole text
            return render(path, None, "".join(wanted), context, _named())
    return render(path, None, "".join(lines), context, _named())


#: A line that is indented, or a comment, and can change nothing outside itself: text with names and calls of stubs.
_STUB = r"(?:compiler|stdlib|pin_subpackage|pin_compatible|cdt)\([\w .,='\"<>*-]*\)"
_NAME = r"[A-Za-z_]\w*(?: *\| *(?:lower|upper|replace\([^(){}]*\)))?"
_INERT = re.compile(rf"[ #](?:[^{{}}]|\{{\{{ *(?:{_STUB}|{_NAME}) *\}}\}}|\{{(?![{{%#])|(?<![}}%#])\}}(?!\}}))*")
_TAG = re.compile(r"\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)
#: The tags of a template in which a line can be left out without changing any other.
_LINEWISE = re.compile(r"\{%\s*(?:(?:if|elif|else|endif|for|endfor)\b|set\s[^={}%]*=)")
_MARKS = ("{%", "%}", "{{", "}}", "{#")
_STRIPPING_MARKS = ("{{-", "-}}", "{%-", "-%}")


def lines_for_about(lines: list[str]) -> list[str]:
    """The lines of a recipe that its `about` can depend on; all of them where that is not certain.

    Compiling templates takes most of the time here, and most lines have one that cannot matter.
    """
    text = "".join(lines)
    tags = list(_TAG.finditer(text))
    rest = _TAG.sub("", text)
    if len(lines) != text.count("\n") + (not text.endswith("\n")):
        return lines
    if any(mark in rest for mark in _MARKS) or any(mark in text for mark in _STRIPPING_MARKS):
        return lines
    if not all(tag[0].startswith("{{") or _LINEWISE.match(tag[0]) for tag in tags):
        return lines
    spanned: set[int] = set()
    for tag in tags:
        if "\n" in tag[0]:
            first = text.count("\n", 0, tag.start())
            spanned.update(range(first, first + tag[0].count("\n") + 1))
    wanted = []
    in_about = False
    for number, line in enumerate(lines):
        if _KEY.match(line):
            in_about = line.startswith("about:")
        if in_about or number in spanned or not _INERT.fullmatch(line.rstrip("\r\n")):
            wanted.append(line)
    return wanted


class _Machine(dict[str, str]):
    """Stands for the module `os`: an environment in which every variable is empty."""

    def __init__(self) -> None:
        from collections import defaultdict

        super().__init__()
        self.environ: Mapping[str, str] = defaultdict(str)
        self.sep = "/"
