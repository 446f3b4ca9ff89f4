"""Real rerenders: the job lists of the commit follow from the configurations of the commit, whatever they were before.

Needs the list of cases (`../shared/corpus/cases.jsonl`, or of the folder that FEEDSTOCK_CORPUS names) and the
snapshots of the feedstocks (`../.mirror`, or the folder that FEEDSTOCK_MIRROR names); neither is in the repository.
"""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import yaml

from feedstock_tools.rerender.configuration import Configuration
from feedstock_tools.rerender.smithy.job_lists import (
    CI_FILES,
    GITHUB_FILE,
    azure_entries,
    github_entries,
    update_ci_files,
)
from tests.support.needs import needs
from tests.support.paths import CORPUS, MIRROR, clone_of

CASES = CORPUS / "cases.jsonl"
SINCE = "2025-10"


def cases() -> list[dict[str, Any]]:
    if not CASES.is_file():
        return []
    listed = [json.loads(line) for line in CASES.read_text().splitlines()]
    return [case for case in listed if case["date"] >= SINCE and snapshot(case).is_dir()]


def snapshot(case: dict[str, Any]) -> Path:
    return clone_of(case["feedstock"])


def files(case: dict[str, Any], commit: str) -> dict[str, str]:
    """The CI files, configurations and conda-forge.yml of a commit, by path."""
    git = ["git", "--git-dir", str(snapshot(case))]
    wanted = ("conda-forge.yml", ".ci_support", ".azure-pipelines", ".github")
    top = subprocess.run([*git, "ls-tree", "--name-only", commit], check=True, capture_output=True, text=True)
    paths = [name for name in top.stdout.splitlines() if name in wanted]
    archive = subprocess.run([*git, "archive", commit, *paths], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        found = ((member, tar.extractfile(member)) for member in tar.getmembers())
        return {member.name: stream.read().decode() for member, stream in found if stream}


def configurations(texts: dict[str, str], folder: Path) -> list[Configuration]:
    found = []
    for name, text in texts.items():
        path = Path(name)
        if path.parent == Path(".ci_support") and path.suffix == ".yaml":
            (folder / path.name).write_text(text)
            found.append(Configuration.from_file(folder / path.name))
    return found


def jobs(name: str, text: str | None) -> dict[str, str] | None:
    if text is None:
        return None
    return github_entries(text) if name == GITHUB_FILE else azure_entries(text, name.rpartition("-")[2][:-4])


def differences(case: dict[str, Any], folder: Path) -> list[object]:
    """What the job lists of a commit and those that we write for its configurations do not have in common."""
    after, before = files(case, case["commit"]), files(case, case["commit"] + "^1")
    forge = next(yaml.safe_load_all(after.get("conda-forge.yml", "")), None) or {}
    written = configurations(after, folder)

    now = update_ci_files(after, written, forge, case["conda_smithy"])
    found: list[object] = [part for part in (now.texts, now.stale, now.notes) if part]

    then = update_ci_files(before, written, forge, case["conda_smithy"])
    # The rerender added or removed this file as a whole, which is conda-smithy's work.
    lasting = [name for name in CI_FILES if jobs(name, before.get(name)) and jobs(name, after.get(name))]
    ours = {name: jobs(name, then.texts.get(name, before[name])) for name in lasting}
    return found + [(name, found) for name, found in ours.items() if found != jobs(name, after[name])]


# One test for all, so that the number of tests does not hang on what has been fetched.
pytestmark = needs("fetched", cases(), f"cases in {CASES} whose feedstocks are in {MIRROR}")


def test_job_lists_are_those_of_the_commit(tmp_path: Path) -> None:
    for case in cases():
        folder = tmp_path / str(case["id"])
        folder.mkdir()
        problems = differences(case, folder)
        assert problems == [], case["id"]
