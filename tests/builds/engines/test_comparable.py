"""Metadata without what differs between two builds of the same inputs."""

from __future__ import annotations

import importlib.util
import json
import marshal
import py_compile
from hashlib import sha256
from pathlib import Path

import pytest

from feedstock_tools.builds.engines.comparable import (
    names_of,
    normalised_bytecode,
    normalised_document,
    with_digests,
    with_paths,
)
from feedstock_tools.channel.properties import STAND_IN

PRIVATE, MINE = "file:///tmp/build/output", "file:///home/me/channel"
NAMES = names_of([MINE, "https://conda.anaconda.org/conda-forge"], PRIVATE)
EPOCH = 1_700_000_000

RENDERED = """\
recipe:
  about:
    summary: timestamp stays
build_configuration:
  host_platform:
    virtual_packages:
    - __unix=0=0
    - __linux=6.18.44=0
    - __archspec=1=x86_64_v4
    - __glibc=2.36=0
  directories:
    host_prefix: PLACE/output/bld/rattler-build_tiny/host_envFILLING
    build_dir: PLACE/output/bld/rattler-build_tiny
  timestamp: 2026-11-22T13:46:22.99055253Z
finalized_dependencies:
  host:
    specs:
    - spec: zlib
      from: host
    - spec: __glibc >=2.17
    resolved:
    - name: zlib
      sha256: abc
      channel: file:///home/me/channel/
    - name: base
      sha256: def
      channel: file:///tmp/build/output/
finalized_sources: []
"""


def _built_at(place: str) -> str:
    """The recipe as rendered by a build in a folder."""
    begins = len(f"{place}/output/bld/rattler-build_tiny/host_env")
    return RENDERED.replace("PLACE", place).replace("FILLING", ("_placehold" * 25)[: 255 - begins])


TIMES = py_compile.PycInvalidationMode.TIMESTAMP


def compiled(source: Path, mode: py_compile.PycInvalidationMode) -> bytes:
    """The bytecode of a source."""
    target = source.with_suffix(".pyc")
    py_compile.compile(str(source), str(target), doraise=True, invalidation_mode=mode)
    return target.read_bytes()


def rendered(text: str, names: dict[str, str] = NAMES) -> str:
    return normalised_document("info/recipe/rendered_recipe.yaml", text.encode(), names, EPOCH).decode()


def test_a_rendered_recipe_has_no_times_no_paths_and_one_order() -> None:
    found = rendered(RENDERED)
    assert "    summary: timestamp stays\n" in found
    assert "  timestamp: 2023-11-14T22:13:20Z\n" in found
    assert "    - __unix=0=0\n  directories:\n" in found
    assert "    - spec: __glibc >=2.17\n    - spec: zlib\n      from: host\n" in found
    assert found.index("- name: base\n      sha256: def") < found.index("- name: zlib\n      sha256: abc")
    assert "channel: file:///feedstock-tools/private/\n" in found
    assert "channel: file:///feedstock-tools/1/\n" in found
    assert found == rendered(found)


def test_another_order_another_time_and_another_place_give_the_same() -> None:
    lines = RENDERED.splitlines(keepends=True)
    zlib, base = lines[21:24], lines[24:27]
    assert zlib[0] == "    - name: zlib\n"
    other = "".join([*lines[:21], *base, *zlib, *lines[27:]])
    other = other.replace(MINE, "file:///srv/channel").replace("2026-11-22", "2027-01-01").replace("6.18.44", "7.0")
    names = names_of(["file:///srv/channel", "https://conda.anaconda.org/conda-forge"], PRIVATE)
    assert rendered(other, names) == rendered(RENDERED)


def test_builds_in_different_folders_give_the_same_where_the_system_allows_no_mount() -> None:
    folders = ("/tmp/.feedstock-tools/build/.work/1f", "/var/lib/feedstock-tools/h1/.work/1f")
    one, other = (rendered(_built_at(folder), {**NAMES, folder: folders[0]}) for folder in folders)
    assert one == other
    assert (
        one.partition("host_prefix: ")[2].partition("\n")[0]
        == _built_at(folders[0]).partition("host_prefix: ")[2].partition("\n")[0]
    )


def test_the_paths_come_back_for_the_checks_of_a_package() -> None:
    back = with_paths(rendered(RENDERED).encode(), NAMES).decode()
    assert f"channel: {MINE}/\n" in back
    assert f"channel: {PRIVATE}/\n" in back
    assert "feedstock-tools" not in back


def test_a_path_that_only_begins_like_a_channel_stays() -> None:
    about = json.dumps({"channels": [f"{MINE}-2/", f"{MINE}/"]}).encode()
    found = json.loads(normalised_document("info/about.json", about, NAMES, EPOCH))
    assert found == {"channels": [f"{MINE}-2/", "file:///feedstock-tools/1/"]}


def test_hashes_of_packages_of_the_stand_in_channel_say_nothing() -> None:
    names = names_of([MINE], PRIVATE, STAND_IN)
    found = rendered(RENDERED, names)
    assert "channel: file:///feedstock-tools/stand-in/\n" in found
    assert "abc" not in found
    assert "sha256: def" in found  # of an output of the same row


def test_an_index_has_the_time_of_its_inputs_and_sorted_requirements() -> None:
    index = {"name": "a", "depends": ["zlib", "libgcc"], "constrains": ["b", "a"], "timestamp": 5}
    found = json.loads(normalised_document("info/index.json", json.dumps(index).encode(), {}, EPOCH))
    assert found == {
        "name": "a",
        "depends": ["libgcc", "zlib"],
        "constrains": ["a", "b"],
        "timestamp": EPOCH * 1000,
    }


@pytest.mark.parametrize("length", [10, 300], ids=["short path", "long path"])
def test_bytecode_has_the_path_in_its_package_and_still_runs(length: int, tmp_path: Path) -> None:
    path = "lib/python3.11/site-packages/demo/mod.py"
    found = []
    for name in ("a" * length, "b" * (length // 2)):
        source = tmp_path.joinpath(*[name[at : at + 100] for at in range(0, len(name), 100)], path)
        source.parent.mkdir(parents=True)
        source.write_text("def f(x):\n    return {'a', 'b'}, x\n\nVALUE = f(1)\n")
        found.append(normalised_bytecode(compiled(source, TIMES), path, EPOCH))
    assert found[0] == found[1]
    assert int.from_bytes(found[0][8:12], "little") == EPOCH
    code = marshal.loads(found[0][16:])  # noqa: S302
    assert code.co_filename == path
    values: dict[str, object] = {}
    exec(code, values)  # noqa: S102
    assert values["VALUE"] == ({"a", "b"}, 1)


def test_bytecode_that_is_known_by_its_source_keeps_its_head(tmp_path: Path) -> None:
    source = tmp_path / "mod.py"
    source.write_text("VALUE = 1\n")
    by_hash = py_compile.PycInvalidationMode.CHECKED_HASH
    content = compiled(source, by_hash)
    assert normalised_bytecode(content, "mod.py", EPOCH)[:16] == content[:16]
    assert content[8:16] == importlib.util.source_hash(source.read_bytes())
    assert normalised_bytecode(b"short", "mod.py", EPOCH) == b"short"


def test_paths_json_has_the_hashes_of_what_has_changed() -> None:
    paths = {"paths": [{"_path": "a", "sha256": "old", "size_in_bytes": 1}, {"_path": "b", "sha256": "kept"}]}
    found = json.loads(with_digests(json.dumps(paths).encode(), {"a": b"new!"}))
    assert found["paths"] == [
        {"_path": "a", "sha256": sha256(b"new!").hexdigest(), "size_in_bytes": 4},
        {"_path": "b", "sha256": "kept"},
    ]
