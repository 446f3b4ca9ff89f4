"""A shared build runs once on a fleet: its heirs begin on the host that keeps it, or it runs again elsewhere."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from feedstock_tools.builds.engines.embedded.fixed_place import is_possible
from feedstock_tools.builds.fleet.host.spool import caches_of
from tests.support import command
from tests.support.feedstocks import HERE, TinyFeedstock
from tests.support.fleets import Fleet, fleet_in
from tests.support.needs import needs
from tests.support.sharing import BY_PLACE, contents, differing, runs, with_shared_build
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.slow,
    needs("system", is_possible(), "one that allows a process mounts of its own"),
]
HOSTS = ("h1", "h2")
CPU = f"{HERE.name}_cpu"


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with fleet_in(tmp_path / "fleet", len(HOSTS), jobs=2) as made:
        yield made


@pytest.fixture
def counted(feedstock: TinyFeedstock) -> TinyFeedstock:
    return with_shared_build(feedstock)


def _start(fleet: Fleet, feedstock: TinyFeedstock, *names: str) -> subprocess.Popen[str]:
    words = feedstock.command(*(names or (CPU,)), f"--fleet={fleet.local.fleet.path}")
    return command.start(words, feedstock.folder, command.environment())


def _built(fleet: Fleet, feedstock: TinyFeedstock, *names: str) -> str:
    """What a build prints that ends well."""
    run = _start(fleet, feedstock, *names)
    output, _ = run.communicate()
    assert run.returncode == 0, output
    return output


def _keepers(fleet: Fleet) -> list[str]:
    """The hosts that keep a shared build."""
    return [host for host in HOSTS if caches_of(fleet.local.home_of(host) / "work").kept]


def test_heirs_follow_the_one_shared_build_and_pack_what_one_machine_packs(
    fleet: Fleet, counted: TinyFeedstock, tmp_path: Path
) -> None:
    _built(fleet, counted)
    assert runs(counted) == ["shared", "heir", "heir"]
    assert len({record.machine for record in counted.records()}) == 1
    (shared, *_) = counted.records()
    assert (shared.output, shared.result, shared.packages) == ("compiled", "done", ())
    assert shared.seconds
    assert "shared" in (counted.artifacts / shared.log).read_text()
    wait_until(lambda: not _keepers(fleet))
    made = tmp_path / "made"
    counted.artifacts.rename(made)
    assert counted.build(CPU).returncode == 0
    packages = [path for path in counted.artifacts.glob("*/*.conda") if path.parent.name != "pkgs"]
    assert len(packages) == 4
    for path in packages:
        there = contents(made / path.parent.name / path.name, tmp_path / "there" / path.stem)
        here = contents(path, tmp_path / "here" / path.stem)
        assert differing(there, here) <= BY_PLACE, path.name


def test_a_shared_build_whose_host_is_gone_runs_once_more_elsewhere(fleet: Fleet, counted: TinyFeedstock) -> None:
    go = counted.folder / "go"
    counted.edit("recipe/recipe.yaml", "test -f objects", f"until test -f {go}; do sleep 0.1; done; test -f objects")
    run = _start(fleet, counted)
    wait_until(lambda: (counted.folder / "runs.txt").exists() and "heir" in runs(counted), 120)
    (keeper,) = _keepers(fleet)
    fleet.local.processes[keeper].send_signal(signal.SIGKILL)
    fleet.wait_until_gone(keeper, 60)
    go.touch()
    output, _ = run.communicate()
    assert run.returncode == 0, output
    assert runs(counted).count("shared") == 2
    assert "no host keeps it any more" in output
    assert len(counted.packages()) == 4
    (other,) = {*HOSTS} - {keeper}
    done = [record for record in counted.records() if record.output == "py-counted" and record.result == "done"]
    assert [record.machine for record in done] == [other] * 2


def test_a_later_row_finds_what_a_host_keeps_and_not_what_this_machine_keeps(
    fleet: Fleet, counted: TinyFeedstock
) -> None:
    assert counted.build(f"{CPU}_py3.11").returncode == 0
    _built(fleet, counted, f"{CPU}_py3.12")
    assert runs(counted) == ["shared", "heir"] * 2
    assert not list((counted.artifacts / ".work" / "shared").iterdir())
    counted.edit("recipe/recipe.yaml", "echo object", "echo another object")
    _built(fleet, counted, f"{CPU}_py3.11")
    wait_until(lambda: len(_keepers(fleet)) == 1)
    output = _built(fleet, counted, f"{CPU}_py3.12")
    assert runs(counted) == [*["shared", "heir"] * 3, "heir"]
    assert "whether the packages that it was built with are still the channel's is unknown" in output
    wait_until(lambda: not _keepers(fleet))
