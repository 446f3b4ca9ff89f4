"""Solving against small channels: the choice, its reason, and why there is no solution."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from feedstock_tools.channel.folder import index_channel
from feedstock_tools.channel.metadata import PackageFile, PackageMetadata
from feedstock_tools.channel.packages.archive import write_package
from feedstock_tools.channel.solving import (
    SolveError,
    install,
    short_reason,
    solve,
    virtual_packages,
)
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.platforms import Platform
from tests.support.timestamps import decided_by_time

LINUX = Platform.parse("linux-64")


def channel(folder: Path, *packages: tuple[str, str, str, int, tuple[str, ...]]) -> str:
    for name, version, build, number, depends in packages:
        metadata = PackageMetadata(name, version, f"{build}_{number}", number, "linux-64", depends=depends)
        write_package(folder, metadata, [PackageFile(f"share/{name}", build.encode())])
    index_channel(folder)
    return str(folder)


def chosen(specs: list[str], url: str, cuda: str | None = None) -> list[str]:
    return [record.distribution for record in solve(specs, [url], LINUX, virtual=virtual_packages(LINUX, cuda=cuda))]


@pytest.fixture
def probes(tmp_path: Path) -> str:
    return channel(
        tmp_path / "channel",
        ("probe", "1.0", "cpu_h1", 0, ()),
        ("probe", "1.0", "cuda112h2", 11200, ("__cuda >=11.2",)),
        ("probe", "1.0", "cuda129h3", 12900, ("__cuda >=12.9",)),
    )


@pytest.mark.parametrize(
    ("cuda", "build"),
    [(None, "cpu_h1_0"), ("11.2", "cuda112h2_11200"), ("12.8", "cuda112h2_11200"), ("13.0", "cuda129h3_12900")],
)
def test_the_driver_decides_which_build_is_taken(probes: str, cuda: str | None, build: str) -> None:
    assert chosen(["probe"], probes, cuda) == [f"probe-1.0-{build}"]


def test_build_numbers_leave_nothing_to_time_stamps(probes: str) -> None:
    assert decided_by_time(["probe"], [probes], LINUX, virtual=["__cuda=13.0"]) == ()


def test_a_choice_by_time_stamp_is_found(tmp_path: Path) -> None:
    url = channel(
        tmp_path / "channel",
        ("probe", "1.0", "cuda112h2", 0, ("__cuda >=11.2",)),
        ("probe", "1.0", "cuda129h3", 0, ("__cuda >=12.9",)),
    )
    pairs = decided_by_time(["probe"], [url], LINUX, virtual=["__cuda=13.0"])
    assert [{one.build, other.build} for one, other in pairs] == [{"cuda112h2_0", "cuda129h3_0"}]


def test_the_first_channel_has_the_last_word(tmp_path: Path) -> None:
    first = channel(tmp_path / "first", ("tool", "1.0", "h", 0, ()))
    second = channel(tmp_path / "second", ("tool", "2.0", "h", 0, ()), ("app", "1.0", "h", 0, ("tool",)))

    found = solve(["app"], [first, second], LINUX)
    assert [(record.distribution, record.channel) for record in found] == [
        ("app-1.0-h_0", Path(second).as_uri()),
        ("tool-1.0-h_0", Path(first).as_uri()),
    ]


def test_a_requested_package_comes_from_the_first_channel_that_has_its_name(tmp_path: Path) -> None:
    first = channel(tmp_path / "first", ("tool", "1.0", "h", 0, ()))
    second = channel(tmp_path / "second", ("tool", "2.0", "h", 0, ()))

    with pytest.raises(SolveError, match=r"tool 2\.0 is in .*second, but .*first has tool too and comes first"):
        solve(["tool >=2"], [first, second], LINUX)
    assert [record.version for record in solve(["tool >=2"], [second, first], LINUX)] == ["2.0"]


def test_a_conflict_is_reported_by_its_causes(tmp_path: Path) -> None:
    many = [("tensors", f"2.{minor}", "cuda", 0, ("__cuda >=12.4", "kit 11.*")) for minor in range(30)]
    url = channel(tmp_path / "channel", *many, ("app", "1.0", "h", 0, ("tensors",)), ("kit", "11.8", "h", 0, ()))

    with pytest.raises(SolveError) as raised:
        chosen(["app"], url)
    assert (
        str(raised.value) == "tensors 2.0 | 2.1 | ... | 2.29 requires __cuda >=12.4, which this machine does not have"
    )
    assert "app 1.0 would require" in raised.value.explanation


def test_what_no_channel_has_is_named(probes: str) -> None:
    with pytest.raises(SolveError, match=r"^no channel has 'probe >=2'$"):
        chosen(["probe >=2"], probes)


def test_specs_that_exclude_each_other_are_named(tmp_path: Path) -> None:
    url = channel(tmp_path / "channel", ("python", "3.11.1", "h", 0, ()), ("python", "3.12.1", "h", 0, ()))

    with pytest.raises(SolveError, match=r"these are incompatible: python 3\.\d+\.\*, python 3\.\d+\.\*"):
        chosen(["python 3.11.*", "python 3.12.*"], url)


def test_a_reason_has_seven_lines_at_most() -> None:
    leaves = "\n".join(
        f"├─ part {n} would require\n│  └─ piece{n} >=2, for which no candidates were found." for n in range(50)
    )
    reason = short_reason(f"Cannot solve the request because of: app * cannot be installed:\n{leaves}")

    assert reason.splitlines()[0] == "part 0 requires piece0 >=2, which no channel has"
    assert reason.splitlines()[-1] == "(and 44 more causes)"
    assert len(reason.splitlines()) == 7


def test_an_unknown_kind_of_explanation_is_shown_as_it_is() -> None:
    assert short_reason("The solver gave up.") == "The solver gave up."


@pytest.mark.parametrize(
    ("specs", "virtual", "message"),
    [
        (["probe [oops"], [], "not a match specification"),
        (["probe"], ["__cuda=not a version"], "not a virtual package"),
    ],
)
def test_what_cannot_be_read_is_bad_input(probes: str, specs: list[str], virtual: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        solve(specs, [probes], LINUX, virtual=virtual)


def test_installing_makes_the_prefix_hold_what_was_solved(probes: str, tmp_path: Path) -> None:
    prefix, cache = tmp_path / "prefix", tmp_path / "cache"
    for cuda, build in ((None, "cpu_h1"), ("11.2", "cuda112h2")):
        records = solve(["probe"], [probes], LINUX, virtual=virtual_packages(LINUX, cuda=cuda))
        install(records, prefix, LINUX, cache=cache)
        assert (prefix / "share/probe").read_text() == build
    (listed,) = prefix.glob("conda-meta/probe-*.json")
    assert json.loads(listed.read_text())["build"] == "cuda112h2_11200"


def test_a_package_damaged_since_it_was_indexed_is_not_installed(probes: str, tmp_path: Path) -> None:
    records = solve(["probe"], [probes], LINUX)
    for path in Path(probes).glob("linux-64/probe-*.conda"):
        path.write_bytes(b"rubbish")

    with pytest.raises(WorkError, match="cannot create the environment"):
        install(records, tmp_path / "prefix", LINUX, cache=tmp_path / "cache")
