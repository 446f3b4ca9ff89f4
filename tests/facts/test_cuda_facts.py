"""The facts on CUDA, compared with values known from elsewhere and with each other."""

from __future__ import annotations

from itertools import pairwise

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.facts.cuda import PinningRow, Toolkit, load_cuda
from feedstock_tools.platforms import Platform
from feedstock_tools.versions import parse_version

FACTS = load_cuda()
TOOLKITS = list(FACTS.toolkits.values())
GCC_ROWS = [row for row in FACTS.rows if row.cuda and row.platform.os == "linux"]
LINUX = Platform.parse("linux-64")


def test_toolkits_are_in_the_order_of_their_versions() -> None:
    keys = [parse_version(version) for version in FACTS.toolkits]
    assert keys == sorted(keys)
    assert keys[0] == parse_version("8.0")


@pytest.mark.parametrize("toolkit", TOOLKITS, ids=lambda toolkit: toolkit.version)
def test_every_fact_names_sources_that_are_listed(toolkit: Toolkit) -> None:
    unsourced = {"version", "sources", "era", "architectures", "least_driver"}
    optional = toolkit.__dataclass_fields__.keys() - unsourced
    known = {fact for fact in optional if getattr(toolkit, fact) not in (None, ())}
    assert set(toolkit.sources) == {"era", "architectures", "least_driver"} | known
    assert {name for names in toolkit.sources.values() for name in names} <= set(FACTS.sources)


def test_every_source_is_used_and_says_what_it_is() -> None:
    used = {name for toolkit in TOOLKITS for names in toolkit.sources.values() for name in names}
    used |= {preset.source for preset in FACTS.presets.values()}
    assert used == set(FACTS.sources)


@pytest.mark.parametrize(
    ("version", "oldest", "newest", "gcc", "driver"),
    [
        ("8.0", "20", "62", 5, "367.48"),
        ("9.0", "30", "72", 6, "384.81"),
        ("9.2", "30", "72", 7, "396.26"),
        ("10.0", "30", "75", 7, "410.48"),
        ("10.1", "30", "75", 8, "418.39"),
        ("10.2", "30", "75", 8, "440.33"),
        ("11.0", "35", "80", 9, "450.51.05"),
        ("11.1", "35", "86", 10, "455.23"),
        ("11.2", "35", "86", 10, "460.27.03"),
        ("11.4", "35", "87", 11, "470.42.01"),
        ("11.8", "35", "90", 11, "520.61.05"),
        ("12.0", "50", "90a", 12, "525.60.13"),
        ("12.4", "50", "90a", 13, "550.54.14"),
        ("12.8", "50", "120a", 14, "570.26"),
        ("12.9", "50", "121f", 14, "575.51.03"),
        ("13.0", "75", "121f", 15, "580.65.06"),
    ],
)
def test_nvcc_compiles_for_its_generation(version: str, oldest: str, newest: str, gcc: int, driver: str) -> None:
    toolkit = FACTS.toolkit(version)
    assert (toolkit.architectures[0], toolkit.architectures[-1]) == (oldest, newest)
    assert toolkit.newest_gcc == gcc
    assert toolkit.driver is not None
    assert toolkit.driver.linux == driver


@pytest.mark.parametrize(
    ("version", "architecture", "accepted"),
    [
        ("8.0", "sm_21", True),
        ("8.0", "compute_21", False),  # its PTX is that of 2.0
        ("8.0", "sm_70", False),
        ("9.2", "sm_20", False),
        ("10.0", "sm_75", True),
        ("11.0", "sm_86", False),  # an RTX 3080 gets PTX from CUDA 11.0
        ("11.1", "sm_86", True),
        ("11.2", "compute_86", True),
        ("11.8", "sm_90a", False),
        ("12.0", "sm_90a", True),
        ("12.8", "sm_101", True),
        ("13.0", "sm_101", False),  # renamed to 110
        ("13.0", "compute_110f", True),
        ("13.0", "sm_70", False),  # a V100 is no longer supported
        ("13.0", "86", False),
        ("13.0", "gfx90a", False),
        ("13.0", "sm_86 ", False),
    ],
)
def test_it_is_known_what_nvcc_accepts(version: str, architecture: str, accepted: bool) -> None:
    assert FACTS.toolkit(version).accepts(architecture) is accepted


@pytest.mark.parametrize(
    ("version", "years"),
    [
        ("9.1", (2012, 2017)),
        ("10.1", (2012, 2019)),
        ("11.2", (2017, 2019)),
        ("11.5", (2017, 2019)),
        ("11.6", (2017, 2022)),
        ("13.0", (2019, 2022)),
    ],
)
def test_nvcc_takes_the_visual_studio_of_its_time(version: str, years: tuple[int, int]) -> None:
    assert FACTS.toolkit(version).visual_studio == years


def test_within_a_major_version_nothing_is_dropped() -> None:
    for older, newer in pairwise(TOOLKITS):
        if parse_version(older.version).major == parse_version(newer.version).major:
            assert set(older.architectures) <= set(newer.architectures), newer.version
            assert (older.newest_gcc or 0) <= (newer.newest_gcc or 0)
            assert (older.newest_clang or 0) <= (newer.newest_clang or 0)


def test_drivers_grow_with_the_toolkit_and_none_ships_less_than_it_needs() -> None:
    known = [toolkit for toolkit in TOOLKITS if toolkit.driver and toolkit.driver.linux]
    drivers = [parse_version(toolkit.driver.linux or "") for toolkit in known if toolkit.driver]
    assert drivers == sorted(drivers)
    for toolkit, driver in zip(known, drivers, strict=True):
        assert toolkit.least_driver is not None
        assert toolkit.least_driver.linux is not None
        assert parse_version(toolkit.least_driver.linux) <= driver


def test_a_patch_version_is_taken_as_its_minor_version() -> None:
    assert FACTS.toolkit("11.2.1") is FACTS.toolkits["11.2"]


def test_an_unknown_version_is_an_error_that_lists_those_known() -> None:
    with pytest.raises(InputError, match=r"unknown CUDA version 12\.7") as caught:
        FACTS.toolkit("12.7")
    assert "12.6, 12.8" in str(caught.value)


@pytest.mark.parametrize("toolkit", TOOLKITS, ids=lambda toolkit: toolkit.version)
def test_presets_ask_for_nothing_that_nvcc_does_not_know(toolkit: Toolkit) -> None:
    for preset in FACTS.presets.values():
        if preset.candidates or toolkit.version in preset.lists:
            chosen = preset.architectures(toolkit)
            assert toolkit.refused(chosen) == ()
            newest = chosen[-2].removeprefix("sm_").rstrip("af")
            assert chosen[-1] == f"compute_{newest}", "PTX of the newest, for GPUs to come"


def test_the_preset_for_tensorflow_is_what_was_built() -> None:
    without_ptx = ("sm_35", "sm_50", "sm_60", "sm_62", "sm_70", "sm_72", "sm_75")
    assert FACTS.preset("tensorflow-2.6", "10.2") == (*without_ptx, "compute_75")
    assert FACTS.preset("tensorflow-2.6", "11.0") == (*without_ptx, "sm_80", "compute_80")
    for version in ("11.1", "11.2"):
        assert FACTS.preset("tensorflow-2.6", version) == (*without_ptx, "sm_80", "sm_86", "compute_86")


@pytest.mark.parametrize(
    ("name", "version", "message", "hint"),
    [
        ("tensorflow-2.5", "11.2", "no preset 'tensorflow-2.5'", "Did you mean 'tensorflow-2.6'?"),
        ("tensorflow-2.6", "12.0", "has no architectures for CUDA 12.0", "It has 10.2, 11.0, 11.1, 11.2."),
        ("common", "9.9", "unknown CUDA version 9.9", "Known CUDA versions: 8.0"),
    ],
)
def test_an_unavailable_preset_is_an_error(name: str, version: str, message: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        FACTS.preset(name, version)
    assert message in str(caught.value)
    assert hint in str(caught.value)


def test_each_row_appears_once() -> None:
    names = [row.name for row in FACTS.rows]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("row", GCC_ROWS, ids=lambda row: row.name)
def test_rows_name_a_gcc_that_nvcc_accepts(row: PinningRow) -> None:
    newest = FACTS.toolkit(row.cuda or "").newest_gcc
    assert newest is not None
    assert row.values["c_compiler_version"] == row.values["cxx_compiler_version"]
    assert int(row.values["c_compiler_version"]) <= newest


@pytest.mark.parametrize("row", [row for row in FACTS.rows if row.cuda], ids=lambda row: row.name)
def test_rows_fit_the_era_of_their_toolkit(row: PinningRow) -> None:
    era = FACTS.toolkit(row.cuda or "").era
    assert row.values["cuda_compiler"] == {"cudatoolkit": "nvcc", "cuda-version": "cuda-nvcc"}[era]
    if row.platform.os == "linux":
        assert (
            f"cuda:{row.cuda}" in row.values["docker_image"] or f"cuda{row.cuda}:" in row.values["docker_image"]
        ) == (era == "cudatoolkit")


def test_the_versions_of_a_platform_are_those_that_conda_forge_named() -> None:
    every = ("10.2", "11.0", "11.1", "11.2", "11.8", "12.0", "12.4", "12.6", "12.8", "12.9", "13.0")
    assert FACTS.versions(LINUX) == every
    assert FACTS.versions(Platform.parse("win-64")) == every
    assert FACTS.versions(Platform.parse("linux-aarch64")) == every[3:]
    assert FACTS.versions(Platform.parse("osx-arm64")) == ()


def test_a_version_that_was_never_pinned_is_an_error() -> None:
    with pytest.raises(InputError, match=r"never had CUDA 11\.0 for linux-aarch64") as caught:
        FACTS.pinning_row("11.0", Platform.parse("linux-aarch64"))
    assert "11.2, 11.8, 12.0" in str(caught.value)
    with pytest.raises(InputError, match=r"never had CPU builds for zos-z"):
        FACTS.pinning_row(None, Platform.parse("zos-z"))
