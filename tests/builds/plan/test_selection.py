"""Which configurations a name means."""

from __future__ import annotations

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.planned import PlannedConfiguration, PlannedRow, select, with_filter


def configuration(name: str, platform: str, cuda: str | None, *pythons: str) -> PlannedConfiguration:
    """A configuration with a row for each Python."""
    rows = tuple(PlannedRow(f"{name}_py{python}", {}, python, cuda, ()) for python in pythons)
    return PlannedConfiguration(name, platform, rows)


@pytest.mark.parametrize(
    ("python", "values", "expected"),
    [("3.12", {"python_min": "3.10"}, "3.12"), (None, {"python_min": "3.10"}, "3.10"), (None, {}, None)],
)
def test_a_noarch_package_is_built_with_the_oldest_python(
    python: str | None, values: dict[str, str], expected: str | None
) -> None:
    assert PlannedRow("row", values, python, None).build_python == expected


MATRIX = (
    configuration("linux_64_cuda_compiler_version11.2", "linux-64", "11.2", "3.11", "3.12"),
    configuration("linux_64_cuda_compiler_version12.0", "linux-64", "12.0", "3.11", "3.12"),
    configuration("linux_64_cuda_compiler_version12.9", "linux-64", "12.9", "3.11", "3.12"),
    configuration("linux_64_cuda_compiler_versionNone", "linux-64", None, "3.11", "3.12"),
    configuration("linux_aarch64_cuda_compiler_version12.9", "linux-aarch64", "12.9", "3.1"),
    configuration("osx_64_", "osx-64", None, "3.11"),
)


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("osx_64_", ["osx_64__py3.11"]),
        ("linux_64_cuda_compiler_version11.2", 2),
        (
            "linux_64_cuda11.2",
            ["linux_64_cuda_compiler_version11.2_py3.11", "linux_64_cuda_compiler_version11.2_py3.12"],
        ),
        ("linux_64_cuda11.2_py3.12", ["linux_64_cuda_compiler_version11.2_py3.12"]),
        ("linux_64_cuda12", 4),
        ("linux_64_cpu", 2),
        ("linux_64_cpu_py3.11", ["linux_64_cuda_compiler_versionNone_py3.11"]),
        ("linux_64", 8),
        ("linux_64_py3.12", 4),
        ("linux_aarch64_py3.1", ["linux_aarch64_cuda_compiler_version12.9_py3.1"]),
        ("linux_64_*", 8),
        ("linux_64_*12.?", 4),
        ("linux_64_cuda12.*", 4),
        ("*", 10),
    ],
)
def test_a_name_selects_the_rows_that_agree_with_it(name: str, rows: int | list[str]) -> None:
    found = [row.name for each in select([name], MATRIX) for row in each.rows]
    assert (len(found) if isinstance(rows, int) else found) == rows


@pytest.mark.parametrize(
    "name", ["linux_64_cuda11.0", "linux_64_cuda1", "linux_64_py3.1", "osx_64_cuda11.2", "linux", "lnux_64*"]
)
def test_a_name_that_selects_nothing_is_an_error_with_the_nearest_names(name: str) -> None:
    with pytest.raises(InputError, match=r"The nearest are: .*_") as raised:
        select([name], MATRIX)
    assert raised.value.exit_code == 2


def test_all_unknown_names_are_reported_at_once() -> None:
    with pytest.raises(InputError) as raised:
        select(["linux_64_cuda11.1", "linux_64_cpu", "osx_arm64"], MATRIX)
    assert [mistake.message.split("'")[1] for mistake in raised.value.mistakes] == ["linux_64_cuda11.1", "osx_arm64"]


def test_an_unknown_name_that_is_repeated_is_reported_once() -> None:
    with pytest.raises(InputError) as raised:
        select(["osx_arm64", "osx_arm64"], MATRIX)
    assert len(raised.value.mistakes) == 1


def test_the_nearest_name_comes_first() -> None:
    with pytest.raises(InputError, match=r"The nearest are: linux_64_cuda11\.2,"):
        select(["lnux_64_cuda11.2"], MATRIX)


def test_names_add_up_and_each_row_is_taken_once() -> None:
    chosen = select(["linux_64_cuda11.2_py3.12", "linux_64_cuda11.2_py3.11", "linux_64_cuda11.2", "osx_64_"], MATRIX)
    assert [(each.name, len(each.rows)) for each in chosen] == [
        ("linux_64_cuda_compiler_version11.2", 2),
        ("osx_64_", 1),
    ]


def test_a_filter_narrows_what_names_can_mean() -> None:
    candidates = with_filter("*None", MATRIX)
    assert [each.name for each in select(["linux_64"], candidates)] == ["linux_64_cuda_compiler_versionNone"]


def test_a_filter_that_nothing_passes_is_an_error() -> None:
    with pytest.raises(InputError, match="no configuration"):
        with_filter("win_*", MATRIX)
