"""A fleet of machines with roots, addresses and process spaces of their own: one is cut off, one dies."""

from __future__ import annotations

import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.support import command
from tests.support.feedstocks import TinyFeedstock
from tests.support.machines import Machines, machines_in
from tests.support.namespaces import why_no_namespaces
from tests.support.needs import needs
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.usefixtures("unmeasured"),
    needs("system", why_no_namespaces() is None, f"namespaces and mounts ({why_no_namespaces()})"),
    pytest.mark.slow,
]
SILENT = 8.0
SLOW = 'echo "$PKG_BUILD_STRING" >> "$RECIPE_DIR/../../../../../begun"; sleep 12; mkdir'


def test_a_run_survives_a_host_that_is_cut_off_and_one_that_dies(tmp_path: Path, feedstock: TinyFeedstock) -> None:
    feedstock.edit("recipe/build-library.sh", "mkdir", SLOW)
    with machines_in(tmp_path, ("m1", "m2", "m3"), SILENT) as made:
        option = f"--fleet={made.fleet.path}"
        run = command.start(feedstock.command("--all", option), feedstock.folder, command.environment())
        lines: list[tuple[float, str]] = []
        assert run.stdout is not None
        reader = threading.Thread(target=lambda: lines.extend((time.monotonic(), line) for line in run.stdout or ()))
        reader.start()
        wait_until(lambda: sum(_begun(made, name) for name in made.machines) >= 2, 120)
        first, second = [name for name in made.machines if _begun(made, name)][:2]
        made.machines[first].cut()
        cut = time.monotonic()
        made.machines[second].kill()
        killed = time.monotonic()
        wait_until(lambda: any(f"{first}: the worker" in line for _, line in lines), 120)
        made.machines[first].heal()
        run.wait()
        reader.join()
        run.stdout.close()
        output = "".join(line for _, line in lines)
        assert run.returncode == 0, output
        after_kill = _told(lines, f"{second}: the worker of its host ended") - killed
        after_cut = _told(lines, f"{first}: the worker of its host ended") - cut
        assert after_kill < 30
        assert after_cut < SILENT + 20
    done = Counter(
        package.file for record in feedstock.records() if record.result == "done" for package in record.packages
    )
    assert len(done) == len(feedstock.packages()) == 12
    assert set(done.values()) == {1}


def _told(lines: list[tuple[float, str]], text: str) -> float:
    found = [moment for moment, line in lines if text in line]
    assert found, f"{text!r} is not in the output:\n" + "".join(line for _, line in lines)
    return found[0]


def _begun(made: Machines, name: str) -> bool:
    return (made.machines[name].work / "begun").exists()
