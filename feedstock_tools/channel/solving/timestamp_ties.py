"""Alternative builds that a solver could have chosen, had they been built at another time.

Two builds of the same version with the same build number, both of which fit the same environment, differ only in
their time stamps for the solver. The installed package then changes with the next upload.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from feedstock_tools.channel.solving.solve import Question

if TYPE_CHECKING:
    from rattler import Gateway, MatchSpec, RepoDataRecord, Version


async def left_to_time(
    question: Question, solved: Sequence[RepoDataRecord], skipped: str, gateway: Gateway
) -> tuple[tuple[str, str], ...]:
    """Pairs of a chosen build and an equally good one, as `name version build`.

    Only packages requested by name are compared, and only builds that could replace the other in exactly this
    environment: one that needs other versions of its dependencies is ranked by those.

    Args:
        question: the solved question.
        solved: the packages of the answer.
        skipped: packages of the channel with this URL are skipped.
        gateway: gives access to the channels' repodata.
    """
    from rattler import MatchSpec

    requested = [MatchSpec(spec) for spec in question.specs]
    names = {_name(spec) for spec in requested}
    chosen = {record.name.normalized: record for record in solved}
    machine = _machine(question.virtual)
    pairs = []
    for name in sorted(names & chosen.keys()):
        record = chosen[name]
        if (record.channel or "").rstrip("/") == skipped:
            continue
        wanted = [*(spec for spec in requested if _name(spec) == name), *_specs_on(name, chosen.values())]
        for other in await _siblings(record, question, gateway):
            if all(spec.matches(other) for spec in wanted) and _fits(other, chosen, machine):
                pairs.append((_distribution(record), _distribution(other)))
                break
    return tuple(pairs)


async def _siblings(record: RepoDataRecord, question: Question, gateway: Gateway) -> list[RepoDataRecord]:
    """Other builds that only time stamps rank above or below one, judging by their own metadata."""
    from rattler import Channel, Subdir

    subdirs = [Subdir(question.platform.subdir), Subdir("noarch")]
    answers = await gateway.query([Channel(record.channel or "")], subdirs, [record.name.normalized], recursive=False)
    return [
        other
        for answer in answers
        for other in answer
        if other.version == record.version
        and other.build_number == record.build_number
        and str(other.build) != str(record.build)
        and len(other.track_features) == len(record.track_features)
    ]


def _fits(other: RepoDataRecord, chosen: Mapping[str, RepoDataRecord], machine: Mapping[str, Version]) -> bool:
    """Whether an environment satisfies all dependencies and constraints of a build."""
    return all(_kept(spec, chosen, machine, needed=True) for spec in _specs(other.depends)) and all(
        _kept(spec, chosen, machine, needed=False) for spec in _specs(other.constrains)
    )


def _kept(
    spec: MatchSpec, chosen: Mapping[str, RepoDataRecord], machine: Mapping[str, Version], *, needed: bool
) -> bool:
    from rattler import VersionSpec

    name = _name(spec)
    if name.startswith("__"):
        version = machine.get(name)
        if version is None:
            return not needed
        return spec.version is None or bool(VersionSpec(str(spec.version)).matches(version))
    record = chosen.get(name)
    return not needed if record is None else bool(spec.matches(record))


def _specs_on(name: str, records: Iterable[RepoDataRecord]) -> list[MatchSpec]:
    """The requirements of an environment's packages on one of them."""
    return [
        spec
        for record in records
        for text in (*record.depends, *record.constrains)
        if text.split(" ", 1)[0] == name
        for spec in _specs((text,))
    ]


def _specs(texts: Iterable[str]) -> list[MatchSpec]:
    from rattler import MatchSpec

    return [MatchSpec(text) for text in texts]


def _machine(virtual: Iterable[str]) -> dict[str, Version]:
    from rattler import Version

    parts = (text.split("=") for text in virtual)
    return {name: Version(rest[0] if rest else "0") for name, *rest in parts}


def _name(spec: MatchSpec) -> str:
    return str(getattr(spec.name, "normalized", spec.name))


def _distribution(record: RepoDataRecord) -> str:
    return f"{record.name.normalized} {record.version} {record.build}"
