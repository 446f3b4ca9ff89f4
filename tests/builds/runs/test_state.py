"""The state of a run: which rows wait, run and have ended, without threads or clocks."""

from __future__ import annotations

from feedstock_tools.builds.engines.contract import Failed
from feedstock_tools.builds.plan.hosts import Capacity, Host
from feedstock_tools.builds.plan.needs import Needs
from feedstock_tools.builds.plan.row import Ended
from feedstock_tools.builds.runs.state import RunState
from tests.support.rows import made_up_row, made_up_shared

HOST = Host("here", Capacity(tuple(range(8)), 64 << 30), 8)
DONE = Ended((), ())
BROKEN = Ended((), (), Failed("lib", "its build script failed"))
ROWS = (made_up_row("first", "lib", "a"), made_up_row("second", "lib", "b"), made_up_row("other", "x"))


def begun(state: RunState, now: float = 0.0) -> list[str]:
    """The rows that begin now."""
    return [row.name for row in state.begin([HOST], now)]


def test_a_row_waits_for_an_output_that_another_makes_and_no_longer() -> None:
    state = RunState(ROWS, fail_fast=False)
    assert begun(state) == ["first", "other"]
    assert state.made("first", "a") == {("linux-64", "a-1-0")}
    assert begun(state) == []
    state.made("first", "lib")
    assert begun(state) == ["second"]
    for name in ("first", "second", "other"):
        assert not state.is_over(0.0)
        state.end(name, DONE)
    assert state.is_over(0.0)
    assert (list(state.ended), state.failed) == (["first", "second", "other"], 0)


def test_rows_that_need_what_another_has_made_run_at_the_same_time() -> None:
    rows = tuple(made_up_row(f"python {number}", "lib", f"py-{number}") for number in range(4))
    state = RunState(rows, fail_fast=False)
    assert begun(state) == ["python 0"]
    state.made("python 0", "lib")
    assert begun(state) == ["python 1", "python 2", "python 3"]
    state.postpone("python 2", 0.0)
    assert begun(state) == ["python 2"]


def test_a_failure_takes_the_rows_with_it_that_need_the_output_and_no_others() -> None:
    state = RunState(ROWS, fail_fast=False)
    begun(state)
    state.end("first", BROKEN)
    assert begun(state) == []
    assert not state.is_over(0.0)
    state.end("other", DONE)
    assert state.is_over(0.0)
    assert (list(state.ended), state.failed) == (["first", "other"], 1)


def test_with_fail_fast_nothing_waits_after_a_failure() -> None:
    state = RunState((*ROWS, made_up_row("unrelated", "y")), fail_fast=True)
    host = Host("here", HOST.capacity, 2)
    assert [row.name for row in state.begin([host], 0.0)] == ["first", "other"]
    state.end("other", Ended((), (), Failed("x", "no")))
    assert state.pending == []
    assert list(state.running) == ["first"]


def test_a_row_that_another_run_has_a_part_of_is_asked_for_again_later() -> None:
    state = RunState(ROWS[:1], fail_fast=False)
    assert begun(state) == ["first"]
    state.postpone("first", 2.0)
    assert begun(state, now=1.0) == []
    assert not state.is_over(1.0)
    assert begun(state, now=2.0) == ["first"]


def test_a_row_that_waits_for_another_run_is_given_up_when_what_it_needs_fails_here() -> None:
    state = RunState((made_up_row("waits", "lib", "b"), made_up_row("fails", "c", "lib")), fail_fast=False)
    assert begun(state) == ["waits"]
    state.postpone("waits", 9.0)
    assert begun(state) == ["fails"]
    state.end("fails", BROKEN)
    assert state.pending == []
    assert state.is_over(0.0)


def test_rows_that_fit_no_host_do_not_keep_a_run_going() -> None:
    state = RunState(ROWS, fail_fast=False)
    small = Host("small", Capacity((0,), 1), 8)
    assert state.begin([small], 0.0) == []
    assert state.is_over(0.0)
    assert len(state.pending) == 3


def test_a_row_whose_host_is_gone_begins_elsewhere_before_all_others() -> None:
    state = RunState((made_up_row("first", "a"), made_up_row("second", "b")), fail_fast=False)
    one = Host("one", HOST.capacity, 1)
    assert begun_on(state, [one]) == ["first@one"]
    state.postpone("first", 0.0)
    assert begun_on(state, [Host("other", HOST.capacity, 1)]) == ["first@other"]


def test_rows_wait_for_a_host_that_runs_the_image_of_their_engine() -> None:
    needs = Needs(1, 1 << 30, engine="container", image="alma9")
    state = RunState([made_up_row("first", "a", needs=needs)], fail_fast=False)
    assert begun_on(state, [Host("bare", HOST.capacity, 1, images=frozenset())]) == []
    assert begun_on(state, [Host("docker", HOST.capacity, 1, images=frozenset({"alma9"}))]) == ["first@docker"]


def begun_on(state: RunState, hosts: list[Host]) -> list[str]:
    """The rows that begin now, each with its host."""
    return [f"{row.name}@{row.at.host}" for row in state.begin(hosts, 0.0)]


HEIRS = made_up_shared("compiled", made_up_row("first", "a"), made_up_row("second", "b"))


def test_the_heirs_of_a_shared_build_begin_together_after_it_and_others_with_it() -> None:
    state = RunState((*HEIRS, made_up_row("other", "x")), fail_fast=False)
    assert begun(state) == ["compiled", "other"]
    assert begun(state) == []
    state.made("compiled", "compiled")
    assert begun(state) == ["first", "second"]


def test_no_heir_begins_before_a_shared_build_that_waits_or_after_one_that_failed() -> None:
    state = RunState(HEIRS, fail_fast=False)
    assert [row.name for row in state.begin([], 0.0)] == []
    assert begun(state) == ["compiled"]
    state.postpone("compiled", 5.0)  # another run has it
    assert begun(state) == []
    assert not state.is_over(0.0)
    assert begun(state, now=6.0) == ["compiled"]
    state.end("compiled", Ended((), (), Failed("compiled", "its build script failed")))
    assert (begun(state), state.pending) == ([], [])
