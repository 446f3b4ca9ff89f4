"""What the README says of packages and channels; the release of conda-smithy is a small one of our own."""

from pathlib import Path

import pytest

from feedstock_tools.rerender.rerendering import rerender
from feedstock_tools.rerender.rules import Rules
from feedstock_tools.rerender.smithy import find_release
from tests.support.smithy_release import write_release

PINNING = "channel_targets:\n- conda-forge main\ndocker_image:\n- an-image\n"
RECIPE = "package:\n  name: demo\n  version: '1.0'\nabout:\n  summary: A demonstration\n"
#: Two debug builds and three releases, each kind with a label of its own.
LABELS = """
channel_targets:
- conda-forge demo_debug
- conda-forge demo_rc
zip_keys:
-
  - channel_targets
  - kind
kind:
- debug
- release
"""


@pytest.fixture
def feedstock(tmp_path: Path) -> Path:
    folder = tmp_path / "demo-feedstock"
    (folder / "recipe").mkdir(parents=True)
    (folder / "templates").mkdir()
    (folder / "conda-forge.yml").write_text("{}\n")
    return folder


def _readme(feedstock: Path, template: str, rules: str) -> str:
    """The README that a template of the feedstock gives."""
    (feedstock / "templates/README.md.tmpl").write_text(template)
    for name in ("automerge.yml", "webservices.yml"):
        (feedstock / f"templates/{name}.tmpl").write_text("a service\n")
    pinning = feedstock.parent / "conda_build_config.yaml"
    pinning.write_text(PINNING)
    release = find_release(write_release(feedstock.parent / "release"))
    found = rerender(feedstock, pinning=pinning, rules=Rules.parse(rules), smithy=release)
    assert found.tree is not None
    return found.tree.files["README.md"].content.decode()


@pytest.mark.parametrize(
    ("rules", "listed"), [("3.20.0", "demo_linux-64"), ("3.21.0", "demo_linux-64 demo_osx-64 demo_win-64")]
)
def test_packages_of_all_platforms_are_listed_from_3_21_0(feedstock: Path, rules: str, listed: str) -> None:
    outputs = "outputs:\n  - name: demo_{{ target_platform }}\n    about:\n      summary: Its part\n"
    (feedstock / "recipe/meta.yaml").write_text(RECIPE + outputs)
    template = "{{ outputs | join(' ') }}: {{ package_about.summary }}\n"
    assert _readme(feedstock, template, rules) == f"{listed}: Its part"


def _with_labels(feedstock: Path, readme: str) -> str:
    (feedstock / "recipe/meta.yaml").write_text(RECIPE + "build:\n  skip: true  # [win and kind == 'debug']\n")
    (feedstock / "recipe/conda_build_config.yaml").write_text(LABELS)
    if readme:
        (feedstock / "README.md").write_text(f"conda config --add channels conda-forge/label/{readme}\n")
    return _readme(feedstock, "{{ channel_targets[0] }}\n", "2026.8.5").strip()


def test_the_channel_is_that_of_most_configurations(feedstock: Path) -> None:
    assert _with_labels(feedstock, "") == "conda-forge demo_rc"


def test_the_channel_of_the_readme_stays_while_configurations_have_it(feedstock: Path) -> None:
    assert _with_labels(feedstock, "demo_debug") == "conda-forge demo_debug"
    assert _with_labels(feedstock, "demo_old") == "conda-forge demo_rc"


@pytest.mark.parametrize(("license_file", "parts"), [('{{ environ["PREFIX"] }}/lib/R/GPL-2', 2), ("LICENSE", 1)])
def test_an_about_that_names_a_folder_of_the_build_is_another_one_on_each_platform(
    feedstock: Path, license_file: str, parts: int
) -> None:
    (feedstock / "recipe/meta.yaml").write_text(f"{RECIPE}  license_file: '{license_file}'\n")
    assert _readme(feedstock, "{{ package_about | length }}\n", "2026.8.5") == str(parts)
    (feedstock / "recipe/meta.yaml").write_text(
        f"{RECIPE}  license_file: '{license_file}'\nbuild:\n  noarch: generic\n"
    )
    assert _readme(feedstock, "{{ package_about | length }}\n", "2026.8.5") == "1"
