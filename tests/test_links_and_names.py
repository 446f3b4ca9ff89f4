"""No file of a feedstock leads out of it or makes its reader wait: links, FIFOs, devices, sockets, and names."""

from __future__ import annotations

import ast
import os
import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from feedstock_tools.builds.plan.workspace import open_workspace
from feedstock_tools.digests import digest_of_files
from feedstock_tools.errors import FeedstockError, InputError
from feedstock_tools.feedstock.git import checked_out
from feedstock_tools.reading import is_inside, open_file, read_bytes, read_text
from feedstock_tools.rerender.configuration import read_configurations
from feedstock_tools.rerender.outputs import output_files
from feedstock_tools.rerender.rerendering import rerender
from feedstock_tools.rerender.why.reasons import explain
from tests.support.git import committed
from tests.support.limits import MEMORY, limited, refusal_of
from tests.support.needs import needs
from tests.support.paths import ROOT

pytestmark = needs("system", hasattr(os, "mkfifo"), "one with links and FIFOs")

#: What lies outside of the feedstock, as valid content of any file.
SECRET = "secret0of0the0user"  # noqa: S105
META = "package:\n  name: p{x}\n  version: 1\nrequirements:\n  host:\n    - python\n"
BRACES = "{% set x %}{% include 'link' %}{% endset %}" + META.replace(
    "{x}", "{{ x|replace('\\0', '')|replace('\\n', '') }}"
)


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_text(text)


def _link(path: Path, target: Path | str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def _fifo(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def _with_include(feedstock: Path, target: Path | str) -> None:
    _put(feedstock / "recipe/meta.yaml", BRACES)
    _link(feedstock / "recipe/link", target)


def _with_meta(feedstock: Path, text: str) -> None:
    _put(feedstock / "recipe/meta.yaml", text)


def _include_in_linked_folder(feedstock: Path, outside: Path) -> None:
    _with_meta(feedstock, BRACES.replace("'link'", "'folder/secret'"))
    _link(feedstock / "recipe/folder", outside)


def _include_by_two_links(feedstock: Path, outside: Path) -> None:
    _with_include(feedstock, "other")
    _link(feedstock / "recipe/other", outside / "secret")


def _huge_include(feedstock: Path, _outside: Path) -> None:
    _with_meta(feedstock, BRACES.replace("'link'", "'huge'"))
    with (feedstock / "recipe/huge").open("wb") as file:
        file.truncate(MEMORY + (100 << 20))


def _linked_recipe_folder(feedstock: Path, outside: Path) -> None:
    (feedstock / "recipe/meta.yaml").rename(outside / "meta.yaml")
    (feedstock / "recipe").rmdir()
    _link(feedstock / "recipe", outside)


def _recipe_dir_outside(feedstock: Path, outside: Path) -> None:
    _put(outside / "meta.yaml", META.format(x=""))
    _put(feedstock / "conda-forge.yml", f"recipe_dir: ../{outside.name}\n")


def _data(feedstock: Path, outside: Path) -> None:
    _put(outside / "data.json", f'{{"x": "{SECRET}"}}')
    _link(feedstock / "recipe/data.json", outside / "data.json")
    _with_meta(feedstock, META.format(x="{{ load_file_data('data.json', from_recipe_dir=True).x }}"))


def _regex(feedstock: Path, outside: Path) -> None:
    _link(feedstock / "recipe/secret", outside / "secret")
    call = f"load_file_regex('secret', '{SECRET}', from_recipe_dir=True)"
    _with_meta(feedstock, META.format(x=f"{{{{ {call}.group(0) if {call} }}}}"))


def _v1(feedstock: Path) -> Path:
    _put(feedstock / "conda-forge.yml", "conda_build_tool: rattler-build\n")
    (feedstock / "recipe/meta.yaml").unlink()
    recipe = feedstock / "recipe/recipe.yaml"
    _put(recipe, "package: {name: p, version: '1'}\nbuild: {string: 'x${{ python }}'}\n")
    return recipe


def _linked_v1_recipe(feedstock: Path, outside: Path) -> None:
    recipe = _v1(feedstock)
    recipe.rename(outside / "recipe.yaml")
    _link(recipe, outside / "recipe.yaml")


def _linked_variants(feedstock: Path, outside: Path) -> None:
    _link(_v1(feedstock).with_name("variants.yaml"), outside / "keys.yaml")


CONFIGURATION = ".ci_support/linux_64_.yaml"
OWN = "recipe/conda_build_config.yaml"
#: What is done to a feedstock, given its folder and that of files outside.
ATTACKS: dict[str, Callable[[Path, Path], None]] = {
    "included link": lambda here, out: _with_include(here, out / "secret"),
    "included environment": lambda here, _: _with_include(here, "/proc/self/environ"),
    "included memory": lambda here, _: _with_include(here, "/proc/self/mem"),
    "included device": lambda here, _: _with_include(here, "/dev/zero"),
    "included in a linked folder": _include_in_linked_folder,
    "included by two links": _include_by_two_links,
    "included, more than the memory of an attack": _huge_include,
    "linked meta.yaml": lambda here, out: _link(here / "recipe/meta.yaml", out / "meta.yaml"),
    "linked recipe folder": _linked_recipe_folder,
    "recipe_dir outside": _recipe_dir_outside,
    "linked conda-forge.yml": lambda here, out: _link(here / "conda-forge.yml", out / "keys.yaml"),
    "conda-forge.yml is a FIFO": lambda here, _: _fifo(here / "conda-forge.yml"),
    "conda-forge.yml is endless": lambda here, _: _link(here / "conda-forge.yml", "/dev/zero"),
    "meta.yaml is a FIFO": lambda here, _: _fifo(here / "recipe/meta.yaml"),
    "meta.yaml is endless": lambda here, _: _link(here / "recipe/meta.yaml", "/dev/zero"),
    "meta.yaml is a circle of links": lambda here, _: _link(here / "recipe/meta.yaml", "meta.yaml"),
    "linked variant file": lambda here, out: _link(here / OWN, out / "keys.yaml"),
    "linked migration": lambda here, out: _link(here / ".ci_support/migrations/a.yaml", out / "keys.yaml"),
    "linked folder of migrations": lambda here, out: _link(here / ".ci_support/migrations", out),
    "a migration is a FIFO": lambda here, _: _fifo(here / ".ci_support/migrations/a.yaml"),
    "linked configuration": lambda here, out: _link(here / CONFIGURATION, out / "keys.yaml"),
    "a configuration is a FIFO": lambda here, _: _fifo(here / CONFIGURATION),
    "linked script": lambda here, out: _link(here / "recipe/build.sh", out / "secret"),
    "data from a link": _data,
    "a match in a link": _regex,
    "linked recipe.yaml": _linked_v1_recipe,
    "linked variants.yaml": _linked_variants,
    "a file of the recipe is a FIFO": lambda here, _: _fifo(here / "recipe/patch"),
}


def _feedstock(folder: Path) -> Path:
    feedstock = folder / "feedstock"
    for name, text in {
        "conda-forge.yml": "{}\n",
        "recipe/meta.yaml": META.format(x=""),
        CONFIGURATION: "python: ['3.12']\ntarget_platform: [linux-64]\n",
    }.items():
        _put(feedstock / name, text)
    return feedstock


def _outside(folder: Path) -> Path:
    for name, text in {
        "secret": SECRET,
        "meta.yaml": META.format(x=SECRET),
        "keys.yaml": f"python: ['{SECRET}']\n",
    }.items():
        _put(folder / "outside" / name, text)
    return folder / "outside"


def _read_all(feedstock: Path) -> tuple[str, list[str]]:
    """All that the readers of a feedstock make of it, and their refusals."""

    def plan() -> object:
        environment = {"PATH": os.environ["PATH"]}
        return open_workspace(feedstock, feedstock / "build_artifacts", ["conda-forge"], environment).chosen()

    def changes() -> object:
        found = rerender(feedstock)
        return found.files, list(found.changes().diff())

    made, refusals = [], []
    for reader in (
        changes,
        lambda: output_files(feedstock, read_configurations(feedstock)),
        lambda: explain(feedstock, "python"),
        plan,
    ):
        try:
            made.append(repr(reader()))
        except FeedstockError as error:
            refusals.append(str(error))
    return "\n".join(made), refusals


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_nothing_is_read_outside_of_a_feedstock_and_nothing_waits(
    tmp_path: Path, attack: Callable[[Path, Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", SECRET)
    feedstock, outside = _feedstock(tmp_path), _outside(tmp_path)
    attack(feedstock, outside)
    with limited():
        made, refusals = _read_all(feedstock)
    assert refusals
    assert SECRET not in made + "".join(refusals)


def test_links_inside_of_a_feedstock_are_followed(tmp_path: Path) -> None:
    feedstock = _feedstock(tmp_path)
    _put(feedstock / "recipe/name", "q")
    _with_include(feedstock, "name")
    (feedstock / CONFIGURATION).rename(feedstock / "configuration.yaml")
    _link(feedstock / CONFIGURATION, "../configuration.yaml")
    made, refusals = _read_all(feedstock)
    assert not refusals
    assert "pq" in made


def test_a_link_to_a_feedstock_is_the_feedstock(tmp_path: Path) -> None:
    _feedstock(tmp_path)
    _link(tmp_path / "link", "feedstock")
    assert not _read_all(tmp_path / "link")[1]


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "a/../../secret", "", ".", "x" * 5000, "nul\\0x", "~"])
def test_names_in_templates_lead_nowhere(tmp_path: Path, name: str) -> None:
    feedstock = _feedstock(tmp_path)
    _put(tmp_path / "feedstock/secret", SECRET)
    _with_meta(feedstock, BRACES.replace("'link'", f"'{name}'"))
    with pytest.raises(InputError):
        rerender(feedstock)
    call = f"{{{{ load_file_data('{name}', fmt='yaml', from_recipe_dir=True) }}}}"
    _with_meta(feedstock, f"{META.format(x='')}about:\n  summary: {call}\n")
    made, _ = _read_all(feedstock)
    assert SECRET not in made


@pytest.mark.parametrize(
    "template",
    [
        "${{ env.get('SECRET', default='') }}",
        "${{ env.get('SEC' ~ 'RET', default='') }}",
        "${{ 'b' if env.exists('SECRET') else '' }}",
        "{% set e = env %}${{ e.get('SECRET', default='') }}",
        "${{ env['get']('SECRET', default='') }}",
        "\\u0024{{ \\u0065nv.get('SECRET', default='') }}",
    ],
)
def test_a_recipe_yaml_does_not_see_the_environment(
    tmp_path: Path, template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    feedstock = _feedstock(tmp_path)
    _put(_v1(feedstock), f'package: {{name: p, version: "1"}}\nbuild: {{string: "a{template}"}}\n')
    monkeypatch.setenv("SECRET", SECRET)
    try:
        (output,) = output_files(feedstock, read_configurations(feedstock))
    except InputError as error:
        assert SECRET not in str(error)
    else:
        assert output.build_string == "a"
    assert os.environ["SECRET"] == SECRET


@pytest.mark.parametrize(
    "template", ["{{ environ.get('SECRET', '') }}", "{{ environ['SECRET'] }}", "{{ os.environ }}", "{{ SECRET }}"]
)
def test_a_meta_yaml_does_not_see_the_environment(
    tmp_path: Path, template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    feedstock = _feedstock(tmp_path)
    _with_meta(feedstock, META.format(x=template))
    monkeypatch.setenv("SECRET", SECRET)
    made, refusals = _read_all(feedstock)
    assert SECRET not in made + "".join(refusals)


def test_what_conda_smithy_sets_is_seen_by_both_formats(tmp_path: Path) -> None:
    feedstock = _feedstock(tmp_path)
    _put(feedstock / "recipe/conda_build_config.yaml", "c:\n  - '{{ 1 }}'\n")
    _put(_v1(feedstock), "package: {name: p, version: '1'}\nbuild: {skip: ['env.exists(\"CONFIG_VERSION\")']}\n")
    assert not rerender(feedstock).files


def test_a_local_source_is_made_of_files(tmp_path: Path) -> None:
    _fifo(tmp_path / "pipe")
    assert "pipe: is not a file" in refusal_of(lambda: digest_of_files([tmp_path]))
    (tmp_path / "pipe").unlink()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(tmp_path / "s"))
        assert "s: is not a file" in refusal_of(lambda: digest_of_files([tmp_path]))


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 2048)
    assert len(read_bytes(tmp_path / "a", 2048, within=tmp_path)) == 2048
    with pytest.raises(InputError, match="larger than 1 KiB"):
        read_bytes(tmp_path / "a", 1024, within=tmp_path)
    with pytest.raises(InputError, match="NUL bytes"):
        (tmp_path / "a").write_bytes(b"a\0")
        read_text(tmp_path / "a", within=tmp_path)
    with pytest.raises(InputError, match="not a file but a folder"):
        open_file(tmp_path, within=None)


def test_a_high_limit_takes_no_memory(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 3_000_000)
    with limited(memory=50 << 20):
        assert len(read_bytes(tmp_path / "a", 1 << 40, within=None)) == 3_000_000


def test_a_folder_whose_name_begins_like_another_is_outside(tmp_path: Path) -> None:
    (tmp_path / "feedstock-of-another").mkdir()
    assert not is_inside(tmp_path / "feedstock-of-another", tmp_path / "feedstock")
    assert is_inside(tmp_path / "feedstock" / ".." / "feedstock" / "a", tmp_path / "feedstock")


#: Modules that open files of their own making, or of this machine and its tools; all others open files by `reading`.
OPENING = frozenset(
    {"bootstrap", "data", "files", "reading", "bounds", "builds", "channel", "cli", "report", "gpu_code"}
)
#: What they open: processes, an archive that git made of a commit, the driver and environments of this machine, files
#: of a release of conda-smithy, records and caches of ours, and files that they compare with what they will write.
OWN_FILES = frozenset(
    {
        "feedstock/cleaning.py",
        "feedstock/git.py",
        "feedstock/layout.py",
        "feedstock/up_to_date.py",
        "pins/driver.py",
        "processes.py",
        "recipe/v1_engine.py",
        "feedstock/patches.py",
        "redaction.py",
        "rerender/many.py",
        "rerender/smithy/release.py",
        "rerender/smithy/templates.py",
    }
)


@pytest.mark.parametrize("target", ["/etc/passwd", "../../outside"])
def test_a_link_in_a_commit_leads_nowhere(target: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(target)
    committed(tmp_path)
    with (
        pytest.raises(InputError, match="commit 'HEAD' is refused: link leads out of it"),
        checked_out(tmp_path, "HEAD"),
    ):
        pass


def test_a_script_of_a_commit_stays_executable_and_so_the_same(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe"
    recipe.mkdir()
    (recipe / "build.sh").write_text("true\n")
    (recipe / "run_test.sh").write_text("true\n")
    (recipe / "run_test.sh").chmod(0o755)
    committed(tmp_path)
    with checked_out(tmp_path, "HEAD") as folder:
        assert digest_of_files([folder / "recipe"]) == digest_of_files([recipe])


def test_the_rooms_that_read_feedstocks_open_files_by_one_function() -> None:
    package = ROOT / "feedstock_tools"
    opening = []
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        if name.partition("/")[0].removesuffix(".py") not in OPENING and name not in OWN_FILES:
            opening += [f"{name}: {call}" for call in _opens(path.read_text(encoding="utf-8"))]
    assert opening == []


#: What each call that opens a file has in its text.
_OPENS = re.compile(r"\b(?:read_text|read_bytes|open)\b")


def _opens(text: str) -> list[str]:
    """The calls in a module that open a file without `reading`."""
    nodes = ast.walk(ast.parse(text)) if _OPENS.search(text) else ()
    called = [node.func for node in nodes if isinstance(node, ast.Call)]
    methods = [one.attr for one in called if isinstance(one, ast.Attribute)]
    functions = [one.id for one in called if isinstance(one, ast.Name)]
    return [one for one in methods if one in ("read_text", "read_bytes", "open")] + [
        one for one in functions if one == "open"
    ]
