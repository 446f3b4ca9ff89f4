"""A release checks first and changes the checkout last; its archives hold what git tracks."""

import re
import shutil
import subprocess
import tomllib
import zipfile
from datetime import date
from pathlib import Path

import pytest

import feedstock_tools
from feedstock_tools.errors import FeedstockError, InputError, WorkError
from feedstock_tools.generate.generating import compare
from feedstock_tools.generate.spec.reading import read_spec
from feedstock_tools.generate.texts.rendering import render
from maintenance.release import contents, releasing
from tests.support.archives import make_archives, own_archives
from tests.support.paths import ROOT
from tests.support.tracked import tracked_files

CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A door.\n"


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A checkout with a version, a changelog and a feedstock of its own, but nothing to build."""
    folder = tmp_path / "repository"
    (folder / "feedstock_tools").mkdir(parents=True)
    (folder / "feedstock_tools" / "__init__.py").write_text('__version__ = "0.1.0"\n')
    (folder / "CHANGELOG.md").write_text(CHANGELOG)
    shutil.copytree(ROOT / releasing.OWN_FEEDSTOCK, folder / releasing.OWN_FEEDSTOCK)
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "config", "user.name", "A maintainer")
    git(folder, "config", "user.email", "maintainer@example.org")
    commit(folder)
    return folder


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--no-verify", "--message", "A step")


def test_the_version_is_in_one_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["hatch"]["version"] == {"path": "feedstock_tools/__init__.py"}
    text = (ROOT / "feedstock_tools" / "__init__.py").read_text(encoding="utf-8")
    assert re.findall(r'^__version__ = "(\d+\.\d+\.\d+)"$', text, re.MULTILINE) == [feedstock_tools.__version__]


@pytest.mark.parametrize("version", ["0.1.0", "0.1.1", "1.0.0"])
def test_a_clean_checkout_can_release_its_own_version_or_a_later_one(repository: Path, version: str) -> None:
    releasing.check_ready(repository, version)


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("0.2", "'0.2' is not a version"),
        ("v0.2.0", "'v0.2.0' is not a version"),
        ("0.0.9", "version 0.0.9 is not later than 0.1.0"),
    ],
)
def test_a_version_that_does_not_fit_is_refused(repository: Path, version: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        releasing.check_ready(repository, version)


def test_a_version_that_has_a_tag_is_refused_and_so_is_an_older_one(repository: Path) -> None:
    git(repository, "tag", "v0.10.0")
    for version in ("0.10.0", "0.9.0"):
        with pytest.raises(InputError, match=f"version {version} is not later than 0.10.0"):
            releasing.check_ready(repository, version)
    releasing.check_ready(repository, "0.11.0")


def test_a_checkout_with_untracked_files_is_refused(repository: Path) -> None:
    (repository / "notes.txt").write_text("to do")
    with pytest.raises(InputError, match=r"the checkout is not clean:\n  \?\? notes.txt"):
        releasing.check_ready(repository, "0.2.0")


def test_a_checkout_on_no_branch_is_refused(repository: Path) -> None:
    git(repository, "checkout", "--quiet", "--detach")
    with pytest.raises(InputError, match="HEAD is on no branch"):
        releasing.check_ready(repository, "0.2.0")


def test_a_changelog_without_unreleased_entries_is_refused(repository: Path) -> None:
    (repository / "CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n")
    commit(repository)
    with pytest.raises(InputError, match=r"the section \[Unreleased\] has no entry"):
        releasing.check_ready(repository, "0.2.0")


def test_a_release_that_cannot_be_built_leaves_the_checkout_as_it_was(repository: Path, tmp_path: Path) -> None:
    before = git(repository, "rev-parse", "HEAD")

    with pytest.raises(WorkError, match=r"this failed: .* -m build"):
        releasing.release(repository, "0.2.0", date(2026, 11, 22), tmp_path / "dist", dry_run=False)

    assert git(repository, "rev-parse", "HEAD") == before
    assert git(repository, "status", "--porcelain") == ""
    assert git(repository, "tag") == ""
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert not (tmp_path / "dist").exists()


def test_a_version_is_written_into_the_code_and_the_own_feedstock(repository: Path) -> None:
    releasing.write_version(repository, "0.2.0")

    changed = git(repository, "diff", "--unified=0", "--no-color").splitlines()
    added = {line for line in changed if line.startswith("+") and not line.startswith("+++")}
    assert {'+__version__ = "0.2.0"', "+version: 0.2.0", '+  version: "0.2.0"'} <= added
    feedstock = repository / releasing.OWN_FEEDSTOCK
    assert {change.kind for change in compare(feedstock, render(read_spec(feedstock)))} == {"same"}


def test_a_rebuild_needs_the_tag(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no tag v0.2.0"):
        releasing.rebuild(repository, "0.2.0", tmp_path)


@pytest.fixture(scope="module")
def tracked() -> list[str]:
    return [str(path) for path in tracked_files()]


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both archives."""
    return own_archives(tmp_path_factory)


def test_the_archives_of_this_checkout_hold_what_git_tracks(tracked: list[str], archives: Path) -> None:
    made = {path.suffix: path for path in archives.iterdir()}
    untracked = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()  # files of work in progress, which a release refuses
    there = [name for name in (*tracked, *untracked) if (ROOT / name).exists()]
    contents.check_wheel(made[".whl"], there, feedstock_tools.__version__)
    contents.check_sdist(made[".gz"], there, feedstock_tools.__version__)


def test_two_builds_of_the_same_files_are_the_same_bytes(archives: Path, tmp_path: Path) -> None:
    make_archives(tmp_path)
    first, second = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in (archives, tmp_path))
    assert len(first) == 2
    assert first == second


def test_a_wheel_with_a_missing_or_a_foreign_file_is_refused(tmp_path: Path) -> None:
    wheel = tmp_path / "feedstock_tools-0.2.0-py3-none-any.whl"
    metadata = "feedstock_tools-0.2.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in contents.files_of_wheel([], "0.2.0") - {f"{metadata}/METADATA"}:
            archive.writestr(name, "")
        archive.writestr(f"{metadata}/METADATA", "Metadata-Version: 2.4\nVersion: 0.1.0\n")
        archive.writestr("feedstock_tools/__init__.py", "")
    contents_of = ["feedstock_tools/__init__.py", "docs/page.md"]

    with pytest.raises(FeedstockError, match=r"the metadata do not name version 0.2.0"):
        contents.check_wheel(wheel, contents_of, "0.2.0")
    with pytest.raises(FeedstockError, match=r"missing: feedstock_tools/_data/variants/cuda.yaml"):
        contents.check_wheel(wheel, [*contents_of, "variants/cuda.yaml"], "0.2.0")
    with pytest.raises(FeedstockError, match=r"not expected: feedstock_tools/__init__.py"):
        contents.check_wheel(wheel, ["docs/page.md"], "0.2.0")


def test_a_wheel_without_a_man_page_is_refused(tmp_path: Path) -> None:
    wheel = tmp_path / "feedstock_tools-0.2.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in contents.files_of_wheel([], "0.2.0"):
            if not name.endswith("feedstock-tools-build.1"):
                archive.writestr(name, "")
    with pytest.raises(FeedstockError, match=r"missing: \S+/share/man/man1/feedstock-tools-build\.1$"):
        contents.check_wheel(wheel, [], "0.2.0")
