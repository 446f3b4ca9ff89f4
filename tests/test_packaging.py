"""What an installation brings along."""

import subprocess
import tomllib

import pytest

from tests.support.paths import ROOT


def test_an_installation_has_every_file_of_the_examples() -> None:
    listing = subprocess.run(["git", "ls-files", "examples"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode:
        pytest.skip("this is no git checkout, which says what the examples hold")
    included = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    parts = tuple(included["force-include"])
    assert listing.stdout
    assert [path for path in listing.stdout.splitlines() if not path.startswith(parts)] == []
