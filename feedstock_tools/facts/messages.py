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


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a message means, what to check, and the commands that help; `sources` are pages by title."""

    name: str
    pattern: str
    means: str
    check: tuple[str, ...]
    commands: tuple[str, ...]
    sources: tuple[str, ...]


@cache
def load_messages() -> tuple[Explanation, ...]:
    document = content_of("messages.yaml")
    titles = {name: source["title"] for name, source in document["sources"].items()}
    return tuple(
        Explanation(**{**entry, "sources": tuple(titles[name] for name in entry["sources"])})
        for entry in document["messages"]
    )


def explain_message(text: str) -> tuple[Explanation, ...]:
    """What an error message, or a log with several, means; texts are filled in with what the message says.

    Raises:
        WorkError: nothing is known about it.

    >>> explain_message("ptxas fatal : Value 'sm_86' is not defined for option 'gpu-name'")[0].commands[0]
    'feedstock-tools gpu --capability 8.6'
    """
    found = []
    for explanation in load_messages():
        match = re.search(explanation.pattern, text[-_LONGEST:], re.IGNORECASE)
        if match is not None:
            found.append(_filled(explanation, _words(match)))
    if not found:
        raise WorkError("no explanation of this message is known", hint="Paste the line of the error itself.")
    return tuple(found)


def _words(match: re.Match[str]) -> Mapping[str, str]:
    words = {name.rstrip("2"): value for name, value in match.groupdict().items() if value is not None}
    if "arch" in words:
        words["capability"] = f"{words['arch'][:-1]}.{words['arch'][-1]}"
    if "number" in words:
        words["cuda"] = f"{int(words['number']) // 1000}.{int(words['number']) % 1000 // 10}"
    if "ptx" in words:
        words["writers"], words["readers"] = _cuda_of_ptx(words["ptx"]), _cuda_of_ptx(words["reads"])
    return words


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
        check=tuple(fill(text) for text in explanation.check),
        commands=tuple(fill(text) for text in explanation.commands),
    )
