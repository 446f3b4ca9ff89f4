"""New versions and build numbers, as recipes of both formats write them."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from feedstock_tools.edit.sources import keeps_all_sources
from feedstock_tools.edit.version import (
    left_behind,
    lowered,
    move_to,
    raise_build_number,
    set_build_number,
    set_version,
    version_of,
)
from feedstock_tools.errors import InputError
from feedstock_tools.recipe.written.document import Document

OLD, OTHER, NEW = "a" * 64, "b" * 64, "c" * 64


def meta(text: str) -> Document:
    return Document(Path("meta.yaml"), text)


def v1(text: str) -> Document:
    return Document(Path("recipe.yaml"), text)


def with_source(version: str, url: str = "https://example.org/x-{{ version }}.tar.gz") -> str:
    return f"{version}\nsource:\n  url: {url}\n  sha256: {OLD}\nbuild:\n  number: 7\n"


def changing(recipe: Document, version: str) -> list[str]:
    """The addresses of the sources that change with a version, as the refusal to do without their hashes lists them."""
    with pytest.raises(InputError) as refused:
        set_version(recipe, version, ())
    hint = refused.value.mistakes[0].hint or ""
    return [line.split()[0] for line in hint.splitlines()[1:]]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{% set version = "1.2" %}\npackage:\n  version: {{ version }}', '{% set version = "1.3" %}'),
        ("{% set version = '1.2' %}\npackage:\n  version: {{ version }}", "{% set version = '1.3' %}"),
        ("{%- set version='1.2' -%}\npackage:\n  version: '{{version}}'", "{%- set version='1.3' -%}"),
        ("package:\n  version: 1.2  # now", "  version: 1.3  # now"),
        ('{% set v = "1-2" %}\npackage:\n  version: {{ v|replace("-", ".") }}', '{% set v = "1-3" %}'),
        (
            "{% set a = '1' %}\n{% set b = 2 %}\npackage:\n  version: {{ a }}.{{ b }}",
            "{% set a = '1' %}\n{% set b = 3 %}",
        ),
        (
            '{% set version = "1.2" %}\n{% set dev = "" %}\npackage:\n  version: {{ version }}{{ dev }}',
            '{% set version = "1.3" %}\n{% set dev = "" %}',
        ),
    ],
)
def test_the_literal_that_decides_the_version_changes(before: str, after: str) -> None:
    recipe = meta(with_source(before, "https://example.org/fixed.tar.gz"))
    changed = set_version(recipe, "1.3", ())
    assert changed.text.startswith(after) or f"\n{after}" in changed.text
    assert version_of(changed) == "1.3"
    assert OLD in changed.text


def test_a_source_whose_address_changes_gets_the_hash() -> None:
    text = f"""\
{{% set version = "1.2.0" %}}
{{% set minor = ".".join(version.split(".")[:2]) %}}
package:
  version: {{{{ version }}}}
source:
  - url: https://example.org/data-{{{{ minor }}}}.tar.gz
    sha256: {OTHER}
  - url: https://example.org/x-{{{{ version }}}}.tar.gz
    sha256: {OLD}
"""
    recipe = meta(text)
    assert changing(recipe, "1.2.1") == ["https://example.org/x-1.2.1.tar.gz"]
    assert set_version(recipe, "1.2.1", (NEW,)).text == text.replace("1.2.0", "1.2.1").replace(OLD, NEW)
    assert len(changing(recipe, "1.3.0")) == 2


def test_hashes_of_platforms_go_with_their_selectors() -> None:
    text = """\
{% set version = "1.2" %}
{% set digest = "AAAA" %}  # [linux]
{% set digest = "BBBB" %}  # [osx]
package:
  version: {{ version }}
source:
  url: https://example.org/linux-{{ version }}.gz  # [linux]
  url: https://example.org/osx-{{ version }}.gz  # [osx]
  sha256: {{ digest }}
""".replace("AAAA", OLD).replace("BBBB", OTHER)
    changed = set_version(meta(text), "1.3", (NEW, "d" * 64)).text
    assert changed == text.replace('"1.2"', '"1.3"').replace(OLD, NEW).replace(OTHER, "d" * 64)


def test_a_recipe_yaml_changes_in_its_context() -> None:
    text = f"""\
context:
  version: "1.2"   # upstream
  build: 3
package:
  version: ${{{{ version }}}}
source:
  - if: linux
    then:
      url: https://example.org/x-${{{{ version | split(".") | first }}}}/${{{{ version }}}}.gz
      sha256: {OLD}
build:
  number: ${{{{ build }}}}
"""
    assert set_version(v1(text), "1.10", (NEW,)).text == text.replace("1.2", "1.10").replace(OLD, NEW).replace(
        "d: 3", "d: 0"
    )


def test_hashes_come_from_the_addresses_where_they_are_not_given() -> None:
    asked: list[tuple[str, str]] = []

    def digest(url: str, kind: str) -> str:
        asked.append((url, kind))
        return NEW

    set_version(meta(with_source('{% set version = "1.2" %}\npackage:\n  version: {{ version }}')), "2.0", digest)
    assert asked == [("https://example.org/x-2.0.tar.gz", "sha256")]


@pytest.mark.parametrize(
    ("version", "hashes", "message"),
    [
        ("1 3", (NEW,), "'1 3' is not a version"),
        ("1.3", (), r"sources that change: 1, hashes: 0\n.*in order:\n +https://example.org/x-1.3.tar.gz"),
        ("1.3", ("xyz",), "'xyz' is not a SHA-256"),
        ("1.2", (NEW,), "no source changes"),
    ],
)
def test_mistakes_are_errors(version: str, hashes: tuple[str, ...], message: str) -> None:
    recipe = meta(with_source('{% set version = "1.2" %}\npackage:\n  version: {{ version }}'))
    with pytest.raises(InputError, match=message):
        set_version(recipe, version, hashes)


@pytest.mark.parametrize(
    ("set_", "address", "known"),
    [
        ("", "{{ cran_mirror }}/a_{{ version }}.tar.gz", "https://cran.r-project.org/a_1.3.tar.gz"),
        ("", "https://x/{{ version }}_cuda{{ cuda_version }}.zip", ""),
        ('{% set cuda = cuda | default("None") %}', "https://x/{{ version }}_{{ cuda }}.zip", ""),
        ("", 'https://x/{{ version }}_{{ environ.get("KIND", "a") }}.zip', ""),
    ],
)
def test_an_address_that_the_variant_decides_is_neither_guessed_nor_downloaded(
    set_: str, address: str, known: str
) -> None:
    text = with_source(f'{{% set version = "1.2" %}}\n{set_}\npackage:\n  version: {{{{ version }}}}', address)
    (shown,) = changing(meta(text), "1.3")
    assert shown == (known or address.split()[0])
    asked: list[str] = []

    def digest(url: str, kind: str) -> str:
        asked.append(url)
        return NEW

    with nullcontext() if known else pytest.raises(InputError, match="differs by selector or variant"):
        set_version(meta(text), "1.3", digest)
    assert asked == ([known] if known else [])


def test_a_version_that_no_literal_decides_is_an_error_with_its_line() -> None:
    recipe = meta('{% set version = environ.get("TAG", "1.2") %}\npackage:\n  version: {{ version }}\n')
    with pytest.raises(InputError, match=r"meta\.yaml:3:12: no literal of the recipe decides the version"):
        set_version(recipe, "1.3", ())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("build:\n  number: 4\n", "build:\n  number: 0\n"),
        (
            "{% set build = 4 %}\nbuild:\n  number: {{ build }}\n",
            "{% set build = 0 %}\nbuild:\n  number: {{ build }}\n",
        ),
        (
            "{% set build = 4 %}\n{% set build = build + 200 %}  # [cuda]\nbuild:\n  number: {{ build }}\n",
            "{% set build = 0 %}\n{% set build = build + 200 %}  # [cuda]\nbuild:\n  number: {{ build }}\n",
        ),
        (
            "build:\n  number: 4    # [cpu]\n  number: 104  # [gpu]\n",
            "build:\n  number: 0    # [cpu]\n  number: 100  # [gpu]\n",
        ),
        (
            "build:\n  number: 4\noutputs:\n  - name: a\n    build:\n      number: 2\n",
            "build:\n  number: 0\noutputs:\n  - name: a\n    build:\n      number: 0\n",
        ),
        ("package:\n  name: x\n", "package:\n  name: x\n"),
    ],
)
def test_a_build_number_starts_again(before: str, after: str) -> None:
    assert set_build_number(meta(before), 0).text == after


def test_a_build_number_rises_by_one_everywhere() -> None:
    text = "build:\n  number: 4    # [cpu]\n  number: 104  # [gpu]\n"
    assert raise_build_number(meta(text)).text == text.replace("4 ", "5 ")
    branches = "build:\n  number:\n    - if: cuda\n      then: 204\n      else: 4\n"
    assert raise_build_number(v1(branches), 2).text == branches.replace("04", "06").replace(": 4", ": 6")


def test_a_build_number_that_no_literal_decides_is_an_error() -> None:
    with pytest.raises(InputError, match=r"meta\.yaml:2:11: no literal decides the build number"):
        set_build_number(meta("build:\n  number: {{ GIT_COUNT }}\n"), 1)


def test_a_hash_of_each_selector_is_asked_for_where_one_address_serves_several_platforms() -> None:
    text = (
        """\
{% set version = "1.2" %}
{% set platform = "linux" %}  # [linux64]
{% set platform = "win" %}    # [win]
package:
  version: {{ version }}
source:
  url: https://example.org/{{ platform }}-{{ version }}.gz
  sha256: AAAA  # [linux64 and cuda]
  sha256: BBBB  # [linux64 and not cuda]
  sha256: CCCC  # [win]
""".replace("AAAA", OLD)
        .replace("BBBB", OTHER)
        .replace("CCCC", "d" * 64)
    )
    addresses = changing(meta(text), "1.3")
    assert [url.rpartition("/")[2] for url in addresses] == ["linux-1.3.gz", "linux-1.3.gz", "win-1.3.gz"]
    changed = set_version(meta(text), "1.3", ("1a" * 32, "2a" * 32, "3a" * 32)).text
    assert changed == text.replace('"1.2"', '"1.3"').replace(OLD, "1a" * 32).replace(OTHER, "2a" * 32).replace(
        "d" * 64, "3a" * 32
    )
    with pytest.raises(InputError, match=r"change: 3, hashes: 0\n(.*\n)*.*win-1\.3\.gz  \(\[win\]\)"):
        set_version(meta(text), "1.3", ())


def test_each_hash_in_a_variable_with_selectors_is_asked_for() -> None:
    text = """\
{% set version = "1.2" %}
{% set sha = "AAAA" %}  # [linux]
{% set sha = "BBBB" %}  # [win]
package:
  version: {{ version }}
source:
  url: https://example.org/{{ version }}.gz
  sha256: {{ sha }}
""".replace("AAAA", OLD).replace("BBBB", OTHER)
    changed = set_version(meta(text), "1.3", ("1a" * 32, "2a" * 32)).text
    assert changed == text.replace('"1.2"', '"1.3"').replace(OLD, "1a" * 32).replace(OTHER, "2a" * 32)


def test_an_address_that_a_selector_leaves_open_is_not_downloaded() -> None:
    text = """\
{% set version = "1.2" %}
{% set platform = "linux" %}  # [linux64 and cuda]
{% set platform = "win" %}    # [win]
package:
  version: {{ version }}
source:
  url: https://example.org/{{ platform }}-{{ version }}.gz
  sha256: AAAA  # [linux64]
""".replace("AAAA", OLD)
    with pytest.raises(InputError, match=r"differs by selector(.|\n)*--sha256"):
        set_version(meta(text), "1.3", lambda _url, _kind: NEW)


def test_an_md5_is_replaced_too() -> None:
    text = with_source('{% set version = "1.2" %}\npackage:\n  version: {{ version }}').replace(
        "build:", f"  md5: {'e' * 32}\nbuild:"
    )
    changed = set_version(meta(text), "1.3", (NEW, "f" * 32)).text
    assert f"sha256: {NEW}\n  md5: {'f' * 32}\n" in changed
    with pytest.raises(InputError, match="is not an MD5"):
        set_version(meta(text), "1.3", (NEW, NEW))


def test_a_hash_below_a_key_that_a_variable_names_is_replaced() -> None:
    text = with_source('{% set version = "1.2" %}{% set kind = "sha256" %}\npackage:\n  version: {{ version }}')
    changed = set_version(meta(text.replace("sha256: ", "{{ kind }}: ")), "1.3", [NEW]).text
    assert f"  {{{{ kind }}}}: {NEW}\n" in changed


def test_of_versions_that_differ_by_selector_the_one_of_a_given_variable_changes() -> None:
    text = """\
{% set binary = "2.4.0" %}
{% set version = "2.5.1" %}
package:
  name: demo
  version: {{ binary }}  # [osx and arm64]
  version: {{ version }}  # [not (osx and arm64)]
source:
  url: https://example.org/{{ binary }}-binary.tar.gz  # [osx and arm64]
  sha256: AAAA  # [osx and arm64]
  url: https://example.org/{{ version }}.tar.gz  # [not (osx and arm64)]
  sha256: BBBB  # [not (osx and arm64)]
build:
  number: 1
""".replace("AAAA", OTHER).replace("BBBB", OLD)
    expected = text.replace("2.5.1", "2.5.2").replace(OLD, NEW).replace("number: 1", "number: 0")
    assert set_version(meta(text), "2.5.2", [NEW], variables={"version": "2.5.2"}).text == expected
    with pytest.raises(InputError, match=r"several versions\n.*--set NAME=VALUE: 2\.4\.0 .*2\.5\.1"):
        version_of(meta(text))


def test_outputs_that_write_the_same_version_in_several_variables_get_it_in_each() -> None:
    text = """\
{% set lib = "1.4.7" %}
{% set tool = "1.4.7" %}
package:
  name: x
outputs:
  - name: lib
    version: {{ lib }}
  - name: tool
    version: {{ tool }}
"""
    assert set_version(meta(text), "1.4.8", ()).text == text.replace("1.4.7", "1.4.8")
    with pytest.raises(InputError, match="no single version"):
        set_version(meta(text.replace('tool = "1.4.7"', 'tool = "2.0"')), "1.4.8", ())


def test_a_version_keeps_the_separators_and_zeros_of_its_literal() -> None:
    text = """\
{% set tag = "6-30-02" %}
{% set version = ".".join(tag.split("-")|map("int")|map("string")) %}
{%- if "CI" in os.environ %}
  {%- set version = os.environ["VERSION"] %}
{%- endif %}
package:
  version: {{ version }}
"""
    assert set_version(meta(text), "6.30.4", ()).text == text.replace("6-30-02", "6-30-04")


def test_a_number_in_the_context_is_compared_as_one() -> None:
    text = """\
context:
  version: "2.5.0"
  rc: -1
package:
  version: ${{ version }}${{ ("rc" ~ rc) if rc > -1 else "" }}
"""
    assert set_version(v1(text), "2.5.1", ()).text == text.replace("2.5.0", "2.5.1")


def test_variables_with_the_old_version_that_stay_are_named() -> None:
    text = """\
{% set version = "12.8.90" %}
{% set cuda = "12.8" %}
{% set patches = "cu_12890" %}
{% set other = "3.1" %}
package:
  version: {{ version }}
"""
    assert left_behind(meta(text), move_to(meta(text), "12.9.79")) == (
        "meta.yaml:2 is as before: cuda = 12.8",
        "meta.yaml:3 is as before: patches = cu_12890",
    )


def test_sources_that_a_new_version_leaves_as_they_are_are_named() -> None:
    text = """\
    {% set version = "1.2.3" %}
    package: {name: x, version: "{{ version }}"}
    source:
      - url: https://example.org/x-{{ version }}.tar.gz
        sha256: aa
      - git_url: https://example.org/data.git
        git_rev: "6e13f13"
      - path: here
    """
    moved = move_to(meta(text), "1.3.0")
    why = "is as before, since nothing in it follows the version"
    remark = f"meta.yaml:6: source 2 {why}: https://example.org/data.git 6e13f13"
    assert left_behind(meta(text), moved) == (remark,)
    assert not keeps_all_sources(meta(text), moved)
    again = move_to(meta(text), "1.3.0", sources={2: "7f00000"})
    assert 'git_rev: "7f00000"' in again.text
    assert left_behind(meta(text), again) == ()


@pytest.mark.parametrize(
    ("address", "new"),
    [
        ("https://example.org/v1.2.3/x-1.2.3.tar.gz", "https://example.org/v1.3.0/x-1.3.0.tar.gz"),
        ("https://example.org/x-11.2.3.tar.gz", None),
        ("https://example.org/x-1.2.3.4.tar.gz", None),
        ("https://example.org/x26_rc7.tar.bz2", None),
    ],
)
def test_an_address_with_the_version_written_out_follows_it(address: str, new: str | None) -> None:
    text = '{% set version = "1.2.3" %}\npackage: {version: {{ version }}}\nsource:\n  url: ADDRESS\n  sha256: aa\n'
    text = text.replace("ADDRESS", address)
    moved = move_to(meta(text), "1.3.0")
    assert f"url: {new or address}\n" in moved.text
    assert keeps_all_sources(meta(text), moved) == (new is None)


def test_a_source_has_another_version_of_its_own() -> None:
    text = """\
    {% set version = "1.2" %}
    {% set plugins = "0.9" %}
    package: {name: x, version: "{{ version }}"}
    source:
      - url: https://example.org/x-{{ version }}.tar.gz
        sha256: aa
      - url: https://example.org/plugins-{{ plugins }}.tar.gz
        sha256: bb
    """
    addresses = {"https://example.org/x-1.3.tar.gz": OTHER, "https://example.org/plugins-1.0.tar.gz": NEW}
    document = set_version(meta(text), "1.3", lambda url, _: addresses[url], sources={2: "1.0"})
    assert document.text.index(OTHER) < document.text.index(NEW)
    assert '{% set plugins = "1.0" %}' in document.text
    whole = move_to(meta(text), "1.3", sources={1: "https://example.net/x.tgz"})
    assert "url: https://example.net/x.tgz" in whole.text
    with pytest.raises(InputError, match=r"there is no source 3\n.*from 1 to 2"):
        move_to(meta(text), "1.3", sources={3: "1.0"})


@pytest.mark.parametrize("given", ["35.1", "7.35.1"])
def test_a_version_of_two_variables_is_given_whole_or_as_the_variable_that_changes(given: str) -> None:
    text = '{% set version = "35.0" %}\n{% set major = "7" %}\npackage: {version: {{ major ~ "." ~ version }}}\n'
    assert move_to(meta(text), given).text == text.replace("35.0", "35.1")


def test_a_tag_is_given_for_the_version_that_the_recipe_makes_of_it() -> None:
    text = """\
    {% set version = "patch_21Nov2023" %}
    {% set date = datetime.datetime.strptime(version.split('_')[1], "%d%b%Y") %}
    {% set conda_version = "{:%Y.%m.%d}".format(date) %}
    package: {version: {{ conda_version }}}
    """
    moved = move_to(meta(text), "patch_7Feb2024_update1")
    assert (version_of(moved), "patch_7Feb2024_update1" in moved.text) == ("2024.02.07", True)


def test_a_build_number_of_a_name_that_the_recipe_does_not_set_is_that_of_the_context() -> None:
    text = "context:\n  build_number: 4\nbuild:\n  number: ${{ build }}\n"
    assert set_build_number(Document(Path("recipe.yaml"), text), 0).text == text.replace("4", "0")


@pytest.mark.parametrize(
    ("old", "new", "is_lower"),
    [
        ("1.10", "1.9", True),
        ("1.9", "1.10", False),
        ("1.0", "1.0.0", False),
        ("2.0", "2.0rc1", True),
        ("2.0.post1", "2.0", True),
        ("2.0", "2.0.post1", False),
        ("1!0.5", "2.0", True),
        ("2.0", "1!0.5", False),
        ("2024.1", "r12", True),
    ],
)
def test_a_lower_version_is_said_in_the_order_of_conda(old: str, new: str, *, is_lower: bool) -> None:
    said = (f"version {new} is lower than {old}, which the recipe had",)
    assert lowered(old, new) == (said if is_lower else ())


def test_a_version_that_is_none_for_conda_or_has_no_digit_is_said() -> None:
    assert lowered("2.0", "banana") == ("version banana has no digit: is it the right one?",)
    (said,) = lowered("2.0", "~")
    assert said.startswith("conda does not take '~' for a version: ")
