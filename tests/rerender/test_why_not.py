"""Why there is no job: small feedstocks of both formats, in each of which one thing takes a value or platform away."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from feedstock_tools.cli.rerender import rerender as rerender_command
from feedstock_tools.cli.why import why as command
from feedstock_tools.errors import InputError
from feedstock_tools.rerender.rerendering import rerender
from feedstock_tools.rerender.why.absence import why_not
from feedstock_tools.rerender.why.model import Absence, Loss, read_wish

PINNING = """\
c_compiler:
  - gcc
c_compiler_version:
  - 14
  - 13             # [linux and os.environ.get("CF_CUDA_ENABLED", "False") == "True"]
cuda_compiler:
  - cuda-nvcc
cuda_compiler_version:
  - None
  - 12.9           # [linux and os.environ.get("CF_CUDA_ENABLED", "False") == "True"]
zip_keys:
  - - c_compiler_version
    - cuda_compiler_version
python:
  - 3.12.* *_cpython
  - 3.13.* *_cp313
mpi:
  - nompi
"""
PYTHON314 = """\
migrator_ts: 1
__migrator:
  operation: key_add
  primary_key: python
  ordering:
    python:
      - 3.12.* *_cpython
      - 3.13.* *_cp313
      - 3.14.* *_cp314
python:
  - 3.14.* *_cp314
"""
FORGE = "provider: {linux_64: azure, osx_64: azure, win: azure}\nconda_build_tool: TOOL\n"
V0 = """\
package:
  name: thing
  version: '1'
build:
  number: 0
  skip: true  # [win]
  skip: true  # [linux and py == 313 and cuda_compiler_version != "None"]
requirements:
  build:
    - {{ compiler('c') }}
    - {{ compiler('cuda') }}  # [cuda_compiler_version != "None"]
  host:
    - python
"""
V1 = """\
context:
  gpu: ${{ cuda_compiler_version != "None" }}
package:
  name: thing
  version: '1'
build:
  number: 0
  skip:
    - win
    - linux and gpu and match(python, ">=3.13")
requirements:
  build:
    - ${{ compiler('c') }}
    - if: gpu
      then: ${{ compiler('cuda') }}
  host:
    - python
"""
RECIPES = {"v0": V0, "v1": V1}


@pytest.fixture(params=["v0", "v1"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def lay_out(folder: Path, kind: str, recipe: str = "", forge: str = FORGE, own: str = "") -> Path:
    """A feedstock and a pinning beside it."""
    feedstock, pinning = folder / "thing-feedstock", folder / "pinning"
    (feedstock / "recipe").mkdir(parents=True)
    (pinning / "share/conda-forge/migrations").mkdir(parents=True)
    (feedstock / "conda-forge.yml").write_text(
        forge.replace("TOOL", "rattler-build" if kind == "v1" else "conda-build")
    )
    name = "recipe.yaml" if kind == "v1" else "meta.yaml"
    (feedstock / "recipe" / name).write_text(recipe or RECIPES[kind])
    if own:
        (feedstock / "recipe/conda_build_config.yaml").write_text(own)
    (pinning / "conda_build_config.yaml").write_text(PINNING)
    (pinning / "share/conda-forge/migrations/python314.yaml").write_text(PYTHON314)
    return feedstock


def asked(feedstock: Path, *wishes: str) -> dict[str, Absence]:
    return {one.platform: one for one in why_not(feedstock, wishes, pinning=feedstock.parent / "pinning")}


def places(loss: Loss) -> list[tuple[str, int]]:
    return [(place.path.name, place.line) for place in loss.places]


def test_a_job_that_exists_is_named(tmp_path: Path, kind: str) -> None:
    found = asked(lay_out(tmp_path, kind), "cuda12.9", "py3.12")["linux_64"]
    assert (found.losses, found.jobs) == (
        (),
        ("linux_64_c_compiler_version13cuda_compiler_version12.9python3.12.____cpython",),
    )


def test_a_selector_of_the_pinning_takes_a_value_from_a_platform(tmp_path: Path, kind: str) -> None:
    (loss,) = asked(lay_out(tmp_path, kind), "cuda12")["osx_64"].losses
    assert (loss.kind, places(loss)) == ("selector", [("conda_build_config.yaml", 10)])
    assert loss.why == "its selector is false on osx-64"


def test_without_the_compiler_of_cuda_the_pinning_has_none(tmp_path: Path) -> None:
    recipe = V0.replace("    - {{ compiler('cuda') }}  # [cuda_compiler_version != \"None\"]\n", "")
    (loss,) = asked(lay_out(tmp_path, "v0", recipe), "cuda")["linux_64"].losses
    assert loss.why.endswith("since the recipe does not call compiler('cuda')")


def test_a_skip_of_the_whole_platform(tmp_path: Path, kind: str) -> None:
    (loss,) = asked(lay_out(tmp_path, kind), "win-64")["win_64"].losses
    assert (loss.kind, places(loss)) == (
        ("skip", [("meta.yaml", 6)]) if kind == "v0" else ("skip", [("recipe.yaml", 9)])
    )


def test_a_skip_of_two_values_together(tmp_path: Path, kind: str) -> None:
    feedstock = lay_out(tmp_path, kind)
    (loss,) = asked(feedstock, "cuda12.9", "py3.13")["linux_64"].losses
    assert (loss.kind, places(loss)) == ("skip", [("meta.yaml", 7)] if kind == "v0" else [("recipe.yaml", 10)])
    assert asked(feedstock, "py3.13")["linux_64"].jobs
    assert asked(feedstock, "cuda12.9")["linux_64"].jobs


def test_a_migration_that_the_feedstock_does_not_have(tmp_path: Path, kind: str) -> None:
    feedstock = lay_out(tmp_path, kind)
    (loss,) = asked(feedstock, "py3.14", "linux-64")["linux_64"].losses
    assert (loss.kind, places(loss)) == ("missing migration", [("python314.yaml", 11)])
    (feedstock / ".ci_support/migrations").mkdir(parents=True)
    (feedstock / ".ci_support/migrations/python314.yaml").write_text(PYTHON314)
    assert asked(feedstock, "py3.14", "linux-64")["linux_64"].jobs


def test_the_recipe_s_own_file_replaces_the_values_of_the_pinning(tmp_path: Path, kind: str) -> None:
    (loss,) = asked(lay_out(tmp_path, kind, own="python:\n  - 3.13.* *_cp313\n"), "py3.12")["osx_64"].losses
    assert (loss.kind, places(loss)) == ("file", [("conda_build_config.yaml", 2)])
    assert "replaces 3.12.* *_cpython by 3.13.* *_cp313" in loss.why


def test_a_migration_removes_a_value(tmp_path: Path, kind: str) -> None:
    feedstock = lay_out(tmp_path, kind)
    (feedstock / ".ci_support/migrations").mkdir(parents=True)
    removal = "__migrator:\n  operation: key_remove\n  primary_key: python\n  use_local: true\n"
    (feedstock / ".ci_support/migrations/drop.yaml").write_text(
        f"migrator_ts: 2\n{removal}python:\n  - 3.12.* *_cpython\n"
    )
    (loss,) = asked(feedstock, "py3.12")["osx_64"].losses
    assert (loss.kind, places(loss)) == ("migration", [("drop.yaml", 7)])


def test_values_that_no_row_of_a_zip_group_has_together(tmp_path: Path, kind: str) -> None:
    (loss,) = asked(lay_out(tmp_path, kind), "cuda12.9", "c_compiler_version=14", "linux-64")["linux_64"].losses
    assert loss.kind == "zip"
    assert "c_compiler_version" in loss.why
    assert "13, 12.9" in loss.why or "12.9, 13" in loss.why


def test_a_platform_without_provider(tmp_path: Path, kind: str) -> None:
    feedstock = lay_out(tmp_path, kind, forge=FORGE.replace("win: azure", "linux_aarch64: null"))
    (loss,) = asked(feedstock, "linux-aarch64", "cuda")["linux_aarch64"].losses
    assert (loss.kind, places(loss)) == ("platform", [])
    assert "osx_64" in loss.why


def test_all_obstacles_are_named_in_the_order_in_which_they_bite(tmp_path: Path, kind: str) -> None:
    recipe = RECIPES[kind].replace("[win]", "[win or aarch64]").replace("- win\n", "- win or aarch64\n")
    feedstock = lay_out(tmp_path, kind, recipe, FORGE.replace("win: azure", "linux_aarch64: null"))
    skips = [6, 7] if kind == "v0" else [9, 10]
    found = asked(feedstock, "linux-aarch64", "py3.14")["linux_aarch64"].losses
    assert [loss.kind for loss in found] == ["platform", "missing migration", "skip"]
    assert places(found[2]) == [(("meta" if kind == "v0" else "recipe") + ".yaml", skips[0])]
    both = asked(feedstock, "cuda13.0", "py3.13", "linux-64")["linux_64"].losses
    assert [(loss.kind, places(loss)[0][1]) for loss in both] == [("file", 9), ("skip", skips[1])]


def test_each_line_that_skips_is_named(tmp_path: Path, kind: str) -> None:
    """Without the first, the second would; and without both, two more do so together."""
    skips = ("py < 314", "py == 312", "py == 313") if kind == "v0" else ('match(python, "<3.14")', "unix", "linux")
    if kind == "v0":
        recipe = V0.replace(
            "  skip: true  # [win]\n", "".join(f"  skip: true  # [{each}]\n" for each in ("win", *skips))
        )
    else:
        recipe = V1.replace("    - win\n", "    - win\n" + "".join(f"    - {each}\n" for each in skips))
    found = asked(lay_out(tmp_path, kind, recipe), "win-64")["win_64"].losses
    first = 6 if kind == "v0" else 9
    assert [places(loss)[0][1] - first for loss in found] == ([0, 1, 2, 3] if kind == "v0" else [0, 1])
    assert [loss.why.removeprefix("the recipe is skipped") for loss in found[:2]] == ["", ""]
    assert [loss.why for loss in found[2:]] == ["the recipe is skipped for 1 of 2 variants"] * (len(found) - 2)


def test_a_key_that_nothing_uses(tmp_path: Path, kind: str) -> None:
    (loss,) = asked(lay_out(tmp_path, kind), "mpi=nompi")["osx_64"].losses
    assert (loss.kind, loss.why) == ("unused", "the recipe does not use mpi, so its values make no jobs")


def test_a_value_that_no_file_has(tmp_path: Path, kind: str) -> None:
    (loss,) = asked(lay_out(tmp_path, kind), "py3.9")["osx_64"].losses
    assert (loss.kind, places(loss)) == ("file", [("conda_build_config.yaml", 15), ("conda_build_config.yaml", 16)])
    assert loss.why == "no variant file has it: python is 3.12.* *_cpython, 3.13.* *_cp313"


def test_noarch_packages_are_built_on_their_platforms_only(tmp_path: Path, kind: str) -> None:
    noarch = "requirements: {host: [pip]}\nbuild: {noarch: generic, number: 0}\npackage: {name: thing, version: '1'}\n"
    (loss,) = asked(lay_out(tmp_path, kind, noarch), "osx-64")["osx_64"].losses
    assert loss.kind == "noarch"


OUTPUTS = {
    "v0": """\
package: {name: things, version: '1'}
outputs:
  - name: library
    requirements: {host: [zlib]}
  - name: module
    build:
      skip: true  # [py < 313]
    requirements:
      host:
        - python
""",
    "v1": """\
recipe: {name: things, version: '1'}
outputs:
  - package: {name: library}
    requirements: {host: [zlib]}
  - package: {name: module}
    build:
      skip:
        - match(python, "<3.13")
    requirements:
      host:
        - python
""",
}


def test_an_output_that_is_skipped(tmp_path: Path, kind: str) -> None:
    found = asked(lay_out(tmp_path, kind, OUTPUTS[kind]), "py3.12")["osx_64"]
    (loss,) = found.losses
    assert (loss.kind, loss.why) == ("skip", "module is skipped")
    assert places(loss) == ([("meta.yaml", 7)] if kind == "v0" else [("recipe.yaml", 8)])


def test_an_output_that_is_skipped_behind_a_skip_of_the_recipe(tmp_path: Path, kind: str) -> None:
    whole = "build:\n  skip: true  # [osx]\n" if kind == "v0" else "build:\n  skip: osx\n"
    recipe = OUTPUTS[kind].replace("outputs:\n", f"{whole}outputs:\n")
    found = asked(lay_out(tmp_path, kind, recipe), "py3.12")
    assert [loss.why for loss in found["osx_64"].losses] == ["the recipe is skipped", "module is skipped"]
    assert [places(loss)[0][1] for loss in found["osx_64"].losses] == ([3, 9] if kind == "v0" else [3, 10])
    assert [loss.why for loss in found["linux_64"].losses] == ["module is skipped"]


@pytest.mark.parametrize(
    ("wish", "value", "met"),
    [
        ("cuda12", "12.9", True),
        ("cuda1", "12.9", False),
        ("cuda", "None", False),
        ("cpu", "None", True),
        ("py3.1", "3.13.* *_cp313", False),
        ("python3.13", "3.13.* *_cp313", True),
        ("mpi=nompi", "nompi", True),
    ],
)
def test_wishes(wish: str, value: str, met: bool) -> None:
    assert read_wish(wish).is_value(value) is met


def test_a_wish_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="neither a platform nor a value"):
        asked(lay_out(tmp_path, "v0"), "linux-65")


def test_the_command_prints_lines_or_json(tmp_path: Path, kind: str) -> None:
    feedstock = lay_out(tmp_path, kind)
    given = ["--not", "cuda12.9", "--feedstock", str(feedstock), "--pinning", str(tmp_path / "pinning")]
    text = CliRunner().invoke(command, given)
    assert text.exit_code == 0, text.output
    assert "osx_64: no job\n  selector: its selector is false on osx-64\n" in text.output
    assert "linux_64: there is a job, linux_64_cuda12.9_py3.12\n" in text.output
    found = json.loads(CliRunner().invoke(command, [*given, "--json"]).stdout)
    assert found[1]["losses"][0]["places"][0]["line"] == 10
    assert CliRunner().invoke(command, [str(feedstock), *given[:2], *given[4:]]).stdout == text.stdout
    assert CliRunner().invoke(command, ["python", *given]).exit_code == 2
    assert CliRunner().invoke(command, ["--feedstock", str(feedstock)]).exit_code == 2


def test_a_rerender_warns_if_a_platform_loses_all_jobs_of_a_kind(tmp_path: Path, kind: str) -> None:
    feedstock = lay_out(tmp_path, kind)
    rerender(feedstock, pinning=tmp_path / "pinning").changes().apply()
    assert rerender(feedstock, pinning=tmp_path / "pinning").lost_jobs() == ()
    recipe = feedstock / "recipe" / ("recipe.yaml" if kind == "v1" else "meta.yaml")
    skip = "skip: true  # [win]", 'skip: true  # [win or cuda_compiler_version != "None"]'
    old, new = skip if kind == "v0" else ("    - win\n", "    - win or gpu\n")
    recipe.write_text(recipe.read_text().replace(old, new))
    (lost,) = rerender(feedstock, pinning=tmp_path / "pinning").lost_jobs()
    assert (lost.platform.subdir, lost.kind, lost.count) == ("linux-64", "CUDA", 1)
    given = [str(feedstock), "--check", "--smithy", "none", "--pinning", str(tmp_path / "pinning")]
    said = CliRunner().invoke(rerender_command, given).output
    assert "warning: linux-64 loses its only CUDA job: `feedstock-tools why --not cuda --not linux-64` says why" in said


def test_cpu_jobs_are_missed_too(tmp_path: Path, kind: str) -> None:
    feedstock = lay_out(tmp_path, kind)
    rerender(feedstock, pinning=tmp_path / "pinning").changes().apply()
    forge = feedstock / "conda-forge.yml"
    forge.write_text(forge.read_text().replace("osx_64: azure", "osx_64: null"))
    lost = rerender(feedstock, pinning=tmp_path / "pinning").lost_jobs()
    assert [(one.platform.subdir, one.kind, one.count) for one in lost] == [("osx-64", "CPU", 2)]
    assert str(lost[0]).startswith("osx-64 loses all 2 CPU jobs: ")
