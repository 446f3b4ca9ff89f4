"""The license of a project by the words of its license file, and of its own notices where that file leaves a choice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from feedstock_tools.errors import InputError
from feedstock_tools.reading import is_file, read_text

_LARGEST = 1024 * 1024
_FILES = ("LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE", "COPYING", "COPYING.txt")
#: Files in which projects say under which license they are.
_NOTICES = ("README", "README.md", "README.rst", "README.txt", "CMakeLists.txt", "setup.py")
_MIT = (
    r"Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated "
    r"documentation files \(the .{1,3}Software.{1,3}\), to deal in the Software without restriction"
)
_BSD = r"Redistribution and use in source and binary forms"
#: Words of a license's text, words that only other licenses add → its identifier, the more particular text first.
_LICENSES: tuple[tuple[tuple[str, ...], str | None, str], ...] = (
    ((r"LLVM Exceptions to the Apache 2\.0 License",), None, "Apache-2.0 WITH LLVM-exception"),
    ((r"Apache License\s+Version 2\.0",), None, "Apache-2.0"),
    ((r"covered by this license \(the .{1,3}Software.{1,3}\) to use, reproduce, display",), None, "BSL-1.0"),
    ((r"to deal with the Software without restriction",), None, "NCSA"),
    ((_MIT,), r"for Good, not Evil|Except as contained in this notice", "MIT"),
    ((_BSD, r"Neither the name of"), r"advertising materials|NO EXPRESS OR IMPLIED LICENSES", "BSD-3-Clause"),
    ((_BSD,), r"endorse or promote|advertising|written permission|NO EXPRESS OR IMPLIED LICENSES", "BSD-2-Clause"),
    ((r"Mozilla Public License Version 2\.0",), None, "MPL-2.0"),
)
#: The same for licenses whose texts do not say whether later versions may be used too; with the version's number.
_OF_VERSIONS = (
    (r"GNU AFFERO GENERAL PUBLIC LICENSE Version 3", "AGPL-3.0", "3"),
    (r"GNU LESSER GENERAL PUBLIC LICENSE Version 3", "LGPL-3.0", "3"),
    (r"GNU LESSER GENERAL PUBLIC LICENSE Version 2\.1", "LGPL-2.1", "2.1"),
    (r"GNU GENERAL PUBLIC LICENSE Version 3", "GPL-3.0", "3"),
    (r"GNU GENERAL PUBLIC LICENSE Version 2", "GPL-2.0", "2"),
)


def license_file(folder: Path) -> str | None:
    """The name of a project's license file."""
    return next((name for name in _FILES if is_file(folder / name)), None)


def licenses_of_text(folder: Path) -> tuple[str, ...]:
    """The license whose words the license file has; several where files leave open which, none if it is unknown.

    The texts of the GNU licenses are the same for `-only` and `-or-later`: the project's own notices decide.

    Raises:
        InputError: the license file cannot be read.
    """
    name = license_file(folder)
    text = re.sub(r"\s+", " ", read_text(folder / name, _LARGEST, within=folder)) if name else ""
    for words, others, identifier in _LICENSES:
        if all(_has(text, one) for one in words):
            return () if others and _has(text, others) else (identifier,)
    for title, family, version in _OF_VERSIONS:
        if _has(text, title):
            return _granted(folder, family, version)
    return ()


def _has(text: str, words: str) -> bool:
    return re.search(words, text, re.IGNORECASE) is not None


def _granted(folder: Path, family: str, version: str) -> tuple[str, ...]:
    """The one of the two identifiers that the project's notices name, else both."""
    only, later = both = (f"{family}-only", f"{family}-or-later")
    notices = tuple(_notices(folder))
    says_only = any(only in text for text in notices)
    says_later = any(later in text or _allows_later(text, version) for text in notices)
    return both if says_only == says_later else (later,) if says_later else (only,)


def _allows_later(text: str, version: str) -> bool:
    """Whether a text has the words that the GNU licenses propose: "version 3 of the License, or (at your option)"."""
    words = re.compile(r"at your option\W{1,3}any later version", re.IGNORECASE)
    begin = f"version {version} of the "
    return any(begin in text[max(0, at.start() - 80) : at.start()].lower() for at in words.finditer(text))


def _notices(folder: Path) -> Iterator[str]:
    """The texts with notices, without the marks of comments; a file that cannot be read has none."""
    for name in _NOTICES:
        if is_file(folder / name):
            try:
                text = read_text(folder / name, _LARGEST, within=folder)
            except InputError:
                continue
            yield re.sub(r"[\s#*]+", " ", text)
