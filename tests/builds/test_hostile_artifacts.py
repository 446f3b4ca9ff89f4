"""A feedstock that comes with artifacts of its own: what they claim and link to leads nowhere.

Anybody can put a build_artifacts into a repository. Every command that reads it succeeds or refuses within limits,
shows nothing of other files, and writes and removes nothing outside of the folder.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from feedstock_tools.builds.ledger import Ledger
from feedstock_tools.builds.matrix.listing import listing
from feedstock_tools.builds.matrix.matrix import read_matrix
from feedstock_tools.builds.plan.agenda import agenda
from feedstock_tools.builds.plan.hosts import Capacity
from feedstock_tools.builds.plan.workspace import Workspace, open_workspace
from feedstock_tools.builds.publish.publish import publish
from feedstock_tools.builds.testing.tests import built_packages
from feedstock_tools.channel.targets import parse_target
from feedstock_tools.errors import FeedstockError
from feedstock_tools.feedstock.cleaning import KINDS, find_removable, remove_all, remove_leftovers_of
from feedstock_tools.report.matrix import matrix_json, matrix_text
from feedstock_tools.report.matrix_page import page
from feedstock_tools.wording import shown
from tests.support.feedstocks import GPU, HERE, TinyFeedstock
from tests.support.limits import limited
from tests.support.needs import needs

pytestmark = needs("system", sys.platform == "linux", "/dev/zero, FIFOs and links")

HIDDEN = "what only this user may read"
#: What each command makes of the artifacts, as text.
COMMANDS: dict[str, Callable[[Workspace, Path], object]] = {
    "status, with --json and --html too": lambda workspace, _: statuses(workspace),
    "plan": lambda workspace, _: agenda(workspace, workspace.chosen(), Capacity.of_machine()).todo,
    "build --list": lambda workspace, _: listing(workspace, workspace.chosen()),
    "test": lambda workspace, _: built_packages(workspace, workspace.chosen()),
    "publish": lambda workspace, target: publish(
        read_matrix(workspace, workspace.chosen([f"{GPU}_py3.11"])), parse_target(str(target), None, {}, target)
    ),
    "leftovers": lambda workspace, _: remove_leftovers_of(None, workspace.artifacts, {"HOME": "/nonexistent"}),
    "clean": lambda workspace, _: remove_all(
        find_removable(None, workspace.artifacts, {"HOME": "/nonexistent"}, set(KINDS) - {"environments"}),
        workspace.artifacts,
    ),
}


def statuses(workspace: Workspace) -> str:
    """All forms of the matrix."""
    matrix = read_matrix(workspace, workspace.chosen())
    return f"{matrix_text(matrix)}{matrix_json(matrix)}{page(matrix, workspace.artifacts.root)}"


def below(folder: Path) -> dict[str, bytes]:
    """Every file in a folder, links not followed."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file() and not path.is_symlink()}


def attacked(feedstock: TinyFeedstock, tmp_path: Path) -> None:
    """Run each command on artifacts that were tampered with; nothing outside may change or be shown."""
    outside = tmp_path / "outside"
    before = below(outside)
    workspace = open_workspace(feedstock.folder, None, [str(feedstock.channel)], {})
    for command in COMMANDS.values():
        with limited():
            try:
                found = str(command(workspace, tmp_path / "published"))
            except FeedstockError as error:
                found = str(error)
        assert HIDDEN not in found
        assert "\x1b" not in shown(found)
        assert below(outside) == before
    published = tmp_path / "published"
    names = {path.name for path in published.rglob("*")} if published.exists() else set()
    assert not {name for name in names if "hidden" in name}
    assert not (tmp_path / "x-1-0.conda").exists()


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder with what no command may touch, laid out as a folder of artifacts."""
    for name in ("linux-64", "noarch", ".work/abc", "logs", ".cache", "pkg_cache", "src_cache"):
        (tmp_path / "outside" / name).mkdir(parents=True)
        (tmp_path / "outside" / name / "hidden.conda").write_text(HIDDEN)
    (tmp_path / "outside" / "hidden").write_text(HIDDEN)
    return tmp_path / "outside"


def link(path: Path, target: Path) -> None:
    """Put a link in the place of a file or folder."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


FILES = (
    *(".cache/plan.json", ".cache/up-to-date.json", ".work/abc/.row.json", "ledger.sqlite-journal", ".lock"),
    f"{HERE.subdir}/repodata.json",
)


@pytest.mark.parametrize("target", ["/dev/zero", "hidden", "missing", "a FIFO"])
def test_files_that_lead_elsewhere_are_not_read(
    target: str, gpu_feedstock: TinyFeedstock, outside: Path, tmp_path: Path
) -> None:
    for path in (gpu_feedstock.artifacts / name for name in FILES):
        link(path, outside / target if target in ("hidden", "missing") else Path("/dev/zero"))
        if target == "a FIFO":
            path.unlink()
            os.mkfifo(path)
    attacked(gpu_feedstock, tmp_path)


def test_folders_that_lead_elsewhere_lose_nothing(gpu_feedstock: TinyFeedstock, outside: Path, tmp_path: Path) -> None:
    for name in (HERE.subdir, "noarch", ".work", "logs", ".cache", "pkg_cache", "src_cache"):
        link(gpu_feedstock.artifacts / name, outside / name)
    before = below(outside)
    workspace = open_workspace(gpu_feedstock.folder, None, [str(gpu_feedstock.channel)], {})
    found = find_removable(None, workspace.artifacts, {"HOME": str(tmp_path)}, set(KINDS) - {"environments"})
    with limited():
        remove_all(found, workspace.artifacts)
    assert below(outside) == before


def test_artifacts_that_are_a_link_to_another_folder_are_not_cleaned(
    gpu_feedstock: TinyFeedstock, outside: Path
) -> None:
    link(gpu_feedstock.artifacts, outside)
    before = below(outside)
    for arguments in (["--yes"], ["--yes", "--packages", "--logs"], ["--yes", "--output-dir", str(outside)]):
        run = gpu_feedstock.run("clean", *arguments)
        assert run.returncode == 2
        assert "this is not an artifacts folder" in run.stderr
    assert below(outside) == before


CLAIMS = {
    "a package outside": "UPDATE packages SET channel = '../../outside', file = 'hidden'",
    "a package anywhere": "UPDATE packages SET channel = '/etc', file = 'passwd'",
    "a package in the place of another": "UPDATE packages SET file = '../x-1-0.conda'",
    "an empty package of a device": "UPDATE packages SET channel = '.', file = 'zero', size = 0, mtime_ns = 1",
    "a log outside": "UPDATE builds SET log = '../../outside/hidden'",
    "a log anywhere": "UPDATE builds SET log = '/etc/passwd', result = 'failed'",
    "a log that is a link": "UPDATE builds SET log = 'logs/link', result = 'failed'",
    "a reason with codes": "UPDATE builds SET reason = char(27) || ']52;c;x' || char(7), result = 'failed'",
    "a machine with codes": "UPDATE builds SET machine = char(27) || '[2J', result = 'failed'",
    "times of no calendar": "UPDATE builds SET started = '0000-99-99', ended = char(0x202e), seen = '9' || seen",
    "a process beyond all": "UPDATE builds SET process = printf('%.*c', 4000, '9') || ':1', result = 'running'",
    "our own parent": "UPDATE builds SET process = '-1:1', result = 'running'",
    "endless seconds": "UPDATE builds SET seconds = -1e308, peak_memory = -9223372036854775808",
    "many tests": "INSERT INTO tests (sha256, channel, file, started, result, log, machine) WITH RECURSIVE n(i) AS"
    " (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT 'x', '.', 'y', 'z', 'passed', '', '' FROM n",
    "a test outside": "INSERT INTO tests (sha256, channel, file, started, result, log, machine)"
    " SELECT sha256, '..', '../hidden', 'z', 'passed', '/etc/passwd', '' FROM packages",
}


@pytest.mark.parametrize("name", CLAIMS)
def test_a_ledger_that_claims_anything_leads_nowhere(
    name: str, gpu_feedstock: TinyFeedstock, outside: Path, tmp_path: Path
) -> None:
    link(gpu_feedstock.artifacts / "zero", Path("/dev/zero"))
    link(gpu_feedstock.artifacts / "logs" / "link", outside / "hidden")
    with closing(sqlite3.connect(gpu_feedstock.artifacts / "ledger.sqlite")) as database:
        database.executescript(f"PRAGMA ignore_check_constraints = ON; {CLAIMS[name]}")
        database.commit()
    attacked(gpu_feedstock, tmp_path)


@pytest.mark.parametrize("target", ["/dev/zero", "/etc/passwd", "/"])
def test_a_ledger_that_is_a_link_is_refused(target: str, gpu_feedstock: TinyFeedstock, tmp_path: Path) -> None:
    link(gpu_feedstock.artifacts / "ledger.sqlite", Path(target))
    with limited(), pytest.raises(FeedstockError):
        Ledger(gpu_feedstock.artifacts / "ledger.sqlite")
