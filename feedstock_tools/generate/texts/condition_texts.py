"""Conditions of a spec in the words of either recipe format: a selector of conda-build, an `if:` of rattler-build."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from feedstock_tools.generate.spec.conditions import And, Compare, Condition, Equal, Not, Or, Word, version_numbers

#: Word → its form in a selector of conda-build. v1 uses the same form unless `_V1_WORDS` has another.
_V0_WORDS = {
    "linux": "linux",
    "osx": "osx",
    "win": "win",
    "unix": "unix",
    "x86_64": "x86_64",
    "aarch64": "aarch64",
    "arm64": "arm64",
    "ppc64le": "ppc64le",
    "linux-64": "linux64",
    "linux-aarch64": "linux and aarch64",
    "linux-ppc64le": "linux and ppc64le",
    "osx-64": "osx and x86_64",
    "osx-arm64": "osx and arm64",
    "win-64": "win64",
    "win-arm64": "win and arm64",
    "cuda": 'cuda_compiler_version != "None"',
    "cpu": 'cuda_compiler_version == "None"',
    "cross": "build_platform != target_platform",
}
_V1_WORDS = _V0_WORDS | {"linux-64": "linux and x86_64", "win-64": "win and x86_64"}
#: The form of a negated word, if it reads better than `not (...)`.
_INVERTED = {
    "cuda": 'cuda_compiler_version == "None"',
    "cpu": 'cuda_compiler_version != "None"',
    "cross": "build_platform == target_platform",
}


def to_selector(condition: Condition, cuda_versions: Collection[str]) -> str:
    """The condition as a selector of conda-build, without its brackets.

    Selectors see a CUDA version as a string, which does not compare as a version, so `cuda >= 12` becomes the list of
    those `cuda_versions` that satisfy it.

    >>> to_selector(And((Word("linux-64"), Not(Word("cuda")))), ())
    'linux64 and cuda_compiler_version == "None"'
    """
    match condition:
        case Not(Or(parts)) if all(isinstance(part, Compare) and part.operator == "==" for part in parts):
            subjects = {part.subject for part in parts if isinstance(part, Compare)}
            versions = [part.version for part in parts if isinstance(part, Compare)]
            if subjects == {"python"}:
                return f"py not in ({', '.join(map(_py, versions))})"
        case Not(Compare("python", "==", version)):
            return f"py != {_py(version)}"
    return _say(condition, _V0_WORDS, lambda compare: _compare_v0(compare, cuda_versions))


def to_v1(condition: Condition) -> str:
    """The condition as the expression of an `if:` in recipe.yaml.

    >>> to_v1(Compare("python", ">=", "3.12"))
    'match(python, ">=3.12")'
    """
    return _say(condition, _V1_WORDS, _compare_v1)


def _py(version: str) -> str:
    """A version of Python as the variable `py` of selectors has it.

    >>> _py("3.12")
    '312'
    """
    major, minor = (*version_numbers(version), 0)[:2]
    return f"{major}{minor}"


def _compare_v0(compare: Compare | Equal, cuda_versions: Collection[str]) -> str:
    if isinstance(compare, Equal):
        return f"{compare.key} == {_typed(compare.value)}"
    if compare.subject == "python":
        return f"py {compare.operator} {_py(compare.version)}"
    versions = [version for version in cuda_versions if compare.holds(version)]
    if len(versions) == 1 or (compare.operator == "==" and not versions):
        return f'cuda_compiler_version == "{versions[0] if versions else compare.version}"'
    listed = ", ".join(f'"{version}"' for version in versions)
    return f"cuda_compiler_version in ({listed})"


def _compare_v1(compare: Compare | Equal) -> str:
    if isinstance(compare, Equal):
        # To the engine a key without a value is an error, and a value may be a number or a boolean.
        or_empty = f'{compare.key} | default("")'
        plain = _typed(compare.value).startswith('"')
        return f'({or_empty}) == "{compare.value}"' if plain else f'(({or_empty}) ~ "") == "{compare.value}"'
    if compare.subject == "python":
        return f'match(python, "{_match_spec(compare)}")'
    if compare.operator == "==" and "." in compare.version:
        return f'cuda_compiler_version == "{compare.version}"'
    return f'cuda_compiler_version != "None" and match(cuda_compiler_version, "{_match_spec(compare)}")'


def _typed(value: str) -> str:
    """A value as selectors see it, where whole numbers and booleans are no text (variants.namespace)."""
    if re.fullmatch(r"[+-]?\d+", value.strip()):
        return str(int(value))
    return value.capitalize() if value.lower() in ("true", "false") else f'"{value}"'


def _match_spec(compare: Compare) -> str:
    """`== 3.12` matches the whole series, and `> 12` does not match 12.4."""
    version = compare.version
    if compare.operator in ("==", "!="):
        return f"{compare.operator if compare.operator == '!=' else ''}{version}.*"
    if compare.operator in ("<=", ">"):
        *front, last = version.split(".")
        following = ".".join([*front, str(int(last) + 1)])
        return f"{'<' if compare.operator == '<=' else '>='}{following}"
    return f"{compare.operator}{version}"


def _say(condition: Condition, words: dict[str, str], compare: Callable[[Compare | Equal], str]) -> str:
    match condition:
        case Word(name):
            return words[name]
        case Compare() | Equal():
            return compare(condition)
        case Not(Word(name)) if name in _INVERTED:
            return _INVERTED[name]
        case Not(part):
            words_of_part = _say(part, words, compare)
            return f"not {words_of_part}" if re.fullmatch(r"\w+", words_of_part) else f"not ({words_of_part})"
        case And(parts):
            said_parts = [_say(part, words, compare) for part in parts]
            wrapped = [f"({text})" if isinstance(p, Or) else text for p, text in zip(parts, said_parts, strict=True)]
            return " and ".join(wrapped)
        case Or(parts):
            said_parts = [_say(part, words, compare) for part in parts]
            return " or ".join(f"({text})" if " and " in text else text for text in said_parts)
