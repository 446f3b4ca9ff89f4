"""Conditions as trees: what is read, what holds, and what is unknown."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Environment

from feedstock_tools.conditions.recipes import Language, parse
from feedstock_tools.conditions.spec import parse as parse_spec
from feedstock_tools.conditions.spec import to_spec
from feedstock_tools.conditions.tree import (
    And,
    Compare,
    Condition,
    Constant,
    Items,
    Leaf,
    Match,
    Name,
    Not,
    Operand,
    Or,
    Other,
    both,
    compared,
    names_of,
    negated,
    truth,
)

LINUX, WIN, PY, X = Name("linux"), Name("win"), Name("py"), Name("x")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("linux", LINUX),
        ("not win", Not(WIN)),
        ("linux and not (win or py)", And((LINUX, Not(Or((WIN, PY)))))),
        ("py < 39", Compare(PY, "<", Constant(39))),
        ("39 <= py < 312", And((Compare(Constant(39), "<=", PY), Compare(PY, "<", Constant(312))))),
        ('x in ("a", "b")', Compare(X, "in", Items(("a", "b")))),
        ('x not in ["a"]', Compare(X, "not in", Items(("a",)))),
        ("(x) != 'a'", Compare(X, "!=", Constant("a"))),
        ("not x == 1", Not(Compare(X, "==", Constant(1)))),
        ('match(x, ">=3.10") and win', And((Match("x", ">=3.10"), WIN))),
        ("x if win else linux", Other("x if win else linux", frozenset({"x", "win", "linux"}), is_loose=True)),
        ('(x or "").startswith("1")', Other('(x or "").startswith("1")', frozenset({"x"}))),
        ("win and (x, linux)", And((WIN, Other("(x, linux)", frozenset({"x", "linux"}))))),
    ],
)
@pytest.mark.parametrize("language", ["selector", "expression"])
def test_both_languages_of_recipes_make_the_same_tree(text: str, tree: Condition, language: Language) -> None:
    assert parse(text, language) == tree


def test_the_languages_have_constants_and_names_of_their_own() -> None:
    assert parse("true", "selector") == Name("true")
    assert parse("true", "expression") == Constant(True)
    assert names_of(parse("x | default(y) and z is defined", "expression") or X) == {"x", "y", "z"}


@pytest.mark.parametrize("text", ["", "linux and", "or win", "(linux", "linux)", "not", "x in", "not (", "x" * 20_000])
def test_what_is_no_expression_has_no_tree(text: str) -> None:
    assert parse(text, "selector") is None


def test_a_part_knows_its_place_with_its_brackets() -> None:
    text = "linux and (win or py < 39)"
    tree = parse(text, "selector")
    assert isinstance(tree, And)
    group = tree.parts[1]
    assert text[slice(*group.span)] == "(win or py < 39)"
    assert isinstance(group, Or)
    assert [text[slice(*part.span)] for part in group.parts] == ["win", "py < 39"]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("yes and maybe", None),
        ("no and maybe", False),
        ("maybe and no", False),
        ("yes or maybe", True),
        ("maybe or no", None),
        ("not maybe", None),
        ("maybe or not maybe", None),
        ("maybe == 1", None),
    ],
)
def test_a_condition_is_unknown_only_where_its_unknown_parts_decide(text: str, answer: bool | None) -> None:
    tree = parse(text, "selector")
    assert tree is not None
    known = {Name("yes"): True, Name("no"): False}
    assert truth(tree, lambda part: known.get(part) if isinstance(part, Name) else None) is answer


def test_nothing_is_asked_after_a_part_that_decides() -> None:
    asked: list[Leaf] = []
    tree = And((Or((LINUX, WIN)), Not(PY), X))

    def leaf(part: Leaf) -> bool:
        asked.append(part)
        return True

    assert truth(tree, leaf) is False
    assert asked == [LINUX, PY]


def test_conditions_are_joined_and_negated_without_repetition() -> None:
    assert both(And((LINUX, PY)), And((PY, X))) == And((LINUX, PY, X))
    assert both(None, LINUX) == LINUX
    assert both(None, None) is None
    assert negated(negated(LINUX)) == LINUX


NAMES = ("a", "b", "n", "t")
VALUES = st.fixed_dictionaries(
    {"a": st.booleans(), "b": st.booleans(), "n": st.integers(0, 3), "t": st.sampled_from(["", "x", "y"])}
)
LEAVES = st.one_of(
    st.sampled_from(NAMES),
    st.tuples(st.just("n"), st.sampled_from(("==", "!=", "<", "<=", ">", ">=")), st.integers(0, 3).map(str)).map(
        " ".join
    ),
    st.tuples(st.sampled_from(("'x'", '"y"', "t")), st.sampled_from(("==", "!=")), st.sampled_from(("t", "'x'"))).map(
        " ".join
    ),
    st.sampled_from(("t in ('x', 'y')", "t not in ['x']", "0 < n <= 2", "1 == n", "(n) == 2", "('x')")),
)
TEXTS = st.recursive(
    LEAVES,
    lambda part: st.one_of(
        st.tuples(part, st.sampled_from(("and", "or")), part).map(" ".join),
        part.map(lambda text: f"({text})"),
        part.map(lambda text: f"not ({text})"),
        LEAVES.map(lambda text: f"not {text}"),
    ),
    max_leaves=8,
)


def answer(tree: Condition, values: dict[str, Any]) -> bool | None:
    def value(part: Operand | Leaf) -> Any:
        match part:
            case Name(name):
                return values[name]
            case Constant(constant):
                return constant
            case Items(items):
                return items
        raise AssertionError(part)

    def leaf(part: Leaf) -> bool | None:
        if isinstance(part, Compare):
            return compared(value(part.left), part.operator, value(part.right))
        return bool(value(part))

    return truth(tree, leaf)


@given(TEXTS, VALUES)
def test_a_tree_is_as_true_as_python_finds_its_text(text: str, values: dict[str, Any]) -> None:
    tree = parse(text, "selector")
    assert tree is not None
    assert answer(tree, values) is bool(eval(text, {"__builtins__": {}}, values))  # noqa: S307 - our own text


JINJA = Environment(autoescape=True)


@given(TEXTS, VALUES)
def test_a_tree_is_as_true_as_jinja_finds_its_text(text: str, values: dict[str, Any]) -> None:
    tree = parse(text, "expression")
    assert tree is not None
    assert answer(tree, values) is bool(JINJA.compile_expression(text)(values))


SPECS = st.recursive(
    st.sampled_from(("linux", "osx-arm64", "cuda", "cpu", "cuda >= 11.8", "python == 3.12", 'mpi == "nompi"')),
    lambda part: st.one_of(
        st.tuples(part, st.sampled_from(("and", "or")), part).map(lambda three: f"({' '.join(three)})"),
        part.map(lambda text: f"not ({text})"),
    ),
    max_leaves=8,
)


@given(SPECS)
def test_a_condition_of_a_spec_survives_writing(text: str) -> None:
    written = to_spec(parse_spec(text))
    assert to_spec(parse_spec(written)) == written
