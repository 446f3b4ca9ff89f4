"""What happens in an attempt, as lines of JSON: a host writes them to a file, and a client reads them from any place.

A client believes none of it: `events_of` takes lines of the right form only, and packages are checked apart.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from feedstock_tools.builds.engines.contract import Failed, Log, Output, Started
from feedstock_tools.builds.ledger import EnvironmentRecord, SolvedPackage

#: Bytes of a line: environments of a thousand packages take a tenth of it.
_LONGEST = 4 << 20


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
_KINDS: Mapping[str, type[Any]] = {
    kind.__name__.lower(): kind for kind in (Started, Log, Output, Delivered, Failed, Finished)
}
#: Type of a field, as annotated → what JSON has there.
_TYPES: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (float, int),
    "int | None": (int, type(None)),
    "bytes": (str,),
    "Mapping[str, str]": (dict,),
    "tuple[EnvironmentRecord, ...]": (list,),
}


def line_of(event: HostEvent) -> bytes:
    """An event as a line."""
    content = asdict(event)
    if isinstance(event, Output):
        content["content"] = event.content.decode("utf-8", "surrogateescape")
    return json.dumps([type(event).__name__.lower(), content]).encode() + b"\n"


def events_of(lines: bytes) -> Iterator[HostEvent]:
    """The events of some complete lines.

    Raises:
        Damaged: a line is not an event.
    """
    for line in lines.splitlines():
        try:
            if len(line) > _LONGEST:
                raise ValueError(f"it has {len(line)} bytes")
            kind, content = json.loads(line)
            yield _event(_KINDS[kind], content)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise Damaged(f"an event is damaged: {error!r}") from None


def _event(kind: type[Any], content: Mapping[str, Any]) -> HostEvent:
    fields = kind.__dataclass_fields__
    for name, value in content.items():
        types = _TYPES[str(fields[name].type)]
        if not isinstance(value, types) or isinstance(value, bool):
            raise ValueError(f"{name} of another type")
    values = dict(content)
    if kind is Output:
        values["content"] = content["content"].encode("utf-8", "surrogateescape")
    if kind is Delivered:
        if not all(isinstance(value, str) for value in content.get("marks", {}).values()):
            raise ValueError("a mark of another type")
        values["environments"] = tuple(_environment(each) for each in content.get("environments", ()))
    made: HostEvent = kind(**values)
    return made


def _environment(content: Mapping[str, Any]) -> EnvironmentRecord:
    packages = tuple(SolvedPackage(**{key: str(value) for key, value in each.items()}) for each in content["packages"])
    return EnvironmentRecord(str(content["environment"]), packages)
