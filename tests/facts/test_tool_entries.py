"""The entries of the stand-in channel's tools are what the wheels say of themselves."""

from pathlib import Path

import pytest
import yaml

from feedstock_tools.facts.packages import read_tools
from maintenance.facts.tools import entries, read_wheel
from tests.support.wheels import write_wheel


def parts(*paths: Path) -> tuple[dict[str, str], list[dict[str, object]], list[dict[str, object]]]:
    """What the entries read as."""
    sources, _, rest = "\n".join(entries(map(read_wheel, paths), "2026-11-22")).partition("\n\n")
    packages, _, wheels = rest.rpartition("\n\n")
    return yaml.safe_load(sources), yaml.safe_load(packages), yaml.safe_load(wheels)


def test_a_wheel_of_pure_python_becomes_one_package_for_all(tmp_path: Path) -> None:
    metadata = (
        "Requires-Python: >=3.9",
        "Classifier: License :: OSI Approved :: MIT License",
        "Requires-Dist: packaging<30,>=23.2",
        'Requires-Dist: tomli; python_version < "3.11"',
        'Requires-Dist: sphinx; extra == "docs"',
    )
    path = write_wheel(tmp_path, "ruamel.yaml", "0.19.1", {}, metadata)

    sources, (package,), (made,) = parts(path)

    assert list(sources) == ["ruamel.yaml"]
    assert package["noarch"] == "python"
    assert package["license"] == "MIT"
    assert package["depends"] == ["python >=3.9", "packaging >=23.2,<30"]
    assert made["project"] == "ruamel-yaml"
    assert made["needs"] == ["packaging"]


@pytest.mark.parametrize(
    ("tags", "pythons"),
    [("cp312-cp312", ["3.12"]), ("cp310-abi3", ["3.11", "3.12", "3.13", "3.14"])],
)
def test_a_wheel_with_compiled_code_becomes_a_package_for_each_python(
    tmp_path: Path, tags: str, pythons: list[str]
) -> None:
    path = write_wheel(tmp_path, "demo", "1.0", {}, ("License-Expression: MIT",), f"{tags}-manylinux_2_28_x86_64")

    _, (package,), (made,) = parts(path)

    assert package["subdirs"] == ["linux-64"]
    rows, files, depends = package["rows"], made["files"], package["depends"]
    assert isinstance(rows, list) and isinstance(files, list) and isinstance(depends, list)
    assert [row["python"] for row in rows] == pythons
    assert [(file["python"], file["file"]) for file in files] == [(python, path.name) for python in pythons]
    assert depends[-1] == "__glibc >=2.28,<3.0.a0"


def test_every_tool_of_compiled_code_has_a_wheel_for_both_platforms_and_each_of_its_pythons() -> None:
    tools = read_tools()
    for package in tools.packages:
        if "py3" in package.build:
            named = [wheel for wheel in tools.wheels_of(package.name) if wheel.version == package.version]
            fitting = [each for each in named if each.python and f"py{each.python.replace('.', '')}h" in package.build]
            assert package.subdir in {each.subdir for each in fitting}, package.distribution
