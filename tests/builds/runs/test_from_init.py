"""From a project to packages: init, generate, rerender, build and test, as they are, on the stand-in channel.

The projects are of the three kinds that most GPU feedstocks have: CMake with CUDA, setuptools with an extension that
uses numpy, scikit-build-core. docs/init.md compares what comes out with accepted recipes.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest

from feedstock_tools.builds.stand_in.toolkits import found_toolkits, toolkits_folder
from tests.support import command
from tests.support.compilers import lend_tools
from tests.support.feedstocks import HERE
from tests.support.needs import needs
from tests.support.paths import ROOT

PROJECTS = ROOT / "tests" / "generate" / "projects"
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
#: The folder of the user who runs the tests, read before a test's own cache takes its place.
TOOLKITS = toolkits_folder(os.environ)
HEADERS = Path(sysconfig.get_path("include"), "Python.h").is_file()
HAS_NVCC = shutil.which("g++") and any(toolkit.version == "13.0" for toolkit in found_toolkits(TOOLKITS))

pytestmark = [
    pytest.mark.usefixtures("unmeasured"),
    pytest.mark.slow,
    needs("system", HERE.subdir == "linux-64", "the first spec of init builds for linux-64"),
]


@pytest.mark.parametrize(
    ("project", "row", "built"),
    [
        pytest.param(
            "smooth",
            f"linux_64_cpu_py{PYTHON}",
            "smooth-0.3.1-py",
            id="setuptools",
            marks=needs("system", shutil.which("cc"), "a C compiler: zig refuses linker flags of Debian's Python"),
        ),
        pytest.param(
            "wave",
            f"linux_64_cpu_py{PYTHON}",
            "wave-solver-2.0.0-py",
            id="scikit-build-core",
            marks=needs("system", HEADERS, "the headers of Python, which CMake asks for (Debian: python3-dev)"),
        ),
        pytest.param(
            "axpy",
            "linux_64_cuda13.0",
            "axpy-1.2.0-cuda130h",
            id="CMake with CUDA",
            marks=needs("fetched", HAS_NVCC, "a CUDA compiler of 13.0 (cuda fetch 13.0), and a g++"),
        ),
    ],
)
def test_the_spec_of_init_becomes_a_package(project: str, row: str, built: str, tmp_path: Path) -> None:
    shutil.copytree(PROJECTS / project, tmp_path / project)
    cache = tmp_path / "cache"
    lend_tools(cache)
    if project == "axpy":
        (cache / "feedstock-tools" / "cuda-toolkits").symlink_to(TOOLKITS)
    environment = command.environment(XDG_CACHE_HOME=str(cache))
    for words in (
        ("init", project, "--self-contained", "--maintainer", "someone", "-o", "feedstock"),
        ("generate", "feedstock"),
        ("rerender", "feedstock", "--smithy", "none"),
        ("build", "--feedstock", "feedstock", row, "--channel", "stand-in"),
        ("test", "--feedstock", "feedstock", row),
    ):
        run = command.run(command.tool(*words), tmp_path, environment)
        assert run.returncode == 0, run.stdout[-4000:] + run.stderr

    (package,) = (tmp_path / "feedstock" / "build_artifacts").glob("built-*/linux-64/*.conda")
    assert package.name.startswith(built)
