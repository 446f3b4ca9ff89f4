"""Every command, and every page, on what a stranger named: no name leaves its line, its code or its element.

The commands come from the command tree, so that a new one fails here until it has a row.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from feedstock_tools.channel.folder import index_channel
from feedstock_tools.channel.metadata import PackageMetadata
from feedstock_tools.channel.packages.archive import write_package
from maintenance.drawn import COMMANDS
from tests.support import command
from tests.support.git import committed, git
from tests.test_promises import defined_tests

#: What a name tries: a line of its own, commands of runners, a mention, an element, an attribute, a link, the end of
#: code, a terminal, what turns a line around, what nobody sees.
BAD = (
    "\n::error::FORGED\nFORGED ##[error]FORGED ##vso[task]FORGED\u2028FORGED\x85FORGED @everyone <hostile-tag>"
    "</script></style></title>--><hostile-tag> \"hostile=1 ' hostile=1 [a](http://hostile) ```` `"
    "\x1b[2J\u202e\u200b|\t#1"
)
FORGED = re.compile(r"(?m)^(?:FORGED|\s*::)|##(?:vso)?\[|[\x1b\x85\u2028\u202e\u200b]")
#: As much of it as a file may be named, and as a branch may.
FILE = BAD.replace("/", "_")[:100]
BRANCH = "mine-@everyone-<hostile-tag>-`-#1-\u202e\u200b\u2028##vso]FORGED"

NONE = "--pinning none"
#: The pages that the walk writes. What builds print on them, `test_all_readers_of_a_hostile_log_show_text` looks at.
PAGES = {f"{name}.html" for name in ("diff", "diffs", "graph", "impact", "plan", "rehearse", "show", "status")}
#: What each command is given; `{}` is the folder of the world. What they write goes into a copy.
WALK: dict[str, tuple[str, ...]] = {
    "build": ("--list", "--list --json", "--all --channel {}/channel", "x{bad}"),
    "ci": ("--check", ""),
    "clean": ("--dry-run", ""),
    "collect": ("{}/channel",),
    "cuda archs": ("12.9",),
    "cuda audit": ("",),
    "cuda binary": ("{}/channel/linux-64/good-1-0.conda", "{}/channel"),
    "cuda check": ("", "--pinning none"),
    "cuda explain": ("{bad}",),
    "cuda facts": ("",),
    "cuda fetch": ("{bad}",),
    "cuda graph": ("--output {}/graph.html",),
    "cuda resolve": ("{bad}", "cuda={bad}"),
    "cuda show": ("--output {}/show.html --channel {}/channel", "{bad}"),
    "diff": ("", "--markdown", "--html {}/diff.html", "main", "main --markdown", "main --html {}/diffs.html", "{bad}"),
    "dossier": ("", "--output {}/dossier"),
    "edit add-cuda": ("12.9", "{bad}"),
    "edit add-python": ("3.13", "{bad}"),
    "edit build-number": ("7",),
    "edit drop-cuda": ("12.9", "{bad}"),
    "edit drop-python": ("3.12", "{bad}"),
    "edit enable-gpu": ("",),
    "edit license-file": ("{bad}",),
    "edit maintainer": ("add x{bad}", "remove me"),
    "edit migration": ("add x{bad}",),
    "edit noarch": ("python",),
    "edit pinning": ("add x{bad}",),
    "edit platform": ("add x{bad}", "add osx-64"),
    "edit provider": ("linux-64 x{bad}",),
    "edit python-min": ("",),
    "edit requirement": ("add x{bad}", "remove numpy"),
    "edit setting": ("set x{bad}",),
    "edit stdlib": ("",),
    "edit to-v1": ("",),
    "edit version": ("2{bad}", "2"),
    "cuda env": ("good{bad} --channel {}/channel", "good --channel {}/channel"),
    "fleet invite": ("{}/no-fleet x{bad}",),
    "fleet new": ("x{bad}",),
    "fleet test": ("--fleet {}/bad.yml",),
    "generate": ("--check", ""),
    "cuda gpu": ("{bad}", "--model {bad}"),
    "import": ("--dry-run", ""),
    "init": ("{bad}", "file://{}/demo-feedstock --output {}/new"),
    "lint": (NONE, f"{NONE} --github"),
    "many impact": (
        "{} {}/demo-feedstock/recipe {}/pinning --html {}/impact.html",
        "{} {}/demo-feedstock/recipe {}/pinning --markdown",
    ),
    "many index": ("{}",),
    "many list": ("{}",),
    "many migrate": ("{} {}/migration.yaml --dry-run",),
    "outputs": ("", "{bad}"),
    "pinning": ("",),
    "pinning fetch": ("{bad}",),
    "pinning list": ("",),
    "pinning show": ("{}/pinning", "{bad}"),
    "pinning update": ("--cache {}/cache",),
    "plan": ("", "--markdown", "--simulate 1x4c8g", "--simulate 1x4c8g --html {}/plan.html"),
    "publish": ("{}/published --channel {}/channel", "{bad}"),
    "rehearse": ("--channel {}/channel", "--channel {}/channel --html {}/rehearse.html"),
    "rerender": (f"{NONE} --smithy none --check --diff", f"{NONE} --smithy none --commit"),
    "review": (f"main --no-rehearse {NONE} --smithy none", f"main --channel {{}}/channel {NONE} --smithy none"),
    "cuda search": ("good --channel {}/channel", "{bad} --channel {}/channel", "* --channel {}/channel"),
    "smithy": ("",),
    "smithy fetch": ("{bad}",),
    "smithy list": ("",),
    "status": ("", "--markdown", "--html {}/status.html"),
    "test": ("--channel {}/channel", "x{bad}"),
    "cuda variants": ("--check", "{bad}"),
    "why": ("", "python", "{bad}"),
}
#: Commands that need a scheduler or hosts: the tests in which a hostile one answers them.
ELSEWHERE = {
    "fleet cluster down": "test_a_mistake_is_named_with_its_place",
    "fleet cluster up": "test_a_mistake_is_named_with_its_place",
    "fleet down": "test_a_mistake_is_named_with_its_place",
    "fleet hub": "test_another_fleets_certificate_is_refused",
    "fleet join": "test_another_fleets_certificate_is_refused",
    "fleet logs": "test_all_readers_of_a_hostile_log_show_text",
    "fleet remove": "test_the_row_of_a_host_whose_name_is_a_path_has_not_begun",
    "fleet status": "test_the_row_of_a_host_whose_name_is_a_path_has_not_begun",
    "fleet stop": "test_the_row_of_a_host_whose_name_is_a_path_has_not_begun",
    "fleet try": "test_a_mistake_is_named_with_its_place",
    "fleet up": "test_a_mistake_is_named_with_its_place",
    "fleet wheelhouse": "test_a_mistake_is_named_with_its_place",
    "fleet worker": "test_a_request_of_another_form_is_refused",
}


def test_every_command_is_walked() -> None:
    assert {*WALK, *ELSEWHERE} == {*COMMANDS}
    assert not {*WALK} & {*ELSEWHERE}
    assert {*ELSEWHERE.values()} <= defined_tests()


class Page(HTMLParser):
    """The elements and attributes of a page that a hostile text made."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.made: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        links = [value or "" for name, value in attrs if name in ("href", "src", "action")]
        names = [tag, *(name for name, _ in attrs)]
        self.made += [each for each in names if "hostile" in each or each == "img"]
        self.made += [link for link in links if re.match(r"(?i)\s*(?:javascript:|https?://hostile)", link)]


def recipe(bad: Mapping[str, str]) -> dict[str, object]:
    """A recipe of which each field that has a name in `bad` ends with that."""

    def at(field: str, text: str) -> str:
        return text + bad.get(field, "")

    return {
        "package": {"name": at("package", "demo"), "version": at("version", "1")},
        "source": {"url": at("texts", "https://example.org/x.tgz"), "sha256": "0" * 64},
        "build": {"number": 0, "script": at("texts", "true")},
        "requirements": {
            "host": ["python", at("requirement", "numpy")],
            "run": ["python", at("requirement", "good >=1")],
        },
        "test": {"commands": [at("texts", "true")], "imports": [at("texts", "demo")]},
        "about": {
            "license": at("texts", "MIT"),
            "license_file": at("texts", "LICENSE"),
            "home": at("texts", "https://example.org"),
            "summary": at("texts", "a demo"),
            "description": at("texts", "a demo"),
        },
        "extra": {"recipe-maintainers": [at("texts", "me")]},
    }


def feedstock(world: Path, bad: Mapping[str, str]) -> Path:
    folder = world / "demo-feedstock"
    (folder / "recipe").mkdir(parents=True)
    (folder / ".ci_support/migrations").mkdir(parents=True)
    (folder / "recipe/meta.yaml").write_text(json.dumps(recipe({}), indent=1))
    (folder / "conda-forge.yml").write_text("{}\n")
    committed(folder)
    git(folder, "checkout", "-q", "-b", bad.get("branch", "mine"))
    (folder / "recipe/meta.yaml").write_text(json.dumps(recipe(bad), indent=1))
    settings = {f"x{bad['settings']}": 1, "provider": {"linux_64": bad["settings"]}} if "settings" in bad else {}
    (folder / "conda-forge.yml").write_text(json.dumps(settings))
    value = "3.12.* *_cpython" + bad.get("values", "")
    pins = {"python": [value], f"key{bad.get('values', '')}": [value]}
    (folder / "recipe/conda_build_config.yaml").write_text(json.dumps(pins))
    (folder / f"recipe/a{bad.get('files', '')}.sh").write_text("")
    configuration = {"target_platform": ["linux-64"], "python": [value], "docker_image": [f"i{bad.get('values', '')}"]}
    (folder / f".ci_support/linux_64_{bad.get('configuration', '')}.yaml").write_text(json.dumps(configuration))
    migration = {"__migrator": {"kind": "version", "migration_number": 1}, "migrator_ts": 1, "python": [value]}
    name = f"m{bad.get('files', '')}.yaml"
    (folder / ".ci_support/migrations" / name).write_text(json.dumps(migration))
    (world / "migration.yaml").write_text(json.dumps(migration))
    (world / "pinning").mkdir()
    (world / "pinning/conda_build_config.yaml").write_text(json.dumps(pins))
    (world / "bad.yml").write_text(json.dumps({"all": {"hosts": {f"h{bad.get('texts', '')}": {"x": "{{ 1"}}}}))
    return folder


def spec(world: Path, bad: Mapping[str, str]) -> Path:
    """A feedstock with a spec all of whose texts are hostile."""
    folder = feedstock(world, {})
    shutil.rmtree(folder / "recipe")
    document = {
        "name": f"demo{bad['spec']}",
        "version": f"1{bad['spec']}",
        "sources": [{"path": f"x{bad['spec']}"}],
        "platforms": {"linux-64": None, f"x{bad['spec']}": None},
        "python": [f"3.12{bad['spec']}"],
        "outputs": [{"name": f"demo{bad['spec']}", "requirements": {"run": [f"x{bad['spec']}"]}}],
        f"x{bad['spec']}": 1,
    }
    (folder / "feedstock.yaml").write_text(json.dumps(document))
    committed(folder, "spec")
    return folder


def spec_texts(world: Path, bad: Mapping[str, str]) -> Path:
    """A feedstock with a spec that is valid, with hostile texts."""
    folder = feedstock(world, {})
    shutil.rmtree(folder / "recipe")
    about = {"summary": f"a{bad['spec']}", "license": f"MIT{bad['spec']}", "home": f"https://x{bad['spec']}"}
    document = {
        "name": "demo",
        "version": "1",
        "platforms": {"linux-64": None},
        "python": ["3.12"],
        "pinning": "self-contained",
        "about": about,
        "maintainers": [f"me{bad['spec']}"],
        "outputs": [{"name": "demo", "kind": "python", "script": [f"true{bad['spec']}"]}],
    }
    (folder / "feedstock.yaml").write_text(json.dumps(document))
    committed(folder, "spec")
    return folder


def recipe_yaml(world: Path, bad: Mapping[str, str]) -> Path:
    """A feedstock with a recipe.yaml whose texts are hostile, as are its last commit and its remote."""
    folder = feedstock(world, {})
    (folder / "recipe/meta.yaml").unlink()
    (folder / "conda-forge.yml").write_text("conda_build_tool: rattler-build\n")
    text = bad["v1"]
    document = {
        "context": {f"v{text}": f"1{text}"},
        "package": {"name": "demo", "version": "1"},
        "source": [{"url": f"https://example.org/x{text}", "sha256": "0" * 64}],
        "build": {"number": 0, "script": [f"true{text}"]},
        "requirements": {"host": ["python", "numpy"], "run": ["python", "good >=1"]},
        "tests": [{"script": [f"true{text}"]}, {"python": {"imports": [f"demo{text}"]}}],
        "about": {"license": "MIT", "license_file": f"LICENSE{text}", "summary": f"a{text}", "description": text},
        "extra": {"recipe-maintainers": [f"me{text}"], f"x{text}": 1},
    }
    (folder / "recipe/recipe.yaml").write_text(json.dumps(document, indent=1))
    git(folder, "remote", "add", "origin", f"https://github.com/x/{FILE[1:]}")
    committed(folder, text)
    return folder


def channel(world: Path, bad: Mapping[str, str]) -> None:
    """A channel with a package whose texts are hostile, or records that no archive could have made."""
    write_package(world / "channel", PackageMetadata("good", "1", "0", 0, "linux-64"))
    index_channel(world / "channel")
    path = world / "channel/linux-64/repodata.json"
    repodata = json.loads(path.read_text())
    packages = repodata["packages.conda"]
    entry = packages["good-1-0.conda"]
    if text := bad.get("texts"):
        packages["good-2-0.conda"] = {**entry, "version": "2", "license": text, "depends": [f"x{text}"]}
    if record := bad.get("records"):
        for key in ("name", "version", "build", "license", "subdir", "timestamp", "md5"):
            packages[f"{key}{record}-1-0.conda"] = {**entry, key: f"{entry.get(key, '')}{record}"}
    path.write_text(json.dumps(repodata))


#: The places in which a stranger's text stands: the world, and the text by field.
WORLDS: dict[str, tuple[Callable[[Path, Mapping[str, str]], Path], dict[str, str]]] = {
    "arguments": (feedstock, {}),
    "name": (feedstock, {"package": BAD, "version": BAD, "files": FILE, "records": BAD}),
    "texts and branch": (feedstock, {"texts": BAD, "branch": BRANCH}),
    "requirements and settings": (feedstock, {"requirement": BAD, "settings": BAD}),
    "values": (feedstock, {"values": BAD}),
    "configuration": (feedstock, {"configuration": FILE, "files": FILE}),
    "spec": (spec, {"spec": BAD}),
    "texts of a spec": (spec_texts, {"spec": BAD}),
    "texts of a recipe.yaml": (recipe_yaml, {"v1": BAD}),
}


@pytest.fixture
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of this user and no server takes part, and nobody waits for one."""
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(name, str(tmp_path / name))
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "a")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "a@example.org")


@pytest.mark.slow
@pytest.mark.usefixtures("_alone")
@pytest.mark.parametrize("where", WORLDS)
def test_no_command_and_no_page_shows_a_forged_line(where: str, tmp_path: Path) -> None:
    make, bad = WORLDS[where]
    world = tmp_path / "world"
    world.mkdir()
    make(world, bad)
    channel(world, bad)
    command.here("many", "index", str(world))
    here = tmp_path / "here"
    wrong: list[str] = []
    pages: set[str] = set()
    for name, all_words in WALK.items():
        for words in all_words:
            if ("{bad}" in words) is not (where == "arguments"):
                continue
            shutil.rmtree(here, ignore_errors=True)
            shutil.copytree(world, here, symlinks=True)
            given = [word.replace("{bad}", BAD).replace("{}", str(here)) for word in words.split()]
            wrong += [f"{name} {words}: {each}" for each in seen(name, given, here)]
            pages |= {path.name for path in here.rglob("*.html")}
    assert not wrong, "\n".join(wrong)
    if where == "texts and branch":
        assert pages == PAGES


def seen(name: str, words: list[str], here: Path) -> list[str]:
    """What is wrong with what a command shows and writes for people to read."""
    ran = command.here(*name.split(), *words, folder=here / "demo-feedstock")
    found = []
    if "Traceback" in ran.stderr + ran.stdout:
        found.append(f"a traceback: {ran.stderr[-500:]}")
    if "No such option" in ran.stderr:
        found.append(f"the row is wrong: {ran.stderr[-200:]}")
    shown = {"stdout": ran.stdout, "stderr": ran.stderr}
    if "--json" in words:
        json.loads(ran.stdout or "null")
    for stream, text in shown.items():
        text = re.sub(r"(?m)^::(?:notice|warning|error) ", "", text) if "--github" in words else text
        if forged := FORGED.search(text):
            found.append(f"{stream} {forged[0]!r} in {text[max(0, forged.start() - 100) : forged.end() + 50]!r}")
    if "--markdown" in words or name == "review":
        html = MarkdownIt("commonmark").enable("table").render(ran.stdout)
        outside = re.sub(r"(?s)<code.*?</code>", "", html)
        if made := Page(html).made:
            found.append(f"Markdown makes {made}")
        if re.search(r"@everyone", outside):
            found.append("Markdown mentions somebody")
    for page in here.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        if made := Page(text).made:
            found.append(f"{page.name} has {made}")
        if hidden := re.search("[\x1b\x85\u2028\u202e\u200b]", text):
            found.append(f"{page.name} has {hidden[0]!r} in {text[max(0, hidden.start() - 100) : hidden.end()]!r}")
    for page in (here / "dossier").rglob("*.md"):
        if made := Page(MarkdownIt("commonmark").render(page.read_text(encoding="utf-8"))).made:
            found.append(f"{page.name} makes {made}")
    return found
