"""GPU architectures in build scripts, by the build system that a script calls."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from feedstock_tools.api import GpuWishes, check, enable_gpu, open_draft, read_configurations, rerender
from feedstock_tools.errors import InputError

RECIPE = """\
package:
  name: demo
  version: "1.2"
build:
  number: 0
requirements:
  build:
    - {{ compiler('cxx') }}
    - BUILD
  host:
    - HOST
"""


def recipe(build: str = "make", host: str = "libthing", script: str = "") -> str:
    text = RECIPE.replace("BUILD", build).replace("HOST", host)
    return text.replace("  number: 0\n", f"  number: 0\n{script}")


def draft_of(folder: Path, pinning: Path, wishes: GpuWishes | None = None) -> tuple[dict[str, str], tuple[str, ...]]:
    """The edited files by name, and the remarks."""
    wanted = wishes or GpuWishes(architectures="sm_80,sm_90,compute_90")
    draft = enable_gpu(open_draft(folder), wanted, pinning / "conda_build_config.yaml")
    return {path.name: document.text for path, document in draft.edited.items() if document}, draft.remarks


@pytest.mark.parametrize(
    ("script", "build", "host", "variable", "value"),
    [
        (
            "cmake ${CMAKE_ARGS} .\n",
            "cmake",
            "zlib",
            "CMAKE_ARGS",
            "-DCMAKE_CUDA_ARCHITECTURES=80-real;90-real;90-virtual",
        ),
        ("cmake -B build\n", "cmake", "zlib", "CUDAARCHS", "80-real;90-real;90-virtual"),
        ("CMAKE_ARGS=-DX=1\ncmake ${CMAKE_ARGS} .\n", "cmake", "zlib", "CUDAARCHS", "80-real;90-real;90-virtual"),
        ("$PYTHON -m pip install .\n", "make", "scikit-build-core", "CMAKE_ARGS", "=80-real;90-real;90-virtual"),
        ("$PYTHON -m pip install .\n", "cxx", "pytorch", "TORCH_CUDA_ARCH_LIST", "8.0;9.0+PTX"),
        ("cmake -B build\n", "cmake", "libtorch", "CUDAARCHS", "80-real;90-real;90-virtual"),
        ("$PYTHON -m pip install .\n", "cxx", "meson-python", "CUDAFLAGS", "-gencode arch=compute_80,code=sm_80"),
        ("$PYTHON setup.py install\n", "cxx", "python", "NVCC_APPEND_FLAGS", "-gencode arch=compute_80,code=sm_80"),
        ("meson setup build\n", "meson", "zlib", "CUDAFLAGS", "-gencode arch=compute_90,code=compute_90"),
        ("./configure\nmake\n", "make", "zlib", "NVCC_APPEND_FLAGS", "-gencode arch=compute_90,code=compute_90"),
        ("bazel build //x\n", "bazel", "zlib", "HERMETIC_CUDA_COMPUTE_CAPABILITIES", "sm_80,sm_90,compute_90"),
    ],
)
def test_a_script_sets_what_its_build_system_reads(
    script: str, build: str, host: str, variable: str, value: str, feedstock: Callable[..., Path], pinning: Path
) -> None:
    folder = feedstock(meta_yaml=recipe(build, host), build_sh=f"#!/usr/bin/env bash\nset -eu\n{script}")
    written = draft_of(folder, pinning)[0]["build.sh"]
    assert written.endswith(f"\n\n{script}")
    head = written.removesuffix(script) + f'echo "${{{variable}:-nothing}}"\n'
    for version, expected in (("12.9", value), ("13.0", value), ("None", "nothing")):
        variables = {"PATH": os.environ["PATH"], "cuda_compiler_version": version}
        ended = subprocess.run(["bash", "-c", head], env=variables, capture_output=True, text=True, check=True)
        assert expected in ended.stdout
    variables = {"PATH": os.environ["PATH"], "cuda_compiler_version": "14.0"}
    ended = subprocess.run(["bash", "-c", head], env=variables, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (1, "no GPU architectures for CUDA 14.0\n")


def test_lines_stand_below_the_head_of_a_script(feedstock: Callable[..., Path], pinning: Path) -> None:
    shell = "#!/bin/sh\n# License\n\nset -ex\n\n# Configure\ncmake .\n"
    batch = "@echo on\r\n:: Configure\r\ncmake .\r\n"
    folder = feedstock(meta_yaml=recipe("cmake"), build_sh=shell)
    (folder / "recipe/bld.bat").write_bytes(batch.encode())
    files = draft_of(folder, pinning)[0]
    assert files["build.sh"].startswith("#!/bin/sh\n# License\n\nset -ex\n\n# GPU architectures for the CUDA version")
    assert 'if [ "${cuda_compiler_version:-None}" != "None" ]; then\n' in files["build.sh"]
    assert files["build.sh"].endswith("fi\n\n# Configure\ncmake .\n")
    assert files["bld.bat"] == (
        "@echo on\r\n\r\nrem GPU architectures for the CUDA version of this build\r\n"
        'if "%cuda_compiler_version%"=="12.9" set "CUDAARCHS=80-real;90-real;90-virtual"\r\n'
        'if "%cuda_compiler_version%"=="13.0" set "CUDAARCHS=80-real;90-real;90-virtual"\r\n'
        "\r\n:: Configure\r\ncmake .\r\n"
    )


def test_options_that_turn_cuda_on_go_to_cmake(feedstock: Callable[..., Path], pinning: Path) -> None:
    wishes = GpuWishes(configure=("-DUSE_CUDA=ON",))
    folder = feedstock(meta_yaml=recipe("cmake"), build_sh="cmake ${CMAKE_ARGS} .\n")
    files, remarks = draft_of(folder, pinning, wishes)
    assert '-DCMAKE_CUDA_ARCHITECTURES=${cuda_archs} -DUSE_CUDA=ON"' in files["build.sh"]
    assert not [remark for remark in remarks if "build.sh" in remark]
    folder = feedstock(meta_yaml=recipe(), build_sh="make\n")
    assert "build.sh: add -DUSE_CUDA=ON where make is called in CUDA builds" in draft_of(folder, pinning, wishes)[1]


def test_only_scripts_of_machines_with_cuda_are_edited(feedstock: Callable[..., Path], pinning: Path) -> None:
    folder = feedstock(meta_yaml=recipe("cmake"), build_sh="cmake .\n", bld_bat="cmake .\n")
    for platforms, expected in (
        ((), {"build.sh", "bld.bat"}),
        (("linux-64",), {"build.sh"}),
        (("win-64",), {"bld.bat"}),
    ):
        files, _ = draft_of(folder, pinning, GpuWishes(platforms=platforms))
        assert files.keys() - {"meta.yaml"} == expected


def test_a_cuda_version_without_facts_is_named(feedstock: Callable[..., Path], pinning: Path) -> None:
    config = pinning / "conda_build_config.yaml"
    config.write_text(config.read_text().replace("12.9", "19.4"))
    (pinning / "migrations/cuda130.yaml").unlink()
    files, remarks = draft_of(feedstock(meta_yaml=recipe("cmake"), build_sh="cmake .\n"), pinning)
    assert "build.sh" not in files
    assert "the facts do not know nvcc of CUDA 19.4: choose GPU architectures by hand" in remarks


def test_a_build_system_that_is_not_known_is_named(feedstock: Callable[..., Path], pinning: Path) -> None:
    folder = feedstock(meta_yaml=recipe(), build_sh="waf build\n")
    files, remarks = draft_of(folder, pinning)
    assert "build.sh" not in files
    assert any("build.sh calls no build system that this tool knows" in remark for remark in remarks)


def test_commands_in_a_recipe_get_a_variable(feedstock: Callable[..., Path], pinning: Path) -> None:
    script = "  script: {{ PYTHON }} -m pip install .\n"
    folder = feedstock(meta_yaml=recipe("cmake", "python", script))
    text = draft_of(folder, pinning)[0]["meta.yaml"]
    assert (
        '{% set cuda_archs = {"12.9": "80-real;90-real;90-virtual", "13.0": "80-real;90-real;90-virtual"} %}\n' in text
    )
    item = '    - CUDAARCHS={{ cuda_archs.get(cuda_compiler_version) }}  # [cuda_compiler_version != "None"]\n'
    assert f"  script_env:\n{item}" in text
    folder = feedstock(meta_yaml=recipe("cmake", "python", f"{script}  script_env:\n    - X=1\n"))
    assert f"  script_env:\n    - X=1\n{item}" in draft_of(folder, pinning)[0]["meta.yaml"]


def test_the_check_of_architectures_finds_nothing(feedstock: Callable[..., Path], pinning: Path) -> None:
    for script in ("cmake ${CMAKE_ARGS} .\n", "meson setup build\n", "bazel build //x\n", "make\n"):
        folder = feedstock(meta_yaml=recipe(), build_sh=script)
        enable_gpu(open_draft(folder), GpuWishes(), pinning / "conda_build_config.yaml").changes().apply()
        rerender(folder, pinning=pinning).changes().apply()
        assert not [found for found in check(folder, read_configurations(folder)).findings if "build.sh" in found.key]


@pytest.mark.parametrize(
    "call",
    [
        "cmake ${CMAKE_ARGS} -DX:STRING=NONE -DY=1 .",
        "cmake -S . \\\n    ${CMAKE_ARGS} \\\n    -DX=NONE \\\n    -DY=1",
        "cmake ${CMAKE_ARGS} -DY=1 -DX=NONE",
        "cmake ${CMAKE_ARGS} \\\n    -DY=1 \\\n    -DX=NONE\ntrue",
        "cmake ${CMAKE_ARGS} -DX=NONE -DY=1 -B a\ncmake ${CMAKE_ARGS} -DX=NONE -DY=1 -B b",
    ],
)
def test_a_script_does_not_undo_the_option_for_cuda(call: str, feedstock: Callable[..., Path], pinning: Path) -> None:
    folder = feedstock(meta_yaml=recipe("cmake", "zlib"), build_sh=f"#!/usr/bin/env bash\n{call}\n")
    written = draft_of(folder, pinning, GpuWishes(architectures="sm_80,sm_90", configure=("-DX=CUDA",)))[0]["build.sh"]
    for version, kind in (("12.9", "CUDA"), ("None", "NONE")):
        variables = {"PATH": os.environ["PATH"], "cuda_compiler_version": version}
        script = f'cmake() {{ echo "$@"; }}\n{written}'
        lines = subprocess.check_output(["bash", "-c", script], env=variables, text=True).splitlines()
        assert len(lines) == call.count("cmake ")
        for line in lines:
            assert [word for word in line.split() if word.startswith(("-DX", "-DY"))] == [f"-DX={kind}", "-DY=1"]


@pytest.mark.parametrize(
    "call", ["X=NONE\ncmake ${CMAKE_ARGS} -DX=$X", "cmake ${CMAKE_ARGS}\ncmake ${CMAKE_ARGS} -DX=NONE"]
)
def test_an_option_that_may_be_undone_is_refused_with_its_line(
    call: str, feedstock: Callable[..., Path], pinning: Path
) -> None:
    folder = feedstock(meta_yaml=recipe("cmake", "zlib"), build_sh=f"#!/usr/bin/env bash\n{call}\n")
    with pytest.raises(InputError, match="would undo --configure") as refused:
        draft_of(folder, pinning, GpuWishes(architectures="sm_80", configure=("-DX=CUDA",)))
    assert refused.value.mistakes[0].line == 3
