"""Recipes that people wrote become specs whose generated recipes mean the same."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from feedstock_tools.edit.importing.content import Content, recipe_content
from feedstock_tools.edit.importing.importing import Imported, import_recipe
from feedstock_tools.edit.importing.reading.samples import Sample
from feedstock_tools.errors import InputError
from feedstock_tools.generate import generate
from feedstock_tools.generate.spec.reading import spec_from_text
from feedstock_tools.rerender.source import Source
from tests.support import command

PINNING = """
c_compiler:
  - gcc          # [linux]
  - clang        # [osx]
  - vs2022       # [win]
cxx_compiler:
  - gxx          # [linux]
  - clangxx      # [osx]
  - vs2022       # [win]
c_stdlib:
  - sysroot      # [linux]
  - macosx_deployment_target  # [osx]
  - vs           # [win]
cuda_compiler:
  - cuda-nvcc
cuda_compiler_version:
  - None
  - 12.9         # [linux or win]
python:
  - 3.11.* *_cpython
  - 3.12.* *_cpython
mpi:
  - nompi
zlib:
  - 1
libsolve:
  - 4
channel_targets:
  - conda-forge main
"""
FORGE = "build_platform:\n  osx_arm64: osx_64\nprovider:\n  linux_aarch64: default\n"
META = """
{% set version = "2.4.1" %}
{% set data_version = "7.0" %}
{% set build = 3 %}
{% if cuda_compiler_version != "None" %}
{% set build = build + 100 %}
{% endif %}
{% set headers = ["axis.h", "grid.h"] + (cuda_compiler_version != "None") * ["gpu.h"] %}
{% set flavour = "cuda" ~ cuda_compiler_version.replace(".", "") if cuda_compiler_version != "None" else "cpu" %}

package:
  name: solver-split
  version: {{ version }}

source:
  - url: https://example.org/solver-{{ version }}.tar.gz
    sha256: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
    patches:
      - patches/a.patch
      - patches/b.patch  # [win]
  - url: https://example.org/data-{{ data_version }}.tar.gz
    sha256: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
    folder: data

build:
  number: {{ build }}
  skip: true  # [win and cuda_compiler_version != "None"]
  skip: true  # [aarch64 and level == 3]

outputs:
  - name: libsolver
    script: build-lib.sh   # [unix]
    script: build-lib.bat  # [win]
    build:
      string: {{ flavour }}h{{ PKG_HASH }}_{{ PKG_BUILDNUM }}
      missing_dso_whitelist:
        - "*/libcuda.so*"  # [linux]
      run_exports:
        - {{ pin_subpackage("libsolver", max_pin="x.x") }}
    requirements:
      build:
        - {{ compiler("c") }}
        - {{ stdlib("c") }}
        - {{ compiler("cuda") }}  # [cuda_compiler_version != "None"]
        - level-flags =={{ level }}  # [linux]
        - cmake  # [build_platform != target_platform]
      host:
        # Newer ones
        # work as well.
        - zlib
        {% if cuda_compiler_version != "None" %}
        - cuda-version {{ cuda_compiler_version }}
        - libcublas-dev  # [linux]
        {% endif %}
      run:
        - __cuda  # [cuda_compiler_version != "None"]
      run_constrained:
        - solver-data =={{ data_version }}
    test:
      commands:
        {% for header in headers %}
        - test -f $PREFIX/include/{{ header }}  # [unix]
        {% endfor %}

  # For those who calculate in Python.
  - name: pysolver
    build:
      # It needs the new syntax.
      skip: true  # [py < 312]
      string: py{{ CONDA_PY }}h{{ PKG_HASH }}_{{ PKG_BUILDNUM }}
      track_features:
        - solver-cpu  # [cuda_compiler_version == "None"]
      entry_points:
        - solve = pysolver:main
      script:
        - {{ PYTHON }} -m pip install .
    requirements:
      build:
        - python                              # [build_platform != target_platform]
        - cross-python_{{ target_platform }}  # [build_platform != target_platform]
      host:
        - python
        - pip
        - {{ pin_subpackage("libsolver", exact=True) }}
      run:
        - python
        - numpy >=2,<3
        - {{ pin_subpackage("libsolver", exact=True) }}
    test:
      requires:
        - pip
      imports:
        - pysolver  # [build_platform == target_platform]
      commands:
        - python -c "print(f'{pysolver}')"

about:
  home: https://example.org
  license: MIT
  license_file: LICENSE
  summary: Solves
  doc_source_url: https://example.org/docs

extra:
  recipe-maintainers:
    - someone
"""
CONFIG = """
level:
  - 1
  - 3  # [linux]
"""
RECIPE = """
context:
  version: "2.4.1"
  build: 3
  flavour: ${{ "cuda" + (cuda_compiler_version | replace(".", "")) if cuda_compiler_version != "None" else "cpu" }}

package:
  name: solver
  version: ${{ version }}

source:
  url: https://example.org/solver-${{ version }}.tar.gz
  sha256: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa

build:
  number: ${{ build if cuda_compiler_version == "None" else build + 200 }}
  string: ${{ flavour }}_py${{ python | version_to_buildstring }}h${{ hash }}_${{ build_number }}
  skip:
    - win
    - match(python, "<3.12")
  script:
    - if: unix
      then: |
        cmake -B build
        cmake --install build
  dynamic_linking:
    missing_dso_allowlist:
      - "*/libcuda.so*"

requirements:
  build:
    - ${{ compiler("cxx") }}
    - if: cuda_compiler_version != "None"
      then:
        - ${{ compiler("cuda") }}
    - if: build_platform != target_platform
      then:
        - python
        - cross-python_${{ target_platform }}
  host:
    - python
    - zlib
    - if: cuda_compiler_version != "None"
      then: cuda-version ${{ cuda_compiler_version }}.*
  run:
    - python
    - ${{ pin_compatible("zlib", upper_bound="x.x") }}
  run_exports:
    weak:
      - ${{ pin_subpackage("solver", upper_bound="x.x") }}

tests:
  - python:
      imports: [solver]
      pip_check: true
  - package_contents:
      lib: [solver]

about:
  homepage: https://example.org
  license: MIT
  license_file: LICENSE
  summary: Solves

extra:
  recipe-maintainers: [someone]
"""


def _feedstock(folder: Path, files: dict[str, str]) -> Path:
    for name, text in {"pinning/conda_build_config.yaml": PINNING, **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder / "solver-feedstock"


@pytest.fixture
def v0(tmp_path: Path) -> Path:
    return _feedstock(
        tmp_path,
        {
            "solver-feedstock/recipe/meta.yaml": META,
            "solver-feedstock/recipe/conda_build_config.yaml": CONFIG,
            "solver-feedstock/conda-forge.yml": FORGE,
            **{f"solver-feedstock/recipe/{name}": "" for name in ("build-lib.sh", "build-lib.bat", "patches/a.patch")},
            "solver-feedstock/recipe/patches/b.patch": "",
        },
    )


@pytest.fixture
def v1(tmp_path: Path) -> Path:
    forge = f"{FORGE}conda_build_tool: rattler-build\n"
    return _feedstock(
        tmp_path, {"solver-feedstock/recipe/recipe.yaml": RECIPE, "solver-feedstock/conda-forge.yml": forge}
    )


def _imported(feedstock: Path) -> Imported:
    return import_recipe(feedstock, pinning=feedstock.parent / "pinning")


def test_a_meta_yaml_becomes_a_spec_that_means_the_same(v0: Path) -> None:
    found = _imported(v0)

    assert found.differences == ()
    assert (found.outputs, found.lost) == (2, ())
    assert found.configurations > 5


def test_a_recipe_yaml_becomes_a_spec_that_means_the_same(v1: Path) -> None:
    found = _imported(v1)

    assert found.differences == ()
    assert (found.outputs, found.lost) == (1, ())
    assert found.configurations > 3


def test_conditions_are_those_of_the_recipe(v0: Path) -> None:
    spec = spec_from_text(_imported(v0).text)

    library, binding = spec.outputs
    said = {item.package: item.when for item in library.requirements.host}
    assert set(said) == {"zlib", "cuda-version {cuda}", "libcublas-dev"}
    assert said["zlib"] is None
    lines = _imported(v0).text.splitlines()
    assert "        - {package: __cuda, when: cuda}" in lines
    assert "        - {package: cmake, when: cross}" in lines
    assert '        - {package: "level-flags =={level}", when: linux}' in lines
    assert "  - win and cuda" in lines
    assert '  - aarch64 and level == "3"' in lines
    assert [pin.pin for pin in binding.requirements.run if pin.pin] == ["libsolver"]
    assert binding.version is None
    assert "      - python < 3.12" in lines
    assert spec.maintainers == ("someone",)


def test_numbers_strings_and_texts_with_names_are_said_once(v0: Path) -> None:
    spec = spec_from_text(_imported(v0).text)

    assert spec.build.number == 3
    assert [offset.by for offset in spec.build.offsets] == [100]
    assert spec.values == {"data_version": "7.0"}
    assert [choice.value for choice in spec.outputs[0].string] == [
        "cuda{cuda_digits}h{hash}_{build_number}",
        "cpuh{hash}_{build_number}",
    ]
    assert spec.sources[1].url == ("https://example.org/data-{data_version}.tar.gz",)
    assert [value.value for value in spec.variants["level"]] == ["1", "3"]


def test_a_comment_with_a_sure_place_stays_and_others_are_counted(v0: Path) -> None:
    found = _imported(v0)
    library, binding = spec_from_text(found.text).outputs

    assert [item.why for item in library.requirements.host if item.why] == ["Newer ones work as well."]
    assert binding.why == "For those who calculate in Python."
    assert found.comments_left == 1


def test_what_a_loop_makes_is_a_list(v0: Path) -> None:
    commands = [item.command for item in spec_from_text(_imported(v0).text).outputs[0].test.commands]

    assert commands == [f"test -f $PREFIX/include/{name}" for name in ("axis.h", "grid.h", "gpu.h")]


def test_what_a_spec_cannot_hold_is_verbatim_and_counted(v0: Path) -> None:
    found = _imported(v0)

    blocks = {(block.output, block.section) for block in found.verbatim}
    assert blocks == {("libsolver", "build"), ("pysolver", "test"), (None, "about")}
    assert found.verbatim_lines == sum(block.lines for block in found.verbatim)
    assert found.verbatim_lines < found.lines / 4


def test_requirements_pins_and_variants_are_never_verbatim(v0: Path, v1: Path) -> None:
    for feedstock in (v0, v1):
        assert not {block.section for block in _imported(feedstock).verbatim} & {"requirements", "variants"}


def test_the_spec_generates_without_further_words(v0: Path) -> None:
    first = _imported(v0)
    first.write()

    generated = generate(v0)
    generated.apply(force=True)

    assert generate(v0).stale == ()
    again = _imported(v0)
    assert again.differences == ()
    assert again.verbatim == first.verbatim


def test_a_difference_is_told(v0: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_zlib(source: Source, samples: Sequence[Sample], name: str) -> Content:
        said = recipe_content(source, samples, name)
        del said.content["outputs"][0]["requirements"]["host"][0]
        return said

    monkeypatch.setattr("feedstock_tools.edit.importing.importing.recipe_content", without_zlib)

    told = {difference.what: (difference.written, difference.generated) for difference in _imported(v0).differences}
    assert told["libsolver, host"] == ("zlib 1.*", "")


def test_the_command_writes_and_counts(v0: Path) -> None:
    words = ("import", str(v0), "--pinning", str(v0.parent / "pinning"))
    done = command.run(command.tool(*words), v0)

    assert done.returncode == 0, done.stderr
    assert (v0 / "feedstock.yaml").is_file()
    assert "2 outputs" in done.stdout
    assert "verbatim" in done.stdout
    assert "  output libsolver, build: 4 lines" in done.stdout.splitlines()
    assert done.stdout.endswith("the generated recipe renders to the same\n")

    again = command.run(command.tool(*words), v0)
    assert again.returncode == 2
    assert "is there already" in again.stderr


def test_the_command_prints_json_and_writes_nothing_when_it_checks(v1: Path) -> None:
    words = ("import", str(v1), "--pinning", str(v1.parent / "pinning"), "--check", "--json")
    done = command.run(command.tool(*words), v1)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["differences"] == []
    assert not (v1 / "feedstock.yaml").exists()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{% set build = 3 %}", "{% set build = %}"),
        ("# [py < 312]", "# [py <]"),
        ("sha256: " + "b" * 64, "sha256: none"),
        ("{% endif %}\n{% set headers", "{% set headers"),
    ],
    ids=["statement", "selector", "hash", "block"],
)
def test_an_invalid_recipe_is_one_message_and_nothing_is_written(v0: Path, old: str, new: str) -> None:
    path = v0 / "recipe/meta.yaml"
    assert old in META
    path.write_text(META.replace(old, new))

    done = command.run(command.tool("import", str(v0), "--pinning", str(v0.parent / "pinning")), v0)

    assert done.returncode == 2
    assert done.stderr.count("error:") == 1
    assert "Traceback" not in done.stderr
    assert not (v0 / "feedstock.yaml").exists()


def test_a_recipe_that_builds_nothing_is_refused(v1: Path) -> None:
    path = v1 / "recipe/recipe.yaml"
    path.write_text(RECIPE.replace("    - win\n", "    - linux or osx or win\n"))

    with pytest.raises(InputError, match="builds nothing in any configuration"):
        _imported(v1)
