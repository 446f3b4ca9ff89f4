"""`feedstock-tools plan --simulate`: the text, the values, the page, and what it refuses."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tests.support.feedstocks import HERE, TinyFeedstock


def test_a_plan_is_simulated_and_nothing_is_built(feedstock: TinyFeedstock, tmp_path: Path) -> None:
    page = tmp_path / "run.html"
    arguments = ("plan", "--simulate", "2x4c8g", "--time", "1 h", "--channel", str(feedstock.channel))
    shown = feedstock.ask(*arguments, "--html", str(page))
    assert shown.returncode == 0, shown.stderr
    assert "2 x 4c8g" in shown.stdout
    text = page.read_text()
    assert "<svg" in text
    assert "http" not in text.partition("</head>")[2].replace("http://www.w3.org", "")
    values = json.loads(feedstock.ask(*arguments, "--json").stdout)
    assert {build["result"] for build in values["builds"]} == {"done"}
    assert {build["host"] for build in values["builds"]} == {"4c8g-1", "4c8g-2"}
    assert values["rented_seconds"] <= 3601 * len(values["builds"]) + 2 * 135
    assert values["courses"] == [{"seed": 0, "seconds": values["seconds"], "cost": 0.0}]
    assert not feedstock.artifacts.joinpath("ledger.sqlite").exists()


def test_a_row_that_fits_no_host_is_left_out_and_an_error_if_it_was_named(
    feedstock: TinyFeedstock, tmp_path: Path
) -> None:
    other = "linux-aarch64" if HERE.subdir == "linux-64" else "linux-64"
    hosts = tmp_path / "hosts.yaml"
    hosts.write_text(f"hosts:\n  other:\n    cores: 4\n    memory: 8 GiB\n    platforms: [{other}]\n")
    arguments = ("plan", "--simulate", str(hosts), "--time", "1 h", "--channel", str(feedstock.channel))
    shown = feedstock.ask(*arguments)
    assert shown.returncode == 0, shown.stderr
    assert f"no host builds for {HERE.subdir}." in shown.stdout
    first = shown.stdout.splitlines()[0]
    assert re.match(
        rf"(\d+) of \1 simulated rows could not be completed: .*\(no host builds for {HERE.subdir}\)", first
    )
    assert json.loads(feedstock.ask(*arguments, "--json").stdout)["verdict"] == "unknown"
    assert feedstock.ask(*arguments, "--strict").returncode == 1
    named = feedstock.ask(*arguments, f"{HERE.name}_cuda11.2")
    assert named.returncode == 2
    assert f"fits no host: no host builds for {HERE.subdir}" in named.stderr


def test_options_of_a_simulation_need_hosts(feedstock: TinyFeedstock) -> None:
    for option in (("--time", "1 h"), ("--times", "x.yaml"), ("--html", "x.html")):
        refused = feedstock.ask("plan", *option)
        assert refused.returncode == 2
        assert f"{option[0]} needs --simulate HOSTS" in refused.stderr


def test_rows_of_unknown_time_are_an_error(feedstock: TinyFeedstock) -> None:
    refused = feedstock.ask("plan", "--simulate", "2", "--channel", str(feedstock.channel))
    assert refused.returncode == 2
    assert "is unknown" in refused.stderr
    assert "--times" in refused.stderr


def test_chance_has_a_range(feedstock: TinyFeedstock, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.yaml"
    hosts.write_text("hosts:\n  spot: {count: 2, cores: 4, memory: 8 GiB, price: 1, preempted: 0.3}\n")
    shown = feedstock.ask("plan", "--simulate", str(hosts), "--time", "1 h", "--channel", str(feedstock.channel))
    found = re.search(
        r"^In 20 courses of preemption: (.*) to (.*) \(median .*\), ([\d.]+) to ([\d.]+)\.$", shown.stdout, re.M
    )
    assert found is not None, shown.stdout + shown.stderr
    assert float(found[3]) < float(found[4])


def test_without_configurations_nothing_is_planned_or_simulated(feedstock: TinyFeedstock) -> None:
    for file in (feedstock.folder / ".ci_support").glob("*.yaml"):
        file.unlink()
    arguments = ("--channel", str(feedstock.channel))
    for words in ((), ("--json",), ("--simulate", "3")):
        planned = feedstock.ask("plan", *words, *arguments)
        assert (planned.returncode, planned.stdout) == (2, "")
        assert "The feedstock has no configurations; 'feedstock-tools rerender' writes them." in planned.stderr


@pytest.mark.skipif(sys.platform == "darwin", reason="builds for macOS are not refused there")
def test_refused_configurations_are_simulated_rows_that_are_unknown(feedstock: TinyFeedstock) -> None:
    """Also if nothing else is left to build."""
    for file in (feedstock.folder / ".ci_support").glob("*.yaml"):
        if file.stem != "osx_64_":
            file.unlink()
    arguments = ("plan", "--simulate", "3", "--time", "1 h", "--channel", str(feedstock.channel))
    shown = feedstock.ask(*arguments)
    first = shown.stdout.splitlines()[0]
    assert first.startswith("1 of 1 simulated row could not be completed: osx_64_ (")
    assert json.loads(feedstock.ask(*arguments, "--json").stdout)["verdict"] == "unknown"
    assert (shown.returncode, feedstock.ask(*arguments, "--strict").returncode) == (0, 1)
