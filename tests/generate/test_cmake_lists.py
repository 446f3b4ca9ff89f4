"""What a CMakeLists.txt says about its project: arguments in quotes, comments, variables, and hostile files."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.generate.first_spec import Origin, first_spec
from feedstock_tools.generate.project import Project, read_project
from tests.support.limits import SECONDS, limited

PYPROJECT = '[build-system]\nrequires = ["scikit-build-core"]\n[project]\nname = "demo"\n'


def _cmake(folder: Path, text: str) -> Project:
    (folder / "CMakeLists.txt").write_text(text, encoding="utf-8")
    return read_project(folder)


def test_parentheses_in_a_description_end_nothing(tmp_path: Path) -> None:
    project = _cmake(tmp_path, 'project(foo DESCRIPTION "A (fast) C \\"lib\\"" LANGUAGES CXX CUDA)')

    assert (project.summary, project.languages) == ('A (fast) C "lib"', ("cxx", "cuda"))


def test_a_hash_in_quotes_begins_no_comment(tmp_path: Path) -> None:
    project = _cmake(
        tmp_path, 'project(foo # bar)\n  #[[ VERSION 2 ]] VERSION 1.5\n  HOMEPAGE_URL "https://x.org/#a" LANGUAGES CXX)'
    )

    assert (project.homepage, project.version, project.languages) == ("https://x.org/#a", "1.5", ("cxx",))


@pytest.mark.parametrize(
    "before",
    [
        "set(N Foo_Bar)",
        'set(N "Foo_Bar" CACHE STRING "The name")',
        "set(PREFIX Foo)\nset(N ${PREFIX}_Bar)",
        "set(N Foo_Bar)\nset(N Foo_Bar)",
    ],
)
def test_a_name_in_a_variable_with_one_value(before: str, tmp_path: Path) -> None:
    project = _cmake(
        tmp_path, f"{before}\nset(LANGUAGES C CUDA)\nproject(${{N}} VERSION 1.${{M}} LANGUAGES ${{LANGUAGES}})"
    )

    assert (project.name, project.version, project.languages) == ("foo-bar", None, ("c", "cuda"))


@pytest.mark.parametrize("before", ["", "set(N a)\nset(N b)", "set(N ${M})", "set(N $ENV{N})"])
def test_a_name_in_another_variable_is_a_mistake_with_its_line(before: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        _cmake(tmp_path, f"# Begin\n{before}\nproject(\n  ${{N}} LANGUAGES CXX)\nset(N late)")

    line = 3 + before.count("\n")
    assert str(raised.value) == (
        f"{tmp_path}/CMakeLists.txt:{line}: the name in project(${{N}} …) is not a literal, and no set() before it "
        "gives it one value\n  Write the name, such as project(demo VERSION 1.0.0 LANGUAGES CXX)."
    )


def test_a_name_that_no_package_can_have_is_a_mistake_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"CMakeLists.txt:2: project\(\) has the name 'f/o'"):
        _cmake(tmp_path, "\nproject(f/o)")


def test_a_python_project_has_its_name_from_its_own_file(tmp_path: Path) -> None:
    lists = "project(${SKBUILD_PROJECT_NAME} VERSION ${SKBUILD_PROJECT_VERSION} LANGUAGES CXX CUDA)"
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    project = _cmake(tmp_path, lists)

    assert (project.name, project.languages, project.kernels) == ("demo", ("cxx", "cuda"), True)


@pytest.mark.parametrize(
    ("option", "switches"),
    [
        ('option(X_CUDA "Use (it)" OFF)', ("X_CUDA",)),
        ("option(X_CUDA)", ("X_CUDA",)),
        ('option(X_CUDA "" ON)', ()),
        ('option(X_CUDA "" ${DEFAULT})', ()),
        ('option(X_HIP "CUDA" OFF)', ()),
    ],
)
def test_options_that_are_off(option: str, switches: tuple[str, ...], tmp_path: Path) -> None:
    assert _cmake(tmp_path, f"project(x)\n{option}").cuda_switches == switches


@pytest.mark.parametrize(
    ("text", "languages", "switches"),
    [
        ("option(F OFF)\nif(F)\nenable_language(Fortran)\nendif()", ("cxx",), ()),
        ('option(F "" OFF)\noption(FAST "" ON)\nif(NOT FAST OR F)\nenable_language(Fortran)\nendif()', ("cxx",), ()),
        ('option(F "" OFF)\nset(F ON)\nif(F)\nenable_language(Fortran)\nendif()', ("cxx", "fortran"), ()),
        ('option(F "" OFF)\nif(F)\nelse()\nenable_language(C)\nendif()', ("c", "cxx"), ()),
        ('option(GPU "" OFF)\nif(GPU AND UNIX)\nenable_language(CUDA)\nendif()', ("cxx", "cuda"), ("GPU",)),
        ('option(NO_GPU "" OFF)\nif(NOT NO_GPU)\nenable_language(CUDA)\nendif()', ("cxx", "cuda"), ()),
    ],
)
def test_languages_behind_options(
    text: str, languages: tuple[str, ...], switches: tuple[str, ...], tmp_path: Path
) -> None:
    project = _cmake(tmp_path, f"project(x LANGUAGES CXX)\n{text}")
    assert (project.languages, project.cuda_switches) == (languages, switches)


@pytest.mark.parametrize(("default", "fetches"), [("ON", True), ("OFF", False)])
def test_what_cmake_fetches_by_default(default: str, fetches: bool, tmp_path: Path) -> None:
    text = f'project(x)\noption(OWN "" {default})\nif(OWN)\nFetchContent_Declare(y URL https://example.org)\nendif()'
    assert _cmake(tmp_path, text).fetches is fetches


def test_a_folder_whose_name_has_lines_is_no_part(tmp_path: Path) -> None:
    for name in ("python", "x\nname: other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pyproject.toml").touch()

    assert _cmake(tmp_path, "project(x)").parts == ("python",)


SIZE = 50_000
HOSTILE = {
    "lines": "\n" * SIZE,
    "openings": "project(" * (SIZE // 8),
    "quote": 'project(a DESCRIPTION "' + '\\" ' * (SIZE // 3),
    "brackets": "project(a [[ " * (SIZE // 13),
    "comments": "".join(f"#[{'=' * level}[\n" for level in range(310)),
    "names": "project(a)\nset_target_properties(" + "a" * SIZE,
    "targets": "project(a)\n" + "set_target_properties(a " * (SIZE // 24),
    "doubled": "set(A0 aaaa)\n"
    + "".join(f"set(A{n + 1} ${{A{n}}}${{A{n}}})\n" for n in range(3000))
    + "project(${A99})",
    "variables": "project(" + "${" * (SIZE // 2) + ")",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_of_cmake_takes_no_time(text: str, tmp_path: Path) -> None:
    with limited(SECONDS / 10), suppress(InputError):
        _cmake(tmp_path, text)


@pytest.mark.parametrize(
    ("commands", "alone"),
    [
        ("add_library(a INTERFACE)\ninstall(TARGETS a)", True),
        ("add_library(a INTERFACE)\nadd_library(b b.cpp)\ninstall(TARGETS a)\ninstall(TARGETS b)", False),
        ("add_library(a INTERFACE)\nadd_executable(b b.cpp)\ninstall(TARGETS a b)", False),
        ("add_subdirectory(src)", False),
    ],
)
def test_a_library_of_headers_is_one_package(commands: str, alone: bool, tmp_path: Path) -> None:
    project = _cmake(tmp_path, f"project(a VERSION 1 LANGUAGES CXX)\n{commands}\n")
    text = first_spec(project, Origin({"path": "../a"}), "someone", self_contained=True)
    assert ("    noarch: generic\n" in text, "    run_exports:\n" in text) == (alone, not alone)
