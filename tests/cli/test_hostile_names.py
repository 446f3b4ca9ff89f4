"""Names that strangers chose stay in their line: in terminals, in Markdown, in HTML and in the logs of workflows."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from feedstock_tools.check.differences import Differences, JobChange, Lines, PackageChange
from feedstock_tools.cli import program
from feedstock_tools.errors import InputError
from feedstock_tools.report.checks.differences import differences_markdown, differences_text
from feedstock_tools.wording import code, fenced, html_code, markdown_table, markup, named, shown, table
from tests.support import command
from tests.support.git import committed
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


COMMANDS = (
    ("rerender", "--pinning", "none", "--smithy", "none", "--check", "--diff"),
    ("outputs",),
    ("lint", "--pinning", "none"),
    ("lint", "--pinning", "none", "--github"),
    ("diff", "--markdown"),
    ("review", "HEAD", "--no-rehearse", "--pinning", "none", "--smithy", "none"),
    ("build", "--list"),
    ("status",),
    ("status", "--markdown"),
    ("plan",),
    ("cuda", "check"),
)


@pytest.mark.slow
@pytest.mark.parametrize("where", ["name and texts", "values", "files", "configuration"])
def test_no_command_prints_a_forged_line(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The walk: each command on a feedstock whose texts, values, files or configurations have hostile names."""
    bad = BAD if where == "name and texts" else ""
    folder = tmp_path / "demo-feedstock"
    (folder / "recipe").mkdir(parents=True)
    (folder / ".ci_support").mkdir()
    recipe = {
        "package": {"name": f"demo{bad}", "version": f"1{bad}"},
        "source": {"url": f"https://example.org/x.tgz{bad}", "sha256": "0" * 64},
        "build": {"number": 0, "script": f"true{bad}"},
        "requirements": {"host": ["python", f"numpy{bad}"], "run": ["python"]},
        "about": {"license": f"MIT{bad}", "home": "https://example.org"},
        "extra": {"recipe-maintainers": [f"me{bad}"]},
    }
    (folder / "recipe/meta.yaml").write_text(json.dumps(recipe))
    (folder / "conda-forge.yml").write_text("{}\n")
    value = "3.12.* *_cpython" + (BAD if where == "values" else "")
    (folder / "recipe/conda_build_config.yaml").write_text(json.dumps({"python": [value]}))
    file_name = BAD.replace("/", "_")
    if where == "files":
        (folder / "recipe" / file_name).write_text("")
    name = f"linux_64_{file_name if where == 'configuration' else ''}"
    values = {"target_platform": ["linux-64"], "python": [value], "docker_image": [f"image{bad}"]}
    (folder / f".ci_support/{name}.yaml").write_text(json.dumps(values))
    committed(folder)
    (folder / "recipe/meta.yaml").write_text(json.dumps({**recipe, "build": {"number": 1, "script": f"false{bad}"}}))
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    for words in COMMANDS:
        monkeypatch.setattr(sys, "argv", ["feedstock-tools", *words])
        with contextlib.suppress(SystemExit):  # in this process: eleven starts would cost more
            program._status(program._group, "feedstock-tools", None)
        text = "\n".join(capfd.readouterr())
        if "--github" in words:  # these are commands, and ours
            text = re.sub(r"(?m)^::(?:notice|warning) ", "", text)
        assert not FORGED.search(text), (words, text)
        assert text.strip() and "Traceback" not in text, (words, text)


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
