"""The facts compared with their sources, as `maintenance/facts/feedstocks.py` read them from clones of feedstocks.

The tables in `recorded/` make this possible without the clones; where those exist (in the folder that FEEDSTOCK_MIRROR
names, default `../.mirror`), the tables themselves are compared with them.
"""

from __future__ import annotations

import pytest

from feedstock_tools.facts.cuda import CudaFacts, Library, PinningRow, load_cuda
from feedstock_tools.facts.packages import KnownPackage, read_packages
from feedstock_tools.platforms import Platform
from maintenance.facts import pinning_rows
from maintenance.facts.feedstocks import DROPPED, TABLES, entry_of
from maintenance.facts.records import read_table
from tests.support.needs import lacks, needs
from tests.support.paths import MIRROR, clone_of

FACTS: CudaFacts = load_cuda()
PACKAGES = read_packages()
PINNING = clone_of("conda-forge-pinning-feedstock")
RECORDED = {name: read_table(name) for name in TABLES}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_what_the_clones_say(name: str) -> None:
    read = {key: entry_of(reader, MIRROR) for key, reader in TABLES[name].items()}
    there = {key: entry for key, entry in read.items() if entry is not None}
    assert there == {key: RECORDED[name].get(key) for key in there}
    if missing := sorted({key.split(" ")[0] for key in read if key not in there}):
        lacks("fetched", f"clones in {MIRROR} for {name}" + (f" of {', '.join(missing)}" if there else ""))


@pytest.mark.parametrize("name", [name for name in TABLES if name != "packages"])
def test_every_fact_is_recorded_with_its_place(name: str) -> None:
    assert RECORDED[name].keys() == TABLES[name].keys()
    assert [key for key, entry in RECORDED[name].items() if not entry.get("line", 1)] == []
    assert all(entry["commit"] and entry["path"] for entry in RECORDED[name].values())


@pytest.mark.parametrize("row", FACTS.rows, ids=lambda row: row.name)
def test_a_row_has_the_values_of_the_pinning_at_its_commit(row: PinningRow) -> None:
    recorded = RECORDED["pinning"][row.name]
    assert (row.commit, row.date) == (recorded["commit"], recorded["date"])
    own = {key: value for key, value in row.values.items() if key not in row.added}
    assert own == recorded["values"]
    assert not set(row.added) & set(recorded["values"])


@pytest.mark.parametrize(("platform", "cuda"), [(platform, cuda) for platform, cuda, _ in DROPPED])
def test_the_commit_after_a_row_names_the_version_no_more(platform: str, cuda: str) -> None:
    recorded = RECORDED["dropped"][f"{platform} {cuda}"]
    assert FACTS.pinning_row(cuda, Platform.parse(platform)).commit == recorded["before"]
    assert recorded["names_it"] is False


@needs("fetched", PINNING.is_dir(), "a clone of conda-forge-pinning-feedstock")
def test_the_search_for_the_last_row_finds_the_newest() -> None:
    row = FACTS.pinning_row("13.0", Platform.parse("linux-64"))
    _, origin, values = pinning_rows.last_row(PINNING, row.platform, "13.0")
    assert (origin, values) == (row.origin, dict(row.values))


@pytest.mark.parametrize("library", FACTS.libraries.values(), ids=lambda library: library.name)
def test_each_release_was_built_as_the_facts_say(library: Library) -> None:
    for release in library.releases:
        recorded = RECORDED["libraries"][f"{library.name} {release.version} {release.commit[:8]}"]
        assert recorded["commit"] == release.commit
        assert release.version in recorded["versions"]
        found = {cuda: set(subdirs) for cuda, subdirs in recorded["configurations"].items()}
        if release.version == "7.6.5.32":  # a configuration for 11.0 was there, whose archive has no hash in the recipe
            found.pop("11.0", None)
        assert found == {cuda: set(subdirs) for cuda, subdirs in release.cuda.items()}, release.version


@pytest.mark.parametrize("version", TABLES["presets"])
def test_the_preset_conda_forge_is_what_its_nvcc_sets(version: str) -> None:
    assert list(FACTS.preset("conda-forge", version)) == RECORDED["presets"][version]["architectures"]


@pytest.mark.parametrize("feedstock", sorted({package.recipe.feedstock for package in PACKAGES}))
def test_recipes_have_what_the_data_on_packages_says(feedstock: str) -> None:
    by_source: dict[str, list[KnownPackage]] = {}
    for package in PACKAGES:
        if package.recipe.feedstock == feedstock:
            by_source.setdefault(f"{feedstock} {package.recipe.commit[:8]}", []).append(package)
    unknown = by_source.keys() - RECORDED["packages"].keys()
    for key in by_source.keys() - unknown:
        recorded = RECORDED["packages"][key]
        source = by_source[key][0].recipe
        assert (source.commit, source.path) == (recorded["commit"], recorded["path"])
        assert source.date.isoformat() == recorded["date"]
        now = {
            package.distribution: (package.version, [*package.depends, *package.constrains])
            for package in by_source[key]
        }
        assert now == {name: (found["version"], found["specs"]) for name, found in recorded["packages"].items()}
    if unknown:
        lacks("fetched", f"a clone of {feedstock}-feedstock, to record what it says of {len(unknown)} commits")
