"""`status --serve`: the page that updates itself, what goes on now, and logs; no other file, and nothing but text."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from feedstock_tools.builds.ledger import Ledger
from feedstock_tools.builds.matrix.runs import RunRecorder, read_runs, recorded
from feedstock_tools.builds.plan.capacity import Capacity
from feedstock_tools.builds.plan.hosts import Host
from feedstock_tools.builds.plan.workspace import Workspace, open_workspace
from feedstock_tools.builds.runs.observer import Progress
from feedstock_tools.feedstock.layout import Artifacts
from feedstock_tools.report.live import site
from feedstock_tools.report.live.site import StatusSite
from maintenance.looks.browser import opened_browser
from tests.report.test_live_server import asked, serving
from tests.support import command
from tests.support.feedstocks import GPU, HERE, TinyFeedstock
from tests.support.needs import BROWSER, needs
from tests.support.waiting import wait_until

HOSTILE = b"</pre><script>alert(1)</script>\x1b]0;title\x07 \x1b[2Jgone \xe2\x80\xae \xff\x9b\x00 end\n"
ROW = f"{HERE.name}_cuda_compiler_version11.2_py3.11"


@pytest.fixture
def workspace(gpu_feedstock: TinyFeedstock) -> Workspace:
    """A feedstock of which a configuration is built."""
    return open_workspace(gpu_feedstock.folder, None, [str(gpu_feedstock.channel)], os.environ)


def json_of(workspace: Workspace, path: str = "/status.json", **query: str) -> dict[str, Any]:
    """An answer of JSON."""
    answer = StatusSite(workspace, ()).answer(path, query)
    assert answer.status == 200, answer.content
    found: dict[str, Any] = json.loads(answer.content)
    return found


def log_of(workspace: Workspace) -> str:
    """The name of a log in the ledger."""
    with Ledger(workspace.artifacts.ledger) as ledger:
        return ledger.builds()[-1].log


def progress(rows: dict[str, float], *hosts: str, left: float | None = None) -> Progress:
    """How far a run is, with each row on the first host."""
    machines = tuple(Host(name, Capacity((0, 1), 4 << 30), 1) for name in hosts)
    return Progress(2, 1, 5, rows, (), left, machines, dict.fromkeys(rows, "h1"))


def test_the_page_is_the_matrix_with_its_own_policy(workspace: Workspace) -> None:
    answer = StatusSite(workspace, ()).answer("/", {})
    page = answer.content.decode()
    assert answer.kind.startswith("text/html")
    assert GPU in page
    assert 'id="live"' in page
    assert answer.policy.startswith("default-src 'none'; ")
    assert "script-src 'sha256-" in answer.policy
    assert "connect-src 'self'" in answer.policy
    assert "unsafe" not in answer.policy
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)


def test_its_links_to_logs_are_answered(workspace: Workspace) -> None:
    served = StatusSite(workspace, ())
    page = served.answer("/", {}).content.decode()
    links = set(re.findall(r'href="(log/[^"]+)"', page))
    assert links
    for link in links:
        answer = served.answer(f"/{unquote(link)}", {})
        assert (answer.status, answer.kind) == (200, "text/plain; charset=utf-8")
        assert answer.content


@pytest.mark.parametrize(
    "path",
    [
        "/log/ledger.sqlite",
        "/log/logs/../ledger.sqlite",
        "/log/../../recipe/recipe.yaml",
        "/log//etc/passwd",
        "/log/logs",
        "/log/",
        "/log/logs/another.log",
        "/ledger.sqlite",
        "/../../etc/passwd",
        "/status.json/",
        "/favicon.ico",
    ],
)
def test_no_file_but_the_logs_of_the_ledger_is_served(workspace: Workspace, path: str) -> None:
    (workspace.artifacts.logs / "another.log").write_text("secret")
    assert StatusSite(workspace, ()).answer(path, {}).status == 404


@needs("system", sys.platform != "win32", "links and FIFOs")
def test_a_log_that_leads_elsewhere_is_not_served(workspace: Workspace, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    log = workspace.artifacts.root / log_of(workspace)
    for target in (secret, workspace.artifacts.ledger, None):
        log.unlink()
        if target:
            log.symlink_to(target)
        else:
            os.mkfifo(log)
        for query in ({}, {"from": "0"}):
            assert StatusSite(workspace, ()).answer(f"/log/{log_of(workspace)}", query).status == 404


def test_a_ledger_that_names_another_file_as_a_log_serves_none(workspace: Workspace) -> None:
    import sqlite3

    with sqlite3.connect(workspace.artifacts.ledger) as database:
        database.execute("UPDATE builds SET log = 'ledger.sqlite'")
    assert StatusSite(workspace, ()).answer("/log/ledger.sqlite", {}).status == 404


def test_what_a_log_holds_is_text(workspace: Workspace) -> None:
    name = log_of(workspace)
    (workspace.artifacts.root / name).write_bytes(HOSTILE * 3)
    whole = StatusSite(workspace, ()).answer(f"/log/{name}", {})
    piece = json_of(workspace, f"/log/{name}", **{"from": "0"})["text"]
    assert whole.content.decode() == piece
    assert whole.policy == "default-src 'none'; sandbox"
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", piece)
    assert piece.count("<script>") == 3  # the page places it as text


def test_the_pieces_of_a_growing_log_make_the_whole(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "_PIECE", 100)
    name = log_of(workspace)
    path = workspace.artifacts.root / name
    content = "".join(f"{number} {'x' * (number % 60)} é\n" for number in range(40)) + "y" * 250 + "\nend\nhalf a line"
    path.write_text(content, encoding="utf-8")
    served, text, offset = StatusSite(workspace, ()), "", 0
    while (piece := json.loads(served.answer(f"/log/{name}", {"from": str(offset)}).content))["text"]:
        text, offset = text + piece["text"], piece["next"]
    assert text == content.removesuffix("half a line")
    path.write_text(f"{content} is whole\n", encoding="utf-8")
    assert json_of(workspace, f"/log/{name}", **{"from": str(offset)})["text"] == "half a line is whole\n"


def test_a_log_from_its_end(workspace: Workspace) -> None:
    name = log_of(workspace)
    (workspace.artifacts.root / name).write_text("first\nsecond\nthird\n")
    assert json_of(workspace, f"/log/{name}", **{"from": "-6"})["text"] == "third\n"
    assert json_of(workspace, f"/log/{name}", **{"from": "-999999"})["text"] == "first\nsecond\nthird\n"
    for wrong in ("x", "1e9", "٣", "-", "9" * 30):
        assert StatusSite(workspace, ()).answer(f"/log/{name}", {"from": wrong}).status == 404


def test_of_a_huge_log_the_end_is_served(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "_LARGEST_LOG", 2048)
    name = log_of(workspace)
    (workspace.artifacts.root / name).write_text("x" * 5000 + "the end\n")
    answer = StatusSite(workspace, ()).answer(f"/log/{name}", {})
    assert answer.content.decode().startswith("… 2.9 KiB of earlier lines are left out …\nx")
    assert answer.content.endswith(b"the end\n")


def test_a_run_shows_its_hosts_its_rows_and_when_it_ends(workspace: Workspace) -> None:
    with recorded(workspace.artifacts, "feedstock-tools build --all") as recorder:
        recorder.progress(progress({ROW: 12.0}, "h1", "h2", left=7200.0))
        (run,) = json_of(workspace)["runs"]
    assert run["command"] == "feedstock-tools build --all"
    assert [run[key] for key in ("done", "failed", "building", "waiting", "left")] == [2, 1, 1, 5, "2 h 00 min"]
    assert run["ends"] > run["began"]
    assert [(host["name"], host["present"], host["building"]) for host in run["hosts"]] == [
        ("h1", True, 1),
        ("h2", True, 0),
    ]
    (row,) = run["rows"]
    assert (row["row"], row["host"], row["took"]) == (ROW, "h1", "12 s")
    assert unquote(row["log"]).startswith(f"log/logs/{ROW}")
    assert json_of(workspace)["runs"] == []


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


def test_what_goes_on_is_text(workspace: Workspace) -> None:
    with recorded(workspace.artifacts, "build \x1b[2J\u202e") as recorder:
        recorder.progress(progress({"row \x07": 1.0}, "h1\x1b]0;x\x07"))
        text = json.dumps(json_of(workspace), ensure_ascii=False)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)
    assert not re.search(r"\\u00(0[0-8bcef]|1|7f)|\\b", text)


def test_its_version_changes_with_the_matrix(workspace: Workspace) -> None:
    before = json_of(workspace)["version"]
    assert json_of(workspace)["version"] == before
    next((workspace.artifacts.root / "linux-64").glob("*.conda")).unlink()
    assert json_of(workspace)["version"] != before


def test_a_feedstock_that_is_being_edited_is_a_message(workspace: Workspace) -> None:
    recipe = workspace.feedstock.recipe / "recipe.yaml"
    whole = recipe.read_text()
    recipe.write_text("context: [")
    assert "recipe.yaml" in json_of(workspace)["error"]
    assert StatusSite(workspace, ()).answer("/", {}).status == 503
    recipe.write_text(whole)
    assert "error" not in json_of(workspace)


@needs("browser", BROWSER, "Chromium")
def test_the_page_follows_a_run_in_a_browser(workspace: Workspace, tmp_path: Path) -> None:
    assert BROWSER is not None
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000", "--dump-dom")
    with recorded(workspace.artifacts, "build <b>all</b>") as recorder, serving(StatusSite(workspace, ())) as port:
        recorder.progress(progress({ROW: 12.0}, "h1", "h2", left=60.0))
        words = [BROWSER, *flags, f"--user-data-dir={tmp_path / 'profile'}", f"http://127.0.0.1:{port}/"]
        dumped = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True).stdout
    assert 'build</span> <span class="word">&lt;b&gt;all&lt;/b&gt;</span>' in dumped
    assert f'data-row="{ROW}"' in dumped
    assert "about 1 min 00 s left" in dumped


@needs("browser", BROWSER, "Chromium")
def test_an_update_moves_nobody_and_is_said_once(workspace: Workspace) -> None:
    with (
        recorded(workspace.artifacts, "build --all") as recorder,
        serving(StatusSite(workspace, ())) as port,
        opened_browser() as page,
    ):
        recorder.progress(progress({ROW: 12.0}, "h1", "h2", left=7260.0))
        for width, scheme in ((390, "light"), (390, "dark"), (1280, "light"), (1280, "dark")):
            page.open(f"http://127.0.0.1:{port}/", width=width, scheme=scheme)
            page.ask(_until("document.querySelector('.live-row')"))
            page.ask("document.querySelector('.live-row').open = true; 0")
            assert page.findings() == []
        assert page.ask("document.querySelector('.live .left').textContent").startswith("about 2 h 01 min left, until ")
        assert page.ask("document.getElementById('live-said').textContent") == "2 rows done, 1 failed"
        page.ask("(e => { e.open = true; e.querySelector('summary').focus(); })(document.querySelector('.entry')); 0")
        page.ask("document.querySelector('.chip').click(); 0")
        before = page.ask("document.querySelector('.entry .pill + *, .entry').innerHTML.length")
        for package in (workspace.artifacts.root / HERE.subdir).glob("*.conda"):
            package.unlink()
        page.ask(_until(f"document.querySelector('.entry').innerHTML.length !== {before}"))
        assert page.ask("document.activeElement.closest('.entry') === document.querySelector('.entry')")
        assert page.ask("document.querySelector('.entry').open")
        assert page.ask("document.querySelector('.chip').getAttribute('aria-pressed')") == "true"


def _until(condition: str) -> str:
    """A script that waits until a condition of a page holds, for 30 seconds at most."""
    return (
        "new Promise((done, fail) => { const begin = Date.now(); const look = () => { "
        f"if ({condition}) {{ done(0); }} else if (Date.now() - begin > 30000) {{ fail(new Error('it never held')); }} "
        "else { setTimeout(look, 50); } }; look(); })"
    )


@pytest.fixture
def served(gpu_feedstock: TinyFeedstock) -> Iterator[subprocess.Popen[str]]:
    """`status --serve` at a free port."""
    words = command.tool("status", "--channel", str(gpu_feedstock.channel), "--serve", "0")
    with command.start(words, gpu_feedstock.folder) as process:
        yield process
        process.kill()


@needs("system", sys.platform != "win32", "SIGINT for one process")
def test_the_command_serves_until_ctrl_c(served: subprocess.Popen[str]) -> None:
    assert served.stdout is not None
    line = served.stdout.readline()
    found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/ shows the builds of [\w-]+\. End it with Ctrl-C\.\n", line)
    assert found, line
    assert asked(int(found[1]), path="/status.json").status == 200
    served.send_signal(signal.SIGINT)
    rest, _ = served.communicate(timeout=60)
    assert (served.returncode, rest.strip()) == (130, "Interrupted.")


def test_the_command_refuses_a_second_result(gpu_feedstock: TinyFeedstock) -> None:
    run = gpu_feedstock.run("status", "--serve", "0", "--json")
    assert run.returncode == 2
    assert "--serve excludes" in run.stderr


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
