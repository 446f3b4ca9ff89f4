"""`cuda check` on small feedstocks that repeat what real ones did, in both formats of recipes."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.check.against_facts import check_feedstock
from feedstock_tools.rerender.configuration import read_configurations

V1 = """\
schema_version: 1
context:
  cuda: ${{ cuda_compiler_version != "None" }}
package:
  name: solver
  version: 1.0.0
build:
  number: NUMBER
  string: STRING
  script:
    env:
      MAX_JOBS: "4"
      ENVIRONMENT
    content:
      - if: cuda
        then:
          - COMMAND
requirements:
  build:
    - if: cuda
      then: ${{ compiler("cuda") }}
  run:
    - if: cuda
      then: RUN
"""
V0 = """\
{% set cuda_major = cuda_compiler_version.split(".")[0] %}
package:
  name: solver
  version: 1.0.0
build:
  number: 0
  script_env:
{% if cuda_major == "11" %}
    - Kokkos_OPT_ARGS=-DKokkos_ARCH_PASCAL60=ON
{% endif %}
{% if cuda_major == "12" %}
    - Kokkos_OPT_ARGS=-DKokkos_ARCH_AMPERE80=ON
{% endif %}
requirements:
  build:
    - {{ compiler("cuda") }}  # [cuda_compiler_version != "None"]
"""
CONFIGURATION = """\
c_compiler:
- gcc
cuda_compiler:
- cuda-nvcc
cuda_compiler_version:
- '{cuda}'
target_platform:
- linux-64
"""


def feedstock(folder: Path, recipe: str, *cudas: str, **words: str) -> Path:
    """A feedstock with this recipe, whose capitals are replaced, and a configuration for each CUDA version."""
    given = {
        "NUMBER": "0",
        "STRING": "h${{ hash }}_0",
        "ENVIRONMENT": "A: b",
        "COMMAND": "make",
        "RUN": "__cuda",
        **words,
    }
    for word, text in given.items():
        recipe = recipe.replace(word, text)
    for name in ("recipe", ".ci_support"):
        (folder / name).mkdir(parents=True)
    is_v1 = recipe.startswith("schema_version")
    (folder / "recipe" / ("recipe.yaml" if is_v1 else "meta.yaml")).write_text(recipe, encoding="utf-8")
    tool = "conda_build_tool: rattler-build\n" if is_v1 else "github: {}\n"
    (folder / "conda-forge.yml").write_text(tool, encoding="utf-8")
    for cuda in cudas:
        path = folder / ".ci_support" / f"linux_64_cuda_compiler_version{cuda}.yaml"
        path.write_text(CONFIGURATION.format(cuda=cuda), encoding="utf-8")
    return folder


def said(folder: Path) -> list[str]:
    return [str(finding) for finding in check_feedstock(folder, read_configurations(folder)).findings]


def only(folder: Path, key: str, message: str, weight: str = "mistake") -> None:
    """One kind of finding, with this key and message."""
    found = check_feedstock(folder, read_configurations(folder)).findings
    assert {(finding.key, finding.weight) for finding in found} == {(key, weight)}
    assert all(message in finding.message for finding in found)


def test_a_list_in_a_recipes_environment(tmp_path: Path) -> None:
    folder = feedstock(tmp_path, V1, "12.9", ENVIRONMENT='TORCH_CUDA_ARCH_LIST: "7.5;8.0"')
    only(folder, "recipe/recipe.yaml:13: TORCH_CUDA_ARCH_LIST", "there is no PTX")


def test_a_list_in_a_recipes_commands_under_a_condition(tmp_path: Path) -> None:
    folder = feedstock(tmp_path, V1, "None", "12.9", COMMAND='export AER_CUDA_ARCH="7.5;8.0;9.0"')
    only(folder, "recipe/recipe.yaml:17: AER_CUDA_ARCH", "there is no PTX")


def test_a_list_of_kokkos_under_a_condition_of_jinja(tmp_path: Path) -> None:
    only(feedstock(tmp_path, V0, "12.9"), "recipe/meta.yaml:12: Kokkos_ARCH_AMPERE80", "sm_80 is the only architecture")


def test_a_list_of_another_cuda_version_is_left_alone(tmp_path: Path) -> None:
    assert said(feedstock(tmp_path, V0, "13.0")) == []


def test_which_of_several_variables_counts_is_not_known(tmp_path: Path) -> None:
    # vllm 0f0bf0b: machine code alone in CUDAARCHS, PTX in TORCH_CUDA_ARCH_LIST.
    block = ["|", 'export CUDAARCHS="75-real;80-real"', 'export TORCH_CUDA_ARCH_LIST="7.5;8.0+PTX"']
    script = f"\n{' ' * 14}".join(block)
    assert said(feedstock(tmp_path, V1, "12.9", COMMAND=script)) == []


def test_variables_that_a_build_system_adds_up(tmp_path: Path) -> None:
    script = "cmake -DGMX_CUDA_TARGET_SM=75 -DGMX_CUDA_TARGET_COMPUTE=75 ."
    assert said(feedstock(tmp_path, V1, "13.0", COMMAND=script)) == []


def test_a_list_that_the_next_cuda_refuses(tmp_path: Path) -> None:
    # bitsandbytes a919fd9 and qiskit-aer a0a3aa8 set their lists whatever the version.
    folder = feedstock(tmp_path, V1, "12.9", ENVIRONMENT='TORCH_CUDA_ARCH_LIST: "7.0;8.0+PTX"')
    key = "recipe/recipe.yaml:13: TORCH_CUDA_ARCH_LIST"
    only(folder, key, "nvcc of CUDA 13.0, which conda-forge's pinning has next, has dropped sm_70", "remark")


def test_a_list_that_is_chosen_by_version_is_ready_for_the_next(tmp_path: Path) -> None:
    script = 'if [[ $cuda_compiler_version == 12* ]]; then export TORCH_CUDA_ARCH_LIST="7.0;8.0+PTX"; else exit 1; fi'
    assert said(feedstock(tmp_path, V1, "12.9", COMMAND=f"'{script}'")) == []


@pytest.mark.parametrize("command", ['set "NVCC_APPEND_FLAGS=', 'export NVCC_APPEND_FLAGS="'])
def test_a_list_that_a_template_chooses_by_version_counts_for_that_version(tmp_path: Path, command: str) -> None:
    old, new = (f"-gencode arch=compute_{n},code=[sm_{n},compute_{n}]" for n in (70, 75))
    chosen = f"{command}${{{{ '{old}' if cuda_compiler_version == '12.9' else '{new}' }}}}\""
    for name, script, expected in (
        ("right", chosen, []),
        (
            "wrong",
            chosen.replace("== '12.9'", "== '13.0'"),
            [f"nvcc of CUDA 13.0 has dropped {name}_70" for name in ("compute", "sm")],
        ),
    ):
        folder = feedstock(tmp_path / name, V1, "13.0", COMMAND=script)
        if command.startswith("set"):
            path = folder / ".ci_support/linux_64_cuda_compiler_version13.0.yaml"
            path.write_text(path.read_text().replace("linux-64", "win-64"))
            path.rename(path.with_name("win_64_cuda_compiler_version13.0.yaml"))
        found = check_feedstock(folder, read_configurations(folder)).findings
        assert [finding.message for finding in found if "has dropped" in finding.message] == expected


@pytest.mark.parametrize(
    ("guard", "message"),
    [
        ("__cuda >=13", "its '__cuda >=13' refuses even 12.9"),
        ("__cuda >=11.8", "its '__cuda >=11.8' allows older ones"),
        ("__cuda>=11.8", "its '__cuda >=11.8' allows older ones"),
    ],
)
def test_a_guard_that_does_not_fit(tmp_path: Path, guard: str, message: str) -> None:
    only(feedstock(tmp_path, V1, "12.9", RUN=guard), "__cuda", message)


def test_a_guard_that_refuses_drivers_that_run_the_build(tmp_path: Path) -> None:
    message = (
        "runs with every driver for CUDA 12 (525.60.13 or later on Linux), but its '__cuda >=12.9' refuses older ones"
    )
    only(feedstock(tmp_path, V1, "12.9", RUN="__cuda >=12.9"), "__cuda", message, "remark")
    old = said(feedstock(tmp_path / "old", V1, "11.8", RUN="__cuda >=11.8"))
    assert not [line for line in old if "refuses older ones" in line]


@pytest.mark.parametrize("guard", ["__cuda", "__cuda >=12", "__cuda >=12.0"])
def test_a_guard_that_fits(tmp_path: Path, guard: str) -> None:
    assert said(feedstock(tmp_path, V1, "None", "12.9", NUMBER="${{ 200 if cuda else 0 }}", RUN=guard)) == []


@pytest.mark.parametrize(
    ("words", "message", "weight"),
    [
        # libtorch of pytorch-cpu 74dd3d46, libfaiss of faiss-split 07340ae.
        ({"NUMBER": "${{ 200 if cuda else 0 }}"}, "its build number is above the CPU build's", "mistake"),
        # qiskit-aer a0a3aa8 raises the number in the build string alone.
        (
            {"STRING": "${{ 'cuda' if cuda else 'cpu' }}_h${{ hash }}_${{ 200 if cuda else 0 }}"},
            "though its build string ends in 200",
            "mistake",
        ),
        ({}, "so solvers take the newer file", "remark"),
    ],
)
def test_a_guard_that_is_missing(tmp_path: Path, words: dict[str, str], message: str, weight: str) -> None:
    only(feedstock(tmp_path, V1, "None", "12.9", RUN="cuda-version", **words), "__cuda", message, weight)


def test_a_gpu_build_of_another_package_is_a_guard(tmp_path: Path) -> None:
    number = "${{ 200 if cuda else 0 }}"
    assert said(feedstock(tmp_path, V1, "None", "12.9", NUMBER=number, RUN='"pytorch * cuda*"')) == []


def test_without_cpu_builds_nothing_needs_a_guard(tmp_path: Path) -> None:
    assert said(feedstock(tmp_path, V1, "12.9", RUN="cuda-version")) == []
