"""The bill of materials lists what an installation brings, from the metadata of the packages."""

from __future__ import annotations

import json
from importlib.metadata import PathDistribution
from pathlib import Path
from typing import Any

import pytest

from feedstock_tools.errors import WorkError
from maintenance.release.sbom import bill_of_materials, installed_in

EPOCH = 1_700_000_000


def put(folder: Path, name: str, version: str, *lines: str) -> None:
    """Install a package that is nothing but metadata."""
    place = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    place.mkdir(parents=True)
    text = "\n".join(["Metadata-Version: 2.4", f"Name: {name}", f"Version: {version}", *lines, ""])
    (place / "METADATA").write_text(text)


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    put(
        tmp_path,
        "feedstock-tools",
        "0.2.0",
        "License-Expression: BSD-3-Clause",
        "Requires-Dist: PyYAML>=6",
        'Requires-Dist: boto3>=1; extra == "s3"',
        'Requires-Dist: pywin32; sys_platform == "win32" and python_version < "3"',
        'Requires-Dist: pytest; extra == "test"',
    )
    put(tmp_path, "PyYAML", "6.0.3", "Classifier: License :: OSI Approved :: MIT License")
    put(tmp_path, "boto3", "1.44.5", "License: Apache-2.0", "Requires-Dist: six[fast]")
    put(tmp_path, "six", "1.17.0", 'Requires-Dist: zest; extra == "fast"')
    put(tmp_path, "zest", "1.0", "Requires-Dist: six")
    put(tmp_path, "stranger", "1.0")
    return tmp_path


def materials(environment: Path) -> dict[str, Any]:
    return bill_of_materials(installed_in(environment), EPOCH)


def test_it_has_what_the_program_and_its_extras_require_and_nothing_else(environment: Path) -> None:
    found = materials(environment)

    assert {each["name"]: each["scope"] for each in found["components"]} == {
        "PyYAML": "required",
        "boto3": "optional",
        "six": "optional",
        "zest": "optional",
    }
    assert found["metadata"]["component"]["purl"] == "pkg:pypi/feedstock-tools@0.2.0"
    links = {each["ref"]: each["dependsOn"] for each in found["dependencies"]}
    assert links["pkg:pypi/feedstock-tools@0.2.0"] == ["pkg:pypi/boto3@1.44.5", "pkg:pypi/pyyaml@6.0.3"]
    assert links["pkg:pypi/six@1.17.0"] == ["pkg:pypi/zest@1.0"]
    assert set(links) == {each["bom-ref"] for each in (found["metadata"]["component"], *found["components"])}


def test_licenses_are_expressions_where_the_metadata_have_them(environment: Path) -> None:
    found = materials(environment)
    licenses = {each["name"]: each.get("licenses") for each in found["components"]}
    assert found["metadata"]["component"]["licenses"] == [{"expression": "BSD-3-Clause"}]
    assert licenses["PyYAML"] == [{"license": {"name": "MIT License"}}]
    assert licenses["boto3"] == [{"license": {"name": "Apache-2.0"}}]
    assert licenses["six"] is None


def test_the_same_environment_gives_the_same_bytes_at_the_time_of_the_commit(environment: Path) -> None:
    first = materials(environment)
    assert json.dumps(materials(environment)) == json.dumps(first)
    assert first["metadata"]["timestamp"] == "2023-11-14T22:13:20Z"
    put(environment, "pluggy", "1.0")
    again = installed_in(environment)
    again["zest"] = PathDistribution(environment / "pluggy-1.0.dist-info")
    assert bill_of_materials(again, EPOCH)["serialNumber"] != first["serialNumber"]


def test_a_requirement_that_is_not_installed_is_an_error(tmp_path: Path) -> None:
    put(tmp_path, "feedstock-tools", "0.2.0", "Requires-Dist: click")
    with pytest.raises(WorkError, match="click is required, but not installed"):
        materials(tmp_path)
