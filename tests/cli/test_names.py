"""What short names mean is counted in the list, and told before a build starts."""

import json

import pytest

from feedstock_tools.feedstock.names import ShortName, rows_by_short_name, select
from feedstock_tools.feedstock.planned import PlannedConfiguration, PlannedRow
from tests.support.feedstocks import GPU, HERE, TinyFeedstock


def configuration(name: str, platform: str, *rows: tuple[str | None, str | None]) -> PlannedConfiguration:
    return PlannedConfiguration(
        name, platform, tuple(PlannedRow(f"{name}{at}", {}, python, cuda) for at, (cuda, python) in enumerate(rows))
    )


MANY = (
    configuration("a", "linux-64", ("11.2", "3.11"), ("11.2", "3.12")),
    configuration("b", "linux-64", ("12.0", "3.11")),
    configuration("c", "linux-64", ("12.9", "3.11"), ("12.9", "3.1")),
    configuration("d", "linux-64", (None, "3.11")),
    configuration("e", "linux-64", (None, None)),
    configuration("f", "linux-aarch64", ("12.9", "3.11")),
)


def test_the_count_of_a_short_name_is_what_it_selects() -> None:
    counts = rows_by_short_name(MANY)
    assert counts["linux_64_cuda11.2"] == 2
    assert counts["linux_64_cuda12"] == 3
    assert counts["linux_64_py3.1"] == 1
    for name, count in counts.items():
        assert ShortName.parse(name) is not None, name
        assert sum(len(each.rows) for each in select([name], MANY)) == count, name


def test_the_list_says_how_many_builds_a_short_name_means(feedstock: TinyFeedstock) -> None:
    head, _, *lines = feedstock.build("--list").stdout.splitlines()
    assert head.split()[:2] == ["name", "builds"]
    assert [line.split()[:2] for line in lines if line.startswith(GPU)] == [[GPU, "2"]]
    entries = json.loads(feedstock.build("--list", "--json", f"{GPU}_py3.11").stdout)
    assert [entry["builds"] for entry in entries] == [1]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (GPU, f"{GPU} means 2 builds: {HERE.name}_cuda_compiler_version11.2 (Python 3.11, 3.12)"),
        (f"{GPU}_py3.11", None),
        (f"{HERE.name}_cuda_compiler_version11.2", None),
    ],
)
def test_a_build_says_so_before_it_starts(name: str, said: str | None, gpu_feedstock: TinyFeedstock) -> None:
    run = gpu_feedstock.build(name)
    assert run.returncode == 0, run.stdout + run.stderr
    first = run.stdout.splitlines()[0]
    assert first == said if said else " means " not in run.stdout
