"""Releases of conda-smithy: where one is found, which version it has, and its compiled templates."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.rerender.rerendering import rerender
from feedstock_tools.rerender.smithy import chosen_rules, find_release
from tests.support.smithy_release import write_release
from tests.support.whole_tree import contents, in_new_process, write_files


def test_a_newer_release_is_rendered_if_its_templates_want_nothing_new(feedstock: Path, release: Path) -> None:
    write_files(release, {"info/index.json": '{"version": "2099.1.0"}'})
    found = find_release(release)
    rendered = rerender(feedstock, rules=chosen_rules(None, found), smithy=found)
    assert rendered.tree is not None
    assert "README.md" in rendered.tree.files
    assert "conda-smithy 2099.1.0 is newer than 2026.8.5" in (rendered.rules.note or "")
    template = release / "conda_smithy/templates/build_steps.sh.tmpl"
    template.write_text("{{ docker.novelty }} {{ later }}")
    with pytest.raises(InputError, match=r"unknown values docker\.novelty, later\n.*newer than all known ones"):
        rerender(feedstock, rules=chosen_rules(None, found), smithy=find_release(release))


def test_compiled_templates_are_kept_by_content_in_a_private_folder(
    feedstock: Path, release: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "templates"
    _rerender_in_new_process(feedstock, release, cache)
    assert cache.stat().st_mode & 0o777 == 0o700
    kept = {path.name: path for path in cache.iterdir()}
    assert {path.stat().st_mode & 0o777 for path in kept.values()} == {0o600}
    (release / "conda_smithy/templates/circle.yml.tmpl").write_text("changed\n")
    _rerender_in_new_process(feedstock, release, cache)
    assert (feedstock / ".circleci/config.yml").read_text() == "changed"
    assert len([path for path in cache.iterdir() if path.name not in kept]) == 2


def test_compiled_templates_that_others_could_have_written_are_not_run(
    feedstock: Path, release: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "templates"
    _rerender_in_new_process(feedstock, release, cache)
    expected = contents(feedstock)
    for path in cache.iterdir():
        path.write_bytes(path.read_bytes()[:-9] + b"\0" * 9)  # damaged
    _rerender_in_new_process(feedstock, release, cache)
    assert contents(feedstock) == expected
    cache.chmod(0o777)
    for path in cache.iterdir():
        path.write_bytes(b"")
    _rerender_in_new_process(feedstock, release, cache)
    assert contents(feedstock) == expected
    assert {path.stat().st_size for path in cache.iterdir()} == {0}, "a folder that others can write is left alone"


def _rerender_in_new_process(feedstock: Path, release: Path, cache: Path) -> None:
    run = in_new_process(
        f"release = find_release(Path({str(release)!r}), cache=Path({str(cache)!r}))\n"
        f"rerender(Path({str(feedstock)!r}), smithy=release).changes().apply()"
    )
    assert run.returncode == 0, run.stderr


def test_a_folder_without_a_release_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a release of conda-smithy"):
        find_release(tmp_path)


@pytest.mark.parametrize("layout", [".", "site-packages", "lib/python3.12/site-packages"])
def test_a_release_is_found_in_a_package_and_in_an_environment(tmp_path: Path, layout: str) -> None:
    write_release(tmp_path / layout)
    assert find_release(tmp_path).constant("CONDA_FORGE_PIXI_VERSION") == "9.9.9"


def test_the_version_of_an_unpacked_package_counts(release: Path) -> None:
    write_files(release, {"info/index.json": '{"name": "conda-smithy", "version": "3.50.1"}'})
    found = find_release(release)
    assert chosen_rules(None, found).smithy == "3.50.1"
    assert chosen_rules("3.50.1", found).smithy == "3.50.1"
    with pytest.raises(InputError, match=r"is conda-smithy 3\.50\.1, and --rules asks for 3\.51\.0"):
        chosen_rules("3.51.0", found)
