"""Reading variants.yaml: values with conditions, typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.platforms import Platform
from feedstock_tools.variants.files import load_conditional
from feedstock_tools.variants.model import VariantConfig, WholeNumber

LINUX = Platform("linux", "64")


def load(folder: Path, text: str, platform: str = "linux-64", **environ: str) -> VariantConfig:
    path = folder / "variants.yaml"
    path.write_text(text)
    return load_conditional(path, Platform.parse(platform), environ=environ)


CONDITIONAL = """
python:
  - 3.11
  - if: linux and not aarch64
    then: [3.12, {if: unheard_of, then: "2.7", else: 3.13}]
    else: 3.14
blas_impl:
  if: win
  then: mkl
only_on_windows:
  - if: win
    then: here
"""


@pytest.mark.parametrize(
    ("platform", "pythons"),
    [("linux-64", ("3.11", "3.12", "3.13")), ("linux-aarch64", ("3.11", "3.14")), ("osx-64", ("3.11", "3.14"))],
)
def test_branches_are_taken_by_platform_and_may_nest(tmp_path: Path, platform: str, pythons: tuple[str, ...]) -> None:
    assert load(tmp_path, CONDITIONAL.replace("blas_impl:\n  if: win\n  then: mkl\n", ""), platform).values == {
        "python": pythons
    }


def test_conditions_see_the_environment_that_is_given(tmp_path: Path) -> None:
    text = "cuda: [{if: CF_CUDA_ENABLED == 'True', then: '12.9', else: None}]\n"
    assert load(tmp_path, text).values["cuda"] == ("None",)
    assert load(tmp_path, text, CF_CUDA_ENABLED="True").values["cuda"] == ("12.9",)


def test_versions_are_texts_and_whole_numbers_stay_numbers(tmp_path: Path) -> None:
    values = load(tmp_path, "a: [3.10, 10, '10', true, 1.0e3, yes]\n").values["a"]
    assert values == ("3.10", "10", "10", "true", "1.0e3", "yes")
    assert [isinstance(value, WholeNumber) for value in values] == [False, True, False, False, False, False]


def test_zip_groups_are_merged_as_by_conda_smithy(tmp_path: Path) -> None:
    assert load(tmp_path, "a: [1]\nb: [1]\nzip_keys: [[a], [b]]\n").zip_keys == (("a", "b"),)


@pytest.mark.parametrize(
    "text",
    [
        "- a\n",
        "a: [~]\n",
        "a: [{if: '(1).__class__', then: x}]\n",
        "a: [{if: 'open(1)', then: x}]\n",
        "a: [{if: '1 +', then: x}]\n",
        "a: &a [*a]\n",
        "a: [\n",
        "a: [{b: c}]\n",
    ],
    ids=["list", "nothing", "attribute", "call", "syntax", "cycle", "yaml", "mapping"],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError):
        load(tmp_path, text)


def test_an_empty_file_says_nothing(tmp_path: Path) -> None:
    assert load(tmp_path, "# nothing\n") == VariantConfig({})
