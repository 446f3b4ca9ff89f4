"""`feedstock-tools edit` on a feedstock whose recipe a spec generates: the edit goes into the spec."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from feedstock_tools.generate.generating import generate
from tests.support import command

SPEC = f"""\
# The spec of a small library.
name: demo
version: 1.0.0
format: v1
automatic: false

sources:
  - url: https://example.org/demo-{{version}}.tar.gz
    sha256: {"a" * 64}

platforms:
  linux-64:

build:
  number: 3
  offsets:
    - {{by: 100, when: linux}}

groups:
  linked: [libaec]

outputs:
  - name: demo
    kind: library
    script: [make install]
    requirements:
      host:
        # The compressor.
        - zlib
        - {{use: linked, when: linux}}
    run_exports: demo 1.*
    test:
      commands: [test -f x]

about:
  homepage: https://example.org
  license: MIT
  license_file: LICENSE
  summary: Demo
maintainers: [someone]
"""


@pytest.fixture
def feedstock(tmp_path: Path) -> Path:
    folder = tmp_path / "demo-feedstock"
    (folder / "recipe").mkdir(parents=True)
    (folder / "feedstock.yaml").write_text(SPEC)
    generate(folder).apply()
    return folder


def edit(feedstock: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return command.here("edit", *words, "--pinning", "none", folder=feedstock)


def test_edits_change_the_spec_and_generate(feedstock: Path) -> None:
    words = (
        "version",
        "1.1.0",
        "--sha256",
        "c" * 64,
        "requirement",
        "add",
        "libpng",
        "--section",
        "host",
        "--of",
        "demo",
    )
    shown = edit(feedstock, *words)
    assert shown.returncode == 0, shown.stderr
    assert "would change feedstock.yaml and generate; --write does" in shown.stderr
    assert (feedstock / "feedstock.yaml").read_text() == SPEC
    written = edit(feedstock, *words, "--write")
    assert written.returncode == 0, written.stderr
    assert "changed feedstock.yaml, generated " in written.stderr
    after = SPEC.replace("version: 1.0.0", "version: 1.1.0").replace("a" * 64, "c" * 64)
    after = after.replace("  number: 3", "  number: 0")
    lines = [line for line in (feedstock / "feedstock.yaml").read_text().splitlines() if line != "        - libpng"]
    assert lines == after.splitlines()
    assert generate(feedstock).stale == ()
    assert "libpng" in (feedstock / "recipe/recipe.yaml").read_text()


def test_an_edit_that_the_spec_cannot_say_is_named(feedstock: Path) -> None:
    recipe = (feedstock / "recipe/recipe.yaml").read_text()
    refused = edit(feedstock, "requirement", "pin", "libaec >=1.1", "--write")
    assert refused.returncode == 1
    assert "the spec cannot say this edit\n  not in the spec: outputs.demo.requirements.host: " in refused.stderr
    assert (feedstock / "feedstock.yaml").read_text() == SPEC
    assert (feedstock / "recipe/recipe.yaml").read_text() == recipe


def test_files_that_the_spec_does_not_describe_are_not_edited(feedstock: Path) -> None:
    (feedstock / "feedstock.yaml").write_text(SPEC.replace("zlib", "zlib-ng"))
    refused = edit(feedstock, "build-number", "9", "--write")
    assert refused.returncode == 2
    assert "is not what generated these files" in refused.stderr


def test_a_migration_that_is_dropped_leaves_the_spec(feedstock: Path) -> None:
    own = "migrator_ts: 1\n__migrator:\n  use_local: true\nzlib:\n  - 2\n"
    text = SPEC + "migrations:\n  mine:\n    verbatim: |\n" + "".join(f"      {line}\n" for line in own.splitlines())
    (feedstock / "feedstock.yaml").write_text(text)
    generate(feedstock).apply()
    assert (feedstock / ".ci_support/migrations/mine.yaml").read_text() == own
    done = edit(feedstock, "migration", "drop", "mine", "--write")
    assert done.returncode == 0, done.stderr
    assert (feedstock / "feedstock.yaml").read_text() == SPEC
    assert not (feedstock / ".ci_support/migrations/mine.yaml").exists()


LISTED = """\
name: demo
version: 1.0.0
pinning: self-contained
platforms: {linux-64: }
python: [3.11, 3.12]  # as long as upstream has them
cuda:
  versions:
    - 12.9
    - 13.0
  architectures: common
outputs:
  - name: demo
    kind: python
    script: [python -m pip install .]
    requirements:
      build: [compiler: cxx, compiler: cuda, stdlib: c]
      host: [pip]
    test: {imports: [demo]}
about: {homepage: https://example.org, license: MIT, license_file: LICENSE, summary: Demo}
maintainers: [someone]
"""


PINNING = """\
python:
  - 3.12.* *_cpython
cxx_compiler:
  - gxx
cxx_compiler_version:
  - 14
c_stdlib:
  - sysroot
c_stdlib_version:
  - 2.17
"""


@pytest.fixture
def listing(tmp_path: Path) -> Path:
    """A feedstock whose spec lists its versions."""
    folder = tmp_path / "demo-feedstock"
    (folder / "recipe").mkdir(parents=True)
    (folder / "feedstock.yaml").write_text(LISTED)
    generate(folder).apply()
    return folder


@pytest.mark.parametrize(
    ("words", "old", "new"),
    [
        ("add-python 3.13", "[3.11, 3.12]", "[3.11, 3.12, 3.13]"),
        ("add-python 3.10", "[3.11, 3.12]", '["3.10", 3.11, 3.12]'),
        ("drop-python 3.11", "[3.11, 3.12]", "[3.12]"),
        ("add-cuda 12.8", "    - 12.9\n", "    - 12.8\n    - 12.9\n"),
        ("add-cuda 13.1", "    - 13.0\n", "    - 13.0\n    - 13.1\n"),
        ("drop-cuda 12.9", "    - 12.9\n", ""),
        ("platform add osx-64", "{linux-64: }", "{linux-64: , osx-64: }"),
        ("platform add linux-aarch64 --native", "{linux-64: }", "{linux-64: , linux-aarch64: }"),
    ],
)
def test_a_list_of_the_spec_is_edited_where_it_stands(listing: Path, words: str, old: str, new: str) -> None:
    done = edit(listing, *words.split(), "--write")
    assert done.returncode == 0, done.stderr
    assert (listing / "feedstock.yaml").read_text() == LISTED.replace(old, new)
    assert generate(listing).stale == ()


def test_lists_and_other_edits_go_into_the_spec_in_one_call(listing: Path) -> None:
    more = ("requirement", "add", "numpy", "--section", "host", "--of", "demo")
    done = edit(listing, "add-python", "3.13", *more, "add-cuda", "12.8")
    assert done.returncode == 0, done.stderr
    shown = [line for line in done.stdout.splitlines() if line[:1] in "+-"]
    assert "+python: [3.11, 3.12, 3.13]  # as long as upstream has them" in shown
    assert "+    - 12.8" in shown
    assert any(line.startswith("+      host: [pip, numpy") for line in shown), shown


def test_a_platform_that_is_crossed_gets_its_machine_and_tests(listing: Path) -> None:
    assert edit(listing, "platform", "add", "linux-aarch64", "--write").returncode == 0
    text = (listing / "feedstock.yaml").read_text()
    assert "platforms: {linux-64: , linux-aarch64: {build_on: linux-64}}\n" in text
    assert text.endswith("conda_forge:\n  test: native_and_emulated\n")
    assert "linux_aarch64: linux_64" in (listing / "conda-forge.yml").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("add-python 3.12", "feedstock.yaml:5:1: Python 3.12 is built already"),
        ("drop-python 3.9", "feedstock.yaml:5:1: does not list Python 3.9"),
        ("add-cuda 13.0", "feedstock.yaml:7:3: CUDA 13.0 is built already"),
        ("add-cuda 13.99", "unknown CUDA version 13.99"),
        ("add-python 3.13 --with numpy=2", "the spec alone decides on Python 3.13: it takes no migration here"),
        ("drop-python 3.11 drop-python 3.12", "Python 3.12 is the only one that is built here"),
    ],
)
def test_a_version_that_the_list_cannot_gain_or_lose_is_refused(listing: Path, words: str, said: str) -> None:
    refused = edit(listing, *words.split(), "--write")
    assert (refused.returncode, said in refused.stderr) == (2, True), refused.stderr
    assert (listing / "feedstock.yaml").read_text() == LISTED


def test_where_a_word_stands_for_the_list_the_list_to_write_is_shown(listing: Path) -> None:
    text = LISTED.replace("versions:\n    - 12.9\n    - 13.0\n", "versions: all\n")
    (listing / "feedstock.yaml").write_text(text)
    generate(listing).apply()
    refused = edit(listing, "drop-cuda", "13.0")
    assert refused.returncode == 2
    assert "lists no versions of CUDA\n  List them, then edit the list: cuda: {versions: [" in refused.stderr
    assert "12.9, 13.0" in refused.stderr


def test_a_list_that_selects_from_the_pinning_gets_the_migration_that_has_the_version(listing: Path) -> None:
    before, _, after = LISTED.partition("cuda:\n")
    spec = before.replace("pinning: self-contained\n", "") + after[after.index("outputs:") :]
    spec = spec.replace("[3.11, 3.12]", "[3.12]").replace("compiler: cuda, ", "")
    (listing / "feedstock.yaml").write_text(spec)
    generate(listing).apply()
    pinning = listing.parent / "pinning"
    (pinning / "migrations").mkdir(parents=True)
    (pinning / "conda_build_config.yaml").write_text(PINNING)
    migration = (
        "__migrator:\n  migration_number: 1\n  operation: key_add\n  primary_key: python\n  ordering:\n    python:\n"
        "      - 3.12.* *_cpython\n      - 3.13.* *_cp313\nmigrator_ts: 1\npython:\n  - 3.13.* *_cp313\n"
    )
    (pinning / "migrations" / "python313.yaml").write_text(migration)
    words = ("add-python", "3.13", "--write", "--pinning", str(pinning))
    done = command.here("edit", *words, folder=listing)
    assert done.returncode == 0, done.stderr
    text = (listing / "feedstock.yaml").read_text()
    assert "python: [3.12, 3.13]" in text
    assert "migrations:\n  - python313\n" in text
    assert (listing / ".ci_support/migrations/python313.yaml").is_file()
    refused = command.here("edit", "add-python", "3.9", "--pinning", str(pinning), folder=listing)
    assert refused.returncode == 2
    assert "neither the pinning nor a migration of it has Python 3.9" in refused.stderr
