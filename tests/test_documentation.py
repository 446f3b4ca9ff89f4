"""README and docs are correct: links have targets, every option is documented, and self-contained examples run."""

import doctest
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from feedstock_tools.cli import program
from feedstock_tools.errors import FeedstockError
from feedstock_tools.files import locks
from maintenance import drawn
from maintenance.drawn import COMMANDS
from tests.support.paths import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*/README.md")])
_LINK = re.compile(r"\]\((?!https?://)([^)#\s]*)(?:#([^)\s]*))?\)")
_CONSOLE = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
#: Commands whose output depends only on files that ship with the program.
_NEED_NOTHING = (
    "cuda resolve",
    "cuda archs",
    "cuda show",
    "cuda gpu --model",
    "cuda gpu --capability",
    "cuda variants",
    "outputs ",
)


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub derives from the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", without_code(page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for path, anchor in _LINK.findall(without_code(page.read_text(encoding="utf-8"))):
        target = page.parent / path if path else page
        assert target.exists(), f"{page.name}: {path}"
        assert not anchor or anchor in anchors(target), f"{page.name}: {path}#{anchor}"


#: The modules that packages which a user installs are imported by, where they are not called like the package.
_MODULES = {
    "py-rattler": {"rattler"},
    "py-rattler-build": {"rattler_build"},
    "pydantic": {"pydantic", "pydantic_core"},
    "pyyaml": {"yaml"},
    "ruamel.yaml": {"ruamel"},
}


def _required() -> set[str]:
    requirements = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    return {requirement.split()[0] for requirement in requirements}


def _rooms_by_module() -> dict[str, set[str]]:
    """The modules that are imported anywhere in the package, and the rooms that import them."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "feedstock_tools").rglob("*.py"):
        room = path.relative_to(ROOT / "feedstock_tools").parts[0].removesuffix(".py")
        for statement in re.findall(r"^\s*(?:from|import) (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE):
            found.setdefault(statement, set()).add(room)
    return found


def test_the_page_on_dependencies_says_which_rooms_import_each() -> None:
    page = (ROOT / "docs/dependencies.md").read_text(encoding="utf-8")
    stated = dict(re.findall(r"^\| `([\w.-]+)` \| [^|]+ \| [^|]+ \| ([^|]+) \| [^|]+ \|$", page, re.MULTILINE))
    rooms = _rooms_by_module()
    assert stated == {
        package: ", ".join(sorted(set().union(*(rooms[module] for module in _MODULES.get(package, {package})))))
        for package in _required()
    }


def test_the_decisions_on_libraries_are_about_those_that_are_imported() -> None:
    page = (ROOT / "docs/decisions.md").read_text(encoding="utf-8")
    table = page.partition("| purpose | library | reason |")[2].partition("\n\n")[0]
    libraries = {
        name for row in re.findall(r"^\| [^|]+ \| ([^|]+) \|", table, re.MULTILINE) for name in row.split(", ")
    }
    named = {name.split()[0].lower() for name in libraries} - {"sandboxed", "pinned", "---"}
    assert _required() <= named
    assert {module for name in named for module in _MODULES.get(name, {name})} <= _rooms_by_module().keys()


def test_the_start_page_links_to_every_page() -> None:
    linked = {path for path, _ in _LINK.findall((ROOT / "docs" / "index.md").read_text(encoding="utf-8"))}
    assert {page.name for page in ROOT.glob("docs/*.md")} - {"index.md"} <= linked


def test_the_readme_is_short_and_begins_with_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 80
    first = [line.partition("#")[0].strip() for line in _CONSOLE.findall(text)[0].splitlines()]
    assert first == ["$ python build-locally.py linux_64_cuda11.2", "$ python -m tests"]


@pytest.mark.parametrize("page", [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")], ids=lambda page: page.name)
def test_the_commands_of_a_page_exist(page: Path) -> None:
    """Their options, too; words in capitals stand for a reader's own."""
    for block in _CONSOLE.findall(page.read_text(encoding="utf-8")):
        for call in re.findall(r"^\$ feedstock-tools (.*)$", block, re.MULTILINE):
            words = [word for word in re.split(r"[;|>]| && ", call.partition(" #")[0])[0].split() if word not in "…"]
            name = " ".join(words[:2]) if " ".join(words[:2]) in COMMANDS else words[0]
            name = "edit version" if name == "edit" else name
            assert name in COMMANDS or words[0] in program.COMMANDS, call
            known = {spelling for each in COMMANDS.values() for option in each.params for spelling in option.opts}
            assert {word.partition("=")[0] for word in words if word.startswith("--")} <= known | {"--help"}, call


@pytest.mark.parametrize("page", [*ROOT.glob("docs/*.md")], ids=lambda page: page.name)
def test_what_pages_say_of_options_and_rules_is_drawn_from_the_code(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert drawn.updated(text) == text, "run: python -m maintenance.drawn"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_documented(name: str) -> None:
    """On the page of the command (`cuda.md` for `cuda resolve`), or on that of the options that commands share."""
    pages = {
        **{f"cuda {page}": page for page in ("env", "gpu", "search", "variants")},
        "collect": "ci",
        "smithy": "pinning",
        "edit enable-gpu": "enable-gpu",
        "edit to-v1": "to-v1",
    }
    command = name.split()[0]
    own = pages.get(name) or pages.get(command, command)
    text = "".join((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8") for page in (own, "command-line"))
    options = {option for each in COMMANDS[name].params if isinstance(each, click.Option) for option in each.opts}
    assert not [option for option in sorted(options) if option.startswith("--") and option not in text]


def examples() -> Iterator[tuple[str, str, str]]:
    """Page, command and printed output of the examples that run anywhere."""
    for page in PAGES:
        for block in _CONSOLE.findall(page.read_text(encoding="utf-8")):
            for call in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, answer = call.partition("\n")
                words = command.removeprefix("feedstock-tools ")
                if words.startswith(_NEED_NOTHING) and answer and "--channel" not in words:
                    yield page.name, words, answer


@pytest.mark.parametrize(("page", "words", "answer"), list(examples()), ids=lambda text: text.partition("\n")[0][:50])
def test_examples_print_what_is_shown(page: str, words: str, answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`…` stands for omitted text in a line, or for omitted lines; files are named from the top of the repository."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(locks, "_tell", None)  # another test may have begun to print asides
    printed = CliRunner().invoke(program._group, shlex.split(words, comments=True)).output
    pattern = re.escape(answer.rstrip()).replace(re.escape("[…]"), r"\[.*?\]").replace("…", r"[\s\S]*?")
    assert re.match(pattern, printed), printed


def test_the_python_examples_on_facts_give_what_they_show() -> None:
    shown = doctest.testfile(str(ROOT / "docs" / "facts.md"), module_relative=False, encoding="utf-8")
    assert shown.attempted > 5
    assert not shown.failed


def tour_block(language: str, begins: str) -> str:
    text = (ROOT / "docs" / "five-minutes.md").read_text(encoding="utf-8")
    (block,) = re.findall(rf"^```{language}\n({re.escape(begins)}.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert isinstance(block, str)
    return block


def test_the_spec_of_the_tour_is_all_that_a_feedstock_takes(tmp_path: Path) -> None:
    (tmp_path / "feedstock.yaml").write_text(tour_block("yaml", "name: hello"), encoding="utf-8")
    (tmp_path / "src").mkdir()
    program._group.main(["generate", str(tmp_path)], standalone_mode=False)
    program._group.main(["rerender", str(tmp_path)], standalone_mode=False)
    assert len(list((tmp_path / ".ci_support").glob("*.yaml"))) == 4


def test_the_spec_of_the_tour_is_that_of_its_example() -> None:
    assert tour_block("yaml", "name: hello") == (ROOT / "examples" / "hello" / "feedstock.yaml").read_text("utf-8")


def test_the_mistakes_in_the_tour_are_those_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = tour_block("yaml", "name: hello").replace("version:", "verson:").replace("[12.9,", "[12.99,")
    (tmp_path / "hello").mkdir()
    (tmp_path / "hello" / "feedstock.yaml").write_text(spec, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FeedstockError) as raised:
        program._group.main(["generate", "hello"], standalone_mode=False)
    shown = tour_block("console", "$ feedstock-tools generate hello\nerror:")
    assert f"$ feedstock-tools generate hello\nerror: {raised.value}\n" == shown
