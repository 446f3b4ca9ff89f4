"""Expressions and selectors of a `meta.yaml`, written for rattler-build."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.v1.recipe import render_recipe_v1
from feedstock_tools.recipe.v1_engine import read_v1
from feedstock_tools.to_v1.conditions import NEVER, are_exhaustive, literals, negated
from feedstock_tools.to_v1.expressions import Names, UntranslatableError, names_of
from feedstock_tools.to_v1.writing import FILTERS, translated
from feedstock_tools.variants.files import defaults

NAMES = names_of(
    [
        {
            "python": ("3.12.* *_cpython",),
            "numpy": ("2",),
            "cuda_compiler_version": ("None",),
            "mpi": ("nompi",),
            "level": ("1",),
            "rc": ("False",),
        },
        {"cuda_compiler_version": ("12.9",), "mpi": ("openmpi",), "level": ("3",), "rc": ("True",), "arm": ("sbsa",)},
    ]
)
OWN = frozenset({"version", "name"})

SELECTORS = [
    ("py < 39", 'match(python, "<3.9")'),
    ("py >= 310 and not win", 'match(python, ">=3.10") and not win'),
    ("py == 312", 'match(python, "3.12.*")'),
    ("py != 312", 'not match(python, "3.12.*")'),
    ("py > 38", 'match(python, ">=3.9")'),
    ("py <= 38", 'match(python, "<3.9")'),
    ("39 <= py", 'match(python, ">=3.9")'),
    ("py in (38, 39)", '(match(python, "3.8.*") or match(python, "3.9.*"))'),
    ("py27 or py3k", 'match(python, "2.7.*") or match(python, ">=3")'),
    ("np == 126", 'match(numpy, "1.26.*")'),
    ("x86 and linux", "x86_64 and linux"),
    ('cuda_compiler_version != "None"', 'cuda_compiler_version != "None"'),
    ('(cuda_compiler_version or "None") != "None"', 'cuda_compiler_version != "None"'),
    ('(arm or "None") != "None"', 'arm | default("None") != "None"'),
    ('(cuda_compiler_version or "").startswith("12")', 'cuda_compiler_version[:2] == "12"'),
    ('cuda_compiler_version in (undefined, "None")', 'cuda_compiler_version == "None"'),
    ('cuda_compiler_version not in ("None", "12.9")', 'cuda_compiler_version not in ("None", "12.9")'),
    ("level > 1", "level | int > 1"),
    ("level == 3", 'level == "3"'),
    ("level in (1, 2)", 'level in ("1", "2")'),
    ("mpi == None", "false"),
    ("rc", '(rc not in ("False", "false",))'),
    ("not rc", 'not (rc not in ("False", "false",))'),
    ('arm != "tegra"', 'arm | default("") != "tegra"'),
    ("unheard_of", "(unheard_of | default(false))"),
    ("build_platform != target_platform", "build_platform != target_platform"),
    ('environ.get("mpi", "nompi") == "nompi"', 'mpi == "nompi"'),
    ('"CI" in os.environ', 'env.exists("CI")'),
    ('"CI" not in environ', 'not env.exists("CI")'),
    ('environ.get("CI") == "azure"', 'env.get("CI", default="") == "azure"'),
]


@pytest.mark.parametrize(("selector", "expected"), SELECTORS)
def test_a_selector_becomes_a_condition(selector: str, expected: str) -> None:
    assert translated(selector, NAMES, selector=True) == expected


EXPRESSIONS = [
    ("version.replace('-', '.')", 'version | replace("-", ".")'),
    ("version.split('.')[0] | int * 100", '(version | split("."))[0] | int * 100'),
    ("'.'.join(version.split('.')[:2])", '(version | split("."))[:2] | join(".")'),
    ("version.rsplit('.', 1)[0]", '(version | split("."))[:-1] | join(".")'),
    ("version.rpartition('.')[0]", '(version | split("."))[:-1] | join(".")'),
    ("version.replace('.', '_', 1)", 'version | split(".", 1) | join("_")'),
    ("os.environ['CI']", 'env.get("CI", default="")'),
    ("version.partition('.')[0]", '(version | split("."))[0]'),
    ("(1 + 2) ~ '.0'", '(1 + 2) ~ ".0"'),
    ("'lib' + name", '"lib" ~ name'),
    ("'%s-%s' % (name, version)", 'name ~ "-" ~ version'),
    ("'lib{}'.format(name)", '"lib" ~ name'),
    ("name | upper", "name | upper"),
    ("'cuda' if cuda_compiler_version != 'None' else 'cpu'", '"cuda" if cuda_compiler_version != "None" else "cpu"'),
    ("compiler('cuda')", 'compiler("cuda")'),
    ("pin_subpackage('a', max_pin='x.x')", 'pin_subpackage("a", upper_bound="x.x")'),
    ("pin_compatible('a', max_pin='x.x', exact=False)", 'pin_compatible("a", upper_bound="x.x")'),
    (
        "pin_compatible('a', max_pin='x.x', exact=win)",
        'pin_compatible("a", exact=true) if win else pin_compatible("a", upper_bound="x.x")',
    ),
    ("pin_subpackage('a', exact=True)", 'pin_subpackage("a", exact=true)'),
    ("pin_compatible('b', min_pin='x', max_pin=None)", 'pin_compatible("b", lower_bound="x", upper_bound=none)'),
    ("cuda_compiler_version | int", 'cuda_compiler_version | int if cuda_compiler_version != "None" else 0'),
    ("int(float(level)) < 4", "level | int < 4"),
    ("str(version)", "version"),
    ("(py | string)[0]", '((python | split("."))[:2] | join(""))[0]'),
    ("py", '((python | split("."))[:2] | join("")) | int'),
    ("CONDA_PY", "python | version_to_buildstring"),
    ("PKG_HASH", "hash"),
    ("mpi or 'nompi'", 'mpi | default("nompi")'),
    ("missing or 'x'", 'missing | default("x")'),
    ("missing is undefined", "missing is undefined"),
    ("level | default(1) | int", "level | int"),
]


@pytest.mark.parametrize(("expression", "expected"), EXPRESSIONS)
def test_an_expression_of_a_template_is_written_with_filters(expression: str, expected: str) -> None:
    assert translated(expression, NAMES, OWN) == expected


@pytest.mark.parametrize(
    "expression", ["version.isdigit()", "version | md5", "load_setup_py_data()", "open('x')", "a.b", "{% x %}", "1 +"]
)
def test_an_expression_without_a_form_is_refused(expression: str) -> None:
    with pytest.raises(UntranslatableError):
        translated(expression, NAMES, OWN)


def test_conditions_come_apart_and_are_negated() -> None:
    assert literals("win and cuda_compiler_version != 'None'", NAMES, selector=True) == (
        "win",
        'cuda_compiler_version != "None"',
    )
    assert negated(("win", "x86_64")) == ("not (win and x86_64)",)
    assert negated(('a == "b"',)) == ('a != "b"',)
    assert literals("win and not win", NAMES, selector=True) == NEVER
    assert are_exhaustive(("unix",), ("win",))
    assert not are_exhaustive(("linux",), ("win",))
    assert are_exhaustive(("osx", "arm64"), ("not (osx and arm64)",))


def test_a_module_of_python_is_named() -> None:
    with pytest.raises(UntranslatableError, match=r"'os\.sep' has no equivalent"):
        translated("os.sep", NAMES, OWN)


@pytest.mark.parametrize(("selector", "expected"), [("py < 33", "false"), ("py > 38", "true"), ("np != 126", "false")])
def test_where_no_configuration_has_a_python_that_of_conda_build_counts(selector: str, expected: str) -> None:
    assert translated(selector, names_of([{"c_compiler": ("gcc",)}]), selector=True) == expected


def test_without_configurations_a_name_gets_a_default() -> None:
    assert translated("mpi == 'nompi'", Names(), selector=True) == 'mpi | default("") == "nompi"'


@pytest.mark.parametrize("name", sorted(FILTERS))
def test_the_engine_has_each_filter_that_an_expression_may_keep(name: str, tmp_path: Path) -> None:
    recipe = f"context: {{v: \"${{{{ '3.10' | {name} }}}}\"}}\npackage: {{name: demo, version: '1'}}\n"
    (tmp_path / "recipe.yaml").write_text(recipe)
    linux = Platform.parse("linux-64")

    refused = ""
    try:
        render_recipe_v1(read_v1(tmp_path / "recipe.yaml"), defaults(linux), linux)
    except InputError as error:  # of filters that need an argument or a list
        refused = str(error)

    assert "unknown" not in refused
