"""What lists of GPU architectures leave out, as real feedstocks have them and as people write them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from feedstock_tools.check.architectures import Audience, faults_of
from feedstock_tools.check.script_lists import lists_in_scripts
from feedstock_tools.facts.cuda import load_cuda
from feedstock_tools.gpu_code.architecture_lists import form_of, read_list

FACTS = load_cuda()
LINUX, WINDOWS = Audience("linux-64"), Audience("win-64")
SBSA, TEGRA = Audience("linux-aarch64", False), Audience("linux-aarch64", True)


def faults(cuda: str, text: str, audience: Audience, variable: str = "CUDAARCHS") -> list[tuple[str, str]]:
    listed = read_list(text, form_of(variable))
    return [(weight, message) for message, weight in faults_of(FACTS.toolkits[cuda], listed, audience)]


@pytest.mark.parametrize(
    ("variable", "text", "names"),
    [
        ("TORCH_CUDA_ARCH_LIST", "Pascal;8.0+PTX", "sm_60 sm_61 compute_61 sm_80 compute_80"),
        ("TORCH_CUDA_ARCH_LIST", "Ampere+Tegra", "sm_87"),
        ("TF_CUDA_COMPUTE_CAPABILITIES", "sm_75,compute_80", "sm_75 sm_80 compute_80"),
        ("TF_CUDA_COMPUTE_CAPABILITIES", "7.0,8.0", "sm_70 compute_70 sm_80 compute_80"),
        ("COMPUTE_CAPABILITY", "75;80", "sm_75 sm_80 compute_80"),
        ("GPU_TARGET", "sm_70 sm_80", "sm_70 sm_80 compute_80"),
        ("CUDA_ARCH_LIST", "75-real;80-real", "sm_75 sm_80"),
        ("GMX_CUDA_TARGET_SM", "70;80", "sm_70 sm_80"),
        ("GMX_CUDA_TARGET_COMPUTE", "80", "compute_80"),
        ("CUDA_ARCH_BIN", "7.0 8.0", "sm_70 sm_80"),
        ("CUDA_ARCH_PTX", "8.0", "compute_80"),
    ],
)
def test_each_variable_is_read_as_its_build_system_reads_it(variable: str, text: str, names: str) -> None:
    assert " ".join(map(str, read_list(text, form_of(variable)))) == names


@pytest.mark.parametrize(
    ("cuda", "variable", "text", "audience", "weight", "said"),
    [
        # xformers ed7eac6, build.sh: H100 has nothing.
        ("12.9", "TORCH_CUDA_ARCH_LIST", "8.0;8.9;10.0;12.0+PTX", LINUX, "mistake", "but none for H100 (9.0)"),
        # faiss-split 07340ae, build-lib.sh: 5.3, 6.2 and 7.2 are Jetson's.
        (
            "12.9",
            "CUDAARCHS",
            "53-real;62-real;72-real;75-real;80-real;86-real;89-real;90",
            LINUX,
            "mistake",
            "sm_53, sm_62 and sm_72 are for Jetson modules alone, which do not run linux-64; the desktop GPUs of these "
            "generations have no code: GeForce GTX 750 Ti (5.0), GeForce GTX 980 (5.2), Tesla P100 (6.0), GeForce GTX "
            "1080 (6.1) and Tesla V100 (7.0)",
        ),
        ("12.9", "TORCH_CUDA_ARCH_LIST", "7.2;8.0+PTX", SBSA, "mistake", "which do not run linux-aarch64"),
        ("13.0", "TORCH_CUDA_ARCH_LIST", "7.5;8.0;11.0;12.0+PTX", WINDOWS, "remark", "makes the package larger"),
        ("13.0", "CUDAARCHS", "75-real;80-real;90-real;120", SBSA, "remark", "no code for Jetson AGX Orin (8.7) and"),
        ("12.9", "CUDAARCHS", "72-real;90", TEGRA, "mistake", "no code for Jetson AGX Orin (8.7)"),
        ("12.9", "TORCH_CUDA_ARCH_LIST", "7.0;8.0;9.0", LINUX, "mistake", "GeForce RTX 5090 (12.0)"),
        ("12.8", "TORCH_CUDA_ARCH_LIST", "7.0;12.0+PTX", LINUX, "mistake", "but none for A100 (8.0) to B300 (10.3)"),
        ("12.9", "CUDAARCHS", "90a;120a", LINUX, "mistake", "there is no PTX"),
        ("12.9", "CUDAARCHS", "86-real", LINUX, "mistake", "sm_86 is the only architecture"),
        ("13.0", "TORCH_CUDA_ARCH_LIST", "Volta;8.0+PTX", LINUX, "mistake", "has dropped sm_70"),
    ],
)
def test_what_a_list_does_wrong(
    cuda: str, variable: str, text: str, audience: Audience, weight: str, said: str
) -> None:
    assert any(found == weight and said in message for found, message in faults(cuda, text, audience, variable))


@pytest.mark.parametrize(
    ("cuda", "text", "audience"),
    [
        # Lists of conda-forge: pytorch-cpu 74dd3d46 (both), pytorch_scatter 077c5ff, jaxlib 9123295, cuda-nvcc 3451669.
        ("12.9", "5.0;6.0;7.0;7.5;8.0;8.6;9.0;10.0;12.0+PTX", LINUX),
        ("12.9", "8.7+PTX", TEGRA),
        ("13.0", "7.5;8.0;8.6;9.0;10.0;12.0+PTX", WINDOWS),
        ("12.9", "sm_60,sm_70,sm_75,sm_80,sm_86,sm_89,sm_90,sm_100,sm_120,compute_120", LINUX),
        (
            "13.2",
            "75-real;80-real;86-real;87-real;89-real;90a-real;100f-real;103f-real;110-real;120a-real;121f-real;121-virtual",
            SBSA,
        ),
        ("12.9", "8.0;8.6;8.9;9.0;10.0;12.0+PTX", LINUX),  # begins late on purpose, as flash-attention does
        ("12.9", "90a-real;90-virtual", LINUX),  # for one GPU on purpose
        ("12.9", "50", LINUX),
        ("12.9", "70", TEGRA),
    ],
)
def test_what_is_right(cuda: str, text: str, audience: Audience) -> None:
    assert faults(cuda, text, audience) == []


def lists(folder: Path, file: str, content: str, values: Mapping[str, tuple[str, ...]]) -> list[tuple[str, str]]:
    (folder / file).write_text(content, encoding="utf-8")
    return [
        (found.title, " ".join(map(str, found.architectures())) or ("native" if found.is_native else ""))
        for found in lists_in_scripts(folder, folder, values)
    ]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ('cmake -DCOMPUTE_CAPABILITY="75;80" ..', [("COMPUTE_CAPABILITY", "sm_75 sm_80 compute_80")]),
        ('cmake -DKokkos_ARCH_AMPERE80=ON ..', [("Kokkos_ARCH_AMPERE80", "sm_80 compute_80")]),
        ("cmake -DKokkos_ARCH_AMPERE80=OFF -DKokkos_ARCH_ZEN3=ON ..", []),
        ("cmake -DGMX_CUDA_TARGET_SM=70 ..", [("GMX_CUDA_TARGET_SM", "sm_70")]),
        ('A="7.0;8.0"\nargs=" -DCUDA_ARCH_BIN=${A}"', [("CUDA_ARCH_BIN", "sm_70 sm_80")]),
        ("cmake -DCMAKE_CUDA_ARCHITECTURES=native", [("CMAKE_CUDA_ARCHITECTURES", "native")]),
        ("cmake -DCMAKE_CUDA_ARCHITECTURES=all-major", []),
        ('opts="--with-cuda-arch=70"', [("--with-cuda-arch", "sm_70 compute_70")]),
        ("nvcc -arch=sm_35 -c x.cu", [("nvcc", "sm_35 compute_35")]),
        ("$CUDA_HOME/bin/nvcc --gpu-architecture=compute_70 --gpu-code=sm_70 x.cu", [("nvcc", "sm_70")]),
        ("nvcc -gencode arch=compute_35,code=sm_35 x.cu", [("nvcc", "sm_35")]),
        ("nvcc -arch=native x.cu", [("nvcc", "native")]),
        ("export FLAGS='-gencode arch=compute_35,code=[sm_35,compute_35]'", [("FLAGS", "sm_35 compute_35")]),
        ("# nvcc -arch=sm_35 x.cu\n", []),
        ("gcc -march=native x.c", []),
        ("if [[ $cuda_compiler_version == 11* ]]; then nvcc -arch=sm_35 x.cu; fi", []),
        ("export TORCH_CUDA_ARCH_LIST=Hopper", [("TORCH_CUDA_ARCH_LIST", "sm_90 compute_90")]),
    ],
)  # fmt: skip
def test_lists_under_other_variables_and_in_commands(
    tmp_path: Path, script: str, expected: list[tuple[str, str]]
) -> None:
    values = {"target_platform": ("linux-64",), "cuda_compiler_version": ("12.9",)}
    assert lists(tmp_path, "build.sh", script, values) == expected


def test_the_same_in_batch_scripts(tmp_path: Path) -> None:
    values = {"target_platform": ("win-64",), "cuda_compiler_version": ("12.9",)}
    script = "nvcc.exe -arch=sm_35 x.cu\ncmake -DCOMPUTE_CAPABILITY=75;80 ..\n"
    expected = [("COMPUTE_CAPABILITY", "sm_75 sm_80 compute_80"), ("nvcc", "sm_35 compute_35")]
    assert lists(tmp_path, "bld.bat", script, values) == expected
