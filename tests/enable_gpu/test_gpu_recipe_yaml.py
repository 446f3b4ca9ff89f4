"""CUDA builds for recipes of rattler-build."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from feedstock_tools.api import GpuWishes, enable_gpu, open_draft, outputs, read_configurations, rerender

RECIPE = """\
schema_version: 1

context:
  version: "1.2"
  build: 3

package:
  name: demo
  version: ${{ version }}

build:
  number: ${{ build }}
  skip: osx
  # explained
  script: build.sh

requirements:
  build:
    - ${{ compiler("c") }}
    - ${{ stdlib("c") }}
    - ${{ compiler("cxx") }}
    - if: unix
      then:
        - make
  host:
    - libthing
  run_exports:
    - ${{ pin_subpackage("demo") }}

tests:
  - package_contents:
      lib:
        - demo

about:
  license: MIT
"""
DIGITS = 'cuda_compiler_version | replace(".", "")'
ON = 'cuda_compiler_version != "None"'


def edited(folder: Path, pinning: Path, wishes: GpuWishes) -> str:
    return enable_gpu(open_draft(folder), wishes, pinning / "conda_build_config.yaml").recipe.text


def test_a_recipe_gets_what_the_generator_would_write(feedstock: Callable[..., Path], pinning: Path) -> None:
    expected = (
        RECIPE.replace(
            "  build: 3\n",
            "  build: 3\n"
            f"  number: ${{{{ build + 100 * ({DIGITS} | int) if {ON} else build }}}}\n"
            f'  accelerator: ${{{{ "cuda" ~ ({DIGITS}) if {ON} else "cpu_" }}}}\n',
        )
        .replace("number: ${{ build }}", "number: ${{ number }}")
        .replace("  skip: osx\n", "  skip: osx\n  string: ${{ accelerator }}h${{ hash }}_${{ build_number }}\n")
        .replace('("cxx") }}\n', f'("cxx") }}}}\n    - if: {ON}\n      then:\n        - ${{{{ compiler("cuda") }}}}\n')
        .replace(
            "    - libthing\n",
            f"    - libthing\n    - if: {ON}\n      then:\n"
            "        - cuda-version ${{ cuda_compiler_version }}.*\n        - cuda-cudart-dev\n        - libcufft-dev\n"
            f"  run:\n    - if: {ON}\n      then:\n"
            '        - __cuda >=${{ (cuda_compiler_version | default("None") | split("."))[0] }}\n',
        )
        .replace(
            "        - demo\n",
            "        - demo\n  - script:\n"
            f"      - if: linux and {ON}\n        then:\n          - grep -q nv_fatbin ${{PREFIX}}/lib/libdemo.so\n"
            '      - if: linux and cuda_compiler_version == "None"\n        then:\n'
            '          - test -z "$(grep -l nv_fatbin ${PREFIX}/lib/libdemo.so)"\n',
        )
    )
    assert edited(feedstock(recipe_yaml=RECIPE), pinning, GpuWishes(libraries=("cufft",))) == expected


@pytest.mark.parametrize("metapackages", [False, True])
def test_rerender_gives_jobs_with_and_without_cuda(
    feedstock: Callable[..., Path], pinning: Path, metapackages: bool
) -> None:
    folder = feedstock(recipe_yaml=RECIPE, build_sh="cmake -B build .\n")
    wishes = GpuWishes(prefer="cpu", metapackages=metapackages)
    enable_gpu(open_draft(folder), wishes, pinning / "conda_build_config.yaml").changes().apply()
    rerender(folder, pinning=pinning).changes().apply()
    made = {
        (each.name, each.build_string.partition("h")[0], each.build_number)
        for each in outputs(folder, read_configurations(folder))
    }
    names = {("demo", "demo-gpu", "demo-cpu")[at]: at for at in range(3 if metapackages else 1)}
    assert made == {
        (name, string, number)
        for name in names
        for string, number in (("cuda129", 12903), ("cpu_", 100003))
        if not name.endswith("-cpu" if number == 12903 else "-gpu")
    }


def test_a_package_becomes_an_output_with_all_that_is_its_own(feedstock: Callable[..., Path], pinning: Path) -> None:
    text = edited(feedstock(recipe_yaml=RECIPE), pinning, GpuWishes(metapackages=True))
    assert "\nrecipe:\n  name: demo\n" in text
    assert "\nbuild:\n  number: ${{ number }}\n  skip: osx\n\noutputs:\n  - package:\n      name: demo\n" in text
    assert "    build:\n      string: ${{ accelerator }}h${{ hash }}_${{ build_number }}\n" in text
    assert "      # explained\n      script: build.sh\n    requirements:\n      build:\n" in text
    assert '      skip:\n        - osx\n        - cuda_compiler_version == "None"\n' in text
    assert text.endswith("\nabout:\n  license: MIT\n")


def test_an_output_names_the_script_that_ran_unasked(feedstock: Callable[..., Path], pinning: Path) -> None:
    own = RECIPE.replace("  # explained\n  script: build.sh\n", "")
    for files, expected in (({}, False), ({"build_sh": "make\n"}, True)):
        text = edited(feedstock(recipe_yaml=own, **files), pinning, GpuWishes(metapackages=True))
        assert ("_${{ build_number }}\n      script:\n        file: build\n    requirements:" in text) == expected
        assert text.count("script:\n        file") == expected


def test_a_number_of_an_expression_gets_an_offset(feedstock: Callable[..., Path], pinning: Path) -> None:
    own = RECIPE.replace("number: ${{ build }}", 'number: ${{ build + 100 if mpi == "nompi" else build }}')
    own = own.replace("  skip: osx\n", '  string: x_h${{ hash }}_${{ build + 100 if mpi == "nompi" else build }}\n')
    text = edited(feedstock(recipe_yaml=own), pinning, GpuWishes())
    inner = '(build + 100 if mpi == "nompi" else build) | int'
    assert f"  number: ${{{{ {inner} + (100 * ({DIGITS} | int) if {ON} else 0) }}}}\n" in text
    assert "  string: x_${{ accelerator }}h${{ hash }}_${{ build_number }}\n" in text


def test_a_recipe_without_context_gets_one(feedstock: Callable[..., Path], pinning: Path) -> None:
    own = RECIPE.replace('context:\n  version: "1.2"\n  build: 3\n\n', "").replace("${{ version }}", '"1.2"')
    text = edited(feedstock(recipe_yaml=own.replace("${{ build }}", "3")), pinning, GpuWishes())
    assert text.startswith("schema_version: 1\n\ncontext:\n  build: 3\n  number: ${{ build + ")


def test_a_priority_that_exists_is_left_and_named(feedstock: Callable[..., Path], pinning: Path) -> None:
    own = RECIPE.replace("  skip: osx\n", "  variant:\n    down_prioritize_variant: ${{ 1 if win else 0 }}\n")
    config = pinning / "conda_build_config.yaml"
    draft = enable_gpu(open_draft(feedstock(recipe_yaml=own)), GpuWishes(by="both"), config)
    assert "down_prioritize_variant: ${{ 1 if win else 0 }}\n" in draft.recipe.text
    assert any("prefers other builds of demo already" in remark for remark in draft.remarks)
    without = RECIPE.replace("  skip: osx\n", "  variant:\n    use_keys: [mpi]\n")
    text = edited(feedstock(recipe_yaml=without), pinning, GpuWishes(by="track_features"))
    assert (
        '    use_keys: [mpi]\n    down_prioritize_variant: ${{ 1 if cuda_compiler_version == "None" else 0 }}\n' in text
    )
    assert "  number: ${{ build }}\n" in text


def test_platforms_that_are_left_out_are_skipped_with_cuda(feedstock: Callable[..., Path], pinning: Path) -> None:
    text = edited(feedstock(recipe_yaml=RECIPE), pinning, GpuWishes(platforms=("linux-64",)))
    assert f"  skip:\n    - osx\n    - {ON} and not (linux and x86_64)\n" in text


def test_commands_in_the_recipe_get_the_architectures_first(feedstock: Callable[..., Path], pinning: Path) -> None:
    for own, kept in (
        ("script: pip install .", "    - pip install ."),
        ("script:\n    - pip install .", "    - pip install ."),
        ("script: |\n    pip install .\n\n    pip check", "    - |\n      pip install .\n\n      pip check"),
    ):
        recipe = RECIPE.replace("script: build.sh", own).replace("    - libthing\n", "    - python\n    - pytorch\n")
        draft = enable_gpu(
            open_draft(feedstock(recipe_yaml=recipe)),
            GpuWishes(architectures="sm_80,compute_80"),
            pinning / "conda_build_config.yaml",
        )
        assert '\n  script:\n    - if: unix and cuda_compiler_version != "None"\n' in draft.recipe.text
        assert '        - export TORCH_CUDA_ARCH_LIST="8.0+PTX"\n' in draft.recipe.text
        assert f"{kept}\n\nrequirements:" in draft.recipe.text
        assert any("requires pytorch, which has CPU and CUDA builds" in remark for remark in draft.remarks)


def test_commands_choose_by_the_cuda_version(feedstock: Callable[..., Path], pinning: Path) -> None:
    recipe = RECIPE.replace("script: build.sh", "script: pip install .").replace("libthing", "scikit-build-core")
    text = edited(feedstock(recipe_yaml=recipe), pinning, GpuWishes(platforms=("linux-64",)))
    assert text.count("CUDAARCHS") == 1
    assert "'50-real;" in text and " if cuda_compiler_version == '12.9' else '75-real;" in text
    assert "win and" not in text


def test_platforms_that_rattler_build_refuses_anyway_are_named(feedstock: Callable[..., Path], pinning: Path) -> None:
    folder = feedstock(**{"recipe.yaml": RECIPE.replace("number: ${{ build }}", "number: ${{ level }}")})
    (folder / ".ci_support").mkdir()
    for platform, level in (("linux-64", "level:\n- '1'\n"), ("linux-aarch64", ""), ("win-64", "")):
        text = (
            f"{level}c_compiler:\n- gcc\ncxx_compiler:\n- gxx\nc_stdlib:\n- sysroot\ntarget_platform:\n- {platform}\n"
        )
        (folder / f".ci_support/{platform.replace('-', '_')}_.yaml").write_text(text)
    (folder / "conda-forge.yml").write_text("conda_build_tool: rattler-build\n")
    draft = enable_gpu(open_draft(folder), GpuWishes(), pinning / "conda_build_config.yaml")
    refusals = [remark for remark in draft.remarks if "even without the edit" in remark]
    assert len(refusals) == 1
    assert refusals[0].startswith("for linux-aarch64, win-64, even without the edit: rattler-build refuses the recipe")
