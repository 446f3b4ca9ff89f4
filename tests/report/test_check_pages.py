"""The pages of `rehearse` and `diff`: complete, bounded, self-contained, and safe from what recipes and solvers say."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner

from feedstock_tools.check.differences import Differences, Lines, PackageChange
from feedstock_tools.check.rehearsal import Environment, Rehearsal
from feedstock_tools.cli.checks import diff
from feedstock_tools.report.checks.differences import differences_page
from feedstock_tools.report.checks.rehearsal import rehearsal_page
from tests.support.pages import NAMES, made_up_differences, made_up_pages, made_up_rehearsal

VOID = {"meta", "input", "img", "br", "link", "wbr"}


class Tags(HTMLParser):
    """The elements of a page, their attributes, and its text outside of style and script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: str(value) for name, value in attributes}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.words += data


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return made_up_pages(tmp_path_factory.mktemp("pages"))


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_whole_and_runs_and_fetches_nothing_of_others(pages: dict[str, Path], name: str) -> None:
    page = Tags(pages[name].read_text(encoding="utf-8"))
    assert page.open == []
    names = [tag for tag, _ in page.tags]
    assert not {"img", "iframe", "object", "link", "base", "form"} & set(names)
    assert sum(tag == "script" and values.get("type") != "application/json" for tag, values in page.tags) <= 1
    assert not [value for _, own in page.tags for key, value in own.items() if key.startswith("on") or key == "style"]
    addresses = [own[key] for _, own in page.tags for key in ("href", "src") if key in own]
    assert not [address for address in addresses if not address.startswith(("#", "./"))]
    (policy,) = [own["content"] for _, own in page.tags if own.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy


@pytest.mark.parametrize("name", NAMES)
def test_ids_are_unique_and_controls_have_names(pages: dict[str, Path], name: str) -> None:
    page = Tags(pages[name].read_text(encoding="utf-8"))
    ids = [own["id"] for _, own in page.tags if "id" in own]
    assert len(ids) == len(set(ids))
    controls = [own for tag, own in page.tags if tag in ("input", "select")]
    assert not [own for own in controls if "aria-label" not in own and own.get("id") not in _labelled(pages[name])]


def _labelled(file: Path) -> set[str]:
    """The controls inside of a label."""
    labels = re.findall(r"<label>.*?</label>", file.read_text(encoding="utf-8"), re.DOTALL)
    return {found for label in labels for found in re.findall(r' id="(\w+)"', label)}


def test_marks_that_turn_a_line_around_are_shown_as_text(pages: dict[str, Path]) -> None:
    for name in ("rehearsal", "differences"):
        text = pages[name].read_text(encoding="utf-8")
        assert "\u202e" not in text
        assert "\\u202e" in Tags(text).words


def test_problems_come_before_the_choices_of_users_and_those_before_environments() -> None:
    words = Tags(rehearsal_page(made_up_rehearsal(), "hello")).words
    places = [
        words.index(text) for text in ("do not solve", "What is wrong", "libfoo >=2", "What users", "Environments")
    ]
    assert places == sorted(places)


def test_a_rehearsal_without_problems_says_so_and_shows_none() -> None:
    page = rehearsal_page(Rehearsal((Environment("a", "a0", "x", "run", "linux-64", "solved", 3),), (), ("c",), 1), "x")
    assert "What is wrong" not in page
    assert 'class="verdict solved"' in page


def test_the_pages_are_bounded_whatever_a_solver_or_a_recipe_says() -> None:
    reason = "nothing provides x\n" * 2_000
    many = tuple(
        Environment(f"job{at % 50}", f"r{at}", f"out{at}", "run", "linux-64", "failed", 0, f"{at} {reason}")
        for at in range(1_000)
    )
    page = rehearsal_page(Rehearsal(many, (), ("c",), 1), "x")
    assert len(page) < 4_000_000
    assert "800 more: --json has all." in page
    changes = tuple(
        PackageChange(f"p{at}", ("j",), (Lines("run", (), tuple(f"{at} {n} " + "x" * 90 for n in range(5_000))),))
        for at in range(30)
    )
    page = differences_page(replace(made_up_differences(), packages_changed=changes), "x", "a", "b")
    assert len(page) < 4_000_000
    assert "4600 more lines: --json has all" in page


def test_no_difference_is_an_answer() -> None:
    page = Tags(differences_page(Differences(same=3), "hello", "HEAD", "now"))
    assert "This changes no package: 3 packages compared." in page.words
    assert not [own for tag, own in page.tags if tag == "input"]


def test_diff_writes_the_page_beside_another_form(tmp_path: Path) -> None:
    feedstock = tmp_path / "f"
    feedstock.joinpath(".ci_support").mkdir(parents=True)
    feedstock.joinpath(".ci_support", "linux_64_.yaml").write_text("target_platform:\n- linux-64\n")
    feedstock.joinpath("recipe").mkdir()
    feedstock.joinpath("recipe", "meta.yaml").write_text("package:\n  name: demo\n  version: '1'\n")
    page = tmp_path / "page.html"
    words = ["--folders", str(feedstock), str(feedstock), "--feedstock", str(feedstock), "--html", str(page)]
    alone = CliRunner().invoke(diff, words, catch_exceptions=False, standalone_mode=False)
    assert alone.output == f"wrote {page}\n"
    assert "What a change of demo means" in page.read_text(encoding="utf-8")
    both = CliRunner().invoke(diff, [*words, "--json"], catch_exceptions=False, standalone_mode=False)
    assert both.stdout.startswith("{")
    assert both.stderr == f"wrote {page}\n"
