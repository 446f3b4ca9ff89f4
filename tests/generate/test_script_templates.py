"""Generated build scripts: options and folder of the project reach its build system."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path, PurePosixPath

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.facts.cuda import load_cuda
from feedstock_tools.generate.spec.reading import spec_from_text
from feedstock_tools.generate.texts.rendering import render
from tests.generate.test_spec_mistakes import REVIEWED

SCRIPT = "{template: cmake}"


def _scripts(script: str) -> dict[str, str]:
    texts = render(spec_from_text(REVIEWED.replace(SCRIPT, script)))
    return {path.name: text for path, text in texts.items() if path.name.startswith("build.")}


@pytest.mark.parametrize(
    ("template", "unix", "windows"),
    [
        ("cmake", "cmake -S sub/dir -B build-conda", "cmake -S sub\\dir -B build-conda"),
        ("meson", "build-conda sub/dir", "build-conda sub\\dir"),
        ("bazel", "cd sub/dir\n", "cd sub\\dir "),
        ("pip", "pip install ./sub/dir ", "pip install .\\sub\\dir "),
        ("setuptools", "pip install ./sub/dir ", "pip install .\\sub\\dir "),
        ("scikit-build-core", "pip install ./sub/dir ", "pip install .\\sub\\dir "),
    ],
)
def test_options_and_folder_reach_the_build_system(template: str, unix: str, windows: str) -> None:
    scripts = _scripts(f"{{template: {template}, folder: sub/dir, options: ['-DX=a b']}}")

    assert unix in scripts["build.sh"]
    assert "-DX=a b'" in scripts["build.sh"]
    assert windows in scripts["build.bat"]
    assert '-DX=a b"' in scripts["build.bat"]


@pytest.mark.parametrize("template", ["cmake", "scikit-build-core"])
def test_options_for_gpu_builds_reach_cmake_in_these_alone(template: str) -> None:
    scripts = _scripts(f"{{template: {template}, cuda_options: [-DUSE_CUDA=ON, -DUSE_NCCL=ON]}}")

    unix, windows = scripts["build.sh"], scripts["build.bat"]
    block = unix[unix.index('if [[ "${cuda_compiler_version}" != "None" ]]') : unix.index("\nfi\n")]
    assert 'CMAKE_ARGS="${CMAKE_ARGS:-} -DUSE_CUDA=ON -DUSE_NCCL=ON"' in block
    assert '"%cuda_compiler_version%"=="None" set "CMAKE_ARGS=%CMAKE_ARGS% -DUSE_CUDA=ON -DUSE_NCCL=ON"' in windows


def test_options_for_gpu_builds_are_for_cmake() -> None:
    with pytest.raises(InputError, match="'cuda_options' require the template cmake or scikit-build-core"):
        spec_from_text(REVIEWED.replace(SCRIPT, "{template: pip, cuda_options: [-DX=ON]}"), Path("feedstock.yaml"))


def test_options_without_a_template_are_a_mistake() -> None:
    with pytest.raises(InputError, match="'options' and 'folder' require a template"):
        spec_from_text(REVIEWED.replace(SCRIPT, "{commands: [x], options: [y]}"), Path("feedstock.yaml"))


@pytest.mark.parametrize(
    ("template", "passed"),
    [
        ("cmake", "-DCMAKE_CUDA_ARCHITECTURES=${CUDAARCHS}"),
        ("scikit-build-core", "-DCMAKE_CUDA_ARCHITECTURES=${CUDAARCHS}"),
        ("bazel", "--repo_env=CUDAARCHS"),
        ("pip", 'source "${RECIPE_DIR}/archs.sh"'),
    ],
)
def test_the_architectures_reach_the_build_system(template: str, passed: str) -> None:
    text = REVIEWED.replace(
        "{versions: [12.9],",
        "{versions: [12.9], architectures: common, script: {file: archs.sh, variable: CUDAARCHS, style: cmake},",
    ).replace(SCRIPT, f"{{template: {template}}}")
    texts = render(spec_from_text(text))
    assert passed in next(made for path, made in texts.items() if path.name == "build.sh")


def _edited(folder: Path, script: str, cuda: str = "", edits: str = "own.sh") -> str:
    """The script of people after its lists were replaced."""
    recipe = folder / "recipe"
    recipe.mkdir()
    (recipe / "own.sh").write_text(script)
    (folder / "out.sh").write_text(script)
    settings = f"versions: [11.8, 12.9], {cuda or 'architectures: [sm_80, compute_80]'}"
    text = REVIEWED.replace(
        "{versions: [12.9],", f"{{{settings}, script: {{edits: {edits}, variable: ARCHS, style: cmake}},"
    ).replace(SCRIPT, "{commands: [x]}")
    made = render(spec_from_text(text, folder / "feedstock.yaml", recipe))
    return made[PurePosixPath("recipe/own.sh")]


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("ARCHS=75", 'ARCHS="80-real;80-virtual"'),
        ("  export ARCHS='75-real;80' # ours", "  export ARCHS='80-real;80-virtual' # ours"),
        ('export ARCHS=""; export ARCHS_TOO=1', 'export ARCHS="80-real;80-virtual"; export ARCHS_TOO=1'),
        ("# ARCHS=$OTHER\nARCHS=\ncmake -DARCHS=$ARCHS", None),
    ],
)
def test_lists_in_a_script_that_people_wrote_are_replaced(line: str, written: str | None, tmp_path: Path) -> None:
    expected = written or line.replace("ARCHS=\n", 'ARCHS="80-real;80-virtual"\n')
    assert _edited(tmp_path, f"set -e\n{line}\nend") == f"set -e\n{expected}\nend"


@pytest.mark.parametrize(
    ("script", "options", "message"),
    [
        ("ARCHS=80", {"edits": "../out.sh"}, "'../out.sh' is not the name of a file in the recipe folder"),
        ("ARCHS=80", {"edits": "other.sh"}, "there is no file recipe/other.sh"),
        ("ARCHS=80", {"cuda": "libraries: []"}, "there are no architectures to write into a script"),
        ("ARCHS=80", {"cuda": "architectures: {11.8: [sm_80], 12.9: [sm_90]}"}, "takes one list of architectures"),
        ("ARCHS=80\nARCHS+=;90", {}, "1 of 2 assignments of ARCHS are lists alone"),
        ('[[ $x ]] && ARCHS="$MINE"', {}, "0 of 1 assignments of ARCHS are lists alone"),
    ],
)
def test_a_script_in_which_a_list_cannot_be_replaced_is_a_mistake(
    script: str, options: dict[str, str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        _edited(tmp_path, script, **options)


def test_a_script_outside_the_recipe_folder_is_not_edited(tmp_path: Path) -> None:
    (tmp_path / "recipe").mkdir()
    (tmp_path / "recipe" / "link.sh").symlink_to(tmp_path / "out.sh")
    (tmp_path / "out.sh").write_text("ARCHS=80\n")
    cuda = "{versions: [12.9], architectures: common, script: {edits: link.sh, variable: ARCHS},"
    text = REVIEWED.replace("{versions: [12.9],", cuda).replace(SCRIPT, "{commands: [x]}")
    with pytest.raises(InputError, match="link"):
        spec_from_text(text, tmp_path / "feedstock.yaml", tmp_path / "recipe")


def test_a_variable_reaches_the_scripts_of_the_builds_that_its_condition_names() -> None:
    """recipe.yaml has one value for all builds, so that a variable is empty in the others, and a template unsets it."""
    choices = '{FORCE_CUDA: [{value: "1", when: cuda}], MODE: fast}'
    spec = spec_from_text(REVIEWED.replace(SCRIPT, f"{{template: setuptools, environment: {choices}}}"))
    v0, v1 = (render(spec, version) for version in ("v0", "v1"))

    recipe = v1[PurePosixPath("recipe/recipe.yaml")]
    assert 'FORCE_CUDA: ${{ ("1") if cuda_compiler_version != "None" else ("") }}\n' in recipe
    assert re.search(
        r"script_env:\n +- FORCE_CUDA=1 +# \[cuda_compiler_version != .None.\]\n +- MODE=fast\n",
        v0[PurePosixPath("recipe/meta.yaml")],
    )
    for texts in (v0, v1):
        script = texts[PurePosixPath("recipe/build.sh")]
        assert '[[ -n "${FORCE_CUDA:-}" ]] || unset FORCE_CUDA' in script
        assert "unset MODE" not in script


def test_what_an_earlier_build_left_in_a_folder_of_sources_is_not_packed(tmp_path: Path) -> None:
    made = REVIEWED.replace(SCRIPT, "{template: setuptools, folder: sub/dir}")
    assert "rm -rf" not in render(spec_from_text(made))[PurePosixPath("recipe/build.sh")]
    local = made + "sources: [{path: ../src}]\n"
    texts = render(spec_from_text(local))
    line = "rm -rf sub/dir/build/{lib,lib.*,temp.*,bdist.*}\n"
    assert line in texts[PurePosixPath("recipe/build.sh")]
    assert "in (sub\\dir\\build\\lib sub\\dir\\build\\lib.* " in texts[PurePosixPath("recipe/build.bat")]
    left = ["build/lib.linux-x86_64-cpython-311/a.so", "build/lib/gone.py", "build/temp.linux/a.o", "build/own/kept.py"]
    for name in left:
        path = tmp_path / "sub" / "dir" / name
        path.parent.mkdir(parents=True)
        path.touch()
    subprocess.run(["bash", "-c", line], cwd=tmp_path, check=True)
    assert [path.name for path in tmp_path.rglob("*.*") if path.is_file()] == ["kept.py"]


@pytest.mark.parametrize(
    ("cuda", "more", "patterns"),
    [
        ("versions: [11.8, 12.8, 12.9]", "", ["11.8", "12.8|12.9"]),
        ("versions: [12.9], presets: {p: {11.8: [sm_80], 12.9: [sm_90]}}, architectures: p", "", ["12.9"]),
        ("presets: {p: {11.8: [sm_80], 12.9: [sm_90]}}, architectures: p", "", ["11.8", "12.9"]),
        ("versions: pinning", "migrations: [cuda130]", "from the pinning's oldest"),
        ("versions: pinning", "migrations: {cuda118: {timestamp: 1}}", "all"),
        ("versions: pinning", "variants: {cuda_compiler_version: [None, 11.8]}", "all"),
    ],
)
def test_the_script_of_architectures_lists_the_versions_that_can_come(
    cuda: str, more: str, patterns: list[str] | str
) -> None:
    script = "script: {variable: ARCHS}" + ("" if "architectures" in cuda else ", architectures: common")
    text = REVIEWED.replace("{versions: [12.9],", f"{{{cuda}, {script},") + more.replace(
        "[cuda130]", "{cuda130: {timestamp: 1}}"
    )
    made = render(spec_from_text(text))[PurePosixPath("recipe/cuda_architectures.sh")]

    found = re.findall(r"^    ([\d.|]+)\) export ARCHS=", made, re.MULTILINE)
    facts = load_cuda()
    versions = list(facts.toolkits)
    if isinstance(patterns, list):
        assert found == patterns
    else:
        pinned = (row.cuda for row in facts.rows if row.cuda and row.date == facts.newest_date)
        oldest = versions[0] if patterns == "all" else next(pinned)
        assert "|".join(found).split("|") == versions[versions.index(oldest) :]
