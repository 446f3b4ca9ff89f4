"""Why nothing satisfies some specs: the solver's tree of conflicts, reduced to its leaves, which are the causes."""

from __future__ import annotations

import re
from collections.abc import Iterator

_MOST = 6
_LINE = re.compile(r"^(?P<indent>[│├└─ ]*)(?P<text>.*)$")
_PREAMBLE = re.compile(r"^Cannot solve the request because of: ?")
_MISSING = re.compile(r"^(?P<spec>.+?),? for which no candidates were found\.?$")
_ABSENT = re.compile(r"^No candidates were found for (?P<spec>.+?)\.?$")
_WOULD_REQUIRE = re.compile(r"^(?P<packages>.+?) would (?:require|constrain)$")
_CONFLICT = re.compile(
    r"^(?P<packages>.+?),? which conflicts with "
    r"(?:any installable versions previously reported|the versions reported above)\.?$"
)
_CONSTRAINT = re.compile(r"^the constraint (?P<spec>.+?) cannot be fulfilled\.?$")
_TOGETHER = "The following packages are incompatible"


def short_reason(explanation: str) -> str:
    """The causes of a conflict that py-rattler explained as a tree, one a line, at most six.

    >>> print(short_reason("Cannot solve the request because of: No candidates were found for cudnn 9.*.\\n"))
    no channel has 'cudnn 9.*'
    """
    lines = list(_tree(explanation))
    causes = list(dict.fromkeys(_causes(lines)))
    if not causes:
        return "\n".join(explanation.strip().splitlines()[:_MOST])
    if any(text == _TOGETHER for _, text in lines):
        specs = [
            text.split(" can be installed")[0].split(" cannot be installed")[0] for depth, text in lines if depth == 1
        ]
        causes.insert(0, f"these are incompatible: {', '.join(specs)}")
    more = len(causes) - _MOST
    return "\n".join(causes[:_MOST] + ([f"(and {more} more causes)"] if more > 0 else []))


def only_lacks(reason: str) -> bool:
    """Whether a short reason consists only of packages that channels lack.

    >>> only_lacks("no channel has 'cudnn 9.*'"), only_lacks("these are incompatible: a, b")
    (True, False)
    """
    return all("no channel has" in line for line in reason.splitlines())


def _tree(explanation: str) -> Iterator[tuple[int, str]]:
    """Depth and text of each line; a root has the depth 0."""
    for line in _PREAMBLE.sub("", explanation.strip()).splitlines():
        match = _LINE.match(line)
        if match and match["text"].strip():
            yield len(match["indent"]) // 3, match["text"].strip()


def _causes(lines: list[tuple[int, str]]) -> Iterator[str]:
    path: list[str] = []
    for depth, text in lines:
        path[depth:] = [text]
        match = _WOULD_REQUIRE.match(path[depth - 1]) if depth else None
        if absent := _ABSENT.match(text):
            spec = _readable(absent["spec"])
            yield f"{_lack(spec)} '{spec}'"
        elif missing := _MISSING.match(text):
            spec = _readable(missing["spec"])
            yield f"{match['packages']} requires {spec}, which {_lack(spec)}" if match else f"{_lack(spec)} '{spec}'"
        elif constraint := _CONSTRAINT.match(text):
            needing = match["packages"] if match else "a package"
            yield f"{needing} needs {_readable(constraint['spec'])}, which is not available"
        elif conflict := _CONFLICT.match(text):
            spec = conflict["packages"]
            yield f"{match['packages']} requires {spec}, which conflicts" if match else f"{spec} conflicts"


def _readable(spec: str) -> str:
    return spec.rstrip(",").removesuffix(" *")


def _lack(spec: str) -> str:
    return "this machine does not have" if spec.startswith("__") else "no channel has"
