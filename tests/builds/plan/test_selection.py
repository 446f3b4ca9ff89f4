"""Which configurations a name means."""

from __future__ import annotations

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.planned import PlannedConfiguration, PlannedRow, select, with_filter, with_short_names


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


def torch(blas: str, cuda: str | None, *pythons: str) -> PlannedConfiguration:
    """A configuration of `linux-64` as pytorch's: rows for some Pythons that share other values."""
    name = f"linux_64_blas_impl{blas}is_rcFalsecuda_compiler_version{cuda}"
    shared = {"blas_impl": blas, "is_rc": "False", "c_stdlib_version": "2.28" if cuda == "13.0" else "2.17"}
    rows = [PlannedRow(f"{name}_{pin}", {**shared, "python": pin}, pin[:4], cuda) for pin in pythons]
    return PlannedConfiguration(name, "linux-64", tuple(rows))


CPYTHON, FREE = "3.13.* *_cp313", "3.13.* *_cp313t"
TORCH = with_short_names(
    [
        torch("mkl", "12.9", CPYTHON, "3.12.* *_cpython"),
        torch("generic", "12.9", CPYTHON, "3.12.* *_cpython"),
        torch("generic", "13.0", CPYTHON, "3.12.* *_cpython"),
        torch("generic", None, CPYTHON, FREE),
    ]
)


def test_a_short_name_tells_configurations_apart_by_the_fewest_values() -> None:
    assert [each.short_name for each in TORCH] == [
        "linux_64_cuda12.9_mkl",
        "linux_64_cuda12.9_generic",
        "linux_64_cuda13.0",
        "linux_64_cpu_py3.13",
    ]
    names = [row.short_name for each in TORCH for row in each.rows]
    assert len(set(names)) == len(names) == 8
    assert names[-2:] == ["linux_64_cpu_cp313_py3.13", "linux_64_cpu_cp313t_py3.13"]
    for name in names:
        assert [row.short_name for each in select([name], TORCH) for row in each.rows] == [name]


@pytest.mark.parametrize(
    ("name", "rows"),
    [("linux_64_mkl", 2), ("linux_64_generic", 2), ("linux_64_cuda12.9", 4), ("linux_64_cpu_cp313t", 1)],
)
def test_a_value_in_a_short_name_selects_the_rows_that_it_tells_apart(name: str, rows: int) -> None:
    assert sum(len(each.rows) for each in select([name], TORCH)) == rows


def test_a_value_that_tells_no_rows_apart_is_no_part_of_a_name() -> None:
    with pytest.raises(InputError, match=r"no configuration matches 'linux_64_cuda13\.0_generic'"):
        select(["linux_64_cuda13.0_generic"], TORCH)


def test_keys_whose_values_are_no_words_stay_beside_them() -> None:
    levels = [
        PlannedConfiguration(
            f"linux_64_level{level}", "linux-64", (PlannedRow(f"{level}", {"microarch_level": level}, None, None),)
        )
        for level in ("1", "3")
    ]
    assert [each.short_name for each in with_short_names(levels)] == [
        "linux_64_cpu_microarch-level1",
        "linux_64_cpu_microarch-level3",
    ]


def test_rows_of_other_pythons_and_levels_have_names_of_their_own() -> None:
    pins = ("3.13.* *_cp313", "3.13.* *_cp313t", "3.9.* *_cpython", "3.9.* *_73_pypy")
    named = with_short_names(
        [
            PlannedConfiguration(
                f"linux_64_level{level}",
                "linux-64",
                tuple(
                    PlannedRow(
                        f"{level} {pin}", {"python": pin, "microarch_level": level}, pin.partition(".*")[0], None
                    )
                    for pin in pins
                ),
            )
            for level in ("1", "3")
        ]
    )
    assert [each.short_name for each in named] == ["linux_64_cpu_microarch-level1", "linux_64_cpu_microarch-level3"]
    assert [row.short_name for row in named[1].rows] == [
        "linux_64_cpu_microarch-level3_cp313_py3.13",
        "linux_64_cpu_microarch-level3_cp313t_py3.13",
        "linux_64_cpu_microarch-level3_cpython_py3.9",
        "linux_64_cpu_microarch-level3_pypy_py3.9",
    ]
    for each in named:
        assert [found.rows for found in select([each.short_name], named)] == [each.rows]
        for row in each.rows:
            assert [found.rows for found in select([row.short_name], named)] == [(row,)]


def test_what_no_short_name_selects_alone_keeps_its_own() -> None:
    rows = (PlannedRow("a 11.8", {}, None, "11.8"), PlannedRow("a 12.9", {}, None, "12.9"))
    several = PlannedConfiguration("linux_64_a", "linux-64", rows)
    alike = [
        PlannedConfiguration(f"osx_64_{key}", "osx-64", (PlannedRow(f"osx_64_{key}", {}, None, None),)) for key in "bc"
    ]
    found = with_short_names([several, *alike])
    assert [each.short_name for each in found] == ["linux_64", "osx_64_b", "osx_64_c"]
    assert [row.short_name for row in found[0].rows] == ["linux_64_cuda11.8", "linux_64_cuda12.9"]


MATRIX = with_short_names(
    (
        configuration("linux_64_cuda_compiler_version11.2", "linux-64", "11.2", "3.11", "3.12"),
        configuration("linux_64_cuda_compiler_version12.0", "linux-64", "12.0", "3.11", "3.12"),
        configuration("linux_64_cuda_compiler_version12.9", "linux-64", "12.9", "3.11", "3.12"),
        configuration("linux_64_cuda_compiler_versionNone", "linux-64", None, "3.11", "3.12"),
        configuration("linux_aarch64_cuda_compiler_version12.9", "linux-aarch64", "12.9", "3.1"),
        configuration("osx_64_", "osx-64", None, "3.11"),
    )
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
        ("linux_64_cuda1*_py3.12", 3),
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
