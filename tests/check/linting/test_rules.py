"""Each rule of `lint` finds what its page says, at its line, and leaves alone what is right."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from feedstock_tools.check.linting.lint import RULES, lint_feedstock
from tests.check.linting.feedstocks import META, V1, feedstock, found_in

TOOLS_RUN = '      run:\n        - {{ pin_subpackage("libdemo", exact=True) }}\n  - name: demo\n'


@pytest.mark.parametrize("recipe", [META, V1], ids=["meta.yaml", "recipe.yaml"])
def test_a_recipe_that_is_right_has_no_finding(tmp_path: Path, recipe: str) -> None:
    assert found_in(feedstock(tmp_path, recipe)) == []


@pytest.mark.parametrize(
    ("old", "new", "rule", "at", "message"),
    [
        (
            '        - __cuda  # [cuda_compiler_version != "None"]\n',
            "",
            "ambiguous-builds",
            "- name: libdemo",
            "nothing keeps the CUDA build of libdemo off machines without a GPU",
        ),
        ("- zlib\n", "- zlib\n        - numpy  # [linux and win]\n", "dead-selector", "numpy", "can never be true"),
        ("- zlib\n", '- zlib\n        - numpy  # [py == "312"]\n', "dead-selector", "numpy", "can never be true"),
        ("- zlib\n", "- zlib\n        - numpy  # [zlib < 1]\n", "dead-selector", "numpy", "holds in no job"),
        ("- zlib\n", "- zlib\n        - numpy  # [windows]\n", "dead-selector", "numpy", "holds in no job"),
        (
            '"libdemo", exact=True) }}\nabout',
            '"libdemo") }}\nabout',
            "loose-metapackage",
            'pin_subpackage("libdemo") }}',
            "allows the builds of libdemo for every CUDA version and for CPU",
        ),
        (
            '{{ pin_subpackage("libdemo", exact=True) }}\nabout',
            "libdemo {{ version }} *_1\nabout",
            "loose-metapackage",
            "libdemo {{ version }} *_1",
            "'libdemo 1.2 *_1' fits the builds of libdemo for CPU and those for CUDA",
        ),
        ("  number: 1\n", "  number: 1\n  skip: true\n", "no-package", "skip: true", "skipped without a condition"),
        (
            TOOLS_RUN,
            "  - name: demo\n",
            "run-exports",
            "run_exports",
            "exports libdemo up to x.x",
        ),
        (
            '        - {{ pin_subpackage("libdemo", max_pin="x.x") }}\n',
            '        - {{ pin_subpackage("demolib", max_pin="x.x") }}\n',
            "run-exports",
            "demolib",
            "exports a pin on demolib, which is not an output",
        ),
        (
            "      run_exports:\n        - ",
            "      run_exports:\n        weak_constraints:\n          - ",
            "run-exports",
            "weak_constraints",
            "'weak_constraints' is not a kind of run exports",
        ),
        (
            "      host:\n        - zlib\n",
            "      run_exports:\n        - zlib\n      host:\n        - zlib\n",
            "run-exports",
            "      run_exports:\n        - zlib",
            "conda-build ignores run_exports below requirements",
        ),
        (
            "  - name: demo-tools\n",
            "  - name: demo-tools\n    noarch: generic\n",
            "unbuilt-pin",
            'pin_subpackage("libdemo", exact=True)',
            "demo-tools is noarch, but pins the build of libdemo for one platform of linux-64, osx-64",
        ),
    ],
)
def test_a_rule_finds_its_mistake(tmp_path: Path, old: str, new: str, rule: str, at: str, message: str) -> None:
    recipe = META.replace(old, new)
    assert recipe != META
    if message.startswith("exports libdemo up to"):  # a sibling that asks for less than what is exported
        recipe = META.replace(TOOLS_RUN, TOOLS_RUN.replace("exact=True", 'max_pin="x"'))
    subdirs = ("linux-64", "osx-64") if rule == "unbuilt-pin" else ("linux-64",)
    found = [each for each in found_in(feedstock(tmp_path, recipe, subdirs=subdirs)) if each.rule == rule]
    assert message in found[0].message
    at_line = recipe[: recipe.index(at)].count("\n") + 1
    assert found[0].line == at_line
    assert rule in RULES


def test_an_output_with_a_name_from_a_variable_is_known(tmp_path: Path) -> None:
    recipe = "{% set short = 'demo' %}\n" + META.replace("  - name: demo\n", "  - name: {{ short }}\n")
    recipe = recipe.replace('"libdemo", exact=True) }}\nabout', '"libdemo") }}\nabout')
    assert [each.rule for each in found_in(feedstock(tmp_path, recipe))] == ["loose-metapackage"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("- zlib\n", "- zlib\n        - if: linux and win\n          then: numpy\n", "can never be true"),
        (
            "- zlib\n",
            '- zlib\n        - if: cuda_compiler_version == "11.8"\n          then: numpy\n',
            "holds in no job",
        ),
        ("  number: 1\n", "  number: 1\n  skip: win and linux\n", "can never be true"),
    ],
)
def test_conditions_of_the_new_format_are_dead_too(tmp_path: Path, old: str, new: str, message: str) -> None:
    (found,) = found_in(feedstock(tmp_path, V1.replace(old, new, 1)))
    assert (found.rule, found.path) == ("dead-selector", "recipe/recipe.yaml")
    assert message in found.message


@pytest.mark.parametrize(
    "line",
    [
        "- numpy  # [win]",
        '- numpy  # [win and cuda_compiler_version != "None"]',
        '- numpy  # [cuda_compiler_version == "12.9" and osx]',
        "- numpy  # [not win or py < 0]",
        "- numpy  # [build_platform != target_platform]",
        '- numpy  # [environ.get("X") == "1"]',
    ],
)
def test_a_selector_for_a_platform_that_has_no_job_is_left_alone(tmp_path: Path, line: str) -> None:
    assert found_in(feedstock(tmp_path, META.replace("- zlib\n", f"- zlib\n        {line}\n"))) == []


def test_a_default_that_conda_build_needs_before_it_knows_of_variants_is_left_alone(tmp_path: Path) -> None:
    line = '{% set major = 0 %}  # [not cuda_compiler_version or cuda_compiler_version == "11.8"]\n'
    assert found_in(feedstock(tmp_path, line + META)) == []


def test_a_metapackage_for_several_builds_of_a_sibling_may_choose_by_pattern(tmp_path: Path) -> None:
    exact = '{{ pin_subpackage("libdemo", exact=True) }}\nabout'
    recipe = META.replace(exact, 'libdemo {{ version }} cuda*_1  # [cuda_compiler_version != "None"]\nabout')
    found = found_in(feedstock(tmp_path, recipe, cudas=("None", "12.9", "13.0")))
    assert [each.rule for each in found if each.rule == "loose-metapackage"] == []


def test_a_library_that_nothing_exports_is_found(tmp_path: Path) -> None:
    recipe = META.replace('      run_exports:\n        - {{ pin_subpackage("libdemo", max_pin="x.x") }}\n', "")
    recipe = recipe.replace(TOOLS_RUN, "  - name: demo\n")
    (found,) = found_in(feedstock(tmp_path, recipe))
    assert found.message == (
        "demo-tools is built with libdemo, but does not require it: nothing has a run export of libdemo"
    )
    assert found.rule == "run-exports"


def test_what_a_job_does_not_build_cannot_be_pinned(tmp_path: Path) -> None:
    skipped = META.replace(
        "    script: build.sh\n    build:\n", "    script: build.sh\n    build:\n      skip: true  # [osx]\n"
    )
    found = found_in(feedstock(tmp_path, skipped, subdirs=("linux-64", "osx-64")))
    assert {each.rule for each in found} == {"unbuilt-pin"}
    wrong = "demo pins its sibling libdemo, which osx_64_cuda12.9 does not build"
    assert wrong in {each.message for each in found}


def test_a_key_that_nothing_uses_is_found_in_its_file(tmp_path: Path) -> None:
    folder = feedstock(tmp_path)
    path = folder / ".ci_support/linux_64_cuda_compiler_version12.9.yaml"
    path.write_text("bzip2:\n- '1'\n" + path.read_text())
    (found,) = found_in(folder)
    assert (found.rule, found.path, found.line) == ("unused-key", f".ci_support/{path.name}", 1)
    (folder / "recipe/build.sh").write_text("echo $bzip2\n")
    assert found_in(folder) == []


@pytest.mark.parametrize(
    ("migration", "message"),
    [
        ("migrator_ts: 1\nopenssl:\n- '3'\n", "nothing here uses what this migration changes (openssl)"),
        ("migrator_ts: 1\nzlib:\n- '0.9'\n", "all jobs have a newer zlib than this migration brings: 1"),
        ("migrator_ts: 1\nzlib:\n- '1'\n", ""),
        ("migrator_ts: 1\nzlib:\n- '2'\n", ""),
    ],
)
def test_a_migration_without_effect_is_stale(tmp_path: Path, migration: str, message: str) -> None:
    folder = feedstock(tmp_path)
    (folder / ".ci_support/migrations/some.yaml").write_text(migration)
    assert [each.message for each in found_in(folder)] == ([message] if message else [])


def test_a_migration_that_the_pinning_no_longer_has_is_over(tmp_path: Path) -> None:

    pinning = tmp_path / "pinning"
    (pinning / "migrations").mkdir(parents=True)
    (pinning / "conda_build_config.yaml").write_text("zlib:\n- '1'\n")
    (tmp_path / "demo").mkdir()
    folder = feedstock(tmp_path / "demo")
    (folder / ".ci_support/migrations/zlib1.yaml").write_text("migrator_ts: 1\n__migrator: {}\nzlib:\n- '1'\n")
    (found,) = lint_feedstock(folder, pinning=pinning).findings
    assert (found.rule, found.path) == ("stale-migration", ".ci_support/migrations/zlib1.yaml")
    (pinning / "migrations/zlib1.yaml").write_text("migrator_ts: 1\nzlib:\n- '1'\n")
    assert lint_feedstock(folder, pinning=pinning).findings == ()


def test_an_export_finer_than_the_pinning_is_found(tmp_path: Path) -> None:

    (tmp_path / "demo").mkdir()
    (tmp_path / "pinning").mkdir()
    (tmp_path / "pinning/conda_build_config.yaml").write_text("libdemo:\n  - '1'\nzlib:\n  - '1'\n")
    (found,) = lint_feedstock(feedstock(tmp_path / "demo"), pinning=tmp_path / "pinning").findings
    assert found.message == "libdemo exports libdemo up to x.x, but the pinning builds for 1"


def test_a_recipe_that_only_some_jobs_cannot_render_names_them(tmp_path: Path) -> None:
    wrong = '{% set x = "a".encode() %}  # [osx]\n'
    found = found_in(feedstock(tmp_path, wrong + META, subdirs=("linux-64", "osx-64")))
    (finding,) = (each for each in found if each.rule == "not-rendered")
    assert (finding.path, finding.line) == ("recipe/meta.yaml", 1)
    jobs = "osx_64_cuda12.9 and 1 more"
    assert finding.message.startswith(f"cannot be rendered for {jobs}: the template ")


@pytest.mark.parametrize(
    ("recipe", "old", "new", "at", "message"),
    [
        (META, "  number: 1\n", "  number: 1\n  noarch: nonsense\n", 7, "build/noarch is 'nonsense'"),
        (META, "  number: 1\n", '  number: {{ "a".encode() }}\n', 6, "'encode' of a str is not available"),
        (META, '"{{ version }}"', "'{{ version'", 4, "the template is invalid: "),
        (META, '{% set version = "1.2" %}', "{% if version %}", 0, "the template is invalid: "),
        (META, "  number: 1\n", "  number: 1\n   skip: ]\n", 7, "rendered, it is not YAML: "),
        (META, META, "- demo\n", 1, "must be a mapping of sections"),
        (META, META, "", 1, "the recipe has no package/name"),
        (V1, "  number: 1\n", "  number: 1\n  noarch: nonsense\n", 9, "invalid noarch type 'nonsense'"),
        (V1, "version: ${{ version }}", "version: ${{ vision }}", 6, "undefined value"),
        (V1, "about:\n", "about:\n  license: MIT\n", 42, 'Duplicate key "license"'),
        (V1, "  version: ${{ version }}\n", "", 1, "version is required"),
        (V1, "build:\n", "build:\n   x: ]\n", 8, "is not YAML"),
    ],
)
def test_a_recipe_that_no_job_can_render_is_a_finding_and_what_needs_the_jobs_unknown(
    tmp_path: Path, recipe: str, old: str, new: str, at: int, message: str
) -> None:
    feedstock(tmp_path, recipe)
    path = tmp_path / "recipe" / ("meta.yaml" if recipe == META else "recipe.yaml")
    path.write_text(recipe.replace(old, new, 1))
    report = lint_feedstock(tmp_path)
    (finding,) = (each for each in report.findings if each.rule == "not-rendered")
    assert (finding.path, finding.line) == (f"recipe/{path.name}", at or finding.line)
    assert message in finding.message
    verdicts = {check.name: str(check.verdict) for check in report.checks}
    assert [verdicts[name] for name in ("not-rendered", "unused-key", "colliding-packages")] == [
        "wrong",
        "unknown",
        "unknown",
    ]


def test_a_recipe_that_cannot_be_read_is_a_finding_before_the_first_rerender_too(tmp_path: Path) -> None:
    shutil.rmtree(feedstock(tmp_path, META.replace("  number: 1\n", "  number: {{ 1 / 0 }}\n")) / ".ci_support")
    (finding,) = (each for each in lint_feedstock(tmp_path).findings if each.rule == "not-rendered")
    assert (finding.path, finding.line) == ("recipe/meta.yaml", 6)
    assert finding.message == "the template cannot be rendered: division by zero"


def test_rules_that_need_no_job_run_on_a_recipe_that_cannot_be_rendered(tmp_path: Path) -> None:
    recipe = META.replace("  number: 1\n", "  number: 1\n  noarch: nonsense\n").replace("license: MIT", "license: Mine")
    found = {each.rule for each in found_in(feedstock(tmp_path, recipe))}
    assert {"license", "noarch-value", "not-rendered"} <= found


def test_a_recipe_beyond_a_bound_is_unknown_and_not_wrong(tmp_path: Path) -> None:
    loop = "{% for x in range(99999) %}{% for y in range(9) %}{% endfor %}{% endfor %}\n"
    report = lint_feedstock(feedstock(tmp_path, loop + META))
    (check,) = (check for check in report.checks if check.name == "not-rendered")
    assert (str(check.verdict), check.reason) == ("unknown", "2 of 2 jobs cannot be rendered")


@pytest.mark.parametrize(("more", "count"), [("", 0), ("          then: numpy\n", 1)])
def test_a_package_for_all_platforms_that_requires_the_same_is_no_cuda_build(
    tmp_path: Path, more: str, count: int
) -> None:
    run = f'      run:\n        - if: cuda_compiler_version != "None"\n{more}' if more else ""
    stubs = (
        "  - package:\n      name: demo-stubs\n    build:\n      noarch: generic\n      script: stubs.sh\n"
        '    requirements:\n      host:\n        - if: cuda_compiler_version != "None"\n          then: zlib\n' + run
    )
    lines = found_in(feedstock(tmp_path, V1.replace("about:\n", stubs + "about:\n")))
    assert len([line for line in lines if "demo-stubs" in str(line) and "ambiguous" in str(line)]) == count
