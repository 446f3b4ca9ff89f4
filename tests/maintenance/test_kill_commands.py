"""Commands that are killed leave nothing that the next run does not put right.

Each is killed once here, with the real pip, hatchling and Ansible; runs that nobody kills have quick stand-ins.
`maintenance/kill_commands.py` kills each command a hundred times, and has the real ones always.
"""

from __future__ import annotations

import random
import sys

import pytest

from maintenance.drawn import COMMANDS
from maintenance.kill_commands import ALIKE, ONLY_READING, SCENARIOS, SERVING, Worlds, kill_at_random
from tests.support.needs import needs
from tests.test_promises import defined_tests

pytestmark = [
    pytest.mark.usefixtures("unmeasured"),
    needs("system", sys.platform == "linux", "looks at processes through /proc"),
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Worlds:
    return Worlds(tmp_path_factory.mktemp("worlds"), quick=True)


@pytest.mark.parametrize("name", SCENARIOS)
def test_after_a_kill_and_one_more_run_all_is_as_if_nothing_had_happened(name: str, worlds: Worlds) -> None:
    chance = random.Random(f"tests 31 {name}")  # noqa: S311 - with this number, Ansible is killed while it plays
    tally = kill_at_random(name, 1, chance, worlds)
    assert (tally["tries"], tally["wrong"]) == (1, 0)


def test_every_command_that_writes_is_killed() -> None:
    words = {f"{each.arguments} " for each in SCENARIOS.values()}
    killed = {max((name for name in COMMANDS if each.startswith(f"{name} ")), key=len) for each in words}
    groups = [killed, {*ALIKE}, {*SERVING}, ONLY_READING]
    assert set.union(*map(set, groups)) == {*COMMANDS}
    assert sum(map(len, groups)) == len(COMMANDS)
    assert {*ALIKE.values()} <= {*SCENARIOS}
    assert {*SERVING.values()} <= defined_tests()
