"""What solvers take before and after a change, by the driver of a machine: from the metadata of both states alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from feedstock_tools.check.choices import ChoiceChange, _after, _channel
from feedstock_tools.check.differences import compare_feedstocks
from feedstock_tools.check.renderings import Renderings
from feedstock_tools.report.checks.differences import differences_markdown
from tests.check.linting.feedstocks import META, V1, feedstock
from tests.support import command

GUARD = '        - __cuda  # [cuda_compiler_version != "None"]\n'
BUILD = '        - {{ compiler("c") }}\n        - {{ stdlib("c") }}\n      host:\n        - zlib\n'
CUDA = '        - {{ compiler("cuda") }}  # [cuda_compiler_version != "None"]\n'
NUMBERS = '  number: 1  # [cuda_compiler_version == "None"]\n  number: 201  # [cuda_compiler_version != "None"]\n'
#: Solvers prefer the CUDA build: its number is higher.
PREFERRED = META.replace("  number: 1\n", NUMBERS).replace(BUILD, BUILD.replace("      host", f"{CUDA}      host"))
BUMPED = PREFERRED.replace("number: 201", "number: 202").replace("number: 1 ", "number: 2 ")
#: A machine, what its users get, and what they got.
Answer = tuple[str, str, str]


def states(folder: Path, before: str, after: str, old: tuple[str, ...], new: tuple[str, ...]) -> tuple[Path, Path]:
    found = []
    for name, recipe, cudas in (("before", before, old), ("after", after, new)):
        (folder / name).mkdir()
        state = feedstock(folder / name, recipe, cudas)
        for path in (state / ".ci_support").glob("*.yaml"):
            path.write_text("cuda_compiler:\n- cuda-nvcc\n" + path.read_text())
        found.append(state)
    return found[0], found[1]


def of_library(
    folder: Path, before: str, after: str, old: tuple[str, ...], new: tuple[str, ...]
) -> list[tuple[str, ...]]:
    choices = compare_feedstocks(*states(folder, before, after, old, new)).choices
    return [(each.machine, each.after, each.before) for each in choices if each.name == "libdemo"]


def test_a_new_cuda_version_reaches_the_drivers_that_run_it(tmp_path: Path) -> None:
    found = of_library(tmp_path, PREFERRED, BUMPED, ("None", "12.6"), ("None", "12.9"))
    assert found == [("driver 12.0 and newer", "CUDA 12.9", "CUDA 12.6")]


def test_a_new_major_version_reaches_new_drivers_only(tmp_path: Path) -> None:
    found = of_library(tmp_path, PREFERRED, BUMPED, ("None", "12.9"), ("None", "12.9", "13.0"))
    assert found == [("driver 13.0 and newer", "CUDA 13.0", "CUDA 12.9")]


def test_a_cuda_version_that_goes_leaves_its_drivers_the_new_cpu_build(tmp_path: Path) -> None:
    found = of_library(tmp_path, PREFERRED, BUMPED.replace("1.2", "1.3"), ("None", "11.8", "12.9"), ("None", "12.9"))
    assert found == [("driver 11.0 to 11.8", "CPU", "CUDA 11.8")]


def test_a_guard_that_goes_gives_the_cuda_build_to_machines_without_a_gpu(tmp_path: Path) -> None:
    found = of_library(tmp_path, PREFERRED, BUMPED.replace(GUARD, ""), ("None", "12.9"), ("None", "12.9"))
    assert found == [("no GPU", "CUDA 12.9", "CPU")]


def test_a_platform_that_goes_keeps_the_builds_that_it_had(tmp_path: Path) -> None:
    before, after = states(tmp_path, PREFERRED, PREFERRED, ("None", "12.9"), ("None", "12.9"))
    for path in list((before / ".ci_support").glob("linux_64*.yaml")):
        text = path.read_text().replace("linux-64", "linux-aarch64")
        path.with_name(path.name.replace("linux_64", "linux_aarch64")).write_text(text)
    old, new = (
        _channel([Renderings(at).packages(each) for each in Renderings(at).configurations]) for at in (before, after)
    )
    kept = {(offer.platform.subdir, offer.package.record.name) for offer in _after(old, new).offers}
    assert ("linux-aarch64", "libdemo") in kept
    assert ("linux-aarch64", "cuda-version") in kept


def test_equal_build_numbers_are_left_to_time(tmp_path: Path) -> None:
    equal = BUMPED.replace("number: 202", "number: 2")
    found = of_library(tmp_path, PREFERRED, equal.replace("1.2", "1.3"), ("None", "12.9"), ("None", "12.9"))
    assert found == [("driver 12.0 and newer", "CPU or CUDA 12.9 (whichever is newer)", "CUDA 12.9")]


def test_every_cuda_version_that_time_alone_may_choose_is_named(tmp_path: Path) -> None:
    equal = BUMPED.replace("number: 202", "number: 2")
    found = of_library(tmp_path, PREFERRED, equal, ("None", "12.9"), ("None", "12.9", "13.0"))
    assert ("driver 13.0 and newer", "CPU or CUDA 12.9 or CUDA 13.0 (whichever is newer)", "CUDA 12.9") in found


def test_a_newer_cudatoolkit_is_preferred_whatever_was_built_last(tmp_path: Path) -> None:
    guard = '        - cudatoolkit {{ cuda_compiler_version }}.*  # [cuda_compiler_version != "None"]\n'
    after = BUMPED.replace("1.2", "1.3").replace(GUARD, f"{GUARD}{guard}")
    found = of_library(tmp_path, PREFERRED, after, ("10.1",), ("10.1", "10.2"))
    assert ("driver 10.2 and newer", "CUDA 10.2", "CUDA 10.1") in found


@pytest.mark.parametrize("spec", ["torch * {{ kind }}*", "torch =*={{ kind }}*"])
def test_a_constraint_on_the_builds_of_a_linked_package_leaves_the_choice_to_it(tmp_path: Path, spec: str) -> None:
    string = '{% set kind = "cuda" if cuda_compiler_version != "None" else "cpu" %}\n'
    equal = BUMPED.replace("number: 202", "number: 2").replace("1.2", "1.3")
    constrained = equal.replace("        - zlib\n", "        - zlib\n        - torch\n", 1).replace(
        GUARD, f"{GUARD}      run_constrained:\n        - {spec}\n", 1
    )
    found = of_library(tmp_path, PREFERRED, string + constrained, ("None", "12.9"), ("None", "12.9"))
    assert found == [("driver 12.0 and newer", "CPU or CUDA 12.9 (as torch prefers)", "CUDA 12.9")]


def test_a_build_number_that_does_not_grow_leaves_users_the_build_from_before(tmp_path: Path) -> None:
    lower = PREFERRED.replace("number: 201", "number: 101")
    found = of_library(tmp_path, PREFERRED, lower, ("None", "12.6"), ("None", "12.9"))
    assert found == [("driver 12.0 and newer", "CUDA 12.6 (a build from before)", "CUDA 12.6")]


@pytest.mark.parametrize("recipe", [META, V1], ids=["meta.yaml", "recipe.yaml"])
def test_nothing_is_said_where_users_get_the_same_as_before(tmp_path: Path, recipe: str) -> None:
    after = recipe.replace("- zlib", "- bzip2")
    assert compare_feedstocks(*states(tmp_path, recipe, after, ("None", "12.9"), ("None", "12.9"))).choices == ()


def test_the_answer_is_shown_in_every_form(tmp_path: Path) -> None:
    pair = states(tmp_path, PREFERRED, BUMPED, ("None", "12.6"), ("None", "12.9"))
    line = "libdemo on linux-64 with driver 12.0 and newer: CUDA 12.9 instead of CUDA 12.6"
    words = ["--folders", *map(str, pair)]
    shown = command.run(command.tool("diff", *words), tmp_path).stdout
    assert (
        "What solvers take:\n  demo on linux-64 with driver 12.0 and newer: CUDA 12.9 instead of CUDA 12.6\n" in shown
    )
    assert f"  {line}\n" in shown
    assert f"- {line}\n" in differences_markdown(compare_feedstocks(*pair))
    entries = json.loads(command.run(command.tool("diff", *words, "--json"), tmp_path).stdout)["choices"]
    assert ChoiceChange(**{**entries[-1], "platforms": tuple(entries[-1]["platforms"])}) == ChoiceChange(
        "libdemo", ("linux-64",), "driver 12.0 and newer", "CUDA 12.6", "CUDA 12.9"
    )


def test_a_recipe_that_names_too_many_drivers_is_not_asked_about(tmp_path: Path) -> None:
    many = "".join(f"        - __cuda >={number}.0\n" for number in range(12, 90))
    pair = states(tmp_path, PREFERRED, PREFERRED.replace(GUARD, many), ("None", "12.9"), ("None", "12.9"))
    differences = compare_feedstocks(*pair)
    assert differences.choices == ()
    assert differences.why_no_choices == "the requirements name more than 50 CUDA versions of drivers"


@pytest.mark.parametrize(
    ("pinned", "decided"), [("torch ==2.1", "as torch prefers"), ("torch >=2.1", "whichever is newer")]
)
def test_an_upper_bound_of_one_build_alone_leaves_the_choice_to_what_it_bounds(
    tmp_path: Path, pinned: str, decided: str
) -> None:
    run = f'      run:\n        - {pinned}  # [cuda_compiler_version != "None"]\n        - torch\n'
    equal = BUMPED.replace("number: 202", "number: 2").replace("1.2", "1.3").replace("      run:\n", run, 1)
    found = of_library(tmp_path, PREFERRED, equal, ("None", "12.9"), ("None", "12.9"))
    assert found == [("driver 12.0 and newer", f"CPU or CUDA 12.9 ({decided})", "CUDA 12.9")]
