"""Which rows begin next: a pure function, with one host for the run on this machine and several for others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedstock_tools.builds.plan.capacity import Capacity, Share
from feedstock_tools.builds.plan.needs import Needs
from feedstock_tools.builds.runs.decide import Host, Pending, Running, Start, decide, fits

GIB = 1 << 30


def host(name: str = "here", cores: int = 4, memory: int = 8, jobs: int = 8, *, gpu: bool = True) -> Host:
    """A host with memory in GiB."""
    return Host(name, Capacity(tuple(range(cores)), memory * GIB), jobs, gpu)


def row(name: str, cores: int = 1, memory: int = 1, makes: str = "", *, gpu: bool = False, at: float = 0.0) -> Pending:
    """A row that makes an output of its own, or some that others may make too, each a letter."""
    places = frozenset(("linux-64", each) for each in makes or [name])
    return Pending(name, Needs(cores, memory * GIB, gpu=gpu), places, at)


def running(start: Start, pending: list[Pending]) -> Running:
    """A row that has begun."""
    places = next(each.places for each in pending if each.row == start.row)
    return Running(start.row, start.host, start.share, places)


def begun(starts: list[Start]) -> list[str]:
    """`row` on the only host, `row@host` on one of several."""
    return [start.row if start.host == "here" else f"{start.row}@{start.host}" for start in starts]


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
        ([row("a", 1, 99), row("b", gpu=True), row("c")], [host(gpu=False)], ["c"]),
        ([row("a", 8), row("b", 8), row("c", 8), row("d", 1)], [BIG, SMALL], ["a@big", "b@big", "d@small"]),
        ([row("a", 2), row("b", 2)], [SMALL, host("other", 2, 4)], ["a@small", "b@other"]),
        ([row("a", gpu=True)], [host("plain", 8, gpu=False), host("gpu", 1)], ["a@gpu"]),
        ([], [host()], []),
    ],
)
def test_what_begins_on_hosts_that_are_free(pending: list[Pending], hosts: list[Host], expected: list[str]) -> None:
    assert begun(decide(pending, [], hosts, now=1.0)) == expected


def test_a_build_is_given_cores_that_no_other_has_and_jobs_that_fit_into_its_memory() -> None:
    pending = [row("a", 3, 2), row("b", 1, 2)]
    first, second = decide(pending, [], [host()], now=0.0)
    assert first.share == Share((0, 1, 2), 2 * GIB, 2)  # two jobs of 1 GiB
    assert second.share == Share((3,), 2 * GIB, 1)
    third = row("c", 3, 2)
    assert decide([third], [running(first, pending), running(second, pending)], [host()], now=0.0) == []
    (start,) = decide([third], [running(second, pending)], [host()], now=0.0)
    assert start.share.cores == (0, 1, 2)


def test_a_finished_output_keeps_no_row_waiting_while_its_maker_goes_on() -> None:
    pending = [row("maker", makes="lp"), row("waits", makes="lq")]
    (start,) = decide(pending, [], [host()], now=0.0)
    maker = running(start, pending)
    assert decide(pending[1:], [maker], [host()], now=0.0) == []
    without_library = Running(maker.row, maker.host, maker.share, maker.places - {("linux-64", "l")})
    assert begun(decide(pending[1:], [without_library], [host()], now=0.0)) == ["waits"]


NEEDS = st.builds(
    row, st.just("?"), st.integers(1, 6), st.integers(1, 12), gpu=st.booleans(), at=st.sampled_from([0.0, 9.0])
)
HOSTS = st.builds(host, st.just("?"), st.integers(1, 5), st.integers(1, 10), st.integers(0, 3), gpu=st.booleans())


@st.composite
def situations(draw: st.DrawFn) -> tuple[list[Pending], list[Running], list[Host]]:
    """Hosts, and rows of which some have begun as `decide` says."""
    hosts = [
        Host(f"host {at}", each.capacity, each.jobs, each.gpu)
        for at, each in enumerate(draw(st.lists(HOSTS, min_size=1, max_size=3)))
    ]
    shared = st.sets(st.sampled_from("uvwxyz"), max_size=2)
    pending = [
        Pending(
            f"row {at}",
            each.needs,
            frozenset({("", f"own {at}"), *(("", one) for one in draw(shared))}),
            each.not_before,
        )
        for at, each in enumerate(draw(st.lists(NEEDS, max_size=8)))
    ]
    starts = decide(pending, [], hosts, now=0.0)
    kept = [start for start in starts if draw(st.booleans())]
    names = {start.row for start in starts}
    return [each for each in pending if each.row not in names], [running(each, pending) for each in kept], hosts


@given(situations())
def test_no_host_is_given_more_than_it_has_and_no_output_is_made_twice(
    situation: tuple[list[Pending], list[Running], list[Host]],
) -> None:
    pending, before, hosts = situation
    starts = decide(pending, before, hosts, now=0.0)
    assert len({start.row for start in starts}) == len(starts)
    after = [*before, *(running(start, pending) for start in starts)]
    for each in hosts:
        shares = [one.share for one in after if one.host == each.name]
        cores = [core for share in shares for core in share.cores]
        assert len(cores) == len(set(cores))
        assert set(cores) <= set(each.capacity.cores)
        assert sum(share.memory for share in shares) <= each.capacity.memory
        assert len(shares) <= each.jobs
    places = [place for one in after for place in one.places]
    assert len(places) == len(set(places))
    due = {each.row: each for each in pending}
    named = {each.name: each for each in hosts}
    assert all(due[start.row].not_before == 0.0 and fits(due[start.row].needs, named[start.host]) for start in starts)


@given(situations())
def test_rows_that_fit_no_host_change_nothing_for_the_others(
    situation: tuple[list[Pending], list[Running], list[Host]],
) -> None:
    pending, before, hosts = situation
    fitting = [each for each in pending if any(fits(each.needs, one) for one in hosts)]
    assert decide(pending, before, hosts, now=0.0) == decide(fitting, before, hosts, now=0.0)


@given(situations())
def test_where_nothing_runs_something_begins_if_any_row_that_is_due_fits(
    situation: tuple[list[Pending], list[Running], list[Host]],
) -> None:
    pending, _, hosts = situation
    can = any(each.not_before == 0.0 and fits(each.needs, one) for each in pending for one in hosts)
    assert bool(decide(pending, [], hosts, now=0.0)) == can


@given(situations())
def test_no_row_takes_a_place_on_a_host_that_an_earlier_one_waits_for(
    situation: tuple[list[Pending], list[Running], list[Host]],
) -> None:
    pending, before, hosts = situation
    starts = {start.row: start.host for start in decide(pending, before, hosts, now=0.0)}
    busy = {place for each in before for place in each.places}
    kept: set[str] = set()
    for each in pending:
        if each.row in starts:
            assert starts[each.row] not in kept
            busy |= each.places
        elif each.not_before == 0.0 and not each.places & busy:
            kept |= {one.name for one in hosts if fits(each.needs, one)}
