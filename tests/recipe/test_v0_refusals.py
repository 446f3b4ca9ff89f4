"""What conda-build refuses in a meta.yaml, refused with the line; and files beside it that it reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.model import RenderedOutput
from feedstock_tools.recipe.v0.recipe import read_recipe, render_recipe, render_with_packages
from feedstock_tools.variants.files import defaults
from feedstock_tools.variants.rules import CondaBuildRules

LINUX = Platform("linux", "64")
HEAD = "package:\n  name: demo\n  version: '1'\n"


def rendered(folder: Path, text: str, platform: Platform = LINUX) -> tuple[RenderedOutput, ...]:
    (folder / "meta.yaml").write_text(text)
    return render_recipe(read_recipe(folder), defaults(platform, CondaBuildRules()), platform).outputs


@pytest.mark.parametrize(
    ("recipe", "line", "message"),
    [
        (HEAD + "build:\n  noarch: none\n", 5, "noarch is 'none'"),
        (HEAD + "requirements:\n  run:\n    - foo: 1\n", 5, "is a mapping"),
        (HEAD + "requirements:\n  run_constrained:\n    - foo >=>1\n", 5, "'foo >=>1' is not a specification"),
        ("package:\n  name: demo\n  version: {other}\n", 3, "contains"),
        ("package:\n  name: demo\n  version: 1-2\n", 3, "contains '-'"),
        ("package:\n  name: Demo\n  version: 1\n", 2, "not in lower case"),
        (HEAD + "outputs:\n  - name: one\n  - name: two\n    build:\n      noarch: no-arch\n", 8, "the output 'two'"),
    ],
)
def test_a_rerender_refuses_what_conda_build_refuses(tmp_path: Path, recipe: str, line: int, message: str) -> None:
    with pytest.raises(InputError) as caught:
        rendered(tmp_path, recipe)
    (mistake,) = caught.value.mistakes
    assert (mistake.line, message in mistake.message) == (line, True), mistake


@pytest.mark.parametrize("spec", ["foo >=1,<2 | bar baz qux", "foo 1.*", "foo =1", "foo ==1 h0_0", "foo !=2.0,>1|<0.5"])
def test_a_constraint_that_conda_takes_is_taken(tmp_path: Path, spec: str) -> None:
    assert rendered(tmp_path, f"{HEAD}requirements:\n  run_constrained:\n    - {spec}\n")


@pytest.mark.parametrize("version", ["", "'{{ unknown }}'", ".1"])
def test_only_a_package_to_build_needs_a_version(tmp_path: Path, version: str) -> None:
    text = f"package:\n  name: demo\n  version: {version}\n"
    assert rendered(tmp_path, text)
    with pytest.raises(InputError, match=r"meta\.yaml:3: the version"):
        render_with_packages(read_recipe(tmp_path), defaults(LINUX, CondaBuildRules()), LINUX)


def test_a_pattern_is_searched_in_a_file_of_the_recipe(tmp_path: Path) -> None:
    (tmp_path / "version.py").write_text('name = "x"\nversion = "1.2"\n')
    call = "load_file_regex(load_file='version.py', regex_pattern='version = \"([0-9.]+)\"', from_recipe_dir=True)"
    text = f"{{% set found = {call} %}}\npackage:\n  name: demo\n  version: {{{{ found.group(1) }}}}\n"
    assert rendered(tmp_path, text)[0].version == "1.2"


def test_selectors_of_an_imported_file_count(tmp_path: Path) -> None:
    (tmp_path / "names.jinja").write_text("{% set v = '1' %}  # [linux]\n{% set v = '2' %}  # [win]\n")
    text = "{% from 'names.jinja' import v %}\npackage:\n  name: demo\n  version: {{ v }}\n"
    found = [rendered(tmp_path, text, platform)[0].version for platform in (LINUX, Platform("win", "64"), LINUX)]
    assert found == ["1", "2", "1"]
