"""Expressions of a `recipe.yaml` have the values that the engine gives them."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.v1.expressions import Scope, UndecidedError, as_text, value_of
from feedstock_tools.recipe.v1_engine import parse_v1, render
from feedstock_tools.variants.model import WholeNumber

_PLATFORM = Platform("linux", "64")
_VALUES = {"python": "3.12.* *_cpython", "cuda": "12.9", "level": WholeNumber("3"), "fast": "true", "mpi": "nompi"}
_EXPRESSIONS = (
    *('cuda | replace(".", "")', 'cuda | split(".") | first', 'cuda | split(".", 1) | last', '"a b" | split | length'),
    *('(cuda | split("."))[:2] | join("-")', '(cuda | split("."))[-1]', "cuda[:2]", "mpi[-2:]", 'mpi ~ "-" ~ level'),
    *(
        "cuda | int",
        '"-3" | int',
        "level + 200",
        "level * 4 - 2",
        "(level + 7) // 3",
        "level % 2",
        "-level",
        "level | abs",
    ),
    *("python | version_to_buildstring", '"1.26.4" | version_to_buildstring', '"3" | version_to_buildstring'),
    *('" Ab " | trim | lower', "mpi | upper", "mpi | first", "mpi | last", "[level, 1] | join", '"x" + mpi', "none"),
    *('match(python, ">=3.10,<3.13")', 'match(cuda, "11.*|12.*")', 'match(cuda, "!=12.9")', 'match("None", ">=12")'),
    *('match("None", "<12")', 'match("None", "12.*")', 'match("None", "==None")', 'match("None", "!=12")'),
    *('match(cuda, "==None")', 'match("3.0", "==3")', 'level == "3"', "level != 3", 'mpi == "nompi"', "level > 2"),
    *('"3.10" < "3.9"', 'mpi in ("nompi", "openmpi")', 'level in ("3",)', '"omp" in mpi', 'mpi not in ["openmpi"]'),
    *('mpi is startingwith("no")', 'mpi is endingwith("pi")', "mpi is string", "mpi is none", "none is none"),
    *("mpi is defined", "nothing is defined", "nothing is undefined", 'nothing | default("x")', 'mpi | default("x")'),
    *(
        'mpi and "x"',
        '"" or level',
        "fast or nothing",
        "not fast",
        "linux and not win",
        '"x" if win',
        'not ("x" if win)',
    ),
    *('"x" if fast else "y"', '"x" if win else "y" if osx else "z"'),
)


def test_expressions_have_the_values_that_the_engine_gives_them(tmp_path: Path) -> None:
    lines = "".join(f"    <${{{{ {expression} }}}}>\n" for expression in _EXPRESSIONS)
    text = f"package: {{name: x, version: '1'}}\nabout:\n  description: |\n{lines}"
    inputs = {key: (value,) for key, value in _VALUES.items()}
    (rendered,) = render(parse_v1(text, tmp_path / "recipe.yaml"), inputs, (), _PLATFORM, _PLATFORM)
    engine = rendered.recipe.to_dict()["about"]["description"].splitlines()

    own = [as_text(value_of(expression, Scope(_PLATFORM, {}, _VALUES))) for expression in _EXPRESSIONS]
    shown = [value if isinstance(value, str) else "" for value in own]

    assert dict(zip(_EXPRESSIONS, (f"<{value}>" for value in shown), strict=True)) == dict(
        zip(_EXPRESSIONS, engine, strict=True)
    )


@pytest.mark.parametrize(
    "expression",
    [
        "mpi.upper()",
        "mpi | title",
        'mpi | format("x")',
        "level == true",
        "mpi < level",
        "2 ** 3",
        "unheard_of",
        "match(mpi, 1)",
    ],
)
def test_what_is_not_certain_is_left_to_the_engine(expression: str) -> None:
    with pytest.raises(UndecidedError):
        value_of(expression, Scope(_PLATFORM, {}, _VALUES))
