"""`lint` finds files that a recipe names and that are not there, and claims nothing of what it cannot know."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.check.linting.feedstocks import META, V1, feedstock, found_in, line_of

META = META.replace("build:\n  number: 1\n", "source:\n  path: ../code\nbuild:\n  number: 1\n")
V1 = V1.replace("build:\n  number: 1\n", "source:\n  path: ../code\nbuild:\n  number: 1\n", 1)


def missing(folder: Path, recipe: str, *files: str) -> list[tuple[int, str, str]]:
    """The lines, messages and weights of what is missing in a feedstock with these files besides."""
    feedstock(folder, recipe)
    for name in ("code/setup.py", *files):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return [(each.line, each.message, each.weight) for each in found_in(folder) if each.rule == "missing-file"]


@pytest.mark.parametrize(
    ("recipe", "old", "new", "at", "message", "weight"),
    [
        (META, "path: ../code", "path: ../cod", "../cod", "there is no source '../cod'", "mistake"),
        (
            META,
            "  path: ../code\n",
            "  - url: https://example.org/a.tar.gz\n    patches:\n      - fix.patch\n",
            "fix.patch",
            "there is no patch 'fix.patch'. Did you mean 'patches/fix.patch'?",
            "mistake",
        ),
        (
            META,
            "script: tools.sh",
            "script: tool.sh",
            "tool.sh",
            "there is no script 'tool.sh'. Did you mean",
            "mistake",
        ),
        (
            META,
            "    test:\n      commands:\n        - demo --help",
            "    test:\n      files:\n        - data/{{ version }}.txt\n      script: run.sh",
            "data/",
            "there is no test file 'data/1.2.txt'",
            "remark",
        ),
        (
            META,
            "license_file: LICENSE",
            "license_file: COPYING",
            "COPYING",
            "there is no license file 'COPYING'",
            "mistake",
        ),
        (
            META,
            "license_file: LICENSE",
            "license_file: {{ RECIPE_DIR }}/License",
            "RECIPE_DIR",
            "there is no license file 'License'. Did you mean 'LICENSE'?",
            "remark",
        ),
        (V1, "path: ../code", "path: ../cod", "../cod", "there is no source '../cod'", "mistake"),
        (
            V1,
            "  path: ../code\n",
            "  path: ../code\n  patches:\n    - if: linux\n      then:\n        - fix.patch\n",
            "fix.patch",
            "there is no patch 'fix.patch'",
            "mistake",
        ),
        (V1, "script: build.sh", "script: bild.sh", "bild.sh", "there is no script 'bild.sh'. Did you mean", "mistake"),
        (V1, "script: build.sh", "script:\n        file: bild", "file: bild", "there is no script 'bild'", "mistake"),
        (
            V1,
            "      - script:\n          - demo --help\n",
            "      - script: test.py\n        files:\n          recipe:\n            - data/*.txt\n",
            "data/",
            "there is no test file 'data/*.txt'",
            "remark",
        ),
        (
            V1,
            "license_file: LICENSE",
            "license_file: COPYING",
            "COPYING",
            "there is no license file 'COPYING'",
            "mistake",
        ),
    ],
)
def test_a_file_that_is_not_there_is_found(
    tmp_path: Path, recipe: str, old: str, new: str, at: str, message: str, weight: str
) -> None:
    assert old in recipe
    changed = recipe.replace(old, new)
    found = missing(tmp_path, changed, "recipe/patches/fix.patch", "recipe/test.py", "recipe/run.sh")
    assert [(line, each) for line, _, each in found] == [(line_of(changed, at), weight)]
    assert found[0][1].startswith(message)


@pytest.mark.parametrize(
    ("recipe", "old", "new"),
    [
        (META, "script: tools.sh", "script: tools.sh\n    script: tools.bat  # [win]"),
        (META, "script: tools.sh", "script: {{ cuda_compiler_version }}.sh"),
        (
            META,
            "script: tools.sh",
            "{% if win %}\n    script: tools.bat\n{% else %}\n    script: tools.sh\n{% endif %}",
        ),
        (META, "path: ../code", "path: ../../code"),
        (META, "path: ../code\n", "url: https://example.org/a.tar.gz\nabout:\n  license_file: COPYING\n"),
        (META, "license_file: LICENSE", "license_file:\n    - LICENSE\n    - setup.py"),
        (V1, "script: build.sh", "script: make"),
        (V1, "script: build.sh", "script:\n        - if: win\n          then: call tools.bat"),
        (V1, "script: build.sh", "script:\n        if: win\n        then: tools.bat\n        else: build.sh"),
        (V1, "path: ../code", "path: ../code\n  patches:\n    - if: osx\n      then: a.patch\n      else: build.sh"),
        (V1, "path: ../code", "path: ${{ folder }}"),
        (V1, "license_file: LICENSE", "license_file:\n    - setup.*"),
    ],
)
def test_what_is_there_or_may_be_there_is_not_claimed(tmp_path: Path, recipe: str, old: str, new: str) -> None:
    assert old in recipe
    assert missing(tmp_path, recipe.replace(old, new)) == []


def test_a_license_file_that_a_script_writes_is_not_missing(tmp_path: Path) -> None:
    recipe = META.replace("license_file: LICENSE", "license_file: THIRDPARTY.yml")
    (found,) = missing(tmp_path, recipe)
    assert found[1].startswith("there is no license file 'THIRDPARTY.yml'")
    (tmp_path / "recipe/build.sh").write_text("bundle --output THIRDPARTY.yml\n")
    assert [each for each in found_in(tmp_path) if each.rule == "missing-file"] == []
