"""The facts compared with channels: one that agrees, some that differ, and the packages of real recipes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from feedstock_tools.channel.metadata import Record
from feedstock_tools.cli.cuda import cuda as command
from feedstock_tools.facts.cuda import CudaFacts
from feedstock_tools.facts.packages import read_packages
from feedstock_tools.pins.graph import audit as audited
from feedstock_tools.pins.graph.audit import Audit, Disagreement
from feedstock_tools.report.pins.channel import audit_text

LINUX = ("linux-64",)


def audit(facts: CudaFacts, records: Sequence[Record]) -> tuple[Disagreement, ...]:
    """The disagreements on all that the channel has."""
    found = audited.audit(facts, records, "c", LINUX)
    return tuple(disagreement for disagreements in found.values() for disagreement in disagreements or ())


def record(name: str, version: str, build: str, depends: tuple[str, ...], subdir: str = "linux-64") -> Record:
    entry = {"name": name, "version": version, "build": build, "build_number": 0, "depends": depends}
    return Record.from_repodata(f"{name}-{version}-{build}.conda", entry, channel="file:///c", subdir=subdir)


def as_the_facts_say(facts: CudaFacts) -> Iterator[Record]:
    """A channel with the toolkits of the facts, and every build of a library that they list, for linux-64."""
    for toolkit in facts.toolkits.values():
        if "linux-64" in (toolkit.platforms or ()):
            name = "cudatoolkit" if toolkit.era == "cudatoolkit" else "cuda-version"
            yield record(name, toolkit.version, "h_0", ())
    ranges = {"12": ">=12.0,<13", "13": ">=13.0,<14"}
    for library in facts.libraries.values():
        for release in library.releases:
            for built, subdirs in release.cuda.items():
                major = built.split(".")[0]
                if "linux-64" in subdirs and major in ranges:
                    yield record(library.name, release.version, f"cuda{built}", (f"cuda-version {ranges[major]}",))


def from_12_on(found: tuple[Disagreement, ...], facts: CudaFacts) -> list[Disagreement]:
    """Without the releases that `as_the_facts_say` leaves out: those not built for CUDA 12 or later."""
    late = {
        (library.name, release.version)
        for library in facts.libraries.values()
        for release in library.releases
        if any(int(built.split(".")[0]) >= 12 and "linux-64" in subdirs for built, subdirs in release.cuda.items())
    }
    kept = [one for one in found if one.kind == "cuda" or (one.kind, one.version) in late]
    return [one for one in kept if not one.facts.startswith("by the facts for CUDA 1")]


def test_a_channel_as_the_facts_say_it_is(facts: CudaFacts) -> None:
    assert from_12_on(audit(facts, tuple(as_the_facts_say(facts))), facts) == []


def test_what_only_one_side_has(facts: CudaFacts) -> None:
    records = [one for one in as_the_facts_say(facts) if (one.name, one.version) != ("cudnn", "9.13.1.26")]
    records = [one for one in records if (one.name, one.version) != ("cuda-version", "12.4")]
    records += [record("cudnn", "99.0", "h_0", ("cuda-version >=13.0,<14",)), record("cuda-version", "99.0", "h_0", ())]
    assert from_12_on(audit(facts, records), facts)[:3] == [
        Disagreement("linux-64", "cuda", "99.0", "not in the facts", "in the channel"),
        Disagreement("linux-64", "cuda", "12.4", "in the facts", "not in the channel"),
        Disagreement("linux-64", "cudnn", "9.13.1.26", "in the facts", "not in the channel"),
    ]
    assert Disagreement("linux-64", "cudnn", "99.0", "not in the facts", "in the channel") in audit(facts, records)


def test_a_build_that_goes_with_other_toolkits(facts: CudaFacts) -> None:
    records = [
        replace(one, depends=("cuda-version >=13.1,<14",)) if (one.name, one.version) == ("cudnn", "9.25.0.15") else one
        for one in as_the_facts_say(facts)
    ]
    (found,) = [one for one in audit(facts, records) if one.version == "9.25.0.15"]
    assert found.facts == "by the facts for CUDA 13.0, 13.1, 13.2"
    assert found.channel == "in the channel for CUDA 13.1, 13.2"


def test_the_packages_of_real_recipes_go_with_the_toolkits_that_the_facts_say(facts: CudaFacts) -> None:
    records = [
        Record.from_repodata(
            f"{package.distribution}.conda",
            {
                "name": package.name,
                "version": package.version,
                "build": package.build,
                "build_number": package.build_number,
                "depends": package.depends,
                "constrains": package.constrains,
            },
            channel="file:///c",
            subdir=package.subdir,
        )
        for package in read_packages()
    ]
    found = audit(facts, records)
    # The file of packages has a selection of versions and builds; the facts must know each, and all that it goes with.
    wrong = [one for one in found if one.facts == "not in the facts" or not numbers(one.channel) <= numbers(one.facts)]
    assert wrong == []


def numbers(said: str) -> set[str]:
    return set(re.findall(r"\d+\.\d+", said))


def test_on_the_command_line(defaults_channel: Path) -> None:
    arguments = ["audit", "--channel", str(defaults_channel), "--platform", "linux-64"]
    result = CliRunner().invoke(command, arguments, catch_exceptions=False, standalone_mode=False)
    assert result.return_value == 1
    assert "linux-64: CUDA 9.0: not in the facts; in the channel" in result.output
    found = json.loads(CliRunner().invoke(command, [*arguments, "--json"], standalone_mode=False).output)
    assert f"{len(found['disagreements'])} disagreements." in result.output


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ((), ["1 check completed.", "The facts and c agree."]),
        (None, ["1 of 1 check could not be completed: CUDA on linux-64 (none in the channel)."]),
        (
            (Disagreement("linux-64", "cuda", "1.0", "in the facts", "not in the channel"),),
            ["1 check completed.", "linux-64: CUDA 1.0: in the facts; not in the channel", "1 disagreement."],
        ),
    ],
)
def test_what_a_channel_lacks_is_unknown(found: tuple[Disagreement, ...] | None, said: list[str]) -> None:
    audit: Audit = {("linux-64", "cuda"): found}
    assert audit_text(audit, "c").splitlines() == said
