"""From a configuration to its rows."""

from __future__ import annotations

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.platforms import Platform
from feedstock_tools.rerender.configuration import Configuration, cuda_version, python_version, rows_of

LINUX = Platform.parse("linux-64")


def test_a_configuration_of_single_values_is_one_row_of_its_name() -> None:
    configuration = Configuration("linux_64_", LINUX, {"zlib": ("1",), "target_platform": ("linux-64",)})
    (row,) = rows_of(configuration)
    assert (row.name, row.values) == ("linux_64_", {"zlib": "1", "target_platform": "linux-64"})


def test_several_pythons_are_several_rows_named_for_them() -> None:
    configuration = Configuration("linux_64_", LINUX, {"python": ("3.11.* *_cpython", "3.12.* *_cpython")})
    assert [row.name for row in rows_of(configuration)] == ["linux_64__py3.11", "linux_64__py3.12"]


def test_zipped_keys_go_together() -> None:
    values = {
        "python": ("3.11.* *_cpython", "3.12.* *_cpython"),
        "numpy": ("1.23", "1.26"),
        "blas": ("mkl", "openblas"),
    }
    rows = rows_of(Configuration("linux_64_", LINUX, values, zip_keys=(("python", "numpy"),)))
    assert {(row.values["python"][:4], row.values["numpy"]) for row in rows} == {("3.11", "1.23"), ("3.12", "1.26")}
    assert [row.name for row in rows] == [
        "linux_64__py3.11_blasmkl",
        "linux_64__py3.11_blasopenblas",
        "linux_64__py3.12_blasmkl",
        "linux_64__py3.12_blasopenblas",
    ]


def test_what_steers_a_job_spans_no_rows() -> None:
    values = {"docker_image": ("a", "b"), "channel_targets": ("conda-forge main", "conda-forge x"), "zlib": ("1",)}
    (row,) = rows_of(Configuration("linux_64_", LINUX, values))
    assert row.values["docker_image"] == "a"


def test_zipped_lists_of_different_lengths_are_an_error() -> None:
    values = {"python": ("3.11", "3.12"), "numpy": ("1",)}
    with pytest.raises(InputError, match="python has 2, numpy has 1"):
        rows_of(Configuration("linux_64_", LINUX, values, zip_keys=(("python", "numpy"),)))


@pytest.mark.parametrize(
    ("pin", "version"),
    [("3.12.* *_cpython", "3.12"), ("3.13.* *_cp313t", "3.13"), ("3.9", "3.9"), ("3.12.4", "3.12"), ("", None)],
)
def test_the_python_of_a_row(pin: str, version: str | None) -> None:
    assert python_version({"python": pin}) == version


@pytest.mark.parametrize(("value", "version"), [("11.2", "11.2"), ("None", None), ("", None)])
def test_the_cuda_version_of_a_row(value: str, version: str | None) -> None:
    assert cuda_version({"cuda_compiler_version": value}) == version
