"""A first spec from a project: it generates, and asks by comments for what the project does not say."""

from __future__ import annotations

import os
import shlex
import subprocess
from hashlib import sha256
from pathlib import Path, PurePosixPath
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result

from feedstock_tools.cli.spec import init as command
from feedstock_tools.errors import InputError, WorkError
from feedstock_tools.generate.generating import generate
from feedstock_tools.generate.spec.reading import read_spec
from feedstock_tools.generate.texts.rendering import render
from tests.channel.test_package_index import archive_of
from tests.support.git import committed
from tests.support.whole_tree import write_files

CMAKE = """\
cmake_minimum_required(VERSION 3.24)
project(axpy_kernel VERSION 1.4.2 DESCRIPTION "Adds vectors" LANGUAGES CXX)  # LANGUAGES Fortran
enable_language(CUDA)
"""
SETUPTOOLS = """\
[build-system]
requires = ["setuptools>=64", "wheel"]
build-backend = "setuptools.build_meta"
[project]
name = "Py_Demo"
version = "0.3"
description = "Demonstrates: all of it"
license = "BSD-3-Clause"
dependencies = ["numpy>=1.24, <3", "tomli; python_version < '3.11'", "rich[jupyter]"]
[project.urls]
Homepage = "https://example.org/demo"
"""
SCIKIT = """\
[build-system]
requires = ["scikit-build-core>=0.10"]
build-backend = "scikit_build_core.build"
[project]
name = "sk"
version = "2.0"
"""
MIT = (
    "MIT License\n\nPermission is hereby granted, free of charge, to any person obtaining a copy\n"
    'of this software and associated documentation files (the "Software"), to deal\nin the Software without restriction'
)


def _init(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(one) for one in arguments], standalone_mode=False)


@pytest.mark.parametrize("mode", [(), ("--self-contained",)], ids=["pinning", "self-contained"])
@pytest.mark.parametrize(
    "files",
    [
        {"CMakeLists.txt": CMAKE, "LICENSE": MIT},
        {"pyproject.toml": SETUPTOOLS},
        {"pyproject.toml": SCIKIT, "CMakeLists.txt": CMAKE},
        {"CMakeLists.txt": "project(bare)"},
        {"pyproject.toml": "[project]\nname = 'bare'"},
    ],
    ids=["cmake", "setuptools", "scikit-build-core", "bare-cmake", "bare-python"],
)
@pytest.mark.parametrize("recipe_format", ["v0", "v1"])
def test_the_first_spec_generates(
    files: dict[str, str], mode: tuple[str, ...], recipe_format: str, tmp_path: Path
) -> None:
    made = _init(write_files(tmp_path / "project", files), "-o", tmp_path / "feedstock", *mode)

    assert made.exception is None, made.exception
    folder = tmp_path / "out"
    assert generate(tmp_path / "feedstock", recipe_format=recipe_format, folder=folder).stale  # type: ignore[arg-type]


def test_a_project_of_cmake_with_cuda(tmp_path: Path) -> None:
    _init(write_files(tmp_path / "project", {"CMakeLists.txt": CMAKE, "LICENSE": MIT}), "-o", tmp_path / "feedstock")

    spec = read_spec(tmp_path / "feedstock")

    assert (spec.name, spec.version, spec.about.license) == ("axpy-kernel", "1.4.2", "MIT")
    assert spec.about.summary == "Adds vectors"
    assert [need.compiler for need in spec.outputs[0].requirements.build if need.compiler] == ["cxx", "cuda"]
    assert spec.cuda is not None
    assert spec.sources[0].path == "../../project"


def test_a_python_project_with_the_requirements_that_hold_for_some_python(tmp_path: Path) -> None:
    project = write_files(tmp_path / "project", {"pyproject.toml": SETUPTOOLS, "src/py_demo/__init__.py": ""})
    _init(project, "-o", tmp_path / "feedstock")

    spec = read_spec(tmp_path / "feedstock")
    output = spec.outputs[0]

    assert (spec.name, output.kind, tuple(item.module for item in output.test.imports)) == (
        "py-demo",
        "python",
        ("py_demo",),
    )
    assert [need.package for need in output.requirements.host] == [
        "python {python_min}.*",
        "pip",
        "setuptools >=64",
        "wheel",
    ]
    run = ["python >={python_min}", "numpy >=1.24,<3", "rich", "tomli"]
    assert [need.package for need in output.requirements.run] == run
    assert spec.about.homepage == "https://example.org/demo"
    assert (
        '      python_version:\n        - ${{ python_min }}.*\n        - "*"\n'
        in dict(render(spec, "v1"))[PurePosixPath("recipe/recipe.yaml")]
    )


def test_what_the_fetched_pinning_has_is_built_with_in_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pinning = write_files(tmp_path / "pinning", {"conda_build_config.yaml": "wheel:\n  - 0.45\nnumpy:\n  - 2\n"})
    monkeypatch.setattr(
        "feedstock_tools.cli.spec.pinning_of", lambda _: SimpleNamespace(path=pinning / "conda_build_config.yaml")
    )
    text = SETUPTOOLS.replace('"wheel"', '"wheel>=0.40"')
    _init(write_files(tmp_path / "project", {"pyproject.toml": text}), "-o", tmp_path / "feedstock")

    host = read_spec(tmp_path / "feedstock").outputs[0].requirements.host
    assert [need.package for need in host][2:] == ["setuptools >=64", "wheel"]


def test_a_git_repository_is_taken_at_its_commit(tmp_path: Path) -> None:
    project = write_files(tmp_path / "project", {"CMakeLists.txt": CMAKE})
    head = committed(project)

    made = _init(f"file://{project}", "-o", tmp_path / "feedstock")

    assert made.exception is None, made.exception
    source = read_spec(tmp_path / "feedstock").sources[0]
    assert (source.git, source.rev) == (f"file://{project}", head)


@pytest.mark.parametrize("source", ["{0}", "file://{0}"])
def test_a_version_that_git_has_is_that_of_the_tag(source: str, tmp_path: Path) -> None:
    files = {"pyproject.toml": "[project]\nname = 'a'\ndynamic = ['version']\n[tool.setuptools_scm]\n"}
    project = write_files(tmp_path / "project", files)
    committed(project)
    subprocess.run(["git", "-C", str(project), "tag", "v3.2.0"], check=True)

    made = _init(source.format(project), "-o", tmp_path / "feedstock")

    assert made.exception is None, made.exception
    assert read_spec(tmp_path / "feedstock").version == "3.2.0"


def test_without_an_argument_it_asks(tmp_path: Path) -> None:
    project = write_files(tmp_path / "project", {"CMakeLists.txt": CMAKE})

    made = CliRunner().invoke(
        command, ["-o", str(tmp_path / "feedstock")], standalone_mode=False, input=f"{project}\nsomeone-else\n"
    )

    assert made.exception is None
    assert read_spec(tmp_path / "feedstock").maintainers == ("someone-else",)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "the input ends before the project and your name on GitHub"),
        (("",), "the name of the project is empty"),
        (("project/CMakeLists.txt",), "project/CMakeLists.txt: is a file"),
    ],
)
def test_what_names_no_project_is_a_mistake(
    words: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path / "project", {"CMakeLists.txt": CMAKE})
    monkeypatch.chdir(tmp_path)
    made = _init(*words)

    assert isinstance(made.exception, InputError)
    assert message in str(made.exception)
    assert ("project --maintainer" in str(made.exception).lower()) == (not words)


def test_the_next_command_can_be_copied_and_a_placeholder_is_named(tmp_path: Path) -> None:
    project = write_files(tmp_path / "mein Projekt", {"CMakeLists.txt": CMAKE})

    made = _init(project, "-o", tmp_path / "mein füßstock")

    folder = tmp_path / "mein füßstock"
    assert f"next: feedstock-tools generate {shlex.quote(str(folder))}\n" in made.output
    assert "maintainers: [someone]  # your name on GitHub\n" in (folder / "feedstock.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"README.md": ""}, "there is no project that `init` can read"),
        ({"CMakeLists.txt": "add_library(x)"}, "there is no project"),
        ({"pyproject.toml": "[project"}, "is not TOML"),
        ({"pyproject.toml": "[tool.x]"}, "has no name"),
    ],
)
def test_a_folder_without_a_project_ends_in_one_message(files: dict[str, str], message: str, tmp_path: Path) -> None:
    made = _init(write_files(tmp_path / "project", files), "-o", tmp_path / "feedstock")

    assert isinstance(made.exception, InputError)
    assert message in str(made.exception)
    assert not (tmp_path / "feedstock").exists()


def test_a_spec_that_is_there_stays(tmp_path: Path) -> None:
    project = write_files(tmp_path / "project", {"CMakeLists.txt": CMAKE, "feedstock.yaml": "mine"})

    made = _init(project, "-o", project)

    assert isinstance(made.exception, InputError)
    assert (project / "feedstock.yaml").read_text() == "mine"


def test_a_repository_that_cannot_be_cloned_is_work_that_failed(tmp_path: Path) -> None:
    made = _init(f"file://{tmp_path}/nowhere", "-o", tmp_path / "feedstock")

    assert isinstance(made.exception, WorkError)
    assert "cannot be cloned" in str(made.exception)


def test_a_project_of_the_package_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    information = (
        "Metadata-Version: 2.4\nName: Py_Demo\nVersion: 1.10\nSummary: Demonstrates\nRequires-Python: >=3.10\n"
        "Classifier: License :: OSI Approved :: MIT License\nProject-URL: Source Code, https://example.org/demo\n"
        "Requires-Dist: numpy<3,>=1.25\nRequires-Dist: rich; extra == 'all'\n"
    )
    build = '[build-system]\nrequires = ["setuptools>=77", "Cython>=3"]\n'
    content = archive_of({"PKG-INFO": information, "pyproject.toml": build, "setup.py": "", "LICENSE.txt": "x"})
    folder = tmp_path / "index" / "py-demo"
    folder.mkdir(parents=True)
    (folder / "py_demo-1.10.tar.gz").write_bytes(content)
    digest = sha256(content).hexdigest()
    (folder / "index.html").write_text(f'<a href="py_demo-1.10.tar.gz#sha256={digest}">x</a>')
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", folder.parent.as_uri())
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)

    made = _init("Py_Demo", "-o", tmp_path / "feedstock")

    assert made.exception is None, made.exception
    spec = read_spec(tmp_path / "feedstock")
    output = spec.outputs[0]
    assert (spec.name, spec.version, spec.about.license, spec.about.license_file) == (
        "py-demo",
        "1.10",
        "MIT",
        ("LICENSE.txt",),
    )
    assert (spec.sources[0].url, spec.sources[0].sha256) == ((f"{folder.as_uri()}/py_demo-1.10.tar.gz",), digest)
    assert spec.about.repository == spec.about.homepage == "https://example.org/demo"
    assert output.script is not None
    assert output.script.template == "setuptools"
    assert [need.compiler for need in output.requirements.build if need.compiler] == ["c"]
    assert [need.package for need in output.requirements.build if need.when] == [
        "cross-python_{target_platform}",
        "python",
    ]
    assert [need.package for need in output.requirements.host] == ["python", "pip", "setuptools >=77", "cython >=3"]
    assert [need.package for need in output.requirements.run] == ["python", "numpy <3,>=1.25"]
    assert "# The project asks for Python >=3.10." in (tmp_path / "feedstock" / "feedstock.yaml").read_text()


def test_a_name_that_is_nowhere_is_a_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", tmp_path.as_uri())
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)

    made = _init("nowhere")

    assert isinstance(made.exception, InputError)
    assert "there is no folder 'nowhere', and no such project in the package index" in str(made.exception)


def test_tests_are_of_what_cmake_installs(tmp_path: Path) -> None:
    text = CMAKE + (
        "add_library(axpy axpy.cu)\nadd_library(own STATIC own.c)\nadd_library(inner inner.c)\n"
        "add_executable(run run.c)\n"
        "add_executable(tool tool.c)\nset_target_properties(tool PROPERTIES OUTPUT_NAME other)\n"
        "install(TARGETS axpy own run tool\n  LIBRARY DESTINATION lib)\n"
    )
    _init(write_files(tmp_path / "project", {"CMakeLists.txt": text, "LICENSE": MIT}), "-o", tmp_path / "feedstock")

    output = read_spec(tmp_path / "feedstock").outputs[0]

    assert [one.command for one in output.test.commands] == [
        "test -x $PREFIX/bin/run",
        "test -f $PREFIX/lib/libaxpy.so",
    ]


@pytest.mark.parametrize("own", [("--self-contained",), ()])
def test_a_project_that_only_links_cuda_has_gpu_builds_without_architectures(
    tmp_path: Path, own: tuple[str, ...]
) -> None:
    text = (
        'project(counts VERSION 1.0 DESCRIPTION "Counts GPUs with CUDA" LANGUAGES CXX)\n'
        "option(COUNTS_CUDA OFF)\nif(COUNTS_CUDA)\n  find_package(CUDAToolkit REQUIRED)\nendif()\n"
    )
    _init(
        write_files(tmp_path / "project", {"CMakeLists.txt": text, "LICENSE": MIT}), "-o", tmp_path / "feedstock", *own
    )

    spec = read_spec(tmp_path / "feedstock")
    output = spec.outputs[0]

    assert spec.cuda is not None
    assert (spec.cuda.script, output.kernels, output.skip) == (None, None, ())
    assert output.script is not None
    assert output.script.cuda_options == ("-DCOUNTS_CUDA=ON",)
    assert [need.compiler for need in output.requirements.build if need.compiler] == ["cxx", "cuda"]
    assert [need.package for need in output.requirements.host] == ["cuda-cudart-dev"]


def test_a_python_project_that_cmake_builds_has_what_its_cmake_lists_says(tmp_path: Path) -> None:
    text = (
        'project(folds VERSION 1.0 LANGUAGES CXX HOMEPAGE_URL "https://example.org/folds")\n'
        "option(FOLDS_CUDA OFF)\nif(FOLDS_CUDA)\n  enable_language(CUDA)\nendif()\n"
    )
    files = {"CMakeLists.txt": text, "LICENSE": MIT, "pyproject.toml": SCIKIT}
    _init(write_files(tmp_path / "project", files), "-o", tmp_path / "feedstock")

    spec = read_spec(tmp_path / "feedstock")

    assert spec.outputs[0].kernels is True
    assert spec.about.homepage == "https://example.org/folds"


def test_switches_packages_and_parts_of_a_cmake_project_are_named(tmp_path: Path) -> None:
    text = (
        "project(folds VERSION 1.0 LANGUAGES CXX)\n"
        'option(FOLDS_CUDA "Build with CUDA" OFF)\noption(FOLDS_CUDA_GRAPHS "" ON)\n'
        "if(FOLDS_CUDA)\n  enable_language(CUDA)\n  find_package(CUDAToolkit REQUIRED)\nendif()\n"
        "find_package(ZLIB REQUIRED)\nfind_package(PNG)\nfind_package(ownlib REQUIRED)\n"
    )
    files = {"CMakeLists.txt": text, "LICENSE": MIT, "python/pyproject.toml": SETUPTOOLS}
    _init(write_files(tmp_path / "project", files), "-o", tmp_path / "feedstock")

    written = (tmp_path / "feedstock" / "feedstock.yaml").read_text(encoding="utf-8")
    output = read_spec(tmp_path / "feedstock").outputs[0]

    assert output.script is not None
    assert output.script.cuda_options == ("-DFOLDS_CUDA=ON",)
    assert output.kernels is True
    assert "The build looks for PNG, ownlib:" in written
    assert "        - zlib  # a guess: CMake looks for ZLIB\n" in written
    assert "# python/ has a pyproject.toml." in written


@pytest.mark.parametrize(
    "files",
    [
        {
            "pyproject.toml": "[project]\nname = 'py-demo'\n[project.scripts]\ndemo = 'py_demo:main [color]'\n"
            "bad = 'x'\n[project.gui-scripts]\nwindow = 'py_demo:show'\n"
        },
        {
            "setup.py": "from setuptools import setup\n"
            "setup(name='py-demo', entry_points={'console_scripts': ['demo=py_demo:main'], 'gui_scripts': ['w=w:w']})\n"
        },
    ],
    ids=["pyproject", "setup"],
)
def test_the_commands_of_a_pure_package_are_entry_points(files: dict[str, str], tmp_path: Path) -> None:
    project = write_files(tmp_path / "project", {**files, "py_demo/__init__.py": "", "LICENSE": MIT})
    _init(project, "-o", tmp_path / "feedstock")

    spec = read_spec(tmp_path / "feedstock")
    assert spec.outputs[0].entry_points == ("demo = py_demo:main",)
    assert "  entry_points:\n    - demo = py_demo:main\n" in render(spec, "v0")[PurePosixPath("recipe/meta.yaml")]
    assert "    entry_points:\n      - demo = py_demo:main\n" in render(spec, "v1")[PurePosixPath("recipe/recipe.yaml")]
