"""Specs to which nothing is added: the recipe has what they say, and the same in both formats."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.generate.generating import apply
from feedstock_tools.generate.spec.reading import spec_from_text
from feedstock_tools.generate.texts.rendering import render
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.model import RenderedOutput
from feedstock_tools.recipe.v0 import recipe as v0
from feedstock_tools.recipe.v1 import recipe as v1
from feedstock_tools.recipe.v1_engine import read_v1
from feedstock_tools.variants.files import defaults, load
from feedstock_tools.variants.model import combine

PINNING = """
python:
  - 3.11.* *_cpython
  - 3.12.* *_cpython
cuda_compiler:
  - cuda-nvcc
cuda_compiler_version:
  - None
  - "12.9"   # [linux]
c_compiler:
  - gcc
c_compiler_version:
  - "14"
"""
SPEC = """
name: demo
version: 1.2.0
automatic: false
recipe_name: demo-split
platforms: {linux-64: , osx-64: }
cuda: {}
variants:
  level:
    - 1
    - {value: 3, when: linux}
  mpi: [nompi, openmpi]
build:
  number: 3
  offsets:
    - {by: 200, when: cuda}
    - {by: 25, when: level == "3"}
outputs:
  - name: libdemo
    kind: library
    string:
      - {value: "cuda{cuda_digits}{mpi}h{hash}_{build_number}", when: cuda}
      - "cpu{mpi}h{hash}_{build_number}"
    requirements:
      build:
        - compiler: c
        - {compiler: cuda, when: cuda}
        - {package: "level-flags =={level}", when: linux}
      host:
        - {package: mpi-lib, when: mpi != "nompi"}
      run:
        - {pin: pydemo, exact: false, when: level == "3"}
    run_exports:
      strong: [{pin: libdemo, max: x.x}]
      weak_constrains: [demo-plugins >=1]
    ignore_run_exports: {packages: [libgcc], exporters: [zlib]}
    track_features:
      - {package: libdemo-cpu, when: cpu}
  - name: pydemo
    kind: python
    version: 2.0.0
    number: 7
    skip: [python < 3.12]
    requirements:
      host: [python]
      run: [python, "numpy >=2,<3"]
    test:
      imports:
        - {module: pydemo, when: not cross}
  - name: demo-data
    kind: metapackage
    noarch: generic
    skip: [osx]
about: {homepage: https://example.org, license: MIT, summary: Shows what is as written}
maintainers: [someone]
"""


def _outputs(text: str, recipe_format: str, subdir: str, folder: Path) -> list[RenderedOutput]:
    apply(folder, render(spec_from_text(text), recipe_format), force=True)
    (folder / "pinning.yaml").write_text(PINNING)
    platform = Platform.parse(subdir)
    files = [folder / "pinning.yaml", folder / "recipe" / "conda_build_config.yaml"]
    config = combine([defaults(platform), *(load(path, platform) for path in files)])
    if recipe_format == "v0":
        return list(v0.render_recipe(v0.read_recipe(folder / "recipe"), config, platform).outputs)
    return list(v1.render_recipe_v1(read_v1(folder / "recipe" / "recipe.yaml"), config, platform).outputs)


def _meaning(output: RenderedOutput) -> tuple[object, ...]:
    build = re.sub(r"h[0-9a-f]{7}(?=_)", "", output.build_string) if output.name == "libdemo" else ""
    requirements = {
        section: sorted(spec.split(" ")[0] for spec in specs) for section, specs in output.requirements.items() if specs
    }
    return (output.name, output.version, output.build_number, build, output.noarch, requirements)


@pytest.mark.parametrize("subdir", ["linux-64", "osx-64"])
def test_what_is_written_means_the_same_in_both_formats(subdir: str, tmp_path: Path) -> None:
    by_format = {
        recipe_format: sorted(map(repr, map(_meaning, _outputs(SPEC, recipe_format, subdir, tmp_path / recipe_format))))
        for recipe_format in ("v0", "v1")
    }

    assert set(by_format["v0"]) == set(by_format["v1"])
    assert by_format["v0"]


def test_offsets_add_up_and_strings_follow_the_build(tmp_path: Path) -> None:
    outputs = [output for output in _outputs(SPEC, "v0", "linux-64", tmp_path) if output.name == "libdemo"]

    numbers = {
        (output.variant["cuda_compiler_version"], output.variant["level"]): output.build_number for output in outputs
    }
    assert numbers == {("None", "1"): 3, ("None", "3"): 28, ("12.9", "1"): 203, ("12.9", "3"): 228}
    assert {re.sub(r"h[0-9a-f]{7}_\d+", "", output.build_string) for output in outputs} == {
        *("cpunompi", "cpuopenmpi", "cuda129nompi", "cuda129openmpi")
    }


def test_nothing_is_added(tmp_path: Path) -> None:
    outputs = _outputs(SPEC, "v1", "linux-64", tmp_path)

    of_library = next(
        output for output in outputs if output.name == "libdemo" and output.variant["cuda_compiler_version"] == "12.9"
    )
    assert not any("__cuda" in spec or "python" in spec for spec in of_library.requirements.get("run", ()))
    assert not any("cuda-version" in spec for spec in of_library.requirements.get("host", ()))


ALONE = """
name: demo
version: 1.2.0
automatic: false
recipe_name: demo
platforms: {linux-64: }
outputs:
  - name: demo
    kind: library
    script: build.sh
    requirements: {run: [zlib]}
    verbatim:
      - section: build
        v0: "rpaths: [lib/]"
about: {homepage: https://example.org, license: MIT, summary: Alone}
maintainers: [someone]
"""


def test_an_output_with_the_name_of_the_recipe_is_the_recipe() -> None:
    text = next(text for path, text in render(spec_from_text(ALONE), "v0").items() if path.name == "meta.yaml")

    assert "outputs:" not in text
    assert "  rpaths: [lib/]\n" in text
    assert "  run:\n    - zlib\n" in text


def test_build_numbers_and_compilers_of_real_recipes_are_written() -> None:
    content = ALONE.replace("outputs:", "build: {number: 1010}\noutputs:").replace(
        "{run: [zlib]}", "{build: [{compiler: go-nocgo}]}"
    )
    text = next(text for path, text in render(spec_from_text(content), "v0").items() if path.name == "meta.yaml")

    assert "1010" in text
    assert "compiler('go-nocgo')" in text.replace('"', "'")


def test_a_verbatim_block_belongs_to_its_format() -> None:
    with pytest.raises(InputError, match="a verbatim block for 'build' has no lines for v1"):
        render(spec_from_text(ALONE), "v1")


def test_the_description_of_the_only_output_is_the_recipes() -> None:
    own = "verbatim:\n      - section: about\n        v0: 'doc_source_url: d'\n      - section: build"
    described = ALONE.replace("script: build.sh", "script: build.sh\n    about: {summary: Mine}")
    text = next(
        iter(render(spec_from_text(described.replace("verbatim:\n      - section: build", own)), "v0").values())
    )

    assert "  license: MIT\n  summary: Mine\n  doc_source_url: d\n" in text


def test_a_description_without_a_key_in_a_format_stops_no_build_in_it() -> None:
    text = ALONE.replace("    verbatim:\n      - section: build\n", "").replace('        v0: "rpaths: [lib/]"\n', "")
    spec = spec_from_text(text + 'verbatim: [{section: about, v0: "doc_source_url: d"}]\n')

    recipes = {way: "".join(render(spec, way).values()) for way in ("v0", "v1")}

    assert "doc_source_url: d\n" in recipes["v0"]
    assert "doc_source_url" not in recipes["v1"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('level >= "3"', "compares no key with a text"),
        ('linux == "3"', "compares no key with a text"),
        ("level == 3", "'level' cannot be compared"),
    ],
)
def test_keys_are_compared_with_texts_alone(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        spec_from_text(SPEC.replace("python < 3.12", text))


def test_own_numbers_and_strings_need_that_none_are_added() -> None:
    with pytest.raises(InputError) as error:
        spec_from_text(SPEC.replace("automatic: false", "automatic: true"))

    told = [mistake.message for mistake in error.value.mistakes]
    assert "build numbers are added to what the spec says" in told
    assert "build strings are added to what the spec says" in told


def test_a_value_cannot_have_the_name_of_what_a_recipe_has() -> None:
    with pytest.raises(InputError, match="the recipe has a 'number' of its own"):
        spec_from_text(SPEC.replace("cuda: {}", "cuda: {}\nvalues: {number: 3}"))
