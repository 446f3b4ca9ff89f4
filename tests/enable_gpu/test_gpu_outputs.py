"""CUDA builds for recipes with outputs: which of them get what."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from feedstock_tools.api import GpuWishes, enable_gpu, open_draft, outputs, read_configurations, rerender

RECIPE = """\
{% set build = 2 %}

package:
  name: demo-split
  version: "1.2"

build:
  number: {{ build }}

outputs:
  - name: libdemo
    script: install.sh
    requirements:
      build:
        - {{ compiler('c') }}
        - {{ compiler('cxx') }}
      host:
        - libthing
  - name: demo
    requirements:
      run:
        - {{ pin_subpackage('libdemo', exact=True) }}
  - name: demo-tool
    script: tool.sh
    requirements:
      build:
        - {{ compiler('c') }}
  - name: demo-doc
    build:
      noarch: generic
    files:
      - share/doc
"""
STAGED = """\
recipe:
  name: demo-split
  version: "1.2"
build:
  number: 2
outputs:
  - staging:
      name: demo-build
    build:
      script:
        - make
    requirements:
      build:
        - ${{ compiler('c') }}
        - ${{ compiler('cxx') }}
  - package:
      name: libdemo
    inherit: demo-build
    build:
      files:
        - lib/**
  - package:
      name: demo
    requirements:
      run:
        - ${{ pin_subpackage('libdemo', exact=True) }}
"""


def made(folder: Path, pinning: Path, wishes: GpuWishes) -> set[tuple[str, str, int]]:
    """The packages of linux-64 after the edit: name, accelerator in the build string, number."""
    enable_gpu(open_draft(folder), wishes, pinning / "conda_build_config.yaml").changes().apply()
    rerender(folder, pinning=pinning).changes().apply()
    return {
        (each.name, each.build_string.partition("h")[0], each.build_number)
        for each in outputs(folder, read_configurations(folder))
        if each.subdir in {"linux-64", "noarch"}
    }


def test_outputs_without_cuda_stay_one_build(feedstock: Callable[..., Path], pinning: Path) -> None:
    found = made(feedstock(meta_yaml=RECIPE), pinning, GpuWishes(outputs=("libdemo",)))
    assert found == {
        ("libdemo", "cuda129", 12902),
        ("libdemo", "cpu_", 2),
        ("demo", "cuda129", 12902),
        ("demo", "cpu_", 2),
        ("demo-tool", "", 2),
        ("demo-doc", "2", 2),
    }


def test_the_build_string_of_an_output_ends_with_its_number(feedstock: Callable[..., Path], pinning: Path) -> None:
    folder = feedstock(meta_yaml=RECIPE)
    made(folder, pinning, GpuWishes(outputs=("libdemo",)))
    for each in outputs(folder, read_configurations(folder)):
        assert each.build_string.rpartition("_")[2] == str(each.build_number)


def test_an_output_starts_from_the_number_of_the_recipe(feedstock: Callable[..., Path], pinning: Path) -> None:
    for number, expected in (
        ("number: {{ build + 5 }}", {12907, 7}),
        ("number: 3  # [linux]\n  number: 4  # [not linux]", {12903, 3}),
    ):
        folder = feedstock(meta_yaml=RECIPE.replace("number: {{ build }}", number))
        found = made(folder, pinning, GpuWishes(outputs=("libdemo",)))
        assert {number for name, _, number in found if name == "demo"} == expected
        assert {number for name, _, number in found if name == "demo-tool"} == {min(expected)}


def test_all_that_compile_get_cuda_by_default(feedstock: Callable[..., Path], pinning: Path) -> None:
    found = made(feedstock(meta_yaml=RECIPE), pinning, GpuWishes())
    assert {name for name, accelerator, _ in found if accelerator == "cuda129"} == {"libdemo", "demo", "demo-tool"}


def test_what_pins_a_build_is_named_like_it_and_requires_nothing_new(
    feedstock: Callable[..., Path], pinning: Path
) -> None:
    draft = enable_gpu(
        open_draft(feedstock(meta_yaml=RECIPE)), GpuWishes(outputs=("libdemo",)), pinning / "conda_build_config.yaml"
    )
    demo = draft.recipe.text.partition("  - name: demo\n")[2].partition("  - name: demo-tool")[0]
    assert "string: cpu_h" in demo
    assert "__cuda " not in demo and "compiler(" not in demo
    assert "one build for all jobs, with and without CUDA: demo-tool, demo-doc" in draft.remarks


def test_a_stage_compiles_and_its_packages_are_guarded(feedstock: Callable[..., Path], pinning: Path) -> None:
    folder = feedstock(recipe_yaml=STAGED)
    found = made(folder, pinning, GpuWishes(libraries=("cublas",)))
    assert found == {
        (name, cuda, number) for name in ("libdemo", "demo") for cuda, number in (("cuda129", 12902), ("cpu_", 2))
    }
    stage, _, packages = (folder / "recipe/recipe.yaml").read_text().partition("name: libdemo")
    assert "libcublas-dev" in stage and "__cuda" not in stage
    assert "libcublas-dev" not in packages and packages.count("__cuda") == 1


def test_what_collects_from_the_recipes_own_build_links_too(feedstock: Callable[..., Path], pinning: Path) -> None:
    text = """\
package:
  name: demo-split
  version: "1.2"
build:
  number: 0
requirements:
  build:
    - {{ compiler('c') }}
    - {{ compiler('cxx') }}
outputs:
  - name: libdemo
    files:
      - lib/libdemo*
"""
    folder = feedstock(meta_yaml=text, build_sh="./configure\nmake\n")
    assert made(folder, pinning, GpuWishes(libraries=("cublas",))) == {
        ("libdemo", "cuda129", 12900),
        ("libdemo", "cpu_", 0),
    }
    edited = (folder / "recipe/meta.yaml").read_text()
    assert edited.count("libcublas-dev") == 2
    assert edited.count("compiler('cuda')") == edited.count("__cuda >=") == 1


def test_metapackages_join_the_outputs(feedstock: Callable[..., Path], pinning: Path) -> None:
    for files in ({"meta_yaml": RECIPE}, {"recipe_yaml": STAGED}):
        folder = feedstock(**files)
        found = made(
            folder, pinning, GpuWishes(outputs=("libdemo",) if "meta_yaml" in files else (), metapackages=True)
        )
        assert {each for each in found if each[0].startswith("libdemo-")} == {
            ("libdemo-gpu", "cuda129", 12902),
            ("libdemo-cpu", "cpu_", 2),
        }
        for path in (folder / "recipe").iterdir():
            path.unlink()


def test_what_pins_a_build_only_somewhere_is_guarded_itself(feedstock: Callable[..., Path], pinning: Path) -> None:
    in_host = RECIPE.replace("      run:\n        - {{ pin_subpackage", "      host:\n        - {{ pin_subpackage")
    on_unix = RECIPE.replace("exact=True) }}\n", "exact=True) }}  # [unix]\n")
    for text in (in_host, on_unix):
        draft = enable_gpu(
            open_draft(feedstock(meta_yaml=text)), GpuWishes(outputs=("libdemo",)), pinning / "conda_build_config.yaml"
        )
        demo = draft.recipe.text.partition("  - name: demo\n")[2].partition("  - name: demo-tool")[0]
        assert demo.count("- __cuda >=") == 1 and "cudart" not in demo


OF_THE_SAME_NAME = """\
package:
  name: demo
  version: "1.2"
build:
  number: 0
  ignore_run_exports_from:
    - libthing
requirements:
  build:
    - {{ compiler('c') }}
    - {{ compiler('cxx') }}
  host:
    - python
    - libthing
  run:
    - python
outputs:
  - name: demo
  - name: demo-r
    script: install-r.sh
    requirements:
      build:
        - {{ compiler('c') }}
      host:
        - r-base
      run:
        - r-base
"""


def test_builds_of_one_name_differ_by_hash_and_language(feedstock: Callable[..., Path], pinning: Path) -> None:
    config = pinning / "conda_build_config.yaml"
    config.write_text(config.read_text() + "r_base:\n  - 4.4\n  - 4.5\n")
    folder = feedstock(meta_yaml=OF_THE_SAME_NAME)
    made(folder, pinning, GpuWishes())
    files = outputs(folder, read_configurations(folder))
    strings = sorted({each.build_string for each in files if each.subdir == "linux-64"})
    assert [re.sub("h[0-9a-f]{7}", "h", string) for string in strings] == [
        *("cpu_py312h_0", "cpu_py313h_0", "cpu_r44h_0", "cpu_r45h_0"),
        *("cuda129py312h_12900", "cuda129py313h_12900", "cuda129r44h_12900", "cuda129r45h_12900"),
    ]
    assert not any("h1234567" in string for string in strings)


def test_an_output_that_gets_a_section_keeps_what_the_recipes_said(
    feedstock: Callable[..., Path], pinning: Path
) -> None:
    folder = feedstock(meta_yaml=OF_THE_SAME_NAME)
    made(folder, pinning, GpuWishes())
    edited = (folder / "recipe/meta.yaml").read_text()
    assert "      ignore_run_exports_from:\n        - libthing\n" in edited.partition("- name: demo-r")[2]
    assert "build:" not in edited.partition("  - name: demo\n")[2].partition("- name: demo-r")[0]
