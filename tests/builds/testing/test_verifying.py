"""`build --build-twice`: rows built a second time and compared; what differs is named, and nothing is replaced."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from feedstock_tools.builds.ledger import ComparisonRecord, Ledger
from tests.support.feedstocks import CPU, HERE, TinyFeedstock
from tests.support.fleets import fleet_in
from tests.support.needs import needs

ROW = f"{HERE.name}_cuda_compiler_versionNone_py3.11"
#: Puts what no two builds share into the library's package.
CHANCE = 'mkdir -p "$PREFIX/share"; head -c 16 /dev/urandom > "$PREFIX/share/chance"; mkdir'
#: Fails if the row has been built before.
ONCE = 'test ! -e "$HOME/once" || exit 3; touch "$HOME/once"; mkdir'


def comparisons(feedstock: TinyFeedstock) -> tuple[ComparisonRecord, ...]:
    """Those in the ledger."""
    with Ledger(feedstock.artifacts / "ledger.sqlite") as ledger:
        return ledger.comparisons()


def contents(feedstock: TinyFeedstock) -> dict[str, bytes]:
    """The packages of the channel."""
    return {path.name: path.read_bytes() for path in feedstock.artifacts.glob("*/*.conda")}


def test_a_second_build_of_the_same_inputs_is_the_same(feedstock: TinyFeedstock, tmp_path: Path) -> None:
    feedstock.keep_outputs(2)
    run = feedstock.build(f"{CPU}_py3.11", "--build-twice", "1")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "2 packages compared with a second build: 2 the same." in run.stdout
    assert len(feedstock.records()) == 2
    found = comparisons(feedstock)
    assert [(each.result, each.again == each.sha256) for each in found] == [("same", True)] * 2
    assert {each.sha256 for each in found} == {p.sha256 for each in feedstock.records() for p in each.packages}
    assert all((feedstock.artifacts / each.log).is_file() for each in found)
    assert not (feedstock.artifacts / ".work" / "again").exists()
    comparisons_of_other_machines_are_collected_once(feedstock, feedstock.artifacts.rename(tmp_path / "part"))


def comparisons_of_other_machines_are_collected_once(feedstock: TinyFeedstock, part: Path) -> None:
    for _ in range(2):
        run = feedstock.ask("collect", str(part))
        assert run.returncode == 0, run.stderr
    found = comparisons(feedstock)
    assert [each.result for each in found] == ["same"] * 2
    assert all((feedstock.artifacts / each.log).is_file() for each in found)


def test_what_differs_is_named_and_replaces_nothing(feedstock: TinyFeedstock) -> None:
    feedstock.keep_outputs(2)
    feedstock.edit("recipe/build-library.sh", "mkdir", CHANCE)
    assert feedstock.build(f"{CPU}_py3.11").returncode == 0
    before = contents(feedstock)
    run = feedstock.build(f"{CPU}_py3.11", "--build-twice", "1", "--json")
    assert run.returncode == 1
    verified = {each["file"].rpartition("/")[2]: each for each in json.loads(run.stdout)["verified"]}
    (library,) = (name for name in verified if name.startswith("libtiny"))
    assert verified[library]["result"] == "different"
    assert verified[library]["differences"]["share/chance"] == "bytes"
    assert contents(feedstock) == before
    assert len(feedstock.records()) == 2
    (kept,) = (feedstock.artifacts / "compared").glob(f"*/{library}")
    assert kept.read_bytes() != before[library]
    told = feedstock.build(f"{CPU}_py3.11", "--build-twice", "1")
    assert told.returncode == 1
    assert "  share/chance: other bytes\n" in told.stdout
    assert f"  feedstock-tools diff {feedstock.artifacts}" in told.stdout
    status = feedstock.ask("status", "--channel", str(feedstock.channel))
    assert f"{library}: " in status.stdout
    assert "lie" not in f"{told.stdout}{status.stdout}".lower().replace("client", "")
    shown = json.loads(feedstock.ask("status", "--json", "--channel", str(feedstock.channel)).stdout)
    records = [output["build_record"] for each in shown["configurations"] for output in each["outputs"]]
    assert sorted(len(record["compared"]) for record in records if record) == [2, 2]
    page = feedstock.ask("status", "--html", "page.html", "--channel", str(feedstock.channel))
    assert page.returncode == 0
    assert "files differ" in (feedstock.folder / "page.html").read_text(encoding="utf-8")
    dossier = feedstock.ask("dossier", f"{CPU}_py3.11", "-o", "dossier", "--channel", str(feedstock.channel))
    assert dossier.returncode == 0, dossier.stderr
    assert (
        "**" in (feedstock.folder / "dossier" / "README.md").read_text(encoding="utf-8").partition("second build of")[2]
    )


def test_a_second_build_that_fails_is_recorded_and_harms_nothing(feedstock: TinyFeedstock, tmp_path: Path) -> None:
    feedstock.keep_outputs(1)
    feedstock.edit("recipe/build-library.sh", "mkdir", ONCE.replace("$HOME", str(tmp_path)))
    run = feedstock.build(f"{CPU}_py3.11", "--build-twice", "all")
    assert run.returncode == 1
    assert "not built a second time" in run.stdout
    assert {each.result for each in comparisons(feedstock)} == {"failed"}
    assert len(contents(feedstock)) == 1
    planned = feedstock.ask("plan", f"{CPU}_py3.11", "--json", "--channel", str(feedstock.channel))
    assert json.loads(planned.stdout)["todo"] == []


def test_rows_that_were_never_compared_come_first_and_all_end_compared(feedstock: TinyFeedstock) -> None:
    feedstock.keep_outputs(2)
    first = feedstock.build(CPU, "--build-twice", "1")
    assert first.returncode == 0, first.stdout
    before = {each.sha256 for each in comparisons(feedstock)}
    assert feedstock.build(CPU, "--build-twice", "1").returncode == 0
    rows = {each.sha256 for each in comparisons(feedstock)}
    packages = {package.sha256 for record in feedstock.records() for package in record.packages}
    assert before < rows == packages  # an output that the rows share is compared in the row that built it
    assert len(comparisons(feedstock)) == len(packages)
    assert feedstock.build(CPU, "--build-twice", "all").returncode == 0
    assert len(comparisons(feedstock)) == 2 * len(packages)


@pytest.mark.parametrize("count", ["0", "-1", "some", "", "٣"])
def test_a_number_of_rows_or_all(feedstock: TinyFeedstock, count: str) -> None:
    run = feedstock.build(CPU, f"--build-twice={count}")
    assert run.returncode == 2
    assert "neither a number of rows nor all" in run.stderr


@needs("system", sys.platform == "linux", "a fleet")
def test_a_fleet_builds_rows_again_on_another_host(feedstock: TinyFeedstock, tmp_path: Path) -> None:
    feedstock.keep_outputs(2)
    with fleet_in(tmp_path, 2) as fleet:
        run = fleet.build(feedstock, "--filter", "*None", "--build-twice", "all")
        assert run.returncode == 0, run.stdout
        built_on = {package.sha256: each.machine for each in feedstock.records() for package in each.packages}
        found = comparisons(feedstock)
        assert {each.result for each in found} == {"same"}
        assert len(found) == len(built_on)
        assert all({each.machine, built_on[each.sha256]} == {"h1", "h2"} for each in found)
        fleet.local.end("h2")
        fleet.wait_for(1)
        alone = fleet.build(feedstock, "--build-twice", "1")
        assert alone.returncode == 2
        assert "the fleet has only one" in alone.stdout
