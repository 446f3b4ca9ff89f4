"""A rerender writes the job lists of CI files with the configurations, and `--check` names stale jobs."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from feedstock_tools.channel.fetched import pinning_cache
from feedstock_tools.cli.rerender import rerender as command
from feedstock_tools.errors import InputError

WORKFLOW = ".github/workflows/conda-build.yml"
JOBS = """\
jobs:
  build:
    strategy:
      matrix:
        include:
          - CONFIG: linux_64_python3.8.____cpython
            UPLOAD_PACKAGES: True
    steps: []
"""


NO_PINNING = ("--pinning", "none")


@pytest.fixture
def feedstock(tmp_path: Path) -> Path:
    folder = tmp_path / "demo-feedstock"
    (folder / "recipe").mkdir(parents=True)
    (folder / "recipe" / "meta.yaml").write_text(
        "package: {name: demo, version: '1'}\nrequirements:\n  host:\n    - python\n  run:\n    - python\n"
    )
    (folder / "recipe" / "conda_build_config.yaml").write_text("python:\n- 3.12.* *_cpython\n- 3.13.* *_cp313\n")
    (folder / "conda-forge.yml").write_text("provider: {linux_64: github_actions, osx_64: ~, win_64: ~}\n")
    (folder / WORKFLOW).parent.mkdir(parents=True)
    (folder / WORKFLOW).write_text(JOBS)
    (folder / WORKFLOW).chmod(0o755)
    return folder


def run(feedstock: Path, *arguments: str, cache: Path) -> Result:
    environment = {"XDG_CACHE_HOME": str(cache)}
    return CliRunner().invoke(command, [str(feedstock), *arguments], env=environment, catch_exceptions=False)


def test_jobs_are_checked_then_written_with_the_configurations(feedstock: Path, tmp_path: Path) -> None:
    checked = run(feedstock, "--check", *NO_PINNING, cache=tmp_path)
    assert checked.exit_code == 1
    assert f"stale {WORKFLOW}: the job linux_64_python3.12.____cpython is missing\n" in checked.output
    assert f"stale {WORKFLOW}: the job linux_64_python3.8.____cpython is superfluous\n" in checked.output
    assert (feedstock / WORKFLOW).read_text() == JOBS

    assert run(feedstock, *NO_PINNING, cache=tmp_path).exit_code == 0
    written = (feedstock / WORKFLOW).read_text()
    names = [line.split()[-1] for line in written.splitlines() if "CONFIG:" in line]
    assert names == [path.stem for path in sorted((feedstock / ".ci_support").glob("*.yaml"))]
    assert len(names) == 2
    assert stat.S_IMODE((feedstock / WORKFLOW).stat().st_mode) == 0o755
    assert run(feedstock, "--check", *NO_PINNING, cache=tmp_path).exit_code == 0


@pytest.mark.parametrize("words", [(), ("--check",), ("--diff",)])
def test_without_a_pinning_nothing_is_said_of_the_jobs_or_written(
    words: tuple[str, ...], feedstock: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="the jobs follow from conda-forge's pinning, and there is none") as refused:
        run(feedstock, "--offline", *words, cache=tmp_path)
    assert "--pinning none" in str(refused.value)
    assert not (feedstock / ".ci_support").exists()
    assert (feedstock / WORKFLOW).read_text() == JOBS


def test_the_newest_fetched_pinning_is_taken_and_said(feedstock: Path, tmp_path: Path) -> None:
    assert "pinning: none, only the recipe's own" in run(feedstock, "--check", *NO_PINNING, cache=tmp_path).output
    for version in ("2021.10.29.07.34.22", "2026.01.02.03.04.05"):
        kept = pinning_cache({"XDG_CACHE_HOME": str(tmp_path)}) / version
        kept.mkdir(parents=True)
        (kept / "conda_build_config.yaml").write_text("numpy: [2]\n")
        (kept / "pinning.json").write_text(f'{{"version": "{version}", "channel": "c", "sha256": "0"}}')
    assert "pinning: conda-forge-pinning 2026.01.02.03.04.05 (" in run(feedstock, "--check", cache=tmp_path).output
    given = run(feedstock, "--check", "--pinning", "2021.10.29.07.34.22", cache=tmp_path)
    assert "pinning: conda-forge-pinning 2021.10.29.07.34.22 (" in given.output
    (feedstock / "feedstock.yaml").touch()
    assert "pinning: none, only the recipe's own" in run(feedstock, "--check", cache=tmp_path).output
