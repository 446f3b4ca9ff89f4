"""What conda-build refuses in a rendered package, with the line that says it.

(conda_build/metadata.py: check_bad_chrs, ensure_valid_noarch_value, ensure_no_pip_requirements, _check_run_constrained,
MetaData.name and MetaData.version.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from feedstock_tools.errors import InputError
from feedstock_tools.recipe.requirements import as_list
from feedstock_tools.recipe.v0.meta import Meta

_BAD = frozenset("=@#$%^&*:;\"'\\|<>?/ ")
_NOARCH = ("python", "generic")
_SECTIONS = ("build", "host", "run", "run_constrained")
#: Two operators in a row, or one without a version, in a part of a version specification.
_BAD_BOUND = re.compile(r"(?:==|!=|<=|>=|~=|[<>](?!=))\s*(?:[<>=!~]|$)|^!(?!=)")

#: Key, what is wrong with its value, and what to write.
_Fault = tuple[str, str, str]


def refuse_invalid(meta: Meta, *, final: bool) -> None:
    """Raise for a package that conda-build would not build.

    Args:
        final: all values are known; a rerender, as conda-smithy's, accepts versions that are still missing.

    Raises:
        InputError: the first fault, with its line.
    """
    for key, message, hint in (*_of_names(meta, final), *_of_build(meta), *_of_requirements(meta)):
        of = f"the output '{meta.name}'" if meta.is_output else "the recipe"
        raise InputError(f"{message} ({of})", path=meta.view.recipe.path, line=_line_of(meta, key), hint=hint)


def _of_names(meta: Meta, final: bool) -> Iterator[_Fault]:
    name, version = meta.name, meta.version
    if name != name.lower():
        yield "name", f"the name '{name}' is not in lower case", "Write it in lower case."
    yield from _bad_characters("name", name, _BAD | {"!"})
    yield from _bad_characters("version", version, _BAD | {"-"})
    if final and not version:
        yield "version", "the version is missing or empty", "Give package/version, or the output's own version."
    if final and version.startswith("."):
        yield "version", f"the version '{version}' begins with a dot", "Write a number first."


def _of_build(meta: Meta) -> Iterator[_Fault]:
    noarch = meta.section("build").get("noarch")
    if noarch and noarch is not True and noarch not in _NOARCH:
        yield "noarch", f"noarch is '{noarch}', which is neither python nor generic", "Remove it for other packages."
    yield from _bad_characters("string", str(meta.value("build", "string") or ""), _BAD | {"-", "!"})


def _bad_characters(key: str, value: str, bad: frozenset[str]) -> Iterator[_Fault]:
    found = "".join(sorted(bad.intersection(value)))
    if found:
        yield key, f"the {key} '{value}' contains {found!r}", "Use letters, digits, '.' and '_'."


def _of_requirements(meta: Meta) -> Iterator[_Fault]:
    requirements = meta.output.get("requirements") or meta.data.get("requirements")
    sections = requirements if isinstance(requirements, dict) else {"run": requirements}
    for section in _SECTIONS:
        for spec in as_list(sections.get(section)):
            if isinstance(spec, dict) or (isinstance(spec, str) and spec.startswith("{'")):
                yield section, f"a requirement is a mapping: {spec}", "Write it as one text, without a colon."
            elif section == "run_constrained" and _is_invalid(str(spec)):
                yield section, f"'{spec}' is not a specification of versions", "Write bounds such as '>=1,<2'."


def _is_invalid(spec: str) -> bool:
    bounds = re.split(r"[,|]", spec.strip().partition(" ")[2].strip().partition("  ")[0])
    return any(_BAD_BOUND.search(bound.strip()) for bound in bounds)


def _line_of(meta: Meta, key: str) -> int | None:
    """The line of the key in the package's part of the recipe; None where it is not written there."""
    raw, block = meta.view.recipe.raw, meta.raw_block if meta.is_output else ""
    start = max(raw.find(block), 0) if block.strip() else 0
    found = re.compile(rf"(?<![\w-]){key}\s*:").search(raw, start)
    return None if found is None else raw.count("\n", 0, found.start()) + 1
