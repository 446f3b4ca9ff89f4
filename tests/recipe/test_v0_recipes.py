"""Rendering `meta.yaml`: outputs, the variables that they use, and the names of their packages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.platforms import Platform
from feedstock_tools.recipe.model import RenderedOutput
from feedstock_tools.recipe.v0 import jinja
from feedstock_tools.recipe.v0 import recipe as v0
from feedstock_tools.recipe.v0.recipe import read_recipe, render_recipe
from feedstock_tools.variants.files import defaults
from feedstock_tools.variants.model import VariantConfig, combine
from feedstock_tools.variants.rules import CondaBuildRules

LINUX = Platform("linux", "64")
PINNING = VariantConfig(
    values={
        "python": ("3.12.* *_cpython", "3.13.* *_cp313"),
        "numpy": ("2", "2"),
        "cuda_compiler": ("None", "cuda-nvcc"),
        "cuda_compiler_version": ("None", "12.9"),
        "c_compiler": ("gcc",),
        "c_compiler_version": ("14",),
        "c_stdlib": ("sysroot",),
        "c_stdlib_version": ("2.17",),
        "zlib": ("1",),
        "libjpeg_turbo": ("3",),
        "openssl": ("3.5",),
        "channel_targets": ("conda-forge main",),
        "CONDA_BUILD_SYSROOT": ("/opt",),
    },
    zip_keys=(("python", "numpy"), ("cuda_compiler", "cuda_compiler_version")),
)
HEAD = "package:\n  name: demo\n  version: 1.10\n"


def render(
    folder: Path, text: str, rules: CondaBuildRules | None = None, platform: Platform = LINUX, **files: str
) -> tuple[RenderedOutput, ...]:
    (folder / "meta.yaml").write_text(text)
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_text(content)
    behaviour = rules or CondaBuildRules()
    config = combine([defaults(platform, behaviour), PINNING])
    return render_recipe(read_recipe(folder, behaviour), config, platform).outputs


def used(folder: Path, text: str, rules: CondaBuildRules | None = None, **files: str) -> set[str]:
    outputs = render(folder, HEAD + text, rules, LINUX, **files)
    return set().union(*(output.used.own for output in outputs)) - {"target_platform", "channel_targets"}


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("requirements:\n  host:\n    - zlib\n", {"zlib"}),
        ("requirements:\n  host:\n    - libjpeg-turbo\n", {"libjpeg_turbo"}),
        ("requirements:\n  host:\n    - zlib >=1\n", set()),
        ("requirements:\n  run:\n    - zlib\n", set()),
        ("requirements:\n  host:\n    - zlib  # [win]\n", set()),
        ("requirements:\n  host:\n    - x  # [cuda_compiler_version == 'None']\n", {"cuda_compiler_version"}),
        (
            "requirements:\n  build:\n    - {{ compiler('c') }}\n",
            {"c_compiler", "c_compiler_version", "CONDA_BUILD_SYSROOT"},
        ),
        ("requirements:\n  build:\n    - {{ stdlib('c') }}\n", {"c_stdlib", "c_stdlib_version", "CONDA_BUILD_SYSROOT"}),
        ("about:\n  summary: {{ openssl }}\n", {"openssl"}),
        ("about:\n  summary: {{ openssl.split('.')[0] }}\n", {"openssl"}),
        ("about:\n  summary: {{ 'a' + openssl }}\n", set()),
        ("{% if openssl == '3.5' %}\nabout:\n  summary: x\n{% endif %}\n", {"openssl"}),
        ("{% set x = openssl ~ 'y' %}\n", {"openssl"}),
        ("about:\n  summary: '{{ pin_compatible(\"zlib\") }}'\n", {"zlib"}),
        ("build:\n  force_use_keys:\n    - zlib\n", {"zlib"}),
        ("requirements:\n  host:\n    - zlib\nbuild:\n  force_ignore_keys:\n    - zlib\n", set()),
    ],
)
def test_what_counts_as_used(tmp_path: Path, text: str, keys: set[str]) -> None:
    assert used(tmp_path, text) == keys


def test_before_24_11_a_prefix_of_a_name_counted(tmp_path: Path) -> None:
    old = CondaBuildRules(whole_names_only=False)

    assert "cuda_compiler" in used(tmp_path, "about:\n  summary: {{ cuda_compiler_version }}\n", old)
    assert "cuda_compiler" not in used(tmp_path, "about:\n  summary: {{ cuda_compiler_version }}\n")


@pytest.mark.parametrize(
    ("script", "keys"),
    [
        ("echo $zlib \n", {"zlib"}),
        ("echo ${zlib}\n", {"zlib"}),
        ('echo "$zlib"\n', set()),
        ("echo $x $zlib \n", set()),
        ("echo $x\necho ${zlib}\n", {"zlib"}),
    ],
)
def test_build_scripts_count_by_the_first_dollar_of_a_line(tmp_path: Path, script: str, keys: set[str]) -> None:
    assert used(tmp_path, "", build_sh=script) == keys


def test_each_choice_of_a_looping_variable_is_an_output(tmp_path: Path) -> None:
    outputs = render(tmp_path, HEAD + "requirements:\n  host:\n    - python\n    - zlib\n  run:\n    - python\n")

    assert [output.variant["python"] for output in outputs] == ["3.12.* *_cpython", "3.13.* *_cp313"]
    assert all(output.used.top_level_loop == {"python"} for output in outputs)
    assert outputs[0].requirements["host"] == ("python 3.12.* *_cpython", "zlib 1.*")


def test_skipped_variants_make_nothing(tmp_path: Path) -> None:
    text = HEAD + "build:\n  skip: true  # [cuda_compiler_version != 'None']\n"

    assert {output.variant["cuda_compiler_version"] for output in render(tmp_path, text)} == {"None"}


def test_a_noarch_recipe_is_rendered_with_the_newest_python(tmp_path: Path) -> None:
    text = HEAD + "build:\n  noarch: python\nrequirements:\n  host:\n    - python\n  run:\n    - python\n"

    (output,) = render(tmp_path, text)

    assert output.noarch == "python"
    assert output.variants.values("python") == ("3.13.* *_cp313",)
    assert "target_platform" not in output.used.own


OUTPUTS = """
outputs:
  - name: lib{{ name }}
    build:
      string: cuda{{ cuda_compiler_version.replace('.', '') }}h{{ PKG_HASH }}_7  # [cuda_compiler_version != "None"]
      string: cpu_h{{ PKG_HASH }}_7  # [cuda_compiler_version == "None"]
    requirements:
      build:
        - {{ compiler('cuda') }}  # [cuda_compiler_version != "None"]
  - name: {{ name }}
    requirements:
      host:
        - python
        - lib{{ name }}
      run:
        - python
        - {{ pin_subpackage('lib' + name, exact=True) }}
"""


def test_outputs_come_dependencies_first_with_what_each_uses(tmp_path: Path) -> None:
    outputs = render(
        tmp_path, "{% set name = 'demo' %}\npackage:\n  name: {{ name }}-split\n  version: 1.10\n" + OUTPUTS
    )

    assert [output.name for output in outputs] == ["libdemo", "libdemo", "demo", "demo"]
    used = [output.used.own & {"cuda_compiler_version", "python"} for output in outputs]
    assert used[0] == {"cuda_compiler_version"}
    assert used[3] == {"python"}
    assert {output.version for output in outputs} == {"1.10"}


def test_the_hash_is_of_the_values_that_an_output_uses(tmp_path: Path) -> None:
    text = "{% set name = 'demo' %}\npackage:\n  name: {{ name }}-split\n  version: 1.10\n" + OUTPUTS
    contents = {
        "c_compiler": "",
        "channel_targets": "conda-forge main",
        "cuda_compiler": "cuda-nvcc",
        "cuda_compiler_version": "12.9",
        "target_platform": "linux-64",
    }
    del contents["c_compiler"]
    digest = hashlib.sha1(json.dumps(contents, sort_keys=True).encode()).hexdigest()[:7]  # noqa: S324 - conda-build's

    assert f"cuda129h{digest}_7" in {output.build_string for output in render(tmp_path, text)}


def test_a_python_package_has_python_and_a_hash_in_its_build_string(tmp_path: Path) -> None:
    outputs = render(
        tmp_path, HEAD + "build:\n  number: 4\nrequirements:\n  host:\n    - python\n  run:\n    - python\n"
    )

    assert [output.build_string[:5] + output.build_string[-2:] for output in outputs] == ["py312_4", "py313_4"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + "about:\n  summary: {{ x\n", "the template is invalid"),
        (HEAD + "about:\n  summary: {{ pin_subpackage('a', exact=True, exact=True) }}\n", "argument repeated"),
        (HEAD + "about: {a\n", "rendered, it is not YAML"),
        (HEAD + "build:\n  number: 0  # [linux and]\n", "cannot be evaluated"),
        ("- a\n", "mapping of sections"),
        ("", "no package/name"),
        (HEAD + "requirements: 5\n", "'requirements' must be a mapping"),
        (HEAD + f"build:\n  number: {'9' * 5000}\n", "has 5000 digits"),
        (HEAD + "build:\n  noarch: none\n  skip: true\n", "build/noarch is 'none'"),
        (HEAD + "requirements:\n  run: [pip: [a]]\n", "requirements/run has a mapping"),
        ("{% set x = load_file_regex('meta.yaml', '(', True) %}\n" + HEAD, "is not a regular expression"),
        ("package:\n  name: a\n  version: \0\n", "NUL"),
        (HEAD + "x" * 20_000, "longer than"),
        (HEAD + "x" * 512 * 1024, "larger than 512 KiB"),
        (HEAD + "\n" * 10_000, "more than 10000 lines"),
        (HEAD + "".join(f"a: b  # [a{number}]\n" for number in range(501)), "more than 500 different selectors"),
        (HEAD + "outputs:\n" + "".join(f"  - name: a{number}\n" for number in range(501)), "more than 500 outputs"),
    ],
)
def test_wrong_recipes_are_refused_with_the_file(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        render(tmp_path, text)

    assert caught.value.mistakes[0].path == tmp_path / "meta.yaml"


def test_a_recipe_cannot_loop_over_more_variants_than_any_does(tmp_path: Path) -> None:
    keys = {f"key{n}": tuple(map(str, range(40))) for n in range(6)}
    (tmp_path / "meta.yaml").write_text(
        HEAD + "about:\n  summary: " + " ".join(f"{{{{ {key} }}}}" for key in keys) + "\n"
    )

    with pytest.raises(InputError, match="loops over more than"):
        render_recipe(read_recipe(tmp_path), combine([defaults(LINUX), VariantConfig(keys)]), LINUX)


@pytest.mark.parametrize(
    ("host", "renderings"),
    [
        pytest.param("- zlib", 1, id="a bare requirement is filled in afterwards"),
        pytest.param('- {{ "a" if zlib == "1" else "b" }}', 3, id="named in a template"),
        pytest.param("- a  # [zlib == 1]\n    - zlib", 3, id="named in a selector"),
        pytest.param('- {{ environ["zl" + "ib"] }}\n    - zlib', 3, id="reached through the environment"),
    ],
)
def test_a_recipe_is_rendered_once_for_variants_that_its_templates_cannot_tell_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, renderings: int
) -> None:
    seen: list[tuple[Path, str | None]] = []

    def counted(path: Path, template: str | None, text: str, context: Mapping[str, Any], **more: Any) -> str:
        seen.append((path, template))
        return jinja.render(path, template, text, context, **more)

    monkeypatch.setattr(v0, "render", counted)
    (tmp_path / "meta.yaml").write_text(f"{HEAD}requirements:\n  host:\n    {host}\n    - zlib\n")
    config = combine([defaults(LINUX), PINNING.with_values({"zlib": ("1", "2", "3")})])
    made = render_recipe(read_recipe(tmp_path), config, LINUX).outputs
    assert len({one.build_string for one in made}) == 3
    assert [one.requirements["host"][-1] for one in made] == ["zlib 1.*", "zlib 2.*", "zlib 3.*"]
    assert len(seen) == renderings + 1  # the first, by conda-build's defaults, says whether the recipe is noarch


def test_a_script_too_long_for_a_file_name_is_not_a_file(tmp_path: Path) -> None:
    recipe = tmp_path / "meta.yaml"
    recipe.write_text(f"package: {{name: a, version: 1}}\noutputs:\n- {{name: b, script: {'x' * 300}.sh}}\n")
    (output,) = render_recipe(read_recipe(tmp_path), VariantConfig({}), Platform.parse("linux-64"), environ={}).outputs
    assert output.name == "b"


def test_a_version_is_found_in_a_file_by_a_regular_expression(tmp_path: Path) -> None:
    (tmp_path / "version.txt").write_text("name = demo\nversion = 1.25\n")
    search = r"""load_file_regex('version.txt', 'version = ([0-9.]+)', from_recipe_dir=True)"""
    (output,) = render(tmp_path, f"package:\n  name: demo\n  version: {{{{ {search}[1] }}}}\n")
    assert output.version == "1.25"


def test_a_file_that_is_not_beside_the_recipe_is_refused_as_by_conda_build(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"meta\.yaml:1: .*there is no file 'nothing\.json' beside the recipe"):
        render(tmp_path, "{% set data = load_file_data('nothing.json', from_recipe_dir=True) %}\npackage: {name: a}\n")


def test_selectors_of_an_imported_file_count(tmp_path: Path) -> None:
    (tmp_path / "names.jinja").write_text("{% set v = '1' %}  # [py < 312]\n{% set v = '2' %}  # [py >= 312]\n")
    (tmp_path / "meta.yaml").write_text(
        "{% from 'names.jinja' import v %}\npackage:\n  name: demo\n  version: {{ v }}\n"
        "requirements:\n  host: [python]\n  run: [python]\n"
    )
    rules = CondaBuildRules()
    pythons = VariantConfig({"python": ("3.11", "3.12")})
    config = combine([defaults(LINUX, rules), pythons])
    outputs = render_recipe(read_recipe(tmp_path, rules), config, LINUX).outputs
    assert sorted(output.version for output in outputs) == ["1", "2"]
