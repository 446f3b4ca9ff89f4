"""The whole tree of a feedstock with the templates of a release; the release is a small one of our own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.rerender.rerendering import rerender
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.rerender.smithy import find_release
from tests.support import command
from tests.support.whole_tree import (
    NEWEST,
    PINNING,
    RECIPE,
    contents,
    in_new_process,
    render_tree,
    write_files,
)


def test_every_file_that_the_release_has_is_written(feedstock: Path, release: Path) -> None:
    render_tree(feedstock, release)
    assert list(contents(feedstock)) == [
        ".azure-pipelines/azure-pipelines-osx.yml",
        ".ci_support/README",
        ".ci_support/linux_64_.yaml",
        ".ci_support/osx_64_.yaml",
        ".circleci/config.yml",
        ".github/CODEOWNERS",
        ".github/workflows/conda-build.yml",
        ".gitignore",
        ".scripts/build_steps.sh",
        ".scripts/logging_utils.sh",
        ".scripts/run_docker_build.sh",
        ".scripts/run_osx_build.sh",
        "LICENSE.txt",
        "README.md",
        "azure-pipelines.yml",
        "build-locally.py",
        "conda-forge.yml",
    ]


def test_templates_see_what_conda_smithy_gives_them(feedstock: Path, release: Path) -> None:
    write_files(feedstock, {"recipe/yum_requirements.txt": "# comment\nmesa\n\nxorg\n"})
    render_tree(feedstock, release)
    files = contents(feedstock)
    assert files[".github/workflows/conda-build.yml"] == (
        "jobs of Penguin on ['push', 'pull_request']\n- linux_64_ on ubuntu ['ubuntu-latest'] upload True\n"
    )
    assert files[".scripts/build_steps.sh"] == (
        "source run_conda_forge_build_setup\n# packages of the system\nfetch mesa xorg\n"
        "python=3.12 conda-build ['conda-forge-ci-setup=4', '\"conda-build>=26.3\"']\n"
    )
    assert files[".scripts/run_docker_build.sh"] == "docker with BINSTAR_TOKEN\n"
    assert files["README.md"] == (
        "About demo\n## demo: A demonstration\noutputs demo\nfor linux_64_ osx_64_\n"
        "https://dev.azure.com/?definitionId=None\nconda config --add channels conda-forge\n"
        "beta at https://github.com/beta/ "
        "conda-forge/alpha at https://github.com/orgs/conda-forge/teams/alpha/ "
    )
    assert files[".github/CODEOWNERS"] == "* @beta @conda-forge/alpha"
    assert files["LICENSE.txt"] == "a license\n"
    assert files[".azure-pipelines/azure-pipelines-osx.yml"].startswith(
        "osx\n  pool:\n    vmImage: $(VMIMAGE)\n  strategy:\n    matrix:\n      osx_64_:\n        CONFIG: osx_64_\n"
    )


def test_scripts_are_executable_and_other_files_are_not(feedstock: Path, release: Path) -> None:
    render_tree(feedstock, release)
    executable = {name for name in contents(feedstock) if os.access(feedstock / name, os.X_OK)}
    assert executable == {
        ".scripts/build_steps.sh",
        ".scripts/logging_utils.sh",
        ".scripts/run_docker_build.sh",
        ".scripts/run_osx_build.sh",
        "build-locally.py",
    }


def test_files_opened_in_place_keep_their_modes_and_files_made_anew_are_not_executable(
    feedstock: Path, release: Path
) -> None:
    render_tree(feedstock, release)
    for name in contents(feedstock):
        (feedstock / name).chmod(0o755)
    render_tree(feedstock, release)
    plain = {name for name in contents(feedstock) if not os.access(feedstock / name, os.X_OK)}
    assert plain == {
        ".azure-pipelines/azure-pipelines-osx.yml",
        ".ci_support/README",
        ".ci_support/linux_64_.yaml",
        ".ci_support/osx_64_.yaml",
        ".circleci/config.yml",
        ".github/workflows/conda-build.yml",
        ".gitignore",
        "LICENSE.txt",
    }


def test_older_versions_have_other_modes_and_no_final_line_break(feedstock: Path, release: Path) -> None:
    render_tree(feedstock, release, "3.50.1")
    assert (feedstock / ".scripts/run_docker_build.sh").read_text() == "docker with BINSTAR_TOKEN"
    assert os.access(feedstock / ".azure-pipelines/azure-pipelines-osx.yml", os.X_OK)
    assert not os.access(feedstock / ".scripts/logging_utils.sh", os.X_OK)


def test_a_second_rerender_changes_nothing(feedstock: Path, release: Path) -> None:
    render_tree(feedstock, release)
    before = contents(feedstock)
    pinning = feedstock.parent / "conda_build_config.yaml"
    again = rerender(feedstock, pinning=pinning, rules=Rules.parse(NEWEST), smithy=find_release(release))
    assert not again.changes()
    assert contents(feedstock) == before


def test_a_platform_that_moves_to_another_provider_leaves_no_jobs_behind(feedstock: Path, release: Path) -> None:
    render_tree(feedstock, release)
    (feedstock / "conda-forge.yml").write_text("provider: {osx_64: github_actions}\n")
    render_tree(feedstock, release)
    files = contents(feedstock)
    assert not [name for name in files if "azure" in name]
    assert files[".github/workflows/conda-build.yml"].count("osx_64_") == 1
    assert not (feedstock / ".azure-pipelines").exists()


def test_where_nothing_is_built_the_readme_names_what_the_recipe_would_make(feedstock: Path, release: Path) -> None:
    (feedstock / "recipe/meta.yaml").write_text(RECIPE.replace("skip: true  # [win]", "skip: true"))
    render_tree(feedstock, release)
    files = contents(feedstock)
    assert files[".github/workflows/conda-build.yml"] == "name: nothing to do\n"
    assert "outputs demo\nfor \n" in files["README.md"]
    assert not [name for name in files if name.endswith("_.yaml")]


V1_OUTPUT_SKIPPED = """\
recipe: {name: demo-split, version: '1'}
outputs:
  - package: {name: demo}
    build: {skip: win}
extra: {recipe-maintainers: [me]}
"""


def test_where_only_outputs_are_skipped_conda_smithy_takes_the_whole_recipe_for_a_job(
    feedstock: Path, release: Path
) -> None:
    (feedstock / "recipe/meta.yaml").unlink()
    write_files(feedstock, {"recipe/recipe.yaml": V1_OUTPUT_SKIPPED})
    write_files(feedstock, {"conda-forge.yml": "conda_build_tool: rattler-build\n"})
    render_tree(feedstock, release)
    assert (feedstock / ".ci_support/win_64_.yaml").is_file()
    write_files(feedstock, {"recipe/recipe.yaml": "build: {skip: win}\n" + V1_OUTPUT_SKIPPED})
    render_tree(feedstock, release)
    assert not (feedstock / ".ci_support/win_64_.yaml").exists()
    write_files(feedstock, {"recipe/recipe.yaml": V1_OUTPUT_SKIPPED.replace("win", "true")})
    write_files(feedstock, {"recipe/recipe.yaml": "build: {skip: true}\n" + V1_OUTPUT_SKIPPED})
    render_tree(feedstock, release)
    assert sorted(path.name for path in (feedstock / ".ci_support").iterdir()) == ["README"]
    assert (feedstock / ".github/CODEOWNERS").read_text() == "* @me"


def test_files_under_skip_render_stay_as_they_are(feedstock: Path, release: Path) -> None:
    own = {"build-locally.py": "import feedstock_tools\n", "README.md": "my own\n", "LICENSE": "old\n"}
    write_files(feedstock, {**own, "conda-forge.yml": "skip_render: [build-locally.py, README.md, LICENSE]\n"})
    render_tree(feedstock, release)
    assert {name: (feedstock / name).read_text() for name in own} == own


def test_files_that_conda_smithy_once_wrote_go(feedstock: Path, release: Path) -> None:
    old = (
        "circle.yml",
        "LICENSE",
        ".github/workflows/automerge.yml",
        ".travis.yml",
        "pixi.toml",
        ".drone/build_steps.sh",
    )
    write_files(feedstock, dict.fromkeys(old, "old\n"))
    render_tree(feedstock, release)
    assert not [name for name in old if (feedstock / name).exists()]
    assert not (feedstock / ".drone").exists()


def test_the_readme_keeps_the_number_that_azure_gave_the_feedstock(feedstock: Path, release: Path) -> None:
    write_files(
        feedstock, {"README.md": "[build](https://dev.azure.com/x/_build/latest?definitionId=4711&branchName=main)\n"}
    )
    render_tree(feedstock, release)
    assert "definitionId=4711\n" in (feedstock / "README.md").read_text()
    (feedstock / "conda-forge.yml").write_text("azure: {build_id: 12}\n")
    render_tree(feedstock, release)
    assert "definitionId=12\n" in (feedstock / "README.md").read_text()


def test_pixi_gets_its_file(feedstock: Path, release: Path) -> None:
    (feedstock / "conda-forge.yml").write_text("conda_install_tool: pixi\n")
    render_tree(feedstock, release)
    assert (feedstock / "pixi.toml").read_text() == (
        f"pixi 9.9.9 by {NEWEST} on ['linux-64', 'osx-64', 'win-64']\n"
        "{'python': '3.12.*', 'conda-build': '>=26.3', 'conda-forge-ci-setup': '4.*'}\n"
    )


def test_workflow_settings_bring_their_scripts(feedstock: Path, release: Path) -> None:
    (feedstock / "conda-forge.yml").write_text("workflow_settings: {pagefile_size: 8}\n")
    render_tree(feedstock, release)
    assert (feedstock / ".scripts/create_pagefile.sh").read_text() == "a page file\n"


@pytest.mark.parametrize(("provider", "rules"), [("azure", "2026.6.14"), ("github_actions", NEWEST)])
def test_scripts_of_workflow_settings_are_executable(feedstock: Path, release: Path, provider: str, rules: str) -> None:
    forge = f"workflow_settings: {{pagefile_size: 8}}\nprovider: {{linux_64: {provider}}}\n"
    (feedstock / "conda-forge.yml").write_text(forge)
    render_tree(feedstock, release, rules)
    assert os.access(feedstock / ".scripts/create_pagefile.sh", os.X_OK)


def test_scripts_that_only_azure_s_workflow_settings_require_are_not_executable(feedstock: Path, release: Path) -> None:
    forge = "workflow_settings: {pagefile_size: 8}\nprovider: {linux_64: azure}\n"
    (feedstock / "conda-forge.yml").write_text(forge)
    render_tree(feedstock, release)
    assert not os.access(feedstock / ".scripts/create_pagefile.sh", os.X_OK)
    assert os.access(feedstock / ".scripts/build_steps.sh", os.X_OK)


def test_a_template_of_the_feedstock_takes_the_place_of_the_release_s(feedstock: Path, release: Path) -> None:
    write_files(feedstock, {"templates/README.md.tmpl": "my {{ package_name }}\n"})
    render_tree(feedstock, release)
    assert (feedstock / "README.md").read_text() == "my demo"


def test_the_feedstock_of_several_outputs_is_described_by_the_text_of_its_recipe(
    feedstock: Path, release: Path
) -> None:
    outputs = "outputs:\n  - name: libdemo\n    about: {summary: Its library}\n  - name: demo\nabout:"
    (feedstock / "recipe/meta.yaml").write_text(RECIPE.replace("about:", outputs))
    render_tree(feedstock, release)
    text = (feedstock / "README.md").read_text()
    assert "## demo: A demonstration\n## libdemo: Its library\n" in text
    assert "outputs demo, libdemo\n" in text


def _link_readme(feedstock: Path) -> None:
    (feedstock / "README.md").symlink_to(feedstock.parent / "elsewhere")


def _link_scripts(feedstock: Path) -> None:
    (feedstock.parent / "scripts").mkdir()
    (feedstock / ".scripts").symlink_to(feedstock.parent / "scripts")


def _unreadable_readme(feedstock: Path) -> None:
    (feedstock / "README.md").write_bytes(b"\xff\xfe definitionId")


def _linked_template(feedstock: Path) -> None:
    write_files(feedstock, {"templates/other": "x"})
    (feedstock / "templates/README.md.tmpl").symlink_to("/etc/passwd")


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (_link_readme, "is a link"),
        (_link_scripts, "is a link"),
        (_unreadable_readme, "UTF-8"),
        (_linked_template, "cannot be used as a template"),
        (lambda folder: write_files(folder, {"templates/README.md.tmpl": "{{ 1 / 0 }}"}), "cannot be rendered"),
        (lambda folder: write_files(folder, {"templates/README.md.tmpl": "{% for %}"}), "cannot be rendered"),
        (
            lambda folder: write_files(folder, {"templates/README.md.tmpl": "{{ ''.__class__ }}"}),
            r"unknown value \*\.__class__",
        ),
        (lambda folder: write_files(folder, {"templates/README.md.tmpl": "{{ novelty }}"}), "unknown value novelty"),
        (lambda folder: write_files(folder, {"templates/README.md.tmpl": "{{ docker.novelty }}"}), r"docker\.novelty"),
        (
            lambda folder: write_files(
                folder, {"templates/README.md.tmpl": "{% for one in variants %}{{ one['novelty'] }}{% endfor %}"}
            ),
            r"unknown value \*\.novelty",
        ),
        (
            lambda folder: write_files(
                folder, {"templates/README.md.tmpl": "{% for one in range(10**9) %}x{% endfor %}"}
            ),
            "Range too big",
        ),
        (
            lambda folder: write_files(
                folder, {"templates/README.md.tmpl": "{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}"}
            ),
            "recursion",
        ),
        (lambda folder: write_files(folder, {"recipe/yum_requirements.txt": "# none\n"}), "names no package"),
        (lambda folder: (write_files(folder, {"README.md": "x"}) / "README.md").chmod(0o444), "is read-only"),
        (lambda folder: write_files(folder, {".scripts": "x"}), "is a file where a folder must be"),
        (lambda folder: write_files(folder, {"conda-forge.yml": "azure: text\n"}), "azure"),
    ],
)
def test_what_cannot_be_used_is_refused_and_nothing_is_written(
    break_it: Callable[[Path], object], message: str, feedstock: Path, release: Path
) -> None:
    break_it(feedstock)
    before = sorted(path.relative_to(feedstock) for path in feedstock.rglob("*"))
    with pytest.raises(InputError, match=message):
        render_tree(feedstock, release)
    assert sorted(path.relative_to(feedstock) for path in feedstock.rglob("*")) == before


def test_windows_line_ends_become_those_of_the_release(feedstock: Path, release: Path) -> None:
    render_tree(feedstock, release)
    before = {path: path.read_bytes() for path in feedstock.rglob("*") if path.is_file()}
    for path, content in before.items():
        path.write_bytes(content.replace(b"\n", b"\r\n"))
    (feedstock / ".gitattributes").write_bytes(b"* text=auto eol=crlf\r\n")
    render_tree(feedstock, release)
    written = {
        path: content for path, content in before.items() if "recipe" not in path.parts and path.suffix != ".yml"
    }
    assert {path: path.read_bytes() for path in written} == written


def test_a_template_that_loops_is_ended_and_named(feedstock: Path, release: Path) -> None:
    loop = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    write_files(feedstock, {"templates/README.md.tmpl": loop})
    run = in_new_process(
        f"from feedstock_tools.bounds.limits import Bounds; bounds = Bounds(step_seconds=0.5)\n"
        f"rerender(Path({str(feedstock)!r}), smithy=find_release(Path({str(release)!r})), bounds=bounds)"
    )
    assert "BoundError" in run.stderr
    assert "templates/README.md.tmpl: takes more than 0.5 s of processor time" in run.stderr
    assert not (feedstock / ".ci_support").exists()


def test_the_command_writes_the_tree_and_says_what_it_lacks_without_a_release(feedstock: Path, release: Path) -> None:
    pinning = feedstock.parent / "conda_build_config.yaml"
    pinning.write_text(PINNING)
    words = ("rerender", str(feedstock), "--pinning", str(pinning))
    first = command.run(command.tool(*words, "--smithy", str(release)), feedstock)
    assert (first.returncode, (feedstock / "README.md").is_file()) == (0, True), first.stderr
    check = command.run(command.tool(*words, "--smithy", str(release), "--check"), feedstock)
    assert check.returncode == 0, check.stdout
    (feedstock / "conda-forge.yml").write_text("provider: {osx_64: github_actions}\n")
    without = command.run(command.tool(*words), feedstock)
    assert "get it with 'feedstock-tools smithy fetch 2026.8.5', or give a release with --smithy DIR" in without.stderr
