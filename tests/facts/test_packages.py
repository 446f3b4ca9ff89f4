"""The data on packages: the files that ship with this tool, and the mistakes in malformed ones."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.facts.packages import KnownPackage, checked_packages, packages_file, read_packages

SOURCE = """
sources:
  recipe: {feedstock: tool, commit: 0123456789012345678901234567890123456789, date: 2024-02-29}
"""


def read(tmp_path: Path, packages: str, sources: str = SOURCE) -> tuple[KnownPackage, ...]:
    path = tmp_path / "packages.yaml"
    path.write_text(f"{sources}\npackages:\n{packages}")
    return checked_packages(path)


def test_a_family_gives_a_package_for_each_row_and_subdir(tmp_path: Path) -> None:
    packages = read(
        tmp_path,
        """
  - name: tool_{platform}
    source: recipe
    subdirs: [linux-64, osx-arm64]
    depends: {linux: ["__glibc >={glibc}"], all: ["__unix"]}
    constrains: ["other <{next_major}"]
    rows:
      - {version: "2.30", number: "4", hash: {linux-64: abcdef0}, glibc: "2.17"}
      - {version: 3.1.0, glibc: "2.28"}
""",
    )
    linux, osx, newer, _ = packages
    assert linux.distribution == "tool_linux-64-2.30-habcdef0_4"
    assert (linux.depends, linux.constrains) == (("__glibc >=2.17", "__unix"), ("other <3",))
    assert osx.name == "tool_osx-arm64"
    assert osx.depends == ("__unix",)
    assert (linux.hash_known, osx.hash_known) == (True, False)
    assert newer.depends[0] == "__glibc >=2.28"
    assert str(linux.source) == ("conda-forge/tool-feedstock@0123456789012345678901234567890123456789:recipe/meta.yaml")


def test_an_exact_pin_names_the_build_of_its_sibling(tmp_path: Path) -> None:
    first, second = read(
        tmp_path,
        """
  - {name: tool, source: recipe, subdirs: [linux-64], rows: [{version: "1.0", hash: abcdef0}]}
  - {name: tool-dev, source: recipe, subdirs: [linux-64], exact: [tool], rows: [{version: "1.0"}]}
""",
    )
    assert second.depends == (f"tool 1.0 {first.build}",)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{name: a, source: recipe, subdirs: [moon-64], rows: [{version: '1'}]}", "'moon-64' is not a subdir"),
        ("{name: a, source: other, subdirs: [linux-64], rows: [{version: '1'}]}", "there is no source 'other'"),
        ("{name: a, source: recipe, subdirs: [linux-64], rows: [{number: '1'}]}", "'version' is missing"),
        ("{name: a, source: recipe, rows: [{version: '1'}]}", "must have a list of subdirs"),
        ("{name: a, source: recipe, subdirs: [linux-64], rows: [{version: '1', depends: [b]}]}", "not in the file"),
        ("{name: a, source: recipe, subdirs: [linux-64], rows: [{version: '1', exact: [b]}]}", "no b 1 to pin"),
        ("{name: a, source: recipe, subdirs: [linux-64], rows: [{version: '1', depends: ['{x}']}]}", "uses 'x'"),
        (
            "{name: a, source: recipe, subdirs: [linux-64], rows: [{version: '1', depends: b}]}",
            "expected a list",
        ),
        ("{name: a, source: recipe, subdirs: [linux-64], rows: [{version: '1', role: king}]}", "'king' is not one of"),
        ("{name: a, source: recipe, subdirs: [linux-64], rows: [{version: '1', number: x}]}", "'x' has the wrong form"),
        (
            "{name: a, source: recipe, subdirs: [linux-64], rows: [{version: '1', run_exports: {odd: []}}]}",
            "unknown key 'odd' in 'run_exports'",
        ),
        ("{name: a, source: recipe, subdirs: [linux-64], rows: [{version: '1'}, {version: '1'}]}", "listed twice"),
        (
            "{name: a, source: recipe, subdirs: [linux-64], depend: [], rows: [{version: '1'}]}",
            "expected a string",
        ),
        ("{name: a, source: recipe, subdirs: [linux-64], depend: b, rows: [{version: '1'}]}", "'depend' is neither"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, row: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, f"  - {row}\n")


def test_all_mistakes_are_named_with_their_lines(tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        read(
            tmp_path,
            """
  - {name: a, source: other, subdirs: [linux-64], rows: [{version: "1"}]}
  - {name: b, source: recipe, subdirs: [moon-64], rows: [{version: "1"}]}
""",
        )
    assert [(mistake.line, mistake.message.split(" ")[0]) for mistake in raised.value.mistakes] == [
        (7, "a:"),
        (8, "b:"),
    ]
    with pytest.raises(InputError) as raised:
        read(
            tmp_path, "  - {rows: []}", sources="sources:\n  recipe: {feedstock: tool, commit: abc, date: 2024-02-29}\n"
        )
    assert [mistake.line for mistake in raised.value.mistakes] == [2, 5]


@pytest.mark.parametrize("content", [b"", b"[]", b"a: [", b"\xff\xfe\x00"])
def test_a_file_that_is_no_such_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "packages.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"packages\.yaml"):
        checked_packages(path)


def test_the_file_of_this_tool_has_no_mistake() -> None:
    packages = read_packages()

    assert all(package.name and package.version and package.build for package in packages)
    assert Counter(package.role for package in packages if package.role)["python"] >= 8
    assert not [name for name in packages_file().read_text().split() if name.startswith("http")]
