"""The pages in Chromium: they fit every window, read well in both schemes, and work by tap, key and screen reader.

`looks/` holds small photographs that these tests compare with.
They depend on the browser's version and on the fonts of the machine, so the comparison is skipped where either differs.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.browser import BROWSER, SCHEMES, WIDTHS, Page
from tests.support.looks import LOOKS, difference, made_with, photograph
from tests.support.needs import lacks, needs
from tests.support.pages import NAMES, made_up_pages

pytestmark = [needs("browser", BROWSER, "Chromium"), pytest.mark.slow]

FOCUS = """
(() => {
  const e = document.activeElement;
  if (!e || e === document.body) { return null; }
  const style = getComputedStyle(e), rect = e.querySelector("rect"), drawn = rect && getComputedStyle(rect);
  const lined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  return { name: e.id || e.className.baseVal || e.className || e.tagName, box: e.dataset.box || "",
    seen: Boolean(lined || (drawn && parseFloat(drawn.strokeWidth) >= 2)) };
})()
"""
#: The widths of the two layouts, a phone's and a window's: colours are those of the layout in every other width.
LAYOUTS = (390, 1280)
OPEN_ALL = "document.querySelectorAll('details').forEach(entry => { entry.open = true; })"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return made_up_pages(tmp_path_factory.mktemp("pages"))


@pytest.fixture
def page(tab: Page) -> Page:
    return tab


@pytest.fixture(scope="module")
def made(tab: Page) -> object:
    """What this machine takes photographs with."""
    return made_with(tab)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", NAMES)
def test_a_page_fits_and_reads_well_in_every_window(page: Page, files: dict[str, Path], name: str, scheme: str) -> None:
    for width in WIDTHS if scheme == "light" else LAYOUTS:
        page.open(files[name].as_uri(), width=width, scheme=scheme)
        page.ask(f"{OPEN_ALL}; 0")
        assert page.findings() == [], width


def test_what_the_checks_look_for_they_find(page: Page, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<!doctype html><meta name=viewport content='width=device-width'><body style='background:#fff'>"
        "<p style='color:#999'>pale</p><button style='width:9px'></button><a href='#'>a<button>in</button></a>"
        "<h3>deep</h3><p id=a></p><p id=a style='width:900px'>wide</p><img><table><tr><td>x</table>"
        "<p style='width:9px;overflow-wrap:anywhere'>narrow column</p>"
        "<div style='overflow:auto;height:20px;line-height:90px'>long</div>"
    )
    page.open(bad.as_uri(), width=390)
    found = " ".join(page.findings())
    for what in ("908 px wide", "contrast 2.85", "no name: button", "a target of 16 by 6", "a control in a control"):
        assert what in found
    for what in ("a level of headings", "not unique: p", "no language", "no title", "not one main", "without a text"):
        assert what in found
    for what in ("a table without headings", "not with a keyboard: div", "letters below each other: p"):
        assert what in found


@pytest.mark.parametrize("name", NAMES)
def test_the_tab_key_reaches_everything_shows_where_it_is_and_leaves_again(
    page: Page, files: dict[str, Path], name: str
) -> None:
    page.open(files[name].as_uri())
    stops = []
    for _ in range(80):
        page.press("Tab")
        stop = page.ask(FOCUS)
        if stop is None:
            break
        stops.append(stop)
    else:
        pytest.fail(f"no way out: {stops[-3:]}")
    assert not [stop["name"] for stop in stops if not stop["seen"]]
    assert stops[0]["name"] == "skip"
    reached = len(stops)
    expected = page.ask(
        "Array.from(document.querySelectorAll('a[href], button, input, select, summary, [tabindex=\"0\"]'))"
        ".filter(e => e.getAttribute('tabindex') !== '-1' && e.getClientRects().length"
        " && (e.matches('summary') || e.checkVisibility())).length"
    )
    assert reached >= expected


def test_the_skip_link_leads_past_the_filter(page: Page, files: dict[str, Path]) -> None:
    page.open(files["status"].as_uri())
    page.press("Tab")
    page.press("Enter")
    page.press("Tab")
    assert page.ask("Boolean(document.activeElement.closest('main'))")


def test_a_phone_s_tables_are_tables_for_a_screen_reader(page: Page, files: dict[str, Path]) -> None:
    page.open(files["status"].as_uri(), width=390)
    page.ask(f"{OPEN_ALL}; 0")
    names = page.names()
    assert ("columnheader", "sha256") in names
    assert [role for role, _ in names].count("table") == 15
    assert ("searchbox", "Filter by name") in names


def test_a_filter_tells_how_many_are_left(page: Page, files: dict[str, Path]) -> None:
    page.open(files["status"].as_uri(), width=390)
    page.ask("document.getElementById('filter').focus()")
    page.write("cuda10.3")
    assert page.ask("document.getElementById('shown').value") == "1 of 15"
    assert [role for role, _ in page.names()].count("status") == 1
    page.open(files["status"].as_uri(), width=390)
    page.tap('.chip[data-state="failed"]')
    assert page.ask("document.getElementById('shown').value") == "2 of 15"
    page.tap(".configuration:not([hidden]) summary")
    assert page.ask("document.querySelector('.configuration:not([hidden])').open") is True


def test_the_bars_of_the_picture_are_one_stop_and_arrows_move_between_them(page: Page, files: dict[str, Path]) -> None:
    page.open(files["status"].as_uri())
    assert page.ask("document.querySelectorAll('#timeline a[tabindex=\"0\"]').length") == 1
    page.ask("document.querySelector('#timeline a').focus()")
    page.press("ArrowDown")
    of = page.ask("document.activeElement.dataset.of")
    assert of == page.ask("document.querySelectorAll('#timeline a')[1].dataset.of")
    page.press("Enter")
    assert page.ask("document.querySelector('.configuration[open]').id") == of


@pytest.mark.parametrize(
    ("question", "cudas", "told"),
    [
        ("gpu=9.0", ["12.9", "12.4", "11.8"], "CUDA 12.9, 12.4, 11.8 go with"),
        ("driver=470.82", ["11.8", "11.2"], "CUDA 11.8, 11.2 go with driver 470.82."),
        ("driver=450", ["11.8", "11.2"], "driver 450."),
        ("driver=525&platform=win-64", ["12.4", "11.8", "11.2"], "driver 525 and win-64."),
        ("package=cudnn 9.1", ["12.9", "12.4"], "cuDNN 9.1.0.70."),
        ("package=gcc 11&cuda=11.2", [], "No CUDA version goes with gcc 11 and CUDA 11.2."),
        ("gpu=RTX 5090", ["12.9"], "CUDA 12.9 goes with GeForce RTX 5090"),
        ("gpu=no such card", [], "which is not known here"),
    ],
)
def test_the_pin_graph_answers_a_question(
    page: Page, files: dict[str, Path], question: str, cudas: list[str], told: str
) -> None:
    page.open(f"{files['pins'].as_uri()}#{question.replace(' ', '%20')}")
    shown = page.ask("Array.from(document.querySelectorAll('tbody tr:not([hidden])'), row => row.dataset.cuda)")
    answer = page.ask("document.getElementById('answer').textContent")
    assert shown == cudas
    assert told in answer


def test_the_pin_graph_draws_no_line_before_a_question_and_those_of_a_tapped_box_after_it(
    page: Page, files: dict[str, Path]
) -> None:
    lines = "Array.from(document.querySelectorAll('.edge')).filter(e => getComputedStyle(e).display !== 'none').length"
    page.open(files["pins"].as_uri(), width=390)
    assert page.ask(lines) == 0
    page.tap('.box[data-box^="cudnn_9"]')
    assert page.ask(lines) == 2
    assert page.ask("Array.from(document.querySelectorAll('tbody tr:not([hidden])'), row => row.dataset.cuda)") == [
        "12.9",
        "12.4",
    ]
    page.tap('.box[data-box^="cudnn_9"]')
    assert page.ask(lines) == 0


def test_the_pin_graph_is_whole_in_a_window_of_1280_pixels(page: Page, tmp_path: Path) -> None:
    from feedstock_tools.report.pins.show import show

    whole = tmp_path / "pins.html"
    whole.write_text(show([], [], None, facts=True, form="html"), encoding="utf-8")
    page.open(whole.as_uri())
    assert page.findings() == []
    assert page.ask("(e => e.scrollWidth <= e.clientWidth)(document.querySelector('.scroll'))")


def test_the_pin_graph_works_with_keys_alone(page: Page, files: dict[str, Path]) -> None:
    page.open(files["pins"].as_uri())
    page.ask("document.querySelector('.box[tabindex=\"0\"]').focus()")
    first = page.ask(FOCUS)["box"]
    page.press("ArrowDown")
    page.press("Enter")
    chosen = page.ask("document.querySelector('.box[aria-pressed=\"true\"]').dataset.box")
    assert chosen != first
    page.press("Escape")
    assert page.ask("document.querySelectorAll('.box[aria-pressed=\"true\"]').length") == 0


def test_a_narrow_page_breaks_names_after_underscores(page: Page, files: dict[str, Path]) -> None:
    page.open(files["status"].as_uri(), width=240)
    ends = page.ask("""
    [...document.querySelectorAll(".entry .title")].flatMap(title => {
      const range = document.createRange(), lines = [];
      for (const text of [...title.childNodes].filter(node => node.nodeType === 3)) {
        range.selectNodeContents(text);
        lines.push([range.getBoundingClientRect().top, text.data]);
      }
      return lines.slice(0, -1).filter(([top], at) => lines[at + 1][0] > top).map(([, data]) => data.slice(-1));
    })
    """)
    assert ends
    assert set(ends) == {"_"}
    assert page.ask(
        "[...document.querySelectorAll('.title')].every(title => !/[^\\x20-\\x7e]/.test(title.textContent))"
    )


def test_an_opened_log_shows_its_end(page: Page, files: dict[str, Path]) -> None:
    page.open(files["status"].as_uri(), width=390)
    long = "[...document.querySelectorAll('pre.log')].find(log => log.textContent.length > 20)"
    page.ask(f"{long}.textContent = 'a line\\n'.repeat(200); {long}.closest('details').open = true; 0")
    gap = f"(log => log.scrollHeight - log.clientHeight - log.scrollTop)({long})"
    assert page.ask(f"new Promise(done => setTimeout(() => done({gap}), 50))") <= 1
    assert page.ask(f"{long}.scrollTop") > 0


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", LAYOUTS)
@pytest.mark.parametrize("name", NAMES)
def test_a_page_looks_as_before(
    page: Page, files: dict[str, Path], name: str, width: int, scheme: str, made: object
) -> None:
    """If it should look otherwise now, `python -m tests.support.looks` takes the photographs anew: look at them."""
    if json.loads((LOOKS / "made-with.json").read_text()) != made:
        lacks("browser", "the Chromium and the fonts that the photographs in tests/report/looks were taken with")
    now = photograph(page, files[name], width, scheme)
    before = (LOOKS / f"{name}-{width}-{scheme}.webp").read_bytes()
    mean, largest = difference(page, before, now)
    assert mean < 1.5
    assert largest < 24
