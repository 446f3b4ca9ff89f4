"""`feedstock-tools edit`: several edits in one call, shown first, then written, then committed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import command
from tests.support.pinnings import write_pinning

RECIPE = """\
# A recipe with a history
{% set version = "1.2" %}

package:
  name: demo
  version: {{ version }}

source:
  url: https://example.org/demo-{{ version }}.tar.gz
  sha256: AAAA

build:
  number: 3
  skip: true  # [py<39]

requirements:
  build:
    - {{ compiler('cuda') }}  # [cuda_compiler_version != "None"]
  host:
    - python
    - numpy      # keep in step with pyproject.toml
  run:
    - python
    - numpy
    - scipy

about:
  license: MIT

extra:
  recipe-maintainers:
    - anna
    - zoe
""".replace("AAAA", "a" * 64)
VARIANTS = """\
cuda_compiler_version:
  - None
  - 12.9  # [linux]
cuda_compiler:
  - None
  - cuda-nvcc  # [linux]
zip_keys:
  -
    - cuda_compiler
    - cuda_compiler_version
"""
SPEC = f"""\
name: demo
version: 1.0.0
sources: [{{url: https://example.org/demo.tar.gz, sha256: {"a" * 64}}}]
platforms: {{linux-64: }}
python: [3.12]
outputs:
  - name: demo
    kind: python
    script: {{template: pip}}
    requirements: {{host: [pip, setuptools]}}
    test: {{imports: [demo]}}
about: {{homepage: https://example.org, license: MIT, license_file: LICENSE, summary: A demo}}
maintainers: [anna]
"""
UNREACHABLE = """\
from feedstock_tools.channel import fetching
from feedstock_tools.errors import WorkError

def fetch_package(*words):
    raise WorkError("no network")

fetching.fetch_package = fetch_package
"""
MIGRATION = """\
migrator_ts: 1755016036
__migrator:
  primary_key: cuda_compiler_version
  ordering:
    cuda_compiler_version: [12.9, None, "13.0"]
cuda_compiler_version:
  - "13.0"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "recipe").mkdir()
    (tmp_path / "recipe/meta.yaml").write_text(RECIPE)
    (tmp_path / "conda-forge.yml").write_text("bot:\n  automerge: true\ntest: native\n")
    return tmp_path


def edit(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return command.run(command.tool("edit", *words), folder)


def unpinned(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """An edit of versions with no pinning, and meant so."""
    return edit(folder, *words, "--pinning", "none")


def recipe(folder: Path) -> str:
    return (folder / "recipe/meta.yaml").read_text()


def pinning(folder: Path) -> Path:
    return write_pinning(folder / "pinning/recipe", "python:\n  - 3.12\n", cuda130=MIGRATION).parent


def test_edits_are_shown_and_not_written(folder: Path) -> None:
    shown = edit(folder, "version", "1.3", "--sha256", "b" * 64, "maintainer", "add", "berta")
    assert shown.returncode == 0
    changed = [line for line in shown.stdout.splitlines() if line[:1] in "+-" and line[:3] not in {"+++", "---"}]
    assert changed == [
        '-{% set version = "1.2" %}',
        '+{% set version = "1.3" %}',
        f"-  sha256: {'a' * 64}",
        f"+  sha256: {'b' * 64}",
        "-  number: 3",
        "+  number: 0",
        "+    - berta",
    ]
    assert shown.stderr == "would change recipe/meta.yaml; --write does\n"
    assert recipe(folder) == RECIPE


def test_edits_are_written_line_by_line(folder: Path) -> None:
    words = ["requirement", "pin", "numpy >=2", "requirement", "drop", "scipy", "build-number", "+1", "--write"]
    assert edit(folder, *words).returncode == 0
    expected = RECIPE.replace("- numpy      #", "- numpy >=2      #").replace("- numpy\n", "- numpy >=2\n")
    assert recipe(folder) == expected.replace("    - scipy\n", "").replace("number: 3", "number: 4")


def test_an_edit_of_maintainers_knows_nothing_of_rerenders(folder: Path) -> None:
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    variables = command.environment(
        **{f"GIT_{who}_{what}": "demo@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    )
    tell = "import atexit, sys; atexit.register(lambda: print(*sorted(sys.modules), file=sys.stderr))"
    words = ("edit", "maintainer", "add", "berta", "--write", "--commit")
    run = command.run(command.patched(tell, *words), folder, variables)
    assert run.returncode == 0, run.stderr
    loaded = set(run.stderr.splitlines()[-1].split())
    assert "feedstock_tools.files.changes" in loaded
    assert not {name for name in loaded if name.startswith("feedstock_tools.rerender")}


def test_what_a_killed_edit_left_is_removed_by_the_next_one_though_nothing_is_left_to_change(folder: Path) -> None:
    program = "from feedstock_tools.files.temporary import owned_name; print(owned_name())"
    left = folder / subprocess.check_output([sys.executable, "-c", program], text=True).strip()
    left.mkdir()
    (left / "0.old").write_text(RECIPE)
    assert edit(folder, "build-number", "3").returncode == 0
    assert left.exists()
    assert edit(folder, "build-number", "3", "--write").stderr == "nothing to change\n"
    assert not left.exists()


def test_a_requirement_is_added_where_it_is_asked_for(folder: Path) -> None:
    for section, condition in (("host", "linux"), ("run_constrained", "win")):
        words = ("requirement", "add", "libdemo >=1", "--section", section, "--if", condition, "--write")
        assert edit(folder, *words).returncode == 0
    assert "pyproject.toml\n    - libdemo >=1  # [linux]\n  run:" in recipe(folder)
    assert "    - scipy\n  run_constrained:\n    - libdemo >=1  # [win]\n" in recipe(folder)


@pytest.mark.parametrize(
    ("message", "subject"),
    [
        ([], "Drop maintainer zoe"),
        (["Zoe has left"], "Zoe has left"),
        (["edit"], "Drop maintainer zoe, as agreed"),
    ],
)
def test_a_commit_names_its_edits(
    message: list[str], subject: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_EDITOR", "sed -i '1s/$/, as agreed/'")
    git = ["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    for key in ("user.name", "user.email"):
        subprocess.run([*git, "config", key, "x@example.org"], check=True)
    assert edit(folder, "maintainer", "drop", "zoe", "--commit", *message).returncode == 0
    log = subprocess.run([*git, "log", "--format=%s", "--stat"], capture_output=True, text=True, check=True).stdout
    assert log.startswith(f"{subject}\n")
    assert "recipe/meta.yaml" in log


def test_a_version_over_the_old_source_is_not_committed(folder: Path) -> None:
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / "recipe/meta.yaml").write_text(RECIPE.replace("demo-{{ version }}", "demo12_rc"))
    refused = edit(folder, "version", "1.3", "--commit")
    assert (refused.returncode, "built from the sources of the version before" in refused.stderr) == (2, True)
    assert 'version = "1.2"' in recipe(folder)
    shown = edit(folder, "version", "1.3")
    assert (
        "note: meta.yaml:9: source 1 is as before, since nothing in it follows the version: https://example.org/demo12_rc.tar.gz"
        in shown.stderr
    )
    assert edit(folder, "version", "1.3", "--keep-sources", "--write").returncode == 0


@pytest.mark.parametrize("words", [(), ("--write",), ("--sha256", "b" * 64, "--write")])
def test_an_address_with_the_hash_of_its_file_follows_no_version(words: tuple[str, ...], folder: Path) -> None:
    address = f"https://files.pythonhosted.org/packages/e0/60/{'a' * 60}/demo-1.2.tar.gz"
    text = RECIPE.replace("https://example.org/demo-{{ version }}.tar.gz", address)
    assert text != RECIPE
    (folder / "recipe/meta.yaml").write_text(text)
    refused = edit(folder, "version", "1.3", *words)
    assert (refused.returncode, recipe(folder)) == (2, text)
    assert "source 1 does not follow the version" in refused.stderr
    assert edit(folder, "version", "1.3", "--keep-sources", "--write").returncode == 0
    assert address in recipe(folder)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("maintainer", "add", "Anna"), "meta.yaml:32:5: 'Anna' is a maintainer already"),
        (("maintainer", "drop", "nobody"), "meta.yaml:32:5: 'nobody' is not a maintainer"),
        (("maintainer", "add", "a b"), "'a b' is not a name on GitHub"),
        (("build-number", "two"), "'two' is not a build number"),
        (("requirement", "drop", "absent"), "no matching requirement names 'absent'"),
        (("requirement", "add", "x", "--section", "run", "--of", "lib"), "the recipe has no output 'lib'"),
        (("version", "1.3"), "cannot be downloaded"),
        (("vers", "1.3"), "Did you mean 'version'?"),
        (("drop-python", "three", "--pinning", "none"), "'three' is not a version of Python"),
        (("provider", "linux-64", "jenkins"), "'jenkins' is not a CI service"),
    ],
)
def test_a_mistake_writes_nothing(folder: Path, words: tuple[str, ...], message: str) -> None:
    (folder / "recipe/meta.yaml").write_text(RECIPE.replace("https://example.org", "http://127.0.0.1:9"))
    before = recipe(folder)
    ended = edit(folder, "build-number", "9", *words, "--write")
    assert message in ended.stderr
    assert ended.returncode == (1 if words[0] == "version" else 2)
    assert "Traceback" not in ended.stderr
    assert recipe(folder) == before


def test_cuda_is_added_to_the_list_and_to_what_is_zipped_with_it(folder: Path) -> None:
    (folder / "recipe/conda_build_config.yaml").write_text(VARIANTS)
    ended = unpinned(folder, "add-cuda", "13.0", "--write")
    assert "copied from its neighbour: cuda_compiler: cuda-nvcc" in ended.stderr
    expected = VARIANTS.replace("12.9  # [linux]", "12.9  # [linux]\n  - 13.0  # [linux]")
    expected = expected.replace("cuda-nvcc  # [linux]", "cuda-nvcc  # [linux]\n  - cuda-nvcc  # [linux]")
    assert (folder / "recipe/conda_build_config.yaml").read_text() == expected
    assert "13.0 is built already" in unpinned(folder, "add-cuda", "13.0").stderr
    unpinned(folder, "drop-cuda", "13.0", "--write")
    assert (folder / "recipe/conda_build_config.yaml").read_text() == VARIANTS


def test_cuda_comes_and_goes_by_the_migration_of_the_pinning(folder: Path) -> None:
    ended = edit(folder, "add-cuda", "13.0", "--pinning", str(pinning(folder)), "--write")
    assert ended.returncode == 0, ended.stderr
    migration = folder / ".ci_support/migrations/cuda130.yaml"
    assert migration.read_text() == MIGRATION
    assert unpinned(folder, "drop-cuda", "13.0", "--write").returncode == 0
    assert not migration.exists()


def test_a_version_that_the_pinning_has_is_skipped_and_built_again(folder: Path) -> None:
    assert unpinned(folder, "drop-cuda", "12.9", "--write").returncode == 0
    skipped = RECIPE.replace("[py<39]\n", '[py<39]\n  skip: true  # [cuda_compiler_version == "12.9"]\n')
    assert recipe(folder) == skipped
    assert unpinned(folder, "add-cuda", "12.9", "--write").returncode == 0
    assert recipe(folder) == RECIPE
    assert unpinned(folder, "drop-python", "3.9", "--write").returncode == 0
    assert recipe(folder) == RECIPE.replace("py<39", "py<310")


def test_a_version_that_nothing_adds_is_an_error(folder: Path) -> None:
    ended = edit(folder, "add-python", "3.15", "--pinning", str(pinning(folder)))
    assert ended.returncode == 2
    assert "the recipe lists no versions, and no migration of the pinning adds it" in ended.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("add-cuda", "13.0"),
        ("drop-cuda", "12.9"),
        ("add-python", "3.9"),
        ("migration", "add", "cuda130"),
        ("enable-gpu",),
        ("python-min",),
        ("stdlib",),
    ],
)
def test_what_needs_a_pinning_is_not_edited_without_one(folder: Path, words: tuple[str, ...]) -> None:
    ended = command.run(command.patched(UNREACHABLE, "edit", "build-number", "9", *words, "--write"), folder)
    assert (ended.returncode, recipe(folder)) == (2, RECIPE)
    assert "pinning: none was fetched yet; fetching the newest" in ended.stderr
    assert "the jobs follow from conda-forge's pinning, and it cannot be fetched: no network" in ended.stderr
    assert "'--pinning none' says that the feedstock needs none" in ended.stderr
    offline = command.run(command.patched(UNREACHABLE, "edit", *words, "--offline", "--write"), folder)
    assert (offline.returncode, recipe(folder), "fetching" in offline.stderr) == (2, RECIPE, False)
    assert "the jobs follow from conda-forge's pinning, and there is none" in offline.stderr


def test_a_generated_recipe_is_edited_with_the_pinning_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "feedstock.yaml").write_text(SPEC)
    assert command.run(command.tool("generate", "."), tmp_path).returncode == 0
    words = ("edit", "maintainer", "add", "berta")
    refused = command.run(command.patched(UNREACHABLE, *words), tmp_path)
    assert (refused.returncode, "the spec takes its versions" in refused.stderr) == (2, True)
    place = write_pinning(tmp_path / "pinning", "python:\n  - 3.12.* *_cpython\npython_min:\n  - '3.10'\n")
    named = command.run(command.patched(UNREACHABLE, *words, "--pinning", str(place)), tmp_path)
    assert (named.returncode, "of unknown version" in named.stderr) == (0, True), named.stderr


def test_one_call_takes_one_pinning(folder: Path) -> None:
    ended = unpinned(folder, "add-cuda", "13.0", "--pinning", str(pinning(folder)), "drop-python", "3.9")
    assert (ended.returncode, "the edits of one call take one pinning" in ended.stderr) == (2, True)


def test_dropping_lists_what_still_mentions_the_version(folder: Path) -> None:
    (folder / "recipe/meta.yaml").write_text(RECIPE.replace("- scipy", '- scipy  # [cuda_compiler_version == "12.9"]'))
    assert "meta.yaml:25 mentions CUDA 12.9" in unpinned(folder, "drop-cuda", "12.9").stderr


def test_adding_and_dropping_list_what_scripts_test(folder: Path) -> None:
    (folder / "recipe/conda_build_config.yaml").write_text(VARIANTS)
    (folder / "recipe/build.sh").write_text(
        'if [[ "${cuda_compiler_version}" == 12.9 ]]; then\n  # cuda 12.9\n  cp cuda-12.9.h .\n  A="80-real"\nfi\n'
    )
    (folder / "recipe/bld.bat").write_text('if "%cuda_compiler_version%"=="12.9" exit 1\n')
    place = 'build.sh:1 mentions CUDA 12.9: if [[ "${cuda_compiler_version}" == 12.9 ]]; then'
    added = edit(folder, "add-cuda", "13.0", "--pinning", "none").stderr
    assert f"note: {place}, which CUDA 13.0 may need too\n" in added
    assert "bld.bat:1 mentions CUDA 12.9" in added
    dropped = edit(folder, "drop-cuda", "12.9", "--pinning", "none").stderr
    assert "note: build.sh has no branch for cuda_compiler_version 12.9 any more\n" in dropped
    assert "bld.bat:1 mentions CUDA 12.9" in dropped
    assert "build.sh:2" not in dropped + added
    assert "build.sh:3" not in dropped + added


@pytest.mark.parametrize(("before", "more"), [("{}", ""), ("{bot: {automerge: true}}", "bot: {automerge: true}, ")])
def test_a_conda_forge_yml_in_flow_style_stays_in_it(folder: Path, before: str, more: str) -> None:
    (folder / "conda-forge.yml").write_text(f"{before}\n")
    edit(folder, "provider", "osx-arm64", "azure", "--write")
    assert (folder / "conda-forge.yml").read_text() == f"{{{more}provider: {{osx_arm64: azure}}}}\n"


def test_platforms_and_providers_are_keys_of_conda_forge_yml(folder: Path) -> None:
    forge = folder / "conda-forge.yml"
    words = ("platform", "add", "linux-aarch64", "provider", "linux_64", "github_actions", "--write")
    assert edit(folder, *words).returncode == 0
    assert forge.read_text() == (
        "bot:\n  automerge: true\nbuild_platform:\n  linux_aarch64: linux_64\n"
        "provider:\n  linux_64: github_actions\ntest: native\n"
    )
    assert "linux_aarch64 is built already" in edit(folder, "platform", "add", "linux-aarch64", "--native").stderr
    assert edit(folder, "platform", "add", "osx-arm64", "--native", "--write").returncode == 0
    assert "provider:\n  linux_64: github_actions\n  osx_arm64: default\n" in forge.read_text()


@pytest.mark.parametrize(
    ("words", "before", "after"),
    [
        (("add-python", "3.8"), "win or py<39", "win or py<38"),
        (("add-python", "3.8"), "py == 38 or win", "win"),
        (("add-python", "3.8"), "win or py == 38", "win"),
        (
            ("add-cuda", "11.2"),
            'cuda_compiler_version in ("11.0", "11.2")',
            'cuda_compiler_version in ("11.0",)',
        ),
        (("drop-python", "3.9"), "win or py<39", "win or py<310"),
    ],
)
def test_a_skip_loses_or_gets_the_version(words: tuple[str, ...], before: str, after: str, folder: Path) -> None:
    (folder / "recipe/meta.yaml").write_text(RECIPE.replace("py<39", before))
    assert unpinned(folder, *words, "--write").returncode == 0
    assert recipe(folder) == RECIPE.replace("py<39", after)


def test_a_limit_in_a_recipe_yaml_is_raised_and_lowered(folder: Path) -> None:
    (folder / "recipe/meta.yaml").unlink()
    path = folder / "recipe/recipe.yaml"
    text = 'package: {name: x, version: "1"}\nbuild:\n  number: 0\n  skip:\n    - win\n    - match(python, "<3.11")\n'
    path.write_text(text)
    assert unpinned(folder, "drop-python", "3.11", "--write").returncode == 0
    assert path.read_text() == text.replace("3.11", "3.12")
    assert unpinned(folder, "add-python", "3.11", "--write").returncode == 0
    assert path.read_text() == text


def test_a_version_that_the_pinning_adopted_is_skipped_not_left_to_its_migration(folder: Path) -> None:
    place = pinning(folder)
    (place / "recipe/conda_build_config.yaml").write_text('cuda_compiler_version:\n  - None\n  - "13.0"\n')
    migration = folder / ".ci_support/migrations/cuda130.yaml"
    migration.parent.mkdir(parents=True)
    migration.write_text(MIGRATION)
    assert edit(folder, "drop-cuda", "13.0", "--pinning", str(place), "--write").returncode == 0
    assert '  skip: true  # [cuda_compiler_version == "13.0"]\n' in recipe(folder)
    assert migration.exists()


def test_items_with_a_selector_are_zipped_with_those_of_the_same_selector(folder: Path) -> None:
    text = """\
cuda_compiler_version:         # [linux64]
  - None                       # [linux64]
  - 10.1                       # [linux64]
  - 10.2                       # [linux64]

docker_image:                  # [linux]
  - anvil                      # [linux64]
  - anvil-cuda:10.1            # [linux64 and native]
  - anvil-comp7                # [linux64]
  - anvil-cuda:10.2            # [linux64]
  - anvil-aarch64              # [aarch64]
"""
    path = folder / "recipe/conda_build_config.yaml"
    path.write_text(text)
    assert unpinned(folder, "drop-cuda", "10.2", "--write").returncode == 0
    expected = [line for line in text.splitlines() if "10.2" not in line]
    assert path.read_text().splitlines() == expected
    ended = unpinned(folder, "add-cuda", "10.2", "--write")
    assert ended.returncode == 0
    assert "  - 10.2                       # [linux64]\n" in path.read_text()


def test_a_platform_on_its_own_machines_is_crossed_from_then_on(folder: Path) -> None:
    forge = folder / "conda-forge.yml"
    forge.write_text("provider:\n  linux_aarch64: default\ntest: native\n")
    ended = edit(folder, "platform", "add", "linux-aarch64", "--write")
    assert "linux_aarch64 was built on its own machines (default), and is cross-compiled now" in ended.stderr
    assert forge.read_text() == (
        "build_platform:\n  linux_aarch64: linux_64\nprovider:\n  linux_aarch64: default\ntest: native\n"
    )


def test_what_is_zipped_is_found_by_the_version_where_the_numbers_of_items_differ(folder: Path) -> None:
    text = """\
docker_image:                # [linux]
  - anvil                    # [native or old]
  - anvil-cuda:10.2          # [linux64 and native]
  - anvil-cuda:11.0          # [linux64 and native]
cuda_compiler_version:
  - None
  - 10.2                     # [linux64]
  - 11.0                     # [linux64]
cdt_name:
  - cos6
  - cos6                     # [linux64]
  - cos7                     # [linux64]
"""
    path = folder / "recipe/conda_build_config.yaml"
    path.write_text(text)
    assert unpinned(folder, "drop-cuda", "11.0", "--write").returncode == 0
    gone = ("11.0", "cos7")
    assert path.read_text().splitlines() == [
        line for line in text.splitlines() if not any(word in line for word in gone)
    ]
    assert unpinned(folder, "add-cuda", "11.2", "--write").returncode == 0
    assert "  - anvil-cuda:11.2          # [linux64 and native]\n" in path.read_text()
    assert "  - 11.2                     # [linux64]\n" in path.read_text()
    assert path.read_text().count("cos6") == 3
