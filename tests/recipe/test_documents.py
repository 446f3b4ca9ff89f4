"""The text of recipes as parts with places: templates, selectors, line ends, and invalid text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedstock_tools.edit.writing import added_item, removed_entry, removed_items, replaced
from feedstock_tools.errors import InputError
from feedstock_tools.recipe.written.document import Document, Part, masked, read_document

META = """\
{% set version = "1.2.3" %}
{% set build = 3 %}  # [linux]
{#- a comment
    of two lines -#}
package:
  name: "demo"   # the name
  version: {{ version }}
{% if cuda_compiler_version != "None" %}
  extra: 'it''s'
{% endif %}
build:
  script: one.sh  # [unix]
  script:  # [win]
    - two.bat
requirements:
  host:
  - python
  - numpy >=2   # [linux]
  - {{ compiler("c") }}
  run: [a, "b",  c]
test:
  commands: |
    {% for name in names %}
    echo {{ name }}
    {% endfor %}
about:
  license:
"""


def document(text: str = META, name: str = "meta.yaml") -> Document:
    return Document(Path("recipe") / name, text)


def scalars(part: Part) -> Iterator[Part]:
    if part.kind == "scalar":
        yield part
    for child in (*(entry.value for entry in part.entries), *part.items):
        yield from scalars(child)


def value(text: Document, *keys: str) -> Part:
    return next(text.entries(*keys)).value


def test_a_template_is_masked_by_as_many_characters() -> None:
    assert len(masked(META)) == len(META)
    assert [len(line) for line in masked(META).splitlines()] == [len(line) for line in META.splitlines()]
    assert "{" not in masked(META)


@pytest.mark.parametrize(
    ("keys", "texts"),
    [
        (("package", "name"), ["demo"]),
        (("package", "version"), ["{{ version }}"]),
        (("package", "extra"), ["it's"]),
        (("requirements", "host", "*", "x"), []),
        (("about", "license"), [""]),
    ],
)
def test_values_are_found_by_their_keys(keys: tuple[str, ...], texts: list[str]) -> None:
    assert [entry.value.text for entry in document().entries(*keys)] == texts


def test_keys_that_selectors_tell_apart_are_all_found() -> None:
    recipe = document()
    assert [recipe.selector_of(entry) for entry in recipe.entries("build", "script")] == ["unix", "win"]
    assert [item.text for item in value(recipe, "requirements", "host").items][-1] == '{{ compiler("c") }}'


def test_every_scalar_stands_where_it_says() -> None:
    recipe = document()
    assert recipe.root is not None
    found = list(scalars(recipe.root))
    assert len(found) > 10
    assert all(recipe.text[part.start : part.end] == part.source for part in found)


def test_what_stands_in_a_block_of_jinja_is_known() -> None:
    recipe = document()
    assert recipe.is_in_block(recipe.text.index("extra:"))
    assert not recipe.is_in_block(recipe.text.index("build:"))


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("at_end", [True, False])
def test_an_item_that_comes_and_goes_leaves_the_bytes_of_before(newline: str, at_end: bool) -> None:
    text = "a:\n  - x  # first\n  - z\nb: [1, 2]\nzip_keys:\n  - - x\n    - y\n".replace("\n", newline)
    before = document(text if at_end else text.rstrip(), "variants.yaml")
    for keys in (("a",), ("b",), ("zip_keys",)):
        longer = before.changed(added_item(before, value(before, *keys), "new"))
        assert longer.newline == newline
        list_ = value(longer, *keys)
        item = next(item for item in list_.items if item.text == "new")
        assert longer.changed(removed_items(longer, list_, [item])) == before


def test_an_item_of_a_sorted_list_comes_to_its_place() -> None:
    recipe = document("a:\n- bear\n- cat\n- dog\n", "recipe.yaml")
    assert recipe.changed(added_item(recipe, value(recipe, "a"), "cow")).text == "a:\n- bear\n- cat\n- cow\n- dog\n"
    assert recipe.changed(added_item(recipe, value(recipe, "a"), "cow", sort=False)).text.endswith("- dog\n- cow\n")


@pytest.mark.parametrize(
    ("before", "text", "after"),
    [
        ("a: x  # why\n", "y", "a: y  # why\n"),
        ("a: 'x'\n", "it's", "a: 'it''s'\n"),
        ('a: "x"\n', 'say "y"', 'a: "say \\"y\\""\n'),
        ("a: 1\n", "2", "a: 2\n"),
        ("a: 2.1\n", "2.10", 'a: "2.10"\n'),  # as a number it would be 2.1
        ("a: x\n", "3", 'a: "3"\n'),
        ("a: x\n", "key: value", 'a: "key: value"\n'),
        ("a:\n", "y", "a: y\n"),
        ("a: [x, b]\n", "y", "a: [y, b]\n"),
        ("a: x\n", "${{ version }}", "a: ${{ version }}\n"),
    ],
)
def test_a_value_keeps_the_quotes_and_the_comment_of_the_old_one(before: str, text: str, after: str) -> None:
    recipe = document(before, "recipe.yaml")
    assert recipe.root is not None
    scalar = next(scalars(recipe.root))
    changed = recipe.changed(replaced(recipe, scalar, text))
    assert changed.text == after
    assert changed.root is not None
    assert next(scalars(changed.root)).text == text


def test_a_block_of_text_is_not_replaced_as_a_word() -> None:
    with pytest.raises(InputError, match=r"recipe/meta\.yaml:22:13: expected a value in one line here"):
        replaced(document(), value(document(), "test", "commands"), "x")


def test_a_key_goes_with_its_lines() -> None:
    recipe = document()
    second = list(recipe.entries("build", "script"))[1]
    assert "two.bat" not in recipe.changed(removed_entry(recipe, second)).text


def test_a_line_that_holds_more_is_not_removed() -> None:
    recipe = document("- if: linux\n  then: a\n", "recipe.yaml")
    assert recipe.root is not None
    with pytest.raises(InputError, match="shares its line with a dash"):
        removed_entry(recipe, recipe.root.items[0].entries[0])


def test_text_that_is_not_yaml_is_an_error_with_its_line() -> None:
    with pytest.raises(InputError, match=r"recipe/meta\.yaml:3:2: is not YAML"):
        _ = document("a:\n  - b\n c: d\n").root


def test_an_alias_is_a_part_without_characters() -> None:
    anchored = document("a: &x [1, 2]\nb: *x\n", "recipe.yaml")
    assert [value(anchored, key).kind for key in "ab"] == ["sequence", "alias"]
    with pytest.raises(InputError, match="expected a value in one line"):
        replaced(anchored, value(anchored, "b"), "y")


@given(st.text(st.sampled_from("ab{}%# :-'\"[],\n|&*!"), max_size=60))
def test_any_text_is_refused_or_comes_back(text: str) -> None:
    recipe = document(text)
    assert len(masked(text)) == len(text)
    try:
        root = recipe.root
    except InputError:
        return
    for part in scalars(root) if root is not None else ():
        assert recipe.text[part.start : part.end] == part.source
        if not part.is_block_text:
            assert replaced(recipe, part, part.text) == []


def test_a_file_must_be_text_inside_the_feedstock(tmp_path: Path) -> None:
    (tmp_path / "meta.yaml").write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(InputError, match=r"meta\.yaml:2: is not a text file in UTF-8"):
        read_document(tmp_path / "meta.yaml", within=tmp_path)
    (tmp_path / "recipe.yaml").symlink_to("/etc/hostname")
    with pytest.raises(InputError, match="leads out of the feedstock"):
        read_document(tmp_path / "recipe.yaml", within=tmp_path)


def test_a_list_that_a_macro_begins_is_a_list() -> None:
    text = "test:\n  commands: {{ common() }}\n    # more\n      - demo --version\n  requires:\n    - pip\n"
    recipe = Document(Path("meta.yaml"), text)
    (commands,) = [entry.value for entry in recipe.entries("test", "commands")]
    assert [item.text for item in commands.items] == ["demo --version"]
    nested = "a:\n  - name: {{ x }}\n  - name: {{ y }}\n"
    names = [entry.value.text for entry in Document(Path("meta.yaml"), nested).entries("a", "*", "name")]
    assert names == ["{{ x }}", "{{ y }}"]
