"""`feedstock-tools lint`: each rule finds its mistake, with the line, and nothing in a recipe that is right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from feedstock_tools.check.linting.lint import RULES, lint_feedstock
from feedstock_tools.check.linting.subject import LintFinding
from feedstock_tools.generate.generating import generate
from feedstock_tools.report.checks.linting import findings_sarif
from tests.support import command

RIGHT = """\
package:
  name: demo
  version: "1.2"
build:
  number: 1
  skip: true  # [py < 30]
outputs:
  - name: libdemo
    build:
      string: cuda{{ cuda_compiler_version | replace(".", "") }}_h{{ PKG_HASH }}_0  # [cuda_compiler_version != "None"]
      string: cpu_h{{ PKG_HASH }}_0  # [cuda_compiler_version == "None"]
    script: build.sh
    requirements:
      host:
        - zlib
        - numpy  # [linux]
      run:
        - cuda-version  # [cuda_compiler_version != "None"]
        - __cuda  # [cuda_compiler_version != "None"]
    test:
      commands:
        - test -f $PREFIX/lib/libdemo.so
  - name: demo
    requirements:
      run:
        - {{ pin_subpackage("libdemo", exact=True) }}
    test:
      commands:
        - demo --help
about:
  home: https://example.org/demo
  license: MIT
  license_file: LICENSE
  summary: A demo
extra:
  recipe-maintainers:
    - somebody
"""


def feedstock(folder: Path, recipe: str) -> Path:
    (folder / "recipe").mkdir()
    (folder / "recipe/meta.yaml").write_text(recipe)
    for name in ("build.sh", "LICENSE"):
        (folder / "recipe" / name).touch()
    (folder / ".ci_support").mkdir()
    for version in ("None", "12.9"):
        text = f"cuda_compiler_version:\n- '{version}'\npython:\n- 3.12.* *_cpython\ntarget_platform:\n- linux-64\n"
        (folder / f".ci_support/linux_64_cuda_compiler_version{version}.yaml").write_text(text)
    return folder


def line_of(recipe: str, text: str) -> int:
    return next(number for number, line in enumerate(recipe.splitlines(), 1) if text in line)


def test_a_recipe_that_is_right_has_no_finding(tmp_path: Path) -> None:
    assert lint_feedstock(feedstock(tmp_path, RIGHT)).findings == ()


@pytest.mark.parametrize(
    ("old", "new", "rule", "at"),
    [
        ("        - zlib\n", "        - zlib\n        - zlib  # again\n", "duplicate-requirement", "# again"),
        ("- numpy  # [linux]", '- numpy  # [cuda_compiler_version == "11.2"]', "dead-selector", "11.2"),
        ("- numpy  # [linux]", "- numpy  # [py < 38]", "dead-selector", "py < 38"),
        ("license: MIT", "license: MITT", "license", "MITT"),
        ("  license: MIT\n", "", "about-item", "about:"),
        ("  license_file: LICENSE\n", "", "license-file", "license: MIT"),
        ('pin_subpackage("libdemo", exact=True)', 'pin_subpackage("libdemo")', "loose-metapackage", "pin_subpackage"),
        ("skip: true  # [py < 30]", 'skip: true  # [cuda_compiler_version == "12.9"]', "no-package", "build:"),
    ],
)
def test_a_rule_finds_its_mistake(tmp_path: Path, old: str, new: str, rule: str, at: str) -> None:
    recipe = RIGHT.replace(old, new)
    assert recipe != RIGHT
    found = {each.rule: each for each in lint_feedstock(feedstock(tmp_path, recipe)).findings}
    assert rule in found
    assert found[rule].line == line_of(recipe, at)
    assert rule in RULES


def test_packages_of_two_jobs_with_one_name_collide(tmp_path: Path) -> None:
    recipe = RIGHT.replace('cuda{{ cuda_compiler_version | replace(".", "") }}_h{{ PKG_HASH }}_0', "same_0")
    recipe = recipe.replace("cpu_h{{ PKG_HASH }}_0", "same_0")
    found = [each for each in lint_feedstock(feedstock(tmp_path, recipe)).findings if each.rule == "colliding-packages"]
    assert found
    assert "two builds of libdemo-1.2-same_0 in " in found[0].message
    assert found[0].message.endswith(" differ in cuda_compiler_version")


def test_what_is_safe_is_mended(tmp_path: Path) -> None:
    folder = feedstock(tmp_path, RIGHT.replace("        - zlib\n", "        - zlib\n        - zlib\n"))
    shown = command.here("lint", str(folder), folder=tmp_path)
    assert shown.returncode == 1
    assert shown.stdout.endswith("1 finding, 1 of them mended by --fix.\n")
    mended = command.here("lint", str(folder), "--fix", folder=tmp_path)
    assert (mended.returncode, mended.stdout.splitlines()[1:]) == (0, ["No finding."])
    assert (folder / "recipe/meta.yaml").read_text() == RIGHT


def test_findings_are_shown_to_machines(tmp_path: Path) -> None:
    folder = feedstock(tmp_path, RIGHT.replace("license: MIT", 'license: "50% a:b"'))
    annotated = command.here("lint", str(folder), "--github", folder=tmp_path).stdout
    assert annotated.startswith(
        f"::notice title=feedstock-tools lint::3 of {len(RULES) - 1} checks could not be completed: "
    )
    assert annotated.splitlines()[1].startswith(
        "::warning file=recipe/meta.yaml,line=32,col=3,title=license::'50%25 a:b' is not"
    )
    (entry,) = json.loads(command.here("lint", str(folder), "--json", folder=tmp_path).stdout)["findings"]
    assert (entry["rule"], entry["line"]) == ("license", 32)
    log = json.loads(command.here("lint", str(folder), "--sarif", folder=tmp_path).stdout)
    ours = json.loads(json.dumps(findings_sarif(lint_feedstock(folder))))
    assert [run["results"] for run in log["runs"]] == [run["results"] for run in ours["runs"]]
    (noted,) = log["runs"][0]["invocations"][0]["toolExecutionNotifications"]
    assert noted["message"]["text"].startswith(
        f"3 of {len(RULES) - 1} checks could not be completed: redundant-python-min, run-exports, stale-migration"
    )
    assert log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"] == {
        "startLine": 32,
        "startColumn": 3,
    }


def test_a_requirement_that_no_selector_admits_is_removed(tmp_path: Path) -> None:
    dead = "        - bzip2  # [linux and win]\n"
    folder = feedstock(tmp_path, RIGHT.replace("        - zlib\n", f"        - zlib\n{dead}"))
    shown = command.here("lint", str(folder), folder=tmp_path)
    assert shown.stdout.endswith("1 finding, 1 of them mended by --fix.\n")
    mended = command.here("lint", str(folder), "--fix", folder=tmp_path)
    assert (mended.returncode, mended.stdout.splitlines()[1:]) == (0, ["No finding."])
    assert f"-{dead}" in mended.stderr
    assert (folder / "recipe/meta.yaml").read_text() == RIGHT


SPEC = """\
name: demo
version: 0.1.0  # the project has none that can be read
platforms: {linux-64: }
outputs:
  - {name: demo, kind: library, script: [make], test: {commands: ["true"]}}
about:
  homepage: https://example.org
  license: LicenseRef-Unknown
  license_file: LICENSE
  summary: The package demo
maintainers: [someone, someone-else]
"""


def _placeholders(folder: Path) -> list[str]:
    found = lint_feedstock(folder).findings
    return [f"{each.path}:{each.line}:{each.column}" for each in found if each.rule == "placeholder"]


@pytest.mark.parametrize("recipe_format", ["v0", "v1"])
def test_each_placeholder_of_init_is_found_in_the_spec_else_in_the_recipe(recipe_format: str, tmp_path: Path) -> None:
    (tmp_path / "feedstock.yaml").write_text(f"{SPEC}format: {recipe_format}\n")
    generate(tmp_path).apply()
    places = ["2:10", "7:13", "8:12", "10:12", "11:15"]
    assert _placeholders(tmp_path) == [f"feedstock.yaml:{place}" for place in places]

    (tmp_path / "feedstock.yaml").unlink()
    assert len(_placeholders(tmp_path)) == 4
    assert all(place.startswith("recipe/") for place in _placeholders(tmp_path))


def test_what_was_replaced_is_no_placeholder(tmp_path: Path) -> None:
    text = SPEC.replace("  # the project has none that can be read", "").replace(".org", ".org/demo")
    text = text.replace("LicenseRef-Unknown", "MIT").replace("The package demo", "Says hello").replace("[someone,", "[")
    (tmp_path / "feedstock.yaml").write_text(text)
    generate(tmp_path).apply()
    assert _placeholders(tmp_path) == []


@pytest.mark.parametrize(
    ("old", "new", "rule", "place", "message"),
    [
        ("kind: library", "kind: libary", "invalid-spec", (6, 24), "libary"),
        ("script: [make]", "script: bild.sh", "invalid-spec", (6, None), "bild.sh"),
        ("file: LICENSE", "file: NOPE", "missing-file", (10, None), "the sources have no file NOPE"),
        ("../../code", "../../cod", "missing-file", (4, None), "there is no folder ../../cod"),
    ],
)
def test_what_generate_or_plan_refuses_of_a_spec_is_a_mistake_at_its_place(
    old: str, new: str, rule: str, place: tuple[int, int | None], message: str, tmp_path: Path
) -> None:
    folder = tmp_path / "feedstock"
    for each in (folder, tmp_path / "code"):
        each.mkdir()
    (tmp_path / "code/LICENSE").touch()
    text = SPEC.replace("outputs:", "sources: [{path: ../../code}]\noutputs:")
    (folder / "feedstock.yaml").write_text(text)
    generate(folder).apply()

    def found() -> list[LintFinding]:
        return [each for each in lint_feedstock(folder).findings if each.rule in {"invalid-spec", "missing-file"}]

    assert found() == []
    assert old in text
    (folder / "feedstock.yaml").write_text(text.replace(old, new))
    (finding,) = found()
    assert (finding.path, finding.line, finding.rule) == ("feedstock.yaml", place[0], rule)
    assert place[1] in (None, finding.column)
    assert message in finding.message
    assert finding.weight == "mistake"
    lint = command.here("lint", str(folder))
    assert lint.returncode == 1
    assert finding.message in lint.stdout
    refused = [command.here(name, str(folder)).stderr for name in ("generate", "plan")]
    assert any(
        f"{folder / finding.path}:{finding.line}:{finding.column}: {finding.message}" in each for each in refused
    )
