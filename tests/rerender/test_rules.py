"""Which behaviour belongs to which version of conda-smithy and conda-build."""

from __future__ import annotations

from typing import Any

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.rerender.rules import NEWEST_CONDA_BUILD, NEWEST_SMITHY, Rules
from tests.support.paths import ROOT


@pytest.mark.parametrize(
    ("field", "last_old", "old", "first_new", "new"),
    [
        ("keeps_labels", "3.27.1", "never", "3.28.0", "self-hosted"),
        ("keeps_labels", "3.58.0", "self-hosted", "3.58.1", "on GitHub Actions"),
        ("splits_by_common_keys", "3.47.1", False, "3.47.2", True),
        ("drops_skipped_configurations", "3.54.1", False, "3.54.2", True),
        ("booleans", "3.47.2", "quoted", "3.48.0", "all true"),
        ("booleans", "3.48.0", "all true", "3.48.1", "plain"),
        ("short_name", "3.50.0", (49, 35, 10), "3.50.1", (49, 40, 8)),
        ("longest_name", "3.9.0", (245, 0), "3.10.0", (227, 0)),
        ("longest_name", "3.55.1", (200, 190), "3.56.0", None),
        ("sets_cuda_enabled", "3.14.3", False, "3.15.0", True),
        ("migrations_match_by_name", "3.51.1", False, "3.52.0", True),
        ("splits_also_by", "3.8.2", (), "3.8.4", ()),
    ],
)
def test_a_behaviour_of_conda_smithy_comes_in_with_its_version(
    field: str, last_old: str, old: Any, first_new: str, new: Any
) -> None:
    assert getattr(Rules.parse(last_old), field) == old
    assert getattr(Rules.parse(first_new), field) == new


@pytest.mark.parametrize(
    ("field", "last_old", "old", "first_new", "new"),
    [
        ("blank_comment_lines", "24.3.0", False, "24.5.0", True),
        ("whole_names_only", "24.9.0", False, "24.11.0", True),
        ("bare_names_in_braces", "24.9.0", True, "24.11.0", False),
        ("bare_names_in_braces", "26.5.0", False, "26.7.0", True),
        ("stdlib_uses", "24.1.2", False, "24.3.0", True),
        ("noarch_newest_python", "3.20.5", False, "3.21.0", True),
    ],
)
def test_a_behaviour_of_conda_build_comes_in_with_its_version(
    field: str, last_old: str, old: Any, first_new: str, new: Any
) -> None:
    assert getattr(Rules.parse(f"3.52.2+{last_old}").conda_build, field) == old
    assert getattr(Rules.parse(f"3.52.2+{first_new}").conda_build, field) == new


@pytest.mark.parametrize(
    ("version", "kept_too"),
    [
        ("3.2.2", set()),
        ("3.52.2", {"cdt_arch", "cdt_name", "BUILD"}),
        ("3.34.0", {"cdt_arch", "cdt_name", "BUILD", "c_stdlib", "c_stdlib_version"}),
        ("3.52.3", set()),
    ],
)
def test_unused_keys_that_are_kept(version: str, kept_too: set[str]) -> None:
    assert Rules.parse(version).always_kept - Rules.newest().always_kept == kept_too


@pytest.mark.parametrize("text", ["3.14.1", "3.14.1+", " 3.14.1 + "])
def test_without_a_conda_build_version_that_of_the_day_applies(text: str) -> None:
    assert Rules.parse(text).name == "3.14.1+3.21.4"


def test_the_newest_versions_that_were_read_are_the_defaults() -> None:
    assert Rules.parse("2026.8.5+26.7.1") == Rules.newest() == Rules()


def test_the_documentation_names_the_newest_versions() -> None:
    page = (ROOT / "docs" / "rerender.md").read_text(encoding="utf-8")
    assert f"({NEWEST_SMITHY} and {NEWEST_CONDA_BUILD})" in page


def test_a_version_that_is_newer_than_all_that_were_read_behaves_as_the_newest() -> None:
    newer = Rules.parse("2031.1.1+31.1.0")
    assert newer.conda_build == Rules.newest().conda_build
    assert newer.always_kept == Rules.newest().always_kept


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("2031.1.1", "conda-smithy 2031.1.1 is newer than 2026.8.5, the newest known version, whose rules are used"),
        ("3.50.1+31.1.0", "conda-build 31.1.0 is newer than 26.7.1, the newest known version, whose rules are used"),
        ("2026.8.5+26.7.1", None),
    ],
)
def test_a_version_that_is_newer_than_all_that_were_read_is_noted(text: str, note: str | None) -> None:
    assert Rules.parse(text).note == note


@pytest.mark.parametrize("text", ["", "latest", "3.14.x", "3.14.1+new", "+3.21.4", "3..1", "1" * 20, "3.1.5"])
def test_unknown_versions_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        Rules.parse(text)
