"""What conda-build 26.7.1 refuses in recipes of our own, `lint` finds, and what it takes is not called refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from feedstock_tools.check.linting.lint import lint_feedstock

RECIPE = """\
package:
  name: demo
  version: "1.2"
build:
  number: 0
requirements:
  build:
    - make
  host:
    - zlib
  run:
    - zlib
test:
  commands:
    - demo
about:
  home: https://example.org/demo
  license: MIT
  license_file: LICENSE
  summary: A demo
extra:
  recipe-maintainers:
    - somebody
"""
NUMBER, RUN, HOST = "  number: 0\n", "  run:\n    - zlib\n", "  host:\n    - zlib\n"


def found(folder: Path, old: str, new: str) -> set[str]:
    """The rules that find a mistake in the recipe with a change."""
    assert old in RECIPE
    (folder / "recipe").mkdir()
    (folder / "recipe/meta.yaml").write_text(RECIPE.replace(old, new, 1))
    for name in ("recipe/LICENSE", "recipe/a.sh", "conda-forge.yml"):
        (folder / name).touch()
    (folder / ".ci_support").mkdir()
    (folder / ".ci_support/linux_64_.yaml").write_text("target_platform:\n- linux-64\nzlib:\n- '1'\n")
    return {each.rule for each in lint_feedstock(folder).findings if each.weight == "mistake"}


def output(text: str) -> tuple[str, str]:
    return "about:\n", f"outputs:\n  - {text}\nabout:\n"


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ('"1.2"', '".1"', "package-version"),
        ('"1.2"', '"1-2"', "refused-value"),
        ('"1.2"', '"1 2"', "refused-value"),
        ('"1.2"', "{a: 1}", "refused-value"),
        ('"1.2"', "{{ vision }}", "undefined-name"),
        ('"1.2"', '"{{ vision }}"', "undefined-name"),
        ('"1.2"', "{{ vision() }}", "undefined-name"),
        ('"1.2"', "{{ 1 + }}", "not-rendered"),
        ('  version: "1.2"\n', "", "package-version"),
        ("number: 0", f"number: {'1' * 5000}", "not-rendered"),
        ("number: 0", "number: abc", "refused-value"),
        ("number: 0", "number: -1", "refused-value"),
        ("number: 0", "number: 1.5", "refused-value"),
        ("number: 0", "number: {{ vision }}", "undefined-name"),
        ("name: demo", "name: Demo", "package-name"),
        ("name: demo", "name: de mo", "refused-value"),
        ("name: demo", "name: de!mo", "refused-value"),
        ("name: demo", "name: demo/", "refused-value"),
        ("name: demo", "name: [demo]", "not-rendered"),
        ("name: demo", "name: {{ vision }}", "not-rendered"),
        (NUMBER, f"{NUMBER}  noarch: none\n", "not-rendered"),
        (NUMBER, f"{NUMBER}  string: a-b\n", "refused-value"),
        (NUMBER, f"{NUMBER}  string: a b\n", "refused-value"),
        (NUMBER, "\tnumber: 0\n", "not-rendered"),
        ("build:\n", "---\nbuild:\n", "not-rendered"),
        ("    - make\n", "    - { packageB }\n", "not-rendered"),
        ("    - make\n", "    - make ==\n", "refused-value"),
        ("    - make\n", "    - {{ compiler() }}\n", "not-rendered"),
        ("    - make\n", "    - make  # [linux and]\n", "not-rendered"),
        (HOST, "  host:\n    - zlib: 1\n", "refused-value"),
        (RUN, "  run:\n    - zlib >=1,<\n", "refused-value"),
        (RUN, "  run:\n    - [zlib, bzip2]\n", "refused-value"),
        (RUN, "  run:\n    - zlib\n    -\n", "refused-value"),
        (RUN, "  run:\n    - ~  # [linux]\n", "refused-value"),
        (RUN, "  run:\n    - {{ vision }}\n", "undefined-name"),
        (RUN, "  run:\n    - zlib {{ vision }}\n", "undefined-name"),
        (RUN, "  run:\n    - {{ pin_subpackage('nowhere') }}\n", "unbuilt-pin"),
        (RUN, "  run:\n    - {{ pin_subpackage('demo', max_pin='x') }}\n", "refused-value"),
        ("test:\n  commands:\n    - demo\n", "test: demo\n", "not-rendered"),
        ("license: MIT\n", "license: MIT\n  license_family: Best\n", "license-family"),
        (*output("script: a.sh"), "refused-value"),
        (*output('name: other\n    version: ".1"'), "refused-value"),
        (*output("name: Other!"), "refused-value"),
        (*output("name: other\n    number: abc"), "refused-value"),
        (*output("name: other\n    requirements:\n      run:\n        - {a}"), "refused-value"),
    ],
)
def test_what_conda_build_refuses_is_found(tmp_path: Path, old: str, new: str, rule: str) -> None:
    assert rule in found(tmp_path, old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("number: 0", "number: {{ vision | default(1) }}"),
        ("number: 0", "number: {% if vision is defined %}1{% else %}0{% endif %}"),
        ("package:\n", "{% set vision = 1 %}\npackage:\n"),
        ("package:\n", "# {{ vision }}\npackage:\n"),
        ("package:\n", "{% for each in [1] %}\n# {{ each }}\n{% endfor %}\npackage:\n"),
        (RUN, "  run:\n    - zlib {{ vision }}  # [win]\n"),
        (RUN, "  run:\n    - zlib {{ zlib }} {{ environ['VISION'] }}\n"),
        (RUN, "  run:\n    - black[jupyter] >=22\n"),
        (RUN, '  run:\n    - ""\n'),
        ('"1.2"', "1!1.2+3_4"),
        (*output("name: other\n    build:\n      number: 7\n      string: a_b.1"),),
    ],
)
def test_what_conda_build_takes_is_not_called_refused(tmp_path: Path, old: str, new: str) -> None:
    assert found(tmp_path, old, new) & {"refused-value", "undefined-name", "not-rendered"} == set()
