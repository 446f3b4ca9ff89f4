"""Selectors: which lines remain, and what a condition may contain."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.variants.rules import CondaBuildRules
from feedstock_tools.variants.selectors import Namespace, evaluate, select_lines, selected_text

RULES = CondaBuildRules()


def names(subdir: str = "linux-64", variant: dict[str, str] | None = None, **environ: str) -> Namespace:
    return Namespace(subdir, subdir, variant or {}, environ, RULES)


def test_bits_are_combined_as_python_does() -> None:
    values = {"linux": True, "ppc64le": False, "aarch64": True}
    assert evaluate("linux & (ppc64le | aarch64)", values)
    assert not evaluate("linux & ppc64le", values)


@pytest.mark.parametrize(
    ("selector", "subdir", "holds"),
    [
        ("linux", "linux-64", True),
        ("linux64", "linux-aarch64", False),
        ("aarch64", "linux-aarch64", True),
        ("arm64", "osx-arm64", True),
        ("x86", "win-64", True),
        ("unix", "win-64", False),
        ("unix and not aarch64", "osx-64", True),
        ("linux and unheard_of", "linux-64", False),
        ("not unheard_of", "linux-64", True),
        ('build_platform == "linux-64"', "linux-64", True),
        ('os.environ.get("CF_CUDA_ENABLED", "False") == "True"', "linux-64", False),
        ('"-64".endswith("64")', "linux-64", True),
    ],
)
def test_platforms(selector: str, subdir: str, holds: bool) -> None:
    assert evaluate(selector, names(subdir)) is holds


@pytest.mark.parametrize(
    ("selector", "holds"),
    [
        ("py == 310", True),
        ("py3k and not py2k", True),
        ("np >= 122", True),
        ("cuda_compiler_version != 'None'", True),
        ("cuda_major == 12", True),
        ('cuda_major == "12"', False),
        ("flag", False),
        ('(cuda_compiler_version or "").startswith("12")', True),
        ('mpi in ("mpich", "openmpi")', True),
    ],
)
def test_variant_keys_are_numbers_and_booleans_where_they_look_like_them(selector: str, holds: bool) -> None:
    variant = {
        "python": "3.10.* *_cpython",
        "numpy": "1.22",
        "cuda_compiler_version": "12.8",
        "cuda_major": "12",
        "flag": "False",
        "mpi": "mpich",
    }

    assert evaluate(selector, names(variant=variant)) is holds


def test_the_environment_shadows_variant_keys() -> None:
    assert evaluate('mpi == "given"', names(variant={"mpi": "mpich"}, mpi="given"))


@pytest.mark.parametrize(
    "selector",
    [
        '__import__("os")',
        "().__class__",
        'open("/etc/passwd")',
        '"a" * 10 ** 10',
        "(lambda: 1)()",
        "[c for c in 'x']",
        "os.system('x')",
        '"x".replace("x", "xx").replace("x", "xx").replace("x", "xx")',
        "linux and",
        "x" * 2000,
    ],
)
def test_unsafe_or_invalid_conditions_are_refused_with_their_line(selector: str) -> None:
    with pytest.raises(InputError) as caught:
        select_lines(f"a:\n  - 1  # [{selector.replace('[', '(').replace(']', ')')}]\n", names(), RULES, Path("x.yaml"))

    assert caught.value.mistakes[0].line == 2


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a  # [linux]\nb  # [win]\n", "a\n"),
        ("a [linux]\n", "a\n"),
        ("a  # see [this] [linux]\n", "a\n"),
        ("# [win]\na\n", "\na\n"),
        ('"a  # [linux]"\n', '"a"\n'),
        ("a: [linux, x]\n", "a:\n"),
        ("a: [b, c]  # not a [selector](link)\n", "a: [b, c]  # not a [selector](link)\n"),
    ],
)
def test_where_a_selector_stands(text: str, left: str) -> None:
    assert select_lines(text, names(), RULES)[0] == left


def test_lines_keep_their_numbers() -> None:
    assert select_lines("a  # [win]\nb\nc  # [win]\nd\n", names(), RULES) == ("b\nd\n", (2, 4))


def test_older_versions_take_comment_lines_out() -> None:
    assert select_lines("# c\na\n", names(), CondaBuildRules(blank_comment_lines=False)) == ("a\n", (2,))


def test_a_file_of_more_lines_than_any_is_refused() -> None:
    with pytest.raises(InputError, match="more than 50000 lines") as caught:
        select_lines("\n" * 50_001, names(), RULES, Path("x.yaml"))
    assert caught.value.mistakes[0].path == Path("x.yaml")


@pytest.mark.parametrize("holds", [True, False])
def test_known_selectors_select_the_same_lines(holds: bool) -> None:
    text = "a\n# comment\nb  # [unix]\n\nc  # [unix]\nd  # [win]\ne # [unix]"
    truths = {"unix": holds, "win": not holds}
    assert selected_text(text, RULES, truths) == select_lines(text, {}, RULES, truths=dict(truths))[0]


def test_an_unknown_selector_is_left_to_evaluation() -> None:
    assert selected_text("a  # [unix]\nb  # [win]", RULES, {"unix": True}) is None
