"""A package's metadata compared with the plan's promise; and which channels its build environment came from."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from feedstock_tools.builds.channels import OpenChannels
from feedstock_tools.builds.runs.delivery import (
    SolvedIn,
    broken_promises,
    check_artifact,
    solved_channels,
    wrong_channels,
)
from feedstock_tools.channel.metadata import PackageFile, PackageMetadata, RunExports
from feedstock_tools.channel.packages import reading
from feedstock_tools.channel.packages.archive import replace_document, write_package
from feedstock_tools.errors import WorkError
from feedstock_tools.feedstock.planned import PlannedOutput

LIBRARY = PlannedOutput("libtiny", "1.0", "cuda112hab_3", 3, "linux-64", "i1", track_features=("libtiny-p-0",))
BASE = PlannedOutput("tiny-base", "1.0", "cuda112py311_3", 3, "linux-64", "i2")
PROMISE = PlannedOutput(
    "tiny", "1.0", "cuda112py311h1_3", 3, "linux-64", "i3", ("tiny-base",), {"tiny-base": "1.0 cuda112py311_3"}
)
SIBLINGS = {output.name: output for output in (LIBRARY, BASE, PROMISE)}
MADE = PackageMetadata(
    "tiny",
    "1.0",
    "cuda112py311h1_3",
    3,
    "linux-64",
    depends=("python >=3.11,<3.12.0a0", "tiny-base ==1.0 cuda112py311_3"),
)


def test_a_package_that_keeps_its_promise() -> None:
    assert list(broken_promises(MADE, PROMISE, SIBLINGS)) == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"build": "cpu_py311h1_3"}, "build is 'cpu_py311h1_3' instead of 'cuda112py311h1_3'"),
        ({"version": "1.1"}, "version is '1.1'"),
        ({"build_number": 4}, "build number is '4'"),
        ({"subdir": "noarch"}, "subdir is 'noarch'"),
        ({"track_features": ("tiny-p-0",)}, "track_features is 'tiny-p-0' instead of ''"),
        ({"depends": ()}, "must depend on 'tiny-base ==1.0 cuda112py311_3', but has no such dependency"),
        ({"depends": ("tiny-base",)}, "but has tiny-base"),
        ({"depends": ("tiny-base ==1.0 cpu_py311_3",)}, "but has tiny-base ==1.0 cpu_py311_3"),
        (
            {"depends": (*MADE.depends, "libtiny ==1.0 cpu_hab_3")},
            "'libtiny ==1.0 cpu_hab_3' is not the libtiny of the same variant, which is libtiny-1.0-cuda112hab_3",
        ),
        ({"constrains": ("libtiny 1.0 cpu_hab_3",)}, "is not the libtiny of the same variant"),
        ({"run_exports": RunExports(weak=("libtiny ==1.0 cpu_hab_3",))}, "is not the libtiny of the same variant"),
    ],
)
def test_a_broken_promise_is_named(change: dict[str, object], sentence: str) -> None:
    (found,) = broken_promises(replace(MADE, **change), PROMISE, SIBLINGS)  # type: ignore[arg-type]
    assert sentence in found


def test_missing_track_features_are_named() -> None:
    made = PackageMetadata("libtiny", "1.0", "cuda112hab_3", 3, "linux-64")
    assert "instead of 'libtiny-p-0'" in next(broken_promises(made, LIBRARY, SIBLINGS))


def test_looser_dependencies_on_siblings_are_the_recipes_business() -> None:
    made = replace(MADE, depends=(*MADE.depends, "libtiny >=1.0,<2.0a0"))
    assert list(broken_promises(made, PROMISE, SIBLINGS)) == []


@pytest.mark.parametrize("document", [b" ", b"{", b"[]", b"{}", b"\xff"])
def test_a_package_with_an_invalid_list_of_files_fails_alone(tmp_path: Path, document: bytes) -> None:
    planned = replace(LIBRARY, build="0", track_features=(), whole=False)
    package = write_package(tmp_path, PackageMetadata("libtiny", "1.0", "0", 3, "linux-64"))
    replace_document(package, "info/paths.json", document)
    with pytest.raises(WorkError, match=r"the metadata in libtiny-1\.0-0\.conda is invalid"):
        check_artifact(package, planned, {}, None)


@pytest.mark.parametrize(
    ("distribution", "seen"),
    [
        ("Tiny_Base-3.2.0.dist-info", "3.2.0"),
        ("tiny_base-3.2-py3.11.egg-info", "3.2"),
        ("tiny_base-1.0.0.post1.dist-info", None),
        ("tiny_base-1.0+g47.dist-info", None),
        ("tiny_other-3.2.dist-info", None),
    ],
)
def test_a_distribution_of_another_version_than_its_package_is_named(
    distribution: str, seen: str | None, tmp_path: Path
) -> None:
    planned = replace(BASE, build="0")
    path = f"lib/python3.11/site-packages/{distribution}/METADATA"
    package = write_package(
        tmp_path, PackageMetadata("tiny-base", "1.0", "0", 3, "linux-64"), [PackageFile(path, b"x")]
    )
    expected = (f"pip sees version {seen} in the package of version 1.0: {distribution}",) if seen else ()
    assert check_artifact(package, planned, {}, None).doubts == expected


@pytest.mark.parametrize("has_files", [False, True])
def test_an_empty_package_fails_where_its_recipe_gives_it_files(tmp_path: Path, has_files: bool) -> None:
    planned = replace(LIBRARY, build="0", track_features=(), has_files=has_files)
    package = write_package(tmp_path, PackageMetadata("libtiny", "1.0", "0", 3, "linux-64"))
    with pytest.raises(WorkError, match="it is empty") if has_files else nullcontext():
        check_artifact(package, planned, {}, None)


def test_a_package_with_invalid_contents_of_its_hash_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "read_documents", lambda *_: {"info/hash_input.json": b"{"})
    with pytest.raises(WorkError, match="its info/hash_input"):
        reading.read_hash_input(Path("libtiny-1.0-1.conda"))


RENDERED = {
    "finalized_dependencies": {
        "build": None,
        "host": {
            "resolved": [{"name": "zlib", "channel": "https://a/"}, {"name": "libtiny", "channel": "file:///own"}]
        },
    }
}
CONTENTS = {"https://a": frozenset({"zlib", "gcc"}), "https://b": frozenset({"zlib", "python"})}


def sentences(*solved: tuple[str, str]) -> list[str]:
    """The problems of an environment, for the channels a and b."""
    channels = OpenChannels(("https://a", "https://b"), ("linux-64", "noarch"))
    channels._names.update(CONTENTS)
    return list(wrong_channels(solved, SolvedIn("file:///own", channels), frozenset({"libtiny"})))


def test_the_solved_environments_are_read_from_the_rendered_recipe() -> None:
    assert list(solved_channels(RENDERED)) == [("zlib", "https://a"), ("libtiny", "file:///own")]


def test_packages_from_the_first_channel_that_has_them_are_right() -> None:
    assert sentences(("zlib", "https://a"), ("python", "https://b"), ("libtiny", "file:///own")) == []


@pytest.mark.parametrize(
    ("solved", "sentence"),
    [
        (("zlib", "https://b"), "zlib was taken from https://b, although https://a has it and has priority"),
        (("gcc", "https://c"), "gcc was taken from https://c, which is not one of the channels given"),
        (("libtiny", "https://a"), "libtiny is an output of this recipe but was taken from https://a"),
    ],
)
def test_packages_from_the_wrong_channel_are_named(solved: tuple[str, str], sentence: str) -> None:
    assert sentences(solved) == [sentence]
