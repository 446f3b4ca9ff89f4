"""The choice of Pythons belongs to the outputs that have one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from textwrap import dedent

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.generate.spec.reading import read_spec, spec_from_text
from feedstock_tools.generate.texts.rendering import render
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.v0 import recipe as v0
from feedstock_tools.recipe.v1 import recipe as v1
from feedstock_tools.recipe.v1_engine import read_v1
from feedstock_tools.rerender.rerendering import rerender
from feedstock_tools.variants.files import defaults, load
from feedstock_tools.variants.model import combine

PINNING = dedent("""\
    c_compiler: [gcc]
    c_compiler_version: ["14"]
    python:
      - 3.10.* *_cpython
      - 3.11.* *_cpython
      - 3.12.* *_cpython
      - 3.13.* *_cp313
    pin_run_as_build:
      python: {min_pin: x.x, max_pin: x.x}
""")
SPEC = dedent("""\
    name: demo
    version: 1.2.0
    format: {format}
    platforms: {{linux-64: }}
    python: [3.12, 3.13]
    outputs:
      - name: libdemo
        kind: library
        script: [make install]
        test: {{commands: [demo]}}
        requirements:
          build: [compiler: c]
      - name: pydemo
        kind: python
        script: [python -m pip install .]
        test: {{imports: [demo]}}
        pins: [libdemo]
      - {{name: demo, kind: metapackage, pins: [pydemo]}}
    {more}
    about: {{homepage: https://example.org, license: MIT, license_file: LICENSE, summary: A demonstration}}
    maintainers: [someone]
""")


def _feedstock(folder: Path, recipe_format: str, more: str = "") -> Path:
    folder.mkdir()
    (folder / "feedstock.yaml").write_text(SPEC.format(format=recipe_format, more=more))
    for path, text in render(read_spec(folder)).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "pinning.yaml").write_text(PINNING)
    return folder


def _built(folder: Path, recipe_format: str) -> Counter[str]:
    """The number of builds of each output on linux-64."""
    linux = Platform.parse("linux-64")
    config = combine([defaults(linux), load(folder / "pinning.yaml", linux)])
    if recipe_format == "v0":
        outputs = v0.render_recipe(v0.read_recipe(folder / "recipe"), config, linux).outputs
    else:
        outputs = v1.render_recipe_v1(read_v1(folder / "recipe" / "recipe.yaml"), config, linux).outputs
    return Counter(output.name for output in outputs if not output.skip)


@pytest.mark.parametrize("recipe_format", ["v0", "v1"])
def test_a_library_is_built_once_and_what_has_a_python_once_for_each_that_is_listed(
    recipe_format: str, tmp_path: Path
) -> None:
    feedstock = _feedstock(tmp_path / "demo", recipe_format)

    assert _built(feedstock, recipe_format) == {"libdemo": 1, "pydemo": 2, "demo": 2}


@pytest.mark.parametrize("recipe_format", ["v0", "v1"])
def test_a_skip_that_names_a_python_leaves_the_library_there(recipe_format: str, tmp_path: Path) -> None:
    feedstock = _feedstock(tmp_path / "demo", recipe_format, "skip: [python < 3.13]")

    assert _built(feedstock, recipe_format) == {"libdemo": 1, "pydemo": 1, "demo": 1}


@pytest.mark.parametrize("recipe_format", ["v0", "v1"])
def test_a_list_without_the_first_python_of_the_pinning_has_jobs(recipe_format: str, tmp_path: Path) -> None:
    feedstock = _feedstock(tmp_path / "demo", recipe_format)

    assert len(rerender(feedstock, pinning=feedstock / "pinning.yaml").configurations) == 1


def test_a_build_that_runs_once_with_a_python_is_skipped_as_a_whole(tmp_path: Path) -> None:
    staged = "build: {script: build.sh, requirements: {host: [python]}}"
    feedstock = tmp_path / "demo"
    (feedstock / "recipe").mkdir(parents=True)
    (feedstock / "recipe" / "build.sh").touch()
    (feedstock / "feedstock.yaml").write_text(SPEC.format(format="v0", more=staged))

    recipe = next(text for path, text in render(read_spec(feedstock)).items() if path.name == "meta.yaml")

    assert recipe.count("skip: true  # [py not in (312, 313)]") == 1


def test_a_self_contained_spec_without_python_outputs_needs_no_list(tmp_path: Path) -> None:
    text = SPEC.format(format="v1", more="pinning: self-contained").replace("python: [3.12, 3.13]\n", "")
    start, end = text.index("  - name: pydemo"), text.index("pinning: self")
    feedstock = tmp_path / "feedstock.yaml"
    feedstock.write_text(text[:start] + text[end:])

    assert "python:" not in "".join(render(read_spec(feedstock)).values())


def test_pythons_that_do_not_exist_are_refused_with_the_nearest() -> None:
    text = """\
name: demo
version: 1.0
platforms: {linux-64: }
python: [3.10, 3.1, 3.99, 2.7]
outputs:
  - {name: demo, kind: python, script: {template: pip}, test: {imports: [demo]}}
about: {license: MIT, license_file: LICENSE, homepage: https://example.org/, summary: For tests.}
maintainers: [someone]
"""
    with pytest.raises(InputError) as refused:
        spec_from_text(text)

    assert [(each.line, each.message) for each in refused.value.mistakes] == [
        (4, "there is no Python 3.1"),
        (4, "there is no Python 3.99"),
    ]
    assert "Did you mean" in str(refused.value.mistakes[0].hint)
