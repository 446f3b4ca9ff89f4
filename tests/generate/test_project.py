"""What `init` reads in a pyproject.toml: requirements by address, values of other types, control characters."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.generate.project import read_project
from feedstock_tools.generate.spec.reading import read_spec
from tests.support.limits import SECONDS, limited
from tests.support.projects import project_in, spec_text_of

SIZE = 50_000


@pytest.mark.parametrize(
    "requirement", [f"a{' ' * SIZE}((", "a" * SIZE + "((", "a" + "[" * SIZE, f"a @{' ' * SIZE}x y"], ids=range(4)
)
def test_a_hostile_requirement_takes_no_time(requirement: str, tmp_path: Path) -> None:
    text = f'[project]\nname = "demo"\ndependencies = ["{requirement}"]\n'
    with limited(SECONDS / 10):
        read_project(project_in(tmp_path, pyproject__toml=text))


def test_requirements_by_address_are_left_out_and_named(tmp_path: Path) -> None:
    text = (
        '[build-system]\nrequires = ["setuptools", "tools @ git+https://x.org/tools@1.0"]\n'
        '[project]\nname = "demo"\ndependencies = ["numpy>=2", "torch[gpu]@https://x.org/t.whl",\n'
        "  \"old @ https://x.org/o.whl ; python_version < '3.10'\"]\n"
    )
    written = spec_text_of(tmp_path, pyproject__toml=text)

    assert (
        "      # The project names tools, pytorch by address, which a recipe cannot: add packages of a channel.\n"
        in written
    )
    requirements = read_spec(tmp_path / "feedstock").outputs[0].requirements
    assert [need.package for need in requirements.host] == ["python {python_min}.*", "pip", "setuptools"]
    assert [need.package for need in requirements.run] == ["python >={python_min}", "numpy >=2"]


VALUES = ("3", "1.5", "true", "1979-05-27", '"x"', "[]", "[3]", '["x"]', '[["x"]]', "[{}]", "{}", "{x = 3}")
STRING, STRINGS, TABLE = {'"x"'}, {"[]", '["x"]'}, {"{}", "{x = 3}"}
VALID = {
    "name": STRING,
    "description": STRING,
    "requires-python": STRING,
    "license": STRING | TABLE,
    "classifiers": STRINGS,
    "dependencies": STRINGS,
    "urls": TABLE,
    "scripts": {"{}"},
    "keywords": set(VALUES),
}


@pytest.mark.parametrize("key", VALID)
def test_a_value_of_another_type_is_a_mistake_in_the_file_that_has_it(key: str, tmp_path: Path) -> None:
    for value in VALUES:
        keys = {"name": '"demo"', key: value}
        text = "[project]\n" + "".join(f"{name} = {each}\n" for name, each in keys.items())
        try:
            read_project(project_in(tmp_path, pyproject__toml=text))
        except InputError as error:
            assert value not in VALID[key]
            assert str(error).startswith(f"{tmp_path}/pyproject.toml: '{key}' in [project] must be a ")
        else:
            assert value in VALID[key], value


def test_all_values_of_other_types_are_named_at_once(tmp_path: Path) -> None:
    text = 'build-system = 3\n[project]\nname = 1\nversion = 1.10\nclassifiers = [["x"]]\n'
    with pytest.raises(InputError) as raised:
        read_project(project_in(tmp_path, pyproject__toml=text))

    assert [mistake.message for mistake in raised.value.mistakes] == [
        "'build-system' must be a table",
        "'name' in [project] must be a string",
        "'version' in [project] must be a string",
        "'classifiers' in [project] must be a list of strings",
    ]


@pytest.mark.parametrize("name", ["a: b", "../x", "demo[x]", "\\u0000"])
def test_an_invalid_name_is_a_mistake_in_the_file_that_has_it(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"pyproject.toml: '.*' is not a project's name"):
        read_project(project_in(tmp_path, pyproject__toml=f'[project]\nname = "{name}"\n'))


def test_control_characters_do_not_reach_the_spec(tmp_path: Path) -> None:
    text = '[project]\nname = "demo"\ndescription = "A\\u0000b\\nc"\nrequires-python = ">=3.1\\u00001"\n'
    written = spec_text_of(tmp_path, pyproject__toml=f"{text}[project.urls]\nHomepage = 'https://x.org'\n")

    assert "  summary: A b c\n" in written


def test_a_python_without_end_is_not_read_as_a_number(tmp_path: Path) -> None:
    text = f'[project]\nname = "demo"\nrequires-python = ">=3.{"1" * 5000}"\n'

    assert "skip:" not in spec_text_of(tmp_path, pyproject__toml=text)


@pytest.mark.parametrize(
    ("more", "languages"),
    [
        ("[tool.setuptools]\next-modules = [{name = 'demo', sources = ['src/demo.c']}]\n", ("c",)),
        ("[tool.setuptools]\next-modules = []\n", ()),
        ("[tool]\nsetuptools = 3\n", ()),
    ],
    ids=["some", "none", "of another type"],
)
def test_extensions_in_a_pyproject_toml_are_compiled(more: str, languages: tuple[str, ...], tmp_path: Path) -> None:
    folder = project_in(tmp_path, pyproject__toml=f'[project]\nname = "demo"\n{more}')
    (folder / "src").mkdir()
    (folder / "src" / "demo.c").write_text("")
    assert read_project(folder).languages == languages


@pytest.mark.parametrize(
    ("listed", "module"),
    [
        ("Crypto\n", "Crypto"),
        ("_demo\ndemo\n", "demo"),
        ("_backend\nother\ntests\n", "other"),
        ("a\nb\n", "demo"),
        ("", "found"),
    ],
)
def test_modules_that_setuptools_lists_in_an_archive_are_imported(listed: str, module: str, tmp_path: Path) -> None:
    folder = project_in(tmp_path, pyproject__toml='[project]\nname = "demo"\n')
    for path, text in (("lib/demo.egg-info/top_level.txt", listed), ("src/found/__init__.py", "")):
        (folder / path).parent.mkdir(parents=True)
        (folder / path).write_text(text)
    assert read_project(folder).module == module


@pytest.mark.parametrize(
    ("metadata", "build"),
    [
        ('version.provider = "scikit_build_core.metadata.setuptools_scm"', ("scikit-build-core", "setuptools-scm")),
        ('version.provider = "scikit_build_core.metadata.regex"', ("scikit-build-core",)),
        ('version = 3\nreadme = {provider = ["x"]}', ("scikit-build-core",)),
    ],
    ids=["another project", "its own", "of another type"],
)
def test_what_scikit_build_core_asks_for_metadata_is_required(
    metadata: str, build: tuple[str, ...], tmp_path: Path
) -> None:
    text = '[build-system]\nrequires = ["scikit-build-core"]\n[project]\nname = "demo"\n'
    folder = project_in(tmp_path, pyproject__toml=f"{text}[tool.scikit-build.metadata]\n{metadata}\n")
    assert read_project(folder).build == build
