"""A run over hosts that nobody rents: how long it takes, what it costs, and what preemption does to it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedstock_tools.builds.fleet.simulation.hosts import OVERHEAD, READY, SimulatedHosts, read_hosts
from feedstock_tools.builds.fleet.simulation.simulate import SEEDS, Simulation, courses, simulate
from feedstock_tools.builds.fleet.simulation.times import read_times, with_times
from feedstock_tools.builds.plan.hosts import Capacity, Host
from feedstock_tools.builds.plan.needs import Needs
from feedstock_tools.builds.plan.row import Row
from feedstock_tools.errors import InputError, WorkError
from tests.support.rows import made_up_agenda, made_up_row, made_up_shared

GIB = 1 << 30
HOUR = 3600.0
HERE = Host("here", Capacity((0, 1, 2, 3), 8 * GIB), 1)


def hosts_of(*kinds: tuple[int, Host], back: dict[str, float] | None = None) -> SimulatedHosts:
    """Hosts of some kinds, each a number and a host."""
    every = [
        (kind.name, replace(kind, name=f"{kind.name}-{at}")) for count, kind in kinds for at in range(1, count + 1)
    ]
    return SimulatedHosts(tuple(host for _, host in every), {host.name: kind for kind, host in every}, back or {})


def begun(simulation: Simulation) -> list[str]:
    """The rows in the order of their begin."""
    return [build.row for build in simulation.builds]


@pytest.mark.parametrize(("count", "hours"), [("1", 45), ("3", 15), ("15", 3)])
def test_fifteen_builds_of_three_hours(count: str, hours: float) -> None:
    todo = [
        made_up_row(f"{kind}{at}", f"{kind}{at}", seconds=3 * HOUR)
        for kind, n in (("cpu", 12), ("gpu", 3))
        for at in range(n)
    ]
    simulation = simulate(todo, read_hosts(count, HERE))
    assert simulation.seconds == READY + hours * HOUR + hours / 3 * OVERHEAD
    assert simulation.rented == int(count) * READY + 45 * HOUR + 15 * OVERHEAD


def test_machine_time_and_money_end_with_the_last_build_of_each_host() -> None:
    todo = [made_up_row("long", "a", seconds=4 * HOUR), made_up_row("short", "b", seconds=HOUR)]
    simulation = simulate(todo, hosts_of((3, replace(HERE, name="host", price=0.5))))
    assert [use.rented for use in simulation.uses] == [4 * HOUR, HOUR, 0.0]
    assert simulation.cost == 2.5


def test_a_row_waits_for_an_output_that_another_makes_and_does_not_make_it_again() -> None:
    first = made_up_row("first", "lib", "a", seconds={"lib": HOUR, "a": 3 * HOUR})
    second = made_up_row("second", "lib", "b", seconds={"lib": HOUR, "b": HOUR})
    simulation = simulate([first, second], hosts_of((2, replace(HERE, name="host"))))
    assert [(build.row, build.begin, build.end) for build in simulation.builds] == [
        ("first", 0.0, 4 * HOUR),
        ("second", HOUR, 2 * HOUR),
    ]


def test_rows_that_fit_no_host_are_left_out_and_hold_up_no_other() -> None:
    large = made_up_row("large", "a", seconds=HOUR, needs=Needs(cores=64))
    simulation = simulate([large, made_up_row("small", "b", seconds=HOUR)], read_hosts("1x4c8g", HERE))
    assert begun(simulation) == ["small"]
    assert simulation.left_out == {"large": "it needs 64 cores, and no host that builds for linux-64 has more than 4"}


def test_a_build_that_is_cut_off_begins_again_on_another_host_first_of_all() -> None:
    spot = replace(HERE, name="spot", preempted=0.3)
    todo = [made_up_row(f"row {at}", f"p{at}", seconds=2 * HOUR) for at in range(20)]
    simulation = simulate(todo, hosts_of((2, spot), back={"spot": 600.0}), seed=1)
    cut_off = [build for build in simulation.builds if build.cut_off]
    assert cut_off
    assert sorted(build.row for build in simulation.builds if not build.cut_off) == sorted(each.name for each in todo)
    assert sum(use.lost for use in simulation.uses) == pytest.approx(sum(build.end - build.begin for build in cut_off))
    for build in cut_off:
        again = next(each for each in simulation.builds if each.row == build.row and each.begin >= build.end)
        between = {each.row for each in simulation.builds if build.end < each.begin < again.begin}
        assert between <= {each.row for each in cut_off}


def test_the_seed_decides_what_chance_does() -> None:
    todo = [made_up_row(f"row {at}", f"p{at}", seconds=2 * HOUR) for at in range(10)]
    hosts = hosts_of((2, replace(HERE, name="spot", preempted=0.3)))
    assert simulate(todo, hosts, seed=5) == simulate(todo, hosts, seed=5)
    assert simulate(todo, hosts, seed=5) != simulate(todo, hosts, seed=6)


def test_chance_has_a_range_and_none_without_preemptions() -> None:
    todo = [made_up_row(f"row {at}", f"p{at}", seconds=2 * HOUR) for at in range(20)]
    spot = hosts_of((4, replace(HERE, name="spot", preempted=0.3)), back={"spot": 600.0})
    found = courses(todo, spot, seed=5)
    assert len(found) == SEEDS and found[0] == simulate(todo, spot, seed=5)
    assert len({each.seconds for each in found}) > SEEDS / 2
    assert courses(todo, read_hosts("4", HERE)) == (simulate(todo, read_hosts("4", HERE)),)


def test_a_host_takes_rows_when_it_is_ready_and_another_one_after_it_too() -> None:
    spot = SimulatedHosts((replace(HERE, preempted=0.5),), {"here": "spot"}, {"spot": 600.0}, {"spot": 100.0}, 2.0)
    simulation = simulate([made_up_row(f"row {at}", f"p{at}", seconds=HOUR) for at in range(3)], spot, seed=1)
    assert simulation.builds[0].begin == 100.0
    assert {round(build.end - build.begin, 3) for build in simulation.builds if not build.cut_off} == {HOUR + 2}
    gone = next(at for at, build in enumerate(simulation.builds) if build.cut_off)
    assert simulation.builds[gone + 1].begin == pytest.approx(simulation.builds[gone].end + 700)
    assert simulation.rented == pytest.approx(simulation.seconds - 600 * simulation.uses[0].preemptions)


def test_a_row_that_no_host_stays_long_enough_for_is_reported() -> None:
    with pytest.raises(WorkError, match="row would not end: it was cut off 200 times"):
        simulate(
            [made_up_row("row", "p", seconds=400 * HOUR)], hosts_of((1, replace(HERE, name="spot", preempted=1.0)))
        )


ROWS = st.lists(
    st.tuples(st.integers(1, 6), st.integers(1, 4), st.sets(st.sampled_from("xyz"), max_size=1)), max_size=12
)


@given(ROWS, st.integers(1, 4), st.sampled_from([0.0, 0.2]), st.integers(0, 3))
def test_every_row_is_built_once_and_no_host_builds_more_than_it_can(
    rows: list[tuple[int, int, set[str]]], count: int, preempted: float, seed: int
) -> None:
    todo = [
        made_up_row(f"row {at}", *sorted(shared), f"p{at}", seconds=hours * HOUR, needs=Needs(cores, GIB))
        for at, (hours, cores, shared) in enumerate(rows)
    ]
    kind = Host("kind", HERE.capacity, 2, preempted=preempted)
    simulation = simulate(with_times(todo, {}, None), hosts_of((count, kind)), seed)
    assert sorted(build.row for build in simulation.builds if not build.cut_off) == sorted(each.name for each in todo)
    needs = {each.name: each.wanted.needs.cores or 0 for each in todo}
    for use in simulation.uses:
        builds = [build for build in simulation.builds if build.host == use.host.name]
        for moment in {build.begin for build in builds}:
            together = [build for build in builds if build.begin <= moment < build.end]
            assert len(together) <= 2
            assert sum(needs[build.row] for build in together) <= 4


def with_heirs(hours: float, *heirs: Row) -> list[Row]:
    """A shared build of some hours and its heirs, as hosts build them."""
    shared, *rows = made_up_shared("compiled", *heirs)
    shared = replace(shared, wanted=replace(shared.wanted, seconds={"compiled": hours * HOUR}))
    return list(made_up_agenda(shared, *rows).on_hosts().todo)


def test_a_shared_build_counts_once_and_its_heirs_follow_it_in_parallel() -> None:
    todo = with_heirs(6, *(made_up_row(f"heir {at}", f"p{at}", seconds=HOUR) for at in range(3)))
    simulation = simulate(todo, hosts_of((2, replace(HERE, name="host", jobs=2))))
    assert simulation.seconds == 8 * HOUR
    assert begun(simulation) == ["compiled", "heir 0", "heir 1", "heir 2"]
    assert len({build.host for build in simulation.builds}) == 1
    assert sum(build.packages for build in simulation.builds) == 3


def test_a_shared_build_begins_where_all_of_its_heirs_fit() -> None:
    todo = with_heirs(6, made_up_row("plain", "a", seconds=HOUR), made_up_row("gpu", "b", needs=Needs(gpu=True)))
    todo[-1] = replace(todo[-1], wanted=replace(todo[-1].wanted, seconds={"b": HOUR}))
    plain, gpu = replace(HERE, name="plain", gpus=0), replace(HERE, name="gpu", gpus=1)
    assert {build.host for build in simulate(todo, hosts_of((1, plain), (1, gpu))).builds} == {"gpu-1"}
    assert simulate(todo, hosts_of((1, plain))).left_out.keys() == {"compiled", "plain", "gpu"}


@given(st.integers(0, 30))
def test_a_host_that_is_taken_away_loses_what_it_keeps(seed: int) -> None:
    todo = with_heirs(2, *(made_up_row(f"heir {at}", f"p{at}", seconds=2 * HOUR) for at in range(3)))
    simulation = simulate(todo, hosts_of((2, replace(HERE, name="spot", preempted=0.2)), back={"spot": 600.0}), seed)
    assert {build.row for build in simulation.builds if not build.cut_off} == {row.name for row in todo}
    for use in simulation.uses:
        kept = False
        for build in sorted((each for each in simulation.builds if each.host == use.host.name), key=lambda b: b.begin):
            assert kept or build.row == "compiled"
            kept = not build.cut_off


def timed(rows: tuple[Row, ...]) -> dict[str, float | None]:
    return {each.name: each.wanted.expected for each in rows}


def test_times_are_given_by_name_glob_or_configuration_and_others_stay() -> None:
    todo = [
        made_up_row("linux_a", "a", seconds=HOUR),
        made_up_row("linux_b", "b"),
        made_up_row("osx_c", "c", seconds=HOUR),
        made_up_row("win_d", "d"),
    ]
    found = with_times(todo, {"linux_b": 5 * HOUR, "linux_*": 2 * HOUR}, 4 * HOUR)
    assert timed(found) == {"linux_b": 5 * HOUR, "win_d": 4 * HOUR, "linux_a": 2 * HOUR, "osx_c": HOUR}
    assert [each.name for each in found] == ["linux_b", "win_d", "linux_a", "osx_c"]  # the longest first


def test_a_given_time_is_that_of_what_a_row_makes_itself() -> None:
    todo = [made_up_row("first", "lib", "a"), made_up_row("second", "lib", "b")]
    assert timed(with_times(todo, {}, HOUR)) == {"first": HOUR, "second": HOUR}


def test_a_row_of_unknown_time_is_an_error_that_names_it() -> None:
    with pytest.raises(InputError, match="the time of 1 row is unknown: second") as caught:
        with_times([made_up_row("first", "a", seconds=1.0), made_up_row("second", "b")], {}, None)
    assert "--times" in str(caught.value)


def test_mistakes_in_a_file_of_times_have_their_places(tmp_path: Path) -> None:
    path = tmp_path / "times.yaml"
    path.write_text("linux_*: 3 h\nosx_*: long\n")
    with pytest.raises(InputError, match=r"times\.yaml:2:8: 'long' is not a valid duration"):
        read_times(path)
    path.write_text("linux_*: 90 min\nosx_64: 30\n")
    assert read_times(path) == {"linux_*": 5400.0, "osx_64": 30.0}


def test_hosts_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "hosts.yaml"
    path.write_text(
        "currency: EUR\nhosts:\n"
        "  stays:\n    cores: 32\n    memory: 128 GiB\n    platforms: [linux_64]\n    price: 1.5\n"
        "  spot:\n    count: 2\n    cores: 8\n    memory: 16 GiB\n    gpus: 1\n    preempted: 0.25\n    back: 5 min\n"
        "    ready: 1 min\n"
    )
    hosts = read_hosts(str(path), HERE)
    assert [host.name for host in hosts.hosts] == ["stays-1", "spot-1", "spot-2"]
    assert hosts.hosts[0] == Host(
        "stays-1", Capacity(tuple(range(32)), 128 * GIB), 1, platforms=frozenset({"linux-64"}), gpus=0, price=1.5
    )
    assert (hosts.hosts[2].gpus, hosts.back, hosts.currency) == (1, {"spot": 300.0}, "EUR")
    assert (hosts.ready, hosts.overhead) == ({"stays": READY, "spot": 60.0}, OVERHEAD)


def test_every_mistake_in_a_file_of_hosts_has_its_place(tmp_path: Path) -> None:
    path = tmp_path / "hosts.yaml"
    path.write_text(
        "hosts:\n  stays:\n    count: 0\n    cores: 4\n    memory: lots\n    platforms: [linux-65]\n    prize: 1\n"
        "    price: dear\n    preempted: .inf\n"
    )
    with pytest.raises(InputError) as caught:
        read_hosts(str(path), HERE)
    assert [(mistake.line, mistake.message) for mistake in caught.value.mistakes] == [
        (3, "0 is too small"),
        (5, "'lots' is not a valid amount of memory"),
        (6, "'linux-65' is not a platform"),
        (7, "unknown key 'prize' in 'stays'"),
        (8, "'dear' is not a number"),
        (9, "'.inf' is not a number"),
    ]


@pytest.mark.parametrize("text", ["", "0", "many", "3x", "3x0c", "32g", "1000000", "no-such-file.yaml", "3,x"])
def test_hosts_that_mean_nothing_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="hosts"):
        read_hosts(text, HERE)


def test_short_forms_of_hosts() -> None:
    hosts = read_hosts("2x32c128g,1x8c2gpu,3", HERE).hosts
    assert [(host.name, len(host.capacity.cores), host.capacity.memory >> 30, host.gpus) for host in hosts] == [
        ("32c128g-1", 32, 128, 0),
        ("32c128g-2", 32, 128, 0),
        ("8c2gpu-1", 8, 8, 2),
        ("host-1", 4, 8, None),
        ("host-2", 4, 8, None),
        ("host-3", 4, 8, None),
    ]
