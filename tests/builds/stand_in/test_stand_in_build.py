"""py-rattler-build on the stand-in channel: a library and a Python package, built and tested."""

from __future__ import annotations

import subprocess
import sys

import pytest

from feedstock_tools.builds.stand_in.channel import StandInChannel
from feedstock_tools.channel.metadata import PackageMetadata
from feedstock_tools.channel.packages.reading import read_package
from feedstock_tools.platforms import Platform
from tests.support.needs import needs

HERE = Platform.here()
RUNNING = f"{sys.version_info[0]}.{sys.version_info[1]}"
RECIPE = """
schema_version: 1
recipe: {name: greeting-split, version: "1.0"}
source: {path: source}
outputs:
  - package: {name: libgreeting, version: "1.0"}
    build:
      script:
        - ${CC} ${CFLAGS} -shared greet.c ${LDFLAGS} -o libgreeting.so
        - mkdir -p ${PREFIX}/lib
        - cp libgreeting.so ${PREFIX}/lib/
    requirements:
      build: ["${{ compiler('c') }}", "${{ stdlib('c') }}"]
    tests:
      - script:
          - test -f ${PREFIX}/lib/libgreeting.so
  - package: {name: greeting, version: "1.0"}
    build:
      script:
        - mkdir -p ${SP_DIR}/greeting
        - cp greeting.py ${SP_DIR}/greeting/__init__.py
    requirements:
      host: [python, "${{ pin_subpackage('libgreeting', exact=True) }}"]
      run: [python, "${{ pin_subpackage('libgreeting', exact=True) }}"]
    tests:
      - python: {imports: [greeting, ssl, sqlite3], pip_check: false}
"""
BINDING = """
import ctypes, sys

if ctypes.CDLL(sys.prefix + "/lib/libgreeting.so").greeting() != 42:
    raise ImportError("this is not our library")
"""
BUILD = """
import os, sys
from pathlib import Path
from rattler_build import PlatformConfig, RenderConfig, Stage0Recipe, ToolConfiguration, VariantConfig

folder, url, platform, python = sys.argv[1:]
values = {"c_compiler": ["gcc"], "c_compiler_version": ["14"], "c_stdlib": ["sysroot"], "c_stdlib_version": ["2.17"],
          "python": [python + ".*"]}
config = RenderConfig(platform=PlatformConfig(target_platform=platform))
for variant in Stage0Recipe.from_file(folder + "/recipe.yaml").render(VariantConfig(values), config):
    result = variant.run_build(
        ToolConfiguration(test_strategy="native"), output_dir=folder + "/output", channels=[url], progress_callback=None
    )
    print(result.packages[0])
"""

pytestmark = needs("system", HERE.os == "linux", "Python and compilers are real on Linux only")


@pytest.fixture(scope="module")
def built(channel: StandInChannel, tmp_path_factory: pytest.TempPathFactory) -> dict[str, PackageMetadata]:
    folder = tmp_path_factory.mktemp("greeting")
    (folder / "recipe.yaml").write_text(RECIPE)
    (folder / "source").mkdir()
    (folder / "source/greet.c").write_text("int greeting(void) { return 42; }\n")
    (folder / "source/greeting.py").write_text(BINDING)
    command = [sys.executable, "-c", BUILD, str(folder), channel.url, HERE.subdir, RUNNING]
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "RATTLER_CACHE_DIR": str(channel.folder.parents[1] / "cache"),
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    packages = [read_package(path) for path in (folder / "output").glob("*/*greeting-*.conda")]
    return {package.name: package for package in packages}


def test_the_packages_are_built_and_tested(built: dict[str, PackageMetadata]) -> None:
    assert sorted(built) == ["greeting", "libgreeting"]


def test_they_depend_on_what_compiler_and_sysroot_export(built: dict[str, PackageMetadata]) -> None:
    assert set(built["libgreeting"].depends) == {"libgcc >=14", "__glibc >=2.17,<3.0.a0"}


def test_they_depend_on_what_python_exports(built: dict[str, PackageMetadata]) -> None:
    assert f"python_abi {RUNNING}.* *_cp{RUNNING.replace('.', '')}" in built["greeting"].depends
    assert f"libgreeting ==1.0 {built['libgreeting'].build}" in built["greeting"].depends
