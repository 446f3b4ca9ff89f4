"""Amounts as people write them, and the share that a row gets."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from feedstock_tools.builds.plan.hosts import (
    BUILD_SECONDS,
    Capacity,
    Host,
    Limits,
    Portion,
    fits,
    jobs_of,
    local_host,
    portion_on,
    why_nowhere,
)
from feedstock_tools.builds.plan.needs import Declared, needs_of
from feedstock_tools.errors import InputError
from feedstock_tools.wording import size_of, time_limit_of, time_of
from tests.support.feedstocks import CPU, GPU, TinyFeedstock

GIB = 1 << 30


@pytest.mark.parametrize(
    ("text", "size"),
    [("64 GiB", 64 * GIB), ("500MB", 500 * 10**6), ("16G", 16 * GIB), ("1.5 KiB", 1536), ("1024", 1024)],
)
def test_amounts_of_memory(text: str, size: int) -> None:
    assert size_of(text) == size


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90 s", 90), ("30 min", 1800), ("1.5h", 5400)])
def test_times(text: str, seconds: float) -> None:
    assert time_of(text) == seconds


@pytest.mark.parametrize("text", ["", "much", "-1 GiB", "0", "3 GiBs", "1 PiB"])
def test_invalid_amounts(text: str) -> None:
    with pytest.raises(InputError, match="not a valid amount"):
        size_of(text)
    with pytest.raises(InputError, match="not a valid duration"):
        time_of(text)


@pytest.mark.parametrize("text", ["9" * 300, "9" * 300 + " h", "1e9", "10000000 h", "٣ h", "nan", "inf", "0x10"])
@pytest.mark.usefixtures("within_limits")
def test_a_time_that_nobody_can_wait_for_is_refused_in_one_short_message(text: str) -> None:
    with pytest.raises(InputError) as caught:
        time_limit_of(text)
    assert len(str(caught.value)) < 200


def test_a_time_limit_can_be_lifted() -> None:
    assert time_limit_of("0") is None
    assert time_limit_of("48 h") == BUILD_SECONDS == Limits().seconds


@pytest.mark.parametrize("text", ["9" * 300, "9" * 300 + " GiB", "1e9 GiB"])
def test_an_amount_without_end_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="not a valid amount") as caught:
        size_of(text)
    assert len(str(caught.value)) < 200


def test_jobs_fit_into_the_memory() -> None:
    assert jobs_of(32, 64 * GIB, 4 * GIB) == 16
    assert jobs_of(32, 64 * GIB, None) == 32
    assert jobs_of(32, GIB, 4 * GIB) == 1


def test_needs_come_from_the_spec_then_from_history_then_by_equal_parts() -> None:
    machine = local_host(Capacity(tuple(range(8)), 16 * GIB), 2)
    assert portion_on(needs_of(Declared(), None), machine) == Portion(
        4, 8 * GIB, {"cores": "default", "memory": "default"}
    )
    remembered = portion_on(needs_of(Declared(), 8 * GIB), machine)
    assert (remembered.memory, remembered.source["memory"]) == (10 * GIB, "history")
    assert portion_on(needs_of(Declared(), 6 * GIB), machine).source["memory"] == "default"  # with its margin too
    stated = Declared.of({"cores": 2, "memory": "1 GiB", "time": "3 h", "gpu": False})
    assert stated == Declared(cores=2, memory=GIB, seconds=10800)
    assert portion_on(needs_of(stated, 8 * GIB), machine).source == {"cores": "spec", "memory": "spec"}


def test_a_row_that_wants_more_than_this_machine_has_gets_all_of_it() -> None:
    needs = needs_of(Declared(cores=32, memory=64 * GIB), None)
    given = portion_on(needs, local_host(Capacity((0, 1), 2 * GIB), 1))
    assert (given.cores, given.memory) == (2, 2 * GIB)


def test_labels_that_a_row_needs_keep_it_off_other_hosts_but_not_off_this_machine() -> None:
    needs = needs_of(Declared.of({"labels": ["big-disk", "new"]}), None)
    assert needs.labels == {"big-disk", "new"}
    machine = local_host(Capacity((0, 1), 2 * GIB), 1)
    other = Host("other", machine.capacity, 1, labels=frozenset({"new"}))
    needs = replace(needs, platform="linux-64")
    assert fits(needs, machine)
    assert why_nowhere(needs, [other]) == "no host that builds for linux-64 has the label big-disk"
    assert fits(needs, Host("third", machine.capacity, 1, labels=frozenset({"new", "big-disk", "x"})))


def test_a_row_without_known_time_is_no_part_of_a_sum_that_claims_to_be_one(gpu_feedstock: TinyFeedstock) -> None:
    on = ("--channel", str(gpu_feedstock.channel))
    rows = json.loads(gpu_feedstock.run("plan", *on, "--json").stdout)["todo"]
    known = {row["short_name"]: row["seconds"] is not None for row in rows}
    assert (known[f"{GPU}_py3.12"], known[f"{CPU}_py3.12"]) == (True, False), "a GPU row was built, and no CPU row"
    shown = gpu_feedstock.run("plan", *on).stdout
    assert "At least " in shown
    assert "of unknown time" in shown


@pytest.mark.parametrize("words", [("build", CPU), ("plan",)])
def test_a_limit_that_no_build_fits_into_is_refused(feedstock: TinyFeedstock, words: tuple[str, ...]) -> None:
    run = feedstock.ask(*words, "--memory", "1K", "--channel", str(feedstock.channel))
    assert run.returncode == 2
    assert run.stderr.startswith("error: no build fits into 1.0 KiB of memory\n  Give 128.0 MiB or more")
    assert not feedstock.artifacts.exists()
