"""Error messages that users of CUDA paste, and what they mean.

The facts are data: `variants/messages.yaml`. `facts.models.MessagesFile` is the form of the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

from feedstock_tools.errors import WorkError
from feedstock_tools.facts.content import content_of
from feedstock_tools.facts.cuda import load_cuda

#: Of a long log the last part is searched (characters): errors are at the end.
_LONGEST = 1_000_000
_GROUP = re.compile(r"\{(\w+)\}")
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)")
#: What stands before the text of a line: quotes of Markdown, pytest's margin, the time of a log, the container's name.
_PREFIX = re.compile(
    r"^(?:\s*(?:>|E(?=\s{3})|[\w.-]+\s+\|(?=\s)|\[?\d{4}-\d\d-\d\d[T ][\d:.,]+(?:Z|[+-]\d\d:?\d\d)?\]?:?))+",
    re.MULTILINE,
)
_STRAIGHT = str.maketrans("\u2018\u2019\u201c\u201d\u00b4`\u00a0", "''\"\"'' ")


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a message means; what who runs the program, and who builds it, can do; the commands that help.

    `sources` are pages by title. `ask` are demands for the judge, filled in; none where the message says too little.
    A `harmless` message is a remark: the program runs.
    """

    name: str
    pattern: str
    means: str
    user: tuple[str, ...]
    sources: tuple[str, ...]
    maintainer: tuple[str, ...]
    ask: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    harmless: bool = False


@cache
def load_messages() -> tuple[Explanation, ...]:
    document = content_of("messages.yaml")
    titles = {name: source["title"] for name, source in document["sources"].items()}
    return tuple(
        Explanation(**{**entry, "sources": tuple(titles[name] for name in entry["sources"])})
        for entry in document["messages"]
    )


def explain_message(text: str) -> tuple[Explanation, ...]:
    """What an error message, or a log with several, means: errors in their order, then remarks.

    Colours, quotes of any kind, prefixes and breaks of lines make no difference. Texts are filled in with what the
    message says.

    Raises:
        WorkError: nothing is known about it.

    >>> explain_message("ptxas fatal : Value 'sm_86' is not defined for option 'gpu-name'")[0].commands[0]
    'feedstock-tools cuda gpu --capability 8.6'
    """
    plain = " ".join(_PREFIX.sub("", _ESCAPES.sub("", text[-_LONGEST:])).translate(_STRAIGHT).split())
    matches = _matches(plain)
    if all(explanation.harmless for explanation, _ in matches):
        matches = _matches(plain.replace(" ", ""), torn=True) or matches
    if not matches:
        raise WorkError("no explanation of this message is known", hint="Paste the line of the error itself.")
    matches.sort(key=lambda found: (found[0].harmless, found[1].start()))
    return tuple(_filled(explanation, _words(match)) for explanation, match in matches)


def _matches(text: str, *, torn: bool = False) -> list[tuple[Explanation, re.Match[str]]]:
    """The first place of each message; in a `torn` text, with lines that broke inside words, no space counts."""
    found = []
    for explanation in load_messages():
        pattern = (
            explanation.pattern.replace(" ?", "").replace(" ", "").replace(r"\b", "") if torn else explanation.pattern
        )
        match = re.search(pattern, text, re.IGNORECASE)
        if match is not None:
            found.append((explanation, match))
    return found


def _words(match: re.Match[str]) -> Mapping[str, str]:
    words = {name.rstrip("23"): value.rstrip(".") for name, value in match.groupdict().items() if value is not None}
    if "arch" in words:
        words["capability"] = f"{words['arch'][:-1]}.{words['arch'][-1]}"
        words["compilers"] = _compilers(words["arch"])
    elif "capability" in words:
        words["arch"] = words["capability"].replace(".", "")
    if "number" in words:
        words["cuda"] = f"{int(words['number']) // 1000}.{int(words['number']) % 1000 // 10}"
    if "cuda" in words:
        toolkit = load_cuda().toolkits.get(words["cuda"])
        words["driver"] = (toolkit and toolkit.driver and toolkit.driver.linux) or "of that CUDA"
    if "ptx" in words:
        words["writers"], words["readers"] = _cuda_of_ptx(words["ptx"]), _cuda_of_ptx(words["reads"])
    return words


def _compilers(architecture: str) -> str:
    """The toolkits that compile for an architecture: `CUDA 11.1 or newer`, `CUDA 8.0 to 12.9`."""
    facts = load_cuda()
    versions = [version for version, toolkit in facts.toolkits.items() if toolkit.accepts(f"sm_{architecture}")]
    if not versions:
        return "no CUDA version that is known"
    return f"CUDA {versions[0]} " + ("or newer" if versions[-1] == [*facts.toolkits][-1] else f"to {versions[-1]}")


def _cuda_of_ptx(version: str) -> str:
    """The toolkits with a version of PTX: `CUDA 12.5 or 12.6`."""
    toolkits = [toolkit.version for toolkit in load_cuda().toolkits.values() if toolkit.ptx == version]
    return f"CUDA {' or '.join(toolkits)}" if toolkits else "a CUDA version that is not known"


def _filled(explanation: Explanation, words: Mapping[str, str]) -> Explanation:
    def fill(text: str) -> str:
        return _GROUP.sub(lambda group: words.get(group[1], group[1].upper()), text)

    return replace(
        explanation,
        means=fill(explanation.means),
        user=tuple(map(fill, explanation.user)),
        maintainer=tuple(map(fill, explanation.maintainer)),
        commands=tuple(map(fill, explanation.commands)),
        ask=tuple(map(fill, explanation.ask)) if words.keys() >= {*_GROUP.findall(" ".join(explanation.ask))} else (),
    )
