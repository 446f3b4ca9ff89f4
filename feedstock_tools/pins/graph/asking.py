"""A question to the pin graph, from the texts of a command line to an answer that can be printed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from feedstock_tools.channel.metadata import Record
from feedstock_tools.channel.repodata import read_records
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.facts import CudaFacts, load_cuda
from feedstock_tools.pins.graph import answers
from feedstock_tools.pins.graph.channels import channel_title, channel_urls
from feedstock_tools.pins.graph.demands import parse_demands
from feedstock_tools.pins.graph.explain import Conflict, explain
from feedstock_tools.pins.graph.model import PinGraph
from feedstock_tools.pins.graph.pin_graph import pin_graph
from feedstock_tools.pins.graph.resolve import all_sets, asked_kinds
from feedstock_tools.platforms import Platform

__all__ = ["Answer", "Question", "ask", "records_of"]


@dataclass(frozen=True, slots=True)
class Question:
    """Which releases go together: demands as texts, and what is asked.

    Args:
        channels: where packages are taken from; none: what the facts say of conda-forge.
        platform: whose packages of the channels; None: linux-64, or what a demand names.
        facts: whether what the facts say counts beside the channels.
        kinds: the kinds of an answer beside those demanded; none: the usual ones.
        most: how many sets are wanted at most.
    """

    demands: tuple[str, ...]
    channels: tuple[str, ...] = ()
    platform: str | None = None
    facts: bool = True
    kinds: tuple[str, ...] = ()
    most: int = 1


@dataclass(frozen=True, slots=True)
class Answer:
    """The sets that hold, or the conflict; `more` where there are more sets than were wanted."""

    graph: PinGraph
    facts: CudaFacts
    sets: tuple[dict[str, str], ...]
    conflict: Conflict | None
    most: int
    more: bool

    def as_text(self) -> str:
        """For people: one set line by line, several as a table, a conflict in sentences."""
        if self.conflict is not None:
            return str(self.conflict)
        if self.most == 1:
            return answers.as_text(self.graph, self.sets[0])
        more = "\n(and more; raise --limit, or name kinds with --kind)" if self.more else ""
        return answers.as_table(self.sets) + more

    def as_config(self) -> str:
        """For a conda_build_config.yaml: the first set.

        Raises:
            WorkError: there is a conflict, and so no set to write.
        """
        if self.conflict is not None:
            raise WorkError(str(self.conflict))
        return answers.as_config(self.sets[0], self.facts)

    def as_json(self) -> str:
        """For programs."""
        if self.conflict is not None:
            return json.dumps(answers.conflict_document(self.conflict), indent=2)
        sets = [answers.as_document(self.graph, one) for one in self.sets]
        return json.dumps(sets[0] if self.most == 1 else sets, indent=2)


def ask(question: Question) -> Answer:
    """Find what a question asks for.

    Raises:
        InputError: a demand, channel, platform or kind is not one.
        WorkError: a channel cannot be read.
    """
    facts = load_cuda()
    demands = parse_demands(question.demands, facts.gpus)
    if not question.facts and not question.channels:
        raise InputError("without facts a channel is needed", hint="Add --channel.")
    named = [demand.spec for demand in demands if demand.kind == "platform"]
    records, origin = None, ""
    if question.channels:
        platform = question.platform or (named[0] if named else "linux-64")
        records = records_of(question.channels, platform)
        origin = " and ".join(channel_title(channel) for channel in question.channels)
    elif question.platform:
        raise InputError("--platform is for --channel", hint=f"Demand platform={question.platform}.")
    graph = pin_graph(facts if question.facts else None, demands=demands, records=records, origin=origin)
    conflict = explain(graph, demands)
    if conflict is not None:
        return Answer(graph, facts, (), conflict, question.most, False)
    found = list(islice(all_sets(graph, demands, asked_kinds(graph, demands, question.kinds)), question.most + 1))
    return Answer(graph, facts, tuple(found[: question.most]), None, question.most, len(found) > question.most)


def records_of(channels: Sequence[str], *platforms: str) -> tuple[Record, ...]:
    """All packages of some channels for some platforms, noarch ones too.

    Raises:
        InputError: a channel or platform is not one.
        WorkError: a channel cannot be read.
    """
    subdirs = (*(Platform.parse(platform).subdir for platform in platforms), "noarch")
    return tuple(
        record for channel in channels for url in channel_urls(channel) for record in read_records(url, subdirs)
    )
