"""The outline of a recipe.yaml: the outputs of its whole rendering, from fewer calls of the engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feedstock_tools.errors import InputError
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.model import OutlinedOutput, RenderedOutput
from feedstock_tools.recipe.v1.outline import outline_recipe_v1
from feedstock_tools.recipe.v1.recipe import render_recipe_v1
from feedstock_tools.recipe.v1_engine import parse_v1, render
from feedstock_tools.variants.model import VariantConfig, WholeNumber

LINUX = Platform("linux", "64")
VALUES: dict[str, tuple[str, ...]] = {
    "python": ("3.10.* *_cpython", "3.13.* *_cp313", "3.14.* *_cp314"),
    "cuda_compiler_version": ("None", "12.9"),
    "cuda_compiler": ("cuda-nvcc",),
    "c_compiler": ("gcc",),
    "c_compiler_version": ("14", "13"),
    "mpi": ("nompi", "openmpi"),
    "shared": ("true", "false"),
    "level": (WholeNumber("1"), WholeNumber("2")),
    "zlib": ("1.3",),
    "libtiff": ("4.6", "4.7"),
    "perl": ("5.32.1",),
}
ZIPPED = (("c_compiler_version", "cuda_compiler_version"),)
CONFIG = VariantConfig({"target_platform": ("linux-64",), **VALUES}, ZIPPED)

Count = Callable[[], int]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Count:
    """How often the outline called the engine to render."""
    made: list[int] = []

    def counted(*given: Any) -> Any:
        made.append(1)
        return render(*given)

    monkeypatch.setattr("feedstock_tools.recipe.v1.outline.render", counted)
    return lambda: len(made)


def facts(outputs: Sequence[RenderedOutput | OutlinedOutput]) -> set[object]:
    return {(one.name, one.noarch, tuple(sorted(one.variant.items())), one.used, one.variants.axes) for one in outputs}


def both(recipe: str, config: VariantConfig = CONFIG, platform: Platform = LINUX, **more: Any) -> tuple[Any, Any]:
    """The outputs by outline and by rendering; 'refused' for a recipe that the engine refuses."""
    parsed = parse_v1(recipe, Path("recipe.yaml"))
    try:
        found = outline_recipe_v1(parsed, config, platform, **more)
        quick: object = None if found is None else facts(found.outputs)
    except InputError:
        quick = "refused"
    try:
        whole: object = facts(render_recipe_v1(parsed, config, platform, **more).outputs)
    except InputError:
        whole = "refused"
    return quick, whole


def single(condition: str, context: str = "") -> str:
    return (
        f"context:\n  zero: 0\n{context}package: {{name: thing, version: '1'}}\nbuild:\n  number: 0\n"
        f"requirements:\n  host:\n    - if: {json.dumps(condition)}\n      then: zlib\n      else: perl\n"
    )


@pytest.mark.parametrize(
    "condition",
    [
        'match(python, ">=3.13")',
        'match(python, "3.14.*")',
        'match(python, "==3.10")',
        'match(python, ">3.10,<3.14")',
        'match(python, "<3.11|>=3.14")',
        'match(cuda_compiler_version, ">=12")',
        'cuda_compiler_version != "None" and mpi == "openmpi"',
        'mpi == "openmpi" or not shared',
        "shared",
        "shared == true",
        "level == 1",
        "level > 1",
        'level == "1"',
        '(python | version_to_buildstring) == "314"',
        '(python | split("."))[1] == "13"',
        '(cuda_compiler_version | split("."))[0] | int > 11',
        '(cuda_compiler_version | replace("None", "0")) == "0"',
        'mpi in ("openmpi", "mpich")',
        '"open" in mpi',
        "linux and mpi == 'nompi'",
        "unix and x86_64 and not win and python is defined",
        "unheard_of is defined or shared",
        '(unheard_of | default("x")) == "x" and shared',
        '"a" if shared else ""',
        "mpi",
        "unheard_of",
        'mpi ~ "x" == "nompix"',
        "mpi | upper == 'NOMPI'",
        "build_platform != target_platform and shared",
    ],
)
def test_a_condition_is_true_for_the_same_variants_as_in_the_engine(condition: str) -> None:
    quick, whole = both(single(condition))
    assert quick == whole


@pytest.mark.parametrize(
    ("context", "condition"),
    [
        ("  with_cuda: ${{ cuda_compiler_version != 'None' }}\n", "with_cuda and mpi == 'nompi'"),
        ("  mpi: ${{ mpi | default('mpich') }}\n", "mpi == 'openmpi'"),
        ("  a: ${{ mpi }}\n  b: ${{ a }}-x\n", "b == 'nompi-x'"),
        ("  minor: ${{ (python | split('.'))[1] | int }}\n", "minor == '13'"),
        ("  minor: ${{ (python | split('.'))[1] | int }}\n", "minor | int > 12"),
        ("  yes: true\n", "yes and shared"),
        ("  five: 5\n", "five == 5 and shared"),
        ("  five: '5'\n", "five == '5' and shared"),
        ("  shared: 'false'\n", "shared"),
        ("  flag: ${{ shared }}\n", "flag and mpi == 'nompi'"),
        ("  flag: '${{ shared }}'\n", "flag and mpi == 'nompi'"),
        ("  flag: '${{ shared }}'\n", "flag == 'true'"),
        ("  number: ${{ level }}\n", "number == 1"),
        ("  number: '${{ level }}'\n", "number == '1'"),
        ("  number: 0${{ level }}\n", "number == 1"),
        ("  number: ${{ (python | split('.'))[1] | int }}\n", "number == 13"),
        ("  text: >-\n    ${{ mpi == 'nompi' }}\n", "text and shared"),
    ],
)
def test_a_variable_of_the_recipe_has_the_same_value_as_in_the_engine(context: str, condition: str) -> None:
    quick, whole = both(single(condition, context))
    assert quick == whole


def test_variants_that_take_the_same_way_need_one_call(calls: Count) -> None:
    recipe = single("match(python, '>=3.13')") + "    - ${{ compiler('c') }}\nabout: {summary: 'For everybody'}\n"
    quick, whole = both(recipe)
    assert quick == whole
    assert len(quick) == 6
    assert calls() == 2


def test_a_text_that_differs_needs_no_call_of_its_own(calls: Count) -> None:
    string = "string: py${{ python }}_${{ mpi }}_${{ hash }}_${{ build_number }}"
    quick, whole = both(single("linux").replace("number: 0", string))
    assert quick == whole
    assert (len(quick), calls()) == (6, 1)


def test_a_name_that_differs_needs_calls_of_its_own(calls: Count) -> None:
    quick, whole = both(single("linux") + "    - ${{ 'zlib' if shared else 'perl' }}\n")
    assert quick == whole
    assert calls() == 2


def test_a_key_whose_name_only_a_template_makes_is_found(calls: Count) -> None:
    quick, whole = both(single("linux") + "    - ${{ 'lib' ~ 'tiff' }}\n")
    assert quick == whole
    assert {dict(variant)["libtiff"] for _, _, variant, _, _ in quick} == {"4.6", "4.7"}


def test_skipped_variants_have_no_outputs() -> None:
    for skip in (["match(python, '<3.13')"], ["shared", "mpi == 'nompi'"], ["linux"]):
        quick, whole = both(single("win").replace("number: 0", f"skip: {json.dumps(skip)}"))
        assert quick == whole


SIBLINGS = """
recipe: {name: things, version: '2'}
build: {skip: ["mpi == 'openmpi' and not shared"]}
outputs:
  - package:
      name: lib-${{ mpi }}
    requirements:
      host: [perl]
  - package:
      name: zlib
    build:
      noarch: generic
  - package:
      name: thing
    build:
      string: py${{ python }}_${{ hash }}
    requirements:
      host:
        - python
        - zlib
        - ${{ pin_subpackage('lib-' ~ mpi, exact=True) }}
      build:
        - ${{ compiler('cuda') if cuda_compiler_version != 'None' else 'make' }}
"""


@pytest.mark.parametrize("all_branches", [False, True])
def test_outputs_of_one_recipe(all_branches: bool) -> None:
    quick, whole = both(SIBLINGS, all_branches=all_branches)
    assert quick == whole
    assert {name for name, *_ in quick} == {"lib-nompi", "lib-openmpi", "zlib", "thing"}


def test_descriptions_that_differ_between_variants_need_the_whole_rendering() -> None:
    parsed = parse_v1(single("linux") + "about: {summary: 'With ${{ mpi }}'}\n", Path("recipe.yaml"))
    assert outline_recipe_v1(parsed, CONFIG, LINUX, watch=lambda *_: None) is None
    assert outline_recipe_v1(parsed, CONFIG, LINUX) is not None


def test_what_was_rendered_is_reported() -> None:
    seen: list[tuple[str, object]] = []
    parsed = parse_v1(SIBLINGS + "about: {summary: Things}\n", Path("recipe.yaml"))
    outline_recipe_v1(parsed, CONFIG, LINUX, watch=lambda made, out: seen.append((out.name, made["about"]["summary"])))
    assert set(seen) == {(name, "Things") for name in ("lib-nompi", "lib-openmpi", "zlib", "thing")}


ATOMS = st.sampled_from(
    [
        "shared",
        "linux",
        "osx",
        "flag",
        "number == 3",
        "mpi == 'openmpi'",
        "mpi != other",
        "match(python, '>=3.13')",
        "cuda_compiler_version != 'None'",
        "level > 1",
        "python is defined",
        "(mpi | default('x')) == 'nompi'",
        "other == 'nompi-x'",
        "(python | version_to_buildstring) == '310'",
    ]
)
CONDITIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} or {})".format, inner, inner),
        st.builds("not ({})".format, inner),
    ),
    max_leaves=4,
)
TEXTS = st.sampled_from(["zlib", "python", "perl", "libtiff", "libtiff >=4", "${{ mpi }}", "lib${{ 'tiff' }}"])
ITEMS = st.one_of(
    TEXTS,
    st.builds(lambda test, one, other: {"if": test, "then": [one], "else": [other]}, CONDITIONS, TEXTS, TEXTS),
    st.builds("${{{{ 'zlib' if {} else 'perl' }}}}".format, CONDITIONS),
    st.builds("${{{{ compiler('c') if {} }}}}".format, CONDITIONS),
)
OUTPUTS = st.fixed_dictionaries(
    {},
    optional={
        "host": st.lists(ITEMS, max_size=3),
        "build": st.lists(ITEMS, max_size=2),
        "run": st.lists(ITEMS, max_size=2),
        "skip": st.lists(CONDITIONS, max_size=2),
        "string": st.sampled_from(
            ["${{ hash }}_${{ build_number }}", "${{ mpi }}_${{ hash }}", "${{ other }}${{ hash }}"]
        ),
        "noarch": st.sampled_from(["generic", "python"]),
        "script": st.lists(st.sampled_from(["a", "b ${{ mpi }}", "c ${{ level }}"]), max_size=2),
    },
)


FLAGS = st.one_of(
    st.builds("${{{{ {} }}}}".format, ATOMS.filter(lambda atom: not {"flag", "other", "number"} & set(atom.split()))),
    st.sampled_from(["'${{ shared }}'", "'${{ linux }}'", "false", "'false'", "x${{ mpi }}"]),
)


def written(outputs: list[dict[str, Any]], flag: str) -> str:
    parts = []
    for number, output in enumerate(outputs):
        part: dict[str, Any] = {"package": {"name": f"part{number}"}, "build": {}}
        part["build"] |= {key: output[key] for key in ("skip", "string", "noarch", "script") if key in output}
        part["requirements"] = {key: output[key] for key in ("host", "build", "run") if key in output}
        parts.append(part)
    context = f"context:\n  flag: {flag}\n  number: 3\n  other: ${{{{ mpi }}}}-x\n"
    return context + f"recipe: {{name: all, version: '1'}}\noutputs: {json.dumps(parts)}\n"


@settings(max_examples=15)
@given(st.lists(OUTPUTS, min_size=1, max_size=3), FLAGS)
def test_any_recipe_has_the_outline_of_its_rendering(outputs: list[dict[str, Any]], flag: str) -> None:
    quick, whole = both(written(outputs, flag))
    assert quick == whole
