"""Which variant keys the text of a recipe and its scripts use, by the patterns of conda-build.

(conda_build/variants.py: find_used_variables_in_text, find_used_variables_in_shell_script, …_in_batch_script.) The
patterns apply to single lines, so each line is searched once, however many variants contain it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache, cached_property, lru_cache
from pathlib import Path

from feedstock_tools.reading import LARGEST_SCRIPT, is_file, read_bytes
from feedstock_tools.variants.rules import CondaBuildRules

_NOTHING: frozenset[str] = frozenset()
_LANGUAGE = re.compile(r"(.*?)_(compiler|stdlib)(_version)?$")
_SHELL_USE = re.compile(r"^[^$\n]*\$\{?\s*([A-Za-z_][\w.]*)\s*[\s|}]", re.MULTILINE)
_SYSROOT = "CONDA_BUILD_SYSROOT"
_CDT, _CDT_USE = "cdt(", r"\{{\s*cdt\("


class _Key:
    """The patterns of one variant key, each compiled once a line may match it: most keys of a pinning never match."""

    def __init__(self, key: str, rules: CondaBuildRules) -> None:
        self.key = key
        self._rules = rules
        self._language = language = _LANGUAGE.match(key)
        self.call = ""
        if language and (language.group(2) == "compiler" or rules.stdlib_uses):
            self.call = f"{language.group(2)}("
        elif key.startswith("cdt_") and rules.cdt_uses:
            self.call = _CDT

    def is_used_in(self, line: str) -> bool:
        """Whether a line uses the key after its selector has been applied."""
        return any(mark in line and _compiled(pattern).search(line) is not None for mark, pattern in self._patterns)

    @cached_property
    def _patterns(self) -> list[tuple[str, str]]:
        """The patterns of uses, each with a text that a matching line must contain."""
        patterns = []
        if self._language and self.call:
            language = re.escape(self._language.group(1))
            call = rf"\{{\s*{self._language.group(2)}\([\'\"]{language}[\"\'][^\{{]*?\}}"
            patterns.append((self.call, call))
        elif self.call:
            patterns.append((self.call, _CDT_USE))
        dashed = "[-_]".join(map(re.escape, self.key.split("_")))
        return [*patterns, *_text_patterns(re.escape(self.key), dashed, self._rules)]

    def is_used_unselected(self, line: str) -> bool:
        """Whether a line uses the key before its selector is applied: in it, or by a `cdt` whatever it says."""
        if self.call == _CDT and _CDT in line and _compiled(_CDT_USE).search(line):
            return True
        return "[" in line and self.key in line and self.selector.search(line) is not None

    @cached_property
    def selector(self) -> re.Pattern[str]:
        """A use in a line's selector."""
        return re.compile(rf"^[^#\[]*?\#?\s\[[^\]]*?(?<![_\w\d]){re.escape(self.key)}[=\s<>!\]]")


_key = lru_cache(maxsize=4096)(_Key)  # recipes have many keys in common
_compiled = lru_cache(maxsize=16_384)(re.compile)  # several patterns of a key


def _text_patterns(name: str, dashed: str, rules: CondaBuildRules) -> list[tuple[str, str]]:
    """The patterns of a use in `{{ }}`, as a bare requirement, and in `{% %}`, each with a text that a matching line
    must contain."""
    if not rules.whole_names_only:
        end = r"[^'\"]*?"
    elif rules.bare_names_in_braces:
        end = r"(?:[^_0-9a-zA-Z].*?)?"
    else:
        end = r"[^_0-9a-zA-Z].*?"
    anything = ".*" if rules.anywhere_in_conditions else ""
    patterns = [
        ("{", rf"\{{\s*(?:pin_[a-z]+\(\s*?['\"])?{name}{end}\}}\}}"),
        ("-", rf"^\s+\-\s+{dashed}\s*(?:\s[\[#]|$)"),
        ("{%", rf"(?:^|[^\{{])\{{%\s*(?:el)?if\s*{anything}{name}\s*(?:[^%]*?)?%\}}"),
    ]
    if rules.for_and_set_use:
        after = "(?![a-zA-Z_0-9])" if rules.whole_names_in_for_and_set else ""
        before = "(?<![a-zA-Z_0-9])" if rules.whole_suffix_in_set else ""
        patterns.append(("{%", rf"(?:^|[^\{{])\{{%\s*for\s*.*\s*in\s*{name}{after}(?:[^%]*?)?%\}}"))
        patterns.append(("{%", rf"(?:^|[^\{{])\{{%\s*set\s*.*\s*=\s*.*{before}{name}{after}(?:[^%]*?)?%\}}"))
    return patterns


class UsageFinder:
    """Finds the keys of a set that lines of text use; caches every line."""

    def __init__(self, keys: Collection[str], rules: CondaBuildRules) -> None:
        self._keys = [_key(key, rules) for key in sorted(keys) if key != _SYSROOT]
        self._with_sysroot: frozenset[str] = frozenset()
        if _SYSROOT in keys:
            self._keys.append(_key(_SYSROOT, rules))
            compilers = {"c_compiler", "cxx_compiler"} if rules.compiler_uses_sysroot else set()
            self._with_sysroot = frozenset(compilers | ({"c_stdlib"} if rules.stdlib_uses else set()))
        in_line, in_selector = cache(self._in_line), cache(self._in_selector)
        #: The keys used in text whose selectors have been applied, and those in text where they have not been.
        self.in_text = cache(lambda text: self._union(map(in_line, text.splitlines())))
        self.in_selectors = cache(lambda text: self._union(map(in_selector, text.splitlines())))

    def _union(self, by_line: Iterable[frozenset[str]]) -> frozenset[str]:
        keys = _NOTHING.union(*by_line)
        return keys if keys.isdisjoint(self._with_sysroot) else keys | {_SYSROOT}

    def _in_line(self, line: str) -> frozenset[str]:
        if not line or line.isspace():
            return _NOTHING
        dashless = line.replace("-", "_")
        return frozenset(
            key.key
            for key in self._keys
            if (key.key in dashless or (key.call and key.call in line)) and key.is_used_in(line)
        )

    def _in_selector(self, line: str) -> frozenset[str]:
        if "[" not in line and _CDT not in line:
            return _NOTHING
        return frozenset(key.key for key in self._keys if key.is_used_unselected(line))


@lru_cache(maxsize=16)
def _words(text: str) -> str:
    return "\n".join({*re.findall(r"[\w.]+", text.replace("-", "_"))})


@lru_cache(maxsize=64)
def _finder(keys: frozenset[str], rules: CondaBuildRules) -> UsageFinder:
    return UsageFinder(keys, rules)


def usage_finder(keys: Collection[str], text: str, rules: CondaBuildRules) -> UsageFinder:
    """A finder for those of `keys` that a recipe with this text can use; shared by platforms and rerenders."""
    return _finder(_usable(frozenset(keys), text), rules)


@lru_cache(maxsize=64)
def _usable(keys: frozenset[str], text: str) -> frozenset[str]:
    words = _words(text)
    calls = "compiler(" in text or "stdlib(" in text

    def can_be_used(key: str) -> bool:
        if key in words or key == _SYSROOT:
            return True
        language = _LANGUAGE.match(key) if calls else None
        return language.group(1) in words if language else key.startswith("cdt_") and "cdt(" in text

    return frozenset(filter(can_be_used, keys))


def words_of_script(path: Path, folder: Path) -> frozenset[str]:
    """The words that count as variables in a build script: `%KEY%` in a batch file, else after the first `$` of a line.

    There are none in a missing script, nor in one of any other kind. No link may lead out of `folder`, the recipe's.
    """
    if path.suffix not in (".sh", ".bat") or not is_file(path):
        return _NOTHING
    content = read_bytes(path, LARGEST_SCRIPT, within=folder)
    try:
        text = content.decode().replace("\r\n", "\n")
    except UnicodeDecodeError:
        # conda-build guesses an encoding; even a script that is not UTF-8 names variables in ASCII
        text = content.decode("latin-1")
    if path.suffix == ".bat":
        return frozenset(re.findall(r"(?<=%)\w+(?=%)", text))
    return frozenset(match.group(1) for match in _SHELL_USE.finditer(text))


@lru_cache(maxsize=8192)
def _key_of(spec: str) -> str:
    """The variant key of the package that a requirement begins with; None for one without a name."""
    return (spec.split() or [""])[0].replace("-", "_")


def trim_requirements(
    used: frozenset[str], requirements: Mapping[str, list[str]], ignore_build_only: Collection[str]
) -> frozenset[str]:
    """Leave out of the keys used in requirements those that do not shape the package.

    These are keys that occur only in `run`, and those of `ignore_build_only` that occur only in `build`.
    """
    build = used.intersection(map(_key_of, requirements.get("build", ())))
    host = used.intersection(map(_key_of, requirements.get("host", ())))
    run = used.intersection(requirements.get("run", ()))
    in_run_alone = run - build - host
    in_build_alone = build.intersection(ignore_build_only) - host - run
    return used - in_run_alone - in_build_alone
