"""The whole tree of a feedstock with the templates of a release; the release is a small one of our own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.rerender.rerendering import rerender
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.rerender.smithy.releases.release import chosen_rules, find_release
from tests.support import command
from tests.support.smithy_release import write_release

RECIPE = """
package:
  name: demo
  version: "1.0"
build:
  number: 0
  skip: true  # [win]
requirements:
  build:
    - {{ compiler('c') }}
about:
  summary: A demonstration
  license: MIT
extra:
  recipe-maintainers:
    - beta
    - conda-forge/alpha
"""
PINNING = "c_compiler:\n- gcc\nchannel_targets:\n- conda-forge main\ndocker_image:\n- an-image\n"
FORGE = "github_actions: {self_hosted: false}\n"
NEWEST = "2026.8.5"


@pytest.fixture
def release(tmp_path: Path) -> Path:
    return write_release(tmp_path / "release")


@pytest.fixture
def feedstock(tmp_path: Path) -> Path:
    return _write(tmp_path / "demo-feedstock", {"recipe/meta.yaml": RECIPE, "conda-forge.yml": FORGE})


def _write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def _rerender(feedstock: Path, release: Path, rules: str = NEWEST) -> None:
    pinning = feedstock.parent / "conda_build_config.yaml"
    pinning.write_text(PINNING)
    rerender(feedstock, pinning=pinning, rules=Rules.parse(rules), smithy=find_release(release)).changes().apply()


def _files(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "recipe" not in path.relative_to(folder).parts
    }


def test_every_file_that_the_release_has_is_written(feedstock: Path, release: Path) -> None:
    _rerender(feedstock, release)
    assert list(_files(feedstock)) == [
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
    _write(feedstock, {"recipe/yum_requirements.txt": "# comment\nmesa\n\nxorg\n"})
    _rerender(feedstock, release)
    files = _files(feedstock)
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
    _rerender(feedstock, release)
    executable = {name for name in _files(feedstock) if os.access(feedstock / name, os.X_OK)}
    assert executable == {
        ".scripts/build_steps.sh",
        ".scripts/logging_utils.sh",
        ".scripts/run_docker_build.sh",
        ".scripts/run_osx_build.sh",
        "build-locally.py",
    }


def test_older_versions_have_other_modes_and_no_final_line_break(feedstock: Path, release: Path) -> None:
    _rerender(feedstock, release, "3.50.1")
    assert (feedstock / ".scripts/run_docker_build.sh").read_text() == "docker with BINSTAR_TOKEN"
    assert os.access(feedstock / ".azure-pipelines/azure-pipelines-osx.yml", os.X_OK)
    assert not os.access(feedstock / ".scripts/logging_utils.sh", os.X_OK)


def test_a_second_rerender_changes_nothing(feedstock: Path, release: Path) -> None:
    _rerender(feedstock, release)
    before = _files(feedstock)
    pinning = feedstock.parent / "conda_build_config.yaml"
    again = rerender(feedstock, pinning=pinning, rules=Rules.parse(NEWEST), smithy=find_release(release))
    assert not again.changes()
    assert _files(feedstock) == before


def test_a_platform_that_moves_to_another_provider_leaves_no_jobs_behind(feedstock: Path, release: Path) -> None:
    _rerender(feedstock, release)
    (feedstock / "conda-forge.yml").write_text("provider: {osx_64: github_actions}\n")
    _rerender(feedstock, release)
    files = _files(feedstock)
    assert not [name for name in files if "azure" in name]
    assert files[".github/workflows/conda-build.yml"].count("osx_64_") == 1
    assert not (feedstock / ".azure-pipelines").exists()


def test_where_nothing_is_built_the_readme_names_what_the_recipe_would_make(feedstock: Path, release: Path) -> None:
    (feedstock / "recipe/meta.yaml").write_text(RECIPE.replace("skip: true  # [win]", "skip: true"))
    _rerender(feedstock, release)
    files = _files(feedstock)
    assert files[".github/workflows/conda-build.yml"] == "name: nothing to do\n"
    assert "outputs demo\nfor \n" in files["README.md"]
    assert not [name for name in files if name.endswith("_.yaml")]


def test_files_under_skip_render_stay_as_they_are(feedstock: Path, release: Path) -> None:
    own = {"build-locally.py": "import feedstock_tools\n", "README.md": "my own\n", "LICENSE": "old\n"}
    _write(feedstock, {**own, "conda-forge.yml": "skip_render: [build-locally.py, README.md, LICENSE]\n"})
    _rerender(feedstock, release)
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
    _write(feedstock, dict.fromkeys(old, "old\n"))
    _rerender(feedstock, release)
    assert not [name for name in old if (feedstock / name).exists()]
    assert not (feedstock / ".drone").exists()


def test_the_readme_keeps_the_number_that_azure_gave_the_feedstock(feedstock: Path, release: Path) -> None:
    _write(
        feedstock, {"README.md": "[build](https://dev.azure.com/x/_build/latest?definitionId=4711&branchName=main)\n"}
    )
    _rerender(feedstock, release)
    assert "definitionId=4711\n" in (feedstock / "README.md").read_text()
    (feedstock / "conda-forge.yml").write_text("azure: {build_id: 12}\n")
    _rerender(feedstock, release)
    assert "definitionId=12\n" in (feedstock / "README.md").read_text()


def test_pixi_gets_its_file(feedstock: Path, release: Path) -> None:
    (feedstock / "conda-forge.yml").write_text("conda_install_tool: pixi\n")
    _rerender(feedstock, release)
    assert (feedstock / "pixi.toml").read_text() == (
        f"pixi 9.9.9 by {NEWEST} on ['linux-64', 'osx-64', 'win-64']\n"
        "{'python': '3.12.*', 'conda-build': '>=26.3', 'conda-forge-ci-setup': '4.*'}\n"
    )


def test_workflow_settings_bring_their_scripts(feedstock: Path, release: Path) -> None:
    (feedstock / "conda-forge.yml").write_text("workflow_settings: {pagefile_size: 8}\n")
    _rerender(feedstock, release)
    assert (feedstock / ".scripts/create_pagefile.sh").read_text() == "a page file\n"


@pytest.mark.parametrize(("provider", "rules"), [("azure", "2026.6.14"), ("github_actions", NEWEST)])
def test_scripts_of_workflow_settings_are_executable(feedstock: Path, release: Path, provider: str, rules: str) -> None:
    forge = f"workflow_settings: {{pagefile_size: 8}}\nprovider: {{linux_64: {provider}}}\n"
    (feedstock / "conda-forge.yml").write_text(forge)
    _rerender(feedstock, release, rules)
    assert os.access(feedstock / ".scripts/create_pagefile.sh", os.X_OK)


def test_scripts_that_only_azure_s_workflow_settings_require_are_not_executable(feedstock: Path, release: Path) -> None:
    forge = "workflow_settings: {pagefile_size: 8}\nprovider: {linux_64: azure}\n"
    (feedstock / "conda-forge.yml").write_text(forge)
    _rerender(feedstock, release)
    assert not os.access(feedstock / ".scripts/create_pagefile.sh", os.X_OK)
    assert os.access(feedstock / ".scripts/build_steps.sh", os.X_OK)


def test_a_template_of_the_feedstock_takes_the_place_of_the_release_s(feedstock: Path, release: Path) -> None:
    _write(feedstock, {"templates/README.md.tmpl": "my {{ package_name }}\n"})
    _rerender(feedstock, release)
    assert (feedstock / "README.md").read_text() == "my demo"


def test_the_feedstock_of_several_outputs_is_described_by_the_text_of_its_recipe(
    feedstock: Path, release: Path
) -> None:
    outputs = "outputs:\n  - name: libdemo\n    about: {summary: Its library}\n  - name: demo\nabout:"
    (feedstock / "recipe/meta.yaml").write_text(RECIPE.replace("about:", outputs))
    _rerender(feedstock, release)
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
    _write(feedstock, {"templates/other": "x"})
    (feedstock / "templates/README.md.tmpl").symlink_to("/etc/passwd")


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (_link_readme, "is a link"),
        (_link_scripts, "is a link"),
        (_unreadable_readme, "UTF-8"),
        (_linked_template, "cannot be used as a template"),
        (lambda folder: _write(folder, {"templates/README.md.tmpl": "{{ 1 / 0 }}"}), "cannot be rendered"),
        (lambda folder: _write(folder, {"templates/README.md.tmpl": "{% for %}"}), "cannot be rendered"),
        (
            lambda folder: _write(folder, {"templates/README.md.tmpl": "{{ ''.__class__ }}"}),
            r"unknown value \*\.__class__",
        ),
        (lambda folder: _write(folder, {"templates/README.md.tmpl": "{{ novelty }}"}), "unknown value novelty"),
        (lambda folder: _write(folder, {"templates/README.md.tmpl": "{{ docker.novelty }}"}), r"docker\.novelty"),
        (
            lambda folder: _write(
                folder, {"templates/README.md.tmpl": "{% for one in variants %}{{ one['novelty'] }}{% endfor %}"}
            ),
            r"unknown value \*\.novelty",
        ),
        (
            lambda folder: _write(folder, {"templates/README.md.tmpl": "{% for one in range(10**9) %}x{% endfor %}"}),
            "Range too big",
        ),
        (
            lambda folder: _write(
                folder, {"templates/README.md.tmpl": "{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}"}
            ),
            "recursion",
        ),
        (lambda folder: _write(folder, {"recipe/yum_requirements.txt": "# none\n"}), "names no package"),
        (lambda folder: (_write(folder, {"README.md": "x"}) / "README.md").chmod(0o444), "is read-only"),
        (lambda folder: _write(folder, {".scripts": "x"}), "is a file where a folder must be"),
        (lambda folder: _write(folder, {"conda-forge.yml": "azure: text\n"}), "azure"),
    ],
)
def test_what_cannot_be_used_is_refused_and_nothing_is_written(
    break_it: Callable[[Path], object], message: str, feedstock: Path, release: Path
) -> None:
    break_it(feedstock)
    before = sorted(path.relative_to(feedstock) for path in feedstock.rglob("*"))
    with pytest.raises(InputError, match=message):
        _rerender(feedstock, release)
    assert sorted(path.relative_to(feedstock) for path in feedstock.rglob("*")) == before


def test_windows_line_ends_become_those_of_the_release(feedstock: Path, release: Path) -> None:
    _rerender(feedstock, release)
    before = {path: path.read_bytes() for path in feedstock.rglob("*") if path.is_file()}
    for path, content in before.items():
        path.write_bytes(content.replace(b"\n", b"\r\n"))
    (feedstock / ".gitattributes").write_bytes(b"* text=auto eol=crlf\r\n")
    _rerender(feedstock, release)
    written = {
        path: content for path, content in before.items() if "recipe" not in path.parts and path.suffix != ".yml"
    }
    assert {path: path.read_bytes() for path in written} == written


def test_a_template_that_loops_is_ended_and_named(feedstock: Path, release: Path) -> None:
    loop = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    _write(feedstock, {"templates/README.md.tmpl": loop})
    run = _in_new_process(
        f"from feedstock_tools.bounds.limits import Bounds; bounds = Bounds(step_seconds=1)\n"
        f"rerender(Path({str(feedstock)!r}), smithy=find_release(Path({str(release)!r})), bounds=bounds)"
    )
    assert "BoundError" in run.stderr
    assert "templates/README.md.tmpl: takes more than 1 s of processor time" in run.stderr
    assert not (feedstock / ".ci_support").exists()


def test_a_newer_release_is_rendered_if_its_templates_want_nothing_new(feedstock: Path, release: Path) -> None:
    _write(release, {"info/index.json": '{"version": "2099.1.0"}'})
    found = find_release(release)
    rendered = rerender(feedstock, rules=chosen_rules(None, found), smithy=found)
    assert rendered.tree is not None
    assert "README.md" in rendered.tree.files
    assert "conda-smithy 2099.1.0 is newer than 2026.8.5" in (rendered.rules.note or "")
    template = release / "conda_smithy/templates/build_steps.sh.tmpl"
    template.write_text("{{ docker.novelty }} {{ later }}")
    with pytest.raises(InputError, match=r"unknown values docker\.novelty, later\n.*newer than all known ones"):
        rerender(feedstock, rules=chosen_rules(None, found), smithy=find_release(release))


def test_compiled_templates_are_kept_by_content_in_a_private_folder(
    feedstock: Path, release: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "templates"
    _rerender_in_new_process(feedstock, release, cache)
    assert cache.stat().st_mode & 0o777 == 0o700
    kept = {path.name: path for path in cache.iterdir()}
    assert {path.stat().st_mode & 0o777 for path in kept.values()} == {0o600}
    (release / "conda_smithy/templates/circle.yml.tmpl").write_text("changed\n")
    _rerender_in_new_process(feedstock, release, cache)
    assert (feedstock / ".circleci/config.yml").read_text() == "changed"
    assert len([path for path in cache.iterdir() if path.name not in kept]) == 2


def test_compiled_templates_that_others_could_have_written_are_not_run(
    feedstock: Path, release: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "templates"
    _rerender_in_new_process(feedstock, release, cache)
    expected = _files(feedstock)
    for path in cache.iterdir():
        path.write_bytes(path.read_bytes()[:-9] + b"\0" * 9)  # damaged
    _rerender_in_new_process(feedstock, release, cache)
    assert _files(feedstock) == expected
    cache.chmod(0o777)
    for path in cache.iterdir():
        path.write_bytes(b"")
    _rerender_in_new_process(feedstock, release, cache)
    assert _files(feedstock) == expected
    assert {path.stat().st_size for path in cache.iterdir()} == {0}, "a folder that others can write is left alone"


def _rerender_in_new_process(feedstock: Path, release: Path, cache: Path) -> None:
    run = _in_new_process(
        f"release = find_release(Path({str(release)!r}), cache=Path({str(cache)!r}))\n"
        f"rerender(Path({str(feedstock)!r}), smithy=release).changes().apply()"
    )
    assert run.returncode == 0, run.stderr


def _in_new_process(program: str) -> subprocess.CompletedProcess[str]:
    imports = (
        "from pathlib import Path\n"
        "from feedstock_tools.rerender.rerendering import rerender\n"
        "from feedstock_tools.rerender.smithy.releases.release import find_release\n"
    )
    return command.run([sys.executable, "-c", imports + program])


def test_a_folder_without_a_release_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a release of conda-smithy"):
        find_release(tmp_path)


@pytest.mark.parametrize("layout", [".", "site-packages", "lib/python3.12/site-packages"])
def test_a_release_is_found_in_a_package_and_in_an_environment(tmp_path: Path, layout: str) -> None:
    write_release(tmp_path / layout)
    assert find_release(tmp_path).constant("CONDA_FORGE_PIXI_VERSION") == "9.9.9"


def test_the_version_of_an_unpacked_package_counts(release: Path) -> None:
    _write(release, {"info/index.json": '{"name": "conda-smithy", "version": "3.50.1"}'})
    found = find_release(release)
    assert chosen_rules(None, found).smithy == "3.50.1"
    assert chosen_rules("3.50.1", found).smithy == "3.50.1"
    with pytest.raises(InputError, match=r"is conda-smithy 3\.50\.1, and --rules asks for 3\.51\.0"):
        chosen_rules("3.51.0", found)


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
