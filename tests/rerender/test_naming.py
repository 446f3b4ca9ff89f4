"""Names of configurations and of their CI jobs."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from feedstock_tools.platforms import Platform
from feedstock_tools.rerender.collapse import configuration_name, short_name
from feedstock_tools.rerender.rules import Rules


@pytest.mark.parametrize(
    ("platform", "values", "version", "name"),
    [
        ("linux-64", {}, None, "linux_64_"),
        ("osx-arm64", {"python": "3.10.* *_cpython"}, None, "osx_arm64_python3.10.____cpython"),
        ("linux-64", {"target_platform": "linux-64", "mpi": "mpich"}, None, "linux_64_mpimpich"),
        ("linux-64", {"b": "2", "a": "1"}, None, "linux_64_a1b2"),
        ("linux-64", {"path": "../../x"}, None, "linux_64_path....x"),
        ("linux-64", {"path": "../../x"}, "3.14.1", "linux_64_path....x"),
        ("linux-64", {"v": "<=1,2"}, None, "linux_64_v=12"),
        ("linux-64", {"v": "1"}, "3.6.2", "linux_v1"),
    ],
)
def test_names(platform: str, values: Mapping[str, str], version: str | None, name: str) -> None:
    rules = Rules.parse(version) if version else Rules.newest()

    assert configuration_name(Platform.parse(platform), values, "demo-feedstock", rules) == name


def test_a_name_that_windows_could_not_open_is_cut_and_gets_a_hash() -> None:
    name = configuration_name(Platform("win", "64"), {"key": "v" * 300}, "demo-feedstock")

    outer = len("C:/Users/runnerx/_work/demo-feedstock/demo-feedstock/.ci_support/")
    assert outer + len(f"{name}.yaml") == 259
    assert name[-10:-8] == "_h"


def test_short_names_keep_forty_characters_and_eight_of_the_hash() -> None:
    assert short_name("x" * 48) == "x" * 48
    assert short_name("x" * 49).startswith("x" * 40 + "_h")
    assert len(short_name("x" * 49)) == 50
