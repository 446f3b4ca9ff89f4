"""Files for the hosting service: workflows, issue forms and the pull request template."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.paths import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted(set((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")) - {ROOT / ".github/ISSUE_TEMPLATE/config.yml"})


def read(name: str) -> dict[str, Any]:
    found = yaml.safe_load((ROOT / ".github" / name).read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def jobs() -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (path.name, name, job) for path in WORKFLOWS for name, job in read(f"workflows/{path.name}")["jobs"].items()
    ]


def steps() -> list[dict[str, Any]]:
    return [step for _, _, job in jobs() for step in job.get("steps", ())]


def test_the_tests_run_on_every_system_and_python_that_the_package_names() -> None:
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["classifiers"]
    pythons = {found[1] for each in classifiers if (found := re.search(r"Python :: (3\.\d+)$", each))}
    systems = {each.split(" :: ")[1] for each in classifiers if each.startswith("Operating System")}
    runners = {"MacOS": "macos-latest", "Microsoft": "windows-latest", "POSIX": "ubuntu-latest"}

    matrix = read("workflows/tests.yml")["jobs"]["tests"]["strategy"]["matrix"]

    assert set(matrix["os"]) == {runners[each] for each in systems}
    assert set(matrix["python"]) == pythons


def test_a_release_is_uploaded_only_after_the_tests_passed() -> None:
    release = read("workflows/release.yml")["jobs"]
    assert release["tests"]["uses"] == "./.github/workflows/tests.yml"
    order = ["tests", "archives", "installed", "provenance", "upload", "page"]
    assert [release[job].get("needs") for job in order] == [None, *order[:-1]]


def test_jobs_may_read_alone_but_for_those_that_sign_and_publish() -> None:
    for path in WORKFLOWS:
        assert read(f"workflows/{path.name}")["permissions"] == {"contents": "read"}
    wider = {(file, name): job["permissions"] for file, name, job in jobs() if "permissions" in job}
    assert wider == {
        ("release.yml", "provenance"): {"id-token": "write", "attestations": "write"},
        ("release.yml", "upload"): {"id-token": "write"},
        ("release.yml", "page"): {"contents": "write"},
    }


def test_checkouts_keep_no_credentials_and_scripts_take_values_from_the_environment() -> None:
    checkouts = [step for step in steps() if step.get("uses", "").startswith("actions/checkout")]
    assert checkouts
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)
    assert [step["run"] for step in steps() if "${{" in step.get("run", "")] == []


def test_archives_and_what_goes_with_them_are_signed_before_they_are_uploaded() -> None:
    release = read("workflows/release.yml")["jobs"]
    used = {step["uses"].partition("@")[0]: step["with"] for step in release["provenance"]["steps"]}
    assert used["actions/attest-build-provenance"]["subject-path"] == "dist/*/feedstock_tools-*"
    assert used["actions/attest-sbom"]["sbom-path"] == "dist/sbom.cdx.json"
    assert any("--sbom dist/sbom.cdx.json" in step.get("run", "") for step in release["archives"]["steps"])
    publish = release["upload"]["steps"][-1]
    assert publish["with"]["attestations"] is True


def test_the_wheel_is_installed_on_every_system_before_it_is_uploaded() -> None:
    matrix = read("workflows/release.yml")["jobs"]["installed"]["strategy"]["matrix"]
    assert matrix["os"] == read("workflows/tests.yml")["jobs"]["tests"]["strategy"]["matrix"]["os"]


def test_a_linter_finds_nothing_unsafe_in_our_workflows() -> None:
    zizmor = Path(sys.executable).with_name("zizmor")
    words = ["--offline", "--config", str(ROOT / ".github/zizmor.yml"), str(ROOT / ".github"), str(ROOT / "action.yml")]
    run = subprocess.run([zizmor, *words], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_an_issue_form_has_what_the_service_asks_for(path: Path) -> None:
    form = read(f"ISSUE_TEMPLATE/{path.name}")
    assert set(form) == {"name", "description", "labels", "body"}
    fields = [each for each in form["body"] if each["type"] != "markdown"]
    assert len({each["id"] for each in fields}) == len(fields) > 0
    assert {each["type"] for each in form["body"]} <= {"markdown", "textarea", "input", "dropdown", "checkboxes"}
    assert all(each["attributes"]["label"] for each in fields)


def test_files_that_the_templates_name_exist() -> None:
    for path in (ROOT / ".github").rglob("*.*"):
        for name in re.findall(r"\b(?:docs/)?[\w-]+\.md\b", path.read_text(encoding="utf-8")):
            assert (ROOT / name).exists() or name == "notes.md", f"{path.name} names {name}"
