"""The state of an output follows from the plan and the ledger alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from feedstock_tools.builds.ledger.records import BuildRecord, PackageRecord
from feedstock_tools.builds.matrix.matrix import Surroundings, states
from feedstock_tools.builds.plan.identity import Candidate
from feedstock_tools.feedstock.planned import PlannedConfiguration, PlannedOutput, PlannedRow

NOW = {"recipe": "r", "variant": "v", "files": "f", "engine": "rattler-build 2", "channels": "c"}
OUTPUT = PlannedOutput("hello", "1.0", "0", 0, "linux-64", "identity")
ROW = PlannedRow("linux_64_py3.12", {"cudnn": "9", "python": "3.12"}, "3.12", None, (OUTPUT,))
PLAN = PlannedConfiguration("linux_64", "linux-64", (ROW,), rendered=True)
AROUND = Surroundings(
    candidates={(PLAN.name, OUTPUT.identity): (Candidate("identity", NOW), Candidate("on the stand-in channel", NOW))},
    alive={("", "here"): True, ("", "dead"): False},
    intact={1},
    refused={},
    at="2026-01-01T02:00:00+00:00",
)
DONE = BuildRecord(
    identity="identity",
    configuration="linux_64",
    row=ROW.name,
    output="hello",
    result="done",
    started="2026-01-01T00:00:00",
    log="logs/hello.log",
    engine="rattler-build 2",
    channels=(),
    machine="here",
    inputs=NOW,
    values=ROW.values,
    packages=(PackageRecord(".", "linux-64/hello-1.0-0.conda", 1, "ab", 1),),
    id=1,
)
GONE = replace(DONE, id=2)


@pytest.mark.parametrize(
    ("builds", "state"),
    [
        ((), "missing"),
        ((DONE,), "done"),
        ((replace(DONE, identity="on the stand-in channel"),), "done"),
        ((replace(DONE, row="another row that shares the output"),), "done"),
        ((DONE, replace(DONE, result="failed")), "done"),
        ((GONE,), "missing"),
        ((replace(DONE, result="failed", packages=()),), "failed"),
        ((replace(DONE, result="failed"), replace(DONE, result="running")), "running"),
        ((replace(DONE, result="running", machine="another", seen="2026-01-01T01:55:00"),), "running"),
        ((replace(DONE, result="running", machine="another", seen="2026-01-01T03:00:00"),), "running"),
        ((replace(DONE, result="running", machine="another", seen="2026-01-01T01:45:00"),), "interrupted"),
        ((replace(DONE, result="running", machine="another"),), "interrupted"),
        ((replace(DONE, result="running", machine="another", seen="no time"),), "interrupted"),
        ((replace(DONE, result="running", machine="dead"),), "interrupted"),
        ((replace(DONE, result="running", machine=""),), "interrupted"),
        ((replace(DONE, result="interrupted"),), "interrupted"),
        ((replace(DONE, identity="before"),), "stale"),
        ((replace(DONE, identity="before"), replace(DONE, result="failed")), "failed"),
        ((replace(DONE, identity="before", row="linux_64_py3.13"),), "missing"),
    ],
)
def test_the_state_of_an_output(builds: tuple[BuildRecord, ...], state: str) -> None:
    (configuration,) = states([PLAN], builds, AROUND)
    assert configuration.outputs[0].state == state
    assert configuration.state == configuration.of_row(ROW.name) == state


@pytest.mark.parametrize(
    ("before", "changed"),
    [
        ({"files": "other"}, ("files of the recipe folder",)),
        ({"engine": "rattler-build 1"}, ("the engine, rattler-build 1 → rattler-build 2",)),
        ({"recipe": "other", "channels": "other"}, ("the recipe", "the channels")),
        ({"variant": "other"}, ("the variant: cudnn 8 → 9",)),
    ],
)
def test_a_stale_build_says_what_changed(before: dict[str, str], changed: tuple[str, ...]) -> None:
    record = replace(DONE, identity="before", inputs=NOW | before, values={"cudnn": "8", "python": "3.12"})
    (configuration,) = states([PLAN], [record], AROUND)
    assert configuration.outputs[0].changed == changed


def test_a_failed_build_says_that_there_is_a_package_of_other_inputs() -> None:
    stand_in = replace(DONE, identity="before", inputs=NOW | {"channels": "other"}, marks={"channel": "stand-in"})
    failed = replace(DONE, result="failed", reason="its build script failed")
    (configuration,) = states([PLAN], [stand_in, failed], AROUND)
    assert configuration.outputs[0].reason == (
        "its build script failed\n"
        "A package of it was built from other inputs: the channels, or the compiler of this machine"
    )
    (configuration,) = states([PLAN], [failed], AROUND)
    assert configuration.outputs[0].reason == failed.reason


def test_what_cannot_be_built_here_is_refused_unless_it_was_tried() -> None:
    elsewhere = replace(AROUND, refused={PLAN.name: "no linux-64 here"})
    (configuration,) = states([PLAN], [], elsewhere)
    assert (configuration.state, configuration.outputs[0].reason) == ("refused", "no linux-64 here")
    for result in ("done", "failed", "running"):
        (configuration,) = states([PLAN], [replace(DONE, result=result, machine="here")], elsewhere)
        assert configuration.state == result


def test_a_configuration_that_cannot_be_rendered_is_refused_and_one_that_skips_all_is_nothing() -> None:
    around = replace(AROUND, refused={"broken": "no such key"})
    bare = replace(PLAN, rows=())
    found = states([bare, replace(bare, name="broken")], [], around)
    assert [each.state for each in found] == ["nothing", "refused"]


def test_an_output_that_rows_share_is_one() -> None:
    rows = (ROW, replace(ROW, name="linux_64_py3.13"))
    (configuration,) = states([replace(PLAN, rows=rows)], [DONE], AROUND)
    assert [row.name for row in configuration.outputs[0].rows] == ["linux_64_py3.12", "linux_64_py3.13"]
