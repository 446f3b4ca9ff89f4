"""The files that configurations will build; the names in the tables are those of the real conda-build."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest
from click.testing import CliRunner

from feedstock_tools.channel.repodata import lacking
from feedstock_tools.cli.why import outputs as command
from feedstock_tools.errors import InputError
from feedstock_tools.feedstock.configurations import choose
from feedstock_tools.rerender.configuration import read_configurations
from feedstock_tools.rerender.outputs import output_files
from feedstock_tools.rerender.rerendering import rerender
from feedstock_tools.rerender.rules import Rules

FEEDSTOCK = Path(__file__).with_name("solver-feedstock")
CUDA, CPU, MAC = "linux_64_cuda_compiler_version12.9", "linux_64_cuda_compiler_versionNone", "osx_arm64_"
NEWEST = {
    CUDA: [
        "linux-64/libsolver-1.4.0-cuda129h354b2ed_3.conda",
        "linux-64/solver-1.4.0-py311h86db92e_3.conda",
        "linux-64/solver-1.4.0-py312h3869cc8_3.conda",
        "linux-64/solver-gpu-1.4.0-h74ed563_3.conda",
        "noarch/solver-data-1.4.0-hd8ed1ab_3.conda",
    ],
    CPU: [
        "linux-64/libsolver-1.4.0-cpu_h9bd39d6_3.conda",
        "linux-64/solver-1.4.0-py311h9c5dc3b_3.conda",
        "linux-64/solver-1.4.0-py312hbb86b86_3.conda",
        "linux-64/solver-cpu-1.4.0-h718b53a_3.conda",
        "noarch/solver-data-1.4.0-hd8ed1ab_3.conda",
    ],
    MAC: [
        "noarch/solver-data-1.4.0-hd8ed1ab_3.conda",
        "osx-arm64/libsolver-1.4.0-cpu_h823b8e9_3.conda",
        "osx-arm64/solver-1.4.0-py311h6f9d12a_3.conda",
        "osx-arm64/solver-1.4.0-py312h9881bd5_3.conda",
        "osx-arm64/solver-cpu-1.4.0-hd610c6a_3.conda",
    ],
}


def named(*names: str, rules: str = "2026.8.5+26.7.1") -> list[str]:
    chosen = choose(names, read_configurations(FEEDSTOCK))
    return [file.path for file in output_files(FEEDSTOCK, chosen, Rules.parse(rules))]


@pytest.mark.parametrize("configuration", NEWEST)
def test_names_are_those_of_conda_build(configuration: str) -> None:
    assert named(configuration) == NEWEST[configuration]


@pytest.mark.parametrize(
    ("old", "new", "refused"),
    [
        ('version: "1"', "version: {{ undefined_here }}", "the version '' of a"),
        ('version: "1"', 'version: ".1"', "the version '.1' of a"),
        ("name: a", "name: a b", "' ' in the name 'a b'"),
        ("name: a", "name: Ab", "capital letters in the name 'Ab'"),
        ('"1"\n', '"1"\nrequirements:\n  run_constrained:\n    - foo >=1,,<2\n', "the requirement 'foo >=1,,<2' of a"),
        ('"1"\n', '"1"\nrequirements:\n  run:\n    - foo >=1,<2<py312\n', "the requirement 'foo >=1,<2<py312' of a"),
        ('"1"\n', '"1"\nrequirements:\n  run:\n    - a >=1\n', "a, which requires itself"),
        ('"1"\n', '"1"\nrequirements:\n  host:\n    - foo >1 <2\n', "the requirement 'foo >1 <2' of a"),
        ('"1"\n', '"1"\nrequirements:\n  host:\n    - foo  { foo }\n', "the requirement 'foo  { foo }' of a"),
        ('"1"\n', '"1"\nrequirements:\n  run:\n    - foo >=1&<2\n', "the requirement 'foo >=1&<2' of a"),
        ('"1"\n', '"1"\nrequirements:\n  run:\n    - "@foo"\n', "the requirement '@foo' of a"),
    ],
)
def test_names_that_conda_build_refuses_are_refused(tmp_path: Path, old: str, new: str, refused: str) -> None:
    (tmp_path / "recipe").mkdir()
    (tmp_path / "recipe/meta.yaml").write_text('package:\n  name: a\n  version: "1"\n'.replace(old, new))
    (tmp_path / ".ci_support").mkdir()
    (tmp_path / ".ci_support/linux_64_.yaml").write_text("target_platform:\n- linux-64\n")
    with pytest.raises(InputError, match=f"meta.yaml: conda-build refuses {refused} in linux_64_"):
        output_files(tmp_path, read_configurations(tmp_path))


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("build:\n  number: 1.5\n", "meta.yaml:5: the build number is '1.5'"),
        ("outputs:\n  - name: b\n    build:\n      number: one\n", "meta.yaml:7: the build number is 'one'"),
        ("outputs:\n  - script: b.sh\n", "meta.yaml: there is an output without a name"),
        ("outputs:\n  - b\n", "meta.yaml: outputs has an item that is not a mapping: b"),
        ("outputs:\n  name: b\n", "meta.yaml:4: the section 'outputs' must be a list"),
        ("source:\n  - a.tar.gz\n", "meta.yaml: source has an item that is not a mapping: a.tar.gz"),
        ("requirements:\n  run:\n    - zlib\n    -\n", "meta.yaml: requirements/run has an empty item"),
        ("requirements:\n  host:\n    - {{ nothing }}\n", "meta.yaml: requirements/host has an empty item"),
        ("requirements:\n  build:\n    - yes\n", "meta.yaml: requirements/build has the item 'true'"),
        (
            "outputs:\n  - name: b\n    requirements:\n      run_constrained:\n        - ~\n",
            "meta.yaml: requirements/run_constrained has an empty item",
        ),
        ("outputs:\n  - name: b\n    requirements:\n      -\n", "meta.yaml: requirements/run has an empty item"),
    ],
)
def test_what_conda_build_cannot_read_is_refused(tmp_path: Path, text: str, refused: str) -> None:
    (tmp_path / "recipe").mkdir()
    (tmp_path / "recipe/meta.yaml").write_text(f'package:\n  name: a\n  version: "1"\n{text}')
    (tmp_path / ".ci_support").mkdir()
    (tmp_path / ".ci_support/linux_64_.yaml").write_text("target_platform:\n- linux-64\n")
    with pytest.raises(InputError, match=refused):
        output_files(tmp_path, read_configurations(tmp_path))
    with pytest.raises(InputError, match=refused):
        rerender(tmp_path)


@pytest.mark.parametrize(("rules", "refuses"), [("3.36.1+24.5.1", False), ("3.37.2+24.7.0", True)])
def test_empty_constraints_are_refused_since_conda_build_reads_them(tmp_path: Path, rules: str, refuses: bool) -> None:
    (tmp_path / "recipe").mkdir()
    text = 'package:\n  name: a\n  version: "1"\nrequirements:\n  run_constrained:\n    - ~\n'
    (tmp_path / "recipe/meta.yaml").write_text(text)
    with pytest.raises(InputError, match="an empty item") if refuses else nullcontext():
        assert rerender(tmp_path, rules=Rules.parse(rules)).configurations


def test_a_version_that_follows_from_sources_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "recipe").mkdir()
    version = "version: 2.{{ load_setup_py_data().get('version') }}"
    (tmp_path / "recipe/meta.yaml").write_text(f"package:\n  name: a\n  {version}\n")
    (tmp_path / ".ci_support").mkdir()
    (tmp_path / ".ci_support/linux_64_.yaml").write_text("target_platform:\n- linux-64\n")
    with pytest.raises(InputError, match=r"the version '2.None' of a follows from sources, which were not fetched"):
        output_files(tmp_path, read_configurations(tmp_path))


def test_build_strings_that_conda_build_itself_gives_a_star_are_named(tmp_path: Path) -> None:
    (tmp_path / "recipe").mkdir()
    text = 'package:\n  name: a\n  version: "1"\nrequirements:\n  host:\n    - lua\n  run:\n    - lua\n'
    (tmp_path / "recipe/meta.yaml").write_text(text)
    (tmp_path / ".ci_support").mkdir()
    (tmp_path / ".ci_support/linux_64_.yaml").write_text("lua:\n- '5'\ntarget_platform:\n- linux-64\n")
    (package,) = output_files(tmp_path, read_configurations(tmp_path))
    assert package.build_string.startswith("lua5*")


@pytest.mark.parametrize(("rules", "counts"), [("2026.8.5+26.7.1", True), ("3.52.3+25.1.2", False)])
def test_the_name_of_a_cdt_counts_where_its_line_is_not_selected(tmp_path: Path, rules: str, counts: bool) -> None:
    (tmp_path / "recipe").mkdir()
    text = 'package:\n  name: a\n  version: "1"\nrequirements:\n  build:\n    - {{ cdt("libx11") }}  # [linux]\n'
    (tmp_path / "recipe/meta.yaml").write_text(text)
    (tmp_path / ".ci_support").mkdir()
    (tmp_path / ".ci_support/osx_64_.yaml").write_text("cdt_name:\n- conda\ntarget_platform:\n- osx-64\n")
    (package,) = output_files(tmp_path, read_configurations(tmp_path), Rules.parse(rules))
    assert ("cdt_name" in package.hash_input) is counts


def test_a_recipe_without_a_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "recipe").mkdir()
    (tmp_path / "recipe/meta.yaml").write_text("package:\n  name: a\n")
    with pytest.raises(InputError, match=r"meta.yaml: the recipe has no package/version"):
        rerender(tmp_path)


def test_an_older_conda_build_left_virtual_packages_out_of_the_hash() -> None:
    assert named(CUDA, rules="3.14.1+3.21.4")[0] == "linux-64/libsolver-1.4.0-cuda129h4437301_3.tar.bz2"


def test_all_configurations_by_default() -> None:
    assert named() == [path for configuration in (CUDA, CPU, MAC) for path in NEWEST[configuration]]


@pytest.mark.parametrize(("name", "found"), [("linux_64_cpu", CPU), ("linux_64_cuda12.9", CUDA), ("osx_*", MAC)])
def test_short_names_and_globs_choose(name: str, found: str) -> None:
    assert named(name) == NEWEST[found]


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match=r"linux_64_cuda_compiler_version12\.9"):
        named("linux_64_cuda_compiler_version12.8")


#: A recipe whose own variant file has a zip group, as `ffmpeg`'s.
ZIPPED = {
    "conda-forge.yml": "",
    "recipe/meta.yaml": (
        "package:\n  name: tool\n  version: '1'\nbuild:\n  number: {{ increment }}\n"
        "requirements:\n  host:\n    - codec\n"
    ),
    "recipe/conda_build_config.yaml": (
        "codec:\n- 11\n- 12\n- 13\n- 13\ncuda:\n- 11.8\n- 12.2\n- 13.0\n- 13.1\nincrement:\n- 0\n- 400\n- 600\n- 800\n"
        "zip_keys:\n- - codec\n  - cuda\n  - increment\n"
    ),
}


@pytest.mark.parametrize(
    ("configuration", "files"),
    [
        ("codec:\n- '13'\nincrement:\n- '600'\n", ["tool-1-h1045dd5_600.conda"]),
        ("codec:\n- '13'\n", ["tool-1-h1045dd5_600.conda", "tool-1-h2adfc11_800.conda"]),
    ],
)
def test_a_configuration_with_a_part_of_a_zip_group_chooses_from_its_rows(
    tmp_path: Path, configuration: str, files: list[str]
) -> None:
    write(tmp_path, {**ZIPPED, ".ci_support/linux_64_.yaml": f"{configuration}target_platform:\n- linux-64\n"})
    assert [file.file_name for file in output_files(tmp_path, read_configurations(tmp_path))] == files


#: A recipe whose top level requires Python for cross builds alone, as `libxc`'s.
CROSSED = {
    "conda-forge.yml": "build_platform: {linux_aarch64: linux_64}\n",
    "recipe/meta.yaml": (
        "package:\n  name: tool-split\n  version: '1'\n"
        "requirements:\n  build:\n    - python  # [build_platform != target_platform]\n"
        "outputs:\n  - name: tool-python\n    requirements:\n"
        "      host:\n        - python\n      run:\n        - python\n"
    ),
    ".ci_support/linux_aarch64_.yaml": (
        "python:\n- 3.11.* *_cpython\n- 3.12.* *_cpython\ntarget_platform:\n- linux-aarch64\n"
    ),
}


@pytest.mark.parametrize(
    ("rules", "pythons"),
    [("2026.8.5+26.7.1", ["py311h7a77afc_0", "py312h9804fc4_0"]), ("3.40.1+24.9.0", ["py312h9804fc4_0"])],
)
def test_a_cross_build_with_python_in_build_makes_its_outputs_for_each_python(
    tmp_path: Path, rules: str, pythons: list[str]
) -> None:
    write(tmp_path, CROSSED)
    made = output_files(tmp_path, read_configurations(tmp_path), Rules.parse(rules))
    assert [file.build_string for file in made] == pythons


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def test_rattler_build_distinguishes_numbers_and_booleans_from_strings(tmp_path: Path) -> None:
    recipe = "package: {name: tool, version: '1'}\nbuild: {string: 'h${{ hash }}'}\nrequirements: {host: [abi, flag]}\n"
    configuration = "abi:\n- 4\n- '11'\nflag:\n- true\ntarget_platform:\n- linux-64\n"
    files = {
        "conda-forge.yml": "conda_build_tool: rattler-build\n",
        "recipe/recipe.yaml": recipe,
        ".ci_support/linux_64_.yaml": configuration,
    }
    write(tmp_path, files)
    # Their names when py-rattler-build reads the configuration itself.
    assert [file.file_name for file in output_files(tmp_path, read_configurations(tmp_path))] == [
        "tool-1-h735b6fe.conda",
        "tool-1-hccf6316.conda",
    ]


RECIPE_V1 = """
recipe: {name: solver, version: '1'}
outputs:
- package: {name: libsolver}
  build: {string: "cuda${{ cuda | replace('.', '') }}_h${{ hash }}_0", skip: cuda == 'None'}
- package: {name: solver}
  requirements: {host: [python]}
- package: {name: solver-data}
  build: {noarch: generic}
"""


def test_a_v1_recipe_is_named_as_rattler_build_does(tmp_path: Path) -> None:
    (tmp_path / "recipe").mkdir()
    (tmp_path / "recipe" / "recipe.yaml").write_text(RECIPE_V1)
    (tmp_path / "conda-forge.yml").write_text("conda_build_tool: rattler-build\n")
    (tmp_path / ".ci_support").mkdir()
    (tmp_path / ".ci_support" / "linux_64_.yaml").write_text(
        "cuda: ['12.9', None]\npython: [3.11.* *_cpython, 3.12.* *_cpython]\ntarget_platform: [linux-64]\n"
    )
    files = output_files(tmp_path, read_configurations(tmp_path))
    assert [file.path.partition("h")[0] for file in files] == [
        "linux-64/libsolver-1-cuda129_",
        "linux-64/solver-1-py311",
        "linux-64/solver-1-py312",
        "noarc",
    ]


OWN = {
    # rattler-build takes the first of these files beside the recipe, with lower priority than `-m`.
    "conda_build_config.yaml": "target:\n- linux  # [linux]\n- win    # [win]\nflavour: [a]\n",
    "variants.yaml": "target:\n- if: win\n  then: windows\n  else: unix\nflavour: [a]\n",
}


@pytest.mark.parametrize(
    ("files", "packages"),
    [
        (["conda_build_config.yaml"], ["linux-64/tool-1-linux_b.conda", "win-64/tool-1-win_b.conda"]),
        (["variants.yaml"], ["linux-64/tool-1-unix_b.conda", "win-64/tool-1-windows_b.conda"]),
        (
            ["conda_build_config.yaml", "variants.yaml"],
            ["linux-64/tool-1-unix_b.conda", "win-64/tool-1-windows_b.conda"],
        ),
    ],
)
def test_a_v1_recipe_has_the_keys_of_its_own_variant_file_too(
    tmp_path: Path, files: list[str], packages: list[str]
) -> None:
    recipe = "package: {name: tool, version: '1'}\nbuild: {string: '${{ target }}_${{ flavour }}'}\n"
    write(tmp_path, {"conda-forge.yml": "conda_build_tool: rattler-build\n", "recipe/recipe.yaml": recipe})
    write(tmp_path, {f"recipe/{name}": OWN[name] for name in files})
    write(tmp_path, {f".ci_support/{name}.yaml": "flavour: [b]\n" for name in ("linux_64_", "win_64_")})
    assert [file.path for file in output_files(tmp_path, read_configurations(tmp_path))] == packages


def test_the_command_prints_a_table_and_json() -> None:
    table = CliRunner().invoke(command, ["linux_64_cpu", "--feedstock", str(FEEDSTOCK)])
    assert table.output.splitlines() == ["linux_64_cpu", *(f"  {path}" for path in NEWEST[CPU])]
    printed = CliRunner().invoke(command, ["linux_64_cpu", "--feedstock", str(FEEDSTOCK), "--json"])
    assert json.loads(printed.output)[0] == {
        "configuration": CPU,
        "subdir": "linux-64",
        "file": "libsolver-1.4.0-cpu_h9bd39d6_3.conda",
        "name": "libsolver",
        "version": "1.4.0",
        "build": "cpu_h9bd39d6_3",
        "build_number": 3,
    }


def channel(folder: Path, *file_names: str, depends: Sequence[str] = ()) -> Path:
    """A channel that has files of these names."""
    (folder / "noarch").mkdir(parents=True)
    (folder / "linux-64").mkdir()
    repodata: dict[str, dict[str, object]] = {"packages": {}, "packages.conda": {}}
    for file_name in file_names:
        stem = file_name.removesuffix(".conda").removesuffix(".tar.bz2")
        name, version, build = stem.rsplit("-", 2)
        entry = {"name": name, "version": version, "build": build, "build_number": 3, "depends": list(depends)}
        repodata["packages.conda" if file_name.endswith(".conda") else "packages"][file_name] = entry
    (folder / "linux-64" / "repodata.json").write_text(json.dumps(repodata))
    (folder / "noarch" / "repodata.json").write_text("{}")
    return folder


def test_only_what_a_channel_lacks(tmp_path: Path) -> None:
    there = channel(tmp_path, "libsolver-1.4.0-cpu_h9bd39d6_3.tar.bz2", "solver-1.4.0-py311h9c5dc3b_3.conda")
    options = ["linux_64_cpu", "--feedstock", str(FEEDSTOCK), "--missing", str(there)]
    assert CliRunner().invoke(command, options).output.splitlines() == [
        "linux_64_cpu",
        *(f"  {path}" for path in NEWEST[CPU][2:]),
    ]


@pytest.mark.parametrize(
    ("depends", "is_there"),
    [
        (["zlib", "__glibc >=2.17,<3.0.a0"], True),
        (["zlib", "__glibc >=2.28,<3.0.a0"], False),
        (["zlib"], False),
    ],
    ids=["which it was hashed with", "others", "none"],
)
def test_a_package_is_found_under_a_hash_with_virtual_packages(
    depends: list[str], is_there: bool, tmp_path: Path
) -> None:
    (cpu,) = choose([CPU], read_configurations(FEEDSTOCK))
    libsolver = next(file for file in output_files(FEEDSTOCK, [cpu]) if file.name == "libsolver")
    contents = {**libsolver.hash_input, "__glibc": "__glibc >=2.17,<3.0.a0"}
    digest = hashlib.sha1(json.dumps(contents, sort_keys=True).encode(), usedforsecurity=False).hexdigest()
    built = f"libsolver-1.4.0-cpu_h{digest[:7]}_3.conda"
    assert built != libsolver.file_name
    there = channel(tmp_path, built, depends=depends)
    assert lacking([libsolver], [str(there)]) == (() if is_there else (libsolver,))


def test_a_zip_group_that_the_configuration_tears_apart_has_the_rows_of_its_shortest_key(tmp_path: Path) -> None:
    feedstock = tmp_path / "feedstock"
    shutil.copytree(FEEDSTOCK, feedstock)
    recipe = feedstock / "recipe"
    (recipe / "conda_build_config.yaml").write_text(
        "cuda_compiler_version:\n- 12.9\n- None\ncudnn:\n- 9\n- undefined\n"
        "zip_keys:\n- - cuda_compiler_version\n  - cudnn\n"
    )
    text = (recipe / "meta.yaml").read_text()
    (recipe / "meta.yaml").write_text(text.replace("        - zlib\n", "        - zlib\n        - cudnn\n"))
    with (feedstock / ".ci_support" / f"{CUDA}.yaml").open("a") as file:
        file.write("docker_image:\n- image\nzip_keys:\n- - cuda_compiler_version\n  - docker_image\n")
    (chosen,) = choose([CUDA], read_configurations(feedstock))
    assert output_files(feedstock, [chosen])[0].file_name == "libsolver-1.4.0-cuda129ha579a8d_3.conda"


def test_a_wheel_is_no_package_of_a_channel(tmp_path: Path) -> None:
    feedstock = tmp_path / "demo-feedstock"
    shutil.copytree(FEEDSTOCK / ".ci_support", feedstock / ".ci_support")
    (feedstock / "recipe").mkdir()
    outputs = "outputs:\n  - name: a\n  - name: b\n    type: wheel\n"
    (feedstock / "recipe/meta.yaml").write_text(f"package: {{name: demo, version: '1'}}\n{outputs}")
    chosen = choose([MAC], read_configurations(feedstock))
    assert [file.name for file in output_files(feedstock, chosen)] == ["a"]
