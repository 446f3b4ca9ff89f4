"""The rows of `variants/cuda.yaml` against the history of conda-forge's pinning.

Needs a clone of conda-forge-pinning-feedstock in the folder that FEEDSTOCK_MIRROR names (default `../.mirror`), as
`conda-forge+conda-forge-pinning-feedstock/repo`; it is not part of the repository.
"""

from __future__ import annotations

import importlib.util
import subprocess
from types import ModuleType

import pytest

from feedstock_tools.facts import PinningRow, load_cuda
from feedstock_tools.platforms import Platform
from tests.support.needs import needs
from tests.support.paths import ROOT, clone_of

CLONE = clone_of("conda-forge-pinning-feedstock")
FACTS = load_cuda()

pytestmark = needs("fetched", CLONE.is_dir(), "a clone of conda-forge-pinning-feedstock")


@pytest.fixture(scope="module")
def history() -> ModuleType:
    """The maintainers' script that reads rows from a clone."""
    path = ROOT / "maintenance" / "pinning_rows.py"
    spec = importlib.util.spec_from_file_location("pinning_rows", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("row", FACTS.rows, ids=lambda row: row.name)
def test_a_row_is_what_the_pinning_said_at_its_commit(row: PinningRow, history: ModuleType) -> None:
    origin = "pinning" if row.origin == "ordering" else row.origin
    asked = "12.6" if row.origin == "ordering" else row.cuda
    found = history.row_at(CLONE, row.commit, row.platform, asked, origin)
    if row.origin == "ordering":
        found["cuda_compiler_version"] = row.cuda
    own = {key: value for key, value in row.values.items() if key not in row.added}
    assert own == found
    assert not set(row.added) & set(found)


@pytest.mark.parametrize("row", FACTS.rows, ids=lambda row: row.name)
def test_a_row_has_the_day_of_its_commit(row: PinningRow, history: ModuleType) -> None:
    assert history.git(CLONE, "log", "-1", "--format=%cs", row.commit).strip() == row.date


@pytest.mark.parametrize(
    ("platform", "cuda", "dropped_by"),
    [
        ("linux-64", "10.2", "2fc059ef59"),
        ("win-64", "11.1", "2fc059ef59"),
        ("linux-aarch64", "11.2", "2afb0c7d4a"),
        ("linux-64", "11.8", "07e16d1185"),
        ("win-64", "12.0", "0154e005b9"),
        ("linux-64", "12.6", "cb0fd0cd75"),
    ],
)
def test_the_commit_after_a_row_names_the_version_no_more(
    platform: str, cuda: str, dropped_by: str, history: ModuleType
) -> None:
    row = FACTS.pinning_row(cuda, Platform.parse(platform))
    assert history.git(CLONE, "rev-parse", f"{dropped_by}^").strip() == row.commit
    assert history.row_at(CLONE, dropped_by, row.platform, cuda, "pinning") is None


def test_the_search_for_the_last_row_finds_the_newest(history: ModuleType) -> None:
    row = FACTS.pinning_row("13.0", Platform.parse("linux-64"))
    _, origin, values = history.last_row(CLONE, row.platform, "13.0")
    assert (origin, values) == (row.origin, dict(row.values))


def test_versions_that_only_an_ordering_names_are_named_there() -> None:
    migration = "734f68b40732d28153239fa3dc7f244a69596882:recipe/migrations/cuda130.yaml"
    command = ["git", "--git-dir", str(CLONE), "show", migration]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    named = [row for row in FACTS.rows if row.origin == "ordering"]
    assert named
    assert all(f"- {row.cuda}\n" in text for row in named)
