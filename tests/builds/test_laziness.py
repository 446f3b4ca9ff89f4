"""Commands that build nothing import neither networkx, nor the scheduler, nor py-rattler, nor other slow modules."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.support import command
from tests.support.feedstocks import CPU, GPU, TinyFeedstock

#: Says on standard error, at the end, which modules the process has imported.
TELL = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))
"""


def imported(feedstock: TinyFeedstock, *words: str) -> set[str]:
    """The modules that a command imports."""
    run = command.run(command.patched(TELL, *words, "--channel", str(feedstock.channel)), feedstock.folder)
    assert run.returncode == 0, run.stderr
    return set(json.loads(run.stderr.splitlines()[-1]))


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory, tiny_channel: Path, _built_once: Path) -> TinyFeedstock:
    """The tiny feedstock with one row built and all of them rendered."""
    folder = tmp_path_factory.mktemp("listed")
    shutil.copytree(_built_once, folder / "tiny-feedstock", symlinks=True)
    made = TinyFeedstock(folder / "tiny-feedstock", tiny_channel)
    made.build("--list", environment={"XDG_CACHE_HOME": str(folder / "cache")})
    return made


@pytest.mark.parametrize(
    "words",
    [("build", "--list"), ("build", f"{GPU}_py3.11"), ("build", f"{GPU}_py3.11", "--jobs", "2"), ("status",)],
    ids=["list", "idle build", "idle build with jobs", "status"],
)
def test_where_nothing_is_built_nothing_heavy_is_imported(listed: TinyFeedstock, words: tuple[str, ...]) -> None:
    modules = imported(listed, *words)
    assert "feedstock_tools.builds.plan.workspace" in modules
    heavy = {"networkx", "rattler", "rattler_build", "pydantic", "jinja2", "urllib.request"}
    assert not modules & {*heavy, "feedstock_tools.builds.runs.scheduler"}


@pytest.mark.parametrize("command_name", ["plan", "build"])
def test_one_row_is_planned_and_built_without_networkx(gpu_feedstock: TinyFeedstock, command_name: str) -> None:
    gpu_feedstock.keep_outputs(1)
    assert "networkx" not in imported(gpu_feedstock, command_name, f"{CPU}_py3.11")


def test_networkx_orders_what_is_to_be_built(gpu_feedstock: TinyFeedstock) -> None:
    assert "networkx" in imported(gpu_feedstock, "plan", CPU)
