"""Small feedstocks, each for a few rules, with the files that conda-smithy 2026.8.5 wrote (conda-build 26.7.1)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from feedstock_tools.platforms import Platform
from feedstock_tools.rerender.rerendering import rerender

RECORDED = Path(__file__).with_name("recorded")
NAMES = sorted(path.name for path in RECORDED.iterdir())


@pytest.fixture(params=NAMES)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of a recorded feedstock, with its pinning and expected files beside it."""
    return Path(shutil.copytree(RECORDED / request.param, tmp_path / "feedstock"))


def expected(case: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (case / "expected").glob("*.yaml")}


def test_files_are_those_of_conda_smithy(case: Path) -> None:
    assert dict(rerender(case, pinning=case / "pinning").files) == expected(case)


def test_the_pinning_can_be_given_by_its_file(case: Path) -> None:
    found = rerender(case, pinning=case / "pinning" / "conda_build_config.yaml")

    assert dict(found.files) == expected(case)


def test_the_environment_of_the_machine_does_not_matter(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CF_CUDA_ENABLED", "BUILD_PLATFORM", "zlib", "python", "FEATURE_NOMKL"):
        monkeypatch.setenv(name, "1")

    assert dict(rerender(case, pinning=case / "pinning").files) == expected(case)


def test_writing_makes_the_files_and_a_second_time_nothing(case: Path) -> None:
    rerender(case, pinning=case / "pinning").changes().apply()

    written = {path.name: path.read_bytes() for path in (case / ".ci_support").glob("*.yaml")}
    assert written == expected(case)
    assert not rerender(case, pinning=case / "pinning").changes()


def test_one_platform_leaves_the_files_of_others_alone(case: Path) -> None:
    rerender(case, pinning=case / "pinning").changes().apply()
    for path in (case / ".ci_support").glob("*.yaml"):
        path.write_text("changed: []\n")

    rerender(case, pinning=case / "pinning", platforms=[Platform.parse("linux-64")]).changes().apply()

    for path in (case / ".ci_support").glob("*.yaml"):
        own = path.name.startswith("linux_64_")
        assert path.read_bytes() == (expected(case)[path.name] if own else b"changed: []\n")


def test_finished_migrations_go_and_others_stay(tmp_path: Path) -> None:
    case = Path(shutil.copytree(RECORDED / "gpu-outputs", tmp_path / "feedstock"))

    rerender(case, pinning=case / "pinning").changes().apply()

    assert [path.name for path in (case / ".ci_support" / "migrations").iterdir()] == ["cuda13.yaml"]


def test_files_that_no_configuration_has_any_more_are_deleted(tmp_path: Path) -> None:
    case = Path(shutil.copytree(RECORDED / "noarch", tmp_path / "feedstock"))
    stale = case / ".ci_support" / "linux_64_old.yaml"
    stale.parent.mkdir()
    stale.write_text("a: [b]\n")

    changes = rerender(case, pinning=case / "pinning").changes()

    assert changes.files[stale] is None
    assert "-a: [b]" in "".join(changes.diff())
