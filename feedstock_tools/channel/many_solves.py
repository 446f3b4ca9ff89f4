"""Solving many environments in parallel: repodata is read once, and equal questions are solved once.

Packages that are not built yet can be added as records in a first channel of their own.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from feedstock_tools.channel.calls import rattler_client, unsharded_gateway
from feedstock_tools.channel.metadata import Record, RunExports
from feedstock_tools.channel.repodata import channel_url, run_exports_of
from feedstock_tools.channel.solving import Question, SolveError, plain_errors, solved_records
from feedstock_tools.channel.specs import name_of
from feedstock_tools.files.temporary import new_folder, remove
from feedstock_tools.platforms import Platform

if TYPE_CHECKING:
    from rattler import Channel, Gateway, MatchSpec, MultiSource, RepoDataRecord, SparseRepoData, Version

#: The channel of planned packages that are not built yet.
PROMISED = "file:///promised"


@dataclass(frozen=True, slots=True)
class Solved:
    """A package of a solved environment; `run_exports` if repodata has them."""

    name: str
    version: str
    build: str
    subdir: str
    channel: str
    url: str
    run_exports: RunExports | None


@dataclass(frozen=True, slots=True)
class Answer:
    """The packages of an environment by name, or the reason in a few words why there are none.

    `by_time` are pairs of builds between which only time stamps chose (`left_to_time`).
    """

    packages: Mapping[str, Solved]
    reason: str | None = None
    by_time: tuple[tuple[str, str], ...] = ()


class ManySolves:
    """Solves environments in channels that stay open; use it within one event loop, and close it.

    Args:
        channels: URLs, names or folders by subdir, the first has priority.
        at_once: the number of solvers that run in parallel.
        done: called after each solved environment.
    """

    def __init__(
        self, channels: Mapping[str, Sequence[str]], *, at_once: int, done: Callable[[], None] = lambda: None
    ) -> None:
        from rattler import Gateway

        self._channels = {subdir: tuple(map(channel_url, listed)) for subdir, listed in channels.items()}
        self._free = asyncio.Semaphore(at_once)
        self._done = done
        self._gateway = Gateway(client=rattler_client())
        self._asked: dict[tuple[Question, str], asyncio.Task[Answer]] = {}
        self._names: dict[str, asyncio.Task[frozenset[str]]] = {}
        self._folder = new_folder()
        self._promised: dict[str, MultiSource] = {}
        self._solved: dict[str, Solved] = {}
        self._exports: dict[str, RunExports] = {}

    def close(self) -> None:
        remove(self._folder)

    @property
    def count(self) -> int:
        return len(self._asked)

    async def names(self, platform: Platform) -> frozenset[str]:
        """The names of all packages that the channels have for a platform."""
        if platform.subdir not in self._names:
            self._names[platform.subdir] = asyncio.ensure_future(self._read_names(platform))
        return await self._names[platform.subdir]

    async def solve(self, question: Question, promised: Sequence[Record] = ()) -> Answer:
        """Solve an environment; a repeated one is not solved again.

        Args:
            promised: packages that are not in the channels; they hide those of the same names there.
        """
        question.check()
        text = json.dumps([record.to_repodata() for record in promised], sort_keys=True) if promised else ""
        key = (question, sha256(text.encode()).hexdigest() if text else "")
        if key not in self._asked:
            self._asked[key] = asyncio.ensure_future(self._solve(question, promised, key[1]))
        return await self._asked[key]

    async def run_exports(self, package: Solved) -> RunExports:
        """The run exports of a package, from repodata, the channel's run_exports.json or the package itself."""
        if package.run_exports is not None:
            return package.run_exports
        if package.url not in self._exports:
            self._exports[package.url] = await asyncio.to_thread(run_exports_of, package.url)
        return self._exports[package.url]

    async def _read_names(self, platform: Platform) -> frozenset[str]:
        from rattler import Channel, Subdir

        with plain_errors():
            names = await self._gateway.names(
                [Channel(url) for url in self._channels[platform.subdir]], [Subdir(platform.subdir), Subdir("noarch")]
            )
        return frozenset(name.normalized for name in names)

    async def _solve(self, question: Question, promised: Sequence[Record], key: str) -> Answer:
        from rattler import Channel

        async with self._free:
            sources: list[Channel | SparseRepoData | MultiSource] = []
            if promised:
                sources.append(self._source(promised, key))
            sources += [Channel(url) for url in self._channels[question.platform.subdir]]
            try:
                with plain_errors():
                    solved = await self._with_plain_repodata(question, sources)
                    by_time = await left_to_time(question, solved, PROMISED, self._gateway)
            except SolveError as error:
                return Answer({}, str(error))
            finally:
                self._done()
        return Answer({package.name: package for package in map(self._package, solved)}, by_time=by_time)

    async def _with_plain_repodata(
        self, question: Question, sources: Sequence[Channel | SparseRepoData | MultiSource]
    ) -> list[RepoDataRecord]:
        """As `solve` does: if reading fails, try again without sharded repodata."""
        from rattler.exceptions import GatewayError

        try:
            return await solved_records(question, sources, self._gateway)
        except GatewayError:
            plain = unsharded_gateway()
            solved = await solved_records(question, sources, plain)
            self._gateway = plain
            return solved

    def _source(self, promised: Sequence[Record], key: str) -> MultiSource:
        """The promised packages as one source, whatever their subdirs."""
        from rattler import Channel, MultiSource, SparseRepoData

        if key not in self._promised:
            parts = []
            for subdir in sorted({record.subdir for record in promised}):
                entries = {record.file_name: record.to_repodata() for record in promised if record.subdir == subdir}
                path = self._folder / f"{key}-{subdir}.json"
                path.write_text(json.dumps({"packages": {}, "packages.conda": entries}), encoding="utf-8")
                parts.append(SparseRepoData(Channel(PROMISED), subdir, path))
            self._promised[key] = MultiSource("promised", parts)
        return self._promised[key]

    def _package(self, record: RepoDataRecord) -> Solved:
        """A record of rattler as a value, created once for a package in many environments."""
        url = record.url
        if url not in self._solved or url.startswith(PROMISED):
            exports = json.loads(record.to_json()).get("run_exports")
            self._solved[url] = Solved(
                name=record.name.normalized,
                version=str(record.version),
                build=str(record.build),
                subdir=record.subdir,
                channel=(record.channel or "").rstrip("/"),
                url=url,
                run_exports=None if exports is None else RunExports.from_json(exports),
            )
        return self._solved[url]


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
    names = {name_of(spec) for spec in requested}
    chosen = {record.name.normalized: record for record in solved}
    machine = _machine(question.virtual)
    pairs = []
    for name in sorted(names & chosen.keys()):
        record = chosen[name]
        if (record.channel or "").rstrip("/") == skipped:
            continue
        wanted = [*(spec for spec in requested if name_of(spec) == name), *_specs_on(name, chosen.values())]
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
    return all(_kept(spec, chosen, machine, needed=True) for spec in _specs(other.depends)) and all(
        _kept(spec, chosen, machine, needed=False) for spec in _specs(other.constrains)
    )


def _kept(
    spec: MatchSpec, chosen: Mapping[str, RepoDataRecord], machine: Mapping[str, Version], *, needed: bool
) -> bool:
    from rattler import VersionSpec

    name = name_of(spec)
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


def _distribution(record: RepoDataRecord) -> str:
    return f"{record.name.normalized} {record.version} {record.build}"
