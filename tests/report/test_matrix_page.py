"""The page of the matrix: complete, self-contained, safe from the output of builds; in a browser if there is one."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from feedstock_tools.builds.matrix.matrix import Matrix
from feedstock_tools.report.matrix_page import page
from tests.support.browser import Page
from tests.support.needs import BROWSER, needs

MakeMatrix = Callable[[int], Matrix]
#: Steps of a user; afterwards the page's document shows their effect.
STEPS = """
<script>
window.addEventListener("load", function () {
  var shown = function () { return document.querySelectorAll(".configuration:not([hidden])").length; };
  var told = ["all " + shown()];
  var filter = document.getElementById("filter");
  filter.value = "cuda10.3 hello"; filter.dispatchEvent(new Event("input")); told.push("filtered " + shown());
  filter.value = ""; filter.dispatchEvent(new Event("input"));
  document.querySelector('.chip[data-state="failed"]').click(); told.push("failed " + shown());
  var states = new Set(Array.from(document.querySelectorAll(".configuration:not([hidden])"), function (entry) {
    return entry.dataset.state; }));
  told.push("only " + Array.from(states).join());
  document.querySelector('.chip[data-state="failed"]').click();
  var platform = document.getElementById("platform");
  platform.value = "win-64"; platform.dispatchEvent(new Event("change")); told.push("platform " + shown());
  var bar = document.querySelector("#timeline a");
  bar.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }));
  told.push("opened " + document.getElementById(bar.dataset.of).open);
  told.push("bars " + document.querySelectorAll("#timeline .bar").length);
  var seen = document.querySelector("#timeline .bar").getBoundingClientRect();
  told.push("drawn " + (seen.width > 0 && seen.height > 0));
  document.body.dataset.told = told.join("; ");
});
</script>
"""


class Tags(HTMLParser):
    """The elements of a page: how many, and the addresses in them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.count: dict[str, int] = {}
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.count[tag] = self.count.get(tag, 0) + 1
        self.fetched += [str(value) for name, value in attributes if name == "src" or (tag == "link")]
        self.links += [str(value) for name, value in attributes if tag == "a" and name == "href"]


@pytest.mark.parametrize("count", [15, 400])
def test_it_has_every_configuration_and_fetches_nothing(matrix_of: MakeMatrix, tmp_path: Path, count: int) -> None:
    text = page(matrix_of(count), tmp_path)
    tags = Tags(text)
    assert tags.count["details"] == count
    assert tags.fetched == []
    assert not re.search(r"https?://", text)
    assert tags.count["script"] == 1


def test_links_to_logs_lead_to_them(matrix_of: MakeMatrix, tmp_path: Path) -> None:
    matrix = matrix_of(15)
    links = [link for link in Tags(page(matrix, tmp_path)).links if not link.startswith("#")]
    assert len(links) > 15
    assert all((tmp_path / unquote(link)).is_file() for link in links)


def test_what_a_build_says_is_text(matrix_of: MakeMatrix, tmp_path: Path) -> None:
    text = page(matrix_of(15), tmp_path)
    assert "taken over" in text
    assert Tags(text).count.get("img", 0) == 0
    assert "\x1b" not in text


def test_a_ledger_cannot_name_files_outside_of_its_folder(matrix_of: MakeMatrix, tmp_path: Path) -> None:
    matrix = matrix_of(4)
    (tmp_path / "secret.txt").write_text("the secret")
    for log in (matrix.artifacts / "logs").iterdir():
        log.unlink()
        log.symlink_to(tmp_path / "secret.txt")
    text = page(matrix, tmp_path)
    assert "the secret" not in text
    assert "secret.txt" not in text


@needs("browser", BROWSER, "Chromium")
@pytest.mark.parametrize(
    ("count", "told"),
    [
        (15, "all 15; filtered 1; failed 2; only failed; platform 1; opened true; bars 26; drawn true"),
        (400, "all 400; filtered 1; failed 37; only failed; platform 36; opened true; bars 656; drawn true"),
    ],
)
def test_filters_links_and_the_picture_work_in_a_browser(
    matrix_of: MakeMatrix, tmp_path: Path, tab: Page, count: int, told: str
) -> None:
    matrix = matrix_of(count)
    file = tmp_path / "status.html"
    text = page(matrix, tmp_path)
    # The page's policy lets no other script run, so the copy for the test goes without it.
    policy = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
    file.write_text(policy.sub("", text).replace("</body>", f"{STEPS}</body>"), encoding="utf-8")
    assert f'data-told="{told}"' in dumped(file, tab)


@needs("browser", BROWSER, "Chromium")
def test_no_script_but_the_page_s_own_runs_in_a_browser(matrix_of: MakeMatrix, tmp_path: Path, tab: Page) -> None:
    file = tmp_path / "status.html"
    text = page(matrix_of(15), tmp_path)
    file.write_text(text.replace("</body>", "<script>document.title = 'another';</script></body>"), encoding="utf-8")
    assert "<title>hello: build matrix</title>" in dumped(file, tab)


@needs("browser", BROWSER, "Chromium")
def test_the_link_of_a_log_opens_it_in_a_browser(matrix_of: MakeMatrix, tmp_path: Path, tab: Page) -> None:
    links = Tags(page(matrix_of(1), tmp_path)).links
    address = next(unquote(link) for link in links if link.endswith(".log"))
    assert "last line of linux_64_cuda_compiler_version10.0_py3.12" in dumped(tmp_path / address, tab)


def dumped(file: Path, tab: Page) -> str:
    """The document in the browser after the page's scripts have run."""
    tab.open(file.as_uri())
    return str(tab.ask("document.documentElement.outerHTML"))
