"""`status --html FILE --watch`: the page that follows builds: what goes on now, as text, and links to logs alone."""

from __future__ import annotations

import html
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest

from feedstock_tools.builds.ledger import Ledger
from feedstock_tools.builds.matrix.live import RunRecorder, read_runs, recorded
from feedstock_tools.builds.matrix.matrix import read_matrix
from feedstock_tools.builds.plan.hosts import Capacity, Host
from feedstock_tools.builds.plan.workspace import Workspace, open_workspace
from feedstock_tools.builds.runs.observer import Progress
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.report.matrix_page import page as page_of
from tests.support import command
from tests.support.feedstocks import GPU, HERE, TinyFeedstock
from tests.support.needs import needs
from tests.support.waiting import wait_until

ROW = f"{HERE.name}_cuda_compiler_version11.2_py3.11"


@pytest.fixture
def workspace(gpu_feedstock: TinyFeedstock) -> Workspace:
    """A feedstock of which a configuration is built."""
    return open_workspace(gpu_feedstock.folder, None, [str(gpu_feedstock.channel)], os.environ)


def progress(rows: dict[str, float], *hosts: str, left: float | None = None) -> Progress:
    """How far a run is, with each row on the first host."""
    machines = tuple(Host(name, Capacity((0, 1), 4 << 30), 1) for name in hosts)
    return Progress(2, 1, 5, rows, (), left, machines, dict.fromkeys(rows, "h1"))


def written(workspace: Workspace, tmp_path: Path) -> str:
    """The page with what goes on."""
    return page_of(read_matrix(workspace, workspace.plan.configurations), tmp_path, read_runs(workspace.artifacts))


def text_of(page: str) -> str:
    """The words of a page, without markup."""
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", page)).split())


def test_the_page_shows_a_run_its_rows_hosts_and_when_it_ends(workspace: Workspace, tmp_path: Path) -> None:
    with recorded(workspace.artifacts, "feedstock-tools build --all") as recorder:
        recorder.progress(progress({ROW: 12.0}, "h1", "h2", left=7200.0))
        text = text_of(page := written(workspace, tmp_path))
    assert "feedstock-tools build --all on " in text
    assert "about 2 h 00 min left, until " in text
    assert "2 rows done, 1 failed, 1 being built, 5 waiting" in text
    assert text.partition("Hosts: ")[2].startswith("h1 (2 cores, 4.00 GiB), h2 (2 cores, 4.00 GiB)")
    (link,) = set(re.findall(r'href="([^"]+)" aria-label="log of linux_64_cuda11.2_py3.11"', page))
    assert (tmp_path / unquote(link)).read_bytes()
    assert "No build is running." in text_of(written(workspace, tmp_path))


def test_the_page_links_the_dashboard_of_a_fleet(workspace: Workspace, tmp_path: Path) -> None:
    with recorded(workspace.artifacts, "feedstock-tools build --all --fleet") as recorder:
        recorder.progress(replace(progress({ROW: 12.0}, "h1"), dashboard=8787))
        page = written(workspace, tmp_path)
    assert '<a href="http://127.0.0.1:8787/status">' in page
    assert "dashboard" not in written(workspace, tmp_path)


def test_the_page_reloads_itself_and_runs_nothing_but_its_own_script(workspace: Workspace, tmp_path: Path) -> None:
    page = written(workspace, tmp_path)
    assert '<meta http-equiv="refresh" content="5">' in page
    assert "default-src 'none'; style-src 'sha256-" in html.unescape(page)
    assert "unsafe" not in page
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)
    assert "refresh" not in page_of(read_matrix(workspace, workspace.plan.configurations), tmp_path)


def test_what_goes_on_is_text(workspace: Workspace, tmp_path: Path) -> None:
    with recorded(workspace.artifacts, "build <b>\x1b[2J\u202e") as recorder:
        recorder.progress(progress({"row \x07": 1.0}, "h1\x1b]0;x\x07<script>alert(1)</script>"))
        page = written(workspace, tmp_path)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", page)
    assert "build <b>" not in page
    assert "<script>alert" not in page


@needs("system", sys.platform != "win32", "links and FIFOs")
def test_a_log_that_leads_elsewhere_is_neither_linked_nor_quoted(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret words")
    with Ledger(workspace.artifacts.ledger) as ledger:
        log = workspace.artifacts.root / ledger.builds()[-1].log
    log.unlink()
    log.symlink_to(tmp_path / "secret")
    with recorded(workspace.artifacts, "build") as recorder:
        recorder.progress(progress({ROW: 1.0}, "h1"))
        page = written(workspace, tmp_path)
    assert "secret words" not in page
    assert "log of " not in page


@pytest.fixture
def watching(gpu_feedstock: TinyFeedstock) -> Iterator[subprocess.Popen[str]]:
    """`status --html status.html --watch`."""
    words = command.tool("status", "--channel", str(gpu_feedstock.channel), "--html", "status.html", "--watch")
    with command.start(words, gpu_feedstock.folder) as process:
        yield process
        process.kill()


@needs("system", sys.platform != "win32", "SIGINT for one process")
def test_the_command_writes_the_page_again_until_ctrl_c(
    gpu_feedstock: TinyFeedstock, watching: subprocess.Popen[str]
) -> None:
    assert watching.stdout is not None
    assert watching.stdout.readline() == (
        "status.html shows the builds as they go on: open it in a browser. End this with Ctrl-C.\n"
    )
    page, recipe = gpu_feedstock.folder / "status.html", gpu_feedstock.folder / "recipe" / "recipe.yaml"
    first, whole = page.stat().st_ino, recipe.read_text()
    wait_until(lambda: page.stat().st_ino != first)
    recipe.write_text("context: [")
    assert watching.stdout.readline().startswith("the page stays as it was: ")
    recipe.write_text(whole)
    second = page.stat().st_ino
    wait_until(lambda: page.stat().st_ino != second)
    watching.send_signal(signal.SIGINT)
    watching.communicate(timeout=60)
    assert watching.returncode == 130


def test_watching_needs_a_page(gpu_feedstock: TinyFeedstock) -> None:
    for words in (["--watch"], ["--watch", "--html", "x.html", "--json"]):
        run = gpu_feedstock.run("status", *words)
        assert run.returncode == 2
        assert "--watch needs --html FILE" in run.stderr


def test_a_host_that_has_gone_stays_in_sight(tmp_path: Path) -> None:
    recorder = RunRecorder(Artifacts(tmp_path), "build")
    for hosts in (("h1", "h2"), ("h2",)):
        recorder._next = 0.0
        recorder.progress(progress({ROW: 1.0}, *hosts))
    (run,) = read_runs(Artifacts(tmp_path))
    assert [(host.name, host.present, host.cores) for host in run.hosts] == [("h1", False, 2), ("h2", True, 2)]


def test_without_known_times_the_rows_so_far_say_when_it_ends(tmp_path: Path) -> None:
    recorder = RunRecorder(Artifacts(tmp_path), "build")
    recorder._began = "2026-01-01T00:00:00+00:00"
    recorder.progress(progress({ROW: 1.0}, "h1"))
    (run,) = read_runs(Artifacts(tmp_path))
    assert run.left is None
    assert run.remaining is not None
    assert run.ends is not None
    assert run.ends > run.at


def test_a_run_that_died_or_wrote_something_else_is_not_shown(tmp_path: Path) -> None:
    artifacts = Artifacts(tmp_path)
    RunRecorder(artifacts, "build").progress(progress({ROW: 1.0}, "h1"))
    path = artifacts.cache / "runs" / f"{os.getpid()}.json"
    whole = json.loads(path.read_text())
    assert len(read_runs(artifacts)) == 1
    for changes in (
        {"process": "4194304:1"},
        {"machine": "another", "at": "2020-01-01T00:00:00+00:00"},
        {"done": "many"},
        {"left": 1e300},
        {"rows": [3]},
        {"hosts": None},
        {"began": 5},
    ):
        path.write_text(json.dumps(whole | changes))
        assert read_runs(artifacts) == ()
    path.write_text("[" * 100_000)
    assert read_runs(artifacts) == ()
    with recorded(artifacts, "another"):
        assert not path.exists()


@needs("system", sys.platform == "linux", "a build that others watch")
def test_a_build_shows_what_it_does_while_it_runs(feedstock: TinyFeedstock) -> None:
    feedstock.edit("recipe/build-library.sh", "mkdir", 'touch "$RECIPE_DIR/../begun"; sleep 3; mkdir')
    process = feedstock.start_build(f"{GPU}_py3.11")
    artifacts = Artifacts(feedstock.artifacts)
    wait_until(lambda: any(run.rows for run in read_runs(artifacts)) or process.poll() is not None)
    (run,) = read_runs(artifacts)
    assert [row.row for row in run.rows] == [ROW]
    assert "build" in run.command
    process.communicate()
    assert process.returncode == 0
    assert read_runs(artifacts) == ()
