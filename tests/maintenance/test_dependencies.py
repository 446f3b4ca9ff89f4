"""Every dependency of users has both bounds, and the lock and environment.yml agree with them."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
import yaml

from feedstock_tools.versions import parse_version
from maintenance.bounds import TOOLS, bounds_of, lowest
from tests.support.paths import ROOT

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
BOUNDS = bounds_of(PROJECT)
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
#: Version of each locked package; a package may have several, for different Pythons and systems.
LOCKED = re.findall(r"^([a-z0-9-]+)==(\S+)", LOCK, re.MULTILINE)
NOT_LOCKED = {"mkdocs-material"}


def test_lowest_takes_the_lower_bound_of_each_dependency() -> None:
    assert list(lowest(PROJECT)) == [*(f"{name}=={low}" for name, (low, _) in BOUNDS.items()), *TOOLS]
    assert {"click", "boto3", "distributed", "mkdocs-material"} <= BOUNDS.keys()


@pytest.mark.parametrize("requirement", ["click", "click >=8.1", "click <9", "click ~=8.1", "click >=8.1,!=8.2,<9"])
def test_a_dependency_without_both_bounds_is_refused(requirement: str) -> None:
    project = {
        "dependencies": [requirement],
        "optional-dependencies": {key: [] for key in ("s3", "host", "fleet", "site")},
    }
    with pytest.raises(ValueError, match=r"must have the form 'name >=1.0,<2'"):
        bounds_of(project)


@pytest.mark.parametrize("name", sorted(set(BOUNDS) - NOT_LOCKED))
def test_the_lock_has_each_dependency_within_its_bounds(name: str) -> None:
    low, high = (parse_version(each) for each in BOUNDS[name])
    versions = [parse_version(version) for found, version in LOCKED if found == name.replace(".", "-")]
    assert versions
    for version in versions:
        assert low <= version
        assert version < high or low == high


def test_the_lock_has_hashes_and_says_nothing_of_where_the_files_lie() -> None:
    entries = re.split(r"^(?=[a-z0-9-]+==)", LOCK, flags=re.MULTILINE)[1:]
    assert len(entries) == len(LOCKED) > 40
    assert [entry for entry in entries if not re.search(r"--hash=sha256:[0-9a-f]{64}", entry)] == []
    assert "://" not in LOCK
    assert "index" not in LOCK.lower()


def test_the_page_names_each_dependency_with_its_lower_bound() -> None:
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    for name, (low, _) in BOUNDS.items():
        assert re.search(rf"`{re.escape(name)}`(?: \|)? {re.escape(low)}\b", page), name


def test_environment_yml_has_the_same_bounds() -> None:
    listed = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
    of_conda = {each for each in listed if isinstance(each, str)}
    assert {each.replace("==", "") for each in PROJECT["dependencies"]} <= of_conda
