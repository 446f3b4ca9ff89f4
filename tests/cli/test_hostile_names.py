"""Names that strangers chose stay in their line: in terminals, in Markdown, in HTML and in the logs of workflows."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from feedstock_tools.check.differences import Differences, JobChange, Lines, PackageChange
from feedstock_tools.errors import InputError
from feedstock_tools.report.checks.differences import differences_markdown, differences_text
from feedstock_tools.wording import code, fenced, html_code, markdown_table, markup, named, shown, table
from tests.support import command
from tests.support.needs import needs

#: What a name tries: a line of its own, commands of runners, a mention, HTML, a link, the end of code, a terminal.
BAD = (
    "\n::error::FORGED\nFORGED ##[error]FORGED ##vso[task]FORGED @everyone <img src=x> [a](http://x) ```` `\x1b[2J|\t#1"
)
FORGED = re.compile(r"(?m)^\s*(?:FORGED|::)|##(?:vso)?\[|\x1b")


def test_a_name_stays_in_its_line_of_a_terminal() -> None:
    assert "\n" not in named(BAD)
    assert not FORGED.search(named(BAD))
    assert not FORGED.search(table(("name",), [(BAD,)]))
    assert named("linux_64_cuda_compiler_version12.9") == "linux_64_cuda_compiler_version12.9"


@pytest.mark.parametrize(
    "line",
    ["::error::x", "  ::add-mask::x", "\t::x", "a\n::stop-commands::x", "a ##[error]x", "##VSO[task.x]y", "::::x"],
)
def test_no_line_is_a_command_of_a_workflow(line: str) -> None:
    assert not re.search(r"(?m)^\s*::|##(?:vso)?\[", shown(line))


@pytest.mark.parametrize("text", ["std::vector", "a ## b", "# [win]", "::1 is this host"[2:], "[x]##"])
def test_what_is_no_command_is_shown_as_it_is(text: str) -> None:
    assert shown(text) == text


def rendered(markdown: str) -> str:
    """HTML of Markdown with tables."""
    return str(MarkdownIt("commonmark").enable("table").render(markdown)).strip()


def test_a_name_is_code_in_markdown() -> None:
    for name in (BAD, "`", "a`", "``", "`a`", "\\", " ", ""):
        html = rendered(f"- {code(name)} end")
        assert re.fullmatch(r"<ul>\s*<li><code>[^<]*</code> end</li>\s*</ul>", html), html


def test_words_of_strangers_are_text_in_markdown() -> None:
    for words in (
        BAD,
        "# a",
        "- a",
        "+ a",
        "> a",
        "<b>",
        "&lt;",
        "*a* _b_",
        "[a][b]",
        "![a](b)",
        "https://x www.x.org",
        "1. a",
        "2) a",
        "    a",
        "GH-1",
        "<!-- a",
        "<details><summary>a",
        "&commat;a &#64;a",
        "[a]: //x",
    ):
        html = rendered(f"- {markup(words)}")
        assert not re.search(r"<(?!/?(?:ul|li|p)>)", html), html
        assert not re.search(r"@\w|(?<!&)#\w|://|www\.|GH-", html), html


def test_a_cell_of_a_table_ends_where_ours_ends() -> None:
    for cell in (BAD, "a|b", "a\\|b", "\\", "a\\\\|b"):
        for written in (code(cell), markup(cell)):
            html = rendered("\n".join(markdown_table(("a", "b"), [(written, "end")])))
            assert html.count("<td>") == 2
            assert "<td>end</td>" in html


def test_a_block_of_code_ends_where_ours_ends() -> None:
    html = rendered(f"{fenced([BAD, '```', '~~~'])}\n\nend")
    assert rendered(fenced(["`a`"])).startswith("<pre><code>")
    assert re.fullmatch(r"<pre><code>[^<]*</code></pre>\s*<p>end</p>", html), html


def test_a_name_is_text_in_html() -> None:
    assert re.fullmatch("<code>[^<\n]*</code>", html_code(BAD))


def test_a_difference_forges_nothing() -> None:
    change = PackageChange(BAD, (BAD, BAD), (Lines(BAD, (BAD,), (BAD,)),))
    found = Differences(
        jobs_added=(BAD,),
        jobs_removed=(BAD,),
        jobs_replaced=((BAD, BAD),),
        jobs_changed=(JobChange(BAD, ((BAD, BAD, BAD),)),),
        packages_added=((BAD, BAD),),
        packages_changed=(change,),
        files=(BAD,),
    )
    assert not FORGED.search(differences_text(found))
    markdown = differences_markdown(found)
    assert not FORGED.search(markdown)
    outside = re.sub(r"(?s)(`{3,})(?:diff)?\n.*?\n\1\n|(`+).*?\2|<code>.*?</code>", "", markdown)
    assert not re.search(r"@everyone|<img|\]\(", outside), outside


def test_an_error_indents_what_a_name_breaks() -> None:
    error = str(InputError(f"there is no {BAD}", path=Path(f"recipe/{BAD}"), hint="Mend it."))
    assert not re.search(r"(?m)^(?:FORGED|::)", error)


@needs("system", shutil.which("bash"), "bash")
def test_a_current_folder_that_is_gone_or_has_no_name_is_an_error(tmp_path: Path) -> None:
    for place, message in (("gone", "the current folder is gone"), (os.fsdecode(b"a\xff"), "is not UTF-8")):
        folder = tmp_path / place
        folder.mkdir()
        removing = f'cd {"*" if place != "gone" else "gone; rmdir ../gone"}; exec "$@"'
        ran = command.run(["bash", "-c", removing, "bash", *command.tool("lint")], tmp_path)
        assert ran.returncode == 2
        assert message in ran.stderr
        if folder.exists():
            folder.rmdir()


@needs("system", os.name == "posix", "links that anyone may make")
def test_a_link_to_itself_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for words in (["lint", "--feedstock", "loop"], ["import", "loop"], ["publish", "loop"]):
        ran = command.here(*words, folder=tmp_path)
        assert ran.returncode == 2
        assert ran.stderr.startswith("error: ") and "loop" in ran.stderr
