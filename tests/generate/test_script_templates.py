"""Generated build scripts: options and folder of the project reach its build system."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.generate.spec.reading import spec_from_text
from feedstock_tools.generate.texts.rendering import render
from tests.generate.test_spec_mistakes import REVIEWED

SCRIPT = "{template: cmake}"


def _scripts(script: str) -> dict[str, str]:
    texts = render(spec_from_text(REVIEWED.replace(SCRIPT, script)))
    return {path.name: text for path, text in texts.items() if path.name.startswith("build-")}


@pytest.mark.parametrize(
    ("template", "unix", "windows"),
    [
        ("cmake", "cmake -S sub/dir -B build", "cmake -S sub\\dir -B build"),
        ("meson", "build sub/dir", "build sub\\dir"),
        ("bazel", "cd sub/dir\n", "cd sub\\dir "),
        ("pip", "pip install ./sub/dir ", "pip install .\\sub\\dir "),
        ("setuptools", "pip install ./sub/dir ", "pip install .\\sub\\dir "),
        ("scikit-build-core", "pip install ./sub/dir ", "pip install .\\sub\\dir "),
    ],
)
def test_options_and_folder_reach_the_build_system(template: str, unix: str, windows: str) -> None:
    scripts = _scripts(f"{{template: {template}, folder: sub/dir, options: ['-DX=a b']}}")

    assert unix in scripts["build-libdemo.sh"]
    assert "-DX=a b'" in scripts["build-libdemo.sh"]
    assert windows in scripts["build-libdemo.bat"]
    assert '-DX=a b"' in scripts["build-libdemo.bat"]


@pytest.mark.parametrize("template", ["cmake", "scikit-build-core"])
def test_options_for_gpu_builds_reach_cmake_in_these_alone(template: str) -> None:
    scripts = _scripts(f"{{template: {template}, cuda_options: [-DUSE_CUDA=ON, -DUSE_NCCL=ON]}}")

    unix, windows = scripts["build-libdemo.sh"], scripts["build-libdemo.bat"]
    block = unix[unix.index('if [[ "${cuda_compiler_version}" != "None" ]]') : unix.index("\nfi\n")]
    assert 'CMAKE_ARGS="${CMAKE_ARGS:-} -DUSE_CUDA=ON -DUSE_NCCL=ON"' in block
    assert '"%cuda_compiler_version%"=="None" set "CMAKE_ARGS=%CMAKE_ARGS% -DUSE_CUDA=ON -DUSE_NCCL=ON"' in windows


def test_options_for_gpu_builds_are_for_cmake() -> None:
    with pytest.raises(InputError, match="'cuda_options' require the template cmake or scikit-build-core"):
        spec_from_text(REVIEWED.replace(SCRIPT, "{template: pip, cuda_options: [-DX=ON]}"), Path("feedstock.yaml"))


def test_options_without_a_template_are_a_mistake() -> None:
    with pytest.raises(InputError, match="'options' and 'folder' require a template"):
        spec_from_text(REVIEWED.replace(SCRIPT, "{commands: [x], options: [y]}"), Path("feedstock.yaml"))


@pytest.mark.parametrize(
    ("template", "passed"),
    [
        ("cmake", "-DCMAKE_CUDA_ARCHITECTURES=${CUDAARCHS}"),
        ("scikit-build-core", "-DCMAKE_CUDA_ARCHITECTURES=${CUDAARCHS}"),
        ("bazel", "--repo_env=CUDAARCHS"),
        ("pip", 'source "${RECIPE_DIR}/archs.sh"'),
    ],
)
def test_the_architectures_reach_the_build_system(template: str, passed: str) -> None:
    text = REVIEWED.replace(
        "{versions: [12.9],",
        "{versions: [12.9], architectures: common, script: {file: archs.sh, variable: CUDAARCHS, style: cmake},",
    ).replace(SCRIPT, f"{{template: {template}}}")
    texts = render(spec_from_text(text))
    assert passed in next(made for path, made in texts.items() if path.name == "build-libdemo.sh")
