"""Recipes that people wrote become specs whose generated recipes mean the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from feedstock_tools.errors import InputError
from feedstock_tools.generate.generating import generate
from feedstock_tools.generate.spec.reading import spec_from_text
from feedstock_tools.importing import import_recipe
from feedstock_tools.importing.content import Content, recipe_content
from feedstock_tools.importing.samples import Sample
from feedstock_tools.rerender.source import Source
from tests.support.importing import RECIPE, feedstock, imported


def test_a_meta_yaml_becomes_a_spec_that_means_the_same(v0: Path) -> None:
    found = imported(v0)

    assert found.differences == ()
    assert (found.outputs, found.lost) == (2, ())
    assert found.configurations > 5


def test_a_recipe_yaml_becomes_a_spec_that_means_the_same(v1: Path) -> None:
    found = imported(v1)

    assert found.differences == ()
    assert (found.outputs, found.lost) == (1, ())
    assert found.configurations > 3


def test_conditions_are_those_of_the_recipe(v0: Path) -> None:
    spec = spec_from_text(imported(v0).text)

    library, binding = spec.outputs
    said = {item.package: item.when for item in library.requirements.host}
    assert set(said) == {"zlib", "cuda-version {cuda}", "libcublas-dev"}
    assert said["zlib"] is None
    lines = imported(v0).text.splitlines()
    assert "        - {package: __cuda, when: cuda}" in lines
    assert "        - {package: cmake, when: cross}" in lines
    assert '        - {package: "level-flags =={level}", when: linux}' in lines
    assert "  - win and cuda" in lines
    assert '  - aarch64 and level == "3"' in lines
    assert [pin.pin for pin in binding.requirements.run if pin.pin] == ["libsolver"]
    assert binding.version is None
    assert "      - {when: python < 3.12, why: It needs the new syntax.}" in lines
    assert spec.maintainers == ("someone",)


def test_numbers_strings_and_texts_with_names_are_said_once(v0: Path) -> None:
    spec = spec_from_text(imported(v0).text)

    assert spec.build.number == 3
    assert [offset.by for offset in spec.build.offsets] == [100]
    assert spec.values == {"data_version": "7.0"}
    assert [choice.value for choice in spec.outputs[0].string] == [
        "cuda{cuda_digits}h{hash}_{build_number}",
        "cpuh{hash}_{build_number}",
    ]
    assert spec.sources[1].url == ("https://example.org/data-{data_version}.tar.gz",)
    assert [value.value for value in spec.variants["level"]] == ["1", "3"]


def test_each_free_comment_is_kept_where_its_line_is(v0: Path) -> None:
    path = v0 / "recipe/meta.yaml"
    text = path.read_text().replace("{% set data_version", "# For {{ version }}.\n{% set data_version")
    text = text.replace("        - pip\n", "        - pip\n        # Not yet:\n        # - wheel  # [win]\n", 1)
    path.write_text(
        text.replace("      commands:\n        - python -c", "      commands:\n        # It runs.\n        - python -c")
    )

    found = imported(v0)
    library, binding = spec_from_text(found.text).outputs

    assert [item.why for item in library.requirements.host if item.why] == ["Newer ones\nwork as well."]
    assert binding.why == "For those who calculate in Python."
    assert [skip.why for skip in binding.skip] == ["It needs the new syntax."]
    lines = found.text.splitlines()
    assert lines[0] == "# For {{ version }}."
    assert lines[lines.index("  - name: pysolver") + 1 :][:3] == [
        "    # Not yet:",
        "    # - wheel  # [win]",
        "    # It runs.",
    ]
    assert found.comments_left == 0


def test_comments_of_a_list_come_above_its_first_entry_in_the_generated_recipe(v1: Path) -> None:
    path = v1 / "recipe/recipe.yaml"
    head = "  host:\n"
    assert head in path.read_text()
    path.write_text(path.read_text().replace(head, "  # What it links to.\n" + head, 1))

    (output,) = spec_from_text(imported(v1).text).outputs
    assert output.requirements.host[0].why == "What it links to."


def test_what_a_loop_makes_is_a_list(v0: Path) -> None:
    commands = [item.command for item in spec_from_text(imported(v0).text).outputs[0].test.commands]

    assert commands == [f"test -f $PREFIX/include/{name}" for name in ("axis.h", "grid.h", "gpu.h")]


def test_what_a_spec_cannot_hold_is_verbatim_and_counted(v0: Path) -> None:
    found = imported(v0)

    blocks = {(block.output, block.section) for block in found.verbatim}
    assert blocks == {("libsolver", "build"), ("pysolver", "test"), (None, "about")}
    assert found.verbatim_lines == sum(block.lines for block in found.verbatim)
    assert found.verbatim_lines < found.lines / 4


def test_requirements_pins_and_variants_are_never_verbatim(v0: Path, v1: Path) -> None:
    for folder in (v0, v1):
        assert not {block.section for block in imported(folder).verbatim} & {"requirements", "variants"}


def test_the_spec_generates_without_further_words(v0: Path) -> None:
    first = imported(v0)
    first.write()

    generated = generate(v0)
    generated.apply(force=True)

    assert generate(v0).stale == ()
    again = imported(v0)
    assert again.differences == ()
    assert again.verbatim == first.verbatim


def test_a_difference_is_told(v0: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_zlib(source: Source, samples: Sequence[Sample], name: str) -> Content:
        said = recipe_content(source, samples, name)
        del said.content["outputs"][0]["requirements"]["host"][0]
        return said

    monkeypatch.setattr("feedstock_tools.importing.importing.recipe_content", without_zlib)

    found = import_recipe(v0, pinning=v0.parent / "pinning")
    told = {difference.what: (difference.written, difference.generated) for difference in found.differences}
    assert told["libsolver, host"] == ("zlib 1.*", "")


def test_tests_of_the_top_level_belong_to_the_output_with_the_recipes_name(v0: Path) -> None:
    path = v0 / "recipe/meta.yaml"
    named = path.read_text().replace("name: solver-split", "name: libsolver")
    own = named[named.index("    test:\n") : named.index("  # For those who")]
    named = named.replace(own, "\n", 1)
    path.write_text(named.replace("\nabout:", "\ntest:\n  commands:\n    - test -f $PREFIX/lib/top\n\nabout:", 1))

    found = imported(v0)
    assert "test -f $PREFIX/lib/top" in found.text
    assert not [each for each in found.text_differences if each.what == "libsolver, tests"]


def test_texts_that_differ_are_listed_apart(v1: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_imports(source: Source, samples: Sequence[Sample], name: str) -> Content:
        said = recipe_content(source, samples, name)
        del said.content["outputs"][0]["test"]
        return said

    monkeypatch.setattr("feedstock_tools.importing.importing.recipe_content", without_imports)

    found = import_recipe(v1, pinning=v1.parent / "pinning")
    assert found.differences == ()
    assert {each.what for each in found.text_differences} == {"solver, tests"}
    assert "python.imports: solver" in found.text_differences[0].written


def test_placeholders_in_addresses_are_filled(v1: Path) -> None:
    path = v1 / "recipe/recipe.yaml"
    address = "  documentation: https://example.org/${{ version }}/\n"
    path.write_text(path.read_text().replace("  license: MIT\n", f"  license: MIT\n{address}"))

    found = imported(v1)
    assert "documentation: https://example.org/{version}/" in found.text
    assert found.text_differences == ()


def test_a_recipe_that_builds_nothing_is_refused(v1: Path) -> None:
    path = v1 / "recipe/recipe.yaml"
    path.write_text(RECIPE.replace("    - win\n", "    - linux or osx or win\n"))

    with pytest.raises(InputError, match="builds nothing in any configuration"):
        imported(v1)


def test_settings_that_no_condition_tells_apart_are_refused(tmp_path: Path) -> None:
    recipe = "package: {name: solver, version: '1'}\nbuild:\n  skip: true  # [not cuda_compiler_version]\n"
    configuration = "cuda_compiler_version: ['None', '12.9']\ntarget_platform: [linux-64]\n"
    made = {"recipe/meta.yaml": recipe, "conda-forge.yml": "", ".ci_support/linux_64_.yaml": configuration}
    folder = feedstock(tmp_path, {f"solver-feedstock/{name}": text for name, text in made.items()})

    with pytest.raises(InputError) as refused:
        import_recipe(folder)

    (mistake,) = refused.value.mistakes
    assert mistake.path == folder / "recipe/meta.yaml"
    assert "linux-64 with no cuda_compiler_version, and linux-64 with cuda_compiler_version None" in mistake.message
    assert "--pinning" in str(mistake.hint)


def test_a_variable_of_two_templates_and_a_negative_number_are_read(v1: Path) -> None:
    path = v1 / "recipe/recipe.yaml"
    candidate = 'context:\n  base: "2.4"\n  candidate: -1\n'
    version = "  version: ${{ base }}${{ \".1\" if candidate < 0 else 'rc' ~ candidate }}"
    path.write_text(RECIPE.replace('context:\n  version: "2.4.1"', f"{candidate}{version}"))

    found = imported(v1)

    assert "version: 2.4.1" in found.text.splitlines()
    assert found.differences == ()


def test_test_files_of_a_pattern_and_an_output_s_own_license_address_are_kept(v0: Path) -> None:
    (v0 / "recipe/cases").mkdir()
    (v0 / "recipe/cases/one.txt").touch()
    path = v0 / "recipe/meta.yaml"
    terms = "    about:\n      license_url: https://example.org/terms\n"
    own = f"{terms}    test:\n      files:\n        - cases/*\n      requires:"
    path.write_text(path.read_text().replace("    test:\n      requires:", own, 1))

    found = imported(v0)
    binding = spec_from_text(found.text, recipe=v0 / "recipe").outputs[1]

    assert (binding.test.files, binding.about.license_url) == (("cases/*",), "https://example.org/terms")
    assert (found.differences, found.text_differences) == ((), ())
