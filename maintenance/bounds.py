"""Run the tests with the oldest or the newest dependencies that pyproject.toml allows.

    python -m maintenance.bounds lowest [PYTEST ARGUMENT …]
    python -m maintenance.bounds newest [PYTEST ARGUMENT …]

makes the environment `.environments/lowest-3.11` (or `newest-3.11`) anew, prints the versions in it, and runs pytest
there. `lowest` takes the lower bound of each dependency of the program and of the extras for its users; `newest` takes
the newest version below the upper bound. What only tests need is the newest that goes with these.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.__main__ import arguments, clear_environment

ROOT = Path(__file__).resolve().parents[1]
#: The extras that a user installs; the others are for work on the program.
USER_EXTRAS = ("s3", "host", "fleet", "site")
#: Tools of the tests whose newest versions fail with the oldest dependencies, though they allow them.
TOOLS = ("check-jsonschema<0.38",)
_OWN = "feedstock-tools["


def bounds_of(project: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """The oldest version of each dependency of users, and the first one that is too new; of a pin, its version twice.

    Args:
        project: the table `project` of pyproject.toml.

    Raises:
        ValueError: a dependency lacks one of its bounds.

    >>> _bounds("click >=8.1,<9"), _bounds("demo ==1.0; sys_platform != 'win32'")
    (('click', '8.1', '9'), ('demo', '1.0', '1.0'))
    """
    extras = project["optional-dependencies"]
    listed = [*project["dependencies"], *(line for extra in USER_EXTRAS for line in extras[extra])]
    others = (line for line in listed if not line.startswith(_OWN))
    return {name: (low, high) for name, low, high in map(_bounds, others)}


def _bounds(requirement: str) -> tuple[str, str, str]:
    parsed = Requirement(requirement)
    parts = {each.operator: each.version for each in parsed.specifier}
    if set(parts) not in ({"=="}, {">=", "<"}):
        raise ValueError(f"'{requirement}' must have the form 'name >=1.0,<2' or 'name ==1.0'")
    return parsed.name, parts.get(">=") or parts["=="], parts.get("<") or parts["=="]


def lowest(project: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a constraints file that takes the oldest version of each dependency, and tools that go with it."""
    for name, (low, _) in bounds_of(project).items():
        yield f"{name}=={low}"
    yield from TOOLS


def _make(folder: Path, constraints: Sequence[str]) -> None:
    """Make the environment, with pip's output on this terminal."""
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch, "constraints.txt")
        file.write_text("".join(f"{line}\n" for line in constraints), encoding="utf-8")
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--constraint", str(file), "--editable", f"{ROOT}[test]"], check=True)


def _versions(folder: Path) -> Mapping[str, str]:
    pip = [str(folder / "bin" / "python"), "-m", "pip", "list", "--disable-pip-version-check", "--format=json"]
    listed = json.loads(subprocess.run(pip, check=True, capture_output=True, text=True).stdout)
    return {canonicalize_name(each["name"]): each["version"] for each in listed}


def main(bound: str, of_pytest: list[str]) -> int:
    """Run the tests with one of the bounds; the exit status is pytest's."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    folder = ROOT / ".environments" / "{}-{}.{}".format(bound, *sys.version_info[:2])
    _make(folder, tuple(lowest(project)) if bound == "lowest" else ())
    versions = _versions(folder)
    for name in bounds_of(project):
        sys.stdout.write(f"{name} {versions[canonicalize_name(name)]}\n")
    sys.stdout.flush()
    os.chdir(ROOT)
    clear_environment()
    python = str(folder / "bin" / "python")
    return subprocess.run([python, "-m", "pytest", *arguments(of_pytest)], check=False).returncode


if __name__ == "__main__":
    if sys.argv[1:2] not in (["lowest"], ["newest"]):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
