"""The events of a build without the secrets of this machine and those in URLs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from feedstock_tools.builds.engines.contract import Event, Failed, Log, Output
from feedstock_tools.errors import WorkError
from feedstock_tools.redaction import Redaction, known_secrets

__all__ = ["without_secrets"]


def without_secrets(events: Iterable[Event], machine: Mapping[str, str]) -> Iterator[Event]:
    """The events with stars in place of secrets, also of those that the output of programs has in two parts.

    Args:
        machine: the environment of the machine.
    """
    redaction = Redaction(known_secrets(machine).values())
    stage = ""
    ended: WorkError | None = None
    try:
        for event in events:
            if isinstance(event, Output):
                stage = event.stage
                if content := redaction.feed(event.content):
                    yield replace(event, content=content)
                continue
            if rest := redaction.flush():
                yield Output(rest, stage)
            yield _without_secrets(event, redaction)
    except WorkError as error:
        ended = error
    if rest := redaction.flush():
        yield Output(rest, stage)
    if ended is not None:
        raise ended


def _without_secrets(event: Event, redaction: Redaction) -> Event:
    if isinstance(event, Log):
        return replace(event, text=redaction.text(event.text))
    if isinstance(event, Failed):
        return replace(event, reason=redaction.text(event.reason))
    return event
