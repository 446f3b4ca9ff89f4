"""A hand-written v1 feedstock is planned and built as written: numbers stay numbers, and its variants.yaml counts."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from feedstock_tools.builds.engines.contract import BuildRequest
from feedstock_tools.feedstock.configurations import outline
from feedstock_tools.feedstock.planned import PlannedConfiguration
from feedstock_tools.rerender.configuration import Configuration, read_configurations, rows_of, with_own_values
from feedstock_tools.rerender.outputs import output_files
from feedstock_tools.variants.model import WholeNumber
from tests.support.feedstocks import HERE, TinyFeedstock
from tests.support.needs import needs

RECIPE = """
recipe:
  name: typed
  version: "1.0"
outputs:
  - package: {name: typed}
    build:
      script: mkdir -p $PREFIX/share && echo ${{ abi }} ${{ flavour }} > $PREFIX/share/typed-${{ width }}
  - package: {name: typed-extra}
    build: {skip: extras == "off"}
about: {summary: a python module could be meant}
"""
#: Below the configuration: `abi` is not taken from here, `python` and `unheard_of` are used by nothing.
OWN = """
abi: [9]
width: [32, 64]
flavour:
  - if: unix
    then: plain
    else: spicy
extras: ["off"]
python: [3.11.* *_cpython, 3.12.* *_cpython]
unheard_of: [1, 2]
"""
CONFIGURATION = f"abi:\n- 4\ntarget_platform:\n- {HERE.subdir}\n"
NAME = f"{HERE.name}_"


def hashed(**contents: object) -> str:
    """rattler-build's hash of what an output used (crates/rattler_build_recipe/src/stage1/hash.rs)."""
    text = json.dumps({**contents, "target_platform": HERE.subdir}, sort_keys=True)
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:7]


FLAVOUR = "spicy" if sys.platform == "win32" else "plain"
FILES = sorted(f"typed-1.0-h{hashed(abi=4, width=width, flavour=FLAVOUR)}_0.conda" for width in (32, 64))


@pytest.fixture
def typed(tmp_path: Path, tiny_channel: Path) -> TinyFeedstock:
    """A feedstock as a person wrote it: `recipe.yaml`, its own `variants.yaml`, and numbers without quotes."""
    folder = tmp_path / "typed"
    files = {"recipe/recipe.yaml": RECIPE, "recipe/variants.yaml": OWN, f".ci_support/{NAME}.yaml": CONFIGURATION}
    for name, text in {**files, "conda-forge.yml": "conda_build_tool: rattler-build\n"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return TinyFeedstock(folder, tiny_channel)


def planned(feedstock: TinyFeedstock) -> list[dict[str, Any]]:
    """The outputs in `--list`."""
    run = feedstock.build("--list", "--json")
    assert run.returncode == 0, run.stderr
    (entry,) = json.loads(run.stdout)
    outputs: list[dict[str, Any]] = entry["outputs"]
    return outputs


def files_of(feedstock: TinyFeedstock) -> list[str]:
    """The result of `outputs`."""
    return sorted(file.file_name for file in output_files(feedstock.folder, read_configurations(feedstock.folder)))


def test_plan_and_outputs_name_the_same_files(typed: TinyFeedstock) -> None:
    assert files_of(typed) == FILES
    for _ in ("rendered", "from the cache"):
        assert sorted(Path(output["file"]).name for output in planned(typed)) == FILES


@needs("system", sys.platform != "win32", "the embedded engine does not run on Windows")
def test_the_files_that_are_built_have_these_names(typed: TinyFeedstock) -> None:
    run = typed.build(NAME)
    assert run.returncode == 0, run.stdout + run.stderr
    assert typed.packages() == FILES
    assert all(output["built_on"] for output in planned(typed))
    typed.edit("recipe/variants.yaml", "unheard_of: [1, 2]", "unheard_of: [3]")
    assert all(output["built_on"] for output in planned(typed))
    typed.edit("recipe/variants.yaml", "width: [32, 64]", "width: [32, '64']")
    assert [bool(output["built_on"]) for output in planned(typed)] == [True, False]


def test_rows_are_named_by_keys_that_the_recipe_uses(typed: TinyFeedstock) -> None:
    (configuration,) = outline(typed.folder)
    assert [row.name for row in configuration.rows] == [f"{NAME}_width32", f"{NAME}_width64"]
    assert configuration.short_name == f"{HERE.name}_cpu"
    assert configuration.rows[0].values.keys() == {"abi", "target_platform", "width", "flavour", "extras"}


ZIPPED = """
abi: [9]
width: [32, 64, 64]
flavour: [plain, plain, spicy]
extras: ["off", "off", "on"]
zip_keys: [[width, flavour, extras]]
"""


def test_zip_groups_of_the_own_file_stay_together(typed: TinyFeedstock) -> None:
    (typed.folder / "recipe" / "variants.yaml").write_text(ZIPPED)
    (configuration,) = outline(typed.folder)
    rows = [tuple(row.values[key] for key in ("width", "flavour", "extras")) for row in configuration.rows]
    assert rows == [("32", "plain", "off"), ("64", "plain", "off"), ("64", "spicy", "on")]
    assert sorted(Path(output["file"]).name for output in planned(typed)) == files_of(typed)


def test_keys_that_compilers_stand_for_are_found(typed: TinyFeedstock) -> None:
    recipe = "package: {name: typed, version: '1'}\nrequirements: {build: ['${{ compiler(\"c\") }}']}\n"
    (typed.folder / "recipe" / "recipe.yaml").write_text(recipe)
    (typed.folder / "recipe" / "variants.yaml").write_text("c_compiler: [gcc]\nc_compiler_version: [13, 14]\n")
    (configuration,) = with_own_values(typed.folder / "recipe", read_configurations(typed.folder))
    assert [row.values["c_compiler_version"] for row in rows_of(configuration)] == ["13", "14"]
    assert len(planned(typed)) == len(files_of(typed)) == 2


def test_a_recipe_that_cannot_be_rendered_is_refused_with_the_reason(typed: TinyFeedstock) -> None:
    typed.edit("recipe/recipe.yaml", 'version: "1.0"', "version: ${{ abi + flavour }}")
    (entry,) = json.loads(typed.build("--list", "--json").stdout)
    assert entry["refusal"]


def test_a_mistake_in_the_own_file_is_reported_with_its_place(typed: TinyFeedstock) -> None:
    typed.edit("recipe/variants.yaml", "if: unix", "if: unix and")
    run = typed.build("--list")
    assert run.returncode == 2
    assert "variants.yaml:5:" in run.stderr


NUMBERS = {"abi": WholeNumber("04"), "text": "4", "flag": "true"}


def test_numbers_and_strings_stay_distinct_in_json() -> None:
    request = BuildRequest("row", Path("recipe.yaml"), NUMBERS, "linux-64", "linux-64", (), Path(), ())
    row = {"name": "row", "values": NUMBERS, "python": None, "cuda": None, "outputs": (), "shared": (), "traits": ()}
    plan = PlannedConfiguration.from_json({"name": "c", "platform": "linux-64", "rows": [row], "channels": []})
    again = PlannedConfiguration.from_json(json.loads(json.dumps(plan.to_json())))
    for values in (BuildRequest.from_json(json.loads(json.dumps(request.to_json()))).values, again.rows[0].values):
        assert values == NUMBERS
        assert [key for key, value in values.items() if isinstance(value, WholeNumber)] == ["abi"]


def test_a_meta_yaml_has_no_variants_yaml(tmp_path: Path) -> None:
    (tmp_path / "meta.yaml").write_text("package: {name: old, version: '1'}\nrequirements: {host: [width]}\n")
    (tmp_path / "conda_build_config.yaml").write_text("width: [32, 64]\n")
    given = (Configuration(NAME, HERE, {"abi": ("4",)}),)
    assert with_own_values(tmp_path, given) == given
