"""What happens in an attempt, as lines of JSON: a host writes them to a file, and a client reads them from any place.

A client believes none of it: `events_of` takes lines of the right form only, and packages are checked apart.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, Union, get_args

from pydantic import ConfigDict, TypeAdapter, ValidationError

from feedstock_tools.builds.engines.contract import Failed, Log, Output, Started
from feedstock_tools.builds.ledger import EnvironmentRecord
from feedstock_tools.wording import size_text

#: Bytes of a line: environments of a thousand packages take a tenth of it; and of all lines of an attempt.
LONGEST, MOST = 4 << 20, 1 << 30
#: Bytes of an attempt's events after which a host adds no output of programs: the log has it.
MOST_OUTPUT = 256 << 20


class Damaged(Exception):  # noqa: N818 - a peer's fault
    """A host sent what no host of this version sends."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """An output is built and has passed the checks on the host.

    Attributes:
        identity: in the ledger; `file` is the package's subdir and name, `sha256` and `size` its contents.
        seconds: the engine's time; `started` and `ended` UTC, as ISO 8601; `peak_memory` in bytes.
        marks: of the record.
    """

    output: str
    identity: str
    file: str
    sha256: str
    size: int
    seconds: float
    started: str
    ended: str
    peak_memory: int | None = None
    marks: Mapping[str, str] = field(default_factory=dict)
    environments: tuple[EnvironmentRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class Finished:
    """The attempt has ended, and nothing follows.

    Attributes:
        how: `built` (also without some outputs, after a failure), `stopped` (on request, or with the host's worker),
            `broken` (the host cannot perform the order), or `unfit` (the host, not the row, is at fault).
        reason: of the last one.
        log: the SHA-256 of the log file; `log_size` its bytes.
    """

    how: str
    reason: str = ""
    log: str = ""
    log_size: int = 0


HostEvent = Started | Log | Output | Delivered | Failed | Finished
_LINES: Any = TypeAdapter(
    Union[tuple([tuple[Literal[kind.__name__.lower()], kind] for kind in get_args(HostEvent)])],  # type: ignore[misc,arg-type]  # noqa: UP007
    config=ConfigDict(extra="forbid"),
)


def line_of(event: HostEvent) -> bytes:
    """An event as a line."""
    content = asdict(event)
    if isinstance(event, Output):  # of any encoding
        content["content"] = event.content.decode("latin-1")
    return json.dumps([type(event).__name__.lower(), content]).encode() + b"\n"


def events_of(lines: bytes) -> Iterator[HostEvent]:
    """The events of some complete lines.

    Raises:
        Damaged: a line is not an event.
    """
    for line in lines.splitlines():
        try:
            if len(line) > LONGEST:
                raise ValueError(f"it has {len(line)} bytes")
            _, event = _LINES.validate_json(line, strict=True)
            if isinstance(event, Output):
                event = replace(event, content=event.content.decode().encode("latin-1"))
            yield event
        except ValueError as error:
            reason = "unknown fields or types" if isinstance(error, ValidationError) else str(error)
            raise Damaged(f"an event is damaged: {reason}: {line[:100]!r}") from None


class Arriving:
    """The events of an attempt as they come from its host, in pieces that end anywhere.

    Attributes:
        offset: the bytes that have come.
    """

    def __init__(self) -> None:
        self.offset = 0
        self._unfinished = b""

    def take(self, answer: Mapping[str, Any]) -> Iterator[HostEvent]:
        """The events that the next piece completes, from a host's answer.

        Raises:
            Damaged: a line is not an event, or they are too many.
        """
        content = answer.get("data")
        if not isinstance(content, bytes):
            raise Damaged("its events have another form")
        self.offset += len(content)
        lines, _, self._unfinished = (self._unfinished + content).rpartition(b"\n")
        if len(self._unfinished) > LONGEST:
            raise Damaged(f"an event has more than {size_text(LONGEST)}")
        if self.offset > MOST:
            raise Damaged(f"its events have more than {size_text(MOST)}")
        yield from events_of(lines)
