"""The language of `when:`, and its form in both recipe formats."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedstock_tools.conditions.spec import ConditionError, Setting, holds, parse, to_expression, to_selector
from feedstock_tools.platforms import Platform

VERSIONS = ("10.2", "11.2", "11.8", "12.0", "12.9")


@pytest.mark.parametrize(
    ("condition", "selector", "expression"),
    [
        ("linux", "linux", "linux"),
        ("linux-64", "linux64", "linux and x86_64"),
        ("linux-riscv64", "linux and riscv64", "linux and riscv64"),
        ("not osx", "not osx", "not osx"),
        ("not (linux or osx)", "not (linux or osx)", "not (linux or osx)"),
        ("cuda", 'cuda_compiler_version != "None"', 'cuda_compiler_version != "None"'),
        ("not cuda", 'cuda_compiler_version == "None"', 'cuda_compiler_version == "None"'),
        ("cross", "build_platform != target_platform", "build_platform != target_platform"),
        ("python >= 3.10", "py >= 310", 'match(python, ">=3.10")'),
        ("python == 3.9", "py == 39", 'match(python, "3.9.*")'),
        ("cuda == 11.2", 'cuda_compiler_version == "11.2"', 'cuda_compiler_version == "11.2"'),
        (
            "cuda >= 12",
            'cuda_compiler_version in ("12.0", "12.9")',
            'cuda_compiler_version != "None" and match(cuda_compiler_version, ">=12")',
        ),
        (
            "linux and (cpu or python < 3.9)",
            'linux and (cuda_compiler_version == "None" or py < 39)',
            'linux and (cuda_compiler_version == "None" or match(python, "<3.9"))',
        ),
    ],
)
def test_a_condition_in_the_words_of_both_formats(condition: str, selector: str, expression: str) -> None:
    assert to_selector(parse(condition), VERSIONS) == selector
    assert to_expression(parse(condition)) == expression


@pytest.mark.parametrize(
    ("condition", "message", "hint"),
    [
        ("linx", "'linx' is not a word in conditions", "Did you mean 'linux'?"),
        ("linux and", "the condition ends where a word was expected", "Words are"),
        ("linux osx", "'osx' in 'linux osx' is unexpected", "Join the parts"),
        ("(linux", "a parenthesis is not closed", "Add the missing"),
        ("linux >= 3", "'linux' cannot be compared", "Versions of cuda and python can"),
        ("cuda >=", "no version follows 'cuda >='", "Such as"),
        ("os.system('x')", "'.' has no meaning", "Words are"),
        ("not " * 30 + "linux", "nested too deeply", "Split it"),
    ],
)
def test_a_mistake_in_a_condition_names_what_was_expected(condition: str, message: str, hint: str) -> None:
    with pytest.raises(ConditionError) as caught:
        parse(condition)

    assert message in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("linux and cuda", True),
        ("cuda >= 12", False),
        ("cuda > 11", False),
        ("cuda <= 11", True),
        ("python == 3.12", True),
        ("cross", True),
        ("unix and not aarch64", False),
    ],
)
def test_whether_a_condition_holds(condition: str, expected: bool) -> None:
    setting = Setting(Platform("linux", "aarch64"), Platform("linux", "64"), cuda="11.2", python="3.12")

    assert holds(parse(condition), setting) is expected


WORDS = ("linux", "osx", "win", "unix", "x86_64", "aarch64", "linux-64", "osx-arm64", "cuda", "cpu", "cuda >= 11.8")
CONDITIONS = st.recursive(
    st.sampled_from(WORDS),
    lambda part: st.one_of(
        st.tuples(part, st.sampled_from(("and", "or")), part).map(lambda three: f"({' '.join(three)})"),
        part.map(lambda text: f"not ({text})"),
    ),
    max_leaves=6,
)


@given(CONDITIONS, st.sampled_from(("linux-64", "osx-arm64", "win-64")), st.sampled_from((None, *VERSIONS)))
def test_a_selector_holds_where_the_condition_holds(condition: str, subdir: str, cuda: str | None) -> None:
    platform = Platform.parse(subdir)
    names = {
        **{os: platform.os == os for os in ("linux", "osx", "win")},
        "unix": platform.os != "win",
        "x86_64": platform.arch == "64",
        "arm64": platform.arch == "arm64",
        "aarch64": platform.arch == "aarch64",
        "linux64": subdir == "linux-64",
        "cuda_compiler_version": cuda or "None",
    }

    said = eval(to_selector(parse(condition), VERSIONS), {"__builtins__": {}}, names)  # noqa: S307 - our own text

    assert said is holds(parse(condition), Setting(platform, platform, cuda))
