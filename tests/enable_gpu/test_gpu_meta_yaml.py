"""CUDA builds for recipes of conda-build with one package."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from feedstock_tools.api import GpuWishes, enable_gpu, open_draft, outputs, read_configurations, rerender

RECIPE = """\
# Kept as it is
{% set version = "1.2" %}

package:
  name: demo
  version: {{ version }}

source:
  url: https://example.org/demo-{{ version }}.tar.gz
  sha256: AAAA

build:
  number: 3
  skip: true  # [osx]

requirements:
  build:
    - {{ compiler("c") }}
    - {{ stdlib("c") }}
    - {{ compiler("cxx") }}
    - cmake               # the newest
    - make                # [unix]
  host:
    - libthing
  run:
    - libthing

test:
  commands:
    - test -f $PREFIX/lib/libdemo${SHLIB_EXT}  # [unix]

about:
  license: MIT
""".replace("AAAA", "a" * 64)
SCRIPT = """\
#!/usr/bin/env bash
set -ex

cmake -B build ${CMAKE_ARGS} .
"""
ON, OFF = '# [cuda_compiler_version != "None"]', '# [cuda_compiler_version == "None"]'
DIGITS = 'cuda_compiler_version | replace(".", "")'


def added(folder: Path, pinning: Path, wishes: GpuWishes) -> list[str]:
    """The lines that an edit adds to a recipe, and `-` lines that it removes."""
    draft = enable_gpu(open_draft(folder), wishes, pinning / "conda_build_config.yaml")
    lines = [line.rstrip() for line in draft.changes().diff() if line.strip() and line[:3] not in {"+++", "---"}]
    return [line[1:].strip().removeprefix("- ") if line[0] == "+" else line for line in lines if line[0] in "+-"]


def test_a_recipe_gets_what_the_generator_would_write(feedstock: Callable[..., Path], pinning: Path) -> None:
    folder = feedstock(meta_yaml=RECIPE)
    assert added(folder, pinning, GpuWishes(libraries=("cublas", "cudnn"))) == [
        "{% set build = 3 %}",
        f"{{% set build = build + 100 * ({DIGITS} | int) %}}  {ON}",
        "-  number: 3",
        "number: {{ build }}",
        f"string: cuda{{{{ {DIGITS} }}}}h{{{{ PKG_HASH }}}}_{{{{ PKG_BUILDNUM }}}}  {ON}",
        f"string: cpu_h{{{{ PKG_HASH }}}}_{{{{ PKG_BUILDNUM }}}}                                                {OFF}",
        f'{{{{ compiler("cuda") }}}}  {ON}',
        f"cuda-version {{{{ cuda_compiler_version }}}}.*  {ON}",
        f"cuda-cudart-dev                             {ON}",
        f"libcublas-dev                               {ON}",
        f"cudnn                                       {ON}",
        f'__cuda >={{{{ (cuda_compiler_version or "None").split(".")[0] }}}}  {ON}',
        'grep -q nv_fatbin ${PREFIX}/lib/libdemo.so  # [linux and cuda_compiler_version != "None"]',
        'test -z "$(grep -l nv_fatbin ${PREFIX}/lib/libdemo.so)"  # [linux and cuda_compiler_version == "None"]',
    ]


def test_rerender_gives_jobs_with_and_without_cuda(feedstock: Callable[..., Path], pinning: Path) -> None:
    folder = feedstock(meta_yaml=RECIPE, build_sh=SCRIPT)
    enable_gpu(open_draft(folder), GpuWishes(), pinning / "conda_build_config.yaml").changes().apply()
    rerender(folder, pinning=pinning).changes().apply()
    configurations = read_configurations(folder)
    assert [each.name for each in configurations] == [
        f"{platform}_cuda_compiler_version{version}"
        for platform in ("linux_64", "linux_aarch64", "win_64")
        for version in ("12.9", "None")
    ]
    made = {
        (each.subdir, each.build_string.partition("h")[0], each.build_number)
        for each in outputs(folder, configurations)
    }
    assert made == {
        (subdir, string, number)
        for subdir in ("linux-64", "linux-aarch64", "win-64")
        for string, number in (("cuda129", 12903), ("cpu_", 3))
    }


def test_a_number_that_the_recipe_computes_goes_on_from_there(feedstock: Callable[..., Path], pinning: Path) -> None:
    head = '{% set build = 3 %}\n{% if mpi == "nompi" %}\n{% set build = build + 100 %}\n{% endif %}\n'
    text = RECIPE.replace('{% set version = "1.2" %}\n', '{% set version = "1.2" %}\n' + head)
    folder = feedstock(meta_yaml=text.replace("number: 3", "number: {{ build }}"))
    draft = enable_gpu(open_draft(folder), GpuWishes(), pinning / "conda_build_config.yaml")
    raised = f"{{% set build = build + 100 * ({DIGITS} | int) %}}  {ON}"
    assert f"{head}{raised}\n" in draft.recipe.text
    assert "  number: {{ build }}\n" in draft.recipe.text


def test_a_number_that_is_a_text_becomes_a_number(feedstock: Callable[..., Path], pinning: Path) -> None:
    text = RECIPE.replace('{% set version = "1.2" %}\n', '{% set version = "1.2" %}\n{% set build = "3" %}\n')
    folder = feedstock(meta_yaml=text.replace("number: 3", "number: {{ build }}"))
    draft = enable_gpu(open_draft(folder), GpuWishes(), pinning / "conda_build_config.yaml")
    assert f"{{% set build = build | int + 100 * ({DIGITS} | int) %}}  {ON}" in draft.recipe.text


def test_several_numbers_each_get_an_offset(feedstock: Callable[..., Path], pinning: Path) -> None:
    folder = feedstock(meta_yaml=RECIPE.replace("  number: 3\n", "  number: 3  # [win]\n  number: 103  # [not win]\n"))
    draft = enable_gpu(open_draft(folder), GpuWishes(prefer="cpu"), pinning / "conda_build_config.yaml")
    assert (
        "  number: {{ 3 + cuda_build }}  # [win]\n  number: {{ 103 + cuda_build }}  # [not win]\n" in draft.recipe.text
    )
    assert f"{{% set cuda_build = cuda_build + 100000 %}}  {OFF}" in draft.recipe.text


def test_the_recipes_own_build_string_keeps_its_parts(feedstock: Callable[..., Path], pinning: Path) -> None:
    own = "  number: 3\n  string: nompi_py{{ CONDA_PY }}h{{ PKG_HASH }}_{{ PKG_BUILDNUM }}\n"
    folder = feedstock(meta_yaml=RECIPE.replace("  number: 3\n", own))
    text = enable_gpu(open_draft(folder), GpuWishes(), pinning / "conda_build_config.yaml").recipe.text
    assert "  string: nompi_{{ accelerator }}py{{ CONDA_PY }}h{{ PKG_HASH }}_{{ PKG_BUILDNUM }}\n" in text
    assert f'{{% set accelerator = "cpu_" %}}\n{{% set accelerator = "cuda" ~ ({DIGITS}) %}}  {ON}\n' in text


def test_a_string_without_a_hash_is_left_and_named(feedstock: Callable[..., Path], pinning: Path) -> None:
    folder = feedstock(meta_yaml=RECIPE.replace("  number: 3\n", "  number: 3\n  string: fixed_0\n"))
    draft = enable_gpu(open_draft(folder), GpuWishes(), pinning / "conda_build_config.yaml")
    assert "  string: fixed_0\n" in draft.recipe.text
    assert any("meta.yaml:14 has no hash" in remark for remark in draft.remarks)


def test_features_prefer_one_build_instead_of_numbers(feedstock: Callable[..., Path], pinning: Path) -> None:
    folder = feedstock(meta_yaml=RECIPE)
    text = enable_gpu(
        open_draft(folder), GpuWishes(by="track_features"), pinning / "conda_build_config.yaml"
    ).recipe.text
    assert "  number: 3\n" in text
    assert f"  track_features:\n    - demo-cpu  {OFF}\n" in text


def test_platforms_that_are_left_out_are_skipped_with_cuda(feedstock: Callable[..., Path], pinning: Path) -> None:
    folder = feedstock(meta_yaml=RECIPE)
    wishes = GpuWishes(platforms=("linux-64",))
    enable_gpu(open_draft(folder), wishes, pinning / "conda_build_config.yaml").changes().apply()
    assert (
        '  skip: true  # [cuda_compiler_version != "None" and not linux64]\n'
        in (folder / "recipe/meta.yaml").read_text()
    )
    rerender(folder, pinning=pinning).changes().apply()
    with_cuda = [each.name for each in read_configurations(folder) if "12.9" in each.name]
    assert with_cuda == ["linux_64_cuda_compiler_version12.9"]


def test_cuda_11_has_its_libraries_in_one_package(feedstock: Callable[..., Path], pinning: Path) -> None:
    folder = feedstock(meta_yaml=RECIPE)
    config = pinning / "conda_build_config.yaml"
    config.write_text(config.read_text().replace("12.9  #", "11.8  #"))
    lines = added(folder, pinning, GpuWishes(libraries=("cublas", "cusolver", "nccl"), guard="minor"))
    assert f"cudatoolkit  {ON}" in lines
    assert f"nccl         {ON.replace('cuda_c', 'linux and cuda_c')}" in lines
    assert f"__cuda >={{{{ cuda_compiler_version }}}}  {ON}" in lines
    assert not [line for line in lines if "cublas" in line or "cuda-version" in line]


def test_both_eras_have_lines_of_their_own(feedstock: Callable[..., Path], pinning: Path) -> None:
    folder = feedstock(meta_yaml=RECIPE)
    config = pinning / "conda_build_config.yaml"
    config.write_text(config.read_text().replace("  - 12.9", "  - 11.8\n  - 12.9"))
    lines = added(folder, pinning, GpuWishes(libraries=("cublas",)))
    old = 'cuda_compiler_version == "11.8"'
    new = f'cuda_compiler_version != "None" and not ({old})'
    assert next(line for line in lines if line.startswith("cudatoolkit ")).endswith(f"# [{old}]")
    assert next(line for line in lines if line.startswith("libcublas-dev ")).endswith(f"# [{new}]")
    assert f'{{{{ compiler("cuda") }}}}  {ON}' in lines


def test_a_package_for_each_python_has_python_in_its_string(feedstock: Callable[..., Path], pinning: Path) -> None:
    folder = feedstock(meta_yaml=RECIPE.replace("  host:\n", "  host:\n    - python\n"))
    text = enable_gpu(open_draft(folder), GpuWishes(), pinning / "conda_build_config.yaml").recipe.text
    assert "string: cpu_py{{ CONDA_PY }}h{{ PKG_HASH }}_{{ PKG_BUILDNUM }}" in text


def test_a_c_recipe_gets_the_host_compiler_of_nvcc(feedstock: Callable[..., Path], pinning: Path) -> None:
    folder = feedstock(meta_yaml=RECIPE.replace('    - {{ compiler("cxx") }}\n', ""))
    lines = added(folder, pinning, GpuWishes())
    assert [line for line in lines if "compiler(" in line] == [
        f'{{{{ compiler("cxx") }}}}   {ON}',
        f'{{{{ compiler("cuda") }}}}  {ON}',
    ]


def test_metapackages_pin_the_builds_of_one_accelerator(feedstock: Callable[..., Path], pinning: Path) -> None:
    folder = feedstock(meta_yaml=RECIPE)
    enable_gpu(open_draft(folder), GpuWishes(metapackages=True), pinning / "conda_build_config.yaml").changes().apply()
    rerender(folder, pinning=pinning).changes().apply()
    found = {
        (each.configuration, each.name, each.build_string.partition("h")[0])
        for each in outputs(folder, read_configurations(folder))
        if each.subdir == "linux-64"
    }
    assert found == {
        ("linux_64_cuda_compiler_version12.9", "demo", "cuda129"),
        ("linux_64_cuda_compiler_version12.9", "demo-gpu", "cuda129"),
        ("linux_64_cuda_compiler_versionNone", "demo", "cpu_"),
        ("linux_64_cuda_compiler_versionNone", "demo-cpu", "cpu_"),
    }


def test_migrations_of_the_feedstock_count_too(feedstock: Callable[..., Path], pinning: Path) -> None:
    folder = feedstock(meta_yaml=RECIPE)
    (folder / ".ci_support/migrations").mkdir(parents=True)
    migration = (pinning / "migrations/cuda130.yaml").read_text().replace("  - 13.0\n", "  - 11.8\n")
    (folder / ".ci_support/migrations/cuda118.yaml").write_text(migration)
    assert any("cudatoolkit" in line for line in added(folder, pinning, GpuWishes(libraries=("cufft",))))


def test_tests_that_compile_are_named(feedstock: Callable[..., Path], pinning: Path) -> None:
    text = RECIPE.replace("test:\n", "test:\n  requires:\n    - {{ compiler('cxx') }}\n")
    draft = enable_gpu(open_draft(feedstock(meta_yaml=text)), GpuWishes(), pinning / "conda_build_config.yaml")
    line = text.splitlines().index("    - {{ compiler('cxx') }}") + 1
    assert any(f"meta.yaml:{line} a test compiles against demo" in remark for remark in draft.remarks)


def test_a_gpu_file_and_commands_become_tests(feedstock: Callable[..., Path], pinning: Path) -> None:
    text = RECIPE.partition("test:")[0]
    wishes = GpuWishes(gpu_files=("bin/demo",), tests=("demo --gpu: yes",))
    lines = added(feedstock(meta_yaml=text), pinning, wishes)
    assert [line for line in lines if line][-5:] == [
        "test:",
        "commands:",
        'grep -q nv_fatbin ${PREFIX}/bin/demo               # [linux and cuda_compiler_version != "None"]',
        'test -z "$(grep -l nv_fatbin ${PREFIX}/bin/demo)"  # [linux and cuda_compiler_version == "None"]',
        f'"demo --gpu: yes"                                  {ON}',
    ]
