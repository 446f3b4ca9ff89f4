"""The C library, command and Python binding of examples/gpuprobe, built with the compiler of this machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from feedstock_tools.data import data_folder
from tests.support.needs import lacks, needs

SOURCES = data_folder("examples") / "gpuprobe" / "src"
ARCHITECTURES = "sm_35,sm_50,sm_60,sm_62,sm_70,sm_72,sm_75,sm_80,sm_86,compute_86"

pytestmark = needs("system", sys.platform != "win32", "a POSIX shell")


def run(command: list[str | Path], **variables: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a program with only PATH and `variables` in its environment."""
    environment = {"PATH": os.environ["PATH"], **{name: str(value) for name, value in variables.items()}}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)


def build(what: str, prefix: Path, compiler: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    site_packages = prefix / "lib" / "python" / "site-packages"
    flags = "-O0 -pedantic -Werror"
    return run(
        ["sh", SOURCES / "build.sh", what],
        PREFIX=prefix,
        SP_DIR=site_packages,
        CC=str(compiler),
        CFLAGS=flags,
        **variables,
    )


@pytest.fixture(scope="module")
def gpu_prefix(tmp_path_factory: pytest.TempPathFactory, c_compiler: Path) -> Path:
    """An environment with the build for CUDA 11.2, library and Python package."""
    prefix = tmp_path_factory.mktemp("cuda112")
    done = build("library", prefix, c_compiler, GPUPROBE_CUDA_VERSION="11.2", GPUPROBE_ARCHITECTURES=ARCHITECTURES)
    assert done.returncode == 0, done.stderr
    done = build("python", prefix, c_compiler)
    assert done.returncode == 0, done.stderr
    return prefix


@pytest.fixture(scope="module")
def cpu_prefix(tmp_path_factory: pytest.TempPathFactory, c_compiler: Path) -> Path:
    prefix = tmp_path_factory.mktemp("cpu")
    done = build("library", prefix, c_compiler, GPUPROBE_CUDA_VERSION="None", GPUPROBE_ARCHITECTURES="")
    assert done.returncode == 0, done.stderr
    return prefix


@pytest.fixture(scope="module")
def fake_driver(tmp_path_factory: pytest.TempPathFactory, c_compiler: Path) -> Path:
    """A folder with a libcuda.so.1 that answers as the FAKE_CUDA_… variables say."""
    if sys.platform != "linux":
        lacks("system", "only Linux finds a driver through LD_LIBRARY_PATH")
    folder = tmp_path_factory.mktemp("driver")
    source = SOURCES / "tests" / "fake_libcuda.c"
    done = run([str(c_compiler), "-shared", "-fPIC", "-o", folder / "libcuda.so.1", source])
    assert done.returncode == 0, done.stderr
    return folder


def report(prefix: Path, **variables: str | Path) -> dict[str, Any]:
    done = run([prefix / "bin" / "gpuprobe", "--json"], **variables)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_command_says_what_the_build_is_for(gpu_prefix: Path, cpu_prefix: Path) -> None:
    assert report(gpu_prefix)["build"] == {"cuda": "11.2", "architectures": ARCHITECTURES.split(",")}
    assert report(cpu_prefix)["build"] == {"cuda": None, "architectures": []}


def test_a_machine_without_a_driver_is_not_an_error(gpu_prefix: Path, tmp_path: Path) -> None:
    (tmp_path / "libcuda.so.1").write_bytes(b"")  # found first, and not loadable
    found = report(gpu_prefix, LD_LIBRARY_PATH=tmp_path)
    if found["devices"]:
        lacks("device", "a machine without a GPU")
    assert found["driver"]["status"] in ("no driver", "no device")
    assert run([gpu_prefix / "bin" / "gpuprobe", "--require"], LD_LIBRARY_PATH=tmp_path).returncode == 1


@pytest.mark.parametrize(
    ("device", "driver", "runs", "architecture"),
    [
        ("NVIDIA GeForce RTX 3080|8.6", "12090", "native", "sm_86"),
        ("NVIDIA GeForce RTX 3080|8.6", "11000", "native", "sm_86"),  # minor-version compatibility
        ("NVIDIA GeForce RTX 4090|8.9", "12090", "native", "sm_86"),
        ("NVIDIA H100|9.0", "12090", "ptx", "compute_86"),
        ("NVIDIA H100|9.0", "11010", "no", None),  # this driver does not compile PTX of 11.2
        ("Orin|8.7", "12090", "ptx", "compute_86"),
        ("Tesla K10.G2.8GB|3.0", "11040", "no", None),
        ("Tesla T4|7.5", "10020", "no", None),
    ],
)
def test_each_gpu_runs_the_build_as_it_can(
    gpu_prefix: Path, fake_driver: Path, device: str, driver: str, runs: str, architecture: str | None
) -> None:
    found = report(gpu_prefix, LD_LIBRARY_PATH=fake_driver, FAKE_CUDA_DEVICES=device, FAKE_CUDA_VERSION=driver)
    name, capability = device.split("|")
    (gpu,) = found["devices"]
    assert (gpu["name"], gpu["capability"], gpu["memory"]) == (name, capability, 10 << 30)
    assert (gpu["runs"], gpu["architecture"]) == (runs, architecture)
    assert bool(gpu["reason"]) == (runs != "native")


def test_several_gpus_are_distinguished(gpu_prefix: Path, fake_driver: Path) -> None:
    devices = 'Odd "name" \\ here|7.5;NVIDIA H100|9.0;Old|3.0'
    done = run([gpu_prefix / "bin" / "gpuprobe"], LD_LIBRARY_PATH=fake_driver, FAKE_CUDA_DEVICES=devices)
    _, driver, *gpus = done.stdout.splitlines()
    assert driver.endswith(", runs CUDA up to 12.9")  # its own version is that of this machine, if it has one
    assert gpus == [
        'GPU 0: Odd "name" \\ here, compute capability 7.5, 10.0 GiB, PCI 0000:01:00.0',
        "  runs this build natively (sm_75)",
        "GPU 1: NVIDIA H100, compute capability 9.0, 10.0 GiB, PCI 0000:02:00.0",
        "  runs this build through PTX: the driver compiles compute_86 for it at first start",
        "GPU 2: Old, compute capability 3.0, 10.0 GiB, PCI 0000:03:00.0",
        "  does not run this build: nothing in this build is for compute capability 3.0",
    ]
    found = report(gpu_prefix, LD_LIBRARY_PATH=fake_driver, FAKE_CUDA_DEVICES=devices)
    assert found["devices"][0]["name"] == 'Odd "name" \\ here'


@pytest.mark.parametrize(
    ("variables", "status", "message"),
    [
        ({"FAKE_CUDA_INIT": "100"}, "no device", "the driver has no GPU for this process"),
        ({"FAKE_CUDA_INIT": "999"}, "driver error", "cuInit failed with error 999: unknown error"),
        ({"FAKE_CUDA_DEVICES": ""}, "no device", "the driver has no GPU for this process"),
        (
            {"FAKE_CUDA_DEVICES": "X|7.5", "FAKE_CUDA_BROKEN": "1"},
            "driver error",
            "cuDeviceGetName failed with error 999",
        ),
    ],
)
def test_a_driver_that_fails_is_named(
    gpu_prefix: Path, fake_driver: Path, variables: dict[str, str], status: str, message: str
) -> None:
    found = report(gpu_prefix, LD_LIBRARY_PATH=fake_driver, **variables)
    assert found["driver"]["status"] == status
    assert message in found["driver"]["message"]
    assert found["devices"] == []


def test_the_status_of_require_depends_on_a_gpu_that_runs_the_build(
    gpu_prefix: Path, cpu_prefix: Path, fake_driver: Path
) -> None:
    def exit_code(prefix: Path, devices: str) -> int:
        command: list[str | Path] = [prefix / "bin" / "gpuprobe", "--require"]
        return run(command, LD_LIBRARY_PATH=fake_driver, FAKE_CUDA_DEVICES=devices).returncode

    assert exit_code(gpu_prefix, "Old|3.0") == 1
    assert exit_code(gpu_prefix, "Old|3.0;Tesla T4|7.5") == 0
    assert exit_code(cpu_prefix, "Tesla T4|7.5") == 1


def test_an_unknown_option_is_bad_usage(gpu_prefix: Path) -> None:
    done = run([gpu_prefix / "bin" / "gpuprobe", "--jsn"])
    assert done.returncode == 2
    assert "unknown option '--jsn'" in done.stderr


def test_the_command_runs_from_a_moved_environment(gpu_prefix: Path, tmp_path: Path) -> None:
    shutil.copytree(gpu_prefix, tmp_path / "moved", symlinks=True)
    assert report(tmp_path / "moved")["build"]["cuda"] == "11.2"


def test_a_c_program_compiles_links_and_holds(gpu_prefix: Path, tmp_path: Path, c_compiler: Path) -> None:
    smoke = tmp_path / "smoke"
    lib = gpu_prefix / "lib"
    source = SOURCES / "tests" / "smoke.c"
    command: list[str | Path] = [str(c_compiler), f"-I{gpu_prefix}/include", source, f"-L{lib}", "-lgpuprobe"]
    done = run([*command, f"-Wl,-rpath,{lib}", "-o", smoke])
    assert done.returncode == 0, done.stderr
    assert run([smoke, "11.2", ARCHITECTURES]).returncode == 0
    assert run([smoke, "11.8"]).returncode == 1


def test_the_binding_passes_its_own_tests(gpu_prefix: Path, fake_driver: Path) -> None:
    site_packages = gpu_prefix / "lib" / "python" / "site-packages"
    command: list[str | Path] = [sys.executable, SOURCES / "tests" / "test_gpuprobe.py"]
    for devices in ("", "Tesla T4|7.5;NVIDIA H100|9.0"):
        done = run(
            command,
            PYTHONPATH=site_packages,
            PYTHONDONTWRITEBYTECODE="1",
            LD_LIBRARY_PATH=fake_driver,
            FAKE_CUDA_DEVICES=devices,
            GPUPROBE_EXPECT_CUDA="11.2",
        )
        assert done.returncode == 0, done.stderr


def test_the_binding_without_its_library_says_what_to_install(gpu_prefix: Path, tmp_path: Path) -> None:
    site_packages = gpu_prefix / "lib" / "python" / "site-packages"
    shutil.copytree(site_packages, tmp_path / "site-packages")
    done = run([sys.executable, "-m", "gpuprobe"], PYTHONPATH=tmp_path / "site-packages")
    assert done.returncode == 1
    assert "install libgpuprobe" in done.stderr


def test_every_installed_python_file_is_recorded(gpu_prefix: Path) -> None:
    site_packages = gpu_prefix / "lib" / "python" / "site-packages"
    (info,) = site_packages.glob("gpuprobe-*.dist-info")
    recorded = {line.split(",")[0] for line in (info / "RECORD").read_text().splitlines()}
    on_disk = {path.relative_to(site_packages).as_posix() for path in site_packages.rglob("*") if path.is_file()}
    assert recorded == {name for name in on_disk if "__pycache__" not in name}


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"GPUPROBE_CUDA_VERSION": "11.2"}, "GPUPROBE_ARCHITECTURES is empty"),
        ({"GPUPROBE_CUDA_VERSION": '11.2"; evil'}, "only letters, digits"),
        ({"GPUPROBE_CUDA_VERSION": "11.2", "GPUPROBE_ARCHITECTURES": "sm_75\\"}, "only letters, digits"),
    ],
)
def test_a_build_for_nothing_sensible_is_refused(
    tmp_path: Path, c_compiler: Path, variables: dict[str, str], message: str
) -> None:
    done = build("library", tmp_path / "out", c_compiler, **variables)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "out").exists()
