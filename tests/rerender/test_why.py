"""The reasons for values and keys: one small feedstock of each format with every kind of reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from feedstock_tools.cli.why import why as command
from feedstock_tools.errors import InputError
from feedstock_tools.report.why import as_lines
from feedstock_tools.rerender.why.model import Explanation
from feedstock_tools.rerender.why.reasons import explain

PINNING = """\
c_compiler:
  - gcc                 # [linux]
  - clang               # [osx]
c_compiler_version:
  - 13                  # [linux]
  - 18                  # [osx]
  - 14                  # [linux]
cuda_compiler_version:
  - None
  - 12.9                # [linux]
zip_keys:
  -                     # [linux]
    - c_compiler_version      # [linux]
    - cuda_compiler_version   # [linux]
c_stdlib:
  - sysroot             # [linux]
  - macosx_deployment_target  # [osx]
c_stdlib_version:
  - 2.17                # [linux]
  - 11.0                # [osx]
MACOSX_DEPLOYMENT_TARGET:
  - 12.0                # [osx]
cdt_name:
  - conda
CONDA_BUILD_SYSROOT:
  - /opt/sdk
channel_sources:
  - conda-forge
python:
  - 3.11.* *_cpython
  - 3.12.* *_cpython
python_min:
  - '3.10'
numpy:
  - 2
zlib:
  - 1.2
openssl:
  - 3
fmt:
  - 10
spdlog:
  - 1
flavour:
  - vanilla
depth:
  - 3
color:
  - red
colors:
  - red
mpi:
  - nompi
openmpi:
  - 4
unused:
  - 1
"""
RECIPE = """\
{% set version = "1.0" %}
{% set shade = color %}
{% if flavour == "vanilla" %}
{% set sweet = True %}
{% endif %}
{% for one in colors %}
{% endfor %}
package:
  name: sample
  version: {{ version }}
build:
  number: 0
  skip: true  # [depth == 4]
  force_use_keys:
    - spdlog
requirements:
  build:
    - {{ compiler('c') }}
    - {{ stdlib('c') }}
    - {{ cdt('libx11') }}   # [linux]
  host:
    - python
    - fmt {{ fmt }}
    - {{ pin_compatible('numpy') }}
    - zlib
    - mpi-tools {{ mpi }}
    - python >={{ python_min }}
  run:
    - python
"""
#: Key -> kind of use and line of the recipe (None: another file, or no line) on Linux.
USES: dict[str, list[tuple[str, int | None]]] = {
    "color": [("assignment", 2)],
    "flavour": [("condition", 3)],
    "colors": [("loop", 6)],
    "depth": [("selector", 13)],
    "spdlog": [("force_use_keys", 15)],
    "c_compiler": [("compiler", 18)],
    "c_stdlib": [("stdlib", 19)],
    "cdt_name": [("cdt", 20)],
    "CONDA_BUILD_SYSROOT": [("stdlib", 19), ("compiler", 18)],
    "fmt": [("template", 23)],
    "numpy": [("pin", 24)],
    "zlib": [("requirement", 25)],
    "mpi": [("template", 26)],
    "openmpi": [("mpi", 26)],
    "python": [("requirement", 22), ("requirement", 29)],
    "openssl": [("script", None)],
    "channel_sources": [("always kept", None)],
    "target_platform": [("platform", None)],
    "docker_image": [("always kept", None)],
}


def lay_out(tmp_path: Path) -> Path:
    """A feedstock, with the pinning beside it."""
    recipe = tmp_path / "feedstock" / "recipe"
    recipe.mkdir(parents=True)
    (recipe / "meta.yaml").write_text(RECIPE)
    (recipe / "build.sh").write_text('echo "building"\nmake OPENSSL=$openssl all\n')
    (recipe / "conda_build_config.yaml").write_text("zlib:\n  - 1.3\n")
    (recipe.parent / "conda-forge.yml").write_text("provider: {win_64: null}\n")
    (tmp_path / "pinning").mkdir()
    (tmp_path / "pinning" / "conda_build_config.yaml").write_text(PINNING)
    return recipe.parent


@pytest.fixture
def feedstock(tmp_path: Path) -> Path:
    return lay_out(tmp_path)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Explanation]:
    """All explanations for one configuration of the feedstock."""
    return _all_of(lay_out(tmp_path_factory.mktemp("v0")))


def _all_of(feedstock: Path) -> dict[str, Explanation]:
    name = ask(feedstock, "target_platform").configuration
    return {one.key: one for one in explain(feedstock, name, pinning=feedstock.parent / "pinning")}


def migrate(feedstock: Path, name: str, text: str) -> Path:
    """Add a migration to the feedstock, and the same one to the pinning."""
    for folder in (
        feedstock / ".ci_support" / "migrations",
        feedstock.parent / "pinning" / "share" / "conda-forge" / "migrations",
    ):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return feedstock.parent / "pinning" / "share" / "conda-forge" / "migrations" / name


def ask(feedstock: Path, key: str, platform: str = "linux_64") -> Explanation:
    found = explain(feedstock, key, pinning=feedstock.parent / "pinning")
    return next(one for one in found if one.configuration.startswith(platform))


def value_lines(answer: Explanation) -> dict[str, list[str]]:
    return {str(one.value): [f"{place.path.name}:{place.line}" for place in one.places] for one in answer.values}


def line_of(text: str, wanted: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if line.startswith(wanted))


@pytest.mark.parametrize("key", USES)
def test_each_kind_of_use_is_named_with_its_line(answers: dict[str, Explanation], key: str) -> None:
    uses = [
        (one.kind, one.place.line if one.place and one.place.path.name == "meta.yaml" else None)
        for one in answers[key].uses
    ]
    assert sorted(uses, key=str) == sorted(USES[key], key=str)


def test_a_use_in_a_script_names_the_line_of_the_script(answers: dict[str, Explanation]) -> None:
    (use,) = answers["openssl"].uses
    assert use.place is not None
    assert (use.place.path.name, use.place.line, use.place.text) == ("build.sh", 2, "make OPENSSL=$openssl all")


def test_python_min_is_kept_for_its_template(answers: dict[str, Explanation]) -> None:
    kinds = {(one.kind, one.place.line) for one in answers["python_min"].uses if one.place}
    assert kinds == {("template", line_of(RECIPE, "    - python >="))}


def test_a_condition_that_contains_a_longer_name_is_reported(feedstock: Path) -> None:
    recipe = feedstock / "recipe" / "meta.yaml"
    recipe.write_text(RECIPE.replace("flavour ==", "fmt_style == 1 and flavour =="))
    use = next(one for one in ask(feedstock, "fmt").uses if one.kind == "condition")
    assert "longer name" in use.why


def test_a_value_of_the_pinning_is_named_by_its_own_line(answers: dict[str, Explanation]) -> None:
    answer = answers["python"]
    first = line_of(PINNING, "python:")
    assert value_lines(answer) == {
        "3.11.* *_cpython": [f"conda_build_config.yaml:{first + 1}"],
    }
    assert answer.splits_jobs


def test_what_the_recipe_overrides_is_reported(answers: dict[str, Explanation]) -> None:
    answer = answers["zlib"]
    assert [str(place.path.parent.name) for one in answer.values for place in one.places] == ["recipe"]
    assert [(one.effect, one.values, one.replaced) for one in answer.settings] == [
        ("sets", ("1.2",), ()),
        ("replaces", ("1.3",), ("1.2",)),
    ]


def test_a_row_of_a_zip_group_keeps_its_own_line(feedstock: Path) -> None:
    (feedstock / "recipe" / "meta.yaml").write_text(RECIPE.replace("fmt {{ fmt }}", "x {{ cuda_compiler_version }}"))
    found = explain(feedstock, "c_compiler_version", pinning=feedstock.parent / "pinning")
    lines = {
        value: places for one in found for value, places in value_lines(one).items() if "linux" in one.configuration
    }
    first = line_of(PINNING, "c_compiler_version:")
    assert lines == {
        "13": [f"conda_build_config.yaml:{first + 1}"],
        "14": [f"conda_build_config.yaml:{first + 3}"],
    }


def test_a_migration_that_raises_a_pin_is_named(feedstock: Path) -> None:
    path = migrate(feedstock, "fmt11.yaml", "migrator_ts: 1\n__migrator:\n  kind: version\nfmt:\n  - 11\n")
    answer = ask(feedstock, "fmt")
    assert answer.values[0].places[0].path == path
    assert value_lines(answer) == {"11": ["fmt11.yaml:5"]}
    assert [one.effect for one in answer.settings] == ["sets", "replaces"]


def test_a_migration_that_changes_nothing_agrees_with_the_pinning(feedstock: Path) -> None:
    migrate(feedstock, "fmt10.yaml", "migrator_ts: 1\n__migrator:\n  kind: version\nfmt:\n  - 10\n")
    answer = ask(feedstock, "fmt")
    first = line_of(PINNING, "fmt:")
    assert value_lines(answer) == {"10": [f"conda_build_config.yaml:{first + 1}", "fmt10.yaml:5"]}
    assert answer.settings[-1].effect == "repeats"


def test_rows_that_a_migration_adds_come_from_it(feedstock: Path) -> None:
    migrate(
        feedstock,
        "python313.yaml",
        "migrator_ts: 2\n__migrator:\n  operation: key_add\n  primary_key: python\npython:\n  - 3.13.* *_cp313\n",
    )
    found = explain(feedstock, "python", pinning=feedstock.parent / "pinning")
    assert {line for one in found for line in value_lines(one).get("3.13.* *_cp313", [])} == {"python313.yaml:6"}


def test_part_of_a_zip_group_in_the_recipe_is_reported_as_ignored(feedstock: Path) -> None:
    own = feedstock / "recipe" / "conda_build_config.yaml"
    own.write_text("cuda_compiler_version:\n  - 12.9\n")
    (feedstock / "recipe" / "meta.yaml").write_text(RECIPE.replace("fmt {{ fmt }}", "x {{ cuda_compiler_version }}"))
    steps = ask(feedstock, "cuda_compiler_version").settings
    assert [one.effect for one in steps] == ["sets", "is ignored"]


def test_on_macos_the_higher_version_names_the_key_it_is_from(feedstock: Path) -> None:
    answer = ask(feedstock, "c_stdlib_version", "osx_64")
    target = line_of(PINNING, "MACOSX_DEPLOYMENT_TARGET:")
    assert value_lines(answer) == {"12.0": [f"conda_build_config.yaml:{target + 1}"]}
    assert answer.values[0].rule == "on macOS it is at least as high as MACOSX_DEPLOYMENT_TARGET"
    added = ask(feedstock, "MACOSX_SDK_VERSION", "osx_64")
    assert [one.kind for one in added.uses] == ["macOS"]


def test_on_macos_a_deployment_target_is_added_beside_the_c_library(feedstock: Path) -> None:
    pinning = feedstock.parent / "pinning" / "conda_build_config.yaml"
    pinning.write_text(PINNING.replace("MACOSX_DEPLOYMENT_TARGET:\n  - 12.0                # [osx]\n", ""))
    answer = ask(feedstock, "MACOSX_DEPLOYMENT_TARGET", "osx_64")
    assert [one.kind for one in answer.uses] == ["macOS"]
    assert value_lines(answer) == {"11.0": [f"conda_build_config.yaml:{line_of(PINNING, 'c_stdlib_version:') + 2}"]}


def test_zip_keys_and_pins_name_the_keys_that_keep_them(feedstock: Path) -> None:
    (feedstock / "recipe" / "meta.yaml").write_text(RECIPE.replace("fmt {{ fmt }}", "x {{ cuda_compiler_version }}"))
    zips, pins = ask(feedstock, "zip_keys"), ask(feedstock, "pin_run_as_build")
    assert [one.why.split(" go")[0] for one in zips.uses] == ["c_compiler_version, cuda_compiler_version"]
    assert value_lines(zips) == {
        "c_compiler_version, cuda_compiler_version": [f"conda_build_config.yaml:{line_of(PINNING, 'zip_keys:')}"]
    }
    assert [one.why for one in pins.uses] == ["python is in the file"]


def test_a_configuration_s_name_asks_for_all_its_keys(answers: dict[str, Explanation]) -> None:
    assert {*USES, "pin_run_as_build"} <= answers.keys()


def test_a_key_that_nothing_uses_is_reported_with_its_place(feedstock: Path) -> None:
    with pytest.raises(InputError, match="nothing uses it") as caught:
        explain(feedstock, "unused", pinning=feedstock.parent / "pinning")
    assert caught.value.mistakes[0].line == line_of(PINNING, "unused:") + 1


def test_a_wrong_name_brings_the_near_ones(feedstock: Path) -> None:
    with pytest.raises(InputError, match="neither a key nor a configuration") as caught:
        explain(feedstock, "pyhton", pinning=feedstock.parent / "pinning")
    assert "The nearest are: python" in str(caught.value)


def test_text_shares_what_is_the_same_and_json_holds_every_place(feedstock: Path) -> None:
    pinning = feedstock.parent / "pinning"
    lines = list(as_lines(explain(feedstock, "zlib", pinning=pinning), feedstock))
    assert sum(line.startswith("  in ") and line.endswith(" more") for line in lines) == 1
    assert "    recipe/conda_build_config.yaml:2  - 1.3" in lines
    run = CliRunner().invoke(command, ["zlib", str(feedstock), "--pinning", str(pinning), "--json"])
    answers = json.loads(run.stdout)
    lines = list(as_lines(explain(feedstock, "c_compiler_version", pinning=pinning), feedstock))
    assert sum("c_compiler_version, in each of these" in line for line in lines) == 1
    places = [line for line in lines if line.startswith("    recipe/meta.yaml:")]
    assert places
    assert len(places) == len(set(places))
    assert answers[0]["values"][0]["places"][0]["line"] == 2
    assert answers[0]["uses"][0]["kind"] == "requirement"


@pytest.mark.parametrize(
    "words", ["feedstock zlib linux_64*", "zlib feedstock linux_64*", "./feedstock zlib linux_64*"]
)
def test_the_feedstock_may_come_before_the_key(feedstock: Path, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    monkeypatch.chdir(feedstock.parent)
    run, last = (
        CliRunner().invoke(command, [*given, "--pinning", "pinning"])
        for given in (words.split(), ["zlib", "linux_64*", "--feedstock", "feedstock"])
    )
    assert (run.exit_code, run.stdout) == (0, last.stdout), run.output
    assert run.stdout.startswith("zlib\n  in linux_64_")


RECIPE_V1 = """\
context:
  shade: ${{ color }}
recipe:
  name: sample
  version: "1.0"
build:
  number: 0
outputs:
  - package:
      name: sample
    build:
      skip: depth == 4
      variant:
        use_keys:
          - spdlog
    requirements:
      build:
        - ${{ compiler('c') }}
        - ${{ stdlib('c') }}
        - if: flavour == "vanilla"
          then: fmt ${{ fmt }}.*
        - if: flavour == "chocolate"
          then: openssl ${{ openssl }}.*
      host:
        - zlib
        - name-${{ shade }}
"""
USES_V1 = {
    "color": [("expression", 2)],
    "depth": [("skip", 12)],
    "spdlog": [("use_keys", 15)],
    "c_compiler_version": [("compiler", 18)],
    "c_stdlib": [("stdlib", 19)],
    "flavour": [("condition", 20), ("condition", 22)],
    "fmt": [("expression", 21)],
    "zlib": [("requirement", 25)],
}


def as_v1(feedstock: Path) -> Path:
    (feedstock / "recipe" / "meta.yaml").unlink()
    (feedstock / "recipe" / "recipe.yaml").write_text(RECIPE_V1)
    (feedstock / "conda-forge.yml").write_text("conda_build_tool: rattler-build\nprovider: {win_64: null}\n")
    return feedstock


@pytest.fixture
def feedstock_v1(tmp_path: Path) -> Path:
    return as_v1(lay_out(tmp_path))


@pytest.fixture(scope="module")
def answers_v1(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Explanation]:
    return _all_of(as_v1(lay_out(tmp_path_factory.mktemp("v1"))))


@pytest.mark.parametrize("key", USES_V1)
def test_each_kind_of_use_in_a_v1_recipe_is_named_with_its_line(answers_v1: dict[str, Explanation], key: str) -> None:
    uses = [(one.kind, one.place.line if one.place else None) for one in answers_v1[key].uses]
    assert uses == USES_V1[key]


def test_a_key_of_a_branch_that_is_not_taken_is_not_there(feedstock_v1: Path) -> None:
    with pytest.raises(InputError, match="nothing uses it"):
        explain(feedstock_v1, "openssl", pinning=feedstock_v1.parent / "pinning")


def test_a_value_of_variants_yaml_is_named_by_its_line(feedstock_v1: Path) -> None:
    (feedstock_v1 / "recipe" / "variants.yaml").write_text("fmt:\n  - if: linux\n    then: 12\n    else: 9\n")
    assert value_lines(ask(feedstock_v1, "fmt")) == {"12": ["variants.yaml:3"]}
