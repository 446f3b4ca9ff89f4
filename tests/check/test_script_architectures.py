"""Lists of GPU architectures in build scripts, found without running them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from feedstock_tools.check.script_lists import lists_in_scripts

LINUX = {"target_platform": ("linux-64",), "cuda_compiler_version": ("12.9",)}
WINDOWS = {"target_platform": ("win-64",), "cuda_compiler_version": ("12.9",)}


def texts(folder: Path, file: str, content: str, values: Mapping[str, tuple[str, ...]]) -> set[str]:
    (folder / file).write_text(content, encoding="utf-8")
    return {found.text for found in lists_in_scripts(folder, folder, values)} - {""}


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("export TORCH_CUDA_ARCH_LIST='8.0;9.0+PTX'", {"8.0;9.0+PTX"}),
        ("CUDAARCHS=80  # not 70\nCUDAARCHS+=';90'", {"80;90"}),
        ("case $cuda_compiler_version in\n 12.[89]) CUDAARCHS=90 ;;\n *) exit 1;;\nesac", {"90"}),
        ("case ${cuda_compiler_version} in\n  11.*)\n CUDAARCHS=70\n ;;\n *) CUDAARCHS=90;;\nesac", {"90"}),
        ('if [[ "${cuda_compiler_version}" == 12.* ]]; then\n CUDAARCHS=90\nelse\n CUDAARCHS=70\nfi', {"90"}),
        ('if [ $cuda_compiler_version != "None" ] && [[ $target_platform == linux-* ]]; then CUDAARCHS=90; fi', {"90"}),
        ('if [[ "${arm_variant_type}" == tegra ]]; then CUDAARCHS=87; else CUDAARCHS=90; fi', {"90"}),
        ('if [[ "$OSTYPE" == "darwin"* ]]; then make; else CUDAARCHS=90; fi', {"90"}),
        ('if [[ "${OTHER}" == tegra ]]; then CUDAARCHS=87; else CUDAARCHS=90; fi', {"87", "90"}),
        ("if [[ -f x ]]; then\n CUDAARCHS=70\n exit 1\nfi\nCUDAARCHS=90", {"90"}),
        ("CUDAARCHS=80\nexit 0", {"80"}),
        ("if [[ -f x ]]; then\n CUDAARCHS=70\n exit\nfi\nCUDAARCHS=90\nexit $?", {"70", "90"}),
        ("die() { echo no; exit 1; }\nCUDAARCHS=80 || die", {"80"}),
        ("function arch\n{\n CUDAARCHS=80\n}\narch\n", {"80"}),
        ("cat <<'EOF' > file\nCUDAARCHS=10\nEOF\nCUDAARCHS=80", {"80"}),
        ('read x <<< "$y"\nCUDAARCHS=80', {"80"}),
        ('[[ "$cuda_compiler_version" == "11.8" ]] && export CUDAARCHS=70', set()),
        ('A="80;90"\ncmake -G Ninja \\\n  -DCMAKE_CUDA_ARCHITECTURES="$A" .', {"80;90"}),
        ('A=80-real\nargs="-DCMAKE_CUDA_ARCHITECTURES=${A};90"', {"80-real;90"}),
        ('A="80;90"\ndefines+=( "X=1" \\\n  "CMAKE_CUDA_ARCHITECTURES=${A}"\n)', {"80;90"}),
        ('d+=( "${x#"-D"}" )\nCUDAARCHS=80', {"80"}),
        ("export CUDAARCHS=$(nvidia-smi)", set()),
        ("export CUDAARCHS=all-major", set()),
        ("cat <<EOF\nCUDAARCHS=10\nEOF\n", set()),
        ('export G="-gencode=arch=compute_80,code=sm_80"', {"-gencode=arch=compute_80,code=sm_80"}),
        ("V=${cuda_compiler_version%%.*}\nif [[ $V == 12 ]]; then CUDAARCHS=90; fi", {"90"}),
        ("if true; then\ncase", set()),  # a script that ends too early
    ],
)
def test_in_a_shell_script(tmp_path: Path, script: str, expected: set[str]) -> None:
    assert texts(tmp_path, "build.sh", script, LINUX) == expected


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ('@echo off\nset "TORCH_CUDA_ARCH_LIST=8.0;9.0+PTX"', {"8.0;9.0+PTX"}),
        ('set CUDAARCHS=80\nset "CUDAARCHS=%CUDAARCHS%;90"', {"80;90"}),
        ('if "%cuda_compiler_version:~0,2%"=="12" (\n set "CUDAARCHS=90"\n) else (\n set "CUDAARCHS=70"\n)', {"90"}),
        (
            'if "%cuda_compiler_version%" == "11.8" (\nset CUDAARCHS=70\n) else if "%x%"=="y" (\nset CUDAARCHS=80\n)',
            {"80"},
        ),
        ('if not "%cuda_compiler_version%"=="None" set "CUDAARCHS=90"', {"90"}),
        ('if defined X set "CUDAARCHS=90"\nexit /b 0', {"90"}),
        ('if not exist "a b" exit /b 1\nif %x% lss 5 exit 1\nset CUDAARCHS=90\nexit /b %ERRORLEVEL%', {"90"}),
        ("if EXIST x (\n  del x\n)\nrem set CUDAARCHS=10\n:: set CUDAARCHS=20\nset CUDAARCHS=90", {"90"}),
        ("set A=90\npython build.py --cmake_extra_defines X=1 CMAKE_CUDA_ARCHITECTURES=%A% ^\n  --build", {"90"}),
        ("set A=90\ncmake -DCMAKE_CUDA_ARCHITECTURES=!A! ^\n  .", {"90"}),
    ],
)
def test_in_a_batch_script(tmp_path: Path, script: str, expected: set[str]) -> None:
    assert texts(tmp_path, "bld.bat", script, WINDOWS) == expected


def test_a_list_that_may_be_there_or_not_is_not_certain(tmp_path: Path) -> None:
    (tmp_path / "build.sh").write_text("if [[ -f x ]]; then CUDAARCHS=70; fi", encoding="utf-8")
    assert [found.text for found in lists_in_scripts(tmp_path, tmp_path, LINUX)] == ["", "70"]


def test_scripts_of_other_systems_are_passed_over(tmp_path: Path) -> None:
    assert texts(tmp_path, "bld.bat", "set CUDAARCHS=90", LINUX) == set()
    assert texts(tmp_path, "build.sh", "CUDAARCHS=90", WINDOWS) == {"90"}  # of bld.bat
