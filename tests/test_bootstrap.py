"""The environment of a first run, made with the real venv and pip for a small project that needs no network."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import command
from tests.support.paths import ROOT

PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "small"
version = "1"
"""

BACKEND = """
import zipfile
from pathlib import Path

def get_requires_for_build_editable(config_settings=None):
    return []

def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    with zipfile.ZipFile(Path(wheel_directory, "small-1-py3-none-any.whl"), "w") as wheel:
        wheel.writestr("small.py", "print('small ran')")
        wheel.writestr("small-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: small\\nVersion: 1\\n")
        wheel.writestr("small-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("small-1.dist-info/RECORD", "")
    return "small-1-py3-none-any.whl"
"""


#: Instead of Python's venv: an environment without pip, made in no time.
VENV = """
import sys
from pathlib import Path
folder, base = Path(sys.argv[1]), Path(sys._base_executable)
(folder / "bin").mkdir(parents=True)
(folder / "bin" / "python").symlink_to(base)
(folder / "pyvenv.cfg").write_text(f"home = {base.parent}\\n")
"""
#: Instead of pip: what it does for the small project, or how it fails.
PIP = """
import sys, sysconfig
from pathlib import Path
assert sys.argv[1] == "install" and Path(sys.argv[-1], "pyproject.toml").is_file(), sys.argv
if Path(sys.argv[-1], "fail").exists():
    sys.exit("no backend today")
Path(sysconfig.get_path("purelib")).mkdir(parents=True)
Path(sysconfig.get_path("purelib"), "small.py").write_text("print('small ran')")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "feedstock_tools").mkdir()
    shutil.copy(ROOT / "feedstock_tools/bootstrap.py", tmp_path / "feedstock_tools")
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    (tmp_path / "backend.py").write_text(BACKEND)
    return tmp_path


@pytest.fixture
def quick(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project, with stand-ins for venv and pip, of which the first test has shown what they do (POSIX)."""
    if os.name == "posix":
        programs = project / "programs"
        programs.mkdir()
        (programs / "venv.py").write_text(VENV)
        (programs / "pip.py").write_text(PIP)
        monkeypatch.setenv("PYTHONPATH", str(programs))
    return project


def start(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, str(project / "feedstock_tools/bootstrap.py"), *arguments]
    return command.run(program, variables=os.environ | {"PIP_NO_INDEX": "1"})


def test_a_first_run_makes_the_environment_and_says_so_and_a_second_uses_it(project: Path) -> None:
    first = start(project, "build", "python", "-m", "small")
    assert (first.returncode, first.stdout) == (0, "small ran\n"), first.stderr
    assert "First run: making an environment in" in first.stderr
    second = start(project, "build", "python", "-m", "small")
    assert (second.returncode, second.stdout, second.stderr) == (0, "small ran\n", "")


def test_a_changed_declaration_makes_the_environment_anew(quick: Path) -> None:
    assert start(quick, "build", "python", "-m", "small").stdout == "small ran\n"
    (quick / "pyproject.toml").write_text(PYPROJECT + "# changed\n")
    assert "First run" in start(quick, "build", "python", "-m", "small").stderr


def test_what_pip_cannot_install_is_explained_and_leaves_no_environment(quick: Path) -> None:
    (quick / "backend.py").write_text("raise RuntimeError('no backend today')")
    (quick / "fail").touch()
    run = start(quick, "build", "python", "-m", "small")
    assert run.returncode == 1
    assert "no backend today" in run.stderr
    assert "The whole log is in" in run.stderr
    assert not any(path.is_dir() for path in (quick / ".environments").iterdir())


def test_without_a_program_it_says_how_it_is_used(project: Path) -> None:
    run = start(project, "build")
    assert run.returncode == 2
    assert "usage:" in run.stderr
