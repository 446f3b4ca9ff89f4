"""What `init` reads in a setup.py without running it."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.generate.first_spec import Origin, first_spec
from feedstock_tools.generate.project import read_project, with_tag
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
    assert "    kernels: true\n" in text
    assert "skip: [python < 3.11]" in text
    builds = ["pytorch * cuda*", "pytorch * cpu*"]
    assert host[:6] == ["python", "pip", "setuptools", "pytorch", *builds]
    assert host[6:] == ["cuda-cudart-dev", "libcublas-dev", "libcusolver-dev", "libcusparse-dev"]
    assert run == ["python", "pytorch >=2.0", "py-opencv", *builds]


@pytest.mark.parametrize("setup", [ALWAYS, "if not SKIP_CUDA_BUILD:\n    made = CUDAExtension('a')\n" + ALWAYS])
def test_an_extension_that_always_needs_cuda_has_no_cpu_build(setup: str, tmp_path: Path) -> None:
    text = spec_of(tmp_path, {"setup.py": setup})[0]
    assert "skip: [cpu, python < 3.11]" in text
    assert "cpu*" not in text


@pytest.mark.parametrize(
    ("pinned", "host"), [({"pytorch"}, ["pytorch", "numpy >=2"]), ({"numpy", "a_b"}, ["pytorch >=2.4", "numpy", "a-b"])]
)
def test_what_the_pinning_has_is_built_with_in_its_version(pinned: set[str], host: list[str], tmp_path: Path) -> None:
    requires = ["torch>=2.4", "numpy>=2", *(["a-b>1"] if "a_b" in pinned else [])]
    files = {"pyproject.toml": f"[build-system]\nrequires = {requires}\n", "setup.py": TORCH}
    project = read_project(write_files(tmp_path, files))
    text = first_spec(project, Origin({"path": "x"}), "someone", self_contained=False, pinned=pinned)
    needs = spec_from_text(text, tmp_path / "feedstock.yaml").outputs[0].requirements
    assert [str(each.package) for each in needs.host][2 : 2 + len(host)] == host
    assert "pytorch >=2.0" in [str(each.package) for each in needs.run]


@pytest.mark.parametrize(
    ("code", "languages"),
    [
        ("ext_modules=[Extension('a', ['a.c'])]", ("c",)),
        ("ext_modules=cythonize('a.pyx')", ("c",)),
        ("ext_modules=[pybind11.setup_helpers.Pybind11Extension('a', ['a.cpp'])]", ("c", "cxx")),
        ("rust_extensions=[RustExtension('a')]", ("c", "rust")),
        ("ext_modules=[Extension('a', ['a.cpp'], language='c++')]", ("c", "cxx")),
        ("packages=['a']", ()),
    ],
)
def test_extensions_tell_the_languages(code: str, languages: tuple[str, ...], tmp_path: Path) -> None:
    write_files(tmp_path, {"setup.py": f"setup(name='a', {code})"})
    assert read_setup_script(tmp_path / "setup.py").languages == languages


BESIDE = """\
from distutils.extension import Extension
import rusty
def extension(): return made()
def made(): return Extension("a", ["a.c"])
def unused(): return rusty.RustExtension("b")
"""


def test_extensions_are_seen_in_a_module_beside_it_that_makes_them(tmp_path: Path) -> None:
    setup = (
        "import sys, beside\nRUST = False\nif '--rust' in sys.argv:\n    RUST = True\nmade = [beside.extension()]\n"
        "if RUST:\n    made.append(beside.unused())\nsetup(name='a', ext_modules=made)\n"
    )
    write_files(tmp_path, {"setup.py": setup, "beside.py": BESIDE})
    assert read_setup_script(tmp_path / "setup.py").languages == ("c",)


def test_a_switch_that_the_machine_turns_on_is_not_off(tmp_path: Path) -> None:
    setup = (
        "GPU = False\nif torch.cuda.is_available():\n    GPU = True\nif GPU:\n    made = CUDAExtension('a', [])\n"
        "setup(name='a')\n"
    )
    write_files(tmp_path, {"setup.py": setup})
    assert "cuda" in read_setup_script(tmp_path / "setup.py").languages


def test_modules_that_a_setup_script_imports_are_in_host_but_not_those_that_it_tries(tmp_path: Path) -> None:
    setup = (
        "import numpy, os\ntry:\n    from Cython.Build import cythonize\nexcept ImportError:\n    pass\n"
        "def made():\n    from setuptools_rust import RustExtension\n    return RustExtension('a')\n"
        "setup(name='a', rust_extensions=made())\n"
    )
    _, host, _ = spec_of(tmp_path, {"setup.py": setup})
    assert host == ["python", "pip", "setuptools", "numpy", "setuptools-rust"]


@pytest.mark.parametrize(("need", "line"), [("numpy", 'variants: {numpy: ["2"]}\n'), ("numpy>=2", "")])
def test_a_spec_without_a_pinning_has_the_numpy_of_conda_forge(need: str, line: str, tmp_path: Path) -> None:
    toml = f"[build-system]\nrequires = ['setuptools', '{need}']\n[project]\nname = 'a'\nversion = '1'\n"
    files = {"pyproject.toml": toml, "setup.py": "setup(ext_modules=[Extension('a', [])])"}
    project = read_project(write_files(tmp_path, files))
    text = first_spec(project, Origin({"path": "x"}), "someone", self_contained=True)
    assert (line in text, "numpy: [" in text) == (True, bool(line))


def test_a_setup_script_that_fetches_wheels_of_its_project_compiles_instead(tmp_path: Path) -> None:
    setup = TORCH + "FORCE = os.getenv('MY_OPS_FORCE_BUILD', 'FALSE') == 'TRUE'\nurllib.request.urlretrieve(WHEEL)\n"
    text, _, _ = spec_of(tmp_path, {"setup.py": setup})
    assert 'environment: {FORCE_CUDA: [{value: "1", when: cuda}], MY_OPS_FORCE_BUILD: "TRUE"}' in text
    assert "# It may fetch files as it builds:" in text


def test_a_setup_script_that_runs_cmake_needs_it_and_its_languages(tmp_path: Path) -> None:
    setup = (
        "import torch\nsubprocess.check_call(['cmake', '--build', '.'])\nsetup(name='a', ext_modules=[CppExtension()])"
    )
    lists = "project(a LANGUAGES CXX CUDA)\nfind_package(ZLIB)\n"
    text, _, run = spec_of(tmp_path, {"setup.py": setup, "csrc/CMakeLists.txt": lists})
    assert "        - compiler: cuda\n        - stdlib: c\n        - cmake\n        - make\n" in text
    assert "# The build looks for ZLIB: name the packages with them in `host`." in text
    assert "skip: [cpu" not in text
    assert run == ["python", "pytorch", "pytorch * cuda*", "pytorch * cpu*"]


@pytest.mark.parametrize("sign", ["package_data={'a': ['liba.so']}", "distclass=D)\nclass D:\n  root_is_pure = (False"])
def test_a_setup_script_that_packs_libraries_is_not_pure(sign: str, tmp_path: Path) -> None:
    code = sign.replace("root_is_pure = (False", "def f(self):\n    self.root_is_pure = (False")
    text, _, _ = spec_of(tmp_path, {"setup.py": f"setup(name='a', {code})"})
    assert "noarch" not in text
    assert "# A guess: its setup.py names no extension and packs libraries" in text


@pytest.mark.parametrize(
    ("files", "sought"),
    [
        ({"setup.py": "setup(name='a', ext_modules=[Extension('a', [], libraries=['m', 'fftw3'])])"}, "fftw3"),
        ({"setup.py": "setup(name='a', ext_modules=[Extension('a')])\nrun(['curl-config', '--libs'])"}, "curl-config"),
        ({"meson.build": "d = dependency('geos', version: 'x')\nt = dependency('threads')", "setup.py": ""}, "geos"),
    ],
)
def test_what_a_build_looks_for_is_named(files: dict[str, str], sought: str, tmp_path: Path) -> None:
    text, _, _ = spec_of(tmp_path, {"PKG-INFO": "Name: a\nVersion: 1\n", **files})
    assert f"# The build looks for {sought}: name the packages with them in `host`." in text


def test_what_is_computed_is_left_out(tmp_path: Path) -> None:
    write_files(tmp_path, {"setup.py": "setup(name='a', version=open('v').read(), **more)"})
    assert read_setup_script(tmp_path / "setup.py").arguments == {"name": "a"}
    assert "version: 0.1.0  # the project has none that can be read" in spec_of(tmp_path, {})[0]


def test_a_pyproject_with_the_settings_of_tools_alone_hides_no_setup_script(tmp_path: Path) -> None:
    files = {"pyproject.toml": "[tool.black]\nline-length = 100\n", "setup.py": "setup(name='a', version='2.1')"}
    assert 'name: a\nversion: "2.1"\n' in spec_of(tmp_path, files)[0]


def test_pure_python_is_built_once(tmp_path: Path) -> None:
    text, host, run = spec_of(tmp_path, {"setup.py": "setup(name='a', python_requires='>=3.12')"})
    assert "    noarch: python\n" in text
    assert 'variants: {python_min: ["3.12"]}' in text
    assert host[0] == "python {python_min}.*"
    assert run == ["python >={python_min}"]


@pytest.mark.parametrize(
    ("marker", "line"),
    [
        (
            "python_version < '3.12'",
            "        - b >=1  # it needs this with python < 3.12 alone, but the package serves every Python",
        ),
        (
            "python_version >= '3.12'",
            "        - b >=1  # it needs this with python >= 3.12 alone, but the package serves every Python",
        ),
        ("python_version < '3.10'", None),
        (
            "python_version < '3.12' and os_name == 'nt'",
            "      # Left out: b >=1; python_version < '3.12' and os_name == 'nt'",
        ),
    ],
)
def test_a_package_that_is_built_once_needs_what_any_python_needs(
    marker: str, line: str | None, tmp_path: Path
) -> None:
    code = f"setup(name='a', install_requires=[\"b>=1; {marker}\"])"
    text, _, run = spec_of(tmp_path, {"setup.py": code})
    assert [each for each in text.splitlines() if "b >=1" in each] == ([line] if line else [])
    assert ("b >=1" in run) == ("- b" in (line or ""))


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


def test_what_a_cargo_toml_says_otherwise_is_a_comment(tmp_path: Path) -> None:
    toml = "[build-system]\nrequires = ['maturin']\nbuild-backend = 'maturin'\n[project]\nname = 'a'\nlicense = 'MIT'\n"
    cargo = (
        "[package]\nversion = '1.0'\nlicense = 'MIT OR Apache-2.0'\nrepository = 'https://example.net/a'\n"
        "[dependencies]\npyo3 = {features = ['abi3-py39']}\n"
    )
    text, _, _ = spec_of(tmp_path, {"pyproject.toml": toml, "Cargo.toml": cargo, "src/lib.rs": "", "LICENSE": ""})
    assert "  # Its Cargo.toml says MIT OR Apache-2.0.\n  license: MIT\n" in text
    assert "# Its Cargo.toml asks for the stable ABI (abi3-py39)" in text
    assert "  homepage: https://example.net/a\n" in text


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


def test_modules_in_cython_that_become_cxx_need_its_compiler(tmp_path: Path) -> None:
    files = {
        "setup.py": "setup(name='a', ext_modules=cythonize('a/b.pyx'))",
        "a/b.pyx": "# distutils: language = c++\n",
    }
    assert read_project(write_files(tmp_path, files)).languages == ("c", "cxx")


def test_a_program_that_maturin_packs_is_run_and_not_imported(tmp_path: Path) -> None:
    toml = "[build-system]\nrequires = ['maturin']\n[project]\nname = 'a'\n[tool.maturin]\nbindings = 'bin'\n"
    text, _, _ = spec_of(tmp_path, {"pyproject.toml": toml})
    assert "    test:\n      pip_check: true\n      commands: [a --help]\n" in text


def test_a_binding_adds_its_language_to_those_of_cmake(tmp_path: Path) -> None:
    toml = "[build-system]\nrequires = ['scikit-build-core', 'pybind11']\n[project]\nname = 'a'\nversion = '1'\n"
    write_files(tmp_path, {"pyproject.toml": toml, "CMakeLists.txt": "project(a LANGUAGES C)"})
    assert read_project(tmp_path).languages == ("c", "cxx")


def test_a_project_without_a_license_file_is_told_at_the_line(tmp_path: Path) -> None:
    text = spec_of(tmp_path, {"pyproject.toml": "[project]\nname = 'a'\nversion = '1'\nlicense = 'MIT'\n"})[0]
    assert "  license_file: LICENSE  # the sources have none under a usual name: add the project's own" in text


def test_all_licenses_of_a_project_with_several_are_named(tmp_path: Path) -> None:
    toml = "[project]\nname = 'a'\nversion = '1'\nlicense = 'MIT OR Apache-2.0'\n"
    text, _, _ = spec_of(tmp_path, {"pyproject.toml": toml, "LICENSE-MIT": "", "LICENSE-APACHE": ""})
    assert "  license_file: [LICENSE-APACHE, LICENSE-MIT]\n" in text


def test_files_of_licenses_that_the_project_lists_are_all_named(tmp_path: Path) -> None:
    info = "Name: a\nVersion: 1\n" + "".join(
        f"License-File: {name}\n"
        for name in ("LICENSE", "AUTHORS", "vendor/b/LICENSE", "../LICENSE", "NOTICE.txt", "COPYING")
    )
    files = {"PKG-INFO": info, **dict.fromkeys(("LICENSE", "AUTHORS", "vendor/b/LICENSE", "NOTICE.txt"), "")}
    text, _, _ = spec_of(write_files(tmp_path.joinpath("x"), {"LICENSE": ""}) / "a", files)
    assert "  license_file: [LICENSE, vendor/b/LICENSE, NOTICE.txt]\n" in text


@pytest.mark.parametrize(
    ("written", "identifier"),
    [
        ("'MIT License'", "MIT"),
        ("{text = 'Apache License, Version 2.0'}", "Apache-2.0"),
        ("{text = 'The BSD 3-Clause License'}", "BSD-3-Clause"),
        ("'BSD'", "LicenseRef-Unknown"),
    ],
)
def test_names_of_licenses_in_free_text(written: str, identifier: str, tmp_path: Path) -> None:
    toml = f"[project]\nname = 'a'\nversion = '1'\nlicense = {written}\n"
    assert f"  license: {identifier}" in spec_of(tmp_path, {"pyproject.toml": toml})[0]


@pytest.mark.parametrize(
    ("marker", "line"),
    [
        ("python_version < '3.12'", '- {package: "b >=1,<2", when: python < 3.12}'),
        ("(sys_platform != 'win32') and python_version>='3.9'", '- {package: "b >=1,<2", when: not win}'),
        ("platform_python_implementation != 'PyPy'", "- b >=1,<2"),
        ("python_version < '3.10'", None),
        ("python_version != '3.15'", "- b >=1,<2"),
        ("python_version >= '3.15'", "# Left out: b >=1,<2; python_version >= '3.15'"),
        ("extra == 'c'", None),
        ("os_name == 'x' or extra == 'c'", "# Left out: b >=1,<2; os_name == 'x' or extra == 'c'"),
    ],
)
def test_markers_become_conditions(marker: str, line: str | None, tmp_path: Path) -> None:
    code = f"setup(name='a', ext_modules=[Extension('a', [])], install_requires=[\"b>=1,<2; {marker}\"])"
    text, _, _ = spec_of(tmp_path, {"setup.py": code})
    assert [each.strip() for each in text.splitlines() if "b >=1" in each] == ([line] if line else [])


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


def test_a_variable_that_may_turn_cuda_on_is_named(tmp_path: Path) -> None:
    text = spec_of(tmp_path, {"setup.py": TORCH.replace("FORCE_CUDA", "RING_CUDA")})[0]
    assert (
        "    # Its setup.py reads RING_CUDA, which nothing sets: add what GPU builds need to `environment`.\n" in text
    )
    places = TORCH.replace('os.getenv("FORCE_CUDA")', 'os.getenv("CUDA_HOME") or os.getenv("TORCH_CUDA_ARCH_LIST")')
    assert "setup.py reads" not in spec_of(tmp_path, {"setup.py": places})[0]


@pytest.mark.parametrize(
    ("asked", "value"),
    [('os.getenv("RING_FORCE_CUDA", "0") == "1"', "1"), ('os.environ["RING_FORCE_CUDA"].upper() == "ON"', None)],
)
def test_a_variable_of_the_project_that_forces_cuda_is_set_where_1_turns_it_on(
    asked: str, value: str | None, tmp_path: Path
) -> None:
    text = spec_of(tmp_path, {"setup.py": TORCH.replace('os.getenv("FORCE_CUDA")', asked)})[0]
    assert (f'environment: {{RING_FORCE_CUDA: [{{value: "{value}", when: cuda}}]}}' in text) == (value is not None)
    assert ("Its setup.py reads RING_FORCE_CUDA, which nothing sets" in text) == (value is None)


@pytest.mark.parametrize(
    ("files", "version"),
    [
        pytest.param(
            {"pyproject.toml": '[tool.setuptools.dynamic]\nversion = {file = "VERSION"}\n', "VERSION": "2.0.3\n"},
            "2.0.3",
            id="a file",
        ),
        pytest.param({"Cargo.toml": '[package]\nversion = "0.9.1"\n'}, "0.9.1", id="a crate"),
        pytest.param({"src/a/__init__.py": '__version__: str = "3.4.5rc1"\n'}, "3.4.5rc1", id="a module"),
        pytest.param(
            {"pyproject.toml": '[tool.setuptools.dynamic]\nversion = {file = "../x"}\n'}, "0.1.0", id="outside"
        ),
        pytest.param({"a/__init__.py": '__version__ = "x y"\n'}, "0.1.0", id="no version"),
    ],
)
def test_a_version_is_read_where_the_project_has_it(files: dict[str, str], version: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("9.9")
    setup = {"setup.py": "import re\nsetup(name='a', version=re.search('x', open('a').read())[0])"}
    text = spec_of(tmp_path / "project", setup | files)[0]
    assert text.partition("version: ")[2].partition("\n")[0].partition("  #")[0].strip('"') == version


@pytest.mark.parametrize(
    ("files", "variable"),
    [
        pytest.param(
            {"pyproject.toml": "[tool.setuptools_scm]\n"}, "SETUPTOOLS_SCM_PRETEND_VERSION", id="setuptools-scm"
        ),
        pytest.param(
            {
                "pyproject.toml": "[build-system]\nrequires = ['setuptools-scm']\n"
                "[project]\nname='a'\ndynamic=['version']\n"
            },
            "SETUPTOOLS_SCM_PRETEND_VERSION",
            id="setuptools-scm without a table",
        ),
        pytest.param(
            {"setup.py": "setup(name='a', use_scm_version=True)"}, "SETUPTOOLS_SCM_PRETEND_VERSION", id="setup.py"
        ),
        pytest.param(
            {"pyproject.toml": '[tool.hatch.version]\nsource = "vcs"\n'},
            "SETUPTOOLS_SCM_PRETEND_VERSION",
            id="hatch-vcs",
        ),
        pytest.param({"pyproject.toml": '[tool.pdm.version]\nsource = "scm"\n'}, "PDM_BUILD_SCM_VERSION", id="pdm"),
        pytest.param(
            {"pyproject.toml": "[tool.poetry-dynamic-versioning]\n"}, "POETRY_DYNAMIC_VERSIONING_BYPASS", id="poetry"
        ),
        pytest.param({"pyproject.toml": "[tool.versioningit]\n"}, "", id="versioningit"),
        pytest.param({"pyproject.toml": '[tool.hatch.version]\npath = "a.py"\n'}, None, id="a file"),
        pytest.param(
            {"PKG-INFO": "Name: a\nVersion: 2.0\n", "pyproject.toml": "[tool.setuptools_scm]\n"}, None, id="sdist"
        ),
    ],
)
def test_a_version_of_git_is_given_to_the_build(files: dict[str, str], variable: str | None, tmp_path: Path) -> None:
    project = with_tag(read_project(write_files(tmp_path, {"setup.py": "setup(name='a')", **files})), ("v3.2.0", 2))
    text = first_spec(project, Origin({"path": "x"}), "someone", self_contained=False)
    spec = spec_from_text(text, tmp_path / "feedstock.yaml")
    assert project.version_of_git == variable
    assert (f'environment: {{{variable}: "{{version}}"}}' in text) == bool(variable)
    assert ("see that the package has this one" in text) == (variable == "")
    assert (spec.version == "3.2.0") == (variable is not None)
    assert ("# the last tag, 2 commits before\n" in text) == (variable is not None)


@pytest.mark.parametrize(
    ("tag", "version"),
    [("v1.2", "1.2"), ("pkg-1.2.0rc1", "1.2.0rc1"), ("release/2.0", "2.0"), ("nightly-7f", None), ("v1; rm", None)],
)
def test_the_version_of_a_tag(tag: str, version: str | None, tmp_path: Path) -> None:
    files = {"pyproject.toml": "[project]\nname = 'a'\n[tool.setuptools_scm]\n"}
    assert with_tag(read_project(write_files(tmp_path, files)), (tag, 0)).version == version
