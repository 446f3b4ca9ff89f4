"""GPUs by the names that drivers, shops, clouds and people give them, and the drivers that know them."""

from __future__ import annotations

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.facts.cuda import load_cuda
from feedstock_tools.facts.gpus import Gpu, driver_version, find_gpu, load_gpus

KNOWN = load_gpus()


def gpu(name: str) -> Gpu:
    return find_gpu(name, KNOWN)


@pytest.mark.parametrize(
    ("name", "listed", "capability"),
    [
        ("RTX 3080", "GeForce RTX 3080", "8.6"),
        ("rtx3080ti", "GeForce RTX 3080 Ti", "8.6"),
        ("3080", "GeForce RTX 3080", "8.6"),
        ("NVIDIA GeForce RTX 3080 Ti", "GeForce RTX 3080 Ti", "8.6"),
        ("geforce rtx 3080 laptop gpu", "GeForce RTX 3080 Laptop GPU", "8.6"),
        ("NVIDIA GeForce RTX 2080 with Max-Q Design", "GeForce RTX 2080 Max-Q", "7.5"),
        ("Tesla V100-SXM2-16GB", "Tesla V100", "7.0"),
        ("Tesla V100-DGXS-32GB", "Tesla V100", "7.0"),
        ("V100", "Tesla V100", "7.0"),
        ("V100S", "Tesla V100S", "7.0"),
        ("Tesla K40m", "Tesla K40m", "3.5"),
        ("K40", "Tesla K40m", "3.5"),
        ("Tesla K80", "Tesla K80", "3.7"),
        ("GTX 980M", "GeForce GTX 980M", "5.2"),
        ("M10", "Tesla M10", "5.0"),
        ("MX150", "GeForce MX150", "6.1"),
        ("GT 1030", "GeForce GT 1030", "6.1"),
        ("Quadro T1000", "Quadro T1000", "7.5"),
        ("Quadro RTX 3000", "Quadro RTX 3000", "7.5"),
        ("Quadro RTX 6000", "Quadro RTX 6000", "7.5"),
        ("Tesla T4", "Tesla T4", "7.5"),
        ("NVIDIA A100-SXM4-80GB", "A100", "8.0"),
        ("A800", "A800", "8.0"),
        ("NVIDIA A10", "A10", "8.6"),
        ("A10G", "A10G", "8.6"),
        ("RTX A4500", "RTX A4500", "8.6"),
        ("RTX 2050", "GeForce RTX 2050", "8.6"),
        ("RTX 5880 Ada", "RTX 5880 Ada", "8.9"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada", "8.9"),
        ("NVIDIA GeForce RTX 4070 Laptop GPU", "GeForce RTX 4070 Laptop GPU", "8.9"),
        ("L2", "L2", "8.9"),
        ("L20", "L20", "8.9"),
        ("NVIDIA H100 80GB HBM3", "H100", "9.0"),
        ("H800", "H800", "9.0"),
        ("H20", "H20", "9.0"),
        ("GH200 480GB", "GH200", "9.0"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "RTX PRO 6000 Blackwell Workstation Edition", "12.0"),
        ("RTX PRO 6000 Blackwell", "RTX PRO 6000 Blackwell Workstation Edition", "12.0"),
        # Editions of their own, and the nearest where there is none of that name.
        ("RTX 5070 Ti Laptop", "GeForce RTX 5070 Ti Laptop GPU", "12.0"),
        ("RTX 3050 notebook", "GeForce RTX 3050 Laptop GPU", "8.6"),
        ("RTX 3080 Max-Q", "GeForce RTX 3080 Laptop GPU", "8.6"),
        ("RTX A2000 Mobile", "RTX A2000 Laptop GPU", "8.6"),
        ("RTX A2000 Embedded", "RTX A2000 Embedded GPU", "8.6"),
        ("RTX A3000", "RTX A3000 Laptop GPU", "8.6"),
        ("RTX PRO 6000 Blackwell Max-Q", "RTX PRO 6000 Blackwell Max-Q Workstation Edition", "12.0"),
        ("Tesla T4 Server Edition", "Tesla T4", "7.5"),
        ("NVIDIA GeForce GTX TITAN X", "GeForce GTX TITAN X", "5.2"),
        ("NVIDIA TITAN X (Pascal)", "TITAN X Pascal", "6.1"),
        ("TITAN Xp", "TITAN Xp", "6.1"),
        ("NVIDIA GB10", "GB10", "12.1"),
        ("DGX Spark", "GB10", "12.1"),
        ("Thor", "Jetson AGX Thor", "11.0"),
        ("Orin Nano", "Jetson Orin Nano", "8.7"),
        # Virtual GPUs and machine types of clouds are the GPU below.
        ("GRID A100D-40C", "A100D", "8.0"),
        ("NVIDIA A40-8Q", "A40", "8.6"),
        ("NVIDIA H100-1-10C", "H100", "9.0"),
        ("g5.xlarge", "A10G", "8.6"),
        ("p3.2xlarge", "Tesla V100", "7.0"),
    ],
)
def test_a_gpu_is_found_by_what_people_and_drivers_call_it(name: str, listed: str, capability: str) -> None:
    found = gpu(name)
    assert (found.name, found.capability) == (listed, capability)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("RTX 4000", ["Quadro RTX 4000 (Turing, 7.5)", "RTX 4000 Ada (Ada Lovelace, 8.9)", "RTX PRO 4000 Blackwell"]),
        ("RTX 6000", ["Quadro RTX 6000 (Turing, 7.5)", "RTX 6000 Ada (Ada Lovelace, 8.9)"]),
        ("Titan X", ["GeForce GTX TITAN X (Maxwell, 5.2)", "TITAN X Pascal (Pascal, 6.1)"]),
        ("GTX 860M", ["(Kepler, 3.0)", "(Maxwell, 5.0)"]),
        ("GT 730", ["(Fermi, 2.1)", "(Kepler, 3.5)"]),
    ],
)
def test_a_name_of_several_capabilities_is_an_error_that_lists_them(name: str, meant: list[str]) -> None:
    with pytest.raises(InputError, match=f"'{name}' is the name of several GPUs") as caught:
        gpu(name)
    assert all(text in str(caught.value) for text in meant)


def test_a_laptop_gpu_has_the_chip_and_the_drivers_of_its_own() -> None:
    desktop, laptop = gpu("RTX 5070 Ti"), gpu("RTX 5070 Ti Laptop GPU")
    assert (desktop.chip, desktop.least_driver(windows=False)) == ("GB203", "570.26")
    assert (laptop.chip, laptop.least_driver(windows=False)) == ("GB205", "570.133.07")


def test_a_name_of_several_chips_stands_for_each_of_them_and_a_chip_in_the_name_for_one() -> None:
    assert gpu("GTX 1650").chip_words(windows=False) == (
        "it is sold with the chips TU106 (from 410.57 on), TU116 (from 418.30 on), TU117 (from 418.56 on)"
    )
    assert [gpu("GTX 1650").drives(driver) for driver in ("410.48", "410.57", "418.30", "418.56")] == [
        *(False, None, None, True)
    ]
    one = gpu("GTX 1650 TU117")
    assert (one.name, one.chip, one.others) == ("GeForce GTX 1650 (TU117)", "TU117", ())
    assert [one.drives(driver) for driver in ("418.30", "418.56")] == [False, True]
    assert gpu(one.name) == one


def test_the_generation_distinguishes_gpus_of_one_name() -> None:
    assert gpu("GTX 860M (Kepler)").capability == "3.0"
    assert gpu("GTX 860M Maxwell").capability == "5.0"
    assert gpu("RTX 4000 Ada").capability == "8.9"


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("RTX 3088", "GeForce RTX 3080"),
        ("Voodoo", "Write it as RTX 3080"),
        ("Radeon RX 7900 XTX", "CUDA is for NVIDIA's GPUs"),
        ("Intel Arc A770", "CUDA is for NVIDIA's GPUs"),
        ("sm_86", "--capability 8.6"),
        ("8.6", "--capability 8.6"),
    ],
)
def test_an_unknown_gpu_is_an_error_with_the_nearest(name: str, near: str) -> None:
    with pytest.raises(InputError, match=f"unknown GPU '{name}'") as caught:
        gpu(name)
    assert near in str(caught.value)


@pytest.mark.parametrize("name", ["", "NVIDIA", "   ", "zzzzzz", "-", "RTX"])
def test_other_texts_find_no_gpu(name: str) -> None:
    with pytest.raises(InputError):
        gpu(name)


def test_every_listed_name_finds_its_capability_or_says_that_it_has_several() -> None:
    by_name: dict[str, set[str]] = {}
    for each in KNOWN.gpus:
        by_name.setdefault(each.name.casefold(), set()).add(each.capability)
    assert len(by_name) >= 500
    for name, capabilities in by_name.items():
        if len(capabilities) == 1:
            assert gpu(name).capability in capabilities
            assert gpu(f"NVIDIA {name}").capability in capabilities
        else:
            with pytest.raises(InputError, match="several GPUs"):
                gpu(name)


def test_every_gpu_can_be_compiled_for_by_some_toolkit() -> None:
    toolkits = load_cuda().toolkits.values()
    for each in KNOWN.gpus:
        assert any(toolkit.accepts(each.architecture) for toolkit in toolkits), each.name


@pytest.mark.parametrize(
    ("name", "driver", "windows", "driven"),
    [
        ("RTX 5090", "535", False, False),
        ("RTX 5090", "570.86.16", False, True),
        ("RTX 5090", "566.36", True, False),
        ("RTX 5090", "572.16", True, True),
        ("RTX 4090", "470", False, False),
        ("RTX 4090", "520.56.06", False, True),
        ("RTX 4090", "516.94", True, False),
        ("RTX 4090", "522.25", True, True),
        ("RTX 3080", "450.80.02", False, False),
        ("RTX 3080", "455.23.04", False, True),
        ("RTX 3080", "456.38", True, True),
        ("RTX 3080", "452.06", True, False),
        ("A100", "450.51.05", False, True),
        ("A100", "440.33", False, False),
        ("H100", "515.43.04", False, False),
        ("H100", "525", False, True),
        ("K80", "470.256.02", False, True),
        ("K80", "535", False, False),
        ("GTX 480", "390.157", False, True),
        ("GTX 480", "418.39", False, False),
        ("GTX 1080", "580.65.06", False, True),
        ("GTX 1080", "590.44.01", False, False),
        ("V100", "591.44", True, False),
        ("T4", "595.45.04", False, True),
        # No source names the first driver for Windows; later branches than the first on Linux know the chip.
        ("H100", "516.01", True, None),
        ("H100", "520.06", True, None),
        ("H100", "528.33", True, True),
        ("GTX 1080", "369.30", True, True),
        ("GTX 1080", "353.30", True, None),
        ("K80", "475.14", True, True),
        ("K80", "496.13", True, False),
    ],
)
def test_a_driver_knows_the_gpus_of_its_time(name: str, driver: str, windows: bool, driven: bool | None) -> None:
    assert gpu(name).drives(driver, windows=windows) is driven


def test_a_driver_as_windows_device_manager_shows_it() -> None:
    assert driver_version("31.0.15.5222") == "552.22"
    assert driver_version("30.0.14.7111") == "471.11"
    assert driver_version("32.0.15.6094") == "560.94"
    assert driver_version("535.129.03") == "535.129.03"
    with pytest.raises(InputError):
        driver_version("5x")


def test_names_of_data_centre_gpus_are_distinguished_from_others() -> None:
    assert gpu("A100").data_center
    assert gpu("Tesla T4").data_center
    assert not gpu("RTX 3080").data_center
    assert not gpu("Jetson Nano").data_center


@pytest.mark.parametrize(
    ("name", "cuda", "has"),
    [("Jetson Nano", "10.2", True), ("Jetson Nano", "11.4", False), ("Thor", "12.9", False), ("Thor", "13.0", True)],
)
def test_the_system_of_a_jetson_has_some_toolkits_only(name: str, cuda: str, has: bool) -> None:
    assert gpu(name).jetson_has(cuda) is has
