"""Whether the commands of a CUDA build would compile for CUDA, as its scripts say it."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.check.against_facts import check_feedstock
from feedstock_tools.rerender.configuration import read_configurations

META = """\
package:
  name: demo
  version: "1"
build:
  number: 0
requirements:
  build:
    - {{ compiler('cuda') }}
  run:
    - __cuda
"""
CONFIGURATION = """\
cuda_compiler:
- cuda-nvcc
cuda_compiler_version:
- '12.9'
target_platform:
- PLATFORM
"""


def verdict(folder: Path, meta: str = META, platform: str = "linux-64", **scripts: str) -> tuple[str, list[str]]:
    """The answer of the check, and the findings."""
    recipe, support = folder / "recipe", folder / ".ci_support"
    recipe.mkdir(exist_ok=True)
    support.mkdir()
    (recipe / "meta.yaml").write_text(meta, encoding="utf-8")
    for name, text in scripts.items():
        (recipe / name.replace("_sh", ".sh").replace("_bat", ".bat")).write_text(text, encoding="utf-8")
    name = f"{platform.replace('-', '_')}_.yaml"
    (support / name).write_text(CONFIGURATION.replace("PLATFORM", platform), encoding="utf-8")
    (folder / "conda-forge.yml").write_text("github: {}\n", encoding="utf-8")
    report = check_feedstock(folder, read_configurations(folder))
    answer = next(check for check in report.checks if check.name == "commands for CUDA")
    return str(answer.verdict), [f"{finding.key}: {finding.message}" for finding in report.findings]


@pytest.mark.parametrize(("value", "expected"), [("1", "right"), ("0", "wrong")])
def test_a_variable_that_the_recipe_sets_counts_like_one_of_its_scripts(
    value: str, expected: str, tmp_path: Path
) -> None:
    set_there = f"build:\n  script_env:\n    - FORCE_CUDA={value}\n"
    meta = META.replace("build:\n", set_there, 1)
    assert verdict(tmp_path, meta, build_sh="$PYTHON -m pip install .")[0] == expected


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("cmake -DUSE_CUDA=ON .", "right"),
        ('cmake -D "USE_CUDA:BOOL=ON" .', "right"),
        ("cmake -DGMX_GPU=CUDA $SRC_DIR", "right"),
        ('export CMAKE_ARGS="${CMAKE_ARGS:-} -DX_BACKEND=CUDA"\ncmake ${CMAKE_ARGS} -B $(pwd)/build', "right"),
        ("cmake -DX_BACKEND=NONE ${CMAKE_ARGS} -DX_BACKEND=CUDA .", "right"),
        (
            'if [[ "${cuda_compiler_version}" != None ]]; then A=ON; else A=OFF; fi\ncmake -DUSE_CUDA=$A',
            "right",
        ),
        ('if [ -n "${cuda_compiler_version+x}" ]; then A=1; else A=0; fi\ncmake -DUSE_CUDA=$A', "right"),
        ('ARGS=(-DA=B  # first\n  -DUSE_CUDA=ON\n)\nARGS+=(-DC=D)\ncmake "${ARGS[@]}" .', "right"),
        ('ARGS=(-DUSE_CUDA=ON)\ncmake ${ARGS[@]+"${ARGS[@]}"} .', "right"),
        ("cmake -DUSE_CUDA=ON . || { cat log; exit 1; }\nmake", "right"),
        ("cmake -DUSE_CUDA=ON . || {\n  cat log\n  exit 1\n}\nmake", "right"),
        ("cmake -DUSE_CUDA=ON . || (cat log; exit 1)\nmake", "right"),
        ("cmake -DNO_CUDA=OFF .", "right"),
        ("./configure --prefix=$PREFIX --with-cuda=$PREFIX", "right"),
        ("./configure --enable-nvidia-gpu", "right"),
        ("export FORCE_CUDA=1\n$PYTHON -m pip install . -vv $OPTIONS", "right"),
        ("$PYTHON -m pip install . -C cmake.define.USE_CUDA=ON", "right"),
        ("python tools/build.py --use_cuda", "right"),
        ("nvcc -c kernel.cu", "right"),
        ("cmake -DUSE_CUDA=OFF .", "wrong"),
        ('export CMAKE_ARGS="$CMAKE_ARGS -DX_GPU_BACKEND=CUDA"\ncmake $CMAKE_ARGS -DX_GPU_BACKEND=NONE .', "wrong"),
        ("cmake -DX=CUDA -DX=NONE .", "wrong"),
        ("./configure --without-cuda", "wrong"),
        ("cmake -DNO_CUDA=1 .", "wrong"),
        ("if [[ $cuda_compiler_version == 11.* ]]; then A=ON; else A=OFF; fi\ncmake -DWITH_CUDA=$A", "wrong"),
        ("cmake .", "unknown"),
        ("cmake -DUSE_CUDA=ON $EXTRA .", "unknown"),  # which may undo it
        ("cmake -DUSE_CUDA=OFF $EXTRA .", "unknown"),
        ("cmake -DUSE_CUDA=$(decide) .", "unknown"),
        ("cmake -DUSE_GPU=HIP .", "unknown"),
        ("cmake -DBUILD_CUDA_TESTS=OFF .", "unknown"),
        ("CMAKE_ARGS=-DUSE_CUDA=ON\nmake", "unknown"),  # nobody reads it
        ("if [[ -f x ]]; then\n cmake -DUSE_CUDA=ON .\nfi", "unknown"),
        ("if [[ -f x ]]; then export USE_CUDA=1; else export USE_CUDA=0; fi\npip install .", "unknown"),
        ("nvcc --version", "unknown"),
        ("# cmake -DUSE_CUDA=OFF", "unknown"),
    ],
)
def test_what_a_shell_script_says(tmp_path: Path, script: str, expected: str) -> None:
    assert verdict(tmp_path, build_sh=f"{script}\n")[0] == expected


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("cmake -G Ninja ^\n  -DUSE_CUDA=ON ^\n  %SRC_DIR%", "right"),
        (
            'if "%cuda_compiler_version%"=="None" (\nset A=0\n) else (\nset A=1\n)\ncmake -DUSE_CUDA=%A% .',
            "right",
        ),
        ("set FORCE_CUDA=1\n%PYTHON% -m pip install .", "right"),
        ('set "CMAKE_ARGS=%CMAKE_ARGS% -DX=CUDA"\ncmake %CMAKE_ARGS% -DX=OFF .', "wrong"),
        ("cmake .", "unknown"),
    ],
)
def test_what_a_batch_file_says(tmp_path: Path, script: str, expected: str) -> None:
    assert verdict(tmp_path, platform="win-64", bld_bat=f"{script}\n")[0] == expected


def test_a_cpu_build_labelled_cuda_is_found_at_its_line(tmp_path: Path) -> None:
    answer, findings = verdict(tmp_path, build_sh="set -e\n\ncmake -DUSE_CUDA=OFF .\n")
    message = "-DUSE_CUDA=OFF turns CUDA off, though demo is built with CUDA's compiler: a CPU build labelled CUDA"
    assert (answer, findings) == ("wrong", [f"build.sh:3: {message}"])


def test_a_script_that_ends_for_this_version_of_cuda(tmp_path: Path) -> None:
    script = "case ${cuda_compiler_version} in\n 12.6) A=90 ;;\n *) exit 1 ;;\nesac\ncmake -DUSE_CUDA=ON .\n"
    assert verdict(tmp_path, build_sh=script) == (
        "wrong",
        ["build.sh: the script of demo ends with a failure for these values"],
    )


@pytest.mark.parametrize(
    ("variant", "script", "message"),
    [
        (
            "tegra",
            "if [[ $target_platform == linux-aarch64 ]]; then\n d=sbsa-linux\nelse\n d=x86_64-linux\nfi\n",
            "build.sh:2: it names sbsa-linux, but CUDA 12.9 for Jetson's own system is in targets/aarch64-linux",
        ),
        (
            "sbsa",
            "d=$PREFIX/targets/aarch64-linux/lib\n",
            "build.sh:1: it names aarch64-linux, but CUDA 12.9 for servers is in targets/sbsa-linux",
        ),
        ("sbsa", "d=sbsa-linux\nh=aarch64-linux-gnu\n", None),
        ("tegra", "[[ $arm_variant_type == sbsa ]] && d=targets/sbsa-linux\n", None),
        ("tegra", "if [[ -f x ]]; then d=sbsa-linux; else d=aarch64-linux; fi\n", None),
    ],
)
def test_the_folder_of_cuda_for_other_arm_machines(
    tmp_path: Path, variant: str, script: str, message: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "CONFIGURATION", f"{CONFIGURATION}arm_variant_type:\n- {variant}\n")
    _, findings = verdict(tmp_path, platform="linux-aarch64", build_sh=f"{script}cmake -DUSE_CUDA=ON .\n")
    assert findings == ([message] if message else [])


def test_a_script_in_another_encoding_is_read(tmp_path: Path) -> None:
    (tmp_path / "recipe").mkdir()
    (tmp_path / "recipe" / "build.sh").write_bytes(b"# caf\xe9\ncmake -DUSE_CUDA=ON .\n")
    assert verdict(tmp_path)[0] == "right"


def test_commands_in_a_recipe_and_the_scripts_that_they_call(tmp_path: Path) -> None:
    meta = META.replace("  number: 0\n", "  number: 0\n  script:\n    - bash ${RECIPE_DIR}/make.sh\n")
    assert verdict(tmp_path, meta, make_sh="cmake -DUSE_CUDA=ON .", other_sh="cmake -DUSE_CUDA=OFF .")[0] == "right"


def test_a_package_without_the_compiler_of_cuda_is_not_judged(tmp_path: Path) -> None:
    meta = META.replace("{{ compiler('cuda') }}", "cuda-version")
    assert verdict(tmp_path, meta, build_sh="cmake -DUSE_CUDA=OFF .") == ("right", [])


def test_gpus_that_the_wheel_of_the_same_version_serves_are_remarked(tmp_path: Path) -> None:
    meta = META.replace("demo", "pytorch").replace('version: "1"', "version: 2.8.0")
    script = "export TORCH_CUDA_ARCH_LIST='8.0;9.0;12.0+PTX'\ncmake -DUSE_CUDA=ON ."
    _, findings = verdict(tmp_path, meta, build_sh=script)
    remark = "the wheel of torch 2.8.0 has code for Tesla V100 (7.0), GeForce RTX 2080 (7.5)"
    assert [each for each in findings if remark in each and "which this list leaves out" in each] != []
