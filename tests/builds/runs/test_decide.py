"""Which rows begin next: a pure function, with one host for the run on this machine and several for others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedstock_tools.builds.plan.hosts import Capacity, Host, Share, fits
from feedstock_tools.builds.plan.needs import Needs
from feedstock_tools.builds.plan.row import Row, Running
from feedstock_tools.builds.runs.decide import decide, without_host
from feedstock_tools.builds.runs.occupancy import Occupancy
from tests.support.rows import made_up_row

GIB = 1 << 30


def host(name: str = "here", cores: int = 4, memory: int = 8, jobs: int = 8, **more: Any) -> Host:
    """A host with memory in GiB."""
    return Host(name, Capacity(tuple(range(cores)), memory * GIB), jobs, **more)


def row(
    name: str,
    cores: int | None = 1,
    memory: int = 1,
    makes: Sequence[str] = "",
    *,
    gpu: bool = False,
    at: float = 0.0,
    hours: float | None = None,
    **more: Any,
) -> Row:
    """A row that makes an output of its own, or some that others may make too, each a letter."""
    platform = more.pop("platform", "noarch")
    needs = Needs(cores, memory * GIB, gpu=gpu, labels=frozenset(more.pop("labels", ())), **more)
    seconds = None if hours is None else hours * 3600
    made = made_up_row(name, *(makes or [name]), seconds=seconds, needs=needs, platform=platform)
    return replace(made, wanted=replace(made.wanted, not_before=at))


def under_way(name: str, on: str, share: Share) -> Row:
    """A row that has begun."""
    return replace(row(name), running=Running(on, share))


def begun(rows: list[Row]) -> list[str]:
    """`row` on the only host, `row@host` on one of several."""
    return [each.name if each.at.host == "here" else f"{each.name}@{each.at.host}" for each in rows]


X86, ARM, DOCKER = frozenset({"linux-64"}), frozenset({"linux-aarch64"}), frozenset({"container"})
BIG, SMALL = host("big", 16, 64), host("small", 2, 4)


@pytest.mark.parametrize(
    ("pending", "hosts", "expected"),
    [
        ([row("a", 2), row("b", 2), row("c", 1)], [host()], ["a", "b"]),
        ([row("a", 1, 6), row("b", 1, 4), row("c", 1, 1)], [host()], ["a"]),  # c would keep b waiting
        ([row("a"), row("b"), row("c")], [host(jobs=2)], ["a", "b"]),
        ([row("a"), row("b")], [host(jobs=0)], []),
        ([row("a", makes="xy"), row("b", makes="yz"), row("c")], [host()], ["a", "c"]),
        ([row("a", at=5.0), row("b")], [host()], ["b"]),
        ([row("a", 99), row("b")], [host()], ["b"]),  # fits nowhere, so it holds up no other row
        ([row("a", 1, 99), row("b", gpu=True), row("c")], [host(gpus=0)], ["c"]),
        ([row("a", 8), row("b", 8), row("c", 8), row("d", 1)], [BIG, SMALL], ["a@big", "b@big", "d@small"]),
        ([row("a", 2), row("b", 2)], [SMALL, host("other", 2, 4)], ["a@small", "b@other"]),
        ([row("a", gpu=True)], [host("plain", 8, gpus=0), host("gpu", 1)], ["a@gpu"]),
        ([row("a", gpu=True), row("b", gpu=True), row("c")], [host(gpus=1)], ["a"]),  # c would keep b waiting
        ([row("a", platform="linux-aarch64")], [host("x", platforms=X86), host("arm", platforms=ARM)], ["a@arm"]),
        ([row("a", image="alma9")], [host("x", images=frozenset()), host("y", images=frozenset(["alma9"]))], ["a@y"]),
        ([row("a", engine="container")], [host("x", engines=frozenset()), host("y", engines=DOCKER)], ["a@y"]),
        ([row("a", labels=["disk"])], [host("x", 8), host("y", labels=frozenset({"disk", "new"}))], ["a@y"]),
        ([row("a"), row("b")], [host("gpu", 8, gpus=1), host("plain")], ["a@plain", "b@plain"]),
        ([row("a"), row("b")], [host("dear", 8, price=2.0), host("cheap", 1, price=1.0)], ["a@cheap", "b@dear"]),
        ([row("a", None)], [host("half", 8, jobs=2), host("x", 2)], ["a@half"]),  # an equal part: 4 cores or 1
        ([row("a", 8), row("b", 8), row("c", 1), row("d", 1)], [BIG, host("x", 8)], ["a@big", "b@big", "c@x", "d@x"]),
        ([], [host()], []),
    ],
)
def test_what_begins_on_hosts_that_are_free(pending: list[Row], hosts: list[Host], expected: list[str]) -> None:
    assert begun(decide(pending, [], hosts, now=1.0)) == expected


STAYS, SPOT = host("stays", 1), host("spot", 1, preempted=0.25)


@pytest.mark.parametrize(
    ("pending", "hosts", "expected"),
    [
        ([row("long", hours=4), row("short", hours=0.5)], [SPOT, STAYS], ["long@stays", "short@spot"]),
        ([row("short", hours=0.5), row("long", hours=4)], [STAYS, SPOT], ["short@spot", "long@stays"]),
        ([row("long", hours=4), row("other", hours=4)], [SPOT, STAYS], ["long@stays", "other@spot"]),
        ([row("endless", hours=40), row("more", hours=40)], [SPOT, STAYS], ["endless@stays"]),
        ([row("endless", hours=40), row("more", hours=40)], [SPOT], ["endless@spot"]),  # there is no better host
        (
            [row("endless", 2, hours=40)],
            [host("spot", 2, preempted=0.25), STAYS],
            ["endless@spot"],
        ),  # nor one that fits
        ([row("unknown"), row("short", hours=0.5)], [SPOT, STAYS], ["unknown@stays", "short@spot"]),
    ],
)
def test_long_rows_keep_off_hosts_that_are_preempted(
    pending: list[Row], hosts: list[Host], expected: list[str]
) -> None:
    assert begun(decide(pending, [], hosts, now=1.0)) == expected


SHORT, LONG = host("short", 1, left=3600.0), host("long", 1, left=8 * 3600.0)


@pytest.mark.parametrize(
    ("pending", "hosts", "expected"),
    [
        ([row("a", hours=2), row("b", hours=0.5)], [SHORT, LONG], ["a@long", "b@short"]),
        ([row("a", hours=0.5), row("b", hours=2)], [LONG, SHORT], ["a@short", "b@long"]),
        ([row("a", hours=9), row("b", hours=2)], [SHORT, LONG], ["b@long"]),  # and holds up no other
        ([row("a", hours=9)], [SHORT, LONG, STAYS], ["a@stays"]),
        ([row("unknown"), row("short", hours=0.5)], [SHORT, LONG], ["unknown@long", "short@short"]),
        ([row("unknown"), row("short", hours=0.5)], [SHORT, LONG, STAYS], ["unknown@stays", "short@short"]),
    ],
)
def test_a_row_does_not_begin_where_the_allocation_ends_before_it(
    pending: list[Row], hosts: list[Host], expected: list[str]
) -> None:
    assert begun(decide(pending, [], hosts, now=1.0)) == expected


def test_a_row_that_waits_keeps_one_host_free_and_no_others() -> None:
    pending = [row("big", 4), row("small", 1), row("tiny", 1)]
    first, second = host("first"), host("second", 4)
    before = [under_way("x", "first", Share((0, 1, 2), GIB, 1)), under_way("y", "second", Share((0,), GIB, 1))]
    assert begun(decide(pending, before, [first, second], now=0.0)) == ["small@first"]


def test_rows_that_fit_no_host_are_named_with_the_reason() -> None:
    hosts = [
        host("x", 4, 8, platforms=X86, gpus=0, left=7200.0),
        host("arm", 64, 8, platforms=ARM, engines=frozenset({"rattler-build"})),
    ]
    pending = [
        row("fits", 4, platform="linux-64"),
        row("cores", 8, platform="linux-64"),
        row("memory", 1, 9, platform="linux-aarch64"),
        row("gpu", gpu=True, platform="linux-64"),
        row("system", platform="win-64"),
        row("engine", platform="linux-aarch64", engine="container"),
        row("time", hours=3, platform="linux-64"),
    ]
    assert without_host(pending, hosts) == {
        "cores": "it needs 8 cores, and no host that builds for linux-64 has more than 4",
        "memory": "it needs 9.00 GiB of memory, and no host that builds for linux-aarch64 has more than 8.00 GiB",
        "gpu": "it needs a GPU, and no host that builds for linux-64 has one",
        "system": "no host builds for win-64",
        "engine": "no host that builds for linux-aarch64 has the engine container",
        "time": "it takes 3 h 00 min, and no host that builds for linux-64 lasts longer than 2 h 00 min",
    }


def test_a_build_is_given_cores_that_no_other_has_and_jobs_that_fit_into_its_memory() -> None:
    pending = [row("a", 3, 2), row("b", 1, 2)]
    first, second = decide(pending, [], [host()], now=0.0)
    assert first.at.share == Share((0, 1, 2), 2 * GIB, 2)  # two jobs of 1 GiB
    assert second.at.share == Share((3,), 2 * GIB, 1)
    third = row("c", 3, 2)
    assert decide([third], [first, second], [host()], now=0.0) == []
    (start,) = decide([third], [second], [host()], now=0.0)
    assert start.at.share.cores == (0, 1, 2)


def test_a_finished_output_keeps_no_row_waiting_while_its_maker_goes_on() -> None:
    pending = [row("maker", makes="lp"), row("waits", makes="lq")]
    (maker,) = decide(pending, [], [host()], now=0.0)
    assert decide(pending[1:], [maker], [host()], now=0.0) == []
    under_way = Occupancy([maker])
    under_way.note_made({("linux-64", "l-1-0")})
    assert begun(decide(pending[1:], under_way, [host()], now=0.0)) == ["waits"]


ASKED: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "cores": st.integers(1, 6),
        "memory": st.integers(1, 12),
        "gpu": st.booleans(),
        "at": st.sampled_from([0.0, 9.0]),
        "hours": st.sampled_from([None, 0.1, 3.0, 30.0]),
    }
)
HOSTS = st.builds(
    host,
    st.just("?"),
    st.integers(1, 5),
    st.integers(1, 10),
    st.integers(0, 3),
    gpus=st.sampled_from([None, 0, 1, 2]),
    preempted=st.sampled_from([0.0, 0.0, 0.25, 1.0]),
    price=st.sampled_from([0.0, 1.0]),
)


@st.composite
def situations(draw: st.DrawFn) -> tuple[list[Row], list[Row], list[Host]]:
    """Hosts, and rows of which some have begun as `decide` says."""
    hosts = [replace(each, name=f"host {at}") for at, each in enumerate(draw(st.lists(HOSTS, min_size=1, max_size=3)))]
    shared = st.sets(st.sampled_from("uvwxyz"), max_size=2)
    pending = [
        row(f"row {at}", makes=[f"own {at}", *sorted(draw(shared))], **asked)
        for at, asked in enumerate(draw(st.lists(ASKED, max_size=8)))
    ]
    starts = decide(pending, [], hosts, now=0.0)
    names = {start.name for start in starts}
    return [each for each in pending if each.name not in names], [each for each in starts if draw(st.booleans())], hosts


@given(situations())
def test_no_host_is_given_more_than_it_has_and_no_output_is_made_twice(
    situation: tuple[list[Row], list[Row], list[Host]],
) -> None:
    pending, before, hosts = situation
    starts = decide(pending, before, hosts, now=0.0)
    assert len({start.name for start in starts}) == len(starts)
    after = [*before, *starts]
    for each in hosts:
        shares = [one.at.share for one in after if one.at.host == each.name]
        cores = [core for share in shares for core in share.cores]
        assert len(cores) == len(set(cores))
        assert set(cores) <= set(each.capacity.cores)
        assert sum(share.memory for share in shares) <= each.capacity.memory
        assert len(shares) <= each.jobs
        assert each.gpus is None or sum(one.wanted.needs.gpu for one in after if one.at.host == each.name) <= each.gpus
    packages = [package for one in after for package in one.wanted.packages]
    assert len(packages) == len(set(packages))
    due = {each.name for each in pending if each.wanted.not_before == 0.0}
    named = {each.name: each for each in hosts}
    assert all(start.name in due and fits(start.wanted.needs, named[start.at.host]) for start in starts)


@given(situations())
def test_rows_that_fit_no_host_change_nothing_for_the_others(
    situation: tuple[list[Row], list[Row], list[Host]],
) -> None:
    pending, before, hosts = situation
    fitting = [each for each in pending if any(fits(each.wanted.needs, one) for one in hosts)]
    assert decide(pending, before, hosts, now=0.0) == decide(fitting, before, hosts, now=0.0)


@given(situations())
def test_where_nothing_runs_something_begins_if_any_row_that_is_due_fits(
    situation: tuple[list[Row], list[Row], list[Host]],
) -> None:
    pending, _, hosts = situation
    can = any(each.wanted.not_before == 0.0 and fits(each.wanted.needs, one) for each in pending for one in hosts)
    assert bool(decide(pending, [], hosts, now=0.0)) == can


@given(situations(), st.data())
def test_a_row_that_fits_begins_when_others_end_however_many_small_rows_follow(
    situation: tuple[list[Row], list[Row], list[Host]], data: st.DataObject
) -> None:
    _, before, hosts = situation
    big = row("big", data.draw(st.integers(1, 5)), data.draw(st.integers(1, 10)))
    if not any(fits(big.wanted.needs, one) for one in hosts):
        return
    endless = [row(f"small {at}") for at in range(200)]
    for at in range(100):
        waiting = [big, *endless[at:]]
        starts = decide(waiting, before, hosts, now=0.0)
        if "big" in {start.name for start in starts}:
            return
        assert before or starts
        before = [*before, *starts]
        endless = [each for each in endless if each.name not in {one.name for one in before}]
        del before[data.draw(st.integers(0, len(before) - 1))]
    raise AssertionError(f"{big} waits for ever")
