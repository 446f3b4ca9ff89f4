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
