"""Releases of conda-smithy: fetched from a channel, kept by version, and found by a rerender without the network."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from feedstock_tools.channel.fetched import SMITHY, fetched_packages, smithy_cache
from feedstock_tools.channel.fetching import fetch_package
from feedstock_tools.channel.folder import index_channel
from feedstock_tools.cli.fetched import smithy as command
from feedstock_tools.cli.rerender import rerender as rerender_command
from feedstock_tools.errors import FeedstockError, InputError
from feedstock_tools.rerender.smithy import choose_release, find_release, installed_release
from tests.support.smithy_release import write_package_of_release, write_release

NEWEST, OLD = "2026.8.5", "3.50.1"
RECIPE = "package: {name: demo, version: '1'}\nextra: {recipe-maintainers: [me]}\n"


@pytest.fixture
def channel(tmp_path: Path) -> Path:
    """A channel with two releases, one of them in the old package format."""
    folder = tmp_path / "channel"
    write_package_of_release(folder, OLD, old_format=True)
    write_package_of_release(folder, NEWEST)
    index_channel(folder)
    return folder


@pytest.fixture
def feedstock(tmp_path: Path) -> Path:
    folder = tmp_path / "demo-feedstock"
    (folder / "recipe").mkdir(parents=True)
    (folder / "recipe/meta.yaml").write_text(RECIPE)
    return folder


@pytest.fixture(autouse=True)
def nothing_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.delenv("CONDA_PREFIX", raising=False)


def rerender(*words: str | Path) -> Result:
    return CliRunner().invoke(rerender_command, ["--pinning", "none", *(str(word) for word in words)])


def test_of_a_package_only_what_a_rerender_reads_is_kept(channel: Path, tmp_path: Path) -> None:
    kept = fetch_package(SMITHY, str(channel), tmp_path / "kept", OLD)
    assert (kept.version, kept.channel) == (OLD, channel.as_uri())
    names = {path.relative_to(kept.folder).as_posix() for path in kept.folder.rglob("*") if path.is_file()}
    package = "site-packages/conda_smithy"
    assert {"info/licenses/LICENSE.txt", "info/index.json", "smithy.json"} < names
    assert {f"{package}/data/conda-forge.yml", f"{package}/feedstock_content/.scripts/logging_utils.sh"} < names
    assert not names & {f"{package}/cli.py", "python-scripts/conda-smithy"}
    release = find_release(kept.folder)
    assert (release.version, release.constant("CONDA_FORGE_PIXI_VERSION")) == (OLD, "9.9.9")


def test_the_newest_release_is_fetched_and_versions_are_listed(channel: Path, tmp_path: Path) -> None:
    runner = CliRunner()
    words = ["--cache", str(tmp_path / "kept"), "--channel", str(channel)]
    first = runner.invoke(command, ["fetch", *words, "--json"])
    assert (first.exit_code, json.loads(first.stdout)["version"]) == (0, NEWEST)
    assert f"conda-smithy {OLD}\n" in runner.invoke(command, ["fetch", OLD, *words]).stdout
    listed = runner.invoke(command, ["list", "--cache", str(tmp_path / "kept")])
    assert listed.stdout == f"conda-smithy {OLD}\nconda-smithy {NEWEST}\n"
    shutil.rmtree(channel)
    assert "already fetched" in runner.invoke(command, ["fetch", OLD, *words]).stderr


def test_a_package_without_the_templates_is_refused(tmp_path: Path) -> None:
    channel = tmp_path / "channel"
    write_package_of_release(channel, NEWEST, left_out="templates/README.md.tmpl")
    index_channel(channel)
    with pytest.raises(FeedstockError, match=r"contains no site-packages/.*, so it is not a release of conda-smithy"):
        fetch_package(SMITHY, str(channel), tmp_path / "kept")
    assert fetched_packages(SMITHY, tmp_path / "kept") == ()


def test_a_rerender_takes_the_newest_fetched_release_and_says_so(channel: Path, feedstock: Path) -> None:
    without = rerender(feedstock, "--check")
    missing = "conda-smithy: 2026.8.5 is missing, so only .ci_support and job lists are written; get it with"
    assert f"{missing} 'feedstock-tools smithy fetch 2026.8.5'" in without.stderr
    for version in (OLD, NEWEST):
        fetch_package(SMITHY, str(channel), smithy_cache({"XDG_CACHE_HOME": str(feedstock.parent / "cache")}), version)
    shutil.rmtree(channel)
    written = rerender(feedstock)
    assert (written.exit_code, "conda-smithy: 2026.8.5, fetched\n" in written.stderr) == (0, True), written.output
    assert (feedstock / ".scripts/build_steps.sh").is_file()
    assert "conda-smithy: 3.50.1, fetched (older than 2026.8.5)" in rerender(feedstock, "--rules", OLD).stderr
    assert "3.50.0 is missing" in rerender(feedstock, "--rules", "3.50.0").stderr
    alone = rerender(feedstock, "--smithy", "none", "--check")
    assert "conda-smithy: no release; only .ci_support and job lists are written" in alone.stderr


def test_a_damaged_release_is_one_message(channel: Path, feedstock: Path) -> None:
    cache = smithy_cache({"XDG_CACHE_HOME": str(feedstock.parent / "cache")})
    kept = fetch_package(SMITHY, str(channel), cache)
    shutil.rmtree(kept.folder / "site-packages/conda_smithy/feedstock_content")
    with pytest.raises(InputError, match=r"the fetched release 2026\.8\.5 is damaged"):
        rerender_command.main([str(feedstock), "--pinning", "none"], standalone_mode=False)
    assert not (feedstock / ".ci_support").exists()


def test_an_installed_release_is_found_by_its_files(tmp_path: Path) -> None:
    site = write_release(tmp_path / "lib/python3.12/site-packages")
    assert installed_release([tmp_path]) is None
    (site / f"conda_smithy-{OLD}.dist-info").mkdir()
    (site / f"conda_smithy-{OLD}.dist-info/METADATA").write_text(f"Name: conda-smithy\nVersion: {OLD}\n")
    found = installed_release([tmp_path / "nowhere", tmp_path])
    assert found is not None
    assert found.version == OLD


@pytest.mark.parametrize(
    ("given", "rules", "fetched", "installed", "expected"),
    [
        (None, None, (), None, None),
        (None, None, (), OLD, OLD),
        (None, None, (OLD, NEWEST), OLD, NEWEST),
        (None, OLD, (OLD, NEWEST), None, OLD),
        (None, f"{OLD}+3.20.0", (OLD,), None, OLD),
        (None, OLD, (NEWEST,), OLD, OLD),
        (None, "3.50.2", (OLD, NEWEST), OLD, None),
        (OLD, None, (OLD, NEWEST), None, OLD),
        (OLD, None, (NEWEST,), OLD, OLD),
        ("none", None, (OLD, NEWEST), OLD, None),
    ],
)
def test_which_release_is_taken(
    given: str | None,
    rules: str | None,
    fetched: tuple[str, ...],
    installed: str | None,
    expected: str | None,
    tmp_path: Path,
) -> None:
    chosen = choose_release(
        given,
        rules,
        _places(tmp_path, fetched),
        find_release(_release(tmp_path / "installed", installed)) if installed else None,
    )
    assert (chosen.release.version if chosen.release else None) == expected


def test_a_version_that_was_not_fetched_is_refused_with_the_command_that_fetches_it(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"(?s)conda-smithy 3\.51\.0 has not been fetched.*smithy fetch 3\.51\.0.*3\.50\.1"
    ):
        choose_release("3.51.0", None, _places(tmp_path, (OLD,)), None)
    with pytest.raises(InputError, match="is not a release of conda-smithy"):
        choose_release("nowhere", None, {}, None)


def test_a_folder_named_like_a_release_is_not_taken_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _release(tmp_path / "3.51.0", "3.51.0")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"conda-smithy 3\.51\.0 has not been fetched"):
        choose_release("3.51.0", None, {}, None)
    assert choose_release("./3.51.0", None, {}, None).release is not None


def _places(folder: Path, versions: tuple[str, ...]) -> Mapping[str, Path]:
    return {version: _release(folder / version, version) for version in versions}


def _release(folder: Path, version: str) -> Path:
    write_release(folder)
    (folder / "info").mkdir()
    (folder / "info/index.json").write_text(json.dumps({"version": version}))
    return folder
