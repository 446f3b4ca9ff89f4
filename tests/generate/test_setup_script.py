"""What `init` reads in a setup.py without running it."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.generate.first_spec import Origin, first_spec
from feedstock_tools.generate.project import read_project
from feedstock_tools.generate.setup_script import read_setup_script
from feedstock_tools.generate.spec.reading import spec_from_text
from tests.support.whole_tree import write_files

TORCH = """\
import os
from setuptools import setup
import torch
from torch.utils.cpp_extension import BuildExtension, CUDAExtension, CppExtension
VERSION = "0.4.1"
MACROS = [("WITH_CUDA", None)]
raise SystemExit("it was run")
extension = CUDAExtension if torch.cuda.is_available() or os.getenv("FORCE_CUDA") else CppExtension
setup(
    name="My_Ops", version=VERSION, description="Operators", python_requires=">=3.11", url="https://example.org/ops",
    install_requires=["torch>=2.0", "OpenCV_python"], ext_modules=[extension("my_ops._C", ["a.cpp", "b.cu"])],
    cmdclass={"build_ext": BuildExtension},
)
"""
ALWAYS = TORCH.replace("extension = CUDAExtension if torch.cuda.is_available() or ", "extension = CUDAExtension #")


def spec_of(folder: Path, files: dict[str, str]) -> tuple[str, list[str], list[str]]:
    """The text of the first spec, and its requirements in `host` and `run`."""
    text = first_spec(read_project(write_files(folder, files)), Origin({"path": "x"}), "someone", self_contained=False)
    requirements = spec_from_text(text, folder / "feedstock.yaml").outputs[0].requirements
    return text, [str(each.package) for each in requirements.host], [str(each.package) for each in requirements.run]


def test_an_extension_of_pytorch_gets_cuda_builds(tmp_path: Path) -> None:
    text, host, run = spec_of(tmp_path, {"setup.py": TORCH})
    assert "name: my-ops\nversion: 0.4.1\n" in text
    assert "variable: TORCH_CUDA_ARCH_LIST, style: torch" in text
    assert 'environment: {FORCE_CUDA: [{value: "1", when: cuda}]}' in text
    assert "skip: [python < 3.11]" in text
    assert host[:4] == ["python", "pip", "setuptools", "pytorch"]
    assert host[4:] == ["cuda-cudart-dev", "libcublas-dev", "libcusolver-dev", "libcusparse-dev"]
    assert run == ["python", "pytorch >=2.0", "py-opencv"]


def test_an_extension_that_always_needs_cuda_has_no_cpu_build(tmp_path: Path) -> None:
    assert "skip: [cpu, python < 3.11]" in spec_of(tmp_path, {"setup.py": ALWAYS})[0]


@pytest.mark.parametrize(
    ("code", "languages"),
    [
        ("ext_modules=[Extension('a', ['a.c'])]", ("c",)),
        ("ext_modules=cythonize('a.pyx')", ("c",)),
        ("ext_modules=[pybind11.setup_helpers.Pybind11Extension('a', ['a.cpp'])]", ("c", "cxx")),
        ("rust_extensions=[RustExtension('a')]", ("c", "rust")),
        ("packages=['a']", ()),
    ],
)
def test_extensions_tell_the_languages(code: str, languages: tuple[str, ...], tmp_path: Path) -> None:
    write_files(tmp_path, {"setup.py": f"setup(name='a', {code})"})
    assert read_setup_script(tmp_path / "setup.py").languages == languages


def test_what_is_computed_is_left_out(tmp_path: Path) -> None:
    write_files(tmp_path, {"setup.py": "setup(name='a', version=open('v').read(), **more)"})
    assert read_setup_script(tmp_path / "setup.py").arguments == {"name": "a"}
    assert "version: 0.1.0  # the project names none" in spec_of(tmp_path, {})[0]


def test_a_pyproject_with_the_settings_of_tools_alone_hides_no_setup_script(tmp_path: Path) -> None:
    files = {"pyproject.toml": "[tool.black]\nline-length = 100\n", "setup.py": "setup(name='a', version='2.1')"}
    assert 'name: a\nversion: "2.1"\n' in spec_of(tmp_path, files)[0]


def test_pure_python_is_built_once(tmp_path: Path) -> None:
    text, host, run = spec_of(tmp_path, {"setup.py": "setup(name='a', python_requires='>=3.12')"})
    assert "    noarch: python\n" in text
    assert 'variants: {python_min: ["3.12"]}' in text
    assert host[0] == "python {python_min}.*"
    assert run == ["python >={python_min}"]


@pytest.mark.parametrize("text", ["print 'old'", "setup(", "(" * 100_000])
def test_a_setup_script_that_is_not_python_is_an_error_with_its_path(text: str, tmp_path: Path) -> None:
    write_files(tmp_path, {"setup.py": text})
    with pytest.raises(InputError, match=r"setup\.py.*is not Python"):
        read_project(tmp_path)


def test_a_rust_project_bundles_the_licenses_of_its_crates(tmp_path: Path) -> None:
    toml = "[build-system]\nrequires = ['maturin']\nbuild-backend = 'maturin'\n[project]\nname = 'a'\nversion = '1'\n"
    text, _, _ = spec_of(tmp_path, {"pyproject.toml": toml, "src/lib.rs": "", "LICENSE": ""})
    assert "- cargo-bundle-licenses --format yaml --output THIRDPARTY.yml\n" in text
    assert "license_file: [LICENSE, THIRDPARTY.yml]\n" in text
    assert [line for line in text.splitlines() if "compiler:" in line or line.endswith("- cargo-bundle-licenses")] == [
        "        - compiler: c",
        "        - compiler: rust",
        "        - cargo-bundle-licenses",
    ]


def test_sources_in_fortran_need_its_compiler(tmp_path: Path) -> None:
    toml = (
        "[build-system]\nrequires = ['meson-python']\nbuild-backend = 'mesonpy'\n[project]\nname = 'a'\nversion = '1'\n"
    )
    assert "- compiler: fortran\n" in spec_of(tmp_path, {"pyproject.toml": toml, "src/a.f90": ""})[0]


MESON = "[build-system]\nrequires = ['meson-python']\nbuild-backend = 'mesonpy'\n[project]\nname = 'a'\nversion = '1'\n"


@pytest.mark.parametrize(
    ("build", "languages"),
    [
        ("project('a', 'c', 'cpp', version: '1')", ("c", "cxx")),
        ("project('a', ['cpp', 'cython'])\nadd_languages('fortran', native: false)", ("c", "cxx", "fortran")),
        ("# project('a', 'cuda')\nproject('a', 'c')", ("c",)),
    ],
)
def test_the_languages_of_a_meson_project(build: str, languages: tuple[str, ...], tmp_path: Path) -> None:
    write_files(tmp_path, {"pyproject.toml": MESON, "meson.build": build})
    assert read_project(tmp_path).languages == languages


def test_modules_in_cython_that_an_unknown_backend_compiles_need_it(tmp_path: Path) -> None:
    toml = "[build-system]\nrequires = ['setuptools']\nbuild-backend = 'hooks'\n[project]\nname = 'a'\nversion = '1'\n"
    text, _, _ = spec_of(tmp_path, {"pyproject.toml": toml, "src/a/b.pyx": ""})
    assert "        - compiler: c\n" in text
    assert "        - cython  # a guess: it has .pyx files and names no Cython\n" in text


def test_a_binding_adds_its_language_to_those_of_cmake(tmp_path: Path) -> None:
    toml = "[build-system]\nrequires = ['scikit-build-core', 'pybind11']\n[project]\nname = 'a'\nversion = '1'\n"
    write_files(tmp_path, {"pyproject.toml": toml, "CMakeLists.txt": "project(a LANGUAGES C)"})
    assert read_project(tmp_path).languages == ("c", "cxx")


def test_all_licenses_of_a_project_with_several_are_named(tmp_path: Path) -> None:
    toml = "[project]\nname = 'a'\nversion = '1'\nlicense = 'MIT OR Apache-2.0'\n"
    text, _, _ = spec_of(tmp_path, {"pyproject.toml": toml, "LICENSE-MIT": "", "LICENSE-APACHE": ""})
    assert "  license_file: [LICENSE-APACHE, LICENSE-MIT]\n" in text


@pytest.mark.parametrize(
    ("packages", "module"),
    [
        (("pywt", "tests"), "pywt"),
        (("pywt", "py_waves"), "py_waves"),
        (("one", "two"), "py_waves"),
        ((), "py_waves"),
    ],
)
def test_the_module_is_the_one_of_the_name_else_the_only_one(
    packages: tuple[str, ...], module: str, tmp_path: Path
) -> None:
    files = {f"{package}/__init__.py": "" for package in packages}
    write_files(tmp_path, {"pyproject.toml": "[project]\nname = 'py-waves'\nversion = '1'\n", **files})
    assert read_project(tmp_path).module == module
