"""Rendering recipe.yaml: its outputs, the variables that they use, and the variants that they stand for."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.model import RenderedOutput
from feedstock_tools.recipe.v1.recipe import render_recipe_v1
from feedstock_tools.recipe.v1_engine import read_v1
from feedstock_tools.rerender.configuration import Configuration
from feedstock_tools.variants.model import VariantConfig, WholeNumber

LINUX = Platform("linux", "64")
PYTHONS = ("3.10.* *_cpython", "3.11.* *_cpython")
CUDA = ("cuda_compiler_version", "c_compiler_version")


def outputs(
    folder: Path,
    recipe: str,
    values: dict[str, tuple[str, ...]],
    zip_keys: tuple[tuple[str, ...], ...] = (),
    *,
    platform: Platform = LINUX,
    all_branches: bool = False,
) -> tuple[RenderedOutput, ...]:
    (folder / "recipe.yaml").write_text(recipe)
    config = VariantConfig({"target_platform": (platform.subdir,), **values}, zip_keys)
    return render_recipe_v1(read_v1(folder / "recipe.yaml"), config, platform, all_branches=all_branches).outputs


def single(requirements: str = "", build: str = "", context: str = "") -> str:
    package = "package: {name: thing, version: 1.10}"
    return f"context:\n  zero: 0\n{context}{package}\nbuild: {{{build}}}\nrequirements: {{{requirements}}}\n"


def test_one_output_for_each_value_of_what_it_uses(tmp_path: Path) -> None:
    found = outputs(tmp_path, single("host: [python]"), {"python": PYTHONS, "unused": ("1", "2")})
    assert {one.variant["python"] for one in found} == set(PYTHONS)
    assert {one.used.own for one in found} == {frozenset({"python", "target_platform"})}
    assert {one.used.top_level_loop for one in found} == {frozenset({"python"})}


def test_version_and_build_number_are_as_the_recipe_writes_them(tmp_path: Path) -> None:
    (found,) = outputs(tmp_path, single(build="number: 3"), {})
    assert (found.name, found.version, found.build_number) == ("thing", "1.10", 3)
    assert found.build_string.endswith("_3")
    assert found.file_stem == f"thing-1.10-{found.build_string}"


def test_of_an_unused_key_the_first_value_counts_and_zip_groups_stay_whole(tmp_path: Path) -> None:
    (found,) = outputs(
        tmp_path,
        single(),
        {"unused": ("2", "1"), "cuda_compiler_version": ("None", "12.9"), "c_compiler_version": ("14", "13")},
        (CUDA,),
    )
    assert found.variants.values("unused") == ("2",)
    assert found.variants.axis("c_compiler_version").rows == (("None", "14"), ("12.9", "13"))


def test_a_row_of_a_zip_group_is_chosen_by_the_part_that_is_used(tmp_path: Path) -> None:
    recipe = single("build: [\"${{ compiler('cuda') if cuda_compiler_version != 'None' else 'make' }}\"]")
    values = {
        "cuda_compiler": ("cuda-nvcc",),
        "cuda_compiler_version": ("None", "12.9"),
        "c_compiler_version": ("14", "13"),
    }
    found = outputs(tmp_path, recipe, values, (CUDA,))
    used = {one.variant["c_compiler_version"]: "cuda_compiler" in one.used.own for one in found}
    assert used == {"14": False, "13": True}


def test_older_engines_counted_what_branches_mention_that_are_not_taken(tmp_path: Path) -> None:
    recipe = single("build: [{if: with_cuda == 'yes', then: [\"${{ compiler('cuda') }}\"]}]")
    values = {"with_cuda": ("no",), "cuda_compiler": ("nvcc",), "cuda_compiler_version": ("11.8", "12.9")}
    (now,) = outputs(tmp_path, recipe, values)
    before = outputs(tmp_path, recipe, values, all_branches=True)
    assert now.used.own == {"with_cuda", "target_platform"}
    assert {one.variant["cuda_compiler_version"] for one in before} == {"11.8", "12.9"}
    assert before[0].used.own == {*now.used.own, "cuda_compiler", "cuda_compiler_version"}


@pytest.mark.parametrize(
    ("skip", "left"),
    [
        ("linux", []),
        ("osx", list(PYTHONS)),
        ('match(python, "<3.11")', [PYTHONS[1]]),
        ("[win, 'match(python, \">=3.11\")']", [PYTHONS[0]]),
        ("[{if: linux, then: 'match(python, \"<3.11\")'}]", [PYTHONS[1]]),
        ("newest and unheard_of", list(PYTHONS)),
        ("oldest", [PYTHONS[1]]),
    ],
)
def test_a_recipe_without_outputs_is_skipped_where_it_says(tmp_path: Path, skip: str, left: list[str]) -> None:
    context = "  oldest: ${{ match(python, '<3.11') }}\n  newest: ${{ not match(python, '<3.11') }}\n"
    written = skip if skip.startswith("[") else f"'{skip}'"
    found = outputs(tmp_path, single("host: [python]", f"skip: {written}", context), {"python": PYTHONS})
    assert sorted(one.variant["python"] for one in found) == left


def test_flags_are_flags_and_not_texts(tmp_path: Path) -> None:
    found = outputs(tmp_path, single("host: [{if: shared, then: zlib}]"), {"shared": ("true", "false"), "zlib": ("1",)})
    assert {one.variant["shared"]: one.requirements.get("host") for one in found} == {"true": ("zlib",), "false": None}


def test_a_text_that_only_looks_like_a_number_stays_text_through_ci_support(tmp_path: Path) -> None:
    given = Configuration("linux_64_", LINUX, {"slot": ("01", "08", WholeNumber("8"))})
    (tmp_path / "linux_64_.yaml").write_bytes(given.to_bytes())
    read = Configuration.from_file(tmp_path / "linux_64_.yaml").values["slot"]
    found = outputs(tmp_path, single(build="string: 's${{ slot }}_0'"), {"slot": read})
    assert [one.build_string for one in found] == ["s01_0", "s08_0", "s8_0"]


SIBLINGS = """
recipe: {name: things, version: '2'}
outputs:
- package: {name: lib-thing}
  requirements: {host: [zlib]}
- package: {name: thing}
  build: {skip: [osx]}
  requirements:
    host: [python, "${{ pin_subpackage('lib-thing', exact=True) }}"]
    run: [python, "${{ pin_subpackage('lib-thing', exact=True) }}", "${{ pin_subpackage('lib-thing') }}"]
    run_constraints: [other <3]
- package: {name: meta}
  build: {noarch: generic}
"""


def test_siblings_are_not_variables_and_exact_pins_are_written_out(tmp_path: Path) -> None:
    found = outputs(tmp_path, SIBLINGS, {"zlib": ("1.3",), "python": PYTHONS[:1], "lib_thing": ("9",)})
    library, thing = (next(one for one in found if one.name == name) for name in ("lib-thing", "thing"))
    assert "lib_thing" not in thing.used.own
    assert thing.requirements["run"] == ("python", f"lib-thing 2 {library.build_string}", "lib-thing")
    assert thing.requirements["run_constrained"] == ("other <3",)


def test_what_is_for_all_platforms_does_not_use_the_platform(tmp_path: Path) -> None:
    meta = next(one for one in outputs(tmp_path, SIBLINGS, {}) if one.name == "meta")
    assert meta.noarch == "generic"
    assert "target_platform" not in meta.used.own


def test_an_output_that_is_skipped_is_left_out(tmp_path: Path) -> None:
    found = outputs(tmp_path, SIBLINGS, {}, platform=Platform("osx", "64"))
    assert [one.name for one in found] == ["lib-thing", "meta"]


@pytest.mark.parametrize(
    ("recipe", "line"),
    [
        ("package: [\n", 2),
        ("package: {name: thing}\n", None),
        (single("host: ['${{ unheard_of }}']"), 5),
        (single("host: ['${{ 1 + }}']"), None),
        ("", None),
        ("- 1\n", 1),
        ("\x00", 1),
        ("#" * 600_000, None),
        (single() + "\n" * 5_000, None),
    ],
    ids=["yaml", "no version", "undefined", "template", "empty", "list", "nul", "large", "long"],
)
def test_a_recipe_that_the_engine_refuses_is_an_error_in_the_input(
    tmp_path: Path, recipe: str, line: int | None
) -> None:
    with pytest.raises(InputError) as caught:
        outputs(tmp_path, recipe, {})
    (mistake,) = caught.value.mistakes
    assert mistake.path == tmp_path / "recipe.yaml"
    assert mistake.line in (line, None)


def test_nothing_is_left_in_the_folder_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    outputs(tmp_path, single("host: [python]", "skip: win"), {"python": PYTHONS})
    assert list(folder.iterdir()) == []
