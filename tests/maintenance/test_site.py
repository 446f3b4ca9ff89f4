"""The documentation as a site: it builds without a warning, every page is in it, and pages are made from the code."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import yaml

from feedstock_tools import api
from feedstock_tools.cli.program import COMMANDS
from tests.support import command
from tests.support.browser import BROWSER, opened_browser
from tests.support.needs import needs, require_extra
from tests.support.once import made_once
from tests.support.paths import ROOT

CONFIG = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    require_extra("site")
    return made_once(tmp_path_factory, "site", _build)


def _build(folder: Path) -> None:
    words = [sys.executable, "-m", "mkdocs", "build", "--clean", "--site-dir", str(folder)]
    done = command.run(words, ROOT, command.environment(NO_MKDOCS_2_WARNING="1"))
    assert done.returncode == 0, done.stderr


def test_every_page_is_named_once() -> None:
    named = re.findall(r": ([\w-]+\.md)$", CONFIG, re.MULTILINE)
    made = {"commands.md", "spec-keys.md", "cuda-table.md", "library-reference.md"}
    assert sorted(named) == sorted({*(page.name for page in (ROOT / "docs").glob("*.md")), *made})


def test_commands_keys_and_tables_are_those_of_the_code(site: Path) -> None:
    commands = (site / "commands.html").read_text(encoding="utf-8")
    assert not [name for name in COMMANDS if f'id="{name}"' not in commands]
    assert commands.count("Options of all commands:") == 1
    library = (site / "library-reference.html").read_text(encoding="utf-8")
    assert not [name for name in api.__all__ if f'id="{name.lower()}"' not in library]
    keys = (site / "spec-keys.html").read_text(encoding="utf-8")
    assert re.search(r"<code>(?:<span class=\"word\">)?maintainers<", keys)
    assert "<td>string or number</td>" in keys
    table = (site / "cuda-table.html").read_text(encoding="utf-8")
    assert '<th role="rowheader" scope="row">13.0</th>' in table
    graph = (site / "pin-graph.html").read_text(encoding="utf-8")
    assert "<svg" in graph
    assert 'href="cuda-table.html"' in graph


def test_a_picture_with_a_dark_form_follows_the_colours_of_the_site(site: Path) -> None:
    page = (site / "index.html").read_text(encoding="utf-8")
    assert "<picture>" not in page
    shown = re.findall(r'<img alt="The build matrix [^"]+" src="images/([^"#]+)#only-(light|dark)">', page)
    assert shown == [("matrix.png", "light"), ("matrix-dark.png", "dark")]
    assert all((site / "images" / name).is_file() for name, _ in shown)


def test_flowcharts_are_pictures_with_their_arrows_in_words(site: Path) -> None:
    page = (site / "architecture.html").read_text(encoding="utf-8")
    assert "flowchart TB" not in page
    assert page.count('<svg class="flowchart"') == 2
    assert "report/ uses builds/" in page


def test_no_list_or_table_is_taken_for_text(site: Path) -> None:
    lost = re.compile(r"<p>(?:(?!</p>).)*\n(?:- |\d+\. |\|)", re.DOTALL)
    assert not [page.name for page in site.glob("*.html") if lost.search(page.read_text(encoding="utf-8"))]


def test_an_option_with_alternatives_has_no_backslash(site: Path) -> None:
    page = (site / "rerender.html").read_text(encoding="utf-8")
    assert "<code>--pinning DIR|FILE|VERSION</code>" in re.sub(r"</?(?:span|wbr)[^>]*>", "", page)


def test_options_stay_whole_and_long_names_break_at_their_joints(site: Path) -> None:
    page = (site / "clean.html").read_text(encoding="utf-8")
    assert '<code><span class="word">--dry-run</span></code>' in page
    page = (site / "untrusted-input.html").read_text(encoding="utf-8")
    name = "test_the_library_takes_bounds_as_a_parameter"
    assert f"<code>{name.replace('_', '_<wbr>')}</code>" in page


def test_the_site_needs_no_network(site: Path) -> None:
    """No page loads a script, a style, a font or a picture from elsewhere."""
    loaded = re.compile(r"<(?:script|img|link rel=\"stylesheet\")[^>]*(?:src|href)=\"(https?:)?//")
    assert not [page.name for page in site.glob("*.html") if loaded.search(page.read_text(encoding="utf-8"))]


@needs("browser", BROWSER, "Chromium")
def test_code_is_copied_without_prompts_and_does_not_scroll(site: Path) -> None:
    wide = "[...document.querySelectorAll('pre code')].filter(code => code.scrollWidth > code.clientWidth + 1).length"
    copied = """(() => {
      const code = document.querySelector(".highlight code");
      code.setAttribute("data-md-copying", "");
      return code.innerText;
    })()"""
    with opened_browser() as page:
        for name in ("index", "build", "my-feedstock", "commands"):
            page.open((site / f"{name}.html").as_uri(), width=1280)
            assert page.ask(wide) == 0, name
        page.open((site / "index.html").as_uri(), width=1280)
        first = page.ask(copied).lstrip()
    assert first.startswith("python build-locally.py linux_64_cuda11.2")
    assert "$" not in first


def test_the_guides_of_index_are_pages() -> None:
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for page in ("my-feedstock", "guide-start", "guide-gpu", "guide-bots", "comparisons"):
        assert f"({page}.md)" in text
    assert yaml.safe_load(re.sub(r"!!python\S+ ", "", CONFIG))["strict"] is True
